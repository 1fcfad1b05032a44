#!/usr/bin/python3
"""What underwattd says that a job does which does not tell it, from its boards' telemetry:
in /v1/jobs, underwatt jobs, the metrics and the ledger; and nothing where it is not asked.
"""
import sqlite3

import uwtest

t = uwtest.Tap()
LONG = 240  # the machine may be busy
# What a pause is taken for is a guess (docs/design/phases.md says how good): here, that it is told.
CODES = {"train": 1, "validate": 2, "load": 3, "checkpoint": 4, "startup": 5, "idle": 6}


def only(d):
    jobs = d.ask("GET", "/v1/jobs")[1]["jobs"]
    return jobs[0] if len(jobs) == 1 else None


def phase(d):
    job = only(d)
    return job and job["phase"]


with uwtest.Node(count=1, speed=4) as node:
    d = node.daemon(config="node:\n  interval: 2 s\n")
    job = node.train("--workload", "resnet50", "--gpus", "0", "--tells", "steps", "--epochs", 100,
                     "--steps", 150, "--phases", "train,load=120s")
    t.ok(uwtest.wait_for(lambda: phase(d) == "train", LONG), "a job that is found is seen to train", only(d))
    seen = only(d)
    t.equal(seen["phase_by"], "telemetry", "… by its telemetry")
    t.ok(0.5 < seen["phase_confidence"] < 1, "… with how often that is right", seen["phase_confidence"])
    t.ok(seen["phase_s"] >= 0 and seen["phase_since_utc"].endswith("Z"), "… and since when", seen)
    text = uwtest.wait_until(lambda: node.run("underwatt", "jobs").stdout,
                             lambda text: "measured only, trains for" in " ".join(text.split()), LONG)
    t.ok("measured only, trains for" in " ".join(text.split()), "underwatt jobs says so, too", text)
    t.ok("(recognised, confidence " in text, "… with how sure that is", text)
    top = node.run("underwatt", "top", "--once").stdout
    t.ok("JOB USER" in top, "underwatt top has the job", top)
    t.ok(uwtest.wait_for(lambda: phase(d) not in (None, "train", "unknown"), LONG), "… and seen to pause", only(d))

    def told():
        """What the metrics say, where that is what the job shows before and after."""
        before = phase(d)
        lines = [x for x in str(d.ask("GET", "/metrics")[1]).splitlines() if x.startswith("underwatt_job_phase{")]
        return before in CODES and before == phase(d) and [x.split()[-1] for x in lines] == [str(CODES[before])]
    t.ok(uwtest.wait_for(told, LONG), "… and the metrics say what the job shows", (only(d), d.ask("GET", "/metrics")[1]))

    def booked():
        path = node.state + "/underwattd/ledger.sqlite"
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            return {p for p, in db.execute("SELECT DISTINCT phase FROM energy WHERE kind = 1")}

    t.ok(uwtest.wait_for(lambda: 1 in booked() and len(booked() - {None, 1}) > 0, LONG), "energy is booked by phase", booked())
    job.kill()
    job.wait()
    d.stop()

    d = node.daemon(config="jobs:\n  phases: false\n")
    job = node.train("--workload", "resnet50", "--gpus", "0", "--tells", "steps", "--phases", "train")
    t.ok(uwtest.wait_for(lambda: only(d) and only(d)["time_s"] > 12, LONG), "jobs.phases: false, a job of 12 s")
    t.equal((phase(d), only(d)["phase_by"], only(d)["phase_s"]), ("unknown", None, None), "… its phase is unknown")
    t.ok("trains" not in node.run("underwatt", "jobs").stdout, "… and not shown")
    job.kill()
    job.wait()
t.done()
