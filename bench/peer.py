"""Grappler, as the rewrite's peer: the other side of ``grappler.py``, which runs in a Python with TensorFlow."""

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_PROGRAM = Path(__file__).with_name("grappler.py")


class Grappler:
    """A process that runs TensorFlow's pass on one graph after another; a context manager.

    Args:
        python: The interpreter that has TensorFlow.
        log: A file for what TensorFlow prints; it is read for the times in it.

    Attributes:
        version: Which TensorFlow it is.
        mode: The mode of the pass: ``"cuda_fp16"``, or ``"cpu_fp16"`` where TensorFlow is built without CUDA.

    Raises:
        RuntimeError: If the program does not start or ends early.
    """

    def __init__(self, python: str, log: Path) -> None:
        self._log = log
        # Without the user's settings of the pass; with the log line that says how long it took.
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("TF_AUTO_MIXED", "TF_CPP_"))}
        environment |= {"TF_CPP_VMODULE": "meta_optimizer=1", "TF_CPP_MIN_LOG_LEVEL": "0", "CUDA_VISIBLE_DEVICES": "-1"}
        with open(log, "wb") as file:
            self._process = subprocess.Popen(
                [python, "-I", str(_PROGRAM), str(log)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=environment,
                text=True,
            )
        try:
            greeting = self._read()
        except RuntimeError:
            self.__exit__(None, None, None)
            raise
        self.version: str = greeting["tensorflow"]
        self.mode: str = greeting["mode"]

    def time(self, path: Path, fetch: Iterable[str]) -> dict[str, float]:
        """Run the pass once on the GraphDef in ``path``.

        Returns:
            ``pass_ms`` the pass alone; ``whole_ms``, ``whole_cpu_ms`` with the conversion of messages around it; and
            ``nodes``, ``casts``: how many the result has, function bodies included.

        Raises:
            RuntimeError: If TensorFlow refuses the graph.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"path": str(path), "fetch": list(fetch)}) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        if "error" in answer:
            raise RuntimeError(f"Grappler failed on {path.name}: {answer['error']}")
        return answer

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            tail = self._log.read_text(encoding="utf-8", errors="replace")[-1000:]
            raise RuntimeError(f"The Python that was given for TensorFlow ended early. It wrote: {tail}")
        return dict(json.loads(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        if kind is not None:
            self._process.kill()
        self._process.wait()
