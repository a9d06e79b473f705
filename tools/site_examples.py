"""A hook of mkdocs that shows the examples: the files themselves, so that there is one source, which the tests run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "examples"
MARK = "<!-- the examples -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the examples into the page that has their mark."""
    return with_examples(markdown)


def with_examples(markdown: str) -> str:
    """Return a page with all examples, folded, in place of its mark; without a mark it stays as it is."""
    if MARK not in markdown:
        return markdown
    return markdown.replace(MARK, "\n\n".join(_folded(path) for path in sorted(FOLDER.glob("[0-9]*"))))


def _folded(path: Path) -> str:
    """Return one file as a block that opens."""
    content = path.read_text(encoding="utf-8")
    shown = _notebook(json.loads(content)) if path.suffix == ".ipynb" else _fenced(content, "python")
    indented = "\n".join(f"    {line}" if line else "" for line in shown.splitlines())
    return f'??? example "{path.name}"\n\n{indented}'


def _fenced(content: str, language: str) -> str:
    return f"```{language}\n{content.rstrip()}\n```"


def _notebook(document: dict[str, Any]) -> str:
    """Return a notebook's cells and what they gave, headings as bold lines."""
    parts = []
    for cell in document["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"^#+ (.*)$", r"**\1**", source, flags=re.MULTILINE))
            continue
        parts.append(_fenced(source, "python"))
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                pixels = "".join(data["image/png"]).replace("\n", "")
                parts.append(f'<img alt="the figure that the code above draws" src="data:image/png;base64,{pixels}">')
            else:
                parts.append(_fenced("".join(output.get("text", data.get("text/plain", ""))), "text"))
    return "\n\n".join(parts)
