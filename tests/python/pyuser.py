"""What tests of the Python package share: the package of this tree on the build's library, and the
tools of requirements.txt in build-python/."""
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

import uwtest  # noqa: E402

PACKAGE = uwtest.TOP / "python"
LIBRARY = pathlib.Path(os.environ.get("UNDERWATT_LIBRARY") or uwtest.BUILD / "src" / "lib" / "libunderwatt.so")
HOME = uwtest.TOP / "build-python"
sys.path.insert(0, str(PACKAGE))
os.environ.setdefault("UNDERWATT_LIBRARY", str(LIBRARY))


def env(**more):
    """Of a program that uses the package of this tree."""
    kept = {k: v for k, v in os.environ.items() if k not in ("UNDERWATT_PROGRESS", "LOCAL_RANK")}
    return {**kept, "PYTHONPATH": str(PACKAGE), "UNDERWATT_LIBRARY": str(LIBRARY), **more}


def installed(name, wanted, over=None, seconds=600):
    """The folder of the programs of build-python/NAME, which has the packages of the lock file `wanted`: made once for each content
    of it; or (None, why not).  over: a lock file's environment (name, file) whose packages it has, too."""
    home = HOME / name
    done = home / "requirements.txt"
    shown = wanted.relative_to(uwtest.TOP)
    content = wanted.read_bytes() + (over[1].read_bytes() if over else b"")
    HOME.mkdir(exist_ok=True)
    with open(HOME / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_bytes() == content:
            return home / "bin", ""
        if home.is_symlink():
            return None, f"build-python/{name} is a link to an environment that is not of {shown}"
        why = _install(home, wanted, over and HOME / over[0], seconds)
        if why:
            return None, f"packages of {shown}: {why}"
        done.write_bytes(content)
    return home / "bin", ""


def _install(home, wanted, below, seconds):
    """Why not; None: all is there."""
    why = _told(["/usr/bin/python3", "-m", "venv", "--clear", str(home)], seconds)
    if below and not why:
        site = next(home.glob("lib/python3*/site-packages"))
        (site / "below.pth").write_text(f"{next(below.glob('lib/python3*/site-packages'))}\n", encoding="utf-8")
    return why or _told([str(home / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
                         "--only-binary", ":all:", "--retries", "2", "--timeout", "60", "-r", str(wanted)], seconds)


def _told(step, seconds):
    """Runs a step of an installation: why it failed, or None."""
    try:
        p = subprocess.run(step, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    if p.returncode == 0:
        return None
    print("\n".join(f"# {line}" for line in p.stderr.splitlines()[-5:]))
    return "no registry, or it refused"


def tools():
    """The folder of the tools' programs; or (None, why not)."""
    return installed("tools", HERE / "requirements.txt")


FRAMEWORKS = HERE.parent / "frameworks" / "requirements.txt"
ZEUS = HERE.parent / "zeus"
LARGE_S = 2400    # 6 GB


def frameworks():
    """The Python that has torch, Transformers and the other frameworks; or (None, why not)."""
    folder, why = installed("frameworks", FRAMEWORKS, seconds=LARGE_S)
    return folder and folder / "python", why


def frameworks_clm():
    """The same with the older Transformers for which Zeus' run_clm was written."""
    folder, why = frameworks()
    if folder:
        folder, why = installed("frameworks-clm", ZEUS / "requirements-clm.txt", ("frameworks", FRAMEWORKS), LARGE_S)
    return folder and folder / "python", why


def zeus_source():
    """Zeus' source, with its tests and examples: build-python/zeus-VERSION; or (None, why not)."""
    wanted = ZEUS / "source.txt"
    name, version = re.search(r"^(\w+)==(\S+)", wanted.read_text(encoding="utf-8"), re.M).groups()
    home = HOME / f"{name}-{version}"
    HOME.mkdir(exist_ok=True)
    with open(HOME / "source.lock", "w", encoding="utf-8") as lock, tempfile.TemporaryDirectory(dir=HOME) as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if home.exists():
            return home, ""
        programs, why = tools()
        why = why or _told([str(programs / "pip"), "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:",
                     "--require-hashes", "--retries", "2", "--timeout", "60", "--dest", folder, "-r", str(wanted)], 600)
        if why:
            return None, f"the source of {name} {version}: {why}"
        shutil.unpack_archive(next(pathlib.Path(folder).glob("*.tar.gz")), folder)
        os.rename(pathlib.Path(folder, home.name), home)
    return home, ""


def in_world(node, code, *args, **more):
    """A Python program on the package of this tree in a simulated node, to its end."""
    return node.run(sys.executable, "-c", code, *args, env={"PYTHONPATH": str(PACKAGE), "UNDERWATT_LIBRARY": str(LIBRARY), **more})


def begun_in_world(node, code, *args, stdin=subprocess.DEVNULL, **more):
    """The same, begun; it is killed when the node ends."""
    return node.popen(sys.executable, "-c", code, *args, stdin=stdin,
                      env={"PYTHONPATH": str(PACKAGE), "UNDERWATT_LIBRARY": str(LIBRARY), "PYTHONUNBUFFERED": "1", **more})

