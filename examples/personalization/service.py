"""The service that reads the features and ranks offers by them: uvicorn service:app"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import redis
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

OFFERS = {
    "tent": "outdoor",
    "boots": "outdoor",
    "novel": "books",
    "atlas": "books",
    "headphones": "audio",
    "piano": "audio",
    "pan": "kitchen",
    "knife": "kitchen",
}


@cache
def connect() -> Any:  # the client's hints do not know that answers are decoded
    password = Path(os.environ["REDIS_PASSWORD_FILE"]).read_text(encoding="utf-8").strip()
    return redis.Redis.from_url(os.environ["REDIS_URL"], password=password, decode_responses=True)


def rank(interests: dict[str, float], last_items: list[str]) -> list[str]:
    """By interest in the category; what the user has just looked at comes last."""
    return sorted(OFFERS, key=lambda item: (item in last_items, -interests.get(OFFERS[item], 0.0), item))


def offers(request: Request) -> JSONResponse:
    found = connect().hgetall(f"features:{request.path_params['user']}")
    interests, last_items = json.loads(found.get("interests", "{}")), json.loads(found.get("last_items", "[]"))
    # The event with which the features were made tells how fresh they are.
    made = {"events": int(found.get("events", 0)), "event": int(found.get("event", -1))}
    return JSONResponse({"offers": rank(interests, last_items), **made})


app = Starlette(routes=[Route("/offers/{user}", offers)])
