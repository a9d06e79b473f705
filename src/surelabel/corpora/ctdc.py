"""CTDC 2.0, the Czech Text Document Corpus: texts whose file names carry the labels, in five folds."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path

import numpy as np

from surelabel.corpora.corpus import Corpus, Provenance, text_hash
from surelabel.corpora.download import as_path, decode, read_members
from surelabel.exceptions import CorpusError, InvalidInputError

N_FOLDS = 5
"""Folds of the main part; they are drawn with this seed, which never changes: 20210607."""

_SEED = 20210607
_TEXT_FILE = re.compile(r"\.txt$")
_NAME = re.compile(r"(?P<id>\d+)_(?P<labels>[^_]+(?:_[^_]+)*)\.txt")


def read_ctdc(path: str | Path, *, fold: int = 0) -> Corpus:
    """Read CTDC from its archive or folder: one of five folds of the main part is the test part.

    ``00046_kul_nab_mag.txt`` is text 46 with the labels kul, nab and mag. All files together are the main part, except
    those in a folder whose name begins with "dev": these are the validation part. A text that repeats an earlier one is
    put into the same fold, so that no test text was learned from; an empty text is kept. Notes name both.

    Parameters
    ----------
    fold : int, default=0
        The fold that is the test part, from 0 to 4.
    """
    if isinstance(fold, bool) or fold not in range(N_FOLDS):
        raise InvalidInputError(f"The fold of ctdc must be from 0 to {N_FOLDS - 1}. Got {fold!r}.")
    source = as_path(path)
    members = read_members(source, _TEXT_FILE)
    # By number: the same order from the archive and from the folder.
    files = sorted(members, key=lambda name: (_is_development(name), name.rpartition("/")[2]))
    parsed = [_NAME.fullmatch(name.rpartition("/")[2]) for name in files]
    n_main = sum(not _is_development(name) for name in files)
    if n_main == 0 or None in parsed:
        wrong = files[parsed.index(None)] if None in parsed else "none"
        raise CorpusError(f"CTDC must hold files like '00046_kul_nab_mag.txt'. Got {wrong!r} in {source.name!r}.")
    numbers = [match["id"] for match in parsed if match]
    twice = Counter(numbers)
    ids = [number if twice[number] == 1 else name for number, name in zip(numbers, files, strict=True)]
    texts = [decode(members[name], name).strip() for name in files]
    folds = np.empty(n_main, dtype=np.int64)
    folds[np.random.RandomState(_SEED).permutation(n_main)] = np.arange(n_main) % N_FOLDS
    first_of: dict[int, int] = {}
    repeats = []
    for row in (row for row, text in enumerate(texts[:n_main]) if text):
        first = first_of.setdefault(text_hash(texts[row]), row)
        folds[row] = folds[first]
        if first != row:
            repeats.append(f"{ids[row]} = {ids[first]}")
    note = f"{len(repeats)} texts repeat others and are in their fold: {', '.join(repeats[:8])}."
    corpus = Corpus.from_label_sets(
        "ctdc",
        texts,
        [match["labels"].split("_") for match in parsed if match],
        ids,
        provenance=Provenance(
            source.name,
            f"labels from file names; test: fold {fold} of {N_FOLDS}",
            "research use, Czech News Agency",
            hashlib.sha256(b"".join(members[name] for name in files)).hexdigest(),
            (note,) if repeats else (),
        ),
    )
    rows = np.arange(n_main)
    parts = {"train": rows[folds != fold], "test": rows[folds == fold], "validation": np.arange(n_main, len(files))}
    return corpus.with_parts(parts)


def _is_development(name: str) -> bool:
    return any(part.lower().startswith("dev") for part in name.split("/")[:-1])
