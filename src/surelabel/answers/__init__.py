"""What a user reads about one text: the same on the command line, from the service and on the page."""

from surelabel.answers.answer import Answer, PlausibleLabelSet, exact_level
from surelabel.answers.answering import answer_probabilities

__all__ = ["Answer", "PlausibleLabelSet", "answer_probabilities", "exact_level"]
