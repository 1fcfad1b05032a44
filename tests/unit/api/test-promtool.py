"""What we write for Prometheus, judged by its own promtool: the metrics of a made-up
node and the rules that we ship.  test-promtool.py TEST-API-METRICS RULES.yml"""
import shutil
import subprocess
import sys

tool = shutil.which("promtool")
if not tool:
    print("1..0 # SKIP no promtool (Debian: prometheus)")
    sys.exit(0)
text = subprocess.run([sys.argv[1], "--print"], capture_output=True, check=True).stdout
n = failed = 0


def ok(good, name, why=""):
    global n, failed
    n += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {n} - {name}")
    for line in why.splitlines()[:20] if not good else []:
        print(f"# {line}")


def check(kind, *args, stdin=None):
    p = subprocess.run([tool, "check", kind, *args], input=stdin, capture_output=True, timeout=60)
    return p.returncode == 0 and (kind != "metrics" or not p.stderr), (p.stdout + p.stderr).decode()


# dcgm-exporter's modelName is no snake_case, and promtool says so: on purpose here, for
# the sake of joins.  Beside it there is to be nothing.
good, why = check("metrics", stdin=text.replace(b",modelName=", b",model_name="))
ok(good, "promtool finds nothing to say about the metrics", why)
good, why = check("metrics", stdin=text)
ok(all("camelCase" in line for line in why.splitlines()), "… and about modelName its spelling", why)
good, why = check("metrics", stdin=text.replace(b"# TYPE underwatt_gpu_info gauge\n", b"# TYPE x\n"))
ok(not good, "it would say so: a broken TYPE line", why)
for rules in sys.argv[2:]:
    good, why = check("rules", rules)
    ok(good, f"promtool takes {rules.rsplit('/', 1)[-1]}", why)
    p = subprocess.run([tool, "test", "rules", rules.replace(".rules.yml", ".test.yml")],
                       capture_output=True, text=True, timeout=60)
    ok(p.returncode == 0, "its alerts fire when they should and not else", p.stdout + p.stderr)
print(f"1..{n}")
sys.exit(1 if failed else 0)
