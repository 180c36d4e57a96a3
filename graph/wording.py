"""Numbers in sentences, and rows in tables."""

from collections.abc import Sequence


def plural(count: int, noun: str, many: str = "") -> str:
    """Return ``"1 node"``, ``"2 nodes"`` …"""
    return f"{count} {noun if count == 1 else many or f'{noun}s'}"


def size(count: int) -> str:
    """Return a number of bytes as text: ``"1.5 MiB"``."""
    value = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def amount(count: int) -> str:
    """Return a large number as text: ``"1.5 M"``."""
    value = float(count)
    for unit in ("", " K", " M", " G", " T"):
        if value < 999.95:
            return f"{value:.1f}{unit}" if unit else str(count)
        value /= 1000
    return f"{value:.1f} P"


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return a header and rows as lines with aligned columns, numbers to the right."""
    numeric = [bool(rows) and all(isinstance(row[i], int) for row in rows) for i in range(len(header))]
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]
