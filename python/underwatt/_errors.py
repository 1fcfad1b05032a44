"""The exceptions of the package: one class for each kind of failure, with the library's one-line text."""

from __future__ import annotations

import builtins
import errno as _errno


class UnderwattError(Exception):
    """Any failure of Underwatt.  errno is the library's error number, or None."""

    errno: int | None

    def __init__(self, text: str, errno: int | None = None) -> None:
        super().__init__(text)
        self.errno = errno

    def __str__(self) -> str:
        return str(self.args[0])


class NotSupported(UnderwattError):
    """This board, or this node without the daemon, does not support that."""


class PermissionError(UnderwattError, builtins.PermissionError):
    """This user may not do that."""


class NoDevice(UnderwattError):
    """No driver, or no usable board."""


class NoData(UnderwattError):
    """Nothing is known of that time: a board gave no readings, or the daemon was restarted."""


class DaemonError(UnderwattError, ConnectionError):
    """The daemon does not run, or the peer that answers is not a daemon of this version."""


class TimeoutError(UnderwattError, builtins.TimeoutError):
    """No answer in time."""


class InvalidValue(UnderwattError, ValueError):
    """An invalid argument."""


class IncompatibleLibrary(UnderwattError, ImportError):
    """The library found is not libunderwatt, or has another version."""


_CLASSES: dict[int, type[UnderwattError]] = {
    _errno.ENOTSUP: NotSupported,
    _errno.EPERM: PermissionError,
    _errno.EACCES: PermissionError,
    _errno.ENODEV: NoDevice,
    _errno.ENODATA: NoData,
    _errno.ECONNREFUSED: DaemonError,
    _errno.EPROTO: DaemonError,
    _errno.ETIMEDOUT: TimeoutError,
    _errno.EINVAL: InvalidValue,
}


def error_of(number: int, text: str) -> UnderwattError:
    """The exception for an error number of the library."""
    return _CLASSES.get(number, UnderwattError)(text, number)
