"""The loop: order of examples, histories, callbacks, what is shown, and interrupts."""

import os
import re
import signal
import sys
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.train.callbacks import Callback, EarlyStopping, ModelCheckpoint
from ampgraph.train.interrupt import held_interrupts

from .small_models import X, Y, compiled, weights


class Spy(Callback):
    """Writes down what it is called with."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_train_begin(self) -> None:
        self.seen.append("begin")

    def on_epoch_begin(self, epoch: int) -> None:
        self.seen.append(("epoch", epoch))

    def on_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        self.seen.append((batch, sorted(logs)))

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        self.seen.append(("end", epoch, sorted(logs)))

    def on_train_end(self) -> None:
        self.seen.append("end")


def test_the_order_of_examples_follows_from_the_seed() -> None:
    def trained(**options: Any) -> Any:
        model = compiled()
        model.fit(X, Y, batch_size=3, epochs=2, verbose=0, **options)
        return weights(model)

    assert trained(seed=1) == trained(seed=1)
    assert trained(seed=1) != trained(seed=2)
    assert trained() == trained()  # the model's seed
    assert trained(shuffle=False) != trained()
    assert trained(shuffle=False, seed=1) == trained(shuffle=False, seed=2)


def test_every_example_counts_once_in_an_epoch() -> None:
    seen: list[Any] = []
    model = compiled()
    run_step = model.run_step

    def step(x: Any, y: Any) -> Any:
        seen.append((x, y))
        return run_step(x, y)

    model.run_step = step  # type: ignore[method-assign]
    model.fit(X, Y, batch_size=8, epochs=2, verbose=0)
    assert [len(x) for x, _ in seen] == [8, 8, 4] * 2
    for epoch in (seen[:3], seen[3:]):
        rows = {x.tobytes(): y.tolist() for xs, ys in epoch for x, y in zip(xs, ys, strict=True)}
        assert rows == {x.tobytes(): y.tolist() for x, y in zip(X.astype(np.float32), Y.astype(np.float32), strict=True)}
    assert (seen[0][0] != seen[3][0]).any()


def test_a_training_goes_on_as_if_it_had_not_ended() -> None:
    one, two = compiled(optimizer=ag.train.Adam()), compiled(optimizer=ag.train.Adam())
    one.fit(X, Y, epochs=3, batch_size=6, verbose=0)
    two.fit(X, Y, epochs=1, batch_size=6, verbose=0)
    history = two.fit(X, Y, epochs=3, initial_epoch=1, batch_size=6, verbose=0)
    assert weights(one) == weights(two)
    assert history.epoch == [1, 2]


def test_the_history_has_epochs_and_steps() -> None:
    opt = ag.enable_mixed_precision_graph_rewrite(ag.train.SGD(0.1), ag.DynamicLossScale(2.0**24), target="cpu")
    model = compiled(metrics=["mae"], optimizer=opt)
    history = model.fit(X, Y, batch_size=8, epochs=2, verbose=0, validation_split=0.2)
    assert model.history is history
    assert list(history.history) == ["loss", "mae", "loss_scale", "skipped", "val_loss", "val_mae"]
    assert [len(numbers) for numbers in history.history.values()] == [2] * 6
    assert [len(numbers) for numbers in history.steps.values()] == [4] * 3
    skipped = [not applied for applied in history.steps["applied"]]
    assert sum(skipped) == sum(history.history["skipped"]) > 0
    assert opt.global_step == 4 - sum(skipped)
    assert history.steps["loss_scale"] == [2.0 ** (24 - sum(skipped[: i + 1])) for i in range(4)]
    assert history.history["loss_scale"] == history.steps["loss_scale"][1::2]
    assert repr(history).startswith("<History of 2 epochs: loss=")
    np.testing.assert_allclose(history.history["loss"][0], np.mean(history.steps["loss"][:2]))


def test_accumulated_gradients_are_no_skipped_steps() -> None:
    opt = ag.LossScaleOptimizer(ag.train.SGD(0.1), accumulation_steps=3)
    model = compiled(optimizer=opt)
    history = model.fit(X, Y, batch_size=4, epochs=3, verbose=0)
    assert history.history["skipped"] == [0, 0, 0]
    assert opt.global_step == 5
    assert history.steps["applied"].count(True) == 5


def test_callbacks_are_called_in_order() -> None:
    spy = Spy()
    compiled().fit(X, Y, batch_size=10, epochs=1, verbose=0, callbacks=[spy], validation_data=(X, Y))
    assert spy.seen == [
        "begin",
        ("epoch", 0),
        (0, ["loss"]),
        (1, ["loss"]),
        ("end", 0, ["loss", "val_loss"]),
        "end",
    ]


class Script(Callback):
    """Puts numbers of its own into the logs, for callbacks behind it."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = numbers

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        logs["score"] = self.numbers[epoch]


@pytest.mark.parametrize(
    ("options", "numbers", "epochs", "best"),
    [
        ({}, (3, 2, 2, 1), 3, 2),
        ({"patience": 2}, (3, 2, 4, 1, 5, 5, 0), 6, 4),
        ({"mode": "max"}, (1, 2, 3, 2, 9), 4, 3),
        ({"min_delta": 0.5}, (3, 2.6, 1), 2, 1),
        ({}, (np.nan, 1, 1, 0), 1, None),
    ],
)
def test_early_stopping(options: Any, numbers: Any, epochs: int, best: int | None) -> None:
    model, states = compiled(), []
    stop = EarlyStopping("score", restore_best_weights=True, **options)

    class Keep(Callback):
        def on_epoch_begin(self, epoch: int) -> None:
            states.append(weights(self.model))

    history = model.fit(X, Y, epochs=len(numbers), verbose=0, callbacks=[Script(*numbers), stop, Keep()])
    assert len(history.epoch) == epochs
    assert stop.stopped_epoch == epochs - 1
    if best is not None:
        assert weights(model) == states[best]


def test_callbacks_say_what_they_miss(tmp_path: Any) -> None:
    with pytest.raises(
        ag.TrainingError, match=r"EarlyStopping watches 'val_loss', which this training does not have.* Received: loss"
    ):
        compiled().fit(X, Y, verbose=0, callbacks=[EarlyStopping()])
    with pytest.raises(ag.TrainingError, match=r"braces for epoch, loss only. Received: '.*\{val_loss\}.npz'"):
        compiled().fit(X, Y, verbose=0, callbacks=[ModelCheckpoint(tmp_path / "{val_loss}.npz")])
    with pytest.raises(ag.TrainingError, match=r"mode of EarlyStopping is 'auto', 'min' or 'max'. Received: 'least'"):
        EarlyStopping(mode="least")
    with pytest.raises(ag.TrainingError, match=r"a number of epochs, at least 0. Received: -1"):
        EarlyStopping(patience=-1)


def test_checkpoints_are_saved(tmp_path: Any) -> None:
    model = compiled()
    model.fit(X, Y, epochs=2, verbose=0, callbacks=[ModelCheckpoint(tmp_path / "{epoch:02d}.npz")])
    assert sorted(os.listdir(tmp_path)) == ["01.npz", "02.npz"]
    assert weights(ag.load_model(tmp_path / "02.npz")) == weights(model)
    best = ModelCheckpoint(tmp_path / "best{epoch}.npz", monitor="score", save_best_only=True)
    model.fit(X, Y, epochs=3, verbose=0, callbacks=[Script(2, 3, 1), best])
    assert sorted(os.listdir(tmp_path)) == ["01.npz", "02.npz", "best1.npz", "best3.npz"]


def test_a_line_for_each_epoch_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    opt = ag.enable_mixed_precision_graph_rewrite(ag.train.SGD(), target="cpu")
    model = compiled(optimizer=opt, metrics=["mae"])
    model.fit(X, Y, epochs=2, batch_size=10, validation_split=0.5)
    lines = capsys.readouterr().out.splitlines()
    number = r"\d[\d.e+-]*"
    for epoch, line in enumerate(lines, 1):
        numbers = rf"loss {number}, mae {number}, loss scale {number}, \d of 1 steps skipped, val_loss {number}, val_mae {number}"
        assert re.fullmatch(rf"epoch {epoch}/2: {numbers}, {number} s", line), line
    assert len(lines) == 2
    model.fit(X, Y, verbose=0)
    assert capsys.readouterr().out == ""
    model.evaluate(X, Y, verbose=1)
    assert re.fullmatch(rf"loss {number}, mae {number}\n", capsys.readouterr().out)


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    compiled().fit(X, Y, epochs=2, batch_size=5)
    printed = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", capsys.readouterr().out)
    assert re.search(r"epoch 1/2 ━+ 4/4 loss 0\.\d+ 0:00:0", printed)
    assert re.search(r"epoch 2/2 ━+ 4/4 loss 0\.\d+ 0:00:0", printed)
    compiled().fit(X, Y, verbose=2)
    assert "━" not in capsys.readouterr().out


def test_an_interrupt_leaves_whole_steps() -> None:
    class Interrupt(Callback):
        def on_batch_end(self, batch: int, logs: dict[str, float]) -> None:
            if batch == 1:
                os.kill(os.getpid(), signal.SIGINT)

    model, same = compiled(optimizer=ag.train.Adam()), compiled(optimizer=ag.train.Adam())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, batch_size=5, epochs=3, verbose=0, callbacks=[Interrupt()])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert model.history is not None
    assert len(model.history.steps["loss"]) == 2
    order = np.random.default_rng([0, 0]).permutation(20)
    for chosen in (order[:5], order[5:10]):
        same.build((None, 4))
        same.run_step(X[chosen].astype(np.float32), Y[chosen].astype(np.float32))
    assert weights(model) == weights(same)
    model.fit(X, Y, verbose=0)


def test_a_second_interrupt_comes_at_once() -> None:
    seen = []

    def interrupt_twice() -> None:
        with held_interrupts():
            for i in range(3):
                seen.append(i)
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interrupt_twice()
    assert seen == [0, 1]


def test_handlers_of_others_stay() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with held_interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGINT)
            interrupts.check()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]
