"""raffia inspect: what it says about good files, and that it refuses bad ones."""

import struct

import pytest

from conftest import FAILURE, USAGE, raffia, read_header, write_safetensors

TENSORS = {
    "b": ("F32", [2, 3], bytes(range(24))),
    "a": ("BF16", [5], bytes(10)),
    "scalar": ("I64", [], bytes(8)),
    "none": ("U8", [0], b""),
}


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.safetensors"
    write_safetensors(path, TENSORS, {"made by": "a test"})
    return path


def test_the_report_is_complete(small):
    report = raffia("inspect", small, "--json", "--tensors").json
    assert report["format"] == "safetensors"
    assert report["tensors"] == 4 and report["bytes"] == 42
    assert report["metadata"] == {"made by": "a test"}
    assert report["files"] == [{"path": str(small), "bytes": small.stat().st_size}]
    assert report["dtypes"]["F32"] == {"tensors": 1, "bytes": 24}
    assert set(report["dtypes"]) == {"F32", "BF16", "I64", "U8"}
    assert [t["name"] for t in report["largest"]] == ["b", "a", "scalar", "none"]
    header, start = read_header(small)
    assert [t["name"] for t in report["tensor_list"]] == ["a", "b", "none", "scalar"]
    for tensor in report["tensor_list"]:
        entry = header[tensor["name"]]
        assert tensor["dtype"] == entry["dtype"] and tensor["shape"] == entry["shape"]
        if tensor["bytes"]:
            assert tensor["offset"] == start + entry["data_offsets"][0]
        assert tensor["bytes"] == entry["data_offsets"][1] - entry["data_offsets"][0]


def test_the_list_comes_only_when_asked_for(small):
    assert "tensor_list" not in raffia("inspect", small, "--json").json
    assert "[2, 3]" in raffia("inspect", small, "--tensors").out


def test_the_largest_five_come_first(tmp_path):
    path = tmp_path / "many.safetensors"
    sizes = [3, 9, 1, 7, 5, 8, 2]
    write_safetensors(path, {f"t{n}": ("U8", [n], bytes(n)) for n in sizes})
    report = raffia("inspect", path, "--json").json
    assert [t["bytes"] for t in report["largest"]] == [9, 8, 7, 5, 3]


def test_shards_are_one_model(tmp_path):
    raffia("make-model", tmp_path / "d", "--size", "256KiB", "--shards", "3")
    whole = raffia("inspect", tmp_path / "d", "--json").json
    assert len(whole["files"]) == 3
    assert whole["metadata"]["raffia.pattern"] == "1"
    index = raffia("inspect", tmp_path / "d" / "model.safetensors.index.json", "--json").json
    assert index["tensors"] == whole["tensors"] and index["bytes"] == whole["bytes"]


def test_names_cannot_drive_the_terminal(tmp_path):
    path = tmp_path / "evil.safetensors"
    write_safetensors(path, {"x\x1b[31m\n": ("U8", [1], b"1")}, {"k\x07": "v\x1b]0;t\x07"})
    text = raffia("inspect", path, "--tensors").out
    assert "\x1b" not in text and "\x07" not in text and "x?[31m?" in text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1234567",
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 2) + b"{]",
        struct.pack("<Q", 2) + b"{}tail",
    ],
)
def test_a_malformed_file_is_refused_with_a_reason(tmp_path, content):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    result = raffia("inspect", path, "--json", expect=FAILURE)
    error = result.json["error"]
    assert error["status"] in ("RAFFIA_ERROR_FORMAT", "RAFFIA_ERROR_LIMIT")
    assert str(path) in error["message"]
    assert result.err == f"raffia: {error['message']}\n"


def test_bytes_behind_the_last_tensor_are_accepted_only_leniently(small):
    with open(small, "ab") as file:
        file.write(b"more")
    raffia("inspect", small, expect=FAILURE)
    assert raffia("inspect", small, "--lenient", "--json").json["tensors"] == 4


def test_a_missing_file_is_a_failure_and_no_file_a_usage_error(tmp_path):
    result = raffia("inspect", tmp_path / "none", "--json", expect=FAILURE)
    assert result.json["error"]["status"] == "RAFFIA_ERROR_NOT_FOUND"
    raffia("inspect", expect=USAGE)
    raffia("inspect", "a", "b", expect=USAGE)


def test_a_file_without_tensors_counts_as_it_does_for_load(tmp_path):
    path = tmp_path / "empty.safetensors"
    write_safetensors(path, {})
    files = raffia("inspect", path, "--json").json["files"]
    assert [file["path"] for file in files] == [str(path)] and files[0]["bytes"] == path.stat().st_size
    assert raffia("load", path, "--json").json["files"] == 1
