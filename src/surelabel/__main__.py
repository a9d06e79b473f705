"""`surelabel` and `python -m surelabel`: the command line, and a message where its extra is missing."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

from surelabel._core.extras import require
from surelabel._version import __version__
from surelabel.exceptions import MissingDependencyError

_MISSING = 5  # as of any missing package, see `surelabel --help`
# New objects after which Python looks for cycles. Imports make hundreds of thousands that stay; after every 700, its
# default, that takes up to a third of their time.
_NEW_OBJECTS = 50_000


def main() -> NoReturn:
    """Run the command line; without the `cli` extra only `--version` works."""
    gc.set_threshold(_NEW_OBJECTS)
    try:
        require("typer", "cli", "The command line")
        from surelabel import cli  # noqa: PLC0415
    except MissingDependencyError as error:
        if sys.argv[1:] == ["--version"]:
            print(f"surelabel {__version__}")  # noqa: T201
            raise SystemExit(0) from None
        print(f"surelabel: {error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(_MISSING) from None
    try:
        cli.main()
    finally:
        # The system frees what is left at once; Python would first look for cycles in it, for a second or two.
        gc.freeze()


if __name__ == "__main__":
    main()
