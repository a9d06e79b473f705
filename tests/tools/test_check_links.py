import subprocess
import sys

import check_links
import pytest

from page_runner import ROOT


@pytest.fixture
def site(tmp_path):
    """Return a site of two pages whose links all lead somewhere."""
    (tmp_path / "more").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">A</h1><a href="more/b.html#é">b</a><a href="#top">up</a><a href="more/">more</a>'
        '<a href="https://example.org/">out</a><a href="mailto:a@example.org">mail</a><img src="more/a%20b.svg">'
    )
    (tmp_path / "more" / "b.html").write_text('<a id="é"></a><a href="../index.html?q=1#top">a</a><a href="/">home</a>')
    (tmp_path / "more" / "index.html").write_text("<p>more</p>")
    (tmp_path / "more" / "a b.svg").write_text("<svg/>")
    return tmp_path


def test_a_whole_site_has_nothing_broken(site):
    assert list(check_links.broken_links(site)) == []


@pytest.mark.parametrize(
    ("html", "message"),
    [
        ('<a href="nothing.html">', "c.html:1: 'nothing.html' is not there"),
        ('<p>\n<a href="index.html#nothing">', "c.html:2: 'index.html#nothing' has no such anchor"),
        ('<a href="#nothing">', "c.html:1: '#nothing' has no such anchor"),
        ('<img src="nothing.svg">', "c.html:1: 'nothing.svg' is not there"),
        ('<a href="../other.html">', "c.html:1: '../other.html' leads out of the site"),
        (
            '<script src="https://example.org/a.js"></script>',
            "c.html:1: 'https://example.org/a.js' is loaded from outside",
        ),
        ('<script src="//example.org/a.js"></script>', "c.html:1: '//example.org/a.js' is loaded from outside"),
        (
            '<link rel="stylesheet" href="https://example.org/a.css">',
            "c.html:1: 'https://example.org/a.css' is loaded from outside",
        ),
    ],
)
def test_what_leads_nowhere_or_loads_from_outside_is_told_with_its_place(site, html, message):
    (site / "c.html").write_text(html)
    assert list(check_links.broken_links(site)) == [message]


def test_the_command_says_what_is_broken_and_fails(site):
    command = [sys.executable, ROOT / "tools" / "check_links.py", site]
    whole = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (whole.returncode, whole.stdout) == (0, "3 pages, 0 broken links.\n")
    (site / "c.html").write_text('<a href="nothing.html">')
    broken = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (broken.returncode, broken.stdout) == (1, "4 pages, 1 broken links.\n")
    assert "c.html:1: 'nothing.html' is not there" in broken.stderr


def test_a_folder_without_pages_is_an_error(tmp_path, capsys):
    assert check_links.main([str(tmp_path)]) == 2
    assert "There are no pages in" in capsys.readouterr().err
