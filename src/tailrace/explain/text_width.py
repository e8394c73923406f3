"""An estimate, on the high side, of how wide a text is in a font that only the viewer knows."""

from __future__ import annotations

from rich.cells import cell_len

# Widths in Arial, in thousandths of the font's size. Other fonts for screens are up to a tenth wider.
_WIDTHS = {
    **dict.fromkeys("ijl'|", 222),
    **dict.fromkeys("ft.,:;!I/[] ", 278),
    **dict.fromkeys("r()-{}·", 333),
    **dict.fromkeys("cksvxyzJ", 500),
    **dict.fromkeys("wCDHNRU", 722),
    **dict.fromkeys("GOQ", 778),
    **dict.fromkeys("mM…", 1000),
    **dict.fromkeys("W@%", 1015),
    **dict.fromkeys("ABEFKLPSTVXYZ&", 667),
}
_OTHER, _WIDE, _SPARE = 556, 1100, 1.1
_CODE = 0.61


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    thousandths = sum(_WIDTHS.get(char, _WIDE if cell_len(char) > 1 else _OTHER) for char in text)
    return thousandths / 1000 * size * _SPARE * (1.06 if bold else 1)


def code_width(text: str, size: float) -> float:
    """For a monospaced font."""
    return cell_len(text) * size * _CODE


def wrap_to_width(text: str, size: float, width: float, *, bold: bool = False) -> list[str]:
    """Break between words, and within a word only if it does not fit on a line."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, size, bold=bold) <= width:
            lines[-1] = longer
            continue
        lines.append("")
        for char in word:
            if lines[-1] and text_width(lines[-1] + char, size, bold=bold) > width:
                lines.append("")
            lines[-1] += char
    return [line for line in lines if line] or [""]
