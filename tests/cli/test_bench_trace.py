"""raffia bench trace: that what it reports and draws of a trace is so. Never how fast."""

import gzip
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from conftest import CLI, FAILURE, USAGE, raffia

MIB = 1 << 20
SVG = "{http://www.w3.org/2000/svg}"
LAYERS = ["held", "stranded", "free", "unmapped"]

VALUES = {
    "trace.operations",
    "trace.allocations",
    "trace.live_blocks_max",
    "trace.live_blocks_end",
    "trace.peak_requested_bytes",
    "trace.peak_in_use_bytes",
    "trace.peak_reserved_bytes",
    "trace.limit_bytes",
    "trace.reserved_over_requested",
    "trace.in_use_over_requested",
    "trace.failures",
    "trace.refused_bytes",
    "trace.hits",
    "trace.misses",
    "trace.driver_calls",
    "trace.op_ns",
    "trace.op_p50_ns",
    "trace.op_p99_ns",
    "trace.op_max_ns",
    "trace.floor_ns",
    "trace.clock_ns",
}


@pytest.fixture
def write(tmp_path):
    """Writes a trace and returns its path."""

    def writer(text, name="trace.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return writer


def replay(path, *options, **more):
    return raffia("bench", "trace", path, "--device", "sim:0", "--json", "--runs", 2, *options, **more).json


SMALL = "a 0 1000\na 1 300\nf 0\na 2 5000000\nf 1\n"


def test_the_numbers_of_a_small_trace_are_exact(write):
    report = replay(write(SMALL), "--chunk", "2MiB")
    values = report["values"]
    assert set(values) == VALUES
    assert values["trace.operations"] == 5 and values["trace.allocations"] == 3
    assert values["trace.live_blocks_max"] == 2 and values["trace.live_blocks_end"] == 1
    assert values["trace.peak_requested_bytes"] == 5000300
    assert values["trace.peak_in_use_bytes"] == 512 + -(-5000000 // 256) * 256
    assert values["trace.peak_reserved_bytes"] == 3 * 2 * MIB
    assert values["trace.reserved_over_requested"] == pytest.approx(6 * MIB / 5000300)
    assert values["trace.limit_bytes"] == 10 * MIB  # twice the peak, in whole pages
    assert values["trace.failures"] == 0 and values["trace.refused_bytes"] == 0
    assert values["trace.hits"] == 2 and values["trace.misses"] == 1
    assert values["trace.driver_calls"] > 0
    assert 0 <= values["trace.op_p50_ns"] <= values["trace.op_p99_ns"] <= values["trace.op_max_ns"]


def test_the_report_is_whole(write):
    report = replay(write(SMALL))
    assert set(report) == {"title", "machine", "rows", "ratios", "values", "notes"}
    rows = {row["name"]: row for row in report["rows"]}
    assert list(rows) == ["cold.alloc", "cold.free", "warm.alloc", "warm.free", "warm.mean", "floor.mean"]
    assert rows["cold.alloc"]["runs"] == rows["warm.alloc"]["runs"] == 3
    assert rows["cold.free"]["runs"] == rows["warm.free"]["runs"] == 2
    assert rows["warm.mean"]["runs"] == rows["floor.mean"]["runs"] == 2
    assert rows["cold.alloc"]["pages"]["got"]["size"] == 2 * MIB
    text = raffia("bench", "trace", write(SMALL), "--device", "sim:0").out
    for name in VALUES:
        assert name in text


def test_a_trace_without_frees_has_no_times_of_frees(write):
    rows = {row["name"]: row for row in replay(write("a 0 10\n"))["rows"]}
    assert rows["cold.free"]["runs"] == 0 and rows["cold.free"]["median"] is None
    assert "nan" not in raffia("bench", "trace", write("a 0 10\n"), "--device", "sim:0").out


def test_what_is_refused_is_reported(write):
    trace = write("".join(f"a {i} {MIB}\n" for i in range(4)) + f"f 0\na 4 {3 * MIB}\nf 4\nf 1\n")
    values = replay(trace, "--pool-size", "4MiB", "--chunk", "2MiB")["values"]
    assert values["trace.failures"] == 1 and values["trace.refused_bytes"] == 3 * MIB
    assert values["trace.peak_requested_bytes"] == 6 * MIB
    assert values["trace.peak_reserved_bytes"] == values["trace.limit_bytes"] == 4 * MIB


def test_a_limit_is_a_factor_of_the_peak(write):
    trace = write("".join(f"a {i} {MIB}\n" for i in range(8)))
    values = replay(trace, "--limit-factor", "1.0", "--need")["values"]
    assert values["trace.limit_bytes"] == 8 * MIB and values["trace.failures"] == 0
    assert values["trace.need_over_peak"] == 1
    values = replay(trace, "--limit-factor", "0.5")["values"]
    assert values["trace.limit_bytes"] == 4 * MIB and values["trace.failures"] == 4


REMAP_VALUES = {
    "trace.remaps",
    "trace.remapped_chunks",
    "trace.operations_per_remap",
    "trace.remap_us_per_chunk",
    "trace.remap_unmap_us_per_chunk",
    "trace.remap_refusals",
    "trace.stranded_bytes_end",
}


def test_b16_remapping_serves_what_is_refused_without(write):
    lines = [f"a {i} {2 * MIB}" for i in range(16)] + [f"f {i}" for i in range(0, 16, 2)] + [f"a 16 {16 * MIB}"]
    trace = write("\n".join(lines) + "\n")
    values = replay(trace, "--limit-factor", "1.0", "--remap")["values"]
    assert set(values) == VALUES | REMAP_VALUES
    assert values["trace.failures"] == 0 and values["trace.reserved_over_requested"] == 1
    assert values["trace.remaps"] == 1 and values["trace.remapped_chunks"] in (7, 8)
    assert values["trace.operations_per_remap"] == 25
    assert values["trace.remap_us_per_chunk"] > 0
    assert values["trace.remap_refusals"] == 0
    calm = replay(trace, "--limit-factor", "2.0", "--remap")["values"]
    assert calm["trace.remaps"] == 0 and calm["trace.remap_us_per_chunk"] is None


def test_help_has_the_figures_of_memory_together():
    lines = raffia("bench", "trace", "--help").out.splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  trace.")]
    memory = names[: names.index("trace.failures")]
    assert "trace.stranded_bytes_end" in memory and "trace.peak_reserved_bytes" in memory
    assert names.count("trace.stranded_bytes_end") == 1


def test_b16_host_memory_is_remapped_too(write):
    lines = [f"a {i} {2 * MIB}" for i in range(8)] + [f"f {i}" for i in range(0, 8, 2)] + [f"a 8 {8 * MIB}"]
    options = ["--limit-factor", "1.0", "--remap", "--touch", "--json", "--runs", 1]
    report = raffia("bench", "trace", write("\n".join(lines) + "\n"), *options).json
    values, pages = report["values"], report["rows"][0]["pages"]
    assert values["trace.failures"] == 0 and values["trace.reserved_over_requested"] == 1
    # Without huge pages chunks are given back and taken anew instead.
    assert values["trace.remaps"] == (0 if pages["got"]["kind"] == "regular" else 1)


@pytest.mark.parametrize("name", ["graph", "serve", "train", "vision"])
def test_b16_models_of_programs_fit_into_little_more_than_they_ask_for(name):
    trace = pathlib.Path(__file__).parents[2] / "bench" / "traces" / f"{name}.csv"
    values = replay(trace, "--limit-factor", "1.025", "--remap", "--runs", 1)["values"]
    assert values["trace.failures"] == 0 and values["trace.remap_refusals"] == 0
    assert values["trace.remaps"] * 200 <= values["trace.operations"]


def test_b16_any_sizes_in_any_order_are_served_better_with_remapping():
    trace = pathlib.Path(__file__).parents[2] / "bench" / "traces" / "streams.csv"
    limit = ["--limit-factor", "1.025", "--runs", 1]
    without = replay(trace, *limit, "--chunk", "2MiB")["values"]
    remapped = replay(trace, *limit, "--remap")["values"]
    assert remapped["trace.failures"] * 3 < without["trace.failures"]


def test_a_granule_rounds_what_is_held(write):
    values = replay(write("a 0 1\na 1 1\n"), "--granule", "64KiB")["values"]
    assert values["trace.peak_in_use_bytes"] == 2 * 65536
    assert values["trace.in_use_over_requested"] == 65536


def test_host_memory_can_be_touched(write):
    for mode in "off", "try":
        options = ["--touch", "--pages", mode, "--limit-factor", "1.5", "--json", "--runs", 1]
        report = raffia("bench", "trace", write(SMALL), *options).json
        assert report["values"]["trace.failures"] == 0
    assert any("touching" in note for note in report["notes"])


def test_several_traces_are_reported_one_by_one(write):
    files = [write(SMALL, "one"), write("op,id,size,stream,t_us\na,0,10,1,0\na,1,10,2,0\n", "two")]
    reports = raffia("bench", "trace", *files, "--device", "sim:0", "--json", "--runs", 1).json["reports"]
    assert [report["title"].split()[1] for report in reports] == ["one,", "two,"]
    assert any("2 streams" in note for note in reports[1]["notes"])


def test_standard_input_is_a_trace():
    done = subprocess.run(
        [CLI, "bench", "trace", "-", "--device", "sim:0"], input=SMALL, capture_output=True, text=True
    )
    assert done.returncode == 0 and "standard input" in done.stdout


def points_of(path):
    return [tuple(map(float, pair)) for pair in re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d"))]


@pytest.mark.parametrize("operations", [6, 3000])
def test_the_drawing_is_xml_and_agrees_with_the_report(write, tmp_path, operations):
    lines, live = [], []
    for i in range(operations // 2):  # blocks of changing size, six of them live
        lines.append(f"a {i} {(i * 7919) % (3 * MIB) + 1}")
        live.append(i)
        if len(live) > 6:
            lines.append(f"f {live.pop(0)}")
    drawing = tmp_path / "drawing.svg"
    report = replay(write("\n".join(lines) + "\n", "a<b&c.txt"), "--chunk", "2MiB", "--svg", drawing)
    series, values = report["series"], report["values"]
    assert 1 <= len(series) <= 240
    root = ElementTree.parse(drawing).getroot()
    assert root.tag == SVG + "svg"
    assert root.find(SVG + "title").text == "a<b&c.txt"
    assert drawing.stat().st_size < 64 << 10
    plot = root.find(f"{SVG}g[@id='plot']")
    left, right, top, bottom = (float(plot.get(f"data-{side}")) for side in ("left", "right", "top", "bottom"))
    most = float(plot.get("data-bytes"))
    assert int(plot.get("data-operations")) == values["trace.operations"] == len(lines)
    for depth, layer in enumerate(LAYERS, 1):
        points = points_of(plot.find(f"{SVG}path[@class='{layer}']"))
        assert len(points) == 2 * len(series)
        for (x, y), point in zip(points, series):
            total = sum(point[f"{name}_bytes"] for name in LAYERS[:depth])
            assert y == pytest.approx(bottom - (bottom - top) * min(total / most, 1), abs=0.06)
            assert x == pytest.approx(left + (right - left) * point["op"] / len(lines), abs=0.06)
    for point in series:
        assert sum(point[f"{name}_bytes"] for name in LAYERS) == values["trace.limit_bytes"]
        assert point["requested_bytes"] <= point["held_bytes"]
    assert max(point["requested_bytes"] for point in series) == values["trace.peak_requested_bytes"]
    texts = " ".join(text.text for text in root.iter(SVG + "text"))
    for word in [*LAYERS, "requested", "operations", "iB"]:
        assert word in texts


def test_the_drawing_does_not_replace_the_trace(write, tmp_path):
    trace = write(SMALL)
    for name, make in ("symbolic", "symlink_to"), ("hard", "hardlink_to"):
        getattr(tmp_path / name, make)(trace)
    for drawing in trace, tmp_path / "." / trace.name, tmp_path / "symbolic", tmp_path / "hard":
        result = raffia("bench", "trace", trace, "--device", "sim:0", "--svg", drawing, expect=USAGE)
        assert "is the trace itself" in result.err and result.out == ""
    with open(trace) as file:
        refused = subprocess.run([CLI, "bench", "trace", "-", "--device", "sim:0", "--svg", trace], stdin=file)
    assert refused.returncode == USAGE
    assert trace.read_text() == SMALL and (tmp_path / "symbolic").is_symlink()


def test_a_drawing_that_cannot_be_written_is_refused_before_anything_runs(write, tmp_path):
    result = raffia("bench", "trace", write("no trace\n"), "--svg", tmp_path / "no" / "x.svg", expect=FAILURE)
    assert "cannot create a file there" in result.err


@pytest.mark.parametrize(
    "text, said",
    [
        ("a 0 10\nf 0\nf 0\n", "line 3: block 0 is freed"),
        ("a 0 10\na 0 10\n", "line 2: block 0 is allocated"),
        ("a 0 10", "cut short"),
        ("hello\n", "begins no trace"),
        ("", "nothing to replay"),
        ("a 0 9000000000000000000\n", "more than any machine has"),
    ],
)
def test_a_bad_trace_is_a_failure_that_names_the_line(write, text, said):
    result = raffia("bench", "trace", write(text), "--device", "sim:0", expect=FAILURE)
    assert said in result.err and result.out == ""


def test_a_failure_is_an_object_with_json(write):
    error = raffia("bench", "trace", write("x\n"), "--json", expect=FAILURE).json["error"]
    assert error["status"] == "RAFFIA_ERROR_FORMAT" and "line 1" in error["message"]


def test_a_compressed_trace_is_refused_with_the_way_to_read_it(tmp_path):
    path = tmp_path / "trace.gz"
    path.write_bytes(gzip.compress(SMALL.encode()))
    assert "gzip -dc" in raffia("bench", "trace", path, expect=FAILURE).err


def test_what_is_missing_is_said(tmp_path, write):
    assert "cannot open" in raffia("bench", "trace", tmp_path / "none", expect=FAILURE).err
    missing = tmp_path / "no" / "where.svg"
    result = raffia("bench", "trace", write(SMALL), "--device", "sim:0", "--svg", missing, expect=FAILURE)
    assert str(missing.parent) in result.err
    assert "sim:9" in raffia("bench", "trace", write(SMALL), "--device", "sim:9", expect=FAILURE).err


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["x", "--limit-factor", "0"],
        ["x", "--limit-factor", "1.5x"],
        ["x", "--limit-factor", "nan"],
        ["x", "--limit-factor", "1", "--pool-size", "1GiB"],
        ["x", "y", "--svg", "z"],
        ["x", "--page-size", "4KiB"],
        ["x", "--page-size", "3MiB"],
        ["x", "--granule", "1"],
        ["x", "--runs", "0"],
        ["x", "--pages", "maybe"],
    ],
)
def test_bad_command_lines_are_usage_errors(options):
    assert raffia("bench", "trace", *options, expect=USAGE).out == ""


JOBS = pathlib.Path(__file__).resolve().parent.parent.parent / "bench" / "traces" / "jobs.csv"


def test_idle_memory_is_given_back_as_often_as_asked(write):
    trace = write("".join(f"a {i} {3 * MIB}\nf {i}\n" for i in range(50)))
    values = replay(trace, "--chunk", "2MiB", "--trims", 50)["values"]
    assert set(values) == VALUES | {"trace.trims", "trace.trimmed_bytes", "trace.untrimmed_bytes"}
    assert values["trace.trims"] == 50
    assert values["trace.trimmed_bytes"] == 50 * 4 * MIB
    assert values["trace.untrimmed_bytes"] == 0
    once = replay(trace, "--chunk", "2MiB", "--trims", 1)["values"]
    assert once["trace.trims"] == 1 and once["trace.trimmed_bytes"] == 4 * MIB
    raffia("bench", "trace", trace, "--trims", "0", expect=USAGE)


def test_b16_a_pool_that_learns_gives_more_back():
    options = ["--chunk", "8MiB", "--trims", 100, "--runs", 1]
    without = replay(JOBS, *options)["values"]
    adaptive = replay(JOBS, *options, "--adaptive")["values"]
    assert set(adaptive) == set(without) | {"trace.placed_low"}
    assert adaptive["trace.failures"] == without["trace.failures"] == 0
    assert adaptive["trace.untrimmed_bytes"] < 0.7 * without["trace.untrimmed_bytes"]
    assert adaptive["trace.peak_reserved_bytes"] <= 1.1 * without["trace.peak_reserved_bytes"]
    assert 0 < adaptive["trace.placed_low"] < adaptive["trace.allocations"]
