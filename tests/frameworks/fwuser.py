"""What tests of the suites frameworks and zeus share: the Python that has the frameworks, from the lock file beside this one."""
import json
import pathlib
import struct
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


LOADED_S = 600    # until a program has trained, on a busy machine
MACHINE = "name: exact\nset_limits: anyone\nboards: [{model: v100, count: 4, ideal: true}]\n"
WARNINGS = ("-W", "ignore", "-W", "always:underwatt:RuntimeWarning")    # others' words are not the tests'
ENV = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", "KERAS_BACKEND": "torch"}


def begun(node, script, *words, launcher=(), oncpu=True, stderr=subprocess.PIPE, **env):
    """A program of the frameworks' Python on the package of this tree in a simulated node, begun; its CUDA is the simulated
    boards (oncpu).  launcher: a module and its options, which end in what takes a module's name."""
    mapped = ("-m", *launcher, "underwatt.testing.oncpu") if oncpu else ()
    return node.popen(python(), *WARNINGS, *mapped, str(script), *map(str, words),
                      stdin=subprocess.DEVNULL, stderr=stderr,
                      env={"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY), **ENV, **env})


def in_world(node, code, *args, module=(), timeout=300, **env):
    """Python code, or a script by its path, in the same way, to its end, without CUDA.  module: what runs the script, and its options."""
    words = ["-m", *module, str(code)] if module else [str(code)] if isinstance(code, pathlib.Path) else ["-c", code]
    return node.run(python(), *WARNINGS, *map(str, words), *map(str, args), timeout=timeout,
                    env={"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY), **ENV, **env})


def page(folder):
    """A progress page, as `underwatt run` makes one: its path."""
    path = pathlib.Path(folder, "page")
    path.write_bytes(struct.pack("<8sII", b"UWPROGR1", 1, 63).ljust(4096, b"\0"))
    return str(path)


def told(t, child, err, name):
    """What each process of a training program told at its end (trained.told()), and what it said (the file err); (None, …): it failed."""
    out = child.communicate(timeout=LOADED_S)[0]
    said = err.read_text(encoding="utf-8", errors="replace")
    rows = [json.loads(line[5:]) for line in out.splitlines() if line.startswith("TOLD ")]
    if not t.ok(child.returncode == 0 and rows, f"{name} trains to its end", out[-2000:] + said[-4000:]):
        return None, said
    return rows, said


def trains(t, node, name, program, folder, **more):
    """A training program with a page, to its end: what it told, or None."""
    place = pathlib.Path(folder)
    with open(place / "err", "w", encoding="utf-8") as err:
        child = begun(node, HERE / program, place, stderr=err, CUDA_VISIBLE_DEVICES="0", UNDERWATT_PROGRESS=page(place), **more)
    rows, _ = told(t, child, place / "err", name)
    return rows and rows[0]
