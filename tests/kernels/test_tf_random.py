"""TensorFlow's random numbers are the ones that TensorFlow 2.21.0 draws."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError

from .tf_node import run_tf, tf_program

# They make arrays of lists, too.
I32: Any = np.int32
F32: Any = np.float32
U64: Any = np.uint64

#: For the seed [1, 2].
DRAWN = {
    ("StatelessRandomUniform", "float32"): [0.8440604209899902, 0.19204533100128174, 0.9962232112884521, 0.16038739681243896],
    ("StatelessRandomUniform", "bfloat16"): [0.34375, 0.8828125, 0.484375, 0.1484375, 0.1484375, 0.5390625, 0.7109375],
    ("StatelessRandomUniform", "float64"): [0.7524837538451801, 0.9697857725627486, 0.17592233912897481],
    ("StatelessRandomNormal", "float32"): [
        0.544110119342804,
        0.20738030970096588,
        0.0735643208026886,
        0.04643455147743225,
        -1.301589846611023,
    ],
    ("StatelessTruncatedNormal", "float32"): [
        0.544110119342804,
        0.20738030970096588,
        0.0735643208026886,
        0.04643455147743225,
        0.16820591688156128,
    ],
    ("StatelessTruncatedNormal", "float64"): [-0.1423118100189212, 0.7406072461585091, -0.552387756244845, -0.734450092480207],
    ("StatelessRandomUniformFullInt", "int32"): [1105988140, 1738052849, -335576002, 370444179, 10670227],
    ("StatelessRandomUniformFullInt", "uint64"): [7464880146280614444, 1591045637757961278, 17389275318164050067],
}


@pytest.mark.parametrize(("op", "dtype"), DRAWN)
def test_draws_what_tensorflow_draws(op: str, dtype: str) -> None:
    wanted = np.array(DRAWN[op, dtype])
    found = run_tf(op, I32(wanted.shape), I32([1, 2]), types={"dtype": dtype})
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=2e-6 if dtype == "float32" else 1e-12)
    else:
        np.testing.assert_array_equal(found, wanted)


def test_a_seeded_op_goes_on_and_an_unseeded_one_starts_anywhere() -> None:
    shape = I32([9])
    program = tf_program("RandomUniform", shape, types={"dtype": "float32"}, seed=3, seed2=5)
    first, second = (program({"x0": shape})["y0"] for _ in range(2))
    np.testing.assert_allclose(first[:3], [0.3976691961288452, 0.8425681591033936, 0.004518985748291016], rtol=1e-6)
    assert (first != second).all()
    assert (
        run_tf("RandomUniform", shape, types={"dtype": "float32"}) != run_tf("RandomUniform", shape, types={"dtype": "float32"})
    ).any()


def test_truncated_numbers_have_the_right_spread() -> None:
    x = run_tf("StatelessTruncatedNormal", I32([40000]), I32([7, 7]), types={"dtype": "float32"})
    assert np.abs(x).max() < 2
    assert x.std() == pytest.approx(0.8796, abs=0.01)  # of a normal distribution cut off at 2
    assert x.mean() == pytest.approx(0, abs=0.015)


def test_shuffles_and_classes() -> None:
    rows = np.arange(50)
    shuffled = run_tf("RandomShuffle", rows, seed=1)
    assert sorted(shuffled) == rows.tolist() != shuffled.tolist()
    logits = np.log(np.array([[0.25, 0.75, 1e-30]]))
    found = run_tf("StatelessMultinomial", logits, I32(8000), I32([3, 4]))
    assert np.bincount(found[0], minlength=3) / 8000 == pytest.approx([0.25, 0.75, 0], abs=0.02)


@pytest.mark.parametrize(
    ("op", "operands", "given", "wanted"),
    [
        ("StatelessRandomUniformInt", [I32([3]), I32([1, 2]), I32(0), I32(10)], {}, [0, 9, 4]),
        ("StatelessRandomUniformIntV2", [I32([3]), U64([5]), U64([1, 2]), I32(1), I32(-3), I32(9)], {}, [4, 0, 1]),
        (
            "StatelessRandomUniformFullIntV2",
            [I32([3]), U64([5]), U64([1, 2]), I32(1)],
            {"types": {"dtype": "int32"}},
            [1210179031, 1328262807, -684887652],
        ),
        ("RandomUniformInt", [I32([4]), I32(0), I32(100)], {"seed": 3, "seed2": 5}, [51, 98, 96, 77]),
        ("StatelessMultinomial", [F32([[0, 1, 2], [3, 0, -1]]), I32(4), I32([1, 2])], {}, [[2, 2, 1, 2], [0, 0, 0, 0]]),
        ("Multinomial", [F32([[0, 1, 2], [3, 0, -1]]), I32(4)], {"seed": 3, "seed2": 5}, [[1, 0, 2, 2], [0, 0, 0, 0]]),
    ],
)
def test_draws_the_integers_that_tensorflow_draws(op: str, operands: list[Any], given: dict[str, Any], wanted: Any) -> None:
    assert run_tf(op, *operands, **given).tolist() == wanted


def test_keys_and_counters() -> None:
    key, counter = run_tf("StatelessRandomGetKeyCounter", I32([1, 2]), results=2)
    assert (key.tolist(), counter.tolist()) == ([10413732777507651514], [0, 17830669156045600267])
    assert run_tf("StatelessRandomGetAlg") == 1
    shape, types = I32([3]), {"dtype": "float32"}
    found = run_tf("StatelessRandomUniformV2", shape, U64([5]), U64([1, 2]), I32(1), types=types)
    np.testing.assert_allclose(found, [0.26458251, 0.34126556, 0.35502958], rtol=1e-6)
    again = run_tf("StatelessRandomUniformV2", shape, key, counter, I32(3), types=types)
    np.testing.assert_array_equal(again, run_tf("StatelessRandomUniform", shape, I32([1, 2]), types=types))
    with pytest.raises(KernelError, match=r"from the Philox algorithm only, number 1 or 3\. Received: 2"):
        run_tf("StatelessRandomUniformV2", shape, key, counter, I32(2), types=types)


def test_what_nothing_can_be_drawn_from() -> None:
    with pytest.raises(KernelError, match=r"minval is less than maxval\. Received: 3 and 3"):
        run_tf("RandomUniformInt", I32([4]), I32(3), I32(3))
    with pytest.raises(KernelError, match=r"at least one class\. Received: \[2, 0\]"):
        run_tf("Multinomial", np.zeros((2, 0), F32), I32(4))
