"""The folder of a bundle: which files it has, and what writes, checks and locks it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from surelabel._core.folders import FolderFormat
from surelabel._core.storage import locked
from surelabel.guarantees.decisions import AUTOMATION, FAMILIARITY, TAGS

DESCRIPTION, CLASSIFIER, PREDICTOR = "bundle.json", "classifier", "predictor.npz"
EVALUATION, REPORT, CARD = "evaluation.json", "report.html", "README.md"
RECALIBRATION, FORCED, SEEN, DECISION = "recalibration.npz", "forced.npz", "texts.npz", "decision.json"

_NEEDED = (PREDICTOR, CARD, f"{CLASSIFIER}/classifier.json")
_OPTIONAL = (DECISION, EVALUATION, FORCED, RECALIBRATION, REPORT, SEEN, AUTOMATION, TAGS, FAMILIARITY)
# Folder of a classifier that is a member of a blend.
_MEMBER = re.compile(r"member-[0-9]{1,3}")
_CLASSIFIER_SUFFIXES = (".json", ".npz", ".safetensors")


def _is_of_bundle(name: str) -> bool:
    """Tell whether a bundle may have a file of this name."""
    path = PurePosixPath(name)
    is_in_place = len(path.parts) == 2 or (len(path.parts) == 3 and _MEMBER.fullmatch(path.parts[1]) is not None)
    is_of_classifier = is_in_place and path.parts[0] == CLASSIFIER and path.suffix in _CLASSIFIER_SUFFIXES
    return name in (*_NEEDED, *_OPTIONAL) or is_of_classifier


BUNDLE = FolderFormat(
    what="bundle",
    description=DESCRIPTION,
    format="surelabel-bundle",
    version=2,
    oldest=1,
    advice="Make one with surelabel train.",
    check_name=_is_of_bundle,
    needed=_NEEDED,
)


check_target = BUNDLE.check_target
check_folder = BUNDLE.check


@contextlib.contextmanager
def changing(folder: Path) -> Iterator[Path]:
    """Keep other processes from changing a bundle between loading and saving it; yield where it is written."""
    target = check_target(folder)
    with locked(target.parent / f".{target.name}.lock", target):
        yield target
