"""Slurm's commands as scripts of a test, and the collector that runs them."""
import json
import os
import pathlib
import signal
import subprocess

import uwtest

SCRIPTS = {
    "sinfo": 'cat "{0}/sinfo.txt"',
    "squeue": 'cat "{0}/squeue.json"',
    "scontrol": "echo 'PrivateData = none'",
}


class Slurm:
    """folder: an empty one.  Its nodes, and the jobs that run on them: {"n1": [7, 8]}."""

    def __init__(self, folder, nodes):
        self.folder = pathlib.Path(folder)
        (self.folder / "bin").mkdir()
        for name, text in SCRIPTS.items():
            self.script(name, text)
        (self.folder / "sinfo.txt").write_text("".join(f"{n}|main|gpu:2\n" for n in nodes))
        jobs = [{"job_id": job, "job_state": "RUNNING", "partition": "main", "nodes": node, "name": f"job-{job}"}
                for node, ids in nodes.items() for job in ids]
        (self.folder / "squeue.json").write_text(json.dumps({"jobs": jobs}))
        self.collectors = []

    def script(self, name, text):
        path = self.folder / "bin" / name
        path.write_text("#!/bin/sh\n" + text.format(self.folder) + "\n")
        path.chmod(0o755)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for c in self.collectors:
            if c.child.poll() is None:
                c.child.kill()
            c.child.wait()

    def collector(self, config, **env):
        c = Collector(self, config, env)
        self.collectors.append(c)
        return c


class Collector:
    def __init__(self, slurm, config, env):
        self.place = slurm.folder / f"collector-{len(slurm.collectors)}"
        self.config = self.place.with_suffix(".yaml")
        self.config.write_text(config)
        with open(self.place, "wb") as log:
            self.child = subprocess.Popen([uwtest.BUILD / "src" / "collector" / "underwatt-slurm-collector", "--config", self.config],
                                          stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env={**os.environ, **env, "PATH": f"{slurm.folder}/bin:{os.environ['PATH']}"})

    def log(self):
        return self.place.read_text(errors="replace")

    def lines(self, *words):
        return [line for line in self.log().splitlines() if all(w in line for w in words)]

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(timeout=uwtest.PATIENCE)
