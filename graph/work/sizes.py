"""Sizes of matrix products: named ones, that an accelerator may want to be multiples of something, and how often they are computed."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from ..types import Dim

if TYPE_CHECKING:
    from ..graph import Node, Value

Dims = Sequence[Dim] | None
ShapeOf = Callable[["Value | None"], Dims]
Rule = Callable[["Node", ShapeOf], "Work | None"]


@dataclasses.dataclass(frozen=True)
class Work:
    """The matrix products of one node: ``repeats`` times the sum of all ``terms``, each a factor times the sizes that it names.

    Attributes:
        sizes: Sizes by name (``"M"``, ``"input channels"``), unknown ones as in a shape; none where the products are of scalars, as
            in a depthwise convolution.
        repeats: What every term is multiplied by: matrices in a batch, pixels, steps of a sequence; None where it is not known.
        terms: A factor, and names of sizes.
    """

    sizes: Mapping[str, Dim]
    repeats: int | None
    terms: tuple[tuple[int, tuple[str, ...]], ...]

    @staticmethod
    def product(sizes: Mapping[str, Dim], *repeats: Dim) -> "Work":
        """Return the work of which all sizes are factors, as often as the product of ``repeats``."""
        return Work(sizes, known_product(repeats), ((1, tuple(sizes)),))

    @property
    def products(self) -> int | None:
        """How many numbers are multiplied by each other; None where a size is not known."""
        if self.repeats is None:
            return None
        total = self._sum(self.sizes)
        return None if total is None else self.repeats * total

    def growth(self, sizes: Mapping[str, int]) -> float | None:
        """Return by which factor the products become more with other sizes; None where that depends on a size that is not known.

        Args:
            sizes: Those of the sizes that change.
        """
        shared = set.intersection(*(set(names) for _, names in self.terms))
        unknown = {name: 1 for name in shared if not isinstance(self.sizes[name], int)}  # what all terms share cancels
        before, after = self._sum({**self.sizes, **unknown}), self._sum({**self.sizes, **unknown, **sizes})
        return after / before if before and after else None

    def _sum(self, sizes: Mapping[str, Dim]) -> int | None:
        numbers = [known_product((factor, *(sizes[name] for name in names))) for factor, names in self.terms]
        return None if None in numbers else sum(number for number in numbers if number is not None)


def known_product(sizes: Sequence[Dim]) -> int | None:
    """Return the product, or None where a size is not known."""
    numbers = [size for size in sizes if isinstance(size, int)]
    return prod(numbers) if len(numbers) == len(sizes) else None


def dims_of(shape: Dims, rank: int) -> Sequence[Dim]:
    """Return the dimensions of a value that should have some rank, unknown ones where it has another or is not known."""
    return shape if shape is not None and len(shape) == rank else (None,) * rank


def operand(node: "Node", shape_of: ShapeOf, slot: int) -> Dims:
    """Return the dimensions of an operand; None where they are not known or it is left out."""
    return shape_of(node.inputs[slot]) if slot < len(node.inputs) else None
