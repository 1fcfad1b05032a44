"""GET of JSON: through requests if the program has loaded it (its proxies and certificates are configured there),
else through the standard library."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from typing import Any

TIMEOUT_S = 30.0


def get_json(url: str) -> tuple[Any, str]:
    """The server's answer, whatever the status, and its text.  OSError: it could not be reached; ValueError: no
    JSON."""
    requests: Any = sys.modules.get("requests")
    if requests is not None:
        answer = requests.get(url, timeout=TIMEOUT_S)
        return answer.json(), answer.text
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read()
    except urllib.error.HTTPError as e:
        body = e.read()
    text = body.decode(errors="replace")
    return json.loads(text), text
