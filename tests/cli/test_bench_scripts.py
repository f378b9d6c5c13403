"""scripts/bench and scripts/gpu-bench: that what they gather is whole. Never how fast."""

import datetime
import json
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import CLI

ROOT = pathlib.Path(__file__).parents[2]

# The command with less memory to take and less to do.
SMALL = f"""#!/bin/sh
case "$1 $2" in
"bench alloc") set -- "$@" --pool 64MiB --first 16MiB --pinned 8MiB --pairs 50 ;;
"bench copy") set -- "$@" --sizes 1MiB --total 4MiB ;;
"bench load") set -- "$@" --hot ;;
"bench step") set -- "$@" --steps 3 --batch 256KiB --weights 1MiB ;;
"bench tlb") set -- "$@" --size 64MiB ;;
esac
exec {CLI} "$@"
"""

# One that only says what it was asked.
ECHO = """#!/bin/sh
[ "$2" != "$FAILS" ] && echo "{\\"asked\\": \\"$*\\"}"
"""


@pytest.fixture
def run(tmp_path):
    """Runs a script with a command in the place of raffia, and with no torch."""
    (tmp_path / "torch.py").write_text("raise ImportError('not here')\n")

    def runner(script, *arguments, command, **env):
        path = tmp_path / "raffia"
        path.write_text(command)
        path.chmod(0o755)
        env = {"RAFFIA_CLI": str(path), "PYTHONPATH": str(tmp_path), "RAFFIA_LOG": "error", **env}
        return subprocess.run(
            [ROOT / "scripts" / script, *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, **{name: str(value) for name, value in env.items()}},
        )

    return runner


def test_the_benchmarks_of_a_device_go_into_one_file(run, tmp_path):
    result, work = tmp_path / "result.json", tmp_path / "work"
    done = run("gpu-bench", command=SMALL, DEVICE="sim:0", SIZE="4MiB", RUNS=1, DIR=work, RESULT=result)
    assert done.returncode == 0, done.stderr
    reports = json.loads(result.read_text())
    assert list(reports) == ["copy", "alloc", "load", "step", "tlb", "peer"]
    assert all("sim:0" in reports[name]["title"] and reports[name]["rows"] for name in reports if name != "peer")
    assert reports["load"]["ratios"]["load.safetensors_over_ours"] is None
    assert "torch cannot be imported" in reports["peer"]["skipped"]
    assert f"written to {result}" in done.stdout and "load.link_share" in done.stdout
    assert os.listdir(work) == []


def test_a_device_that_was_asked_for_and_is_not_there_is_a_failure(run, tmp_path):
    done = run("gpu-bench", command=SMALL, DEVICE="sim:77", DIR=tmp_path / "work")
    assert done.returncode != 0 and "no device 'sim:77'" in done.stderr
    assert not (tmp_path / "work").exists()


def test_without_a_gpu_nothing_is_measured_and_that_is_said(run, tmp_path):
    done = run("gpu-bench", command=SMALL, DIR=tmp_path / "work")
    assert done.returncode == 0 and "nothing was measured: " in done.stderr and done.stdout == ""


def test_the_results_have_the_name_of_the_gpu_and_the_ratio_to_the_package(tmp_path):
    parts = tmp_path / "parts"
    (tmp_path / "bench" / "results").mkdir(parents=True)
    parts.mkdir()
    for name in "copy", "alloc", "load", "step", "tlb":
        values = {"load.second_seconds": 0.5} if name == "load" else {}
        report = {"title": "Loading a model of 6 GiB into cuda:0 (NVIDIA H200)", "ratios": {}, "values": values}
        (parts / f"{name}.json").write_text(json.dumps(report))
    (parts / "peer.json").write_text(json.dumps({"load_file": {"median_s": 2.0}}))
    subprocess.run([sys.executable, ROOT / "bench" / "gather_results.py", parts], cwd=tmp_path, check=True)
    name = f"h200-{datetime.date.today().isoformat()}.json"
    written = json.loads((tmp_path / "bench" / "results" / name).read_text())
    assert written["load"]["ratios"] == {"load.safetensors_over_ours": 4.0}


def test_every_benchmark_of_the_machine_is_kept_and_a_failure_named(run, tmp_path):
    names = ["load", "alloc", "tlb", "step", "rotate", "micro", "trace", "table"]
    done = run("bench", tmp_path / "kept", command=ECHO, SIZE="2MiB")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path / "kept")) == sorted(f"{name}.json" for name in names)
    for name in names:
        asked = json.loads((tmp_path / "kept" / f"{name}.json").read_text())["asked"]
        assert asked.startswith(f"bench {name}") and asked.endswith(" --json")
        assert ("--size 2MiB" in asked) == (name in ("load", "rotate", "table"))
    done = run("bench", tmp_path / "kept", command=ECHO, FAILS="step")
    assert done.returncode == 1 and done.stderr == "failed: step\n"
