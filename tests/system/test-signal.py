#!/usr/bin/python3
"""Signals from outside: by hand with rights and an end, from files that are replaced, torn,
pipes or gone, in the API, the metrics, the log and the ledger; over a restart."""
import json
import os
import pathlib
import sqlite3
import time

import uwtest

t = uwtest.Tap()
POLICY = """policy: 1
facility: {currency: EUR}
signals:
  - {name: price, unit: EUR/MWh, age: 8 s, file: DIR/price.csv, column: DE, every: 1 s}
  - {name: price.forecast, unit: EUR/MWh, age: 1 h, file: DIR/day.csv, every: 1 s}
  - {name: rack3.power, unit: kW, age: 8 s, file: DIR/rack.json, path: data.0.kw, every: 1 s}
  - {name: piped, age: 60 s, file: DIR/pipe, every: 1 s}
  - {name: grid.state, type: text, age: 1 h}
"""


def signal(d, name):
    return next(s for s in d.ask("GET", "/v1/signals")[1]["signals"] if s["name"] == name)


def becomes(d, name, value, why=None):
    """The signal, once it has this value and says that it is troubled so."""
    return uwtest.wait_until(lambda: signal(d, name), lambda s: s["value"] == value and (why is None or why in s["why"]))


def command(node, *args, **kw):
    return node.run("underwatt", "signal", *args, **kw)


def replace(folder, name, text):
    """Atomically, as it should be."""
    new = folder / (name + ".new")
    new.write_text(text)
    os.rename(new, folder / name)


def booked(d, kind):
    with sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True) as db:
        return [row[0] for row in db.execute("SELECT text FROM event WHERE kind = ? ORDER BY rowid", (kind,))]


def by_hand(node, d):
    p = command(node, "list")
    t.ok(p.returncode == 0 and "carbon" in p.stdout and "no source has given a value yet" in p.stdout,
         "signals that nobody gives are unknown, and why", p.stdout + p.stderr)
    p = command(node, "set", "carbon", "420 g/kWh")
    t.ok(p.returncode == 0 and p.stdout == "carbon: 420 g/kWh for 15 min\n", "set by hand", p.stdout + p.stderr)
    p = command(node, "set", "carbon", "420 g/kWh", "--for", "2d")
    t.ok(p.returncode != 0 and "--for: '2d' is outside 0.001 s..1 d" in p.stderr, "not for two days", p.stderr)
    s = signal(d, "carbon")
    t.ok(s["value"] == 420 and s["by_hand"] and s["source"].startswith("set by user ") and 890 < s["ends_s"] <= 900 and
         s["age_s"] < 10, "the API has value, source, age and end", s)
    p = command(node, "set", "--for", "1 h", "carbon", "0.5 kg/kWh")
    t.ok(p.returncode == 0 and signal(d, "carbon")["value"] == 500, "another unit is converted", p.stderr)
    p = command(node, "set", "carbon.marginal", "-0.02 kg/kWh", "--for", "10m")
    t.ok(p.returncode == 0 and signal(d, "carbon.marginal")["value"] == -20, "a negative intensity is a value", p.stderr)
    t.ok(command(node, "set", "queue.depth", "17").returncode == 0 and signal(d, "queue.depth")["value"] == 17,
         "a plain number")
    t.ok(command(node, "set", "queue.depth", "1732768123.5").returncode == 0 and signal(d, "queue.depth")["value"] == 1732768123.5,
         "a large one keeps its digits")
    t.ok(command(node, "set", "grid.state", "tense").returncode == 0 and signal(d, "grid.state")["value"] == "tense",
         "a text")
    p = command(node, "list", "--json", "-")
    t.ok(p.returncode == 0 and {s["name"]: s["value"] for s in json.loads(p.stdout)["signals"]}["carbon"] == 500,
         "list --json", p.stdout + p.stderr)
    p = command(node, "unset", "queue.depth")
    t.ok(p.returncode == 0 and signal(d, "queue.depth")["value"] is None, "taken back", p.stderr)
    t.equal(command(node, "unset", "queue.depth").returncode, 1, "once")


def watched(node, d):
    """A program that watches a source: behind a value by hand, in no row of the ledger."""
    status, _ = d.ask("PUT", "/v1/signals/queue.gpus", {"value": 24, "for": "1 h", "source": "slurm"})
    s = signal(d, "queue.gpus")
    t.ok(status == 204 and s["value"] == 24 and not s["by_hand"] and s["source"] == "slurm" and 3500 < s["ends_s"] <= 3600,
         "a source's value holds for its time", s)
    t.equal(command(node, "set", "queue.gpus", "0", "--for", "1 h").returncode, 0, "set by hand beside it")
    d.ask("PUT", "/v1/signals/queue.gpus", {"value": 32, "for": "1 h", "source": "slurm"})
    t.equal(signal(d, "queue.gpus")["value"], 0, "the hand wins")
    t.equal(command(node, "unset", "queue.gpus").returncode, 0, "taken back")
    t.equal(signal(d, "queue.gpus")["value"], 32, "then the source's last value counts")
    d.ask("PUT", "/v1/signals/queue.gpus", {"value": 0, "for": "1 s", "source": "slurm"})
    t.equal(becomes(d, "queue.gpus", None)["value"], None, "after its time it is unknown")
    status, answer = d.ask("PUT", "/v1/signals/queue.gpus", {"value": 0, "for": "25 h", "source": "slurm"})
    t.ok(status == 400 and "24 h" in answer["error"], "for more than a day: refused", answer)
    rows = uwtest.wait_until(lambda: [e for e in booked(d, "signal-set") if "queue.gpus" in e], len)
    t.ok(len(rows) == 1 and rows[0].startswith("queue.gpus: 0, set by user"), "the ledger has the one set by hand", rows)


def wrong(node, d):
    for args, says in ((("set", "carbn", "1 g/kWh"), "did you mean 'carbon'?"),
                       (("set", "carbon", "400"), "carbon needs its unit: '400 g/kWh'"),
                       (("set", "carbon", "-5 g/kWh"), "carbon: -5 is outside 0..10000 g/kWh"),
                       (("set", "carbon", "400 W"), "carbon is in g/kWh, W is not"),
                       (("set", "price", "1 USD/kWh"), "price is in EUR/kWh, USD/kWh is not"),
                       (("set", "carbon", "high"), "carbon is a number, not a text"),
                       (("set", "price.forecast", "1 EUR/kWh"), "is a forecast"),
                       (("set", "carbon", "1 g/kWh", "--for", "25 h"), "'25 h' is outside 0.001 s..1 d"),
                       (("set", "carbon", "420", "g/kWh"), "unexpected argument 'g/kWh': usage: underwatt signal set NAME VALUE"),
                       (("list", "a", "b", "c"), "unexpected argument 'a': usage: underwatt signal list\n"),
                       (("set", "carbon", "1", "b", "c"), "unexpected argument 'b': usage: underwatt signal set NAME VALUE"),
                       (("bogus", "a", "b", "c"), "'bogus' is none of: list, set, unset"),
                       (("set", "carbon"), "set NAME VALUE"), (("unset",), "unset NAME"), ((), "missing argument: usage: underwatt signal list | set"),
                       (("frob",), "'frob' is none of: list, set, unset"),
                       (("set", "a/b", "1"), "is not the name of a signal"), (("list", "--for", "1 s"), "--for belongs to set")):
        p = command(node, *args)
        t.ok(p.returncode == 2 and says in p.stderr, f"signal {' '.join(args)}: 2, {says}", p.stdout + p.stderr)
    t.equal(signal(d, "carbon")["value"], 500, "nothing was changed")
    status, answer = d.ask("PUT", "/v1/signals/carbon", {"value": 1, "unit": "g/kWh", "for": 900})
    t.ok(status == 400 and "unit" in answer["error"], "a time without a unit is refused", answer)


def ends(node, d):
    t.equal(command(node, "set", "carbon", "300 g/kWh", "--for", "1 s").returncode, 0, "set for a second")
    s = becomes(d, "carbon", None)
    t.ok(s["value"] is None and not s["known"], "then it is unknown", s)
    t.ok(not any(line.startswith('underwatt_signal_value{signal="carbon"') for line in
                 d.ask("GET", "/metrics")[1].splitlines()), "and has no value in the metrics")
    t.ok('underwatt_signal_known{signal="carbon",' in d.ask("GET", "/metrics")[1], "but is known to be unknown")
    t.ok(uwtest.wait_for(lambda: any(e.startswith("carbon: ") for e in booked(d, "signal-end"))), "in the ledger",
         booked(d, "signal-end"))
    t.ok(any(e.startswith("carbon: 420 g/kWh, set by user") for e in booked(d, "signal-set")), "so is who set it",
         booked(d, "signal-set"))
    t.ok(uwtest.wait_for(lambda: any(e.startswith("carbon: unknown") for e in booked(d, "signal-unknown"))), "and that it is unknown",
         booked(d, "signal-unknown"))


def files(node, d, folder):
    now = time.time()

    def line(s, value):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ,", time.gmtime(now + s)) + value + "\n"
    s = signal(d, "price")
    t.ok(s["value"] is None and "No such file" in s["why"], "a file that is missing", s)
    replace(folder, "price.csv", "FR,DE\n90,-31.5\n")
    s = becomes(d, "price", -0.0315)
    t.ok(abs(s["value"] + 0.0315) < 1e-9 and s["source"] == f"file {folder}/price.csv", "a negative price from CSV", s)
    text = d.ask("GET", "/metrics")[1]
    t.ok('underwatt_signal_value{signal="price",unit="EUR/kWh"' in text and "} -0.0315\n" in text, "in the metrics",
         [m for m in text.splitlines() if "signal" in m])
    replace(folder, "price.csv", "FR,DE\n90,0\n")
    t.equal(becomes(d, "price", 0)["value"], 0, "replaced: 0 is a value")
    t.ok(command(node, "set", "price", "-0.02 EUR/kWh", "--for", "1 h").returncode == 0 and
         signal(d, "price")["value"] == -0.02, "the hand wins")
    t.equal(command(node, "unset", "price").returncode, 0, "taken back")
    replace(folder, "price.csv", "FR,DE\n90,50\n")
    t.equal(becomes(d, "price", 0.05)["value"], 0.05, "then the file again")
    (folder / "price.csv").write_text("FR,DE\n90,5")
    s = becomes(d, "price", None, "may be torn")
    t.ok(s["value"] is None and "may be torn" in s["why"], "torn: unknown after its age limit, and why", s)
    failures = [m for m in d.log().splitlines() if "event=signal name=price state=fails" in m and "torn" in m]
    t.equal(len(failures), 1, "the log says so once")
    replace(folder, "rack.json", '{"data": [{"kw": 38.5}]}')
    t.equal(becomes(d, "rack3.power", 38.5)["value"], 38.5, "JSON at a path")
    os.unlink(folder / "rack.json")
    s = becomes(d, "rack3.power", None, "No such file")
    t.ok(s["value"] is None and "No such file" in s["why"], "gone: unknown after its age limit", s)
    s = becomes(d, "piped", None, "not a regular file")
    t.ok("not a regular file" in s["why"], "a pipe is not waited for", s)
    replace(folder, "day.csv", "time,EUR/MWh\n" + "".join(line(3600 * i, str(i)) for i in range(-3, 30)))
    s = uwtest.wait_until(lambda: signal(d, "price.forecast"), lambda s: s["known"])
    t.ok(s["known"] and s["value"] is None and s["points"] == 33 and s["ends_s"] > 29 * 3600, "a forecast is a series", s)
    t.ok("price.forecast" in command(node, "list").stdout, "and listed")
    t.ok(any(e.startswith("rack3.power: 38.5 kW") for e in booked(d, "signal-known")) and
         any(e.startswith("rack3.power: unknown") for e in booked(d, "signal-unknown")), "changes are in the ledger",
         (booked(d, "signal-known"), booked(d, "signal-unknown")))


def others(node, d):
    """Who is no administrator may read."""
    kw = {"user": 61003, "group": 61003, "extra_groups": []}
    t.equal(command(node, "list", **kw).returncode, 0, "another user may list")
    for args in (("set", "carbon", "1 g/kWh"), ("unset", "carbon")):
        p = command(node, *args, **kw)
        t.ok(p.returncode == 1 and "administrators" in p.stderr, f"but not {args[0]}", p.stderr)
    t.ok(signal(d, "carbon")["value"] is None, "nothing was set")
    t.ok(uwtest.wait_for(lambda: "event=refused" in d.log() and "what=signal" in d.log()), "the log tells")


def reload(node, d, folder, policy, config):
    good = policy.read_text()
    policy.write_text(good + "  - {name: job.phase, age: 1 s}\n")
    t.ok(d.reload() and uwtest.wait_for(lambda: "event=config-refused" in d.log()), "a wrong list is refused", d.log())
    t.equal(signal(d, "rack3.power")["unit"], "kW", "and the old one stays")
    policy.write_text(good.replace("rack3.power, unit: kW", "rack3.power, unit: W"))
    replace(folder, "rack.json", '{"data": [{"kw": 7}]}')
    t.ok(d.reload(), "a good one is read")
    s = becomes(d, "rack3.power", 7)
    t.ok(s["unit"] == "W" and s["value"] == 7, "and in force", s)


def removed(node, d, folder, policy):
    """A source that is taken out of policy.yaml counts no longer, whatever the age limit."""
    wrong_one = "policy: 1\nfacility: {currency: EUR}\n"
    replace(folder, "c.json", "329.65\n")
    policy.write_text(wrong_one + f"signals:\n  - {{name: carbon, age: 14 d, file: {folder}/c.json}}\n")
    t.ok(d.reload() and becomes(d, "carbon", 329.65)["value"] == 329.65, "a source for two weeks", d.log())
    t.equal(command(node, "set", "carbon.marginal", "300 g/kWh", "--for", "1 h").returncode, 0, "another one by hand")
    d.ask("PUT", "/v1/signals/queue.gpus", {"value": 24, "for": "1 h", "source": "slurm"})
    policy.write_text(wrong_one)
    t.ok(d.reload(), "removed")
    s = becomes(d, "carbon", None)
    t.ok(not s["known"] and "no longer in policy.yaml" in s["why"], "it is unknown, and why", s)
    t.ok(uwtest.wait_for(lambda: any("carbon: unknown" in e and "no longer" in e for e in booked(d, "signal-unknown"))), "in the ledger",
         booked(d, "signal-unknown"))
    t.ok(signal(d, "carbon.marginal")["value"] == 300 and signal(d, "queue.gpus")["value"] == 24, "values by hand and of programs stay")


def restart(node, d):
    t.equal(command(node, "set", "carbon", "300 g/kWh", "--for", "1 h").returncode, 0, "set for an hour")
    d.child.kill()
    d.child.wait()
    d.start()
    s = signal(d, "carbon")
    t.ok(s["value"] is None and not s["by_hand"], "a restart forgets it: unknown is safe", s)


def main():
    with uwtest.Node(count=1) as node:
        folder = pathlib.Path(node.tmp) / "outside"
        folder.mkdir(0o755)
        os.mkfifo(folder / "pipe", 0o600)
        policy = folder / "policy.yaml"
        policy.write_text(POLICY.replace("DIR", str(folder)))
        config = f"node: {{interval: 1 s}}\npolicy: {{file: {policy}}}\n"
        d = node.daemon(config)
        by_hand(node, d)
        watched(node, d)
        wrong(node, d)
        ends(node, d)
        files(node, d, folder)
        if os.geteuid() == 0:
            others(node, d)
        else:
            t.skip("rights of others", "only root can become somebody else")
        reload(node, d, folder, policy, config)
        removed(node, d, folder, policy)
        restart(node, d)
    t.done()


main()
