"""Journeys in the review: the alphabet, keys, refusals, undo, blind texts, a phone."""

import itertools
import re
import string

import pytest

from browser.conftest import running, too_wide, tripped_over
from service.fakes import HOSTILE, FakeBundle, FakeLearner
from surelabel.corpora.vocabulary import Concept, Vocabulary
from surelabel.review import NewText, ReviewStore

ALPHABET = [f"{letter}{word}" for letter, word in zip(string.ascii_lowercase, itertools.cycle(["xus", "sku", "wqn"]))]
NAMES = (
    *ALPHABET,
    *(f"{digit} {digit}th" for digit in range(10)),
    "Überraschung",
    "maize",
    "<b>bold</b>",
    "w",
    "Write-off x1",
)


ALTERNATIVES = {"corn": "maize", "Indian corn": "maize", "depreciation": "Write-off x1"}


def add(store, bundle, texts, **options):
    answers = bundle.answers(texts, probabilities=texts, significance="0.05")
    number = store.last_number()
    store.add(
        NewText(str(number + i), text, answer.record(), **options)
        for i, (text, answer) in enumerate(zip(texts, answers, strict=True))
    )


@pytest.fixture(scope="module")
def bundle():
    bundle = FakeBundle(NAMES)
    bundle.classifier.alternatives = ALTERNATIVES
    return bundle


@pytest.fixture
def store(tmp_path):
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        yield store


@pytest.fixture
def learner():
    return FakeLearner()


@pytest.fixture
def review(bundle, store, page, learner):
    """Open the review of a store, with its texts."""
    with running(bundle, store=store, learner=learner) as service:

        def opened(queue, texts, **options):
            add(store, bundle, texts, **options)
            page.goto(f"{service.url}/review")
            page.evaluate("localStorage.clear()")
            page.goto(f"{service.url}/review")
            page.fill("#name", "Ann")
            page.keyboard.press("Enter")
            page.wait_for_selector(f"#tab-{queue}[aria-selected=true]")  # the first queue with texts
            page.wait_for_selector("#card h2")
            page.wait_for_selector("#tag:focus")
            return page

        yield opened


def ticked(page):
    return [tag.get_attribute("data-label") for tag in page.locator("#card .tag[aria-pressed=true]").all()]


def text_shown(page):
    return page.inner_text("#text-body")


def decided(page, store, n):
    """Wait until the server has a number of decisions, and return them by text."""
    page.locator("#done-words", has_text=re.compile(f"^{n} of")).wait_for()
    return {store.text(decision.number).text: decision.labels for decision in store.decisions()}


def test_the_alphabet(review, store):
    texts = [f"zz {number}" for number in range(len(NAMES))]
    page = review("read", texts)
    expected = {}
    for number, name in enumerate(NAMES, start=1):
        expected[text_shown(page)] = (name,)
        page.keyboard.type(name)
        assert page.input_value("#tag") == name
        assert ticked(page) == []
        page.keyboard.press("Enter")
        assert ticked(page) == [name]
        page.keyboard.press("Enter")
        found = decided(page, store, number)
    assert found == expected


def test_letters_type_wherever_the_focus_is(review):
    page = review("choose", ["maybe axus", "maybe bsku"])
    for place in ("#text-body", "#save", "#card .tag", "#tab-choose", "#undo"):
        page.fill("#tag", "")
        before = ticked(page)
        page.focus(place)
        page.keyboard.type("sxu")
        assert page.input_value("#tag") == "sxu"
        assert ticked(page) == before
    assert page.locator("#card h2").inner_text() == "Choose"


def test_toggles_by_alt_and_digit_by_digit_on_the_list_and_by_arrows(review, store):
    page = review("choose", ["maybe axus", "maybe axus!"])
    assert ticked(page) == ["axus"]
    page.keyboard.press("Alt+2")
    assert ticked(page) == ["axus", "bsku"]
    page.keyboard.type("2")
    assert ticked(page) == ["axus", "bsku"]
    assert page.input_value("#tag") == "2"
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    assert ticked(page) == ["axus", "bsku", "cwqn"]
    page.keyboard.press("1")
    assert ticked(page) == ["bsku", "cwqn"]
    page.keyboard.press("ArrowDown")
    text = text_shown(page)
    page.keyboard.press("Enter")
    assert decided(page, store, 1) == {text: ("bsku", "cwqn")}


def test_tags_are_found_by_any_part_and_by_other_names(review):
    page = review("read", ["zz"])
    for typed, name in (
        ("uberr", "Überraschung"),
        ("RASCH", "Überraschung"),
        ("indian", "maize"),
        ("precia", "Write-off x1"),
        ("off x", "Write-off x1"),
        ("<b>", "<b>bold</b>"),
    ):
        page.keyboard.type(typed)
        page.wait_for_selector("[role=option]")
        assert name in page.inner_text("[role=option][aria-selected=true]")
        page.keyboard.press("Enter")
        assert name in ticked(page)
    page.keyboard.type("no such tag")
    page.keyboard.press("Enter")
    assert page.input_value("#tag") == "no such tag"
    assert "No tag" in page.inner_text("#tag-hint")
    assert tripped_over(page) == []


def test_four_thousand_labels_are_found_by_any_part(store, page):
    names = [f"concept {number:04} of agriculture" for number in range(4_000)]
    bundle = FakeBundle(names)
    bundle.classifier.alternatives = {f"other name {number:04}": name for number, name in enumerate(names)}
    concepts = [Concept(f"http://x/{number}", name) for number, name in enumerate(names)]
    concepts[4] = concepts[4]._replace(broader=(concepts[7].uri,))
    bundle.vocabulary = Vocabulary(tuple(concepts))
    bundle.uris = bundle.vocabulary.uris
    store.add([NewText("1", "zz", {"decision": "read", "labels": []})])
    with running(bundle, store=store) as service:
        page.goto(f"{service.url}/review")
        page.fill("#name", "Ann")
        page.keyboard.press("Enter")
        page.wait_for_selector("#tag:focus")
        for typed, name in (("t 3998 o", names[3998]), ("name 0007", names[7]), (names[4], names[4])):
            page.keyboard.type(typed)
            if name == names[4]:  # where it stands in the vocabulary
                page.wait_for_selector(f"[role=option][aria-selected=true]:has-text('< {names[7]}')")
            page.keyboard.press("Enter")
            assert ticked(page)[-1] == name
        page.keyboard.press("Enter")
        assert decided(page, store, 1) == {"zz": tuple(sorted((names[3998], names[7], names[4])))}


def test_a_text_to_read_has_nothing_ticked_and_saves_nothing_by_accident(review, store):
    page = review("read", ["zz"])
    assert ticked(page) == []
    assert page.locator("#card .tag").count() == 0
    page.keyboard.press("Enter")
    assert "Save again" in page.inner_text("#tag-hint")
    assert store.decisions() == []
    page.keyboard.press("Enter")
    assert decided(page, store, 1) == {"zz": ()}
    page.wait_for_selector("#empty:not([hidden])")


def test_a_blind_text_shows_no_suggestion(review, store):
    page = review("check", ["maybe axus"], is_check=True)
    assert page.locator("#card .tag, #card details").count() == 0
    assert "axus" not in page.inner_text("#card")
    page.keyboard.press("Alt+w")  # no help with words either
    assert page.locator("#text-body mark").count() == 0
    page.keyboard.type("maize")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert decided(page, store, 1) == {"maybe axus": ("maize",)}


def test_skip_undo_words_and_the_next_queue(review, store):
    page = review("choose", ["maybe axus", "maybe bsku", "zz"])
    first = text_shown(page)
    page.keyboard.press("Alt+w")
    page.wait_for_selector("#text-body mark")
    page.keyboard.press("Alt+2")
    chosen = ticked(page)
    page.keyboard.press("Enter")
    decided(page, store, 1)
    page.keyboard.press("Alt+u")
    page.locator("#text-body", has_text=first).wait_for()
    assert ticked(page) == chosen
    assert store.decisions() == []
    with page.expect_response("**/v1/review/decisions"):
        page.keyboard.press("Alt+s")
    assert text_shown(page) != first
    page.keyboard.press("Alt+q")
    page.wait_for_selector("#card .answer.read")


def test_a_lost_connection_loses_nothing(review, store):
    page = review("choose", ["maybe axus", "maybe bsku", "maybe cwqn"])
    page.route("**/v1/review/decisions", lambda route: route.abort())
    first = text_shown(page)
    page.keyboard.press("Enter")
    page.wait_for_selector("#unsaved:not([hidden])")
    second = text_shown(page)
    assert second != first
    page.keyboard.press("Alt+2")
    chosen = ticked(page)
    page.keyboard.press("Enter")  # work goes on
    third = text_shown(page)
    assert third not in {first, second}
    page.locator("#unsaved", has_text="2 decisions").wait_for()
    page.reload()
    assert store.decisions() == []
    page.unroute("**/v1/review/decisions")
    page.evaluate("window.dispatchEvent(new Event('online'))")
    found = decided(page, store, 2)
    assert found[second] == tuple(sorted(chosen))
    assert set(found) == {first, second}
    page.wait_for_selector("#unsaved", state="hidden")
    page.locator("#text-body", has_text=third).wait_for()


def test_a_decision_that_is_refused_comes_back_with_its_tags(review, store):
    page = review("choose", ["maybe axus", "maybe bsku"])
    text = text_shown(page)
    [leased] = [each for each in store.texts() if each.text == text]
    store.release("Ann")
    store.lease("Bob", "choose", 2)
    page.keyboard.press("Alt+3")
    chosen = ticked(page)
    held = []
    page.route("**/v1/review/decisions", lambda route: held.append(route))  # noqa: PLW0108 (Playwright marks handlers)
    with page.expect_request("**/v1/review/decisions"):
        page.keyboard.press("Enter")
    other = text_shown(page)
    page.keyboard.press("Alt+2")
    half = ticked(page)
    held.pop().continue_()
    page.unroute("**/v1/review/decisions")
    page.wait_for_selector("#problem:not([hidden])")
    assert ", ".join(chosen) in page.inner_text("#problem")
    assert text_shown(page) == text
    assert ticked(page) == chosen
    assert store.text(leased.number).decision is None
    # What was ticked meanwhile is not lost either.
    store.release("Bob")
    page.click("#again")
    page.wait_for_selector("#problem", state="hidden")
    if text_shown(page) != other:
        page.keyboard.press("Alt+s")
        page.locator("#text-body", has_text=other).wait_for()
    assert ticked(page) == half


def test_a_long_hostile_text_with_strange_labels_on_a_phone(review, store):
    answer = {"decision": "choose", "reason": HOSTILE, "labels": ["gone"], "consider": [HOSTILE, "x" * 300, "gone"]}
    store.add([NewText("h" * 100, HOSTILE * 200, answer)])
    page = review("choose", ["maybe axus"])
    seen = []
    for number in (1, 2):
        seen.append(text_shown(page))
        assert not too_wide(page)
        assert tripped_over(page) == []
        page.keyboard.press("Alt+1")
        if not ticked(page):
            page.keyboard.press("Alt+2")
        page.keyboard.press("Enter")
        decided(page, store, number)
    assert any("<script>alert(1)</script>" in text for text in seen)
    assert page.title() == "Surelabel review"
    page.click("#summary summary")
    page.wait_for_selector("#figures p")
    assert "Decided: 2" in page.inner_text("#figures")


def tab_to(page, name):
    """Go to a button by the keyboard alone."""
    for _ in range(40):
        if page.evaluate("document.activeElement.textContent") == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{name} cannot be reached")


def test_learning_by_keyboard_from_the_start_to_the_switch(review, learner):
    page = review("read", ["zz"])
    tab_to(page, "Learning")
    page.keyboard.press("Enter")
    page.wait_for_selector("#learning-learn")
    tab_to(page, "Learn")
    assert not page.is_visible("#learning-bars")
    page.keyboard.press("Enter")
    page.locator("#learning-words", has_text="training 25 %").wait_for()
    assert (
        page.evaluate("document.activeElement.textContent") == "Learning"
    )  # its button is gone, the focus is not lost
    learner.now |= {"is_running": False, "state": "waiting", "filing": 100}
    page.locator("#learning-words", has_text="waits").wait_for()
    assert page.inner_text("#learning-filing-words") == "100 of 336"
    assert page.get_attribute("#learning-filing", "max") == "336"
    assert page.locator("#learning button:visible").count() == 0  # nothing to do until they are in
    assert tripped_over(page) == []
    assert not too_wide(page)
    for action, state in (("calibrate", {"alarm": True, "state": "absent"}), ("switch", {"state": "ready"})):
        learner.now |= {"is_running": False, "alarm": False, "problem": None} | state
        page.click("#learning summary")
        page.click("#learning summary")
        page.wait_for_selector(f"#learning-{action}")
        assert ("stopped" in page.inner_text("#learning-problem")) == learner.now["alarm"]
        with page.expect_response(lambda response: response.request.method == "POST"):
            page.click(f"#learning-{action}")
    page.locator("#learning-words", has_text="starts again").wait_for()
    assert learner.asked == ["learn", "calibrate", "switch"]
