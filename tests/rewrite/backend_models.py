"""The models of the standard's backend suite, which come with the onnx package: some as files, others (from 1.19 on) made by code."""

import functools
import importlib
import importlib.util
import pkgutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

_CASES = "onnx.backend.test.case"


def _no_pool(padded: Any, x_shape: Any, kernel: Any, strides: Any, out_shape: Any, *_: Any, **__: Any) -> Any:
    """Stand in for the pooling of the suite, which takes half a minute for expected results that nobody looks at here."""
    return np.zeros([*x_shape[:2], *out_shape], padded.dtype)


def _made_by_code() -> dict[str, ModelProto]:
    pooling = importlib.import_module("onnx.reference.ops.op_pool_common")
    pool = pooling.pool
    pooling.pool = _no_pool  # type: ignore[attr-defined]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            cases = []
            for kind in ("node", "model"):
                package = importlib.import_module(f"{_CASES}.{kind}")
                for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                    importlib.import_module(module.name)
                cases += package.collect_testcases(None) if kind == "node" else package.collect_testcases()
    finally:
        pooling.pool = pool  # type: ignore[attr-defined]
    return {case.name: case.model for case in cases if case.model is not None}


@functools.cache
def backend_models() -> dict[str, ModelProto]:
    """Return all models of the suite by name, in the order of their names."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    found = {"/".join(path.relative_to(folder).parts[:-1]) + f"/{path.stem}": onnx.load(path) for path in folder.rglob("*.onnx")}
    if not any(name.startswith("node/") for name in found):
        found.update({f"node/{name}": model for name, model in _made_by_code().items()})
    return dict(sorted(found.items()))
