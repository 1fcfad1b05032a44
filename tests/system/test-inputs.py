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


def two_outputs(node, tmp):
    """Two outputs in one file would leave the second alone."""
    here, link = tmp / "a", tmp / "link"
    here.write_text("kept")
    link.symlink_to("a")
    (tmp / "ran").unlink(missing_ok=True)
    cmd = ["--", "touch", tmp / "ran"]
    sweep = ["sweep", "--sim", "v100", "--workload", "resnet50"]
    for words, says in (
            (["measure", "--report", here, "--json", here, *cmd], f"measure: --json and --report both write to '{here}'"),
            (["run", "--local", "--report", link, "--json", here, *cmd], f"run: --json and --report both write to '{link}'"),
            (["measure", "--report", f"{tmp}/new", "--json", f"{tmp}/./new", *cmd], f"both write to '{tmp}/new'"),
            (["sweep", "--state", here, "--csv", link, *cmd], f"sweep: --state and --csv both write to '{link}'"),
            ([*sweep, "--png", here, "--html", here], "sweep: --png and --html both write to"),
            ([*sweep, "--png", "-", "--html", "-"], "sweep: --png and --html both write to standard output"),
            (["carbon", "--csv", "-", "--json", "-"], "carbon: --csv and --json both write to standard output"),
            (["sweep", "--state", "-", *cmd], "sweep: --state: '-' is standard output, not a file")):
        refused(node.run("underwatt", *map(str, words)), " ".join(map(str, words)), says)
    (tmp / "to-new").symlink_to("new")
    refused(node.run("underwatt", "measure", "--report", f"{tmp}/to-new", "--json", f"{tmp}/new", "--", "true"),
            "a link to a file that is not there", f"both write to '{tmp}/to-new'")
    t.ok(here.read_text() == "kept" and not (tmp / "ran").exists() and not (tmp / "new").exists(), "nothing ran, nothing is written",
         os.listdir(tmp))
    p = node.run("underwatt", *sweep, "--step", "50", "--csv", str(tmp / "b"), "--json", str(tmp / "c"))
    t.ok(p.returncode == 0 and (tmp / "b").exists() and (tmp / "c").exists(), "two files are two outputs", p)
    p = node.run("underwatt", *sweep, "--step", "50", "--csv", "/dev/null", "--svg", "/dev/null")
    t.ok(p.returncode == 0, "a device takes two outputs", p)


def links(node, tmp):
    """Outputs follow links, also to files that are not there yet."""
    (tmp / "deep").mkdir()
    (tmp / "one").symlink_to("two")
    (tmp / "two").symlink_to("deep/state")
    for state in ("made", "replaced"):
        p = node.run("underwatt", "sweep", "--gpus", "0", "--step", "150", "--runs", "1", "--settle", "0", "--quiet", "--state",
                     str(tmp / "one"), "--", "sleep", "0.1")
        t.ok(p.returncode == 0 and (tmp / "one").is_symlink() and (tmp / "two").is_symlink() and
             "underwatt_sweep" in (tmp / "deep" / "state").read_text() and os.listdir(tmp / "deep") == ["state"],
             f"sweep --state: the file behind two links is {state}", f"{p.returncode} {p.stderr} {os.listdir(tmp)}")


def damaged(node, tmp):
    """A CMD whose file the kernel will not execute is no job."""
    text = pathlib.Path("/bin/true").read_bytes()
    for name, data in (("magic", text[:4]), ("header", text[:80]), ("object", text[:16] + b"\1\0" + text[18:])):
        (tmp / name).write_bytes(data)
        (tmp / name).chmod(0o755)
    (tmp / "folder").mkdir()
    for name, says in (("magic", "Exec format error"), ("header", "Exec format error"), ("object", "Exec format error"),
                       ("folder", "Is a directory")):
        for words in (["run", "--goal", "edp"], ["measure"], ["sweep"]):
            refused(node.run("underwatt", *words, "--", str(tmp / name)), f"{words[0]} -- {name}", f"{tmp / name}: {says}", code=126)
    refused(node.run("underwatt", "run", "--", ""), "run -- ''", "run: '': No such file", code=127)


def foreign(node, tmp):
    """A CMD of another machine, which the kernel alone knows to execute."""
    text = pathlib.Path("/bin/true").read_bytes()
    (tmp / "foreign").write_bytes(text[:18] + b"\xff\xfe" + text[20:])
    (tmp / "foreign").chmod(0o755)
    for words in (["run", "--goal", "edp"], ["measure"], ["sweep", "--gpus", "0", "--step", "150"]):
        refused(node.run("underwatt", *words, "--", str(tmp / "foreign")), f"{words[0]} -- foreign",
                f"{tmp / 'foreign'}: Exec format error: it is a program for machine type 65279, this machine is ", code=126)


def not_written(node):
    """What cannot be written is said, with exit 1, or CMD's own status."""
    for words, code in ((["measure", "-q", "--json", "/dev/full", "--", "true"], 1), (["measure", "-q", "--report", "/dev/full", "--", "true"], 1),
                        (["run", "-q", "--local", "--cap", "200W", "--json", "/dev/full", "--", "true"], 1),
                        (["measure", "-q", "--json", "/dev/full", "--", "sh", "-c", "exit 3"], 3), (["list", "--json", "/dev/full"], 1),
                        (["sweep", "--sim", "v100", "--workload", "resnet50", "--step", "50", "--csv", "/dev/full"], 1)):
        p = node.run("underwatt", *words)
        option = "" if words[0] == "list" else words[words.index("/dev/full") - 1] + ": "
        t.ok(p.returncode == code and f"underwatt: {words[0]}: {option}cannot write /dev/full: No space left on device\n" in p.stderr,
             " ".join(words), f"{p.returncode} {p.stderr}")
    for words in (["list"], ["list", "--json", "-"], ["doctor"], ["measure", "-q", "--json", "-", "--", "true"], ["--help"], ["--version"],
                  ["list", "--help"], ["sweep", "--sim", "v100", "--workload", "resnet50", "--step", "50"]):
        p = node.run("sh", "-c", 'exec "$@" >/dev/full', "sh", "underwatt", *words)
        t.ok(p.returncode == 1 and "cannot write to stdout" in p.stderr, f"{' '.join(words)} >/dev/full", f"{p.returncode} {p.stderr}")


def programs_not_written():
    """As not_written(), of the other programs."""
    for name in ("underwattd", "underwatt-actuator", "underwatt-signals", "underwatt-slurm-collector", "underwatt-start", "underwatt-sim"):
        for option in ("--help", "--version"):
            with open("/dev/full", "w") as full:
                p = subprocess.run([uwtest.program(name), option], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            t.ok(p.returncode == 1 and p.stderr == f"{name}: cannot write to stdout\n", f"{name} {option} >/dev/full", p)


def words():
    """What programs without commands say to a word, a file and a user that are not there."""
    for name in ("underwattd", "underwatt-actuator", "underwatt-signals", "underwatt-slurm-collector", "underwatt-start"):
        refused(ask(name, "foo"), f"{name} foo", "unexpected argument 'foo' (see --help)")
        refused(ask(name, "--foo"), f"{name} --foo", "unknown option '--foo' (see --help)")
    for name in ("underwattd", "underwatt-actuator", "underwatt-signals", "underwatt-slurm-collector"):
        for second in ("--check", "--config"):
            refused(ask(name, "--check", "/bad.yaml", second, "/good.yaml"), f"{name} --check A {second} B",
                    f"{name}: {second} '/good.yaml': a second file; '/bad.yaml' is given")
    refused(ask("underwatt-signals", "--check", "/nothere"), "signals --check /nothere", "/nothere: No such file or directory: no source is")
    refused(ask("underwatt-signals", "--check", ""), "signals --check ''", "'': No such file or directory")
    refused(ask("underwattd", "--check", ""), "underwattd --check ''", "'': No such file or directory")
    refused(ask("underwatt", "policy", "check", ""), "policy check ''", "cannot read '': No such file or directory")
    refused(ask("underwatt", "run", "--goal", "--", "true"), "run --goal -- true", "run: --goal needs a value: GOAL")
    refused(ask("underwatt-start", "--actuator-config", "a.yaml"), "--actuator-config a.yaml",
            "--actuator-config: 'a.yaml' is not an absolute path")
    refused(ask("underwatt-start", "--actuator-config", "/nothere"), "--actuator-config /nothere",
            "--actuator-config: cannot read /nothere: No such file or directory")
    if os.geteuid() == 0:
        refused(ask("underwattd", "--user", "nosuch"), "underwattd --user nosuch", "--user nosuch: no such user")
        refused(ask("underwatt-start", "--user", "nosuch"), "underwatt-start --user nosuch", "user 'nosuch' does not exist")


def configurations(tmp):
    """One form of an error in all programs, and a file that is too large."""
    bad, large = tmp / "bad.yaml", tmp / "large.yaml"
    bad.write_text("a: [1\n")
    large.write_bytes(b"#" * (5 << 20))
    for name in (["underwattd", "--check"], ["underwatt-signals", "--check"], ["underwatt-slurm-collector", "--check"],
                 ["underwatt", "policy", "check"]):
        refused(ask(*name, bad), f"{' '.join(name)} BAD", f"{bad}:2: flow sequence without a closing bracket")
        refused(ask(*name, large), f"{' '.join(name)} LARGE", f"{large}: larger than 1048576 bytes")


def main():
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        tmp.chmod(0o755)
        pipes(tmp)
        words()
        programs_not_written()
        configurations(tmp)
        with uwtest.Node(board="v100", count=1) as node:
            two_outputs(node, tmp)
            links(node, tmp)
            not_written(node)
            d = node.daemon()
            damaged(node, tmp)
            status, jobs = d.ask("GET", "/v1/jobs")
            t.ok(status == 200 and not jobs["jobs"], "no job is recorded", jobs)
            foreign(node, tmp)
    t.done()


if __name__ == "__main__":
    main()
