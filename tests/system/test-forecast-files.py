#!/usr/bin/python3
"""Forecasts of files that policy.yaml names, held against what came by the daemon: errors of before a restart and a value that has come
since, one forecast that is worse than persistence, commands, metrics and the log; a torn file."""
import json
import pathlib
import time

import uwtest

t = uwtest.Tap()
HOUR, DAY = 3600, 86400


def hours(path, begin, end, value):
    path.write_text("".join(f"{time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime(at))},{value}\n" for at in range(begin, end, HOUR)))


def forecast(signal, path, unit, now, sums, case):
    """As after 60 forecasts of three days; one waits for an hour that is over."""
    return {"signal": signal, "source": f"file {path}", "unit": unit, "seen": "1", "issued": now - 2 * HOUR, "worse": 0,
            "open": [[now - 2 * HOUR, 0, *case, None]],
            "days": [{"day": now // DAY - d, "sums": sums + [[0, 0, 0, 0, 0, 0]] * (5 - len(sums))} for d in (1, 2, 3)]}


def signals(d):
    return {s["name"]: s for s in d.ask("GET", "/v1/signals")[1]["signals"]}


def judged(d, name):
    return {j["horizon_s"]: j for j in signals(d)[name]["judged"]}


def lines(d, *words):
    return [line for line in d.log().splitlines() if all(w in line for w in words)]


def errors(d, place):
    found = uwtest.wait_until(lambda: judged(d, "carbon.forecast").get(HOUR, {}), lambda j: j.get("n") == 61)
    t.ok(found["n"] == 61 and abs(found["mae"] - 1213 / 61) < 1e-5 and abs(found["persistence_mae"] - 923 / 61) < 1e-5 and found["worse"],
         "the hour that came counts beside what was before the start: worse than persistence", found)
    found = judged(d, "carbon.forecast")[3 * HOUR]
    t.ok(found["n"] == 60 and found["missed"] == 3 and not found["worse"], "… not 3 h ahead", found)
    found = judged(d, "price.forecast").get(HOUR, {})
    t.ok(found["n"] == 61 and abs(found["mae"] - 0.62 / 61) < 1e-8 and abs(found["persistence_mae"] - 3.05 / 61) < 1e-8 and not found["worse"],
         "a file in another unit: errors are in the signal's", found)
    t.ok(signals(d)["carbon"]["judged"] == [] and signals(d)["queue.depth"]["judged"] == [], "other signals have none")
    said = lines(d, "event=forecast", "name=carbon.forecast", "ahead.csv", "state=worse", 'horizons="1 h"')
    t.ok(len(said) == 1 and len(lines(d, "event=forecast")) == 1, "the log says it in one line", d.log())
    kept = uwtest.wait_until(lambda: json.loads(place.read_text())["forecasts"][0], lambda f: len(f["open"]) == 5)
    t.ok([c[1:4] for c in kept["open"]] == [[h, 250, 263] for h in range(5)] and kept["worse"] == 1,
         "a new issue waits at each horizon, on disk", kept["open"])
    t.equal(place.stat().st_mode & 0o777, 0o600, "… for its owner alone")


def shown(d, node, ahead):
    text = d.ask("GET", "/metrics")[1].splitlines()
    for signal, horizon, value, what in (("carbon.forecast", "1h", 1213 / 61, "error"), ("carbon.forecast", "1h", 923 / 61, "persistence_error"),
                                         ("carbon.forecast", "3h", 60, "judged"), ("carbon.forecast", "1h", 1, "worse"),
                                         ("carbon.forecast", "3h", 0, "worse"), ("price.forecast", "1h", 0.62 / 61, "error"),
                                         ("price.forecast", "1h", 0, "worse")):
        found = [m for m in text if m.startswith(f'underwatt_signal_forecast_{what}{{signal="{signal}",horizon="{horizon}"')]
        t.ok(len(found) == 1 and abs(float(found[0].split()[-1]) - value) < 1e-6, f"metrics: {what} of {signal} at {horizon}", found)
    t.ok(any(m.startswith(f'underwatt_signal_info{{signal="carbon.forecast",source="file {ahead}"') for m in text), "metrics: whose forecast it is")
    p = node.run("underwatt", "carbon", "forecast", env={"LC_ALL": "C"})
    t.ok(p.returncode == 0 and "the forecast is worse than persistence 1 h ahead" in p.stdout and str(ahead) in p.stdout.replace("\n", "") and
         any(line.split() == ["1", "h", "61", "19.89", "15.13", "-", "worse"] for line in p.stdout.splitlines()), "underwatt carbon forecast says it", p.stdout)
    p = node.run("underwatt", "price", "forecast", env={"LC_ALL": "C"})
    t.ok(p.returncode == 0 and "worse" not in p.stdout and
         any(line.split()[:5] == ["1", "h", "61", "0.01016", "0.05"] for line in p.stdout.splitlines()), "underwatt price forecast has its own", p.stdout)


def reloads(d, policy):
    text = policy.read_text()
    policy.write_text("".join(line for line in text.splitlines(keepends=True) if "forecast" not in line))
    d.reload()
    t.ok(uwtest.wait_for(lambda: judged(d, "carbon.forecast") == {}), "a policy without the forecasts: no errors are shown")
    policy.write_text(text)
    d.reload()
    found = uwtest.wait_until(lambda: judged(d, "carbon.forecast").get(HOUR, {}), lambda j: j)
    t.ok(found.get("n") == 61 and found.get("worse"), "… with them: as before", found)


def again(d, place):
    d.stop()
    d.start()
    found = uwtest.wait_until(lambda: judged(d, "carbon.forecast").get(HOUR, {}), lambda j: j)
    t.ok(found.get("n") == 61 and found.get("worse"), "over a restart it stays", found)
    t.ok(len(lines(d, "event=forecast")) == 1, "… and is not said again", d.log())
    d.stop()
    place.write_text(place.read_text()[:-30])
    d.start()
    t.ok(uwtest.wait_for(lambda: lines(d, "event=forecasts-file", "state=ignored", "damaged")), "a torn file is ignored", d.log())
    made = uwtest.wait_until(lambda: json.loads(place.read_text())["forecasts"], lambda f: f) if uwtest.wait_for(lambda: sound(place)) else []
    t.ok([len(f["open"]) for f in made] == [5, 5] and all(f["days"] == [] for f in made), "… and begun again", made)
    t.equal(judged(d, "carbon.forecast"), {}, "… without errors of before")
    t.equal(len(lines(d, "event=forecasts-file")), 1, "the log says it in one line")
    d.stop()


def sound(place):
    try:
        return bool(json.loads(place.read_text()))
    except ValueError:
        return False


def main():
    with uwtest.Node(count=1) as node:
        tmp = pathlib.Path(node.tmp)
        now = int(time.time())
        hour = now // HOUR * HOUR
        hours(tmp / "carbon.csv", hour - 26 * HOUR, hour + HOUR, 263)
        hours(tmp / "ahead.csv", hour, hour + 48 * HOUR, 250)
        hours(tmp / "price.csv", hour - 26 * HOUR, hour + HOUR, 250)
        hours(tmp / "prices.csv", hour, hour + 48 * HOUR, 240)
        policy = tmp / "policy.yaml"
        policy.write_text("policy: 1\nsignals:\n" + "".join(f"  - {{name: {name}, {unit}file: {tmp}/{file}, every: 1 s}}\n" for name, unit, file in (
            ("carbon", "", "carbon.csv"), ("carbon.forecast", "", "ahead.csv"),
            ("price", "unit: EUR/MWh, ", "price.csv"), ("price.forecast", "unit: EUR/MWh, ", "prices.csv"))))
        place = pathlib.Path(node.state, "underwattd", "forecasts.json")
        place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        place.write_text(json.dumps({"judged": 1, "forecasts": [
            forecast("carbon.forecast", tmp / "ahead.csv", "g/kWh", now, [[20, 0, 0, 400, 300, 0], [20, 0, 1, 200, 300, 0]], (250, 240)),
            forecast("price.forecast", tmp / "prices.csv", "EUR/kWh", now, [[20, 0, 0, 0.2, 1, 0]], (0.27, 0.2))]}))
        d = node.daemon(f"node: {{interval: 1 s}}\npolicy: {{file: {policy}}}\n")
        errors(d, place)
        shown(d, node, tmp / "ahead.csv")
        reloads(d, policy)
        again(d, place)
    t.done()


main()
