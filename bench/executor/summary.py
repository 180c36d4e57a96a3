"""Tables of the results of ``python -m bench run``."""

from collections.abc import Iterator, Sequence
from typing import Any

from bench.executor.kinds import KINDS
from bench.results import made_by, markdown_table, median

Table = tuple[str, Sequence[str], list[Sequence[str]]]
#: Numerator and denominator of the ratios, and what their columns are called.
_RATIOS = {
    "f32/ORT": ("float32", "onnxruntime"),
    "f16/ORT": ("float16", "onnxruntime"),
    "f16/f32": ("float16", "float32"),
    "bf16/f32": ("bfloat16", "float32"),
    "f32/plain": ("float32", "plain"),
}


def best(found: dict[str, Any] | None, threads: int) -> float | None:
    """Return the shortest time of a side, in seconds: of the processor with one thread, of the clock with more."""
    times = (found or {}).get("cpu" if threads == 1 else "wall")
    return min(times) if times else None


def ratio(result: dict[str, Any], above: str, below: str, threads: int) -> float | None:
    """Return how long one side takes on a model for each second of another; None if one of the two has no time."""
    times = [best(result["sides"].get(f"{side}, {threads}"), threads) for side in (above, below)]
    return times[0] / times[1] if times[0] is not None and times[1] else None


def tables(results: Sequence[dict[str, Any]]) -> Iterator[Table]:
    """Yield title, columns and rows: for each number of threads the models, and the medians by kind."""
    numbers = dict.fromkeys(int(side.rpartition(", ")[2]) for result in results for side in result["sides"])
    for threads in numbers:
        yield _models(results, threads)
        yield _medians(results, threads)


def _models(results: Sequence[dict[str, Any]], threads: int) -> Table:
    rows = []
    for kind in KINDS:
        for result in results:
            if result["kind"] == kind:
                name = result["name"] + (" (weights drawn)" if result["drawn"] else "")
                milliseconds = best(result["sides"].get(f"float32, {threads}"), threads)
                ratios = [ratio(result, *sides, threads) for sides in _RATIOS.values()]
                first = "-" if milliseconds is None else f"{1000 * milliseconds:.2f}"
                rows.append((name, kind, first, *map(_number, ratios), _reference(result, threads)))
    clock = "processor time" if threads == 1 else "time"
    title = f"{threads} thread{'s' if threads > 1 else ''}: {clock} in ms, and ratios; below 1, the first is faster"
    return title, ("model", "kind", "f32 ms", *_RATIOS, "reference/f32"), rows


def _medians(results: Sequence[dict[str, Any]], threads: int) -> Table:
    rows = []
    for kind in (*KINDS, "all"):
        chosen = [result for result in results if kind in (result["kind"], "all")]
        if not chosen:
            continue
        cells = []
        for sides in _RATIOS.values():
            found = [value for result in chosen if (value := ratio(result, *sides, threads)) is not None]
            cells.append(_number(median(found) if found else None))
        rows.append((kind, str(len(chosen)), *cells))
    return f"{threads} thread{'s' if threads > 1 else ''}: medians of the ratios", ("kind", "models", *_RATIOS), rows


def _reference(result: dict[str, Any], threads: int) -> str:
    """Return how many times as long as our float32 run the reference evaluator takes, which has one thread."""
    found = result["sides"].get("reference, 1")
    ours = best(result["sides"].get(f"float32, {threads}"), threads)
    if threads != 1 or found is None or not ours:
        return "-"
    if "failed" in found:
        return found["failed"] if found["failed"].startswith("over ") else "failed"
    return f"{min(found['cpu']) / ours:,.1f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def markdown(facts: dict[str, Any], versions: dict[str, str], results: Sequence[dict[str, Any]]) -> str:
    """Return the tables as a Markdown page."""
    packages = ", ".join(f"{name} {version}" for name, version in versions.items()) or "without peers"
    made = f"{made_by('run', facts)} NumPy {facts['versions']['numpy']}, {packages}."
    lines = ["# Running ONNX models", "", made, ""]
    for title, columns, rows in tables(results):
        lines += markdown_table(title, columns, rows)
    return "\n".join(lines)
