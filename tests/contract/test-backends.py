#!/usr/bin/python3
"""The contract of gpu/gpu.h over every backend, NVML's on a simulated node.

usage: test-backends.py PROGRAM
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import uwtest  # noqa: E402

with uwtest.Node(board="v100", count=2, may_set="anyone") as node:
    library = os.path.join(node.state, "lib", "libnvidia-ml.so.1")
    sys.exit(subprocess.run([sys.argv[1], library], check=False).returncode)
