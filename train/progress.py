"""What is shown while a model is trained: a bar on a terminal, one line for each epoch elsewhere."""

import time
from typing import Any


class Progress:
    """Shows one training.

    Args:
        verbose: 0 shows nothing, 1 a bar on a terminal and otherwise as 2, 2 a line after each epoch.
        epochs: Number of the last epoch, counted from 1 on.
        steps: Number of steps of an epoch.
    """

    def __init__(self, verbose: int, epochs: int, steps: int) -> None:
        self._verbose = verbose
        self._epochs = epochs
        self._steps = steps
        self._start = 0.0
        self._title = ""
        self._bar: Any = None

    def begin(self, epoch: int) -> None:
        """Begin an epoch."""
        self._start = time.perf_counter()
        self._title = f"epoch {epoch + 1}/{self._epochs}"
        if self._verbose == 1:
            from rich.console import Console

            console = Console()
            self._bar = _bar(console) if console.is_terminal else None
            if self._bar is not None:
                self._bar.start()
                self._bar.add_task(self._title, total=self._steps, numbers="")

    def step(self, logs: dict[str, float]) -> None:
        """Show the numbers after a step."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], advance=1, numbers=shown(logs, self._steps))

    def end(self, logs: dict[str, float]) -> None:
        """End an epoch."""
        numbers = shown(logs, self._steps)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], numbers=numbers)
        elif self._verbose:
            print(f"{self._title}: {numbers}, {time.perf_counter() - self._start:.1f} s", flush=True)
        self.close()

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _bar(console: Any) -> Any:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TextColumn("{task.fields[numbers]}"))
    return Bars(*columns, TimeElapsedColumn(), console=console)


def shown(logs: dict[str, float], steps: int) -> str:
    """Return numbers as text: ``loss 0.0812, loss scale 32768, 1 of 32 steps skipped``."""
    texts = []
    for name, number in logs.items():
        if name == "loss_scale":
            texts.append(f"loss scale {number:g}")
        elif name == "skipped":
            texts.append(f"{number:g} of {steps} steps skipped")
        else:
            texts.append(f"{name} {number:.4g}")
    return ", ".join(texts)
