"""Pausing Python's cyclic garbage collector while many objects are made that all stay alive."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Keep the cyclic collector from running, and restore it as it was.

    It would look through every node made so far again and again: at 100,000 nodes that doubles the time. What was made
    meanwhile joins the old generation unseen, so that the first young collection afterwards does not walk it all either.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():  # else unfreezing would undo what somebody froze on purpose
                gc.freeze()
                gc.unfreeze()
            gc.enable()
