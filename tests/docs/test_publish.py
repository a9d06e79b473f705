"""Pages show what the result files say, and no result file is needed to write them."""

import pytest
from publish.pages import filled, parts_of, publish

from docs.page_runner import ROOT, pages


def test_pages_are_written_without_any_result(tmp_path):
    (tmp_path / "page.md").write_text("# Page\n\n<!-- news: made by `make publish` -->\nold\n<!-- /news -->\n")
    publish(tmp_path, [tmp_path / "page.md"])
    assert "old" not in (tmp_path / "page.md").read_text()


def test_a_run_that_is_missing_is_named(tmp_path):
    assert "no `ctdc-bert-plain-seed0.json`" in parts_of(tmp_path)["paper-without-icp"]


def test_an_unknown_place_is_an_error():
    with pytest.raises(SystemExit, match="weather"):
        filled("<!-- weather: made by `make publish` -->\n<!-- /weather -->", {"news": ""}, "page.md")


@pytest.mark.docs
@pytest.mark.parametrize("page", pages())
def test_a_page_shows_what_the_results_say(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert filled(text, parts_of(ROOT / "results"), page) == text, "run make publish"
