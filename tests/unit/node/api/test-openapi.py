"""docs/openapi.yaml held against the routes over a made-up node: every route and method
is in the file and the other way round, and every answer is of the status, content type
and JSON schema that the file gives it.  test-openapi.py TEST-API-ROUTES OPENAPI.yaml"""
import json
import re
import subprocess
import sys

try:
    import jsonschema
    import yaml
except ImportError as e:
    print(f"1..0 # SKIP {e} (Debian: python3-jsonschema, python3-yaml)")
    sys.exit(0)

exe, path = sys.argv[1:]
spec = yaml.safe_load(open(path, encoding="utf-8"))
n = failed = 0


def ok(good, name, why=""):
    global n, failed
    n += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {n} - {name}")
    for line in str(why).splitlines()[:20] if not good else []:
        print(f"# {line}")


METHODS = ("get", "post", "put", "patch", "delete")


def norm(p):
    return re.sub(r"{\w+}", "{}", p)


in_file = {f"{m.upper()} {norm(p)}" for p, item in spec["paths"].items() for m in METHODS if m in item}
in_code = {norm(line) for line in
           subprocess.run([exe, "--routes"], capture_output=True, text=True, check=True).stdout.splitlines()}
ok(in_code - in_file == set(), "every route is in the file", in_code - in_file)
ok(in_file - in_code == set(), "the file has no route that is none", in_file - in_code)


def resolve(node):
    while isinstance(node, dict) and "$ref" in node and len(node) == 1:
        at = spec
        for part in node["$ref"][2:].split("/"):
            at = at[part]
        node = at
    return node


def validator(schema):
    # One document: the file's own components.
    return jsonschema.Draft202012Validator({**schema, "components": spec["components"]},
                                           format_checker=jsonschema.FormatChecker())


def operation(method, target):
    p = target.split("?")[0]
    for pattern, item in spec["paths"].items():
        if re.fullmatch(re.sub(r"{\w+}", "[^/]+", pattern), p) and method.lower() in item:
            return item[method.lower()]
    return None


def judge(a):
    """What is wrong with an answer; None: nothing."""
    op = operation(a["method"], a["target"])
    if op is None:
        return "no such operation in the file"
    answer = resolve(op["responses"].get(str(a["status"])))
    if answer is None:
        return f"the file has no {a['status']} there"
    content = answer.get("content")
    if content is None:
        return None if not a["body"] else "a body where the file has none"
    if a["type"] not in content:
        return f"{a['type']} is not among {list(content)}"
    if a["type"] == "application/json":
        schema = content["application/json"]["schema"]
        for e in validator(schema).iter_errors(json.loads(a["body"])):
            return f"{list(e.absolute_path)}: {e.message}"
    return None


def request_ok(method, target, body):
    op = operation(method, target)
    schema = resolve(op).get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    return not list(validator(schema).iter_errors(json.loads(body)))


def play(lines):
    p = subprocess.run([exe, "--serve"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return [json.loads(line) for line in p.stdout.splitlines()]


UUID = "GPU-00000000-0000-0000-0000-000000000003"
GETS = ["/healthz", "/metrics", "/openapi.yaml", "/v1/node", "/v1/gpus", "/v1/gpus/0", f"/v1/gpus/{UUID}",
        "/v1/gpus/0/explain", "/v1/gpus/1/explain", "/v1/gpus/99", "/v1/claims", "/v1/claims?gpu=0&job=100",
        "/v1/claims?gpu=99", "/v1/claims?job=x", "/v1/jobs", "/v1/jobs/100", "/v1/jobs/101", "/v1/jobs/5",
        "/v1/jobs/x", "/v1/report", "/v1/report?by=user", "/v1/events", "/v1/events?what=cap", "/v1/events?what=x",
        "/v1/node?x=y"]
POSTS = [("/v1/claims", b) for b in (
    '{"gpu": 0, "cap": "250 W"}', '{"gpu": "GPU-1", "cap": "85%", "kind": "hard", "for": "10 min", "why": "x"}',
    '{"job": 100, "cap": "250 W", "pid": 7}')] + [("/v1/jobs", b) for b in (
        "{}", '{"name": "slurm:1", "source": "registered", "gpus": [0, "1"], "pid": 4, "uid": 1001}',
        '{"labels": {"project": "x"}, "goal": "edp", "class": "big"}', '{"cap": "85%"}')] + [
            ("/v1/gpus/0/release", '{"for": "10 min"}'), ("/v1/gpus/0/release", "{}")]
BAD = [("/v1/claims", b) for b in ('{"gpu": 0, "cap": 250}', '{"gpu": 0}', '{"gpu": 0, "cap": "250 W", "x": 1}',
                                   '{"gpu": 0, "cap": "250 W", "kind": "x"}', '{"gpu": [], "cap": "250 W"}',
                                   '{"gpu": 0, "cap": "250 W", "pid": 0}')] + [
    ("/v1/jobs", b) for b in ('{"user": "x"}', '{"gpus": 0}', '{"labels": {"a": 1}}', '{"source": "found"}')] + [
        ("/v1/gpus/0/release", '{"until": "x"}'), ("/v1/gpus/0/release", '{"for": 1}')]
PLAIN = ["POST /v1/gpus/0/take-back", "POST /v1/gpus/0/release", "POST /v1/reload", "DELETE /v1/claims/7",
         "DELETE /v1/jobs/100", "DELETE /v1/jobs/x", "POST /v1/gpus/99/release", "POST /v1/gpus/99/take-back"]
reads = [f"GET {g}" for g in GETS]
writes = [f"POST {p} {b}" for p, b in POSTS] + PLAIN

seen = set()
for name, lines in (("an administrator", reads + writes), ("a user", ["AS user"] + reads + writes),
                    ("a node of which nothing is known", ["BARE x"] + reads),
                    ("a node without boards", ["EMPTY x"] + [r for r in reads if "gpus/0" not in r]),
                    # (Neither an end nor a reload can find anything taken.)
                    ("refused", ["FAIL p"] + writes), ("taken", ["FAIL b"] + [w for w in writes if "reload" not in w and "DELETE" not in w]),
                    ("what is not of the form", [f"POST {p} {b}" for p, b in BAD])):
    for a in play(lines):
        why = judge(a)
        seen.add(f"{a['method']} {norm_path}" if (norm_path := next(
            (norm(p) for p in spec["paths"] if re.fullmatch(re.sub(r"{\w+}", "[^/]+", p), a["target"].split("?")[0])),
            None)) else "?")
        if name == "what is not of the form" and a["status"] != 400:
            why = f"{a['status']}, not 400"
        if why or name == "an administrator":
            ok(not why, f"{name}: {a['method']} {a['target']} {a['status']}", f"{why}\n{a['body'][:500]}")
    ok(True, f"{name}: all")
ok(seen == in_file, "every operation of the file was asked", in_file - seen)
ok(all(request_ok("POST", p, b) for p, b in POSTS), "the file allows the bodies that are taken",
   [b for p, b in POSTS if not request_ok("POST", p, b)])
ok(not any(request_ok("POST", p, b) for p, b in BAD), "and none of those that are refused",
   [b for p, b in BAD if request_ok("POST", p, b)])

# Events have schemas of their own.
for a in play(["GET /v1/events", "AS user", "GET /v1/events?what=samples", "BARE x", "GET /v1/events"]):
    for event, data in re.findall(r"event: (\w+)\ndata: (.*)\n", a["body"]):
        errors = list(validator({"$ref": "#/components/schemas/Samples"}).iter_errors(json.loads(data)))
        ok(event == "samples" and not errors, f"{event} is what the file says", errors)

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
