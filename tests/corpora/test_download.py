import http.server
import io
import sys
import threading

import pytest

from surelabel.corpora import download as module
from surelabel.corpora.download import download, pack_npm
from surelabel.exceptions import DownloadError

CONTENT = bytes(range(256)) * 1000


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        length = len(CONTENT) + (1000 if self.path == "/short" else 0)
        if self.path != "/unsized":
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def accept(_):
    pass


def refuse(_):
    raise DownloadError("the checksum is wrong")


@pytest.mark.parametrize("path", ["/file", "/unsized"])
def test_a_file_arrives_whole(server, tmp_path, path):
    seen = []
    download(server + path, tmp_path / "cache" / "f", check=lambda p: seen.append(p.read_bytes()))
    assert (tmp_path / "cache" / "f").read_bytes() == CONTENT
    assert seen == [CONTENT]
    assert [file.name for file in (tmp_path / "cache").iterdir()] == ["f"]


@pytest.mark.parametrize(
    ("path", "check", "reason"),
    [
        ("/missing", accept, "HTTP status 404"),
        ("/short", accept, "256,000 of 257,000 bytes|IncompleteRead"),
        ("/file", refuse, "the checksum is wrong"),
    ],
)
def test_nothing_is_left_after_a_failure(server, tmp_path, path, check, reason):
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(DownloadError, match=reason):
        download(server + path, tmp_path / "f", check=check)
    assert (tmp_path / "f").read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["f"]


def test_limits(server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MAX_BYTES", 1000)
    with pytest.raises(DownloadError, match="more than 0 MB came"):
        download(server + "/file", tmp_path / "f", check=accept)
    monkeypatch.setattr(module, "_MAX_BYTES", 10**9)
    monkeypatch.setattr(module, "TOTAL_SECONDS", -1.0)
    with pytest.raises(DownloadError, match="not done after"):
        download(server + "/file", tmp_path / "f", check=accept)
    assert list(tmp_path.iterdir()) == []


def test_nobody_answers(tmp_path):
    with pytest.raises(DownloadError, match="refused"):
        download("http://127.0.0.1:1/f", tmp_path / "f", check=accept)


def test_other_schemes_are_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    with pytest.raises(DownloadError, match="must begin with http"):
        download(secret.as_uri(), tmp_path / "f", check=accept)


def test_the_bar_goes_to_stderr_if_asked(server, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    download(server + "/file", tmp_path / "f", check=accept, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "kB" in shown.err
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    download(server + "/file", tmp_path / "f", check=accept)
    assert sys.stderr.getvalue() == ""


def fake_npm(folder, monkeypatch, body):
    npm = folder / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(npm.parent))


needs_scripts = pytest.mark.skipif(sys.platform == "win32", reason="a script cannot stand in for npm on Windows")


@needs_scripts
def test_npm_packs_into_place(tmp_path, monkeypatch):
    fake_npm(
        tmp_path,
        monkeypatch,
        "assert sys.argv[1:3] == ['pack', 'p@1']\nopen('p-1.tgz', 'wb').write(b'packed')",
    )
    pack_npm("p@1", tmp_path / "cache" / "p.tgz", check=accept)
    assert (tmp_path / "cache" / "p.tgz").read_bytes() == b"packed"


@needs_scripts
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sys.exit('E404 no such package')", "npm ended with status 1: E404 no such package"),
        ("pass", "npm ended with status 0: no message"),
        ("time.sleep(30)", "npm was not done after 1 seconds"),
        ("open('p.tgz', 'wb').write(b'other')", "the checksum is wrong"),
    ],
)
def test_npm_fails(tmp_path, monkeypatch, body, reason):
    fake_npm(tmp_path, monkeypatch, body)
    with pytest.raises(DownloadError, match=reason):
        pack_npm("p@1", tmp_path / "cache" / "p.tgz", check=refuse, seconds=1.0)
    assert not (tmp_path / "cache" / "p.tgz").exists()


def test_no_npm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DownloadError, match="npm is not installed"):
        pack_npm("p@1", tmp_path / "p.tgz", check=accept)
