"""The pictures of the site are what their pages compute, to the last byte."""

import importlib.util
import re

import pytest

from page_runner import ROOT

IMAGES = ROOT / "docs" / "images"


def _pictures():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PICTURES = _pictures()


@pytest.mark.parametrize("name", PICTURES.PICTURES)
def test_a_picture_is_what_its_page_computes(name):
    drawn = PICTURES.svg_of(name)
    assert (IMAGES / f"{name}.svg").read_text(encoding="utf-8") == drawn, "run python docs/pictures.py"
    assert len(drawn) < 100_000


def test_every_picture_is_on_a_page_and_described_there():
    for name in PICTURES.PICTURES:
        pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
        assert any(re.search(rf"!\[[^\]]{{20,}}\]\(images/{name}\.svg\)", page) for page in pages), name
