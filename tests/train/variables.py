"""A variable for tests."""

from typing import Any

import numpy as np


class Box:
    """Holds an array and counts how often another was assigned."""

    def __init__(self, name: str, value: Any, dtype: Any = np.float32) -> None:
        self.name = name
        self.value: Any = np.asarray(value, dtype)
        self.assigned = 0

    def assign(self, value: Any) -> None:
        assert value.shape == self.value.shape
        assert value.dtype == self.value.dtype
        self.value = value
        self.assigned += 1
