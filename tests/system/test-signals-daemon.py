#!/usr/bin/python3
"""underwattd reads underwatt-signals: carbon from a service on loopback in `underwatt signal list`, a socket that is not there yet, ends,
and is back, answers that are none."""
import contextlib
import json
import os
import pathlib
import re
import socketserver
import sqlite3
import tempfile
import threading
import time

import signalstub
import uwtest
from signalstub import answer_of, half_hours

t = uwtest.Tap()


def signal(d, name):
    return next(s for s in d.ask("GET", "/v1/signals")[1]["signals"] if s["name"] == name)


def becomes(d, name, holds):
    return uwtest.wait_until(lambda: signal(d, name), holds)


def wrong(d, path):
    """What listens there and is not underwatt-signals."""
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            self.rfile.readline()
            self.wfile.write(said[0])

    said = [b""]
    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for text, why in ((b"hello\r\n\r\n", "no answer of HTTP"), (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{", "half an answer"),
                          (b"HTTP/1.1 500 No\r\n\r\n", "HTTP 500"), (b"HTTP/1.1 200 OK\r\n\r\n{\"signals\":[]}", "no source there gives price"),
                          (b"HTTP/1.1 200 OK\r\n\r\n{\"signals\":[{\"name\":\"price\",\"source\":\"x\",\"unit\":\"EUR/kWh\",\"series\":[{}]}]}",
                           "damaged")):
            said[0] = text
            s = becomes(d, "price", lambda s: why in s["why"])
            t.ok(s["value"] is None and why in s["why"], f"{why}: unknown", s)
        server.shutdown()
    os.unlink(path)


def made(d, node, path):
    """A forecast is as old as its source says: in the list as in the forecast itself."""
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            self.rfile.readline()
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + json.dumps({"signals": [{
                "name": "price.forecast", "source": "x", "unit": "EUR/kWh", "issued_utc": at(-6 * 3600),
                "series": [{"begin_utc": at(h * 3600), "end_utc": at((h + 1) * 3600), "value": 0.25, "estimated": False} for h in range(5)]}]}).encode())

    def at(s):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + s))

    now = int(time.time()) // 3600 * 3600
    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        becomes(d, "price.forecast", lambda s: s["known"])
        said = [node.run("underwatt", *args, "--json", "-").stdout for args in (("signals", "price.forecast"), ("price", "forecast"))]
        ages = [int(age) for text in said for age in re.findall(r'"age_s": *(\d+)', text)]
        t.ok(len(ages) >= 2 and all(6 * 3600 <= age < 8 * 3600 for age in ages), "a forecast's age is that since its making", said)
        server.shutdown()
    os.unlink(path)


def factors(d):
    """What energy was charged with: signal, source, unit, whether it is estimated."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True)) as db:
            return set(db.execute("SELECT signal, source, unit, estimated FROM factor WHERE id IN "
                                  "(SELECT co2_factor FROM energy UNION SELECT marginal_factor FROM energy)"))
    except sqlite3.OperationalError:
        return set()


def main():
    os.umask(0o022)
    service = signalstub.Service(lambda path, headers: answer_of(half_hours(4)) if "/good/" in path else (500, {}, b""))
    try:
        with tempfile.TemporaryDirectory() as tmp, uwtest.Node(count=1) as node:
            source = signalstub.Signals(tmp, [
                f"{{name: gb, type: uk, url: {service.url}/good, provides: [carbon, carbon.forecast]}}",
                f"{{name: down, type: uk, url: {service.url}/down, as: carbon.down}}",
                f"{{name: meter, type: json, file: {tmp}/marginal.json, unit: kg/MWh, every: 1 s, age: 1 h, as: carbon.marginal}}",
                f"{{name: tariff, type: json, file: {tmp}/tariff.json, unit: EUR/MWh, age: 1 h, as: price.retail}}"])
            pathlib.Path(tmp, "marginal.json").write_text("512\n")
            pathlib.Path(tmp, "tariff.json").write_text("250\n")
            other = pathlib.Path(tmp, "other.sock")
            policy = pathlib.Path(node.tmp) / "policy.yaml"
            policy.write_text("policy: 1\nsignals:\n" + "".join(
                f"  - {{name: {name}, socket: {path}, every: 1 s{more}}}\n" for name, path, more in (
                    ("carbon", source.socket, ""), ("carbon.forecast", source.socket, ""),
                    ("carbon.down", source.socket, ", age: 1 h"),
                    ("carbon.marginal", source.socket, ""), ("price.retail", source.socket, ", unit: EUR/MWh, age: 1 h"), ("price", other, ""), ("price.forecast", other, ""))))
            d = node.daemon(f"node: {{interval: 1 s}}\npolicy: {{file: {policy}}}\n")
            s = becomes(d, "carbon", lambda s: "No such file" in s["why"])
            t.ok(s["value"] is None and source.socket in s["why"], "no socket: unknown", s)
            with source:
                s = becomes(d, "carbon", lambda s: s["value"] == 250)
                t.ok(s["value"] == 250 and s["source"] == "signals gb (Carbon Intensity API, National Energy System Operator; CC BY 4.0)" and s["points"] >= 5 and not s["why"], "carbon, with its history", s)
                t.ok(0 <= s["age_s"] <= 1800 + 60 and s["time_utc"][:16] in {p["begin_utc"][:16] for p in source.all()["carbon"]["series"]},
                     "… and the time of the value", s)
                t.equal(s["estimated"], True, "… and that it is an estimate")
                meter = becomes(d, "carbon.marginal", lambda s: s["value"] == 512)
                t.ok(meter["value"] == 512 and meter["estimated"] is False, "another one is none", meter)
                tariff = becomes(d, "price.retail", lambda s: s["value"] == 250)
                t.ok(tariff["value"] == 250 and tariff["unit"] == "EUR/MWh", "a signal of the site's own has the unit of policy.yaml", tariff)
                want = {("carbon", "signals gb (Carbon Intensity API, National Energy System Operator; CC BY 4.0)", "g/kWh", 1), ("carbon.marginal", "signals meter", "g/kWh", 0)}
                t.equal(uwtest.wait_until(lambda: factors(d), lambda f: f >= want) & want, want, "energy is booked with both, as they are")
                ahead = becomes(d, "carbon.forecast", lambda s: s["known"])
                t.ok(ahead["known"] and ahead["points"] == 4, "its forecast", ahead)
                p = node.run("underwatt", "signal", "list")
                t.ok(p.returncode == 0 and any(line.split()[:3] == ["carbon", "250", "g/kWh"] for line in p.stdout.splitlines()) and
                     "source signals gb (" in p.stdout and max(map(len, p.stdout.splitlines())) <= 80, "underwatt signal list shows it", p.stdout + p.stderr)
                down = becomes(d, "carbon.down", lambda s: "status 500" in s["why"])
                t.ok(down["value"] is None and "the service fails (status 500)" in down["why"], "a source that fails says why", down)
                source.stop()
            s = becomes(d, "carbon", lambda s: "No such file" in s["why"])    # a request that it ended with failed otherwise
            t.ok(s["value"] == 250 and source.socket in s["why"], "without it the last value holds until its end", s)
            lines = [line for line in d.log().splitlines() if "event=signal name=carbon " in line and "No such file" in line]
            t.equal(len(lines), 2, "each time that it went is said once")
            with source:
                s = becomes(d, "carbon", lambda s: not s["why"])
                t.ok(s["value"] == 250 and not s["why"], "it is back", s)
            lines = [line for line in d.log().splitlines() if "event=signal name=carbon state=works" in line]
            t.ok(len(lines) == 2 and all('value="250 g/kWh"' in line for line in lines), "… which the log says with the value", lines)
            wrong(d, other)
            made(d, node, other)
            t.ok(json.loads(node.run("underwatt", "signal", "list", "--json", "-").stdout), "the daemon is well")
            d.stop()
    finally:
        service.stop()
    t.done()


main()
