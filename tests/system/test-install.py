#!/usr/bin/python3
"""`meson install`, into a folder: what an administrator finds and may edit.

Arguments: the folder of the sources of the units.
"""
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

import uwtest

t = uwtest.Tap()


def run(*args, **kw):
    return subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, **kw)


def uncommented(text):
    """The example with every key in force; words after the values stay comments."""
    return re.sub(r"^# (?=( *)[a-z_]+:( |$)(?!FILE))", "", text, flags=re.M)


def marks(text):
    """Each key of the example, with its sections: whether its line has the mark of a restart."""
    ret, above = {}, []
    for spaces, key, rest in re.findall(r"^( *)([a-z_]+):(.*)$", text, re.M):
        above = [*above[:len(spaces) // 2], key]
        if rest.strip():
            ret[".".join(above)] = "(restart)" in rest
    return ret


def check(path):
    p = run(uwtest.program("underwattd"), "--check", str(path))
    return p.returncode, p.stdout + p.stderr


def config_dir():
    options = json.loads(run("meson", "introspect", "--buildoptions", str(uwtest.BUILD)).stdout)
    value = {o["name"]: o["value"] for o in options}
    return pathlib.Path(value["prefix"]) / value["sysconfdir"] / "underwatt"


IN_ETC = 'mount --bind "$1" /etc && shift && exec "$@"'


class Installed:
    """A node whose /etc has these files in our folder, as programs of its world see it."""

    def __init__(self, node, tmp, files):
        self.node, self.etc = node, tmp
        shutil.copytree("/etc", tmp, symlinks=True, ignore=shutil.ignore_patterns("*shadow*", "ssh", "ssl"))
        to = tmp / config_dir().relative_to("/etc")
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir(mode=0o755)
        for name, text in files.items():
            (to / name).write_text(text)

    def command(self, *args):
        return ["/usr/bin/unshare", "--mount", "--propagation", "private", "sh", "-c", IN_ETC, "sh",
                str(self.etc), *self.node.command(args)]


def started(name, house, errors):
    """underwatt-start as the README has it: daemon and actuator are there, and end."""
    with open(errors, "w", encoding="utf-8") as log:
        p = subprocess.Popen(house.command("underwatt-start", "--user", "root"), stdin=subprocess.DEVNULL, stdout=log,
                             stderr=log, env=house.node.env())
    house.node.children.append(p)
    try:
        good = uwtest.wait_for(lambda: p.poll() is not None or "event=ready" in errors.read_text())
        t.ok(good and p.poll() is None, f"{name}: underwatt-start: the daemon is ready", errors.read_text())
        q = run(*house.command("underwatt", "cap", "set", "200", "--gpus", "0", "--for", "1h", "--detach"),
                env=house.node.env())
        t.ok(q.returncode == 0 and uwtest.wait_for(lambda: house.node.board(0)["limit_mw"] < 300000),
             f"{name}: a claim is in force, so the actuator serves", f"{q.stderr} {errors.read_text()}")
    finally:
        p.terminate()
    t.equal(p.wait(timeout=60), 0, f"{name}: and ends in order")


def commands(tmp, name, files):
    """No command of the README is governed by installed files in a simulated world."""
    if os.geteuid() != 0 or run("unshare", "--mount", "true").returncode or config_dir().parts[1] != "etc":
        t.skip(name, "this needs root, unshare --mount and a build whose configuration lies in /etc")
        return
    with uwtest.Node(machine="boards: [{model: v100, count: 2}]") as node:
        house = Installed(node, tmp / f"etc-{len(name)}", files)
        for words, want in ((["underwatt", "list"], 0), (["underwatt", "doctor"], 0),
                            (["underwatt", "measure", "--gpus", "0", "--", "sleep", "0.5"], 0),
                            (["underwatt", "run", "--cap", "85%", "--gpus", "0", "--", "sleep", "0.5"], 0)):
            p = run(*house.command(*words), env=node.env())
            t.ok(p.returncode == want and "/etc/" not in p.stderr, f"{name}: {' '.join(words[:2])}",
                 f"{p.returncode} {p.stdout} {p.stderr}")
        started(name, house, tmp / f"start-{len(name)}.log")
        if files["actuator.yaml"].startswith("clients: nobody"):  # the folder is the one that is looked into
            p = run(*house.command("cat", str(config_dir() / "actuator.yaml")), env=node.env())
            t.equal(p.stdout, files["actuator.yaml"], f"{name}: the files were there to be seen")


def rules(tmp, text):
    """The actuator's example with every key in force."""
    text = uncommented(text)
    t.ok(len(re.findall(r"^ *[a-z_]+:", text, re.M)) >= 5, "the actuator's example shows keys", text)
    path = tmp / "rules.yaml"
    path.write_text(text)
    with uwtest.Node() as node:
        p = node.popen("underwatt-actuator", "--serve", "--config", path, "--library",
                       os.path.join(node.state, "lib", "libnvidia-ml.so.1"))
        good = uwtest.wait_for(lambda: p.poll() is not None or
                               os.path.exists(os.path.join(node.state, "actuator", "actuator.sock")))
        t.ok(good and p.poll() is None, "and is a good configuration with every # taken away",
             p.stderr.read() if p.poll() is not None else "")
        p.terminate()
        p.wait(timeout=20)


def installed(tmp):
    root = tmp / "root"
    install = ["meson", "install", "-C", str(uwtest.BUILD), "--no-rebuild", "--destdir", str(root)]
    p = run(*install, umask=0o077)
    if not t.ok(p.returncode == 0, "it installs into a folder", p.stdout[-2000:] + p.stderr[-2000:]):
        return
    etc = root / str(config_dir()).lstrip("/")
    names = sorted(f.name for f in etc.iterdir()) if etc.is_dir() else []
    t.equal(names, ["actuator.yaml", "underwattd.yaml"], f"configuration lies in {config_dir()}")
    t.ok(all(stat.S_IMODE((etc / n).stat().st_mode) == 0o644 for n in names)
         and stat.S_IMODE(etc.stat().st_mode) == 0o755, "which the daemon's user can read, whatever root's umask")
    for name in ("underwattd", "underwatt-actuator", "underwatt-start"):
        said = run(uwtest.program(name), "--help").stdout
        t.ok(str(config_dir()) in said, f"{name} --help names that folder", said)
    for n in names:
        active = [line for line in (etc / n).read_text().splitlines() if line.strip() and not line.startswith("#")]
        t.equal(active, [], f"everything in {n} is commented out")
    commands(tmp, "the examples as installed", {n: (etc / n).read_text() for n in names})
    code, said = check(etc / "underwattd.yaml")
    t.ok(code == 0, "the example is a good configuration", said)
    text = uncommented((etc / "underwattd.yaml").read_text())
    page = (uwtest.TOP / "docs" / "man" / "underwattd.yaml.5.scd").read_text()
    restart = set(re.findall(r"^\*([a-z_.]+)\*.*[(;] ?restart\)", page, re.M))
    wrong = [key for key, marked in marks(text).items() if marked != (key in restart)]
    t.ok(restart and not wrong, "the example marks the keys that need a restart", wrong)
    t.ok(len(re.findall(r"^ *[a-z_]+:", text, re.M)) >= 20, "it shows keys", text)
    (tmp / "job-map").mkdir()
    text = text.replace("/run/dcgm-job-map", str(tmp / "job-map"))
    for path in re.findall(r"^ *(?:certificate|key): (\S+)", text, re.M):    # of the administrator's
        (tmp / path.rpartition("/")[2]).write_text("")
        text = text.replace(path, str(tmp / path.rpartition("/")[2]))
    (tmp / "all.yaml").write_text(text)
    code, said = check(tmp / "all.yaml")
    t.ok(code == 0, "and stays one with every # taken away", said)
    rules(tmp, (etc / "actuator.yaml").read_text())
    (etc / "actuator.yaml").write_text("clients: alice\n")
    os.chmod(etc / "actuator.yaml", 0o600)
    (etc / "underwattd.yaml").unlink()
    (etc / "underwattd.yaml").symlink_to("/nowhere/managed.yaml")
    p = run(*install)
    t.ok(p.returncode == 0 and (etc / "actuator.yaml").read_text() == "clients: alice\n"
         and stat.S_IMODE((etc / "actuator.yaml").stat().st_mode) == 0o600, "an edited file survives the next one",
         p.stdout[-2000:] + p.stderr[-2000:])
    t.ok((etc / "underwattd.yaml").is_symlink(), "and so does a link to nowhere")


def elsewhere(tmp, source):
    """The folder that is named, and no other."""
    p = run(str(source / "install-config"), str(tmp / "opt/etc/underwatt"), str(source / "actuator.yaml"))
    t.ok(p.returncode == 0 and (tmp / "opt/etc/underwatt/actuator.yaml").is_file(), "another folder is honoured",
         p.stderr)
    said = run("make", "-n", "install", "PREFIX=/opt/uw", "BUILD=" + str(uwtest.BUILD), cwd=uwtest.TOP).stdout
    t.ok("--prefix=/opt/uw --sysconfdir=/opt/uw/etc" in said, "a prefix of its own has its own etc", said)
    said = run("make", "-n", "install", "PREFIX=/usr", "SYSCONFDIR=/srv/etc", "BUILD=" + str(uwtest.BUILD),
               cwd=uwtest.TOP).stdout
    t.ok("--prefix=/usr --sysconfdir=/srv/etc" in said, "SYSCONFDIR is honoured", said)


def removed(tmp):
    """`make uninstall`: the files of the last install alone, not those below another DESTDIR."""
    root = tmp / "root"
    listed = str(uwtest.BUILD / "meson-logs/install-log.txt")
    files = [p for p in root.rglob("*") if not p.is_dir() or p.is_symlink()]
    p = run(str(uwtest.TOP / "tools/uninstall"), listed, str(tmp / "other"))
    t.ok(p.returncode == 1 and "not below it" in p.stderr and all(os.path.lexists(f) for f in files),
         "uninstall below another DESTDIR is refused", p.stdout + p.stderr)
    program = next(f for f in files if f.name == "underwattd" and f.parent.name in ("bin", "sbin"))
    foreign = program.with_name("of-somebody-else")
    foreign.write_text("")
    p = run(str(uwtest.TOP / "tools/uninstall"), listed, str(root))
    t.ok(p.returncode == 0 and "files were removed" in p.stdout and not program.exists() and foreign.exists()
         and (root / str(config_dir()).lstrip("/") / "actuator.yaml").exists(),
         "uninstall: programs go, settings and others' files stay", p.stdout + p.stderr)


def readme():
    """What docs/install.md tells to type names what is there."""
    part = (uwtest.TOP / "docs/install.md").read_text()
    for word in ("make install", "ldconfig", "systemd-sysusers", "systemd-tmpfiles --create", "daemon-reload",
                 "useradd --system", "underwattd --check /etc/underwatt/underwattd.yaml", "systemctl enable --now"):
        t.ok(word in part, f"docs/install.md says {word}")
    units = set(re.findall(r"systemctl (?:enable --now|status|restart) ([a-z -]+?)(?:  |$)", part, re.M))
    for unit in {u for line in units for u in line.split()}:
        t.ok(any((uwtest.TOP / "deploy/systemd").glob(f"{unit}.*")), f"there is a unit {unit}")


def main():
    if not shutil.which("meson"):
        uwtest.skip_all("meson: not installed")
    with tempfile.TemporaryDirectory(prefix="uw-install-") as tmp:
        installed(pathlib.Path(tmp))
        commands(pathlib.Path(tmp), "wrong files", {"actuator.yaml": "clients: nobody-at-all\ngrace: 5\n",
                                                    "underwattd.yaml": "nonsense: 1\n"})
        elsewhere(pathlib.Path(tmp), pathlib.Path(sys.argv[1]))
        removed(pathlib.Path(tmp))
    readme()
    t.done()


main()
