"""raffia doctor: that it looks, tries, and is right about what it can check here."""

import os

from conftest import USAGE, hugetlb_pages, raffia, without_transparent_pages


def trial(report, kind, size=None):
    found = [t for t in report["trials"] if t["kind"] == kind and size in (None, t["page_size"])]
    return found[0] if found else None


def test_nothing_is_to_be_fixed_where_all_is_well():
    level = None
    for line in raffia("doctor").out.splitlines():
        level = line.split()[0] if line and not line.startswith(" ") else level
        assert not (level == "ok" and line.startswith("         fix:")), line


def test_it_looks_and_tries():
    report = raffia("doctor", "--json").json
    assert set(report) == {"facts", "findings", "trials", "gpus", "huge_pages"}
    assert report["facts"]["kernel"] == os.uname().release
    assert report["facts"]["base_page_size"] == os.sysconf("SC_PAGESIZE")
    for finding in report["findings"]:
        assert finding["level"] in ("ok", "warning", "problem")
        assert finding["topic"] and finding["what"]
        if finding["level"] != "ok":
            assert finding["why"] and finding["fix"]
    regular = trial(report, "regular")
    assert regular["ok"] and regular["page_size"] == os.sysconf("SC_PAGESIZE")
    for refused in (t for t in report["trials"] if not t["ok"]):
        assert refused["reason"] != "none" and refused["message"]


def test_people_get_the_same_in_words():
    text = raffia("doctor").out
    assert "memory:" in text and "4 KiB regular" in text
    assert "uge pages can be had here" in text


def test_a_switched_off_process_is_told_so():
    report = raffia("doctor", "--json", preexec=without_transparent_pages).json
    if report["facts"]["transparent"]:
        assert report["facts"]["transparent"]["process_disabled"]
        assert any("PR_SET_THP_DISABLE" in finding["what"] for finding in report["findings"])
        assert not trial(report, "transparent")["ok"]


def test_pages_that_are_set_aside_are_found():
    with hugetlb_pages(2):
        report = raffia("doctor", "--json").json
        tried = trial(report, "hugetlb", 2 << 20)
        assert tried["ok"] and tried["verified"]
        assert report["huge_pages"]


def test_it_takes_no_arguments():
    raffia("doctor", "me", expect=USAGE)


def test_gpus_are_told_or_why_there_are_none():
    gpus = raffia("doctor", "--json").json["gpus"]
    assert gpus["devices"] == [] and "RAFFIA_CUDA_LIBRARY" in gpus["why"]
    fake = {"RAFFIA_CUDA_LIBRARY": os.environ["FAKE_CUDA_LIBRARY"]}
    gpus = raffia("doctor", "--json", env=fake).json["gpus"]
    assert gpus["why"] == "" and gpus["devices"]
    for gpu in gpus["devices"]:
        assert gpu["name"].startswith("cuda:") and gpu["model"].startswith("Fake GPU")
        assert gpu["free_bytes"] <= gpu["total_bytes"]
        assert gpu["page_ok"] and not gpu["page_verified"] and gpu["pinning_ok"]
    assert "cuda:0: host memory can be pinned" in raffia("doctor", env=fake).out
