#!/usr/bin/env python3
"""What tests/fuzz/replay.c compares can fail: seeds that come out otherwise than expected.

    test-replay.py REPLAY-JSON
"""
import os
import subprocess
import sys
import tempfile

# name, seeds, lines, what is said not to be so (None: all is well)
CASES = [
    ("as expected", {"a": "[1]"}, ["a\taccepted\t1 items"], None),
    ("a comment", {"a": "[1]"}, ["# of one item", "a\taccepted\t1 items"], None),
    ("two lines of a seed", {"a": "[1]"}, ["a\taccepted\t1 items", "a\taccepted\tn 0"], None),
    ("another word", {"a": "[1]"}, ["a\trefused\t1 items"], "a: refused, 1 items"),
    ("a part of the word", {"a": "[1]"}, ["a\taccept\t1 items"], "a: accept, 1 items"),
    ("another text", {"a": "[1]"}, ["a\taccepted\t2 items"], "a: accepted, 2 items"),
    ("refused for another reason", {"a": "[1"}, ["a\trefused\tnested"], "a: refused, nested"),
    ("one of two lines is wrong", {"a": "[1]"},
     ["a\taccepted\t1 items", "a\taccepted\tn 7"], "a: accepted, n 7"),
    ("a seed without a line", {"a": "[1]", "b": "[]"}, ["a\taccepted\t1 items"],
     "b: has a line in the expect file"),
    ("a line without a seed", {"a": "[1]"}, ["a\taccepted\t1 items", "b\trefused\t"],
     "b: has a line, and is no seed"),
    ("a line of two fields", {"a": "[1]"}, ["a\taccepted"], "lines of SEED, WORD, TEXT"),
    ("no seeds", {}, [], "the corpus is not empty"),
]


def failures(replay, seeds, lines):
    """Names of the tests that failed, and the exit status."""
    with tempfile.TemporaryDirectory() as root:
        corpus, expect = os.path.join(root, "corpus"), os.path.join(root, "expect")
        os.mkdir(corpus)
        for name, text in seeds.items():
            with open(os.path.join(corpus, name), "w", encoding="utf-8") as file:
                file.write(text)
        with open(expect, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        done = subprocess.run([replay, corpus, expect], capture_output=True, text=True,
                              check=False, timeout=60)
    return [line.split(" - ", 1)[1] for line in done.stdout.splitlines()
            if line.startswith("not ok")], done.returncode


def main():
    print(f"1..{len(CASES)}")
    bad = 0
    for n, (name, seeds, lines, want) in enumerate(CASES, 1):
        found, status = failures(sys.argv[1], seeds, lines)
        good = found == ([want] if want else []) and (status != 0) == bool(want)
        bad += not good
        print(f"{'ok' if good else 'not ok'} {n} - {name}")
        if not good:
            print(f"# {status}: {found}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
