"""Gives contract.c a simulated node with processes of its own: contract.py PROGRAM."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import uwtest  # noqa: E402

with uwtest.Node(board="v100", count=4) as node:
    status = subprocess.run(
        [sys.argv[1], "nvml", os.path.join(node.state, "lib", "libnvidia-ml.so.1"),
         uwtest.program("underwatt-sim"), node.state], env=node.env(), timeout=50).returncode
sys.exit(status)
