"""AAPD, the Arxiv Academic Paper Dataset: its authors' files, the TSV of hedwig, or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from surelabel.corpora.corpus import Corpus
from surelabel.corpora.download import as_path, provenance_of, read_text
from surelabel.exceptions import CorpusError

_PARTS = {"train": ("train",), "validation": ("val", "validation", "dev"), "test": ("test",)}


def read_aapd(path: str | Path, *, label_names: Sequence[str] | None = None) -> Corpus:
    """Read AAPD from a folder; its own train, validation and test parts are kept.

    For each part that is there: ``text_train`` and ``label_train`` (one text per line, labels separated by blanks),
    ``train.tsv`` (digits 0 and 1, a tab, the text) or ``train.json`` (a list of objects with text and label).
    `label_names` name the digits; by default ``labels.json`` does (name to number), otherwise "label-00" and so on.
    """
    folder = as_path(path)
    if not folder.is_dir():
        raise CorpusError(f"AAPD must be a folder. Got {folder.name!r}.")
    names = list(label_names) if label_names is not None else _names_in(folder)
    files = {part: found for part, aliases in _PARTS.items() if (found := _files_of(folder, aliases))}
    if not files:
        shown = sorted(file.name for file in folder.iterdir())[:8]
        raise CorpusError(f"AAPD must hold text_train and label_train, train.tsv or train.json. Got {shown}.")
    parts = {
        part: [(f"{part}-{row}", *one) for row, one in enumerate(_read_part(found, names))]
        for part, found in files.items()
    }
    used = {label for texts in parts.values() for _, _, labels in texts for label in labels}
    return Corpus.from_parts(
        "aapd",
        parts,
        names if names and used <= set(names) else sorted(used),
        provenance_of(
            [file for found in files.values() for file in found],
            "the authors' parts; one text and its labels per line or record",
            "research use; abstracts belong to their authors",
        ),
    )


def _names_in(folder: Path) -> list[str]:
    """Return the label names of labels.json in the order of their numbers, if it is there."""
    file = folder / "labels.json"
    if not file.exists():
        return []
    numbers = _parse(file)
    if not isinstance(numbers, dict) or not all(isinstance(number, int) for number in numbers.values()):
        raise CorpusError("'labels.json' of AAPD must be an object of label name to number. Got another form.")
    return sorted(numbers, key=lambda name: (numbers[name], name))


def _parse(file: Path) -> Any:
    try:
        return json.loads(read_text(file))
    except (json.JSONDecodeError, RecursionError) as error:
        raise CorpusError(f"{file.name!r} must be JSON. Got an error: {error}.") from error


def _files_of(folder: Path, aliases: Sequence[str]) -> list[Path]:
    """Return the file or two files of one part."""
    for alias in aliases:
        pair = [folder / f"text_{alias}", folder / f"label_{alias}"]
        if any(file.exists() for file in pair):
            if missing := [file.name for file in pair if not file.exists()]:
                raise CorpusError(f"AAPD must have {pair[0].name} and {pair[1].name}. There is no {missing[0]}.")
            return pair
        for name in (f"{alias}.tsv", f"aapd_{alias}.tsv", f"{alias}.json"):
            if (folder / name).exists():
                return [folder / name]
    return []


def _read_part(files: list[Path], names: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield text and labels."""
    first = files[0]
    if len(files) == 2:
        texts, labels = (read_text(file).removesuffix("\n").split("\n") for file in files)
        if len(texts) != len(labels):
            raise CorpusError(f"AAPD's {files[1].name} must have {len(texts):,} lines. Got {len(labels):,}.")
        yield from ((text.strip(), line.split()) for text, line in zip(texts, labels, strict=True))
    elif first.suffix == ".tsv":
        for number, line in enumerate(read_text(first).removesuffix("\n").split("\n"), 1):
            bits, tab, text = line.partition("\t")
            names.extend(f"label-{place:02d}" for place in range(0 if names else len(bits)))
            if not tab or len(bits) != len(names) or not re.fullmatch("[01]+", bits):
                place = f"Line {number} of {first.name!r}"
                raise CorpusError(f"{place} must be {len(names)} digits 0 or 1, a tab and a text.")
            yield text.strip(), [name for name, bit in zip(names, bits, strict=True) if bit == "1"]
    else:
        records = _parse(first)
        for number, record in enumerate(records if isinstance(records, list) else [None], 1):
            fields = record if isinstance(record, dict) else {}
            body, found = fields.get("text"), fields.get("label", fields.get("labels"))
            if not isinstance(body, str) or not isinstance(found, list):
                raise CorpusError(f"Record {number} of {first.name!r} must have a 'text' and a list 'label'.")
            yield body, [str(label) for label in found]
