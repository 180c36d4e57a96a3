"""Interrupts that wait for the end of a step."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class Interrupts:
    """Remembers an interrupt (Ctrl-C) until it is asked for; a second one comes through at once."""

    def __init__(self) -> None:
        self._come = False

    def _handle(self, number: int, frame: Any) -> None:
        if self._come:
            raise KeyboardInterrupt
        self._come = True

    def check(self) -> None:
        """Raise KeyboardInterrupt if one has come."""
        if self._come:
            self._come = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def held_interrupts() -> Iterator[Interrupts]:
    """Hold interrupts back until :meth:`Interrupts.check`, or the end.

    Only the main thread receives any, and only where Python's own handler would; elsewhere nothing changes.
    """
    interrupts = Interrupts()
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupts._handle)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.check()
