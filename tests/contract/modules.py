"""The modules of the checkout, as syntax trees: what the contract tests look at."""

import ast
import dataclasses
import functools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclasses.dataclass(frozen=True)
class Module:
    """One module: its dotted name, its file and its syntax tree."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @property
    def part(self) -> str:
        """The part of the house: ``"graph"``, ``"lists"``, …, or ``""`` for the facade and the command line."""
        return self.path.relative_to(ROOT).parts[0].replace("src", "")


@dataclasses.dataclass(frozen=True)
class Import:
    """One name imported by a module; ``lazy`` if that happens in a function or only for type checkers."""

    target: str
    line: int
    relative: bool
    lazy: bool


def setuptools_config() -> dict[str, Any]:
    """Return the table ``tool.setuptools`` of pyproject.toml."""
    config: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    return config


@functools.cache
def modules() -> tuple[Module, ...]:
    """Return every module of the package, found on disk."""
    found = []
    for package, folder in setuptools_config()["package-dir"].items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join((package, *parts)).removesuffix(".__init__")
            found.append(Module(name, path, ast.parse(path.read_text(encoding="utf-8"), str(path))))
    return tuple(found)


def imports(module: Module) -> Iterator[Import]:
    """Yield the imports of a module with relative ones made absolute."""
    stack: list[tuple[ast.AST, bool]] = [(module.tree, False)]
    while stack:
        node, lazy = stack.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, False, lazy)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.package.split(".")
                base = ".".join(package[: len(package) - node.level + 1] + ([base] if base else []))
            for alias in node.names:
                yield Import(f"{base}.{alias.name}", node.lineno, bool(node.level), lazy)
        else:
            lazy |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            body = node.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" else ()
            stack.extend((child, lazy or child in body) for child in ast.iter_child_nodes(node))
