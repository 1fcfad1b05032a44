#!/usr/bin/python3
"""tools/traces keep loses no case by accident: a run without UNDERWATT_SOAK=1 plays one in three."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

LINE = "0.0 0 300000 window\n"


def main():
    top = pathlib.Path(sys.argv[1])
    n = failed = 0

    def ok(good, name, why=""):
        nonlocal n, failed
        n += 1
        failed += not good
        print(f"{'ok' if good else 'not ok'} {n} - {name}")
        for line in [] if good else str(why).splitlines():
            print(f"# {line}")

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
        ok(p.returncode == 0 and len(summaries()) == 2, "the first summaries are written", p.stderr)
        was = summaries()
        p = keep(run=["a", "n"], unseen=["d", "e"])
        ok(p.returncode == 2 and p.stderr == "traces: keep: run.txt would lose 2 of its cases, as 'b': run all of them "
           "(UNDERWATT_SOAK=1), or give --drop\n", "cases that did not run are named", p)
        ok(summaries() == was, "and no summary has changed", summaries())
        p = keep(run=["a", "b", "c", "n"])
        ok(p.returncode == 0 and "case n = " in summaries()["run.txt"], "a new case is added", p.stderr)
        p = keep("--drop", run=["a"])
        ok(p.returncode == 0 and summaries()["run.txt"].count("case ") == 1, "--drop drops them", p.stderr)
    print(f"1..{n}")
    return 1 if failed else 0


sys.exit(main())
