"""raffia bench copy: batches of small copies, on a simulated device. Times are not looked at."""

from conftest import raffia

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


def test_a7_a_threshold_is_advised_from_a_measurement():
    found = report()
    advised, count = found["values"]["copy.advised_threshold_bytes"], found["values"]["copy.advised_least_count"]
    assert (advised == 0) == (count == 0)
    assert any("measured here" in note for note in found["notes"])
    assert not any("by the driver" in note for note in found["notes"])  # the kernel made ours
