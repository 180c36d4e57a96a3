"""What holds for every ONNX model: rewritten ones are valid, keep their contract, cost no needless cast, and are explained."""

from collections import Counter

import onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from ampgraph.graph import Graph
from ampgraph.graph.diff import structurally_equal
from ampgraph.graph.dtypes import float32
from ampgraph.graph.formats.onnx import read_model, write_model
from ampgraph.graph.verify import verify
from ampgraph.lists import OpLists
from ampgraph.rewrite import Policy, auto_mixed_precision
from ampgraph.rewrite.constants import is_constant

from .onnx_models import models
from .onnx_text import check, signature

POLICIES = {
    "safe": Policy(),
    "bfloat16": Policy(dtype="bfloat16"),
    "tensorrt": Policy(preset="tensorrt"),
    "onnxruntime": Policy(preset="onnxruntime"),
    "torch": Policy(preset="torch-autocast"),
    "grappler": Policy(preset="grappler"),
    "no-io": Policy(keep_io=False),
    "no-io-bfloat16": Policy(keep_io=False, dtype="bfloat16"),
    "exp-allowed": Policy(ops=("Exp=allow", "Add=allow", "Softmax=allow", "ReduceMean=allow", "Identity=allow")),
}
LISTED = sorted({op for mode in ("onnx_float16", "onnx_bfloat16") for _, op, _ in OpLists.load(mode)})
policies = st.sampled_from(sorted(POLICIES)).map(POLICIES.__getitem__)
relaxed = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def constants(graph: Graph) -> list[str]:
    """Return the Casts that read a constant, bodies and functions included."""
    casts = (node for part in graph.all_graphs() for node in part.nodes if node.op_type == "Cast" and not node.domain)
    return [node.label for node in casts if node.inputs[0] is not None and is_constant(node.inputs[0].producer)]


@relaxed
@given(models(), policies)
def test_rewritten_models_are_valid_and_keep_their_contract(proto: ModelProto, policy: Policy) -> None:
    graph = read_model(proto)
    result = auto_mixed_precision(graph, policy)
    assert write_model(graph) == proto, "the given graph was changed"
    if not result.modified:
        assert result.graph is graph
        return
    verify(result.graph)
    written = write_model(result.graph)
    check(written)
    names = [[name for name, _ in signature(model)] for model in (written, proto)]
    assert names[0] == names[1]
    if policy.keep_io:
        assert signature(written) == signature(proto)
    assert not structurally_equal(graph, result.graph)
    assert write_model(read_model(written.SerializeToString())) == written


@relaxed
@given(models(), policies)
def test_rewriting_twice_equals_once(proto: ModelProto, policy: Policy) -> None:
    once = auto_mixed_precision(read_model(proto), policy).graph
    if policy.ops:  # what these force to be low, the next rewrite finds low and sees nothing to fear in: that one settles it
        once = auto_mixed_precision(once, policy).graph
    twice = auto_mixed_precision(once, policy)
    assert str(twice.graph) == str(once)
    assert twice.graph is once


@settings(relaxed, max_examples=20)
@given(models(), st.sampled_from(["float16", "bfloat16"]))
def test_all_ops_denied_is_the_original(proto: ModelProto, dtype: str) -> None:
    graph = read_model(proto)
    assert auto_mixed_precision(graph, ops=tuple(f"{op}=deny" for op in LISTED), dtype=dtype).graph is graph


@relaxed
@given(models(), policies)
def test_casts_are_few(proto: ModelProto, policy: Policy) -> None:
    """None on a constant, one for a value and dtype (or for each time that it is returned), none that undoes another or does nothing."""
    graph = read_model(proto)
    result = auto_mixed_precision(graph, policy)
    assert set(constants(result.graph)) <= set(constants(graph))
    given_before = {node.label for part in graph.all_graphs() for node in part.nodes if node.op_type == "Cast"}
    for part in result.graph.all_graphs():
        ours = [node for node in part.nodes if node.op_type == "Cast" and node.label not in given_before]
        added = Counter((node.inputs[0], node.types["T2"]) for node in ours)
        returned = Counter((node.inputs[0], node.types["T2"]) for node in ours if node.outputs[0] in part.outputs)
        assert all(count <= max(1, returned[key]) for key, count in added.items())  # nothing is returned twice
        for node in ours:
            source = node.inputs[0]
            assert source is not None
            assert source.dtype is not node.types["T2"]
            before = source.producer.inputs[0] if source.producer.op_type == "Cast" else None
            widened = before is not None and before.dtype is node.types["T2"] and source.dtype is float32
            assert not widened, f"{node.label} undoes {source.producer.label}"


def test_a_cast_that_does_nothing_behind_a_low_node_makes_no_second_one() -> None:
    proto = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2,4] x) => (float[2,4] z, float[2,4] u, float[2,4] z2)
        <int64 k = {1}, float[4,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}>
        { y = MatMul(x, w)  u = CumSum(y, k)  z = Cast<to=1>(y)  z2 = Cast<to=1>(y) }
    """)
    result = auto_mixed_precision(read_model(proto), dtype="bfloat16").graph
    assert [value.name for value in result.outputs] == ["z", "u", "z2"]
    assert [str(node.types["T2"]) for node in result.nodes if node.op_type == "Cast"] == [
        "bfloat16",
        "float32",
        "float32",
    ]  # nothing is returned twice
    onnx.checker.check_model(write_model(result), full_check=True)


@relaxed
@given(models(), policies)
def test_every_float_type_has_a_reason(proto: ModelProto, policy: Policy) -> None:
    graph = read_model(proto)
    report = auto_mixed_precision(graph, policy).report
    explanations = [item for item in report.explain() if item.reason != "undefined"]
    nodes = [node for part in graph.all_graphs() for node in part.all_nodes()]
    floats = Counter([node.label for node in nodes for dtype in node.types.values() if dtype is float32])
    explained = Counter(item.node for item in explanations)
    if report.bodies[0].graph.opsets == graph.opsets:
        assert explained == floats
    else:  # an op may have more type variables at the version the model was raised to, and take constants instead of attributes
        assert explained >= floats
    assert all(len(item.why) > 10 for item in explanations)
    assert report.json()["low"] == report.low
    assert str(report) == report.text()
