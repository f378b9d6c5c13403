"""What the tests of the command share: running it, and small model files."""

import contextlib
import ctypes
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import time

import pytest

CLI = os.environ["RAFFIA_CLI"]

# Exit codes.
OK, FAILURE, USAGE = 0, 1, 2


class Result:
    def __init__(self, completed):
        self.code = completed.returncode
        self.out = completed.stdout
        self.err = completed.stderr

    @property
    def json(self):
        return json.loads(self.out)


def raffia(*arguments, expect=OK, env=None, preexec=None, cwd=None):
    """Runs the command to its end and checks its exit code."""
    completed = subprocess.run(
        [CLI, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **(env or {})},
        preexec_fn=preexec,
        cwd=cwd,
    )
    assert completed.returncode == expect, (arguments, completed.stdout, completed.stderr)
    return Result(completed)


def start(*arguments, **options):
    """Starts the command and returns while it runs."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([CLI, *map(str, arguments)], **{**pipes, **options})


def run_on_a_terminal(*arguments):
    """What a terminal shows of the command's standard error."""
    leader, follower = pty.openpty()
    process = start(*arguments, stdout=subprocess.DEVNULL, stderr=follower)
    os.close(follower)
    shown = b""
    while True:
        readable, _, _ = select.select([leader], [], [], 120)
        assert readable, "nothing was shown for two minutes"
        try:
            piece = os.read(leader, 4096)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    assert process.wait(timeout=60) == OK
    return shown.decode()


def happens(condition, seconds):
    """Waits for something to happen; False if it does not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return False


def wait_until(condition, seconds=60):
    """Waits for something to happen, and fails if it does not."""
    if not happens(condition, seconds):
        pytest.fail("it did not happen")


@pytest.fixture(scope="session", autouse=True)
def one_at_a_time():
    """The pool of hugetlb pages is the machine's: whoever tests with it, here or with
    tests/driver/hugetlb_turn.c, in this run of the tests or another, waits for the others. Without the
    right to wait there is none to change the pool either."""
    try:
        try:
            lock = open("/tmp/raffia-test-hugetlb.lock")  # maybe another user's
        except FileNotFoundError:
            lock = open("/tmp/raffia-test-hugetlb.lock", "w")
    except PermissionError:
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


HUGETLB = "/sys/kernel/mm/hugepages/hugepages-2048kB"


def number_in(path):
    with open(path) as file:
        return int(file.read())


def free_hugetlb_pages():
    return number_in(f"{HUGETLB}/free_hugepages") - number_in(f"{HUGETLB}/resv_hugepages")


@contextlib.contextmanager
def hugetlb_pages(count):
    """Sets 2 MiB pages aside while a test runs, and skips it if that cannot be done."""
    knob = f"{HUGETLB}/nr_hugepages"
    if os.geteuid() != 0 or not os.access(knob, os.W_OK):
        pytest.skip("setting hugetlb pages aside needs root")
    before = number_in(knob)
    # No test has pages now, but whoever is no test waits for no turn.
    if not happens(lambda: free_hugetlb_pages() == before, seconds=2):
        pytest.skip("somebody else uses the machine's hugetlb pages")
    try:
        with open(knob, "w") as file:
            file.write(str(before + count))
        if number_in(knob) < before + count:
            pytest.skip(f"the kernel does not give {count} hugetlb pages")
        yield
    finally:
        with open(knob, "w") as file:
            file.write(str(before))


def without_transparent_pages():
    """For preexec: the command then runs with PR_SET_THP_DISABLE."""
    PR_SET_THP_DISABLE = 41
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0:
        os._exit(99)


def read_header(path):
    """The header of a safetensors file and the offset of its data."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        return json.loads(file.read(length)), 8 + length


def write_safetensors(path, tensors, metadata=None):
    """Writes name -> (dtype, shape, bytes), independently of the code under test."""
    header, end = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        offsets = [end, end + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        end += len(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(content for _, _, content in tensors.values())


@pytest.fixture
def model(tmp_path):
    """A small model with the pattern."""
    path = tmp_path / "model.safetensors"
    raffia("make-model", path, "--size", "1MiB", "--seed", "5")
    return path
