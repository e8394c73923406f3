"""Made-up requests to services that fail and fall silent on a schedule, and the alerts that this should raise."""

from __future__ import annotations

import json

SERVICES = 10
# Of every 50 requests to a service, these fail. So ten of the last twenty have failed at the 30th of them, and two or
# fewer at the 50th.
PERIOD, FAILED = 50, range(20, 32)
FAILING, RECOVERED = 29, 49
# One service never fails. Of every 100 requests to it, only the first 40 are sent; others go to a spare one.
QUIET, QUIET_PERIOD, QUIET_FROM = SERVICES - 1, 100, 40


def encode(number: int, intended_ns: int) -> tuple[bytes, bytes]:
    place, turn = number % SERVICES, number // SERVICES
    service = f"service-{place}"
    if place == QUIET and turn % QUIET_PERIOD >= QUIET_FROM:
        service = "spare"
    failed = place != QUIET and turn % PERIOD in FAILED
    request = {"request": number, "intended_ns": intended_ns, "service": service, "status": 503 if failed else 200}
    return service.encode(), json.dumps(request).encode()


def raises_alert(number: int) -> bool:
    """Whether the share of failures crosses a bound with this request."""
    return number % SERVICES != QUIET and number // SERVICES % PERIOD in (FAILING, RECOVERED)


def decode(_key: bytes | None, value: bytes) -> list[tuple[int, int]]:
    """The request that an alert is about; silence is about none."""
    alert = json.loads(value)
    return [(alert["request"], alert["intended_ns"])] if alert["alert"] in ("failing", "recovered") else []
