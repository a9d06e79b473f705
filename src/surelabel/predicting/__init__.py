"""Answers to files of texts: one file, or many on a cluster.

`answer_file` answers one file, `predict_dataset` a folder of them; `record` is what is written about a text.
"""

from surelabel.predicting.dataset import Summary, model_checksum, predict_dataset
from surelabel.predicting.file import Counts, answer_file, answer_rows, output_kind
from surelabel.predicting.records import AnswerWriter, record
from surelabel.predicting.settings import PredictSettings

__all__ = [
    "AnswerWriter",
    "Counts",
    "PredictSettings",
    "Summary",
    "answer_file",
    "answer_rows",
    "model_checksum",
    "output_kind",
    "predict_dataset",
    "record",
]
