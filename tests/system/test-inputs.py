#!/usr/bin/python3
"""Wrong inputs: one line that names the thing and the value, exit 2, and nothing lost or changed."""
import os
import pathlib
import subprocess
import tempfile

import uwtest

t = uwtest.Tap()


def ask(*words, **more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("UNDERWATT", "SUDO", "CUDA_"))}
    return subprocess.run([uwtest.program(words[0]), *map(str, words[1:])], capture_output=True, text=True, timeout=60, env=clean,
                          **{"stdin": subprocess.DEVNULL, **more})


def refused(p, what, *says, code=2):
    return t.ok(p.returncode == code and len(p.stderr.splitlines()) == 1 and all(s in p.stderr for s in says) and not p.stdout, what,
                f"{p.returncode} {p.stdout} {p.stderr}")


def pipes(tmp):
    """A named pipe is not waited for; an open one is read."""
    pipe = tmp / "pipe"
    os.mkfifo(pipe)
    for words in (["underwatt", "policy", "check"], ["underwattd", "--check"], ["underwattd", "--user", "root", "--config"],
                  ["underwatt-signals", "--check"], ["underwatt-signals", "--config"], ["underwatt-slurm-collector", "--check"],
                  ["underwatt-slurm-collector", "--config"]):
        refused(ask(*words, pipe), f"{' '.join(words)} PIPE", f"{pipe}: not a regular file")
    for words, text in ((["underwatt", "policy", "check"], "policy: 1\n"), (["underwattd", "--check"], "node: {log: debug}\n")):
        p = ask(*words, "/dev/stdin", stdin=None, input=text)
        t.ok(p.returncode == 0, f"{' '.join(words)} /dev/stdin: a pipe that is open", p)


def main():
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        tmp.chmod(0o755)
        pipes(tmp)
    t.done()


if __name__ == "__main__":
    main()
