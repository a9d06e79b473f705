"""Reports with figures that are made but not rendered, for tests of something else.

To lay seven figures out and write them takes matplotlib half of a small training. Reports are tested with them in
`tests/report`, and by the commands that run as processes.
"""

import contextlib
import types

import pytest

from surelabel import plots
from surelabel.report import figures


@contextlib.contextmanager
def sketched():
    """Write an empty SVG for each figure of a report."""
    with pytest.MonkeyPatch.context() as patch:
        sketches = vars(plots) | {"to_svg": lambda *_, **__: "<svg></svg>"}
        patch.setattr(figures, "plots", types.SimpleNamespace(**sketches))
        yield
