"""What the three verdicts are worth: how many texts are filed, chosen for and read, and how many guesses are wrong.

    python benchmarks/decisions.py --out results/decisions.json FILE.npz [FILE.npz ...]

Files are those of `surelabel.probabilities_file`. Figures are means over random re-splits of calibration and test
texts, so that both are exchangeable, and beside them those of the corpus' own split: for Reuters one in time. Known
words are those of the terms that the linear classifier takes from the training texts, if the corpus can be loaded;
otherwise all words count as known. The share of true tags that may be missed is chosen on validation texts, as `train`
does. Figures of other files that are in the output stay there.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import Automation, ConformalLabelSets, LogLoss, TagBounds, corpora
from surelabel._core.storage import atomic_file
from surelabel.exceptions import CalibrationWarning
from surelabel.guarantees.decisions import Decisions
from surelabel.guarantees.familiarity import Familiarity
from surelabel.models.deciding import DecisionSettings
from surelabel.models.verdict import judge
from surelabel.probabilities_file import PartProbabilities, Probabilities
from surelabel.text.settings import LinearSettings
from surelabel.text.terms import Terms

N_SPLITS = 50
# Test texts of each re-split that are judged.
N_JUDGED = 2_000
# No texts of a user's own are in another language: made-up texts that must be flagged.
STRANGE = (
    "",
    "asdf qwer",
    "\U0001f600 \U0001f600",
    "Die Ernte war in diesem Jahr sehr schlecht, sagte er.",
    "小麦の価格が上昇した",
)


def known_words(made: Probabilities) -> tuple[dict[str, float], list[float | None]]:
    """Return the share of known words by text id, empty if the corpus cannot be loaded, and that of strange texts."""
    name = made.settings["corpus"]
    if not isinstance(name, str):
        return {}, []
    corpus = corpora.load(name, seed=made.settings["seed"])
    terms = Terms(LinearSettings())
    terms.fit(list(corpus.part("train").texts))
    shares = {}
    for part in made.parts:
        texts = corpus.part(part)
        known = np.where([any(map(str.isalnum, text)) for text in texts.texts], terms.known(list(texts.texts)), np.nan)
        shares |= dict(zip(map(str, texts.ids), known.tolist(), strict=True))
    strange = [
        share if any(map(str.isalnum, text)) else None
        for text, share in zip(STRANGE, terms.known(list(STRANGE)), strict=True)
    ]
    return shares, strange


def of_texts(part: PartProbabilities, known: dict[str, float]) -> Any:
    return np.array([known.get(identity, 1.0) for identity in part.ids])


def judged(plan: Decisions, made: Probabilities, parts: tuple[PartProbabilities, ...], known: dict[str, float]) -> Any:
    """Certify with one part and judge on the other; return the decisions and the verdict."""
    calibration, test = parts
    predictor = ConformalLabelSets(LogLoss(), 1, made.max_labels).calibrate(
        calibration.probabilities, calibration.labels
    )
    decisions = plan.calibrate(calibration.probabilities, calibration.labels, of_texts(calibration, known))
    verdict = judge(predictor, decisions, test, of_texts(test, known), name="test")
    return decisions, verdict


def some(part: PartProbabilities, seed: int) -> PartProbabilities:
    rows = np.sort(np.random.default_rng(seed).permutation(len(part))[:N_JUDGED])
    return PartProbabilities(part.probabilities[rows], part.labels[rows], tuple(part.ids[row] for row in rows))


def shown(verdicts: list[Any]) -> dict[str, Any]:
    """Return means of verdicts; wrong shares are pooled over texts."""
    figures: dict[str, Any] = {"level": max({one.level for one in verdicts}, key=[one.level for one in verdicts].count)}
    for name, wrong in (("file", "wrong_filed"), ("choose", "wrong_choose"), ("read", "wrong_read")):
        shares = np.array([getattr(one, name) for one in verdicts])
        rates = np.array([getattr(one, wrong) or 0.0 for one in verdicts])
        figures[name] = {"share": float(shares.mean())}
        figures[name]["wrong"] = float((rates * shares).sum() / shares.sum()) if shares.any() else None
    figures["missed"] = float(np.mean([one.missed for one in verdicts]))
    figures["tags_to_consider"] = float(np.mean([one.considered for one in verdicts]))
    return figures


def seconds(work: Any) -> float:
    """Return the least time of ten runs: other processes only add to it."""
    times = []
    for _ in range(10):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(file: Path, max_wrong: float) -> dict[str, Any]:
    made = Probabilities.load(file)
    known, strange = known_words(made)
    validation = made.parts["validation"]
    automation = Automation(max_wrong, max_labels=made.max_labels)
    automation = automation.choose_score(validation.probabilities, validation.labels)
    max_missed = DecisionSettings().settled(validation).max_missed
    plan = Decisions(automation, TagBounds(max_missed), Familiarity())
    verdicts, past, flagged = [], 0, []
    for seed in range(N_SPLITS):
        calibration, test = made.redivided(seed)
        decisions, verdict = judged(plan, made, (calibration, some(test, seed)), known)
        verdicts.append(verdict)
        filed = decisions.filed(test.probabilities, of_texts(test, known))
        wrong = (decisions.automation.predict(test.probabilities).labels != test.labels).any(axis=1)
        past += bool(filed.any() and wrong[filed].mean() > max_wrong)
        flagged.append(
            float(
                np.mean(
                    decisions.familiarity.flags(
                        decisions.automation.totals(test.probabilities)[:, 0], of_texts(test, known)
                    )
                    > 0
                )
            )
        )
    decisions, own = judged(plan, made, (made.parts["calibration"], some(made.parts["test"], 0)), known)
    test = made.parts["test"].probabilities
    least = decisions.familiarity.fewest_known_
    return {
        "n_labels": test.shape[1],
        "n_calibration": len(made.parts["calibration"]),
        "n_splits": N_SPLITS,
        "max_wrong": max_wrong,
        "max_missed": float(max_missed),
        "short_list": decisions.longest_list,
        "score": plan.automation.score,
        "first_share": plan.automation.first_share,
        "with_known_words": bool(known),
        "re-split": {
            **shown(verdicts),
            "splits_past_max_wrong": past / N_SPLITS,
            "unfamiliar": float(np.mean(flagged)),
        },
        "own split": shown([own]),
        "strange_texts_flagged": None
        if not known
        else all(share is None or share == 0 or share < least for share in strange),
        "microseconds_per_text": {
            "decide": seconds(lambda: decisions.automation.decide(test)) * 1e6 / len(test),
            "tag_bounds": seconds(lambda: decisions.tag_bounds.predict(test)) * 1e6 / len(test),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/decisions.json"))
    parser.add_argument("--max-wrong", type=float, default=0.05)
    given = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    results = json.loads(given.out.read_text(encoding="utf-8")) if given.out.is_file() else {}
    for file in given.files:
        results[file.stem] = measure(file, given.max_wrong)
        print(file.stem, json.dumps(results[file.stem], indent=1), flush=True)
        with atomic_file(given.out) as temporary:
            temporary.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
