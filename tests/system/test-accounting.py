#!/usr/bin/python3
"""The daemon's figures beside what is booked: contracts and embodied grams of underwattd.yaml, the PUE of policy.yaml; reloads, wrong files,
and that nobody is shown the text of a file that not everybody may read."""
import json
import os
import pathlib
import sqlite3

import uwtest

t = uwtest.Tap()
HEADER = "from,to,kwh,share,g_per_kwh,origin\n"
BOARD = "Tesla V100-SXM2-16GB (simulated)"
GRAMS = f"embodied: [{{board: {BOARD}, g_per_hour: 36, origin: its maker}}]"
WRONG = "market.csv:3 is wrong (its text is not shown: not every user may read it)"


def rows(d):
    with sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True) as db:
        return db.execute("SELECT count(*) FROM energy").fetchone()[0]


def report(d, query=""):
    status, answer = d.ask("GET", f"/v1/report?by=gpu{query}")
    uwtest.must(status == 200, status, answer)
    return answer


def figures(node, d):
    r = report(d)
    totals = r["totals"]
    t.near(totals["market_covered"], 0.5, 1e-9, "a contract of half the energy covers that")
    t.near(totals["market_g"], totals["energy_j"] / 3.6e6 * 0.5 * 20, 1e-9, "at its 20 g/kWh")
    t.near(totals["embodied_covered"], 1, 1e-9, "each board has its grams")
    t.ok(totals["embodied_g"] > 0, "by the hour", totals)
    t.ok(r["pue"] == 1.25 and abs(totals["facility_j"] - 1.25 * totals["energy_j"]) < 1e-6 * totals["energy_j"], "the PUE of policy.yaml", r)
    for key in ("market_g", "embodied_g", "facility_j"):
        t.near(sum(row[key] for row in r["rows"]), totals[key], 1e-3 * totals[key], f"rows make up {key}, to 0.1 %")
    p = node.run("underwatt", "report")
    t.ok("market: GO hidden, wind\n" in p.stdout and f"embodied: {BOARD}: its maker\n" in p.stdout, "origins", p)
    r = d.ask("GET", "/v1/report?waste=true")
    t.ok(r[0] == 200 and "pue" not in r[1] and "market_" not in json.dumps(r[1]), "waste has none of them", r)


def wrong(d, market):
    """A reload is refused as a whole, and the old figures stay."""
    good = market.read_text()
    market.write_text(good + "2026-01-01,2026-01-02,secret,,20,x\n")
    d.reload()
    log = d.log()
    t.ok(f"accounting.market: {market.parent}/{WRONG}" in log.replace('\\"', '"') and "config-refused" in log, "the log names the line", log)
    status, answer = d.ask("POST", "/v1/reload")
    t.ok(status >= 400 and WRONG in json.dumps(answer), "so does the answer", (status, answer))
    with sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True) as db:
        uwtest.wait_for(lambda: db.execute("SELECT count(*) FROM event WHERE text LIKE '%market.csv:3%'").fetchone()[0])
        texts = [row[0] or "" for row in db.execute("SELECT text FROM event")]
    t.ok(any(WRONG in text for text in texts), "and the ledger", texts)
    t.ok(not any("secret" in text for text in (log, json.dumps(answer), *texts)), "none shows the text")
    t.near(report(d)["totals"]["market_covered"], 0.5, 1e-9, "the old contracts stay in force")
    market.chmod(0o660)
    t.ok(d.reload() and "group or others may write it" in d.log(), "a file that others may write is refused", d.log())
    market.chmod(0o640)
    market.write_text(good)


def reloads(node, d, market, policy):
    grams = GRAMS.replace(": 36", ": 72")
    before = report(d)["totals"]
    market.write_text(market.read_text().replace("0.5", "0.25"))
    d.reload(f"node: {{interval: 1 s}}\naccounting: {{market: {market}, {grams}}}\npolicy: {{file: {policy}}}\n")
    after = report(d)["totals"]
    t.near(after["market_covered"], 0.25, 1e-9, "another contract after a reload")
    t.ok(after["embodied_g"] > 1.9 * before["embodied_g"], "other grams", (before, after))
    t.ok("key=accounting.embodied in_force=now" in d.log(), "said in the log", d.log())
    policy.write_text("policy: 1\nsignals: [{name: site.pue, age: 1 h}]\nfacility: {pue: site.pue}\n")
    d.reload("node: {interval: 1 s}\npolicy: {file: %s}\n" % policy)
    after = report(d)
    t.ok(not {"market_g", "embodied_g", "facility_j"} & set(after["totals"]) and "pue" not in after,
         "without figures reports are as before; a PUE that no signal gives is unknown", after)
    for value, is_pue in (("1.4", True), ("0.9", False), ("11", False)):
        p = node.run("underwatt", "signal", "set", "site.pue", value)
        t.ok(p.returncode == 0 and report(d).get("pue") == (float(value) if is_pue else None), f"a signal of {value}", p)


def starts(d, market):
    """A wrong file is no reason not to start."""
    market.write_text("secret\n")
    d.configure(f"node: {{interval: 1 s}}\naccounting: {{market: {market}, {GRAMS}}}\n")
    d.stop()
    d.start()
    log = d.log().splitlines()
    said = [line for line in log if "event=accounting-refused" in line]
    t.ok(len(said) == 1 and "in_force=none" in said[0] and "market.csv:1 is wrong" in said[0] and "secret" not in said[0], "said once", said)
    r = report(d)
    t.ok("market_g" not in r["totals"] and r["totals"]["embodied_g"] > 0, "no contracts, and the grams", r)


with uwtest.Node(board="v100", count=2, speed=20) as node:
    market, policy = pathlib.Path(node.tmp, "market.csv"), pathlib.Path(node.tmp, "policy.yaml")
    market.write_text(HEADER + '2020-01-01,2099-12-31,,0.5,20,"GO hidden, wind"\n')
    market.chmod(0o640)
    policy.write_text("policy: 1\nfacility: {pue: 1.25}\n")
    d = node.daemon(f"node: {{interval: 1 s}}\naccounting:\n  market: {market}\n  {GRAMS}\npolicy: {{file: {policy}}}\n")
    t.ok(uwtest.wait_for(lambda: rows(d) > 4), "rows", d.log())
    figures(node, d)
    wrong(d, market)
    reloads(node, d, market, policy)
    starts(d, market)
    t.equal(d.stop(), 0, "ends in order")
t.done()
