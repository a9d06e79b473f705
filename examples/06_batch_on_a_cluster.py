"""Process a whole archive on a Dask cluster: Parquet in, Parquet out, the same answers wherever it runs.

python examples/06_batch_on_a_cluster.py                                    # two processes on this machine
python examples/06_batch_on_a_cluster.py --scheduler tcp://10.0.0.1:8786    # a cluster that is already running
"""

import argparse
import contextlib
import tempfile
from pathlib import Path

import pandas
from distributed import Client, LocalCluster

from surelabel import corpora, predict_dataset, train
from surelabel.predicting import AnswerSettings


def main() -> None:
    """Train a small model, write an archive, process it twice."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scheduler", help="address of a Dask scheduler whose workers see this machine's folders")
    parser.add_argument("--texts", type=int, default=2_000)
    chosen = parser.parse_args()

    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        corpus = corpora.load("synthetic", n_texts=1000, n_labels=8)
        train(corpus, work / "model", measure="LogLoss", compare=False)

        # An archive: texts in a column, in any number of files. The answers repeat the ids.
        archive = corpora.generate_synthetic(n_texts=chosen.texts, n_labels=8, seed=1)
        table = pandas.DataFrame({"id": archive.ids, "text": archive.texts})
        (work / "archive").mkdir()
        for number in range(4):
            table[number::4].to_parquet(work / "archive" / f"{number}.parquet", row_group_size=250)

        # A cluster: here two processes with one thread each. Texts are divided among workers.
        where = chosen.scheduler or stack.enter_context(
            LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        )
        client = stack.enter_context(Client(where))

        # The model is sent to the workers. A partition is written once, however often a worker dies.
        places = work / "model", work / "archive", work / "answers"
        settings = AnswerSettings("0.05", partition_bytes=8192)
        done = predict_dataset(*places, settings, workers=client)
        print(f"{done.n_rows:,} answers in {done.n_partitions} partitions")

        # A second call has nothing left to do; after a crash it would process what is missing.
        again = predict_dataset(*places, settings, workers=client, resume=True)
        print(f"already finished: {again.n_found} of {again.n_partitions}")

        answers = pandas.read_parquet(work / "answers")
        print(answers[["id", "labels", "confidence", "size"]].head(3).to_string(index=False))
        print(f"one plausible label-set: {(answers['size'].astype(int) == 1).mean():.0%} of texts")


if __name__ == "__main__":  # worker processes import this file, and must not run this
    main()
