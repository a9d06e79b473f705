"""What a release says of itself: versions, classifiers, extras, how to cite it."""

import datetime
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import surelabel

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PERSON = {"family-names", "given-names", "orcid"}
ENTITY = {"name"}


def test_pythons_of_the_classifiers_are_those_that_may_install_it():
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert versions == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_what_typed_clients_need_is_shipped():
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "src/surelabel/py.typed").is_file()


def test_extras_of_extras_exist():
    extras = PROJECT["optional-dependencies"]
    named = {
        name
        for wanted in extras.values()
        for match in re.findall(r"surelabel\[([a-z,]+)\]", "\n".join(wanted))
        for name in match.split(",")
    }
    assert named <= set(extras)


def test_every_extra_with_a_use_of_its_own_is_tried_alone():
    programs = {path.stem.removeprefix("extra_") for path in (ROOT / "release/inside").glob("extra_*.py")}
    # These are others together, tools of the checkout, or data that the tests of surelabel.text use.
    others = {"all", "dev", "docs", "e5", "glove", "minilm", "postgresql"}
    assert set(PROJECT["optional-dependencies"]) - programs == others
    assert programs <= set(PROJECT["optional-dependencies"])


def test_constraints_have_names_and_versions_only():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line), line


def test_the_citation_has_what_the_format_wants():
    assert CITATION["cff-version"] == "1.2.0"
    assert {"cff-version", "message", "title", "authors"} <= set(CITATION)
    assert CITATION["type"] == "software"
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["version"] == surelabel.__version__
    assert CITATION["keywords"] == PROJECT["keywords"]
    if "date-released" in CITATION:
        datetime.date.fromisoformat(str(CITATION["date-released"]))


@pytest.mark.parametrize("cited", [CITATION, *CITATION["references"]], ids=lambda cited: cited["type"])
def test_authors_are_people_or_groups(cited):
    assert cited["authors"]
    for author in cited["authors"]:
        assert set(author) <= PERSON or set(author) == ENTITY
        if "orcid" in author:
            assert re.fullmatch(r"https://orcid\.org/[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{3}[0-9X]", author["orcid"])


def test_the_paper_is_cited():
    (paper,) = CITATION["references"]
    assert {"type", "title", "authors"} <= set(paper)
    assert paper["type"] == "article"
    assert paper["authors"][0]["family-names"] == "Maltoudoglou"
    assert re.fullmatch(r"10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-\.\(\)\[\]\\]+", paper["doi"])
    assert isinstance(paper["year"], int)


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\]", text, flags=re.MULTILINE)
    assert next(heading for heading in headings if heading != "Unreleased") == surelabel.__version__
