"""The search, on made-up errors that are known exactly."""

from collections.abc import Collection, Mapping

import numpy as np
import pytest

from ampgraph.calibration.search import Errors, Search, Unit


class Made:
    """Units whose squared errors add up, for one or more outputs.

    Args:
        squares: Squared errors of the units that have some, by name.
        units: All units.
        most_flops: FLOPs of what may be kept.
    """

    def __init__(self, squares: Mapping[str, tuple[float, ...]], units: Collection[Unit], most_flops: float = 0) -> None:
        self.squares = squares
        self.units = list(units)
        self.most_flops = most_flops
        self.kept: list[set[str]] = []
        self.looks = 0
        self.zero = np.zeros(len(next(iter(squares.values()))))

    def error(self, low: Collection[str]) -> Errors:
        return np.sqrt(sum((np.array(self.squares[name]) for name in low if name in self.squares), self.zero))

    def look(self, names: Collection[str]) -> Errors:
        self.looks += 1
        return self.error(names)

    def attempt(self, names: Collection[str]) -> Errors:
        kept = set(names)
        assert len(kept) == len(names)
        assert sum(unit.flops for unit in self.units if unit.name in kept) <= self.most_flops
        self.kept.append(kept)
        return self.error([unit.name for unit in self.units if unit.name not in kept])

    def search(self) -> list[set[str]]:
        """Search, and return what was kept in trials that meet the bound, fewest first."""
        Search(self.units, self.most_flops, self.look, self.attempt).run()
        good = [kept for kept in self.kept if (self.error([u.name for u in self.units if u.name not in kept]) <= 1).all()]
        return sorted(good, key=len)


def light(count: int) -> list[Unit]:
    return [Unit(f"n{i}", 0) for i in range(count)]


@pytest.mark.parametrize("where", [0, 77, 499])
def test_one_culprit_among_many_is_found(where: int) -> None:
    made = Made({f"n{where}": (400.0,)}, light(500))
    assert made.search()[0] == {f"n{where}"}
    assert made.looks < 40


def test_culprits_of_several_outputs_are_found() -> None:
    made = Made({"n3": (9.0, 0.0), "n150": (0.0, 1e6), "n151": (2.0, 2.0)}, light(300))
    assert made.search()[0] == {"n3", "n150", "n151"}


def test_as_few_as_possible_of_many_small_errors() -> None:
    squares = {f"n{i}": (0.05 if i % 10 else 0.5,) for i in range(60)}  # 5.7 in all; the six largest and a few more have to go
    best = made_best = Made(squares, light(60)).search()[0]
    assert {f"n{i}" for i in range(0, 60, 10)} <= made_best
    assert len(best) <= 6 + 36


def test_light_units_are_preferred_and_heavy_ones_kept_within_what_may_be() -> None:
    units = [*light(40), *(Unit(f"m{i}", 10) for i in range(20))]
    made = Made({"n7": (2.0,), "m3": (3.0,), "m4": (0.01,)}, units, most_flops=20)
    assert made.search()[0] == {"n7", "m3"}
    assert Made({"n7": (2.0,), "m3": (0.3,)}, units, most_flops=20).search()[0] == {"n7"}


def test_where_the_bound_cannot_be_met_what_helps_most_is_tried() -> None:
    units = [*light(40), *(Unit(f"m{i}", 100) for i in range(5))]
    made = Made({"n7": (2.0,), "n8": (1e-4,), "m3": (3.0,)}, units, most_flops=50)
    assert made.search() == []
    assert {"n7"} in made.kept


def test_errors_that_only_show_together() -> None:
    class Together(Made):
        def error(self, low: Collection[str]) -> Errors:
            return np.array([2.0 if {"n3", "n90"} <= set(low) else 0.0])

    best = Together({"n3": (0.0,)}, light(100)).search()[0]
    assert best in ({"n3"}, {"n90"})


def test_the_same_questions_are_asked_every_time() -> None:
    squares = {f"n{i}": (float(i % 7),) for i in range(0, 100, 3)}
    one, other = Made(squares, light(100)), Made(squares, light(100))
    assert one.search() == other.search()
    assert one.kept == other.kept


def test_trials_are_bounded() -> None:
    rng = np.random.default_rng(0)
    squares = {f"n{i}": (float(rng.random()),) for i in range(2000)}
    made = Made(squares, light(2000))
    assert made.search()
    assert made.looks + len(made.kept) < 200
