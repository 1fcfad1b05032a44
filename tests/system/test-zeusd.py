#!/usr/bin/python3
"""zeusd's API: the same requests to the real zeusd and to underwattd, answers compared;
then a real Zeus that takes underwattd for zeusd.
"""
import http.client
import json
import os
import re
import socket
import sys
import time

import uwtest

t = uwtest.Tap()

# What both are asked, as root; what differs on purpose is not among these.
SAME = [
    ("GET", "/discover"),
    ("GET", "/time"),
    ("POST", "/time"),
    ("GET", "/"),
    ("GET", "/nothing"),
    ("GET", "/gpu/nothing"),
    ("POST", "/gpu/set_nothing"),
    ("GET", "/gpu/set_power_limit"),
    ("POST", "/gpu/get_power"),
    ("GET", "/auth/whoami"),
    ("GET", "/cpu/get_power"),
    ("GET", "/cpu/get_cumulative_energy?cpu=true&dram=true"),
    ("GET", "/gpu/get_power"),
    ("GET", "/gpu/get_power?gpu_ids=1"),
    ("GET", "/gpu/get_power?gpu_ids=3,1,1"),
    ("GET", "/gpu/get_power?gpu_ids=9"),
    ("GET", "/gpu/get_power?gpu_ids=x"),
    ("GET", "/gpu/get_power?gpu_ids=-1"),
    ("GET", "/gpu/get_power?gpu_ids="),
    ("GET", "/gpu/get_power?gpu_ids=0,"),
    ("GET", "/gpu/get_power?gpu_ids=+0+,+2"),
    ("GET", "/gpu/get_power?gpus=0"),
    ("GET", "/gpu/get_cumulative_energy"),
    ("GET", "/gpu/get_cumulative_energy?gpu_ids=2"),
    ("GET", "/gpu/get_power_limit"),
    ("GET", "/gpu/get_power_limit?gpu_ids=0,1"),
    ("GET", "/gpu/get_power_limit_constraints"),
    ("GET", "/gpu/get_persistence_mode"),
    ("GET", "/gpu/stream_power?gpu_ids=7,9"),
    ("GET", "/gpu/stream_power?gpu_ids="),
    ("POST", "/gpu/set_power_limit"),
    ("POST", "/gpu/set_power_limit?gpu_ids=0"),
    ("POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=200000"),
    ("POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=&block=true"),
    ("POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=-5&block=true"),
    ("POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=4294967296&block=true"),
    ("POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=200000&block=yes"),
    ("POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=200000&block=true&force=1"),
    ("POST", "/gpu/set_power_limit?gpu_ids=9&power_limit_mw=200000&block=true"),
    ("POST", "/gpu/set_power_limit?gpu_ids=&power_limit_mw=200000&block=true"),
    ("POST", "/gpu/reset_gpu_locked_clocks?gpu_ids=0"),
    ("POST", "/gpu/reset_gpu_locked_clocks?x=0"),
    ("POST", "/gpu/set_power_limit?gpu_ids=2&power_limit_mw=200000&block=true"),
    ("GET", "/gpu/get_power_limit?gpu_ids=2"),
    ("POST", "/gpu/set_power_limit?gpu_ids=2,3&power_limit_mw=250000&block=true"),
    ("GET", "/gpu/get_power_limit?gpu_ids=2,3"),
    ("POST", "/gpu/set_power_limit?gpu_ids=2,3&power_limit_mw=300000&block=true"),
    ("GET", "/gpu/get_power_limit"),
]
# Numbers that move, and how far apart they may be.
NOISE = {"timestamp_ms": 8000, "power_mw": 0.6, "energy_mj": 500000}


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask(path, method, url):
    c = Unix(path)
    try:
        c.request(method, url)
        r = c.getresponse()
        return r.status, (r.getheader("Content-Type") or "").split(";")[0], r.read().decode()
    finally:
        c.close()


def close(a, b, key):
    """Structure and types as they are, moving numbers within their noise."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(
            close(a[k], b[k], k if k in NOISE or not k.isdigit() else key) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(close(x, y, key) for x, y in zip(a, b))
    if type(a) is not type(b):
        return False
    if key in NOISE and not isinstance(a, bool):
        limit = NOISE[key]
        return abs(a - b) <= (limit if limit > 1 else limit * max(abs(a), abs(b)))
    return a == b


def same(ours, theirs):
    if ours[:2] != theirs[:2]:
        return False
    try:
        a, b = json.loads(ours[2]), json.loads(theirs[2])
    except ValueError:
        return ours[2] == theirs[2]
    return close(a, b, "")


def events(path, url, n, seconds=uwtest.PATIENCE):
    """The first n events of a stream."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(seconds)
    s.connect(path)
    s.sendall(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    data = b""
    until = time.monotonic() + seconds
    try:
        while data.count(b"data: ") < n + 1 and time.monotonic() < until:
            got = s.recv(65536)
            if not got:
                break
            data += got
    except TimeoutError:
        pass
    s.close()
    return [json.loads(x) for x in re.findall(r"data: (\{.*?\})\n\n", data.decode())][:n], data


def compare(zeusd_path, ours_path):
    for method, url in SAME:
        theirs = ask(zeusd_path, method, url)
        ours = ask(ours_path, method, url)
        t.ok(same(ours, theirs), f"{method} {url}: {theirs[0]}", f"zeusd: {theirs}\n ours: {ours}")
    for path, name in ((zeusd_path, "zeusd"), (ours_path, "ours")):
        got, raw = events(path, "/gpu/stream_power?gpu_ids=0,1", 3)
        t.ok(len(got) == 3 and all(list(e) == ["timestamp_ms", "gpu_id", "power_mw"] and
                                   e["gpu_id"] in (0, 1) and e["power_mw"] > 20000 for e in got) and
             b"text/event-stream" in raw, f"{name}: a stream of power", raw[-600:])


def out_of_range(zeusd_path, ours_path):
    url = "/gpu/set_power_limit?gpu_ids=2,3&power_limit_mw=1000&block=true"
    theirs, ours = ask(zeusd_path, "POST", url), ask(ours_path, "POST", url)
    t.ok(ours[:2] == theirs[:2] == (400, "application/json") and
         list(json.loads(ours[2])) == list(json.loads(theirs[2])) == ["errors"] and
         set(json.loads(ours[2])["errors"]) == set(json.loads(theirs[2])["errors"]) == {"2", "3"},
         "a limit out of range: the same but for the words", f"{theirs}\n{ours}")


def refused(node, ours_path):
    """What zeusd does and we do not."""
    before = node.status()["boards"]
    for url in ("/gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=500&max_clock_mhz=900&block=true",
                "/gpu/set_mem_locked_clocks?gpu_ids=0&min_clock_mhz=500&max_clock_mhz=900&block=true",
                "/gpu/reset_gpu_locked_clocks?gpu_ids=0&block=true",
                "/gpu/reset_mem_locked_clocks?gpu_ids=0&block=true"):
        status, kind, text = ask(ours_path, "POST", url)
        t.ok(status == 403 and "0" in json.loads(text)["errors"], f"{url.split('?')[0]}: 403", text)
    on = json.loads(ask(ours_path, "GET", "/gpu/get_persistence_mode?gpu_ids=0")[2])["0"]["enabled"]
    for wanted in (True, False):
        status, _, text = ask(ours_path, "POST", "/gpu/set_persistence_mode?gpu_ids=0&block=true&enabled=" +
                              str(wanted).lower())
        t.equal(status, 200 if wanted == on else 403, f"persistence {wanted} where it is {on}")
    after = node.status()["boards"]
    t.ok([b["limit_mw"] for b in before] == [b["limit_mw"] for b in after], "nothing changed")


ZEUS = r"""
import json, os, sys, time, warnings
warnings.simplefilter("ignore")
from zeus.device import get_gpus
from zeus.monitor import ZeusMonitor
from zeus.monitor.power_streaming import PowerStreamingClient
from zeus.utils.zeusd import ZeusdClient, ZeusdConfig
out = {"errors": {}}
gpus = get_gpus()
out["kind"] = type(gpus.gpus[0]).__name__
m = ZeusMonitor(gpu_indices=[0, 1], cpu_indices=[])
m.begin_window("w", sync_execution=False)
time.sleep(2)
r = m.end_window("w", sync_execution=False)
out["joules"], out["time"] = {str(k): v for k, v in r.gpu_energy.items()}, r.time
gpus.set_power_management_limit(0, 200000)
out["set"] = gpus.get_power_management_limit(0)
for i, mw in ((2, 200000), (0, 1000)):
    try:
        gpus.set_power_management_limit(i, mw)
        out["errors"][f"{i} {mw}"] = "taken"
    except Exception as e:
        out["errors"][f"{i} {mw}"] = f"{type(e).__name__}: {e}"
out["other"] = gpus.get_power_management_limit(2)
c = ZeusdClient(ZeusdConfig.from_env())
e0, at = c.get_gpu_energy([0])[0], time.monotonic()
time.sleep(2)
out["zeusd_w"] = (c.get_gpu_energy([0])[0] - e0) * 1e-3 / (time.monotonic() - at)
out["limits"] = c.get_power_limit()
s = PowerStreamingClient([ZeusdConfig.uds(os.environ["ZEUSD_SOCK_PATH"])])
for i in range(300):
    time.sleep(0.1)
    got = list(s.get_power().values())
    if got and len(got[0].gpu_power_w) == 4:
        break
out["stream"] = {str(k): v for k, v in got[0].gpu_power_w.items()} if got else {}
s.stop()
print(json.dumps(out), flush=True)
sys.stdin.readline()
"""


def zeus(node, ours_path, python):
    """Zeus as user nobody, whose job has boards 0 and 1; board 2 is root's."""
    child = node.popen(python, "-c", ZEUS, env={"ZEUSD_SOCK_PATH": ours_path, "HOME": node.tmp},
                       stdin=-1, user=65534, group=65534, extra_groups=[])
    line = child.stdout.readline()
    if not t.ok(line, "Zeus runs against underwattd", "" if line else child.stderr.read()):
        return
    got = json.loads(line)
    t.equal(got["kind"], "ZeusdNVIDIAGPU", "it takes us for zeusd")
    for i in ("0", "1"):
        mean = got["joules"][i] / got["time"]
        t.ok(100 < mean < 310, f"measures board {i}: {mean:.0f} W")
    t.equal(got["set"], 200000, "sets a limit on a board of its own job")
    t.equal(node.board(0)["limit_mw"], 200000, "which is in force")
    t.ok("ZeusdError" in got["errors"]["2 200000"] and "may not claim" in got["errors"]["2 200000"],
         "but not on another user's", got["errors"])
    t.equal(got["other"], 300000, "whose limit is what it was")
    t.ok("ZeusdError" in got["errors"]["0 1000"] and "outside" in got["errors"]["0 1000"],
         "nor out of range", got["errors"])
    t.ok(100 < got["zeusd_w"] < 310, f"energy through us: {got['zeusd_w']:.0f} W for 2 s and some")
    t.ok(len(got["stream"]) == 4 and all(w > 20 for w in got["stream"].values()),
         "streams the power of four boards", got["stream"])
    child.stdin.write("end\n")
    child.stdin.close()
    child.wait(timeout=uwtest.PATIENCE)
    t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 300000),
         "its limit ends with its process", node.board(0))


def main():
    if os.geteuid() != 0:
        uwtest.skip_all("needs root, to be several users")
    program = uwtest.zeusd()
    python = uwtest.venv("nvidia-ml-py==13.615.71", "zeus==0.16.0")
    # A world each: what one sets the other must not see as another writer's.
    with uwtest.Node(board="v100", count=4) as node, uwtest.Node(board="v100", count=4) as other:
        ours, theirs = os.path.join(node.tmp, "ours.sock"), os.path.join(other.tmp, "theirs.sock")
        d = node.daemon(f"zeusd: {{socket: {ours}}}\n"
                        "caps: {classes: {default: {ramp: at once}}}\n"
                        "sampling: {rest: 200 ms, job: 200 ms}\n")
        # In both worlds at once: their joules are compared.
        uwtest.together(lambda: node.train("--gpus", "0,1", user=65534, group=65534, extra_groups=[]),
                        lambda: program and other.train("--gpus", "0,1"))
        uwtest.together(lambda: node.train("--gpus", "2"), lambda: program and other.train("--gpus", "2"))
        t.ok(uwtest.wait_for(lambda: ask(ours, "GET", "/gpu/get_power")[0] == 200),
             "underwattd serves zeusd's API")
        t.ok(uwtest.wait_for(lambda: len(json.loads(ask(d.socket, "GET", "/v1/jobs")[2])["jobs"]) == 2),
             "both jobs are found")
        if program:
            child = other.popen(program, "serve", "--mode", "uds", "--socket-path", theirs,
                                "--socket-permissions", "666", "--enable", "gpu-control,gpu-read")
            if t.ok(uwtest.wait_for(lambda: uwtest.Daemon._listens(theirs) or child.poll() is not None) and
                    child.poll() is None, "the real zeusd beside it"):
                compare(theirs, ours)
                out_of_range(theirs, ours)
        else:
            t.skip("the real zeusd", uwtest.zeusd_missing())
        refused(node, ours)
        if python:
            zeus(node, ours, python)
        else:
            t.skip("Zeus", "the package registry is out of reach")
    t.done()


if __name__ == "__main__":
    sys.exit(main())
