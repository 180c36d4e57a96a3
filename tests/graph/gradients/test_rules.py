"""The gradient of every op agrees with differences, and so does the gradient of the gradient."""

import pytest

from tests.graph.gradients.cases import CASES
from tests.graph.gradients.check import Case, check


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_agrees_with_differences(case: Case) -> None:
    check(case, known=True)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if case.dynamic])
def test_agrees_where_no_shape_is_known(case: Case) -> None:
    check(case, known=False)
