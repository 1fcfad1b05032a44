#!/usr/bin/python3
"""tools/traces keep loses no case by accident: a run without UNDERWATT_SOAK=1 plays one in three."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import uwtest  # noqa: E402

t = uwtest.Tap()
LINE = "0.0 0 300000 window\n"


def main():
    top = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        tools, kept = pathlib.Path(tmp, "tools"), pathlib.Path(tmp, "tests", "simulation", "traces")
        tools.mkdir()
        kept.mkdir(parents=True)
        shutil.copy(top / "tools" / "traces", tools)

        def keep(*args, **cases):
            for name, of in cases.items():
                pathlib.Path(tmp, f"{name}.trace").write_text("".join(f"case {c}\n{LINE}" for c in of))
            return subprocess.run([sys.executable, tools / "traces", "--only", ",".join(cases), "keep", *args, tmp],
                                  capture_output=True, text=True, check=False)

        def summaries():
            return {f.name: f.read_text() for f in kept.iterdir()}
        p = keep(run=["a", "b", "c"], unseen=["d"])
        t.ok(p.returncode == 0 and len(summaries()) == 2, "the first summaries are written", p.stderr)
        was = summaries()
        p = keep(run=["a", "n"], unseen=["d", "e"])
        t.ok(p.returncode == 2 and p.stderr == "traces: keep: run.txt would lose 2 of its cases, as 'b': run all of them "
           "(UNDERWATT_SOAK=1), or give --drop\n", "cases that did not run are named", p)
        t.ok(summaries() == was, "and no summary has changed", summaries())
        p = keep(run=["a", "b", "c", "n"])
        t.ok(p.returncode == 0 and "case n = " in summaries()["run.txt"], "a new case is added", p.stderr)
        p = keep("--drop", run=["a"])
        t.ok(p.returncode == 0 and summaries()["run.txt"].count("case ") == 1, "--drop drops them", p.stderr)
    t.done()


main()
