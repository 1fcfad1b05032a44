"""Monitor: windows over this node's boards, as a client of the daemon or by reading the boards directly."""

from __future__ import annotations

import atexit
import errno
import functools
import inspect
import math
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar, cast, overload

from . import _native
from ._errors import DaemonError, InvalidValue, NoData, NoDevice, TimeoutError, UnderwattError
from ._frames import warn
from ._log import Log
from ._node import Board, Node, open_node
from ._results import Energy, Price
from ._sync import Sync, sync_of
from ._window import Collector, Window

EXIT_S = 10.0  # longest wait at the program's end for the energies of a log or a summary
AWAY_S = (1.0, 30.0)  # time without windows after the daemon was absent or did not answer

SIGNALS_S = 60.0  # time for which a carbon intensity or a price of the daemon is used
TRACKED = 1000  # windows kept by a tracked function

Call = TypeVar("Call", bound=Callable[..., Any])


def visible(boards: tuple[Board, ...], text: str | None) -> tuple[Board, ...]:
    """The boards in CUDA_VISIBLE_DEVICES: numbers of the boards that this process may use, or UUIDs, up to the first
    invalid entry."""
    if text is None:
        return boards
    found: list[Board] = []
    mine = [b for b in boards if not b._closed]
    for word in text.split(","):
        name = word.strip()
        of_name = [b for b in boards if b.id.startswith(name)] if name.startswith("GPU-") else []
        if name.isdecimal() and int(name) < len(mine):
            of_name = [mine[int(name)]]
        if len(of_name) != 1 or of_name[0] in found:
            break
        found.append(of_name[0])
    return tuple(found)


def chosen(boards: tuple[Board, ...], gpus: Iterable[int | str] | int | None) -> tuple[Board, ...]:
    """The boards by number or UUID; None: those of CUDA_VISIBLE_DEVICES."""
    if gpus is None:
        found = visible(boards, os.environ.get("CUDA_VISIBLE_DEVICES"))
        if not found:
            raise NoDevice(f"CUDA_VISIBLE_DEVICES leaves none of {len(boards)} boards")
        return found
    of: dict[int | str, Board] = {**{b.index: b for b in boards}, **{b.id: b for b in boards}}
    wanted = [gpus] if isinstance(gpus, (str, int)) else list(gpus)
    if not wanted:
        raise InvalidValue("gpus is empty: give at least one board")
    unknown = [g for g in wanted if g not in of]
    if unknown:
        numbers = f"0..{boards[-1].index}" if boards else "none here"
        raise InvalidValue(f"gpus: {unknown[0]!r} is not a board: give numbers ({numbers}), as in gpus=[0], or UUIDs")
    return tuple(dict.fromkeys(of[g] for g in wanted))


def price_of(price: float | str | Price | None) -> Price | None:
    """Converts 0.3, "0.30 EUR" or a Price."""
    if price is None:
        return None
    if isinstance(price, Price):
        found = price
    else:
        number, _, currency = str(price).strip().partition(" ")
        try:
            found = Price(float(number), currency.strip())
        except ValueError:
            raise InvalidValue(f"price_kwh '{price}' is not a number and a currency, as in '0.30 EUR'") from None
    if len(found.currency.split()) > 1:
        raise InvalidValue(f"price_kwh '{price}' has the currency '{found.currency}', which is more than one word")
    if not 0 <= found.per_kwh < math.inf:
        raise InvalidValue(f"price_kwh '{price}' is not a price of 0 or above")
    return found


def signal_price(signal: tuple[float, str] | None) -> Price | None:
    """The price of a value and its unit, such as (80.0, "EUR/MWh")."""
    if signal is None:
        return None
    currency, _, per = signal[1].partition("/")
    factor = {"kWh": 1.0, "MWh": 1e-3}.get(per)
    return None if factor is None else Price(signal[0] * factor, currency)


def gco2e_of(gco2e_kwh: float | None) -> float | None:
    """Converts 400 or "400"."""
    if gco2e_kwh is None:
        return None
    try:
        grams = float(gco2e_kwh)
    except (TypeError, ValueError):
        grams = math.nan
    if not 0 <= grams < math.inf:
        raise InvalidValue(f"gco2e_kwh '{gco2e_kwh}' is not a number of grams per kWh of 0 or above, as in 400")
    return grams


def truth_of(name: str, value: object) -> bool:
    """True or False: local="no" would be true."""
    if not isinstance(value, bool):
        raise InvalidValue(f"{name} {value!r} is neither True nor False")
    return value


def _opener(boards: str | None, socket: str | None, flags: int) -> Callable[[], Node]:
    # underwatt-sim exec sets UNDERWATT_CLOCK for all programs of its world.
    clock = os.environ.get("UNDERWATT_CLOCK")
    return lambda: open_node(boards, socket, clock, flags)


class Monitor:
    """Measures windows of energy.

    gpus: boards by number or UUID; None: those of CUDA_VISIBLE_DEVICES, else all.
    sync: "auto" waits for the work queued by torch, jax and cupy when a window begins and ends.
    log: a CSV file, one row for each window.  summary: a line at the program's end.
    gco2e_kwh, price_kwh: for gCO2e and cost; None: the values of the daemon's signals, if it has them.
    null: measures nothing, for machines without a GPU.
    boards, socket, local: as `underwatt --boards`, the daemon's socket, and no daemon.
    """

    def __init__(
        self,
        gpus: Iterable[int | str] | int | None = None,
        *,
        sync: str | Sync | None = "auto",
        log: str | os.PathLike[str] | None = None,
        summary: bool = False,
        gco2e_kwh: float | None = None,
        price_kwh: float | str | Price | None = None,
        null: bool = False,
        boards: str | None = None,
        socket: str | None = None,
        local: bool = False,
    ) -> None:
        self._sync = sync_of(sync)
        for option, value in (("summary", summary), ("null", null), ("local", local)):
            truth_of(option, value)
        self._gco2e_kwh = gco2e_of(gco2e_kwh)
        self._price = price_of(price_kwh)
        self._open_node: Callable[[], Node] | None = None
        self._node: Node | None = None
        self._boards: tuple[Board, ...] = ()
        if not null:
            self._open_node = _opener(boards, socket, _native.LOCAL if local else 0)
            self._node = self._open_node()
            self._boards = chosen(self._node.boards(), gpus)
        self._signals: tuple[float | None, Price | None] = (None, None)
        self._signals_until = 0.0
        self._closed = False
        self._away_until = 0.0  # by time.monotonic()
        self._away_s = AWAY_S[0]
        self._away_error: UnderwattError | None = None
        self._warned = False
        # Columns for all boards: the ranks of a training share a log, each with its own boards.
        columns = [f"gpu{b.index}" for b in self._node.boards()] if self._node else []
        self._log = Log(os.fspath(log), columns) if log is not None else None
        self._collector = Collector(self._known)
        self._lock = threading.Lock()
        self._whole = self.window("run").begin() if summary else None
        weakref.finalize(self, self._collector.end).atexit = False
        _monitors.add(self)

    # ---- properties ----

    @property
    def boards(self) -> tuple[Board, ...]:
        """The boards that it measures."""
        self._here()
        return self._boards

    @property
    def source(self) -> str:
        """ "daemon", "local" or "null"."""
        node = self._here()
        return node.source if node else "null"

    def window(self, name: str = "", *, samples: bool = False) -> Window:
        """A window that begins when it is entered.  samples: with the boards' power over time."""
        if self._closed:
            raise UnderwattError("the monitor is closed")
        return Window(self, name, samples)

    @overload
    def track(self, function: Call) -> Call: ...
    @overload
    def track(self, function: str | None = None, *, name: str | None = None) -> Callable[[Call], Call]: ...
    def track(self, function: Call | str | None = None, *, name: str | None = None) -> Any:
        """A decorator, like underwatt.track: each call of the function is a window of this monitor."""
        return _tracker(function, name, lambda: self)

    def close(self, seconds: float = EXIT_S) -> None:
        """Waits for the energies of ended windows, but not longer than this; open windows are lost."""
        self._close(time.monotonic() + seconds, drain=True)

    def _close(self, until: float, drain: bool) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._whole is not None:
            self._summarize(until)
        if drain:
            self._collector.drain(until)
        self._collector.end()
        if self._log is not None:
            self._log.close()
        if self._node is not None:
            self._node.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _summarize(self, until: float) -> None:
        window = self._whole
        if window is None or window._pid != os.getpid():
            return
        window._end(sync=False)
        try:
            text = window.wait(max(0.0, until - time.monotonic())).line()
        except UnderwattError as e:
            text = f"energy unknown: {e}"
        print(f"underwatt: {text}", file=sys.stderr)  # noqa: T201 - asked for

    # ---- windows ----

    def _begin(self, window: Window) -> None:
        """Never raises: a failure is reported by the window's energy."""
        if self._open_node is None:
            return
        if time.monotonic() < self._away_until and self._away_error is not None:
            window._fail(self._away_error)
            self._warn(self._away_error)
            return
        try:
            node = self._here()
            if node is not None:
                self._collector.start()
                window._opened(node, node.begin())
            self._away_s, self._away_error = AWAY_S[0], None
        except UnderwattError as e:
            window._fail(e)
            self._trouble(e)
            self._warn(e)

    def _trouble(self, error: UnderwattError) -> None:
        """Notes a failure of the daemon: it is not queried for a while."""
        if isinstance(error, TimeoutError):
            self._away_s = AWAY_S[1]  # it hangs: the next attempt may take as long
        if isinstance(error, (DaemonError, TimeoutError)):
            self._away_until = time.monotonic() + self._away_s
            self._away_s = min(2 * self._away_s, AWAY_S[1])
            self._away_error = error.with_traceback(None)  # a traceback would keep the caller's variables alive

    def _warn(self, error: UnderwattError) -> None:
        if not self._warned:
            self._warned = True
            warn(f"windows are not measured: {error}")

    def _end(self, window: Window) -> None:
        if self._log is not None:
            self._log.note_rank()
        if window._node is None:
            if window._result is None:  # a window of the null monitor
                window._know(Energy(window.name, window._began, window.seconds, source="null"))
            if self._log is not None:
                self._known(window)
            return
        try:
            assert window._handle is not None
            window._node.stop(window._handle)
        except UnderwattError as e:
            window._fail(e)
        if window is not self._whole:
            self._collector.add(window)

    def _collect(self, window: Window, patient: bool) -> bool:
        """Takes the energy of an ended window; returns whether it is known now.  patient: as of Node.ready()."""
        node, handle = window._node, window._handle
        if node is None or handle is None:
            return window._result is not None
        with node.lock:
            if window._result is not None:
                return True
            try:
                if not node.ready(handle, patient):
                    return False
                window._know(self._read(node, window))
            except UnderwattError as e:
                if e.errno == errno.EAGAIN:
                    return False
                window._know(e)
        return True

    def _read(self, node: Node, window: Window) -> Energy:
        assert window._handle is not None
        read = [node.energy(window._handle, board, window._samples) for board in self._boards]
        gpus = tuple(device for device, _ in read)
        if not any(g.known for g in gpus):
            raise NoData(f"window '{window.name}': {gpus[0].why}")
        gco2e_kwh, price = self._factors(node)
        return Energy(
            name=window.name,
            began=window._began,
            time_s=max(time_s for _, time_s in read),
            gpus=gpus,
            processors=node.processors(window._handle),
            source=node.source,
            gco2e_kwh=gco2e_kwh,
            price=price,
        )

    def _factors(self, node: Node) -> tuple[float | None, Price | None]:
        """The given factors, else those of the daemon's signals, which are queried once a minute."""
        if time.monotonic() >= self._signals_until:
            self._signals_until = time.monotonic() + SIGNALS_S
            carbon = node.signal("carbon") if self._gco2e_kwh is None else None
            price = node.signal("price") if self._price is None else None
            self._signals = (carbon[0] if carbon else None, signal_price(price))
        return (
            self._signals[0] if self._gco2e_kwh is None else self._gco2e_kwh,
            self._signals[1] if self._price is None else self._price,
        )

    def _known(self, window: Window) -> None:
        """Called in the collector's thread, or in the thread that drains it."""
        if self._log is None:
            return
        if isinstance(window._result, Energy):
            self._log.write(window._result)
        elif window._result is not None:
            unknown = Energy(window.name, window._began, window.seconds)
            self._log.write(unknown, str(window._result))

    def _here(self) -> Node | None:
        """The node of this process; None: the null monitor."""
        if self._node is None and self._open_node is not None and not self._closed:
            with self._lock:
                if self._node is None:
                    node = self._open_node()
                    boards = node.boards()
                    self._boards = tuple(boards[b.index] for b in self._boards) or chosen(boards, None)
                    self._node = node
        return self._node

    def _after_fork(self) -> None:
        """In a forked child: the parent's threads do not exist, and may have held locks."""
        self._lock = threading.Lock()
        self._collector = Collector(self._known)
        self._whole = None
        if self._node is not None:
            _left.append(self._node)  # its windows belong to the parent
            self._node = None


def _tracker(function: Call | str | None, name: str | None, monitor: Callable[[], Monitor]) -> Any:
    """The tracked function; or the decorator, if a name or nothing is given."""
    if callable(function):
        return _tracked(function, name, monitor)
    label = name if function is None else function
    if label is not None and not isinstance(label, str):
        raise InvalidValue(f"track: {label!r} is neither a function nor a name")
    return lambda f: _tracked(f, label, monitor)


def _tracked(function: Call, name: str | None, monitor: Callable[[], Monitor]) -> Call:
    label = name or str(getattr(function, "__qualname__", "function"))
    windows: deque[Window] = deque(maxlen=TRACKED)

    def begin() -> Window:
        window = monitor().window(label)
        windows.append(window)
        return window

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapped(*args: Any, **kwargs: Any) -> Any:
            with begin():
                return await function(*args, **kwargs)
    elif inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def wrapped(*args: Any, **kwargs: Any) -> Any:
            with begin():
                inner = function(*args, **kwargs)
                step = inner.__anext__()
                try:
                    while True:
                        try:
                            item = await step
                        except StopAsyncIteration:
                            return
                        try:
                            step = inner.asend((yield item))
                        except GeneratorExit:
                            raise
                        except BaseException as e:  # the function's caller handles it
                            step = inner.athrow(e)
                finally:
                    await inner.aclose()
    elif inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with begin():
                return (yield from function(*args, **kwargs))
    else:

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with begin():
                return function(*args, **kwargs)

    wrapped.windows = windows  # type: ignore[attr-defined]
    return cast(Call, wrapped)


# ---- the implicit monitor ----

_monitors: weakref.WeakSet[Monitor] = weakref.WeakSet()
_left: list[Node] = []  # of the parent process before a fork: never freed here
_default: list[Monitor] = []
_default_lock = threading.Lock()


def monitor() -> Monitor:
    """The implicit monitor, created at its first use."""
    if not _default:
        with _default_lock:
            if not _default:
                _default.append(_implicit())
    return _default[0]


def _implicit() -> Monitor:
    """If the daemon does not answer, a monitor that tries again later: a window never stops the program."""
    try:
        return Monitor()
    except (DaemonError, TimeoutError) as e:
        made = Monitor(null=True)
        made._open_node = _opener(None, None, 0)
        made._trouble(e)
        return made


def configure(**options: Any) -> Monitor:
    """Creates the implicit monitor with options of Monitor; closes the one before."""
    made = Monitor(**options)
    with _default_lock:
        before, _default[:] = _default[:], [made]
    for old in before:
        old.close()
    return made


def window(name: str = "", *, samples: bool = False) -> Window:
    """A window of the implicit monitor: `with underwatt.window("epoch") as w:`."""
    return monitor().window(name, samples=samples)


@overload
def track(function: Call) -> Call: ...
@overload
def track(function: str | None = None, *, name: str | None = None) -> Callable[[Call], Call]: ...
def track(function: Call | str | None = None, *, name: str | None = None) -> Any:
    """A decorator, `@underwatt.track`, `@underwatt.track("name")` or `@underwatt.track(name="name")`: each call of
    the function is a window of the implicit monitor.  The function's attribute `windows` has the last ones."""
    return _tracker(function, name, monitor)


def _at_exit() -> None:
    until = time.monotonic() + EXIT_S
    for each in list(_monitors):
        each._close(until, drain=each._log is not None)


def _in_child() -> None:
    global _default_lock  # noqa: PLW0603
    _default_lock = threading.Lock()
    for each in list(_monitors):
        each._after_fork()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_in_child)
