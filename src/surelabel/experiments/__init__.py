"""The paper's experiments: settings, runs that can be resumed, and tables and figures from their result files alone."""

from surelabel.experiments.compare import FITTED_AND_NOT, RIVALS, compare_corpus, compare_run, comparison_table
from surelabel.experiments.reports import report_run
from surelabel.experiments.run import Folders, run
from surelabel.experiments.settings import Settings, planned
from surelabel.experiments.tables import all_tables, load_results, write_tables
from surelabel.measures import MEASURES

__all__ = [
    "FITTED_AND_NOT",
    "MEASURES",
    "RIVALS",
    "Folders",
    "Settings",
    "all_tables",
    "compare_corpus",
    "compare_run",
    "comparison_table",
    "load_results",
    "planned",
    "report_run",
    "run",
    "write_tables",
]
