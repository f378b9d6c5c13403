"""raffia bench alloc, tlb, step and table: that the reports are whole and hold together. Never how fast."""

import os
import signal

import pytest

from conftest import FAILURE, USAGE, hugetlb_pages, raffia, start, without_transparent_pages

# Small, and run once for all tests that look at the same report: what is checked is not how fast.
ALLOC = ["bench", "alloc", "--pool", "16MiB", "--first", "4MiB", "--pairs", "60", "--runs", "2"]
TLB = ["bench", "tlb", "--size", "8MiB", "--reads", "20000", "--runs", "2"]
STEP = ["bench", "step", "--steps", "4", "--batch", "256KiB", "--weights", "2MiB", "--runs", "2"]
TABLE = ["bench", "table", "--size", "4MiB", "--runs", "1"]

SANITIZED = bool(os.environ.get("RAFFIA_SANITIZE"))

ALLOC_ROWS = ["first.regular.1", "first.pool.1", "first.regular.n", "first.pool.n", "build.pool"]
ALLOC_ROWS += ["standing.alloc", "standing.touch", "pair.pool", "pair.pool.alloc", "pair.pool.free"]
ALLOC_ROWS += ["pair.pool.mean", "pair.direct.mean", "pair.regular", "pair.malloc.mean"]
ALLOC_RATIOS = [
    "alloc.regular_over_first",
    "alloc.regular_over_first_same_threads",
    "alloc.regular_over_first_one_thread",
    "alloc.regular_over_standing",
    "alloc.regular_over_standing_touched",
    "alloc.pair_regular_over_pool",
]
TLB_RATIOS = [
    f"tlb.{kind}regular_over_huge" for kind in ("", "uncached_", "chase_", "chase2_", "chase4_", "chase8_", "control_")
]
STEP_RATIOS = ["step.regular_over_pool_first", "step.regular_over_pool"]


def rows_of(report):
    rows = {row["name"]: row for row in report["rows"]}
    for row in rows.values():
        assert row["unit"] == "s" and row["runs"] > 0
        assert 0 < row["min"] <= row["p50"] <= row["median"] <= row["max"]
        assert row["p50"] <= row["p99"] <= row["max"] and row["min"] <= row["mean"] <= row["max"] * 1.001
    return rows


def pages_are_huge(report):
    pages = [row["pages"] for row in report["rows"] if row["pages"]]
    return all(page["got"]["kind"] in ("hugetlb", "transparent") for page in pages)


def check_ratios(report, names):
    assert list(report["ratios"])[: len(names)] == names
    for name in names:
        assert (report["ratios"][name] is None) == (not pages_are_huge(report))


@pytest.fixture(scope="module")
def alloc():
    return raffia(*ALLOC, "--threads", "2", "--json").json


@pytest.fixture(scope="module")
def tlb():
    return raffia(*TLB, "--json").json


@pytest.fixture(scope="module")
def step():
    return raffia(*STEP, "--json").json


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The report, and the directory that it was given."""
    directory = tmp_path_factory.mktemp("table")
    return raffia(*TABLE, "--dir", directory, "--json").json, directory


def test_b18_pairs_and_first_allocations_are_measured_for_each_path(alloc):
    report, values = alloc, dict(alloc["values"])
    rows = rows_of(report)
    assert list(rows) == ALLOC_ROWS
    check_ratios(report, ALLOC_RATIOS)
    for name in "pair.pool", "pair.pool.alloc", "pair.pool.free":
        assert rows[name]["runs"] == 60
    assert rows["pair.pool"]["min"] >= rows["pair.pool.alloc"]["min"]
    assert rows["pair.regular"]["runs"] == 60
    base = os.sysconf("SC_PAGESIZE")
    assert rows["first.regular.1"]["faults"] >= (4 << 20) // base
    assert rows["first.regular.1"]["pages"] is None and rows["build.pool"]["pages"]["total_bytes"] == 16 << 20
    assert values["alloc.pool_pair_p50_ns"] <= values["alloc.pool_pair_p99_ns"] <= values["alloc.pool_pair_max_ns"]
    assert values.pop("alloc.fallbacks") == 0  # its pool has room for the pairs
    assert all(value > 0 for value in values.values())
    mean = rows["pair.pool.mean"]["median"] * 1e9
    assert values["alloc.pool_pair_ns"] == pytest.approx(mean, rel=1e-6)
    assert "alloc.break_even_allocations" in values and "alloc.standing_us" in values
    assert any("seed figure, not measured here" in note and "38 to 4 ms" in note for note in report["notes"])


def test_b18_hugetlb_pages_serve_the_pool():
    with hugetlb_pages(20):
        report = raffia(*ALLOC, "--runs", "1", "--pages", "on", "--threads", "2", "--json").json
    rows = rows_of(report)
    for name in "build.pool", "first.pool.1", "first.pool.n", "standing.alloc", "pair.direct.mean":
        assert rows[name]["pages"]["got"] == {"kind": "hugetlb", "size": 2 << 20}
    assert all(ratio > 0 for ratio in report["ratios"].values())
    assert any("pages of 2097152 bytes" in note for note in report["notes"])


def test_one_thread_needs_no_second_row():
    rows = rows_of(raffia(*ALLOC, "--runs", "1", "--pairs", "10", "--threads", "1", "--json").json)
    assert list(rows) == [name for name in ALLOC_ROWS if not name.endswith(".n")]


def test_the_text_has_what_the_json_has(alloc, tlb, step):
    if SANITIZED:
        pytest.skip("the report's text is printed by the same code as that of the other benchmarks")
    for arguments, report in ([*ALLOC, "--threads", "2"], alloc), (TLB, tlb), (STEP, step):
        text = raffia(*arguments, "--runs", "1").out
        names = [row["name"] for row in report["rows"]] + list(report["ratios"]) + list(report["values"])
        assert all(name in text for name in names)


def test_b11_the_probe_says_what_its_numbers_rest_on(tlb):
    report = tlb
    rows = rows_of(report)
    assert list(rows) == [
        f"{work}.{side}"
        for work in ("spread", "read", "chase", "chase2", "chase4", "chase8", "control")
        for side in ("regular", "huge")
    ]
    check_ratios(report, TLB_RATIOS)
    assert report["source"] in ("probe", "perf_event_open")
    if report["source"] == "probe":
        assert report["values"] == {} and list(report["ratios"]) == TLB_RATIOS
        assert any(note.startswith("no misses are claimed: ") for note in report["notes"])
    else:
        assert report["values"]["tlb.misses_regular"] > 0


def test_b18_steps_are_measured_with_the_first_apart(step):
    report = step
    rows = rows_of(report)
    assert list(rows) == ["first.regular", "step.regular", "first.pool", "step.pool"]
    assert [rows[name]["runs"] for name in rows] == [2, 3, 2, 3]
    check_ratios(report, STEP_RATIOS)
    assert any("bit by bit" in note for note in report["notes"])


def test_b18_the_table_has_the_four_headlines(table):
    report, directory = table
    rows = {row["name"]: row for row in report["rows"]}
    assert list(rows) == ["load", "allocation", "tlb", "first step"]
    figures = [(r["seed"]["before"], r["seed"]["after"], r["seed"]["ratio"]) for r in report["rows"]]
    assert figures == [(41.2, 18.7, 2.2), (38, 4, 8.5), (12e6, 80e3, 150), (32, 29, 1.09)]
    for row in rows.values():
        seed, ours = row["seed"], row["ours"]
        assert seed["source"] == "seed figure, not measured here"
        assert ours["source"] in ("clock", "probe", "perf_event_open")
        if ours["source"] != "probe" and ours["ratio"] is not None:
            assert row["ours_over_seed"] == pytest.approx(ours["ratio"] / seed["ratio"])
    assert os.listdir(directory) == []


def test_b11_times_are_not_set_against_misses(table, tmp_path):
    tlb = table[0]["rows"][2]
    if tlb["ours"]["source"] != "probe":
        pytest.skip("this machine counts TLB misses")
    assert tlb["ours_over_seed"] is None and "miss" not in tlb["ours"]["unit"]
    if SANITIZED:
        return  # the text is the rest of it
    text = raffia(*TABLE, "--dir", tmp_path).out
    line = next(line for line in text.splitlines() if line.startswith("tlb"))
    assert line.endswith("probe")


def test_without_huge_pages_there_are_no_ratios(tmp_path):
    for arguments in ALLOC, TLB, STEP:
        report = raffia(*arguments, "--runs", "1", "--json", preexec=without_transparent_pages).json
        if pages_are_huge(report) or any(row["pages"] and row["pages"]["got"]["kind"] == "hugetlb" for row in report["rows"]):
            pytest.skip("hugetlb pages are set aside on this machine")
        assert set(report["ratios"].values()) == {None}
        assert any("no huge pages" in note for note in report["notes"])
        raffia(*arguments, "--pages", "on", expect=FAILURE, preexec=without_transparent_pages)
    if SANITIZED:
        return  # the table reads the same reports
    table = raffia(*TABLE, "--dir", tmp_path, "--json", preexec=without_transparent_pages).json
    assert all(row["ours"]["ratio"] is None and row["ours_over_seed"] is None for row in table["rows"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["alloc", "--pool", "1MiB"],
        ["alloc", "--pairs", "0"],
        ["alloc", "file"],
        ["tlb", "--size", "4KiB"],
        ["tlb", "--reads", "0"],
        ["tlb", "--spread", "0"],
        ["tlb", "file"],
        ["step", "--steps", "1"],
        ["step", "--batch", "none"],
        ["step", "file"],
        ["table", "--size", "1MiB"],
        ["table", "--pages", "off"],
        ["table", "file"],
        ["step", "--page-size", "3MiB"],
        ["step", "--page-size", "1GiB", "--batch", "1MiB", "--weights", "1MiB"],
        ["step", "--page-size", "1GiB", "--batch", "1GiB"],
        ["alloc", "--page-size=3MiB"],
    ],
)
def test_a_bad_line_is_a_usage_error(arguments):
    result = raffia("bench", *arguments, expect=USAGE)
    assert result.err.startswith(f"raffia bench {arguments[0]}: ") and result.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["alloc", "--pool", "4TiB", "--first", "4MiB"],
        ["tlb", "--size", "4TiB"],
        ["table", "--size", "32GiB", "--pages", "on"],
    ],
)
def test_more_than_the_memory_is_refused(tmp_path, arguments):
    with open("/proc/meminfo") as file:
        available = int(next(line for line in file if line.startswith("MemAvailable")).split()[1]) * 1024
    if available > 60 << 30:
        pytest.skip("there is more memory than that")
    where = ["--dir", tmp_path] if arguments[0] == "table" else []
    error = raffia("bench", *arguments, *where, "--json", expect=FAILURE).json["error"]
    assert error["status"] == "RAFFIA_ERROR_OUT_OF_MEMORY"


def test_an_allocation_larger_than_the_pool_is_refused():
    error = raffia("bench", "alloc", "--pool", "16MiB", "--first", "32MiB", "--json", expect=FAILURE).json["error"]
    assert error["status"] == "RAFFIA_ERROR_INVALID_ARGUMENT" and "--first" in error["message"]


@pytest.mark.parametrize("arguments", [ALLOC, TLB, STEP])
def test_an_interrupt_ends_it(arguments):
    process = start(*arguments, "--runs", "10000")
    with pytest.raises(Exception):
        process.wait(timeout=1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == FAILURE and "interrupted" in err
