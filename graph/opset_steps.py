"""What changed in the ONNX ops, version by version, and how a node is rewritten to compute the same afterwards.

Source: the definitions in the ``onnx`` package. Changes that need no step are those that only allow more (dtypes, operands that
may be omitted) and attributes whose default is what the op did before.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .dtypes import float32, int32
from .graph import Graph
from .opset_edit import Edit
from .schemas.onnx_schema import capture_labels
from .types import UNKNOWN, Shape

#: The newest version whose changes are reviewed here.
NEWEST = 28
#: The limits of float32, which Clip's attributes had as their defaults.
_LARGEST = 3.4028234663852886e38


def _axes(edit: Edit) -> None:
    axes = edit.take("axes")
    if axes is not None:
        edit.set_inputs(edit.data, edit.constant("axes", axes))


def _reduced_axes(edit: Edit) -> None:
    if edit.node.attributes.get("axes") == []:  # all axes, as if left out
        edit.take("axes")
    _axes(edit)


def _slice(edit: Edit) -> None:
    axes = edit.take("axes")
    limits = [edit.constant(name, edit.take(name)) for name in ("starts", "ends")]
    edit.set_inputs(edit.data, *limits, None if axes is None else edit.constant("axes", axes))


def _top_k(edit: Edit) -> None:
    edit.set_inputs(edit.data, edit.constant("k", [edit.take("k")]))


def _split(edit: Edit) -> None:
    sizes = edit.take("split")
    if sizes:
        edit.set_inputs(edit.data, edit.constant("split", sizes))


def _split_count(edit: Edit) -> None:
    if len(edit.node.inputs) < 2:
        edit.give(num_outputs=len(edit.node.outputs))


def _clip(edit: Edit) -> None:
    value = edit.data
    bounds = []
    dtype = edit.dtype(value)
    for name, default in (("min", -_LARGEST), ("max", _LARGEST)):
        bound = edit.take(name)
        if bound is None and dtype is not float32:  # left out, it would be the limit of that dtype from now on
            bound = default
        bounds.append(None if bound is None else edit.constant(name, bound, dtype))
    edit.set_inputs(value, *bounds)


def _pad(edit: Edit) -> None:
    value = edit.data
    pads, filler = edit.take("pads"), edit.take("value")
    is_zero = filler is None or str(filler) == "0.0" or edit.node.attr("mode") != b"constant"
    filling = None if is_zero else edit.constant("value", filler, edit.dtype(value))
    edit.set_inputs(value, edit.constant("pads", pads), filling)


def _dropout_mask(edit: Edit) -> None:
    """Until version 10 the mask was of the data's dtype, and until 12 nobody said what it is when nothing is dropped."""
    if any(edit.is_read(value) for value in edit.node.outputs[1:]):
        edit.fail("its mask, which older versions leave undefined in inference, is read.", "Remove what reads the mask.")
    edit.node.outputs = edit.node.outputs[:1]


def _dropout(edit: Edit) -> None:
    _dropout_mask(edit)
    ratio = edit.take("ratio")
    if ratio is not None:
        edit.set_inputs(edit.data, edit.constant("ratio", ratio, float32))


# ---- resizing -------------------------------------------------------------------------------------------------------------


def _upsample_scales(edit: Edit) -> None:
    edit.set_inputs(edit.data, edit.constant("scales", edit.take("scales"), float32))


def _upsample(edit: Edit) -> None:
    edit.node.op_type = "Resize"
    if edit.version >= 11:
        _sample(edit, b"floor")  # scales are at least 1


def _resize(edit: Edit) -> None:
    """Say how coordinates are transformed, which version 10 did in one way only.

    Source of the way: ONNX Runtime. A nearest neighbour is looked for downwards along axes that grow and upwards along axes
    that shrink; where both happen or scales are not known, axes that grow are resized before the others.
    """
    if "coordinate_transformation_mode" in edit.node.attributes:
        return  # was an Upsample
    value, scales = edit.node.inputs
    tensor = edit.known(scales)
    known = None if tensor is None else tensor.array()
    if edit.node.attr("mode") == b"linear" or (known is not None and (known >= 1).all()):
        _sample(edit, b"floor")
    elif known is not None and (known <= 1).all():
        _sample(edit, b"ceil")
    else:
        one = edit.constant("one", [1], float32)
        growing, shrinking = edit.before("Max", [scales, one]), edit.before("Min", [scales, one])
        grown = edit.before("Resize", [value, _roi(edit), growing], None, **_sampling(b"floor"))
        edit.set_inputs(grown, shrinking)
        _sample(edit, b"ceil")


def _sampling(nearest: bytes) -> dict[str, Any]:
    return {"coordinate_transformation_mode": b"asymmetric", "mode": b"nearest", "nearest_mode": nearest}


def _sample(edit: Edit, nearest: bytes) -> None:
    value, scales = edit.node.inputs
    edit.set_inputs(value, _roi(edit), scales)
    is_linear = edit.node.attr("mode") == b"linear"
    edit.give(**(_sampling(nearest) | {"mode": b"linear"} if is_linear else _sampling(nearest)))


def _roi(edit: Edit) -> Any:
    return None if edit.version >= 13 else edit.constant("roi", [], float32)


def _resize_omitted(edit: Edit) -> None:
    """Omit what had to be empty if not wanted, and replace a way to transform coordinates that was dropped."""
    value, roi, scales, *sizes = edit.node.inputs
    tensor = edit.known(roi)
    roi = roi if tensor is None or tensor.size else None
    edit.set_inputs(value, roi, None if any(sizes) else scales, *sizes)
    if edit.node.attributes.get("coordinate_transformation_mode") == b"tf_half_pixel_for_nn":
        # It is half_pixel plus a half, so rounding does what cutting off did.
        same = {b"floor": b"round_prefer_ceil", b"round_prefer_floor": b"ceil"}
        nearest = same.get(edit.node.attr("nearest_mode"))
        if edit.node.attr("mode") != b"nearest" or nearest is None:
            edit.fail("coordinate_transformation_mode tf_half_pixel_for_nn no longer exists.", "Resize in another mode.")
        edit.give(coordinate_transformation_mode=b"half_pixel", nearest_mode=nearest)


# ---- neural networks --------------------------------------------------------------------------------------------------------


def _softmax(edit: Edit) -> None:
    """Until version 13 the axis was where the tensor is cut into the two dimensions of a matrix, whose rows are normalized.

    A tensor without elements can be cut so from version 14 on only, whose Reshape takes a size of 0 for what it is.
    """
    value, axis = edit.data, edit.take("axis")
    axis = 1 if axis is None else axis
    dims = value.shape.dims
    if dims is None and value.producer.domain == "" and value.producer.op_type in ("Flatten", "Gemm"):
        dims = (None, None)
    if axis == -1 or (dims is not None and -len(dims) <= axis < len(dims) and all(dim == 1 for dim in dims[axis:][1:])):
        edit.give(axis=axis)
        return
    shape = edit.before("Shape", [value])
    edit.set_inputs(edit.before("Flatten", [value], axis=axis))
    edit.give(axis=1)
    edit.after("Reshape", [shape], **({"allowzero": 1} if edit.version >= 14 else {}))


def _batch_norm_spatial(edit: Edit) -> None:
    if edit.take("spatial") == 0 and edit.data.shape.rank != 2:
        edit.fail("spatial=0 no longer exists.", "Flatten its input to two dimensions, or compute it of elementary ops.")


def _batch_norm_training(edit: Edit) -> None:
    """Until version 14 more than one result meant training."""
    node = edit.node
    omitted = getattr(node.meta, "omitted", ())
    given = [value.index not in omitted for value in node.outputs]
    if any(given[i] and edit.is_read(node.outputs[i]) for i in range(3, len(given))):
        edit.fail("its results saved_mean and saved_var no longer exist.", "Remove what reads them.")
    if any(given[1:]):
        edit.give(training_mode=1)
        node.outputs = node.outputs[:3]
    else:
        node.outputs = node.outputs[:1]


def _group_norm(edit: Edit) -> None:
    """From version 21 on, scale and bias are per channel, no longer per group."""
    node = edit.node
    value, groups = edit.data, edit.take("num_groups")
    if groups < 1:
        edit.fail(f"it has {groups} groups.", "Correct the node.")
    dims = value.shape.dims or ()
    channels = dims[1] if len(dims) > 1 else None
    if isinstance(channels, int):
        repeats = edit.constant("repeats", [1, channels // groups])
    else:
        channel = edit.before("Gather", [edit.before("Shape", [value]), edit.constant("channel_axis", [1])], axis=0)
        count = edit.before("Div", [channel, edit.constant("groups", [groups])])
        repeats = edit.before("Concat", [edit.constant("one", [1]), count], axis=0)
    column, flat = edit.constant("column", [-1, 1]), edit.constant("flat", [-1])
    per_channel = []
    for parameter in node.inputs[1:]:
        repeated = edit.before("Expand", [edit.before("Reshape", [parameter, column]), repeats])
        per_channel.append(edit.before("Reshape", [repeated, flat]))
    edit.set_inputs(value, *per_channel)
    dtype = edit.dtype(value)
    edit.give(num_groups=groups, **({} if dtype is float32 else {"stash_type": dtype.onnx}))


def _roi_align(edit: Edit) -> None:
    edit.give(coordinate_transformation_mode=b"output_half_pixel")


def _grid_sample(edit: Edit) -> None:
    mode = edit.take("mode")
    if mode is not None:
        edit.give(mode={b"bilinear": b"linear", b"bicubic": b"cubic"}.get(mode, mode))


def _dft(edit: Edit) -> None:
    axis = edit.take("axis")
    value, *length = edit.node.inputs
    edit.set_inputs(value, *(length or [None]), edit.constant("axis", 1 if axis is None else axis))


def _quantize(edit: Edit) -> None:
    """From version 19 on, data and scale are of one dtype; until then integers were divided as float32."""
    value, *others = edit.node.inputs
    if edit.data.dtype is int32:
        edit.set_inputs(edit.before("Cast", [value], {"T2": float32}), *others)


def _scatter(edit: Edit) -> None:
    edit.node.op_type = "ScatterElements"


def _scan(edit: Edit) -> None:
    """Version 8 did the same for every element of a batch, which becomes a scan around the scan."""
    node, body = edit.node, edit.take("body")
    edit.give(body=body)
    labels = capture_labels(node.attributes)
    count = len(node.inputs) - len(labels)
    if node.inputs[0] is not None:
        edit.fail("its sequences have lengths of their own (sequence_lens).", "Scan sequences of one length.")
    if len(body.outputs) != len(node.outputs) or len(body.inputs) != len(node.inputs) - 1:
        edit.fail("its body has other inputs or results.", "Correct the node.")
    directions = edit.take("directions")
    outer = Graph(f"{body.name}_batch", edit.graph.functions, opsets=edit.graph.opsets, captures=labels)
    for slot, (value, inner) in enumerate(zip(node.inputs[1:], body.inputs, strict=True)):
        shape = UNKNOWN if value is None else value.shape
        if slot < count - 1 and shape.dims is not None:  # one element of the batch; captured values have none
            shape = Shape(shape.dims[1:])
        outer.add_input(inner.name, None if value is None else value.dtype, shape)
    attributes = node.attributes if directions is None else {**node.attributes, "scan_input_directions": directions}
    scan = outer.add("Scan", outer.inputs, domain="", name="scan", attributes=attributes, outputs=len(node.outputs))
    for value, result in zip(scan.outputs, body.outputs, strict=True):
        value.name = outer.fresh_name(f"{result.name}_batch")
    outer.outputs, outer.output_names = list(scan.outputs), [value.name for value in scan.outputs]
    edit.set_inputs(*node.inputs[1:])
    node.attributes = {"body": outer, "num_scan_inputs": count - 1}


_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
_Step = Callable[[Edit], None]

#: Op -> (the version that changed it, what to do), in ascending order.
STEPS: dict[str, Sequence[tuple[int, _Step]]] = {
    "BatchNormalization": [(9, _batch_norm_spatial), (14, _batch_norm_training)],
    "Clip": [(11, _clip)],
    "DFT": [(20, _dft)],
    "Dropout": [(10, _dropout_mask), (12, _dropout)],
    "GridSample": [(20, _grid_sample)],
    "GroupNormalization": [(21, _group_norm)],
    "Hardmax": [(13, _softmax)],
    "LogSoftmax": [(13, _softmax)],
    "Pad": [(11, _pad)],
    "QuantizeLinear": [(19, _quantize)],
    "ReduceSum": [(13, _reduced_axes)],
    "Resize": [(11, _resize), (13, _resize_omitted)],
    "RoiAlign": [(16, _roi_align)],
    "Scan": [(9, _scan)],
    "Scatter": [(11, _scatter)],
    "Slice": [(10, _slice)],
    "Softmax": [(13, _softmax)],
    "Split": [(13, _split), (18, _split_count)],
    "Squeeze": [(13, _axes)],
    "TopK": [(10, _top_k)],
    "Unsqueeze": [(13, _axes)],
    "Upsample": [(9, _upsample_scales), (10, _upsample)],
    **{f"Reduce{name}": [(18, _reduced_axes)] for name in _REDUCTIONS},
}
