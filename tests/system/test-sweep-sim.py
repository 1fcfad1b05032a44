"""`underwatt sweep --sim`: the published tables, and every file it writes.

Paper: Krzywaniak, Czarnul, Proficz, "GPU power capping for energy-performance trade-offs
in training of deep convolutional neural networks for image recognition", ICCS 2022.
"""
import csv
import html.parser
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ElementTree
import zlib

import uwtest

BOARDS = {"quadro-rtx-6000": "rtx6000", "v100-sxm2-16gb": "v100"}
WORK = {"Alexnet": "alexnet", "VGG-19": "vgg19", "Inception3": "inception3",
        "Inception4": "inception4", "Resnet50": "resnet50", "Resnet152": "resnet152"}
GOALS = {"E": "energy", "EDP": "edp", "EDS2.0": "eds:2", "EDS1.5": "eds:1.5"}

t = uwtest.Tap()
underwatt = uwtest.program("underwatt")


def run(*args, code=0):
    p = subprocess.run([underwatt, "sweep", *args], capture_output=True, text=True)
    if p.returncode != code:
        t.ok(False, f"sweep {' '.join(args)}: exit {p.returncode}, not {code}", p.stderr)
    return p


def sweep(board, workload, *more):
    return json.loads(run("--sim", board, "--workload", workload, "--json", "-",
                          *more).stdout)


def metric(goal, point, ref):
    e, s = point["energy_j"] / ref["energy_j"], point["time_s"] / ref["time_s"]
    if goal == "energy":
        return e
    if goal == "edp":
        return e * s
    k = float(goal.split(":")[1])
    return (k - 1) / k * e + s / k


def published():
    data = os.environ.get("UNDERWATT_DATA")
    base = pathlib.Path(data) if data else uwtest.TOP.parent / "shared" / "data"
    path = base / "paper" / "cap_optima.csv"
    if not path.is_file():
        return None
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_paper():
    rows = published()
    if rows is None:
        t.skip("the paper's tables", "cap_optima.csv is not at hand (UNDERWATT_DATA)")
        return
    pairs = sorted({(r["gpu"], r["network"]) for r in rows})
    t.equal(len(pairs), 12, "twelve pairs are published")
    for gpu, network in pairs:
        result = sweep(BOARDS[gpu], WORK[network])
        points = {p["cap_mw"]: p for p in result["points"]}
        mine = [r for r in rows if (r["gpu"], r["network"]) == (gpu, network)]
        default = next(r for r in mine if r["target"] == "default")
        ref = points[int(default["cap_w"]) * 1000]
        name = f"{BOARDS[gpu]} {WORK[network]}"
        caps = sorted(points)
        t.ok(all(b - a == 5000 for a, b in zip(caps, caps[1:])), f"{name}: 5 W steps")
        worst, where = 0, ""
        for r in mine:
            p = points[int(r["cap_w"]) * 1000]
            for what, got, want in (("time", p["time_s"], float(r["time_s"])),
                                    ("energy", p["energy_j"],
                                     float(r["energy_kj"]) * 1000)):
                off = abs(got / want - 1)
                if off > worst:
                    worst, where = off, f"{what} at {r['cap_w']} W"
        t.ok(worst <= 0.015, f"{name}: every row within 1.5 % (worst {worst:.2%}, {where})")
        for r in mine:
            if r["target"] == "default":
                continue
            goal = GOALS[r["target"]]
            best = result["optima"][goal]
            here = metric(goal, points[best["cap_mw"]], ref)
            there = metric(goal, points[int(r["cap_w"]) * 1000], ref)
            t.ok(here <= there * (1 + 1e-12) and there / here - 1 <= 0.01,
                 f"{name} {goal}: {best['cap_mw'] // 1000} W, published {r['cap_w']} W, "
                 f"{there / here - 1:.2%} apart")


def test_json():
    d = sweep("v100", "resnet50", "--from", "150", "--to", "200", "--step", "10 W")
    t.ok(d["simulated"] is True and d["board"] == "v100" and d["workload"] == "resnet50",
         "JSON: simulated, board, workload")
    t.equal([p["cap_mw"] for p in d["points"]],
            [150000, 160000, 170000, 180000, 190000, 200000, 300000],
            "JSON: the range asked for, and the default limit")
    t.ok(all(set(p) == {"cap_mw", "time_s", "energy_j", "power_w", "runs"} and
             isinstance(p["cap_mw"], int) and p["runs"] == 1 for p in d["points"]),
         "JSON: a point's keys")
    t.equal(sorted(d["optima"]), ["edp", "eds:1.5", "eds:2", "energy", "slowdown:1.05"], "JSON: the optima")
    t.equal([b["at_most"] for b in d["time_buys"]], [0.01, 0.02, 0.05, 0.1], "JSON: what more time buys")
    t.equal(d["time_buys"][2]["cap_mw"], d["optima"]["slowdown:1.05"]["cap_mw"], "JSON: 5 % of it is slowdown:1.05")
    t.ok(all(0 <= b["time_change"] <= b["at_most"] for b in d["time_buys"]), "JSON: … and no more than that", d["time_buys"])
    for goal, best in d["optima"].items():
        least = min(metric(goal, p, d["reference"]) for p in d["points"])
        t.near(best["value"], least, 1e-6 * least, f"JSON: {goal} is the least of all points")
    ok = all(abs(p["energy_j"] / p["time_s"] / p["power_w"] - 1) < 1e-6
             for p in d["points"])
    t.ok(ok, "JSON: power is energy by time")
    noisy = [sweep("v100", "vgg19", "--noise", "0.01", "--runs", "4", "--seed", s)
             for s in ("3", "3", "4")]
    t.ok(noisy[0] == noisy[1] and noisy[0] != noisy[2], "the seed decides the noise")
    t.ok(all(p["runs"] == 4 for p in noisy[0]["points"][:-1]) and
         noisy[0]["points"][-1]["runs"] > 4, "the reference is measured more often")
    drifts = sum(sweep("v100", "vgg19", "--noise", "0.01", "--runs", "4", "--seed",
                       str(seed))["drift"]["drifts"] for seed in range(5, 15))
    t.ok(drifts <= 1, f"noise is taken for drift in {drifts} of 10 sweeps")


def png_shades(data):
    """Width, height and how many colours a PNG of 8-bit RGB has."""
    uwtest.must(data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG:", data[:8])
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    uwtest.must(depth == 8 and kind in (2, 6), "depth and kind are", depth, kind)
    size, at, body = (3 if kind == 2 else 4), 8, b""
    while at < len(data):
        (n,) = struct.unpack(">I", data[at:at + 4])
        if data[at + 4:at + 8] == b"IDAT":
            body += data[at + 8:at + 8 + n]
        at += 12 + n
    raw, line = zlib.decompress(body), 1 + width * size
    return width, height, len({raw[i:i + 64] for i in range(0, len(raw), line // 7)})


WORDS = ["resnet50 on v100", "SIMULATED", "min EDS(1.5)", "Energy against time",
         "Mean power, W", "Energy, kJ", "Time, s", "EDP and EDS over the cap",
         "Pareto front", "default: 300 W", "power cap, W"]


def test_pictures(folder):
    names = {k: str(folder / f"s.{k}") for k in ("csv", "json", "svg", "png", "html")}
    began = time.monotonic()
    p = run("--sim", "v100", "--workload", "resnet50",
            *[x for k, f in names.items() for x in (f"--{k}", f)])
    took = time.monotonic() - began
    print(f"# all five files in {took:.2f} s")
    t.ok(p.stdout.startswith("SIMULATED: resnet50 on v100"), "the table says simulated")
    t.ok(p.stderr == "", "nothing on stderr", p.stderr)

    tree = ElementTree.parse(names["svg"])
    words = [e.text or "" for e in tree.iter("{http://www.w3.org/2000/svg}text")]
    for want in WORDS:
        t.ok(any(want in w for w in words), f"SVG says '{want}'", words)
    marks = {e.get("data-i") for e in tree.iter("{http://www.w3.org/2000/svg}g")
             if e.get("class") == "pt"}
    t.equal(len(marks), 31, "SVG: each cap is marked")
    if shutil.which("rsvg-convert"):
        data = subprocess.run(["rsvg-convert", names["svg"]], capture_output=True,
                              check=True).stdout
        w, h, shades = png_shades(data)
        t.ok((w, h) == (1280, 1276) and shades > 50,
             f"SVG renders: {w} x {h}, {shades} different pieces")
    else:
        t.skip("SVG renders", "no rsvg-convert (librsvg2-bin)")
    w, h, shades = png_shades(pathlib.Path(names["png"]).read_bytes())
    t.ok((w, h) == (2560, 2552) and shades > 50,
         f"PNG: {w} x {h}, {shades} different pieces")

    page = pathlib.Path(names["html"]).read_text()
    for want in WORDS + ["Best caps", "All 31 caps", "Method", "prefers-color-scheme:dark"]:
        t.ok(want in page, f"HTML says '{want}'")
    t.ok(not re.search(r"(src|href)\s*=|url\(\s*['\"]?(?!#)|@import|https?://(?!www\.w3\.org)",
                       page), "HTML needs no other file")
    inside = re.search(r'<script type="application/json" id="sweep">(.*?)</script>', page,
                       re.S)
    data = json.loads(pathlib.Path(names["json"]).read_text())
    t.ok(json.loads(inside.group(1)) == data, "HTML holds the JSON of --json")
    html.parser.HTMLParser().feed(page)
    with open(names["csv"], newline="") as file:
        rows = list(csv.DictReader(file))
    t.equal([int(r["cap_mw"]) for r in rows], [p["cap_mw"] for p in data["points"]],
            "CSV: the same points")
    t.ok(all(r["simulated"] == "1" for r in rows), "CSV says simulated")
    test_browser(page, folder)


def test_browser(page, folder):
    """The page's script runs and lights points up, in Chromium."""
    browser = shutil.which("chromium")
    if not browser:
        t.skip("the page's script", "no chromium")
        return
    probe = folder / "probe.html"
    probe.write_text(page.replace("</body>", """<script>
const pt=document.querySelector('svg .pt[data-i="3"] circle').getBoundingClientRect();
document.querySelector('svg').dispatchEvent(new PointerEvent('pointermove',
 {clientX:pt.left+pt.width/2,clientY:pt.top+pt.height/2}));
document.title='hot '+document.querySelectorAll('.pt.hot').length+' '
 +document.getElementById('tip').textContent;</script></body>"""))
    try:
        p = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu",
                            f"--user-data-dir={folder}/chromium", "--window-size=1300,1500",
                            "--dump-dom", probe.as_uri()],
                           capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        t.skip("the page's script", "chromium gave no answer in 90 s")
        return
    title = re.search(r"<title>(.*?)</title>", p.stdout, re.S)
    title = title.group(1) if title else p.stderr[-300:]
    t.ok(re.match(r"hot [5-9] 165 W", title) and "simulated" in title,
         "the pointer shows a cap's figures in every panel", title)


def test_bad(folder):
    cases = [
        (["--sim", "k80", "--workload", "vgg19"], "--sim: 'k80' is none of: rtx6000, v100"),
        (["--sim", "v100"], "needs --workload: one of alexnet"),
        (["--sim", "v100", "--workload", "gpt9"], "--workload: 'gpt9' is none of: alexnet, vgg19"),
        (["--sim", "v100", "--workload", "vgg19", "--from", "90"],
         "--from: '90' is outside 150 W..300 W"),
        (["--sim", "v100", "--workload", "vgg19", "--to", "400 W"],
         "--to: '400 W' is outside 150 W..300 W"),
        (["--sim", "v100", "--workload", "vgg19", "--step", "0"], "--step: '0' must be above 0 W"),
        (["--sim", "v100", "--workload", "vgg19", "--runs", "0"],
         "--runs: 0 is outside 1..1000"),
        (["--sim", "v100", "--workload", "vgg19", "--noise", "0.5"],
         "--noise: 0.5 is outside 0..0.2"),
        (["--sim", "v100", "--workload", "vgg19", "--", "true"], "--sim runs no command"),
        (["--sim", "v100", "--workload", "vgg19", "--json", "-", "--svg", "-"],
         "--json and --svg both write to standard output"),
        ([], "no command"),
    ]
    for args, text in cases:
        p = run(*args, code=2)
        t.ok(text in p.stderr and p.stderr.count("\n") == 1 and p.stdout == "",
             f"sweep {' '.join(args)}: '{text}'", p.stderr)
    p = run("--sim", "v100", "--workload", "vgg19", "--csv", f"{folder}/no/where.csv",
            code=2)
    t.ok("--csv: cannot write " in p.stderr and p.stdout == "", "a folder that is not there",
         p.stderr)


def test_labels(folder):
    """No name of a mark lies on the line of the goal's bound, T = 1.05."""
    path, svg = str(folder / "l.svg"), "{http://www.w3.org/2000/svg}"
    for board in ("v100", "rtx6000", "a100", "h100"):
        for work in ("resnet50", "alexnet", "vgg19", "inception4"):
            run("--sim", board, "--workload", work, "--svg", path)
            tree = ElementTree.parse(path)
            lines = [re.fullmatch(r"M([\d.]+) [\d.]+L([\d.]+) [\d.]+", e.get("d")) for e in tree.iter(f"{svg}path") if e.get("stroke-dasharray")]
            bound = [float(m[1]) for m in lines if m and m[1] == m[2]]
            names = {e.text: float(e.get("x")) for e in tree.iter(f"{svg}text")
                     if e.get("font-weight") == "bold" and re.match("(default|min |slowdown).*: ", e.text or "")}
            on = [name for name, x in names.items() if any(abs(x - b) < 3.5 * len(name) for b in bound)]
            t.ok(len(bound) == 1 and names and not on, f"{board} {work}: the line T = 1.05 is free", f"{bound} {names}")


test_paper()
test_json()
with tempfile.TemporaryDirectory() as where:
    test_pictures(pathlib.Path(where))
    test_labels(pathlib.Path(where))
    test_bad(pathlib.Path(where))
t.done()
