"""A bundle whose answers follow from the words of a text: no model, no calibration."""

import dataclasses
import types

NAMES = ("corn", "grain", "oil", "trade", "wheat", "Grünkohl", "<b>bold</b>", "topic 8", "topic 9", "topic 10")
HOSTILE = '<script>alert(1)</script><img src=x onerror="document.title=1"> \u202eevil\u202c שלום 👩‍👩‍👧 end'


@dataclasses.dataclass(frozen=True)
class FakeAnswer:
    """An answer with the interface of `surelabel.answers.Answer`."""

    decision: str
    reason: str
    labels: tuple
    consider: tuple
    assign: tuple
    confidence: float
    credibility: float
    significance: str | None = None

    def record(self):
        values = dataclasses.asdict(self)
        level = values.pop("significance")
        record = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        if level is None:
            return record
        size = 1 if self.decision == "file" else len(self.consider)
        top = [{"labels": list(self.labels), "p_value": self.credibility}]
        return record | {
            "significance": level,
            "size": size,
            "size_bounds": [size, size],
            "certain": list(self.assign),
            "open": [tag for tag in self.consider if tag not in self.assign],
            "top": top,
        }


class FakeBundle:
    """Files texts that name labels, unless they say "maybe"; reads texts without any; fails at "break"."""

    def __init__(self, names=NAMES, groups=None, report=None, examples=()):
        self.label_names = tuple(names)
        self.groups = groups
        self.report, self.vocabulary, self.uris = report, None, None
        self.batches = []
        self.classifier = types.SimpleNamespace(alternatives=None)
        self.filing = self.calibration = None
        self.info = types.SimpleNamespace(
            name="Newswire", classifier="linear", measure="log-loss", corpus="made up", notes=("A note.",),
            levels={"max_wrong": "0.05", "max_missed": "0.1", "significance": "0.05"}, verdict=("Good.",),
            group_column=None if groups is None else "channel", examples=examples,
        )  # fmt: skip
        self.predictor = types.SimpleNamespace(calibration_=types.SimpleNamespace(n_texts=399))

    def predict_proba(self, texts):
        return list(texts)

    def answers(
        self, texts, *, significance=None, confidence_level=None, groups=None, assurance=None, top=5, probabilities=None
    ):
        assert probabilities == texts
        self.batches.append(len(texts))
        assert groups is None or len(groups) == len(texts)
        if any("break" in text for text in texts):
            raise RuntimeError("this text breaks the classifier")
        if significance is None and confidence_level is not None:
            significance = f"{1 - float(confidence_level):g}"
        return [self._answer(text, None if significance is None else str(significance)) for text in texts]

    def _answer(self, text, significance):
        named = tuple(name for name in self.label_names if name.lower() in text.lower())
        if not named:
            reason = "The model knows none of its words: read it yourself."
            return FakeAnswer("read", reason, self.label_names[:1], self.label_names, (), 0.3, 0.01, significance)
        if "maybe" in text.lower():
            more = tuple(name for name in self.label_names if name not in named)[:3]
            reason = (
                f"Choose from these {len(named + more)} tags: they leave out at most 10 % of the true tags on average."
            )
            return FakeAnswer("choose", reason, named, named + more, named[:1], 0.9, 0.4, significance)
        reason = "Certified: of the texts that are filed, at most 5 % are wrong."
        return FakeAnswer("file", reason, named, named, named, 0.98, 0.7, significance)

    def predict_p(self, texts, labels, groups=None):
        return [0.7 if set(chosen) <= set(text.split()) else 0.01 for text, chosen in zip(texts, labels, strict=True)]

    def explain(self, text, label):
        start = text.lower().find(label.lower())
        words = [] if start < 0 else [types.SimpleNamespace(start=start, end=start + len(label), weight=1.0)]
        return types.SimpleNamespace(speaking_for=lambda n: words[:n])


class FakeLearner:
    """A learner whose state is set by hand, and that keeps what was asked of it."""

    def __init__(self, **state):
        self.asked = []
        self.now = {
            "state": "absent",
            "needed": {"filing": 336, "lists": 99},
            "filing": 0,
            "lists": 0,
            "is_running": False,
            "step": None,
            "problem": None,
            "can_start": True,
            "can_undo": False,
            "alarm": False,
        } | state

    def state(self, store):
        return self.now

    def start(self, *, retrain):
        self.asked.append("learn" if retrain else "calibrate")
        self.now |= {"is_running": True, "step": {"step": "training", "done": 1, "total": 4}}

    def switch(self):
        self.asked.append("switch")

    def undo(self):
        self.asked.append("undo")
