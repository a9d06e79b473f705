"""How files that people bring are read is said, whichever command reads them."""

import pytest

from tickets import OWN


def test_the_separator_of_labels_is_always_printed(run, trained, own_file, new_file):
    assert "separated by ';'" in trained.printed.err
    for command in (("data", "stats", own_file), ("evaluate", trained.folder, new_file)):
        assert "separated by ';'" in run(*command, *OWN).err
    assert "one label" in run("data", "stats", new_file, *OWN, "--separator", "none").err


@pytest.mark.parametrize(
    ("names", "word"),
    [(("oil", "Oil"), "look alike"), (("nan", "oil"), "missing"), (("1", "2"), "numbers"), (("x;y", "y, z"), "','")],
)
def test_labels_that_are_probably_not_meant_are_named(run, tmp_path, names, word):
    path = tmp_path / "news.tsv"
    path.write_text("text\tlabels\n" + "".join(f"t\t{name}\n" for name in names))
    found = run("data", "stats", path)
    assert (found.code, word in found.err) == (0, True)


@pytest.mark.parametrize("cell", ["['gold', 'oil']", '["gold","oil"]', "{gold,oil}"])
def test_lists_of_labels_are_lists(run, tmp_path, cell):
    path = tmp_path / "news.tsv"
    path.write_text(f"text\tlabels\nGold\t{cell}\nOil\t['oil']\n")
    found = run("data", "stats", path, "--json")
    assert '"gold": 1' in found.out.replace("\n", "")
    assert "are lists" in found.err
