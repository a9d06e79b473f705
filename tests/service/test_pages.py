import re

from surelabel.service.pages import example_texts, static_files


def test_static_files_are_all_there_and_refer_to_each_other_only():
    files = static_files()
    assert {"index.html", "page.css", "page.js", "icon.svg"} <= set(files)
    scripts = "".join(file.content.decode() for name, file in files.items() if name.endswith(".js"))
    for name in re.findall(r'from "\./([^"]+)"', scripts):
        assert name in files
    for name in re.findall(r'(?:href|src)="static/([^"]+)"', files["index.html"].content.decode()):
        assert name in files


def test_pages_share_their_head_and_the_form_for_the_token():
    files = static_files()
    assert not [name for name in files if name.startswith("_")]
    for name in ("index.html", "review.html"):
        page = files[name].content.decode()
        assert page.count('<meta charset="utf-8">') == page.count('<form id="token-form"') == 1
        assert "<!--" not in page


def test_nothing_on_the_page_is_inline_or_from_elsewhere():
    files = static_files()
    page = files["index.html"].content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page)
    for name, file in files.items():
        found = re.findall(rb"https?://[^\s\"'<>)]+", file.content)
        assert set(found) <= {b"http://www.w3.org/2000/svg"}, name
    scripts = b"".join(file.content for name, file in files.items() if name.endswith(".js"))
    for way in (
        b"innerHTML",
        b"outerHTML",
        b"insertAdjacentHTML",
        b"document.write",
        b"eval(",
        b"new Function",
        b"DOMParser",
    ):
        assert way not in scripts


def test_example_texts():
    assert len(example_texts(["a", "b", "c"])) == 3
    assert "money supply" in example_texts(["money-supply"])[0]
    assert len(example_texts([])) == 1
    assert len(example_texts(["-", "_"])) == 1
