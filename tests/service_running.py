"""A small model whose answers are known, and real services on the loopback address."""

import contextlib
import dataclasses
import re
import socket
import threading
import time

import httpx
import numpy as np
import uvicorn

from surelabel import ByGroup, ConformalLabelSets, LpNorm
from surelabel.models import Bundle, BundleInfo, DecisionSettings
from surelabel.models.deciding import uncertified
from surelabel.service import ServiceSettings, create_app
from surelabel.service.connections import limited_connections
from surelabel.text import Explanation, WordWeight

NAMES = ("corn", "grain", "trade", "wheat", *(f"topic-{number:02d}" for number in range(5, 91)))
HOSTILE = '<script>alert(1)</script><img src=x onerror="document.title=1"> \u202eevil\u202c שלום 👩‍👩‍👧 \u0000 end'


class KeywordClassifier:
    """Names of labels in a text make them likely; a text without any makes nothing likely and nothing unlikely."""

    kind = "keyword"
    label_names_ = NAMES
    tells_words = False

    def predict_proba(self, texts):
        names = self.label_names_
        rows = np.full((len(texts), len(names)), 0.02)
        for row, text in zip(rows, texts, strict=True):
            words = set(text.lower().replace(",", " ").split())
            if "break" in words:
                raise ValueError("this text breaks the classifier")
            known = [number for number, name in enumerate(names) if name in words]
            row[known] = 0.93
            if "maybe" in words:
                row[:8] = np.clip(row[:8], 0.35, 0.8)
            if not known:
                row[:] = 0.45
        return rows

    def known_words(self, texts):
        if not self.tells_words:
            return np.ones(len(texts))
        known = {*self.label_names_, "maybe"}
        words = [text.lower().replace(",", " ").split() for text in texts]
        return np.array([np.mean([word in known for word in row]) if row else np.nan for row in words])

    def explain(self, text, label):
        """Every place where the label's name stands speaks for it."""
        places = re.finditer(re.escape(label), text)
        words = tuple(WordWeight(place.start(), place.end(), place.group(), 1.0) for place in places)
        return Explanation(label, float(len(words)), words)


def make_bundle(names=NAMES, *, max_wrong=None, **parts):
    """Calibrate on texts of one to three label names; some have a label too few or too many, a few twenty too many.

    With `max_wrong` it decides what to do with a text.
    """
    rng = np.random.default_rng(0)
    classifier = KeywordClassifier()
    classifier.label_names_ = names
    label_sets = [rng.choice(12, size=rng.integers(1, 4), replace=False) for _ in range(399)]
    labels = np.zeros((399, len(names)), dtype=bool)
    for row, chosen in zip(labels, label_sets, strict=True):
        row[chosen] = True
    texts = [
        " ".join(names[number] for number in chosen) + " maybe" * (i % 5 == 0) for i, chosen in enumerate(label_sets)
    ]
    wrong = rng.random(399) < 0.1
    labels[wrong, rng.integers(0, 12, size=int(wrong.sum()))] ^= True
    labels[~labels.any(axis=1), 0] = True
    labels[:16, 60:80] = True
    probabilities = classifier.predict_proba(texts)
    predictor = ConformalLabelSets(LpNorm(2), label_names=names).calibrate(probabilities, labels)
    if max_wrong is not None:
        classifier.tells_words = True
        plan = uncertified(DecisionSettings(max_wrong=max_wrong), predictor, names)
        parts["decisions"] = plan.calibrate(probabilities, labels, classifier.known_words(texts))
    info = BundleInfo("keywords", "keyword", "2025-01-01T00:00:00Z", {}, {}, "made up", "0", {}, {}, 0, "L2")
    return dataclasses.replace(Bundle(classifier, predictor, info), **parts)


def grouped_bundle():
    """Return the usual bundle, calibrated by channel."""
    plain = make_bundle()
    rng = np.random.default_rng(1)
    label_sets = [rng.choice(12, size=2, replace=False) for _ in range(200)]
    labels = np.zeros((200, len(NAMES)), dtype=bool)
    for row, chosen in zip(labels, label_sets, strict=True):
        row[chosen] = True
    texts = [" ".join(NAMES[k] for k in chosen) for chosen in label_sets]
    predictor = ConformalLabelSets(LpNorm(2), label_names=NAMES, taxonomy=ByGroup())
    predictor.calibrate(plain.classifier.predict_proba(texts), labels, groups=["mail", "chat"] * 100)
    info = dataclasses.replace(plain.info, group_column="channel")
    return dataclasses.replace(plain, predictor=predictor, info=info)


@dataclasses.dataclass
class Running:
    """A service that runs."""

    url: str
    server: uvicorn.Server
    thread: threading.Thread
    app: object

    def stop(self):
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()

    def client(self, **options):
        return httpx.Client(base_url=self.url, timeout=30, **options)


def start(bundle, settings=None, *, wait=True, reviewing=None, **options):
    """Start a service in a thread, on a free port."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = create_app(bundle, settings or ServiceSettings(), reviewing)
    connections = limited_connections(settings or ServiceSettings())
    config = uvicorn.Config(app, http=connections, log_config=None, access_log=False, ws="none", **options)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    running = Running(f"http://127.0.0.1:{listening.getsockname()[1]}", server, thread, app)
    deadline = time.monotonic() + 180
    while not (app.state.ready if wait else server.started):
        assert time.monotonic() < deadline, "the service did not become ready"
        time.sleep(0.02)
    return running


@contextlib.contextmanager
def serving(bundle, settings=None, **options):
    running = start(bundle, settings, **options)
    try:
        yield running
    finally:
        running.stop()
