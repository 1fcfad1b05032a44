#!/usr/bin/python3
"""tools/check-names tells of a word that is added, changed or lost in one place alone."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
PARTS = ("src", "docs", "deploy", "tools")
MUTANTS = [  # file, what stands there, what is put there, what the breach names
    ("src/base/names.h", 'X(JOB_FOUND,      2, "found",', 'X(JOB_LOST, 3, "lost", "x") X(JOB_FOUND,      2, "found",', "lost"),
    ("src/base/names.h", '4, "released",', '4, "held",', "held"),
    ("src/base/names.h", "CAPS_RELEASED, 4,", "CAPS_RELEASED, 5,", "number '5'"),
    ("docs/openapi.yaml", "denied], x-names: cap.state", "denied, broken], x-names: cap.state", "broken"),
    ("docs/openapi.yaml", "holds, compares, safe,", "holds, safe,", "compares"),
    ("docs/openapi.yaml", "enum: [temperature, rise], x-names: none", "enum: [temperature, rise]", "x-names"),
    ("docs/openapi.yaml", "gpu|cpu|day|label:.+)(", "gpu|cpu|week|label:.+)(", "week"),
    ("docs/caps.md", "| yielded | the limit", "| gave-up | the limit", "gave-up"),
    ("docs/man/underwatt-doctor.1.scd", "*warn* (works", "*poor* (works", "poor"),
    ("docs/man/underwatt-measure.1.scd", "*coarse*", "*rough*", "rough"),
    ("docs/man/underwattd-api.5.scd", "*dry-run*, ", "", "dry-run"),
    ("docs/man/underwattd-api.5.scd", "; names: claim.source\n", "", "claim.source"),
    ("docs/man/underwattd.8.scd", "*read*|*claim*|*admin*", "*read*|*claim*|*root*", "root"),
    ("docs/metrics.md", "`thermal`, `board`", "`thermal`", "board"),
    ("docs/metrics.md", "`kind`: `requested`,", "`kind`: `asked`,", "asked"),
    ("docs/design/ledger.md", "run, registered, found.", "run, registered.", "found"),
    ("docs/design/ledger.md", "start, stop, config,", "start, stop, settings,", "settings"),
    ("docs/man/underwattd.8.scd", "*board-back*, ", "", "board-back"),
    ("docs/man/underwattd.8.scd", "; names: log.event\n", "", "log.event"),
    ("docs/man/underwattd.8.scd", "*release*, *window*;", "*window*;", "release"),
    ("docs/man/underwatt-sim.1.scd", "*fault*, *reset*.", "*fault*, *restart*.", "restart"),
    ("src/base/names.h", '"claim-lost",         "a', '"claim-gone",         "a', "claim-gone"),
    ("src/daemon/main.c", "event=realtime-lost", "event=realtime-gone", "realtime-gone"),
    ("deploy/completions/underwatt.bash", "energy edp eds: cost:", "energy edp eds:", "cost"),
    ("deploy/completions/_underwatt", "array gpu cpu day", "array gpu day", "cpu"),
    ("deploy/completions/underwatt.fish", "slowdown: time'", "slowdown: time green'", "green"),
    ("deploy/prometheus/underwatt.rules.yml", 'cap_state{state="held"}', 'cap_state{state="kept"}', "kept"),
    ("src/cli/jobs-text.c", "#include <math.h>", '#include <math.h>\nstatic const char *t[] = {"soft", "named", "hard"};', "claim.kind"),
]


def check(tree):
    p = subprocess.run([tree / "tools/check-names"], cwd=tree, capture_output=True, text=True, check=False)
    return p.returncode, p.stdout + p.stderr


def fills_in(tree):
    """A row more of CLAIM_SOURCES is all that is written by hand."""
    names = tree / "src/base/names.h"
    was, n = re.subn(r"(#define CLAIM_SOURCES\(X\)(?:.*\\\n)+.*)\n", r'\1 \\\n    X(CLAIM_OF_DRILL, 99, "drill", "a test")\n',
                     names.read_text(encoding="utf-8"))
    names.write_text(was, encoding="utf-8")
    codes, said = [], []
    for more in ([], ["--write"], [], ["--write"]):
        p = subprocess.run([tree / "tools/check-names", *more], cwd=tree, capture_output=True, text=True, check=False)
        codes.append(p.returncode)
        said.append(p.stdout.count("words were added"))
    return n == 1 and codes == [1, 0, 0, 0] and said == [0, 3, 0, 0]


def main():
    bad, n = 0, 0
    with tempfile.TemporaryDirectory() as tmp:
        tree = pathlib.Path(tmp) / "tree"
        for part in PARTS:
            shutil.copytree(ROOT / part, tree / part)
        for path, old, new, said in [("", "", "", "")] + MUTANTS:
            file, n = tree / path, n + 1
            if path:
                was = file.read_text(encoding="utf-8")
                file.write_text(was.replace(old, new, 1), encoding="utf-8")
            code, text = check(tree)
            good = code == (1 if path else 0) and said in text and "Traceback" not in text and (not path or old in was)
            bad += not good
            print(f"{'ok' if good else 'not ok'} {n} - {path or 'as it is'}: {new or 'without ' + old!r}")
            if not good:
                print("# " + text.replace("\n", "\n# "))
            if path:
                file.write_text(was, encoding="utf-8")
        n += 1
        good = fills_in(tree)
        bad += not good
        print(f"{'ok' if good else 'not ok'} {n} - --write fills a new source of claims in, and then nothing more")
    print(f"1..{n}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
