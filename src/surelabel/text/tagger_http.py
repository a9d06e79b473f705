"""Taggers behind HTTP: an Annif server, or any endpoint that takes texts and returns labels with scores.

Answers are kept on disk, by a hash of the text, so a run that was interrupted continues with the same command. The
header that the environment variable SURELABEL_TAGGER_TOKEN holds is sent along. It is never saved or logged.
"""

from __future__ import annotations

import abc
import contextlib
import hashlib
import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from surelabel._core import progress
from surelabel._core.extras import require
from surelabel.exceptions import InvalidInputError, TaggerError
from surelabel.tables.read import parse_json
from surelabel.tables.scores import Scores, as_scores
from surelabel.text.base import Within, settings
from surelabel.text.taggers import ScoreKind, Tagger

_log = logging.getLogger(__name__)

TOKEN = "SURELABEL_TAGGER_TOKEN"  # noqa: S105 (a name)
"""Environment variable of a token, sent as `Authorization: Bearer TOKEN`, or of a whole header, `Name: value`."""

_MOST_BYTES, _MOST_WAIT = 64 * 2**20, 60.0
_BUSY = {408, 425, 429, 500, 502, 503, 504}
_KEPT_SECONDS = 7 * 24 * 3600


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


def _problem_of(status: int, body: bytes) -> str:
    """Return the status, and title and detail of an application/problem+json body."""
    with contextlib.suppress(ValueError, RecursionError):
        problem = json.loads(body)
        if isinstance(problem, dict):
            said = [str(problem[key])[:200] for key in ("title", "detail") if key in problem]
            return ", ".join([f"status {status}", *said])
    return f"status {status}"


@contextlib.contextmanager
def _kept_answers(url: str, *, on_disk: bool) -> Iterator[sqlite3.Connection]:
    """Open the answers of a tagger in SURELABEL_CACHE, or the user's cache folder; those of a week are kept."""
    path: Path | str = ":memory:"
    if on_disk:
        root = os.environ.get("SURELABEL_CACHE")
        if not root:
            library = require("platformdirs", "taggers", "Keeping a tagger's answers")
            root = library.user_cache_dir("surelabel", appauthor=False)
        path = Path(root) / "taggers" / f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.sqlite"
        path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as database:
        with database:
            database.execute("create table if not exists answers (key text primary key, answer text, at real)")
            database.execute("delete from answers where at < ?", (time.time() - _KEPT_SECONDS,))
        yield database


@settings
class _HttpTagger(Tagger):
    """What both kinds share: requests, batches, and answers on disk."""

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

    def suggest(self, texts: list[str], scores: Any = None) -> list[Scores]:
        """Return the suggestions for each text, from the disk or from the server; empty texts have none."""
        httpx = require("httpx", "taggers", "A tagger behind HTTP")
        client = httpx.Client(headers=_token_header(self.url), timeout=self.timeout, follow_redirects=False)
        with client, _kept_answers(self.url, on_disk=self.keep_answers) as kept:
            identity = self._identity(client)
            keys = [hashlib.sha256(f"{identity}\0{text}".encode()).hexdigest() for text in texts]
            found: dict[str, Scores] = {}
            missing: dict[str, str] = {}
            for key, text in zip(keys, texts, strict=True):
                row = kept.execute("select answer from answers where key = ?", (key,)).fetchone()
                if row is not None or not text.strip():
                    found[key] = self._scores(parse_json(row[0]) if row else [])
                else:
                    missing[key] = text
            with progress.step("asking the tagger", len(texts)) as advance:
                advance(len(texts) - len(missing))
                for start in range(0, len(missing), self.batch_size):
                    batch = list(missing)[start : start + self.batch_size]
                    answers = self._ask(client, [missing[key] for key in batch])
                    if len(answers) != len(batch):
                        raise TaggerError(
                            f"The tagger {self.url} must answer each of {len(batch)} texts. It answered {len(answers)}."
                        )
                    found.update(zip(batch, map(self._scores, answers), strict=True))
                    # Only answers that can be used are kept.
                    with kept:
                        rows = [(key, json.dumps(own), time.time()) for key, own in zip(batch, answers, strict=True)]
                        kept.executemany("insert or replace into answers values (?, ?, ?)", rows)
                    advance(len(batch))
        return [found[key] for key in keys]

    def _identity(self, client: Any) -> str:
        """Return what tells one state of the tagger from another."""
        return self.url

    @abc.abstractmethod
    def _ask(self, client: Any, texts: list[str]) -> list[Any]:
        """Return the server's answer for each of at most `batch_size` texts."""

    def _scores(self, answer: Any) -> Scores:
        """Return the suggestions of one text, or raise TaggerError."""
        try:
            if not isinstance(answer, list):
                raise ValueError(f"must list labels with scores. Got {str(answer)[:60]!r}.")  # noqa: TRY004
            scores = self._adjusted(as_scores(answer) or Scores())
        except ValueError as error:
            raise TaggerError(f"The tagger {self.url} {error}") from error
        scores.place = f"An answer of {self.url}"
        ScoreKind.parse(self.score_kind).shares([one.score for one in scores], scores.place)
        return scores

    def _adjusted(self, scores: Scores) -> Scores:
        """Return scores as the tagger means them."""
        return scores

    def _request(self, client: Any, method: str, path: str, **content: Any) -> Any:
        """Return the JSON of an answer; repeat with growing pauses while the server is out of reach or busy."""
        httpx = require("httpx", "taggers", "A tagger behind HTTP")
        problem = ""
        for attempt in range(self.retries + 1):
            if attempt and self.pause:
                pause = min(_MOST_WAIT, self.pause * 2 ** (attempt - 1))
                _log.warning("%s Trying again in %.0f s.", problem, pause)
                time.sleep(pause)
            try:
                status, body = self._once(client, httpx, method, path, content)
            except httpx.HTTPError as error:
                problem = f"The tagger {self.url} is out of reach: {type(error).__name__} {error}."
                continue
            if status in _BUSY:
                problem = f"The tagger {self.url} is busy: {_problem_of(status, body)}."
                continue
            if 300 <= status < 400:
                raise TaggerError(
                    f"The tagger {self.url} redirects to another address (status {status}), which is not followed. "
                    "Give the address that answers."
                )
            if status != 200:
                raise TaggerError(f"The tagger {self.url} refuses the request: {_problem_of(status, body)}.")
            try:
                return parse_json(body.decode())
            except (ValueError, RecursionError) as error:
                raise TaggerError(f"The tagger {self.url} must answer in JSON. Got {body[:60]!r}.") from error
        raise TaggerError(
            f"{problem} Gave up after {self.retries + 1} attempts. Answers so far are kept, and the same command "
            "continues."
        )

    def _once(self, client: Any, httpx: Any, method: str, path: str, content: Any) -> tuple[int, bytes]:
        """Return status and body of one request, within the time-out and the limit on bytes."""
        ends, body = time.monotonic() + self.timeout, bytearray()
        with client.stream(method, self.url.rstrip("/") + path, **content) as response:
            for part in response.iter_bytes():
                body += part
                if len(body) > _MOST_BYTES:
                    raise TaggerError(f"The tagger {self.url} answers with more than {_MOST_BYTES:,} bytes.")
                if time.monotonic() > ends:
                    raise httpx.ReadTimeout(f"no complete answer in {self.timeout:g} s")
            return response.status_code, bytes(body)


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

    def _ask(self, client: Any, texts: list[str]) -> list[Any]:
        answers = self._request(client, "POST", "", json={"texts": texts})
        if not isinstance(answers, list):
            raise TaggerError(f"The tagger {self.url} must answer with a list per text. Got {str(answers)[:60]!r}.")
        return answers


@settings
class AnnifTagger(_HttpTagger):
    """A project of an Annif server. It drops scores of zero or less, and the project's own limit may cap `limit`.

    Parameters
    ----------
    url : str
        Address of the server, such as http://localhost:5000.
    project : str
        Identifier of the project.
    limit : int
        Labels that are asked for per text.
    batch_size, timeout, retries, pause, keep_answers, score_kind, n_listed, alternatives, max_empty
        As in HttpTagger. Annif takes at most 32 texts per request. Answers on disk are those of one state of the
        project.
    """

    kind = "annif"

    project: str = ""
    batch_size: Annotated[int, Within(1, 32)] = 32
    limit: Annotated[int, Within(1, 10_000)] = 100

    @property
    def notes(self) -> list[str]:
        """Remarks on what the project suggested, and on what Annif does to scores."""
        note = (
            f"Annif cuts scores at 1.0, drops those of 0 or less, and its own limit may be below {self.limit} labels."
        )
        return [*super().notes, note]

    def _identity(self, client: Any) -> str:
        if not self.project or not isinstance(self.project, str):
            raise InvalidInputError("The 'annif' classifier needs the setting 'project', the name of a project.")
        project = self._request(client, "GET", f"/v1/projects/{quote(self.project, safe='')}")
        if not isinstance(project, dict) or project.get("is_trained") is False:
            raise TaggerError(f"The project {self.project!r} of {self.url} is not trained, or is no project.")
        return f"{self.url} {self.project} {self.limit} {json.dumps(project, sort_keys=True)}"

    def _ask(self, client: Any, texts: list[str]) -> list[Any]:
        documents = [{"text": text, "document_id": str(number)} for number, text in enumerate(texts)]
        path = f"/v1/projects/{quote(self.project, safe='')}/suggest-batch?limit={self.limit}&threshold=0"
        answers = self._request(client, "POST", path, json={"documents": documents})
        if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
            raise TaggerError(
                f"The tagger {self.url} must answer with results per document. Got {str(answers)[:60]!r}."
            )
        for number, answer in enumerate(answers):
            if answer.get("document_id") not in {None, str(number)}:
                raise TaggerError(f"The tagger {self.url} must answer in the order of the request.")
        return [answer.get("results") for answer in answers]

    def _adjusted(self, scores: Scores) -> Scores:
        # A float32 can be a little above 1.
        good = (one for one in scores if one.score is None or one.score > 0)
        return Scores(one if one.score is None else one._replace(score=min(1.0, one.score)) for one in good)
