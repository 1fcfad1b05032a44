#!/usr/bin/python3
"""GlobalPowerLimitOptimizer of underwatt.compat.zeus on driven boards: both searches, what they leave behind, and what they refuse."""
import json
import pathlib
import signal
import subprocess

import zeususer
from zeususer import uwtest

t = uwtest.Tap()
AT_ONCE = "caps: {classes: {default: {ramp: at once}}}\n"
SPEED = 20

LOOP = r"""
import json, os, sys, time
from underwatt.testing import SimLoad
from zeus.monitor import ZeusMonitor
from zeus.optimizer.power_limit import (Energy, GlobalPowerLimitOptimizer, MaxSlowdownConstraint, OptimumSelector, Time,
                                        ZeusCost)
load = SimLoad("resnet50", boards=[0])
monitor = ZeusMonitor(gpu_indices=[0])

def epoch(plo, steps):
    plo.on_epoch_begin()
    for _ in range(steps):
        plo.on_step_begin()
        load.step().wait()
        plo.on_step_end()
    plo.on_epoch_end()

def told(plo, **more):
    print(json.dumps({"state": [type(plo.state).__name__, vars(plo.state)], "limits": [w // 1000 for w in plo.power_limits],
                      "measured": [[m.power_limit, m.energy, m.time] for m in plo.measurements], **more}), flush=True)
"""


def loop(node, code, *args, **kw):
    """What the program told; a failure is seen by the caller, which finds nothing."""
    p = zeususer.in_world(node, zeususer.program(LOOP + code, *args), **kw)
    if p.returncode and "ValueError" not in p.stderr:
        print("\n".join(f"# {line}" for line in p.stderr.splitlines()[-12:]))
    return [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")], p


def limit_w(node):
    return node.board(0)["limit_mw"] / 1000


def set_limit(node, watts):
    code = ("import sys\nfrom underwatt.compat.zeus.device.gpu import _nvml as n\nn.nvmlInit()\n"
            "n.nvmlDeviceSetPowerManagementLimit(n.nvmlDeviceGetHandleByIndex(0), 1000 * int(sys.argv[1]))")
    uwtest.must(zeususer.in_world(node, zeususer.program(code, watts)).returncode == 0, "the limit is set")


def exhaustive(node, tmp):
    code = r"""
plo = GlobalPowerLimitOptimizer(monitor, Energy(), wait_steps=0, warmup_steps=int(sys.argv[2]), profile_steps=20, pl_step=50,
                                profile_path=sys.argv[1], search="exhaustive")
epoch(plo, 120)
told(plo)
"""
    path = tmp / "profile.json"
    (found,), _ = loop(node, code, path, 0)
    t.equal(found["limits"], [300, 250, 200, 150], "exhaustive: the limits")
    t.equal([m[0] for m in found["measured"]], [300, 250, 200, 150], "exhaustive: all are measured, warmup_steps=0 too")
    least = min(found["measured"], key=lambda m: m[1])
    t.ok(least[0] < 300 and found["measured"][0][1] > 0, "exhaustive: less energy under a limit", found)
    t.equal(found["state"], ["Done", {"optimal_power_limit": 1000 * least[0]}], "exhaustive: Done")
    t.ok(uwtest.wait_for(lambda: limit_w(node) == 300), "exhaustive: the limit found is back at the end", node.board(0))
    saved = json.loads(path.read_text())
    t.equal([[m["power_limit"], m["energy"], m["time"]] for m in saved["measurements"]], found["measured"], "exhaustive: the profile")

    code = r"""
plo = GlobalPowerLimitOptimizer(monitor, MaxSlowdownConstraint(1.1), profile_path=sys.argv[1])
epoch(plo, 3)
told(plo)
time.sleep(3)
"""
    child = node.popen(*zeususer.program(LOOP + code, path), env={**zeususer.ENV, "PYTHONPATH": zeususer.PATH})
    first = json.loads(child.stdout.readline())
    bound = 1.1 * found["measured"][0][2]
    want = min(m[0] for m in found["measured"] if m[2] <= bound)
    t.equal(first["state"], ["Done", {"optimal_power_limit": 1000 * want}], "a profile that exists: Done at once")
    t.ok(uwtest.wait_for(lambda: limit_w(node) == want), "a profile that exists: its limit is held", node.board(0))
    child.send_signal(signal.SIGKILL)
    child.wait()
    t.ok(uwtest.wait_for(lambda: limit_w(node) == 300), "kill -9: the limit found is back", node.board(0))
    path.write_text("{}")
    _, p = loop(node, "GlobalPowerLimitOptimizer(monitor, profile_path=sys.argv[1])", path)
    t.ok("profile.json is no profile of power limits" in p.stderr, "a profile that is none", p.stderr)


def short_epochs(node):
    code = r"""
plo = GlobalPowerLimitOptimizer(monitor, Energy(), pl_step=75, search="exhaustive")
for _ in range(12):
    epoch(plo, 14)
told(plo, waited=load.wait().waited_s)
"""
    (found,), p = loop(node, code)
    t.equal([m[0] for m in found["measured"]], [300, 225, 150], "epochs of 14 steps: a limit each all the same")
    t.ok("epochs have 14 steps: 2 warm up and 11 are profiled" in p.stderr, "and that is said", p.stderr)
    first = found["measured"][0]
    # The boards waited for this machine in some of them.
    t.ok(9 < first[2] * SPEED < 30 + found["waited"], "its figures are of 40 steps", found)


def found_limit(node):
    set_limit(node, 250)
    with Stopped(node.daemon(AT_ONCE)):
        (found,), _ = loop(node, r"""
plo = GlobalPowerLimitOptimizer(monitor, Time(), pl_step=50, profile_steps=5, warmup_steps=2, search="exhaustive")
epoch(plo, 30)
told(plo)
""")
        t.equal([m[0] for m in found["measured"]], [250, 200, 150], "nothing above the limit that was found is tried")
        t.ok(uwtest.wait_for(lambda: limit_w(node) == 250), "and that comes back", node.board(0))
    set_limit(node, 300)


def one_after_another(node):
    """The first has come to a low limit, with a window open; the next one begins from the limit that it had found."""
    code = r"""
def until(plo, watts):
    while plo.current_power_limit > 1000 * watts or type(plo.state).__name__ != "Profiling":
        epoch_steps(plo)
def epoch_steps(plo):
    plo.on_step_begin()
    load.step().wait()
    plo.on_step_end()
scan = dict(wait_steps=0, warmup_steps=1, profile_steps=5, pl_step=50, search="exhaustive")
first = GlobalPowerLimitOptimizer(monitor, Energy(), **scan)
until(first, 200)
second = GlobalPowerLimitOptimizer(monitor, Energy(), **scan)
until(second, 200)
first.on_step_begin()
first.on_epoch_end()
held = second.current_power_limit
third = GlobalPowerLimitOptimizer(monitor, Energy())
last = GlobalPowerLimitOptimizer(monitor, Energy(), **scan)
told(last, tops=[plo.power_limits[0] // 1000 for plo in (first, second, third, last)], held=held, first=first.current_power_limit,
     client=third._way._last is not None, windows=list(monitor.measurement_states))
"""
    (found,), _ = loop(node, code)
    t.equal(found["tops"], 4 * [300], "one optimizer after another: each begins at the limit that the first had found")
    t.equal((found["first"], found["held"], found["windows"]), (0, 200000, []), "the one before has ended: it sets no limit and has no window")
    t.ok(found["client"], "so has one with the daemon's search")


def away(node):
    """The daemon is killed while an optimizer with its search lives: the next one is made, and the program ends well."""
    with Stopped(node.daemon(AT_ONCE)) as daemon:
        child = node.popen(*zeususer.program(LOOP + r"""
plo = GlobalPowerLimitOptimizer(monitor, Energy(), profile_path=sys.argv[1])
epoch(plo, 5)
print("begun", flush=True)
sys.stdin.readline()
plo.on_epoch_end()
told(plo)
load.close()
GlobalPowerLimitOptimizer(monitor, Energy())
""", pathlib.Path(node.tmp) / "away.json"), stdin=subprocess.PIPE, env={**zeususer.ENV, "PYTHONPATH": zeususer.PATH})
        t.equal(child.stdout.readline(), "begun\n", "a loop with the daemon's search begins")
        daemon.kill()
        out, err = child.communicate("\n", timeout=120)
    t.equal((child.returncode, out.count('"measured": []')), (0, 1), "the daemon is killed: no measurements, and nothing is raised")
    t.ok("Traceback" not in err, "nor at the program's end, nor by the next optimizer", err)


def ramp(node):
    """The default ramp walks from 300 W to 150 W in 100 s of the boards' time, 5 s here.  No step waits for it, on neither board."""
    with Stopped(node.daemon()):
        (found,), _ = loop(node, r"""
load.close()
load = SimLoad("resnet50", boards=[0, 1])
plo = GlobalPowerLimitOptimizer(ZeusMonitor(gpu_indices=[0, 1]), Energy(), wait_steps=0, warmup_steps=1, profile_steps=2, pl_step=150,
                                search="exhaustive")
longest = walk_began = walk = 0
while type(plo.state).__name__ != "Done":
    at = time.monotonic()
    plo.on_step_begin()
    now = time.monotonic()
    longest = max(longest, now - at)
    if plo.current_power_limit == 150000:
        walk_began = walk_began or at
        if type(plo.state).__name__ == "Warmup":
            walk = now - walk_began
    load.step().wait()
    plo.on_step_end()
told(plo, longest=longest, walk=walk)
""")
    t.equal([m[0] for m in found["measured"]], [300, 150], "two boards down the default ramp: both limits are measured")
    t.ok(found["longest"] < found["walk"] / 2, f"two boards: a step waits {found['longest']:.3f} s at most, the ramp takes {found['walk']:.1f} s")


def forked(node, tmp):
    """A child that ends as Python ends: the parent's optimizer goes on, and writes its profile itself."""
    code = r"""
import signal
plo = GlobalPowerLimitOptimizer(monitor, Energy(), wait_steps=0, warmup_steps=1, profile_steps=5, pl_step=75, profile_path=sys.argv[1], **json.loads(sys.argv[2]))
epoch(plo, 10)
closed = []
close = plo._way.close
plo._way.close = lambda: (closed.append(0), open(sys.argv[1] + ".closed", "a").write(f"{os.getpid()} "), close())
before = plo.current_power_limit
pid = os.fork()
if pid == 0:
    sys.exit()
status = os.waitpid(pid, 0)[1]
epoch(plo, 5)
told(plo, status=status, pid=os.getpid(), before=before, after=plo.current_power_limit)
"""
    for search in ("exhaustive", "underwatt"):
        path = tmp / f"forked-{search}.json"
        (found,), _ = loop(node, code, path, json.dumps({"search": search}))
        t.equal((found["status"], path.with_suffix(".json.closed").read_text().split()), (0, [str(found["pid"])]),
                f"{search}: a forked child ends no optimizer, its parent does")


class Stopped:
    def __init__(self, daemon):
        self.daemon = daemon

    def __enter__(self):
        return self.daemon

    def __exit__(self, *_):
        self.daemon.stop()
        self.daemon.kill()


GOALS = (("None", "cost:0.5"), ("Energy()", "energy"), ("Time()", "time"), ("ZeusCost(0.25)", "cost:0.25"),
         ("MaxSlowdownConstraint(1.1)", "slowdown:1.1"), ("Own()", "edp"))


def underwatt(node):
    code = r"""
class Own(OptimumSelector):
    def select(self, measurements):
        return measurements[0].power_limit
for text in sys.argv[1:]:
    plo = GlobalPowerLimitOptimizer(monitor, eval(text))
    epoch(plo, 5)
    status = lambda: plo._way._optimizer.status
    for _ in range(300):                # the daemon looks at the page now and then
        if status().steps < 5:
            time.sleep(0.1)
    told(plo, goal=status().goal, steps=status().steps)
"""
    found, p = loop(node, code, *(selector for selector, _ in GOALS))
    t.equal([f["goal"] for f in found], [goal for _, goal in GOALS], "a goal for each selector, one after another in one process")
    t.ok(found and all(f["state"][0] in ("Ready", "Warmup", "Profiling", "Done") for f in found), "the state is one of Zeus'", p.stderr)
    t.equal(found[-1]["steps"] if found else 0, 5, "each step is told once")

    (found,), p = loop(node, r"""
class Highest(OptimumSelector):
    def select(self, measurements):
        return sorted(m.power_limit for m in measurements)[len(measurements) // 2]
plo = GlobalPowerLimitOptimizer(monitor, Highest(), profile_path=sys.argv[1])
began = time.monotonic()
while type(plo.state).__name__ != "Done" and time.monotonic() < began + 100:
    epoch(plo, 40)
plo.on_epoch_end()
told(plo, profile=json.load(open(sys.argv[1]))["measurements"])
""", pathlib.Path(node.tmp) / "curve.json")
    caps = sorted(m[0] for m in found["measured"])
    t.ok(len(caps) >= 3 and caps[-1] == 300, "underwatt: a curve was measured", found)
    t.equal(found["state"][0], "Done", "underwatt: a cap is held")
    t.equal(sorted(m["power_limit"] for m in found["profile"]), caps, "underwatt: the profile has the curve")
    t.ok(uwtest.wait_for(lambda: limit_w(node) == 300), "underwatt: the limit found is back at the end", node.board(0))


REFUSED = (("wait_steps=-1", "wait_steps is -1"), ("warmup_steps=-1", "warmup_steps is -1"), ("profile_steps=0", "profile_steps is 0"),
           ("pl_step=0", "pl_step is 0"), ("search='all'", "search is 'all': none of underwatt, exhaustive"))


HALFWAY = r"""
from zeus.device import get_gpus
from zeus.device.gpu.common import ZeusGPUNoPermissionError
gpus = get_gpus()
set_one, seen = gpus.set_power_management_limit, []
def set_limit(i, limit, block=True):
    if i == 1:
        raise ZeusGPUNoPermissionError("gpu 1 is another user's")
    set_one(i, limit, block=True)
    seen.append(gpus.get_power_management_limit(0))
gpus.set_power_management_limit = set_limit
class Low(OptimumSelector):
    def select(self, measurements):
        return 200
try:
    GlobalPowerLimitOptimizer(ZeusMonitor(gpu_indices=[0, 1]), Low(), profile_path=sys.argv[1], search="exhaustive")
except ZeusGPUNoPermissionError as e:
    print(json.dumps([str(e), seen[0], gpus.get_power_management_limit(0)]).join(("{\"told\": ", "}")), flush=True)
"""


def halfway(node, tmp):
    profile = tmp / "halfway.json"
    profile.write_text(json.dumps({"measurements": [{"power_limit": watts, "energy": 1.0, "time": 1.0} for watts in (300, 200)]}))
    found, p = loop(node, HALFWAY, profile)
    t.equal([f["told"] for f in found], [["gpu 1 is another user's", 200000, 300000]],
            f"a limit that one of two boards refuses: the other's is back before the exception {p.stderr[-300:]}")


def refused(node):
    for text, why in REFUSED:
        _, p = loop(node, f"GlobalPowerLimitOptimizer(monitor, {text})")
        t.ok(p.returncode == 1 and why in p.stderr.splitlines()[-1], f"refused: {text}", p.stderr)
    _, p = loop(node, "GlobalPowerLimitOptimizer(monitor)", UNDERWATT_ZEUS_SEARCH="none")
    t.ok("UNDERWATT_ZEUS_SEARCH is 'none'" in p.stderr, "refused: the variable", p.stderr)


WORLD = r"""
import json, os, torch
torch.distributed.init_process_group("gloo")
from zeus.monitor import ZeusMonitor
from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer
plo = GlobalPowerLimitOptimizer(ZeusMonitor(gpu_indices=[int(os.environ["LOCAL_RANK"])]), search="exhaustive")
print(json.dumps(plo.optimum_selector.world_size), flush=True)
torch.distributed.destroy_process_group()
"""


def world_size(node, tmp):
    script = tmp / "world.py"
    script.write_text(WORLD)
    p = zeususer.in_world(node, [zeususer.python(), "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", "2",
                                 "--standalone", str(script)])
    t.equal(p.stdout.split(), ["2", "2"], "under torchrun the default's world is both ranks'")


def main():
    with uwtest.Node(board="v100", count=2, speed=SPEED, may_set="anyone") as node:
        tmp = pathlib.Path(node.tmp)
        found_limit(node)
        away(node)
        ramp(node)
        with Stopped(node.daemon(AT_ONCE)):
            exhaustive(node, tmp)
            short_epochs(node)
            one_after_another(node)
            forked(node, tmp)
            underwatt(node)
            refused(node)
            halfway(node, tmp)
            world_size(node, tmp)
    t.done()


if __name__ == "__main__":
    main()
