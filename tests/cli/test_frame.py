"""The frame: help, version, unknown words, exit codes."""

import os
import subprocess

import pytest

from conftest import CLI, FAILURE, OK, USAGE, raffia

COMMANDS = ["load", "inspect", "make-model", "doctor", "advise", "bench"]
BENCHES = [
    "bench load",
    "bench alloc",
    "bench tlb",
    "bench step",
    "bench table",
    "bench micro",
    "bench trace",
]


def test_help_lists_each_command_with_a_line():
    text = raffia("--help").out
    for command in COMMANDS:
        lines = [line for line in text.splitlines() if line.split()[:1] == [command]]
        assert len(lines) == 1 and len(lines[0].split()) > 3
    assert raffia("help").out == text


def test_version_is_that_of_the_headers():
    word, number = raffia("--version").out.split()
    assert word == "raffia"
    assert [part.isdigit() for part in number.split(".")] == [True] * 3


def test_nothing_and_nonsense_are_usage_errors():
    assert "Commands:" in raffia(expect=USAGE).err
    assert "Benchmarks:" in raffia("bench", expect=USAGE).err
    assert raffia("mke-model", expect=USAGE).err.startswith("raffia: there is no command 'mke-model'")
    assert raffia("mke-model", expect=USAGE).out == ""


@pytest.mark.parametrize("command", [*COMMANDS, *BENCHES])
def test_each_command_explains_itself(command):
    text = raffia(*command.split(), "--help").out
    assert text.startswith(f"Usage: raffia {command}")
    assert "Example" in text
    assert "Exit codes:" in text


@pytest.mark.parametrize("command", [*COMMANDS, *BENCHES])
def test_an_unknown_option_is_a_usage_error(command):
    result = raffia(*command.split(), "--no-such-option", expect=USAGE)
    assert result.out == ""
    assert "--no-such-option" in result.err


@pytest.mark.parametrize("arguments", [["--help"], ["load", "--help"], ["bench", "load", "--help"], ["doctor"]])
def test_output_that_cannot_be_written_is_a_failure(arguments):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run([CLI, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == FAILURE
    assert done.stderr == "raffia: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("line", [["load", "MODEL", "--checksum"], ["inspect", "MODEL", "--tensors"], ["doctor"], ["load", "missing"]])
def test_a_full_disk_is_told_once(line, model):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    words = [str(model) if word == "MODEL" else word for word in line]
    with open("/dev/full", "w") as full:
        done = subprocess.run([CLI, *words, "--json"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == FAILURE
    told = [text for text in done.stderr.splitlines() if "standard output" in text]
    assert len(told) == 1 and told[0].endswith(": No space left on device"), done.stderr


def test_codes_are_what_the_help_says():
    assert (OK, FAILURE, USAGE) == (0, 1, 2)
