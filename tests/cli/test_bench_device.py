"""raffia bench --device: that its reports are whole, over the simulated device. Never how fast."""

import os

import pytest

from conftest import FAILURE, USAGE, raffia

HIDDEN = {"RAFFIA_SIM_MEMORY": "hidden", "RAFFIA_LOG": "error"}
LINES = {
    "alloc": ["--pool", "64MiB", "--first", "16MiB", "--pairs", "50", "--pinned", "8MiB"],
    "copy": ["--sizes", "64KiB,1MiB", "--total", "4MiB"],
    "load": ["--size", "16MiB"],
    "step": ["--steps", "4", "--batch", "256KiB", "--weights", "1MiB"],
    "tlb": ["--size", "64MiB"],
}
ROWS = {
    "alloc": {"pair.pool.mean", "pair.direct.mean", "pair.stream.mean", "large.pool", "build.pool", "pinned.build", "pinned.free"},
    "copy": {f"{way}.{memory}.{size}" for way in ("h2d", "d2h") for memory in ("pinned", "pageable") for size in ("64 KiB", "1 MiB")},
    "load": {"link.pinned", "load.first", "load.second", "load.cold", "read.cold"},
    "step": {"first.regular", "first.pool", "step.regular", "step.pool"},
    "tlb": {f"chase.{way}.{size}" for way in ("pool", "regular", "packed") for size in ("32 MiB", "64 MiB")},
}


def bench(name, *extra, **options):
    return raffia("bench", name, "--device", "sim:0", "--runs", "1", *LINES[name], *extra, "--json", **options)


@pytest.mark.parametrize("name", LINES)
def test_the_report_is_whole(name, tmp_path):
    extra = ["--dir", tmp_path] if name == "load" else []
    hidden = {} if name in ("step", "tlb") else HIDDEN  # kernels of the simulated device run on the CPU
    report = bench(name, *extra, env=hidden).json
    rows = {row["name"]: row for row in report["rows"]}
    missing = {row for row in ROWS[name] if row not in rows}
    assert missing <= {"load.cold", "read.cold"}  # a file system may refuse direct reads
    for row in rows.values():
        assert row["runs"] >= 1 and 0 < row["min"] <= row["median"] <= row["max"]
    assert "sim:0" in report["title"]
    assert os.listdir(tmp_path) == []


def test_ratios_to_a_peer_are_left_out_where_there_is_none():
    report = bench("alloc", env=HIDDEN).json
    assert report["ratios"]["alloc.async_over_pool"] is None
    assert report["values"]["alloc.stream_pair_ns"] > 0


@pytest.mark.parametrize("size", ["4MiB", "30MiB", "200MiB"])
def test_the_pairs_find_room_in_the_pool(size):
    arguments = ["--pool", size, "--first", "2MiB", "--pairs", "2000", "--pinned", "2MiB"]
    report = raffia("bench", "alloc", "--device", "sim:0", "--runs", "1", *arguments, "--json", env=HIDDEN).json
    assert report["values"]["alloc.fallbacks"] == 0
    assert any("of 2000 allocations 0 were not found room for" in note for note in report["notes"])


def test_loads_stay_within_the_budget(tmp_path):
    report = bench("load", "--hot", "--dir", tmp_path, env={**HIDDEN, "RAFFIA_LOAD_BUDGET": "8MiB"}).json
    assert {row["name"] for row in report["rows"]} == {"link.pinned", "load.first", "load.second"}
    assert report["values"]["load.host_bytes_above_start"] <= (8 << 20) + (64 << 20)


@pytest.mark.parametrize("memory", ["hidden", "visible"])
def test_a_model_smaller_than_a_slot_is_measured(model, memory):
    env = {**HIDDEN, "RAFFIA_SIM_MEMORY": memory, "RAFFIA_LOAD_SLOT": "4MiB"}
    report = raffia("bench", "load", "--device", "sim:0", "--runs", "1", "--hot", "--json", model, env=env).json
    link = next(row for row in report["rows"] if row["name"] == "link.pinned")
    assert link["bytes"] == report["values"]["load.copy_bytes"] == 4 << 20
    notes = " ".join(report["notes"])
    assert ("the ring makes them" in notes) == ("and the ring inside the clock" in notes) == (memory == "hidden")
    assert ("read into it" in notes) == (memory == "visible")


def test_the_link_is_measured_with_the_slots_of_the_load(tmp_path):
    env = {**HIDDEN, "RAFFIA_LOAD_SLOT": "16MiB", "RAFFIA_LOAD_BUDGET": "8MiB"}
    report = bench("load", "--hot", "--dir", tmp_path, env=env).json
    assert report["values"]["load.copy_bytes"] == 4 << 20  # the budget allows no more


@pytest.mark.parametrize("name", LINES)
def test_memory_pinned_for_a_device_is_none_to_measure(name):
    result = raffia("bench", name, "--device", "pinned:sim:0", expect=USAGE)
    assert "'pinned:sim:0' is host memory pinned for a device" in result.err and result.out == ""


@pytest.mark.parametrize("command", ["bench alloc", "bench copy", "bench load", "bench step", "bench tlb", "bench trace", "load"])
def test_an_empty_name_is_no_device(command):
    result = raffia(*command.split(), "--device", "", expect=USAGE)
    assert "--device: the name of the device is empty" in result.err and result.out == ""


def test_help_gives_a_default_where_there_is_one():
    assert "it must be named" in " ".join(raffia("bench", "copy", "--help").out.split())
    assert "this machine's memory" in " ".join(raffia("bench", "alloc", "--help").out.split())


def test_devices_that_cannot_be_measured_are_refused():
    assert "--device is needed" in raffia("bench", "copy", expect=USAGE).err
    assert "no device 'sim:77'" in raffia("bench", "step", "--device", "sim:77", expect=FAILURE).err
    assert "RAFFIA_CUDA_LIBRARY" in raffia("bench", "alloc", "--device", "cuda:0", expect=FAILURE).err
