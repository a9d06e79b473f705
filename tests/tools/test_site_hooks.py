import pytest
from mkdocs.exceptions import PluginError
from site_hooks import relinked


def test_pictures_of_results_are_those_of_the_site():
    assert relinked("![a](../results/figures/load.svg)", "results.md") == "![a](results/figures/load.svg)"
    found = relinked("![a](../../results/figures/load.svg)", "reference/plots.md")
    assert found == "![a](../results/figures/load.svg)"


def test_the_changelog_is_a_page():
    assert relinked("[news](../CHANGELOG.md)", "index.md") == "[news](changelog.md)"


def test_other_files_are_named_without_a_link():
    markdown = "See [how](../CONTRIBUTING.md) and [tests](../tests/reference.py#L3)."
    assert relinked(markdown, "index.md") == "See how and tests."


def test_links_within_docs_stay():
    for markdown, page in (("[a](../index.md)", "reference/a.md"), ("[a](start.md#b)", "index.md")):
        assert relinked(markdown, page) == markdown


def test_a_file_that_is_not_there_is_an_error():
    with pytest.raises(PluginError, match=r"docs/index.md links to nothing.md, which is not there"):
        relinked("[a](../nothing.md)", "index.md")
    with pytest.raises(PluginError, match=r"docs/index.md shows README.md; pictures"):
        relinked("![a](../README.md)", "index.md")
