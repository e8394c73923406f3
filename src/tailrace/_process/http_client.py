"""Requests to our own servers."""

from __future__ import annotations

import ipaddress
import urllib.parse
import urllib.request
from typing import Any

from tailrace.errors import DashboardUnreachableError

LARGEST_ANSWER_BYTES = 50_000_000


def dashboard_url(text: str) -> str:
    """The address of a dashboard as a user writes it, with or without `http://`."""
    url = text if "//" in text else f"http://{text}"
    try:
        parts = urllib.parse.urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one or not url.isprintable():
        raise DashboardUnreachableError(
            "TAILRACE_DASHBOARD_UNREACHABLE", f"{text!r} is not an address of a dashboard.", "give http://HOST:PORT."
        )
    return url


def read_url(request: urllib.request.Request | str, timeout_s: float, *, direct: bool = False) -> bytes:
    """Like `urlopen`, but requests to this machine bypass the environment's proxy, as `direct` ones do.

    Redirects are not followed: our servers send none, and another one would be sent the token.
    """
    url = request if isinstance(request, str) else request.full_url
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    if direct or is_this_machine(urllib.parse.urlsplit(url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    with urllib.request.build_opener(*handlers).open(request, timeout=timeout_s) as answer:
        body: bytes = answer.read(LARGEST_ANSWER_BYTES + 1)
    if len(body) > LARGEST_ANSWER_BYTES:
        raise ValueError("the answer is too long")
    return body


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        """Leads to an HTTPError with the status of the redirect."""


def is_this_machine(host: str) -> bool:
    """True for a loopback address: no other machine can be behind it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def no_dashboard_at(url: str, failure: Exception) -> DashboardUnreachableError:
    reason = getattr(failure, "reason", failure) or type(failure).__name__
    return DashboardUnreachableError(
        "TAILRACE_DASHBOARD_UNREACHABLE",
        f"no dashboard answers at {url}: {reason}",
        "call tailrace.dashboard(spark) in the application, and give the address that it prints.",
    )
