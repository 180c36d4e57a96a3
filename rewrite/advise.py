"""Advice about sizes: which ones of a matrix product tensor cores would want to be others, and what padding costs.

Tensor cores multiply tiles. In float16 and bfloat16 they are efficient where M, N and K are multiples of 8, 16 bytes; older versions of
cuBLAS (before 11.0) and cuDNN (before 7.6.3) did not use them at all otherwise. Source: NVIDIA, *Deep Learning Performance*, guides
"Get Started With Deep Learning Performance" and "Matrix Multiplication Background", section on tensor core requirements. TensorFlow's
page on this rewrite asks for more: sizes (batch, input, output, channels) should be powers of two below 256, multiples of 8 above.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from ..graph.dtypes import DType, find_dtype
from ..graph.errors import AmpgraphError, GraphError
from ..graph.graph import Graph, Node, Value
from ..graph.infer import infer
from ..graph.types import Dim
from ..graph.wording import plural
from ..graph.work import Work, multiplies, work_of
from .amp import auto_mixed_precision
from .constants import constant_of
from .policy import Policy

#: Numbers in 16 bytes.
_MULTIPLE = 8
#: From this size on, TensorFlow's page asks for multiples of 8 only.
_LARGE = 256


def padded(size: int, *, powers_of_two: bool = False) -> int:
    """Return the least size from ``size`` on that tensor cores want.

    Args:
        size: A size.
        powers_of_two: Whether sizes below 256 should be powers of two.

    Example:
        >>> padded(3), padded(30), padded(33708), padded(33, powers_of_two=True)
        (4, 32, 33712, 64)
    """
    if size < _MULTIPLE or (powers_of_two and size < _LARGE):
        return 1 << max(size - 1, 0).bit_length()
    return -(-size // _MULTIPLE) * _MULTIPLE


@dataclasses.dataclass(frozen=True)
class NodeAdvice:
    """What there is to say about the sizes of one node.

    Attributes:
        function: Name of the function it is in, empty for the main graph.
        node, op_type: Which node.
        dtype: The dtype it multiplies in after the rewrite.
        sizes: Sizes that matter, by name; a symbol or None where one is not known.
        padding: For those that should be larger, how large.
        growth: How much more arithmetic that is: 0.05 = 5 % more; None where that depends on a size that is not known.
        flops: FLOPs of one run of the node, two for a multiply-add; None where a size is not known.
    """

    function: str
    node: str
    op_type: str
    dtype: str
    sizes: Mapping[str, Dim]
    padding: Mapping[str, int]
    growth: float | None
    flops: int | None

    @property
    def unknown(self) -> list[str]:
        """Names of the sizes that are not known."""
        return [name for name, size in self.sizes.items() if not isinstance(size, int)]

    @property
    def words(self) -> str:
        """The sizes as text: ``"M 32, N 10 -> 16, K ?"``."""
        return ", ".join(
            f"{name} {'?' if size is None else size}" + (f" -> {self.padding[name]}" if name in self.padding else "")
            for name, size in self.sizes.items()
        )

    @property
    def cost(self) -> str:
        """The growth as text: ``"+60.0 %"``, ``"?"``, or nothing where there is none."""
        return "" if not self.padding else "?" if self.growth is None else f"{self.growth:+.1%}".replace("%", " %")

    def __str__(self) -> str:
        where = f"in function {self.function!r}: " if self.function else ""
        if self.padding:
            cost = f", {self.cost[1:]} more arithmetic" if self.growth is not None else ""
            return f"{where}{self.node} ({self.op_type}) {self.dtype}: {self.words}{cost}"
        if self.unknown:
            rest = "the other sizes are fine" if len(self.unknown) < len(self.sizes) else "no size is known"
            return f"{where}{self.node} ({self.op_type}) {self.dtype}: {self.words}: {rest}"
        why = f"{self.words}: all sizes are fine" if self.sizes else "it multiplies no matrices, and uses no tensor cores"
        return f"{where}{self.node} ({self.op_type}) {self.dtype}: {why}"


@dataclasses.dataclass(frozen=True)
class Advice:
    """What :func:`advise` returns; ``str`` of it says what to pad.

    Attributes:
        nodes: Every node that multiplies matrices in low precision, those with most FLOPs first.
        notes: Sentences about the whole: why nothing would be low precision, or shapes are not known.
    """

    nodes: tuple[NodeAdvice, ...]
    notes: tuple[str, ...]

    @property
    def to_pad(self) -> list[NodeAdvice]:
        """The nodes with a size that should be another."""
        return [item for item in self.nodes if item.padding]

    @property
    def summary(self) -> str:
        """A sentence about all nodes."""
        if not self.nodes:
            return "no node multiplies matrices in low precision, so there is nothing to say about sizes"
        found = plural(len(self.nodes), "node")
        multiplies = f"{found} {'multiplies' if len(self.nodes) == 1 else 'multiply'} matrices in low precision"
        unknown = sum(bool(item.unknown) for item in self.nodes)
        more = f"; in {unknown} of them, sizes are not known" if unknown else ""
        if not self.to_pad:
            return f"{multiplies}, and every size that is known suits tensor cores: nothing to pad{more}"
        return f"{multiplies}, {len(self.to_pad)} with sizes to pad{more}"

    def __str__(self) -> str:
        return "\n".join([*map(str, self.to_pad), self.summary, *(f"note: {text}" for text in self.notes)])

    def json(self) -> list[dict[str, Any]]:
        """Return what is said about every node as plain JSON data."""
        return [dataclasses.asdict(item) for item in self.nodes]


def advise(graph: Graph, policy: Policy | None = None, *, powers_of_two: bool = False, **settings: Any) -> Advice:
    """Say which sizes of a graph's matrix products tensor cores would want to be others, and what padding to these costs.

    The graph is rewritten to see what computes in low precision, on a copy whose shapes are inferred. Sizes of products are called M,
    N and K (rows and columns of the result, and what is added up); convolutions and recurrent layers have sizes with names.

    Args:
        graph: Any graph that verifies; what computes in low precision already counts.
        policy: What it is rewritten for, as for :func:`~ampgraph.rewrite.amp.auto_mixed_precision`.
        powers_of_two: Whether sizes below 256 should be powers of two; else multiples of 8, or 1, 2 and 4, are enough.
        **settings: Fields of the policy.

    Raises:
        VerifyError, PassError, PolicyError: As for :func:`~ampgraph.rewrite.amp.auto_mixed_precision`.

    Example:
        >>> from ampgraph import parse_graph
        >>> graph = parse_graph('''graph g() {
        ...   %x: f32[64,784] = tf.Placeholder<dtype=f32>() {shape=shape[64,784]}
        ...   %w: f32[784,10] = tf.Placeholder<dtype=f32>() {shape=shape[784,10]}
        ...   %y: f32[64,10] = tf.MatMul<T=f32>(%x, %w)
        ...   return %y
        ... }''')
        >>> print(advise(graph, keep_io=False))
        y (MatMul) float16: M 64, N 10 -> 16, K 784, 60.0 % more arithmetic
        1 node multiplies matrices in low precision, 1 with sizes to pad
    """
    if not isinstance(graph, Graph):
        raise GraphError(f"advise takes a Graph; load a file with ampgraph.load. Received: {graph!r}")
    graph = graph.copy()
    notes: list[str] = []
    try:
        infer(graph)
    except AmpgraphError as error:
        notes.append(f"shapes are not known, but where the graph states them: {error}")
    report = auto_mixed_precision(graph, policy, **settings).report
    found = [
        _about(node, body.name, body.label(node), dtype, work, powers_of_two)
        for body in report.bodies
        for part in (body.graph.all_graphs() if body.graph.opsets else (body.graph,))
        for node in part.nodes
        if multiplies(node) and (dtype := _low(node)) and (work := work_of(node, _dims))
    ]
    if not found:
        notes += report.notes  # they may say why
    found.sort(key=lambda item: -(item.flops or 0))
    return Advice(tuple(found), tuple(notes))


def _about(node: Node, function: str, name: str, dtype: DType, work: Work, powers_of_two: bool) -> NodeAdvice:
    padding = {key: to for key, size, to in _paddings(work, powers_of_two) if to != size}
    growth = work.growth(padding)
    products = work.products
    return NodeAdvice(
        function=function,
        node=name,
        op_type=node.op_type,
        dtype=dtype.name,
        sizes=dict(work.sizes),
        padding=padding,
        growth=None if growth is None else growth - 1,
        flops=None if products is None else 2 * products,
    )


def _paddings(work: Work, powers_of_two: bool) -> Iterator[tuple[str, int, int]]:
    for name, size in work.sizes.items():
        if isinstance(size, int) and size > 0:
            yield name, size, padded(size, powers_of_two=powers_of_two)


def _low(node: Node) -> DType | None:
    """Return the low dtype among a node's types."""
    return next((dtype for dtype in node.types.values() if dtype in _LOW), None)


_LOW = (find_dtype("float16"), find_dtype("bfloat16"))


def _dims(value: Value | None) -> tuple[Dim, ...] | None:
    """Return the dimensions of a value; casts and constants that the rewrite added have those of what they come from."""
    while value is not None and value.shape.dims is None and value.producer.op_type == "Cast":
        value = value.producer.inputs[0]
    constant = constant_of(value)
    return constant.shape if constant is not None else None if value is None else value.shape.dims
