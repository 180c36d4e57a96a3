"""Run the test cases of the ONNX standard that the installed ``onnx`` package holds, and print as JSON what became of them.

usage: python tests/tools/backend_suite.py [--half] [--shard I/N] [--only REGEX]

With ``--half``, the cases of single nodes run in float16: floating-point inputs and outputs get that type where the model is still
valid, and results may be off by 2 % of the largest expected number. The output maps each case to "" where it passed, to the
reason where it did not. The exit code is always 0: tests/data/onnx/backend_failures.toml says what may fail.
"""

import argparse
import contextlib
import json
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from ampgraph.backend import prepare

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


class NotHalf(Exception):
    """A case that cannot be one of float16."""


def cases(kinds: tuple[str, ...]) -> Iterator[Any]:
    """Yield the cases of the given kinds."""
    from onnx.backend.test.loader import load_model_tests

    for kind in kinds:
        yield from load_model_tests(kind=kind)


def value_of(item: Any) -> Any:
    """Return a message of test data as an array, a list or None."""
    if isinstance(item, TensorProto):
        return numpy_helper.to_array(item)
    if isinstance(item, onnx.SequenceProto):
        return numpy_helper.to_list(item)
    if isinstance(item, onnx.OptionalProto):
        return numpy_helper.to_optional(item)
    return np.asarray(item) if isinstance(item, np.generic | int | float | bool) else item


def read_value(path: Path, kind: Any) -> Any:
    """Return the value that a file of test data holds; ``kind`` is the declared type."""
    message: Any = TensorProto()
    if kind.HasField("sequence_type"):
        message = onnx.SequenceProto()
    elif kind.HasField("optional_type"):
        message = onnx.OptionalProto()
    message.ParseFromString(path.read_bytes())
    return value_of(message)


def data_sets(case: Any, model: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield inputs and expected outputs."""
    if getattr(case, "data_sets", None):
        for inputs, outputs in case.data_sets:
            yield [value_of(item) for item in inputs], [value_of(item) for item in outputs]
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        sides = []
        for side, infos in (("input", model.graph.input), ("output", model.graph.output)):
            count = len(list(folder.glob(f"{side}_*.pb")))
            sides.append([read_value(folder / f"{side}_{i}.pb", infos[i].type) for i in range(count)])
        yield sides[0], sides[1]


def check(expected: Any, found: Any, rtol: float, atol: float) -> None:
    """Raise an AssertionError where a result is not the expected one."""
    if expected is None or isinstance(expected, list | tuple):
        assert (expected is None) == (found is None), f"{found} instead of {expected}"
        for one, other in zip(expected or (), found or (), strict=True):
            check(one, other, rtol, atol)
        return
    expected, found = np.asarray(expected), np.asarray(found)
    assert expected.shape == found.shape, f"shape {found.shape} instead of {expected.shape}"
    if expected.dtype.kind in "OSU":
        assert (expected.astype(str) == found.astype(str)).all(), "other text"
        return
    assert expected.dtype == found.dtype, f"dtype {found.dtype} instead of {expected.dtype}"
    if expected.dtype.kind == "b":
        assert (expected == found).all(), "other booleans"
    elif expected.dtype.kind == "c":
        np.testing.assert_allclose(found, expected, rtol, atol)
    else:
        if expected.dtype.kind == "V" or expected.dtype == np.float16:
            rtol, atol = max(rtol, 1e-3), max(atol, 1e-5)
        np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol, atol)


def to_half(model: Any) -> Any:
    """Return the model with float16 for float32 wherever inputs, outputs and attributes say it.

    Raises:
        NotHalf: If that is no valid model.
    """
    model = onnx.ModelProto.FromString(model.SerializeToString())
    infos = [*model.graph.input, *model.graph.output]
    if not all(info.type.HasField("tensor_type") for info in infos):
        raise NotHalf
    changed = [info for info in infos if info.type.tensor_type.elem_type == TensorProto.FLOAT]
    wider = {TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
    if not {info.name for info in changed} & {info.name for info in model.graph.input}:
        raise NotHalf
    if any(info.type.tensor_type.elem_type in wider for info in infos):
        raise NotHalf
    for info in changed:
        info.type.tensor_type.elem_type = TensorProto.FLOAT16
    del model.graph.value_info[:]
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == TensorProto.FLOAT:
                half = numpy_helper.to_array(attribute.t).astype(np.float16)
                attribute.t.CopyFrom(numpy_helper.from_array(half, attribute.t.name))
            if attribute.name in ("to", "dtype") and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        onnx.checker.check_model(model)
    except Exception as error:
        raise NotHalf from error
    return model


def run_case(case: Any, half: bool) -> str:
    """Return why a case fails, "" if it does not.

    Raises:
        NotHalf: If there is no such case in float16.
    """
    model = case.model if case.model is not None else onnx.load(Path(case.model_dir) / "model.onnx")
    if half:
        model = to_half(model)
    try:
        prepared = prepare(model)
        for inputs, outputs in data_sets(case, model):
            rtol, atol = case.rtol, case.atol
            if half:
                floats = [x for x in outputs if isinstance(x, np.ndarray) and x.dtype == np.float32]
                most = max((float(np.abs(x[np.isfinite(x)]).max(initial=0)) for x in floats), default=0.0)
                if most > 6e4:
                    raise NotHalf
                inputs, outputs = (
                    [x.astype(np.float16) if isinstance(x, np.ndarray) and x.dtype == np.float32 else x for x in side]
                    for side in (inputs, outputs)
                )
                rtol, atol = 2e-2, 2e-2 * max(most, 1e-3)
            found = prepared.run(inputs)
            assert len(found) == len(outputs), f"{len(found)} outputs instead of {len(outputs)}"
            for one, other in zip(outputs, found, strict=True):
                check(one, other, rtol, atol)
    except NotHalf:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, the case fails
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def run_light(path: Path) -> str:
    """Return why a model of the folder ``light``, whose weights are made up, fails; "" if it does not."""
    model = onnx.load(path)
    weights = {item.name for item in model.graph.initializer}
    image = next(info for info in model.graph.input if info.name not in weights)
    shape = [dim.dim_value for dim in image.type.tensor_type.shape.dim]
    size = int(np.prod(shape))
    expected = read_value(path.with_name(f"{path.stem}_output_0.pb"), image.type)
    try:
        found = prepare(model).run([(np.arange(size).reshape(shape) / size).astype(np.float32)])
        check(expected, found[0], 1e-3, 1e-7)
    except Exception as error:  # noqa: BLE001  # whatever it is, the case fails
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--shard", default="0/1", help="which share of the cases, counted from 0")
    parser.add_argument("--only", default="", help="only cases whose name this regular expression finds")
    arguments = parser.parse_args()
    shard, count = map(int, arguments.shard.split("/"))
    warnings.simplefilter("ignore")  # the cases compute what they expect, with overflows
    results: dict[str, str] = {}
    light = [] if arguments.half else sorted((DATA / "light").glob("*.onnx"))
    for i, case in enumerate([*cases(KINDS[:1] if arguments.half else KINDS), *light]):
        name = case.stem if isinstance(case, Path) else case.name
        if i % count != shard or not re.search(arguments.only, name):
            continue
        if arguments.half and re.search(r"_expanded(_ver\d+)?$", name):
            continue
        with contextlib.suppress(NotHalf):
            results[name] = run_light(case) if isinstance(case, Path) else run_case(case, arguments.half)
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
