"""Learning that a button starts: in a process of its own, so that the service stays quick and a crash is only its own.

The process continues what an earlier one began, and writes nothing but the folder of the next generation. It may be
killed at any time; started again, it goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surelabel import corpora
from surelabel._core.progress import Report
from surelabel.exceptions import InvalidInputError, SurelabelError
from surelabel.models import load_bundle
from surelabel.review import learn as learning
from surelabel.review.audits import watch_audits
from surelabel.review.queues import CHECK
from surelabel.review.store import ReviewStore

_NICE = 10


class Learner:
    """Starts learning, follows it, and switches between generations.

    Parameters
    ----------
    model : path
        Folder of the model that serves. The next generation is made in the folder `MODEL.next` beside it.
    url : path or URL
        Of the review store.
    source : str, optional
        Texts that the model was trained on. Without them only a generation that is trained already can continue.
    reading : mapping, optional
        How they are read: options of `corpora.load`.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        url: str | os.PathLike[str],
        source: str | None = None,
        reading: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.out = Path(model), Path(f"{os.fspath(model).rstrip('/')}.next")
        self._job = {"model": str(model), "url": os.fspath(url), "out": str(self.out), "source": source}
        self._job["reading"] = dict(reading or {})  # type: ignore[assignment]
        self._process: subprocess.Popen[str] | None = None
        self._last: dict[str, Any] = {}
        self._alarm: tuple[Any, bool] = (None, False)

    @property
    def is_running(self) -> bool:
        """Whether the process works."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, retrain: bool = True) -> None:
        """Start or continue in the background; nothing happens if it runs already."""
        if self.is_running:
            return
        self._last = {}
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(  # noqa: S603 (this interpreter and this module)
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._process.stdin is not None
        with self._process.stdin as stdin:  # the URL may have a password, which a command line would show
            json.dump({**self._job, "retrain": retrain}, stdin)
        self._follower = threading.Thread(target=self._follow, args=(self._process,), daemon=True)
        self._follower.start()

    def _follow(self, process: subprocess.Popen[str]) -> None:
        """Keep the last that the process says about itself."""
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._last = json.loads(line)
        if process.wait() and "problem" not in self._last:
            self._last = {"problem": "Learning was interrupted. Start it again: it continues."}

    def state(self, store: ReviewStore) -> dict[str, Any]:
        """Return how far the next generation is, what can be done, and whether the watch has raised its alarm."""
        now = learning.status(self.out, store)
        last = self._last
        return {
            **now.to_dict(),
            "lists": max(now.lists, last.get("lists", 0)),
            "is_running": self.is_running,
            "step": {name: last.get(name) for name in ("step", "done", "total")} if self.is_running else None,
            "problem": None if self.is_running else last.get("problem"),
            "can_start": self._job["source"] is not None or now.state == "waiting",
            "can_undo": learning.previous_of(self.model).is_dir(),
            "alarm": self._has_alarm(store),
        }

    def _has_alarm(self, store: ReviewStore) -> bool:
        """Return whether the watch over audits has raised its alarm, computed once for the same audits and model."""
        now = (self.model / "manifest.json").stat().st_mtime_ns, store.counts()[CHECK].decided
        if self._alarm[0] != now:
            self._alarm = now, watch_audits(load_bundle(self.model), store).alarm
        return self._alarm[1]

    def switch(self) -> None:
        """Let the next generation serve."""
        self._check_idle()
        learning.switch(self.model, self.out)

    def undo(self) -> None:
        """Let the generation before serve again."""
        self._check_idle()
        learning.undo_switch(self.model)

    def _check_idle(self) -> None:
        if self.is_running:
            raise InvalidInputError("The next generation is still learning. Wait until it is ready.")


def _say(record: Mapping[str, Any]) -> None:
    """Write a line for the service; if that is gone, go on without it."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(f"{json.dumps(record)}\n")
        sys.stdout.flush()


def _reporting() -> Report:
    """Return a callback that writes each percent of a step once."""
    written: list[tuple[str, int]] = [("", -1)]

    def report(step: str, done: int, total: int | None) -> None:
        now = (step, 100 * done // total if total else -1)
        if now != written[-1]:
            written[-1] = now
            _say({"step": step, "done": done, "total": total})

    return report


def main() -> None:
    """Do one piece of learning, described on standard input; write progress and the outcome as lines of JSON."""
    job = json.load(sys.stdin)
    os.nice(_NICE)
    try:
        corpus = None
        if job["source"] is not None and job["retrain"]:
            corpus = corpora.load(job["source"], parts="own", **job["reading"])
        with ReviewStore(job["url"]) as store:
            found = learning.learn(job["model"], store, job["out"], corpus, retrain=job["retrain"], report=_reporting())
    except SurelabelError as error:
        _say({"problem": str(error)})
        return
    _say(found.to_dict())


if __name__ == "__main__":
    main()
