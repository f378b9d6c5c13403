"""raffia bench copy: batches of small copies, on a simulated device. Times are not looked at."""

import signal
import time

import pytest

from conftest import FAILURE, raffia, start

SHAPES = ["h2d.4096x256 B", "d2h.4096x256 B", "h2d.64x256 B", "h2d.1024x4 KiB", "h2d.64x64 KiB"]


def report(**more):
    return raffia(
        "bench", "copy", "--device", "sim:0", "--json", "--runs", 2, "--sizes", "64KiB", "--total", "64KiB", **more
    ).json


def test_batches_are_copied_in_three_ways():
    found = report()
    rows = {row["name"]: row for row in found["rows"]}
    for shape in SHAPES:
        for way in ("loop", "batch", "ours"):
            assert rows[f"{shape}.{way}"]["bytes"] > 0
    assert found["ratios"]["copy.loop_over_ours"] > 0
    assert found["ratios"]["copy.batch_over_ours"] > 0


def test_a7_auto_is_held_against_the_drivers_best():
    found = raffia(
        "bench", "copy", "--device", "sim:0", "--json", "--runs", 1, "--sizes", "64KiB", "--total", "64KiB", "--sweep"
    ).json
    values = found["values"]
    cells = [row["name"] for row in found["rows"] if row["name"].startswith("sweep.")]
    assert len(cells) == 3 * values["copy.auto_cells"]
    assert {name.rsplit(".", 1)[1] for name in cells} == {"loop", "batch", "auto"}
    assert values["copy.auto_by_kernel"] + values["copy.auto_slower"] <= 2 * values["copy.auto_cells"]
    assert 0 < values["copy.best_over_auto_least"] < 100
    assert sum("where sweep." in note for note in found["notes"]) == min(values["copy.auto_slower"], 15)


def test_a7_a_threshold_is_advised_from_a_measurement():
    found = report()
    advised, count = found["values"]["copy.advised_threshold_bytes"], found["values"]["copy.advised_least_count"]
    assert (advised == 0) == (count == 0)
    assert any("measured here" in note for note in found["notes"])
    assert not any("by the driver" in note for note in found["notes"])  # the kernel made ours


def test_a_sample_in_small_copies_is_so_many_and_not_all_bytes():
    line = ["bench", "copy", "--device", "sim:0", "--json", "--runs", 1, "--sizes", "1,64KiB", "--total", "64MiB"]
    found = raffia(*line).json
    rows = {row["name"]: row for row in found["rows"]}
    assert rows["h2d.pinned.1 B"]["bytes"] == rows["d2h.pageable.1 B"]["bytes"] == 65536
    assert rows["h2d.pinned.64 KiB"]["bytes"] == 64 << 20
    assert [note for note in found["notes"] if "--total" in note] == [
        "a sample in copies of 1 B is 65536 of them, 64 KiB, and not --total 64 MiB"
    ]


# Of the rounds of one size, and of the batches that come behind the few rounds of the smallest total.
@pytest.mark.parametrize("total", ["1GiB", "1"])
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_soon(total, signal_number):
    process = start("bench", "copy", "--device", "sim:0", "--sizes", "1", "--total", total, "--runs", "10000")
    time.sleep(2)
    process.send_signal(signal_number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == FAILURE and "interrupted" in err
