"""AAPD, the Arxiv Academic Paper Dataset: its authors' files, the TSV of hedwig, or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from surelabel.corpora.corpus import Corpus
from surelabel.corpora.download import as_path, provenance_of, read_lines, read_text
from surelabel.exceptions import CorpusError

_PARTS = {"train": ("train",), "validation": ("val", "validation", "dev"), "test": ("test",)}
_FORMS = (("text_{}", "label_{}"), ("{}.tsv",), ("aapd_{}.tsv",), ("{}.json",))


def read_aapd(path: str | Path) -> Corpus:
    """Read AAPD from a folder; its own train, validation and test parts are kept.

    For each part that is there: ``text_train`` and ``label_train`` (one text per line, labels separated by blanks),
    ``train.tsv`` (digits 0 and 1, a tab, the text) or ``train.json`` (a list of objects with text and label).
    ``labels.json`` (name to number) names the digits, otherwise they are "label-00" and so on.
    """
    folder = as_path(path)
    read: list[Path] = []
    parts: dict[str, list[tuple[str, str, list[str]]]] = {}
    try:
        numbers = json.loads(read_text(folder / "labels.json")) if (folder / "labels.json").exists() else {}
        names = [name for _, name in sorted((int(number), name) for name, number in numbers.items())]
        for part, aliases in _PARTS.items():
            forms = ([folder / name.format(alias) for name in form] for alias in aliases for form in _FORMS)
            if files := next((form for form in forms if form[0].exists()), None):
                parts[part] = [(f"{part}-{row}", *one) for row, one in enumerate(_records(files, names))]
                read.extend(files)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise CorpusError(f"AAPD in {folder.name!r} must have its published form. Got an error: {error!r}.") from error
    if not parts:
        raise CorpusError(f"AAPD must be a folder with text_train and label_train, train.tsv or train.json: {folder}.")
    used = {label for texts in parts.values() for _, _, labels in texts for label in labels}
    return Corpus.from_parts(
        "aapd",
        parts,
        names if used <= set(names) else sorted(used),
        provenance_of(
            read,
            "the authors' parts; one text and its labels per line or record",
            "research use; abstracts belong to their authors",
        ),
    )


def _records(files: list[Path], names: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield text and labels of one part; label names are added where there are none."""
    if len(files) == 2:
        for (_, text), (_, labels) in zip(*map(read_lines, files), strict=True):
            yield text.strip(), labels.split()
    elif files[0].suffix == ".tsv":
        for place, line in read_lines(files[0]):
            bits, _, text = line.partition("\t")
            names.extend(f"label-{number:02d}" for number in range(0 if names else len(bits)))
            if not re.fullmatch("[01]+", bits) or len(bits) != len(names) or not text:
                raise CorpusError(f"{place} must be {len(names)} digits 0 or 1, a tab and a text.")
            yield text.strip(), [name for name, bit in zip(names, bits, strict=True) if bit == "1"]
    else:
        for record in json.loads(read_text(files[0])):
            text, labels = record["text"], record.get("label", record.get("labels"))
            if not isinstance(text, str) or not isinstance(labels, list):
                raise TypeError(f"a record needs a text and a list of labels, not {text!r:.40} and {labels!r:.40}")
            yield text, [str(label) for label in labels]
