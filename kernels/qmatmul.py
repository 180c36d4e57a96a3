"""Matrix products of ONNX Runtime with integer operands: quantized as they come, or weights packed into few bits."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .matmul import Integers, centred, integer_product, kept_integers
from .qlinear import dynamic_quantize, quantize
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


@kernel("com.microsoft:MatMulIntegerToFloat")
def matmul_integer_to_float(
    call: "Call", a: Any, b: Any, a_scale: Any, b_scale: Any, a_zero: Any = None, b_zero: Any = None, bias: Any = None
) -> Any:
    """Product of 8-bit matrices, scaled."""
    return _scaled_product(call, a, kept_integers(call, b, b_zero, 1, 5), a_scale, b_scale, a_zero, bias)


def _scaled_product(call: "Call", a: Any, b: Integers, a_scale: Any, b_scale: Any, a_zero: Any, bias: Any) -> Any:
    y = integer_product(call.xp, centred(call.xp, a, a_zero, -2), b)
    y = y.astype(b_scale.dtype) * (a_scale * _columns(b_scale, b.values))
    return y if bias is None else y + bias


@kernel("com.microsoft:DynamicQuantizeMatMul")
def dynamic_quantize_matmul(call: "Call", a: Any, b: Any, b_scale: Any, b_zero: Any = None, bias: Any = None) -> Any:
    """The same with a left operand that is quantized to uint8 first."""
    quantized, scale, zero = dynamic_quantize(call.xp, a)
    return _scaled_product(call, quantized, kept_integers(call, b, b_zero, 1, 3), scale, b_scale, zero, bias)


@kernel("com.microsoft:MatMulInteger16")
def matmul_integer16(call: "Call", a: Any, b: Any) -> Any:
    """Product of 16-bit matrices; the sum wraps as int32 does."""
    return integer_product(call.xp, centred(call.xp, a, None, -2), kept_integers(call, b, None, 1)).astype(call.xp.int32)


@kernel("com.microsoft:QGemm")
def qgemm(
    call: "Call",
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    c: Any = None,
    y_scale: Any = None,
    y_zero: Any = None,
) -> Any:
    """``alpha * A @ B + C`` in integers, scaled; quantized again if ``y_scale`` is given."""
    xp = call.xp
    a = a.T if call.attr("transA", 0) else a
    weights = kept_integers(call, b.T if call.attr("transB", 0) else b, b_zero, 3, 5)
    y = integer_product(xp, centred(xp, a, a_zero, -2), weights).astype(xp.int32)
    if c is not None:
        y = y + c
    y = y.astype(xp.float32) * (xp.float32(call.attr("alpha", 1.0)) * a_scale * b_scale)
    return y if y_scale is None else quantize(xp, y, y_scale, y_zero, a.dtype if y_zero is None else y_zero.dtype)


def _columns(scale: Any, b: Any) -> Any:
    """Return a scale per column of each matrix as it broadcasts to the product."""
    return scale[..., None, :] if scale.ndim > 1 and scale.ndim == b.ndim - 1 else scale


@kernel("com.microsoft:MatMulNBits")
def matmul_nbits(call: "Call", a: Any, b: Any, scales: Any, zeros: Any = None, groups: Any = None, bias: Any = None) -> Any:
    """Product with a weight ``[N, K]`` packed in blocks along K: ``b[N, blocks, bytes]``, a scale and zero point per block."""
    xp, n, k = call.xp, call.attr("N"), call.attr("K")
    bits, size = call.attr("bits", 4), call.attr("block_size")
    if b.size == 0 and n and k:
        weight = xp.zeros((n, k), a.dtype)
    else:
        blocks = -(-k // size)
        values = unpack(xp, b.reshape(n, blocks, -1), bits, size).astype(a.dtype)
        if zeros is None:
            zero = a.dtype.type(1 << (bits - 1))
        elif zeros.dtype == xp.uint8 and zeros.size != n * blocks * (bits < 8):
            zero = unpack(xp, zeros.reshape(n, -1), bits, blocks).astype(a.dtype)
        else:
            zero = zeros.reshape(n, blocks).astype(a.dtype)
        scales = scales.reshape(n, blocks)
        if groups is None:
            weight = ((values - (zero if zeros is None else zero[..., None])) * scales[..., None]).reshape(n, -1)[:, :k]
        else:
            values = values.reshape(n, -1)[:, :k]
            groups = groups.reshape(-1)[:k]
            weight = (values - (zero if zeros is None else zero[:, groups])) * scales[:, groups]
    y = a @ weight.T
    return y if bias is None else y + bias


def unpack(xp: Any, packed: Any, bits: int, count: int) -> Any:
    """Return ``count`` unsigned integers of ``bits`` bits from the bytes along the last axis, low bits first.

    Raises:
        KernelError: If the bytes do not hold as many.
    """
    if not 1 <= bits <= 8 or packed.shape[-1] * 8 < bits * count:
        raise KernelError(f"{packed.shape[-1]} bytes do not hold {count} numbers of {bits} bits.")
    if bits == 8:
        return packed[..., :count].astype(xp.uint8)
    flat = xp.unpackbits(xp.ascontiguousarray(packed).astype(xp.uint8).reshape(-1, packed.shape[-1]), axis=-1, bitorder="little")
    weights = (1 << xp.arange(bits)).astype(xp.uint8)
    values = (flat[:, : bits * count].reshape(-1, count, bits) * weights).sum(axis=-1, dtype=xp.uint8)
    return values.reshape(*packed.shape[:-1], count)


#: The values of 4-bit weights: quant_type 0 is a float with 2 exponent bits and 1 of the significand, 1 the quantiles of a normal.
_FP4 = (0.0, 0.0052083333, 0.6666666667, 1.0, 0.3333333333, 0.5, 0.1666666667, 0.25)
_NF4 = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)


@kernel("com.microsoft:MatMulBnb4")
def matmul_bnb4(call: "Call", a: Any, b: Any, absmax: Any) -> Any:
    """Product with a weight ``[N, K]`` of 4-bit table entries, the high half of a byte first, scaled by blocks of its flat form."""
    xp, n, k, size = call.xp, call.attr("N"), call.attr("K"), call.attr("block_size")
    table = xp.asarray(_NF4 if call.attr("quant_type") == 1 else (*_FP4, *(-x for x in _FP4)), a.dtype)
    flat = xp.stack([b >> 4, b & 15], axis=-1).reshape(-1)[: n * k]
    values = table[flat] * xp.repeat(absmax, size)[: n * k]
    return a @ values.reshape(n, k).T
