"""The op lists: data first (``*.toml``), and the class that loads and edits them."""

from .environment import Environment, read_environment
from .tables import LEVELS, MODES, Color, Edit, OpLists

__all__ = ["LEVELS", "MODES", "Color", "Edit", "Environment", "OpLists", "read_environment"]
