"""What holds for every graph: rewritten graphs verify, keep their contract, and are not rewritten twice."""

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ampgraph.graph import Graph
from ampgraph.graph.diff import structurally_equal
from ampgraph.graph.dtypes import float32
from ampgraph.graph.formats.tensorflow import read_graph_def, write_graph_def
from ampgraph.graph.verify import verify
from ampgraph.lists import OpLists
from ampgraph.rewrite import Policy, RewriteResult, auto_mixed_precision
from ampgraph.rewrite.painting import Reason
from tests.graph.strategies import graphs

POLICIES = {
    "safe-f16": Policy(),
    "safe-bf16": Policy(dtype="bfloat16"),
    "safe-cpu": Policy(target="cpu"),
    "grappler-f16": Policy(preset="grappler"),
    "grappler-bf16": Policy(preset="grappler", dtype="bfloat16", target="cpu"),
    "torch": Policy(preset="torch-autocast"),
    "torch-cpu-bf16": Policy(preset="torch-autocast", dtype="bfloat16", target="cpu"),
    "force-all": Policy(level="UNSAFE_FORCE_ALL"),
    "infer-as-deny": Policy(level="TREAT_INFER_AS_DENY"),
}
LISTED = sorted({op for _, op, _ in OpLists.load("cuda_fp16")} | {"FusedBatchNorm", "FusedBatchNormGrad"})
policies = st.sampled_from(sorted(POLICIES)).map(POLICIES.__getitem__)
relaxed = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def rewrite(graph: Graph, policy: Policy) -> RewriteResult:
    """Rewrite; skip the loops that preset ``grappler`` refuses like TensorFlow."""
    if policy.preset == "grappler":
        merges = {"Merge", "RefMerge"}
        for body in (graph, *graph.functions.values()):
            loops = (node.outputs[0] for node in body.nodes if node.op_type == "NextIteration")
            assume(all(user.op_type in merges for value in loops for user, _ in value.uses()))
    return auto_mixed_precision(graph, policy)


@relaxed
@given(graphs(max_nodes=40), policies)
def test_rewritten_graphs_verify_and_keep_their_contract(graph: Graph, policy: Policy) -> None:
    before = [(value.name, value.dtype) for value in graph.outputs]
    feeds = {node.name: node.types for node in graph.nodes if node.op_type == "Placeholder"}
    text = str(graph)
    result = rewrite(graph, policy)
    verify(result.graph)
    assert str(graph) == text, "the given graph was changed"
    assert [(value.name, value.dtype) for value in result.graph.outputs] == before
    assert {node.name: node.types for node in result.graph.nodes if node.op_type == "Placeholder"} == feeds
    assert result.modified == (not structurally_equal(graph, result.graph))
    assert result.modified or result.graph is graph
    for name, body in graph.functions.items():
        after = result.graph.functions[name]
        assert [value.dtype for value in after.inputs] == [value.dtype for value in body.inputs]
        assert [value.dtype for value in after.outputs] == [value.dtype for value in body.outputs]


@relaxed
@given(graphs(max_nodes=40), policies)
def test_rewriting_twice_equals_once(graph: Graph, policy: Policy) -> None:
    once = rewrite(graph, policy).graph
    twice = rewrite(once, policy)
    assert str(twice.graph) == str(once)
    assert not twice.modified


@relaxed
@given(graphs(max_nodes=40), st.sampled_from(["float16", "bfloat16"]))
def test_all_ops_denied_is_the_original(graph: Graph, dtype: str) -> None:
    result = auto_mixed_precision(graph, ops=tuple(f"{op}=deny" for op in LISTED), dtype=dtype)
    assert not result.modified
    assert result.graph is graph


@relaxed
@given(graphs(max_nodes=40), policies)
def test_the_written_graph_def_reads_back_equal(graph: Graph, policy: Policy) -> None:
    result = rewrite(graph, policy).graph
    data = write_graph_def(result).SerializeToString(deterministic=True)
    again = read_graph_def(data, outputs=[value.name for value in result.outputs])
    assert write_graph_def(again).SerializeToString(deterministic=True) == data
    assert structurally_equal(result, again)


@relaxed
@given(graphs(max_nodes=40), policies)
def test_casts_are_shared_and_never_lead_nowhere(graph: Graph, policy: Policy) -> None:
    """One added cast per value; under the presets of our own, none that undoes a widening cast or does nothing."""
    result = rewrite(graph, policy)
    for body in result.report.bodies:
        sources = [cast.inputs[0] for cast in body.applied.casts]
        assert len(set(sources)) == len(sources)
        for cast, source in zip(body.applied.casts, sources, strict=True):
            assert source is not None
            narrow, wide = cast.types["DstT"], cast.types["SrcT"]
            assert narrow is not wide
            before = source.producer.inputs[0] if source.producer.op_type == "Cast" else None
            if policy.preset != "grappler" and before is not None and narrow.bits < wide.bits:
                assert before.dtype is not narrow


@relaxed
@given(graphs(max_nodes=40), policies)
def test_every_decision_has_a_reason(graph: Graph, policy: Policy) -> None:
    report = rewrite(graph, policy).report
    bodies = {"": graph, **graph.functions}
    for body in report.bodies:
        explanations = [item for item in report.explain(function=body.name) if item.reason != "undefined"]
        floats = sum(dtype is float32 for node in bodies[body.name].all_nodes() for dtype in node.types.values())
        assert len(explanations) == floats + len(body.upgraded)  # an upgraded op has one type more
        explained = {(item.node, item.key) for item in explanations}
        assert len(explained) == len(explanations)
    explanations = list(report.explain())
    assert all(len(item.why) > 10 for item in explanations)
    assert report.json()["low"] == report.low
    assert str(report) == report.text()


@relaxed
@given(graphs(max_nodes=60, ops=("MatMul", "Relu", "Tanh", "AddV2", "Exp", "Identity")), st.randoms(use_true_random=False))
def test_safe_does_not_depend_on_the_order_of_nodes(graph: Graph, random: object) -> None:
    shuffled = graph.copy()
    order = list(shuffled.nodes)
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled._nodes = dict.fromkeys(order)

    def decisions(of: Graph) -> dict[str, object]:
        return {node.name: node.types for node in auto_mixed_precision(of).graph.nodes}

    assert decisions(shuffled) == decisions(graph)


@relaxed
@given(graphs(max_nodes=60, ops=("MatMul", "Relu", "Exp", "AddV2", "Identity")), policies)
def test_reasons_lead_to_nodes(graph: Graph, policy: Policy) -> None:
    """A reason refers to an op, even where it came through a tensor list."""
    for body in rewrite(graph, policy).report.bodies:
        painting = body.painting
        if painting is not None:
            direct = (Reason.BESIDE, Reason.LIST_LOW, Reason.LIST_FLOAT, Reason.CAST)
            rows = zip(painting.reason, painting.via, strict=True)
            assert all(via < painting.typegraph.count for reason, via in rows if reason in direct)
