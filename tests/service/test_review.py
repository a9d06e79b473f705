"""A review over HTTP: who sees what, who decides what, and what is refused."""

import json

import pytest

from service.conftest import asking, refused
from service.fakes import FakeBundle, FakeLearner
from surelabel.corpora.vocabulary import Concept, Vocabulary
from surelabel.exceptions import InvalidInputError
from surelabel.review import NewText, ReviewStore
from surelabel.service import create_app

pytestmark = pytest.mark.anyio
TEXTS = {"1": "maybe oil", "2": "unknown", "3": "corn and wheat", "4": "maybe trade", "5": "maybe corn"}
BLIND = "4"


@pytest.fixture
def store(tmp_path, bundle):
    answers = bundle.answers(list(TEXTS.values()), probabilities=list(TEXTS.values()), significance="0.05")
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        store.add(
            NewText(name, text, answer.record(), is_check=name == BLIND)
            for (name, text), answer in zip(TEXTS.items(), answers, strict=True)
        )
        yield store


@pytest.fixture
async def review(store, bundle):
    async with asking(create_app(bundle, store=store)) as client:
        yield client


async def post(review, path, status=200, **body):
    response = await review.post(f"/v1/review/{path}", json=body)
    assert response.status_code == status, response.text
    return response.json()


async def lease(review, queue, reviewer="ann"):
    return (await post(review, "lease", reviewer=reviewer, queue=queue))["texts"]


async def test_a_reviewer_gets_texts_with_their_cards(review):
    texts = await lease(review, "choose")
    assert sorted(text["id"] for text in texts) == ["1", "5"]
    assert all(set(text) == {"number", "id", "text", "queue", "card"} for text in texts)
    assert 'data-label="oil"' in next(text["card"] for text in texts if text["id"] == "1")
    assert await lease(review, "choose", "bob") == []


async def test_a_decision_is_saved_once_however_often_it_is_sent(review, store):
    [text] = await lease(review, "read")
    body = {"key": "k", "number": text["number"], "reviewer": "ann", "labels": ["wheat", "oil"], "seconds": 2.5}
    first, second = [await post(review, "decisions", **body) for _ in range(2)]
    assert first["labels"] == second["labels"] == ["oil", "wheat"]
    assert first["queues"]["read"] == {"waiting": 0, "leased": 0, "decided": 1}
    assert [(decision.labels, decision.seconds) for decision in store.decisions()] == [(("oil", "wheat"), 2.5)]
    refused(await review.post("/v1/review/decisions", json=body | {"labels": []}), 409)


async def test_a_blind_text_comes_without_a_suggestion_and_accepting_copies_none(review, store):
    [text] = await lease(review, "check")
    assert "trade" not in text["card"]
    assert "data-label" not in text["card"]
    body = {"key": "k", "number": text["number"], "reviewer": "ann"}
    refused(await review.post("/v1/review/decisions", json=body), 422, "labels")
    refused(await review.post("/v1/review/decisions", json=body | {"action": "accept", "labels": []}), 422, "action")
    saved = await post(review, "decisions", **body, labels=[])
    assert saved["labels"] == []
    assert "answer" not in json.dumps(saved)
    undone = await post(review, "undo", reviewer="ann")
    assert "trade" not in undone["text"]["card"]
    assert store.decisions() == []


async def test_only_what_one_has_leased_can_be_decided(review, store):
    [text] = await lease(review, "read")
    body = {"key": "k", "number": text["number"], "reviewer": "bob", "labels": []}
    refused(await review.post("/v1/review/decisions", json=body), 409)
    number = next(text.number for text in store.texts() if text.id == "3")
    refused(await review.post("/v1/review/decisions", json=body | {"number": number, "reviewer": "ann"}), 409)
    assert store.decisions() == []


async def test_skip_and_undo(review, store):
    [text] = await lease(review, "read")
    await post(review, "decisions", key="a", number=text["number"], reviewer="ann", labels=None)
    assert store.decisions() == []
    undone = await post(review, "undo", reviewer="ann", key="a")
    assert undone["text"]["number"] == text["number"]
    assert (await post(review, "undo", reviewer="bob"))["text"] is None


async def test_unknown_labels_are_saved_and_named_and_break_nothing(review, store):
    [text] = await lease(review, "read")
    body = {"key": "k", "number": text["number"], "reviewer": "ann", "labels": ["oil", "new <tag>"]}
    assert (await post(review, "decisions", **body))["unknown_labels"] == ["new <tag>"]
    assert (await post(review, "undo", reviewer="ann"))["text"]["id"] == "2"
    store.add([NewText("9", "old", {"decision": "file", "labels": ["gone"], "reason": "Certified."})])
    assert 'data-label="gone"' in str(await lease(review, "filed"))
    assert (await review.get("/v1/review/summary")).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("lease", {"queue": "choose"}, "reviewer"),
        ("lease", {"reviewer": "ann", "queue": "other"}, "queue"),
        ("lease", {"reviewer": "ann", "queue": "read", "n": 10**30}, "n"),
        ("lease", {"reviewer": "a\nb", "queue": "read"}, "reviewer"),
        ("lease", {"reviewer": "a" * 201, "queue": "read"}, "reviewer"),
        ("decisions", {"key": "k", "number": 2**63, "reviewer": "ann", "labels": []}, "number"),
        ("decisions", {"key": "k", "number": 0, "reviewer": "ann", "labels": []}, "number"),
        ("decisions", {"key": "k", "number": 1, "reviewer": "ann", "labels": "oil"}, "labels"),
        ("decisions", {"key": "k", "number": 1, "reviewer": "ann", "labels": [3]}, "labels[0]"),
        ("decisions", {"key": "k", "number": 1, "reviewer": "ann", "labels": [], "seconds": -1}, "seconds"),
        ("undo", {"reviewer": ""}, "reviewer"),
    ],
)
async def test_bodies_that_are_refused(review, path, body, field):
    refused(await review.post(f"/v1/review/{path}", json=body), 422, field)


async def test_numbers_that_no_text_has(review):
    body = {"key": "k", "number": 2**62, "reviewer": "ann", "labels": []}
    assert 400 <= (await review.post("/v1/review/decisions", json=body)).status_code < 500


async def test_labels_come_with_their_alternative_names(review, bundle, store):
    labels = (await review.get("/v1/review/labels")).json()["labels"]
    assert labels[0] == {"name": "corn", "alternatives": []}
    other = FakeBundle()
    other.classifier.alternatives = {"maize": "corn", "http://concept/of/no/label": "gone"}
    async with asking(create_app(other, store=store)) as client:
        labels = (await client.get("/v1/review/labels")).json()["labels"]
    assert labels[0] == {"name": "corn", "alternatives": ["maize"]}


async def test_labels_of_a_vocabulary_come_with_its_names_and_exports_with_uris(store):
    other = FakeBundle()
    concepts = [Concept(f"http://x/{name}", name, (f"other {name}",)) for name in other.label_names]
    concepts[0] = concepts[0]._replace(broader=(concepts[1].uri,))
    other.vocabulary = Vocabulary(tuple(concepts))
    other.uris = other.vocabulary.uris
    async with asking(create_app(other, store=store)) as client:
        labels = (await client.get("/v1/review/labels")).json()["labels"]
        assert labels[0] == {"name": "corn", "alternatives": ["other corn"], "broader": ["grain"]}
        [text] = await lease(client, "read")
        await post(client, "decisions", key="k", number=text["number"], reviewer="ann", labels=["oil"])
        assert "http://x/oil" in (await client.get("/v1/review/export", params={"format": "jsonl"})).text


@pytest.mark.parametrize("kind", ["csv", "jsonl", "xlsx"])
async def test_decisions_come_out_as_files(review, kind):
    [text] = await lease(review, "read")
    await post(review, "decisions", key="a", number=text["number"], reviewer="ann", labels=["oil"])
    response = await review.get("/v1/review/export", params={"format": kind})
    assert response.status_code == 200
    assert f"decisions.{kind}" in response.headers["content-disposition"]
    assert kind == "xlsx" or "oil" in response.text


async def test_the_page_and_its_state(review):
    page = await review.get("/review")
    assert page.status_code == 200
    assert "maybe oil" not in page.text
    state = (await review.get("/v1/review")).json()
    assert state["queues"]["choose"]["waiting"] == 2
    assert "Review" in (await review.get("/")).text


async def test_learning_is_started_followed_switched_and_undone(bundle, store):
    learner = FakeLearner()
    app = create_app(bundle, store=store, learner=learner)
    async with asking(app) as client:
        state = (await client.get("/v1/review/learning")).json()
        assert (state["state"], state["needed"]) == ("absent", {"filing": 336, "lists": 99})
        for action in ("learn", "calibrate"):
            state = await post(client, "learning", action=action)
            assert state["is_running"]
        assert not app.state.is_replaced
        for action in ("switch", "undo"):
            await post(client, "learning", action=action)
            assert app.state.is_replaced
        assert learner.asked == ["learn", "calibrate", "switch", "undo"]
        refused(await client.post("/v1/review/learning", json={"action": "forget"}), 422, "action")
        learner.switch = lambda: (_ for _ in ()).throw(InvalidInputError("The next generation is not ready."))
        refused(await client.post("/v1/review/learning", json={"action": "switch"}), 422)


async def test_a_review_that_cannot_learn_has_no_learning(review):
    assert (await review.get("/v1/review/learning")).status_code == 404
    assert "learning" not in (await review.get("/review")).text
