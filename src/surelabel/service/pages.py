"""The page's files, and the texts that it offers to try."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.resources
import re
from collections.abc import Sequence
from pathlib import Path

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_UNRELATED = "The ferry to the island leaves at a quarter past nine; bring a coat, it is windy on deck."
GENERIC_TEXTS = ("The text to be labelled.", "Another text.")
"""Examples that give nothing away, for the description of a service with a token."""


@dataclasses.dataclass(frozen=True)
class StaticFile:
    """A file of the page."""

    content: bytes
    media_type: str
    etag: str


def static_files() -> dict[str, StaticFile]:
    """Read the page's files, by name. Only what is in this table can be served: no path is ever joined.

    What pages share is in files of its own, whose names begin with "_"; a comment with its name stands for each.
    """
    folder = importlib.resources.files("surelabel.service").joinpath("static")
    contents = {file.name: file.read_bytes() for file in folder.iterdir() if Path(file.name).suffix in _TYPES}
    files = {}
    for name, own in contents.items():
        content = re.sub(rb"<!-- (_\w+\.html) -->\n", lambda mark: contents[mark[1].decode()], own)
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        if not name.startswith("_"):
            files[name] = StaticFile(content, _TYPES[Path(name).suffix], etag)
    return files


def example_texts(label_names: Sequence[str]) -> list[str]:
    """Return texts to try: two that use names of labels as words, and one about something else.

    Examples
    --------
    >>> example_texts(["corn", "grain"])[0]
    'A note on corn and grain: corn is up again this week, and so is the talk about grain.'
    """
    as_words = (" ".join(re.sub("[-_/]", " ", name).split()) for name in label_names)
    named = [words for words in as_words if words][:4]
    texts = []
    if len(named) >= 2:
        first, second = named[:2]
        texts.append(
            f"A note on {first} and {second}: {first} is up again this week, and so is the talk about {second}."
        )
    if named:
        texts.append(f"Everything there is to know about {named[-1]}. Questions on {named[-1]} are answered below.")
    return [*texts, _UNRELATED]
