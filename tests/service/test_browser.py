"""The page in a real browser: Debian's Chromium, driven by Playwright."""

import csv
import dataclasses
import io
import re

import numpy as np
import pytest

from browsing import CHECKS, CHROMIUM
from service_running import HOSTILE, NAMES, grouped_bundle, make_bundle, serving, start
from surelabel.guarantees.decisions import Decisions
from surelabel.service import ServiceSettings

TOKEN = "a token of some length"

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning"),
]


class Visit:
    """A page with all that it complained of and asked for."""

    def __init__(self, browser, url, **options):
        self.url = url
        self.context = browser.new_context(viewport={"width": 1100, "height": 800}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.complaints = []
        self.requests = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(f"{url}/")

    def _hear(self, message):
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def ask(self, text):
        self.page.fill("#text", text)
        self.page.click("#ask")

    def slide(self, level):
        """Move the slider to a level with the keyboard."""
        slider = self.page.locator("#confidence")
        slider.focus()
        for key in ("ArrowLeft", "ArrowRight"):
            for _ in range(12):
                if slider.get_attribute("aria-valuetext") == level:
                    return
                slider.press(key)
        assert slider.get_attribute("aria-valuetext") == level

    def text(self, selector):
        return self.page.inner_text(selector)

    def wait_for(self, selector, text):
        self.page.locator(selector, has_text=text).first.wait_for()

    def close(self, expected=()):
        """Close it; nothing but the expected complaints was made, and no other host was asked."""
        complaints = [each for each in self.complaints if not any(re.search(pattern, each) for pattern in expected)]
        assert complaints == []
        assert {re.match(r"(blob:)?https?://[^/]+", url).group().removeprefix("blob:") for url in self.requests} == {
            self.url
        }
        self.context.close()


@pytest.fixture
def visit(browser, service):
    visit = Visit(browser, service.url)
    visit.page.wait_for_selector("#examples:not([hidden])")
    yield visit
    visit.close()


def test_paste_slide_and_read_the_answer(visit):
    page = visit.page
    assert "90 labels" in visit.text("#model-line")
    assert "1.2 × 10" in visit.text("#model-line")
    page.focus("#text")
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.setData("text/plain", "corn and wheat maybe");
          const field = document.getElementById("text");
          field.value = "corn and wheat maybe";
          field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
        }"""
    )
    visit.wait_for("#plausible-title", "At 95 % confidence")
    assert page.locator(".chips.large li").all_inner_texts() == ["corn", "wheat"]
    assert re.fullmatch("At 95 % confidence: .*label-sets?.*", visit.text(".description"))
    first = page.locator(".plausible .sentence b").inner_text()
    assert "p-value" in visit.text(".measures")
    assert "calibration texts" in visit.text(".measures")
    assert page.locator(".top > li").count() >= 1
    assert page.get_attribute("#confidence", "aria-valuetext") == "95 %"
    visit.slide("80 %")
    visit.wait_for("#plausible-title", "At 80 % confidence")
    assert page.locator(".plausible .sentence b").inner_text() != first
    assert "At 80 % confidence" in visit.text("#status")
    assert "1 text in 5" in visit.text("#confidence-words")


def test_an_answer_about_an_earlier_text_is_marked_and_goes_with_its_text(visit):
    page = visit.page
    page.fill("#text", "corn")
    assert page.get_attribute("#answer", "class") in (None, "")
    visit.ask("corn")
    page.wait_for_selector("#forced-title")
    assert page.get_attribute("#answer", "class") in (None, "")
    page.fill("#text", "corn and wheat")
    assert page.get_attribute("#answer", "class") == "stale"
    visit.ask("corn and wheat")
    page.wait_for_selector("#answer:not(.stale) #forced-title")
    page.fill("#text", "")
    assert page.locator("#forced-title").count() == 0
    assert page.locator("#answer .empty").count() == 1


def test_what_the_model_did_on_its_test_texts_stands_under_the_slider(visit):
    page = visit.page
    levels = [{"significance": "0.05", "error": 0.0748, "mean_size": 2.0, "median_size": 1.0}]

    def evaluated(route):
        answer = route.fetch()
        figures = {"n_texts": 3019, "accuracy": 0.8, "f1_micro": 0.9, "f1_macro": 0.5, "levels": levels}
        route.fulfill(response=answer, json={**answer.json(), "evaluation": figures})

    page.route("**/v1/model", evaluated)
    page.reload()
    visit.wait_for("#confidence-words", "Asked for 5 %: 7.5 % of 3,019 test texts were missed.")
    visit.slide("80 %")
    assert "test texts" not in visit.text("#confidence-words")


def test_the_last_answer_stays_while_the_next_is_awaited(visit):
    page = visit.page
    visit.ask("corn")
    page.wait_for_selector("#forced-title")
    page.route("**/v1/predict", lambda route: (page.wait_for_timeout(400), route.continue_()))
    visit.slide("90 %")
    page.wait_for_selector("#answer[aria-busy=true]")
    assert page.locator(".chips.large li").all_inner_texts() == ["corn"]
    visit.wait_for("#plausible-title", "At 90 % confidence")
    assert page.get_attribute("#answer", "aria-busy") is None
    page.unroute("**/v1/predict")


def test_moving_the_slider_fast_asks_once(visit):
    visit.ask("corn")
    visit.page.wait_for_selector("#forced-title")
    before = sum("/v1/predict" in url for url in visit.requests)
    visit.page.evaluate(
        """() => {
          const slider = document.getElementById("confidence");
          for (const value of [5, 4, 3, 2, 1, 0]) {
            slider.value = value;
            slider.dispatchEvent(new Event("input"));
          }
        }"""
    )
    visit.wait_for("#plausible-title", "At 50 % confidence")
    assert sum("/v1/predict" in url for url in visit.requests) == before + 1


def test_a_text_unlike_the_others_is_called_out_and_its_set_is_empty(visit):
    visit.ask("nothing that is known here")
    visit.wait_for(".warning", "unlike the texts that the model was calibrated on")
    assert "No label-set is plausible" in visit.text(".plausible .sentence")
    assert "Caution" in visit.text("#status")


def test_a_huge_set_is_readable(visit):
    visit.slide("99.5 %")
    visit.ask("nothing that is known here")
    visit.wait_for("#plausible-title", "At 99.5 % confidence")
    assert visit.page.locator(".plausible .sentence sup").count() == 2
    assert visit.page.locator(".chips.open li").count() == 40
    visit.page.click("text=Show 50 more")
    assert visit.page.locator(".chips.open li").count() == 90


@pytest.fixture(scope="module")
def deciding():
    """A service whose model decides, and recommends another level than the usual."""
    bundle = make_bundle(max_wrong="0.2")
    automation = bundle.decisions.automation
    automation.threshold_ = automation.scores(bundle.predict_proba(["corn wheat", "corn wheat maybe"])).mean()
    info = dataclasses.replace(bundle.info, level="0.2")
    with serving(dataclasses.replace(bundle, info=info)) as running:
        yield running


@pytest.mark.parametrize(
    ("text", "style", "title", "reason"),
    [
        ("corn wheat", "file", "File it", "at most 20 % are wrong"),
        ("corn wheat maybe", "choose", "Choose from a short list", "plausible"),
        ("nothing that is known here", "read", "Read it yourself", "knows none of its words"),
    ],
)
def test_the_verdict_comes_first_with_its_reason(browser, deciding, text, style, title, reason):
    visit = Visit(browser, deciding.url)
    visit.page.wait_for_selector("#examples:not([hidden])")
    visit.ask(text)
    visit.wait_for("#verdict-title", title)
    first = visit.page.locator("#answer > section").first
    assert first.get_attribute("class") == f"card verdict {style}"
    assert reason in first.inner_text()
    assert visit.text("#status").startswith(f"{title}. ")
    assert visit.page.locator(".warning").count() == 0  # said once, in the verdict
    assert visit.page.evaluate(CHECKS) == []
    visit.page.fill("#text", "another text")
    assert visit.page.get_attribute("#answer", "class") == "stale"
    visit.close()


def test_a_text_to_read_shows_its_most_probable_tags(browser):
    bundle = make_bundle(max_wrong="0.2")
    made = bundle.decisions
    made.automation.threshold_ = np.inf
    made.tag_bounds.consider_threshold_ = 0.0
    decisions = Decisions(made.automation, made.tag_bounds, made.familiarity, max_choices=1)
    with serving(dataclasses.replace(bundle, decisions=decisions)) as running:
        visit = Visit(browser, running.url)
        visit.page.wait_for_selector("#examples:not([hidden])")
        visit.ask("corn wheat maybe")
        visit.wait_for("#verdict-title", "Read it yourself")
        card = visit.page.locator("#answer > section").first
        assert "90 of 90 tags are to be considered: a short list has at most 20." in card.inner_text()
        assert "a long list: the 20 most probable of 90" in card.inner_text()
        shown = card.locator(".chips li").all_inner_texts()
        assert len(shown) == 20
        assert set(shown[:2]) == {"corn", "wheat"}
        card.get_by_text("Show 70 more").click()
        assert card.locator(".chips li").count() == 90
        # Of an unfamiliar text no tag is worth considering.
        visit.ask("nothing that is known here")
        visit.wait_for("#verdict-title + p", "knows none of its words")
        assert visit.page.locator("#answer > section").first.locator(".chips").count() == 0
        visit.close()


def test_the_level_of_the_model_and_the_picture_are_on_the_page(browser, deciding):
    visit = Visit(browser, deciding.url)
    visit.page.wait_for_selector("#examples:not([hidden])")
    assert visit.text("#confidence-shown") == "80 %"
    visit.slide("95 %")
    visit.ask("corn wheat maybe")
    visit.wait_for("#plausible-title", "At 95 % confidence")
    picture = visit.page.locator("img.picture")
    picture.wait_for()
    assert visit.page.wait_for_function("document.querySelector('img.picture').naturalWidth > 0")
    assert "corn" in picture.get_attribute("alt")
    visit.close()


def test_on_a_phone_the_answer_scrolls_into_view(browser, deciding):
    visit = Visit(browser, deciding.url, reduced_motion="reduce")
    visit.page.set_viewport_size({"width": 390, "height": 700})
    visit.page.wait_for_selector("#examples:not([hidden])")
    visit.ask("corn wheat")
    visit.page.wait_for_selector("#verdict-title")
    visit.page.wait_for_function(
        "document.getElementById('verdict-title').getBoundingClientRect().bottom < innerHeight"
    )
    top = visit.page.evaluate("scrollY")
    assert top > 0
    # Moving the slider leaves it under the thumb.
    visit.page.locator("#confidence").scroll_into_view_if_needed()
    before = visit.page.evaluate("scrollY")
    visit.slide("90 %")
    visit.wait_for("#plausible-title", "At 90 % confidence")
    assert visit.page.evaluate("scrollY") == before
    visit.close()


def test_a_table_has_decisions(browser, deciding):
    visit = Visit(browser, deciding.url)
    visit.page.wait_for_selector("#examples:not([hidden])")
    upload(visit.page, "texts.csv", b"text\ncorn wheat\nnothing known\ncorn maybe wheat")
    visit.page.click("#run-table")
    visit.page.wait_for_selector("#download")
    assert visit.text("#table-decided") == "What to do: file 1, choose 1, read 1."
    assert visit.page.locator("#table-result tbody tr").nth(1).locator("td").nth(2).inner_text() == "read"
    visit.close()


def utf16(text):
    """Return the code units that JavaScript has for a text, half pairs too."""
    octets = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(octets[at : at + 2], "little") for at in range(0, len(octets), 2)]


@pytest.mark.parametrize(
    "text",
    [HOSTILE, "corn " + "x" * 100_000, "مرحبا corn \u202e\u2066 wheat", "👩‍👩‍👧‍👦" * 500 + " corn", "\ud800 corn"],
)
def test_hostile_texts_stay_texts(visit, text):
    page = visit.page
    page.evaluate(
        'units => { document.getElementById("text").value = units.map((unit) => String.fromCharCode(unit)).join(""); }',
        utf16(text),
    )
    page.click("#ask")
    page.wait_for_selector("#forced-title")
    assert page.title() == "Surelabel: which labels are sure"
    assert page.locator("main script, main img:not(.picture)").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_label_names_stay_texts(browser):
    names = ("<img/src=x>", '"><script>alert(1)</script>', "\u202eright-to-left", *NAMES[3:])
    with serving(make_bundle(names=names)) as running:
        visit = Visit(browser, running.url)
        visit.page.wait_for_selector("#examples:not([hidden])")
        visit.ask(names[0])
        visit.wait_for(".chips.large li", "<img/src=x>")
        assert visit.page.locator("main img:not(.picture), main script").count() == 0
        visit.close()


def test_examples_are_asked_at_once(visit):
    visit.page.locator("#examples button").last.click()
    visit.page.wait_for_selector("#forced-title")
    assert "ferry" in visit.page.input_value("#text")


def test_an_empty_text_is_not_asked(visit):
    visit.page.click("#ask")
    visit.wait_for("#status", "Enter a text first")
    assert visit.text("#text-problem") == "Enter a text first."
    assert not any("/v1/predict" in url for url in visit.requests)
    assert visit.page.evaluate("document.activeElement.id") == "text"


def test_keyboard_alone(visit):
    page = visit.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#tab-text")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-table"
    assert page.locator("#panel-table").is_visible()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.type("wheat")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#forced-title")


def test_too_long_a_text_says_what_to_do(visit):
    visit.page.evaluate("() => { document.getElementById('text').value = 'x'.repeat(200001); }")
    visit.page.click("#ask")
    visit.wait_for("#problem", "200,000 characters")
    assert "Shorten the text" in visit.text("#problem")
    visit.complaints.clear()  # Chromium tells the console of every answer that is no success


def test_tokens(browser):
    with serving(make_bundle(), ServiceSettings(token=TOKEN)) as running:
        visit = Visit(browser, running.url)
        page = visit.page
        page.wait_for_selector("#token-form:not([hidden])")
        assert not page.locator("#main").is_visible()
        assert page.evaluate("document.activeElement.id") == "token"
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        visit.wait_for("#token-problem", "That token is wrong")
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_selector("#examples:not([hidden])")
        assert not page.locator("#token-form").is_visible()
        visit.ask("corn")
        page.wait_for_selector("#forced-title")
        page.reload()
        page.wait_for_selector("#examples:not([hidden])")
        visit.close(expected=["401"])


def test_server_gone(browser):
    running = start(make_bundle())
    visit = Visit(browser, running.url)
    visit.page.wait_for_selector("#examples:not([hidden])")
    visit.ask("corn")
    visit.page.wait_for_selector("#forced-title")
    running.stop()
    visit.slide("80 %")
    visit.wait_for("#problem", "The server cannot be reached")
    assert visit.page.locator(".chips.large li").all_inner_texts() == ["corn"]
    assert visit.page.input_value("#text") == "corn"
    assert visit.page.locator("#again").is_visible()
    visit.close(expected=["ERR_CONNECTION_REFUSED"])


def test_a_busy_server_is_asked_again(visit):
    page = visit.page
    answers = iter([503])

    def busy_once(route):
        if next(answers, None):
            body = '{"error": {"code": "queue_full", "message": "Busy.", "what_to_do": "Wait.", "field": null}}'
            route.fulfill(status=503, headers={"Retry-After": "1"}, content_type="application/json", body=body)
        else:
            route.continue_()

    page.route("**/v1/predict", busy_once)
    visit.ask("corn")
    visit.wait_for("#problem", "Busy.")
    page.click("#again")
    page.wait_for_selector("#forced-title")
    assert not page.locator("#problem").is_visible()
    visit.complaints.clear()


def upload(page, name, content):
    page.click("#tab-table")
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})


def test_table(visit):
    page = visit.page
    rows = [
        ["id", "text"],
        ["1", 'corn, "wheat"\nand more'],
        ["2", "unknown"],
        ["3", HOSTILE.replace("\u0000", "")],
        ["4", ""],
    ]
    rows += [[str(number), "trade " * (number % 50)] for number in range(5, 205)]
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    upload(page, "texts.csv", written.getvalue().encode())
    visit.wait_for("#run-table", "Predict 204 rows")
    assert page.eval_on_selector("#column", "field => field.selectedOptions[0].textContent") == "text"
    page.click("#run-table")
    page.wait_for_selector("#download")
    assert "204 of 204 rows answered" in visit.text("#table-done")
    assert page.locator("#table-result tbody tr").count() == 50
    with page.expect_download() as download:
        page.click("#download")
    assert download.value.suggested_filename == "texts-answers.csv"
    found = list(csv.reader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig"), newline="")))
    assert [row[:2] for row in found] == [[cell.replace("\r\n", "\n") for cell in row] for row in rows]
    assert found[0][2:5] == ["surelabel_decision", "surelabel_reason", "surelabel_labels"]
    assert found[0][7:9] == ["surelabel_confidence", "surelabel_credibility"]
    assert found[1][4] == "corn"
    assert found[-1][4] == "trade"
    assert all(0 <= float(row[7]) <= 1 for row in found[1:])


def test_table_with_semicolons_old_encoding_and_a_text_that_is_too_long(visit):
    content = "Nummer;Text\r\n1;corn für wheat\r\n2;" + "x" * 200_001 + "\r\n3;trade"
    upload(visit.page, "old.csv", content.encode("windows-1252"))
    visit.page.click("#run-table")
    visit.page.wait_for_selector("#download")
    cells = visit.page.locator("#table-result tbody tr").all_inner_texts()
    assert "corn für wheat" in cells[0]
    assert "longer than 200,000 characters" in cells[1]
    assert "trade" in cells[2]


@pytest.mark.parametrize(("content", "says"), [(b"", "no row"), (b"text\n", "no row"), (b'text\n"open', "not closed")])
def test_tables_that_cannot_be_read(visit, content, says):
    upload(visit.page, "bad.csv", content)
    visit.wait_for("#problem", says)
    assert visit.page.locator("#run-table").is_disabled()


def test_report_opens_with_its_style_and_without_scripts(browser):
    report = (
        b"<!doctype html><title>figures</title><style>p{color:rgb(1,2,3)}</style><p>Figures</p>"
        b"<script>document.title='run'</script>"
    )
    with serving(make_bundle(report=report)) as running:
        visit = Visit(browser, running.url)
        visit.page.wait_for_selector("#report-link:not([hidden])")
        with visit.context.expect_page() as opened:
            visit.page.click("#report-link")
        page = opened.value
        page.wait_for_selector("p")
        assert page.eval_on_selector("p", "p => getComputedStyle(p).color") == "rgb(1, 2, 3)"
        assert page.title() == "figures"
        visit.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_roles_and_contrast(browser, service, scheme):
    visit = Visit(browser, service.url, color_scheme=scheme)
    page = visit.page
    page.wait_for_selector("#examples:not([hidden])")
    for step in (lambda: None, lambda: visit.ask("corn maybe wheat"), lambda: visit.ask("unknown text")):
        step()
        page.wait_for_timeout(300)
        assert page.evaluate(CHECKS) == []
    upload(page, "texts.csv", b"text\ncorn\nunknown")
    page.click("#run-table")
    page.wait_for_selector("#download")
    assert page.evaluate(CHECKS) == []
    assert page.get_attribute("#status", "role") == "status"
    assert page.get_attribute("#problem", "role") == "alert"
    visit.close()


def test_narrow_screens_do_not_scroll_sideways(browser, service):
    visit = Visit(browser, service.url)
    page = visit.page
    page.set_viewport_size({"width": 360, "height": 740})
    page.wait_for_selector("#examples:not([hidden])")
    visit.slide("99.5 %")
    for text in ("corn wheat maybe", "unknown", "x" * 3_000 + " corn"):
        visit.ask(text)
        page.wait_for_selector("#forced-title")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    upload(page, "texts.csv", b"text\ncorn\n" + b"x" * 3_000)
    page.click("#run-table")
    page.wait_for_selector("#download")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    visit.close()


def test_a_model_with_groups_is_asked_about_the_chosen_one(browser):
    with serving(grouped_bundle()) as running:
        visit = Visit(browser, running.url)
        visit.page.wait_for_selector("#group-choice:not([hidden])")
        assert visit.page.locator("#group option").all_text_contents() == ["chat", "mail"]
        assert visit.page.inner_text("#group-label") == "Texts of which channel?"
        with visit.page.expect_request("**/v1/predict") as asked:
            visit.ask("corn and wheat")
        assert asked.value.post_data_json["group"] == "chat"
        visit.page.wait_for_selector("#forced-title")
        with visit.page.expect_request("**/v1/predict") as asked:
            visit.page.select_option("#group", "mail")
        assert asked.value.post_data_json["group"] == "mail"
        assert visit.complaints == []
        visit.context.close()
