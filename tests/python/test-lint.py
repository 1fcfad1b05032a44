#!/usr/bin/python3
"""mypy --strict and ruff over the package and over bench/real."""
import subprocess

import pyuser
import uwtest


def main():
    t = uwtest.Tap()
    folder, why = pyuser.tools()
    if not folder:
        uwtest.skip_all(why)
    real = sorted(str(f.relative_to(uwtest.TOP)) for f in (uwtest.TOP / "bench" / "real").glob("*.py"))
    for name, *args in (("mypy",), ("mypy", *real), ("ruff", "check", "python", *real),
                        ("ruff", "format", "--check", "python", *real)):
        p = subprocess.run([folder / name, *args], cwd=uwtest.TOP, capture_output=True, text=True, timeout=300,
                           stdin=subprocess.DEVNULL)
        t.ok(p.returncode == 0, " ".join([name, *args]), p.stdout + p.stderr)
    t.done()


if __name__ == "__main__":
    main()
