"""The report: one page, the decision first, whole in itself, and without the texts."""

import dataclasses
import random
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from surelabel import models, report
from surelabel.corpora import Corpus
from surelabel.models.evaluate import evaluate_bundle
from tickets import TOPICS, tickets

HOSTILE = "<script>alert(1)</script>"


def corpus(n, seed=0):
    """Return tickets with the scores of a tagger that is often right; one tag has a hostile name."""
    rng = random.Random(seed)
    rows = tickets(n, seed)
    sets = [{tag.replace("printer", HOSTILE) for tag in row["tags"].split(";")} for row in rows]
    names = [tag.replace("printer", HOSTILE) for tag in TOPICS]
    scores = [
        [(tag, rng.betavariate(5, 2) if tag in true else rng.betavariate(1, 6)) for tag in names] for true in sets
    ]
    ids = [row["id"] for row in rows]
    return Corpus.from_label_sets(f"tickets-{seed}", [row["body"] for row in rows], sets, ids, scores=scores)


@pytest.fixture(scope="module")
def measured():
    """Return a bundle, new texts, their evaluation, and the page about them."""
    bundle = models.train(corpus(700), classifier="scores", max_wrong="0.1")
    new = corpus(150, seed=3)
    evaluation = evaluate_bundle(bundle, new)
    return bundle, new, evaluation, report.render_report(bundle, new, evaluation)


class Page(HTMLParser):
    """The parts of a page that tests look at."""

    VOID = frozenset({"meta", "br", "link", "input", "img"})

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.ids, self.headings, self.text = [], [], [], [], []
        self.links = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        values = dict(attributes)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [value for name, value in attributes if name in {"src", "href", "action"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] in {"h1", "h2", "h3", "summary"}:
            self.headings.append(data.strip())


def test_the_page_is_well_formed_and_needs_nothing_else(measured):
    page = Page(measured[3])
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert "script" not in page.tags
    assert all(link.startswith("#") for link in page.links)
    assert {"h1", "main", "figure", "svg"} <= set(page.tags)
    assert measured[3].startswith("<!DOCTYPE html>")
    assert "default-src 'none'" in measured[3]


def test_the_decision_comes_first_with_the_texts_it_is_about(measured):
    _, _, evaluation, page = measured
    headings = Page(page).headings
    assert headings[0] == "What happens to new texts"
    assert headings.index("Figures") < headings.index("Details")
    text = " ".join(" ".join(Page(page).text).split())
    assert "150 texts of tickets-3 that the model has not seen" in text
    shares = [evaluation.decisions[kind].share for kind in ("file", "choose", "read")]
    found = re.findall(r"<dd>([\d.]+)\N{NO-BREAK SPACE}%</dd>", page)
    assert [float(share) for share in found] == pytest.approx([100 * share for share in shares], abs=0.06)


def test_six_figures_with_their_sentences(measured):
    found = re.findall(r"<svg .*?</svg>", measured[3], re.DOTALL)
    assert len(found) == 6
    for svg in found:
        root = ET.fromstring(svg)
        namespace = "{http://www.w3.org/2000/svg}"
        assert root.find(f"{namespace}title").text
        assert root.find(f"{namespace}desc").text
    assert "currentColor" in measured[3]


def test_no_text_of_the_corpus_is_on_the_page(measured):
    _, new, _, page = measured
    assert not any(text in page for text in new.texts)
    assert not any(" ".join(text.split()[:4]) in page for text in new.texts)


def test_names_stay_names(measured):
    assert HOSTILE not in measured[3]
    assert "&lt;script&gt;" in measured[3]


def test_errors_of_filed_and_seen_texts_stand_in_the_table_of_levels(measured):
    _, _, evaluation, page = measured
    row = next(row for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL) if "10\N{NO-BREAK SPACE}%" in row)
    for rates in (evaluation.errors, evaluation.errors_filed, evaluation.errors_seen):
        assert f"{100 * rates['0.1']:.1f}\N{NO-BREAK SPACE}%" in row


def test_every_tag_has_its_figures(measured):
    _, _, evaluation, page = measured
    for figures in evaluation.result.labels:
        assert f"{100 * figures.recall:.1f}\N{NO-BREAK SPACE}%" in page
    for name in evaluation.result.ranks:
        assert name in page


def test_too_many_errors_are_said_first_and_with_advice(measured):
    bundle, new, _, good = measured
    wrong = [{"invoice"} if true != {"invoice"} else {"account"} for true in new.label_sets]
    other = Corpus.from_label_sets("wrong", new.texts, wrong, new.ids, scores=new.scores)
    page = report.render_report(bundle, other, evaluate_bundle(bundle, other))
    assert "More errors than allowed" in page
    assert "surelabel calibrate" in page
    assert "More errors than allowed" not in good


def test_the_same_input_gives_the_same_page(measured):
    bundle, new, evaluation, page = measured
    assert report.render_report(bundle, new, evaluation) == page


def test_remarks_on_the_texts_are_shown_as_text(measured):
    bundle, new, evaluation, _ = measured
    info = dataclasses.replace(bundle.info, notes=("31 texts are <empty>.",))
    page = report.render_report(dataclasses.replace(bundle, info=info), new, evaluation)
    assert "31 texts are &lt;empty&gt;." in page


def test_the_file_is_replaced_whole(measured, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    report.write_report(path, *measured[:3])
    assert path.read_text(encoding="utf-8") == measured[3]
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
