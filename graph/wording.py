"""Numbers in sentences."""


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
