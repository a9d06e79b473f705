"""Every public name is in the reference, and shows its use in an example that the tests run."""

import importlib
import inspect
import re

import pytest

import surelabel
from page_runner import ROOT

MODULES = ("corpora", "exceptions", "metrics", "plots", "report", "review", "rivals", "service", "text")


def public_names():
    """Return public names with what they are and the module that gives them; modules themselves are left out."""
    found = {}
    for module in (surelabel, *(importlib.import_module(f"surelabel.{name}") for name in MODULES)):
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.ismodule(value):
                found[f"{module.__name__}.{name}"] = (value, module)
    return found


def examples_of(value):
    """Return the docstrings of a function or class, and of what the class itself has."""
    if not inspect.isclass(value):
        return [value.__doc__ or ""] if callable(value) else []
    own = [getattr(each, "__func__", each) for name, each in vars(value).items() if not name.startswith("_")]
    return [value.__doc__ or "", *(each.__doc__ or "" for each in own if callable(each) or isinstance(each, property))]


def has_example(name, value, module):
    """Whether a name is shown; constants, and classes that are made when asked for, by the module that gives them."""
    if any(">>>" in docstring for docstring in examples_of(value)):
        return True
    last = name.rpartition(".")[2]
    shown = [line for line in module.__doc__.splitlines() if line.startswith((">>>", "..."))]
    return any(re.search(rf"\b{last}\b", line) for line in shown)


def test_every_public_name_has_an_example():
    missing = [name for name, (value, module) in public_names().items() if not has_example(name, value, module)]
    assert not missing, f"public names without >>> in their docstrings: {', '.join(missing)}"


def test_every_public_name_is_in_the_reference_once():
    listed = []
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        listed += re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    names = [name for name in listed if name not in {f"surelabel.{module}" for module in MODULES}]
    assert sorted(names) == sorted(public_names())


@pytest.mark.parametrize("module", MODULES)
def test_public_modules_are_public(module):
    assert module in surelabel.__all__
