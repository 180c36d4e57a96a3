"""Low regions whose casts cost more than they save."""

from .paint import Painting


def drop_islands(painting: Painting) -> None:
    """Take back the islands that do not pay."""
