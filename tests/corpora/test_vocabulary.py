import gzip
import json

import pytest

from surelabel.corpora import Corpus, Vocabulary, load, read_table, read_vocabulary
from surelabel.corpora.vocabulary import Concept
from surelabel.exceptions import CorpusError

TURTLE = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix c: <http://example.org/c/> .
c:scheme a skos:ConceptScheme ; skos:prefLabel "Things"@en .
c:1 a skos:Concept ; skos:prefLabel "energy"@en, "énergie"@fr ; skos:notation "E" ; skos:narrower c:2 .
c:2 a skos:Concept ; skos:prefLabel "oil"@en, "pétrole"@fr ; skos:altLabel "crude"@en, "petroleum"@en, "brut"@fr .
c:3 a skos:Concept ; skos:prefLabel "bank"@en ; skos:notation "F1" ; skos:altLabel "lender"@en .
c:4 a skos:Concept ; skos:prefLabel "Bank"@en ; skos:altLabel "shore"@en .
c:5 a skos:Concept ; skos:prefLabel "coal gas"@en-GB ; skos:broader c:2 ; owl:deprecated true .
c:6 a skos:Concept ; skos:prefLabel "nur deutsch"@de ; skos:broader c:6 .
"""
C = "http://example.org/c/"


@pytest.fixture(params=["ttl", "rdf", "nt", "jsonld", "ttl.gz"])
def skos(request, tmp_path):
    import rdflib

    graph = rdflib.Graph().parse(data=TURTLE, format="turtle")
    form = {"ttl": "turtle", "rdf": "xml", "nt": "nt", "jsonld": "json-ld", "ttl.gz": "turtle"}[request.param]
    data = graph.serialize(format=form).encode()
    path = tmp_path / f"things.{request.param}"
    path.write_bytes(gzip.compress(data) if request.param.endswith("gz") else data)
    return path


def test_skos_in_any_form(skos):
    vocabulary = read_vocabulary(skos)
    assert vocabulary.uris == tuple(f"{C}{k}" for k in range(1, 7))
    assert vocabulary.names == ("energy", "oil", "bank (F1)", "Bank (4)", "coal gas", "nur deutsch")
    assert set(vocabulary.alternatives(C + "2")) == {"crude", "petroleum"}
    assert vocabulary.deprecated == {C + "5"}
    assert vocabulary.broader(C + "5") == [C + "2", C + "1"]
    assert vocabulary.broader(C + "6") == []
    assert vocabulary.implications(["coal gas", "energy", "water"]) == [("coal gas", "energy")]
    assert read_vocabulary(skos, "fr").names[:2] == ("énergie", "pétrole")


@pytest.fixture
def vocabulary(tmp_path):
    (tmp_path / "v.ttl").write_text(TURTLE, encoding="utf-8")
    return read_vocabulary(tmp_path / "v.ttl")


@pytest.mark.parametrize(
    ("cell", "uri"),
    [
        (C + "2", "2"),
        (f"<{C}2>", "2"),
        ("OIL", "2"),
        (" Petroleum ", "2"),
        ("e", "1"),
        ("F1", "3"),
        ("bank (f1)", "3"),
        ("shore", "4"),
        ("coal gas", "5"),
    ],
)
def test_cells_are_resolved(vocabulary, cell, uri):
    assert vocabulary.resolve(cell) == C + uri


def test_a_name_of_two_concepts_is_not_resolved(vocabulary):
    assert vocabulary.resolve("bank") is None
    assert vocabulary.candidates("bank") == [C + "3", C + "4"]
    assert vocabulary.resolve("water") is None
    assert vocabulary.candidates("") == []


def test_accents_in_either_form():
    vocabulary = Vocabulary((Concept("u:1", "caf\u00e9"),))
    assert vocabulary.resolve("CAFE\u0301") == "u:1"


def test_a_deprecated_concept_gives_way_to_another_of_its_name():
    vocabulary = Vocabulary((Concept("u:1", "oil", is_deprecated=True), Concept("u:2", "oil")))
    assert vocabulary.resolve("oil") == "u:2"


def test_a_corpus_gets_uris_as_labels(vocabulary):
    corpus = Corpus.from_label_sets("a", ["x", "y", "z"], [{"crude", "Oil"}, {"bank", "water"}, None])
    applied = vocabulary.apply(corpus)
    assert applied.label_sets == [{C + "2"}, {"bank", "water"}, set()]
    assert applied.is_labelled.tolist() == [True, True, False]
    assert "2 of 4 labels" in applied.notes[-1]
    assert vocabulary.name(C + "2") == "oil"
    assert vocabulary.name("water") == "water"


def test_plain_values_come_back(vocabulary):
    again = Vocabulary.from_record(json.loads(json.dumps(vocabulary.to_record())))
    assert (again.concepts, again.names, again.language) == (vocabulary.concepts, vocabulary.names, "en")
    for record in ({}, {"language": "en", "concepts": [[1]]}, {"language": "en", "concepts": 3}):
        with pytest.raises(ValueError, match="vocabulary"):
            Vocabulary.from_record(record)


OWN_CSV = """\
uri,name,alternatives,broader,deprecated
u:1,energy,,,
u:2,oil,crude|petroleum,u:1,
u:3,tar,,u:2,yes
"""
ANNIF_CSV = """\
uri,label_fi,label_en,alternatives,broader,deprecated
u:1,x,energy,,,
<u:2>,y,oil,crude;petroleum,<u:1>,0
u:3,z,tar,,u:2,1
"""
JSONL = """\
{"uri": "u:1", "name": "energy"}
{"uri": "u:2", "name": "oil", "alternatives": ["crude", "petroleum"], "broader": ["u:1"]}
{"uri": "u:3", "name": "tar", "broader": ["u:2"], "deprecated": true}
"""


def test_concepts_as_eurlex57k_has_them(tmp_path):
    record = {"label": "oil", "alt_labels": ["crude"], "parents": ["1"]}
    (tmp_path / "v.json.gz").write_bytes(gzip.compress(json.dumps({"1": {"label": "energy"}, "2": record}).encode()))
    vocabulary = read_vocabulary(tmp_path / "v.json.gz")
    assert (vocabulary.names, vocabulary.resolve("Crude"), vocabulary.broader("2")) == (("energy", "oil"), "2", ["1"])


@pytest.mark.parametrize(("name", "content"), [("v.csv", OWN_CSV), ("v.csv", ANNIF_CSV), ("v.jsonl", JSONL)])
def test_tables_of_concepts(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    vocabulary = read_vocabulary(tmp_path / name)
    assert vocabulary.names == ("energy", "oil", "tar")
    assert vocabulary.alternatives("u:2") == ("crude", "petroleum")
    assert vocabulary.broader("u:3") == ["u:2", "u:1"]
    assert vocabulary.deprecated == {"u:3"}


def test_a_column_names_labels_that_are_never_filed(tmp_path):
    (tmp_path / "v.csv").write_text("uri,name,never_file\nu:1,oil,\nu:2,gold,yes\n")
    vocabulary = read_vocabulary(tmp_path / "v.csv")
    assert Vocabulary.from_record(vocabulary.to_record()).never_filed == vocabulary.never_filed == {"gold"}


def test_annifs_vocabularies(tmp_path):
    (tmp_path / "v.tsv").write_text("<u:1>\tacid-base balance\n<u:2>\toil\t665.5\n")
    vocabulary = read_vocabulary(tmp_path / "v.tsv")
    assert (vocabulary.names, vocabulary.resolve("665.5")) == (("acid-base balance", "oil"), "u:2")
    (tmp_path / "v.csv").write_text("uri,notation,label_en,label_fi\nu:1,1.2,oil,öljy\n")
    assert read_vocabulary(tmp_path / "v.csv", "fi").names == ("öljy",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.ttl", "this is no turtle"),
        ("v.ttl", ""),
        ("v.rdf", "<html>"),
        ("v.csv", "uri,name\nu:1,\n"),
        ("v.csv", "name\noil\n"),
        ("v.csv", "uri,name\nu:1,a\nu:1,b\n"),
        ("v.tsv", "<u:1>\toil\nu:2 tar\n"),
        ("v.json", "[]"),
        ("v.json", '{"1": {"title": "oil"}}'),
    ],
)
def test_what_is_no_vocabulary(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(CorpusError):
        read_vocabulary(tmp_path / name)


TEXTS, SUBJECTS = ("Oil rose", "Gold, and oil", "Nothing"), ({"u:1"}, {"u:1", "u:2"}, None)
NAMED = Vocabulary((Concept("u:1", "oil"), Concept("u:2", "gold")))


def annif_corpus(folder, form):
    """Write the same corpus in a form of Annif."""
    if form in {"txt+tsv", "txt+key"}:
        folder = folder / "corpus"
        folder.mkdir()
        for number, (text, subjects) in enumerate(zip(TEXTS, SUBJECTS, strict=True)):
            (folder / f"{number}.txt").write_text(text)
            if subjects is not None:
                lines = (f"<{uri}>\t{NAMED.name(uri)}" if form == "txt+tsv" else NAMED.name(uri) for uri in subjects)
                (folder / f"{number}.{form[4:]}").write_text("".join(f"{line}\n" for line in lines))
        return folder
    path = folder / f"corpus.{form}"
    lines = {
        "tsv": ["Oil rose\t<u:1>", "Gold, and oil\t<u:1> <u:2>", "Nothing\t"],
        "csv": ["text,subject_uris", "Oil rose,<u:1>", '"Gold, and oil",u:1 u:2', "Nothing,"],
        "jsonl": [
            '{"document_id": "a", "text": "Oil rose", "subjects": [{"uri": "u:1", "label": "oil"}]}',
            '{"document_id": "b", "text": "Gold, and oil", "subjects": [{"uri": "u:1"}, {"uri": "u:2"}]}',
            '{"document_id": "c", "text": "Nothing"}',
        ],
    }[form]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl", "txt+tsv", "txt+key"])
def test_annifs_corpora(tmp_path, form):
    path = annif_corpus(tmp_path, form)
    corpus = NAMED.apply(read_table(path, labels="subjects") if form == "jsonl" else read_table(path))
    assert corpus.texts == TEXTS
    assert corpus.label_sets == [subjects or set() for subjects in SUBJECTS]
    assert corpus.is_labelled.tolist() == [True, True, form in {"tsv", "csv"}]


@pytest.mark.parametrize("form", ["tsv", "csv", "txt+tsv"])
def test_annifs_corpora_are_recognised(tmp_path, form):
    assert load(annif_corpus(tmp_path, form), parts="own").texts == TEXTS


def test_a_table_is_no_corpus_of_annif(tmp_path):
    (tmp_path / "a.tsv").write_text("text\tlabels\na\tx\nb\ty\n")
    assert load(tmp_path / "a.tsv", parts="own").label_names == ("x", "y")


def test_bad_corpora_of_annif(tmp_path):
    (tmp_path / "a.tsv").write_text("a text\t<u:1>\nwithout subjects\n")
    (tmp_path / "b.csv").write_text("subject_uris\nu:1\n")
    (tmp_path / "c").mkdir()
    for name in ("a.tsv", "b.csv", "c"):
        with pytest.raises(CorpusError):
            read_table(tmp_path / name)


def test_names_that_mean_several_concepts_are_left_out(vocabulary):
    others = vocabulary.other_names()
    assert others["crude"] == others[C + "2"] == "oil"
    assert others[C + "3"] == "bank (F1)"
    assert "bank" not in others
    assert "Bank" not in others
