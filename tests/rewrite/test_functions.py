"""Function bodies, SavedModels, and tensor lists that cross function boundaries."""

from pathlib import Path

import pytest

from ampgraph.graph import Graph, Node
from ampgraph.graph.formats.files import load, save
from ampgraph.graph.text import parse_graph
from ampgraph.graph.verify import verify
from ampgraph.rewrite import Policy, auto_mixed_precision

DATA = Path(__file__).parents[1] / "data"
MODEL = DATA / "grappler" / "models" / "k3_LSTM_infer_functional.pb.gz"
POLICIES = [
    Policy(),
    Policy(dtype="bfloat16"),
    Policy(preset="grappler"),
    Policy(preset="grappler", dtype="bfloat16", target="cpu"),
]


def signatures(graph: Graph) -> dict[str, object]:
    """What callers of each function see, and what call sites declare."""
    calls = ("PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile", "If", "StatelessIf")

    def sites(body: Graph) -> list[object]:
        return [(node.name, node.types) for node in body.nodes if node.op_type in calls]

    found: dict[str, object] = {
        name: ([v.dtype for v in body.inputs], [v.dtype for v in body.outputs], body.output_names, sites(body))
        for name, body in graph.functions.items()
    }
    return {**found, "": sites(graph)}


def list_ops(graph: Graph) -> list[Node]:
    bodies = (graph, *graph.functions.values())
    return [node for body in bodies for node in body.nodes if "TensorList" in node.op_type and "element_dtype" in node.types]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_signatures_and_call_sites_stay(policy: Policy) -> None:
    graph = load(MODEL, outputs=None)
    result = auto_mixed_precision(graph, policy)
    assert result.modified
    assert signatures(result.graph) == signatures(graph)
    assert any(body.applied.changed for body in result.report.bodies if body.name), "no function body was converted"


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_lists_through_functional_loops_keep_one_element_type(policy: Policy) -> None:
    """TensorFlow turns the outer list half and leaves the body's float32: the model then fails when it runs."""
    graph = load(MODEL)
    result = auto_mixed_precision(graph, policy)
    verify(result.graph)  # its rule list-dtype follows handles into bodies
    assert {node.types["element_dtype"].name for node in list_ops(result.graph)} == {"float32"}
    if policy.preset == "grappler":
        assert any("unlike Grappler, the tensor list through" in note for note in result.report.notes)


def test_a_list_inside_one_graph_turns_low_with_its_loop() -> None:
    graph = parse_graph("""
        graph g() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %shape: i32 = tf.Const<dtype=i32>() {value=dense<i32[2], [4, 4]>}
          %n: i32 = tf.Const<dtype=i32>() {value=dense<i32[], [3]>}
          %i: i32 = tf.Const<dtype=i32>() {value=dense<i32[], [0]>}
          %list: variant = tf.TensorListReserve<element_dtype=f32, shape_type=i32>(%shape, %n)
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %set: variant = tf.TensorListSetItem<element_dtype=f32>(%list, %i, %a)
          %get: f32 = tf.TensorListGetItem<element_dtype=f32>(%set, %i, %shape)
          %b: f32 = tf.MatMul<T=f32>(%get, %x)
          %out: f32 = tf.Identity<T=f32>(%b)
          return %out
        }
    """)
    result = auto_mixed_precision(graph)
    assert {node.types["element_dtype"].name for node in list_ops(result.graph)} == {"float16"}
    assert len(result.report.bodies[0].applied.casts) == 2  # x to half, b back to float: none around the list


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_saved_model_is_rewritten_in_its_folder(policy: Policy, tmp_path: Path) -> None:
    source = DATA / "formats" / "saved_model"
    graph = load(source)
    result = auto_mixed_precision(graph, policy)
    assert result.modified
    save(result.graph, tmp_path / "half")
    again = load(tmp_path / "half")
    verify(again)
    assert signatures(again) == signatures(graph)
    assert again.output_names == graph.output_names
    for file in (source / "variables").iterdir():
        assert (tmp_path / "half" / "variables" / file.name).read_bytes() == file.read_bytes()


def test_only_functions_the_main_graph_reaches_follow_grappler() -> None:
    text = """
        graph main() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %y: f32 = tf.PartitionedCall<Tin=[f32], Tout=[f32]>(%x) {f=@used}
          return %y
        }
        function used(%x: f32) {
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          return out=%a
        }
        function unused(%x: f32) {
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          return out=%a
        }
    """
    for preset, skipped in (("grappler", {"unused"}), ("safe", set[str]())):
        report = auto_mixed_precision(parse_graph(text), preset=preset).report
        assert {body.name for body in report.bodies if body.skipped} == skipped
        assert {body.name for body in report.bodies if body.modified} == {"used", "unused"} - skipped


def test_bodies_whose_types_the_caller_chooses_are_left_alone() -> None:
    text = """
        graph main() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          return %x
        }
        function generic(%x: ?) {
          %a: ? = tf.MatMul<T=?>(%x, %x) {T=$T}
          return out=%a
        }
    """
    result = auto_mixed_precision(parse_graph(text))
    assert not result.modified
    assert "note: function 'generic' left alone: its types are chosen by the caller" in result.report.text()


def test_a_functional_loop_keeps_its_types_and_the_report_says_so() -> None:
    graph = parse_graph("""
        graph main() {
          %x: f32 = tf.Placeholder<dtype=f32>()
          %a: f32 = tf.MatMul<T=f32>(%x, %x)
          %w: f32 = tf.While<T=[f32]>(%a) {cond=@go, body=@next}
          %b: f32 = tf.MatMul<T=f32>(%w, %x)
          %out: f32 = tf.Identity<T=f32>(%b)
          return %out
        }
        function go(%y: f32) {
          %t: bool = tf.Const<dtype=bool>() {value=dense<bool[], [true]>}
          return r=%t
        }
        function next(%y: f32) {
          %r: f32 = tf.Identity<T=f32>(%y)
          return r=%r
        }
    """)
    result = auto_mixed_precision(graph, preset="grappler", dtype="bfloat16", target="cpu")
    assert {str(dtype) for dtype in result.graph.node("w").types.values()} == {"float32"}
    assert result.report.notes == ["unlike Grappler, 'w' (While) keeps its types, because its function bodies keep theirs"]
