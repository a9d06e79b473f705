"""A catalogue of very many labels from a file to answers, with nothing of the size of all texts and all labels."""

import json
import re

import numpy as np
import pytest
import scipy.sparse

from many_label_texts import generate_many_labels
from service_running import serving
from surelabel import SparseProbabilities, load_bundle

N_TEXTS, N_LABELS = 2_100, 3_000
PARTS = {"train": 1_800, "calibration": 150, "test": 80, "more": 40, "new": 30}
COLUMNS = ("--labels", "subjects", "--split-column", "part")
# Small, so that learning takes a second.
QUICK = [f"--setting={each}" for each in ("shortlist=20", "max_negatives=30", "pair_weight=0", "max_features=4000")]


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    """Return files of one catalogue: what to learn from, texts to add to the calibration, and new texts."""
    made = generate_many_labels(N_TEXTS, N_LABELS, seed=1)
    folder = tmp_path_factory.mktemp("catalogue")
    parts = np.repeat(list(PARTS), list(PARTS.values()))
    known: set[str] = set()
    files = {"catalogue": [], "more": [], "new": []}
    for number, (text, part) in enumerate(zip(made.texts, parts.tolist(), strict=True)):
        row = made.labels.indices[made.labels.indptr[number] : made.labels.indptr[number + 1]]
        subjects = [made.label_names[k] for k in row]
        if part in ("more", "new"):  # a model knows the labels of what it was trained with
            subjects = [name for name in subjects if name in known] or ["subject-1"]
            files[part].append({"id": f"{part}-{number}", "text": text, "subjects": subjects})
        else:
            known |= set(subjects)
            files["catalogue"].append({"id": str(number), "text": text, "subjects": subjects, "part": part})
    for name, records in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert len(known) > 1_000
    return folder, len(known)


@pytest.fixture
def nothing_dense(monkeypatch):
    """Let every attempt fail to make a dense array of several texts and all labels."""
    for kind in (SparseProbabilities, scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array):
        original = kind.toarray

        def toarray(self, *arguments, original=original, **options):
            assert self.shape[0] == 1 or self.shape[1] <= 1_000, f"a dense array of shape {self.shape} was asked for"
            return original(self, *arguments, **options)

        monkeypatch.setattr(kind, "toarray", toarray)


@pytest.mark.usefixtures("nothing_dense")
def test_the_whole_journey(run, catalogue, tmp_path):
    folder, n_labels = catalogue
    model, source = tmp_path / "model", folder / "catalogue.jsonl"
    made = run("train", source, *COLUMNS, *QUICK, "--out", model, "--no-compare", "--quiet")
    assert made.code == 0, made.err
    bundle = load_bundle(model)
    assert (len(bundle.label_names), bundle.info.listed) == (n_labels, 20)
    assert "the 20 highest" in (model / "README.md").read_text()
    assert 'id="labels"' in bundle.report.decode()
    evaluation = bundle.evaluation["LogLoss"]
    assert (evaluation.n_texts, evaluation.n_labels) == (PARTS["test"], n_labels)

    new = folder / "new.jsonl"
    predicted = run("predict", model, new, "--significance", "0.1", "--json", "--no-describe")
    assert predicted.code == 0, predicted.err
    answers = [json.loads(line) for line in predicted.out.splitlines()]
    assert len(answers) == PARTS["new"]
    for answer in answers:
        assert len(answer["open"]) <= 20
        assert answer["size_bounds"][0] > 0 or answer["certain"] == []
        if answer["n_more_open"]:
            assert answer["n_more_open"] >= n_labels - 20 - 20
            assert answer["size_bounds"][1] > answer["n_more_open"]
    assert any(answer["n_more_open"] for answer in answers)
    for suffix in ("csv", "parquet"):
        found = run("predict", model, new, "--out", tmp_path / f"answers.{suffix}", "--quiet")
        assert found.code == 0, found.err
    table = run("predict", model, new, "--format", "blocks", "--no-describe").out
    assert re.search(r"and\s+1,\d{3}\s+more", " ".join(table.split())) or "more" in table

    measured = run("evaluate", model, source, *COLUMNS, "--json")
    assert measured.code == 0, measured.err
    again = json.loads(measured.out)
    assert [point["error"] for point in again["curve"]] == [point.error for point in evaluation.curve]

    added = run("calibrate", model, folder / "more.jsonl", "--labels", "subjects", "--add", "--out", tmp_path / "added")
    assert added.code == 0, added.err
    assert f"Calibrated with {PARTS['calibration'] + PARTS['more']} texts" in added.out
    watched = run("watch", tmp_path / "added", folder / "new.jsonl", "--labels", "subjects", "--json")
    assert watched.code == 0, watched.err
    assert run("data", "stats", source, *COLUMNS).code == 0

    with serving(load_bundle(tmp_path / "added")) as service, service.client() as client:
        text = json.loads(new.read_text().splitlines()[0])["text"]
        response = client.post("/v1/predict", json={"texts": [text, "unlike anything"], "significance": "0.1"})
        assert response.status_code == 200, response.text
        for answer in response.json()["answers"]:
            assert 0 <= answer["n_more_open"] <= n_labels  # all of them for a text without a known word
        asked = client.post("/v1/p-value", json={"text": text, "labels": ["subject-1"]})
        assert 0 < asked.json()["p_value"] <= 1


def test_what_needs_all_probabilities_says_so(run, catalogue, tmp_path):
    folder, _ = catalogue
    for options in (["--measure", "mahalanobis"], ["--measure", "penalised"], ["--recalibrate"]):
        found = run("train", folder / "catalogue.jsonl", *COLUMNS, "--out", tmp_path / "model", *options)
        assert found.code == 2
        assert "--listed all" in found.err or "validation part" in found.err
    found = run("train", folder / "catalogue.jsonl", *COLUMNS, "--out", tmp_path / "model", "--listed", "some")
    assert found.code == 2
    assert "--listed" in found.err
