"""The traces of bench/traces, and the scripts of bench/peers, as far as they go without the others."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import raffia

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRACES = sorted((ROOT / "bench" / "traces").glob("*.csv"))
PEERS = ROOT / "bench" / "peers"


def test_the_script_writes_the_traces_that_are_there(tmp_path):
    subprocess.run([sys.executable, ROOT / "bench" / "traces" / "make", tmp_path], check=True)
    made = sorted(tmp_path.iterdir())
    assert [path.name for path in made] == [path.name for path in TRACES] and len(made) == 6
    for new, old in zip(made, TRACES):
        assert new.read_bytes() == old.read_bytes()
    assert sum(path.stat().st_size for path in TRACES) < 2 << 20


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_each_trace_is_served_whole(path):
    values = raffia("bench", "trace", path, "--device", "sim:0", "--json", "--runs", 1).json["values"]
    assert values["trace.failures"] == 0
    assert values["trace.peak_requested_bytes"] <= values["trace.peak_in_use_bytes"]
    assert values["trace.peak_in_use_bytes"] <= values["trace.peak_reserved_bytes"]


def make_peer(directory, name, text):
    path = directory / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_table_has_every_peer_and_says_what_is_missing(tmp_path):
    make_peer(tmp_path, "peer_good", r'printf "good\t$2\t12.50\t11.00\t13.00\t0.250000\n"')
    make_peer(tmp_path, "peer_bad", "echo 'bad: no memory' >&2; exit 1")
    make_peer(tmp_path, "peer_alone", r'printf "alone\t$2\t-\t-\t-\t-\n"')
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, PEERS / "run", "--programs", tmp_path, "--skipped", "rmm: no GPU", "--json", figures, "mt2"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in lines if line.startswith("|")]
    for row in ["good", "12.5"], ["good", "25.000%"], ["alone", "-"]:
        assert row in rows
    assert "left out: rmm: no GPU" in lines
    assert "left out: peer_bad on mt2: bad: no memory" in lines
    assert json.loads(figures.read_text())["rows"]["good"]["mt2"]["ns"] == 12.5


def test_no_programs_is_a_failure(tmp_path):
    done = subprocess.run([sys.executable, PEERS / "run", "--programs", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and "scripts/peers" in done.stderr


def test_the_loader_script_skips_with_the_reason(tmp_path):
    file = tmp_path / "file.safetensors"
    file.write_bytes(b"")
    (tmp_path / "torch.py").write_text("raise ImportError('not here')\n")
    done = subprocess.run(
        [sys.executable, PEERS / "load_safetensors.py", file],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
    )
    assert json.loads(done.stdout) == {"skipped": "torch cannot be imported: not here"}


def test_the_loader_script_reports_both_sides(tmp_path):
    """With stand-ins for torch and the package: what it prints, not what it measures."""
    file = tmp_path / "file.safetensors"
    file.write_bytes(b"")
    (tmp_path / "torch.py").write_text("__version__ = '0'\n")
    package = tmp_path / "safetensors"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '1'\n")
    (package / "torch.py").write_text(
        "class Tensor:\n"
        "    def numel(self): return 10\n"
        "    def element_size(self): return 4\n"
        "def load_file(path, device): return {'a': Tensor(), 'b': Tensor()}\n"
    )
    make_peer(tmp_path, "raffia", """echo '{"bytes": 80}'""")
    done = subprocess.run(
        [sys.executable, PEERS / "load_safetensors.py", file, "--device", "cpu", "--runs", "3", "--raffia", tmp_path / "raffia"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
    )
    report = json.loads(done.stdout)
    assert report["load_file"]["bytes"] == 80 and report["load_file"]["runs"] == 3
    assert report["load_file"]["min_s"] <= report["load_file"]["median_s"] <= report["load_file"]["max_s"]
    assert report["raffia"] == [{"bytes": 80}] * 3
    assert report["torch"] == "0" and report["safetensors"] == "1" and report["first_s"] > 0
