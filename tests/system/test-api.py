"""The daemon's HTTP interface as the world sees it: answers judged by docs/openapi.yaml,
metrics by promtool, a real Prometheus that scrapes over TLS with a token, dcgm-exporter's
files, live events."""
import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

import uwtest

t = uwtest.Tap()
spec = uwtest.spec()


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def ask(d, method, target, body=None, judged=True):
    """(status, JSON or text); judged by the file."""
    c = Unix(d.socket)
    c.request(method, target, json.dumps(body) if body is not None else None,
              {"Content-Type": "application/json"} if body is not None else {})
    r = c.getresponse()
    text = r.read().decode()
    kind = r.getheader("Content-Type") or ""
    if judged:
        why = spec.judge(method, target, r.status, kind, text)
        t.ok(not why, f"{method} {target}: {r.status} is as the file has it", f"{why}\n{text[:600]}")
    c.close()
    return r.status, json.loads(text) if kind == "application/json" and text else text


def value(metrics, series):
    """The value of the first series that begins so."""
    for line in metrics.splitlines():
        if line.startswith(series):
            return float(line.rsplit(" ", 1)[1])
    return None


def reads(d, uuid):
    for target in ("/healthz", "/openapi.yaml", "/v1/node", "/v1/policy", "/v1/gpus", "/v1/gpus/1", f"/v1/gpus/{uuid}", "/v1/gpus/9",
                   "/v1/gpus/0/explain", "/v1/claims", "/v1/claims?gpu=0", "/v1/jobs", "/v1/jobs/4711",
                   "/v1/report", "/v1/report?by=day&zone=local", "/v1/report?by=moon", "/v1/node?x=1"):
        ask(d, "GET", target)


def writes(d):
    status, made = ask(d, "POST", "/v1/claims", {"gpu": 1, "cap": "200 W", "kind": "hard", "for": "10 min", "why": "test"})
    t.equal(status, 201, "a claim is made")
    for body in ({"gpu": 1, "cap": "20 W"}, {"gpu": 1, "cap": "2 kW"}, {"gpu": 1, "cap": "200"}, {"gpu": 7, "cap": "200 W"}):
        status, answer = ask(d, "POST", "/v1/claims", body)
        t.ok(status in (400, 404), f"{body}: refused: {answer.get('error')}", answer)
    enforced = uwtest.wait_for(lambda: d.node.board(1)["limit_mw"] == 200000 if "limit_mw" in d.node.board(1)
                               else ask(d, "GET", "/v1/gpus/1", judged=False)[1]["limits"]["enforced_mw"] == 200000)
    t.ok(enforced, "the board has that limit", d.log())
    _, why = ask(d, "GET", "/v1/gpus/1/explain")
    t.ok(why["cap"]["by"] == "claim" and why["cap"]["claim"] == made["id"] and "test" in why["cap"]["why"] and
         [c["wins"] for c in why["claims"]] == [True], "explain says which claim won and why", why)
    t.equal(ask(d, "POST", "/v1/gpus/1/release", {"for": "10 min"})[1]["state"], "released", "released on request")
    t.equal(ask(d, "POST", "/v1/gpus/1/release", {"for": 10})[0], 400, "a bare number has no unit")
    t.equal(ask(d, "POST", "/v1/gpus/1/take-back")[0], 200, "taken back")
    t.equal(ask(d, "DELETE", f"/v1/claims/{made['id']}")[0], 204, "withdrawn")
    t.equal(ask(d, "DELETE", f"/v1/claims/{made['id']}")[0], 404, "it is not there a second time")
    t.equal(ask(d, "POST", "/v1/reload")[0], 200, "the configuration is read anew")
    good = pathlib.Path(d.config).read_text()
    pathlib.Path(d.config).write_text(good + "\nno_such_key: 1\n")
    t.equal(ask(d, "POST", "/v1/reload")[0], 400, "a wrong one is refused")
    t.equal([line.split()[0] for line in d.log().splitlines() if "config-refused" in line], ["<3>event=config-refused"],
            "and told once")
    pathlib.Path(d.config).write_text(good)


def jobs(d, mapping):
    status, made = ask(d, "POST", "/v1/jobs", {"name": "slurm:4711", "source": "registered", "gpus": [0],
                                               "labels": {"project": "x"}})
    t.equal(status, 201, "a job is registered")
    _, job = ask(d, "GET", f"/v1/jobs/{made['id']}")
    t.ok(job["name"] == "slurm:4711" and job["gpus"] == [0] and job["labels"] == {"project": "x"}, "it is there", job)
    t.ok(uwtest.wait_for(lambda: (mapping / "0").read_text() == "4711\n"), "dcgm-exporter's file has it")
    t.equal((mapping / "1").read_text(), "", "the other board's is empty")
    t.equal(ask(d, "DELETE", f"/v1/jobs/{made['id']}")[0], 204, "it ends")
    t.ok(uwtest.wait_for(lambda: (mapping / "0").read_text() == ""), "and the file is empty")


OTHER = r"""
import http.client, json, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
for method, target, body in json.loads(sys.argv[2]):
    c = Unix("localhost", timeout=20)
    c.request(method, target, body, {"Content-Type": "application/json"} if body else {})
    r = c.getresponse()
    print(json.dumps([r.status, r.getheader("Content-Type") or "", r.read().decode()]))
    c.close()
"""


def others(d):
    """Somebody else of this machine: energy and caps yes, names and other people's boards no."""
    if os.geteuid() != 0:
        t.skip("what another user sees", "needs root to become another")
        return
    _, made = ask(d, "POST", "/v1/jobs", {"name": "hush:1", "source": "registered", "gpus": [0], "uid": 1,
                                          "labels": {"project": "quiet"}}, judged=False)
    asks = [("GET", "/v1/jobs", None), ("GET", "/metrics", None), ("GET", f"/v1/jobs/{made['id']}", None),
            ("GET", "/v1/report", None), ("GET", "/v1/gpus/0", None), ("GET", "/v1/node", None),
            ("POST", "/v1/claims", '{"gpu": 0, "cap": "200 W"}'), ("POST", "/v1/gpus/0/release", None),
            ("POST", "/v1/jobs", '{"name": "mine", "uid": 1}'), ("DELETE", f"/v1/jobs/{made['id']}", None),
            ("POST", "/v1/reload", None)]
    p = subprocess.run([sys.executable, "-c", OTHER, d.socket, json.dumps(asks)], user=65534, group=65534, extra_groups=[],
                       capture_output=True, text=True, timeout=60, cwd="/")
    answers = [json.loads(line) for line in p.stdout.splitlines()]
    if not t.equal(len(answers), len(asks), "another user is answered"):
        print("#", p.stderr[-500:].replace("\n", "\n# "))
        return
    for (method, target, _), (status, kind, text) in zip(asks, answers):
        why = spec.judge(method, target, status, kind, text)
        t.ok(not why, f"another user: {method} {target}: {status} is as the file has it", f"{why}\n{text[:300]}")
    t.ok(not any("hush" in text or "quiet" in text for _, _, text in answers), "no name or label of another's job in any of it",
         [text[:300] for _, _, text in answers if "hush" in text or "quiet" in text])
    t.ok(f'job_id="{made["id"]}",user="' in answers[1][2], "but that it is there, and whose")
    t.equal([status for status, _, _ in answers], [200] * 6 + [403] * 5, "what it may see, and that it may do nothing")
    t.equal(ask(d, "DELETE", f"/v1/jobs/{made['id']}", judged=False)[0], 204, "the job was left alone")


def valid():
    """The file itself, judged by the registry's validator of OpenAPI."""
    python = uwtest.venv("openapi-spec-validator")
    if not python:
        t.skip("docs/openapi.yaml is valid OpenAPI 3.1", "the package registry is out of reach")
        return
    p = subprocess.run([python, "-m", "openapi_spec_validator", uwtest.TOP / "docs" / "openapi.yaml"],
                       capture_output=True, text=True, timeout=60)
    t.ok(p.returncode == 0, "docs/openapi.yaml is valid OpenAPI 3.1", p.stdout + p.stderr)


def events(d):
    c = Unix(d.socket)
    c.request("GET", "/v1/events")
    r = c.getresponse()
    t.ok(r.status == 200 and r.getheader("Content-Type").startswith("text/event-stream"), "events are a stream")
    ask(d, "POST", "/v1/claims", {"gpu": 0, "cap": "250 W", "kind": "hard", "for": "2 s", "why": "seen live"}, judged=False)
    schemas = {"samples": "Samples", "cap": "CapEvent", "claim": "ClaimEvent", "job": "JobEvent"}
    seen, name, until = {}, "", time.monotonic() + 20
    while time.monotonic() < until and not (seen.get("samples", 0) >= 3 and seen.get("claim", 0) >= 2 and "cap" in seen):
        line = r.fp.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            why = spec.wrong(schemas[name], json.loads(line[6:])) if name in schemas else f"unknown event {name}"
            if why:
                t.ok(False, f"event {name}", f"{why}\n{line}")
            seen[name] = seen.get(name, 0) + 1
    c.close()
    t.ok(seen.get("samples", 0) >= 3 and "cap" in seen and seen.get("claim", 0) >= 2,
         "samples, the claim made and expired, and the cap came, as the file has them", seen)


def charged(d):
    """Emissions and money, which a signal makes known."""
    for name, v, unit in (("carbon", 300, "g/kWh"), ("carbon.marginal", -20, "g/kWh"), ("price", 0.25, "EUR/kWh")):
        status, _ = ask(d, "PUT", f"/v1/signals/{name}", {"value": v, "unit": unit})
        t.equal(status, 204, f"{name} is set")
    text = uwtest.wait_until(lambda: ask(d, "GET", "/metrics")[1], lambda m: (value(m, 'underwatt_gpu_co2e_grams_total{gpu="0"') or 0) > 0.01, 30)
    board = lambda name: float(re.search(f'^underwatt_gpu_{name}{{gpu="0",.*}} (.*)$', text, re.M)[1])
    g, j, cost = board("co2e_grams_total"), board('charged_joules_total(?=.*signal="carbon")'), board('cost(?=.*currency="EUR")')
    t.ok(abs(g - j * 300 / 3.6e6) <= 0.002 and abs(cost - j * 0.25 / 3.6e6) <= 0.001 * cost + 2e-6, "grams and money of the energy that is covered",
         (g, j, cost))
    t.ok(board("co2e_marginal_grams") < 0 < board("energy_joules_total") - j + 1e-3, "marginal ones may fall, and not all is covered", text)


def metrics(d):
    charged(d)
    _, text = ask(d, "GET", "/metrics")
    tool = shutil.which("promtool")
    if tool:
        p = subprocess.run([tool, "check", "metrics"], input=text.replace(",modelName=", ",model_name="),
                           capture_output=True, text=True, timeout=60)
        t.ok(p.returncode == 0 and not p.stderr, "promtool has nothing to say", p.stdout + p.stderr)
    else:
        t.skip("promtool has nothing to say", "no promtool (Debian: prometheus)")
    t.ok(value(text, 'underwatt_gpu_power_watts{gpu="0"') > 20, "a board's power")
    t.ok(value(text, 'underwatt_gpu_power_limit_watts{gpu="0"') is not None and 'simulated="1"' in text,
         "its limits, marked as simulated")
    t.ok(value(text, "underwatt_http_requests_total") > 20 and value(text, "underwatt_http_refused_total") > 3,
         "how many requests were answered and refused", [line for line in text.splitlines() if "_http_" in line])
    c, took = Unix(d.socket), []
    for _ in range(300):
        began = time.perf_counter()
        c.request("GET", "/metrics")
        c.getresponse().read()
        took.append(time.perf_counter() - began)
    c.close()
    print(f"# a scrape: median {sorted(took)[150] * 1e3:.2f} ms, p99 {sorted(took)[297] * 1e3:.2f} ms (simulated boards, Python's clock)")


def certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, check=True, capture_output=True)
    (folder / "key.pem").chmod(0o600)


def token(folder):
    """A token that may only read, as docs of api/rights/token.h have the file."""
    text = "uwt_1a2b3c4d_" + "5" * 64
    now = int(time.time())
    (folder / "tokens").write_text("underwatt-tokens 1\n1a2b3c4d prometheus read - - "
                                   f"{now - 10} {now + 86400} {hashlib.sha256(text.encode()).hexdigest()}\n")
    (folder / "tokens").chmod(0o600)
    (folder / "token").write_text(text)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Prometheus:
    """The real one, on a loopback port, scraping the daemon over TLS."""

    def __init__(self, folder, target):
        self.port = free_port()
        rules = uwtest.TOP / "deploy" / "prometheus" / "underwatt.rules.yml"
        (folder / "prometheus.yml").write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [{
                "job_name": "underwatt", "scheme": "https", "static_configs": [{"targets": [target]}],
                "authorization": {"credentials_file": str(folder / "token")},
                "tls_config": {"ca_file": str(folder / "cert.pem")}}]}))
        with open(folder / "prometheus.log", "wb") as log:
            self.child = subprocess.Popen(
                ["prometheus", "--config.file", folder / "prometheus.yml", "--storage.tsdb.path", folder / "tsdb",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.folder = folder

    def api(self, path, **query):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}",
                                        timeout=5) as r:
                return json.load(r)["data"]
        except OSError:
            return None

    def query(self, q):
        got = self.api("query", query=q)
        return [(r["metric"], float(r["value"][1])) for r in got["result"]] if got else []

    def stop(self):
        self.child.terminate()
        try:
            self.child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def scraped(d, folder, target):
    if not shutil.which("prometheus"):
        t.skip("a real Prometheus", "none here (Debian: prometheus)")
        return
    p = Prometheus(folder, target)
    try:
        up = uwtest.wait_for(lambda: any(v == 1 for _, v in p.query("up")), step=0.2)
        t.ok(up, "Prometheus scrapes over TLS with its token",
             f"{p.api('targets')}\n{(folder / 'prometheus.log').read_text()[-2000:]}\n{d.log()[-1000:]}")
        if not up:
            return
        power = uwtest.wait_for(lambda: p.query("underwatt_gpu_power_watts"), step=0.2)
        t.ok(len(power) == 2 and all(v > 20 and m["simulated"] == "1" for m, v in power), "series of both boards arrive", power)
        join = p.query('underwatt_gpu_power_watts / on (board, hostname) group_left '
                       'underwatt_gpu_power_limit_watts{kind="enforced"}')
        t.ok(len(join) == 2 and all(0 < v < 1.2 for _, v in join), "power over limit, joined on the board", join)
        by_user = uwtest.wait_for(lambda: p.query(
            'sum by (user) (underwatt_job_gpu_info * on (board, hostname) group_left underwatt_gpu_power_watts '
            '* on (job_id, hostname) group_left (user) (underwatt_job_energy_joules_total * 0 + 1))'), step=0.3)
        t.ok(by_user and by_user[0][1] > 20, "W by user, as docs/metrics.md has it", by_user)
        # A scrape that comes too late is an alert that is pending until the next one.
        rules = uwtest.wait_until(lambda: [r for g in (p.api("rules") or {"groups": []})["groups"] for r in g["rules"]],
                                  lambda rules: rules and all((r["health"], r["state"]) == ("ok", "inactive") for r in rules))
        t.ok(rules and all(r["health"] == "ok" and r["state"] == "inactive" for r in rules),
             "our alerts are evaluated and quiet", [(r["name"], r["health"], r["state"]) for r in rules])
    finally:
        p.stop()


def refused_elsewhere(port, folder):
    """Over TLS without a token there is nothing but the daemon's life."""
    import ssl
    context = ssl.create_default_context(cafile=folder / "cert.pem")
    for target, header, want in (("/metrics", {}, 401), ("/v1/node", {"Authorization": "Bearer x"}, 401), ("/healthz", {}, 200)):
        c = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
        c.request("GET", target, headers=header)
        t.equal(c.getresponse().status, want, f"{target} over TLS without a token: {want}")
        c.close()


def reloads(d, folder, port):
    """A reload that is refused for its tokens keeps the old certificate too."""
    import ssl
    old, tokens = ssl.get_server_certificate(("127.0.0.1", port)), (folder / "tokens").read_text()
    certificate(folder)
    new = (folder / "cert.pem").read_text()
    (folder / "tokens").write_text("not a list of tokens\n")
    t.ok(d.reload(), "a reload with a bad file of tokens is dealt with")
    t.ok(old != new and ssl.get_server_certificate(("127.0.0.1", port)) == old,
         "it is refused: the certificate of before is served")
    (folder / "tokens").write_text(tokens)
    t.ok(d.reload(), "a reload with good tokens is dealt with")
    t.equal(ssl.get_server_certificate(("127.0.0.1", port)), new, "the new certificate is served")


checked = threading.Thread(target=valid)    # installs the validator, at first
checked.start()
with uwtest.Node(board="v100", count=2) as node:
    folder = pathlib.Path(node.tmp, "api")
    mapping = folder / "mapping"
    mapping.mkdir(parents=True)
    certificate(folder)
    token(folder)
    port = free_port()
    d = node.daemon(f"""
api:
  tcp:
    listen: 127.0.0.1:{port}
    certificate: {folder}/cert.pem
    key: {folder}/key.pem
    tokens: {folder}/tokens
metrics:
  hpc_job_mapping_dir: {mapping}
""")
    reads(d, node.board(1)["uuid"])
    writes(d)
    jobs(d, mapping)
    others(d)
    events(d)
    metrics(d)
    refused_elsewhere(port, folder)
    reloads(d, folder, port)
    child = node.train("--gpus", "0", "--steps", "100000")
    scraped(d, folder, f"127.0.0.1:{port}")
    t.equal(d.stop(), 0, "ends with 0 while it is being scraped")
    t.ok(re.search("Sanitizer", d.log()) is None, "without a word of a sanitizer", d.log())
checked.join()
t.done()
