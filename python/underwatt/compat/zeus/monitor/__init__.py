"""Windows of energy, power and temperature over time."""

from .energy import Measurement, ZeusMonitor
from .power import PowerMonitor
from .temperature import TemperatureMonitor

__all__ = ["Measurement", "PowerMonitor", "TemperatureMonitor", "ZeusMonitor"]
