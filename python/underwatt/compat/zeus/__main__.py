"""python -m underwatt.compat.zeus SCRIPT [ARG...], or -m MODULE [ARG...]: runs an unchanged program for Zeus.

The folder of a package `zeus` that replaces Zeus comes first on PYTHONPATH, so that spawned processes find it, too;
then Python starts again in this process.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

USAGE = (
    "usage: python -m underwatt.compat.zeus SCRIPT [ARG...]\n       python -m underwatt.compat.zeus -m MODULE [ARG...]"
)
PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parents[2]


def environment() -> dict[str, str]:
    """The environment with the package `zeus`, and with this package if the command found it in its working
    directory."""
    folders = [str(PACKAGE.parent / "_on_path")]
    if all(Path(folder or ".").resolve() != ROOT for folder in sys.path[1:]):
        folders.append(str(ROOT))
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*folders, before] if before else folders)}


def options() -> list[str]:
    """The options of the interpreter before -m."""
    words = sys.orig_argv[1:]
    return words[: words.index("-m")] if "-m" in words else []


def refusal(words: list[str]) -> str:
    """The reason why these cannot be run; "": they can."""
    if words[0] == "-m":
        folder = Path.cwd()
    else:
        if not os.access(words[0], os.R_OK):
            why = os.strerror(errno.EACCES if os.path.exists(words[0]) else errno.ENOENT)
            return f"{words[0]}: {why}"
        folder = Path(words[0]).resolve().parent
    if sys.flags.ignore_environment:
        return "python -E and -I ignore PYTHONPATH, by which the package zeus is found"
    another = [path for path in (folder / "zeus", folder / "zeus.py") if path.exists()]
    if another and not getattr(sys.flags, "safe_path", False):
        return f"{another[0]} comes before this package zeus: move it, or run what is elsewhere"
    return ""


def main(words: list[str]) -> int:
    if words[:1] in (["--help"], ["-h"]):
        sys.stdout.write(f"{USAGE}\n")
        return 0
    if not words or (words[0] == "-m" and len(words) < 2) or (words[0].startswith("-") and words[0] != "-m"):
        sys.stderr.write(f"{USAGE}\n")
        return 2
    why = refusal(words)
    if why:
        sys.stderr.write(f"underwatt.compat.zeus: {why}\n")
        return 2
    sys.stdout.flush()
    python = sys.executable or sys.orig_argv[0]
    return os.execve(python, [python, *options(), *words], environment())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
