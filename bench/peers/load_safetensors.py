#!/usr/bin/env python3
"""Times how the safetensors package loads a file onto a GPU, to lay beside `raffia load --json`.

usage: load_safetensors.py FILE [--device cuda] [--runs 5] [--raffia COMMAND]

Prints one JSON object. Each run is timed from the call to the moment the device has all of it; the
first is reported apart, as it also starts the device and may find the file outside the page cache.
With --raffia the command loads the same file in the same run, in turn. Where torch, safetensors or a
device is missing the object has "skipped" with the reason, and the exit code is 0.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file")
    parser.add_argument("--device", default="cuda", help="a device as torch names it (cuda)")
    parser.add_argument("--runs", type=int, default=5, help="runs that count, after the first (5)")
    parser.add_argument("--raffia", help="the raffia command, to load the file with too")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs: at least 1")
    if not os.path.isfile(options.file):
        parser.error(f"{options.file}: there is no such file")
    return options


def skip(reason):
    print(json.dumps({"skipped": reason}, indent=2))
    sys.exit(0)


def import_all(device):
    """torch and load_file, or the reason why not."""
    try:
        import torch
    except ImportError as error:
        skip(f"torch cannot be imported: {error}")
    try:
        import safetensors
        from safetensors.torch import load_file
    except ImportError as error:
        skip(f"safetensors cannot be imported: {error}")
    if device.startswith("cuda") and not torch.cuda.is_available():
        skip("torch finds no CUDA device")
    return torch, safetensors, load_file


def time_package(torch, load_file, options):
    """Seconds of one load; the tensors are dropped, and their memory given back, outside of it."""
    cuda = options.device.startswith("cuda")
    started = time.perf_counter()
    tensors = load_file(options.file, device=options.device)
    if cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    count = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    del tensors
    if cuda:
        torch.cuda.empty_cache()
    return seconds, count


def time_raffia(options):
    """What `raffia load --json` says of one load."""
    command = [options.raffia, "load", options.file, "--json"]
    if options.device.startswith("cuda"):
        command += ["--device", options.device if ":" in options.device else f"{options.device}:0"]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"error": {"message": done.stderr.strip()}}


def summary(seconds, count):
    median = statistics.median(seconds)
    return {
        "runs": len(seconds),
        "median_s": median,
        "min_s": min(seconds),
        "max_s": max(seconds),
        "bytes": count,
        "gb_per_second": count / median * 1e-9,
    }


def main():
    options = arguments()
    torch, safetensors, load_file = import_all(options.device)
    first, count = time_package(torch, load_file, options)
    seconds, raffia = [], []
    for _ in range(options.runs):
        seconds.append(time_package(torch, load_file, options)[0])
        if options.raffia:
            raffia.append(time_raffia(options))
    report = {
        "file": options.file,
        "device": options.device,
        "torch": torch.__version__,
        "safetensors": safetensors.__version__,
        "first_s": first,
        "load_file": summary(seconds, count),
    }
    if options.device.startswith("cuda"):
        report["device_name"] = torch.cuda.get_device_name(options.device)
    if raffia:
        report["raffia"] = raffia
    print(json.dumps(report, indent=2))


main()
