"""Options that say what is promised about decisions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from surelabel.models import DecisionSettings

MaxWrong = Annotated[
    str | None, typer.Option(metavar="SHARE", help="Share of wrong texts among those that are filed [default: 0.05].")
]
Assurance = Annotated[
    str | None, typer.Option(metavar="SHARE", help="How sure it is that no more are wrong [default: 0.95].")
]
MaxMissed = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="Share of true tags that tags to consider may miss [default: 0.05; up to 0.2 if that makes lists short].",
    ),
]
MaxFalse = Annotated[
    str | None, typer.Option(metavar="SHARE", help="Share of tags to assign that may be false [default: 0.05].")
]
MaxChoices = Annotated[
    int | None, typer.Option(min=1, help="Longest list of label-sets that a person chooses from [default: 9].")
]


def as_promises(
    usual: DecisionSettings,
    max_wrong: str | None,
    assurance: str | None,
    max_missed: str | None,
    max_false: str | None,
    max_choices: int | None,
) -> DecisionSettings:
    """Return what is promised: as given, else as usual."""
    given = {"max_wrong": max_wrong, "assurance": assurance, "max_missed": max_missed, "max_false": max_false}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if max_choices is not None:
        changes |= {"max_choices": max_choices, "max_tags": max_choices}
    return dataclasses.replace(usual, **changes)
