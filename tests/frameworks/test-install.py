#!/usr/bin/python3
"""The environment of the frameworks: installed before the tests that share it."""
import subprocess

import fwuser
import uwtest

NAMES = "torch transformers trl lightning keras tensorboard zeus".split()


def main():
    t = uwtest.Tap()
    python = fwuser.python()
    p = subprocess.run([python, "-c", "import importlib.metadata as m, sys; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep=', ')",
                        *NAMES], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
    t.ok(p.returncode == 0, f"the frameworks are there: {p.stdout.strip()}", p.stderr)
    t.done()


if __name__ == "__main__":
    main()
