"""Incomplete gamma and beta functions, zeta, polygamma and Bessel functions: values known in closed form."""

import math

import numpy as np

from .tf_node import run_tf

X = np.array([1e-3, 0.3, 1.0, 2.5, 7.0, 30.0, 400.0])


def test_incomplete_gamma_of_whole_and_half_orders() -> None:
    for a in (1, 2, 5, 20):
        rest = [math.fsum(math.exp(k * math.log(x) - x - math.lgamma(k + 1)) for k in range(a)) for x in X]
        np.testing.assert_allclose(run_tf("Igammac", np.full_like(X, a), X), rest, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(run_tf("Igamma", np.full_like(X, 0.5), X), [math.erf(math.sqrt(x)) for x in X], rtol=1e-12)
    ends = run_tf("Igamma", np.array([1.0, 1.0, -1.0, 1.0, np.nan]), np.array([0.0, np.inf, 1.0, -1.0, 1.0]))
    np.testing.assert_array_equal(ends, [0, 1, np.nan, np.nan, np.nan])


def test_incomplete_beta() -> None:
    x = np.array([0.0, 1e-6, 0.2, 0.5, 0.9, 1.0])
    one = np.ones_like(x)
    np.testing.assert_allclose(run_tf("Betainc", one, 3.5 * one, x), 1 - (1 - x) ** 3.5, rtol=1e-9)
    np.testing.assert_allclose(run_tf("Betainc", 40 * one, one, x), x**40, rtol=1e-9)
    np.testing.assert_allclose(run_tf("Betainc", 0.5 * one, 0.5 * one, x), 2 / np.pi * np.arcsin(np.sqrt(x)), rtol=1e-12)
    assert np.isnan(run_tf("Betainc", np.array([0.0, 1.0]), np.array([1.0, 1.0]), np.array([0.5, 1.5]))).all()


def test_zeta_and_polygamma() -> None:
    found = run_tf("Zeta", np.array([2.0, 4.0, 2.0, 1.0, 0.5, 2.0]), np.array([1.0, 1.0, 0.5, 3.0, 3.0, -1.0]))
    np.testing.assert_allclose(found[:3], [math.pi**2 / 6, math.pi**4 / 90, math.pi**2 / 2], rtol=1e-13)
    np.testing.assert_array_equal(found[3:], [np.inf, np.nan, np.inf])
    found = run_tf("Polygamma", np.array([0.0, 1.0, 3.0, 0.5]), np.array([1.0, 1.0, 1.0, 1.0]))
    np.testing.assert_allclose(found[:3], [-0.5772156649015329, math.pi**2 / 6, math.pi**4 / 15], rtol=1e-12)
    assert np.isnan(found[3])


def test_bessel_functions() -> None:
    x = np.array([-3.0, 0.0, 0.1, 20.0, 49.9, 50.1, 300.0])
    np.testing.assert_allclose(run_tf("BesselI0", x), np.i0(x), rtol=1e-12)
    step = 1e-5  # the function of order 1 is the slope of that of order 0
    slope = (np.i0(x + step) - np.i0(x - step)) / (2 * step)
    np.testing.assert_allclose(run_tf("BesselI1", x), slope, rtol=1e-7)
    np.testing.assert_allclose(run_tf("BesselI1e", x), slope * np.exp(-np.abs(x)), rtol=1e-7)


def test_what_is_small_keeps_its_digits() -> None:
    x = np.array([0.2, 3.0, 8.0, 9.0], np.float32)
    np.testing.assert_allclose(run_tf("Erfc", x), [math.erfc(v) for v in x.tolist()], rtol=2e-6)
    x64 = np.array([-30.0, 3.0, 6.2, 6.3, 26.0])
    np.testing.assert_allclose(run_tf("Erfc", x64), [math.erfc(v) for v in x64], rtol=1e-14)
