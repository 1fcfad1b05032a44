#!/usr/bin/python3
"""A phase rule for a program that tells its phases through libunderwatt: the cap comes and goes with the phase at once,
though the policy is evaluated once a minute; who it is, and what it costs, is said."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import libuser
import uwtest

TRAIN, VALIDATE = 1, 2
POLICY = """policy: 1
defaults: {every: 60 s}
rules:
- {name: validation, when: job.phase == 'validate', phase: true, least: 300 ms, cap: 60 %, ramp: at once}
"""


class Client:
    """A lib-client with a job on GPU 0."""

    def __init__(self, node, exe):
        self.child = node.popen(exe, os.path.join(node.state, "lib", "libnvidia-ml.so.1"), 0, stdin=subprocess.PIPE)
        self.opened = self.child.stdout.readline()

    def ask(self, text):
        self.child.stdin.write(text + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().split()


def costly(t, path, exe):
    """A board whose set calls take a second: each return costs training more than a phase saves."""
    path.unlink()
    with uwtest.Node(machine="name: slow\nboards: [{model: v100, count: 1}]\nset_latency: 1 s\n") as node:
        d = node.daemon(f"policy: {{file: {path}}}\n")

        def in_force(mw):  # as the daemon has read it back
            return d.ask("GET", "/v1/gpus")[1]["gpus"][0]["limits"]["enforced_mw"] == mw

        def off():
            return "costly since" in node.run("underwatt", "policy", "show").stdout

        job = Client(node, exe)
        t.equal(job.ask("job edp")[0], "0", "a job on a board with slow calls")
        job.ask(f"phase {TRAIN}")
        uwtest.wait_for(lambda: d.ask("GET", "/v1/jobs")[1]["jobs"][0]["phase"] == "train")
        path.write_text(POLICY.replace("every: 60 s", "every: 1 s"))
        t.equal(d.ask("POST", "/v1/reload")[0], 200, "the policy")
        for _ in range(12):
            job.ask(f"phase {VALIDATE}")
            uwtest.wait_for(lambda: in_force(180000) or off())
            job.ask(f"phase {TRAIN}")
            uwtest.wait_for(lambda: in_force(300000))
            if uwtest.wait_for(off, 1.5):
                break
        p = node.run("underwatt", "policy", "show")
        t.ok("costly since" in p.stdout and "training time: " in p.stdout,
             "returns cost too much: policy show says how much", p)
        p = node.run("underwatt", "explain", "0")
        t.ok("no phase caps: raises of the cap cost the job" in " ".join(p.stdout.split()), "explain says so", p)
        job.ask(f"phase {VALIDATE}")
        t.ok(not uwtest.wait_for(lambda: node.board(0)["limit_mw"] != 300000, 3), "no cap for phases any more",
             node.board(0))


def main():
    t = uwtest.Tap()
    with tempfile.TemporaryDirectory() as tmp, uwtest.Node(count=1) as node:
        pathlib.Path(tmp).chmod(0o755)
        path = pathlib.Path(tmp, "policy.yaml")
        exe = libuser.build(t, tmp, "lib-client")
        d = node.daemon(f"policy: {{file: {path}}}\n")

        def limit(mw):
            return uwtest.wait_for(lambda: node.board(0)["limit_mw"] == mw)

        job = Client(node, exe)
        t.equal(job.ask("job edp")[0], "0", "a job with a goal")
        t.equal(job.ask(f"phase {TRAIN}")[0], "0", "trains")
        t.ok(uwtest.wait_for(lambda: d.ask("GET", "/v1/jobs")[1]["jobs"][0]["phase"] == "train"), "the daemon knows")
        path.write_text(POLICY)  # evaluated now, and in a minute
        t.equal(d.ask("POST", "/v1/reload")[0], 200, "a policy")

        def ended():
            """A loaded host let the limit back late twice: the rule does not act on this job any more."""
            return d.ask("GET", "/v1/policy")[1]["rules"][0]["boards"][0]["state"] == "costly"

        def capped():
            return uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 180000 or ended()) and not ended()

        good = []
        for _ in range(5):
            job.ask(f"phase {VALIDATE}")
            began = time.monotonic()
            low = capped()
            time.sleep(max(0, 0.6 - (time.monotonic() - began)))  # longer than its `least`
            if not low and ended():
                break
            job.ask(f"phase {TRAIN}")
            good.append(bool(low and limit(300000)))
        t.ok(good and all(good), f"{len(good)} validations: capped and let go", good)
        job.ask(f"phase {VALIDATE}")
        if capped():
            p = node.run("underwatt", "explain", "0")
            t.ok("rule validation" in p.stdout, "explain names the rule", p)
            p = node.run("underwatt", "policy", "show")
            t.ok(p.returncode == 0 and "acts since" in p.stdout and
                 "the saving compared with a static cap is not known yet" in p.stdout, "policy show, and what it comes to", p)
        job.ask(f"phase {TRAIN}")
        t.ok(limit(300000), "training again", node.board(0))
        job.ask("over")
        node.stop()
        costly(t, path, exe)
    t.done()


if __name__ == "__main__":
    sys.exit(main())
