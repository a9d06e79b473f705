"""The site shows every example as it is."""

from site_examples import FOLDER, MARK, with_examples


def test_every_example_is_shown_whole():
    shown = with_examples(f"# Examples\n\n{MARK}\n")
    names = sorted(path.name for path in FOLDER.glob("[0-9]*"))
    assert [line.split('"')[1] for line in shown.splitlines() if line.startswith("??? example")] == names
    lines = {line.strip() for line in shown.splitlines()}
    for path in FOLDER.glob("[0-9]*.py"):
        assert {line.strip() for line in path.read_text(encoding="utf-8").splitlines()} <= lines
    assert shown.count("data:image/png;base64,") == 2
    assert "**Choosing**" in shown


def test_other_pages_stay_as_they_are():
    assert with_examples("# Limits") == "# Limits"
