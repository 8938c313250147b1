"""``loopwright completion``: the scripts are whole, and bash completes by them what it should."""

import builtins
import re
import subprocess

import needed_tools
import pytest

from loopwright.cli import main
from loopwright.cli.command_line import SUBCOMMANDS
from loopwright.ops.definition.registry import all_ops


@pytest.fixture(scope="module")
def shtab():
    return needed_tools.module("shtab")


def script(capsys, shell):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.fixture
def completed(shtab, capsys, tmp_path):
    """What bash offers for words, the last of which is to be completed."""
    bash = needed_tools.program("bash", package="bash")
    (tmp_path / "script").write_text(script(capsys, "bash"))
    for name in ("model.onnx", "model.lwlib", "notes.txt", "schedules.py"):
        (tmp_path / name).touch()
    (tmp_path / "models").mkdir()

    def offered(*words):
        ask = 'source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); $FUNCTION; printf "%s\\n" "${COMPREPLY[@]}"'
        (function,) = re.findall(r"^complete .*-F (\S+) loopwright$", (tmp_path / "script").read_text(), re.MULTILINE)
        line = [bash, "--norc", "-c", ask, "bash", "loopwright", *words]
        done = subprocess.run(
            line, cwd=tmp_path, env={"FUNCTION": function}, capture_output=True, text=True, check=True, timeout=600
        )
        assert done.stderr == ""
        return set(done.stdout.split())

    return offered


def test_subcommands_and_their_actions_are_completed(completed):
    assert completed("") >= set(SUBCOMMANDS)
    assert completed("ex") == {"explain", "explore"}
    assert completed("cache", "") >= {"ls", "verify", "prune"}
    assert completed("completion", "") >= {"bash", "zsh", "fish"}


def test_options_and_their_choices_are_completed(completed):
    assert completed("run", "--ch") == {"--check"}
    assert completed("cache", "prune", "--o") == {"--older-than"}
    assert completed("dump", "m.onnx", "--stage", "l") == {"linalg", "loop", "llvm"}


def test_models_are_completed_by_their_suffixes(completed):
    assert {"model.onnx", "model.lwlib", "models"} <= completed("run", "m")
    assert "notes.txt" not in completed("run", "n")
    assert "schedules.py" in completed("explore", "s")
    assert "notes.txt" in completed("run", "model.onnx", "--output", "n")


def test_operators_are_completed(completed):
    assert completed("ops", "leaky") == {"leaky_relu"}
    assert completed("ops", "") >= {op.name for op in all_ops()}
    assert completed("compile", "model.onnx", "--unfused", "nn.space") == {"nn.space_to_depth"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_scripts_that_name_all_commands(shtab, capsys, shell):
    text = script(capsys, shell)
    assert all(re.search(rf"\b{name}\b", text) for name in SUBCOMMANDS)
    assert "leaky_relu" in text


def test_without_its_package_the_error_says_how_to_get_it(capsys, monkeypatch):
    ask = builtins.__import__

    def refuse(name, *rest, **more):
        if name == "shtab":
            raise ImportError(name)
        return ask(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert main(["completion", "bash"]) == 1
    assert "pip install 'loopwright[completion]'" in capsys.readouterr().err


def test_another_shell_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["completion", "nushell"])
    assert ended.value.code == 2
    assert "bash" in capsys.readouterr().err
