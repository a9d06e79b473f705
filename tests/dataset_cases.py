"""Data sets that several tests share."""

import json

import fsspec
import pyarrow
from fsspec.implementations.local import LocalFileSystem
from pyarrow import dataset, parquet


def write_texts(folder, texts, n_files=3):
    """Write texts into files of JSONL and Parquet, in order."""
    folder.mkdir()
    size = -(-len(texts) // n_files)
    for k in range(n_files):
        some = texts[k * size : (k + 1) * size]
        ids = [f"t{k}-{j}" for j in range(len(some))]
        if k % 2:
            table = pyarrow.table({"id": ids, "text": some})
            parquet.write_table(table, folder / f"{k}.parquet", row_group_size=7)
        else:
            lines = [json.dumps({"id": i, "text": text}) for i, text in zip(ids, some, strict=True)]
            (folder / f"{k}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def rows_of(out):
    """Return the rows of a data set, in the order of its files, as any reader of Parquet sees them."""
    return dataset.dataset(out, format="parquet").to_table().to_pylist()


class RemoteFiles(LocalFileSystem):
    """A remote store that several processes see: this machine's files under another name."""

    protocol = "remote"

    @classmethod
    def _strip_protocol(cls, path):
        return LocalFileSystem._strip_protocol(str(path).removeprefix(f"{cls.protocol}://"))


class CarelessFiles(RemoteFiles):
    """One that does not know what it is to make a file only where there is none."""

    protocol = "careless"

    def open(self, path, mode="rb", **options):
        return super().open(path, mode.replace("x", "w"), **options)


def register_stores():
    """Let URLs name these stores."""
    for store in (RemoteFiles, CarelessFiles):
        fsspec.register_implementation(store.protocol, store, clobber=True)
