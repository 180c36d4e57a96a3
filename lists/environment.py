"""The environment variables of Grappler's auto_mixed_precision, read only when asked to.

All start with ``TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_``. An environment is any mapping of strings, so tests and
callers can pass their own.
"""

import dataclasses
from collections.abc import Mapping

from ..graph.errors import OpListError
from .tables import LEVELS, Color, Edit

PREFIX = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"

# The spellings of each list: the current one first, then the one of TensorFlow before 2.4.
_SPELLINGS = {
    Color.ALLOW: ("ALLOWLIST", "WHITELIST"),
    Color.DENY: ("DENYLIST", "BLACKLIST"),
    Color.GRAY: ("INFERLIST", "GRAYLIST"),
    Color.CLEAR: ("CLEARLIST",),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Environment:
    """What the environment variables ask for.

    Attributes:
        level: One of :data:`~ampgraph.lists.LEVELS`, or ``""``.
        edits: Changes of the lists, in the order in which Grappler applies them.
        ignore_performance: Skip the test for tensor cores.
        simulate_gpu: Suppose a GPU where there is none.
        emulate_fp16: In mode ``cpu_fp16``, keep float32 kernels and round by casts.
    """

    level: str = ""
    edits: tuple[Edit, ...] = ()
    ignore_performance: bool = False
    simulate_gpu: bool = False
    emulate_fp16: bool = True


def read_environment(environ: Mapping[str, str]) -> Environment:
    """Read the variables from an environment.

    For each list and each of its spellings, ``…_ADD`` comes before ``…_REMOVE``. Names are separated by commas and taken
    as they stand, spaces included; empty names are passed over. An unknown level is no level.

    Raises:
        OpListError: If a boolean variable is neither 0, 1, true nor false.
    """
    edits = []
    for color, spellings in _SPELLINGS.items():
        for spelling in spellings:
            for suffix, sign in (("ADD", "+"), ("REMOVE", "-")):
                names = environ.get(f"{PREFIX}{spelling}_{suffix}", "").split(",")
                edits += [Edit(name, color, sign) for name in names if name]
    level = environ.get(f"{PREFIX}LEVEL", "").upper()
    return Environment(
        level if level in LEVELS else "",
        tuple(edits),
        _boolean(environ, "IGNORE_PERFORMANCE", False),
        _boolean(environ, "SIMULATE_GPU", False),
        _boolean(environ, "EMULATE_FP16", True),
    )


def _boolean(environ: Mapping[str, str], name: str, default: bool) -> bool:
    text = environ.get(PREFIX + name)
    if text is None:
        return default
    if text.lower() not in ("0", "1", "false", "true"):
        raise OpListError(f"Environment variable {PREFIX}{name} must be 0, 1, false or true. Received: {text!r}")
    return text.lower() in ("1", "true")
