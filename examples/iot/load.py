"""Made-up readings of devices that fail from time to time, and what the application should say of them."""

from __future__ import annotations

import json
import random

DEVICES = 20
# Of every 25 readings of a device, these three are of a fault.
PERIOD, FAULT = 25, (20, 21, 22)
STOP = FAULT[1]
RESUME = FAULT[-1] + 10 - PERIOD


def encode(number: int, intended_ns: int) -> tuple[bytes, bytes]:
    place, turn = number % DEVICES, number // DEVICES
    device = f"device-{place}"
    celsius = 20 + place + random.Random(number).uniform(-1, 1) + (30 if turn % PERIOD in FAULT else 0)
    reading = {"reading": number, "intended_ns": intended_ns, "device": device, "celsius": celsius}
    return device.encode(), json.dumps(reading).encode()


def is_alert(number: int) -> bool:
    return number // DEVICES % PERIOD in FAULT


def is_command(number: int) -> bool:
    turn = number // DEVICES
    return turn % PERIOD == STOP or (turn > PERIOD and turn % PERIOD == RESUME)


def decode(_key: bytes | None, value: bytes) -> list[tuple[int, int]]:
    """The reading that a command answers, and when it was due."""
    command = json.loads(value)
    return [(command["reading"], command["intended_ns"])]
