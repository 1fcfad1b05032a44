"""What tests of the suite zeus share: programs that find underwatt.compat.zeus under the name zeus, on simulated boards."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "frameworks"))

import fwuser  # noqa: E402
import pyuser  # noqa: E402
import uwtest  # noqa: E402,F401 - for the tests

PATH = f"{pyuser.PACKAGE / 'underwatt' / 'compat' / '_on_path'}:{pyuser.PACKAGE}"
ENV = {"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY), "OMP_NUM_THREADS": "1",
       "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def python():
    """That of the frameworks; without it the test is skipped."""
    return fwuser.python()


def program(code, *args):
    """Words that run a piece of Python; the frameworks are there to be imported."""
    return [python(), "-c", code, *map(str, args)]


def in_world(node, words, timeout=300, **more):
    """A program to its end, with our package as `zeus`."""
    return node.run(*words, timeout=timeout, env={**ENV, "PYTHONPATH": PATH, **more})
