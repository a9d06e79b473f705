"""README and the site open with prose, and keep to one vocabulary."""

from __future__ import annotations

import re

import pytest

from page_runner import ROOT, pages

# What these pages used to say, and what they say instead.
REPLACED = {
    r"gone on with": "resumed",
    r"\bmend(s|ed)?\b": "fix",
    r"\bis told\b": "reports",
    r"no candidates?\b(?= *(\.|,|:|;|where|counts))": "not a candidate",
    r"label-sets? (that )?stays? plausible": "label-sets are plausible",
    r"label-sets? left": "plausible label-sets",
    r"label-set that fits best": "best guess",
    r"possible labels": "open labels",
    r"\b(texts|words|requests|rows) a (text|second|core)\b": "per text, per second",
}


def _text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def _prose(markdown: str) -> str:
    """Return a page without code and without what commands have written into it."""
    without = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    without = re.sub(r"<!-- ([\w.-]+): made by.*?<!-- /\1 -->", "", without, flags=re.DOTALL)
    return re.sub(r"`[^`]*`", "", without)


@pytest.mark.parametrize("page", pages())
def test_a_page_opens_with_prose(page):
    title, opening = _text(page).split("\n\n")[:2]
    assert title.startswith("# ")
    assert re.match(r"[*`\w]", opening), f"{page} opens with {opening[:40]!r}"
    assert not opening.startswith("```")


@pytest.mark.parametrize("page", [*pages(), "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"])
def test_a_page_uses_the_words_of_the_project(page):
    prose = _prose(_text(page))
    used = {words: better for words, better in REPLACED.items() if re.search(words, prose, flags=re.IGNORECASE)}
    assert not used, f"{page}: say {used}"


def test_a_sentence_with_the_old_words_is_seen():
    old = "Of 5.7 x 10^16 label-sets, a few label-sets stay plausible."
    assert any(re.search(words, _prose(old)) for words in REPLACED)
    assert not any(re.search(words, _prose(f"```text\n{old}\n```")) for words in REPLACED)
