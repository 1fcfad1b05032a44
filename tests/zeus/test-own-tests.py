#!/usr/bin/python3
"""Tests of Zeus itself, unmodified, on underwatt.compat.zeus: NVML is the mock that they bring.

The power-limit tests want Zeus' own scan (UNDERWATT_ZEUS_SEARCH=exhaustive) and replay its recorded profiles (UNDERWATT_DATA, else
../shared/data).  docs/design/zeus.md has the table of what passes and why the rest does not.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree

import zeususer
from zeususer import pyuser, uwtest

DATA = pathlib.Path(os.environ.get("UNDERWATT_DATA") or uwtest.TOP / ".." / "shared" / "data") / "zeus" / "jit_profile"
# File: how many of its tests run, how many of those pass, why the others fail, and that 1 of so many runs.
FILES = {
    "optimizer/test_power_limit_optimizer.py": (241, 241, "nothing", 1),
    "monitor/test_energy.py": (1201, 785, "Regex pattern did not match", 1) if uwtest.SOAK else (61, 39, "Regex pattern did not match", 20),
    "test_metric.py": (3, 1, "has no attribute 'mp'", 1),
    "utils/test_env.py": (6, 6, "nothing", 1),
}
# Files that cannot be imported: how many tests they have, and why not.
NOT_IMPORTED = {
    "monitor/test_carbon.py": (6, "cannot import name 'Op'"),
    "monitor/test_price.py": (7, "cannot import name 'Op'"),
}
SOME = """
import os
def pytest_collection_modifyitems(items):
    items[:] = items[::int(os.environ["UNDERWATT_EVERY"])]
"""


def outcomes(python, source, file, every):
    """Of each test: "" where it passed, else why not; the last lines of the output."""
    with tempfile.TemporaryDirectory(prefix="uw-") as tmp:
        # Beside Zeus' package these tests would find that one.
        shutil.copytree(source / "tests", pathlib.Path(tmp, "tests"))
        pathlib.Path(tmp, "tests", "profile_data").symlink_to(DATA.resolve())
        pathlib.Path(tmp, "some.py").write_text(SOME)
        p = subprocess.run(
            [python, "-W", "ignore", "-m", "pytest", "-q", "-p", "some", "-p", "no:cacheprovider", "-n", "2", "--junit-xml=result.xml", f"tests/{file}"],
            cwd=tmp, capture_output=True, text=True, timeout=1200, stdin=subprocess.DEVNULL, check=False,
            env={**os.environ, **zeususer.ENV, "PYTHONPATH": f"{zeususer.PATH}:{tmp}", "UNDERWATT_ZEUS_SEARCH": "exhaustive",
                 "UNDERWATT_EVERY": str(every)})
        result = pathlib.Path(tmp, "result.xml")
        found = []
        for case in ElementTree.parse(result).iter("testcase") if result.exists() else ():
            bad = [child.get("message") or child.tag for child in case if child.tag in ("failure", "error", "skipped")]
            found.append(bad[0] if bad else "")
        return found, p.stdout[-3000:] + p.stderr[-1000:]


def main():
    t = uwtest.Tap()
    python = zeususer.python()
    source, why = pyuser.zeus_source()
    if not source:
        uwtest.skip_all(why)
    for file, (of, passes, reason, every) in FILES.items():
        if "power_limit" in file and not DATA.is_dir():
            t.skip(file, f"Zeus' recorded profiles are not at hand: {DATA} (UNDERWATT_DATA)")
            continue
        found, text = outcomes(python, source, file, every)
        passed = found.count("")
        t.ok((passed, len(found)) == (passes, of), f"{file}: {passes} of {of} pass, as docs/design/zeus.md has it", f"{passed} of {len(found)}\n{text}")
        t.equal([w for w in found if w and reason not in w], [], f"{file}: no other reason to fail than the one that is known")
    for file, (of, reason) in NOT_IMPORTED.items():
        tests = (source / "tests" / file).read_text(encoding="utf-8").count("\ndef test_")
        found, text = outcomes(python, source, file, 1)
        t.ok((tests, found) == (of, ["collection failure"]) and reason in text, f"{file}: 0 of {of} pass: {reason}", f"{tests} tests, {found}\n{text}")
    t.done()


if __name__ == "__main__":
    main()
