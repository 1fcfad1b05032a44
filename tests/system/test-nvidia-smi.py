#!/usr/bin/python3
"""nvidia-smi of simulated nodes: its values are the node's, its exit statuses the manual's."""
import csv
import os
import re
import sys
import xml.etree.ElementTree

import uwtest

t = uwtest.Tap()
W = r"\d+\.\d\d"
# An ideal sensor, and an epoch that does not end: the power is steady, however late somebody looks.
MACHINE = """boards:
  - {model: v100, count: 3, ideal: true}
workloads:
  - {name: steady, like: resnet50, steps: 1000000, clock_time: 50000 s, memory_time: 50000 s}
"""


def smi(node, *args, **kw):
    return node.run("nvidia-smi", *args, **kw)


def rows(text):
    return [[c.strip() for c in row] for row in csv.reader(text.splitlines())]


def truth(node):
    fields = "index,uuid,name,power.draw,power.limit,clocks.sm,temperature.gpu,memory.total"
    uwtest.wait_for(lambda: node.board(0)["power_mw"] > 275000)
    before = node.status()["boards"]
    p = smi(node, "--query-gpu=" + fields, "--format=csv,noheader,nounits")
    got = rows(p.stdout)
    if not t.ok(p.returncode == 0 and len(got) == 3, "three boards, a row each", p.stdout + p.stderr):
        return
    for b, row in zip(before, got):
        t.equal(row[:3], [str(b["index"]), b["uuid"], b["name"]], f"board {b['index']}: index, UUID, name")
        t.ok(abs(float(row[3]) - b["power_mw"] / 1000) < 0.05 * b["power_mw"] / 1000 and float(row[4]) == b["limit_mw"] / 1000,
             f"board {b['index']}: {row[3]} W of {row[4]} W, as the node says", (row, b))
        t.ok(int(row[5]) > 0 and 15 < int(row[6]) < 100 and row[7] == str(16 << 10), "clock, temperature, memory", row)


def queries(node, pid):
    p = smi(node, "--query-gpu=gpu_name,power.draw,fan.speed,clocks.gr,utilization.gpu", "--format=csv", "--id=0,2")
    lines = p.stdout.splitlines()
    t.equal(lines[0], "name, power.draw [W], fan.speed [%], clocks.current.graphics [MHz], utilization.gpu [%]",
            "the header: canonical names with units")
    t.ok(len(lines) == 3 and all(re.fullmatch(rf".*\(simulated\), {W} W, \[N/A\], \d+ MHz, \d+ %", x) for x in lines[1:]),
         "values with units, what a board has not as [N/A]", p.stdout)
    p = smi(node, "--query-compute-apps=pid,process_name,used_memory,gpu_uuid", "--format=csv")
    head, *apps = p.stdout.splitlines()
    t.equal(head, "pid, process_name, used_gpu_memory [MiB], gpu_uuid", "processes: the header")
    t.equal([a.split(", ")[0::3] for a in apps], [[str(pid), node.board(0)["uuid"]]], "the job, on its board")
    p = smi(node, "-L")
    t.equal(p.stdout.splitlines(), [f"GPU {b['index']}: {b['name']} (UUID: {b['uuid']})" for b in node.status()["boards"]], "-L")
    p = smi(node)
    t.ok(p.returncode == 0 and p.stdout.count("(simulated)") == 3 and "CUDA Version: " in p.stdout and str(pid) in p.stdout,
         "without options: a summary", p.stdout)
    p = smi(node, "-q", "-d", "POWER,PIDS", "-i", node.board(0)["uuid"])
    t.ok(p.returncode == 0 and f"Process ID                                 : {pid}" in p.stdout and
         re.search(rf"Current Power Limit +: {W} W", p.stdout) and "Clocks" not in p.stdout, "-q -d POWER,PIDS: these alone", p.stdout)
    for word, says in (("-q", "Attached GPUs"), ("--help", "--query-gpu"), ("--help-query-gpu", '"power.draw"')):
        p = smi(node, word)
        t.ok(p.returncode == 0 and says in p.stdout and not p.stderr, word, p.stdout + p.stderr)


def document(node, pid):
    p = smi(node, "-q", "-x")
    root = xml.etree.ElementTree.fromstring(p.stdout)
    gpus = root.findall("gpu")
    t.equal([g.find("uuid").text for g in gpus], [b["uuid"] for b in node.status()["boards"]], "-q -x: the boards")
    t.equal([g.find("gpu_power_readings/current_power_limit").text for g in gpus],
            [f"{b['limit_mw'] / 1000:.2f} W" for b in node.status()["boards"]], "their limits")
    t.equal([[x.text for x in g.findall("processes/process_info/pid")] for g in gpus], [[str(pid)], [], []], "their processes")
    t.ok(root.find("attached_gpus").text == "3" and all(g.find("pci/pci_gpu_link_info/pcie_gen/max_link_gen") is not None
                                                         for g in gpus), "groups within groups", p.stdout)


def sets(node):
    bus = re.search(r"0000[0-9A-F:.]+", smi(node, "-q", "-i", "0").stdout).group()
    p = smi(node, "-i", "0", "-pl", "200")
    t.equal((p.returncode, p.stdout), (0, f"Power limit for GPU {bus} was set to 200.00 W from 300.00 W.\nAll done.\n"), "-pl")
    t.equal([b["limit_mw"] for b in node.status()["boards"]], [200000, 300000, 300000], "is in force on that board alone")
    p = smi(node, "-pl", "1000")
    t.equal((p.returncode, p.stdout),
            (2, f"Provided power limit 1000.00 W is not a valid power limit which should be between 150.00 W and 300.00 W for GPU {bus}\n"
             "Terminating early due to previous errors.\n"), "out of range: 2, with the range")
    t.equal([b["limit_mw"] for b in node.status()["boards"]], [200000, 300000, 300000], "and nothing changed")
    p = smi(node, "--lock-gpu-clocks=600,900", "--id=1")
    t.ok(p.returncode == 0 and '"(gpuClkMin 600, gpuClkMax 900)"' in p.stdout and p.stdout.endswith("All done.\n"), "-lgc", p.stdout)
    p = smi(node, "-rgc")
    t.ok(p.returncode == 0 and p.stdout.endswith("All done.\n"), "-rgc", p.stdout)
    p = smi(node, "-pm", "0", "-i", "2")
    t.ok(p.returncode == 0 and p.stdout.startswith("Disabled persistence mode for GPU"), "-pm", p.stdout)


def wrong(node):
    for args, status, says in (
            (["--query-gpu=power.drawn", "--format=csv"], 2, 'Field "power.drawn" is not a valid field to query.'),
            (["--query-gpu=name"], 2, "--format="), (["--query-gpu=name", "--format=json"], 2, '"json"'),
            (["--colour"], 2, '"--colour"'), (["-pl"], 2, '"-pl"'), (["-pl", "much"], 2, '"much"'),
            (["-lgc", "900,600"], 2, '"900,600"'), (["-i", "3", "-L"], 6, "No devices were found"),
            (["-q", "-d", "WEATHER"], 2, '"WEATHER"')):
        p = smi(node, *args)
        t.ok(p.returncode == status and says in p.stdout and len(p.stdout.split("\n\n")[0].splitlines()) == 1,
             f"{' '.join(args)}: {status}", f"{p.returncode} {p.stdout}{p.stderr}")


def faults(node):
    node.sim("fault", "1", "lost")
    p = smi(node, "--query-gpu=index", "--format=csv,noheader")
    t.ok(p.returncode == 15 and "GPU1: GPU is lost" in p.stdout, "a lost board: 15", f"{p.returncode} {p.stdout}")
    node.sim("fault", "1", "found")
    node.sim("fault", "all", "unload")
    p = smi(node, "-L")
    t.ok(p.returncode == 9 and "couldn't communicate with the NVIDIA driver" in p.stdout, "no driver: 9", p.stdout)


def rights():
    with uwtest.Node(count=1, may_set="root") as node:
        for args, says in ((["-pl", "200"], "Failed to set power management limit for GPU 0000"),
                           (["-lgc", "600"], "The current user does not have permission to change clocks for GPU 0000")):
            p = smi(node, *args, user=65534)
            t.ok(p.returncode == 4 and p.stdout.startswith(says) and
                 p.stdout.endswith("Terminating early due to previous errors.\n"), f"{args[0]} without rights: 4", f"{p.returncode} {p.stdout}")
        t.equal(node.board(0)["limit_mw"], 300000, "and nothing changed")
        p = smi(node, "-L", user=65534)
        t.ok(p.returncode == 0 and p.stdout.startswith("GPU 0: "), "who may not set may look", p.stdout + p.stderr)


def elsewhere(node):
    """Outside of a node it touches no library but the simulated one."""
    path = node.run("sh", "-c", "command -v nvidia-smi").stdout.strip()
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    p = uwtest.subprocess.run([path, "-L"], capture_output=True, text=True, env=env, timeout=60)
    t.ok(p.returncode in (12, 255) and "underwatt-sim exec" in p.stdout, "outside of exec it shows nothing", p.stdout)
    p = node.run("underwatt-sim", "--state", node.state, "exec", "--", "sh", "-c", "echo $PATH")
    parts = p.stdout.strip().split(":")
    t.equal(parts.count(os.path.dirname(path)), 1, "exec within exec adds its folder once")


def main():
    with uwtest.Node(machine=MACHINE) as node:
        job = node.train("--gpus", "0", "--workload", "steady", "--phases", "train")
        truth(node)
        queries(node, job.pid)
        document(node, job.pid)
        sets(node)
        wrong(node)
        elsewhere(node)
        faults(node)
    if os.getuid() == 0:
        rights()
    else:
        t.skip("rights of others", "only root can become somebody else")
    t.done()


if __name__ == "__main__":
    sys.exit(main())
