"""Drain the queries of another process, through its dashboard's server."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request

from tailrace._process import dashboards
from tailrace._process.http_client import no_dashboard_at, open_url
from tailrace.contract.codec import from_json, to_json
from tailrace.contract.drains import DrainAnswer, Drained, DrainRefusal, DrainRequest
from tailrace.errors import TailraceError

TOKEN_VARIABLE = "TAILRACE_TOKEN"  # noqa: S105
ANSWER_TAKES_S = 10


def drain_at(url: str, query: str | None, timeout_s: float, token: str = "") -> list[Drained]:
    """Drain as the application itself would; without `token`, with the one that this user's machine knows."""
    url = url if "//" in url else f"http://{url}"
    request = urllib.request.Request(  # noqa: S310
        urllib.parse.urljoin(url, "/api/drain"),
        data=to_json(DrainRequest(query, timeout_s)).encode(),
        headers={"authorization": f"Bearer {token or _token_for(url)}", "content-type": "application/json"},
    )
    try:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise ValueError("it is not an http address")
        with open_url(request, timeout_s + ANSWER_TAKES_S) as answer:
            return list(from_json(DrainAnswer, answer.read()).drained)
    except urllib.error.HTTPError as refused:
        raise _refusal(url, refused) from None
    except (OSError, ValueError, http.client.HTTPException) as failure:
        raise no_dashboard_at(url, failure) from None


def _token_for(url: str) -> str:
    given = os.environ.get(TOKEN_VARIABLE, "").strip()
    port = urllib.parse.urlsplit(url).port
    # The same server may be known by several names; its port is its own on this machine.
    here = [one.token for one in dashboards.find() if urllib.parse.urlsplit(one.url).port == port]
    return given or next(iter(here), "")


def _refusal(url: str, refused: urllib.error.HTTPError) -> TailraceError:
    if refused.code == 401:
        return TailraceError(
            "TAILRACE_TOKEN_REFUSED",
            f"the application at {url} does not accept the token.",
            "drain it as the user and on the machine that runs it, or set spark.tailrace.dashboard.token there and the "
            f"environment variable {TOKEN_VARIABLE} here.",
        )
    try:
        error = json.load(refused)["error"]
        refusal = from_json(DrainRefusal, error)
        return TailraceError(refusal.code, refusal.problem, refusal.fix)
    except (OSError, ValueError, KeyError, TypeError):
        return TailraceError(
            "TAILRACE_DRAIN_FAILED",
            f"the application at {url} answered {refused.code} {refused.reason}.",
            "read its log; its queries keep running unless the log says otherwise.",
        )
