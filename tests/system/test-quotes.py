#!/usr/bin/python3
"""A file that root is made to read never comes back in an error; a user's own does.

What sudo would run for somebody is run here as root, with files that only root may read.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import uwtest

NOBODY = 65534
SECRET, NUMBER = "s3cret", "471147"
FILES = {
    "shadow": f"{SECRET}:*:{NUMBER}:0:99999:7:::\n{SECRET}2:$y$j9T${SECRET}:{NUMBER}::::::\n",
    "key": f"{SECRET}: {NUMBER}\n",
    "known key": f"grace: {SECRET}\nnode: {{interval: {SECRET}}}\n",
    "number": f"grace: {NUMBER} s\nnode: {{interval: {NUMBER} s}}\n",
    "client": f"clients: [{SECRET}]\ncaps: {{users: {{from: {SECRET}}}}}\n",
    "board": f"boards: ['{SECRET} {NUMBER}']\n",
    "range": f"range: {{from: {SECRET}}}\n",
    "clocks": f"clocks: {SECRET}\n",
    "library": f"library: {SECRET}\nboards: {{library: {SECRET}}}\n",
    "class": f"caps: {{classes: {{{SECRET}: {{first: {SECRET}}}}}}}\n",
    "goal": f"search: {{found_jobs: {SECRET}}}\n",
    "budget": f"budget: {{node: {SECRET}}}\n",
    "listen": f"api: {{tcp: {{listen: {SECRET}}}}}\n",
    "text": f"{SECRET}\n",
    "a list": f"- {SECRET}\n- {NUMBER}\n",
    "open quote": f'grace: "{SECRET}\n',
    "open list": f"[{SECRET}, {NUMBER}\n",
    "alias": f"grace: *{SECRET}\n",
    "tag": f"grace: !{SECRET} {NUMBER}\n",
    "JSON": f'{{"{SECRET}": "{NUMBER}"\n',
    "a key of a machine": f"boards: [{{model: {SECRET}, count: {NUMBER}}}]\n",
    "a rule": f"policy: 1\nrules: [{{name: a, cap: 3 W, when: {SECRET} > {NUMBER}}}]\n",
    "bytes": f"{SECRET}\x01{NUMBER}\n",
}
COMMANDS = (("underwatt-actuator", "--recover", "--config"), ("underwatt-actuator", "--serve", "--config"),
            ("underwattd", "--check"), ("underwattd", "--token-list", "--config"), ("underwattd", "--user", "root", "--config"),
            ("underwatt-sim", "start", "--machine"), ("underwatt", "policy", "check"), ("underwatt-signals", "--check", "--config"), ("underwatt-actuator", "--check"))


def run(command, path, **how):
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": str(path.parent)}
    p = subprocess.run([uwtest.program(command[0]), *command[1:], str(path)], capture_output=True, text=True,
                       errors="replace", stdin=subprocess.DEVNULL, timeout=60, env=env, **how)
    return p.returncode, p.stdout + p.stderr


def main():
    t = uwtest.Tap()
    if os.geteuid() != 0:
        t.skip("what root reads stays with root", "takes root")
        t.done()
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        for i, (name, text) in enumerate(FILES.items()):
            path = pathlib.Path(tmp, f"file{i}")
            path.write_text(text)
            path.chmod(0o600)
            for command in COMMANDS:
                code, said = run(command, path)
                t.ok(code != 0 or command[1] == "--recover", f"{name}: {' '.join(command)} refuses it", f"{code} {said}")
                t.ok(SECRET not in said and NUMBER not in said and str(path) in said,
                     f"{name}: {' '.join(command)} names the file and shows nothing of it", said)
        # A user's own file, read with his own rights: what is wrong is shown.
        path = pathlib.Path(tmp, "own")
        path.write_text(FILES["key"])
        path.chmod(0o644)
        for command in (("underwatt-actuator", "--recover", "--config"), ("underwattd", "--check")):
            code, said = run(command, path, user=NOBODY, group=NOBODY, extra_groups=[])
            t.ok(SECRET in said, f"{' '.join(command)} shows a user his own file's", f"{code} {said}")
        code, said = run(COMMANDS[1], path)
        t.ok(code == 2 and ":1: column 1: unknown key '…' (text of the file is not shown to root's caller)\n" in said,
             "underwatt-actuator says why its line is short", f"{code} {said}")
        # What every user may read: root is shown it, too, by the programs that check before they do anything.
        path.write_text(FILES["key"])
        for command in (("underwattd", "--check"), ("underwattd", "--user", "root", "--config"), ("underwattd", "--token-list", "--config"),
                        ("underwatt-actuator", "--check"), ("underwatt-sim", "start", "--machine")):
            code, said = run(command, path)
            t.ok(code == 2 and f":1: unknown key '{SECRET}'" in said and "not every user" not in said,
                 f"{' '.join(command)} shows root what everybody may read", f"{code} {said}")
        path.chmod(0o600)
        for command in (("underwattd", "--check"), ("underwattd", "--user", "root", "--config")):
            code, said = run(command, path)
            t.ok(code == 2 and "(its text is not shown: not every user may read it)" in said, "the line says why it is short",
                 f"{code} {said}")
    t.done()


if __name__ == "__main__":
    sys.exit(main())
