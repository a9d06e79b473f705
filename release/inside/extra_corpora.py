"""The extra `corpora` alone: tables of texts, Parquet, stratified parts."""

from pathlib import Path

import pandas

from surelabel import corpora


def main() -> None:
    """Read the same texts from two formats and divide them."""
    made_up = corpora.load("synthetic").part("train")
    rows = {"text": made_up.texts, "labels": [";".join(sorted(found)) for found in made_up.label_sets]}
    pandas.DataFrame(rows).to_csv("texts.csv", index=False)
    pandas.DataFrame(rows).to_parquet("texts.parquet", index=False)
    for name in ("texts.csv", "texts.parquet"):
        corpus = corpora.load(name, separator=";", test=200, calibration=100)
        assert len(corpus.part("test").texts) == 200
        assert len(corpus.part("calibration").texts) == 100
        assert sorted(corpus.texts) == sorted(made_up.texts)
    assert isinstance(corpora.cache_folder(), Path)


if __name__ == "__main__":
    main()
