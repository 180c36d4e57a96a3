"""Programs that may crash or hang: each is asked one thing, in a process of its own, with a time limit."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench.results import ROOT

HERE = Path(__file__).parent


def ask(python: str, program: str, question: dict[str, Any], limit: float) -> dict[str, Any]:
    """Run a program on a question and collect what it answers.

    Args:
        python: The interpreter.
        program: A file in this folder, for interpreters without ampgraph; or a module (``"bench.onnx.honest"``).
        question: What it reads, as JSON.
        limit: Seconds after which it is ended.

    Returns:
        All answers, JSON objects that it wrote one on a line, merged into one; and ``failed``, a sentence, if it did not end well.
    """
    command = [python, "-I", str(HERE / program)] if program.endswith(".py") else [python, "-m", program]
    with tempfile.TemporaryFile("w+") as answers, tempfile.TemporaryFile("w+", errors="replace") as log:
        try:
            process = subprocess.Popen(
                [*command, json.dumps(question)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=answers,
                stderr=log,
                start_new_session=True,
            )
        except OSError as error:
            return {"failed": f"{python} cannot be started: {error.strerror}"}
        failed = ""
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status, failed = 0, f"not done after {limit:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if status < 0:
            failed = f"died of {signal.Signals(-status).name}"
        elif status:
            log.seek(0)
            failed = (log.read().strip().splitlines() or [f"exit status {status}"])[-1][:300]
        answers.seek(0)
        found: dict[str, Any] = {}
        for line in answers.read().splitlines():
            with contextlib.suppress(ValueError, TypeError):
                found |= json.loads(line)
    return found | ({"failed": failed} if failed else {})
