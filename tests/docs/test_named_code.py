"""What the pages say is in the code is there, and so are the files that they take figures from."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("paper.md", "search.md", "limits.md", "examples.md")


def _text(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def _is_there(name: str) -> bool:
    """Tell whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        module = ".".join(parts[:n])
        try:
            found = importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:
            found = False
        if found:
            value = importlib.import_module(module)
            for attribute in parts[n:]:
                value = getattr(value, attribute, None)
            return value is not None
    return False


@pytest.mark.parametrize("page", PAGES)
def test_named_code_exists(page):
    names = set(re.findall(r"`(surelabel(?:\.\w+)+)(?:\(\))?`", _text(page)))
    assert not [name for name in sorted(names) if not _is_there(name)]


def test_the_paper_page_names_code():
    assert len(re.findall(r"`surelabel(?:\.\w+)+`", _text("paper.md"))) > 30
    assert not _is_there("surelabel.metrics.no_such_name")
    assert not _is_there("surelabel.no_such_module")


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page):
    paths = re.findall(r"`((?:results|tests|benchmarks|examples|docs|_kernels)/[\w./-]*)`", _text(page))
    places = [ROOT / "src" / "surelabel" / path if path.startswith("_kernels") else ROOT / path for path in paths]
    assert not [place for place in places if not place.exists()]


@pytest.mark.parametrize("page", ["paper.md"])
def test_named_commands_exist(page):
    from surelabel.cli import application

    commands = set(re.findall(r"`surelabel ([a-z]+)", _text(page)))
    known = {command.name or command.callback.__name__ for command in application.app.registered_commands}
    known |= {group.name for group in application.app.registered_groups}
    assert commands <= known
