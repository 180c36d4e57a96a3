"""The examples run, and show what they are there to show."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from bench.parity import EXAMPLES
from examples import mlp
from examples.side_by_side import PRECISIONS, UNSCALED, main, train


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_trains_in_every_precision(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = EXAMPLES[name]
    (x, y), test = example.data(3)
    short = example._replace(data=lambda seed: ((x[:128], y[:128]), (test[0][:64], test[1][:64])))
    outcomes = main(short, ["--epochs", "2"])
    assert tuple(o.precision for o in outcomes) == PRECISIONS
    single, *mixed = outcomes
    assert (single.forward, single.backward) == (0, 0)
    for o in mixed:
        assert min(o.forward, o.backward) > 0
        assert o.skipped == 0
        np.testing.assert_allclose(o.losses, single.losses, rtol=0.05)
        assert o.test.keys() == {"loss", *example.metrics}
    printed = capsys.readouterr().out
    assert all(precision in printed for precision in PRECISIONS)


def test_curves_are_drawn(tmp_path: Path) -> None:
    short = mlp.EXAMPLE._replace(batch_size=1024)
    main(short, ["--epochs", "2", "--unscaled", "--plot", str(tmp_path / "mlp.png")])
    assert (tmp_path / "mlp.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "0"], "argument --epochs: at least 1, not 0"),
        (["--epochs", "many"], "argument --epochs: invalid count value: 'many'"),
        (["--seed", "-1"], "argument --seed: not negative, as -1 is"),
        (["--plot", "missing/a.png"], "argument --plot: there is no folder for 'missing/a.png'"),
        (["--plot", "a.txt"], "argument --plot: a picture is a .png, .svg or .pdf file, not 'a.txt'"),
    ],
)
def test_odd_options_are_refused_before_training(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(mlp.EXAMPLE, arguments)
    assert message in capsys.readouterr().err


def test_what_draws_curves_is_looked_for_before_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("examples.side_by_side.find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        main(mlp.EXAMPLE, ["--plot", "a.png"])
    assert "pip install 'ampgraph[plot]'" in capsys.readouterr().err


def first_gradients(scale: Any) -> list[Any]:
    """Return the gradients of the first step of the two dense layers, no longer scaled."""
    (x, y), _ = mlp.EXAMPLE.data(0)
    model = mlp.EXAMPLE.model(0)
    model.build((None, 64))
    optimizer = mlp.EXAMPLE.optimizer()
    wrapped = ag.enable_mixed_precision_graph_rewrite(optimizer, scale or 1, target="cpu")
    used: Any = wrapped if scale is not None else optimizer

    @ag.function
    def gradients(x: Any, y: Any) -> Any:
        loss = np.mean(np.square(model(x) - y))
        return [gradient for gradient, _ in used.compute_gradients(loss, model.variables)]

    return gradients(x[:512], y[:512])  # type: ignore[no-any-return]


def test_small_gradients_vanish_without_a_loss_scale() -> None:
    def zeros(gradients: list[Any]) -> int:
        return sum(int(np.count_nonzero(gradient == 0)) for gradient in gradients)

    def error(gradients: list[Any]) -> float:
        """Return the least error of a matrix of weights, as part of its norm."""
        pairs = [(wide, low) for wide, low in zip(exact, gradients, strict=True) if wide.ndim == 2]
        return min(float(np.linalg.norm(wide - low) / np.linalg.norm(wide)) for wide, low in pairs)

    exact, unscaled, scaled = (first_gradients(scale) for scale in (None, 1, 2.0**15))
    assert zeros(scaled) == zeros(exact)
    assert zeros(unscaled) > zeros(exact) + 500
    assert error(scaled) < 0.005
    assert error(unscaled) > 0.3


def test_training_fails_without_a_loss_scale_and_not_with_it() -> None:
    single, scaled, unscaled = (train(mlp.EXAMPLE, precision, 0) for precision in ("float32", "float16", UNSCALED))
    aim = np.mean(single.losses[-15:]) * 2

    def steps_to(losses: list[float]) -> int:
        return next((i for i in range(15, len(losses)) if np.mean(losses[i - 15 : i]) < aim), len(losses))

    assert steps_to(single.losses) < len(single.losses) * 0.8
    assert abs(steps_to(scaled.losses) - steps_to(single.losses)) < 10
    assert steps_to(unscaled.losses) == len(unscaled.losses)
