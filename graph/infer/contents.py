"""What is known about the elements of small integer tensors, so that computed shapes are known too.

``Reshape(x, Pack(Shape(x)[0], 64))`` has a known shape only if the integers are followed from Shape to Reshape. A rule
here returns them in row-major order, None for an unknown element; tensors of more than 64 elements are not followed.
"""

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..types import Dim, Tensor
from .dims import (
    MAX_CONTENT,
    Conflict,
    Content,
    Dims,
    Element,
    add_dim,
    axis_index,
    broadcast_dim,
    floordiv_dim,
    mul_dim,
    product,
    sub_dim,
)
from .index import slice_plan

if TYPE_CHECKING:
    from .call import Call, ContentRule

Ints = tuple[Dim, ...] | None


def constant(call: "Call") -> list[Content]:
    """The elements of a small integer constant."""
    value = call.node.attr("value")
    if not isinstance(value, Tensor) or value.dtype.kind not in ("int", "uint", "bool") or value.size > MAX_CONTENT:
        return [None]
    return [tuple(value.array().reshape(-1).tolist())]


def _slots(dims: Dims) -> Ints:
    """Unknown elements for a tensor of this shape, if it is small."""
    size = None if dims is None else product(dims)
    return (None,) * size if isinstance(size, int) and size <= MAX_CONTENT else None


def _ints(call: "Call", index: int) -> Ints:
    content = call.ints(index)
    return _slots(call.shape(index)) if content is None else content


def pass_on(call: "Call") -> list[Content]:
    """The elements (or what the handle holds) unchanged, for every result."""
    return [call.contents[0]] * len(call.node.outputs)


def reference(call: "Call") -> list[Content]:
    """What a handle holds, into a branch or a loop; integers are not followed there, they may be of no run."""
    content = call.contents[0]
    return [content if isinstance(content, Element) else None] * len(call.node.outputs)


def pass_each(call: "Call") -> list[Content]:
    """Operand k unchanged as result k."""
    return list(call.contents)


def shape_of(call: "Call") -> list[Content]:
    """The sizes of every operand."""
    return [dims if dims is None or len(dims) <= MAX_CONTENT else None for dims in call.dims]


def size_of(call: "Call") -> list[Content]:
    """The number of elements."""
    dims = call.shape(0)
    return [None if dims is None else (product(dims),)]


def rank_of(call: "Call") -> list[Content]:
    """The number of dimensions."""
    dims = call.shape(0)
    return [None if dims is None else (len(dims),)]


def _chain(parts: Sequence[Ints]) -> Ints:
    result: list[Dim] = []
    for part in parts:
        if part is None or len(result) + len(part) > MAX_CONTENT:
            return None
        result += part
    return tuple(result)


def pack(call: "Call") -> list[Content]:
    """The operands one after another, when they are stacked along the first axis."""
    if call.integer("axis") != 0 or len(call.dims) > MAX_CONTENT:
        return [None]
    return [_chain([_ints(call, i) for i in range(len(call.dims))])]


def concat(call: "Call") -> list[Content]:
    """Vectors one after another."""
    first = 1 if call.node.op_type == "Concat" else 0
    count = len(call.dims) - 1
    dims = call.outputs[0]
    if dims is None or len(dims) != 1 or count > MAX_CONTENT:
        return [None]
    return [_chain([_ints(call, first + i) for i in range(count)])]


def unpack(call: "Call") -> list[Content]:
    """The elements of a vector, one by one."""
    content, dims = call.ints(0), call.shape(0)
    parts = len(call.node.outputs)
    if content is None or dims is None or len(dims) != 1 or len(content) != parts:
        return [None] * parts
    return [(item,) for item in content]


def strided_slice(call: "Call") -> list[Content]:
    """A part of a vector."""
    content, dims = call.ints(0), call.shape(0)
    if content is None or dims is None or len(dims) != 1:
        return [None]
    plan = slice_plan(call, (len(content),))
    if plan is None or len(plan) != 1:
        return [None]
    kind, size, _, begin, stride = plan[0]
    if kind == "shrink":
        return [(content[begin],) if isinstance(begin, int) and -len(content) <= begin < len(content) else None]
    if not isinstance(stride, int) or not isinstance(size, int):
        return [None]
    if not isinstance(begin, int):
        return [None]
    start = slice(begin, None, stride).indices(len(content))[0]
    return [tuple(content[start + k * stride] for k in range(size))]


def slice_(call: "Call") -> list[Content]:
    """A part of a vector."""
    content, dims, begin, size = call.ints(0), call.shape(0), call.scalar(1), call.scalar(2)
    if content is None or dims is None or len(dims) != 1 or not isinstance(begin, int) or not isinstance(size, int):
        return [None]
    if not 0 <= begin <= len(content):
        return [None]
    return [content[begin:] if size == -1 else content[begin : begin + size]]


def gather(call: "Call") -> list[Content]:
    """Chosen elements of a vector."""
    content, dims, chosen = call.ints(0), call.shape(0), call.ints(1)
    if content is None or dims is None or len(dims) != 1 or chosen is None:
        return [None]
    return [tuple(content[i] if isinstance(i, int) and 0 <= i < len(content) else None for i in chosen)]


def _binary(combine: Callable[[Dim, Dim], Dim]) -> "ContentRule":
    """Make the rule of an elementwise op on a scalar or vector and another of the same length or of length 1."""

    def rule(call: "Call") -> list[Content]:
        a, b = _ints(call, 0), _ints(call, 1)
        if a is None or b is None:
            return [None]
        if len(a) != len(b):
            if len(a) != 1 and len(b) != 1:
                return [None]
            a, b = (a * len(b), b) if len(a) == 1 else (a, b * len(a))
        return [tuple(map(combine, a, b))]

    return rule


def _on_ints(compute: Callable[[int, int], int]) -> Callable[[Dim, Dim], Dim]:
    """Lift a function of integers to partly known ones."""
    return lambda a, b: compute(a, b) if isinstance(a, int) and isinstance(b, int) else None


def _mod(a: Dim, b: Dim) -> Dim:
    return a % b if isinstance(a, int) and isinstance(b, int) and b else 0 if a is not None and a == b and a != 0 else None


def _larger(a: Dim, b: Dim) -> Dim:
    """The larger of two sizes."""
    return a if a == b else _on_ints(max)(a, b)


def negate(call: "Call") -> list[Content]:
    """Every element times -1."""
    content = call.ints(0)
    return [None if content is None else tuple(-item if isinstance(item, int) else None for item in content)]


def logical_not(call: "Call") -> list[Content]:
    """Every answer turned around."""
    content = call.ints(0)
    return [None if content is None else tuple(not item if isinstance(item, bool) else None for item in content)]


def select(call: "Call") -> list[Content]:
    """Elements of one or the other."""
    condition, a, b = call.ints(0), _ints(call, 1), _ints(call, 2)
    if condition is None or a is None or b is None or len(a) != len(b):
        return [None]
    if len(condition) == 1:
        condition = condition * len(a)
    if len(condition) != len(a):
        return [None]
    return [
        tuple(x if c is True else y if c is False else x if x == y else None for c, x, y in zip(condition, a, b, strict=True))
    ]


def cast(call: "Call") -> list[Content]:
    """The same integers; floats are not followed."""
    content, dtype = call.ints(0), call.node.outputs[0].dtype
    if content is None or dtype is None or dtype.kind not in ("int", "uint"):
        return [None]
    return [tuple(int(item) if isinstance(item, int) else item for item in content)]


def _reduce(combine: Callable[[Dim, Dim], Dim], start: Dim) -> "ContentRule":
    """Make the rule of a reduction over all elements of a vector."""

    def rule(call: "Call") -> list[Content]:
        content, axes, dims = call.ints(0), call.known(1), call.shape(0)
        if content is None or dims is None or axes is None:
            return [None]
        if not dims or not axes:
            return [content if not axes or not dims else None]
        if len(dims) != 1 or (not content and start is None):
            return [None]
        total, rest = (start, content) if start is not None else (content[0], content[1:])
        for item in rest:
            total = combine(total, item)
        return [(total,)]

    return rule


def range_(call: "Call") -> list[Content]:
    """A short range."""
    start, limit, step = call.scalar(0), call.scalar(1), call.scalar(2)
    if not (isinstance(start, int) and isinstance(limit, int) and isinstance(step, int)) or step == 0:
        return [None]
    values = range(start, limit, step)
    # Not len(), which refuses ranges longer than a machine word.
    return [None if abs(limit - start) > MAX_CONTENT * abs(step) else tuple(values)]


def fill(call: "Call") -> list[Content]:
    """The same element everywhere."""
    slots = _slots(call.outputs[0])
    return [None if slots is None else (call.scalar(1),) * len(slots)]


def _like(value: int) -> "ContentRule":
    def rule(call: "Call") -> list[Content]:
        dtype = call.node.outputs[0].dtype
        slots = _slots(call.outputs[0])
        return [None if slots is None or dtype is None or dtype.kind not in ("int", "uint") else (value,) * len(slots)]

    return rule


def invert_permutation(call: "Call") -> list[Content]:
    """The permutation that undoes operand 0."""
    order = call.known(0)
    if order is None:
        return [None]
    if sorted(order) != list(range(len(order))):
        raise Conflict(f"{order} is no permutation")
    inverse: list[Dim] = [None] * len(order)
    for i, place in enumerate(order):
        inverse[place] = i
    return [tuple(inverse)]


def dynamic_stitch(call: "Call") -> list[Content]:
    """Elements of vectors at the places the indices name."""
    half, dims = len(call.dims) // 2, call.outputs[0]
    slots = _slots(dims)
    if slots is None or dims is None or len(dims) != 1 or half > MAX_CONTENT:
        return [None]
    result = list(slots)
    for i in range(half):
        places, items = call.known(i), _ints(call, half + i)
        if places is None or items is None or len(places) != len(items):
            return [None]
        for place, item in zip(places, items, strict=True):
            if not 0 <= place < len(result):
                return [None]
            result[place] = item
    return [tuple(result)]


def broadcast_args(call: "Call") -> list[Content]:
    """The shape that two shapes broadcast to."""
    a, b = _ints(call, 0), _ints(call, 1)
    if a is None or b is None:
        return [None]
    size = max(len(a), len(b))
    a, b = (1,) * (size - len(a)) + a, (1,) * (size - len(b)) + b
    return [tuple(map(broadcast_dim, a, b))]


def broadcast_gradient_args(call: "Call") -> list[Content]:
    """The axes over which each of two broadcast shapes was repeated."""
    a, b = call.known(0), call.known(1)
    if a is None or b is None:
        return [None, None]
    size = max(len(a), len(b))
    a, b = [1] * (size - len(a)) + a, [1] * (size - len(b)) + b
    pairs = list(enumerate(zip(a, b, strict=True)))
    for _, (x, y) in pairs:
        broadcast_dim(x, y)
    if a == b and len(call.known(0) or ()) == len(call.known(1) or ()):
        return [(), ()]
    return [tuple(i for i, (x, y) in pairs if x == 1), tuple(i for i, (x, y) in pairs if y == 1)]


def squeeze_like(call: "Call") -> list[Content]:
    """The same elements in another shape."""
    return [call.ints(0)]


def cumulative(call: "Call") -> list[Content]:
    """Running sum or product of a vector."""
    content, dims, axis = call.known(0), call.shape(0), call.scalar(1)
    if content is None or dims is None or len(dims) != 1 or not isinstance(axis, int) or not content:
        return [None]
    axis_index(axis, 1)
    if call.flag("exclusive") is not False or call.flag("reverse") is not False:
        return [None]
    combine = operator.add if call.node.op_type == "Cumsum" else operator.mul
    result = content[:1]
    for item in content[1:]:
        if abs(result[-1]) >> 64:
            return [None]
        result.append(combine(result[-1], item))
    return [tuple(result)]


_PASS_ON = (
    "Identity StopGradient PreventGradient Snapshot EnsureShape DebugIdentityV3 CheckNumerics RefIdentity OptionalFromValue"
)

CONTENTS: "dict[str, ContentRule]" = {
    **dict.fromkeys(_PASS_ON.split(), pass_on),
    **dict.fromkeys(["Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration"], reference),
    **dict.fromkeys(["Switch", "RefSwitch", "_SwitchN"], reference),
    **dict.fromkeys(["ExpandDims", "Reshape", "Squeeze"], squeeze_like),
    "Add": _binary(add_dim),
    "AddV2": _binary(add_dim),
    "BroadcastArgs": broadcast_args,
    "BroadcastGradientArgs": broadcast_gradient_args,
    "Cast": cast,
    "Concat": concat,
    "ConcatV2": concat,
    "Const": constant,
    "Cumprod": cumulative,
    "Cumsum": cumulative,
    "DynamicStitch": dynamic_stitch,
    "Equal": _binary(_on_ints(operator.eq)),
    "Fill": fill,
    "FloorDiv": _binary(floordiv_dim),
    "FloorMod": _binary(_mod),
    "Gather": gather,
    "GatherV2": gather,
    "Greater": _binary(_on_ints(operator.gt)),
    "GreaterEqual": _binary(_on_ints(operator.ge)),
    "IdentityN": pass_each,
    "InvertPermutation": invert_permutation,
    "Less": _binary(_on_ints(operator.lt)),
    "LessEqual": _binary(_on_ints(operator.le)),
    "LogicalAnd": _binary(_on_ints(operator.and_)),
    "LogicalNot": logical_not,
    "LogicalOr": _binary(_on_ints(operator.or_)),
    "Max": _reduce(_larger, None),
    "Maximum": _binary(_larger),
    "Min": _reduce(_on_ints(min), None),
    "Minimum": _binary(_on_ints(min)),
    "Mul": _binary(mul_dim),
    "Neg": negate,
    "NotEqual": _binary(_on_ints(operator.ne)),
    "OnesLike": _like(1),
    "Pack": pack,
    "Prod": _reduce(mul_dim, 1),
    "Range": range_,
    "Rank": rank_of,
    "Select": select,
    "SelectV2": select,
    "Shape": shape_of,
    "ShapeN": shape_of,
    "Size": size_of,
    "Slice": slice_,
    "StridedSlice": strided_slice,
    "Sub": _binary(sub_dim),
    "Sum": _reduce(add_dim, 0),
    "Unpack": unpack,
    "ZerosLike": _like(0),
}
