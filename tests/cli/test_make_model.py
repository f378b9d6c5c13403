"""raffia make-model: what it writes, and what it leaves when it is stopped."""

import hashlib
import json
import os
import resource
import shutil
import signal
import struct

import pytest

from conftest import FAILURE, USAGE, raffia, read_header, run_on_a_terminal, start, wait_until

MASK = (1 << 64) - 1


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def pattern(seed, name, count):
    """The tensor's bytes, worked out from the definition in cli/pattern.h."""
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & MASK
    key = mix(key ^ mix(seed))
    words = [mix((key + i * 0x9E3779B97F4A7C15) & MASK) for i in range(-(-count // 8))]
    return struct.pack(f"<{len(words)}Q", *words)[:count]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def leftovers(directory):
    return sorted(os.listdir(directory))


def test_every_byte_follows_from_the_definition(tmp_path):
    path = tmp_path / "m.safetensors"
    raffia("make-model", path, "--size", "64KiB", "--seed", "42")
    header, start_of_data = read_header(path)
    assert header.pop("__metadata__") == {"format": "pt", "raffia.pattern": "1", "raffia.seed": "42"}
    data = path.read_bytes()[start_of_data:]
    assert start_of_data % 8 == 0
    end = 0
    for name, entry in header.items():
        begin, after = entry["data_offsets"]
        assert begin == end
        elements = 1
        for extent in entry["shape"]:
            elements *= extent
        assert after - begin == elements * 2 and entry["dtype"] == "BF16"
        assert data[begin:after] == pattern(42, name, after - begin), name
        end = after
    assert end == len(data)


@pytest.mark.parametrize("size", ["64KiB", "100000", "1MiB", "3.5MiB", "20MB"])
@pytest.mark.parametrize("dtype,width", [("BF16", 2), ("F32", 4), ("F8_E4M3", 1)])
def test_the_size_is_met_within_two_rows(tmp_path, size, dtype, width):
    path = tmp_path / "m.safetensors"
    report = raffia("make-model", path, "--size", size, "--dtype", dtype, "--json").json
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "MB": 10**6}
    unit = next((u for u in units if size.endswith(u)), "")
    asked = float(size[: len(size) - len(unit)]) * units.get(unit, 1)
    assert asked - 3 * report["hidden"] * width < report["bytes"] <= asked
    header, start_of_data = read_header(path)
    assert path.stat().st_size == start_of_data + report["bytes"]
    assert len(header) - 1 == report["tensors"]


def test_the_same_seed_gives_the_same_file(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    for path, seed in zip(paths, ["9", "9", "10"]):
        raffia("make-model", path, "--size", "300KiB", "--seed", seed)
    assert digest(paths[0]) == digest(paths[1]) != digest(paths[2])


def test_shards_make_one_model(tmp_path):
    whole, sharded = tmp_path / "whole", tmp_path / "sharded"
    raffia("make-model", whole, "--size", "1MiB", "--seed", "3")
    raffia("make-model", f"{sharded}/", "--size", "1MiB", "--seed", "3", "--shards", "4")
    index = json.loads((sharded / "model.safetensors.index.json").read_text())
    names = [f"model-{i:05}-of-00004.safetensors" for i in range(1, 5)]
    assert leftovers(sharded) == names + ["model.safetensors.index.json"]
    total, found = 0, {}
    for name in names:
        header, start_of_data = read_header(sharded / name)
        assert header.pop("__metadata__")["raffia.seed"] == "3"
        data = (sharded / name).read_bytes()[start_of_data:]
        assert len(data) > 100 << 10, "a shard is far from its share"
        total += len(data)
        for tensor, entry in header.items():
            assert index["weight_map"][tensor] == name
            found[tensor] = data[slice(*entry["data_offsets"])]
    assert index["metadata"]["total_size"] == total
    header, start_of_data = read_header(whole)
    del header["__metadata__"]
    data = whole.read_bytes()[start_of_data:]
    assert found == {n: data[slice(*e["data_offsets"])] for n, e in header.items()}


@pytest.mark.parametrize("shards", ["1", "75"])
def test_shards_from_one_to_as_many_as_there_are_tensors(tmp_path, shards):
    raffia("make-model", tmp_path / "d", "--size", "64KiB", "--shards", shards)
    assert len(leftovers(tmp_path / "d")) == int(shards) + 1


def test_too_many_shards_are_refused(tmp_path):
    result = raffia("make-model", tmp_path / "d", "--size", "64KiB", "--shards", "76", expect=FAILURE)
    assert "75 tensors" in result.err
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["m"],
        ["--size", "1MiB"],
        ["m", "--size", "1 MiB"],
        ["m", "--size", "-1"],
        ["m", "--size", "63KiB"],
        ["m", "--size", "none"],
        ["m", "--size", "5TiB"],
        ["m", "--size", "99999999999999999999"],
        ["m", "n", "--size", "1MiB"],
        ["m", "--size", "1MiB", "--seed", "x"],
        ["m", "--size", "1MiB", "--seed", "-1"],
        ["m", "--size", "1MiB", "--shards", "0"],
        ["m", "--size", "1MiB", "--shards", "100000"],
        ["m", "--size", "1MiB", "--dtype", "BF17"],
        ["m", "--size", "1MiB", "--dtype", "F4"],
        ["", "--size", "1MiB"],
    ],
)
def test_a_bad_line_is_refused_and_writes_nothing(tmp_path, arguments):
    result = raffia("make-model", *arguments, expect=USAGE, cwd=tmp_path)
    assert result.out == "" and result.err.startswith("raffia make-model: ")
    assert leftovers(tmp_path) == []


def test_an_existing_file_is_replaced_only_by_force(tmp_path):
    path = tmp_path / "m"
    path.write_text("precious")
    assert "--force" in raffia("make-model", path, "--size", "64KiB", expect=FAILURE).err
    assert path.read_text() == "precious"
    raffia("make-model", path, "--size", "64KiB", "--force")
    assert path.stat().st_size > 60 << 10
    assert leftovers(tmp_path) == ["m"]


def test_directories_are_not_replaced(tmp_path):
    directory = tmp_path / "d"
    directory.mkdir()
    raffia("make-model", directory, "--size", "64KiB", "--force", expect=FAILURE)
    raffia("make-model", directory, "--size", "64KiB", "--shards", "2")  # empty: taken
    before = leftovers(directory)
    raffia("make-model", directory, "--size", "64KiB", "--shards", "3", "--force", expect=FAILURE)
    assert leftovers(directory) == before
    assert leftovers(tmp_path) == ["d"]


def test_a_failure_is_one_sentence_and_with_json_an_object(tmp_path):
    result = raffia("make-model", tmp_path / "no" / "m", "--size", "64KiB", "--json", expect=FAILURE)
    error = result.json["error"]
    assert error["status"] == "RAFFIA_ERROR_NOT_FOUND"
    assert result.err == f"raffia: {error['message']}\n"


def test_a_full_disk_is_noticed_first(tmp_path):
    if shutil.disk_usage(tmp_path).free >= 4 << 40:
        pytest.skip("the disk has room for the largest model")
    result = raffia("make-model", tmp_path / "m", "--size", "4TiB", expect=FAILURE)
    assert "free" in result.err
    assert leftovers(tmp_path) == []


def test_a_failed_write_removes_what_was_written(tmp_path):
    def limit_file_size():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    for extra in [], ["--shards", "2"]:
        result = raffia(
            "make-model", tmp_path / "m", "--size", "6MiB", *extra, expect=FAILURE, preexec=limit_file_size
        )
        assert "cannot write" in result.err
        assert leftovers(tmp_path) == []


def stop_in_the_middle(tmp_path, signal_number, *extra):
    out = tmp_path / "m"
    process = start("make-model", out, "--size", "3GiB", *extra)

    def some_bytes_are_there():
        paths = [os.path.join(d, f) for d, _, files in os.walk(tmp_path) for f in files]
        return any(os.path.getsize(path) > 0 for path in paths)

    wait_until(some_bytes_are_there)
    process.send_signal(signal_number)
    _, err = process.communicate(timeout=120)
    assert not out.exists()
    return process.returncode, err


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("extra", [[], ["--shards", "3"]])
def test_an_interrupt_leaves_nothing(tmp_path, signal_number, extra):
    code, err = stop_in_the_middle(tmp_path, signal_number, *extra)
    assert code == FAILURE and "interrupted" in err
    assert leftovers(tmp_path) == []


def test_a_kill_leaves_no_model(tmp_path):
    code, _ = stop_in_the_middle(tmp_path, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert all(".partial-" in name for name in leftovers(tmp_path))


def test_a_bar_is_drawn_on_a_terminal_and_nowhere_else(tmp_path):
    shown = run_on_a_terminal("make-model", tmp_path / "m", "--size", "4MiB")
    assert "writing [" in shown and "100%" in shown
    assert raffia("make-model", tmp_path / "n", "--size", "4MiB").err == ""


def test_files_have_the_usual_rights(tmp_path):
    path = tmp_path / "m"
    raffia("make-model", path, "--size", "64KiB", preexec=lambda: os.umask(0o027))
    assert path.stat().st_mode & 0o777 == 0o640
