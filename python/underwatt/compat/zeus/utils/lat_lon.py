"""The location of this machine."""

from __future__ import annotations

import logging

from ._http import get_json

logger = logging.getLogger(__name__)


def get_ip_lat_long() -> tuple[float, float]:
    """Latitude and longitude of this machine's address, from ipinfo.io.  OSError: it could not be reached."""
    try:
        place, _ = get_json("http://ipinfo.io/json")
    except OSError as e:
        logger.error("ipinfo.io could not be asked where this machine is: %s", e)
        raise
    latitude, longitude = (float(part) for part in place["loc"].split(","))
    return latitude, longitude
