"""Kernels are found, and every op that ampgraph has the definition of has one, or a reason why not."""

import ast
import tomllib
from collections.abc import Sequence
from typing import Any

import onnx.defs

from ampgraph.graph.schemas import ampgraph
from ampgraph.graph.schemas.tf import op_types
from ampgraph.kernels import registry

from .modules import ROOT, modules

REVIEWED = tomllib.loads((ROOT / "tests/data/onnx/ops_without_kernel.toml").read_text(encoding="utf-8"))["reason"]


def registers(tree: ast.Module) -> bool:
    """Whether a module calls what registers kernels: ``kernel``, or ``special`` for functions of float64."""
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ("kernel", "special") for n in ast.walk(tree)
    )


def test_the_registry_lists_every_module_that_holds_kernels() -> None:
    holders = {module.path.stem for module in modules() if module.part == "kernels" and registers(module.tree)}
    assert sorted(registry._MODULES) == sorted(holders)


def names() -> set[str]:
    """Return the names of all ops: the standard's, of every version, and those of ONNX Runtime that have a definition here."""
    schemas: Sequence[Any] = onnx.defs.get_all_schemas_with_history()
    standard = {f"{schema.domain}:{schema.name}" if schema.domain else schema.name for schema in schemas}
    table = tomllib.loads((ROOT / "graph/schemas/microsoft.toml").read_text(encoding="utf-8"))
    return standard | {f"com.microsoft:{name}" for name in table}


def test_every_op_has_a_kernel_or_a_reason() -> None:
    listed = [op for row in REVIEWED for op in row["ops"]]
    assert len(listed) == len(set(listed))
    assert all(len(row["why"]) > 40 for row in REVIEWED)
    assert names() - registry.all_kernels().keys() == set(listed)


def test_every_kernel_computes_an_op_that_exists() -> None:
    known = names() | {f"tf:{name}" for name in op_types()} | {f"ampgraph:{name}" for name in ampgraph._SCHEMAS}
    assert registry.all_kernels().keys() - known == {"SimplifiedLayerNormalization"}  # ONNX Runtime's, in no domain
