"""Journeys on the page: ask, turn the dial, send a table; a token, a phone, hostile texts, a server that is gone."""

import csv
import warnings

import pytest

import surelabel
from browser.conftest import running, too_wide, tripped_over
from service.fakes import HOSTILE, FakeBundle
from surelabel.exceptions import DataWarning
from surelabel.service import ServiceSettings


class DialBundle(FakeBundle):
    """Notes the levels that it is asked for."""

    def __init__(self, **options):
        super().__init__(**options)
        self.levels = []

    def answers(self, texts, **asked):
        self.levels.append(asked["significance"])
        return super().answers(texts, **asked)


@pytest.fixture(scope="module")
def bundle():
    return DialBundle(examples=("Corn and wheat rose.", HOSTILE))


@pytest.fixture(scope="module")
def service(bundle):
    with running(bundle) as service:
        yield service


def ask(page, text, decision):
    page.fill("#text", text)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(f".answer.{decision}")


def words_on(page):
    return len(page.inner_text("body").split())


@pytest.mark.parametrize(
    ("text", "decision", "most"),
    [("Corn and wheat rose.", "file", 60), ("Maybe oil.", "choose", 80), ("Lorem ipsum.", "read", 80)],
)
def test_the_decision_comes_first_in_few_words(page, service, text, decision, most):
    page.goto(service.url)
    ask(page, text, decision)
    assert words_on(page) <= most
    assert page.inner_text(".answer").split()[0].lower() == decision
    assert page.locator("details[open]").count() == 0
    assert page.locator(".answer details").count() == 1
    assert tripped_over(page) == []
    assert not too_wide(page)
    page.click(".why summary")
    assert "p-value" in page.inner_text(".answer")
    assert tripped_over(page) == []
    assert not too_wide(page)


@pytest.mark.slow
def test_few_words_with_a_model_of_reuters(page):
    if not surelabel.corpora.is_available_locally("reuters"):
        pytest.skip("Reuters is not on this machine: set SURELABEL_DATA")
    corpus = surelabel.corpora.load("reuters")
    with warnings.catch_warnings(action="ignore", category=DataWarning):  # some stories are empty
        bundle = surelabel.train(corpus, measure="log-loss", options={"C": 1, "loss": "svm"})
    texts = [text for text in corpus.part("test").texts[:1_000] if text.strip()]
    by_decision = {}
    for text, answer in zip(texts, bundle.answers(texts), strict=True):
        by_decision.setdefault(answer.decision, []).append(text)
    counted = {}
    with running(bundle) as service:
        for decision, examples in by_decision.items():
            for text in examples[:10]:
                page.goto(service.url)
                ask(page, text, decision)
                counted.setdefault(decision, []).append(words_on(page))
    assert set(counted) == {"file", "choose", "read"}
    assert max(counted["file"]) <= 60
    assert max(counted["choose"] + counted["read"]) <= 80


def test_the_dial_asks_again_and_the_tags_explain_themselves(page, service, bundle):
    page.goto(service.url)
    assert page.inner_text("#level-shown") == "5 %"
    ask(page, "Maybe oil and corn.", "choose")
    page.click(".why summary")
    assert bundle.levels[-1] == "0.05"
    with page.expect_response("**/v1/card"):
        page.focus("#level")
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("#result:not([aria-busy])")
    assert page.inner_text("#level-shown") == "10 %"
    assert bundle.levels[-1] == "0.1"
    assert page.locator(".why[open]").count() == 1  # what was unfolded stays so
    page.click(".tag >> text=oil")
    page.wait_for_selector(".words")
    assert page.inner_text(".words mark") == "oil"
    page.click(".tag >> text=oil")
    assert page.locator(".words").count() == 0


def test_keyboard_alone_from_the_text_to_the_reasons(page, service):
    page.goto(service.url)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "text":
            break
    page.keyboard.type("Maybe oil")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".answer.choose")
    assert "Choose" in page.inner_text("#status")
    seen = []
    for _ in range(20):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent.trim()"))
        if seen[-1].startswith("Why"):
            break
    assert "oil" in seen
    page.keyboard.press("Enter")
    assert page.locator(".why[open]").count() == 1


def test_hostile_texts_and_names_stay_text(page, service):
    page.goto(service.url)
    title = page.title()
    page.click(".examples summary")
    page.click(".example >> nth=1")
    page.wait_for_selector(".answer.read")
    ask(page, f"maybe <b>bold</b> {HOSTILE}", "choose")
    assert page.locator(".tag >> text=<b>bold</b>").count() == 1
    page.click(".tag >> text=<b>bold</b>")
    page.wait_for_selector(".words")
    assert "<script>alert(1)</script>" in page.inner_text(".words")
    assert page.title() == title
    assert page.locator("main img, main script").count() == 0


def test_a_table_goes_up_and_comes_back(page, service, tmp_path):
    table = tmp_path / "tickets.csv"
    table.write_text("id,body\n" + "".join(f"{n},maybe oil\n" for n in range(300)), encoding="utf-8")
    page.goto(service.url)
    page.click("#table > summary")
    assert tripped_over(page) == []
    page.set_input_files("#file", table)
    page.click("#table-form button.primary")
    page.wait_for_selector("#problem:not([hidden])")
    assert "'text'" in page.inner_text("#problem")
    page.fill("#column", "body")
    with page.expect_download() as download:
        page.click("#table-form button.primary")
    assert download.value.suggested_filename == "tickets.answers.csv"
    rows = list(csv.DictReader(download.value.path().read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 300
    assert {row["decision"] for row in rows} == {"choose"}
    assert "300 texts" in page.inner_text("#table-status")
    assert page.is_hidden("#problem")


def test_a_token_is_asked_for_as_a_password(browser, bundle):
    with running(bundle, ServiceSettings(token="a secret")) as service:
        with browser.new_context() as stranger:
            response = stranger.request.get(service.url)
        assert response.status == 401
        password = {"username": "ann", "password": "a secret"}
        with browser.new_context(http_credentials=password) as known:
            page = known.new_page()
            page.goto(service.url)
            ask(page, "Corn", "file")


def test_a_server_that_is_gone_loses_nothing(page):
    with running(FakeBundle()) as service:
        page.goto(service.url)
        ask(page, "Corn", "file")
    page.fill("#text", "Maybe oil")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#problem:not([hidden])")
    assert "reached" in page.inner_text("#problem")
    assert page.input_value("#text") == "Maybe oil"
    assert page.locator(".answer.file").count() == 1


def test_groups_are_chosen_once(page):
    bundle = FakeBundle(groups=("chat", "mail"))
    with running(bundle) as service:
        page.goto(service.url)
        page.select_option("#group", "mail")
        ask(page, "Corn", "file")
        assert tripped_over(page) == []
