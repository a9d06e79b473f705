"""Stores to test with: SQLite in a file, and PostgreSQL where its programs are installed."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from surelabel.review import ReviewStore


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def _programs():
    """The folder of PostgreSQL's programs, None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    name = shutil.which("initdb")
    if found:
        return found[-1].parent
    return None if name is None else Path(name).resolve().parent


@pytest.fixture(scope="session")
def postgresql():
    """The URL of a server on the loopback address, which ends with the tests."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'surelabel[postgresql]'")
    user = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        names = {entry.pw_name for entry in pwd.getpwall()}
        user = {"user": "postgres" if "postgres" in names else "nobody"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="surelabel-pg-"))
    if user:
        shutil.chown(folder, user["user"])
    data = str(folder / "data")

    def run(program, *arguments):
        done = subprocess.run(
            [programs / program, *arguments], check=False, capture_output=True, text=True, cwd=folder, **user
        )
        assert done.returncode == 0, done.stdout + done.stderr

    try:
        run("initdb", "-D", data, "-U", "surelabel", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=100"
        run("pg_ctl", "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"postgresql://surelabel@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgresql_schema(postgresql):
    """The URL of an empty schema."""
    import sqlalchemy as sa

    name = f"review_{os.urandom(4).hex()}"
    engine = sa.create_engine(postgresql.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    yield f"{postgresql}?options=-csearch_path%3D{name}"
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Where a store is: a file, or a URL."""
    if request.param == "sqlite":
        return tmp_path / "reviews.sqlite"
    return request.getfixturevalue("postgresql_schema")


@pytest.fixture
def store(url, clock):
    with ReviewStore(url, lease_seconds=60, clock=clock) as store:
        yield store
