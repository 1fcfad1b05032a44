"""The keeper: `underwatt keep`, a process beside the program that holds boards where no daemon runs.

Its standard input is a pipe that this process holds open for writing.  However the program ends, the pipe closes with
it, and the keeper restores the limits; if the keeper itself is killed, its actuator does.  The processes of a group
(the ranks of one node) share a keeper: its pipe is then a FIFO that each of them holds open.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import hashlib
import http.client
import json
import os
import select
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any

from ._errors import NotSupported, TimeoutError, UnderwattError, error_of

START_S = 60.0  # until its boards are held: its actuator first restores the limits left by killed processes
ANSWER_S = 10.0  # until its node answers a question
END_S = 10.0  # until the limits are restored; usually a fraction of a second

_lock = threading.RLock()
_fds: set[int] = set()  # descriptors that a forked child must close
_shared: dict[tuple[object, ...], _Process] = {}


# ---- descriptors of this process only ----


def _kept(fd: int) -> int:
    _fds.add(fd)
    return fd


def _drop(fd: int) -> None:
    if fd in _fds:
        _fds.discard(fd)
        os.close(fd)


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - another thread of the parent may have it
    _lock = threading.RLock()
    for process in _shared.values():
        process.forget()
    _shared.clear()
    for fd in tuple(_fds):
        _drop(fd)


os.register_at_fork(after_in_child=_after_fork)


# ---- the program ----


def _program() -> str:
    found = shutil.which("underwatt")
    if found is None:
        raise NotSupported(
            "without the daemon, local=True needs the command underwatt, which is not in PATH: install Underwatt, "
            "or start the daemon: systemctl start underwattd, or underwatt-start; for simulated boards underwatt-sim "
            "exec -- underwatt-start",
            errno.ENOTSUP,
        )
    return found


def _read_line(stream: IO[bytes], seconds: float) -> bytes:
    """Reads the first line; less if the time is over, or the stream ends, before its end."""
    until, line = time.monotonic() + seconds, b""
    look = select.poll()  # select() accepts no descriptor above 1023
    look.register(stream, select.POLLIN)
    while not line.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0 or not look.poll(left * 1000):
            break
        more = os.read(stream.fileno(), 4096)
        if not more:
            break
        line += more
    return line


def _why_silent(child: subprocess.Popen[bytes], said: str) -> UnderwattError:
    """The reason why a keeper wrote nothing to its standard output."""
    try:
        status = child.wait(1)
    except subprocess.TimeoutExpired:
        return TimeoutError(f"underwatt keep: not ready within {START_S:g} s", errno.ETIMEDOUT)
    if "unknown command" in said:
        return NotSupported(
            f"local=True needs `underwatt keep`, which {_program()} does not have: install this version of Underwatt",
            errno.ENOTSUP,
        )
    return UnderwattError(f"underwatt keep: {said or f'the process ended with status {status}'}")


def _spawn(words: list[str], env: dict[str, str], pipe: int) -> tuple[subprocess.Popen[bytes], str]:
    """Starts the keeper on the reading end of its pipe; returns its socket.

    It has a session of its own, so that ^C of a terminal reaches only the program, and sudo asks for no password.
    """
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            words, stdin=pipe, stdout=subprocess.PIPE, stderr=errors, env=env, start_new_session=True
        )
        assert child.stdout is not None
        try:
            with child.stdout:
                line = _read_line(child.stdout, START_S)
            if not line.endswith(b"\n"):
                errors.seek(0)
                raise _why_silent(child, errors.read(2000).decode(errors="replace").strip())
            told = json.loads(line)
            if "socket" not in told:
                raise error_of(int(told["errno"]), str(told["error"]))
        except BaseException:
            child.kill()
            child.wait()
            raise
    return child, str(told["socket"])


# ---- shared by the processes of a group: a folder with lock, users, pipe and socket ----


def _runtime_folder() -> str:
    """A folder for this user only, the same as for the commands."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    path = os.path.join(base, "underwatt") if base else f"/tmp/underwatt-{os.getuid()}"
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        about = os.lstat(path)
    except OSError as e:
        said = f" (XDG_RUNTIME_DIR is {base!r})" if base else ""
        raise UnderwattError(f"{path}: cannot be created: {e.strerror}{said}", e.errno) from None
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise UnderwattError(f"{path}: the folder is open to other users", errno.EPERM)
    return path


def _open_lock(folder: str, wait: bool) -> int:
    """A descriptor with the folder's lock; -1: another process has it, or the folder is being removed."""
    path = os.path.join(folder, "lock")
    try:
        if wait:
            os.makedirs(folder, 0o700, exist_ok=True)
        fd = _kept(os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if wait else 0), 0o600))
    except FileNotFoundError:
        return -1
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(path).st_ino == os.fstat(fd).st_ino:
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    _drop(fd)
    return -1


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    until = time.monotonic() + 2 * START_S
    fd = _open_lock(folder, wait=True)
    while fd < 0:
        if time.monotonic() > until:
            raise TimeoutError(f"{folder}: another process holds the lock for over {2 * START_S:g} s", errno.ETIMEDOUT)
        time.sleep(0.02)
        fd = _open_lock(folder, wait=True)
    try:
        yield
    finally:
        _drop(fd)


def _is_unused(folder: str) -> bool:
    """Whether no process of the group is left.  The folder's lock is held."""
    try:
        fd = os.open(os.path.join(folder, "users"), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(fd)


def _remove_leftovers(runtime: str) -> None:
    """Removes folders of groups whose processes were all killed."""
    for name in os.listdir(runtime):
        folder = os.path.join(runtime, name)
        fd = _open_lock(folder, wait=False) if name.startswith("group-") else -1
        if fd < 0:
            continue
        if _is_unused(folder):
            shutil.rmtree(folder, ignore_errors=True)
        _drop(fd)


def _has_reader(fd: int) -> bool:
    look = select.poll()
    look.register(fd, 0)
    return not look.poll(0)


# ---- a keeper's process ----


class _Process:
    """One for all Keepers of this process with the same options; counted with _lock held."""

    def __init__(self, words: list[str], env: dict[str, str], folder: str | None) -> None:
        self.users = 0
        self.socket = ""
        self._words, self._env, self._folder = words, env, folder
        self._child: subprocess.Popen[bytes] | None = None
        self._pipe = self._mark = -1
        try:
            if folder is None:
                self._start(*os.pipe())
            else:
                with _locked(folder):
                    self._join(folder)
        except BaseException:
            self._let_go()
            raise

    def _start(self, reader: int, writer: int) -> None:
        self._pipe = _kept(writer)
        try:
            self._child, self.socket = _spawn(self._words, self._env, reader)
        finally:
            os.close(reader)

    def _join(self, folder: str) -> None:
        path, where = os.path.join(folder, "pipe"), os.path.join(folder, "socket")
        try:
            self._pipe = _kept(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            with open(where, encoding="utf-8") as f:
                self.socket = f.read()
        except OSError:
            self._drop_pipe()
        if self._pipe < 0 or not self.alive:  # not started yet, or it has ended
            self._drop_pipe()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            os.mkfifo(path, 0o600)
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._start(reader, os.open(path, os.O_WRONLY | os.O_CLOEXEC))
            with open(where, "w", encoding="utf-8") as f:
                f.write(self.socket)
        self._mark = _kept(os.open(os.path.join(folder, "users"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        fcntl.flock(self._mark, fcntl.LOCK_SH)

    @property
    def alive(self) -> bool:
        return self._pipe >= 0 and _has_reader(self._pipe)

    def _drop_pipe(self) -> None:
        _drop(self._pipe)
        self._pipe = -1

    def _let_go(self) -> None:
        self._drop_pipe()
        _drop(self._mark)
        self._mark = -1

    def forget(self) -> None:
        """In a forked child: it belongs to the parent."""
        self._let_go()
        if self._child:
            self._child.returncode = 0  # not a child of this process

    def _await(self) -> None:
        """Waits until the limits are restored: the keeper has removed its socket, and at last its folder."""
        until = time.monotonic() + END_S
        folder = os.path.dirname(self.socket)
        if self._child:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(END_S)
        while os.path.exists(folder) and not self._child and time.monotonic() < until:
            time.sleep(0.02)

    def close(self) -> None:
        if self._folder is None:
            self._let_go()
            self._await()
            return
        with _locked(self._folder):
            self._let_go()
            if _is_unused(self._folder):
                self._await()
                shutil.rmtree(self._folder, ignore_errors=True)
            elif self._child:
                self._child.returncode = 0  # the others still need it


class _Link(http.client.HTTPConnection):
    """A connection to a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Keeper:
    """Holds boards for this program; their limits are restored when close() returns.

    group: the same text in all processes that share the keeper; "": only this process.
    gpus: numbers or UUIDs of the boards to hold from the start, by default those of CUDA_VISIBLE_DEVICES, else all.
    more: other boards may get jobs and claims, too, and are held from then on; always true for a group.
    """

    socket: str  # of its node, which answers there like a daemon

    def __init__(
        self,
        group: str = "",
        boards: str | None = None,
        gpus: Sequence[str] | None = None,
        clock: str | None = None,
        more: bool = False,
    ) -> None:
        words = [_program(), "keep"]
        words += ["--more"] if group or more else []
        words += ["--gpus", ",".join(gpus)] if gpus is not None else []
        words += ["--boards", boards] if boards is not None else []
        env = dict(os.environ) if clock is None else {**os.environ, "UNDERWATT_CLOCK": clock}
        folder = None
        if group:
            runtime = _runtime_folder()
            _remove_leftovers(runtime)
            name = hashlib.sha256(repr((group, boards, clock)).encode()).hexdigest()[:16]
            folder = os.path.join(runtime, f"group-{name}")
        self._pid = os.getpid()
        self._key = (group, boards, None if gpus is None else tuple(gpus), clock, more)
        with _lock:
            process = _shared.get(self._key)
            if process is None or not process.alive:
                if process is not None:
                    process.close()
                process = _shared[self._key] = _Process(words, env, folder)
            process.users += 1
        self._process: _Process | None = process
        self.socket = process.socket

    @property
    def alive(self) -> bool:
        """False once it has ended: the limits are restored, and its socket no longer answers."""
        process = self._process
        return process is not None and self._pid == os.getpid() and process.alive

    def cap(self, board: str) -> dict[str, Any]:
        """The state of a board's cap at its node: `state`, `text`, `taken_by`, `holder`, as in GET /v1/gpus/UUID."""
        link = _Link(self.socket)
        try:
            link.request("GET", f"/v1/gpus/{board}")
            answer = link.getresponse()
            told = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise UnderwattError(f"the keeper does not report who holds {board}: {e}") from e
        finally:
            link.close()
        found = told.get("cap") if isinstance(told, dict) else None
        return found if isinstance(found, dict) else {}

    def close(self) -> None:
        """Releases the keeper; does nothing in a forked child, whose parent has it."""
        with _lock:
            process, self._process = self._process, None
            if process is None or self._pid != os.getpid():
                return
            process.users -= 1
            if process.users == 0:
                if _shared.get(self._key) is process:
                    del _shared[self._key]
                process.close()


def _at_exit() -> None:
    with _lock:
        processes = list(_shared.values())
        _shared.clear()
        for process in processes:
            process.close()


atexit.register(_at_exit)
