"""Train the examples in float32, float16 and bfloat16 with several seeds, and compare what they come to.

A seed stands for data, start values and the order of examples. Mixed precision is all right where the mean over its seeds lies
within what the seeds of float32 span, or on the better side of it. float16 without a loss scale is there for comparison.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.results import check_counts, console, machine, made_by, markdown_table, progress, table, write
from examples import char_transformer, digits_cnn, lstm, mlp
from examples.side_by_side import PRECISIONS, UNSCALED, Example, Outcome, train

EXAMPLES: dict[str, Example] = {module.EXAMPLE.name: module.EXAMPLE for module in (mlp, digits_cnn, lstm, char_transformer)}
COLUMNS = ("example", "number", "precision", "mean of seeds", "least", "most", "low forward", "low backward", "skipped", "")


class Row(NamedTuple):
    """One number of one example in one precision.

    Attributes:
        example, number, precision: Which.
        values: The number for each seed.
        forward, backward: Nodes in low precision.
        skipped: Dropped steps of all seeds.
        ok: Whether it is what float32 comes to; None where that is not asked.
    """

    example: str
    number: str
    precision: str
    values: list[float]
    forward: int
    backward: int
    skipped: int
    ok: bool | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--examples", nargs="+", choices=EXAMPLES, default=list(EXAMPLES), help="which ones [all]")
    parser.add_argument("--seeds", type=int, default=5, help="how many [5]")
    parser.add_argument("--epochs", type=int, help="how long, instead of the examples' own numbers")
    parser.add_argument("--json", metavar="OUT", help="also write everything measured to this file")
    parser.add_argument("--markdown", metavar="OUT", help="also write the table to this file")


def run(options: argparse.Namespace) -> None:
    """Train and print.

    Raises:
        ValueError: If an option makes no sense.
    """
    check_counts(options, "seeds")
    facts, rows = machine(), list[Row]()
    precisions = (*PRECISIONS, UNSCALED)
    with progress(len(options.examples) * len(precisions) * options.seeds) as move:
        for name in options.examples:
            found: dict[str, list[Outcome]] = {}
            for precision in precisions:
                for seed in range(options.seeds):
                    move(f"{name}, {precision}", 0)
                    found.setdefault(precision, []).append(train(EXAMPLES[name], precision, seed, options.epochs))
                    move(f"{name}, {precision}", 1)
            rows += compare(name, found)
    shown = [_cells(row) for row in rows]
    console().print(table("Parity", COLUMNS, shown))
    if options.json:
        write(options.json, "parity", facts, [], seeds=options.seeds, rows=[row._asdict() for row in rows])
    if options.markdown:
        lines = ["# Mixed precision against float32", "", made_by("parity", facts), "", *markdown_table("Parity", COLUMNS, shown)]
        Path(options.markdown).write_text("\n".join(lines), encoding="utf-8")


def compare(name: str, found: dict[str, list[Outcome]]) -> list[Row]:
    """Return a row for every number and precision of an example."""
    rows = []
    numbers = {precision: [_numbers(outcome) for outcome in outcomes] for precision, outcomes in found.items()}
    for number in numbers["float32"][0]:
        base = [each[number] for each in numbers["float32"]]
        for precision, outcomes in found.items():
            values = [each[number] for each in numbers[precision]]
            mean = float(np.mean(values))
            good = mean >= min(base) if "accuracy" in number else mean <= max(base)
            ok = None if precision in ("float32", UNSCALED) else bool(good and min(o.forward for o in outcomes) > 0)
            forward, backward = outcomes[0].forward, outcomes[0].backward
            rows.append(Row(name, number, precision, values, forward, backward, sum(o.skipped for o in outcomes), ok))
    return rows


def _numbers(outcome: Outcome) -> dict[str, float]:
    """Return what a training came to: its loss at the end, and what the test data say."""
    return {"train loss": outcome.train_loss, **{f"test {key}": value for key, value in outcome.test.items()}}


def _cells(row: Row) -> tuple[Any, ...]:
    verdict = "" if row.ok is None else "as float32" if row.ok else "WORSE"
    values = (f"{number:.4g}" for number in (float(np.mean(row.values)), min(row.values), max(row.values)))
    return (row.example, row.number, row.precision, *values, str(row.forward), str(row.backward), str(row.skipped), verdict)
