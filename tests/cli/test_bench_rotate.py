"""raffia bench rotate: that a pool which stands is not touched again, and that its report is whole."""

import os
import signal

import pytest

from conftest import FAILURE, USAGE, hugetlb_pages, raffia, start, wait_until

WAYS = ["rotate.stay", "rotate.turns", "rotate.rebuilt", "rotate.regular"]
SMALL = ["--size", "4MiB", "--models", "3", "--rounds", "4", "--threads", "2"]


def rotate(tmp_path, *extra):
    return raffia("bench", "rotate", *SMALL, "--dir", tmp_path, "--json", *extra).json


def ways_of(report):
    return {way["name"]: way for way in report["ways"]}


def test_the_report_is_whole(tmp_path):
    report = rotate(tmp_path)
    assert set(report) == {"title", "machine", "models", "model_bytes", "unit", "ways", "notes"}
    assert report["models"] == 3 and report["model_bytes"] == 4 << 20
    assert [way["name"] for way in report["ways"]] == WAYS
    for way in report["ways"]:
        assert way["loads"] == 12 and way["failures"] == 0
        assert len(way["rounds"]) == 4
        assert way["after_first_round"]["max"] == max(each["max"] for each in way["rounds"][1:])
        for each in [way["after_first_round"], *way["rounds"]]:
            assert 0 < each["p50"] <= each["max"]
    assert os.listdir(tmp_path) == []


def test_b13_a_pool_that_stands_is_not_touched_again(tmp_path):
    ways = ways_of(rotate(tmp_path))
    for name in "rotate.stay", "rotate.turns":
        assert ways[name]["build_driver_calls"] > 0
        assert ways[name]["after_first_round"]["driver_calls"] == 0
    for name in "rotate.rebuilt", "rotate.regular":
        # Made and mapped for each of three models; what gives them back cannot be counted.
        assert [each["driver_calls"] for each in ways[name]["rounds"]] == [6] * 4
        assert ways[name]["pool_bytes"] == 0
    total = 3 * (4 << 20)
    assert 1.29 * total < ways["rotate.stay"]["pool_bytes"] < 1.3 * total + (2 << 20)
    assert ways["rotate.regular"]["pages"]["got"]["kind"] == "regular"


def test_b13_models_rotate_through_reserved_pages(tmp_path):
    with hugetlb_pages(10):
        ways = ways_of(rotate(tmp_path, "--pages", "on"))
    for name in WAYS[:3]:
        assert ways[name]["pages"]["got"]["kind"] == "hugetlb" and ways[name]["failures"] == 0


def test_the_text_says_the_same(tmp_path):
    text = raffia("bench", "rotate", *SMALL, "--dir", tmp_path).out
    assert all(name in text for name in WAYS)
    assert text.count("0 of 12 loads failed") == 4
    assert text.count(" 0 driver calls;") == 2


def test_one_round_has_no_rounds_after_it(tmp_path):
    ways = ways_of(rotate(tmp_path, "--rounds", "1"))
    assert ways["rotate.stay"]["after_first_round"] == {"p50": None, "max": None, "driver_calls": 0}


def test_it_is_listed():
    assert "rotate" in raffia("bench", "--help").out


@pytest.mark.parametrize("arguments", [["--models", "0"], ["--models", "17"], ["--rounds", "0"], ["file"]])
def test_a_bad_line_is_a_usage_error(arguments):
    result = raffia("bench", "rotate", *arguments, expect=USAGE)
    assert result.err.startswith("raffia bench rotate: ") and result.out == ""


def test_more_than_the_memory_is_refused(tmp_path):
    arguments = ["bench", "rotate", "--size", "4TiB", "--dir", tmp_path, "--json"]
    error = raffia(*arguments, expect=FAILURE).json["error"]
    assert error["status"] == "RAFFIA_ERROR_OUT_OF_MEMORY" and "--size" in error["message"]
    assert os.listdir(tmp_path) == []


def test_an_interrupt_leaves_nothing(tmp_path):
    process = start("bench", "rotate", "--size", "16MiB", "--models", "1", "--rounds", "10000", "--dir", tmp_path)
    # The model loses its name when it is complete: from then on it rotates.
    wait_until(lambda: os.listdir(tmp_path))
    wait_until(lambda: not os.listdir(tmp_path))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == FAILURE and "raffia: " in err
    assert os.listdir(tmp_path) == []
