"""Everything that is known of one converted file, and whether it is one that may be used."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bench.onnx.arrays import difference, read_arrays
from bench.onnx.programs import ask

#: The largest honest error that is all right, whatever the floor.
BOUNDS = {"float16": 1e-2, "bfloat16": 5e-2}


class Source:
    """A float32 model with its feeds and what it computes from them.

    Args:
        path: The model.
        feeds: An NPZ file.
        folder: For files in between.
        python: The Python with onnx, and maybe onnxruntime.
        has_runtime: Whether it has onnxruntime.
        limit: Seconds for each program.

    Attributes:
        facts: ``executor_error``, how far ampgraph's own float32 run lies from onnxruntime's, if both ran; ``flops`` of a run;
            ``float32_failed``, why one of them did not run.
        floors: For each dtype asked for, the floor of the error; None where it could not be found or is not finite.
    """

    def __init__(self, path: Path, feeds: Path, folder: Path, python: str, has_runtime: bool, limit: float) -> None:
        self.path = path
        self.feeds = feeds
        self.folder = folder
        self.python = python
        self.limit = limit
        self.facts: dict[str, Any] = {}
        self.floors: dict[str, float | None] = {}
        self.reference: dict[str, Any] | None = None
        self.can_run = has_runtime
        if has_runtime:
            found = self._program(path, ["run"])
            self.can_run = "run" in found
            if self.can_run:
                self.reference = read_arrays(self._outputs)
            else:
                self.facts["float32_failed"] = f"onnxruntime: {found['failed']}"
        honest = self._honest(path)
        if "failed" in honest:
            self.facts["float32_failed"] = f"ampgraph: {honest['failed']}"
        else:
            self.facts["flops"] = sum(honest["flops"].values())
            own = read_arrays(self._outputs)
            if self.reference is not None:
                self.facts["executor_error"] = difference(self.reference, own)["error"]
            else:
                self.reference = own

    def find_floor(self, dtype: str) -> None:
        """Find the floor for a dtype."""
        found = self._honest(self.path, round=dtype)
        compared = None if "failed" in found else self._compared(found)
        self.floors[dtype] = compared["error"] if isinstance(compared, dict) and compared["finite"] else None

    def judge(self, path: Path, dtype: str, with_reference: bool) -> dict[str, Any]:
        """Judge a file.

        Returns:
            What the judging programs say; ``honest`` and ``runtime`` (and ``reference``), the differences of outputs from those
            of the float32 model, or a sentence why there are none; ``low``, the share of FLOPs in ``dtype``; ``wrong``, a list
            of what is wrong with the file.
        """
        runs = self.can_run and dtype == "float16"
        found = self._program(path, ["static", "run"] if runs else ["static"])
        result = {key: value for key, value in found.items() if key not in ("failed", "run")}
        if "checker" not in found:
            return {"wrong": [f"judge: {found['failed']}"]}
        if runs:
            result["runtime"] = self._compared(found)
        honest = self._honest(path)
        result["honest"] = self._compared(honest)
        if "flops" in honest:
            flops: Counter[str] = Counter(honest["flops"])
            result["low"] = flops[dtype] / flops.total() if flops.total() else None
        if with_reference:
            result["reference"] = self._compared(self._program(path, ["reference"]))
        return result | {"wrong": self.find_wrong(result, dtype)}

    def bound(self, dtype: str) -> float:
        """Return the largest honest error that is all right."""
        return max(BOUNDS[dtype], 2 * (self.floors.get(dtype) or 0))

    def find_wrong(self, result: dict[str, Any], dtype: str) -> list[str]:
        """Return what is wrong with a file, by what :meth:`judge` found, most basic things first."""
        wrong = [f"{key}: {result[key]}" for key in ("checker", "strict") if result[key] != "ok"]
        if not result["io_kept"]:
            wrong.append("inputs or outputs changed")
        for key in ("runtime", "honest"):
            found = result.get(key, {})
            if isinstance(found, str):
                wrong.append(f"{key}: {found}")
            elif found and not found["finite"]:
                other = f"{key}: outputs of other shapes"
                wrong.append(f"{key}: not finite{self._floor_too(dtype)}" if found["shapes"] else other)
            elif found and found["integers"]:
                wrong.append(f"{key}: {found['integers']:.2g} of the integers differ")
            elif key == "honest" and found and found["error"] > self.bound(dtype):
                wrong.append(f"honest: error {found['error']:.2g}")
        return wrong

    def _floor_too(self, dtype: str) -> str:
        return " (nor is the floor)" if self.floors.get(dtype) is None else ""

    @property
    def _outputs(self) -> Path:
        return self.folder / "outputs.npz"

    def _compared(self, answer: dict[str, Any]) -> dict[str, Any] | str:
        """Return how far the outputs just written lie from the float32 model's, or why there are none."""
        if "failed" in answer:
            return str(answer["failed"])
        return (
            difference(self.reference, read_arrays(self._outputs))
            if self.reference is not None
            else "the float32 model does not run"
        )

    def _program(self, path: Path, steps: list[str]) -> dict[str, Any]:
        question = {"steps": steps, "path": str(path), "source": str(self.path)}
        question |= {"feeds": str(self.feeds), "outputs": str(self._outputs)}
        return ask(self.python, "judge_program.py", question, self.limit)

    def _honest(self, path: Path, **more: str) -> dict[str, Any]:
        question = {"path": str(path), "feeds": str(self.feeds), "outputs": str(self._outputs), **more}
        return ask(sys.executable, "bench.onnx.honest", question, self.limit)
