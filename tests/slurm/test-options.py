"""The options of the SPANK plugin in srun, sbatch, salloc, scripts and the environment: what reaches the daemon's socket from
prolog and epilog, and what is refused before a job is submitted."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import pretender  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required()
# Slurm counts the lines, those of NodeName after the others: 0 is the device with minor number 4.
GRES = "Name=gpu File={dev}/nvidia[4-5]\nNodeName=n[1-9] Name=gpu File={dev}/nvidia3,{dev}/nvidia[0-2]\nName=gpu File={dev}/nvidia[6-7]\n"
LABELS = {"slurm.partition": "main", "slurm.account": "teama"}


def begun(asked, **more):
    """The body of the job's request, without what every job has."""
    puts = [body for method, _, body in asked if method == "PUT"]
    for body in puts:
        for key, value in (("labels", LABELS), ("uid", 5)):
            if body.get(key) == value:
                del body[key]
    return puts


def jobs(c, server):
    """Every way in which a job can have the option."""
    cap = {"gpu_minors": [4, 5], "cap": "200 W"}
    ways = {
        "srun": lambda: c.srun("--gpus=2", "--gpu-power-cap=200", "true"),
        "srun, the environment": lambda: c.srun("--gpus=2", "true", env={"SLURM_GPU_POWER_CAP": "200 W"}),
        "srun, the option before the environment": lambda: c.srun(
            "--gpus=2", "--gpu-power-cap", "200", "true", env={"SLURM_GPU_POWER_CAP": "250"}),
        "sbatch": lambda: c.sbatch("exit 0", "--gpus=2", "--gpu-power-cap=200W"),
        "sbatch, the environment": lambda: c.sbatch("exit 0", "--gpus=2", env={"SLURM_GPU_POWER_CAP": "200"}),
        "#SBATCH": lambda: c.sbatch("#!/bin/sh\n#SBATCH --gpus=2 --gpu-power-cap=200\n"),
        "salloc": lambda: c.run("salloc", "-Q", "--gpus=2", "--gpu-power-cap=200", "srun", "true", user=cluster.USER),
    }
    for name, run in ways.items():
        p = run()
        t.ok(isinstance(p, int) or p.returncode == 0, f"{name}: the job runs", p)
        uwtest.wait_for(lambda: len(server.asked) >= 2)
        asked = server.taken()
        numbers = {path for _, path, _ in asked}
        t.equal([method for method, _, _ in asked], ["PUT", "DELETE"], f"{name}: the daemon hears of its begin and its end")
        t.ok(len(numbers) == 1 and numbers.pop().startswith("/v1/jobs/slurm:"), f"{name}: … of the same job", asked)
        t.equal(begun(asked), [cap], f"{name}: … with the cap and the devices' minor numbers")


def others(c, server):
    for name, words, env, want in (
            ("a percentage", ["--gpus=1", "--gpu-power-cap=85%"], {}, {"gpu_minors": [4], "cap": "85%"}),
            ("a preset", ["--gpus=1", "--gpu-power-cap=balanced"], {}, {"gpu_minors": [4], "preset": "balanced"}),
            ("a goal", ["--gpus=1", "--gpu-power-goal=slowdown:1.1"], {}, {"gpu_minors": [4], "goal": "slowdown:1.1"}),
            ("a class", ["--gpus=1", "--gpu-power-class=training"], {}, {"gpu_minors": [4], "class": "training"}),
            ("a goal goes before the environment's cap", ["--gpus=1", "--gpu-power-goal=edp"], {"SLURM_GPU_POWER_CAP": "200"},
             {"gpu_minors": [4], "goal": "edp"}),
            ("a goal goes before a wrong one, too", ["--gpus=1", "--gpu-power-goal=edp"], {"SLURM_GPU_POWER_CAP": "junk"},
             {"gpu_minors": [4], "goal": "edp"}),
            ("no option", ["--gpus=8"], {}, {"gpu_minors": [4, 5, 6, 7, 3, 0, 1, 2]}),
            ("no GPU, a cap", ["--gpu-power-cap=200"], {}, {"gpu_minors": [], "cap": "200 W"})):
        p = c.srun(*words, "true", env=env)
        uwtest.wait_for(lambda: len(server.asked) >= 2)
        t.equal((p.returncode, begun(server.taken())), (0, [want]), name)
    p = c.run("salloc", "-Q", "--gpus=1", "--gpu-power-goal=edp", "srun", "true", user=cluster.USER)
    uwtest.wait_for(lambda: len(server.asked) >= 2)
    t.equal((p.returncode, begun(server.taken())), (0, [{"gpu_minors": [4], "goal": "edp"}]), "salloc with a goal")
    t.equal(c.srun("true").returncode, 0, "a job without GPUs or options runs")
    uwtest.wait_for(lambda: server.asked)
    t.equal([method for method, _, _ in server.taken()], ["DELETE"], "… of which the daemon hears the end alone")
    p = c.run("salloc", "-Q", "--gpus=1", "--gpu-power-cap=200", "true", user=cluster.USER)
    uwtest.wait_for(lambda: server.asked)
    t.equal([method for method, _, _ in server.taken()], ["DELETE"], "an allocation without a step has an epilog alone")
    out = c.sbatch("srun true; srun --gpu-power-cap=150 true; srun true & srun true; wait", "--gpus=2", "--gpu-power-cap=200", "-n2")
    uwtest.wait_for(lambda: len(server.asked) >= 2)
    asked = server.taken()
    t.equal([method for method, _, _ in asked], ["PUT", "DELETE"], f"steps of a job change nothing ({out})")
    for name, words, env, script in (
            ("steps in a job with a goal and the environment's cap", ["--gpu-power-goal=edp"], {"SLURM_GPU_POWER_CAP": "200"}, "srun true"),
            ("a step with an option that its job has not", ["--gpu-power-cap=200"], {}, "srun --gpu-power-goal=edp --gpu-power-cap=nothing true"),
            ("a step of a job without a cap", [], {}, "SLURM_GPU_POWER_CAP=abc srun true")):
        job = c.sbatch(script, "--gpus=1", *words, env=env)
        t.equal(c.ended(job), ["COMPLETED"], f"{name}: it runs")
    uwtest.wait_for(lambda: len(server.asked) >= 6)
    server.taken()
    outer = c.sbatch("SLURM_GPU_POWER_CAP=150 sbatch -o /dev/null --gpus=1 --wrap true; sbatch -o /dev/null --gpus=1 --gpu-power-goal=edp --wrap true",
                     "--gpus=1", "--gpu-power-cap=200")
    uwtest.wait_for(lambda: len(server.asked) >= 6)
    t.equal(sorted(str([body.get("cap"), body.get("goal")]) for body in begun(server.taken())),
            ["['150 W', None]", "['200 W', None]", "[None, 'edp']"], f"a job that is submitted by a job has its own cap or goal ({outer})")
    said = " ".join(c.run("srun", "--help").stdout.split())
    t.ok("--gpu-power-cap=CAP" in said and "slowdown:F, time" in said, "srun --help has the option, and all goals", said[-1500:])


def scripts(c, server):
    """The command line goes before the script, where Slurm lets it."""
    cap = "#!/bin/sh\n#SBATCH --gpus=1 --gpu-power-cap=200\n"
    path = pathlib.Path(c.path("work/capped.sh"))
    path.write_text(cap)
    for name, words, want in (("another cap", ["--gpu-power-cap=150"], {"gpu_minors": [4], "cap": "150 W"}),
                              ("a goal", ["--gpu-power-goal=edp"], {"gpu_minors": [4], "goal": "edp"})):
        p = c.run("sbatch", "-o", "/dev/null", *words, path, user=cluster.USER)
        uwtest.wait_for(lambda: len(server.asked) >= 2)
        t.equal((p.returncode, begun(server.taken())), (0, [want]), f"a script with a cap, {name} on the command line")
    t.ok("underwatt: --gpu-power-goal goes before the script's --gpu-power-cap" in p.stderr, "… which a line says", p.stderr)
    path.write_text(cap.replace("cap=200", "goal=edp") + "sbatch -o /dev/null inner.sh\n")
    path.with_name("inner.sh").write_text(cap.replace("cap=200", "goal=energy"))
    p = c.run("sbatch", "-o", "/dev/null", "--gpu-power-cap=150", path, user=cluster.USER)
    uwtest.wait_for(lambda: len(server.asked) >= 4)
    t.equal((p.returncode, [(body.get("cap"), body.get("goal")) for body in begun(server.taken())]), (0, [("150 W", None), (None, "energy")]),
            "a script with a goal, a cap on the command line, and a script with a goal that it submits")
    t.equal(p.stderr.count("underwatt: --gpu-power-cap goes before the script's --gpu-power-goal"), 1, "… which a line says")
    p = c.run("sbatch", "-o", "/dev/null", path.with_name("inner.sh"), "--gpu-power-cap=150", user=cluster.USER, env={"SLURM_GPU_POWER_CAP": "200"})
    uwtest.wait_for(lambda: len(server.asked) >= 2)
    t.equal((p.returncode, begun(server.taken())), (0, [{"gpu_minors": [4], "goal": "energy"}]), "a word for the script is no option of the job's")
    p = c.run("sbatch", "-o", "/dev/null", "--gpu-power-cap=999", path, user=cluster.USER)
    t.ok(p.returncode != 0 and "999 W is above 300 W" in p.stderr.splitlines()[0], "a wrong cap on the command line is refused all the same", p.stderr)
    path.write_text(cap.replace("cap=200", "cap=200 --gpu-power-goal=edp"))
    p = c.run("sbatch", "-o", "/dev/null", path, user=cluster.USER)
    t.ok(p.returncode != 0 and "--gpu-power-cap or --gpu-power-goal, not both" in p.stderr, "both in the script", p.stderr)
    t.equal(server.taken(), [], "no job came of these")


def steps(c, server):
    """A step's options do not count, from outside of its job, too, and its user is told."""
    says = "underwatt: --gpu-power-cap of a step does not count"
    job = c.sbatch("srun --gpu-power-cap=150 true 2> inside; srun true 2> quiet; exec sleep 600", "--gpus=1", "--gpu-power-cap=200",
                   "-n2", cwd=c.path("work"))
    c.running(job)
    for cap in ("junk", "290"):
        p = c.run("srun", f"--jobid={job}", "--overlap", "-n1", f"--gpu-power-cap={cap}", "true", user=cluster.USER)
        t.ok(p.returncode == 0 and p.stderr.count(says) == 1, f"srun --jobid with --gpu-power-cap={cap}: it runs, and a line says what counts", p.stderr)
    inside, quiet = (pathlib.Path(c.path("work", name)) for name in ("inside", "quiet"))
    t.ok(uwtest.wait_for(quiet.exists) and says in inside.read_text(), "within the job, too", inside.read_text())
    c.run("scancel", job)
    c.ended(job)
    t.ok(says not in quiet.read_text(), "not to who has written none", quiet.read_text())
    t.equal(begun(server.taken()), [{"gpu_minors": [4], "cap": "200 W"}], "the job has its own cap")


def refused(c, server):
    submit = {"srun": ["srun", "-Q"], "salloc": ["salloc", "-Q"], "sbatch": ["sbatch", "--wrap=true"]}
    for words, why in ((["--gpu-power-cap=999"], "999 W is above 300 W, the highest limit of this cluster's boards"),
                       (["--gpu-power-cap=50"], "50 W is below 100 W, the lowest limit of this cluster's boards"),
                       (["--gpu-power-cap=abc"], "'abc' is none of: watts (250), a percentage (85%), aggressive, balanced or minimal"),
                       (["--gpu-power-cap=0"], "'0' must be above 0 W"),
                       (["--gpu-power-cap=101%"], "'101%' must be above 0 % and at most 100 %"),
                       (["--gpu-power-goal=faster"], "goal 'faster' is none of energy, edp, eds:K"),
                       (["--gpu-power-class=hobby"], "class 'hobby' is none of: training, inference"),
                       (["--gpu-power-cap=200", "--gpu-power-goal=edp"], "--gpu-power-cap or --gpu-power-goal, not both")):
        for name, command in submit.items():
            p = c.run(*command, "--gpus=1", *words, *(["true"] if name != "sbatch" else []), user=cluster.USER)
            lines = p.stderr.splitlines()
            t.ok(p.returncode != 0 and lines and lines[0].startswith(f"{name}: error: underwatt: ") and why in lines[0],
                 f"{name} {' '.join(words)} is refused, first by a line of ours", f"{p.returncode} {p.stderr}")
    p = c.srun("--gpus=1", "true", env={"SLURM_GPU_POWER_CAP": "999"})
    t.ok(p.returncode != 0 and "underwatt: SLURM_GPU_POWER_CAP: 999 W is above 300 W" in p.stderr.splitlines()[0],
         "the environment's cap is checked, too", p.stderr)
    p = c.sbatch("#!/bin/sh\n#SBATCH --gpu-power-cap=abc\n")
    t.ok(not isinstance(p, int) and "underwatt: --gpu-power-cap: 'abc'" in p.stderr.splitlines()[0], "so is a script's", p)
    t.equal(server.taken(), [], "no job came of any of them")


def tables(c, server):
    """Without a table only the form is checked; one that cannot be read refuses nobody."""
    for name, plugin, words in (("without a table", "", ["--gpu-power-cap=999", "--gpu-power-class=hobby"]),
                                ("a table that is missing", "boards=/nonexistent", ["--gpu-power-cap=999"]),
                                ("a table with a mistake", f"boards={c.path('bad')}", ["--gpu-power-cap=999"])):
        c.write_plugstack(plugin)
        p = c.srun("--gpus=1", *words, "true")
        uwtest.wait_for(lambda: len(server.asked) >= 2)
        t.ok(p.returncode == 0 and server.taken()[0][2]["cap"] == "999 W", f"{name}: 999 W have the form of a cap", p.stderr)
    p = c.srun("--gpus=1", "--gpu-power-cap=abc", "true")
    t.ok(p.returncode != 0, "… what has not is refused", p.stderr)
    (pathlib.Path(c.path("etc/plugstack.conf"))).write_text("optional /nonexistent/spank_underwatt.so\n")
    p = c.srun("--gpus=1", "--gpu-power-cap=200", "true")
    t.ok(p.returncode != 0 and "unrecognized option '--gpu-power-cap=200'" in p.stderr, "without the library the option is unknown", p.stderr)
    t.equal(c.srun("--gpus=1", "true").returncode, 0, "… and jobs without it run")


with cluster.Cluster(nodes=1, plugin="", gres=GRES, daemon=None) as c:
    table = pathlib.Path(c.path("boards"))
    table.write_text("board v100 100 W 300 W\nclass training\nclass inference\n")
    pathlib.Path(c.path("bad")).write_text("board v100 lots\n")
    c.write_plugstack(f"boards={table}")
    with pretender.Pretender(c.socket("n1")) as server:
        jobs(c, server)
        others(c, server)
        scripts(c, server)
        steps(c, server)
        refused(c, server)
        tables(c, server)
    t.equal(c.rested(), ["idle"], "the node is not drained")
t.done()
