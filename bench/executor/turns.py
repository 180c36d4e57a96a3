"""Models run in turns, in processes of their own."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.executor.process import Process

#: Seconds that several runs together take at least, so that the clock is fine enough, and how many they are at most.
_LEAST, _MOST_RUNS = 0.02, 50
#: What runs ampgraph's executor.
OURS = (sys.executable, "-m", "bench.executor.ours")


def peer_command(python: str) -> tuple[str, ...]:
    """Return what runs onnxruntime and the reference evaluator in a Python that has them."""
    return python, "-I", str(Path(__file__).with_name("peer_program.py"))


def time_in_turns(
    questions: Mapping[str, tuple[Process, dict[str, Any]]], repeat: int, limit: float
) -> dict[str, dict[str, Any]]:
    """Open models and run them in turns.

    Args:
        questions: By a name, the process and the question that opens a model in it, as ``serve.py`` says; ``"limit"`` in it is
            the most seconds that this takes, and with ``"once"`` the model is not run again.
        repeat: How often each is timed.
        limit: The most seconds for one answer.

    Returns:
        By the name, lists of ``wall`` and ``cpu`` seconds of one run; or ``failed``, a sentence.
    """
    found: dict[str, dict[str, Any]] = {}
    first: dict[str, float] = {}
    for name, (process, question) in questions.items():
        answer = process.ask(question, question.get("limit", limit))
        if "failed" in answer:
            found[name] = answer
        elif question.get("once"):
            found[name] = {key: [answer[key]] for key in ("wall", "cpu")}
        else:
            found[name], first[name] = {"wall": [], "cpu": []}, answer["wall"]
    for _ in range(repeat):
        for name, seconds in list(first.items()):
            process, question = questions[name]
            count = max(1, min(_MOST_RUNS, round(_LEAST / max(seconds, 1e-6))))
            answer = process.ask({"run": question["open"], "count": count}, limit)
            if "failed" in answer:
                found[name] = answer
                del first[name]
                continue
            first[name] = min(seconds, answer["wall"])
            for key in ("wall", "cpu"):
                found[name][key].append(answer[key])
    for process in {id(process): process for process, _ in questions.values()}.values():
        process.ask({"close": True}, limit)
    return found
