"""Durations of measuring a function, and of cooling down the boards before, for a stable energy.

A trial: the boards are idle for the cooldown, some iterations warm up, and the iterations that fit into the
measurement's duration are measured.  With several processes, each measures its GPU: energies are summed, the slowest
time counts.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .monitor.energy import ZeusMonitor
from .utils.framework import all_reduce, get_rank, get_world_size, sync_execution

logger = logging.getLogger(__name__)

DURATIONS_S = [float(seconds) for seconds in range(1, 11)]
_WINDOW = "__zeus_profile"


@dataclass
class TrialResult:
    """J, s and degrees Celsius."""

    energy_per_iter: float
    time_per_iter: float
    total_energy: float
    total_time: float
    iterations: int
    temperature_before: float
    temperature_after: float


@dataclass
class SweepResult:
    """Several trials of the same durations.  is_valid: the standard deviation of their energies per iteration is below
    the threshold."""

    measurement_duration: float
    cooldown_duration: float
    trials: list[TrialResult]
    energy_mean: float
    energy_std: float
    avg_temperature_before: float
    avg_temperature_after: float
    avg_total_time: float
    avg_total_energy: float
    is_valid: bool

    def _found(self) -> str:
        return (
            f"{self.energy_mean:.4f} J +- {self.energy_std:.4f} J an iteration, {self.avg_temperature_before:.1f} to "
            f"{self.avg_temperature_after:.1f} C, {'stable' if self.is_valid else 'not stable'}"
        )

    def __str__(self) -> str:
        return f"{self.measurement_duration:g} s after {self.cooldown_duration:g} s of rest: {self._found()}"


@dataclass
class SweepReport:
    """Several durations of one kind: (name, values), the other one's (name, value), and the results."""

    sweep_param: tuple[str, list[float]]
    fixed_param: tuple[str, float]
    entries: list[SweepResult]

    def __str__(self) -> str:
        name = self.sweep_param[0]
        lines = [f"  {getattr(entry, name):g} s: {entry._found()}" for entry in self.entries]
        return "\n".join([f"{name} ({self.fixed_param[0]} {self.fixed_param[1]:g} s)", *lines])


@dataclass
class _Profiler:
    function: Callable[[], Any]
    monitor: ZeusMonitor
    warmup: int
    iteration_s: float = 0.0

    def calibrate(self, iterations: int) -> None:
        self._run(self.warmup)
        self._sync()
        began = time.monotonic()
        self._run(iterations)
        self._sync()
        (self.iteration_s,) = all_reduce([(time.monotonic() - began) / iterations], "max")

    def _run(self, iterations: int) -> None:
        for _ in range(iterations):
            self.function()

    def _sync(self) -> None:
        sync_execution(self.monitor.gpu_indices, sync_with=self.monitor.sync_with)

    def _celsius(self) -> float:
        if not self.monitor.gpu_indices:
            raise ValueError("the monitor has no GPUs")
        return statistics.fmean(self.monitor.gpus.get_gpu_temperature(i) for i in self.monitor.gpu_indices)

    def trial(self, measurement_s: float, cooldown_s: float, warmup: int) -> TrialResult:
        iterations = max(1, int(measurement_s / self.iteration_s)) if self.iteration_s > 0 else 1
        time.sleep(max(0.0, cooldown_s))
        before = self._celsius()
        self._run(warmup)
        self.monitor.begin_window(_WINDOW)
        self._run(iterations)
        measured = self.monitor.end_window(_WINDOW)
        after = self._celsius()
        energy, before, after = all_reduce([measured.total_energy, before, after], "sum")
        (seconds,) = all_reduce([measured.time], "max")
        world = get_world_size()
        return TrialResult(
            energy / iterations, seconds / iterations, energy, seconds, iterations, before / world, after / world
        )

    def trials(self, n: int, measurement_s: float, cooldown_s: float, threshold_j: float) -> SweepResult:
        found = [self.trial(measurement_s, cooldown_s, self.warmup) for _ in range(n)]
        energies = [each.energy_per_iter for each in found]
        spread = statistics.stdev(energies) if n > 1 else 0.0
        return SweepResult(
            measurement_duration=measurement_s,
            cooldown_duration=cooldown_s,
            trials=found,
            energy_mean=statistics.fmean(energies),
            energy_std=spread,
            avg_temperature_before=statistics.fmean(each.temperature_before for each in found),
            avg_temperature_after=statistics.fmean(each.temperature_after for each in found),
            avg_total_time=statistics.fmean(each.total_time for each in found),
            avg_total_energy=statistics.fmean(each.total_energy for each in found),
            is_valid=spread < threshold_j,
        )

    def sweep(
        self, swept: tuple[str, list[float]], fixed: tuple[str, float], n: int, n_warmup: int, threshold_j: float
    ) -> SweepReport:
        """The first trials, which warm up the boards, do not count."""
        longest = max(swept[1]) if swept[0] == "measurement_duration" else fixed[1]
        for _ in range(n_warmup):
            self.trial(longest, 0.0, 0)
        entries = []
        for value in swept[1]:
            durations = {swept[0]: value, fixed[0]: fixed[1]}
            found = self.trials(n, durations["measurement_duration"], durations["cooldown_duration"], threshold_j)
            entries.append(found)
            self._log(found)
        report = SweepReport(swept, fixed, entries)
        self._log(report)
        return report

    def _log(self, found: object) -> None:
        if get_rank() == 0:
            logger.info("%s", found)


def _profiler(
    function: Callable[[], Any], monitor: ZeusMonitor, warmup: int, calibration: int, iteration_s: float | None = None
) -> _Profiler:
    profiler = _Profiler(function, monitor, warmup)
    if iteration_s is None:
        profiler.calibrate(calibration)
    else:
        profiler.iteration_s = iteration_s
    return profiler


def profile_measurement_duration(
    target_function: Callable[[], Any],
    zeus_monitor: ZeusMonitor,
    measurement_duration_search_range: list[float] | None = None,
    cooldown_duration: float = 10.0,
    num_trials: int = 10,
    num_warmup_trials: int = 2,
    trial_stddev_threshold: float = 0.01,
    num_warmup_iterations: int = 10,
    num_calibration_iterations: int = 100,
    iteration_duration: float | None = None,
) -> SweepReport:
    """Durations of the measurement, 1 to 10 s by default.  iteration_duration: s; None: it is measured."""
    profiler = _profiler(
        target_function, zeus_monitor, num_warmup_iterations, num_calibration_iterations, iteration_duration
    )
    swept = ("measurement_duration", measurement_duration_search_range or DURATIONS_S)
    fixed = ("cooldown_duration", cooldown_duration)
    return profiler.sweep(swept, fixed, num_trials, num_warmup_trials, trial_stddev_threshold)


def profile_cooldown_duration(
    target_function: Callable[[], Any],
    zeus_monitor: ZeusMonitor,
    cooldown_duration_search_range: list[float] | None = None,
    measurement_duration: float = 10.0,
    num_trials: int = 10,
    num_warmup_trials: int = 2,
    trial_stddev_threshold: float = 0.01,
    num_warmup_iterations: int = 10,
    num_calibration_iterations: int = 100,
    iteration_duration: float | None = None,
) -> SweepReport:
    """Durations of the cooldown before, 1 to 10 s by default.  iteration_duration: s; None: it is measured."""
    profiler = _profiler(
        target_function, zeus_monitor, num_warmup_iterations, num_calibration_iterations, iteration_duration
    )
    swept = ("cooldown_duration", cooldown_duration_search_range or DURATIONS_S)
    fixed = ("measurement_duration", measurement_duration)
    return profiler.sweep(swept, fixed, num_trials, num_warmup_trials, trial_stddev_threshold)


def profile_parameters(
    target_function: Callable[[], Any],
    zeus_monitor: ZeusMonitor,
    measurement_duration_search_range: list[float] | None = None,
    cooldown_duration_search_range: list[float] | None = None,
    num_trials: int = 10,
    num_warmup_trials: int = 2,
    trial_stddev_threshold: float = 0.01,
    num_warmup_iterations: int = 10,
    num_calibration_iterations: int = 100,
) -> tuple[SweepReport, SweepReport]:
    """Durations of the measurement with the longest cooldown, then durations of the cooldown with the longest
    measurement."""
    measurements = measurement_duration_search_range or DURATIONS_S
    rests = cooldown_duration_search_range or DURATIONS_S
    profiler = _profiler(target_function, zeus_monitor, num_warmup_iterations, num_calibration_iterations)
    common = (num_trials, trial_stddev_threshold)
    return (
        profiler.sweep(
            ("measurement_duration", measurements),
            ("cooldown_duration", max(rests)),
            common[0],
            num_warmup_trials,
            common[1],
        ),
        profiler.sweep(
            ("cooldown_duration", rests), ("measurement_duration", max(measurements)), common[0], 0, common[1]
        ),
    )


def measure(
    target_function: Callable[[], Any],
    zeus_monitor: ZeusMonitor,
    measurement_duration: float,
    cooldown_duration: float,
    num_warmup_iterations: int = 10,
    num_calibration_iterations: int = 100,
) -> TrialResult:
    """Runs one trial."""
    profiler = _profiler(target_function, zeus_monitor, num_warmup_iterations, num_calibration_iterations)
    return profiler.trial(measurement_duration, cooldown_duration, num_warmup_iterations)
