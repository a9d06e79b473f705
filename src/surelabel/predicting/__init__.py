"""Texts in, answers out, a batch at a time: inputs of any length in constant memory.

`predict_file` answers to a file in a file, `predict_dataset` to many files in a folder; a file is a data set of one
partition. Both take the same settings, and both are resumed after an interruption.
"""

from surelabel.predicting.datasets import predict_dataset
from surelabel.predicting.files import Summary, interrupted, predict_file, reporting_empty_texts
from surelabel.predicting.models import with_groups_of
from surelabel.predicting.partitions import plan_partitions
from surelabel.predicting.records import Answerer, Record, answer_writer
from surelabel.predicting.settings import AnswerSettings
from surelabel.predicting.sources import TextBatch, TextList, TextSource
from surelabel.tables.reading import STDIN, Partition
from surelabel.tables.texts import InputColumns

__all__ = [
    "STDIN",
    "AnswerSettings",
    "Answerer",
    "InputColumns",
    "Partition",
    "Record",
    "Summary",
    "TextBatch",
    "TextList",
    "TextSource",
    "answer_writer",
    "interrupted",
    "plan_partitions",
    "predict_dataset",
    "predict_file",
    "reporting_empty_texts",
    "with_groups_of",
]
