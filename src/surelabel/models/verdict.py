"""What a model is good for, measured on test texts."""

from __future__ import annotations

from surelabel.models.bundle import Bundle


def verdict(bundle: Bundle) -> list[str]:
    """Return what a model is good for, in sentences; see `surelabel.evaluation.summary`."""
    raise NotImplementedError
