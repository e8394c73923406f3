"""Write the generated pages of docs/reference (`make docs`)."""

from __future__ import annotations

from pathlib import Path

from tools.reference import api, cli, operators, settings

REFERENCE = Path(__file__).parents[1] / "docs/reference"
PAGES = {"api.md": api.page, "cli.md": cli.page, "operators.md": operators.page, "settings.md": settings.page}


def main() -> None:
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")
        print(f"written: docs/reference/{name}")


if __name__ == "__main__":
    main()
