"""Every code block of README and the site does what it says."""

import pytest

from page_runner import ROOT, pages, run_page


@pytest.mark.parametrize("page", pages())
def test_code_of(page, tmp_path, monkeypatch):
    folder = tmp_path / "page"
    folder.mkdir()
    run_page((ROOT / page).read_text(encoding="utf-8"), page, folder, monkeypatch)
