#!/usr/bin/python3
"""The dashboards of deploy/grafana: each has Grafana's own types (@grafana/schema, by tsc), and each query is answered by a real Prometheus
that scrapes a node with jobs over `metrics.listen`, as deploy/prometheus/prometheus.yml has it.
"""
import http.client
import json
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import uwtest

t = uwtest.Tap()
FOLDER = uwtest.TOP / "deploy/grafana"
BOARDS = {p.stem: json.loads(p.read_text(encoding="utf-8")) for p in sorted(FOLDER.glob("*.json"))}
OPTIONS = {"stat": "Stat", "timeseries": "TimeSeries", "bargauge": "BarGauge", "table": "Table"}
# What this node has nothing of: a search that has ended, a price, a policy, steps that a job tells.
MAY_BE_EMPTY = {"Saved", "Cost", "Slowdown", "Energy saved, with its 95 % interval", "Energy saved by job", "Rules that act", "Slowed by"}


def typescript(boards):
    raw = "@grafana/schema/dist/esm/raw/composable"
    out = ["import type { Dashboard } from '@grafana/schema';",
           f"import type {{ FieldConfig }} from '{raw}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';"]
    out += [f"import type {{ Options as {k} }} from '{raw}/{k}/panelcfg/x/{v}PanelCfg_types.gen';" for k, v in OPTIONS.items()]
    out.append("type Loose<T> = T extends string ? `${T}` : T extends number | boolean ? T : T extends (infer U)[] ? Loose<U>[]"
               " : T extends object ? { [K in keyof T]: Loose<T[K]> } : T;")  # an enum's words are texts in JSON
    for name, board in boards.items():
        out.append(f"export const {name}: Loose<Dashboard> = {json.dumps(board)};")
        for p in board["panels"]:
            out.append(f"export const {name}{p['id']}: Loose<Partial<{p['type']}>> = {json.dumps(p['options'])};")
            if "custom" in p["fieldConfig"]["defaults"]:
                out.append(f"export const {name}{p['id']}c: Loose<Partial<FieldConfig>> = {json.dumps(p['fieldConfig']['defaults']['custom'])};")
    return "\n".join(out)


def refused(place, boards):
    (place / "check.ts").write_text(typescript(boards), encoding="utf-8")
    p = subprocess.run(["node", "node_modules/typescript/bin/tsc", "--noEmit", "--skipLibCheck", "--strict", "--moduleResolution", "bundler",
                        "--module", "esnext", "check.ts"], cwd=place, capture_output=True, text=True, timeout=300)
    return p.stdout + p.stderr if p.returncode else ""


def schema(place):
    for tool in ("node", "npm"):
        if not shutil.which(tool):
            t.skip("the dashboards have Grafana's types", f"no {tool}")
            return
    for name in ("package.json", "package-lock.json"):
        shutil.copy(pathlib.Path(__file__).parent / "grafana" / name, place)
    p = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=place, capture_output=True, text=True, timeout=600)
    if p.returncode:
        t.skip("the dashboards have Grafana's types", "no registry of npm can be reached")
        return
    why = refused(place, BOARDS)
    t.ok(not why, "the dashboards have Grafana's types", why[:3000])
    wrong = json.loads(json.dumps(BOARDS))
    wrong["node"]["panels"][0]["titel"] = "x"
    t.ok("titel" in refused(place, {"node": wrong["node"]}), "… which refuse a misspelt key")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(port, path, method="GET"):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    c.request(method, path)
    r = c.getresponse()
    body = r.read().decode()
    c.close()
    return r.status, body


def get_or_none(port):
    try:
        return get(port, "/metrics")[0]
    except OSError:
        return None


def closed(sockets):
    """How many the other end has closed."""
    n = 0
    for s in sockets:
        s.setblocking(False)
        try:
            n += s.recv(1) == b""
        except BlockingIOError:
            pass
        except OSError:
            n += 1
    return n


def taken(node):
    """A port that another program has is no reason not to start."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        d = node.daemon(f"metrics: {{listen: '127.0.0.1:{s.getsockname()[1]}'}}\n")
        t.ok("metrics.listen is not served" in d.log() and d.ask("GET", "/v1/node")[0] == 200, "a taken port is said, and the daemon serves", d.log())
        d.stop()


def listens(d, port):
    uwtest.wait_for(lambda: "underwatt_gpu_power_watts{" in get(port, "/metrics")[1])
    status, text = get(port, "/metrics")
    t.ok(status == 200 and "underwatt_gpu_power_watts" in text, "/metrics over plain HTTP on loopback", text[:500])
    t.ok('job_id="1"' in text and ",name=" not in text, "… without names of jobs", [x for x in text.splitlines() if "_job_" in x][:4])
    for path in ("/v1/node", "/v1/jobs", "/healthz", "/"):
        t.equal(get(port, path)[0], 404, f"{path} is not there")
    t.equal([get(port, "/metrics", m)[0] for m in ("POST", "DELETE", "PUT")], [405] * 3, "and it only reads")
    many = []
    for i in range(100):  # one user may have as many addresses
        s = socket.socket()
        s.bind((f"127.0.{1 + i // 50}.{1 + i % 50}", 0))
        s.connect(("127.0.0.1", port))
        many.append(s)
    t.ok(uwtest.wait_for(lambda: closed(many) >= 100 - 64), "connections of one user's many addresses count together", closed(many))
    t.equal(d.ask("GET", "/v1/node")[0], 200, "… and the socket is served")
    for s in many:
        s.close()
    uwtest.wait_for(lambda: get_or_none(port) == 200)
    codes = [get(port, "/metrics")[0] for _ in range(12)]
    t.equal(codes, [200] * 12, "again and again")


class Prometheus:
    def __init__(self, folder, target):
        self.port = free_port()
        text = (uwtest.TOP / "deploy/prometheus/prometheus.yml").read_text()
        assert "127.0.0.1:9445" in text and "15s" in text
        (folder / "prometheus.yml").write_text(text.replace("127.0.0.1:9445", target).replace("15s", "1s"))
        shutil.copy(uwtest.TOP / "deploy/prometheus/underwatt.rules.yml", folder)
        with open(folder / "log", "wb") as log:
            self.child = subprocess.Popen(["prometheus", "--config.file", folder / "prometheus.yml", "--storage.tsdb.path", folder / "tsdb",
                                           f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def query(self, q):
        """Series, or the error's text."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?{urllib.parse.urlencode({'query': q})}", timeout=20) as r:
                return json.load(r)["data"]["result"]
        except urllib.error.HTTPError as e:
            return e.read().decode()
        except OSError:
            return []

    def stop(self):
        self.child.terminate()
        try:
            self.child.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def filled(q):
    return re.sub(r"\$(node|gpu|job)\b", ".*", q).replace("$__range", "1m").replace("$__rate_interval", "10s")


def queries(p):
    for name, board in BOARDS.items():
        for panel in board["panels"]:
            for target in panel["targets"]:
                q = filled(target["expr"])
                need = panel["title"] not in MAY_BE_EMPTY
                got = p.query(q)
                if need and got == []:
                    uwtest.wait_for(lambda q=q: p.query(q) != [], 60, 0.5)
                    got = p.query(q)
                t.ok(isinstance(got, list) and (got or not need), f"{name}: {panel['title']} {target['legendFormat']}", f"{q}\n{got}")
        for v in board["templating"]["list"]:
            m = re.fullmatch(r"label_values\((.+), (\w+)\)", v["query"]["query"]) if v["type"] == "query" else None
            if v["type"] == "query":
                got = p.query(filled(m[1]))
                t.ok(isinstance(got, list) and got and all(m[2] in r["metric"] for r in got), f"{name}: the variable {v['name']}", got)


def main():
    port = free_port()
    with uwtest.Node(board="v100", count=2, speed=4) as node, tempfile.TemporaryDirectory(prefix="uw-grafana-") as tmp:
        d = node.daemon(f"metrics: {{listen: '127.0.0.1:{port}'}}\n")
        p = node.run("underwatt", "signal", "set", "carbon", "400 g/kWh", env={"UNDERWATT_SOCKET": d.socket})
        t.equal(p.returncode, 0, "a carbon intensity by hand")
        node.popen("underwatt", "run", "--gpus", "0", "--cap", "80%", "--", uwtest.program("underwatt-sim"), "train", "--gpus", "0", "--steps",
                   "10000000", env={"UNDERWATT_SOCKET": d.socket})
        t.ok(uwtest.wait_for(lambda: d.ask("GET", "/v1/jobs")[1]["jobs"]), "a job", d.log())
        listens(d, port)
        if not shutil.which("prometheus"):
            t.skip("the dashboards' queries", "no Prometheus (Debian: prometheus)")
            return
        prometheus = Prometheus(pathlib.Path(tmp), f"127.0.0.1:{port}")
        try:
            up = uwtest.wait_for(lambda: prometheus.query("up == 1"), step=0.2)
            t.ok(up, "Prometheus scrapes by deploy/prometheus/prometheus.yml", (pathlib.Path(tmp) / "log").read_text()[-2000:])
            queries(prometheus)
        finally:
            prometheus.stop()


with uwtest.Node(board="v100", count=1) as other:
    taken(other)
with tempfile.TemporaryDirectory(prefix="uw-schema-") as tmp:
    schema(pathlib.Path(tmp))
main()
t.done()
