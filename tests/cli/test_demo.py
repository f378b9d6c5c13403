"""scripts/demo where huge pages cannot be had: it falls back, says why, and succeeds.

The three places of every bug report: a machine without huge pages, a container whose limit is 0, and
a user without rights.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import CLI, free_hugetlb_pages, hugetlb_pages, without_transparent_pages

DEMO = pathlib.Path(__file__).parents[2] / "scripts" / "demo"
NOBODY = 65534
MODEL = "16MiB"
PAGES_FOR_MODEL = 32  # of 2 MiB: the model, its padding, and as much again

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("RAFFIA_SANITIZE")), reason="a sanitized command is no demonstration"
)


def demo(directory, *, command=(), cli=CLI, preexec=None):
    """Runs the demo to its end; returns everything it printed."""
    environment = {**os.environ, "RAFFIA_CLI": str(cli), "DEMO_DIR": str(directory), "SIZE": MODEL, "RUNS": "1"}
    done = subprocess.run(
        [*command, str(DEMO)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        env=environment,
        preexec_fn=preexec,
    )
    assert done.returncode == 0, done.stdout
    assert "load.standinghuge" in done.stdout
    return done.stdout


@contextlib.contextmanager
def group_without_huge_pages():
    """A control group whose limit on 2 MiB pages is 0, as a container gets that did not ask."""
    root = next(
        (
            pathlib.Path(fields[1])
            for fields in (line.split() for line in open("/proc/mounts"))
            if fields[2] == "cgroup2"
        ),
        None,
    )
    if os.geteuid() != 0 or root is None or "hugetlb" not in (root / "cgroup.controllers").read_text():
        pytest.skip("no control group can be given a limit on huge pages here")
    group = root / f"raffia-test-{os.getpid()}"
    switched_on = "hugetlb" not in (root / "cgroup.subtree_control").read_text()
    if switched_on:
        (root / "cgroup.subtree_control").write_text("+hugetlb")
    try:
        group.mkdir()
        (group / "hugetlb.2MB.max").write_text("0")
        yield group
    finally:
        group.rmdir()
        if switched_on:
            (root / "cgroup.subtree_control").write_text("-hugetlb")


def test_a_machine_without_huge_pages(tmp_path):
    if free_hugetlb_pages() > 0:
        pytest.skip("this machine has hugetlb pages set aside")
    shown = demo(tmp_path, preexec=without_transparent_pages)
    assert "disabled" in shown
    assert "4 KiB regular" in shown


def test_a_container_whose_limit_is_zero(tmp_path):
    with hugetlb_pages(PAGES_FOR_MODEL), group_without_huge_pages() as group:

        def enter():
            (group / "cgroup.procs").write_text(str(os.getpid()))

        shown = demo(tmp_path, preexec=enter)
        assert "cgroup" in shown and "hugetlb.2MB.max" in shown
        assert free_hugetlb_pages() >= PAGES_FOR_MODEL, "the demo took pages it may not have"


def test_a_user_without_rights(tmp_path):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can become nobody")
    become_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    readable = subprocess.run([*become_nobody, "test", "-x", str(DEMO)], check=False).returncode == 0
    if not readable:
        pytest.skip("nobody may not read this checkout")
    # Directories that pytest makes are for their owner alone.
    home = pathlib.Path("/tmp") / f"raffia-nobody-{os.getpid()}"
    home.mkdir()
    try:
        cli = shutil.copy(CLI, home)
        work = home / "demo"
        work.mkdir()
        os.chown(work, NOBODY, NOBODY)
        shown = demo(work, command=become_nobody, cli=cli)
        assert "load.fresh4k_over_pool" in shown
    finally:
        shutil.rmtree(home)
