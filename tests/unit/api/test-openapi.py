"""docs/openapi.yaml held against the routes over a made-up node: every route and method
is in the file and the other way round, and every answer is of the status, content type
and JSON schema that the file gives it.  test-openapi.py TEST-API-ROUTES OPENAPI.yaml"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
try:
    from openapi import Spec, norm
except ImportError as e:
    print(f"1..0 # SKIP {e} (Debian: python3-jsonschema, python3-yaml)")
    sys.exit(0)

exe, path = sys.argv[1:]
spec = Spec(path)
n = failed = 0


def ok(good, name, why=""):
    global n, failed
    n += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {n} - {name}")
    for line in str(why).splitlines()[:20] if not good else []:
        print(f"# {line}")


in_file = spec.operations()
in_code = {norm(line) for line in
           subprocess.run([exe, "--routes"], capture_output=True, text=True, check=True).stdout.splitlines()}
ok(in_code - in_file == set(), "every route is in the file", in_code - in_file)
ok(in_file - in_code == set(), "the file has no route that is none", in_file - in_code)


def judge(a):
    return spec.judge(a["method"], a["target"], a["status"], a["type"], a["body"])


def play(lines):
    p = subprocess.run([exe, "--serve"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return [json.loads(line) for line in p.stdout.splitlines()]


UUID = "GPU-00000000-0000-0000-0000-000000000003"
GETS = ["/healthz", "/metrics", "/openapi.yaml", "/v1/node", "/v1/policy", "/v1/policy?from=x", "/v1/gpus", "/v1/gpus/0", f"/v1/gpus/{UUID}",
        "/v1/gpus/0/explain", "/v1/gpus/1/explain", "/v1/gpus/99", "/v1/claims", "/v1/claims?gpu=0&job=100",
        "/v1/claims?gpu=99", "/v1/claims?job=x", "/v1/jobs", "/v1/jobs/100", "/v1/jobs/101", "/v1/jobs/5",
        "/v1/jobs/x", "/v1/report", "/v1/report?by=user", "/v1/signals", "/v1/events", "/v1/events?what=cap", "/v1/events?what=x",
        "/v1/node?x=y"]
POSTS = [("/v1/claims", b) for b in (
    '{"gpu": 0, "cap": "250 W"}', '{"gpu": "GPU-1", "cap": "85%", "kind": "hard", "for": "10 min", "why": "x"}',
    '{"job": 100, "cap": "250 W", "pid": 7}', '{"gpu": 0, "preset": "balanced"}')] + [("/v1/jobs", b) for b in (
        "{}", '{"name": "slurm:1", "source": "registered", "gpus": [0, "1"], "pid": 4, "uid": 1001}',
        '{"labels": {"project": "x"}, "goal": "edp", "class": "big"}', '{"cap": "85%"}', '{"preset": "minimal"}')] + [
            ("/v1/gpus/0/release", '{"for": "10 min"}'), ("/v1/gpus/0/release", "{}"),
            ("/v1/policy/check", '{"policy": "policy: 1"}'),
            ("/v1/windows", '{"stopped": [{"id": 404, "at_ns": 4}], "done": [3]}'),
            ("/v1/windows/batch", '{"stopped": [{"id": 4, "at_ns": 4}]}'),
            ("/v1/windows/7/end", '{"at_ns": 9, "wait_s": 0, "keep": true}')]
BAD = [("/v1/claims", b) for b in ('{"gpu": 0, "cap": 250}', '{"gpu": 0}', '{"gpu": 0, "cap": "250 W", "x": 1}',
                                   '{"gpu": 0, "cap": "250 W", "preset": "minimal"}', '{"gpu": 0, "preset": 1}',
                                   '{"gpu": 0, "cap": "250 W", "kind": "x"}', '{"gpu": [], "cap": "250 W"}',
                                   '{"gpu": 0, "cap": "250 W", "pid": 0}')] + [
    ("/v1/jobs", b) for b in ('{"user": "x"}', '{"gpus": 0}', '{"labels": {"a": 1}}', '{"source": "found"}')] + [
        ("/v1/gpus/0/release", '{"until": "x"}'), ("/v1/gpus/0/release", '{"for": 1}'), ("/v1/policy/check", '{"policy": 1}'),
        ("/v1/windows", '{"stopped": []}'), ("/v1/windows/batch", '{"done": ["x"]}'), ("/v1/windows/7/end", '{"wait_s": 61}'),
        ("/v1/windows/7/end", '{"keep": 1}')]
PLAIN = ["POST /v1/gpus/0/take-back", "POST /v1/gpus/0/release", "POST /v1/reload", "DELETE /v1/claims/7",
         "DELETE /v1/jobs/100", 'PUT /v1/jobs/100/goal {"goal": "edp"}', 'PUT /v1/jobs/100/goal {"goal": null}', "DELETE /v1/jobs/x",
         'PUT /v1/jobs/slurm:1 {"uid": 1000, "gpu_minors": [0], "cap": "250 W", "time_limit": "1 h"}', 'PUT /v1/jobs/slurm:1 {"uid": 1000}',
         'PATCH /v1/jobs/slurm:1 {"labels": {"slurm.qos": "high"}, "time_limit": "1 h", "for": "90 s"}', "PATCH /v1/jobs/slurm:1 {}",
         "DELETE /v1/jobs/slurm:1", "GET /v1/jobs/slurm:1", "POST /v1/windows", "POST /v1/windows/99/end",
         "GET /v1/gpus/0/history", "GET /v1/gpus/1/history", "POST /v1/windows/x/end", "GET /v1/windows/99/samples?gpu=0&most=2", "GET /v1/windows/99/samples?gpu=1", "DELETE /v1/windows/99", 'PUT /v1/signals/carbon {"value": -3.5, "unit": "g/kWh", "for": "10 min"}',
         'PUT /v1/signals/grid.open {"value": true}', 'PUT /v1/signals/queue.gpus {"value": 8, "for": "90 s", "source": "slurm"}', "DELETE /v1/signals/carbon", "POST /v1/gpus/99/release", "POST /v1/gpus/99/take-back"]
reads = [f"GET {g}" for g in GETS]
writes = [f"POST {p} {b}" for p, b in POSTS] + PLAIN

seen = set()
for name, lines in (("an administrator", reads + writes), ("a user", ["AS user"] + reads + writes),
                    ("a node of which nothing is known", ["BARE x"] + reads),
                    ("a node without boards", ["EMPTY x"] + [r for r in reads if "gpus/0" not in r]),
                    # (Neither an end, a reload nor what is told of windows can find anything taken.)
                    ("refused", ["FAIL p"] + writes), ("taken", ["FAIL b"] + [w for w in writes if not re.search("reload|DELETE|batch", w)]),
                    ("what is not of the form", [f"POST {p} {b}" for p, b in BAD])):
    for a in play(lines):
        why = judge(a)
        seen.add(f"{a['method']} {spec.find(a['method'], a['target'])[0]}")
        if name == "what is not of the form" and a["status"] != 400:
            why = f"{a['status']}, not 400"
        if why or name == "an administrator":
            ok(not why, f"{name}: {a['method']} {a['target']} {a['status']}", f"{why}\n{a['body'][:500]}")
    ok(True, f"{name}: all")
ok(seen == in_file, "every operation of the file was asked", in_file - seen)
ok(all(spec.takes("POST", p, b) for p, b in POSTS), "the file allows the bodies that are taken",
   [b for p, b in POSTS if not spec.takes("POST", p, b)])
ok(not any(spec.takes("POST", p, b) for p, b in BAD), "and none of those that are refused",
   [b for p, b in BAD if spec.takes("POST", p, b)])

# Events have schemas of their own.
for a in play(["GET /v1/events", "AS user", "GET /v1/events?what=samples", "BARE x", "GET /v1/events"]):
    for event, data in re.findall(r"event: (\w+)\ndata: (.*)\n", a["body"]):
        why = spec.wrong("Samples", json.loads(data))
        ok(event == "samples" and not why, f"{event} is what the file says", why)

# The test would notice: an answer with a key too many, one too few, another type.
gpu = json.loads(play(["GET /v1/gpus/0"])[0]["body"])
for name, broken in (("a key too many", {**gpu, "x": 1}), ("one too few", {k: gpu[k] for k in gpu if k != "uuid"}),
                     ("another type", {**gpu, "power_w": "x"})):
    ok(judge({"method": "GET", "target": "/v1/gpus/0", "status": 200, "type": "application/json",
              "body": json.dumps(broken)}), f"it would say so: {name}")
ok(judge({"method": "GET", "target": "/v1/gpus/0", "status": 409, "type": "application/json", "body": "{}"}),
   "it would say so: a status that is not in the file")
print(f"1..{n}")
sys.exit(1 if failed else 0)
