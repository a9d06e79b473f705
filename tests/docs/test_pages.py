"""The code on README and on every page does what the page says, and pages keep to one vocabulary."""

import re

import pytest

from docs.page_runner import ROOT, pages, run_page

QUICK = ("README.md", "docs/start.md")
# What these pages used to say, and what they say instead.
REPLACED = {
    r"\bmend(s|ed)?\b": "fix",
    r"label-sets? (that )?stays? plausible": "label-sets are plausible",
    r"label-sets? left": "plausible label-sets",
    r"label-set that fits best": "best guess",
    r"possible labels": "open labels",
    r"\bso many\b": "a number",
    r"\b(earlier|former) version": "nothing: pages describe the present code",
}


@pytest.mark.parametrize(
    "page", [page if page in QUICK else pytest.param(page, marks=pytest.mark.docs) for page in pages()]
)
def test_code_of_a_page_runs(page, tmp_path, monkeypatch):
    run_page(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", pages())
def test_a_page_opens_with_a_title_and_prose(page):
    title, opening = (ROOT / page).read_text(encoding="utf-8").split("\n\n")[:2]
    assert title.startswith("# ")
    assert re.match(r"[*`\w]", opening), f"{page} opens with {opening[:40]!r}"


@pytest.mark.parametrize("page", pages())
def test_a_page_uses_the_words_of_the_project(page):
    prose = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    used = {words: better for words, better in REPLACED.items() if re.search(words, prose, flags=re.I)}
    assert not used, f"{page}: say {used}"


@pytest.mark.parametrize("page", ["docs/paper.md", "docs/architecture.md"])
def test_files_that_a_page_names_exist(page):
    named = re.findall(r"`((?:results|tests|benchmarks|tools|src)/[\w./-]*)`", (ROOT / page).read_text())
    assert not [path for path in named if not (ROOT / path).exists()]
