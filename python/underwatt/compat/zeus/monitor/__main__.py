"""python -m zeus.monitor energy | power: until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from datetime import datetime

from .energy import ZeusMonitor
from .power import PowerMonitor


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def energy(gpu_indices: list[int] | None = None) -> None:
    """Time and energy until Ctrl-C."""
    monitor = ZeusMonitor(gpu_indices)
    monitor.begin_window("zeus.monitor.energy", sync_execution=False)
    try:
        signal.pause()
    except KeyboardInterrupt:
        _say("Total energy (J):", monitor.end_window("zeus.monitor.energy", sync_execution=False))


def power(gpu_indices: list[int] | None = None, update_period: float = 1.0) -> None:
    """Power, a line a period, until Ctrl-C; then time and energy."""
    monitor = PowerMonitor(gpu_indices=gpu_indices, update_period=update_period)
    began = time.time()
    try:
        while True:
            time.sleep(update_period)
            _say(datetime.now(), _named(monitor.get_power()))
    except KeyboardInterrupt:
        ended = time.time()
        _say("\nTotal time (s):", ended - began)
        _say("Total energy (J):", _named(monitor.get_energy(began, ended)))


def _named(by_gpu: dict[int, float] | None) -> dict[str, float] | None:
    return None if by_gpu is None else {f"GPU{gpu}": value for gpu, value in by_gpu.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m zeus.monitor", description="Power and energy of GPUs until Ctrl-C")
    commands = parser.add_subparsers(dest="subcommand", required=True, metavar="energy|power")
    for name, what in (("energy", "time and energy"), ("power", "power over time, then time and energy")):
        command = commands.add_parser(name, help=what)
        command.add_argument("--gpu-indices", nargs="+", type=int, metavar="N", help="these GPUs; else all")
        if name == "power":
            command.add_argument("--update-period", type=float, default=1.0, metavar="S", help="between two lines (1)")
    args = parser.parse_args()
    if args.subcommand == "energy":
        energy(args.gpu_indices)
    else:
        power(args.gpu_indices, args.update_period)


if __name__ == "__main__":
    main()
