"""Results of peers that an earlier run has found: peers are slow, and change less often than ampgraph."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def add_peers(path: Path, results: Iterable[dict[str, Any]], versions: dict[str, dict[str, str]]) -> None:
    """Add the results of peers from the JSON of an earlier run, for the same models and dtypes; nothing is replaced.

    Args:
        path: The JSON.
        results: What was measured now, by model; their files are added to.
        versions: Of the packages of judge and peers; those of added peers are added, with ``date``, ``revision``
            and ``load`` of that run.

    Raises:
        ValueError: If the file is something else.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.get("benchmark") != "onnx":
        raise ValueError(f"{path} holds no results of this benchmark.")
    machine = content["machine"]
    run = {"date": machine["date"][:10], "revision": machine["revision"], "load": str(machine["load"])}
    earlier = {(model["name"], model["bytes"]): model["files"] for model in content["models"]}
    for result in results:
        dtypes = {file["dtype"] for file in result["files"]}
        for file in earlier.get((result["name"], result["bytes"]), []):
            name = file["converter"]
            measured_now = name == "ampgraph" or (name in versions and "date" not in versions[name])
            if file["dtype"] not in dtypes or measured_now:
                continue
            versions.setdefault(name, content["peers"][name] | run)
            result["files"].append(file)
