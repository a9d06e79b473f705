import io
import re
import tarfile

import pytest

from corpora.sgml_samples import pack
from surelabel.corpora import archives
from surelabel.corpora.archives import read_members
from surelabel.exceptions import CorpusError

ANY = re.compile("")


def test_members_by_name_in_order(tmp_path):
    path = pack(tmp_path / "a.tar.gz", {"b.txt": b"2", "a.txt": b"1", "c.bin": b"3"})
    assert list(read_members(path, re.compile(r"\.txt$")).items()) == [("a.txt", b"1"), ("b.txt", b"2")]


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "..\\evil", "C:evil"])
def test_names_that_lead_outside(tmp_path, name):
    path = pack(tmp_path / "a.tar", {"good.txt": b"", name: b"x"}, "w")
    with pytest.raises(CorpusError, match="must name files inside itself only"):
        read_members(path, ANY)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.tar"]


def test_links_are_not_followed(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo("reut2-000.sgm")
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
    assert read_members(path, ANY) == {}


def test_sizes_are_limited(tmp_path, monkeypatch):
    path = pack(tmp_path / "a.tar", {"a": b"x" * 100, "b": b"x" * 100}, "w")
    monkeypatch.setattr(archives, "_MAX_MEMBER", 99)
    with pytest.raises(CorpusError, match="Got more at 'a'"):
        read_members(path, ANY)
    monkeypatch.setattr(archives, "_MAX_MEMBER", 100)
    monkeypatch.setattr(archives, "_MAX_TOTAL", 150)
    with pytest.raises(CorpusError, match="Got more at 'b'"):
        read_members(path, re.compile("nothing"))


def test_a_header_that_claims_too_much(tmp_path):
    member = tarfile.TarInfo("big")
    member.size = 1 << 40
    path = tmp_path / "a.tar"
    path.write_bytes(member.tobuf() + b"\0" * 1024)
    with pytest.raises(CorpusError, match="Got more at 'big'"):
        read_members(path, ANY)


def test_a_member_that_ends_early(tmp_path):
    member = tarfile.TarInfo("short")
    member.size = 5000
    path = tmp_path / "a.tar"
    path.write_bytes(member.tobuf() + io.BytesIO(b"x" * 700).getvalue())
    with pytest.raises(CorpusError, match="must be a whole tar file"):
        read_members(path, ANY)
