"""A review in a real browser, by keyboard: reloads, a server that is killed, two reviewers, an export, axe-core."""

import csv
import dataclasses
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from browsing import CHECKS, CHROMIUM
from service_running import HOSTILE, make_bundle, serving
from surelabel import corpora
from surelabel.models import TrainingSettings, train_bundle
from surelabel.review import IncomingSettings, ReviewStore
from surelabel.review.incoming import Incoming
from surelabel.service.reviewing import Reviewing

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning"),
]


class Desk:
    """A reviewer at the page, with all that the page complained of."""

    def __init__(self, browser, url, reviewer="Ann", **options):
        options = {"viewport": {"width": 1300, "height": 800}, **options}
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.complaints = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(f"{url}/review")
        self.page.wait_for_selector("#name-form:not([hidden])")
        self.type(reviewer)
        self.press("Enter")
        self.ready()

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text):
        self.page.keyboard.type(text)

    def ready(self):
        self.page.wait_for_selector("#work:not([hidden]), #empty:not([hidden])")

    @property
    def number(self):
        """The id of the text that is shown, None if there is none."""
        if not self.page.locator("#work").is_visible():
            return None
        return self.page.inner_text("#text-title").removeprefix("Text ")

    @property
    def chosen(self):
        names = self.page.locator("#chosen li:not(.none)").all_inner_texts()
        return [name.removesuffix("×").strip() for name in names]

    def saved(self):
        """Wait until the server has all decisions."""
        self.until(lambda: self.page.evaluate("localStorage.getItem('surelabel-outbox') ?? '[]'") == "[]")

    def until(self, condition):
        """Wait for something; the page's policy lets no test evaluate strings there while it waits."""
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline
            self.page.wait_for_timeout(50)

    def close(self):
        assert self.complaints == []
        self.context.close()


def rows_of(n):
    """Texts of two names each: several label-sets are plausible."""
    names = make_bundle().label_names
    rng = np.random.default_rng(0)
    texts = [" ".join(names[i] for i in rng.choice(12, 2, replace=False)) for _ in range(n)]
    return [Incoming(f"t{k}", text, {"id": f"t{k}", "text": text}) for k, text in enumerate(texts)]


@pytest.fixture
def review(tmp_path, bundle):
    """A running review of texts; returns the function that starts it."""
    opened = []

    def start(rows, share=0.0, significance="0.2"):
        store = ReviewStore(tmp_path / f"{len(opened)}.sqlite")
        reviewing = Reviewing(store, bundle, None, IncomingSettings(significance=significance, check_share=share))
        reviewing.take_in(rows)
        running = serving(bundle, reviewing=reviewing)
        opened.append((store, running))
        return store, running.__enter__()

    yield start
    for store, running in opened:
        running.__exit__(None, None, None)
        store.close()


def test_every_key_by_keyboard_alone(browser, review):
    store, running = review(rows_of(12))
    desk = Desk(browser, running.url)
    page = desk.page
    assert page.get_attribute("#tab-choose", "aria-selected") == "true"
    first = desk.number
    guess = desk.chosen
    desk.press("Enter")  # accepts
    desk.until(lambda: desk.number != first)
    second = desk.number
    option = page.locator("#options .names").nth(1).inner_text()
    desk.press("2")  # picks
    third = desk.number
    desk.type("gra")  # adds a tag by name
    assert page.get_attribute("#tag", "aria-expanded") == "true"
    desk.press("Enter")
    assert "grain" in desk.chosen
    edited = desk.chosen
    desk.press("Enter")
    fourth = desk.number
    desk.press("x")  # none fits
    fifth = desk.number
    desk.press("s")  # skips
    sixth = desk.number
    desk.press("j")  # moves
    assert desk.number != sixth
    desk.press("k")
    assert desk.number == sixth
    desk.saved()
    decided = {decision.text_id: decision for decision in store.decisions()}
    assert set(decided) == {first, second, third, fourth}
    assert (decided[first].action, list(decided[first].chosen)) == ("accept", sorted(guess))
    assert decided[second].action == "pick"
    assert option == " and ".join(decided[second].chosen).replace(
        " and ", ", ", max(0, len(decided[second].chosen) - 2)
    )
    assert (decided[third].action, sorted(edited)) == ("edit", list(decided[third].chosen))
    assert decided[fourth].chosen == ()
    assert all(decision.seconds is not None for decision in decided.values())
    desk.press("u")  # undoes the skip
    desk.until(lambda: desk.number == fifth)
    desk.press("u")  # and the none
    desk.until(lambda: desk.number == fourth)
    desk.saved()
    assert len(store.decisions()) == 3
    assert page.locator("#text mark").count() >= 1  # words that speak for a tag
    # Reload: the same text, and nothing is lost.
    page.reload()
    desk.ready()
    assert desk.number == fourth
    assert len(store.decisions()) == 3
    desk.close()


def test_single_keys_can_be_switched_off(browser, review):
    store, running = review(rows_of(4))
    desk = Desk(browser, running.url)
    desk.page.focus("#single-keys")
    desk.press("Space")
    desk.page.focus("#text-title")
    before = desk.number
    desk.press("x", "s", "j", "2")
    desk.page.wait_for_timeout(200)
    assert desk.number == before
    assert store.history() == []
    desk.page.focus("#accept")  # the buttons do the same
    desk.press("Enter")
    desk.saved()
    assert len(store.decisions()) == 1
    desk.page.reload()
    desk.ready()
    assert not desk.page.locator("#single-keys").is_checked()
    desk.close()


def test_what_is_decided_without_a_connection_is_saved_later(browser, review):
    store, running = review(rows_of(9))
    desk = Desk(browser, running.url)
    desk.context.set_offline(True)
    for _ in range(3):
        desk.press("Enter")
    desk.page.wait_for_selector("#unsaved:not([hidden])")
    desk.until(lambda: "3 decisions wait" in desk.page.inner_text("#unsaved"))
    assert store.decisions() == []
    desk.context.set_offline(False)
    desk.saved()
    assert len(store.decisions()) == 3
    desk.page.wait_for_selector("#unsaved", state="hidden")
    desk.close()


def test_the_blind_check_is_tagged_by_name_and_the_closing_screen_exports(browser, review):
    _, running = review(rows_of(3), share=1.0)
    desk = Desk(browser, running.url)
    page = desk.page
    assert page.get_attribute("#tab-check", "aria-selected") == "true"
    for _ in range(3):
        assert desk.chosen == []
        assert not page.locator("#options-part").is_visible()
        desk.press("Enter")  # nothing to accept
        assert "Add a tag first" in page.inner_text("#status")
        for name in page.inner_text("#text").split():
            desk.press("Escape", "/")
            desk.type(name)
            desk.press("Enter")
        desk.press("Enter")
    page.wait_for_selector("#empty:not([hidden])")
    desk.saved()
    desk.until(lambda: page.evaluate("document.activeElement.id") == "go-on")
    desk.press("Enter")
    page.wait_for_selector("#closing:not([hidden])")
    assert "3 texts" in page.inner_text("#closing")
    with page.expect_download() as download:
        page.click("#export-csv")
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))
    assert [set(row["final_labels"].split(",")) for row in rows] == [set(row["text"].split()) for row in rows]
    assert {row["decided_by"] for row in rows} == {"Ann"}
    page.locator("details.blind summary").click()
    page.locator("#blind", has_text="3 texts").wait_for()
    desk.close()


def test_two_reviewers_never_see_the_same_text(browser, review):
    store, running = review(rows_of(30))
    desks = [Desk(browser, running.url, name) for name in ("Ann", "Bob")]
    seen = {0: set(), 1: set()}
    for _ in range(12):
        for who, desk in enumerate(desks):
            if desk.number is not None:
                seen[who].update(item.split()[0] for item in desk.page.locator("#texts button").all_inner_texts())
                desk.press("Enter")
    assert seen[0]
    assert seen[1]
    assert not seen[0] & seen[1]
    for desk in desks:
        desk.saved()
        desk.close()
    assert {decision.reviewer for decision in store.decisions()} == {"Ann", "Bob"}


def states(desk):
    """Bring the page into each of its states, and yield their names."""
    yield "choose"
    desk.press("/")
    desk.type("t")
    yield "typing"
    desk.press("Escape")
    desk.page.click("#tab-check")
    desk.page.wait_for_timeout(300)
    yield "check"
    desk.page.click("#tab-filed")
    desk.page.wait_for_selector("#empty:not([hidden])")
    yield "empty"
    desk.page.click("#summary")
    desk.page.wait_for_selector("#closing:not([hidden])")
    desk.page.locator("details.blind summary").click()
    yield "closing"


VIEWS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 800}},
    # What is left of 1280 x 800 at 200 % zoom.
    "zoomed": {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2},
}


def looked_at(browser, review, view, check):
    rows = [*rows_of(16), Incoming("hostile", HOSTILE + " corn " + "x" * 400, {})]
    _, running = review(rows, share=0.4)
    desk = Desk(browser, running.url, bypass_csp=True, **VIEWS[view])
    found = {}
    for name in states(desk):
        desk.page.wait_for_timeout(200)
        assert desk.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"
        folder = os.environ.get("SURELABEL_SCREENSHOTS")
        if folder:
            desk.page.screenshot(path=Path(folder) / f"review-{view}-{name}.png", full_page=True)
        problems = check(desk.page)
        if problems:
            found[name] = problems
    desk.close()
    assert found == {}


@pytest.mark.parametrize("view", ["dark", "phone"])
def test_names_roles_contrast_and_width(browser, review, view):
    looked_at(browser, review, view, lambda page: page.evaluate(CHECKS))


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The source of axe-core, from npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: axe-core cannot be fetched")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(
        [npm, "install", "--silent", "--no-audit", "--no-fund", "axe-core@4"],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
    )
    source = folder / "node_modules" / "axe-core" / "axe.min.js"
    if done.returncode != 0 or not source.is_file():
        pytest.skip(f"axe-core cannot be fetched from npm: {done.stderr[-200:]}")
    return source.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_serious_violation(browser, review, axe, view):
    def check(page):
        page.evaluate(axe)
        violations = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)")
        return [
            f"{each['id']}: {each['nodes'][0]['html'][:120]}"
            for each in violations
            if each["impact"] in {"serious", "critical"}
        ]

    looked_at(browser, review, view, check)


@dataclasses.dataclass
class Server:
    """`surelabel review` in a process of its own, which can be killed."""

    arguments: list
    port: int
    process: subprocess.Popen | None = None

    def start(self):
        log = subprocess.DEVNULL
        command = [sys.executable, "-m", "surelabel", "review", *self.arguments, "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.3)
            assert self.process.poll() is None, "the server ended"
        raise AssertionError("the server did not become ready")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.mark.slow
def test_forty_texts_by_keyboard_with_a_reload_and_a_killed_server(browser, tmp_path):
    """The whole way: train, review forty texts, reload, kill -9, start again, finish, and compare the export."""
    corpus = corpora.load("synthetic", n_texts=900, n_labels=8)
    model = train_bundle(corpus, TrainingSettings(compared={})).save(tmp_path / "model")
    test = corpus.part("test")
    truth = dict(zip(test.ids, test.label_sets, strict=True))
    file = tmp_path / "texts.csv"
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "text", "source"])
        writer.writerows([name, text, "wire"] for name, text in list(zip(test.ids, test.texts, strict=True))[:80])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Server([model, file, "--check", "0.3", "--significance", "0.02"], port)
    server.start()
    desk = Desk(browser, f"http://127.0.0.1:{port}")
    page = desk.page
    done = {}
    killed_at = None
    try:
        while len(done) < 40:
            desk.until(lambda: desk.number is not None or page.locator("#go-on").is_visible())
            name = desk.number
            if name is None:
                desk.until(lambda: page.evaluate("document.activeElement.id") == "go-on")
                desk.press("Enter")  # on to the next queue, at the end to the summary
                page.wait_for_selector("#work:not([hidden]), #closing:not([hidden])")
                if page.locator("#closing").is_visible():  # filed texts can be looked at too
                    page.focus("#tab-check")
                    desk.press("ArrowRight")
                    page.wait_for_selector("#work:not([hidden])")
                    page.focus("#text-title")
                continue
            wanted = truth[name]
            assert name not in done
            for label in sorted(wanted ^ set(desk.chosen)):
                desk.press("Escape", "/")
                desk.type(label)
                desk.press("Enter")
            assert set(desk.chosen) == wanted, (len(done), desk.number, name, page.inner_text("#status"))
            desk.press("Enter")
            done[name] = wanted
            if len(done) == 12:
                page.reload()
                desk.ready()
            if killed_at is None and len(done) >= 15 and page.locator("#texts button").count() >= 4:
                server.kill()
                killed_at = len(done)
            if killed_at is not None and len(done) == killed_at + 3:
                page.wait_for_selector("#unsaved:not([hidden])")
                server.start()
                desk.saved()
                page.reload()
                desk.ready()
        assert killed_at is not None
        desk.saved()
        with ReviewStore(f"{file}.reviews.sqlite") as store:
            decisions = {decision.text_id: set(decision.chosen) for decision in store.decisions()}
            n_history = len(store.history())
        assert decisions == {name: set(labels) for name, labels in done.items()}
        assert n_history == 40  # none twice
        page.click("#summary")
        page.wait_for_selector("#closing:not([hidden])")
        with page.expect_download() as download:
            page.click("#export-jsonl")
        rows = [json.loads(line) for line in download.value.path().read_text(encoding="utf-8").splitlines()]
        assert len(rows) == 80
        exported = {row["id"]: set(row["final_labels"]) for row in rows if row["decided_by"] == "Ann"}
        assert exported == decisions
        assert {row["source"] for row in rows} == {"wire"}
        assert all(re.fullmatch("choose|read|check|filed", row["queue"]) for row in rows)
        desk.close()
    finally:
        server.process.kill()
        server.process.wait()
