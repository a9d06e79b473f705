"""Prediction sets in words: certain labels, free labels, and groups with a budget, each statement true of every member.

A description is a short list of statements. All label-sets that fit it are a family whose size is known exactly; the
prediction set is a part of that family, and if the two are of one size it *is* the family: the description is
complete. Where not, it says how many label-sets fit it beside how many are meant.
"""

from surelabel.sets.descriptions.build import Budget, Facts, Members, build_description
from surelabel.sets.descriptions.description import Description, LabelGroup, LabelShare

__all__ = ["Budget", "Description", "Facts", "LabelGroup", "LabelShare", "Members", "build_description"]
