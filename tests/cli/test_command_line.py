"""The command line as a whole: what it imports, what it says of wrong usage, and how ctrl-c ends it."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loopwright.cli import main
from loopwright.cli.command_line import SUBCOMMANDS, build_parser

COMMANDS = {
    "module": ["-m", "loopwright"],
    "script": ["-c", "import sys; from loopwright.cli import main; sys.exit(main())"],
}
INTERRUPTS_ITSELF = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(600)
except BaseException as error:
    raise ImportError("a library has turned the interrupt into another error") from error
"""


def usage_error(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_import_no_compiler(tmp_path, argument):
    program = f"""
import sys
from loopwright.cli import main
try:
    main([{argument!r}])
except SystemExit as ended:
    assert ended.code == 0
assert not {{"numpy", "onnx", "llvmlite", "rich", "loopwright.api", "loopwright.cli.run"}} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, timeout=600)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_wrong_options_show_the_usage_of_their_subcommand(capsys, name):
    needed = {
        "ops": [],
        "cache": ["ls"],
        "records": ["ls", "m"],
        "compile": ["m", "-o", "m.lwlib"],
        "completion": ["bash"],
    }
    err = usage_error(capsys, name, *needed.get(name, ["m"]), "--hepl")
    assert err.startswith(f"usage: loopwright {name} ")
    assert err.endswith("error: unrecognized arguments: --hepl; did you mean --help?\n")


def test_a_missing_argument_shows_the_usage_of_its_subcommand(capsys):
    assert usage_error(capsys, "profile").startswith("usage: loopwright profile ")
    assert usage_error(capsys, "cache").startswith("usage: loopwright cache ")


def test_unknown_subcommands_get_a_suggestion(capsys):
    assert usage_error(capsys, "profil").endswith("error: there is no command 'profil'; did you mean profile?\n")
    assert usage_error(capsys, "cache", "prun").endswith("error: there is no action 'prun'; did you mean prune?\n")
    assert f"there are {', '.join(SUBCOMMANDS)}" in usage_error(capsys, "model.onnx")


def test_options_of_the_whole_command_stay_its_own(capsys):
    err = usage_error(capsys, "--versoin", "ops")
    assert err.startswith("usage: loopwright [-h]")
    assert "did you mean --version?" in err


def test_help_of_each_subcommand_is_in_the_list(capsys):
    text = build_parser().format_help()
    assert all(re.search(rf"^    {name}\s", text, re.MULTILINE) for name in SUBCOMMANDS)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_ctrl_c_is_silent_while_modules_are_imported(tmp_path, command):
    (tmp_path / "onnx.py").write_text(INTERRUPTS_ITSELF)
    line = [sys.executable, *command, "run", "m.onnx"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(line, check=False, capture_output=True, text=True, env=environment, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_ctrl_c_is_silent_while_a_subcommand_runs(tmp_path, command):
    os.mkfifo(tmp_path / "m.onnx")
    line = [sys.executable, *command, "run", "m.onnx"]
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    with (tmp_path / "m.onnx").open("wb"):  # waits for its reader
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=600)
    assert (child.returncode, out, err) == (130, "", "")


def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    program = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from loopwright.cli.interrupt import exits_silently
with exits_silently():
    signal.raise_signal(signal.SIGINT)
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, timeout=600)


def test_an_output_that_cannot_be_written_is_an_error(tmp_path):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    line = [sys.executable, "-m", "loopwright", "ops", "add"]
    with full.open("wb") as out:
        done = subprocess.run(
            line, stdout=out, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path, timeout=600
        )
    assert done.returncode == 1
    assert done.stderr == "loopwright: error: the output cannot be written: No space left on device\n"


def test_text_is_written_in_encodings_that_lack_characters(tmp_path):
    line = [sys.executable, "-m", "loopwright", "ops", "nn.conv2d"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("nn.conv2d")


def test_a_command_runs_without_an_output(tmp_path):
    line = f"{shlex.quote(sys.executable)} -m loopwright ops add >&-"
    done = subprocess.run(line, shell=True, stderr=subprocess.PIPE, check=False, cwd=tmp_path, timeout=600)
    assert (done.returncode, done.stderr) == (0, b"")
