"""The dashboard's colors, which these pictures share."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

FONT = 'ui-sans-serif, -apple-system, "Segoe UI", Inter, Roboto, "Helvetica Neue", Arial, sans-serif'
CODE_FONT = 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'

_COLOR = re.compile(r"--([a-z0-9-]+): (#[0-9a-f]{6});")


@cache
def light() -> dict[str, str]:
    return dict(_COLOR.findall(_style().partition("@media")[0]))


@cache
def dark() -> dict[str, str]:
    return dict(_COLOR.findall(_style().partition("@media")[2]))


def _style() -> str:
    return (resources.files("tailrace") / "dashboard" / "page" / "style.css").read_text(encoding="utf-8")
