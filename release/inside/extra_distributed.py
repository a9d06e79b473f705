"""The extra `distributed` alone: a data set on one process and on two workers. Argument: the folder of a model."""

import json
import sys
from pathlib import Path

import pyarrow.parquet

import surelabel
from surelabel.predicting import AnswerSettings


def main() -> None:
    """Answer the same texts twice."""
    Path("new").mkdir()
    for number in range(2):
        rows = [json.dumps({"id": f"{number}-{row}", "text": f"a text about wheat {row}"}) for row in range(20)]
        Path(f"new/{number}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    surelabel.predict_dataset(sys.argv[1], "new", "here", AnswerSettings(0.1))
    surelabel.predict_dataset(sys.argv[1], "new", "workers", AnswerSettings(0.1), workers=2)
    here, workers = (
        [pyarrow.parquet.read_table(file).to_pylist() for file in sorted(Path(folder).rglob("*.parquet"))]
        for folder in ("here", "workers")
    )
    assert here == workers
    assert sum(map(len, here)) == 40


if __name__ == "__main__":
    main()
