"""The options that say how to rewrite, shared by ``rewrite``, ``dump``, ``explain`` and ``lists``."""

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ampgraph.cli.output import note, progress
from ampgraph.cli.program import Failure

if TYPE_CHECKING:
    from ampgraph.graph import Graph
    from ampgraph.rewrite import Policy, RewriteResult

_OPTIONS = (
    click.option("--preset", metavar="NAME", help="safe (default), grappler (TensorFlow's decisions) or torch-autocast."),
    click.option("--dtype", metavar="NAME", help="float16 (default) or bfloat16."),
    click.option("--target", metavar="DEVICE", help="gpu:8.0,cuda=12.5,cudnn=9.3 (default), cpu …"),
    click.option("--keep-io/--no-keep-io", default=None, help="Whether outputs keep their dtypes. [keep]"),
    click.option("--preserve", multiple=True, metavar="NAME", help="A node that must not change; repeatable."),
    click.option("--allow-op", multiple=True, metavar="OP", help="Put an op on the AllowList; repeatable."),
    click.option("--deny-op", multiple=True, metavar="OP", help="Put an op on the DenyList; repeatable."),
    click.option(
        "--edit", multiple=True, metavar="EDIT", help="Change a list: gray:+Op, gray:-Op, Op=clear, Op=none; repeatable."
    ),
    click.option("--allow-node", multiple=True, metavar="REGEX", help="Nodes to compute in low precision; repeatable."),
    click.option(
        "--deny-node", multiple=True, metavar="REGEX", help="Nodes to keep in float32, and gray ones after them; repeatable."
    ),
    click.option(
        "--float-node", multiple=True, metavar="REGEX", help="Nodes to keep in float32; wins over the other two; repeatable."
    ),
    click.option("--level", metavar="LEVEL", help="Grappler's TREAT_INFER_AS_DENY, TENSOR_CORES_ONLY or UNSAFE_FORCE_ALL."),
    click.option("--ignore-performance", is_flag=True, default=None, help="Rewrite for GPUs without tensor cores too."),
    click.option("--policy", "policy_file", metavar="FILE", help="Read a policy from TOML; the other options win or add to it."),
    click.option(
        "--env", "from_env", is_flag=True, default=None, help="Follow TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_* variables."
    ),
)
_SETTINGS = (
    *("preset", "dtype", "target", "keep_io", "preserve", "allow_op", "deny_op", "edit", "allow_node", "deny_node"),
    *("float_node", "level", "ignore_performance", "policy_file", "from_env"),
)


@dataclasses.dataclass(frozen=True)
class Settings:
    """The options as given; :meth:`policy` makes a policy of them.

    Attributes:
        values: Option name -> value, without those left out.
    """

    values: dict[str, Any]

    def policy(self) -> "Policy":
        """Return the policy.

        Raises:
            PolicyError, OpListError: If an option makes no sense.
        """
        from ampgraph.rewrite.policy import Policy

        given = dict(self.values)
        fields: dict[str, Any] = {}
        file = given.pop("policy_file", None)
        if file is not None:
            policy = Policy.from_toml(_read(file))
            fields = {
                field.name: getattr(policy, field.name)
                for field in dataclasses.fields(policy)
                if getattr(policy, field.name) != getattr(Policy(), field.name)
            }
        from_env = given.pop("from_env", False)
        ops = (
            *(f"{op}=allow" for op in given.pop("allow_op", ())),
            *(f"{op}=deny" for op in given.pop("deny_op", ())),
            *given.pop("edit", ()),
        )
        nodes = (
            *(f"{pattern}=allow" for pattern in given.pop("allow_node", ())),
            *(f"{pattern}=deny" for pattern in given.pop("deny_node", ())),
            *(f"{pattern}=none" for pattern in given.pop("float_node", ())),
        )
        for name, added in (("ops", ops), ("nodes", nodes), ("preserve", given.pop("preserve", ()))):
            if added:
                fields[name] = (*fields.get(name, ()), *added)
        fields.update(given)
        return Policy.from_env(**fields) if from_env else Policy(**fields)

    def rewrite(self, graph: "Graph") -> "RewriteResult":
        """Rewrite a graph by these options; its shapes are inferred before, so that the report knows sizes."""
        from ampgraph.graph import AmpgraphError
        from ampgraph.graph.infer import infer
        from ampgraph.rewrite import auto_mixed_precision

        policy = self.policy()
        with progress("rewriting"):
            try:
                infer(graph)
            except AmpgraphError as error:
                note(f"shapes are not known, so bytes saved are not counted: {error}")
            return auto_mixed_precision(graph, policy)


def rewrite_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of rewriting; it receives them as ``settings``, a :class:`Settings`."""

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        values = {name: kwargs.pop(name) for name in _SETTINGS}
        settings = Settings({name: value for name, value in values.items() if value is not None and value != ()})
        return command(*args, settings=settings, **kwargs)

    for option in reversed(_OPTIONS):
        wrapper = option(wrapper)
    return wrapper


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
