"""The graphs that the rewrite is timed on: real ones from files, and synthetic ones."""

import dataclasses
import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.results import ROOT
from bench.synthetic import write_synthetic

#: Grappler takes a time quadratic in the length of a chain of tensor lists: this many nodes is what it is compared on.
TENSORLIST_NODES = 4000


@dataclasses.dataclass(frozen=True)
class Workload:
    """A graph in a file.

    Attributes:
        name: What tables call it.
        path: A GraphDef, ``.pb``.
        fetch: Names of the values the graph is run for; None = every result of the nodes that nobody waits for.
        kind: The kind of synthetic graph, or ``"real"``.
        size: How many nodes were asked for (synthetic) or 0.
    """

    name: str
    path: Path
    fetch: tuple[str, ...] | None = None
    kind: str = "real"
    size: int = 0


def default_graphs() -> list[Path]:
    """Return what comes with the repository: the example and the graphs the decisions are tested on."""
    return [ROOT / "examples", ROOT / "tests" / "data" / "grappler" / "models"]


def real(paths: Iterable[Path], folder: Path) -> list[Workload]:
    """Unpack GraphDef files (``.pb``, ``.pb.gz``; or folders of them) into ``folder``.

    A file ``NAME.meta.json`` beside ``NAME.pb.gz`` may say ``"fetch"``, the names of the values the graph is run for.

    Raises:
        ValueError: If a path does not exist or is something else.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted((*path.glob("*.pb"), *path.glob("*.pb.gz")))
        elif path.is_file() and path.name.endswith((".pb", ".pb.gz")):
            files.append(path)
        else:
            raise ValueError(f"{path} is neither a folder nor a file .pb or .pb.gz.")
    workloads = []
    for file in files:
        name = file.name.removesuffix(".gz").removesuffix(".pb")
        unpacked = folder / f"{len(workloads)}_{name}.pb"
        unpacked.write_bytes(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes())
        meta = file.with_name(f"{name}.meta.json")
        fetch = tuple(json.loads(meta.read_text(encoding="utf-8"))["fetch"]) if meta.is_file() else None
        workloads.append(Workload(name, unpacked, fetch))
    return workloads


def synthetic(kinds: Sequence[str], sizes: Sequence[int], folder: Path) -> list[Workload]:
    """Write synthetic graphs into ``folder``, of each kind all sizes, of ``tensorlist`` also :data:`TENSORLIST_NODES`."""
    workloads = []
    for kind in kinds:
        for size in sorted({*sizes, *((TENSORLIST_NODES,) if kind == "tensorlist" else ())}):
            path = folder / f"{kind}_{size}.pb"
            workloads.append(Workload(f"{kind} {size:,}", path, (write_synthetic(kind, size, path),), kind, size))
    return workloads
