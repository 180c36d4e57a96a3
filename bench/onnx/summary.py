"""Tables and limits of the results of ``python -m bench onnx``."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bench.results import Limit, made_by, markdown_table, median

_SMALL_FILE = 5_000_000
_MOST_SIZE = 0.55
_MOST_CASTS = 7
_LEAST_LOW = 0.95
#: How far ampgraph's float32 run may lie from onnxruntime's, by model: quantized ones may differ by a quantum, logarithms of spectra
#: in basic_pitch make more of the last bits, and the softmax of light_squeezenet's made-up logits around 1e10 is arbitrary.
_EXECUTOR_BOUNDS = {"basic_pitch": 5e-4, "ddddocr_old_dynq": 2e-2, "smart_turn_qdq": 2e-2, "light_squeezenet": math.inf}
_EXECUTOR_BOUND = 1e-4
Table = tuple[str, Sequence[str], list[Sequence[str]]]


def tables(results: Sequence[dict[str, Any]]) -> Iterator[Table]:
    """Yield title, columns and rows: the converters; then for each dtype ampgraph by model, and what each peer's file is."""
    yield _converters(results)
    for dtype in dict.fromkeys(file["dtype"] for result in results for file in result["files"]):
        yield _ours(results, dtype)
        if any(file["converter"] != "ampgraph" for result in results for file in _files(result, dtype)):
            yield _verdicts(results, dtype)
            yield _times(results, dtype)


def limits(results: Sequence[dict[str, Any]]) -> list[Limit]:
    """Return the goals for ampgraph that this run says something about."""
    by_dtype: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = defaultdict(list)
    for result in results:
        for file in result["files"]:
            if file["converter"] == "ampgraph":
                by_dtype[file["dtype"]].append((result, file))
    ran = {result["name"]: result["executor_error"] for result in results if "executor_error" in result}
    shares = {name: error / _EXECUTOR_BOUNDS.get(name, _EXECUTOR_BOUND) for name, error in ran.items()}
    found = _largest(shares, "float32: largest difference from onnxruntime's run / what is allowed", 1)
    for dtype, pairs in by_dtype.items():
        done = [(result, file) for result, file in pairs if "bytes" in file]
        found.append(Limit(f"{dtype}: models whose file is not right", sum(bool(file["wrong"]) for _, file in pairs), 0))
        if not done:
            continue
        sizes = {result["name"]: file["bytes"][1] / file["bytes"][0] for result, file in done if not file["is_special"]}
        found += _largest(sizes, f"{dtype}: largest size / source's, not quantized or recurrent", _MOST_SIZE)
        found += [
            Limit(f"{dtype}: median of added Casts", median(file["added_casts"] for _, file in done), _MOST_CASTS),
            Limit(f"{dtype}: Casts on weights", sum(file["weight_casts"] for _, file in done), 0),
            Limit(f"{dtype}: models below 95 % low without a hazard", sum(map(_lacks_low, done)), 0),
        ]
        for what, least, most, nodes, seconds in (
            ("under 5 MB and 1,000 nodes", 0, _SMALL_FILE, (0, 1000), 0.2),
            ("under 10 MB, 1,000 to 1,800 nodes", 0, 2 * _SMALL_FILE, (1000, 1800), 0.3),
            ("of 80 to 100 MB", 8e7, 1e8, (0, 1800), 1.2),
        ):
            times = {
                result["name"]: median(file["seconds"])
                for result, file in done
                if least <= result["bytes"] < most and nodes[0] <= result["nodes"] < nodes[1]
            }
            found += _largest(times, f"{dtype}: slowest conversion {what}", seconds, " s")
        commands = {result["name"]: file["command"] for result, file in done if result["bytes"] < _SMALL_FILE}
        found += _largest(commands, f"{dtype}: slowest command on a model under 5 MB", 0.9, " s")
    return found


def _largest(values: dict[str, float], what: str, most: float, unit: str = "") -> list[Limit]:
    """Return a limit for the largest of some models' values, with the model's name; none if there is no value."""
    if not values:
        return []
    name = max(values, key=values.__getitem__)
    return [Limit(f"{what}: {name}", values[name], most, unit)]


def markdown(
    facts: dict[str, Any], versions: dict[str, dict[str, str]], results: Sequence[dict[str, Any]], found: Iterable[Limit]
) -> str:
    """Return the tables and limits as a Markdown page."""
    packages = "; ".join(f"{name}: {', '.join(f'{k} {v}' for k, v in items.items())}" for name, items in versions.items())
    made = f"{made_by('onnx', facts)} {packages}."
    lines = ["# Conversion of ONNX models", "", made, ""]
    if any("date" in items for items in versions.values()):
        lines += ["Converters with a date ran earlier: their times are of a machine that may have been busier.", ""]
    for title, columns, rows in tables(results):
        lines += markdown_table(title, columns, rows)
    wrong = [
        f"- {result['name']}, {file['dtype']}: {'; '.join(file['wrong'])}"
        for result in results
        for file in result["files"]
        if file["converter"] == "ampgraph" and file["wrong"]
    ]
    lines += ["## Files of ampgraph that are not right", "", *wrong, ""] if wrong else []
    rows = [(x.what, f"{x.value:,.4g}{x.unit}", f"{x.most:,.4g}{x.unit}", "ok" if x.ok else "over") for x in found]
    lines += markdown_table("Limits", ("what", "measured", "at most", ""), rows)
    return "\n".join(lines)


def _files(result: dict[str, Any], dtype: str) -> list[dict[str, Any]]:
    return [file for file in result["files"] if file["dtype"] == dtype]


def _converters(results: Sequence[dict[str, Any]]) -> Table:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        for file in result["files"]:
            groups[file["dtype"], file["converter"]].append(file)
    columns = ("converter", "dtype", "models", "converted", "checker", "strict", "runs", "I/O", "right")
    columns += ("error", "ORT error", "Casts", "on weights", "size", "low", "s")
    rows = []
    for (dtype, name), files in groups.items():
        done = [file for file in files if "bytes" in file]
        right = [file for file in files if not file["wrong"]]
        runs = [file["runtime"] for file in done if "runtime" in file]
        counts = [
            len(files),
            len(done),
            *(sum(file[key] == "ok" for file in done) for key in ("checker", "strict")),
            sum(not isinstance(run, str) for run in runs) if runs else "-",
            sum(file["io_kept"] for file in done),
            len(right),
        ]
        rows.append(
            (
                name,
                dtype,
                *map(str, counts),
                _middle([file["honest"]["error"] for file in right], ".1e"),
                _middle([file["runtime"]["error"] for file in right if "runtime" in file], ".1e"),
                _middle([file["added_casts"] for file in done], "g"),
                str(sum(file["weight_casts"] for file in done)) if done else "-",
                _middle([file["bytes"][1] / file["bytes"][0] for file in done], ".3f"),
                _middle([file["low"] for file in done if file.get("low") is not None], ".1%"),
                _middle([median(file["seconds"]) for file in done], ".3f"),
            )
        )
    return "Converters (medians; errors of the files that are right)", columns, rows


def _ours(results: Sequence[dict[str, Any]], dtype: str) -> Table:
    columns = (
        "model",
        "MB",
        "nodes",
        "floor",
        "error",
        "ORT error",
        "Casts",
        "size",
        "low",
        "load",
        "rewrite",
        "save",
        "command",
    )
    rows = []
    for result in results:
        for file in _files(result, dtype):
            if file["converter"] != "ampgraph":
                continue
            head = (
                result["name"],
                f"{result['bytes'] / 1e6:.2f}",
                str(result["nodes"]),
                _number(result["floors"].get(dtype), ".1e"),
            )
            if "bytes" not in file:
                rows.append((*head, *["-"] * 9))
                continue
            rows.append(
                (
                    *head,
                    *(_error(file.get(key)) for key in ("honest", "runtime")),
                    str(file["added_casts"]),
                    f"{file['bytes'][1] / file['bytes'][0]:.3f}",
                    _number(file.get("low"), ".1%"),
                    *(f"{median(times):.3f}" for times in file["steps"].values()),
                    f"{file['command']:.2f}",
                )
            )
    return f"ampgraph, {dtype} (times in seconds)", columns, rows


def _verdicts(results: Sequence[dict[str, Any]], dtype: str) -> Table:
    names = list(dict.fromkeys(file["converter"] for result in results for file in _files(result, dtype)))
    rows = []
    for result in results:
        files = {file["converter"]: file for file in _files(result, dtype)}
        rows.append((result["name"], *(_short(files[name]) for name in names)))
    return f"Honest errors of files that are right, what is wrong with the others, {dtype}", ("model", *names), rows


def _times(results: Sequence[dict[str, Any]], dtype: str) -> Table:
    names = list(dict.fromkeys(file["converter"] for result in results for file in _files(result, dtype)))
    rows = []
    for result in results:
        files = {file["converter"]: file for file in _files(result, dtype)}
        times = [median(files[name]["seconds"]) if files[name].get("seconds") else None for name in names]
        rows.append((result["name"], *(_number(seconds, ".3f") for seconds in times)))
    return f"Seconds to load, convert and save, {dtype}", ("model", *names), rows


def _short(file: dict[str, Any]) -> str:
    if not file["wrong"]:
        return f"{file['honest']['error']:.1e}"
    first: str = file["wrong"][0]
    kind, _, rest = first.partition(": ")
    if not rest:
        return "I/O"
    return rest if kind == "honest" and rest.startswith(("error", "not finite")) else kind


def _error(found: dict[str, Any] | str | None) -> str:
    return f"{found['error']:.1e}" if isinstance(found, dict) and found["finite"] else "-"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None or math.isnan(value) else format(value, form)


def _middle(values: Sequence[float], form: str) -> str:
    return format(median(values), form) if values else "-"


def _lacks_low(pair: tuple[dict[str, Any], dict[str, Any]]) -> bool:
    file = pair[1]
    return file.get("low") is not None and file["low"] < _LEAST_LOW and not file["hazards"]
