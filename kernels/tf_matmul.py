"""TensorFlow: products of matrices."""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .matmul import product
from .registry import bound, kernel
from .room import FEW
from .tf_linalg import adjoint


@kernel("tf:MatMul", "tf:SparseMatMul")
def matmul(call: Call, a: Any, b: Any) -> Any:
    """Return the product of two matrices, transposed where ``transpose_a`` and ``transpose_b`` say so."""
    if a.ndim != 2 or b.ndim != 2:
        raise KernelError(f"{call.node.op_type} takes two matrices. Received: shapes {list(a.shape)} and {list(b.shape)}")
    return product(call.xp, a.T if call.attr("transpose_a") else a, b.T if call.attr("transpose_b") else b)


@bound("tf:MatMul")
def bind_matmul(call: Call) -> Any:
    """Bind :func:`matmul` of floats."""
    dtype = call.operand_dtypes[0]
    if dtype is None or dtype.kind != "float":
        return None
    xp, multiply = call.xp, call.xp.matmul
    first, second = call.attr("transpose_a"), call.attr("transpose_b")
    size = call.node.outputs[0].shape.size
    if size is not None and size <= FEW and [value.shape.rank for value in call.node.inputs if value is not None] == [2, 2]:
        if first or second:
            return lambda a, b: multiply(a.T if first else a, b.T if second else b)
        return multiply

    def compute(a: Any, b: Any) -> Any:
        if a.ndim != 2 or b.ndim != 2:
            raise KernelError("The kernel says what is wrong.")
        a, b = a.T if first else a, b.T if second else b
        return multiply(a, b) if len(a) * b.shape[1] <= FEW else product(xp, a, b)

    return compute


@kernel("tf:BatchMatMul", "tf:BatchMatMulV2", "tf:BatchMatMulV3")
def _batch_matmul(call: Call, a: Any, b: Any) -> Any:
    if a.ndim < 2 or b.ndim < 2:
        raise KernelError(f"{call.node.op_type} takes stacks of matrices. Received: shapes {list(a.shape)} and {list(b.shape)}")
    if call.node.op_type == "BatchMatMulV3" and a.dtype.kind in "iu":
        wanted = call.dtype("Tout").numpy
        a, b = a.astype(wanted), b.astype(wanted)
    return product(call.xp, adjoint(a) if call.attr("adj_x") else a, adjoint(b) if call.attr("adj_y") else b)
