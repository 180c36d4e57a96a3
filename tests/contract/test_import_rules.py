"""Who may import whom, and what may be imported only at first use."""

import sys

import pytest

from .modules import Module, imports, modules

#: For each part of the package, the parts of ampgraph it may import.
MAY_IMPORT = {
    "graph": ("ampgraph.graph",),
    "kernels": ("ampgraph.kernels", "ampgraph.graph"),
    "lists": ("ampgraph.lists", "ampgraph.graph.errors"),
    "rewrite": ("ampgraph.rewrite", "ampgraph.lists", "ampgraph.graph"),
    "train": ("ampgraph.train", "ampgraph.rewrite", "ampgraph.kernels", "ampgraph.graph"),
    "": ("ampgraph",),
}

#: Third-party packages and the modules that may import them.
MAY_USE = {
    "click": ("ampgraph.cli",),
    "cupy": ("ampgraph.kernels.backend",),
    "google.protobuf": ("ampgraph.graph.formats",),
    "ml_dtypes": ("ampgraph.graph.dtypes",),
    "networkx": ("ampgraph.graph.graph",),
    "numpy": ("ampgraph",),
    "onnx": (
        "ampgraph.graph.formats.onnx",
        "ampgraph.graph.formats.onnx_save",
        "ampgraph.graph.formats.onnx_shapes",
        "ampgraph.graph.formats.onnx_write",
        "ampgraph.graph.schemas.onnx",
        "ampgraph.kernels.onnx_backend",
    ),
    "rich": ("ampgraph.cli", "ampgraph.train.progress", "ampgraph.train.summary"),
}
AT_FIRST_USE = {"cupy", "google.protobuf", "ml_dtypes", "networkx", "onnx"}


def _is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _all_modules() -> list[object]:
    return [pytest.param(module, id=module.name) for module in modules()]


def test_finds_the_modules() -> None:
    assert {"ampgraph", "ampgraph.__main__", "ampgraph.graph.graph", "ampgraph.lists.tables"} <= {m.name for m in modules()}


@pytest.mark.parametrize("module", _all_modules())
def test_imports_only_what_its_part_may(module: Module) -> None:
    for found in imports(module):
        if _is_in(found.target, "ampgraph"):
            assert any(_is_in(found.target, allowed) for allowed in MAY_IMPORT[module.part]), f"{found} in {module.path}"
        elif found.target.partition(".")[0] not in sys.stdlib_module_names:
            package = next((package for package in MAY_USE if _is_in(found.target, package)), None)
            assert package is not None, f"{found} in {module.path}: a third-party package that no rule names"
            assert any(_is_in(module.name, user) for user in MAY_USE[package]), f"{found} in {module.path}"
            # What a class derives from is needed at once; that module is only loaded by those who ask for it.
            at_once = module.name == "ampgraph.kernels.onnx_backend"
            assert found.lazy or at_once or package not in AT_FIRST_USE, f"{found} in {module.path}: only at first use"


def test_no_other_executor_computes_for_us() -> None:
    every = {found.target for module in modules() for found in imports(module)}
    assert any(_is_in(target, "onnx") for target in every)
    assert not [target for target in every if _is_in(target, "onnx.reference") or _is_in(target, "onnxruntime")]


@pytest.mark.parametrize("module", _all_modules())
def test_imports_relatively_inside_and_absolutely_from_the_facade(module: Module) -> None:
    """In a top folder an absolute import could load a second copy; from src/ a relative one leads to no file of another folder."""
    for found in imports(module):
        if module.part and _is_in(found.target, "ampgraph"):
            assert found.relative, f"{found} in {module.path}"
        elif found.relative:
            assert _is_in(module.name, "ampgraph.cli"), f"{found} in {module.path}"
            assert _is_in(found.target, "ampgraph.cli"), f"{found} in {module.path}"
