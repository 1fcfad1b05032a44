"""What tests of the suites frameworks and zeus share: the Python that has the frameworks, from the lock file beside this one."""
import pathlib
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


def in_world(node, code, *args, module=(), timeout=300, **more):
    """A program of the frameworks' Python on the package of this tree in a simulated node, to its end.

    module: ("underwatt.testing.oncpu", ...): what runs the script `code`, which is a path then."""
    words = ["-m", *module, code] if module else ["-c", code]
    return node.run(python(), "-W", "ignore", *words, *args, timeout=timeout,
                    env={"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY), "OMP_NUM_THREADS": "1", **more})
