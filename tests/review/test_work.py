"""From texts to queues, and from decisions to files and figures, with a stand-in for the model."""

import csv
import json
import types

import pytest
from scipy import stats
from typer.testing import CliRunner

from surelabel.cli import app
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.review import (
    NewText,
    ReviewSettings,
    ReviewStore,
    add_texts,
    export_decisions,
    exported_bytes,
    figures,
)
from surelabel.review.export import training_texts
from surelabel.tables.columns import Columns


class Model:
    """Files what says "sure", leaves "odd" to be read, and guesses oil for everything."""

    info = types.SimpleNamespace(name="model", created="2026-01-01", group_column=None, provenance={})
    label_names = ("gas", "oil")
    filing = calibration = None

    def __init__(self):
        self.asked = []

    def answers(self, texts, **_):
        self.asked += texts
        return [types.SimpleNamespace(record=lambda text=text: self._record(text)) for text in texts]

    def _record(self, text):
        decision = "file" if "sure" in text else "read" if "odd" in text else "choose"
        return {"decision": decision, "reason": "because", "labels": ["oil"], "consider": ["oil", "gas"]}


@pytest.fixture
def store(tmp_path):
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        yield store


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("id,text,note\na,sure thing,=1+1\nb,odd thing,x\nc,some thing,y\n")
    return path


def test_texts_come_into_their_queues_once(store, source):
    model = Model()
    added = add_texts(model, store, source, ReviewSettings(check_share=0))
    assert (added.n_new, added.n_rows, added.skipped) == (3, 3, ())
    assert {text.id: text.queue for text in store.texts()} == {"a": "filed", "b": "read", "c": "choose"}
    assert {text.model for text in store.texts()} == {"model 2026-01-01"}
    with source.open("a") as file:
        file.write("d,new thing,z\n")
    assert add_texts(model, store, source, ReviewSettings(check_share=0)).n_new == 1
    assert model.asked == ["sure thing", "odd thing", "some thing", "new thing"]


def test_the_check_is_drawn_before_the_model_is_asked(store, source):
    class Watched(Model):
        def answers(self, texts, **options):
            assert drawn, "asked before the draw"
            return super().answers(texts, **options)

    drawn = []
    is_drawn = store.is_drawn
    store.is_drawn = lambda *given: drawn.append(is_drawn(*given)) or drawn[-1]
    add_texts(Watched(), store, source, ReviewSettings(check_share=1))
    assert {text.queue for text in store.texts()} == {"check"}
    assert all(text.answer is None for text in store.texts())


def test_the_share_of_the_check_does_not_depend_on_the_answer(store, tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("".join(f"{'sure' if k % 2 else 'odd'} text {k}\n" for k in range(2_000)))
    add_texts(Model(), store, path, ReviewSettings(check_share=0.1))
    checked = list(store.texts("check"))
    n_sure = sum("sure" in text.text for text in checked)
    assert stats.binomtest(len(checked), 2_000, 0.1).pvalue > 1e-4
    assert stats.binomtest(n_sure, len(checked), 0.5).pvalue > 1e-4


def test_filing_can_be_stopped(store, source):
    add_texts(Model(), store, source, ReviewSettings(check_share=0, files=False))
    text = next(text for text in store.texts() if text.id == "a")
    assert (text.queue, text.answer["decision"]) == ("choose", "choose")
    assert "stopped" in text.answer["reason"]


def test_rows_that_cannot_be_used(store, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "fine"}\nno json\n{"text": 5}\n')
    with pytest.raises(CorpusError, match="on-error"):
        add_texts(Model(), store, path)
    assert list(store.texts()) == []
    added = add_texts(Model(), store, path, ReviewSettings(on_error="skip"))
    assert (added.n_new, added.n_rows, [row for row, _ in added.skipped]) == (1, 3, [2, 3])


@pytest.mark.parametrize(
    "settings", [{"check_share": 1.5}, {"check_share": float("nan")}, {"on_error": "mark"}, {"significance": 5}]
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(InvalidInputError):
        ReviewSettings(**settings)


@pytest.fixture
def decided(store, source):
    """Ann has changed the text to choose; a text to read is pending, one is filed; a check is done, one pending."""
    add_texts(Model(), store, source, ReviewSettings(check_share=0, columns=Columns(text=("text",))))
    [text] = store.lease("ann", "choose")
    store.decide("1", text.number, "ann", ["gas", "new one"], seconds=4)
    sure = {"decision": "file", "labels": ["oil"], "consider": ["oil"]}
    unsure = {"decision": "choose", "labels": ["oil"], "consider": ["oil"]}
    store.add(
        [
            NewText("k1", "checked", sure, is_check=True),
            NewText("k2", "checked as well", unsure, is_check=True),
            NewText("k3", "not yet", unsure, is_check=True),
        ]
    )
    first, second, _ = store.lease("bob", "check")
    store.decide("2", first.number, "bob", ["oil"], seconds=2)
    store.decide("3", second.number, "bob", ["gas", "oil"], seconds=3)
    return store


def test_an_export_has_the_columns_of_the_file_and_what_was_decided(decided, tmp_path):
    assert export_decisions(decided, tmp_path / "out.jsonl", label_names=["gas", "oil"]) == 6
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    by_id = {row.get("id"): row for row in rows}
    assert by_id["c"] == {
        "id": "c",
        "text": "some thing",
        "note": "y",
        "final_labels": ["gas", "new one"],
        "decided_by": "ann",
        "queue": "choose",
        "changed": True,
        "unknown_labels": ["new one"],
    }
    assert (by_id["a"]["final_labels"], by_id["a"]["decided_by"], by_id["a"]["changed"]) == (["oil"], "model", False)
    assert (by_id["b"]["final_labels"], by_id["b"]["decided_by"], by_id["b"]["changed"]) == (None, None, None)
    assert (by_id["k1"]["final_labels"], by_id["k1"]["changed"]) == (["oil"], None)  # the answer was hidden
    assert by_id["k3"]["final_labels"] is None


def test_exports_of_tables_protect_formulas_and_join_labels(decided, tmp_path):
    uris = {"gas": "http://x/gas"}
    export_decisions(decided, tmp_path / "out.csv", uris=uris, separator="|")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert rows["a"]["note"] == "'=1+1"
    assert rows["c"]["final_labels"] == "gas|new one"
    assert rows["c"]["uris"] == "http://x/gas|"
    assert rows["c"]["changed"] == "true"
    assert "unknown_labels" not in rows["c"]
    assert exported_bytes(decided, "csv", uris=uris, separator="|") == (tmp_path / "out.csv").read_bytes()
    openpyxl = pytest.importorskip("openpyxl")
    export_decisions(decided, tmp_path / "out.xlsx")
    assert openpyxl.load_workbook(tmp_path / "out.xlsx").active.max_row == 7


def test_exports_that_cannot_be_read_back_are_refused(decided, tmp_path):
    with pytest.raises(InvalidInputError, match="separator"):
        export_decisions(decided, tmp_path / "out.csv", separator="e")
    with pytest.raises(InvalidInputError):
        export_decisions(decided, tmp_path / "out.parquet")
    assert list(tmp_path.glob("out*")) == []


def test_decided_texts_train_with_their_columns(decided):
    corpus = training_texts(decided.texts())
    assert sorted(corpus.texts) == ["checked", "checked as well", "some thing"]
    place = corpus.texts.index("some thing")
    assert corpus.label_sets[place] == frozenset({"gas", "new one"})
    assert corpus.column("note")[place] == "y"


def test_figures(decided):
    found = figures(decided)
    assert (found.n_decided, found.by_reviewer, found.n_pending_checks) == (3, {"ann": 1, "bob": 2}, 1)
    assert found.median_seconds == 3
    assert (found.accepted.n_hits, found.accepted.n_cases) == (0, 1)
    assert (found.agreement.n_hits, found.agreement.n_cases) == (1, 2)
    assert (found.filed_wrong.n_hits, found.filed_wrong.n_cases) == (0, 1)
    assert (found.missed.n_hits, found.missed.n_cases) == (1, 2)  # gas is not among the tags to consider
    assert 0 < found.missed.lower < 0.5 < found.missed.upper < 1
    assert json.loads(json.dumps(found.to_dict()))["missed"]["share"] == 0.5


def test_the_summary_on_the_command_line_has_shares_with_bounds(decided, tmp_path):
    done = CliRunner().invoke(app, ["reviews", "summary", str(tmp_path / "reviews.sqlite")])
    assert done.exit_code == 0
    assert "Decided: 3" in done.stdout
    assert "Agreement: 1 of 2 (1 to 99 % with 95 % assurance)" in done.stdout


def test_bounds_of_shares_are_those_of_clopper_and_pearson():
    from surelabel.review.figures import share_of

    for hits, cases in [(0, 10), (3, 10), (10, 10), (0, 0)]:
        found = share_of(hits, cases)
        if cases:
            expected = stats.binomtest(hits, cases).proportion_ci(0.95, "exact")
            assert (found.lower, found.upper) == pytest.approx((expected.low, expected.high))
        else:
            assert (found.share, found.lower, found.upper) == (None, 0, 1)
