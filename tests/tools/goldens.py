"""Recorded decisions of TensorFlow's auto_mixed_precision: reading a case, running ours, comparing.

A case is a line of ``*.jsonl.gz`` or one expectation of ``models/*.meta.json``; both hold the graph in a compact JSON form
(or point at a ``.pb``), the devices, environment and fetches of the recording, and what TensorFlow made of it.
"""

import base64
import dataclasses
import gzip
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ampgraph.graph import AmpgraphError, FormatError, Graph, OpListError, PassError, find_dtype
from ampgraph.graph.formats.files import load, save
from ampgraph.graph.formats.proto import message
from ampgraph.graph.formats.tensorflow import read_graph_def
from ampgraph.rewrite import Policy, auto_mixed_precision
from ampgraph.rewrite.target import Target

MODES = {"cuda_fp16": ("gpu", "float16"), "onednn_bf16": ("cpu", "bfloat16"), "cpu_fp16": ("cpu", "float16")}


@dataclasses.dataclass
class Case:
    """One recorded run of the pass.

    Attributes:
        id: Name of the case, with the mode for models.
        kind: ``"unit"``, ``"fuzz"``, ``"models"`` …: the file it came from.
        mode: Grappler's mode.
        devices, env, fetch: The circumstances of the recording.
        graph: The graph in JSON form, or None when only the ``.pb`` is used.
        pb: The graph as a file, or None.
        expect: What TensorFlow made of it.
        tf_valid: Whether TensorFlow's own result type-checks.
    """

    id: str
    kind: str
    mode: str
    devices: list[dict[str, Any]]
    env: dict[str, str]
    fetch: list[str]
    graph: dict[str, Any] | None
    pb: Path | None
    expect: dict[str, Any]
    tf_valid: bool


def read_cases(folder: Path) -> Iterator[Case]:
    """Yield every case of a folder: ``*.jsonl.gz``, ``models/*.meta.json``; ``tf_invalid.json`` says which TF got wrong."""
    invalid_file = folder / "tf_invalid.json"
    invalid = {row["id"] for row in json.loads(invalid_file.read_text())} if invalid_file.exists() else set()
    for file in sorted(folder.glob("*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).decode().splitlines():
            row = json.loads(line)
            pb = folder / row["pb"] if row.get("pb") else None
            yield Case(
                row["id"],
                file.name.removesuffix(".jsonl.gz"),
                row["mode"],
                row["devices"],
                row["env"],
                row["fetch"],
                row.get("graph"),
                pb if pb is not None and pb.exists() else None,
                row["expect"],
                row["id"] not in invalid,
            )
    for file in sorted(folder.glob("models/*.meta.json")):
        meta = json.loads(file.read_text())
        pb = file.parent / meta["pb"] if meta.get("pb") else None
        graph = None
        if pb is None or not pb.exists():
            pb, graph = None, json.loads(gzip.decompress((file.parent / meta["graph"]).read_bytes()))
        for expect in meta["expect"]:
            name = f"{meta['id']}.{expect['mode']}"
            recorded = json.loads(gzip.decompress((file.parent / expect["file"]).read_bytes()))
            yield Case(
                name,
                "models",
                expect["mode"],
                expect["devices"],
                expect["env"],
                meta["fetch"],
                graph,
                pb,
                {**expect, **recorded},
                name not in invalid,
            )


# ---- the JSON form of a graph -> GraphDef ------------------------------------------------------------------------------


def graph_def(graph: dict[str, Any]) -> Any:
    """Turn the JSON form of a graph into a GraphDef message."""
    result = message("GraphDef")()
    result.versions.producer = graph.get("producer", 0)
    for node in graph["nodes"]:
        _node(result.node.add(), node)
    for function in graph.get("functions", []):
        target = result.library.function.add()
        target.signature.name = function["name"]
        for name, dtype in function["inputs"]:
            target.signature.input_arg.add(name=name, type=find_dtype(dtype).tf)
        for name, dtype in function["outputs"]:
            target.signature.output_arg.add(name=name, type=find_dtype(dtype).tf)
        for name in function.get("control_ret", {}):
            target.signature.control_output.append(name)
        for node in function["nodes"]:
            _node(target.node_def.add(), node)
        for key, value in function["ret"].items():
            target.ret[key] = value
        for key, value in function.get("control_ret", {}).items():
            target.control_ret[key] = value
        for key, value in function.get("attr", {}).items():
            _attribute(target.attr[key], value)
    return result


def _node(target: Any, node: dict[str, Any]) -> None:
    target.name, target.op, target.device = node["n"], node["op"], node.get("dev", "")
    target.input.extend(node.get("in", []))
    for key, value in node.get("a", {}).items():
        _attribute(target.attr[key], value)


def _attribute(target: Any, tagged: dict[str, Any]) -> None:
    ((tag, value),) = tagged.items()
    if tag == "t":
        target.type = find_dtype(value).tf
    elif tag == "lt":
        target.list.type.extend(find_dtype(item).tf for item in value)
    elif tag == "s64":
        target.s = base64.b64decode(value)
    elif tag == "s":
        target.s = value.encode()
    elif tag in "ifb":
        setattr(target, tag, value)
    elif tag in ("li", "lf", "lb"):
        getattr(target.list, tag[1]).extend(value)
    elif tag == "ls":
        target.list.s.extend(item.encode() for item in value)
    elif tag == "lempty":
        target.list.SetInParent()
    elif tag == "shape":
        _shape(target.shape, value)
    elif tag == "lshape":
        for item in value:
            _shape(target.list.shape.add(), item)
        target.list.SetInParent()
    elif tag == "func":
        target.func.name = value
    elif tag == "tensor":
        _tensor(target.tensor, value)
    else:
        raise ValueError(f"unknown tag {tag!r}")


def _shape(target: Any, dims: list[int] | None) -> None:
    target.SetInParent()
    if dims is None:
        target.unknown_rank = True
        return
    for dim in dims:
        target.dim.add(size=-1 if dim is None else dim)


_FIELDS = {"float32": "float_val", "float64": "double_val", "int64": "int64_val", "bool": "bool_val", "string": "string_val"}


def _tensor(target: Any, tensor: dict[str, Any]) -> None:
    target.dtype = find_dtype(tensor["dtype"]).tf
    _shape(target.tensor_shape, tensor["shape"])
    for value in tensor.get("value", []):
        if tensor["dtype"] in ("float16", "bfloat16"):
            target.half_val.append(int(value))
        elif tensor["dtype"] == "string":
            target.string_val.append(str(value).encode())
        else:
            getattr(target, _FIELDS.get(tensor["dtype"], "int_val")).append(value)


# ---- running ours -------------------------------------------------------------------------------------------------------


def policy_of(case: Case) -> Policy:
    """Return the policy that asks for what the case recorded."""
    _, dtype = MODES[case.mode]
    return Policy.from_env(
        case.env,
        preset="grappler",
        dtype=dtype,
        target=Target.from_devices(case.devices, "gpu" if case.mode == "cuda_fp16" else "cpu"),
        preserve=tuple(name.removeprefix("^").partition(":")[0] for name in case.fetch),
    )


def load_case(case: Case) -> Graph:
    """Read the case's graph: from its ``.pb`` where there is one."""
    if case.pb is not None:
        return load(case.pb, outputs=case.fetch)
    assert case.graph is not None
    return read_graph_def(graph_def(case.graph), outputs=case.fetch)


def run_case(case: Case) -> list[str]:
    """Rewrite the case's graph with preset ``grappler`` and return the differences from what TensorFlow did."""
    if case.expect["status"] == "error":
        return _run_failing(case)
    before = load_case(case)
    result = auto_mixed_precision(before, policy_of(case))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "after.pb"
        save(result.graph, file)
        after = load(file, outputs=case.fetch)
    if not case.tf_valid:
        return _compare_with_invalid(after, case.expect, result.report.notes)
    differences = compare(before, after, case.expect)
    for name, expect in (case.expect.get("functions") or {}).items():
        if expect.get("removed"):
            continue
        if name not in after.functions:
            differences.append(f"function {name} is gone")
        elif not expect["changed"]:
            differences += [f"{name}: {d}" for d in compare_unchanged(before.functions[name], after.functions[name])]
        else:
            differences += [f"{name}: {d}" for d in compare(before.functions[name], after.functions[name], expect)]
    return differences


#: What TensorFlow says (a part of it), and the exception and a part of the message of ours.
_ERRORS = (
    ("raw_hash_map<>::at", PassError, "stands later in the file"),
    ("Failed to set type attribute", PassError, "Failed to set a type attribute"),
    ("cannot be set to UNSAFE_FORCE_ALL when oneDNN is used", OpListError, "UNSAFE_FORCE_ALL"),
    ("Op lists have conflicting entries", OpListError, "Op lists have conflicting entries"),
    ("Expected Merge node after NextIteration", PassError, "must feed a Merge only"),
    ("Non-existent input", FormatError, "there is no node"),
)


def _run_failing(case: Case) -> list[str]:
    theirs = case.expect.get("error") or ""
    error_type, part = next(((error, part) for text, error, part in _ERRORS if text in theirs), (AmpgraphError, ""))
    try:
        auto_mixed_precision(load_case(case), policy_of(case))
    except error_type as error:
        return [] if part in str(error) else [f"expected an error with {part!r}, got: {error}"]
    except AmpgraphError as error:
        return [f"expected {error_type.__name__} for {theirs!r}, got {type(error).__name__}: {error}"]
    return [f"expected an error: {theirs}"]


def _compare_with_invalid(after: Graph, expect: dict[str, Any], notes: list[str]) -> list[str]:
    """TensorFlow's result does not type-check. Ours does, says where it differs, and only keeps more in float32."""
    if not any(note.startswith("unlike Grappler") for note in notes):
        return ["TensorFlow's result is invalid here, but the report does not say how ours differs"]
    ours = _types(after)
    return [
        f"{row['name']} {key}: {ours[row['name']][1].get(key)}, but TensorFlow left it {wanted}"
        for row in expect["nodes"]
        for key, (was, wanted) in row.get("attrs", {}).items()
        if was == wanted != ours[row["name"]][1].get(key)
    ]


# ---- comparing ----------------------------------------------------------------------------------------------------------


def _types(graph: Graph) -> dict[str, tuple[str, dict[str, str]]]:
    return {node.name: (node.op_type, {key: dtype.name for key, dtype in node.types.items()}) for node in graph.nodes}


def compare_unchanged(before: Graph, after: Graph) -> list[str]:
    """A body TensorFlow left alone must have come out with the same types and nodes."""
    return [] if _types(before) == _types(after) else ["changed, but TensorFlow left it alone"]


def compare(before: Graph, after: Graph, expect: dict[str, Any]) -> list[str]:
    """Compare types, ops, nodes, casts and dropped control inputs with the expectation."""
    differences = []
    ours = _types(after)
    expected_names = set()
    for row in expect["nodes"]:
        expected_names.add(row["name"])
        if row["name"] not in ours:
            differences.append(f"node {row['name']} is missing")
            continue
        op, types = ours[row["name"]]
        if op != row.get("op_after", row["op"]):
            differences.append(f"{row['name']}: op {op}, expected {row.get('op_after', row['op'])}")
        for key, (_, wanted) in row.get("attrs", {}).items():
            if types.get(key) != wanted:
                differences.append(f"{row['name']} ({op}) {key}: {types.get(key)}, expected {wanted}")
    new = [node for node in after.nodes if node.name not in expected_names]
    unknown = [node.name for node in new if node.op_type != "Cast"]
    if unknown:
        differences.append(f"unexpected nodes {unknown[:5]}")
    if "num_nodes_after" in expect and len(after) != expect["num_nodes_after"]:
        differences.append(f"{len(after)} nodes, expected {expect['num_nodes_after']}")
    mine, theirs = _casts(after, new), _expected_casts(after, expect)
    # Some recordings leave out that a function result reads a cast, and show the cast without any reader.
    results_only = {cast for cast in mine if cast[3].startswith("[('ret:")}
    mine = {(*cast[:3], "[]") if cast in results_only and (*cast[:3], "[]") in theirs else cast for cast in mine}
    differences += [f"unexpected cast {cast}" for cast in sorted(mine - theirs)]
    differences += [f"missing cast {cast}" for cast in sorted(theirs - mine)]
    differences += _compare_controls(before, after, expect)
    return differences


def compare_graphs(ours: Graph, theirs: Graph) -> list[str]:
    """Compare two graphs that a rewrite made of one: the types of all nodes, and the casts that are new."""
    differences = []
    for what, mine, other in [
        ("main graph", ours, theirs),
        *((name, ours.functions.get(name), f) for name, f in theirs.functions.items()),
    ]:
        if mine is None:
            differences.append(f"{what} is missing")
            continue
        types = [{name: found for name, found in _types(graph).items() if not _SUFFIX.search(name)} for graph in (mine, other)]
        differences += [f"{what}: node {name} is only in one" for name in types[0].keys() ^ types[1].keys()]
        differences += [
            f"{what}: {name} is {types[0][name]}, expected {types[1][name]}"
            for name in types[0].keys() & types[1].keys()
            if types[0][name] != types[1][name]
        ]
        casts = [_casts(graph, [node for node in graph.nodes if _SUFFIX.search(node.name)]) for graph in (mine, other)]
        differences += [f"{what}: unexpected cast {cast}" for cast in sorted(casts[0] - casts[1])]
        differences += [f"{what}: missing cast {cast}" for cast in sorted(casts[1] - casts[0])]
    return differences


_SUFFIX = re.compile(r"-\d+-AutoMixedPrecision")


def _stem(name: str) -> str:
    """Drop the running number of a cast's name."""
    return _SUFFIX.sub("-k-AutoMixedPrecision", name)


def _casts(graph: Graph, casts: list[Any]) -> set[tuple[str, str, str, str]]:
    found = set()
    for cast in casts:
        source = cast.inputs[0]
        users = [(_stem(user.name), slot) for user, slot in cast.outputs[0].uses()]
        users += [
            (f"ret:{name}", -1)
            for name, value in zip(graph.output_names, graph.outputs, strict=True)
            if graph.is_function and value is cast.outputs[0]
        ]
        name = f"{_stem(source.producer.name)}:{source.index}"
        found.add((name, cast.types["SrcT"].name, cast.types["DstT"].name, str(sorted(users))))
    return found


def _expected_casts(graph: Graph, expect: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    found = set()
    for cast in expect["casts"]:
        source = cast["src"]
        if cast.get("src_port") is None:  # in a function body: "node:output:index" or an argument
            node, _, rest = source.partition(":")
            port = 0
            if rest:
                formal, _, index = rest.partition(":")
                producer = graph.node(node)
                assert producer.schema is not None
                port = producer.schema.split_outputs(producer.signature)[formal][int(index or 0)]
            source = node
        else:
            port = cast["src_port"]
        users = sorted((_stem(user), slot) for user, slot in cast["consumers"])
        found.add((f"{_stem(source)}:{port}", cast["from"], cast["to"], str(users)))
    return found


def _compare_controls(before: Graph, after: Graph, expect: dict[str, Any]) -> list[str]:
    removed = {tuple(row) for row in expect.get("ctrl_removed", [])}
    differences = []
    for node in before.nodes:
        if not node.controls or not after.has_node(node.name):
            continue
        now = {source.name for source in after.node(node.name).controls}
        differences += [
            f"{node.name}: control input ^{name} {'kept' if name in now else 'dropped'}"
            for name in {source.name for source in node.controls}
            if (name in now) == ((node.name, f"^{name}") in removed)
        ]
    return differences
