"""Texts on their way into the queues, and what reviews lead to: a new calibration, training texts."""

import numpy as np
import pytest

from service_running import grouped_bundle, make_bundle
from surelabel import corpora
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.models import TrainingSettings, train_bundle
from surelabel.review import IncomingSettings, NewText, Offer, ReviewStore, take_in, update_calibration, with_reviews
from surelabel.review.incoming import Incoming, reroute
from surelabel.review.learning import texts_needed
from surelabel.review.queues import offer_of
from surelabel.service.reviewing import Reviewing
from surelabel.tables.texts import InputColumns

pytestmark = pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")


@pytest.fixture
def store(tmp_path):
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        yield store


@pytest.fixture(scope="module")
def bundle():
    return make_bundle()


def test_the_texts_of_a_file_come_with_all_their_columns(store, bundle, tmp_path):
    file = tmp_path / "texts.csv"
    file.write_text("number;title;body\n7;a;corn\n8;b;wheat maybe\n9;c;nothing\n", encoding="utf-8")
    settings = IncomingSettings(columns=InputColumns(("title", "body"), "number"), check_share=0)
    assert take_in(store, bundle, file, "m", settings) == 3
    assert take_in(store, bundle, file, "m", settings) == 0
    texts = list(store.texts())
    assert [text.id for text in texts] == ["7", "8", "9"]
    assert texts[0].text == "a\ncorn"
    assert texts[0].columns == {"number": "7", "title": "a", "body": "corn"}
    assert texts[0].offer.labels == ("corn",)
    assert texts[2].queue == "read"  # nothing is known there


def test_rows_without_ids_are_named_by_their_numbers(store, bundle, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("corn\nwheat\n", encoding="utf-8")
    take_in(store, bundle, file, "m", IncomingSettings(check_share=1))
    assert [(text.id, text.queue, text.is_blind) for text in store.texts()] == [
        ("1", "check", True),
        ("2", "check", True),
    ]


def test_the_draw_does_not_look_at_answers(store, bundle):
    """Of easy and hard texts alike the same share is drawn."""
    rows = [Incoming(str(n), "corn" if n % 2 else "nothing", {}) for n in range(3_000)]
    take_in(store, bundle, rows, "m", IncomingSettings(check_share=0.2))
    drawn = np.array([text.is_blind for text in store.texts()])
    easy = np.arange(3_000) % 2 == 1
    assert abs(drawn[easy].mean() - 0.2) < 0.04
    assert abs(drawn[~easy].mean() - 0.2) < 0.04


def test_a_file_that_cannot_be_read_is_named(store, bundle, tmp_path):
    file = tmp_path / "texts.csv"
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="must have a column 'text'"):
        take_in(store, bundle, file, "m")
    with pytest.raises(InvalidInputError, match="'check_share' must be from 0 to 1"):
        IncomingSettings(check_share=2)


def test_rerouting_asks_the_new_model(store, bundle):
    take_in(
        store, bundle, [Incoming("1", "corn", {}), Incoming("2", "wheat", {})], "m", IncomingSettings(check_share=0)
    )
    assert reroute(store, bundle, "m", "0.05") == 0
    assert reroute(store, bundle, "m2", "0.5") == 2
    assert {text.model for text in store.texts()} == {"m2"}
    assert {text.offer.significance for text in store.texts()} == {"0.5"}


def checked(store, bundle, n, rng):
    """Fill the blind check with texts whose true labels are their words, but for one in twenty."""
    names = bundle.label_names
    rows = [Incoming(str(k), " ".join(names[i] for i in rng.choice(12, 2, replace=False)), {}) for k in range(n)]
    take_in(store, bundle, rows, "m", IncomingSettings(check_share=1))
    while texts := store.lease("ann", "check", 100):
        for text in texts:
            labels = text.text.split() if rng.random() > 0.05 else ["trade"]
            store.decide(f"key-{text.number}", text.number, "ann", "edit", labels)


def test_a_new_calibration_from_the_blind_check(store, bundle):
    rng = np.random.default_rng(0)
    checked(store, bundle, 250, rng)
    assert texts_needed("0.05") == 200
    update = update_calibration(store, bundle, significance="0.05")
    assert update.bundle is not bundle
    assert update.bundle.predictor.calibration_.n_texts == update.n_texts == 250
    assert update.bundle.info.calibrated_on["corpus"] == "blind check"
    assert bundle.predictor.calibration_.n_texts == 399  # the old one is as it was
    assert update.before.n_texts == update.after.n_texts == 250
    # One in twenty texts has labels that nothing in the text says: both miss those, the new one no more than 5 %.
    assert 0.01 < update.after.error < 0.09


def test_too_few_checked_texts_are_refused(store, bundle):
    checked(store, bundle, 20, np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match=r"needs 200 texts of the blind check\. There are 20"):
        update_calibration(store, bundle)


def add_decided(store, name, text, labels, *, blind=False):
    store.add([NewText(name, text, Offer("choose", "", ("oil",)), "m", blind)])
    number = next(item.number for item in store.texts() if item.id == name)
    store.decide(name, number, "ann", "edit" if labels else "none", labels or None)


def test_corrections_are_training_texts_and_the_blind_check_is_not(store):
    corpus = corpora.load("synthetic", n_texts=300, n_labels=5, seed=0)
    held_out = corpus.part("calibration").texts[0]
    add_decided(store, "a", "Crude, a barrel.", ["oil"])
    add_decided(store, "b", "A blind text.", ["oil"], blind=True)
    add_decided(store, "c", "No label fits this.", [])
    add_decided(store, "d", held_out.upper(), ["oil"])
    add_decided(store, "e", "Football and a barrel.", ["football", "oil"])
    grown = with_reviews(corpus, store)
    assert len(grown) == len(corpus) + 2
    for part in ("validation", "calibration", "test"):
        if part in corpus.parts:
            assert grown.part(part).texts == corpus.part(part).texts
    assert grown.part("train").texts[-2:] == ("Crude, a barrel.", "Football and a barrel.")
    assert grown.part("train").label_sets[-1] == {"football", "oil"}
    assert "2 reviewed texts" in grown.provenance.source
    bundle = train_bundle(grown, TrainingSettings(compared={}))
    assert bundle.seen.in_training(["crude, a BARREL."]).all()


def test_a_store_without_corrections_is_refused(store):
    with pytest.raises(InvalidInputError, match="must have decided texts"):
        with_reviews(corpora.load("synthetic", n_texts=300, n_labels=5), store)


def test_a_model_by_groups_takes_them_from_their_column(store):
    bundle = grouped_bundle()
    rng = np.random.default_rng(3)
    rows = [
        Incoming(str(n), " ".join(rng.choice(bundle.label_names[:12], 2, replace=False)), {"channel": channel})
        for n, channel in enumerate(["mail", "chat"] * 60)
    ]
    reviewing = Reviewing(store, bundle, settings=IncomingSettings(significance="0.1", check_share=1))
    assert reviewing.take_in(rows) == 120
    texts = [row.text for row in rows]
    groups = [row.columns["channel"] for row in rows]
    expected = bundle.answers(texts, significance="0.1", top=9, groups=groups)
    assert [text.offer for text in store.texts()] == [offer_of(answer) for answer in expected]
    for n in range(120):
        text = store.lease("ann", "check", 1)[0]
        store.decide(f"key {n}", text.number, "ann", "edit", text.text.split())
    assert reviewing.state()["blind"]["n_texts"] == 120
    update = update_calibration(store, bundle, significance="0.1")
    assert update.bundle.predictor.calibration_.categories.groups == ("chat", "mail")
    assert update.before.n_texts == update.after.n_texts == 120
    for columns, words in (({}, "Text 'x' must have a value in the column 'channel'"), ({"channel": "fax"}, "'fax'")):
        with pytest.raises((CorpusError, InvalidInputError), match=words):
            reviewing.take_in([Incoming("x", "corn", columns)])
