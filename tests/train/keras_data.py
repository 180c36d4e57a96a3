"""What was recorded of Keras: tests/data/models."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

KERAS: dict[str, Any] = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "models" / "keras.json.gz").read_bytes())
)


def array(recorded: dict[str, Any]) -> Any:
    """Return a recorded array."""
    return np.array(recorded["data"], recorded["dtype"]).reshape(recorded["shape"])
