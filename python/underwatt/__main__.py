"""python -m underwatt list | measure -- CMD | report LOG: uses only the library, not the command `underwatt`."""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from ._errors import InvalidValue, UnderwattError
from ._monitor import Monitor
from ._node import Board, open_node
from ._text import joules, plain, seconds, table, watts
from ._version import __version__

USAGE, FAILED, BEFORE = 2, 1, 125  # BEFORE: the failure was before CMD began; as in timeout(1)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _strict(value: object) -> object:
    """Replaces NaN and Infinity, which JSON does not have."""
    if isinstance(value, float):
        return plain(value)
    if isinstance(value, dict):
        return {key: _strict(each) for key, each in value.items()}
    return [_strict(each) for each in value] if isinstance(value, list) else value


def _json(value: object, indent: int | None = None) -> str:
    return json.dumps(_strict(value), indent=indent, allow_nan=False)


def _complain(text: str) -> None:
    sys.stderr.write(f"underwatt: {text}\n")


def _about(board: Board) -> dict[str, object]:
    found: dict[str, object] = {
        "gpu": board.index, "uuid": board.id, "name": board.name, "simulated": board.simulated,
        "power_w": None, "limit_w": None, "min_w": None, "max_w": None, "default_w": None,
    }  # fmt: skip
    with contextlib.suppress(UnderwattError):  # unknown version
        found["power_w"] = board.power_w()
    with contextlib.suppress(UnderwattError):
        limits = board.limits()
        found.update(limit_w=limits.enforced_w, min_w=limits.min_w, max_w=limits.max_w, default_w=limits.default_w)
    return found


def _watts_of(value: object) -> str:
    return watts(value) if isinstance(value, float) else "unknown"


def cmd_list(args: argparse.Namespace) -> int:
    try:
        gpus = _gpus(args)
    except InvalidValue as e:
        _complain(f"list: --gpus: {e}")
        return USAGE
    with Monitor(gpus, boards=args.boards, sync=None) as monitor:
        found = [_about(board) for board in monitor.boards]
        source = monitor.source
    if args.json:
        _say(_json({"source": source, "gpus": found}, indent=2))
        return 0
    rows = [["gpu", "name", "power", "limit", "from", "to", "uuid"]]
    for f in found:
        figures = [_watts_of(f[key]) for key in ("power_w", "limit_w", "min_w", "max_w")]
        rows.append([str(f["gpu"]), str(f["name"]), *figures, str(f["uuid"])])
    _say(table(rows))
    return 0


def _run(command: list[str]) -> int:
    """Runs CMD to its end and returns its status as a shell does.  Signals are for CMD."""
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []  # signals that came while CMD was being started

    def forward(number: int, _frame: FrameType | None) -> None:
        if number in (signal.SIGINT, signal.SIGQUIT):  # the terminal sends them to CMD as well
            return
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    forwarded = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
    before = {
        s: signal.signal(s, forward) for s in forwarded if signal.getsignal(s) is not signal.SIG_IGN
    }  # keeps what nohup(1) has set
    try:
        child = subprocess.Popen(command)
        while early:
            child.send_signal(early.pop(0))
        status = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - status if status < 0 else status


def _numbers(entry: str) -> range | None:
    """The numbers of "2" or "0-3"; None: neither."""
    found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", entry)
    return found and range(int(found[1]), int(found[2] or found[1]) + 1)


def _boards_of(entry: str, boards: Sequence[Board]) -> list[Board]:
    """The matching boards; []: none matches, or several do."""
    numbers = _numbers(entry)
    if numbers is not None:
        found = [b for b in boards if b.index in numbers]
        return found if len(found) == len(numbers) else []
    begins = entry.lower(), f"gpu-{entry.lower()}"
    named = [] if "gpu-".startswith(begins[0]) else [b for b in boards if b.id.lower().startswith(begins)]
    return named if len(named) == 1 else []


def listed(text: str, boards: Sequence[Board]) -> list[int]:
    """The boards of --gpus, in the form of underwatt(1): "all", or indices, ranges of indices, UUIDs and prefixes of
    UUIDs."""
    if text == "all":
        return [b.index for b in boards]
    found: list[int] = []
    for entry in (word.strip() for word in text.split(",")):
        if not entry:
            raise InvalidValue("an entry of the list is empty")
        named = [b.index for b in _boards_of(entry, boards)]
        if not named:
            there = "the only board is 0" if len(boards) == 1 else f"boards are 0..{len(boards) - 1}"
            raise InvalidValue(f"'{entry}' is not a board: {there}")
        if set(named) & set(found):
            raise InvalidValue(f"'{entry}': the list has this board twice")
        found += named
    return found


def _gpus(args: argparse.Namespace) -> list[int] | None:
    if args.gpus is None:
        return None
    node = open_node(args.boards, None, os.environ.get("UNDERWATT_CLOCK"), 0)
    try:
        return listed(args.gpus, node.boards())
    finally:
        node.close()


def cmd_measure(args: argparse.Namespace) -> int:
    if not args.command:
        _complain("measure: no command: usage: measure -- CMD")
        return USAGE
    try:
        gpus = _gpus(args)
    except InvalidValue as e:
        _complain(f"measure: --gpus: {e}")
        return USAGE
    with Monitor(
        gpus, boards=args.boards, sync=None, log=args.log, gco2e_kwh=args.gco2e_kwh, price_kwh=args.price_kwh
    ) as monitor:
        name = os.path.basename(args.command[0])
        window = monitor.window(name)
        try:
            with window:
                status = _run(args.command)
        except OSError as e:  # CMD did not begin
            _complain(f"{args.command[0]}: {e.strerror}")
            return 127 if isinstance(e, FileNotFoundError) else 126
        try:
            energy = window.energy
        except UnderwattError as e:
            _complain(str(e))
            return status or FAILED
    if args.json:
        sys.stderr.write(_json(energy.as_dict()) + "\n")
    else:
        sys.stderr.write(
            "\n".join([f"underwatt: {energy}", *(f"  {d}" for d in (*energy.gpus, *energy.processors))]) + "\n"
        )
    return status


_MOST = 1e18  # J or s: more than any log can have


def _number(text: str | None) -> float:
    """The number; NaN if the text is none."""
    try:
        number = float(text) if text else math.nan
    except ValueError:
        return math.nan
    return number if abs(number) < _MOST else math.nan


def cmd_report(args: argparse.Namespace) -> int:
    try:
        with open(args.file, newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        _complain(f"{args.file}: {e.strerror if isinstance(e, OSError) else e}")
        return FAILED
    if rows and not {"name", "time_s", "total_j"} <= set(rows[0]):
        _complain(f"{args.file}: no log of windows: it has no columns name, time_s, total_j")
        return FAILED
    named: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        named.setdefault(row["name"] or "", []).append(row)  # a line that is cut short has none
    sums = [_sum_of(name, found) for name, found in named.items()]
    if args.json:
        _say(_json({"windows": sums}, indent=2))
        return 0
    lines = [["window", "ranks", "times", "unknown", "time", "energy", "mean", "a window"]]
    for s in sums:
        energy, time_s, known = s["total_j"], s["time_s"], s["windows"] - s["unknown"]
        each = joules(energy / known) if known else ""
        mean = watts(energy / time_s) if known and time_s > 0 else ""
        counts = [str(s[key]) for key in ("ranks", "windows", "unknown")]
        lines.append([s["name"], *counts, seconds(time_s), joules(energy, s["half_j"]), mean, each])
    _say(table(lines))
    return 0


def _sum_of(name: str, rows: list[dict[str, str]]) -> dict[str, Any]:
    """Windows whose energy is unknown are counted, but are in no sum.  Ranks run in parallel: the time is that of
    the longest."""
    known = [row for row in rows if not math.isnan(_number(row["total_j"]))]
    times: dict[str, list[float]] = {}
    for row in known:
        times.setdefault(row.get("rank") or "", []).append(_number(row["time_s"]))
    return {
        "name": name,
        "ranks": len({row.get("rank") or "" for row in rows}),
        "windows": len(rows),
        "unknown": len(rows) - len(known),
        "time_s": max(map(math.fsum, times.values()), default=0.0),
        "total_j": math.fsum(_number(row["total_j"]) for row in known),
        "half_j": math.sqrt(math.fsum(_number(row.get("half_j")) ** 2 for row in known)),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m underwatt", description="Energy of this node's boards, over libunderwatt alone"
    )
    parser.add_argument("-V", "--version", action="version", version=f"underwatt {__version__}")
    commands = parser.add_subparsers(dest="which", required=True, metavar="list|measure|report")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="for programs")
    common.add_argument("--boards", help="source of the boards, see underwatt(1)")
    pick = argparse.ArgumentParser(add_help=False)
    pick.add_argument("--gpus", metavar="LIST", help="indices, ranges, UUIDs, beginnings of UUIDs, or all")
    one = commands.add_parser("list", parents=[common, pick], help="this node's boards, their power and limits")
    one.set_defaults(call=cmd_list)
    one = commands.add_parser("measure", parents=[common, pick], help="the energy of a command; its status is CMD's")
    one.add_argument("--log", metavar="FILE", help="add a row to this CSV file")
    one.add_argument("--carbon", dest="gco2e_kwh", type=float, metavar="G", help="grams of CO2 equivalent a kWh")
    one.add_argument("--price", dest="price_kwh", metavar="PRICE", help="as in '0.30 EUR'")
    one.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD")
    one.set_defaults(call=cmd_measure)
    one = commands.add_parser("report", parents=[common], help="sums of a log of windows, by name")
    one.add_argument("file", metavar="LOG")
    one.set_defaults(call=cmd_report)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["version"], ["help"]):
        words[0] = "--" + words[0]
    args = parser.parse_args(words)
    if getattr(args, "command", None) and args.command[0] == "--":
        del args.command[0]
    try:
        status: int = args.call(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except UnderwattError as e:
        _complain(str(e))
    except OSError as e:
        _complain(f"{e.filename}: {e.strerror}" if e.filename else str(e))
    else:
        return status
    return BEFORE if args.which == "measure" else FAILED


if __name__ == "__main__":
    sys.exit(main())
