"""What a model is good for: counted by hand, the level that is recommended, and what the commands do with it."""

import dataclasses
import re

import numpy as np
import pytest

from bundle_cases import corpus, small_bundle
from cases import calibration_warnings_ignored
from surelabel import Automation, ConformalLabelSets, LogLoss, TagBounds, load_bundle, train
from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.decisions import Decisions
from surelabel.guarantees.familiarity import Familiarity
from surelabel.models import (
    DecisionSettings,
    TrainingSettings,
    add_to_calibration,
    calibrate_bundle,
    measure_bundle,
    train_bundle,
)
from surelabel.models.card import model_card
from surelabel.models.deciding import settings_of
from surelabel.models.verdict import judge
from surelabel.probabilities_file import PartProbabilities


def _texts(n_texts, noise, seed=0, n_labels=6):
    rng = np.random.default_rng(seed)
    labels = rng.random((n_texts, n_labels)) < 0.25
    labels[~labels.any(axis=1), 0] = True
    evidence = np.where(labels, 2.5, -2.5) + noise * rng.standard_normal((n_texts, n_labels))
    return 1 / (1 + np.exp(-5 * evidence / noise**2)), labels


def _judged(noise, max_wrong=0.1, name="held-out", **options):
    probabilities, labels = _texts(1_500, noise)
    with calibration_warnings_ignored():
        predictor = ConformalLabelSets(LogLoss()).calibrate(probabilities[:700], labels[:700])
        plan = Decisions(Automation(max_wrong), TagBounds(0.1, 0.1), Familiarity())
        decisions = plan.calibrate(probabilities[:700], labels[:700], np.ones(700))
        part = PartProbabilities(probabilities[700:], labels[700:], tuple(map(str, range(800))))
        known = np.ones(800)
        known[:8] = np.nan
        return predictor, decisions, part, known, judge(predictor, decisions, part, known, name=name, **options)


def test_the_figures_are_those_of_the_decisions():
    predictor, decisions, part, known, verdict = _judged(1.2)
    sets = predictor.predict_set(part.probabilities, significance=verdict.level)
    bounds = list(zip(*(bound.tolist() for bound in sets.size_bounds()), strict=True))
    answers = decisions.decide(part.probabilities, bounds, known)
    wrong = (predictor.predict(part.probabilities).labels != part.labels).any(axis=1)
    for name, share, wrong_share in (
        ("file", verdict.file, verdict.wrong_filed),
        ("choose", verdict.choose, verdict.wrong_choose),
        ("read", verdict.read, verdict.wrong_read),
    ):
        rows = np.array([answer.decision == name for answer in answers])
        assert rows.any()
        assert share == rows.mean()
        assert wrong_share == wrong[rows].mean()
    assert verdict.missed == np.mean(~sets.contains(part.labels))
    assert verdict.considered == np.mean([len(answer.consider) for answer in answers])
    assert verdict.wrong_filed < verdict.wrong_choose
    assert verdict.words[0].startswith("Of 800 held-out texts ")
    assert verdict.words[-1] == f"Recommended: significance {verdict.level}."
    assert verdict.to_dict()["words"] == list(verdict.words)


def test_tags_are_named_if_label_sets_are_too_many_to_choose_from():
    *_, verdict = _judged(1.2)
    assert verdict.typical_choices <= 9
    assert verdict.typical_tags is None
    many = dataclasses.replace(verdict, typical_choices=39_601, typical_tags=12)
    assert many.words[2] == (
        f"A typical text to choose for has 39,601 plausible label-sets at significance {verdict.level}: "
        "choose among its 12 tags to consider."
    )


def test_the_smallest_level_with_short_lists_for_half_of_the_texts_is_recommended():
    *_, sure = _judged(1.3)
    predictor, decisions, part, known, unsure = _judged(2.6)
    assert sure.level == "0.05"
    assert unsure.level in {"0.1", "0.2"}

    def share_short(level):
        upper = predictor.predict_set(part.probabilities, significance=level).size_bounds()[1]
        return np.mean([1 <= size <= decisions.max_choices for size in upper.tolist()])

    assert share_short("0.05") < 0.5
    assert share_short(unsure.level) >= 0.5 or unsure.level == "0.05"
    asked = judge(predictor, decisions, part, known, name="held-out", level="0.01")
    assert asked.level == "0.01"


def test_where_nothing_can_be_filed_it_says_so():
    *_, verdict = _judged(3.5)
    assert verdict.file == 0.0
    assert verdict.wrong_filed is None
    assert verdict.filing.startswith("Nothing can be filed with at most 10 % of them wrong")
    assert "--max-wrong" not in verdict.filing  # the next promises, 20 %, cannot be kept either
    assert verdict.filing in verdict.words


def test_where_nothing_can_be_filed_a_weaker_promise_is_named():
    *_, verdict = _judged(1.4, max_wrong=0.01)
    share = re.search(
        r" With at most 10 % wrong \(--max-wrong 0.1\) about (\d+) % of texts could be filed\.$", verdict.filing
    )
    *_, weaker = _judged(1.4, max_wrong=0.1)
    assert abs(int(share[1]) - 100 * weaker.file) <= 15  # by 800 and by 692 texts
    *_, unnamed = _judged(1.4, max_wrong=0.01, name="calibration")  # these texts certify it, and must not choose it
    assert "--max-wrong" not in unnamed.filing


def test_kinds_of_texts_that_are_missed_are_named():
    rng = np.random.default_rng(3)
    probabilities, labels = _texts(2_000, 1.1)
    labels[:, 5] |= labels.sum(axis=1) == 2  # texts with two labels have a third that nothing shows
    probabilities[:, 5] = rng.uniform(0.01, 0.05, 2_000)
    with calibration_warnings_ignored():
        predictor = ConformalLabelSets(LogLoss(), label_names=list("abcdef"))
        predictor.calibrate(probabilities[:1000], labels[:1000])
        plan = Decisions(Automation(0.2), TagBounds(0.2, 0.2), Familiarity())
        decisions = plan.calibrate(probabilities[:1000], labels[:1000], np.ones(1000))
        part = PartProbabilities(probabilities[1000:], labels[1000:], tuple(map(str, range(1000))))
        counts = np.array([500, 500, 500, 500, 500, 3])
        verdict = judge(predictor, decisions, part, np.ones(1000), name="held-out", training_counts=counts, level="0.2")
    kinds = {one.kind for one in verdict.not_kept}
    assert "texts with 3 or more labels" in kinds
    assert "texts whose rarest label has fewer than 10 training texts" in kinds
    said = " ".join(verdict.words)
    assert "It is not kept for " in said
    assert said.count("--by-cardinality") == said.count("--by-rarity") == 1


@pytest.fixture(scope="module")
def bundle():
    return train_bundle(corpus(), TrainingSettings(compared={}, decisions=DecisionSettings(max_wrong="0.2")))


def test_the_recommended_level_is_the_default(bundle, tmp_path):
    assert bundle.level == bundle.info.level == bundle.info.verdict["level"]
    assert bundle.info.verdict["part"] == "validation"
    text = corpus().part("test").texts[0]
    assert bundle.answers([text])[0].significance == bundle.level
    changed = dataclasses.replace(bundle, info=dataclasses.replace(bundle.info, level="0.2"))
    assert load_bundle(changed.save(tmp_path / "model")).answers([text])[0].significance == "0.2"
    assert "## What it is good for" in model_card(bundle)
    assert bundle.info.verdict["words"][0] in model_card(bundle)


def test_a_new_calibration_certifies_anew_and_keeps_what_is_promised(bundle):
    again = calibrate_bundle(bundle, corpus())
    assert settings_of(again.decisions) == settings_of(bundle.decisions)
    assert settings_of(again.decisions).max_wrong == 0.2
    assert again.decisions.automation.threshold_ == bundle.decisions.automation.threshold_
    stricter = calibrate_bundle(bundle, corpus(), decisions=DecisionSettings(max_wrong="0.0001", max_choices=3))
    assert stricter.decisions.automation.share_ == 0.0
    assert "Nothing can be filed" in " ".join(stricter.info.verdict["words"])
    assert stricter.info.short_lists["max_choices"] == 3
    other = calibrate_bundle(small_bundle(), corpus())
    assert other.decisions.automation.max_wrong == 0.2


def test_added_texts_certify_too(bundle):
    part = corpus().part("test")
    more = add_to_calibration(bundle, corpus(), part="test")
    assert len(more.decisions.familiarity._totals) == len(bundle.decisions.familiarity._totals) + len(part)
    assert more.info.verdict["part"] == "added"
    without = dataclasses.replace(bundle, decisions=None)
    assert add_to_calibration(without, corpus(), part="test").decisions is None


def test_measuring_gives_figures_and_a_verdict(bundle):
    measured = measure_bundle(bundle, corpus())
    assert measured.verdict.part == "test"
    assert measured.verdict.n_texts == measured.evaluation.n_texts
    assert measure_bundle(dataclasses.replace(bundle, decisions=None), corpus()).verdict is None


def test_promises_are_settings_of_train():
    made = train(corpus(), compare=False, max_wrong="0.3", max_missed="0.2", max_choices=4)
    assert made.decisions.automation.max_wrong == 0.3
    assert made.decisions.tag_bounds.max_missed == 0.2
    assert made.decisions.max_choices == 4
    with pytest.raises(InvalidInputError, match="max_wrong"):
        train(corpus(), compare=False, max_wrong=1.5)


def test_a_share_of_tags_that_may_be_missed_is_chosen_for_short_lists():
    rng = np.random.default_rng(0)
    probabilities = rng.beta(0.15, 4.0, (400, 60))
    part = PartProbabilities(probabilities, rng.random((400, 60)) < probabilities, tuple(map(str, range(400))))
    lengths = {}
    for share in ("0.05", "0.1", "0.2"):
        tags = TagBounds(share).calibrate(part.probabilities, part.labels)
        lengths[share] = float(np.median(tags.predict(part.probabilities).consider.sum(axis=1)))
    assert lengths["0.05"] > lengths["0.1"] > lengths["0.2"] > 1
    for share, length in lengths.items():
        assert DecisionSettings(max_tags=int(length)).settled(part).max_missed == share
    # No list is short enough, there are no validation texts, or the share is given.
    assert DecisionSettings(max_tags=1).settled(part).max_missed == "0.05"
    assert DecisionSettings(max_tags=int(lengths["0.2"])).settled(None).max_missed == "0.05"
    assert DecisionSettings(max_missed="0.01").settled(part).max_missed == "0.01"
