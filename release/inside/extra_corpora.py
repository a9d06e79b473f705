"""The extra `corpora` alone: tables of texts, Parquet, workbooks, stratified parts."""

import csv
from pathlib import Path

import openpyxl
import pyarrow
import pyarrow.parquet

from surelabel import corpora


def main() -> None:
    """Read the same texts from three formats and divide them."""
    made_up = corpora.load("synthetic").part("train")
    labels = [";".join(sorted(names)) for names in made_up.label_sets]
    rows = [("text", "labels"), *zip(made_up.texts, labels, strict=True)]
    with Path("texts.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    pyarrow.parquet.write_table(pyarrow.table({"text": made_up.texts, "labels": labels}), "texts.parquet")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in rows:
        sheet.append(row)
    book.save("texts.xlsx")
    for name in ("texts.csv", "texts.parquet", "texts.xlsx"):
        corpus = corpora.load(name, separator=";", test=200, calibration=100)
        assert len(corpus.part("test").texts) == 200
        assert len(corpus.part("calibration").texts) == 100
        assert sorted(corpus.texts) == sorted(made_up.texts)
    assert isinstance(corpora.cache_folder(), Path)


if __name__ == "__main__":
    main()
