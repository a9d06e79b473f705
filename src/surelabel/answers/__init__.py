"""Answers: one search per text, then names."""

from surelabel.answers.answer import Answer
from surelabel.answers.build import build_answers

__all__ = ["Answer", "build_answers"]
