"""Texts in, answers out, a batch at a time: inputs of any length in constant memory.

`read_batches` reads a file, `predict_batches` answers, and `predict_file` does both into a file that is whole or not
there, and goes on where it was stopped. A batch stands for itself, so that batches can be answered anywhere.
"""

from surelabel.predicting.datasets import DatasetSummary, predict_dataset
from surelabel.predicting.files import AnswerSettings, predict_batches, predict_file
from surelabel.predicting.partitions import Partition, plan_partitions
from surelabel.predicting.reading import STDIN, InputColumns, PartSource, TextBatch, TextSource, read_batches
from surelabel.predicting.resuming import ResumableOutput
from surelabel.predicting.writing import OUTPUT_FORMATS, AnswerWriter, check_separator, open_writer, output_format

__all__ = [
    "OUTPUT_FORMATS",
    "STDIN",
    "AnswerSettings",
    "AnswerWriter",
    "DatasetSummary",
    "InputColumns",
    "PartSource",
    "Partition",
    "ResumableOutput",
    "TextBatch",
    "TextSource",
    "check_separator",
    "open_writer",
    "output_format",
    "plan_partitions",
    "predict_batches",
    "predict_dataset",
    "predict_file",
    "read_batches",
]
