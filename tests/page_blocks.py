"""The code blocks of a Markdown page, and what is wrong with how they are written.

A page has fences only, each with a language that the runner knows (`page_runner`):

- `python` and `pycon` are run, in one namespace a page; so is `bash`, a command a line;
- anything with `title="output"` is what the block before it must have printed: `...` stands for any text, and in `json`
  the string "..." for any value;
- anything else with a title is written to a file of that name; `json`, `toml` and `yaml` are parsed in any case;
- `text` without a title is a drawing.
"""

import dataclasses
import re

__all__ = ["EXECUTED", "OUTPUT", "PARSED", "Block", "PageError", "read_blocks"]

EXECUTED = {"python", "pycon", "bash"}
PARSED = {"json", "toml", "yaml"}
LANGUAGES = EXECUTED | PARSED | {"text", "csv", "tsv", "jsonl"}
OUTPUT = "output"

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>[^`]*)$")
_INFO = re.compile(r'^(?P<language>[\w+-]*)(?: title="(?P<title>[^"]+)")?$')
# What holds indented text that is no code: items of lists, admonitions, tabs, footnotes.
_CONTAINER = re.compile(r"^ *(?:(?P<item>(?:[-*+]|\d+[.)]) +)|!!!|\?\?\?\+?|===|\[\^[^\]]+\]:)")


class PageError(AssertionError):
    """A page is not written as it should be, or does not do what it says."""


@dataclasses.dataclass(frozen=True)
class Block:
    """A fence: its language, title and text, and the number of the line that the text starts at."""

    language: str
    title: str | None
    text: str
    page: str
    line: int

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def is_output(self):
        return self.title == OUTPUT


def read_blocks(markdown, page):
    """Return the blocks of a page in order; raise where one is not written as pages write them."""
    lines = markdown.splitlines()
    blocks = []
    containers = [0]  # how far the text of each container that is open is indented
    is_after_blank = True
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if not line.strip():
            is_after_blank = True
            continue
        indent = len(line) - len(line.lstrip(" "))
        if line.startswith("\t"):
            raise PageError(f"{page}:{number}: a line starts with a tab; indent with spaces")
        if is_after_blank:
            while indent < containers[-1]:
                containers.pop()
        opening = _FENCE.match(line)
        if opening:
            block, number = _read_fence(lines, number, opening, page)
            blocks.append(block)
        elif is_after_blank and indent >= containers[-1] + 4:
            raise PageError(f"{page}:{number}: an indented code block; write a fence with a language")
        elif container := _CONTAINER.match(line):
            item = container["item"]
            containers.append(indent + (len(item) if item else 4))
        is_after_blank = False
    _check_outputs(blocks)
    return blocks


def _read_fence(lines, number, opening, page):
    """Return the block whose first line is lines[number], and the number of the line after it."""
    ticks, indent = opening["ticks"], len(opening["indent"])
    text = []
    for end in range(number, len(lines)):
        line = lines[end].strip()
        if len(line) >= len(ticks) and set(line) == {ticks[0]}:
            break
        text.append(lines[end][min(indent, len(lines[end]) - len(lines[end].lstrip(" "))) :])
    else:
        raise PageError(f"{page}:{number}: a fence that is not closed")
    info = _INFO.match(opening["info"].strip())
    if info is None:
        raise PageError(
            f'{page}:{number}: after a fence come a language and perhaps title="...", got {opening["info"]!r}'
        )
    if info["language"] not in LANGUAGES:
        known = ", ".join(sorted(LANGUAGES))
        raise PageError(f"{page}:{number}: the language of a fence must be one of {known}, got {info['language']!r}")
    if info["language"] in {"csv", "tsv", "jsonl"} and info["title"] is None:
        raise PageError(f"{page}:{number}: {info['language']} needs a title: the file that it is, or output")
    return Block(info["language"], info["title"], "\n".join(text) + "\n" * bool(text), page, number + 1), end + 1


def _check_outputs(blocks):
    """Raise where an output does not follow what printed it."""
    before = None
    for block in blocks:
        if block.is_output and (before is None or before.language not in {"python", "bash"} or before.title):
            raise PageError(f"{block.place}: an output must follow the python or bash block that printed it")
        before = block
