"""raffia load: round trips, what it finds, and what it leaves behind."""

import contextlib
import hashlib
import os
import pathlib
import signal
import struct

import pytest

from conftest import (
    FAILURE,
    USAGE,
    free_hugetlb_pages,
    hugetlb_pages,
    raffia,
    read_header,
    run_on_a_terminal,
    start,
    wait_until,
    without_transparent_pages,
    write_safetensors,
)

READERS = ["auto", "buffered", "direct"]


def flip_bit(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


@pytest.fixture
def plain(tmp_path):
    """A model without the pattern, with tensors of awkward sizes."""
    path = tmp_path / "plain.safetensors"
    tensors = {f"t{n}": ("U8", [n], os.urandom(n)) for n in (1, 255, 256, 4097, 100003)}
    write_safetensors(path, {**tensors, "nothing": ("F32", [0, 4], b"")})
    return path


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("pages", ["off", "try"])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_what_is_made_loads_and_verifies(model, reader, pages, threads):
    report = raffia(
        "load", model, "--verify", "--reader", reader, "--pages", pages, "--threads", threads, "--json"
    ).json
    assert report["verified"]["method"] == "pattern" and report["verified"]["seed"] == 5
    assert report["verified"]["bytes"] == report["bytes"] > 1000000
    used = report["reader"]
    assert used["asked"] == reader
    assert used["bytes_buffered"] + used["bytes_direct"] == report["bytes"]
    if reader == "buffered":
        assert used["bytes_direct"] == 0


@pytest.mark.parametrize("reader", READERS)
def test_shards_load_and_verify(tmp_path, reader):
    raffia("make-model", tmp_path / "d", "--size", "1MiB", "--shards", "4", "--dtype", "U8")
    report = raffia("load", tmp_path / "d", "--verify", "--reader", reader, "--json").json
    assert report["files"] == 4 and report["verified"]["method"] == "pattern"


@pytest.mark.parametrize("reader", READERS)
def test_other_models_are_compared_with_their_file(plain, reader):
    report = raffia("load", plain, "--verify", "--reader", reader, "--json").json
    assert report["verified"] | {"seconds": 0} == {
        "method": "file",
        "tensors": 6,
        "bytes": report["bytes"],
        "seconds": 0,
    }


def test_the_report_says_what_happened(model):
    report = raffia("load", model, "--pages", "off", "--repeat", "3", "--json").json
    assert report["path"] == str(model) and report["device"] == "host"
    assert report["runs"] == 3 and len(report["seconds"]["runs"]) == 3
    seconds = report["seconds"]
    assert seconds["min"] <= seconds["total"] <= seconds["max"]
    assert seconds["total"] >= seconds["read"] > 0
    assert report["pages"]["got"] == {"kind": "regular", "size": os.sysconf("SC_PAGESIZE")}
    assert report["pages"]["asked"] == report["pages"]["got"]
    assert report["memory_bytes"] >= report["bytes"]
    assert report["process"]["minor_faults"] > 0
    assert report["process"]["page_table_bytes_after"] > 0
    assert "checksums" not in report and "verified" not in report


def test_people_get_the_same_in_words(model):
    text = raffia("load", model, "--pages", "off", "--repeat", "2", "--verify").out
    for word in "total", "median of 2 runs", "open", "map", "read", "reader", "pages", "process", "verified":
        assert word in text
    assert "verified by construction" in text
    assert "regular" in text and "the pattern's (seed 5)" in text


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_one_wrong_bit_is_found_and_named(model, reader, where):
    header, start_of_data = read_header(model)
    name = "model.layers.3.mlp.up_proj.weight"
    begin, end = header[name]["data_offsets"]
    offset = {"first": 0, "middle": (end - begin) // 2 + 3, "last": end - begin - 1}[where]
    flip_bit(model, start_of_data + begin + offset)
    result = raffia("load", model, "--verify", "--reader", reader, "--json", expect=FAILURE)
    error = result.json["error"]
    assert error["status"] == "RAFFIA_ERROR_MISMATCH"
    assert error["tensor"] == name and error["offset"] == offset
    assert name in result.err and str(offset) in result.err
    raffia("load", model, "--reader", reader)  # without --verify nobody looks


def test_tensors_that_changed_places_are_found(model):
    """Both have the same shape: each byte is one of the file's, but in the wrong place."""
    header, start_of_data = read_header(model)
    places = [header[f"model.layers.{i}.self_attn.q_proj.weight"]["data_offsets"] for i in (0, 1)]
    content = bytearray(model.read_bytes())
    first, second = (slice(start_of_data + b, start_of_data + e) for b, e in places)
    content[first], content[second] = content[second], content[first]
    model.write_bytes(content)
    error = raffia("load", model, "--verify", "--json", expect=FAILURE).json["error"]
    assert error["tensor"] == "model.layers.0.self_attn.q_proj.weight" and error["offset"] == 0


def test_a_truncated_file_is_refused(model):
    size = model.stat().st_size
    os.truncate(model, size - 1)
    error = raffia("load", model, "--json", expect=FAILURE).json["error"]
    assert error["status"] == "RAFFIA_ERROR_FORMAT" and str(model) in error["message"]


def test_a_missing_file_is_a_failure(tmp_path):
    error = raffia("load", tmp_path / "no", "--json", expect=FAILURE).json["error"]
    assert error["status"] == "RAFFIA_ERROR_NOT_FOUND"


def test_only_the_tensors_asked_for_are_loaded(model):
    report = raffia(
        "load", model, "--tensor", "model.layers.0.*", "--tensor", "lm_head.weight", "--checksum", "--json"
    ).json
    assert report["tensors"] == 10 and len(report["checksums"]) == 10
    assert "lm_head.weight" in report["checksums"]
    error = raffia("load", model, "--tensor", "no.such", "--json", expect=FAILURE).json["error"]
    assert error["status"] == "RAFFIA_ERROR_NOT_FOUND" and "no.such" in error["message"]


def test_checksums_do_not_depend_on_the_way(model):
    seen = [
        raffia("load", model, "--checksum", "--json", "--reader", reader, "--pages", pages).json["checksums"]
        for reader in READERS
        for pages in ("off", "try")
    ]
    assert all(checksums == seen[0] for checksums in seen)
    assert len(set(seen[0].values())) == len(seen[0])  # no two tensors are alike


def test_a_tensor_can_be_extracted(plain, tmp_path):
    header, start_of_data = read_header(plain)
    out, empty = tmp_path / "out=1.bin", tmp_path / "empty.bin"
    raffia("load", plain, "--extract", f"t4097={out}", "--extract", f"nothing={empty}")
    begin, end = header["t4097"]["data_offsets"]
    assert out.read_bytes() == plain.read_bytes()[start_of_data:][begin:end]
    assert empty.read_bytes() == b""


def test_a_failed_extract_leaves_nothing(plain, tmp_path):
    before = sorted(os.listdir(tmp_path))
    raffia("load", plain, "--extract", f"missing={tmp_path / 'x'}", expect=FAILURE)
    raffia("load", plain, "--extract", f"t1={tmp_path / 'no' / 'x'}", expect=FAILURE)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.fixture
def sharded(tmp_path):
    raffia("make-model", tmp_path / "d", "--size", "1MiB", "--shards", "3")
    return tmp_path / "d"


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def test_no_file_of_the_model_is_extracted_to(plain, tmp_path):
    hard, soft = tmp_path / "hard", tmp_path / "soft"
    os.link(plain, hard)
    soft.symlink_to(plain)
    before = contents(tmp_path)
    for model, target in (plain, plain), (plain, hard), (plain, soft), (soft, plain), (soft, soft), (tmp_path, plain):
        result = raffia("load", model, "--extract", f"t1={target}", "--json", expect=USAGE)
        assert result.json["error"]["status"] == "RAFFIA_ERROR_INVALID_ARGUMENT"
        assert "file of the model itself" in result.err
    assert soft.is_symlink() and contents(tmp_path) == before
    assert "itself" in raffia("load", "plain.safetensors", "--extract", "t1=./plain.safetensors", expect=USAGE, cwd=tmp_path).err


def test_no_shard_and_no_index_is_extracted_to(sharded):
    before = contents(sharded)
    assert len(before) == 4
    for target in before:
        for path in sharded, sharded / "model.safetensors.index.json":
            line = ["load", path, "--tensor", "lm_head.weight", "--extract", f"lm_head.weight={sharded / target}"]
            raffia(*line, expect=USAGE)
    assert contents(sharded) == before


def test_a_file_takes_one_tensor(plain, tmp_path):
    (tmp_path / "also").symlink_to(tmp_path)
    before = sorted(os.listdir(tmp_path))
    out = tmp_path / "x"
    for other in out, f"{tmp_path}/./x", tmp_path / "also" / "x":
        result = raffia("load", plain, "--extract", f"t1={out}", "--extract", f"t255={other}", expect=USAGE)
        assert "'t1'" in result.err and "'t255'" in result.err
    assert sorted(os.listdir(tmp_path)) == before


def test_an_extract_is_refused_before_anything_is_loaded(plain, tmp_path):
    log = {"RAFFIA_LOG": "info"}
    assert "loaded" in raffia("load", plain, env=log).err
    for request, word in (
        (f"nope={tmp_path / 'x'}", "no tensor 'nope'"),
        (f"t1={tmp_path / 'no' / 'x'}", "no/x: cannot"),
        (f"t1={tmp_path}", "no regular file"),
    ):
        result = raffia("load", plain, "--extract", request, expect=FAILURE, env=log)
        assert word in result.err and "loaded" not in result.err
    line = ["load", plain, "--tensor", "t255", "--extract", f"t1={tmp_path / 'x'}"]
    assert "among those to load" in raffia(*line, expect=FAILURE).err


def test_names_with_an_equals_sign_are_extracted(tmp_path):
    path = tmp_path / "m.safetensors"
    write_safetensors(path, {"a": ("U8", [1], b"1"), "a=b": ("U8", [2], b"22"), "c=": ("U8", [3], b"333")})
    line = ["load", path.name, "--extract"]
    raffia(*line, "a=b=f", cwd=tmp_path)
    raffia(*line, "c==g=h", cwd=tmp_path)
    raffia(*line, "a=./b=f", cwd=tmp_path)
    assert (tmp_path / "f").read_bytes() == b"22"
    assert (tmp_path / "g=h").read_bytes() == b"333"
    assert (tmp_path / "b=f").read_bytes() == b"1"


def test_only_a_regular_file_is_replaced(plain, tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    before = sorted(os.listdir(tmp_path))
    for path in pipe, link:
        for line in ["load", plain, "--extract", f"t1={path}"], ["make-model", path, "--size", "64KiB", "--force"]:
            assert "no regular file" in raffia(*line, expect=FAILURE).err
    assert pipe.is_fifo() and link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["a", "b"],
        ["a", "--pages", "yes"],
        ["a", "--reader", "mmap"],
        ["a", "--threads", "0"],
        ["a", "--threads", "-1"],
        ["a", "--budget", "64 MiB"],
        ["a", "--budget", "none"],
        ["a", "--repeat", "0"],
        ["a", "--repeat", "1e3"],
        ["a", "--page-size", "2GiB"],
        ["a", "--page-size", "3MiB"],
        ["a", "--budget", "1"],
        ["a", "--stall-timeout", "1.5"],
        ["a", "--extract", "name"],
        ["a", "--extract", "=file"],
        ["a", "--extract", "name="],
    ],
)
def test_a_bad_line_is_a_usage_error(arguments):
    result = raffia("load", *arguments, expect=USAGE)
    assert result.out == "" and result.err.startswith("raffia load: ")


def test_a_device_that_is_not_there_is_a_failure(model):
    result = raffia("load", model, "--device", "tape:0", "--json", expect=FAILURE)
    assert result.json["error"]["status"] == "RAFFIA_ERROR_NOT_FOUND"


def test_a_budget_is_kept(model):
    report = raffia("load", model, "--reader", "direct", "--budget", "256KiB", "--verify", "--json").json
    assert report["reader"]["staging_bytes"] <= 256 << 10


# Pages.


@contextlib.contextmanager
def memory_limit(limit_bytes):
    """What a child must call first to live in a control group with so much memory."""
    group = pathlib.Path(f"/sys/fs/cgroup/memory/raffia-test-{os.getpid()}")
    if not os.access(group.parent / "tasks", os.W_OK):
        pytest.skip("no control group with a memory limit can be made")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
        yield lambda: (group / "tasks").write_text("0")
    finally:
        group.rmdir()


@pytest.mark.skipif(bool(os.environ.get("RAFFIA_SANITIZE")), reason="a sanitizer takes memory of its own")
def test_staging_stays_within_a_memory_limit(tmp_path):
    """Tensors too small to be read into place, of which the group holds just one set."""
    path = tmp_path / "small.safetensors"
    write_safetensors(path, {f"t{i}": ("U8", [48000], bytes(48000)) for i in range(1200)})
    with memory_limit(64 << 20) as enter:
        for reader in "direct", "auto":
            raffia("load", path, "--pages", "off", "--threads", "16", "--reader", reader, preexec=enter)


def no_pages_can_be_had():
    if os.path.exists("/sys/kernel/mm/hugepages/hugepages-2048kB") and free_hugetlb_pages() > 0:
        pytest.skip("hugetlb pages are set aside on this machine")


def test_on_fails_with_the_reason_when_there_are_none(model):
    no_pages_can_be_had()
    result = raffia("load", model, "--pages", "on", "--json", expect=FAILURE, preexec=without_transparent_pages)
    error = result.json["error"]
    assert error["status"] == "RAFFIA_ERROR_NO_HUGE_PAGES"
    assert len(error["message"]) > 40
    assert error["message"] in result.err


def test_try_falls_back_and_says_why(model):
    no_pages_can_be_had()
    result = raffia("load", model, "--pages", "try", "--verify", "--json", preexec=without_transparent_pages)
    pages = result.json["pages"]
    assert pages["got"]["kind"] == "regular" and pages["asked"]["kind"] in ("hugetlb", "transparent")
    assert pages["reason"] != "none" and pages["reason_text"]
    text = raffia("load", model, "--pages", "try", preexec=without_transparent_pages).out
    assert "because" in text and pages["reason"] in text


def test_hugetlb_pages_are_used_and_given_back(model):
    with hugetlb_pages(8):
        free = free_hugetlb_pages()
        report = raffia("load", model, "--pages", "on", "--verify", "--json").json
        assert report["pages"]["got"] == {"kind": "hugetlb", "size": 2 << 20}
        assert report["pages"]["verified"] and report["pages"]["verified_size"] == 2 << 20
        assert report["pages"]["reason"] == "none"
        assert free_hugetlb_pages() == free


# Being stopped.


@pytest.fixture
def large(tmp_path):
    """A model of 400 MiB that takes no room on the disk: its one tensor is a hole."""
    path, bytes_of_tensor = tmp_path / "large.safetensors", 400 << 20
    header = '{"t":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % ((bytes_of_tensor,) * 2)
    header += " " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        file.truncate(8 + len(header) + bytes_of_tensor)
    return path


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def stop_in_the_middle(path, signal_number, *extra):
    process = start("load", path, "--repeat", "100000", *extra)
    wait_until(lambda: resident_bytes(process.pid) > 100 << 20)
    process.send_signal(signal_number)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.mark.parametrize("pages", ["off", "try"])
def test_an_interrupt_ends_the_load(large, tmp_path, pages):
    out = tmp_path / "out.bin"
    code, stdout, err = stop_in_the_middle(large, signal.SIGINT, "--pages", pages, "--extract", f"t={out}")
    assert code == FAILURE and stdout == ""
    assert err.splitlines()[-1].startswith("raffia: interrupted: ") and "caller" not in err
    assert os.listdir(tmp_path) == [large.name]


def system_state(directory):
    state = {"files": sorted(os.listdir(directory)), "shm": sorted(os.listdir("/dev/shm"))}
    if os.path.exists("/sys/kernel/mm/hugepages/hugepages-2048kB"):
        state["hugetlb"] = free_hugetlb_pages()
    return state


def test_a_kill_leaves_nothing(large, tmp_path):
    before = system_state(tmp_path)
    code, _, _ = stop_in_the_middle(large, signal.SIGKILL, "--pages", "try")
    assert code == -signal.SIGKILL
    wait_until(lambda: system_state(tmp_path) == before)


def test_a_kill_gives_hugetlb_pages_back(large, tmp_path):
    with hugetlb_pages(220):
        before = system_state(tmp_path)
        process = start("load", large, "--repeat", "100000", "--pages", "on")
        wait_until(lambda: free_hugetlb_pages() < before["hugetlb"])
        process.kill()
        process.communicate(timeout=120)
        wait_until(lambda: system_state(tmp_path) == before)


def test_a_bar_is_drawn_on_a_terminal(large):
    assert "loading [" in run_on_a_terminal("load", large)
    assert raffia("load", large, "--pages", "off").err == ""


def test_the_model_is_not_touched(model):
    before = hashlib.sha256(model.read_bytes()).digest()
    raffia("load", model, "--verify", "--repeat", "2")
    assert hashlib.sha256(model.read_bytes()).digest() == before


HIDDEN = {"RAFFIA_SIM_MEMORY": "hidden"}  # as a GPU's memory is from the CPU


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("threads", ["1", "3"])
def test_a_device_gets_the_bytes_and_gives_them_back(model, reader, threads):
    report = raffia(
        "load", model, "--device", "sim:0", "--verify", "--reader", reader, "--threads", threads, "--json", env=HIDDEN
    ).json
    assert report["device"] == "sim:0" and report["verified"]["bytes"] == report["bytes"]
    used, copying = report["reader"], report["copying"]
    assert used["bytes_buffered"] + used["bytes_direct"] == report["bytes"]
    assert copying["bytes"] >= report["bytes"] and copying["copies"] >= 1
    assert copying["pinned"] == "registered"
    assert copying["slots"] * copying["slot_bytes"] == used["staging_bytes"] <= 64 << 20
    assert used["bytes_staged"] == 0


def test_models_of_others_are_compared_with_what_the_device_holds(plain):
    report = raffia("load", plain, "--device", "sim:0", "--verify", "--json", env=HIDDEN).json
    assert report["verified"]["method"] == "file"


def test_shards_go_to_a_device(tmp_path):
    raffia("make-model", tmp_path / "d", "--size", "1MiB", "--shards", "4", "--dtype", "U8")
    report = raffia("load", tmp_path / "d", "--device", "sim:0", "--verify", "--json", env=HIDDEN).json
    assert report["files"] == 4 and report["verified"]["method"] == "pattern"


def test_a_device_is_told_in_words(model):
    text = raffia("load", model, "--device", "sim:0", "--repeat", "2", "--verify", env=HIDDEN).out
    for word in "context", "ring", "wait", "copied", "registered", "slots of":
        assert word in text


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_one_wrong_bit_in_a_device_is_found_and_named(model, where):
    header, start_of_data = read_header(model)
    name = "model.layers.3.mlp.up_proj.weight"
    begin, end = header[name]["data_offsets"]
    offset = {"first": 0, "middle": (end - begin) // 2 + 3, "last": end - begin - 1}[where]
    flip_bit(model, start_of_data + begin + offset)
    error = raffia("load", model, "--device", "sim:0", "--verify", "--json", expect=FAILURE, env=HIDDEN).json["error"]
    assert error["tensor"] == name and error["offset"] == offset


def test_the_budget_bounds_the_slots(model):
    report = raffia(
        "load", model, "--device", "sim:0", "--budget", "256KiB", "--verify", "--json", env=HIDDEN
    ).json
    assert report["reader"]["staging_bytes"] <= 256 << 10
    assert report["copying"]["slots"] >= 2
    report = raffia(
        "load", model, "--device", "sim:0", "--verify", "--json", env={**HIDDEN, "RAFFIA_LOAD_SLOT": "1MiB"}
    ).json
    assert report["copying"]["slot_bytes"] == 1 << 20


def test_checksums_and_extracts_of_a_device_are_those_of_the_file(model, tmp_path):
    name = "model.layers.3.mlp.up_proj.weight"
    here = raffia("load", model, "--device", "host", "--checksum", "--json").json
    there = raffia(
        "load", model, "--device", "sim:0", "--checksum", "--extract", f"{name}={tmp_path / 'x'}", "--json", env=HIDDEN
    ).json
    assert here["checksums"] == there["checksums"]
    header, start_of_data = read_header(model)
    begin, end = header[name]["data_offsets"]
    assert (tmp_path / "x").read_bytes() == model.read_bytes()[start_of_data + begin : start_of_data + end]
