"""`docs/reference/settings.md`: what the plugin's registry of settings declares."""

from __future__ import annotations

from tailrace._spark.settings import Setting, settings_registry

INTRODUCTION = """\
<!-- Generated from the plugin's registry of settings by `make docs`. Change TailraceConf.scala instead. -->

# Settings

Tailrace's own settings. A setting of a *session* is read when the session starts: set it on the builder, with
`spark-submit` or in `spark-defaults.conf`. A setting of a *query* is read when the query starts, so `spark.conf.set`
before `start()` works as well.

An invalid value is refused with `TAILRACE_BAD_SETTING`, and a key that is not on this page with
`TAILRACE_UNKNOWN_SETTING`: when the session starts, or by `start()`. Spark's own settings that Tailrace chooses are on
the page about [configuration](configuration.md).

| setting | default | value | of a | what it does |
|---|---|---|---|---|
"""


def page() -> str:
    return render(settings_registry())


def render(registry: list[Setting]) -> str:
    rows = [_row(setting) for setting in sorted(registry, key=lambda setting: setting.key) if setting.doc]
    return INTRODUCTION + "\n".join(rows) + "\n"


def _row(setting: Setting) -> str:
    default = f"`{setting.default}`" if setting.default else "none"
    doc = f"{setting.doc} [More](../{setting.page})"
    return f"| `{setting.key}` | {default} | {setting.allowed} | {setting.scope} | {doc} |"
