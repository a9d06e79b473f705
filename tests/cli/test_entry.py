import subprocess
import sys


def test_module_and_help():
    found = subprocess.run(
        [sys.executable, "-m", "surelabel", "--help"], capture_output=True, text=True, check=True, timeout=120
    )
    assert "reproduce" in found.stdout


def test_an_error_is_one_sentence():
    found = subprocess.run(
        [sys.executable, "-m", "surelabel", "reproduce", "--corpus", "roiters"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert found.returncode == 2
    assert found.stderr.startswith("surelabel: The 'corpus' of an experiment must be one of")
    assert "Traceback" not in found.stderr


def test_nothing_is_searched_for_cycles_at_the_end():
    code = (
        "import atexit, gc, sys\n"
        "from surelabel.__main__ import main\n"
        "atexit.register(lambda: print('frozen', gc.get_freeze_count() > 0 and len(gc.get_objects()) < 5_000))\n"
        "sys.argv = ['surelabel', '--version']\n"
        "main()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.splitlines()[-1] == "frozen True"
