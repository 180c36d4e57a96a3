"""A process in which models run, with a given number of threads."""

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from bench.results import ROOT

#: Where math libraries look for the number of their threads, when they are loaded.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Process:
    """A process that serves, as ``serve.py`` says; a context manager. It is started again where it ended or was ended.

    Args:
        command: What is run.
        threads: How many threads its math libraries use.

    Attributes:
        facts: What it said when it started.

    Raises:
        RuntimeError: If it does not start.
    """

    def __init__(self, command: Sequence[str], threads: int) -> None:
        self._command, self._threads = command, threads
        self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - as long as the process
        self._process: subprocess.Popen[bytes] | None = None
        self.facts = self._start()
        if "failed" in self.facts:
            self.close()
            raise RuntimeError(f"{command[0]}: {self.facts['failed']}")

    def ask(self, question: dict[str, Any], limit: float) -> dict[str, Any]:
        """Return the answer to a question; ``{"failed": sentence}`` if the process ends or takes longer than ``limit`` seconds."""
        if self._process is None:
            self._start()
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(json.dumps(question).encode() + b"\n")
                self._process.stdin.flush()
        return self._read(limit)

    def _start(self) -> dict[str, Any]:
        environment = os.environ | dict.fromkeys(_THREADS, str(self._threads))
        try:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            return {"failed": f"cannot be started: {error.strerror}"}
        return self._read(60)

    def _read(self, limit: float) -> dict[str, Any]:
        if self._process is None or self._process.stdout is None:
            return {"failed": "cannot be started"}
        if not select.select([self._process.stdout], [], [], limit)[0]:
            self._end()
            return {"failed": f"over {limit:g} s"}
        line = self._process.stdout.readline()
        if line:
            return dict(json.loads(line))
        self._end()
        self._log.seek(0)
        return {"failed": (self._log.read().strip().splitlines() or ["ended early"])[-1][:300]}

    def _end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        """End the process."""
        self._end()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
