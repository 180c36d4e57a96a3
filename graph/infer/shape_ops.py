"""Ops that read, rearrange, join and cut shapes without looking at elements."""

from typing import TYPE_CHECKING

from ..types import Dim
from .dims import (
    Conflict,
    Dims,
    add_dim,
    axis_index,
    broadcast,
    check_vector,
    divide_exact,
    merge,
    merge_dim,
    mul_dim,
    product,
    replaced,
    show,
    sub_dim,
    with_rank,
)

if TYPE_CHECKING:
    from .call import Call, Rule


def shape_of(call: "Call") -> list[Dims]:
    """A vector with one element per dimension, for every operand."""
    return [(None if dims is None else len(dims),) for dims in call.dims]


def scalar(call: "Call") -> list[Dims]:
    """Scalars."""
    return [()] * len(call.node.outputs)


def reshape(call: "Call") -> list[Dims]:
    """The shape that operand 1 holds; one size may be -1, which takes what is left."""
    dims, content = call.shape(0), call.ints(1)
    wanted = call.as_shape(1)
    if wanted is None or content is None:
        return [wanted]
    have = None if dims is None else product(dims)
    rest = [size for size in content if size != -1]
    if len(rest) == len(content):
        want = product(wanted)
        if isinstance(have, int) and isinstance(want, int) and have != want:
            raise Conflict(f"{have} elements cannot be reshaped to {show(wanted)}, which has {want}")
        # One size is unknown, but the number of elements is not: it follows.
        unknown = [i for i, size in enumerate(wanted) if not isinstance(size, int)]
        if len(unknown) == 1 and isinstance(have, int) and wanted[unknown[0]] is None:
            others = product(size for size in wanted if isinstance(size, int))
            if isinstance(others, int) and others and have % others == 0:
                return [replaced(wanted, unknown[0], have // others)]
        return [wanted]
    if len(rest) < len(content) - 1:
        raise Conflict("only one size of a reshape may be -1")
    known = product(rest)
    missing = content.index(-1)
    if isinstance(have, int) and isinstance(known, int):
        if known == 0:
            return [replaced(wanted, missing, 0 if have == 0 else None)]
        if have % known:
            raise Conflict(f"{have} elements cannot be reshaped to [{','.join(map(str, content))}]")
        return [replaced(wanted, missing, have // known)]
    return [replaced(wanted, missing, _left_over(dims, rest))]


def _left_over(dims: Dims, rest: list[Dim]) -> Dim:
    """What ``dims`` holds beyond ``rest``, when symbols cancel."""
    if dims is None or None in rest:
        return None
    left = list(dims)
    for size in [size for size in rest if isinstance(size, str)]:
        if size not in left:
            return None
        left.remove(size)
    have, want = product(d for d in left if isinstance(d, int)), product(size for size in rest if isinstance(size, int))
    other = [d for d in left if not isinstance(d, int)]
    if not isinstance(have, int) or not isinstance(want, int) or want == 0 or have % want:
        return None
    if not other:
        return have // want
    return other[0] if len(other) == 1 and have == want else None


def expand_dims(call: "Call") -> list[Dims]:
    """A dimension of 1 at the place that operand 1 holds."""
    dims, axis = call.shape(0), call.scalar(1)
    if dims is None:
        return [None]
    if not isinstance(axis, int):
        return [(None,) * (len(dims) + 1)]
    i = axis_index(axis, len(dims) + 1)
    return [(*dims[:i], 1, *dims[i:])]


def squeeze(call: "Call") -> list[Dims]:
    """Without the given dimensions of 1, or without all."""
    dims, axes = call.shape(0), call.integers("squeeze_dims")
    if dims is None or axes is None:
        return [None]
    if not axes:
        return [None if any(not isinstance(dim, int) for dim in dims) else tuple(dim for dim in dims if dim != 1)]
    gone = {axis_index(axis, len(dims)) for axis in axes}
    for i in gone:
        if isinstance(dims[i], int) and dims[i] != 1:
            raise Conflict(f"dimension {i} of {show(dims)} cannot be squeezed: it is not 1")
    return [tuple(dim for i, dim in enumerate(dims) if i not in gone)]


def broadcast_to(call: "Call") -> list[Dims]:
    """The shape that operand 1 holds."""
    dims, wanted = call.shape(0), call.as_shape(1)
    if dims is not None and wanted is not None:
        if len(dims) > len(wanted):
            raise Conflict(f"{show(dims)} cannot be broadcast to {show(wanted)}, which has a lower rank")
        merge(broadcast(dims, wanted), wanted)
    return [wanted]


def fill(call: "Call") -> list[Dims]:
    """The shape that operand 0 holds."""
    return [call.as_shape(0)]


def two_vectors(call: "Call") -> list[Dims]:
    """Two vectors of unknown length, from two vectors."""
    call.ranked(0, 1)
    call.ranked(1, 1)
    return [(None,), (None,)]


def broadcast_args(call: "Call") -> list[Dims]:
    """A vector as long as the longer operand."""
    a, b = check_vector(call.shape(0)), check_vector(call.shape(1))
    return [(max(a, b) if isinstance(a, int) and isinstance(b, int) else None,)]


def concat(call: "Call") -> list[Dims]:
    """Sizes along the axis add up, all others are equal."""
    first = call.node.op_type == "Concat"
    parts, axis = (call.dims[1:], call.scalar(0)) if first else (call.dims[:-1], call.scalar(len(call.dims) - 1))
    if not isinstance(axis, int):
        ranks = {len(dims) for dims in parts if dims is not None}
        if len(ranks) > 1:
            raise Conflict(f"the operands should have the same rank, not {' and '.join(map(str, sorted(ranks)))}")
        return [(None,) * ranks.pop() if ranks else None]
    rest: Dims = None
    total: Dim = 0
    for dims in parts:
        if dims is None:
            total = None
            continue
        i = axis_index(axis, len(dims))
        rest = merge(rest, replaced(dims, i, None))
        total = add_dim(total, dims[i])
    return [None if rest is None else replaced(rest, axis_index(axis, len(rest)), total)]


def concat_offset(call: "Call") -> list[Dims]:
    """A vector for every shape."""
    return list(call.dims[1:])


def split(call: "Call") -> list[Dims]:
    """Equal parts along the axis that operand 0 holds."""
    dims, axis, parts = call.shape(1), call.scalar(0), len(call.node.outputs)
    if dims is None:
        return [None] * parts
    if not isinstance(axis, int):
        return [(None,) * len(dims)] * parts
    i = axis_index(axis, len(dims))
    return [replaced(dims, i, divide_exact(dims[i], parts))] * parts


def split_v(call: "Call") -> list[Dims]:
    """Parts along an axis with the sizes that operand 1 holds; one may be -1."""
    dims, sizes, axis = call.shape(0), call.ints(1), call.scalar(2)
    parts = len(call.node.outputs)
    if dims is None:
        return [None] * parts
    if not isinstance(axis, int):
        return [(None,) * len(dims)] * parts
    i = axis_index(axis, len(dims))
    if sizes is None:
        return [dims if parts == 1 else replaced(dims, i, None)] * parts
    if len(sizes) != parts:
        raise Conflict(f"there are {parts} results, but {len(sizes)} sizes")
    rest: Dim = dims[i]
    for size in sizes:
        if size != -1:
            rest = sub_dim(rest, size)
    if isinstance(rest, int) and (rest < 0 or (rest > 0 and -1 not in sizes)):
        raise Conflict(f"sizes {list(sizes)[:16]} do not add up to {dims[i]}")
    return [replaced(dims, i, rest if size == -1 else size) for size in sizes]


def pack(call: "Call") -> list[Dims]:
    """Operands of one shape, stacked along a new axis."""
    dims: Dims = None
    for operand in call.dims:
        dims = merge(dims, operand)
    axis = call.integer("axis")
    if dims is None or axis is None:
        return [None]
    i = axis_index(axis, len(dims) + 1)
    return [(*dims[:i], len(call.dims), *dims[i:])]


def unpack(call: "Call") -> list[Dims]:
    """Slices along an axis, which is left out."""
    dims, axis, parts = call.shape(0), call.integer("axis"), len(call.node.outputs)
    if dims is None or axis is None:
        return [None] * parts
    i = axis_index(axis, len(dims))
    if isinstance(dims[i], int) and dims[i] != parts:
        raise Conflict(f"dimension {i} of {show(dims)} should be {parts}, the number of results")
    return [dims[:i] + dims[i + 1 :]] * parts


def transpose(call: "Call") -> list[Dims]:
    """Dimensions in the order that operand 1 holds."""
    dims, order = call.shape(0), call.ints(1)
    length = check_vector(call.shape(1))
    if order is None:
        rank = len(dims) if dims is not None else length
        return [(None,) * rank if isinstance(rank, int) and rank <= 254 else None]
    if dims is not None and len(dims) != len(order):
        raise Conflict(f"a permutation of {len(order)} entries does not fit a rank {len(dims)} tensor")
    known = [axis_index(axis, len(order)) for axis in order if isinstance(axis, int)]
    if len(set(known)) != len(known):
        raise Conflict(f"{list(order)[:16]} is no permutation")
    if dims is None:
        return [(None,) * len(order)]
    return [tuple(dims[axis] if isinstance(axis, int) else None for axis in order)]


def tile(call: "Call") -> list[Dims]:
    """Every size times the multiple that operand 1 holds."""
    dims, multiples = call.shape(0), call.ints(1)
    if multiples is None or dims is None:
        count = check_vector(call.shape(1)) if dims is None else len(dims)
        return [(None,) * count if isinstance(count, int) and count <= 254 else None]
    if len(multiples) != len(dims):
        raise Conflict(f"{len(multiples)} multiples do not fit a rank {len(dims)} tensor")
    return [tuple(map(mul_dim, dims, multiples))]


def pad(call: "Call") -> list[Dims]:
    """Every size plus what operand 1 holds for its two sides."""
    dims, sides = call.shape(0), call.ints(1)
    table = with_rank(call.shape(1), 2)
    merge_dim(table[1], 2)
    if dims is None:
        return [(None,) * table[0] if isinstance(table[0], int) and table[0] <= 254 else None]
    merge_dim(table[0], len(dims))
    if sides is None:
        return [(None,) * len(dims)]
    back = call.node.op_type == "MirrorPadGrad"
    change = sub_dim if back else add_dim
    return [tuple(change(change(dim, sides[2 * i]), sides[2 * i + 1]) for i, dim in enumerate(dims))]


_NO_SIDES: tuple[Dim, ...] = (None, None)


def space_batch(call: "Call") -> list[Dims]:
    """Blocks move from the spatial dimensions to the batch, or back."""
    dims, op = call.shape(0), call.node.op_type
    to_batch = op.startswith("SpaceToBatch")
    if op.endswith("ND"):
        blocks, sides = call.ints(1), call.ints(2)
    else:
        both = call.integer("block_size")
        blocks, sides = (None if both is None else (both, both)), call.ints(1)
    if dims is None:
        return [None]
    if blocks is None:
        return [(None,) * len(dims)]
    if len(dims) < len(blocks) + 1:
        raise Conflict(f"{show(dims)} has no {len(blocks)} spatial dimensions")
    if any(isinstance(block, int) and block < 1 for block in blocks):
        raise Conflict("block sizes should be positive")
    total, result = product(blocks), list(dims)
    if to_batch:
        result[0] = mul_dim(dims[0], total)
    else:
        result[0] = divide_exact(dims[0], total) if isinstance(total, int) else None
    for i, block in enumerate(blocks):
        dim = dims[i + 1]
        low, high = _NO_SIDES if sides is None or len(sides) != 2 * len(blocks) else sides[2 * i : 2 * i + 2]
        if to_batch:
            padded = add_dim(add_dim(dim, low), high)
            result[i + 1] = divide_exact(padded, block) if isinstance(block, int) else None
        else:
            result[i + 1] = sub_dim(sub_dim(mul_dim(dim, block), low), high)
    return [tuple(result)]


def diag_part(call: "Call") -> list[Dims]:
    """The main diagonal of the last two dimensions, when the op has no other operands or they ask for it."""
    dims = call.shape(0)
    if dims is None or len(dims) < 2:
        return [None]
    if len(call.dims) > 1 and call.known(1) not in ([0], [0, 0]):
        return [None]
    rows, columns = dims[-2:]
    size: Dim
    size = min(rows, columns) if isinstance(rows, int) and isinstance(columns, int) else (rows if rows == columns else None)
    return [(*dims[:-2], size)]


def diag(call: "Call") -> list[Dims]:
    """A vector becomes the diagonal of a square."""
    dims = call.shape(0)
    return [None if not dims or len(call.dims) > 1 else (*dims, dims[-1])]


def ensure_shape(call: "Call") -> list[Dims]:
    """The operand has the declared shape."""
    return [merge(call.declared("shape"), call.shape(0))]


RULES: "dict[str, Rule]" = {
    "BatchToSpace": space_batch,
    "BatchToSpaceND": space_batch,
    "BroadcastArgs": broadcast_args,
    "BroadcastGradientArgs": two_vectors,
    "BroadcastTo": broadcast_to,
    "Concat": concat,
    "ConcatOffset": concat_offset,
    "ConcatV2": concat,
    "EnsureShape": ensure_shape,
    "ExpandDims": expand_dims,
    "Fill": fill,
    "MatrixDiag": diag,
    "MatrixDiagPart": diag_part,
    "MatrixDiagPartV2": diag_part,
    "MatrixDiagPartV3": diag_part,
    "MirrorPad": pad,
    "MirrorPadGrad": pad,
    "Pack": pack,
    "Pad": pad,
    "PadV2": pad,
    "Rank": scalar,
    "Reshape": reshape,
    "Shape": shape_of,
    "ShapeN": shape_of,
    "Size": scalar,
    "SpaceToBatch": space_batch,
    "SpaceToBatchND": space_batch,
    "Split": split,
    "SplitV": split_v,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "ConjugateTranspose": transpose,
    "Unpack": unpack,
}
