"""CTDC 2.0, the Czech Text Document Corpus: a folder of texts whose file names carry the labels."""

from __future__ import annotations

import re
from pathlib import Path

from surelabel._core.validation import check_count
from surelabel.corpora.corpus import Corpus, Provenance
from surelabel.corpora.files import as_path, read_text, sha256
from surelabel.exceptions import CorpusError

N_FOLDS = 5

_NAME = re.compile(r"(?P<id>\d+)(?P<labels>(?:_[^_]+)+)")


def read_ctdc(path: str | Path, *, fold: int = 1, encoding: str = "utf-8") -> Corpus:
    """Read CTDC from its folder: one fold of the main part is the test part, the development part validates.

    ``00046_kul_nab_mag.txt`` is text 46 with the labels kul, nab and mag. Texts under a folder whose name
    begins with "dev" are the development part. If the main part's texts lie in five folders, these are
    the folds; otherwise the texts, in the order of their ids, go to folds 1, 2, 3, 4, 5, 1, 2, ...

    `fold` says which of the five folds is the test part; there is a validation part if there is a development part.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from surelabel import corpora
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number, labels in enumerate(["kul", "kul_nab", "mag", "nab", "mag_kul"]):
    ...         _ = (Path(folder) / f"{number:05d}_{labels}.txt").write_text("text")
    ...     corpora.read_ctdc(folder)
    Corpus 'ctdc': 5 texts, 3 labels (train 4, test 1)
    """
    check_count("fold", fold, who="ctdc", least=1, most=N_FOLDS)
    folder = as_path(path)
    files = list(folder.rglob("*.txt")) if folder.is_dir() else []
    files.sort(key=lambda file: (file.name, str(file)))
    development = [file for file in files if _is_development(file, folder)]
    main = [file for file in files if not _is_development(file, folder)]
    if not main:
        raise CorpusError(
            "CTDC must be a folder of files like '00046_kul_nab_mag.txt'. "
            f"Got no such file outside a development folder in {folder.name!r} instead."
        )
    folds = _folds(main)
    rows = range(len(main))
    parts = {"train": [row for row in rows if folds[row] != fold], "test": [row for row in rows if folds[row] == fold]}
    if development:
        parts["validation"] = list(range(len(main), len(files)))
    in_order = [("main", file) for file in main] + [("dev", file) for file in development]
    names = [_parsed(file.stem) for _, file in in_order]
    return Corpus.from_label_sets(
        "ctdc",
        [read_text(file, encoding).strip() for _, file in in_order],
        [labels for _, labels in names],
        ids=[f"{kind}-{identifier}" for (kind, _), (identifier, _) in zip(in_order, names, strict=True)],
        parts=parts,
        provenance=Provenance(
            source=folder.name,
            rule=f"labels from file names; test: fold {fold} of {N_FOLDS}; validation: the development part",
            licence="research use, Czech News Agency",
            checksum=sha256(*main, *development),
        ),
    )


def _is_development(file: Path, folder: Path) -> bool:
    return any(part.lower().startswith("dev") for part in file.relative_to(folder).parts[:-1])


def _folds(files: list[Path]) -> list[int]:
    """Return the number, from 1, of each main text's fold."""
    folders = sorted({file.parent for file in files})
    if len(folders) == N_FOLDS:
        return [folders.index(file.parent) + 1 for file in files]
    return [row % N_FOLDS + 1 for row in range(len(files))]


def _parsed(stem: str) -> tuple[str, list[str]]:
    match = _NAME.fullmatch(stem)
    if match is None:
        raise CorpusError(
            f"The files of CTDC must be named by number and labels, like '00046_kul_nab_mag.txt'. "
            f"Got '{stem}.txt' instead."
        )
    return match["id"], match["labels"].strip("_").split("_")
