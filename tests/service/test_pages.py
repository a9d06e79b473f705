"""Cards and pages as HTML, without a browser."""

import html.parser

import pytest

from service.conftest import asking, refused
from service.fakes import HOSTILE, FakeBundle
from surelabel.service import create_app
from surelabel.service.pages import render_card

pytestmark = pytest.mark.anyio


class Card(html.parser.HTMLParser):
    """What a card shows: its tags, the ticked ones, visible and folded words, and any element that must not be."""

    def __init__(self, markup):
        super().__init__()
        self.tags, self.ticked, self.elements = [], [], []
        self.shown = self.folded = ""
        self._depth, self._in_summary = 0, False
        self.feed(markup)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.elements.append(tag)
        self._depth += tag == "details"
        self._in_summary |= tag == "summary"
        if "data-label" in values:
            self.tags.append(values["data-label"])
            if values["aria-pressed"] == "true":
                self.ticked.append(values["data-label"])

    def handle_endtag(self, tag):
        self._depth -= tag == "details"
        self._in_summary &= tag != "summary"

    def handle_data(self, words):
        if self._depth and not self._in_summary:
            self.folded += words
        else:
            self.shown += words


def record(text, **asked):
    [answer] = FakeBundle().answers([text], probabilities=[text], **asked)
    return answer.record()


@pytest.mark.parametrize(
    ("text", "heading", "tags"),
    [
        ("corn and wheat", "File", ["corn", "wheat"]),
        ("maybe oil", "Choose", ["oil", "corn", "grain", "trade"]),
        ("unknown", "Read", []),
    ],
)
async def test_a_card_says_what_to_do_then_the_tags_then_why(client, text, heading, tags):
    response = await client.post("/v1/card", json={"text": text})
    assert response.headers["content-type"].startswith("text/html")
    card = Card(response.text)
    assert card.shown.split()[0] == heading
    assert card.tags == tags
    assert card.ticked == []
    assert response.text.count("<details") == 1
    for number in ("p-value", "Confidence", "credibility"):
        assert number in card.folded
        assert number not in card.shown


@pytest.mark.parametrize(
    ("text", "queue", "tags", "ticked"),
    [
        ("corn and wheat", "filed", ["corn", "wheat"], ["corn", "wheat"]),
        ("maybe oil", "choose", ["oil", "corn", "grain", "trade"], ["oil"]),
        ("unknown", "read", [], []),
    ],
)
def test_in_a_review_assigned_tags_are_ticked_and_nothing_of_a_text_to_read(text, queue, tags, ticked):
    card = Card(render_card(record(text, significance="0.05"), queue=queue))
    assert (card.tags, card.ticked) == (tags, ticked)


def test_certain_tags_are_ticked():
    answer = record("maybe oil") | {"assign": [], "certain": ["trade"]}
    assert Card(render_card(answer, queue="choose")).ticked == ["trade"]


def test_a_blind_card_shows_nothing_of_the_answer():
    card = Card(render_card(None, queue="check"))
    assert (card.tags, card.ticked, card.folded) == ([], [], "")


@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "choose", "labels": ["oil"]},
        {"decision": "read", "labels": []},
        {"decision": "file", "labels": ["gone with an older model"]},
        {"decision": "choose", "labels": [], "consider": [], "reason": None},
        {"decision": "read", "labels": ["oil"], "significance": "0.05", "size": None,
         "size_bounds": ["9" * 40, "1" + "0" * 40], "certain": [], "open": ["oil"], "top": [],
         "credibility": 0.0, "confidence": 1.0},
    ],
)  # fmt: skip
def test_incomplete_and_huge_answers_make_a_card_too(answer):
    assert Card(render_card(answer, queue="choose")).shown.split()


def test_hostile_labels_and_reasons_stay_text():
    answer = record("maybe oil", significance="0.05")
    answer |= {"reason": HOSTILE, "consider": [HOSTILE, '" onclick="alert(1)'], "labels": [HOSTILE], "open": [HOSTILE]}
    card = Card(render_card(answer, queue="choose"))
    assert card.tags == [HOSTILE, '" onclick="alert(1)', "oil"]
    assert not {"script", "img"} & set(card.elements)


async def test_hostile_names_stay_text_on_the_page():
    bundle = FakeBundle(groups=(HOSTILE,), examples=(HOSTILE,))
    bundle.info.name = HOSTILE
    async with asking(create_app(bundle)) as client:
        page = (await client.get("/")).text
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;") == 3


async def test_the_dial_starts_where_the_model_was_made(client):
    page = (await client.get("/")).text
    assert 'data-levels="0.01 0.02 0.05 0.1 0.2 0.3"' in page
    assert 'data-own="0.05"' in page


async def test_a_model_with_another_level_has_it_on_the_dial():
    bundle = FakeBundle()
    bundle.info.levels["max_wrong"] = "0.07"
    async with asking(create_app(bundle)) as client:
        page = (await client.get("/")).text
        refused(await client.post("/v1/card", json={"text": "corn", "level": "0.07"}), 422, "level")
    assert "0.05 0.07 0.1" in page
    assert "7 %" in page


async def test_the_report_and_its_link(client):
    refused(await client.get("/report"), 404)
    assert "Report" not in (await client.get("/")).text
    async with asking(create_app(FakeBundle(report=b"<!doctype html><p>Figures"))) as other:
        assert "Report" in (await other.get("/")).text
        response = await other.get("/report")
    assert response.text.endswith("Figures")
    assert "script-src" not in response.headers["content-security-policy"]
