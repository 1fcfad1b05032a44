"""docs/slurm.md, from the plugin's package to its removal: its files are written as they stand there, its commands run as they stand
there, on a cluster that has no plugin at first.  Paths of the system are those of the cluster; apt and systemctl are stood in for:
the packages themselves are tried by tests/system/test-deb.py."""
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required()
PAGE = (uwtest.TOP / "docs" / "slurm.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:^([^\n]*)\n\n)?```(\w*)\n(.*?)```", PAGE, re.M | re.S)
FILES = {re.search(r"`(/etc/slurm/[a-z.-]+)`", before).group(1): text for before, kind, text in BLOCKS
         if not kind and re.search(r"`/etc/slurm/[a-z.-]+`", before)}
COMMANDS = [line for _, kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]


def stand_ins(c):
    """apt puts the library where Slurm looks for it, or takes it away; systemctl asks the test."""
    tools = pathlib.Path(c.path("tools"))
    tools.mkdir()
    library = c.path("plugins", "spank_underwatt.so")
    for name, script in (("sudo", 'exec "$@"'), ("apt", f'case $1 in install) cp {cluster.PLUGIN} {library} ;; remove) rm {library} ;; esac'),
                         ("systemctl", f'[ "$*" = "restart slurmd" ] && touch {c.path("restart")}'),
                         ("underwatt", f'SLURMD_NODENAME=n1 exec {uwtest.program("underwatt-sim")} --state {c.nodes["n1"].state} exec -- '
                                       f'{uwtest.program("underwatt")} "$@"')):
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    return str(tools)


def here(c, text):
    return text.replace("/etc/slurm", c.path("etc")).replace("/dev/nvidia", c.path("dev/nvidia")) \
        .replace("/run/underwatt/underwattd.sock", c.socket("n1"))


with cluster.Cluster(nodes=1, conf="PluginDir={plugins}:{debian}\nPrologFlags=Contain\n") as c:
    began = time.monotonic()
    tools = stand_ins(c)
    place = pathlib.Path(c.path("clean"))
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    (place / "job.sh").write_text("#!/bin/sh\nsrun sleep 600\n")
    t.equal(sorted(FILES), ["/etc/slurm/gpu-boards", "/etc/slurm/gres.conf", "/etc/slurm/plugstack.conf"], "the page shows these files")
    t.ok("PrologFlags=Contain" in PAGE, "and what slurm.conf has")
    seen, files = {}, dict(FILES)
    for line in COMMANDS:
        if line == "underwatt jobs":
            uwtest.wait_for(lambda: c.jobs("n1"))
        if line.startswith("sudo sed"):    # a job that goes on would have no epilog of ours
            c.run("scancel", "-u", cluster.USER)
            c.rested()
        user = None if line.startswith("sudo") or line.startswith("underwatt") else cluster.USER
        p = c.run("sh", "-c", here(c, line), user=user, cwd=place, env={"PATH": tools + ":" + uwtest.programs_path() + ":" + cluster.SBIN})
        doctor = line == "underwatt doctor"
        t.ok(p.returncode == 0 or doctor, f"$ {line}", f"{p.stdout}{p.stderr}")
        seen[line] = p.stdout
        if "apt install" in line:
            for path, text in files.items():
                pathlib.Path(here(c, path)).write_text(here(c, text))
        if os.path.exists(c.path("restart")):
            os.unlink(c.path("restart"))
            time.sleep(1.1)    # the pid file is younger than plugstack.conf, in whole seconds
            c.restart_slurmd("n1")
    said = " ".join(seen["underwatt doctor"].split())
    t.ok(re.search(r"\bok slurm \S+ names spank_underwatt.so; \S+ has 8 GPUs of this node", said), "doctor finds nothing amiss with Slurm",
         seen["underwatt doctor"])
    t.ok(seen["underwatt jobs"].count("slurm:") >= 1, "underwatt jobs shows Slurm's jobs", seen["underwatt jobs"])
    t.ok(not os.path.exists(c.path("plugins", "spank_underwatt.so")), "in the end the plugin is gone")
    t.equal(c.srun("--gpus=1", "true").returncode, 0, "and jobs run")
    got, want = c.have("n1", {})
    t.equal(got, want, "no cap is left")
    print(f"# the page took {time.monotonic() - began:.0f} s", flush=True)
t.done()
