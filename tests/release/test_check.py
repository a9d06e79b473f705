"""The program behind `make wheel` and `make release`: what it finds, and that it never calls untested things tested."""

import importlib.util
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("release_check", ROOT / "release" / "check.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["release_check"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["release_check"]


THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


def script(path, prints, code=0):
    path.write_text(f"#!/bin/sh\necho {prints}\nexit {code}\n")
    path.chmod(0o755)
    return path


def test_interpreters_are_found_by_name_and_on_the_path(check, tmp_path, monkeypatch):
    named = script(tmp_path / "some-python", "3.98")
    monkeypatch.setenv("PATH", str(tmp_path))
    script(tmp_path / "python3.97", "3.97")
    script(tmp_path / "python3.96", "3.97")
    script(tmp_path / "python3.95", "3.95", code=1)
    found = check.find_pythons([THIS, "3.98", "3.97", "3.96", "3.95", "3.94"], str(named))
    assert found == {
        THIS: sys.executable,
        "3.98": str(named),
        "3.97": str(tmp_path / "python3.97"),
        "3.96": None,  # another version under its name
        "3.95": None,  # a shim that does not run
        "3.94": None,
    }


def test_a_python_that_is_not_found_is_not_called_tested(check, capsys):
    checks = check.Checks()
    check.check_python(checks, Path("surelabel.whl"), "3.94", None)
    assert checks.report() == 0
    assert "not tested: no interpreter found" in capsys.readouterr().out


def test_one_failure_does_not_stop_the_others_but_counts(check, capsys):
    def fail():
        raise check.CheckError("it is broken")

    checks = check.Checks()
    assert not checks.do("first", THIS, fail)
    assert checks.do("second", THIS, lambda: "12 passed")
    assert checks.report() == 1
    out = capsys.readouterr().out
    assert "FAILED: it is broken" in out
    assert "passed: 12 passed" in out


def test_what_fetches_packages_is_tried_twice(check, tmp_path, capsys):
    code = "from pathlib import Path; p = Path('tried'); found = p.exists(); p.touch(); print('here'); exit(not found)"
    assert check.twice([sys.executable, "-c", code], tmp_path, pause=0) == "here\n"
    assert "once more" in capsys.readouterr().out
    with pytest.raises(check.CheckError, match="tried twice: exit code 3 of"):
        check.twice([sys.executable, "-c", "exit(3)"], tmp_path, pause=0)


def test_commands_see_nothing_of_the_checkout(check, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("SURELABEL_DATA", "somewhere")
    code = "import os; print(sorted(name for name in os.environ if name in ('PYTHONPATH', 'SURELABEL_DATA')))"
    assert check.run([sys.executable, "-c", code], tmp_path) == "[]\n"


def test_a_command_that_hangs_is_ended(check, tmp_path):
    with pytest.raises(check.CheckError, match="not done after"):
        check.run([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, minutes=0.01)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["surelabel/a.py", "surelabel/py.typed", "tests/a.py"], r"lacks \[\] and has too much \['tests/a.py'\]"),
        (["surelabel/a.py"], r"lacks \['surelabel/py.typed'\]"),
        (["surelabel/a.py", "surelabel/py.typed"], "metadata is incomplete"),
    ],
)
def test_a_wheel_has_the_package_and_nothing_else(check, tmp_path, files, message):
    (tmp_path / "src" / "surelabel").mkdir(parents=True)
    for name in ("a.py", "py.typed"):
        (tmp_path / "src" / "surelabel" / name).touch()
    wheel = tmp_path / "surelabel.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in [*files, "surelabel-0.dist-info/METADATA"]:
            archive.writestr(name, "")
    with pytest.raises(check.CheckError, match=message):
        check.check_wheel(check.Built(wheel, wheel), tmp_path)
