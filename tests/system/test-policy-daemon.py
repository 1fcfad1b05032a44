#!/usr/bin/python3
"""A policy in the daemon, with real processes: what a rule caps, `underwatt policy show`, GET /v1/policy, metrics,
explain, a reload with a wrong file, one without a file."""
import json
import pathlib
import sys
import tempfile

import uwtest

sys.path.insert(0, str(uwtest.TOP / "tests"))
try:
    from openapi import Spec
except ImportError as e:
    uwtest.skip_all(f"{e} (Debian: python3-jsonschema, python3-yaml)")

POLICY = """policy: 1
defaults: {for: 0 s, release: 0 s}
rules:
- {name: young, when: job.age > 1 s, cap: -25 %, ramp: at once}
- {name: never, when: carbon > 400 g/kWh, cap: 50 %}
"""


def main():
    t = uwtest.Tap()
    with tempfile.TemporaryDirectory() as tmp, uwtest.Node(count=2) as node:
        pathlib.Path(tmp).chmod(0o755)
        path = pathlib.Path(tmp, "policy.yaml")
        path.write_text(POLICY)
        d = node.daemon(f"policy: {{file: {path}}}\n")
        job = node.train("--workload", "resnet50", "--gpus", "0", "--epochs", "1000")
        t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 225000), "a quarter less on the job's board",
             node.board(0))
        status, policy = d.ask("GET", "/v1/policy")
        t.equal(status, 200, "GET /v1/policy")
        why = Spec(uwtest.TOP / "docs" / "openapi.yaml").judge("GET", "/v1/policy", status, "application/json",
                                                               json.dumps(policy))
        t.ok(not why, "as docs/openapi.yaml has it", why)
        young, never = policy["rules"]
        acts = next(b for b in young["boards"] if b["gpu"] == 0)
        t.ok(acts["state"] == "acts" and acts["on"] and acts["reads"][0].startswith("job.age ") and acts["why"],
             "the rule acts, and why", acts)
        unknown = next(b for b in never["boards"] if b["gpu"] == 0)
        t.ok(unknown["state"] == "unknown" and unknown["text"] == "carbon is unknown", "what is unknown", unknown)
        p = node.run("underwatt", "policy", "show")
        t.ok(p.returncode == 0 and "rule young: soft -25 %\n" in p.stdout and "  GPU 0, job 1: acts since " in p.stdout,
             "policy show", p)
        p = node.run("underwatt", "policy", "show", "--json", "-")
        t.equal(json.loads(p.stdout)["rules"][0]["name"], "young", "policy show --json")
        p = node.run("underwatt", "explain", "0")
        t.ok("rule young" in p.stdout, "explain names the rule", p)
        metrics = d.ask("GET", "/metrics")[1]
        t.ok(any(x.startswith("underwatt_rule_firing{gpu=\"0\"") and x.endswith("rule=\"young\"} 1")
                 for x in metrics.splitlines()), "underwatt_rule_firing")
        path.write_text(POLICY.replace("job.age", "job.aeg"))
        t.equal(d.ask("POST", "/v1/reload")[0], 400, "a wrong policy refuses the reload")
        status, policy = d.ask("GET", "/v1/policy")
        t.ok(policy["in_force"] and f"{path}:4: " in policy["error"], "the old one stays", policy["error"])
        path.unlink()
        t.equal(d.ask("POST", "/v1/reload")[0], 200, "no file")
        t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 300000), "the original is back", node.board(0))
        p = node.run("underwatt", "policy", "show")
        t.ok("no policy is in force" in p.stdout, "and said", p)
        job.terminate()
        job.wait()
    t.done()


if __name__ == "__main__":
    sys.exit(main())
