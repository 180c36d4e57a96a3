"""Grappler's ``cpu_fp16`` mode: float32 kernels, and roundings where a float16 kernel would round."""

from ..graph.dtypes import float16, float32
from ..graph.errors import PassError
from ..graph.graph import Value
from .casters import TensorFlowCaster
from .casts import Applied
from .painting import Painting


def emulate(painting: Painting) -> Applied:
    """Keep float32 kernels and round where a float16 kernel would: casts to float16 and back around painted ports.

    A painted operand is read through its own cast from float16, a painted result is
    rounded to float16 for all its users, and those that are not painted share one cast back to float32.

    Raises:
        PassError: If a painted user stands before its producer in the file (any loop does): Grappler fails there too.
    """
    typegraph, graph = painting.typegraph, painting.typegraph.parts[0]
    caster = TensorFlowCaster(graph)
    low = painting.allow
    rounded: dict[Value, Value] = {}
    place = {node: i for i, node in enumerate(typegraph.nodes)}
    read = {value for node in typegraph.nodes for value in node.inputs} | {*(graph.outputs if graph.is_function else ())}
    for i, node in enumerate(typegraph.nodes):
        for value, port in zip(node.outputs, typegraph.ports_of(i)[1], strict=True):
            vertex = typegraph.first[i] + port
            if typegraph.is_float[vertex] and low[vertex] and value in read:
                rounded[value] = caster.new(value, float32, float16)
    for i, node in enumerate(typegraph.nodes):
        base = typegraph.first[i]
        for slot, port in enumerate(typegraph.ports_of(i)[0]):
            operand, vertex = node.inputs[slot], base + port
            if operand is None or not typegraph.is_float[vertex]:
                continue
            if low[vertex]:
                if place[operand.producer] >= i:
                    raise PassError(
                        f"Node {node} reads {operand.producer}, which stands later in the file. float16 emulation on CPUs "
                        "(cpu_fp16) needs nodes in topological order and no loops; use dtype='bfloat16', or target='gpu'."
                    )
                half = rounded.get(operand) or caster.cast(operand, float32, float16)
                graph.set_input(node, slot, caster.new(half, float16, float32))
            elif operand in rounded:
                graph.set_input(node, slot, caster.cast(rounded[operand], float16, float32))
    for position, value in enumerate(graph.outputs if graph.is_function else []):
        if value in rounded:
            graph.outputs[position] = caster.cast(rounded[value], float16, float32)
    graph.place_after(caster.followers)
    return Applied([], caster.added)
