#!/usr/bin/python3
"""The interface of Zeus in a simulated node.  Standard library alone."""
import subprocess

import pyuser
import uwtest

LIMITS = """
import sys
import underwatt.compat.zeus as zeus
from underwatt.compat.zeus.device.gpu import ZeusGPUNotSupportedError, ZeusGPUNoPermissionError
gpus = zeus.device.get_gpus()
print(len(gpus), gpus.gpus[0].underwatt_gpu, *gpus.get_power_management_limit_constraints(0), gpus.get_power_management_limit(0))
try:
    gpus.set_power_management_limit(0, 200000)
except ZeusGPUNoPermissionError as e:
    print("refused", e)
    sys.exit()
print(gpus.get_power_management_limit(0))
try:
    gpus.set_gpu_locked_clocks(0, 300, 900)
except ZeusGPUNotSupportedError as e:
    print("refused", e, flush=True)
for line in sys.stdin:
    gpus.set_power_management_limit(0, int(line))
    print(gpus.get_power_management_limit(0), flush=True)
"""

DEVICES = """
import json
import underwatt.compat.zeus as zeus
from underwatt.compat.zeus.device.gpu import nvidia
gpus = zeus.device.get_gpus(ensure_homogeneous=True)
print(json.dumps([nvidia.pynvml.__name__, [g.gpu_index for g in gpus.gpus], gpus.get_name(0), gpus.get_instant_power_usage(0),
    gpus.get_total_energy_consumption(0), gpus.supports_get_total_energy_consumption(0), gpus.get_gpu_temperature(0),
    max(gpus.get_supported_graphics_clocks(0)), zeus.device.get_gpus() is gpus]))
"""


def devices(t, node):
    uuids = [b["uuid"] for b in node.status()["boards"]]
    for text, want in (("1,0", [1, 0]), (f"{uuids[1]},0", [1, 0]), (uuids[1][:12], [1]), ("0,7,1", [0])):
        p = pyuser.in_world(node, DEVICES, CUDA_VISIBLE_DEVICES=text)
        if not t.ok(p.returncode == 0, f"CUDA_VISIBLE_DEVICES={text}", p.stderr):
            continue
        seam, indices, name, power, energy, counts, celsius, mhz, same = uwtest.json.loads(p.stdout)
        t.ok(seam.endswith("_nvml") and indices == want and "V100" in name and 20000 < power < 400000 and energy > 0 and counts
             and 20 < celsius < 95 and mhz > 1000 and same, "its GPUs and their readings", p.stdout)
    for text in ("", "9", "MIG-GPU-1"):
        p = pyuser.in_world(node, DEVICES, CUDA_VISIBLE_DEVICES=text)
        t.ok("ZeusGPUInitError: CUDA_VISIBLE_DEVICES=" in p.stderr, f"CUDA_VISIBLE_DEVICES='{text}': refused", p.stderr)


def limits(t, node):
    """Limits are claims with the daemon: those of a killed program end."""
    node.fault("0", "limit", "250W")  # not the board's highest
    p = pyuser.in_world(node, LIMITS, PATH="/nowhere")
    t.ok("refused" in p.stdout and "systemctl start underwattd" in p.stdout and node.board(0)["limit_mw"] == 250000,
         "nobody who sets limits: refused, with what to start", p.stdout + p.stderr)
    d = node.daemon("caps: {classes: {default: {ramp: at once}}}\n")
    p = pyuser.begun_in_world(node, LIMITS, stdin=subprocess.PIPE)
    lines = [p.stdout.readline().rstrip() for _ in range(3)]
    t.equal(lines[:2], [f"2 {node.board(0)['uuid']} 150000 300000 250000", "200000"], "a limit that is set holds")
    t.ok("clocks" in lines[2], "clocks are not locked", lines)
    told = d.ask("GET", "/v1/gpus/0/explain")[1]
    t.ok("zeus: -c" in str(told), "it is a claim, and says whose", told)
    for mw, want in ((180000, 180000), (300000, 250000), (280000, 250000), (170000, 170000)):
        p.stdin.write(f"{mw}\n")
        p.stdin.flush()
        t.equal(p.stdout.readline(), f"{want}\n", f"{mw} mW are asked for: at most what was found")
    t.ok(len(d.ask("GET", "/v1/claims")[1]["claims"]) == 1, "one claim at a time", d.ask("GET", "/v1/claims"))
    p.kill()
    uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 250000)
    t.equal(node.board(0)["limit_mw"], 250000, "kill -9: the limit that was found is back")


def main():
    t = uwtest.Tap()
    with uwtest.Node(board="v100", count=2) as node:
        devices(t, node)
        limits(t, node)
    t.done()


if __name__ == "__main__":
    main()
