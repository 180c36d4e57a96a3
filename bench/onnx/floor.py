"""The floor of a model's error: that of a float32 model where only operands and results of its heavy ops are rounded."""

from ampgraph.graph import DType, Graph, Value, find_dtype
from bench.onnx.flops import HEAVY


def round_heavy(graph: Graph, dtype: DType) -> None:
    """Make Conv, ConvTranspose, MatMul and Gemm of float32 round their operands and results to ``dtype``; changes the graph."""
    wide = find_dtype("float32")

    def rounded(value: Value) -> Value:
        part = value.producer.graph
        low = part.add("Cast", [value], domain="", types={"T1": wide, "T2": dtype}).outputs[0]
        return part.add("Cast", [low], domain="", types={"T1": dtype, "T2": wide}).outputs[0]

    for part in graph.all_graphs():
        done: dict[Value, Value] = {}
        for node in list(part.nodes):
            if node.op_type not in HEAVY or node.domain or node.outputs[0].dtype is not wide:
                continue
            for slot, value in enumerate(node.inputs):
                if value is not None and value.dtype is wide:
                    if value not in done:
                        done[value] = rounded(value)
                    part.set_input(node, slot, done[value])
            result = node.outputs[0]
            users = result.uses()
            after = rounded(result)
            for user, slot in users:
                part.set_input(user, slot, after)
            part.outputs = [after if value is result else value for value in part.outputs]
            done[after] = after  # rounding it again changes nothing
