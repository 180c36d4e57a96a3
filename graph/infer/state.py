"""Sources of tensors: constants, placeholders, variables and their updates, random numbers, iterators."""

from typing import TYPE_CHECKING

from ..types import Tensor
from .dims import Content, Dims, Element, merge

if TYPE_CHECKING:
    from .call import Call, ContentRule, Rule


def constant(call: "Call") -> list[Dims]:
    """The shape of the tensor it holds."""
    value = call.node.attr("value")
    return [value.shape if isinstance(value, Tensor) else None]


def declared(call: "Call") -> list[Dims]:
    """The shape that the node's attribute ``shape`` declares."""
    return [call.declared("shape")]


def iterator(call: "Call") -> list[Dims]:
    """The shapes that the node's attribute ``output_shapes`` declares."""
    shapes = call.declared_list("output_shapes")
    return shapes if len(shapes) == len(call.node.outputs) else [None] * len(call.node.outputs)


def scalars(call: "Call") -> list[Dims]:
    """Scalars: handles, flags, counters."""
    return [()] * len(call.node.outputs)


def read_variable(call: "Call") -> list[Dims]:
    """What the variable holds."""
    return [call.element(0).dims]


def variable_shape(call: "Call") -> list[Dims]:
    """A vector with one element per dimension of the variable."""
    dims = call.element(0).dims
    return [(None if dims is None else len(dims),)]


def variable_shape_content(call: "Call") -> list[Content]:
    """The variable's shape."""
    return [call.element(0).dims]


def assign(call: "Call") -> list[Dims]:
    """The variable after it took the value, whose shape may be another if the node says so."""
    if call.flag("validate_shape") is False:
        return [call.shape(1)]
    return [merge(call.shape(0), call.shape(1))]


def update(call: "Call") -> list[Dims]:
    """The variable that operand 0 refers to."""
    return [call.shape(0)] * len(call.node.outputs)


def variable_handle(call: "Call") -> list[Content]:
    """A variable of the declared shape."""
    return [Element(call.declared("shape"))]


def shaped(index: int) -> "Rule":
    """Make the rule of an op whose results have the shape that operand ``index`` holds."""
    return lambda call: [call.as_shape(index)] * len(call.node.outputs)


def random_parameters(call: "Call") -> list[Dims]:
    """The shape that operand 0 holds, once per element of operand 1."""
    lead, each = call.as_shape(0), call.shape(1)
    return [None if lead is None or each is None else lead + each]


def multinomial(call: "Call") -> list[Dims]:
    """Samples per row of logits."""
    return [(call.ranked(0, 2)[0], call.scalar(1))]


def key_and_counter(call: "Call") -> list[Dims]:
    """State of a random generator: a key of 1, a counter of 2, and the number of the algorithm."""
    full: list[Dims] = [(1,), (2,), ()]
    return full[: len(call.node.outputs)]


_RANDOM = """
    ParameterizedTruncatedNormal RandomStandardNormal RandomUniform RandomUniformInt StatelessParameterizedTruncatedNormal
    StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomUniform StatelessRandomUniformFullInt
    StatelessRandomUniformFullIntV2 StatelessRandomUniformInt StatelessRandomUniformIntV2 StatelessRandomUniformV2
    StatelessTruncatedNormal StatelessTruncatedNormalV2 TruncatedNormal Empty
"""

_SCALARS = """
    AnonymousIterator AnonymousIteratorV2 CollectiveAssignGroupV2 ConsumeMutexLock FIFOQueueV2 HashTableV2 IsVariableInitialized
    IteratorV2 LookupTableSizeV2 MutexLock MutexV2 QueueSizeV2 ShardedFilename StatelessRandomGetAlg Timestamp
    VarHandleOp VarIsInitializedOp AnonymousSeedGenerator
"""

_UPDATES = """
    ApplyAdaMax ApplyAdadelta ApplyAdagrad ApplyAdagradDA ApplyAdagradV2 ApplyAdam ApplyAddSign ApplyCenteredRMSProp ApplyFtrl
    ApplyFtrlV2 ApplyGradientDescent ApplyMomentum ApplyPowerSign ApplyProximalAdagrad ApplyProximalGradientDescent
    ApplyRMSProp CountUpTo ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdAdd ScatterNdSub ScatterNdUpdate
    ScatterSub ScatterUpdate SparseApplyAdadelta SparseApplyAdagrad SparseApplyAdagradDA SparseApplyAdagradV2
    SparseApplyCenteredRMSProp SparseApplyFtrl SparseApplyFtrlV2 SparseApplyMomentum SparseApplyProximalAdagrad
    SparseApplyProximalGradientDescent SparseApplyRMSProp RandomShuffle Print PrintV2 Bucketize
"""

RULES: "dict[str, Rule]" = {
    **dict.fromkeys(_RANDOM.split(), shaped(0)),
    **dict.fromkeys(_SCALARS.split(), scalars),
    **dict.fromkeys(_UPDATES.split(), update),
    **dict.fromkeys(["Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "TemporaryVariable"], declared),
    **dict.fromkeys(["ImmutableConst", "Variable", "VariableV2"], declared),
    **dict.fromkeys(["AssignAdd", "AssignSub"], lambda call: [merge(call.shape(0), call.shape(1))]),
    **dict.fromkeys(["IteratorGetNext", "IteratorGetNextSync", "OptionalGetValue", "InfeedDequeueTuple"], iterator),
    **dict.fromkeys(["StatefulStandardNormalV2", "StatefulUniform", "StatefulTruncatedNormal"], shaped(2)),
    **dict.fromkeys(["StatefulUniformFullInt", "StatefulUniformInt"], shaped(2)),
    "Assign": assign,
    "Const": constant,
    "Multinomial": multinomial,
    "RandomGamma": random_parameters,
    "RandomPoissonV2": random_parameters,
    "ReadVariableOp": read_variable,
    "StatelessMultinomial": multinomial,
    "StatelessRandomGetKeyCounter": key_and_counter,
    "StatelessRandomGetKeyCounterAlg": key_and_counter,
    "VariableShape": variable_shape,
}

CONTENTS: "dict[str, ContentRule]" = {
    "VarHandleOp": variable_handle,
    "VariableShape": variable_shape_content,
}
