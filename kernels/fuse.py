"""Elementwise clusters: chains of steps that are computed together, one block of elements after another.

Decided once, from the graph alone, for every backend. A cluster runs where its last step stood; steps from outside that read a
value of it come after it.
"""

from collections.abc import Iterable
from copy import copy

from ..graph.dtypes import DType
from .registry import Kernel
from .steps import Cluster, Plan, Step, is_low

#: Kernels whose float result is an element of their operands, or an integer: exact in every dtype, where they all have one.
_EXACT = frozenset(
    [
        *("Abs", "Ceil", "Clip", "Floor", "Identity", "Max", "Min", "Neg", "Relu", "Round", "Sign", "Where"),
        *("tf:Abs", "tf:Ceil", "tf:Floor", "tf:Identity", "tf:Maximum", "tf:Minimum", "tf:Neg", "tf:Relu", "tf:Rint"),
        *("tf:Round", "tf:SelectV2", "tf:Sign", "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin"),
        *("tf:MaxPool", "tf:Max", "tf:Min"),
    ]
)
#: Kernels that move elements whatever their dtype: what is kept wide goes through them as it is.
_PASSES = frozenset(
    [
        *("CenterCropPad", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity"),
        *("Pad", "Reshape", "ReverseSequence", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu"),
        *("Unsqueeze", "Where", "tf:BatchToSpaceND", "tf:BroadcastTo", "tf:ConcatV2", "tf:DepthToSpace", "tf:ExpandDims"),
        *("tf:GatherV2", "tf:Identity", "tf:Pack", "tf:Pad", "tf:PadV2", "tf:Reshape", "tf:ReverseV2", "tf:SelectV2"),
        *("tf:Slice", "tf:SpaceToBatchND", "tf:SpaceToDepth", "tf:Split", "tf:SplitV", "tf:Squeeze", "tf:StridedSlice"),
        *("tf:Tile", "tf:Transpose", "tf:Unpack"),
    ]
)
#: Kernels that read no element.
_ASKS_SHAPE = frozenset(["Shape", "Size", "tf:Rank", "tf:Shape", "tf:ShapeN", "tf:Size"])
#: The kernel of casts among float32 and narrower types: operands are widened and results rounded anyway.
_ROUND = Kernel(lambda call, x: x, moves=False, inplace=False, elementwise=True)
#: So many members a cluster has at most: all values of a block stay in the cache.
_MOST_MEMBERS = 64


def name_of(step: Step) -> str:
    """Return the name under which a step's kernel is registered."""
    node = step.node
    return f"{node.domain}:{node.op_type}" if node.domain else node.op_type


def keep_wide(plan: Plan) -> None:
    """Mark the steps whose results, rounded, stay float32: those of low dtype that only computing steps read, and moving ones
    on the way there.
    """
    narrow = {-1, *plan.outputs}
    for step in reversed(plan.steps):
        if _is_rounding(step):
            step.kernel = _ROUND
        step.is_exact = _is_exact(step)
        plain = step.kernel is not None and not step.bodies and step.is_typed and not step.reads and step.loop is None
        computes = plain and step.kernel is not None and not step.kernel.moves
        if (computes and len(step.dtypes) == 1 and not _makes_references(step)) or (plain and name_of(step) in _PASSES):
            read = {register for register in step.results if register >= 0}
            step.stays_wide = all(map(is_low, step.dtypes)) and narrow.isdisjoint(read)
        if not computes and not step.stays_wide and name_of(step) not in _ASKS_SHAPE:
            narrow.update(step.operands)


def _is_rounding(step: Step) -> bool:
    """Whether a step is a cast between float32, float16 and bfloat16."""
    dtypes = (*step.dtypes, *step.operand_dtypes)
    is_cast = name_of(step) in ("Cast", "tf:Cast") and step.kernel is not None and not step.attributes.get("Truncate")
    return is_cast and all(dtype is not None and (is_low(dtype) or dtype.name == "float32") for dtype in dtypes)


def _makes_references(step: Step) -> bool:
    schema = step.node.schema
    return schema is not None and any(formal.is_ref for formal in schema.outputs)


def _is_exact(step: Step) -> bool:
    """Whether a step's result has its declared dtype without being rounded."""
    if name_of(step) not in _EXACT or not step.is_typed:
        return False
    given = [dtype for dtype, register in zip(step.operand_dtypes, step.operands, strict=True) if register >= 0]
    floats = {dtype for dtype in given if dtype is None or dtype.kind == "float"}  # None: nothing says which
    return len(floats) == 1 and floats >= set(step.dtypes[:1]) and not (step.node.op_type == "Clip" and step.opset < 11)


def is_elementwise(step: Step) -> bool:
    """Whether every element of a step's only result depends on those elements of the operands that stand at its place."""
    kernel = step.kernel
    if kernel is None or not kernel.elementwise or not step.is_typed or len(step.results) != 1 or step.reads or step.gates:
        return False
    given = [dtype for dtype, register in zip(step.operand_dtypes, step.operands, strict=True) if register >= 0]
    if not all(map(_is_plain, [*step.dtypes, *given])) or _drops_fractions(step):
        return False
    node = step.node
    if node.domain == "" and step.opset < 7 and len(step.operands) > 1:  # broadcasting was another
        return False
    if node.op_type == "BatchNormalization":
        return not step.attributes.get("training_mode") and bool(step.attributes.get("spatial", 1)) and step.opset >= 9
    return not step.attributes.get("Truncate")


def _drops_fractions(step: Step) -> bool:
    """Whether a step is a cast of floats to integers. What becomes of a number that does not fit depends on the dtype it has, and
    on where it stands.
    """
    kinds = [None if dtype is None else dtype.kind for dtype in (step.operand_dtypes[0], step.dtypes[0])]
    return name_of(step) in ("Cast", "tf:Cast", "tf:_HostCast") and kinds[0] == "float" and kinds[1] in ("int", "uint")


def _is_plain(dtype: DType | None) -> bool:
    return (
        dtype is not None
        and dtype.kind in ("float", "int", "uint", "bool")
        and (dtype.bits > 8 or dtype.kind != "float")
        and (dtype.bits >= 8 or dtype.kind == "bool")
    )


def fuse(plan: Plan) -> None:
    """Put elementwise steps of a plan that follow one another into clusters."""
    _Fusing(plan).run()


class _Fusing:
    """One call of :func:`fuse`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._at = {id(step): i for i, step in enumerate(plan.steps)}
        self._order: list[Step | None] = [None for _ in plan.steps]
        self._open: dict[int, list[Step]] = {}  # register -> the cluster that computes it
        self._readers: dict[int, set[int]] = {}
        self._made: dict[int, int] = {}  # register -> which step computes it
        for i, step in enumerate(plan.steps):
            self._made.update(dict.fromkeys(step.results, i))
            for register in step.operands:
                self._readers.setdefault(register, set()).add(id(step))

    def run(self) -> None:
        """Give the plan its new steps."""
        for i, step in enumerate(self._plan.steps):
            joins = is_elementwise(step) and step.results[0] >= 0
            through = _elements(step) if joins else ()
            self._close(self._touched(step.operands[len(through) :]))
            touched = self._touched(through)
            if joins:
                fits = touched and len(touched[-1]) < _MOST_MEMBERS and not self._hoards(touched[-1], step)
                own = touched.pop() if fits else []
                self._close(touched)
                own.append(step)
                self._open[step.results[0]] = own
            else:
                self._order[i] = step
        self._close(self._touched(list(self._open)))
        self._plan.steps = [step for step in self._order if step is not None]

    def _touched(self, registers: Iterable[int]) -> list[list[Step]]:
        """Return the clusters that compute some registers, each once."""
        found = [self._open[register] for register in registers if register in self._open]
        return list({id(members): members for members in found}.values())

    def _hoards(self, members: list[Step], step: Step) -> bool:
        """Whether a cluster that waited for a step would keep several operands in memory meanwhile, in place of its result."""
        end, own = self._at[id(members[-1])], {id(member) for member in members}
        if all(self._made.get(register, -1) <= end for register in step.operands):
            return False
        read = {register for member in members for register in member.operands if register in self._made}
        read -= {member.results[0] for member in members}
        return sum(self._readers[register] <= own for register in read) > 1

    def _close(self, clusters: Iterable[list[Step]]) -> None:
        """Put clusters that are complete where their last step stood; blocks pay where results are rounded."""
        for members in clusters:
            if self._open.get(members[-1].results[0]) is not members:
                continue
            for member in members:
                self._open.pop(member.results[0], None)
            if len(members) > 1 and any(member.is_low for member in members):
                self._order[self._at[id(members[-1])]] = _joined(members, self._readers, self._plan)
                continue
            for member in members:
                self._order[self._at[id(member)]] = member


def _elements(step: Step) -> list[int]:
    """Return the operands of an elementwise step that are not one number for each channel."""
    return step.operands[:1] if step.node.op_type == "BatchNormalization" else step.operands


def _joined(members: list[Step], readers: dict[int, set[int]], plan: Plan) -> Step:
    """Return the step that runs a cluster."""
    own = {id(member) for member in members}
    made = {member.results[0]: i for i, member in enumerate(members)}
    slots: dict[tuple[int, int], int] = {}  # register, and for which member it has one number for each channel, or -1 -> place
    sources = []
    for i, member in enumerate(members):
        keys = [(register, i if at >= len(_elements(member)) else -1) for at, register in enumerate(member.operands)]
        sources.append(keys)
        for key in keys:
            if key[0] >= 0 and key[0] not in made:
                slots.setdefault(key, len(slots))
    outside = len(slots)
    places = {**slots, **{(register, -1): outside + i for register, i in made.items()}, (-1, -1): -1}
    numbers = [[places[key] for key in keys] for keys in sources]
    leaving = [i for i, m in enumerate(members) if m.results[0] in plan.outputs or not readers.get(m.results[0], own) <= own]
    last = {at: i for i, operands in enumerate(numbers) for at in operands}
    going = last.keys() - {outside + i for i in leaving} - {-1}
    dead = [[at for at in {*operands} & going if last[at] == i] for i, operands in enumerate(numbers)]
    step = copy(members[-1])
    columns = frozenset(at for (_, member), at in slots.items() if member >= 0)
    step.cluster = Cluster(members, numbers, dead, outside, columns, leaving)
    step.operands, step.dead = [register for register, _ in slots], []
    step.results = [members[i].results[0] for i in leaving]
    return step
