"""The models of the standard's backend suite survive the rewrite, also when it is forced: a share of them, or all in ``make nightly``."""

from typing import Any

import pytest
from onnx import ModelProto, checker, shape_inference

from ampgraph.graph.formats.onnx import read_model, write_model
from ampgraph.rewrite import auto_mixed_precision

from .backend_models import backend_models
from .onnx_text import signature

SHARE = 200


def problem(proto: ModelProto) -> str:
    """Return what the standard's checker and its strict shape inference say against a model, or an empty string."""
    try:
        checker.check_model(proto)
        shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        return " ".join(str(error).split())
    return ""


def faults(proto: ModelProto, **policy: Any) -> str:
    """Rewrite a model and return what is wrong with the result, or an empty string."""
    graph = read_model(proto)
    result = auto_mixed_precision(graph, **policy)
    if not result.modified:
        return "" if result.graph is graph else "unchanged, but another object"
    written = write_model(result.graph)
    if policy.get("keep_io", True) and signature(written) != signature(proto):
        return "inputs or outputs changed"
    again = auto_mixed_precision(result.graph, **policy)
    if again.modified:
        return "rewritten twice"
    return "" if problem(proto) else problem(written)


def policies(proto: ModelProto, index: int) -> dict[str, dict[str, Any]]:
    """Return the policies to try: both dtypes, and all ops of the model on the AllowList."""
    ops = {
        f"{node.domain}:{node.op_type}" if node.domain else node.op_type
        for part in read_model(proto).all_graphs()
        for node in part.nodes
        if node.domain != "ampgraph" and node.op_type not in ("Cast", "BitCast")
    }
    forced = {"ops": tuple(f"{op}=allow" for op in sorted(ops))}
    chosen = [{"dtype": dtype, "keep_io": keep, **forced} for dtype in ("float16", "bfloat16") for keep in (True, False)]
    found: list[dict[str, Any]] = [{"dtype": "float16"}, {"dtype": "bfloat16"}, *(chosen if index < 0 else [chosen[index % 4]])]
    return {f"{policy['dtype']} {policy.get('keep_io', '')}{' forced' * ('ops' in policy)}": policy for policy in found}


def run(models: dict[str, ModelProto], *, some: bool) -> None:
    wrong: dict[str, str] = {}
    clean = 0
    for index, (name, proto) in enumerate(models.items()):
        clean += not problem(proto)
        for kind, policy in policies(proto, index if some else -1).items():
            if found := faults(proto, **policy):
                wrong[f"{name}, {kind}"] = found
    assert wrong == {}
    assert clean > 0.9 * len(models)


def test_a_share_of_the_models() -> None:
    models = backend_models()
    assert len(models) > 1500
    step = len(models) // SHARE
    run(dict(list(models.items())[::step]), some=True)


@pytest.mark.nightly
def test_all_models() -> None:
    run(backend_models(), some=False)
