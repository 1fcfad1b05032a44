#!/usr/bin/python3
"""Pages of `underwatt report` and `sweep` as Chromium lays them out: on a telephone nothing is wider than the page but the picture of a
sweep, which scrolls; each figure stands beside the head of its column, and no text of a picture is too small to read."""
import html
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile

import uwtest

t = uwtest.Tap()
LEDGER = uwtest.TOP / "tests/data/ledger-v11.sql"
MARKET = 'from,to,kwh,share,g_per_kwh,origin\n2026-01-01,2026-01-01,4000,,20,"GO 17, wind"\n'
KINDS = ["job", "user", "group", "project", "class", "partition", "account", "qos", "array", "gpu", "cpu", "day", "label:team",
         "user,day", "job,day"]
WIDTHS = (390, 768, 1100)
SCRIPT = """<script>addEventListener('load', () => {
const of = f => {
  const d = f.contentDocument, w = d.documentElement.clientWidth, seen = x => x.getClientRects().length > 0;
  const cells = [...d.querySelectorAll('td')].filter(seen), right = x => x.getBoundingClientRect().right;
  const head = c => c.closest('table').tHead.rows[0].cells[c.cellIndex].textContent;
  const label = c => getComputedStyle(c, '::before');
  const texts = [...d.querySelectorAll('svg text')].map(x => [x.textContent, x.getBoundingClientRect()]).filter(x => x[1].width);
  const cross = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  return {page: f.dataset.page, width: f.clientWidth, scroll: d.documentElement.scrollWidth, client: w, cells: cells.length,
    inside: Math.max(0, ...[...d.querySelectorAll('body *')].map(x => x.scrollWidth > x.clientWidth + 1 &&
      getComputedStyle(x).overflowX !== 'visible' && !x.closest('svg,h1,.picture') ? x.scrollWidth - x.clientWidth : 0)),
    small: Math.min(20, ...texts.map(x => x[1].height)),
    clash: texts.flatMap((a, i) => texts.slice(i + 1).filter(b => cross(a[1], b[1])).map(b => a[0] + ' | ' + b[0])),
    over: cells.filter(c => right(c) > w + 1).length,
    heads: [...d.querySelectorAll('thead')].filter(seen).length,
    bare: cells.filter(c => head(c) && !(label(c).display === 'block' && label(c).content === JSON.stringify(head(c)))).length};
};
document.title = JSON.stringify([...document.querySelectorAll('iframe')].map(of)); })</script>"""


def run(*args):
    return subprocess.run([uwtest.program("underwatt"), *map(str, args)], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def grown(path):
    """The ledger of two minutes with the figures of a large site and with long names."""
    with sqlite3.connect(path) as db:
        db.executescript(LEDGER.read_text())
        for table, columns in (("energy", ("energy_uj", "half_uj", "co2_mg", "co2_covered_uj", "marginal_mg", "marginal_covered_uj",
                                           "cost", "cost_covered_uj")), ("meter", ("energy_uj",)), ("revision", ("amount",))):
            db.execute(f"UPDATE {table} SET " + ", ".join(f"{c} = {c} * 400000" for c in columns))
            # half an hour lies between its two minutes: the times below the caps have a date and a time
            db.execute(f"UPDATE {table} SET begin_ms = begin_ms + 1800000 WHERE begin_ms >= 1767225660000")
        db.execute("UPDATE job SET name = 'python pretrain_language_model.py --config configs/a_rather_long_name_of_a_file.yaml',"
                   " user = 'maximiliane.mustermann@physik.uni-example.de', saved = 0.1, saved_half = 0.01, saved_j = 4e9,"
                   " saved_half_j = 4e8")
    db.close()


def pages(folder):
    """Their texts by kind."""
    ledger, market = folder / "ledger.sqlite", folder / "market.csv"
    grown(ledger)
    market.write_text(MARKET)
    full = ("report", "--ledger", ledger, "--format", "html", "--pue", 1.5, "--market", market, "--embodied", "Board A=36 its maker")
    of = {f"by {by}": run(*full, "--by", by) for by in KINDS}
    of["by user, plain"] = run("report", "--ledger", ledger, "--format", "html", "--by", "user", "--price", "0.3 EUR", "--carbon", 300)
    of["waste"] = run("report", "--ledger", ledger, "--format", "html", "--waste")
    sweep = folder / "sweep.html"
    of["sweep"] = run("sweep", "--sim", "v100", "--workload", "resnet50", "--html", sweep)
    for kind, p in of.items():
        text = sweep.read_text() if kind == "sweep" else p.stdout
        t.ok(p.returncode == 0 and text.count("<table") >= 2 and "<script" not in text.split("<script type=")[0], f"a page: {kind}", p.stderr)
        of[kind] = text.replace("<details>", "<details open>")
    return of


def laid_out(browser, folder, of):
    frames = "".join(f'<iframe data-page="{kind}" style="border:0;width:{width}px;height:900px" srcdoc="{html.escape(text)}"></iframe>'
                     for kind, text in of.items() for width in WIDTHS)
    probe = folder / "probe.html"
    probe.write_text(f"<!DOCTYPE html><title>none</title><body>{frames}{SCRIPT}</body>")
    p = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/chromium", "--dump-dom",
                        probe.as_uri()], capture_output=True, text=True, timeout=150)
    title = re.search(r"<title>(.*?)</title>", p.stdout, re.S)
    return json.loads(html.unescape(title.group(1))) if title else p.stderr[-300:]


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    folder.chmod(0o755)
    of = pages(folder)
    browser = shutil.which("chromium")
    if not browser:
        t.skip("their layout", "no chromium")
    else:
        for r in laid_out(browser, folder, of):
            narrow, what = r["width"] == WIDTHS[0], f"{r['page']} at {r['width']} px"
            t.ok(r["scroll"] <= r["client"] and r["cells"] > 5, f"{what}: the page does not scroll sideways", r)
            t.equal(r["clash"], [], f"{what}: no two texts of a picture overlap")
            t.ok(r["small"] >= 9, f"{what}: nor is one too small to read", r)
            if narrow:
                t.ok(r["inside"] == 0 and r["over"] == 0, f"{what}: nor does anything in it, and no cell is cut", r)
                t.ok(r["heads"] == 0 and r["bare"] == 0, f"{what}: each cell has its column's head", r)
t.done()
