#!/usr/bin/python3
"""docs/tutorial.ipynb, by nbclient: each cell on a simulated node with the daemon, as a reader would run it.

    test-tutorial.py --keep      write the outputs of this run into the notebook
"""
import json
import pathlib
import sys

import fwuser
import uwtest

NOTEBOOK = uwtest.TOP / "docs" / "tutorial.ipynb"
SPEED = 10
LARGEST = 60_000    # bytes of the notebook with its outputs

RUN = """
import json, sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=240, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": sys.argv[3]}}).execute()
nbformat.write(notebook, sys.argv[2])
"""


def text_of(output):
    found = output.get("text") or output.get("data", {}).get("text/plain") or output.get("evalue") or ""
    return found if isinstance(found, str) else "".join(found)


def executed(t, node, folder):
    """The cells with their outputs."""
    into = pathlib.Path(folder, "tutorial.ipynb")
    p = uwtest.timed("the notebook", lambda: fwuser.in_world(node, RUN, NOTEBOOK, into, folder, timeout=420, IPYTHONDIR=folder,
                                                             JUPYTER_PREFER_ENV_PATH="1"))
    if not t.ok(p.returncode == 0, "nbclient runs it", p.stdout + p.stderr):
        t.done()
    return json.loads(into.read_text(encoding="utf-8"))


def checks(t, cells):
    for cell in cells:
        name = "".join(cell["source"]).strip().splitlines()[0]
        errors = [text_of(o) for o in cell["outputs"] if o["output_type"] == "error" or o.get("name") == "stderr"]
        t.ok(not errors, f"runs without a word: {name}", errors)
    outputs = [o for cell in cells for o in cell["outputs"]]
    pages = ["".join(o["data"]["text/html"]) for o in outputs if "text/html" in o.get("data", {})]
    t.ok(len(pages) == 3 and all("<svg" in page and "<table" in page for page in pages), "three pages with a table and a chart: window, %%energy, compare",
         [p[:200] for p in pages])
    text = "\n".join(map(text_of, outputs))
    for words in ("simulated GPU (counter)", "'total_j'", "validate: ", "holds", " W: saves ", "energy against large", "█"):
        t.ok(words in text, f"it shows: {words}", text)


def kept(notebook):
    """As it lies in docs: what changes with each run and says nothing is left out."""
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    notebook["metadata"]["language_info"] = {"name": "python"}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main():
    t = uwtest.Tap()
    before = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    with uwtest.Node(board="h100", count=1, speed=SPEED) as node:
        node.daemon()
        after = executed(t, node, node.tmp)
    checks(t, [c for c in after["cells"] if c["cell_type"] == "code"])
    if sys.argv[1:] == ["--keep"]:
        NOTEBOOK.write_text(kept(after), encoding="utf-8")
        before = after
    t.ok(NOTEBOOK.stat().st_size < LARGEST, f"{NOTEBOOK.stat().st_size} bytes, less than {LARGEST}")
    t.ok(all(c["outputs"] for c in before["cells"] if c["cell_type"] == "code" and any(a["source"] == c["source"] and a.get("outputs") for a in after["cells"])),
         "the notebook in docs has its outputs")
    t.done()


if __name__ == "__main__":
    main()
