#!/usr/bin/python3
"""underwatt carbon, price and signals: values, charts, the best start, what is unknown; of the daemon and of underwatt-signals alone; without a
terminal, without UTF-8, with colours on a terminal alone."""
import datetime
import json
import os
import pathlib
import subprocess
import tempfile
import time

import signalstub
import uwtest

t = uwtest.Tap()
HOUR = 3600
WIDE = "電力炭素"    # part of a file's name: eight columns
# Of the hours from the last full one on: the lowest four in a row are hours 6 to 9.
CARBON = [400, 380, 390, 350, 300, 200, 120, 100, 110, 90, 150, 260, 320, 360, 380, 400]
PRICE = [0.30, 0.28, -0.05, -0.10, 0.02, 0.20, 0.25, 0.31]


def hour():
    return int(time.time()) // HOUR * HOUR


def stamp(at):
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def csv(values, begin, every=HOUR):
    return "".join(f"{stamp(begin + i * every)},{v}\n" for i, v in enumerate(values))


def local(at, zone="Europe/Berlin"):
    """As `date` has it in that zone."""
    return subprocess.run(["date", "-d", f"@{at}", "+%a %H:%M %Z"], env={"TZ": zone, "LC_ALL": "C", "PATH": os.environ["PATH"]},
                          capture_output=True, text=True, check=True).stdout.strip()


def command(node, *args, locale="C.UTF-8", **env):
    p = node.run("underwatt", *args, env={"TZ": "Europe/Berlin", "LC_ALL": locale} | env)
    return p.returncode, p.stdout, p.stderr


def is_narrow(text):
    return max(len(line) for line in text.splitlines()) <= 80


def now(node, begin):
    code, said, why = command(node, "carbon", "now")
    t.ok(code == 0 and said.startswith("carbon: 395 g/kWh\n") and f"value of {local(begin)}" in said and "source file" in said and
         f"until {local(begin + 2 * HOUR)}" in said, "carbon now: value, unit, time with its zone, source, until when", said + why)
    t.ok("█" in said and is_narrow(said) and "\033" not in said, "... with a chart of 80 columns and no colours", said)
    t.ok("carbon.marginal" not in said, "a marginal intensity that nobody knows is left out", said)
    code, said, why = command(node, "price", "now")
    t.ok(code == 1 and not said and why.count("\n") == 1 and "price: unknown: " in why and "No such file" in why and "source file" in why,
         "an unknown price: which source and why, exit 1", (code, said, why))
    code, said, why = command(node, "price", "now", "--json", "-")
    t.ok(code == 1 and json.loads(said)["signals"][0]["value"] is None and "unknown" in why, "... with --json, too", said + why)


def forecast(node, begin):
    code, said, why = command(node, "carbon", "forecast", "--for", "4h")
    start = begin + 6 * HOUR
    t.ok(code == 0 and said.startswith("carbon.forecast: forecast, in g/kWh\n") and f"until {local(begin + 16 * HOUR)}" in said,
         "carbon forecast", said + why)
    t.ok(f"lowest 90 g/kWh at {local(begin + 9 * HOUR)}" in said and "highest 400 g/kWh at " in said, "its extremes", said)
    t.ok(f"best 4.0 h: from {local(start)}, 105 g/kWh on average; from now 3" in said and " %)" in said, "when 4 h begin best", said)
    chart = said.splitlines()[2:15]
    t.ok(any("█" in line for line in chart) and any("====" in line for line in chart) and is_narrow(said), "its chart marks them", said)
    code, said, why = command(node, "carbon", "forecast", locale="C")
    t.ok(code == 0 and said.replace(WIDE, "").isascii() and "#" in said and is_narrow(said), "a chart without UTF-8", said + why)
    code, said, why = command(node, "carbon", "forecast", "--for", "20 h")
    t.ok(code == 0 and "the forecast has no 20.0 h without a gap" in said, "a job longer than the forecast", said + why)
    code, said, why = command(node, "price", "forecast", "--for", "2h", "--json", "-")
    doc = json.loads(said)
    best = doc["best"]
    t.ok(code == 0 and best["begin_utc"] == stamp(begin + 2 * HOUR) and abs(best["mean"] + 0.075) < 1e-9, "negative prices are the best", best)
    s = doc["signals"][0]
    t.ok(s["unit"] == "EUR/kWh" and s["known"] and s["value"] is None and [p["value"] for p in s["series"]] == PRICE, "the series in JSON", s)
    code, said, why = command(node, "price", "forecast", "--csv", "-")
    lines = said.splitlines()
    t.ok(code == 0 and lines[0] == "begin_utc,end_utc,signal,value,unit" and
         lines[3] == f"{stamp(begin + 2 * HOUR)},{stamp(begin + 3 * HOUR)},price.forecast,-0.05,EUR/kWh", "... and in CSV", said + why)


def overview(node):
    code, said, why = command(node, "signals")
    rows = {line.split()[0]: line for line in said.splitlines() if line and not line.startswith(" ")}
    t.ok(code == 0 and rows["carbon"].split()[1:3] == ["395", "g/kWh"] and "unknown" in rows["price"] and "█" in rows["carbon.forecast"],
         "signals: one row each", said + why)
    t.ok("90 g/kWh at " in said and is_narrow("\n".join(line for line in said.splitlines() if "/" not in line or "lowest" in line)),
         "a forecast has a line of its extremes", said)
    t.equal(command(node, "signal", "list")[1].split("\n")[0], said.split("\n")[0], "signal list shows the same table")
    code, one, why = command(node, "signals", "carbon.forecast", "--for", "4h")
    t.ok(code == 0 and "best 4.0 h" in one, "signals NAME shows one as carbon forecast does", one + why)


def wrong(node):
    for args, says in ((("carbon",), "missing argument: usage: underwatt carbon now"), (("price", "later"), "'later' is none of: now, forecast"),
                       (("carbon", "now", "--for", "4h"), "--for belongs to forecast"), (("carbon", "forecast", "--for", "4x"), "4x"),
                       (("signals", "a/b"), "is not the name of a signal"), (("signals", "carbon", "--for", "1h"), "carbon is no forecast"),
                       (("signals", "--for", "1h"), "needs the NAME"), (("signals", "carbn"), "no source gives carbn"),
                       (("carbon", "now", "x"), "carbon: unexpected argument 'x': usage: underwatt carbon now"),
                       (("price", "forecast", "--for", "4h", "extra"), "price: unexpected argument 'extra': usage: underwatt price"),
                       (("carbon", "forecast", "--for", "0h"), "--for: '0h' is not between 1 s and 14 d"),
                       (("price", "forecast", "--for", "90d"), "--for: '90d' is not between 1 s and 14 d"),
                       (("signals", "carbon.forecast", "--for", "0h"), "--for: '0h' is not between 1 s and 14 d")):
        code, said, why = command(node, *args)
        t.ok(code == 2 and says in why and why.count("\n") == 1, f"{' '.join(args)}: exit 2, one line", (code, said, why))


def widths(node):
    """Every screen on terminals of several widths, with a source whose name has wide characters."""
    for columns in (40, 60, 80, 200):
        for words in (("signals",), ("signals", "carbon"), ("carbon", "now"), ("carbon", "forecast", "--for", "4h"), ("signals", "price.forecast"),
                      ("price", "forecast", "--for", "20h")):
            said = uwtest.on_terminal(node, *words, columns=columns, NO_COLOR="1")
            what = f"{' '.join(words)} in {columns} columns"
            t.ok(not uwtest.too_wide(said, columns) and ("price" in " ".join(words) or WIDE in said), what, (uwtest.too_wide(said, columns), said))
            if words == ("signals",):
                t.ok(max(map(uwtest.columns_of, said.splitlines())) > 0.6 * min(columns, 120), "... which are used", said)


def sockets(node, folder, begin):
    """No daemon: the socket of underwatt-signals."""
    (folder / "grid.csv").write_text(csv(CARBON, begin))
    s = signalstub.Signals(folder, [f"{{name: tariff, type: csv, path: {folder}/grid.csv, unit: g/kWh, as: carbon.forecast, every: 1 s}}",
                                    f"{{name: none, type: csv, path: {folder}/none.csv, unit: EUR/kWh, as: price, every: 1 s}}"])
    with s:
        s.becomes("carbon.forecast", lambda v: v["state"] == "known")
        s.becomes("price", lambda v: v["error"])
        code, said, why = command(node, "carbon", "forecast", "--for", "4h", "--signals", s.socket)
        t.ok(code == 0 and f"best 4.0 h: from {local(begin + 6 * HOUR)}, 105 g/kWh" in said and "source tariff" in said,
             "without a daemon the socket of underwatt-signals is asked", said + why)
        code, said, why = command(node, "price", "now", "--signals", s.socket)
        t.ok(code == 1 and "price: unknown: none: " in why and "No such file" in why, "... an unknown signal says why", said + why)
        code, said, why = command(node, "signals", "--signals", s.socket)
        t.ok(code == 0 and "carbon.forecast" in said and "No such file" in said, "... and the table", said + why)
    code, said, why = command(node, "carbon", "now", "--signals", s.socket)
    t.ok(code == 1 and f"no underwatt-signals answers at {s.socket}" in why and why.count("\n") == 1, "nobody answers: exit 1, one line", (code, said, why))
    code, said, why = command(node, "carbon", "now")
    t.ok(code == 1 and "; no underwatt-signals answers at /" in why and why.count("\n") == 1, "neither daemon nor underwatt-signals", (code, said, why))


def main():
    begin = hour()
    with tempfile.TemporaryDirectory() as tmp, uwtest.Node(count=1) as node:
        folder = pathlib.Path(tmp)
        sockets(node, folder, begin)
        (folder / f"{WIDE} now.csv").write_text(csv([300, 350, 395], begin - 2 * HOUR))
        (folder / f"{WIDE}.csv").write_text(csv(CARBON, begin))
        (folder / "price.csv").write_text(csv(PRICE, begin))
        policy = pathlib.Path(node.tmp) / "policy.yaml"
        policy.write_text("policy: 1\nsignals:\n" + "".join(
            f"  - {{name: {name}, file: {folder}/{file}, every: 1 s, age: {age}}}\n"
            for name, file, age in (("carbon", f"{WIDE} now.csv", "2 h"), ("carbon.forecast", f"{WIDE}.csv", "1 h"),
                                    ("price", "none.csv", "1 h"), ("price.forecast", "price.csv", "1 h"))))
        d = node.daemon(f"node: {{interval: 1 s}}\npolicy: {{file: {policy}}}\n")
        uwtest.wait_until(lambda: {s["name"]: s for s in d.ask("GET", "/v1/signals")[1]["signals"]},
                          lambda s: all(s[n]["known"] for n in ("carbon", "carbon.forecast", "price.forecast")) and s["price"]["why"])
        now(node, begin)
        forecast(node, begin)
        overview(node)
        wrong(node)
        said = uwtest.on_terminal(node, "carbon", "forecast", "--for", "4h")
        t.ok("\033[32m" in said, "colours on a terminal", said)
        t.ok("\033" not in uwtest.on_terminal(node, "carbon", "forecast", "--for", "4h", NO_COLOR="1"), "... not with NO_COLOR")
        widths(node)
        d.stop()
    t.done()


main()
