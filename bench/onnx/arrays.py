"""Arrays in NPZ files, and how far the outputs of two runs lie apart."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

#: The error where there is no number: values that are not finite or have another shape.
NO_ERROR = 1e30
_OTHER = {"error": NO_ERROR, "finite": False, "integers": 1.0, "shapes": False}


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays by name, whatever the names are; text as fixed-width strings, bfloat16 as float32."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            array = np.asarray(array)
            if array.dtype.kind == "O":
                array = array.astype(str)
            elif array.dtype.kind == "V":
                array = array.astype(np.float32)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def read_arrays(path: Path) -> dict[str, Any]:
    """Read the arrays of an NPZ file, in its order.

    Raises:
        ValueError: If it holds something else.
    """
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def flat(outputs: Sequence[Any]) -> dict[str, Any]:
    """Return outputs as arrays by number; the items of a sequence are ``"2.0"``, ``"2.1"`` …, an empty optional is left out."""
    found: dict[str, Any] = {}
    for i, value in enumerate(outputs):
        if isinstance(value, list | tuple):
            found |= {f"{i}.{key}": item for key, item in flat(value).items()}
        elif isinstance(value, dict):
            found |= {f"{i}.keys": list(value), f"{i}.values": list(value.values())}
        elif value is not None:
            found[str(i)] = value
    return found


def difference(reference: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Compare outputs with those of the float32 model.

    Returns:
        ``error``: the largest max|y-y32| / max|y32| of any float output, over the elements that are finite in ``reference``;
        ``finite``: whether all of those are finite; ``integers``: the largest share of elements that differ in any other
        output; ``shapes``: whether the shapes are the same. Where one of the two does not hold, the error is
        :data:`NO_ERROR`.
    """
    result = {"error": 0.0, "finite": True, "integers": 0.0, "shapes": True}
    if reference.keys() != given.keys():
        return dict(_OTHER)
    for name, right in reference.items():
        value = given[name]
        if right.shape != value.shape:
            return dict(_OTHER)
        if not right.size:
            continue
        if right.dtype.kind not in "fc":
            result["integers"] = max(result["integers"], float(np.mean(right != value)))
            continue
        wide = np.complex128 if right.dtype.kind == "c" else np.float64
        right, value = right.astype(wide), value.astype(wide)
        counts = np.isfinite(right)
        result["finite"] &= bool(np.isfinite(value[counts]).all())
        largest = np.abs(right[counts]).max(initial=0)
        error = (
            float(np.abs(value[counts] - right[counts]).max(initial=0) / max(largest, 1e-12)) if result["finite"] else NO_ERROR
        )
        result["error"] = max(result["error"], min(error, NO_ERROR))
    return result
