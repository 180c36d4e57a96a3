"""Classical machine learning: encoders and scalers of ``ai.onnx.ml``."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


def lookup(xp: Any, x: Any, keys: Any, values: Any, default: Any) -> Any:
    """Return for each element of ``x`` the value of its key, or ``default``; of equal keys the last counts, NaN equals NaN."""
    if x.dtype == object:
        table = dict(zip(keys.tolist(), range(len(keys)), strict=True))
        found = xp.asarray([table.get(item, -1) for item in x.reshape(-1).tolist()], xp.int64)
    else:
        reverse = keys[::-1]
        kept, first = xp.unique(reverse, return_index=True)
        place = xp.minimum(xp.searchsorted(kept, x.reshape(-1)), kept.size - 1)
        near, flat = kept[place], x.reshape(-1)
        hit = (near == flat) | (_missing(xp, near) & _missing(xp, flat))
        found = xp.where(hit, keys.size - 1 - first[place], -1)
    table = xp.concatenate([values, xp.asarray([default], values.dtype)])
    return table[found].reshape(x.shape)


def _missing(xp: Any, x: Any) -> Any:
    return xp.isnan(x) if x.dtype.kind == "f" else xp.zeros(x.shape, bool)


def _objects(xp: Any, items: Sequence[str]) -> Any:
    result = xp.empty(len(items), object)
    result[:] = list(items)
    return result


@kernel("ai.onnx.ml:LabelEncoder", moves=True)
def label_encoder(call: "Call", x: Any) -> Any:
    """Look each element up among keys."""
    xp, classes = call.xp, call.attr("classes_strings")
    if classes is not None:  # version 1: class names and their numbers
        names, numbers = _objects(xp, classes), xp.arange(len(classes))
        if x.dtype == object:
            return lookup(xp, x, names, numbers, call.attr("default_int64", -1))
        return lookup(xp, x, numbers, names, call.attr("default_string", "_Unused"))
    keys = _first(call, "keys", {"tensor": None, "strings": object, "int64s": xp.int64, "floats": xp.float32})
    values = _first(call, "values", {"tensor": None, "strings": object, "int64s": xp.int64, "floats": xp.float32})
    default = call.attr("default_tensor")
    if default is not None:
        default = default.reshape(-1)[0]
    elif values.dtype == object:
        default = call.attr("default_string", "_Unused")
    elif values.dtype.kind == "f":
        default = call.attr("default_float", -0.0)
    else:
        default = call.attr("default_int64", -1)
    return lookup(xp, x, keys, values, default)


def _first(call: "Call", stem: str, dtypes: dict[str, Any]) -> Any:
    """Return the one of the attributes ``stem_*`` that is given, as an array."""
    for name, dtype in dtypes.items():
        found = call.attr(f"{stem}_{name}")
        if found is not None:
            if dtype is None:
                return call.xp.asarray(found).reshape(-1)
            return _objects(call.xp, found) if dtype is object else call.xp.asarray(found, dtype)
    raise KernelError(f"Op {call.node.op_type} needs one of the attributes {stem}_*.")


@kernel("ai.onnx.ml:CategoryMapper", moves=True)
def category_mapper(call: "Call", x: Any) -> Any:
    """Names to numbers or numbers to names."""
    xp, names, numbers = (
        call.xp,
        _objects(call.xp, call.attr("cats_strings")),
        call.xp.asarray(call.attr("cats_int64s"), call.xp.int64),
    )
    if x.dtype == object:
        return lookup(xp, x, names, numbers, call.attr("default_int64", -1))
    return lookup(xp, x, numbers, names, call.attr("default_string", "_Unused"))


@kernel("ai.onnx.ml:ArrayFeatureExtractor", moves=True)
def array_feature_extractor(call: "Call", x: Any, which: Any) -> Any:
    """Pick columns of the last axis."""
    picked = x[..., which.reshape(-1)]
    return picked.reshape(1, -1) if x.ndim == 1 else picked


@kernel("ai.onnx.ml:Binarizer")
def binarizer(call: "Call", x: Any) -> Any:
    """1 above the threshold, 0 elsewhere."""
    return (x > call.attr("threshold", 0.0)).astype(x.dtype)


@kernel("ai.onnx.ml:OneHotEncoder", moves=True)
def one_hot_encoder(call: "Call", x: Any) -> Any:
    """A new last axis with 1 at the category.

    Raises:
        KernelError: If an element is no category, and ``zeros`` does not allow that.
    """
    xp = call.xp
    if x.dtype == object:
        known = _objects(xp, call.attr("cats_strings") or [])
    else:
        known, x = xp.asarray(call.attr("cats_int64s") or [], xp.int64), x.astype(xp.int64)
    result = x[..., None] == known
    if not call.attr("zeros", 1) and not bool(result.any(axis=-1).all()):
        raise KernelError("Op OneHotEncoder with zeros=0 was given an element that is none of its categories.")
    return result.astype(xp.float32)


@kernel("ai.onnx.ml:Imputer")
def imputer(call: "Call", x: Any) -> Any:
    """Replace one value (often NaN), by column or everywhere."""
    xp = call.xp
    if x.dtype.kind == "f":
        wanted, filling = call.attr("replaced_value_float", 0.0), call.attr("imputed_value_floats")
    else:
        wanted, filling = call.attr("replaced_value_int64", 0), call.attr("imputed_value_int64s")
    if not filling:
        raise KernelError("Op Imputer needs values of the operand's kind to fill in.")
    hit = _missing(xp, x) if math.isnan(wanted) else x == x.dtype.type(wanted)
    return xp.where(hit, xp.asarray(filling, x.dtype), x)


@kernel("ai.onnx.ml:Scaler")
def scaler(call: "Call", x: Any) -> Any:
    """``(x - offset) * scale``, by column or everywhere."""
    xp = call.xp
    dtype = xp.float64 if x.dtype == xp.float64 else xp.float32
    offset, scale = xp.asarray(call.attr("offset") or [0.0], dtype), xp.asarray(call.attr("scale") or [1.0], dtype)
    return ((x.astype(dtype) - offset) * scale).astype(xp.float32)


@kernel("ai.onnx.ml:Normalizer")
def normalizer(call: "Call", x: Any) -> Any:
    """Divide each row by its largest element, its sum of magnitudes or its length; rows whose norm is 0 stay."""
    xp, norm, x = call.xp, call.attr("norm", "MAX"), x.astype(call.xp.float32)
    if norm == "MAX":
        size = x.max(axis=-1, keepdims=True, initial=-xp.inf)
    elif norm == "L1":
        size = xp.abs(x).sum(axis=-1, keepdims=True)
    elif norm == "L2":
        size = xp.sqrt((x * x).sum(axis=-1, keepdims=True))
    else:
        raise KernelError(f"Op Normalizer has the norms MAX, L1 and L2. Received: {norm!r}")
    return xp.where(size == 0, x, x / size)


@kernel("ai.onnx.ml:FeatureVectorizer")
def feature_vectorizer(call: "Call", *parts: Any) -> Any:
    """Side by side, each cut or filled up with zeros to its given width."""
    xp, widths = call.xp, call.attr("inputdimensions")
    columns = []
    for i, part in enumerate(parts):
        rows = part.astype(xp.float32).reshape(1, -1) if part.ndim < 2 else part.astype(xp.float32).reshape(part.shape[0], -1)
        width = rows.shape[1] if widths is None else widths[i]
        missing = xp.zeros((rows.shape[0], max(0, width - rows.shape[1])), xp.float32)
        columns.append(xp.concatenate([rows[:, :width], missing], axis=1))
    return xp.concatenate(columns, axis=1)


@kernel("ai.onnx.ml:DictVectorizer", moves=True)
def dict_vectorizer(call: "Call", x: Any) -> Any:
    """Values of a dictionary in the order of the vocabulary, 0 for keys that it lacks."""
    vocabulary = call.attr("string_vocabulary") or call.attr("int64_vocabulary") or []
    dtype = call.dtypes[0]
    if dtype is not None and dtype.kind == "string":
        return _objects(call.xp, [x.get(key, "") for key in vocabulary]).reshape(1, -1)
    return call.xp.asarray([[x.get(key, 0) for key in vocabulary]], None if dtype is None else dtype.numpy)


@kernel("ai.onnx.ml:CastMap", moves=True)
def cast_map(call: "Call", x: Any) -> Any:
    """Values of a dictionary by ascending key, or each at its key (``map_form`` SPARSE)."""
    xp, kind = call.xp, call.attr("cast_to", "TO_FLOAT")
    if call.attr("map_form", "DENSE") == "SPARSE":
        values = [x.get(i, 0) for i in range(call.attr("max_map", 1))]
    else:
        values = [x[key] for key in sorted(x)]
    if kind == "TO_STRING":
        return _objects(xp, [str(value) for value in values]).reshape(1, -1)
    convert, dtype = (int, xp.int64) if kind == "TO_INT64" else (float, xp.float32)
    return xp.asarray([[convert(value) for value in values]], dtype)


@kernel("ai.onnx.ml:ZipMap", moves=True)
def zip_map(call: "Call", x: Any) -> list[dict[Any, float]]:
    """A dictionary from class to score for each row."""
    labels = call.attr("classlabels_strings") or call.attr("classlabels_int64s") or []
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    if rows.shape[1] != len(labels):
        raise KernelError(f"Op ZipMap needs {len(labels)} columns. Received: {rows.shape[1]}")
    return [dict(zip(labels, row, strict=True)) for row in rows.tolist()]
