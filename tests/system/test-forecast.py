#!/usr/bin/python3
"""Forecasts held against what came: kept over restarts beside the cache, said once where they are worse than persistence, in the socket's answer,
the daemon's metrics and `underwatt carbon forecast`."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

import signalstub
import uwtest
from signalstub import answer_of, half_hours

t = uwtest.Tap()
HOUR, DAY = 3600, 86400


def seed(place, now):
    """As after 60 forecasts of three days: worse than persistence 1 h ahead, better 3 h ahead; one waits for a half hour that is over."""
    def sums(day):
        return {"day": day, "sums": [[20, 20, 0, 400, 300, 500], [20, 0, 1, 200, 300, 0]] + [[0, 0, 0, 0, 0, 0]] * 3}
    today = now // DAY
    place.write_text(json.dumps({"judged": 1, "forecasts": others(31, today - 40) + [{
        "signal": "carbon.forecast", "source": "gb", "unit": "g/kWh", "seen": "1", "issued": now - 2 * HOUR, "worse": 0,
        "open": [[now - 2 * HOUR, 0, 250, 240, None]], "days": [sums(today - d) for d in (1, 2, 3)]}]}))


def others(n, day):
    """Forecasts of other names with a value of that day."""
    return [{"signal": f"x{i}.forecast", "source": "x", "unit": "kW", "seen": "1", "issued": 1, "worse": 0, "open": [[1, 0, 1, 1, None]],
             "days": [{"day": day, "sums": [[1, 0, 0, 1, 1, 0]] * 5}]} for i in range(n)]


def names(place):
    return [f["signal"] for f in json.loads(place.read_text())["forecasts"]]


def crowd(s, place, now):
    """More forecasts than there are places."""
    place.write_text(json.dumps({"judged": 1, "forecasts": others(32, now // DAY - 1)}))
    with s:
        t.ok(uwtest.wait_for(lambda: s.lines("event=forecast name=carbon.forecast source=gb state=not-judged limit=32")), "one too many is said", s.log())
        s.stop()


def judged(signals):
    return {j["horizon_s"]: j for j in signals.all()["carbon.forecast"]["judged"]}


def first(s, place):
    with s:
        s.becomes("carbon.forecast", lambda v: v["state"] == "known")
        found = uwtest.wait_until(lambda: judged(s).get(HOUR, {}), lambda j: j.get("n") == 61)
        t.ok(found["n"] == 61 and abs(found["mae"] - 1213 / 61) < 1e-5 and abs(found["persistence_mae"] - 923 / 61) < 1e-5 and
             found["yesterday_mae"] == 25, "a forecast of before the restart is judged by the half hour that came", found)
        t.ok(found["worse"] and not judged(s)[3 * HOUR]["worse"] and judged(s)[3 * HOUR]["missed"] == 3, "worse than persistence 1 h ahead alone",
             judged(s))
        asked = s.all()["carbon"]["asked"]
        t.ok(asked["by"] == "gb" and asked["requests"] >= 1 and asked["failures"] == 0 and asked["success_utc"] and asked["next_utc"],
             "requests, failures, last success and the next request of its source", asked)
        down = s.becomes("carbon.down", lambda v: v["asked"]["failures"] == 1)["asked"]
        t.ok(down["failures"] == 1 and down["success_utc"] is None, "a source that fails is counted", down)
        doc = uwtest.wait_until(lambda: json.loads(place.read_text())["forecasts"][0], lambda f: len(f["open"]) == 5)
        t.ok([c[1:4] for c in doc["open"]] == [[h, 250, 250] for h in range(5)] and doc["worse"] == 1,
             "a new issue waits at each horizon, with persistence, on disk", doc["open"])
        t.equal(place.stat().st_mode & 0o777, 0o600, "... with mode 0600")
        s.stop()
    lines = s.lines("event=forecast name=carbon.forecast source=gb state=worse", '"1 h"')
    t.ok(len(lines) == 1, "the log says it in one line", s.log())


def again(s, place):
    with s:
        t.ok(uwtest.wait_until(lambda: judged(s).get(HOUR, {}), lambda j: j.get("n") == 61)["worse"], "over a restart it stays", judged(s))
        time.sleep(11)    # a look has been made
        t.ok(len(s.lines("event=forecast")) == 1, "... and is not said again", s.log())
        t.equal(judged(s)[HOUR]["n"], 61, "... nor judged twice")
        s.stop()
    place.write_text(place.read_text()[:-30])
    with s:
        t.ok(uwtest.wait_for(lambda: s.lines("event=cache name=.judged state=ignored", "damaged")), "a torn file is ignored, with a line", s.log())
        t.equal(judged(s), {}, "... and the judging begins anew")
        s.stop()


def daemon(s, node):
    with s:
        policy = pathlib.Path(node.tmp) / "policy.yaml"
        policy.write_text("policy: 1\nsignals:\n" + "".join(f"  - {{name: {name}, socket: {s.socket}, every: 1 s{more}}}\n"
                                                            for name, more in (("carbon", ""), ("carbon.forecast", ""), ("carbon.down", ", age: 1 h"))))
        d = node.daemon(f"node: {{interval: 1 s}}\npolicy: {{file: {policy}}}\n")
        uwtest.wait_until(lambda: {v["name"]: v for v in d.ask("GET", "/v1/signals")[1]["signals"]},
                          lambda v: v["carbon.forecast"]["judged"] and v["carbon"]["known"] and v["carbon.down"]["why"].endswith("60 s")
                          and v["carbon"]["asked"]["success_utc"])
        text = d.ask("GET", "/metrics")[1]
        for line in ('underwatt_signal_source_requests_total{source="gb"', 'underwatt_signal_source_failures_total{source="down"',
                     'underwatt_signal_source_success_timestamp_seconds{source="gb"', 'underwatt_signal_info{signal="carbon",source="signals gb (Carbon Intensity API, National Energy System Operator; CC BY 4.0)"',
                     'underwatt_signal_estimated{signal="carbon"', 'underwatt_signal_forecast_error{signal="carbon.forecast",horizon="1h"',
                     'underwatt_signal_forecast_persistence_error{signal="carbon.forecast",horizon="3h"',
                     'underwatt_signal_forecast_yesterday_error{signal="carbon.forecast",horizon="1h"',
                     'underwatt_signal_forecast_judged{signal="carbon.forecast",horizon="1h"'):
            t.equal(sum(m.startswith(line) for m in text.splitlines()), 1, f"metrics: {line.split('{')[0]}")
        t.ok('underwatt_signal_source_success_timestamp_seconds{source="down"' not in text and
             'forecast_yesterday_error{signal="carbon.forecast",horizon="3h"' not in text, "what is not known is left out")
        t.ok(any(m.startswith('underwatt_signal_forecast_worse{signal="carbon.forecast",horizon="1h"') and m.endswith(" 1")
                 for m in text.splitlines()), "metrics: it is worse")
        tool = shutil.which("promtool")
        if tool:
            p = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True)
            said = [m for m in (p.stdout + p.stderr).splitlines() if "signal" in m]
            t.ok(not said, "promtool has nothing to say of them", said)
        else:
            t.skip("promtool has nothing to say of them", "no promtool (Debian: prometheus)")
        p = node.run("underwatt", "carbon", "forecast", env={"LC_ALL": "C"})
        t.ok(p.returncode == 0 and "the forecast is worse than persistence 1 h ahead" in p.stdout and
             "mean absolute error of its forecasts of the last 28 days, g/kWh:" in p.stdout and
             any(line.split() == ["1", "h", "61", "19.89", "15.13", "25", "worse"] for line in p.stdout.splitlines()) and
             any(line.split() == ["3", "h", "60", "10", "15", "-"] for line in p.stdout.splitlines()), "underwatt carbon forecast says it", p.stdout)
        for columns, row in ((40, ["1", "h", "61", "19.89", "15.13", "worse"]), (60, ["1", "h", "61", "19.89", "15.13", "25", "worse"]),
                             (200, ["1", "h", "61", "19.89", "15.13", "25", "worse"])):
            said = uwtest.on_terminal(node, "carbon", "forecast", columns=columns, NO_COLOR="1")
            t.ok(not uwtest.too_wide(said, columns) and row in [line.split() for line in said.splitlines()],
                 f"... on a terminal of {columns} columns", said)
        p = node.run("underwatt", "signals", "carbon.down")
        t.ok(p.returncode == 1 and "carbon.down: unknown: " in p.stderr and "status 500" in p.stderr and "which is asked again at " in p.stderr,
             "an unknown signal: its source's error, and when it is asked again", p.stderr)
        d.stop()


def main():
    service = signalstub.Service(lambda path, headers: answer_of(half_hours(4, 60)) if "/good/" in path else (500, {}, b""))
    try:
        with tempfile.TemporaryDirectory() as tmp, uwtest.Node(count=1) as node:
            s = signalstub.Signals(tmp, [f"{{name: gb, type: uk, url: {service.url}/good, provides: [carbon, carbon.forecast]}}",
                                         f"{{name: down, type: uk, url: {service.url}/down, as: carbon.down}}"])
            place = pathlib.Path(tmp, "cache", ".judged.json")
            seed(place, int(time.time()))
            first(s, place)
            kept = place.read_bytes()
            t.equal(names(place), ["carbon.forecast"], "forecasts that exist no more are forgotten after their 28 days")
            again(s, place)
            crowd(s, place, int(time.time()))
            place.write_bytes(kept)
            for name in ("gb", "down"):    # both are asked again
                pathlib.Path(tmp, "cache", f"{name}.json").unlink(missing_ok=True)
            daemon(s, node)
    finally:
        service.stop()
    t.done()


main()
