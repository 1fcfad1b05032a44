#!/usr/bin/python3
"""Only underwatt-signals talks to the internet: each connect, sendto, sendmsg and bind of an internet address, as strace sees them, of the
daemon and its actuator, of commands and jobs; and of underwatt-signals, where the same look finds the one server that its sources name."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import signalstub
import uwtest
from signalstub import answer_of, half_hours

t = uwtest.Tap()
CALLS = "connect,sendto,sendmsg,sendmmsg,bind"


def strace(prefix):
    """The words before a program, which write a file PREFIX.PID for each of its processes; the program keeps its pid (-D)."""
    return ["strace", "-D", "-ff", "-qq", "-e", "signal=none", "-e", f"trace={CALLS}", "-o", str(prefix), "--"]


def missing():
    """Why there is nothing to see with; None: there is."""
    if uwtest.SANITIZED:
        return "LeakSanitizer does not run under strace"
    if not shutil.which("strace"):
        return "no strace (Debian: strace)"
    with tempfile.TemporaryDirectory() as tmp:
        p = subprocess.run([*strace(f"{tmp}/true"), "true"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        return None if p.returncode == 0 and not p.stderr else f"strace cannot trace here: {p.stderr.strip()}"


class Traced(uwtest.Node):
    """A node whose programs are all traced, those that they start, too."""

    def __enter__(self):
        super().__enter__()
        self.traces = pathlib.Path(self.tmp, "traces")
        self.traces.mkdir(mode=0o777)
        self.n = 0
        return self

    def command(self, args):
        self.n += 1
        word = f"-{args[1]}" if len(args) > 1 and str(args[1]).isalpha() else ""
        return [*strace(self.traces / f"{self.n}-{os.path.basename(str(args[0]))}{word}"), *super().command(args)]


def calls(folder, program):
    """What the processes of a program called, a line each."""
    found = []
    for path in sorted(folder.glob(f"*-{program}.*")):
        found += [line for line in path.read_text(errors="replace").splitlines() if line.split("(")[0] in CALLS.split(",")]
    return found


def unread(lines):
    """Calls whose address strace could not read."""
    return [line for line in lines if line.startswith(("connect(", "bind(")) and "sa_family=AF_" not in line]


def internet(lines):
    """(call, address) of each internet address; netlink and unix sockets lead to no other machine."""
    found = set()
    for line in lines:
        if re.search(r"sa_family=AF_(?!UNIX|NETLINK|UNSPEC)", line):
            port = re.search(r"sin6?_port=htons\((\d+)\)", line)
            address = re.search(r'inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"', line)
            found.add((line.split("(")[0], f"{(address[1] or address[2]) if address else line}:{port[1] if port else '?'}"))
    return found


def is_quiet(folder, program, least=1):
    lines = calls(folder, program)
    t.ok(len(lines) >= least and not unread(lines), f"{program}: its calls are seen, {len(lines)}", (lines, os.listdir(folder)))
    t.equal(internet(lines), set(), f"{program}: no address of the internet among them")


def commands(node, d):
    """What users run, with the daemon and without it."""
    job = ("--", uwtest.program("underwatt-sim"), "train", "--gpus", "0", "--steps", "40")
    for args, code in ((("carbon", "now"), 0), (("signals",), 0), (("list",), 0), (("top", "--once"), 0), (("jobs",), 0),
                       (("run", "--cap", "80%", "--gpus", "0", *job), 0), (("report",), 0), (("doctor",), None)):
        p = node.run("underwatt", *args)
        t.ok(code is None or p.returncode == code, f"underwatt {' '.join(args[:2])}", (p.returncode, p.stdout, p.stderr))
    p = node.run("underwatt", "measure", *job)
    t.equal(p.returncode, 0, "underwatt measure")
    t.equal(d.stop(), 0, "the daemon ends")
    p = node.run("underwatt", "run", "--local", "--cap", "80%", "--gpus", "0", *job)
    t.equal(p.returncode, 0, "underwatt run --local")


def node_is_quiet(folder):
    """A node whose carbon comes from underwatt-signals, which has a server to ask."""
    # The node's clock is 20 times as fast: the half hour that holds now has begun just now, so that it lasts for 87 s.
    data = half_hours(4, ahead=int(time.time()) // 60 * 60 - 60 - signalstub.BEGAN)
    service = signalstub.Service(lambda path, headers: answer_of(data))
    own = service.url.removeprefix("http://")
    try:
        with Traced(board="v100", count=1, speed=20) as node:
            source = signalstub.Signals(folder / "http", [f"{{name: gb, type: uk, url: {service.url}, provides: [carbon, carbon.forecast]}}"],
                                        inside=strace(node.traces / "0-source"))
            policy = pathlib.Path(node.tmp) / "policy.yaml"
            policy.write_text("policy: 1\nsignals:\n" + "".join(f"  - {{name: {name}, socket: {source.socket}, every: 1 s}}\n"
                                                                for name in ("carbon", "carbon.forecast")))
            with source:
                d = node.daemon(f"node: {{interval: 1 s}}\npolicy: {{file: {policy}}}\n")
                seen = uwtest.wait_until(lambda: d.ask("GET", "/v1/signals")[1]["signals"],
                                         lambda all: any(s["name"] == "carbon" and s["value"] == 250 for s in all))
                t.ok(any(s["name"] == "carbon" and s["value"] == 250 for s in seen), "the daemon has the value of underwatt-signals", seen)
                commands(node, d)
                t.equal(source.stop(), 0, "underwatt-signals ends")
            # The daemon: its sockets, the actuator's, that of underwatt-signals.  The actuator: its own.
            is_quiet(node.traces, "underwattd", 3)
            is_quiet(node.traces, "underwatt-actuator")
            for word in ("carbon", "signals", "list", "top", "jobs", "run", "report", "doctor", "measure"):
                is_quiet(node.traces, f"underwatt-{word}")
            lines = calls(node.traces, "source")
            t.ok(not unread(lines), "underwatt-signals: its calls are seen", lines)
            t.equal(internet(lines), {("connect", own)}, "underwatt-signals connects to its source's server, and to nothing else")
    finally:
        service.stop()


def signals_of_files(folder):
    """No server is named: none is asked."""
    (folder / "files").mkdir()
    (folder / "files" / "kw.json").write_text("7\n")
    with signalstub.Signals(folder / "files", [f"{{name: rack, type: json, file: {folder}/files/kw.json, unit: kW, as: rack.power, every: 1 s, age: 1 h}}"],
                            inside=strace(folder / "0-source")) as s:
        v = s.becomes("rack.power", lambda v: v["value"] == 7)
        t.equal(v.get("value"), 7, "underwatt-signals reads a file")
        t.equal(s.stop(), 0, "... and ends")
    is_quiet(folder, "source")


def main():
    os.umask(0o022)
    why = missing()
    if why:
        uwtest.skip_all(why)
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        node_is_quiet(pathlib.Path(tmp))
        signals_of_files(pathlib.Path(tmp))
    t.done()


main()
