"""Programs of these tests mostly run once: they are made as fast at once as others are after some runs."""

from collections.abc import Iterator

import pytest

from ampgraph.kernels import run


@pytest.fixture(scope="session", autouse=True)
def _hot() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "HOT", 0)
        yield
