"""What op lists cannot see."""

import dataclasses
from typing import TYPE_CHECKING, Any

from ..lists import Color, OpLists
from .typegraph import TypeGraph

if TYPE_CHECKING:
    from .policy import Policy


@dataclasses.dataclass(frozen=True)
class Hazard:
    """Why a vertex stays float32."""

    code: str
    why: str
    color: Color | None = Color.DENY


def find_hazards(typegraph: TypeGraph, policy: "Policy", lists: OpLists) -> tuple[dict[int, Hazard], list[int]]:
    return {}, []
