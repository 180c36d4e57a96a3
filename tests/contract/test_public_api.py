"""What users may rely on: names of the facade, the error tree, a docstring for everything public."""

import ast
import inspect
import re
import types
from collections.abc import Iterator

import pytest

import ampgraph
from ampgraph.graph import errors

from .modules import Module, imports, modules


@pytest.mark.parametrize("name", ampgraph.__all__)
def test_every_public_name_resolves(name: str) -> None:
    value = getattr(ampgraph, name)
    assert getattr(value, "__name__", name).rpartition(".")[2] == name
    assert name in dir(ampgraph)


def test_type_checkers_see_the_same_names() -> None:
    facade = next(module for module in modules() if module.name == "ampgraph")
    seen = {found.target.rpartition(".")[::2] for found in imports(facade) if found.lazy}
    assert seen == {(module, name) for name, module in ampgraph._NAMES.items()}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'ampgraph' has no attribute 'nothing'"):
        ampgraph.nothing  # type: ignore[attr-defined] # noqa: B018


def test_subpackages_stay_modules() -> None:
    """No function of the facade has the name of a subpackage, which would hide it."""
    from ampgraph import graph, kernels, lists, rewrite, train

    for name in ampgraph.__all__:
        getattr(ampgraph, name)
    assert all(isinstance(module, types.ModuleType) for module in (graph, kernels, lists, rewrite, train))
    assert isinstance(ampgraph.rewrite, types.ModuleType)


def test_the_errors_are_as_drawn() -> None:
    drawn: dict[str, tuple[str, ...]] = {"AmpgraphError": ("Exception",)}
    path = ["AmpgraphError"]
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"\s*((?:│   )*)[├└]── (\w+)(?:\((\w+)\))?", line):
            depth = len(found[1]) // 4 + 1
            path[depth:] = [found[2]]
            drawn[found[2]] = (path[depth - 1], *([found[3]] if found[3] else []))
    defined = {
        name: tuple(base.__name__ for base in value.__bases__)
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert drawn == defined
    assert set(drawn) <= set(ampgraph.__all__)


def _public(module: Module) -> Iterator[tuple[str, ast.AST]]:
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    setter = isinstance(inner, ast.FunctionDef) and any(
                        isinstance(decorator, ast.Attribute) for decorator in inner.decorator_list
                    )
                    if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_") and not setter:
                        yield f"{node.name}.{inner.name}", inner


@pytest.mark.parametrize("module", [pytest.param(module, id=module.name) for module in modules()])
def test_everything_public_has_a_docstring(module: Module) -> None:
    assert ast.get_docstring(module.tree) or module.path.stat().st_size == 0, f"{module.path} does not say what it is"
    without = [name for name, node in _public(module) if not ast.get_docstring(node)]  # type: ignore[arg-type]
    assert not without
