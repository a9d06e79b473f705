"""The paper's experiments: runs that can be resumed, and tables from their result files alone."""

from surelabel.experiments.figures import write_figures
from surelabel.experiments.run import CLASSIFIERS, CORPORA, MEASURES, Folders, Settings, planned, run
from surelabel.experiments.tables import Table, all_tables, load_results, write_tables

__all__ = [
    "CLASSIFIERS",
    "CORPORA",
    "MEASURES",
    "Folders",
    "Settings",
    "Table",
    "all_tables",
    "load_results",
    "planned",
    "run",
    "write_figures",
    "write_tables",
]
