"""Casts that turned out to do nothing: none converts a value to the dtype it has, or back to the one it just had."""

from collections.abc import Collection

from ..graph.dtypes import DType
from ..graph.graph import Graph, Node, Value


def drop_needless_casts(graph: Graph, added: list[Node], kept: Collection[Node]) -> list[Node]:
    """Remove casts that a rewrite made superfluous, and return those of ``added`` that are still there.

    1. ``Cast(x)`` to the dtype ``x`` has: its users read ``x``. (An existing cast between two values that became low.)
    2. An added ``Cast(Cast(x))`` back to the dtype of ``x`` over another added one: its users read ``x``. (What stood between
       the two was itself superfluous.)
    3. An added ``Cast(Cast(x))`` back to the dtype of ``x`` from a wider one: its users read ``x``. (An existing cast from
       the low dtype to float32 whose users became low.)
    4. In ONNX, whose nodes stand in order, an added ``Cast(x)`` to the dtype that an earlier added one makes of ``x``. (An existing
       cast stood between ``x`` and it.)

    Args:
        graph: The graph the casts were put into.
        added: The casts that were put in.
        kept: Nodes that must stay.
    """
    fresh = set(added)
    dropped: set[Node] = set()
    instead: dict[Value, Value] = {}
    once: dict[tuple[Value, DType], Node] = {}
    returned = set(graph.outputs)
    for node in graph.nodes:
        if node.op_type != "Cast" or node in kept or node.domain not in ("tf", ""):
            continue
        source = node.inputs[0]
        to, given = ("DstT", "SrcT") if node.domain == "tf" else ("T2", "T1")
        if source is None or to not in node.types or given not in node.types:
            continue
        if node.domain == "" and node.outputs[0] in returned:
            before = instead.get(source, source)
            if before in returned or before.producer.op_type in ("Input", "Initializer"):
                continue  # an ONNX graph returns what its own nodes compute, and nothing twice
        if source.dtype is node.types[to]:
            instead[node.outputs[0]] = instead.get(source, source)
            dropped.add(node)
        elif node in fresh and (source := instead.get(source, source)).producer.op_type == "Cast":
            inner = source.producer.inputs[0]
            narrow, wide = node.types[to], node.types[given]
            both_added = source.producer in fresh
            if (
                inner is not None
                and inner.dtype is narrow
                and (both_added or narrow.bits < wide.bits)
                and narrow.kind == wide.kind
            ):
                instead[node.outputs[0]] = instead.get(inner, inner)
                dropped.add(node)
        if node.domain == "" and node in fresh and node not in dropped:
            first, result = once.setdefault((instead.get(source, source), node.types[to]), node).outputs[0], node.outputs[0]
            if first is not result and (result not in returned or first not in returned):
                if result in returned:
                    returned.add(first)
                instead[result] = first
                dropped.add(node)
    if not dropped:
        return added
    for node in graph.nodes:
        for slot, value in enumerate(node.inputs):
            if value in instead:
                graph.set_input(node, slot, instead[value])
    names = [value.name for value in graph.outputs]
    graph.outputs = [instead.get(value, value) for value in graph.outputs]
    read = {value for node in graph.nodes if node not in dropped for value in node.inputs}.union(graph.outputs)
    dropped.update(node for node in added if node.outputs[0] not in read)
    waited_for = {source for node in graph.nodes for source in node.controls}
    graph.remove_all(dropped - waited_for)
    for value, name in zip(graph.outputs, names, strict=True):
        if value.producer in fresh and value.producer.domain == "":  # ONNX knows outputs by the names of their values
            value.name = name
    return [node for node in added if node not in dropped]
