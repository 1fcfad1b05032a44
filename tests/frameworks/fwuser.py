"""What tests of the suites frameworks and zeus share: the Python that has the frameworks, from the lock file beside this one."""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "python"), str(HERE.parent / "system")]

import pyuser  # noqa: E402
import uwtest  # noqa: E402


def python():
    """Its path; without it the test is skipped."""
    path, why = pyuser.frameworks()
    if not path:
        uwtest.skip_all(why)
    return str(path)


WARNINGS = ("-W", "ignore", "-W", "always:underwatt:RuntimeWarning")    # others' words are not the tests'
ENV = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", "KERAS_BACKEND": "torch"}


def begun(node, script, *words, launcher=(), stderr=subprocess.PIPE, **env):
    """A program of the frameworks' Python on the package of this tree in a simulated node, begun; its CUDA is the simulated
    boards.  launcher: a module and its options, which end in what takes a module's name."""
    return node.popen(python(), *WARNINGS, "-m", *launcher, "underwatt.testing.oncpu", str(script), *map(str, words),
                      stdin=subprocess.DEVNULL, stderr=stderr,
                      env={"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY), **ENV, **env})
