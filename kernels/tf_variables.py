"""TensorFlow: variables. A handle names one; what it holds outlives the run."""

from typing import Any

from ..graph.dtypes import DType, dtype_of_array
from ..graph.errors import KernelError
from .call import Call
from .handle import Handle, held
from .registry import bound, kernel
from .room import check_room
from .tf_gather import check_depth, check_indices, coordinates, take
from .tf_scatter import kind_of, write, write_nd
from .tf_slice import strided_index
from .values import as_declared, read_only, widened


def stored(call: Call, handle: Handle) -> Any:
    """Return what a variable holds."""
    return held(call.state, handle)


def store(call: Call, handle: Handle, value: Any, dtype: DType | None = None) -> None:
    """Let a variable hold a value that nothing else holds, rounded once to its dtype. Who reads it cannot write to it."""
    call.state[handle] = read_only(value if dtype is None else as_declared(value, dtype))


def declared(value: Any) -> DType:
    """Return the dtype of what a variable holds."""
    return dtype_of_array(value.dtype)


@kernel("tf:VarHandleOp", "tf:Variable", "tf:VariableV2", moves=True)
def variable(call: Call) -> Handle:
    """Name a variable: as its attribute says, else after the node."""
    return Handle(call.attr("shared_name", "") or call.node.name, call.attr("container", ""))


@bound("tf:VarHandleOp")
def bind_variable(call: Call) -> Any:
    """Bind :func:`variable`."""
    handle = variable(call)
    return lambda: handle


@kernel("tf:_VarHandlesOp", moves=True)
def variables(call: Call) -> tuple[Handle, ...]:
    """Name variables."""
    names = zip(call.attr("shared_names"), call.attr("containers"), strict=True)
    return tuple(Handle(name or f"{call.node.name}:{i}", container) for i, (name, container) in enumerate(names))


@kernel("tf:ReadVariableOp", moves=True)
def read(call: Call, handle: Handle) -> Any:
    """Return what a variable holds."""
    return stored(call, handle)


@bound("tf:ReadVariableOp", is_stateful=True)
def bind_read(call: Call) -> Any:
    """Bind :func:`read`."""
    return held


@kernel("tf:_ReadVariablesOp", moves=True)
def read_all(call: Call, *handles: Handle) -> tuple[Any, ...]:
    """Return what variables hold."""
    return tuple(stored(call, handle) for handle in handles)


@kernel("tf:VarIsInitializedOp", "tf:IsVariableInitialized", moves=True)
def is_initialized(call: Call, handle: Handle) -> Any:
    """Whether a variable holds something."""
    return call.xp.asarray(handle in call.state)


@kernel("tf:VariableShape", moves=True)
def variable_shape(call: Call, handle: Handle) -> Any:
    """Return the sizes of what a variable holds."""
    return call.xp.asarray(stored(call, handle).shape, call.dtype("out_type").numpy)


@kernel("tf:DestroyResourceOp", moves=True)
def destroy(call: Call, handle: Handle) -> tuple[Any, ...]:
    """Let a variable hold nothing."""
    if call.state.pop(handle, None) is None and not call.attr("ignore_lookup_error", True):
        raise KernelError(f"Variable {handle.name!r} does not exist.")
    return ()


@kernel("tf:AssignVariableOp", "tf:Assign", moves=True)
def assign(call: Call, handle: Handle, value: Any) -> Any:
    """Let a variable hold a value."""
    before = call.state.get(handle)
    checked = call.node.op_type == "Assign" or call.attr("validate_shape", False)
    if checked and before is not None and call.attr("validate_shape", True) and before.shape != value.shape:
        raise KernelError(
            f"Variable {handle.name!r} keeps its shape, {list(before.shape)}. Received: a value of shape {list(value.shape)}"
        )
    store(call, handle, value.copy() if hasattr(value, "copy") else value)  # it may be a feed, which its owner may change
    return same(call, handle)


@bound("tf:AssignVariableOp", is_stateful=True)
def bind_assign(call: Call) -> Any:
    """Bind :func:`assign` of arrays of any shape."""
    dtype = call.operand_dtypes[1]
    if call.attr("validate_shape", False) or dtype is None or dtype.kind in ("string", "handle"):
        return None

    def compute(state: dict[Handle, Any], handle: Handle, value: Any) -> tuple[()]:
        if handle.__class__ is not Handle:
            raise KernelError("The kernel says what is wrong.")
        state[handle] = read_only(value.copy())
        return ()

    return compute


def same(call: Call, handle: Handle) -> Any:
    """Return the variable where the op does: those that take it by reference."""
    return handle if call.results else ()


@kernel("tf:AssignAddVariableOp", "tf:AssignSubVariableOp", "tf:AssignAdd", "tf:AssignSub")
def assign_sum(call: Call, handle: Handle, value: Any) -> Any:
    """Add to what a variable holds, or take from it."""
    before = stored(call, handle)
    if before.shape != value.shape:
        raise KernelError(
            f"Variable {handle.name!r} holds an array of shape {list(before.shape)}. Received: a value of shape {list(value.shape)}"
        )
    combine = call.xp.add if "Add" in call.node.op_type else call.xp.subtract
    store(call, handle, combine(widened(before), value), declared(before))
    return same(call, handle)


@kernel("tf:CountUpTo", "tf:ResourceCountUpTo", moves=True)
def count_up_to(call: Call, handle: Handle) -> Any:
    """Return a counter and add 1 to it."""
    before = stored(call, handle)
    if int(before) >= call.attr("limit"):
        raise KernelError(f"Variable {handle.name!r} reached its limit. Received: {call.attr('limit')}")
    store(call, handle, call.xp.asarray(before + 1, before.dtype))
    return before


@kernel("tf:ResourceGather", moves=True)
def resource_gather(call: Call, handle: Handle, indices: Any) -> Any:
    """Return slices of a variable along the axis behind the batch."""
    batch = call.attr("batch_dims", 0)
    return take(call, stored(call, handle), indices, batch, batch)


@kernel("tf:ResourceGatherNd", moves=True)
def resource_gather_nd(call: Call, handle: Handle, indices: Any) -> Any:
    """Return slices of a variable whose leading coordinates are the vectors along the last axis of ``indices``."""
    x = stored(call, handle)
    check_depth(call, x.ndim, indices.shape[-1])
    sizes = indices.shape[:-1] + x.shape[indices.shape[-1] :]
    check_room(call.xp, sizes, x.itemsize)
    if not indices.shape[-1]:
        return call.xp.broadcast_to(x, sizes)
    return x[(*coordinates(call, x.shape, indices)[0], ...)]


@kernel(
    *(
        f"tf:{prefix}Scatter{kind}"
        for prefix in ("Resource", "")
        for kind in ("Update", "Add", "Sub", "Mul", "Div", "Max", "Min")
    ),
)
def scatter(call: Call, handle: Handle, indices: Any, updates: Any) -> Any:
    """Update slices of a variable along its first axis."""
    before = stored(call, handle)
    check_indices(call, indices, before.shape[0])
    wide = widened(before)
    out = wide.copy() if wide is before else wide
    store(call, handle, write(call, out, kind_of(call), (indices,), updates), declared(before))
    return same(call, handle)


@kernel(
    *(f"tf:{prefix}ScatterNd{kind}" for prefix in ("Resource", "") for kind in ("Update", "Add", "Sub", "Max", "Min")),
)
def scatter_nd(call: Call, handle: Handle, indices: Any, updates: Any) -> Any:
    """Update slices of a variable, named by vectors of coordinates."""
    before = stored(call, handle)
    store(call, handle, write_nd(call, widened(before), indices, updates, kind_of(call)), declared(before))
    return same(call, handle)


@kernel("tf:ResourceStridedSliceAssign", "tf:StridedSliceAssign", moves=True)
def strided_slice_assign(call: Call, handle: Handle, begin: Any, end: Any, strides: Any, value: Any) -> Any:
    """Replace a part of a variable."""
    out = stored(call, handle).copy()
    out[strided_index(call, out.shape, begin, end, strides)] = value
    store(call, handle, out)
    return same(call, handle)


@kernel("tf:TemporaryVariable", moves=True)
def temporary(call: Call) -> Handle:
    """Name a variable that this node makes."""
    return Handle(call.attr("var_name", "") or call.node.name, "temporary")


@kernel("tf:DestroyTemporaryVariable", moves=True)
def destroy_temporary(call: Call, handle: Handle) -> Any:
    """Return what a variable holds, and let it hold nothing."""
    value = stored(call, handle)
    del call.state[handle]
    return value
