"""The plugin under AddressSanitizer and UBSan in a real slurmd's prologs and epilogs, and in srun, with answers made at random: the
sanitizers have nothing to say, and jobs run."""
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import pretender  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required()
PLUGIN = uwtest.BUILD / "tests" / "slurm" / "spank_underwatt_sanitized.so"
RUNTIME = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False).stdout.strip()
if not PLUGIN.exists() or "/" not in RUNTIME:
    uwtest.skip_all("the sanitized plugin was not built, or gcc has no libasan.so")
JOBS, SEED = 60, 20261126
dice = random.Random(SEED)
WHOLE = (b'HTTP/1.1 201 Created\r\nContent-Length: 76\r\n\r\n{"id":7,"name":"slurm:4711","gpus":[0],"uuids":["GPU-1"],"refused":"cap: no"}',
         b'HTTP/1.1 422 x\r\nContent-Length: 22\r\n\r\n{"error":"a\\"b\\\\\\u0041"}', pretender.ENDED)


def answer(link, _):
    """A right answer, cut short or with bytes changed; now and then a long one."""
    data = bytearray(dice.choice(WHOLE))
    for _ in range(dice.randrange(4)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    if dice.random() < 0.3:
        del data[dice.randrange(len(data)):]
    if dice.random() < 0.1:
        data += bytes(dice.randrange(256) for _ in range(dice.choice((4096, 5000, 70000))))
    link.sendall(data)


with cluster.Cluster(nodes=1, plugin="", library=PLUGIN, daemon=None, preload=RUNTIME, stepd=(
        f"LD_PRELOAD={RUNTIME} ASAN_OPTIONS=detect_leaks=0:log_path={{dir}}/sanitizer UBSAN_OPTIONS=print_stacktrace=1:log_path={{dir}}/sanitizer-ub exec /usr/sbin/slurmstepd \"$@\"")) as c:
    table = pathlib.Path(c.path("boards"))
    table.write_text("board v100 100 W 300 W\nclass training\n")
    c.write_plugstack(f"boards={table}")
    env = {"LD_PRELOAD": RUNTIME, "ASAN_OPTIONS": f"detect_leaks=0:log_path={c.path('sanitizer-client')}"}
    for words in (["--gpu-power-cap=abc"], ["--gpu-power-cap=999"], ["--gpu-power-goal=x:y"], ["--gpu-power-class=" + "c" * 300]):
        p = c.run("srun", "-Q", "--gpus=1", *words, "true", env=env)
        t.ok(p.returncode not in (0, 1) or "underwatt: " in p.stderr, f"srun {words[0][:40]} is refused", p.stderr)
        t.ok("AddressSanitizer" not in p.stderr, "… and the sanitizers are silent", p.stderr)
    with pretender.Pretender(c.socket("n1"), answer) as server:
        job = c.sbatch("exit 0", "--gpus=1", "--gpu-power-cap=200", f"--array=1-{JOBS}", env=env)
        over = c.emptied(150)
        t.equal((over, c.rested()), ("", ["idle"]), f"{JOBS} jobs have run, the node is not drained (seed {SEED})")
        asked = server.taken()
    t.ok(len(asked) >= JOBS, f"{len(asked)} hooks asked the daemon", asked[:3])
    loaded = [line for line in c.log("n1").splitlines() if "underwatt" in line]
    t.ok(any("underwatt: " in line for line in loaded), "the sanitized plugin was loaded and said so", c.log("n1")[-2000:])
    t.ok(not any("undefined symbol" in line or "cannot open" in line for line in loaded), "… without a fault", loaded[:5])
    reports = sorted(pathlib.Path(c.dir).glob("sanitizer*"))
    t.equal([r.read_text(errors="replace")[:2000] for r in reports], [], "the sanitizers are silent")
t.done()
