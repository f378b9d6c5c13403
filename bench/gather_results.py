#!/usr/bin/env python3
"""Puts the reports of scripts/gpu-bench into one file, and adds the ratio to the Python package.

usage: gather_results.py DIRECTORY [RESULT]

DIRECTORY holds copy.json, alloc.json, load.json, step.json, tlb.json and peer.json. The result goes to
bench/results/<gpu>-<date>.json if no name is given.
"""

import datetime
import json
import pathlib
import re
import sys

BENCHMARKS = ("copy", "alloc", "load", "step", "tlb")


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def gpu_name(load):
    """The model of the GPU as part of a file's name: "NVIDIA H200" is h200."""
    model = re.search(r"\((.*)\)$", load["title"]).group(1)
    words = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    return words.removeprefix("nvidia-")


def compare(load, peer):
    """Seconds of the package over seconds of a second load, of the same file; None if it did not run."""
    if "load_file" not in peer:
        return None
    return peer["load_file"]["median_s"] / load["values"]["load.second_seconds"]


def main(directory, result=None):
    directory = pathlib.Path(directory)
    reports = {name: read(directory / f"{name}.json") for name in BENCHMARKS}
    peer = read(directory / "peer.json")
    reports["load"]["ratios"]["load.safetensors_over_ours"] = compare(reports["load"], peer)
    reports["peer"] = peer
    if not result:
        day = datetime.date.today().isoformat()
        result = f"bench/results/{gpu_name(reports['load'])}-{day}.json"
    with open(result, "w", encoding="utf-8") as file:
        json.dump(reports, file, indent=1)
        file.write("\n")
    for name in BENCHMARKS:
        for kind in ("ratios", "values"):
            for key, value in reports[name][kind].items():
                print(f"{key:44} {value if value is None else format(value, '.4g')}")
    print(f"written to {result}")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(sys.argv[1], *(argument for argument in sys.argv[2:] if argument))
