"""What a service tells Prometheus, in a registry of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from surelabel._version import __version__

if TYPE_CHECKING:
    from surelabel.answers import Answer
    from surelabel.service.outcomes import ServiceOutcomes
    from surelabel.service.watching import ServiceWatch

__all__ = ["ServiceMetrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SIZES = (0, 1, 2, 5, 10, 20, 50, 100, 1e3, 1e4, 1e6, 1e9, 1e12, 1e16)
_SHARES = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class ServiceMetrics:
    """Counters and histograms of one service."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "surelabel_requests", "Requests by endpoint and status.", ["endpoint", "status"], registry=registry
        )
        self.request_seconds = Histogram(
            "surelabel_request_seconds", "Time from a request's head to the end of its answer.", ["endpoint"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self.requests_now = Gauge("surelabel_requests_now", "Requests under way.", registry=registry)
        self.queue_texts = Gauge("surelabel_queue_texts", "Texts that wait.", registry=registry)
        self.batch_texts = Histogram("surelabel_batch_texts", "Texts in a batch.", buckets=_COUNTS, registry=registry)
        self.batch_requests = Histogram(
            "surelabel_batch_requests", "Requests in a batch.", buckets=_COUNTS, registry=registry
        )
        self.texts = Counter("surelabel_texts", "Texts that were answered.", registry=registry)
        self.empty_sets = Counter("surelabel_empty_sets", "Texts without a plausible label-set.", registry=registry)
        self.set_size = Histogram(
            "surelabel_set_size", "Plausible label-sets per text (the lower bound if the number is not known).",
            buckets=_SIZES, registry=registry,
        )  # fmt: skip
        self.credibility = Histogram(
            "surelabel_credibility", "Credibility: low where a text is unlike the calibration texts.",
            buckets=_SHARES, registry=registry,
        )  # fmt: skip
        self.classifier_seconds = Histogram(
            "surelabel_classifier_seconds", "Time of a batch in the classifier.", buckets=_SECONDS, registry=registry
        )
        self.conformal_seconds = Histogram(
            "surelabel_conformal_seconds", "Time of a batch in the conformal step.",
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self.conformal_processor_seconds = Counter(
            "surelabel_conformal_processor_seconds", "Processor time of the conformal step.", registry=registry
        )
        self.ready = Gauge("surelabel_ready", "1 where the service is ready.", registry=registry)
        self._shares()
        Gauge("surelabel_build", "The version.", ["version"], registry=registry).labels(__version__).set(1)

    def _shares(self) -> None:
        """Add the two shares that people look at first, computed from the counters when they are read."""
        self._n_texts = self._n_empty = 0
        self._seconds = {"classifier": 0.0, "conformal": 0.0}
        Gauge("surelabel_empty_set_share", "Share of texts with an empty set.", registry=self.registry).set_function(
            lambda: self._n_empty / max(self._n_texts, 1)
        )
        Gauge(
            "surelabel_conformal_time_share",
            "Conformal step's share of the time that classifier and conformal step take.",
            registry=self.registry,
        ).set_function(lambda: self._seconds["conformal"] / (sum(self._seconds.values()) or 1.0))

    def show_watch(self, watch: ServiceWatch) -> None:
        """Add what a watch knows."""
        texts = Gauge("surelabel_watch_texts", "Texts that were watched.", registry=self.registry)
        texts.set_function(lambda: watch.state.n_seen)
        capital = Gauge(
            "surelabel_watch_log10_capital", "Capital of the watch, as a power of ten.", registry=self.registry
        )
        capital.set_function(lambda: watch.state.log10_martingale)
        alarm = Gauge("surelabel_watch_alarm", "1 from the watch's alarm on.", registry=self.registry)
        alarm.set_function(lambda: float(watch.state.alarm))

    def show_outcomes(self, outcomes: ServiceOutcomes) -> None:
        """Add what became of answers under an id."""

        def gauge(name: str, words: str, value: Callable[[dict[str, Any]], float]) -> None:
            made = Gauge(f"surelabel_outcomes_{name}", words, registry=self.registry)
            made.set_function(lambda: value(outcomes.counts()))

        gauge("settled", "Texts whose true label-set is known.", lambda known: known["n_settled"])
        gauge("missed", "Those whose answer did not hold it.", lambda known: known["n_missed"])
        gauge("waiting", "Texts that wait for their outcome.", lambda known: known["n_waiting"])
        gauge("alarm", "1 from the alarm of outcomes on.", lambda known: float(known["alarm"]))
        if outcomes.adapts:
            gauge("level", "The level of the next text, which follows errors.", lambda known: float(known["level"]))

    def saw_batch(self, n_requests: int, n_texts: int) -> None:
        """Count a batch."""
        self.batch_requests.observe(n_requests)
        self.batch_texts.observe(n_texts)

    def saw_classifier(self, seconds: float) -> None:
        """Count time in the classifier."""
        self.classifier_seconds.observe(seconds)
        self._seconds["classifier"] += seconds

    def saw_conformal(self, seconds: float, processor_seconds: float) -> None:
        """Count time in the conformal step."""
        self.conformal_seconds.observe(seconds)
        self.conformal_processor_seconds.inc(processor_seconds)
        self._seconds["conformal"] += seconds

    def saw_answers(self, answers: Iterable[Answer]) -> None:
        """Count what was answered."""
        for answer in answers:
            lower, upper = answer.size_bounds
            self.texts.inc()
            self._n_texts += 1
            if upper == 0:
                self.empty_sets.inc()
                self._n_empty += 1
            # A float holds sizes up to 10^308; the last bucket begins long before.
            self.set_size.observe(float(min(lower, 10**300)))
            self.credibility.observe(answer.credibility)

    def exposition(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self.registry)
