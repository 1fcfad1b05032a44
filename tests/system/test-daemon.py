"""underwattd as its administrators see it: starts, says that it is ready, reloads, is
alone, ends."""
import os
import pathlib

import uwtest

t = uwtest.Tap()

# A node without anything: --check, usage.
with uwtest.Node(board="v100", count=2) as node:
    file = pathlib.Path(node.tmp, "c.yaml")
    for text, code, words in (
            ("", 0, "OK"),
            ("node:\n  interval: 5 s\n", 0, "OK"),
            ("node:\n  interval: 5\n", 2, "c.yaml:2: "),
            ("node:\n  intervall: 5 s\n", 2, "c.yaml:2: unknown key 'intervall'")):
        file.write_text(text)
        p = node.run("underwattd", "--check", file)
        t.ok(p.returncode == code and words in p.stdout + p.stderr,
             f"--check says {words!r} to {text!r}", p)
    p = node.run("underwattd", "--chekc", file)
    t.ok(p.returncode == 2 and "--chekc" in p.stderr, "an unknown option is a usage error", p)
    if os.geteuid() == 0:
        p = node.run("underwattd")
        t.ok(p.returncode == 1 and "will not run as root" in p.stderr, "never as root unless told",
             p)

    d = node.daemon("node:\n  log: debug\n")
    t.ok(d.child.poll() is None, "runs and says READY=1", d.log())
    second = node.run("underwattd", "--config", d.config,
                      *(["--user", "root"] if os.geteuid() == 0 else []))
    t.ok(second.returncode == 1 and f"process {d.pid}" in second.stderr,
         "a second daemon is refused with the pid of the first", second)

    t.ok(d.reload("node:\n  interval: 7\n"), "a wrong file is answered", d.log())
    t.ok("event=config-refused" in d.log() and "underwattd.yaml:2:" in d.log(),
         "… refused with file and line", d.log())
    t.ok(d.child.poll() is None, "… and the daemon runs on", d.log())
    t.ok(d.reload("node:\n  interval: 7 s\napi:\n  job_socket: /tmp/other.sock\n"),
         "a good file is read", d.log())
    t.ok("key=node.interval in_force=now" in d.log(), "… what is in force is told", d.log())
    t.ok("key=api.job_socket in_force=after-restart" in d.log(),
         "… and what needs a restart", d.log())
    t.equal(d.stop(), 0, "SIGTERM: ends with 0")
    t.ok(d.told("STOPPING=1", 1), "… and told the service manager so")
    try:
        d.start()
        t.ok(True, "starts again over its old lock file")
    except RuntimeError as e:
        t.ok(False, "starts again over its old lock file", e)
t.done()
