"""The paper's experiments: settings, runs that can be resumed, and tables and figures from their result files alone."""

from surelabel.experiments.run import Folders, run
from surelabel.experiments.settings import Settings, planned
from surelabel.measures import MEASURES

__all__ = ["MEASURES", "Folders", "Settings", "planned", "run"]
