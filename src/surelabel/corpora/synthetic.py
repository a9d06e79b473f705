"""An embedded corpus that needs nothing from outside: a generator with a seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surelabel.corpora.corpus import Corpus, Provenance
from surelabel.exceptions import InvalidInputError

# Six families of four subjects, each with words of its own. Labels of one family tend to occur together.
_SUBJECTS = {
    "trade": "exports imports tariff deficit surplus goods customs partner",
    "oil": "crude barrel refinery drilling pipeline petroleum tanker output",
    "elections": "ballot voters candidate campaign poll turnout coalition mandate",
    "football": "striker goal league penalty midfield keeper derby coach",
    "medicine": "patients clinic therapy dose symptoms diagnosis nurse trial",
    "software": "compiler server database release bug kernel library interface",
    "currencies": "dollar yen exchange devaluation pound parity reserves float",
    "gas": "methane turbine terminal cubic liquefied storage heating winter",
    "parliament": "bill minister vote committee speaker opposition amendment chamber",
    "athletics": "sprint marathon medal record hurdles relay stadium pole",
    "genetics": "genome mutation dna heredity chromosome sequencing cell protein",
    "networks": "router packet bandwidth protocol wireless latency fibre switch",
    "banking": "loan deposit lender credit mortgage branch liquidity rate",
    "wind": "rotor offshore breeze megawatt blade grid coastal farm",
    "diplomacy": "embassy treaty envoy summit sanctions talks delegation visa",
    "cycling": "peloton sprinter climb saddle stage jersey breakaway wheel",
    "vaccines": "immunity antibody booster outbreak virus jab epidemic inoculation",
    "security": "encryption password breach malware firewall exploit token audit",
    "insurance": "premium claim policy underwriter liability damages actuary risk",
    "coal": "mine shaft seam colliery furnace ash tonnage miner",
    "courts": "judge verdict appeal plaintiff trial jury lawyer sentence",
    "chess": "gambit bishop rook endgame checkmate opening pawn grandmaster",
    "nutrition": "diet vitamin calories protein fibre sugar obesity meal",
    "robotics": "actuator sensor gripper autonomous drone servo navigation joint",
}
_FAMILIES = 6
_COMMON_WORDS = (
    "the of and to in a said that it was for on is by with as at from its be has were this which are an had "
    "will not year would last new more after two about one first week people report government group company"
)
_COMMON = _COMMON_WORDS.split()
_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu")


def generate_synthetic(n_texts: int = 2_000, n_labels: int = 24, seed: int = 0) -> Corpus:
    """Make a corpus of short texts with correlated labels and a long tail of rare ones.

    The k-th label is the main one with a probability proportional to 1/k; a second label comes from the same
    family in 35 % of texts, a third from any in 12 %. Of the 15 to 60 words of a text four in ten belong to its labels
    and one in twenty to another label.

    All texts are in the training part. The first 24 labels have English names and words, the others made-up ones. The
    same seed gives the same corpus on every machine.
    """
    for name, value, least in (("n_texts", n_texts, 1), ("n_labels", n_labels, 2), ("seed", seed, 0)):
        if value < least:
            raise InvalidInputError(f"The {name!r} of the synthetic corpus must be at least {least}. Got {value!r}.")
    vocabulary = [_subject(label) for label in range(n_labels)]
    # The stream of RandomState is frozen, and only sums and quotients follow it: no machine differs.
    state = np.random.RandomState(seed)
    cumulative = np.cumsum(1.0 / np.arange(1, n_labels + 1))
    texts, label_sets = [], []
    for _ in range(n_texts):
        labels = draw_labels(state, cumulative)
        texts.append(draw_text(state, labels, vocabulary))
        label_sets.append({vocabulary[label][0] for label in labels})
    return Corpus.from_label_sets(
        "synthetic",
        texts,
        label_sets,
        ids=[f"synthetic-{number}" for number in range(n_texts)],
        label_names=[name for name, _ in vocabulary],
        provenance=Provenance(
            source=f"generator, n_texts={n_texts}, n_labels={n_labels}, seed={seed}",
            rule="main label by Zipf's law, second from its family, third from anywhere",
            licence="no rights attached",
        ),
    )


def _subject(label: int) -> tuple[str, list[str]]:
    """Return a label's name and its words."""
    names = list(_SUBJECTS)
    if label < len(names):
        return names[label], _SUBJECTS[names[label]].split()
    base = len(_SYLLABLES)
    digits = [_SYLLABLES[label // base**place % base] for place in range(4)]
    words = [digits[0] + digits[1] + syllable + digits[2] + digits[3] for syllable in _SYLLABLES[:8]]
    return f"subject-{label + 1}", words


def draw_labels(state: np.random.RandomState, cumulative: npt.NDArray[np.float64]) -> list[int]:
    """Draw one to three labels, the main one first."""
    n_labels = len(cumulative)
    main = min(int(np.searchsorted(cumulative, state.random_sample() * cumulative[-1], side="right")), n_labels - 1)
    labels = [main]
    if state.random_sample() < 0.35:
        family = np.arange(main % _FAMILIES, n_labels, _FAMILIES)
        labels.append(int(family[int(state.random_sample() * len(family))]))
    if state.random_sample() < 0.12:
        labels.append(int(state.random_sample() * n_labels))
    return list(dict.fromkeys(labels))


def draw_text(state: np.random.RandomState, labels: list[int], vocabulary: Sequence[tuple[str, list[str]]]) -> str:
    """Draw the words of a text from its labels', others' and the common ones; `vocabulary` has each label's."""
    n_words = 15 + int(state.random_sample() * 46)
    words = []
    for kind, which, place in state.random_sample((n_words, 3)):
        if kind < 0.40:
            source = vocabulary[labels[int(which * len(labels))]][1]
        elif kind < 0.45:
            source = vocabulary[int(which * len(vocabulary))][1]
        else:
            source = _COMMON
        words.append(source[int(place * len(source))])
    return " ".join(words).capitalize() + "."
