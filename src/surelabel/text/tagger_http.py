"""Taggers behind HTTP: an Annif server, or any endpoint that takes texts and returns labels with scores.

Answers are kept on disk, by a hash of the text, so a run that was interrupted continues with the same command. The
header that the environment variable SURELABEL_TAGGER_TOKEN holds is sent along. It is never saved or logged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from surelabel._core import progress
from surelabel._core.extras import require
from surelabel.exceptions import InvalidInputError, TaggerError
from surelabel.text.base import Within, settings
from surelabel.text.taggers import Suggestion, Suggestions, Tagger

_log = logging.getLogger(__name__)

TOKEN = "SURELABEL_TAGGER_TOKEN"  # noqa: S105 (a name)
"""Environment variable of a token, sent as `Authorization: Bearer TOKEN`, or of a whole header, `Name: value`."""

_MOST_BYTES = 64 * 2**20
_MOST_WAIT = 60.0
_BUSY = {408, 425, 429, 500, 502, 503, 504}
_KEPT_SECONDS = 7 * 24 * 3600


class _Client:
    """JSON requests to one URL, repeated with growing pauses while the server is out of reach or busy."""

    def __init__(self, url: str, *, timeout: float, retries: int, pause: float) -> None:
        self._httpx = require("httpx", "taggers", "A tagger behind HTTP")
        self.url, self._timeout, self._retries, self._pause = url, timeout, retries, pause
        self._client: Any = self._httpx.Client(headers=_token_header(url), timeout=timeout, follow_redirects=False)

    def close(self) -> None:
        self._client.close()

    def request(self, method: str, path: str, **content: Any) -> Any:
        """Return the JSON of the answer; TaggerError if there is none."""
        problem = ""
        for attempt in range(self._retries + 1):
            pause = 0.0 if attempt == 0 else min(_MOST_WAIT, self._pause * 2 ** (attempt - 1))
            if pause:
                _log.warning("%s Trying again in %.0f s.", problem, pause)
                time.sleep(pause)
            try:
                status, kind, body = self._once(method, self.url + path, content)
            except self._httpx.HTTPError as error:
                problem = f"The tagger {self.url} is out of reach: {type(error).__name__} {error}."
                continue
            if status in _BUSY:
                problem = f"The tagger {self.url} is busy: {_problem_of(status, kind, body)}."
                continue
            if 300 <= status < 400:
                raise TaggerError(
                    f"The tagger {self.url} redirects to another address (status {status}), which is not followed. "
                    "Give the address that answers."
                )
            if status != 200:
                raise TaggerError(f"The tagger {self.url} refuses the request: {_problem_of(status, kind, body)}.")
            return self._json(kind, body)
        raise TaggerError(
            f"{problem} Gave up after {self._retries + 1} attempts. Answers so far are kept, and the same command "
            "continues."
        )

    def _once(self, method: str, url: str, content: dict[str, Any]) -> tuple[int, str, bytes]:
        """Return status, content type and body of one request, within the time-out and the limit on bytes."""
        ends = time.monotonic() + self._timeout
        body = bytearray()
        with self._client.stream(method, url, **content) as response:
            for part in response.iter_bytes():
                body += part
                if len(body) > _MOST_BYTES:
                    raise TaggerError(f"The tagger {self.url} answers with more than {_MOST_BYTES:,} bytes.")
                if time.monotonic() > ends:
                    raise self._httpx.ReadTimeout(f"no complete answer in {self._timeout:g} s")
            return response.status_code, response.headers.get("content-type", ""), bytes(body)

    def _json(self, kind: str, body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise TaggerError(
                f"The tagger {self.url} must answer in JSON. Got {kind or 'no content type'}: {body[:60]!r}."
            ) from error


def _token_header(url: str) -> dict[str, str]:
    """Return the header from the environment; a token is sent over https, or to this machine."""
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        return {}
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}:
        raise InvalidInputError(
            f"{TOKEN} is set, but {parts.hostname} is not reached by https. Use https, or unset it."
        )
    name, separator, value = token.partition(": ")
    header = {name: value} if separator else {"Authorization": f"Bearer {token}"}
    if not all(part.isascii() and part.isprintable() for pair in header.items() for part in pair):
        raise InvalidInputError(f"{TOKEN} must be a token, or a header as 'Name: value', in one line of ASCII.")
    return header


def _problem_of(status: int, kind: str, body: bytes) -> str:
    """Return the status, and title and detail of an application/problem+json body."""
    with contextlib.suppress(ValueError, RecursionError):
        problem = json.loads(body) if "json" in kind else None
        if isinstance(problem, dict):
            said = [str(problem[key])[:200] for key in ("title", "detail") if problem.get(key)]
            return f"status {status}, {': '.join(said)}" if said else f"status {status}"
    return f"status {status}"


class _Kept:
    """Answers on disk, by a key of the question; kept for a week."""

    def __init__(self, path: Path | None) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path or ":memory:", timeout=60)
        with self._database:
            self._database.execute("create table if not exists answers (key text primary key, answer text, at real)")
            self._database.execute("delete from answers where at < ?", (time.time() - _KEPT_SECONDS,))

    def get(self, key: str) -> Suggestions | None:
        row = self._database.execute("select answer from answers where key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            return [Suggestion(str(label), float(score), name) for label, score, name in json.loads(row[0])]
        except (TypeError, ValueError):
            return None

    def put(self, answers: dict[str, Suggestions]) -> None:
        now = time.time()
        rows = [(key, json.dumps(list(map(tuple, answer))), now) for key, answer in answers.items()]
        with self._database:
            self._database.executemany("insert or replace into answers values (?, ?, ?)", rows)

    def close(self) -> None:
        self._database.close()


def _cache_file(url: str) -> Path:
    """Return the file of answers of one tagger: in SURELABEL_CACHE, or the user's cache folder."""
    root = os.environ.get("SURELABEL_CACHE")
    if not root:
        library = require("platformdirs", "taggers", "Keeping a tagger's answers")
        root = library.user_cache_dir("surelabel", appauthor=False)
    return Path(root) / "taggers" / f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.sqlite"


@settings
class _HttpTagger(Tagger):
    """What both kinds share: batches, answers on disk, and the settings of requests."""

    url: str = "http://localhost:5000"
    batch_size: Annotated[int, Within(1, 10_000)] = 32
    timeout: Annotated[float, Within(0.01, 3600)] = 60.0
    retries: Annotated[int, Within(0, 100)] = 5
    pause: Annotated[float, Within(0, 600)] = 1.0
    keep_answers: bool = True

    def _check_settings(self) -> None:
        super()._check_settings()
        parts = urlsplit(str(self.url))
        is_valid = parts.scheme in {"http", "https"} and parts.hostname
        if not is_valid or parts.username or parts.password or parts.query or parts.fragment:
            raise InvalidInputError(
                "The 'url' setting must be an http or https address without user, password, query and fragment. "
                f"Put secrets into {TOKEN}."
            )

    def suggest(self, texts: list[str], scores: Any = None) -> list[Suggestions]:
        """Return the suggestions for each text, from the disk or from the server; empty texts have none."""
        found: dict[str, Suggestions] = {}
        with contextlib.ExitStack() as opened:
            client = _Client(self.url.rstrip("/"), timeout=self.timeout, retries=self.retries, pause=self.pause)
            opened.callback(client.close)
            kept = _Kept(_cache_file(self.url) if self.keep_answers else None)
            opened.callback(kept.close)
            identity = self._identity(client)
            keys = [hashlib.sha256(f"{identity}\0{text}".encode()).hexdigest() for text in texts]
            missing: dict[str, str] = {}
            for key, text in zip(keys, texts, strict=True):
                if not text.strip():
                    found[key] = ()
                elif (answer := kept.get(key)) is not None:
                    found[key] = answer
                else:
                    missing[key] = text
            with progress.step("asking the tagger", len(texts)) as advance:
                advance(len(texts) - len(missing))
                for batch in _batches(list(missing), self.batch_size):
                    answers = self._ask(client, [missing[key] for key in batch])
                    if len(answers) != len(batch):
                        raise TaggerError(
                            f"The tagger {self.url} must answer each of {len(batch)} texts. It answered {len(answers)}."
                        )
                    found.update(zip(batch, answers, strict=True))
                    kept.put({key: found[key] for key in batch})
                    advance(len(batch))
        return [found[key] for key in keys]

    def _identity(self, client: _Client) -> str:
        """Return what tells one state of the tagger from another."""
        return self.url

    def _ask(self, client: _Client, texts: list[str]) -> list[Suggestions]:
        """Return the server's suggestions for at most `batch_size` texts."""
        raise NotImplementedError

    def _suggestions(self, answer: Any) -> Suggestions:
        """Return the suggestions of one text from `[{"label" or "uri", "score"}]`, or raise TaggerError."""
        if not isinstance(answer, list):
            raise TaggerError(f"The tagger {self.url} must list labels with scores. Got {str(answer)[:60]!r}.")
        suggestions = []
        for one in answer:
            names = [one[key] for key in ("uri", "label") if isinstance(one, dict) and isinstance(one.get(key), str)]
            score: Any = one.get("score") if isinstance(one, dict) else None
            is_number = isinstance(score, (int, float)) and not isinstance(score, bool) and math.isfinite(score)
            if not names or not is_number:
                raise TaggerError(
                    f'The tagger {self.url} must list labels as {{"label": ..., "score": ...}}. Got {str(one)[:60]!r}.'
                )
            suggestions.append(Suggestion(names[0], float(score), names[1] if len(names) > 1 else None))
        return suggestions


def _batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))


@settings
class HttpTagger(_HttpTagger):
    """Any endpoint that answers POST {"texts": [...]} with [[{"label", "score"}, ...], ...].

    Parameters
    ----------
    url : str
        An http or https address. Certificates are verified, redirects are not followed.
    batch_size : int
        Texts per request.
    timeout, retries, pause : float, int, float
        Seconds until a request is given up, how often it is repeated, and the first pause in seconds, which doubles.
    keep_answers : bool
        Keep answers on disk for a week, so that an interrupted run continues. Switch it off if the tagger learns.
    score_kind, n_listed, alternatives, max_empty
        As in Tagger.
    """

    kind = "http"

    def _ask(self, client: _Client, texts: list[str]) -> list[Suggestions]:
        answers = client.request("POST", "", json={"texts": texts})
        if not isinstance(answers, list):
            raise TaggerError(f"The tagger {self.url} must answer with a list per text. Got {str(answers)[:60]!r}.")
        return [self._suggestions(answer) for answer in answers]


@settings
class AnnifTagger(_HttpTagger):
    """A project of an Annif server. Scores of zero or less are dropped; the project's own limit may cap `limit`.

    Parameters
    ----------
    url : str
        Address of the server, such as http://localhost:5000.
    project : str
        Identifier of the project.
    limit : int
        Labels that are asked for per text.
    timeout, retries, pause, keep_answers, score_kind, n_listed, alternatives, max_empty
        As in HttpTagger. Answers on disk are those of one state of the project.
    """

    kind = "annif"

    project: str = ""
    limit: Annotated[int, Within(1, 10_000)] = 100

    def _check_settings(self) -> None:
        super()._check_settings()
        if not isinstance(self.project, str):
            raise InvalidInputError(f"The 'project' setting must be the name of a project. Got {self.project!r}.")

    @property
    def _path(self) -> str:
        if not self.project:
            raise InvalidInputError("The 'annif' classifier needs the setting 'project', the name of a project.")
        return f"/v1/projects/{quote(self.project, safe='')}"

    def _identity(self, client: _Client) -> str:
        project = client.request("GET", self._path)
        if not isinstance(project, dict) or project.get("is_trained") is False:
            raise TaggerError(f"The project {self.project!r} of {self.url} is not trained, or is no project.")
        return f"{self.url} {self.project} {self.limit} {json.dumps(project, sort_keys=True)}"

    def _ask(self, client: _Client, texts: list[str]) -> list[Suggestions]:
        documents = [{"text": text, "document_id": str(number)} for number, text in enumerate(texts)]
        path = f"{self._path}/suggest-batch?limit={self.limit}&threshold=0"
        answers = client.request("POST", path, json={"documents": documents})
        if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
            raise TaggerError(
                f"The tagger {self.url} must answer with results per document. Got {str(answers)[:60]!r}."
            )
        for number, answer in enumerate(answers):
            if answer.get("document_id") not in {None, str(number)}:
                raise TaggerError(f"The tagger {self.url} must answer in the order of the request.")
        suggestions = (self._suggestions(answer.get("results")) for answer in answers)
        return [
            [one._replace(score=min(1.0, one.score or 0.0)) for one in own if (one.score or 0) > 0]
            for own in suggestions
        ]
