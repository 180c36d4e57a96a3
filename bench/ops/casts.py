"""Times of ``cast_array`` beside NumPy's and ml_dtypes' ``astype``."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ampgraph.graph.dtypes import cast_array, find_dtype
from ampgraph.graph.rounding import round_on_grid
from bench.results import Limit

#: From dtype, to dtype.
CASTS = (
    ("float32", "float16"),
    ("float16", "float32"),
    ("float64", "float16"),
    ("float32", "bfloat16"),
    ("bfloat16", "float32"),
    ("float64", "bfloat16"),
)
SIZES = (10, 1000, 1_000_000)
#: Values of which NumPy's cast takes long, and the share of them.
_MIXES = {
    "normal": (None, 0.0),
    "1% subnormal": (1e-5, 0.01),
    "half subnormal": (1e-5, 0.5),
    "subnormal": (1e-5, 1.0),
    "half to 0": (1e-30, 0.5),
    "half infinite": (1e30, 0.5),
    "NaN": (np.nan, 1.0),
}
#: Runs together take so many seconds at least.
_LEAST = 0.005


def make_values(count: int, mix: str, dtype: str) -> Any:
    """Return an array of ``count`` random numbers whose sizes are those of normal float16 numbers, except where ``mix`` says."""
    random = np.random.default_rng(0)
    values = random.uniform(0.02, 4, count) * random.choice([-1, 1], count)
    factor, share = _MIXES[mix]
    if factor is not None:
        values[random.permutation(count)[: max(1, round(share * count))]] *= factor
    with np.errstate(all="ignore"):
        return values.astype(find_dtype(dtype).numpy)


def time_casts(sizes: Sequence[int], repeat: int) -> Iterator[dict[str, Any]]:
    """Yield for every cast, mix of values and size ``ours``, ``theirs`` and, of normal numbers, ``normal``: shortest CPU seconds.

    ``strided`` has every other element, ``grid`` is rounding to float16's numbers in float32, where theirs is two casts.
    """
    for count in sizes:
        for before, after in CASTS:
            wanted = find_dtype(after)
            normal = make_values(count, "normal", before)
            for mix in _MIXES:
                yield _row(f"{before} → {after}", mix, make_values(count, mix, before), normal, repeat, wanted)
            wide = make_values(2 * count, "half subnormal", before)[::2]
            yield _row(f"{before} → {after}", "strided, half subnormal", wide, normal, repeat, wanted)
        normal = make_values(count, "normal", "float32")
        for mix in _MIXES:
            yield _row("grid", mix, make_values(count, mix, "float32"), normal, repeat, None)


def _row(cast: str, mix: str, values: Any, normal: Any, repeat: int, dtype: Any) -> dict[str, Any]:
    def ours() -> Any:
        return round_on_grid(values) if dtype is None else cast_array(values, dtype)

    def theirs(x: Any) -> Any:
        return x.astype(np.float16).astype(np.float32) if dtype is None else x.astype(dtype.numpy)

    with np.errstate(all="ignore"):
        times = shortest([ours, lambda: theirs(values), lambda: theirs(normal)], repeat)
    return {"cast": cast, "values": mix, "count": normal.size, **dict(zip(("ours", "theirs", "normal"), times, strict=True))}


def shortest(actions: Sequence[Callable[[], Any]], repeat: int) -> list[float]:
    """Return the shortest processor time of each action, in seconds; they run in turns."""
    counts = []
    for action in actions:
        start = time.perf_counter()
        action()
        counts.append(max(1, min(5000, round(_LEAST / max(time.perf_counter() - start, 1e-7)))))
    best = [float("inf")] * len(actions)
    for _ in range(repeat):
        for i, action in enumerate(actions):
            start = time.process_time()
            for _ in range(counts[i]):
                action()
            best[i] = min(best[i], (time.process_time() - start) / counts[i])
    return best


def limits(rows: Sequence[dict[str, Any]]) -> list[Limit]:
    """Return the goal for large arrays: no values take float32 → float16 longer than 1.2 times what NumPy takes for normal ones."""
    found = [row for row in rows if row["cast"] == "float32 → float16" and row["count"] >= 100_000]
    if not found:
        return []
    worst = max(found, key=lambda row: row["ours"] / row["normal"])
    what = f"float32 → float16, {worst['count']:,} elements, {worst['values']}: cast_array / NumPy's of normal numbers"
    return [Limit(what, worst["ours"] / worst["normal"], 1.2)]
