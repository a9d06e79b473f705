"""Made-up tickets with tags, and the command line in this process."""

import contextlib
import csv
import io
import logging
import random
import warnings
from types import SimpleNamespace

TOPICS = {
    "printer": "printer paper toner jam tray ink cartridge driver",
    "network": "wifi router cable vpn signal address firewall switch",
    "account": "password login locked email expired user reset token",
    "invoice": "invoice payment refund amount tax receipt billing due",
    "delivery": "parcel courier late address shipment lost tracking box",
}
COMMON = """the a please help since today my again with this we our is was not and it does have been after""".split()  # noqa: SIM905
OWN = ("--text", "body", "--labels", "tags")
# No search for settings: it takes most of the time.
FAST = ("--setting", "C=1", "--setting", "loss=svm")


def tickets(n, seed=0):
    """Return made-up tickets: one topic, every fourth with a second one."""
    rng = random.Random(seed)
    rows = []
    for number in range(n):
        tags = rng.sample(list(TOPICS), 2 if number % 4 == 0 else 1)
        words = [word for tag in tags for word in rng.choices(TOPICS[tag].split(), k=rng.choice([1, 3, 5]))]
        words += rng.choices(COMMON, k=8) + rng.choices(TOPICS[rng.choice(list(TOPICS))].split(), k=1)
        rng.shuffle(words)
        channel = rng.choice(["mail", "chat"])
        rows.append({"id": f"t{seed}-{number}", "body": " ".join(words), "tags": ";".join(tags), "channel": channel})
    return rows


def write_csv(path, rows):
    """Write rows as CSV and return the path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def run_here(*arguments):
    """Run a command in this process; return its exit code and what it printed."""
    from surelabel import cli

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    out, err = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        finally:
            root.handlers[:], root.level = handlers, level
    return SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue())
