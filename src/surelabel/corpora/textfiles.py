"""Text files, with an error that says where the encoding is wrong."""

from __future__ import annotations

from pathlib import Path

from surelabel.exceptions import CorpusError


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return a file's text with line ends as line feeds."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path.name!r} cannot be read: {error.strerror or error}.") from error
    return decode(data, path.name, encoding).replace("\r\n", "\n")


def decode(data: bytes, name: str, encoding: str = "utf-8") -> str:
    """Return bytes as text; a byte order mark is no part of it."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"{name!r} must be text in {encoding}. Got byte "
            f"0x{data[error.start]:02x} in line {line} instead; "
            "name the right encoding, e.g. encoding='latin-1' or 'cp1250'."
        ) from error
    return text.removeprefix("\N{BYTE ORDER MARK}")
