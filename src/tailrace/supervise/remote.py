"""Drain the queries of another process, through its dashboard's server."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.parse
import urllib.request

from tailrace._process import dashboards
from tailrace._process.arguments import require_name, require_seconds
from tailrace._process.http_client import dashboard_url, is_this_machine, no_dashboard_at, read_url
from tailrace.contract.codec import from_json, to_json
from tailrace.contract.drains import DrainAnswer, Drained, DrainRefusal, DrainRequest
from tailrace.contract.errors import ErrorAnswer
from tailrace.errors import TailraceError

TOKEN_VARIABLE = "TAILRACE_TOKEN"  # noqa: S105
ANSWER_TAKES_S = 10
LONGEST_REFUSAL = 100_000


def drain_at(url: str, query: str | None, timeout_s: float, token: str = "") -> list[Drained]:
    """Drain as the application itself would; without `token`, with the one that this user's machine knows."""
    require_seconds("the timeout", timeout_s)
    require_name("the name of the query", query)
    url = dashboard_url(url)
    is_given, own = bool(token), "" if token else _own_token_for(url)
    token = token or os.environ.get(TOKEN_VARIABLE, "").strip() or own
    try:
        request = urllib.request.Request(  # noqa: S310
            urllib.parse.urljoin(url, "/api/drain"),
            data=to_json(DrainRequest(query, timeout_s)).encode(),
            headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
        )
        # A note's address is this machine's, whatever it is called: a proxy must not see the token.
        answer = read_url(request, timeout_s + ANSWER_TAKES_S, direct=bool(own) or is_given)
        return list(from_json(DrainAnswer, answer).drained)
    except urllib.error.HTTPError as refused:
        raise _refusal(url, refused) from None
    except (OSError, ValueError, http.client.HTTPException) as failure:
        raise no_dashboard_at(url, failure) from None


def _own_token_for(url: str) -> str:
    """Of the application on this machine that serves this address, if it is one of this user's."""
    asked = urllib.parse.urlsplit(url)
    for one in dashboards.find():
        served = urllib.parse.urlsplit(one.url)
        # The same server may be known by several names. Only a loopback address is surely this machine.
        if asked.port == served.port and (asked.hostname == served.hostname or is_this_machine(asked.hostname or "")):
            return one.token
    return ""


def _refusal(url: str, refused: urllib.error.HTTPError) -> TailraceError:
    if refused.code == 401:
        return TailraceError(
            "TAILRACE_TOKEN_REFUSED",
            f"the application at {url} does not accept the token.",
            "drain it as the user and on the machine that runs it, or set spark.tailrace.dashboard.token there and the "
            f"environment variable {TOKEN_VARIABLE} here.",
        )
    try:
        answer = from_json(ErrorAnswer, refused.read(LONGEST_REFUSAL))
        refusal = from_json(DrainRefusal, answer.error)
        return TailraceError(refusal.code, refusal.problem, refusal.fix)
    except (OSError, ValueError, http.client.HTTPException):
        return TailraceError(
            "TAILRACE_DRAIN_FAILED",
            f"the application at {url} answered {refused.code} {refused.reason}.",
            "read its log; its queries keep running unless the log says otherwise.",
        )
