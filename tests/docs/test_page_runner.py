import os
import socket
import sys

import pytest

from bundle_cases import small_bundle
from page_blocks import PageError
from page_runner import pages, run_page


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs blocks, given as language, text and perhaps title."""

    def call(*blocks):
        folder = tmp_path / "page"
        folder.mkdir()
        parts = []
        for language, text, *title in blocks:
            info = language + (f' title="{title[0]}"' if title else "")
            parts.append(f"```{info}\n{text}\n```\n")
        run_page("\n".join(parts), "page.md", folder, monkeypatch)
        return folder

    return call


def test_pages_are_the_readme_and_the_site():
    assert pages()[0] == "README.md"
    assert "docs/measures.md" in pages()


def test_python_blocks_share_one_namespace_with_pycon(run):
    run(("python", "a = 1"), ("pycon", ">>> a + 1\n2\n>>> b = 5"), ("python", "assert b == 5"))


def test_output_is_compared_with_what_was_printed(run):
    run(("python", "print('one two three')"), ("text", "one ... three", "output"))


def test_json_that_is_printed_is_compared_as_json(run):
    run(("bash", """echo '{"a": [1, 2], "b": 0.25}'"""), ("json", '{"b": "...",\n "a": [1,2]}', "output"))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([("python", "print(1)"), ("text", "2", "output")], r"page.md:6: printed something else(.|\n)*Got:\n1"),
        ([("bash", "echo 1"), ("text", "2", "output")], r"page.md:6: printed something else"),
        ([("bash", "echo '[1, 2]'"), ("json", "[1, 3]", "output")], r"page.md:6: printed something else"),
        ([("bash", "echo 1 2"), ("json", "[1, 3]", "output")], r"page.md:6: not json"),
        ([("pycon", ">>> 1 + 1\n3")], r"page.md:2:(.|\n)*Expected:\n    3\nGot:\n    2"),
        ([("pycon", "1 + 1")], r"page.md:2: pycon without >>>"),
        ([("bash", "true\nfalse")], r"page.md:3: false\nended with 1, not 0"),
        ([("bash", "true  # exits 3")], r"ended with 0, not 3"),
        ([("bash", "$ ls")], r"without a prompt"),
        ([("bash", "echo 'a\nb'")], r"page.md:2: a command must be on one line"),
        ([("bash", "cd elsewhere")], r"cd is only for what was cloned before"),
        ([("bash", "make nonsense")], r"make has no target 'nonsense'"),
        ([("bash", "pip install 'surelabel[cli,nonsense]'")], r"there are no extras nonsense"),
        ([("json", "{")], r"page.md:2: not json"),
        ([("yaml", "a: [")], r"page.md:2: not yaml"),
        ([("toml", "a")], r"page.md:2: not toml"),
        ([("bash", "surelabel serve nothing")], r"does not answer. It said:\n(.|\n)*nothing"),
        ([("bash", "surelabel serve model --port 8001")], r"a server's port must be one of 8000, 8786"),
    ],
)
def test_what_does_not_do_as_it_says_fails(run, blocks, message):
    with pytest.raises(PageError, match=message):
        run(*blocks)


def test_an_error_in_python_names_the_block(run):
    with pytest.raises(ZeroDivisionError) as caught:
        run(("python", "a = 1\na / 0"))
    assert caught.value.__notes__ == ["in the block at page.md:2"]
    assert caught.traceback[-1].lineno + 1 == 3


def test_commands_run_one_by_one_in_the_folder(run):
    folder = run(
        ("bash", "# a comment\nprintf '%s\\n' one \\\n  two > written.txt\n\nls nothing  # exits 2"),
        ("text", "ls: cannot access 'nothing': ...", "output"),
    )
    assert (folder / "written.txt").read_text() == "one\ntwo\n"


def test_titles_are_files_and_nothing_of_them_is_run(run):
    folder = run(
        ("json", '{"exclusions": [["a", "b"]]}', "rules/first.json"),
        ("python", "raise SystemExit(3)", "ends.py"),
        ("bash", "python ends.py  # exits 3"),
    )
    assert (folder / "rules" / "first.json").read_text() == '{"exclusions": [["a", "b"]]}\n'


def test_example_files_are_there(run):
    run(("bash", "head -1 tickets.csv\nhead -1 new.csv"), ("text", "id,body,tags\nid,body", "output"))


def test_what_ci_runs_elsewhere_is_not_run(run):
    folder = run(
        ("bash", "git clone https://example.org/surelabel.git\ncd surelabel\nmake demo CORPUS=x\npip install '.[cli]'")
    )
    assert sorted(path.name for path in folder.iterdir()) == ["new.csv", "tickets.csv"]


def test_exported_variables_hold_for_the_page_and_no_longer(run, monkeypatch):
    with monkeypatch.context():
        run(("bash", "export PAGE_WORD=two\necho $PAGE_WORD"), ("text", "two", "output"))
    python_only = os.environ.get("PAGE_WORD")
    monkeypatch.undo()
    assert python_only == "two"
    assert "PAGE_WORD" not in os.environ


def test_a_service_answers_on_a_free_port_until_the_page_ends(run, tmp_path):
    small_bundle().save(tmp_path / "model")
    folder = run(
        ("bash", "surelabel serve ../model  # http://127.0.0.1:8000/\ncurl -s http://127.0.0.1:8000/healthz"),
        ("json", '{"status":"alive"}', "output"),
        ("python", "import pathlib\npathlib.Path('port.txt').write_text('8000')\nprint('http://127.0.0.1:8000/')"),
        ("text", "http://127.0.0.1:8000/", "output"),
    )
    port = int((folder / "port.txt").read_text())
    assert port != 8000
    with socket.socket() as asking:
        assert asking.connect_ex(("127.0.0.1", port)) != 0


def test_there_is_no_network(run):
    run(("bash", "curl -s http://example.org/  # exits 7"))


def test_the_python_of_a_page_is_that_of_the_tests(run):
    run(("bash", "python -c 'import sys; print(sys.prefix)'"), ("text", sys.prefix, "output"))
