"""`surelabel compare` and `surelabel watch`, in this process."""

import json
import xml.etree.ElementTree as ET

from surelabel.experiments.compare import load_comparison

OWN = ("--text", "body", "--labels", "tags", "--separator", ";")


def test_compare_prints_a_table_and_writes_results(run, tmp_path):
    folders = ("--runs", tmp_path / "runs", "--results", tmp_path / "results", "--quiet")
    chosen = ("--measure", "LogLoss", "--rival", "bonferroni", "--significance", "0.1", "--splits", "2")
    found = run("compare", "synthetic", *chosen, *folders)
    assert found.code == 0, found.err
    assert "LogLoss" in found.out
    assert "Bonferroni" in found.out
    assert "the label-set is missed in at most e of texts" in found.out
    compared = load_comparison(tmp_path / "results" / "comparisons" / "synthetic-linear.json")
    assert compared.n_splits == 2
    assert (tmp_path / "results" / "figures" / "synthetic-linear-comparison.svg").is_file()
    alone = run("compare", "synthetic", "--measure", "L2", "--rival", "none", "--splits", "1", *folders, "--json")
    assert list(json.loads(alone.out)["guarantees"]) == ["L2"]


def test_compare_takes_a_file_and_a_model(run, trained, own_file, tmp_path):
    folders = ("--runs", tmp_path / "runs", "--results", tmp_path / "results", "--quiet")
    chosen = ("--measure", "LogLoss", "--rival", "seen", "--significance", "0.1", "--splits", "2", "--json")
    alone = run("compare", own_file, *OWN, *chosen, *folders)
    assert alone.code == 0, alone.err
    with_model = run("compare", own_file, *OWN, "--model", trained, *chosen, *folders)
    assert with_model.code == 0, with_model.err
    for said in (alone, with_model):
        assert len(json.loads(said.out)["guarantees"]) == 2
    assert (tmp_path / "results" / "comparisons" / f"{own_file.stem}-linear.md").is_file()
    other = run("compare", "synthetic", "--model", trained, *chosen, *folders)
    assert other.code == 2
    assert "must be on what it was trained on" in other.err


def test_compare_refuses_what_it_does_not_know(run, tmp_path):
    folders = ("--runs", tmp_path / "runs", "--results", tmp_path)
    assert run("compare", "roiters", *folders).code == 2
    assert "Rivals are" in run("compare", "synthetic", "--rival", "mulaconf", *folders).err
    assert run("compare", "synthetic", "--measure", "L0", *folders).code == 2


def test_watch_says_whether_there_is_an_alarm_and_goes_on(run, trained, own_file, tmp_path):
    found = run("watch", trained, own_file, *OWN, "--plot", tmp_path / "watch.svg", "--quiet")
    assert found.code == 0, found.err
    assert "No alarm after" in found.out
    ET.fromstring((tmp_path / "watch.svg").read_text())
    state = ("--state", tmp_path / "watch.json", "--json", "--quiet")
    first = json.loads(run("watch", trained, own_file, *OWN, *state).out)
    second = json.loads(run("watch", trained, own_file, *OWN, *state).out)
    assert second["n_seen"] == 2 * first["n_seen"]
    assert len(second["path"]) == first["n_seen"]
    unlabelled = json.loads(run("watch", trained, own_file, *OWN, "--unlabelled", "--json", "--quiet").out)
    assert unlabelled["n_seen"] == first["n_seen"]
    wrong = run("watch", trained, own_file, *OWN, "--unlabelled", *state)
    assert wrong.code == 2
    assert "make a second watch" in wrong.err


def test_watch_raises_its_alarm_where_labels_follow_other_rules(run, trained, own_file, tmp_path):
    lines = own_file.read_text().splitlines()
    tags = [line.rpartition(",")[2] for line in lines[1:]]
    mixed = [
        lines[0],
        *(line.rpartition(",")[0] + "," + tag for line, tag in zip(lines[1:], tags[7:] + tags[:7], strict=True)),
    ]
    path = tmp_path / "later.csv"
    path.write_text("\n".join(mixed) + "\n")
    found = run("watch", trained, path, *OWN, "--quiet")
    assert found.code == 7, found.err
    assert "ALARM at text" in found.out
