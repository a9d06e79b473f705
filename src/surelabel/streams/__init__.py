"""Texts in, answers out, a batch at a time: inputs of any length in constant memory.

`read_batches` reads a file, `predict_batches` answers, and `predict_file` does both into a file that is whole or not
there, and goes on where it was stopped. A batch stands for itself, so that batches can be answered anywhere.
"""

from surelabel.streams.inputs import STDIN, InputColumns, PartSource, TextBatch, TextSource, read_batches
from surelabel.streams.outputs import OUTPUT_FORMATS, AnswerWriter, check_separator, open_writer, output_format
from surelabel.streams.predicting import AnswerSettings, predict_batches, predict_file
from surelabel.streams.resuming import ResumableOutput

__all__ = [
    "OUTPUT_FORMATS",
    "STDIN",
    "AnswerSettings",
    "AnswerWriter",
    "InputColumns",
    "PartSource",
    "ResumableOutput",
    "TextBatch",
    "TextSource",
    "check_separator",
    "open_writer",
    "output_format",
    "predict_batches",
    "predict_file",
    "read_batches",
]
