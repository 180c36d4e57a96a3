"""The options that say how to rewrite, shared by ``rewrite``, ``dump``, ``explain``, ``lists`` and ``policy``."""

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

_LIST_OPTIONS = (
    click.option(
        "--preset",
        metavar="NAME",
        help="safe (default), tensorrt, onnxruntime, grappler (TensorFlow's decisions) or torch-autocast.",
    ),
    click.option("--dtype", metavar="NAME", help="float16 (default) or bfloat16; also f16, bf16."),
    click.option("--target", metavar="DEVICE", help="gpu:8.0,cuda=12.5,cudnn=9.3 (default), cpu …"),
    click.option("--allow-op", multiple=True, metavar="OP", help="Put an op on the AllowList; repeatable."),
    click.option("--deny-op", multiple=True, metavar="OP", help="Put an op on the DenyList; repeatable."),
    click.option(
        "--edit",
        multiple=True,
        metavar="EDIT",
        help="Change a list: gray:+Op, gray:-Op, Op=clear, Op=none; after --allow-op and --deny-op; repeatable.",
    ),
    click.option("--level", metavar="LEVEL", help="Grappler's TREAT_INFER_AS_DENY, TENSOR_CORES_ONLY or UNSAFE_FORCE_ALL."),
    click.option("--policy", "policy_file", metavar="FILE", help="Read a policy from TOML; the other options win or add to it."),
    click.option(
        "--env",
        "from_env",
        is_flag=True,
        default=None,
        help="Follow TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_* variables; everything else wins.",
    ),
)
_NODE_OPTIONS = (
    click.option("--allow-node", multiple=True, metavar="REGEX", help="Nodes to compute in low precision; repeatable."),
    click.option(
        "--deny-node", multiple=True, metavar="REGEX", help="Nodes to keep in float32, and gray ones after them; repeatable."
    ),
    click.option(
        "--float-node", multiple=True, metavar="REGEX", help="Nodes to keep in float32; wins over the other two; repeatable."
    ),
    click.option("--preserve", multiple=True, metavar="NAME", help="A node that must not change; repeatable."),
    click.option("--keep-io/--no-keep-io", default=None, help="Whether inputs and outputs keep their dtypes. [keep]"),
    click.option(
        "--keep-io-name", multiple=True, metavar="NAME", help="An input or output that keeps its dtype, when others need not."
    ),
    click.option("--ignore-performance", is_flag=True, default=None, help="Rewrite for GPUs without tensor cores too."),
)
_SETTINGS = (
    *("preset", "dtype", "target", "keep_io", "keep_io_name", "preserve", "allow_op", "deny_op", "edit"),
    *("allow_node", "deny_node", "float_node", "level", "ignore_performance", "policy_file", "from_env"),
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
            PolicyError, OpListError, click.UsageError: If an option makes no sense.
        """
        import tomllib

        from ampgraph.rewrite.policy import Policy

        given = dict(self.values)
        fields: dict[str, Any] = {}
        file = given.pop("policy_file", None)
        if file is not None:
            text = _read(file)
            policy = Policy.from_toml(text)
            fields = {name: getattr(policy, name) for name in tomllib.loads(text)}
        from_env = given.pop("from_env", False)
        if names := given.pop("keep_io_name", ()):
            if "keep_io" in given:
                raise click.UsageError("--keep-io-name says which names keep their dtypes; leave out --keep-io and --no-keep-io.")
            given["keep_io"] = names
        if both := sorted({*given.get("allow_op", ())} & {*given.get("deny_op", ())}):
            raise click.UsageError(f"--allow-op and --deny-op contradict each other: both name {', '.join(both)}.")
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


def rewrite_graph(graph: "Graph", policy: "Policy") -> "RewriteResult":
    """Rewrite a graph; shapes of TensorFlow graphs are inferred before, so that the report knows sizes."""
    from ampgraph.rewrite import auto_mixed_precision

    with progress("rewriting"):
        infer_shapes(graph)
        return auto_mixed_precision(graph, policy)


def infer_shapes(graph: "Graph") -> None:
    """Infer the shapes of a TensorFlow graph; those of ONNX models are inferred when they are rewritten."""
    from ampgraph.graph import AmpgraphError
    from ampgraph.graph.infer import infer

    if graph.opsets:
        return
    try:
        infer(graph)
    except AmpgraphError as error:
        note(f"shapes are not known, so bytes saved are not counted: {error}")


def rewrite_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of rewriting; it receives them as ``settings``, a :class:`Settings`."""
    return _add_options(command, (*_LIST_OPTIONS, *_NODE_OPTIONS))


def list_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command those options of rewriting that decide about the op lists, as ``settings``."""
    return _add_options(command, _LIST_OPTIONS)


def _add_options(command: Callable[..., Any], options: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        values = {name: kwargs.pop(name) for name in _SETTINGS if name in kwargs}
        settings = Settings({name: value for name, value in values.items() if value is not None and value != ()})
        return command(*args, settings=settings, **kwargs)

    for option in reversed(options):
        wrapper = option(wrapper)
    return wrapper


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
