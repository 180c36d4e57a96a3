"""Searching for the fewest nodes to keep float32, so that a rewritten graph's results meet a bound.

Nodes are called units here, and errors are numbers that are at most 1 where the bound is met, one for each output. Two things can
be asked: what the results are like with some units kept float32 (a trial), and what they are like where some units are the only
low ones. Errors of the latter kind are those that the units make, whatever the others do; rounding errors are independent, so
that squares of them add up. They say which units to try, a trial says whether that is right.

1. Units next to each other, in the order in which they run, are groups; light ones (elementwise, norms) and heavy ones (matrix
   products, convolutions) apart. What is light costs no FLOPs: if it is enough to keep all of it, nothing heavy is looked at.
2. Each group's own error is found. Groups are chosen by error removed for the price, until the rest is below the bound.
3. What was chosen is split in two and looked at again, until single units are left; then it is tried.
4. If the bound is missed, errors are taken to be larger than they look, and more is chosen. If it is met, units are given back,
   those with the least error first, in ever smaller parts.

All steps are bounded by numbers of trials, not by time, so that the same data gives the same result.
"""

import dataclasses
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

Errors = np.ndarray[Any, np.dtype[np.float64]]

#: Groups of each kind to begin with; how often single groups are looked at; trials of each kind.
_SEGMENTS = 8
_MOST_LOOKS = 96
_LOOKS_BETWEEN = 16
_MOST_CHOICES = 8
_MOST_RETURNS = 40
#: What is chosen should leave so much of the bound: errors are estimates.
_TARGET = 0.8
#: Where keeping all light units leaves so much of it at most, heavy ones are not looked at.
_ENOUGH = 0.6
#: Where the bound cannot be met: so much more than the least squared error, or of the least error, is as good.
_NEARLY = 1.15
SLACK = 1.05
#: A unit that has all the FLOPs that may be kept is as dear as so many light ones.
_PRICE = 200.0


@dataclasses.dataclass(frozen=True, slots=True)
class Unit:
    """What can be kept float32.

    Attributes:
        name: Its name.
        flops: FLOPs of its matrix products and convolutions.
    """

    name: str
    flops: int


@dataclasses.dataclass(eq=False)
class Group:
    """Units next to each other, of one kind.

    Attributes:
        units: The units.
        errors: The errors of the results where they are the only low ones.
        flops: FLOPs of all.
    """

    units: Sequence[Unit]
    errors: Errors

    def __post_init__(self) -> None:
        self.flops = sum(unit.flops for unit in self.units)

    @property
    def worst(self) -> float:
        """The largest error."""
        return float(self.errors.max(initial=0.0))


class Search:
    """One search; :meth:`run` returns nothing: whoever answers the questions remembers the best trial.

    Args:
        units: What can be kept, in the order in which it runs.
        most_flops: FLOPs of what may be kept.
        look: Returns the errors where only the units with these names are low.
        attempt: Returns the errors where the units with these names are kept.

    Attributes:
        groups: What was found so far.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        most_flops: float,
        look: Callable[[Collection[str]], Errors],
        attempt: Callable[[Collection[str]], Errors],
    ) -> None:
        self.light = [unit for unit in units if not unit.flops]
        self.heavy = [unit for unit in units if 0 < unit.flops <= most_flops]
        self.fixed = [unit for unit in units if unit.flops > most_flops]
        self.most_flops = most_flops
        self.groups: list[Group] = []
        self._look = look
        self._attempt = attempt
        self._looks = 0
        self._lowest = np.inf

    def run(self) -> None:
        """Search."""
        rest = self._try(_names(self.light)) if self.light else np.array([np.inf])
        if (rest <= _ENOUGH).all():
            self.groups = self._divide(self.light)
            floor = rest**2
        else:
            self.groups = self._divide(self.light) + self._divide(self.heavy)
            floor = self._of(self.fixed) ** 2 if self.fixed else np.zeros(1)
        scale, errors = np.ones(1), rest
        kept: list[Group] = []
        for _ in range(_MOST_CHOICES):
            before, kept = kept, self._refined(scale, floor)
            errors = self._try(_units(kept))
            if (errors <= 1).all() or kept == before:
                break
            left = [group.errors for group in self.groups if group not in kept]
            guess = scale * np.sum([item**2 for item in left], axis=0) + floor if left else floor
            wrong = np.clip(errors**2 / np.maximum(guess, 1e-12), 1.5, 16.0)
            scale = np.where(errors > 1, scale * wrong, scale)
        if (rest <= 1).all() and (errors > 1).any():  # none does harm alone
            kept = [group for group in self.groups if not group.flops]
        self._give_back(kept, max(1.0, SLACK * self._lowest))

    def _try(self, names: Collection[str]) -> Errors:
        errors = self._attempt(names)
        self._lowest = min(self._lowest, float(errors.max(initial=0.0)))
        return errors

    def _divide(self, units: Sequence[Unit]) -> list[Group]:
        """Return groups of about as many units each."""
        ends = [round(i * len(units) / _SEGMENTS) for i in range(_SEGMENTS + 1)]
        parts = [units[a:b] for a, b in itertools.pairwise(ends) if b > a]
        return [Group(part, self._of(part)) for part in parts]

    def _of(self, units: Sequence[Unit]) -> Errors:
        self._looks += 1
        return self._look(_names(units))

    def _refined(self, scale: Errors, floor: Errors) -> list[Group]:
        """Return the groups to keep, as small as looking at them again makes them."""
        while True:
            kept, is_enough = self._choose(scale, floor, _TARGET**2)
            coarse = [group for group in kept if len(group.units) > 1]
            if not is_enough:  # groups that are too heavy may have parts that are not
                coarse += [group for group in self.groups if len(group.units) > 1 and group.flops > self.most_flops]
            if not coarse or self._looks >= _MOST_LOOKS:
                return kept
            self._split(max(coarse, key=lambda group: len(group.units) * group.worst))
            if self._looks % _LOOKS_BETWEEN < 2:
                self._try(_units(kept))  # the time may run out

    def _split(self, group: Group) -> None:
        """Replace a group by its halves, whose errors are made to add up to its own."""
        middle = len(group.units) // 2
        parts = [Group(part, self._of(part)) for part in (group.units[:middle], group.units[middle:])]
        total = sum(part.errors**2 for part in parts)
        for part in parts:
            share = np.where(total > 0, part.errors**2 / np.where(total > 0, total, 1), 0.5)
            part.errors = np.sqrt(share) * np.minimum(group.errors, np.sqrt(total) + group.errors / 2)
        at = self.groups.index(group)
        self.groups[at : at + 1] = parts

    def _choose(self, scale: Errors, floor: Errors, target: Errors | float) -> tuple[list[Group], bool]:
        """Return the groups to keep by error removed for the price, and whether that is enough for the bound.

        Where it is not, groups that change little are not kept.

        Args:
            scale: By how much errors are larger than they look, squared.
            floor: Squared errors of what cannot be kept.
            target: Squared errors to reach.
        """
        rest = list(self.groups)
        kept: list[Group] = []
        room = self.most_flops
        while True:
            left = scale * np.sum([group.errors**2 for group in rest], axis=0) + floor if rest else floor
            excess = left - target
            over = excess > 0
            if not over.any():
                return kept, isinstance(target, float)
            best, value = None, 0.0
            for group in rest:
                if group.flops <= room:
                    gain = (np.minimum(scale * group.errors**2, excess) / np.where(over, excess, 1))[over].sum()
                    price = len(group.units) + (_PRICE * group.flops / self.most_flops if group.flops else 0)
                    if gain / price > value:
                        best, value = group, float(gain / price)
            if best is None:
                return self._choose(scale, floor, np.maximum(target, _NEARLY * left))[0], False
            rest.remove(best)
            kept.append(best)
            room -= best.flops

    def _give_back(self, kept: Sequence[Group], bound: float) -> None:
        """Try to do with fewer units; the errors are to stay within ``bound``."""
        names = [unit.name for group in sorted(kept, key=lambda group: group.worst) for unit in group.units]
        tries = 0
        size = len(names) // 2 or len(names)
        while size:
            start = 0
            while start < len(names) and tries < _MOST_RETURNS:
                fewer = names[:start] + names[start + size :]
                tries += 1
                if fewer and (self._try(fewer) <= bound).all():
                    names = fewer
                else:
                    start += size
            size //= 2


def _names(units: Sequence[Unit]) -> list[str]:
    return [unit.name for unit in units]


def _units(groups: Sequence[Group]) -> list[str]:
    return [unit.name for group in groups for unit in group.units]
