#!/usr/bin/python3
"""Nobody waits: save.  The depth of queues from CSV and JSON files and by hand, of all queues and of one partition."""
import json
import os
import pathlib
import tempfile
import time

import uwtest

t = uwtest.Tap()
POLICY = """policy: 1
defaults: {for: 0 s, release: 0 s}
signals:
- {name: queue.depth, file: DIR/queues.csv, column: waiting, age: 10 min, every: 1 s}
- {name: queue.depth.gpu_long, file: DIR/partitions.json, path: gpu-long.pending, age: 10 min, every: 1 s}
- {name: queue.wait.gpu_long}
rules:
- {name: nobody-waits, when: queue.depth == 0, until: queue.depth > 0, preset: balanced, ramp: at once}
- name: nobody-waits-for-long
  jobs: {slurm: {partition: gpu-long}}
  when: queue.depth.gpu_long == 0
  until: queue.depth.gpu_long > 0 or known(queue.wait.gpu_long) and queue.wait.gpu_long > 1 h
  cap: 60 %
  ramp: at once
"""
WHOLE, BALANCED, LONG = 300000, 255000, 180000


class Queues:
    """What a cron job writes: beside the file, then renamed."""

    def __init__(self, folder):
        self.folder = folder

    def put(self, name, text):
        new = self.folder / (name + ".new")
        new.write_text(text)
        new.rename(self.folder / name)

    def all(self, waiting):
        self.put("queues.csv", f"waiting,running\n7,8\n{waiting},12\n")

    def long(self, pending):
        self.put("partitions.json", json.dumps({"gpu-long": {"pending": pending, "running": 4}, "cpu": {"pending": 5}}))


def main():
    with tempfile.TemporaryDirectory() as tmp, uwtest.Node(count=2) as node:
        folder = pathlib.Path(tmp)
        folder.chmod(0o755)
        queues = Queues(folder)
        (folder / "policy.yaml").write_text(POLICY.replace("DIR", tmp))
        d = node.daemon(f"policy: {{file: {folder}/policy.yaml}}\n")

        def limits(*mw):
            return uwtest.wait_for(lambda: tuple(node.board(i)["limit_mw"] for i in range(2)) == mw)

        def at(mw, what):
            t.ok(limits(*mw), what, ([node.board(i) for i in range(2)], node.run("underwatt", "policy", "show").stdout,
                                     node.run("underwatt", "signal", "list").stdout))

        def signal(*words):
            p = node.run("underwatt", "signal", *words)
            t.ok(p.returncode == 0, f"signal {' '.join(words)}", p)

        def told(how):
            return sum(f"rule nobody-waits {how}" in x for x in d.log().splitlines())

        def state(rule):
            rules = d.ask("GET", "/v1/policy")[1]["rules"]
            return {b["state"] for r in rules if r["name"] == rule for b in r["boards"] if b["job"]}

        jobs = [node.train("--workload", "resnet50", "--gpus", str(i), "--epochs", "1000") for i in range(2)]
        for i, labels in enumerate(({}, {"slurm.partition": "gpu-long"})):
            status, made = d.ask("POST", "/v1/jobs", {"name": f"slurm:{i}", "source": "registered", "pid": jobs[i].pid,
                                                      "uid": os.getuid(), "gpus": [i], "labels": labels})
            t.equal(status, 201, f"job {i}: {made}")
        t.ok(uwtest.wait_for(lambda: state("nobody-waits") == {"unknown"}), "nothing is known of the queue", state("nobody-waits"))
        at((WHOLE, WHOLE), "… and nothing is capped: unknown is not 0")

        queues.all(3)
        t.ok(uwtest.wait_for(lambda: state("nobody-waits") == {"false"}), "somebody waits")
        at((WHOLE, WHOLE), "… and nothing is capped")
        queues.all(0)
        at((BALANCED, BALANCED), "nobody waits, by a CSV file: 85 %")
        queues.long(0)
        at((BALANCED, LONG), "nobody waits for a partition, by a JSON file: 60 % of its jobs")
        queues.all(2)
        at((WHOLE, LONG), "somebody waits elsewhere: that partition saves on")
        queues.long(1)
        at((WHOLE, WHOLE), "somebody waits for it: the originals")

        signal("set", "queue.depth", "0", "--for", "10min")
        at((BALANCED, BALANCED), "by hand, over the file")
        p = node.run("underwatt", "signal", "list")
        t.ok(any(x.startswith("queue.depth ") and " 0 " in x for x in p.stdout.splitlines()), "signal list has it", p.stdout)
        p = node.run("underwatt", "explain", "0")
        t.ok("rule nobody-waits: preset balanced (85 %): queue.depth 0" in " ".join(p.stdout.split()), "explain: who and why",
             p.stdout)
        signal("set", "queue.depth.gpu_long", "0", "--for", "10min")
        at((BALANCED, LONG), "of the partition by hand")
        signal("set", "queue.wait.gpu_long", "2 h", "--for", "10min")
        at((BALANCED, BALANCED), "its first job has waited for too long")
        for name in ("queue.wait.gpu_long", "queue.depth.gpu_long", "queue.depth"):
            signal("unset", name)
        at((WHOLE, WHOLE), "the files count again: somebody waits")
        begun = told("takes effect")
        for seconds in (2, 8, 32):  # a loaded host may act on it when it is over
            signal("set", "queue.depth", "0", "--for", f"{seconds}s")
            if uwtest.wait_for(lambda: told("takes effect") == begun + 2, seconds):
                break
        t.ok(uwtest.wait_for(lambda: told("is no longer in effect") == told("takes effect")) and told("takes effect") >= begun + 2,
             f"by hand for {seconds} s, and then no more", d.log()[-2000:])
        at((WHOLE, WHOLE), "… with the originals back")

        queues.all(0)
        at((BALANCED, BALANCED), "nobody waits")
        old = time.time() - 1200
        os.utime(folder / "queues.csv", (old, old))  # the cron job has died
        t.ok(uwtest.wait_for(lambda: state("nobody-waits") == {"unknown"}, 120), "a file that nobody writes any more: unknown",
             node.run("underwatt", "signal", "list").stdout)
        at((WHOLE, WHOLE), "… and the originals are back")
        p = node.run("underwatt", "signal", "set", "queue.depth.cpu", "0")
        t.ok(p.returncode == 2 and p.stderr.count("\n") == 1 and "queue.depth.cpu" in p.stderr, "a queue that is not declared", p)
        for job in jobs:
            job.terminate()
            job.wait(60)
    t.done()


if __name__ == "__main__":
    main()
