"""The extra `cli` alone: train on a table of texts, predict, and what other extras bring is named."""

import csv
import json
import subprocess
import sys
from pathlib import Path

from surelabel import corpora


def surelabel(*arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
    """Run a command and check how it ends."""
    ran = subprocess.run([sys.executable, "-m", "surelabel", *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran
    assert "Traceback" not in ran.stderr, ran
    return ran


def main() -> None:
    """Train, predict, serve."""
    made_up = corpora.load("synthetic").part("train")
    with Path("texts.csv").open("w", newline="", encoding="utf-8") as file:
        rows = ((text, ";".join(sorted(found))) for text, found in zip(made_up.texts, made_up.label_sets, strict=True))
        csv.writer(file).writerows([("body", "tags"), *rows])
    Path("new.txt").write_text("a new text\n", encoding="utf-8")
    trained = surelabel(
        "train", "texts.csv", "--text", "body", "--labels", "tags", "--separator", ";", "--out", "model"
    )
    assert "there is no report" in trained.stderr, trained
    assert "surelabel[plots]" in trained.stderr, trained
    answer = surelabel("predict", "model", "new.txt", "--json")
    assert json.loads(answer.stdout.splitlines()[0]), answer
    assert "surelabel[service]" in surelabel("serve", "model", code=5).stderr
    assert "surelabel[text]" in surelabel(
        "train", "texts.csv", "--text", "body", "--labels", "tags", "--separator", ";", "--out", "other",
        "--classifier", "randinit", code=5,
    ).stderr  # fmt: skip


if __name__ == "__main__":
    main()
