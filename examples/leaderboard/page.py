"""The top ten as a live page: uvicorn page:app"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import redis
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse
from starlette.routing import Route

PAGE = Path(__file__).with_name("page.html")
# Nothing but the page's own parts.
SOURCES = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


@cache
def connect() -> Any:  # the client's hints do not know that answers are decoded
    password = Path(os.environ["REDIS_PASSWORD_FILE"]).read_text(encoding="utf-8").strip()
    return redis.Redis.from_url(os.environ["REDIS_URL"], password=password, decode_responses=True)


def top(_request: Request) -> JSONResponse:
    best = connect().zrevrange("leaderboard", 0, 9, withscores=True)
    return JSONResponse([{"player": player, "total": int(total)} for player, total in best])


def page(_request: Request) -> FileResponse:
    return FileResponse(PAGE, headers={"Content-Security-Policy": SOURCES})


app = Starlette(routes=[Route("/", page), Route("/top", top)])
