"""Decisions in a database: leases, undo, idempotence, concurrency."""

import subprocess
import sys
import textwrap
import threading
import time
import uuid

import pytest

from surelabel.exceptions import ArtifactError, InvalidInputError, ReviewConflictError
from surelabel.review import NewText, Offer, QueueCounts, ReviewStore

OPTIONS = ((("oil",), 0.6), (("gas", "oil"), 0.2))


def text_of(name, verdict="choose", *, blind=False, columns=None):
    offer = Offer(verdict, "because", ("oil",), OPTIONS, ("oil", "gas"), significance="0.05")
    return NewText(name, f"text {name}", offer, "model-1", blind, columns or {"id": name})


def fill(store, n=3, verdict="choose"):
    assert store.add(text_of(str(number), verdict) for number in range(1, n + 1)) == n


def test_a_text_is_added_once(store):
    fill(store)
    assert store.add([text_of("1"), text_of("4"), text_of("4")]) == 1
    assert [text.id for text in store.texts()] == ["1", "2", "3", "4"]
    assert store.unknown([("1", "text 1"), ("1", "changed"), ("9", "text 9")]) == [1, 2]


def test_queues_follow_verdicts_and_the_draw(store):
    store.add([text_of("1"), text_of("2", "read"), text_of("3", "file"), text_of("4", "file", blind=True)])
    assert store.counts() == {
        "choose": QueueCounts(1, 0, 0),
        "read": QueueCounts(1, 0, 0),
        "check": QueueCounts(1, 0, 0),
        "filed": QueueCounts(1, 0, 0),
    }
    assert [text.final_labels for text in store.texts()] == [None, None, ("oil",), None]


def test_what_is_saved_with_a_decision(store, clock):
    fill(store, 1)
    [text] = store.lease("ann", "choose")
    saved = store.decide("k1", text.number, "ann", "pick", ["oil", "gas"], seconds=2.5)
    [decision] = store.decisions()
    assert decision == saved
    assert (decision.text_id, decision.text_hash) == ("1", text.hash)
    assert decision.offered == text.offer
    assert decision.chosen == ("gas", "oil")
    assert (decision.queue, decision.reviewer, decision.at) == ("choose", "ann", clock.now)
    assert (decision.seconds, decision.model, decision.is_blind) == (2.5, "model-1", False)
    assert store.text(text.number).decision == decision
    assert store.text(text.number).final_labels == ("gas", "oil")


def test_accepting_takes_the_best_guess_and_none_takes_nothing(store):
    fill(store, 2)
    first, second = store.lease("ann", "choose")
    assert store.decide("a", first.number, "ann", "accept").chosen == ("oil",)
    assert store.decide("b", second.number, "ann", "none").chosen == ()
    assert [decision.is_changed for decision in store.decisions()] == [False, True]


def test_a_leased_text_goes_to_nobody_else_until_the_lease_ends(store, clock):
    fill(store, 3)
    assert [text.id for text in store.lease("ann", "choose", 2)] == ["1", "2"]
    assert [text.id for text in store.lease("bob", "choose", 2)] == ["3"]
    assert store.lease("eve", "choose") == []
    assert store.counts()["choose"] == QueueCounts(3, 3, 0)
    clock.now += 30
    assert store.renew("ann") == 2
    clock.now += 31
    assert [text.id for text in store.lease("eve", "choose")] == ["3"]
    assert [text.id for text in store.lease("ann", "choose", 2)] == ["1", "2"]
    clock.now += 61
    assert store.renew("ann") == 0
    assert [text.id for text in store.lease("bob", "choose")] == ["1", "2", "3"]


def test_a_late_decision_counts_unless_another_reviewer_has_the_text(store, clock):
    fill(store, 2)
    first, second = store.lease("ann", "choose")
    clock.now += 61
    store.decide("late", first.number, "ann", "accept")
    store.lease("bob", "choose")
    with pytest.raises(ReviewConflictError, match="with another reviewer"):
        store.decide("too late", second.number, "ann", "accept")
    store.decide("bob's", second.number, "bob", "accept")
    with pytest.raises(ReviewConflictError, match="decided already"):
        store.decide("after", second.number, "ann", "accept")
    assert [decision.reviewer for decision in store.decisions()] == ["ann", "bob"]


def test_a_decision_that_is_sent_again_is_saved_once(store):
    fill(store, 2)
    first, second = store.lease("ann", "choose")
    assert store.decide("key", first.number, "ann", "accept") == store.decide("key", first.number, "ann", "accept")
    assert len(store.history()) == 1
    with pytest.raises(ReviewConflictError, match="used for another"):
        store.decide("key", first.number, "ann", "pick", ["gas"])
    with pytest.raises(ReviewConflictError, match="used for another"):
        store.decide("key", second.number, "ann", "accept")


def test_a_skipped_text_comes_back_last(store):
    fill(store, 3)
    first = store.lease("ann", "choose", 1)[0]
    store.decide("skip", first.number, "ann", "skip")
    assert [text.id for text in store.lease("bob", "choose")] == ["2", "3", "1"]
    assert store.decisions() == []
    assert [decision.action for decision in store.history()] == ["skip"]


def test_undo_takes_back_one_decision_after_the_other(store):
    fill(store, 3)
    texts = store.lease("ann", "choose")
    store.decide("1", texts[0].number, "ann", "accept")
    store.decide("2", texts[1].number, "ann", "skip")
    store.decide("3", texts[2].number, "ann", "none")
    assert store.undo("u1", "ann").id == "3"
    assert store.undo("u1", "ann").id == "3"  # sent again
    assert store.undo("u2", "ann").id == "2"
    assert store.lease("bob", "choose") == []  # they are with ann again
    assert store.undo("u3", "ann").id == "1"
    assert store.undo("u4", "ann") is None
    assert store.decisions() == []
    assert [text.id for text in store.lease("ann", "choose")] == ["1", "2", "3"]
    assert [decision.action for decision in store.history(texts[0].number)] == ["accept", "undo"]
    store.decide("again", texts[0].number, "ann", "pick", ["gas"])
    assert [decision.chosen for decision in store.decisions()] == [("gas",)]


def test_undo_is_of_ones_own_decisions(store):
    fill(store, 1)
    [text] = store.lease("ann", "choose")
    store.decide("1", text.number, "ann", "accept")
    assert store.undo("u", "bob") is None
    assert len(store.decisions()) == 1


def test_filed_texts_can_be_corrected(store):
    fill(store, 2, "file")
    first = store.lease("ann", "filed", 1)[0]
    store.decide("1", first.number, "ann", "edit", ["gas"])
    assert [text.final_labels for text in store.texts()] == [("gas",), ("oil",)]
    assert store.counts()["filed"] == QueueCounts(1, 0, 1)


def test_rerouting_changes_what_waits_and_nothing_else(store):
    store.add([text_of("1"), text_of("2"), text_of("3"), text_of("4", blind=True)])
    decided = store.lease("ann", "choose", 1)[0]
    store.decide("1", decided.number, "ann", "accept")
    held = store.lease("bob", "choose", 1)[0]
    new = Offer("file", "certified", ("gas",))
    assert store.reroute((number, new, "model-2") for number in range(1, 5)) == 2
    assert [text.queue for text in store.texts()] == ["choose", "choose", "filed", "check"]
    assert store.text(held.number).model == "model-1"
    assert store.text(4).offer == new


def test_texts_that_databases_dislike_are_kept(store):
    nasty = "nul \0 and \N{PILE OF POO} 'quoted' \\u0000 ; DROP TABLE x"
    store.add([NewText("\N{SNOWMAN}", nasty, Offer("read", "", ()), "m", columns={"a": nasty, "b": None, "c": 1.5})])
    [text] = store.lease("ann", "read")
    assert text.text == nasty.replace("\0", "\N{REPLACEMENT CHARACTER}")
    assert text.columns["b"] is None
    assert text.columns["c"] == 1.5
    assert store.unknown([("\N{SNOWMAN}", nasty)]) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda store: store.lease("ann", "later"), "The 'queue' must be one of choose, read, check, filed"),
        (lambda store: store.lease("", "choose"), "reviewer's name must have 1 to 200"),
        (lambda store: store.decide("k", 1, "ann", "shrug"), "The 'action' must be one of accept"),
        (lambda store: store.decide("k", 1, "ann", "none", ["oil"]), "takes no labels"),
        (lambda store: store.decide("k", 99, "ann", "accept"), "Got 99 instead"),
        (lambda store: store.text(99), "Got 99 instead"),
    ],
)
def test_wrong_use_is_named(store, call, message):
    fill(store, 1)
    with pytest.raises(InvalidInputError, match=message):
        call(store)


def test_places_that_are_no_stores(tmp_path):
    with pytest.raises(InvalidInputError, match="SQLite file or a postgresql"):
        ReviewStore("mysql://root@localhost/reviews")
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be taken for one" * 20)
    with pytest.raises(ArtifactError, match=r"notes\.txt.* cannot be opened: file is not a database"):
        ReviewStore(tmp_path / "notes.txt")
    with pytest.raises(ArtifactError, match=r"surelabel:\*\*\*@127\.0\.0\.1") as error:
        ReviewStore("postgresql://surelabel:secret@127.0.0.1:1/none")
    assert "secret" not in str(error.value)


def test_a_store_of_a_newer_version_is_refused(place):
    with ReviewStore(place) as store:
        store.set_note("version", "99")
    with pytest.raises(ArtifactError, match="has version 99"):
        ReviewStore(place)


def test_the_draw_is_the_same_after_a_restart(place):
    names = [str(number) for number in range(2_000)]
    with ReviewStore(place) as first:
        drawn = [first.is_drawn(name, name, 0.1) for name in names]
        assert not any(first.is_drawn(name, name, 0.0) for name in names)
        assert all(first.is_drawn(name, name, 1.0) for name in names)
    with ReviewStore(place) as second:
        assert drawn == [second.is_drawn(name, name, 0.1) for name in names]
    assert 140 < sum(drawn) < 260


def work(place, reviewer, problems, seen):
    """Decide texts until none is left; now and then send a decision twice, skip, or undo."""
    try:
        turn = 0
        with ReviewStore(place, lease_seconds=120) as store:
            while texts := store.lease(reviewer, "choose", 5):
                for text in texts:
                    turn += 1
                    seen.append((reviewer, text.number))
                    key = str(uuid.uuid4())
                    action = "skip" if turn % 17 == 0 else "pick"
                    labels = None if action == "skip" else ["oil", reviewer]
                    first = store.decide(key, text.number, reviewer, action, labels)
                    if turn % 5 == 0:
                        assert store.decide(key, text.number, reviewer, action, labels) == first
                    if turn % 23 == 0 and action == "pick":
                        assert store.undo(str(uuid.uuid4()), reviewer).number == text.number
                        store.decide(str(uuid.uuid4()), text.number, reviewer, "pick", ["gas", reviewer])
    except Exception as error:
        problems.append(error)


def work_together(place, n_reviewers, n_texts):
    store = ReviewStore(place)
    fill(store, n_texts)
    problems, seen = [], []
    threads = [
        threading.Thread(target=work, args=(place, f"reviewer-{number}", problems, seen))
        for number in range(n_reviewers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    decisions = store.decisions()
    assert sorted(decision.number for decision in decisions) == list(range(1, n_texts + 1))
    assert all(decision.reviewer in decision.chosen for decision in decisions)
    assert store.counts()["choose"] == QueueCounts(0, 0, n_texts)
    # What every reviewer did stands in the history once: decisions, skips and undone ones.
    history = store.history()
    n_undone = sum(decision.action == "undo" for decision in history)
    n_skipped = sum(decision.action == "skip" for decision in history)
    assert len(history) == n_texts + n_skipped + 2 * n_undone
    assert len({reviewer for reviewer, _ in seen}) > 1
    store.close()


def test_four_reviewers_at_once_in_sqlite(tmp_path):
    work_together(tmp_path / "reviews.sqlite", 4, 200)


def test_eight_reviewers_at_once_in_postgresql(postgresql_schema):
    work_together(postgresql_schema, 8, 400)


@pytest.mark.slow
def test_two_thousand_decisions_of_four_reviewers_in_sqlite(tmp_path):
    work_together(tmp_path / "reviews.sqlite", 4, 2_000)


@pytest.mark.slow
def test_two_thousand_decisions_of_eight_reviewers_in_postgresql(postgresql_schema):
    work_together(postgresql_schema, 8, 2_000)


def test_a_killed_process_loses_no_decision_that_it_reported(place):
    """A process prints each decision after it is saved, and is killed in the middle; nothing printed is missing."""
    store = ReviewStore(place)
    fill(store, 1_500)
    code = textwrap.dedent(f"""
        from surelabel.review import ReviewStore
        store = ReviewStore({str(place)!r})
        while texts := store.lease("ann", "choose", 5):
            for text in texts:
                store.decide(f"key-{{text.number}}", text.number, "ann", "accept")
                print(text.number, flush=True)
    """)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        reported = [int(process.stdout.readline())]
        time.sleep(0.4)
        process.kill()
        reported += [int(line) for line in process.stdout if line.endswith("\n")]
    assert 1 < len(reported) < 1_500
    saved = {decision.number for decision in store.decisions()}
    assert set(reported) <= saved
    assert len(saved) - len(reported) <= 1
    # Nothing is stuck: the same reviewer, or another after the lease, works on.
    with ReviewStore(place, clock=lambda: time.time() + 1_000) as later:
        text = later.lease("bob", "choose", 1)[0]
        later.decide("bob", text.number, "bob", "accept")
    store.close()
