"""The report on a model: one HTML page, the decision first. Importing it imports neither matplotlib nor jinja2."""

from surelabel.report.render import render_report, write_report

__all__ = ["render_report", "write_report"]
