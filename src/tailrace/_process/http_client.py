"""Requests to our own servers."""

from __future__ import annotations

import ipaddress
import urllib.parse
import urllib.request
from typing import Any

from tailrace.errors import DashboardUnreachableError


def open_url(request: urllib.request.Request | str, timeout_s: float) -> Any:
    """Like `urlopen`, but requests to this machine bypass the environment's proxy."""
    url = request if isinstance(request, str) else request.full_url
    handlers = [urllib.request.ProxyHandler({})] if _is_here(urllib.parse.urlsplit(url).hostname or "") else []
    return urllib.request.build_opener(*handlers).open(request, timeout=timeout_s)


def _is_here(host: str) -> bool:
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
