"""Tasks for Label Studio, its exports back, and records for Argilla."""

import json

import pytest

from label_studio_cases import interface
from service_running import make_bundle
from surelabel.exceptions import InvalidInputError
from surelabel.predicting.label_studio import LabelConfig
from surelabel.review import (
    IncomingSettings,
    NewText,
    Offer,
    ReviewStore,
    argilla_records,
    from_label_studio,
    label_studio_tasks,
    take_in,
)
from surelabel.review.incoming import Incoming

pytestmark = pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
OPTIONS = ((("oil",), 0.6), (("gas", "oil"), 0.2))


@pytest.fixture
def store(tmp_path):
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        offer = Offer("choose", "", ("oil",), OPTIONS, size="2")
        filed = Offer("file", "", ("oil",), OPTIONS)
        store.add(
            [
                NewText("1", "one", offer, "0123456789abcdef"),
                NewText("2", "two", offer, "0123456789abcdef", is_blind=True),
                NewText("3", "three", filed, "0123456789abcdef"),
                NewText("4", "four", offer, "0123456789abcdef"),
            ]
        )
        yield store


def exported(task, choices, identity=7, **more):
    """What Label Studio exports for a task that was annotated."""
    region = {"type": "choices", "from_name": "labels", "to_name": "text", "value": {"choices": choices}}
    result = [region] if choices else []
    annotation = {"id": identity, "result": result, "completed_by": {"id": 1, "email": "ann@example.org"}, **more}
    return {"id": 1, "data": task["data"], "annotations": [annotation], "predictions": []}


def test_tasks_have_a_prediction_per_label_set_and_blind_ones_none(store):
    tasks = label_studio_tasks(store)
    assert [task["data"]["text"] for task in tasks] == ["one", "two", "four"]
    assert [prediction["score"] for prediction in tasks[0]["predictions"]] == [0.6, 0.2]
    assert tasks[0]["predictions"][1]["result"][0]["value"] == {"choices": ["gas", "oil"]}
    assert tasks[0]["predictions"][0]["model_version"] == "surelabel 0123456789ab"
    assert tasks[1]["predictions"] == []
    json.dumps(tasks)


def test_annotations_become_decisions_once(store):
    first, second, third = label_studio_tasks(store)
    export = [
        exported(first, ["oil", "gas"], 1, lead_time=3.5),
        exported(second, ["corn"], 2),
        exported(third, ["oil"], 3, was_cancelled=True),
    ]
    imported = from_label_studio(store, export)
    assert (imported.n_saved, imported.n_known, imported.problems) == (2, 0, ())
    assert (from_label_studio(store, export).n_saved, from_label_studio(store, export).n_known) == (0, 2)
    decision, blind = store.decisions()
    assert (decision.chosen, decision.seconds) == (("gas", "oil"), 3.5)
    assert decision.reviewer == "label-studio-ann@example.org"
    assert blind.is_blind
    assert [task["data"]["text"] for task in label_studio_tasks(store)] == ["four"]


def test_an_annotation_without_choices_says_that_none_fits(store):
    task = label_studio_tasks(store)[0]
    from_label_studio(store, [exported(task, [])])
    assert [(decision.action, decision.chosen) for decision in store.decisions()] == [("none", ())]


def test_what_cannot_be_imported_is_named(store):
    first, second, _ = label_studio_tasks(store)
    store.lease("bob", "choose", 1)
    changed = {**second, "data": {**second["data"], "surelabel_hash": "another"}}
    imported = from_label_studio(store, [exported(first, ["oil"], 1), exported(changed, ["oil"], 2)])
    assert imported.n_saved == 0
    assert "is with another reviewer" in imported.problems[0]
    assert "is another one in this store" in imported.problems[1]
    with pytest.raises(InvalidInputError, match="Task 1 must come from label_studio_tasks"):
        from_label_studio(store, [{"data": {"text": "x"}, "annotations": []}])


def test_interfaces_are_read():
    config = LabelConfig.parse("<View>\n<Choices  toName='t' name='c'/><Text value='$body' name='t'/></View>")
    assert config == LabelConfig("c", "t", "body")
    assert LabelConfig.parse(interface(config, ['a "quoted" <name> & more'])) == config
    assert LabelConfig.parse(None) == LabelConfig()
    assert LabelConfig.parse("no xml <") == LabelConfig()


def test_argilla_records_have_a_score_per_label(tmp_path):
    bundle = make_bundle()
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        take_in(store, bundle, [Incoming("a", "corn wheat", {})], "m", IncomingSettings(check_share=0))
        take_in(store, bundle, [Incoming("b", "corn", {})], "m", IncomingSettings(check_share=1))
        shown, blind = argilla_records(store, bundle)
    [suggestion] = shown["suggestions"]
    assert suggestion["question_name"] == "labels"
    assert suggestion["value"] == ["corn", "wheat"]
    assert suggestion["score"] == [0.93, 0.93]
    assert set(shown["metadata"]) == {"surelabel_id", "queue", "verdict", "size"}
    assert blind["suggestions"] == []
    assert blind["metadata"] == {"surelabel_id": "b", "queue": "check"}
