"""The metrics of a service for Prometheus, in a registry of their own."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from surelabel._version import __version__

if TYPE_CHECKING:
    from surelabel.answers import Answer
    from surelabel.service.sharing import Shared

__all__ = ["ServiceMetrics"]

# prometheus_client declares no types here.
_of_all_processes: Callable[..., object] = MultiProcessCollector
_forget_process: Callable[[int, str], object] = mark_process_dead
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SIZES = (0, 1, 2, 5, 10, 20, 50, 100, 1e3, 1e4, 1e6, 1e9, 1e12, 1e16)
_SHARES = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class ServiceMetrics:
    """Counters and histograms of one service.

    With PROMETHEUS_MULTIPROC_DIR in the environment when a process starts, processes with the same folder there add to
    the same ones, and each shows the sums.
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
        self._shown: Callable[[], Iterator[tuple[str, str, float]]] = lambda: iter(())
        if self._folder is None:
            ProcessCollector(registry=registry)
        counter, gauge = functools.partial(Counter, registry=registry), functools.partial(Gauge, registry=registry)
        histogram = functools.partial(Histogram, registry=registry)
        self.requests = counter("surelabel_requests", "Requests by endpoint and status.", ["endpoint", "status"])
        words = "Time from a request's head to the end of its answer."
        self.request_seconds = histogram("surelabel_request_seconds", words, ["endpoint"], buckets=_SECONDS)
        self.requests_now = gauge("surelabel_requests_now", "Requests under way.", multiprocess_mode="livesum")
        self.queue_texts = gauge("surelabel_queue_texts", "Texts that wait.", multiprocess_mode="livesum")
        self.batch_texts = histogram("surelabel_batch_texts", "Texts in a batch.", buckets=_COUNTS)
        self.batch_requests = histogram("surelabel_batch_requests", "Requests in a batch.", buckets=_COUNTS)
        self.texts = counter("surelabel_texts", "Texts that were answered.")
        self.empty_sets = counter("surelabel_empty_sets", "Texts without a plausible label-set.")
        words = "Plausible label-sets per text (the lower bound if the number is not known)."
        self.set_size = histogram("surelabel_set_size", words, buckets=_SIZES)
        words = "Highest p-value: low if a text is unlike the calibration texts."
        self.credibility = histogram("surelabel_credibility", words, buckets=_SHARES)
        words = "Time of a batch in the classifier."
        self.classifier_seconds = histogram("surelabel_classifier_seconds", words, buckets=_SECONDS)
        words = "Time of a batch in the conformal step."
        self.conformal_seconds = histogram("surelabel_conformal_seconds", words, buckets=_SECONDS)
        words = "Processor time of the conformal step."
        self.conformal_processor_seconds = counter("surelabel_conformal_processor_seconds", words)
        self.ready = gauge("surelabel_ready", "1 if the service is ready.", multiprocess_mode="livemin")
        build = gauge("surelabel_build", "The version.", ["version"], multiprocess_mode="livemax")
        build.labels(__version__).set(1)

    def show(self, shared: Shared) -> None:
        """Add what a watch knows, and what became of answers under an id."""
        self._shown = lambda: _values_of(shared)

    def saw_batch(self, n_requests: int, n_texts: int) -> None:
        """Count a batch."""
        self.batch_requests.observe(n_requests)
        self.batch_texts.observe(n_texts)

    def saw_conformal(self, seconds: float, processor_seconds: float) -> None:
        """Count time in the conformal step."""
        self.conformal_seconds.observe(seconds)
        self.conformal_processor_seconds.inc(processor_seconds)

    def saw_answers(self, answers: Iterable[Answer]) -> None:
        """Count what was answered."""
        for answer in answers:
            lower, upper = answer.size_bounds
            self.texts.inc()
            if upper == 0:
                self.empty_sets.inc()
            # A float holds sizes up to 10^308; the last bucket begins long before.
            self.set_size.observe(float(min(lower, 10**300)))
            self.credibility.observe(answer.highest_p_value)

    def exposition(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        counted = self.registry
        if self._folder is not None:
            _forget_dead(Path(self._folder))
            counted = CollectorRegistry()
            _of_all_processes(counted, path=self._folder)
        read = CollectorRegistry()
        read.register(_Read([*_shares(counted), *self._shown()]))
        return generate_latest(counted) + generate_latest(read)


class _Read(Collector):
    """Gauges that are read, not counted: name, what it says, value."""

    def __init__(self, gauges: Iterable[tuple[str, str, float]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield them as Prometheus wants them."""
        for name, words, value in self._gauges:
            yield GaugeMetricFamily(f"surelabel_{name}", words, value)


def _shares(registry: CollectorRegistry) -> Iterator[tuple[str, str, float]]:
    """Yield the two shares that people look at first."""
    values = {sample.name: sample.value for metric in registry.collect() for sample in metric.samples}
    empty, texts, conformal, classifier = (
        values.get(f"surelabel_{name}", 0.0)
        for name in ("empty_sets_total", "texts_total", "conformal_seconds_sum", "classifier_seconds_sum")
    )
    yield "empty_set_share", "Share of texts with an empty set.", empty / max(texts, 1.0)
    words = "Conformal step's share of the time that classifier and conformal step take."
    yield "conformal_time_share", words, conformal / (conformal + classifier or 1.0)


def _values_of(shared: Shared) -> Iterator[tuple[str, str, float]]:
    """Yield what a watch knows, and what became of answers under an id."""
    if shared.watch is not None:
        state = shared.watch.state()
        yield "watch_texts", "Texts that were watched.", state.n_seen
        yield "watch_log10_capital", "Capital of the watch, as a power of ten.", state.log10_martingale
        yield "watch_alarm", "1 from the watch's alarm on.", float(state.alarm)
    counts = shared.outcomes.counts()
    yield "outcomes_settled", "Texts whose true label-set is known.", counts["n_settled"]
    yield "outcomes_missed", "Those whose answer did not hold it.", counts["n_missed"]
    yield "outcomes_waiting", "Texts that wait for their outcome.", counts["n_waiting"]
    yield "outcomes_alarm", "1 from the alarm of outcomes on.", float(counts["alarm"])
    if counts["level"] is not None:
        yield "outcomes_level", "The level of the next text, which follows errors.", float(counts["level"])


def _forget_dead(folder: Path) -> None:
    """Remove the gauges of processes that are gone; what they counted stays."""
    for path in folder.glob("gauge_live*.db"):
        process = int(re.findall(r"[0-9]+", path.name)[-1])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            _forget_process(process, str(folder))
