"""raffia bench: that its reports are whole and what they say is so. Never how fast."""

import os
import pathlib
import re
import signal

import pytest

from conftest import FAILURE, USAGE, hugetlb_pages, raffia, start, wait_until, without_transparent_pages

SANITIZED = bool(os.environ.get("RAFFIA_SANITIZE"))

ROWS = ["plain.fresh4k", "load.fresh4k", "load.freshhuge", "load.standing4k", "load.standinghuge"]
RATIOS = [
    "load.fresh4k_over_pool",
    "load.fresh4k_over_pool_same_threads",
    "load.fresh4k_over_pool_one_thread",
    "load.pages_alone",
    "load.pages_alone_fresh",
]


def bench(tmp_path, *extra, **options):
    arguments = ["bench", "load", "--size", "16MiB", "--runs", "2", "--dir", tmp_path, "--json"]
    return raffia(*arguments, *extra, **options).json


def rows_of(report):
    return {row["name"]: row for row in report["rows"]}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """One run for all tests that look at its report."""
    directory = tmp_path_factory.mktemp("bench")
    report = bench(directory, "--threads", "2")
    assert os.listdir(directory) == []
    return report


def test_the_benchmarks_are_listed():
    listed = [line.split()[0] for line in raffia("bench", "--help").out.splitlines() if line.startswith("  ")]
    assert listed[:6] == ["load", "alloc", "copy", "tlb", "step", "table"]
    readme = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
    in_readme = re.search(r"bench \(([^)]*)\)", readme).group(1).replace(",", " ").split()
    assert in_readme == listed[: len(in_readme)] and len(in_readme) == 9
    assert "there is no benchmark 'laod'" in raffia("bench", "laod", expect=USAGE).err


def test_the_report_is_whole(report):
    assert set(report) == {"title", "machine", "rows", "ratios", "values", "notes"}
    machine = report["machine"]
    assert machine["cores"] >= 1 and machine["memory_bytes"] > 0
    assert machine["cpu"] and machine["kernel"] == os.uname().release
    rows = rows_of(report)
    assert list(rows) == [f"{row}.{threads}" for row in ROWS for threads in ("1", "n")]
    for name, row in rows.items():
        assert row["runs"] == 2 and row["unit"] == "s"
        assert 0 < row["min"] <= row["p50"] <= row["median"] <= row["p99"] <= row["max"]
        assert row["threads"] == (1 if name.endswith(".1") else 2)
        assert (16 << 20) - 10000 < row["bytes"] <= 16 << 20
    assert list(report["ratios"]) == RATIOS


def test_rows_have_the_pages_they_are_named_after(report):
    rows = rows_of(report)
    base = os.sysconf("SC_PAGESIZE")
    pages_of_model = (16 << 20) // base
    for threads in "1", "n":
        assert rows[f"plain.fresh4k.{threads}"]["pages"] is None
        assert rows[f"plain.fresh4k.{threads}"]["faults"] >= pages_of_model
        assert rows[f"load.fresh4k.{threads}"]["pages"]["got"] == {"kind": "regular", "size": base}
        assert rows[f"load.standing4k.{threads}"]["pages"]["got"] == {"kind": "regular", "size": base}
        assert rows[f"load.standing4k.{threads}"]["faults"] < pages_of_model / 10
        assert rows[f"load.standinghuge.{threads}"]["faults"] < pages_of_model / 10
        assert rows[f"load.standing4k.{threads}"]["page_table_bytes"] >= pages_of_model * 8


def test_one_thread_needs_no_second_row(tmp_path):
    report = bench(tmp_path, "--threads", "1", "--runs", "1")
    assert list(rows_of(report)) == [f"{row}.1" for row in ROWS]
    assert list(report["ratios"]) == RATIOS


def test_hugetlb_pages_show(tmp_path):
    with hugetlb_pages(12):
        report = bench(tmp_path, "--pages", "on", "--threads", "2", "--runs", "1")
    for name, row in rows_of(report).items():
        if "huge" in name:
            assert row["pages"]["got"] == {"kind": "hugetlb", "size": 2 << 20} and row["pages"]["verified"]
            if not SANITIZED:  # whose shadow memory has page tables too
                assert row["page_table_bytes"] < 32 << 10
    assert all(ratio > 0 for ratio in report["ratios"].values())


def test_without_huge_pages_the_ratios_are_left_out(tmp_path):
    report = bench(tmp_path, "--runs", "1", preexec=without_transparent_pages)
    if rows_of(report)["load.standinghuge.1"]["pages"]["got"]["kind"] == "hugetlb":
        pytest.skip("hugetlb pages are set aside on this machine")
    assert set(report["ratios"].values()) == {None}
    assert any("no huge pages" in note for note in report["notes"])
    raffia(
        *["bench", "load", "--size", "16MiB", "--runs", "1", "--pages", "on", "--dir", tmp_path],
        expect=FAILURE,
        preexec=without_transparent_pages,
    )


def test_a_model_of_ones_own_can_be_given(tmp_path):
    raffia("make-model", tmp_path / "d", "--size", "4MiB", "--shards", "3")
    report = raffia("bench", "load", tmp_path / "d", "--runs", "1", "--json").json
    assert all(row["runs"] == 1 for row in report["rows"])
    text = raffia("bench", "load", tmp_path / "d", "--runs", "1").out
    assert all(name in text for name in ROWS + RATIOS)


def test_wrong_bytes_are_not_measured(model):
    with open(model, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([byte ^ 1]))
    error = raffia("bench", "load", model, "--json", expect=FAILURE).json["error"]
    assert error["status"] == "RAFFIA_ERROR_MISMATCH"


def test_b18_the_time_of_a_load_is_split(report, tmp_path):
    for row in report["rows"]:
        split = row["split"]
        assert list(split) == ["open", "map", "read", "release", "wait"]
        assert all(seconds >= 0 for seconds in split.values()) and split["read"] > 0
        assert split[row["bottleneck"]] == max(split.values())
    assert rows_of(report)["plain.fresh4k.1"]["split"]["open"] == 0
    assert rows_of(report)["load.standinghuge.1"]["split"]["open"] > 0
    text = raffia("bench", "load", "--size", "4MiB", "--runs", "1", "--dir", tmp_path).out
    header = next(line for line in text.splitlines() if line.endswith("bottleneck"))
    assert header.split()[1:-1] == list(split)


def test_b18_a_list_of_sizes_is_measured_one_by_one(tmp_path):
    reports = bench(tmp_path, "--size", "0.25MiB,1MiB,4MiB", "--runs", "1", "--threads", "1")["reports"]
    sizes = [report["rows"][0]["bytes"] for report in reports]
    for size, asked in zip(sizes, [1 << 18, 1 << 20, 1 << 22]):
        assert asked - 10000 < size <= asked
    text = raffia("bench", "load", "--size", "1MiB,2MiB", "--runs", "1", "--dir", tmp_path).out
    assert text.count("Loading a model of ") == 2
    assert os.listdir(tmp_path) == []


def test_a_list_is_refused_before_it_begins(tmp_path):
    arguments = ["bench", "load", "--size", "1MiB,4TiB", "--runs", "1", "--dir", tmp_path]
    refused = raffia(*arguments, expect=FAILURE)
    assert refused.out == "" and "--size" in refused.err
    assert "reports" not in raffia(*arguments, "--json", expect=FAILURE).json


@pytest.mark.parametrize(
    "arguments",
    [
        ["--runs", "0"],
        ["--pages", "off"],
        ["--size", "big"],
        ["--size", "1MiB,"],
        ["a", "b"],
        ["--threads", "0"],
        ["--page-size", "3MiB"],
        ["--page-size", "2KiB"],
        ["--size", "8MiB", "m.safetensors"],
        ["m.safetensors", "--dir", "/tmp"],
    ],
)
def test_a_bad_line_is_a_usage_error(arguments):
    result = raffia("bench", "load", *arguments, expect=USAGE)
    assert result.err.startswith("raffia bench load: ") and result.out == ""


def test_more_than_the_memory_is_refused(tmp_path):
    error = raffia("bench", "load", "--size", "4TiB", "--dir", tmp_path, "--json", expect=FAILURE).json["error"]
    assert error["status"] == "RAFFIA_ERROR_OUT_OF_MEMORY"
    assert os.listdir(tmp_path) == []


def test_an_interrupt_leaves_nothing(tmp_path):
    process = start("bench", "load", "--size", "64MiB", "--runs", "10000", "--dir", tmp_path)
    # The model loses its name when it is complete: from then on the clock runs.
    wait_until(lambda: os.listdir(tmp_path))
    wait_until(lambda: not os.listdir(tmp_path))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == FAILURE and "raffia: " in err
    assert os.listdir(tmp_path) == []
