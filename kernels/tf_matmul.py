"""TensorFlow: products of matrices."""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .elementwise import gelu, sigmoid
from .matmul import product
from .registry import kernel


def _adjoint(x: Any) -> Any:
    x = x.swapaxes(-1, -2)
    return x.conj() if x.dtype.kind == "c" else x


def matmul(call: Call, a: Any, b: Any) -> Any:
    """Return the product of two matrices, transposed where ``transpose_a`` and ``transpose_b`` say so."""
    if a.ndim != 2 or b.ndim != 2:
        raise KernelError(f"{call.node.op_type} takes two matrices. Received: shapes {list(a.shape)} and {list(b.shape)}")
    return product(call.xp, a.T if call.attr("transpose_a") else a, b.T if call.attr("transpose_b") else b)


kernel("tf:MatMul")(matmul)


@kernel("tf:SparseMatMul")
def _sparse_matmul(call: Call, a: Any, b: Any) -> Any:
    return matmul(call, a, b)


@kernel("tf:BatchMatMul", "tf:BatchMatMulV2", "tf:BatchMatMulV3")
def _batch_matmul(call: Call, a: Any, b: Any) -> Any:
    if a.ndim < 2 or b.ndim < 2:
        raise KernelError(f"{call.node.op_type} takes stacks of matrices. Received: shapes {list(a.shape)} and {list(b.shape)}")
    if call.node.op_type == "BatchMatMulV3" and a.dtype.kind in "iu":
        wanted = call.dtype("Tout").numpy
        a, b = a.astype(wanted), b.astype(wanted)
    return product(call.xp, _adjoint(a) if call.attr("adj_x") else a, _adjoint(b) if call.attr("adj_y") else b)


@kernel("tf:_FusedMatMul")
def _fused_matmul(call: Call, a: Any, b: Any, *operands: Any) -> Any:
    """Return a product of matrices with a bias added and an activation applied, as ``fused_ops`` says."""
    xp = call.xp
    result = matmul(call, a, b)
    rest = iter(operands)
    for name in call.attr("fused_ops"):
        if name in ("BiasAdd", "Add"):
            result = result + next(rest)
        elif name == "Relu":
            result = xp.maximum(result, 0)
        elif name == "Relu6":
            result = xp.clip(result, 0, 6)
        elif name == "Elu":
            result = xp.where(result > 0, result, xp.expm1(xp.minimum(result, 0)))
        elif name == "LeakyRelu":
            result = xp.where(result < 0, result * result.dtype.type(call.attr("leakyrelu_alpha")), result)
        elif name == "Tanh":
            result = xp.tanh(result)
        elif name == "Sigmoid":
            result = sigmoid(xp, result)
        elif name in ("GeluApproximate", "GeluExact"):
            result = gelu(xp, result, name == "GeluApproximate")
        else:
            raise KernelError(f"_FusedMatMul does not know one of its fused_ops. Received: {name!r}")
    return result
