"""Archives, read in memory: nothing is ever written to the paths that an archive names."""

from __future__ import annotations

import re
import tarfile
import zlib
from pathlib import Path

from surelabel._core.storage import leads_outside
from surelabel.exceptions import CorpusError

_MAX_MEMBER = 64 << 20
_MAX_TOTAL = 512 << 20


def read_members(path: Path, pattern: re.Pattern[str]) -> dict[str, bytes]:
    """Return the regular files of a tar archive whose names match, by name, in order; refuse a hostile archive."""
    members: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                if leads_outside(member.name):
                    raise CorpusError(
                        f"Archive {path.name!r} must name files inside itself only. Got {member.name!r} instead; do "
                        "not trust it."
                    )
                total += member.size
                if member.size > _MAX_MEMBER or total > _MAX_TOTAL:
                    raise CorpusError(
                        f"Archive {path.name!r} must hold files of at most {_MAX_MEMBER >> 20} MB, "
                        f"{_MAX_TOTAL >> 20} MB in all. Got more at {member.name!r} instead."
                    )
                if member.isfile() and pattern.search(member.name):
                    file = archive.extractfile(member)
                    members[member.name] = b"" if file is None else file.read()
            _check_rest(archive, path)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise CorpusError(
            f"Archive {path.name!r} must be a whole tar file. Got a damaged one instead ({error}); fetch it again."
        ) from error
    return dict(sorted(members.items()))


def _check_rest(archive: tarfile.TarFile, path: Path) -> None:
    """Read on to the very end: only there is what was packed checked against its checksum."""
    rest = 0
    while archive.fileobj is not None and (block := archive.fileobj.read(1 << 20)):
        rest += len(block)
        if rest > _MAX_MEMBER:
            raise CorpusError(f"Archive {path.name!r} must end after its last file. Got more instead.")
