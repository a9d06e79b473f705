"""No module of the package imports, directly or by way of others, a module that imports it."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

import surelabel

SOURCE = Path(surelabel.__file__).parent


def _modules(folder):
    """Every module of a package by its dotted name."""
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [folder.name, *path.relative_to(folder).with_suffix("").parts]
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def _is_type_checking(test):
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _statements(node):
    """All import statements, those inside functions too; not those for type checkers alone."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield node
    skipped = node.body if isinstance(node, ast.If) and _is_type_checking(node.test) else []
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield from _statements(child)


def _imported(statement, module, is_package):
    """Dotted names that a statement may import."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    base = statement.module or ""
    if statement.level:
        package = module if is_package else module.rpartition(".")[0]
        base = importlib.util.resolve_name("." * statement.level + base, package)
    return [name for alias in statement.names for name in (f"{base}.{alias.name}", base)]


def _graph(folder):
    """Which modules each module imports; a name that is taken from a package counts as its module if it is one."""
    modules = _modules(folder)
    graph = {}
    for module, path in modules.items():
        found = set()
        for statement in _statements(ast.parse(path.read_text(encoding="utf-8"))):
            names = _imported(statement, module, path.name == "__init__.py")
            if isinstance(statement, ast.ImportFrom):
                # Of `from package import module` the module counts; of `from package import name` the package.
                pairs = zip(names[::2], names[1::2], strict=True)
                names = [one if one in modules else base for one, base in pairs]
            found.update(name for name in names if name in modules and name != module)
        graph[module] = found
    return graph


def _cycle(graph):
    """Some cycle as a list of modules, empty if there is none."""
    done, path = set(), []

    def visit(module):
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        path.append(module)
        for other in sorted(graph[module]):
            if cycle := visit(other):
                return cycle
        path.pop()
        done.add(module)
        return []

    for module in sorted(graph):
        if cycle := visit(module):
            return cycle
    return []


def test_no_module_imports_itself_by_way_of_others():
    assert sys.getrecursionlimit() > len(_modules(SOURCE))
    assert _cycle(_graph(SOURCE)) == []


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("from made import b", "import made.a", ["made.a", "made.b", "made.a"]),
        ("def f():\n    from made.b import x", "from .a import y", ["made.a", "made.b", "made.a"]),
        ("if TYPE_CHECKING:\n    import made.b", "import made.a", []),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import made.b", "import made.a", ["made.a", "made.b", "made.a"]),
        ("import made.b", "import numpy", []),
    ],
)
def test_cycles_are_noticed(tmp_path, one, other, expected):
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "a.py").write_text(one)
    (folder / "b.py").write_text(other)
    assert _cycle(_graph(folder)) == expected


def test_no_import_dodges_the_linter():
    lazy = {SOURCE / "__init__.py"}
    for path in SOURCE.rglob("*.py"):
        if path not in lazy and "import_module(" in path.read_text(encoding="utf-8"):
            lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "import_module(" in line]
            assert not any('"surelabel' in line or "surelabel." in line for line in lines), path
