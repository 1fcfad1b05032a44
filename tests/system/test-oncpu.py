#!/usr/bin/python3
"""underwatt.testing.oncpu without torch: a script runs as it is.  With torch: tests/frameworks/test-oncpu.py."""
import json
import os
import pathlib
import subprocess
import sys

import uwtest

t = uwtest.Tap()

PLAIN = """
import json, os, sys
from underwatt.testing import SimLoad
print(json.dumps([__name__, sys.argv, sys.path[0], "torch" in sys.modules]))
sys.exit(7)
"""


def oncpu(node, *words):
    return node.run("/usr/bin/python3", "-m", "underwatt.testing.oncpu", *words, env={"PYTHONPATH": uwtest.TOP / "python"})


def without_torch(node, tmp):
    script = tmp / "plain.py"
    script.write_text(PLAIN)
    p = oncpu(node, script, "a", "--b")
    t.ok(p.returncode == 7 and json.loads(p.stdout) == ["__main__", [str(script), "a", "--b"], str(tmp), False],
         "a script without torch runs as it is", p.stdout + p.stderr)
    for words in ((), ("--colour", "red")):
        p = oncpu(node, *words)
        t.ok(p.returncode == 2 and p.stderr.startswith("usage: "), f"oncpu {words}: 2", p.stderr)
    p = oncpu(node, tmp / "none.py")
    t.ok(p.returncode == 2 and p.stderr == f"oncpu: {tmp / 'none.py'}: No such file or directory\n", "no such script", p.stderr)
    p = subprocess.run(["/usr/bin/python3", "-m", "underwatt.testing.oncpu", str(script)], capture_output=True,
                       text=True, check=False, env={**os.environ, "PYTHONPATH": str(uwtest.TOP / "python")})
    t.ok(p.returncode == 2 and p.stderr.startswith("oncpu: no simulated node") and p.stderr.count("\n") == 1,
         "outside of a node: one line", p.stderr)


def main():
    with uwtest.Node(board="h100", count=1) as node:
        without_torch(node, pathlib.Path(node.tmp))
    t.done()


if __name__ == "__main__":
    sys.exit(main())
