#!/usr/bin/python3
"""Plain PyTorch as docs/python-frameworks.md has it, to the letter, on a simulated board with the daemon; and without its optimizer, as
its comments say."""
import json
import pathlib
import re
import tempfile
import textwrap

import fwuser
import uwtest

PAGE = uwtest.TOP / "docs" / "python-frameworks.md"
EPOCHS, STEPS = 3, 8

# What a reader has: a loader, the number of epochs, and a train().  The loader tells the board's true energy at both ends of an epoch.
BEFORE = f"""
import sys
sys.path.append({str(fwuser.HERE)!r})
import torch
import trained
model = torch.nn.Linear(8, 1).cuda()
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
truth = []
class Loader:
    def __iter__(self):
        truth.append(trained.true_j())
        for i in range({STEPS}):
            yield torch.randn(4, 8)
        truth.append(trained.true_j())
def train(batch):
    sgd.zero_grad()
    model(batch.cuda()).square().mean().backward()
    sgd.step()
loader, epochs = Loader(), {EPOCHS}
"""
AFTER = """
status = optimizer.status if "optimizer" in globals() else None
trained.told(truth=truth, steps=underwatt.steps(), goal=status and status.goal, job=status and status.job, counted=status and status.steps)
"""


def snippet():
    return re.search(r"^## Plain PyTorch\n\n```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)[1]


def without(code):
    """As the comments say: the line of the optimizer left out, and underwatt.step() for its step()."""
    head, line, rest = re.fullmatch(r"(.*?)^(with underwatt\.Optimizer[^\n]*\n)(.*)", code, re.M | re.S).groups()
    uwtest.must("without it" in line and "without an optimizer: underwatt.step()" in rest, "the comments")
    return head + textwrap.dedent(rest).replace("optimizer.step()", "underwatt.step()", 1)


def begun(node, folder, name, code, board):
    place = pathlib.Path(folder, name)
    place.mkdir()
    script = place / "train.py"
    script.write_text(BEFORE + code + AFTER, encoding="utf-8")
    page = {} if name == "verbatim" else {"UNDERWATT_PROGRESS": fwuser.page(place)}    # as `underwatt run` makes one
    with open(place / "err", "w", encoding="utf-8") as err:
        return fwuser.begun(node, script, stderr=err, CUDA_VISIBLE_DEVICES=str(board), **page), place


def joules_of(text):
    number, unit = text.split()
    return float(number.replace(",", "")) * (1000 if unit == "kJ" else 1)


def checked(t, name, child, place):
    out = child.communicate(timeout=fwuser.LOADED_S)[0]
    err = (place / "err").read_text(encoding="utf-8")
    rows = re.findall(r"^TOLD (.*)$", out, re.M)
    if not t.ok(child.returncode == 0 and len(rows) == 1 and err == "", f"{name}: it trains to its end, without a word", out[-2000:] + err[-4000:]):
        return None
    row = json.loads(rows[0])
    shown = re.findall(r"^epoch (\d+): (\S+ k?J) ± (\S+ k?J) in .* 1 simulated GPU \(", out, re.M)
    t.equal([n for n, *_ in shown], [str(n) for n in range(EPOCHS)], f"{name}: each epoch's energy is printed")
    for n, *joules in shown:
        energy, half = map(joules_of, joules)
        true = row["truth"][2 * int(n) + 1] - row["truth"][2 * int(n)]
        t.near(energy, true, 0.03 * true + half, f"{name}: epoch {n}: {energy:.0f} ± {half:.0f} J, true {true:.0f} J (simulated)")
    return row


def main():
    t = uwtest.Tap()
    fwuser.python()
    code = snippet()
    own = [line for line in code.splitlines() if re.search(r"underwatt|optimizer|w\.energy", line)]
    t.equal(len(own), 5, f"five lines for energy and caps of {len(code.splitlines())}")
    with tempfile.TemporaryDirectory(prefix="uw-") as folder, uwtest.Node(machine=fwuser.MACHINE) as node:
        daemon = node.daemon()
        run = {"verbatim": begun(node, folder, "verbatim", code, 0), "without": begun(node, folder, "without", without(code), 1)}
        row = checked(t, "verbatim", *run["verbatim"])
        if row:
            # The daemon may not have looked since the last ones.
            t.ok(row["goal"] == "slowdown:1.05" and (EPOCHS - 1) * STEPS < row["counted"] <= EPOCHS * STEPS, "verbatim: the daemon searched by its steps", row)
            jobs = [(j["id"], j["running"]) for j in daemon.ask("GET", "/v1/jobs")[1]["jobs"]]
            t.ok((row["job"], True) not in jobs, "verbatim: the job has ended", jobs)
        row = checked(t, "without an optimizer", *run["without"])
        t.ok(row and row["steps"] == EPOCHS * STEPS, "without an optimizer: each step is told", row)
    t.done()


if __name__ == "__main__":
    main()
