"""What holds for every graph: rewritten graphs verify, keep their contract, and are not rewritten twice."""

import dataclasses

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ampgraph.graph import Graph
from ampgraph.graph.diff import structurally_equal
from ampgraph.graph.dtypes import float32
from ampgraph.graph.formats.tensorflow import read_graph_def, write_graph_def
from ampgraph.graph.verify import verify
from ampgraph.lists import Color, OpLists
from ampgraph.rewrite import Policy, RewriteResult, auto_mixed_precision
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
LISTED = sorted(set().union(*(OpLists.load("cuda_fp16").allow, OpLists.load("cuda_fp16").gray, OpLists.load("cuda_fp16").deny)))
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
@given(graphs(max_nodes=40))
def test_all_ops_denied_is_the_original(graph: Graph) -> None:
    policy = Policy(ops=tuple(f"{op}=deny" for op in LISTED))
    result = auto_mixed_precision(graph, policy)
    assert not any(body.applied.changed or body.applied.casts for body in result.report.bodies)
    nodes = (node for body in (graph, *graph.functions.values()) for node in body.nodes)
    if not any(node.op_type in ("FusedBatchNorm", "FusedBatchNormGrad") for node in nodes):
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
def test_casts_are_shared_and_never_chained(graph: Graph, policy: Policy) -> None:
    """A value is cast at most once to each dtype, and never back to the dtype it was just cast from by us."""
    result = rewrite(graph, policy)
    for body in result.report.bodies:
        seen = set()
        casts = {cast.outputs[0] for cast in body.applied.casts}
        for cast in body.applied.casts:
            key = (cast.inputs[0], cast.types["DstT"])
            assert key not in seen
            seen.add(key)
            assert cast.inputs[0] not in casts
            assert cast.types["SrcT"] is not cast.types["DstT"]


@relaxed
@given(graphs(max_nodes=40), policies)
def test_every_decision_has_a_reason(graph: Graph, policy: Policy) -> None:
    report = rewrite(graph, policy).report
    floats = sum(
        dtype is float32
        for body in (graph, *graph.functions.values())
        for node in body.all_nodes()
        for dtype in node.types.values()
    )
    explanations = list(report.explain())
    if not any(body.skipped for body in report.bodies) and not any(body.upgraded for body in report.bodies):
        assert len(explanations) == floats
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


def test_emulation_is_the_only_policy_that_adds_casts_twice() -> None:
    policy = Policy(preset="grappler", target="cpu")
    assert policy.emulates
    assert not any(other.emulates for other in POLICIES.values())
    assert dataclasses.replace(policy, emulate_fp16=False).emulates is False


def test_colors_are_the_lists_of_the_specification() -> None:
    lists = OpLists.load("cuda_fp16")
    assert lists.list_of("Conv2D") is Color.ALLOW
    assert lists.list_of("Exp") is Color.DENY
    assert lists.list_of("AvgPool") is Color.GRAY
    assert lists.list_of("ArgMax") is Color.CLEAR
