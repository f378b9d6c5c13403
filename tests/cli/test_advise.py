"""raffia advise: pool sizes, commands and expectations for models that are there."""

import pytest

from conftest import FAILURE, USAGE, hugetlb_pages, raffia

PAGE = 2 << 20
SEED = "seed figure, not measured here"


def model_of(tmp_path, name, size):
    path = tmp_path / name
    raffia("make-model", path, "--size", size)
    return path


def whole_pages(bytes, percent):
    return (bytes * percent + 100 * PAGE - 1) // (100 * PAGE) * PAGE


def test_b12_one_model_is_taken_for_resident(tmp_path):
    path = model_of(tmp_path, "a.safetensors", "8MiB")
    weights = raffia("inspect", path, "--json").json["bytes"]
    report = raffia("advise", path, "--json").json
    assert report["models"] == [{"path": str(path), "bytes": weights}]
    assert report["mode"] == "resident" and report["loads_per_day"] is None
    assert report["pool"]["bytes"] == whole_pages(weights, 120)
    assert report["pool"]["percent_of_weights"] == 120 and report["pool"]["fits"]
    assert "x 1.2" in report["pool"]["arithmetic"] and report["pool"]["why"]
    assert report["page"]["size"] == PAGE and report["page"]["why"]
    assert report["settings"] == {"RAFFIA_PAGES": "try", "RAFFIA_PAGE_SIZE": "2MiB"}


def test_b12_several_models_are_taken_for_rotating(tmp_path):
    paths = [model_of(tmp_path, "a.safetensors", "4MiB"), model_of(tmp_path, "b.safetensors", "6MiB")]
    report = raffia("advise", *paths, "--loads-per-day", "40", "--json").json
    weights = sum(model["bytes"] for model in report["models"])
    assert report["weight_bytes"] == weights
    assert report["mode"] == "rotate" and report["loads_per_day"] == 40
    assert report["pool"]["bytes"] == whole_pages(weights, 130)
    largest = max(model["bytes"] for model in report["models"])
    assert report["pool"]["bytes_if_they_take_turns"] == whole_pages(largest, 120)
    assert "raffia_load_options" in raffia("advise", *paths).out
    report = raffia("advise", *paths, "--resident", "--json").json
    assert report["mode"] == "resident" and report["pool"]["bytes"] == whole_pages(weights, 120)


def test_b12_the_seeds_figures_are_labelled(tmp_path, model):
    expectations = raffia("advise", model, "--json").json["expectations"]
    assert all(expectation["source"] == SEED for expectation in expectations)
    assert any("about 10 %" in e["text"] and e["applies"] for e in expectations)
    text = raffia("advise", model).out
    assert SEED in text and "about 10 %" in text and "256 MB" in text
    assert "41.2" not in text  # that was a large model


def test_b12_the_command_is_there_unless_pages_are(tmp_path, model):
    with hugetlb_pages(4):
        report = raffia("advise", model, "--json").json
        assert report["commands"] == []
        assert any("nothing is to be set aside" in note for note in report["notes"])
    for command in raffia("advise", model, "--json").json["commands"]:
        assert command.startswith("echo ") and "| sudo tee /" in command


def test_what_cannot_be_read_is_a_failure(tmp_path, model):
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"\xff" * 100)
    error = raffia("advise", model, bad, "--json", expect=FAILURE).json["error"]
    assert error["status"] == "RAFFIA_ERROR_FORMAT" or "bad.safetensors" in error["message"]
    raffia("advise", tmp_path / "missing", expect=FAILURE)


@pytest.mark.parametrize(
    "arguments", [[], ["m", "--resident", "--rotate"], ["m", "--loads-per-day", "-1"], ["m", "--loads-per-day", "x"]]
)
def test_a_bad_line_is_a_usage_error(arguments):
    result = raffia("advise", *arguments, expect=USAGE)
    assert result.err.startswith("raffia advise: ") and result.out == ""
