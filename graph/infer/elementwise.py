"""Elementwise ops: results have the shape of an operand, or of all operands broadcast together."""

from typing import TYPE_CHECKING

from .dims import Conflict, Dims, broadcast, merge

if TYPE_CHECKING:
    from .call import Call, Rule


def same(call: "Call") -> list[Dims]:
    """The shape of the first operand, for every result."""
    return [call.shape(0)] * len(call.node.outputs)


def broadcast_all(call: "Call") -> list[Dims]:
    """The operands broadcast together."""
    result: Dims = ()
    for dims in call.dims:
        result = broadcast(result, dims)
    return [result] * len(call.node.outputs)


def merge_all(call: "Call") -> list[Dims]:
    """All operands have one shape."""
    result: Dims = None
    for dims in call.dims:
        result = merge(result, dims)
    return [result] * len(call.node.outputs)


def optional_broadcast(call: "Call") -> list[Dims]:
    """Broadcast; the op may say that operands which do not fit are simply different."""
    if call.flag("incompatible_shape_error") is not False:
        return broadcast_all(call)
    if any(dims is None or not all(isinstance(dim, int) for dim in dims) for dims in call.dims):
        return [None]
    try:
        return broadcast_all(call)
    except Conflict:
        return [()]


def select(call: "Call") -> list[Dims]:
    """Both choices have one shape; the condition has it too, or is a scalar, or a vector along the first dimension."""
    result = merge(call.shape(1), call.shape(2))
    condition = call.shape(0)
    if condition is not None and result is not None:
        if len(condition) == 1 and len(result) >= 1:
            result = (*merge(condition, result[:1]), *result[1:])  # type: ignore[misc]
        elif condition != ():
            result = merge(result, condition)
    elif condition is not None and len(condition) > 1:
        result = condition
    return [result]


def clip(call: "Call") -> list[Dims]:
    """The shape of the first operand; the bounds broadcast to it."""
    return [merge(call.shape(0), broadcast(broadcast(call.shape(0), call.shape(1)), call.shape(2)))]


_SAME = """
    Abs Acos Acosh Angle Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1
    BesselK1e BesselY0 BesselY1 Bitcast Cast Ceil CheckNumerics CheckNumericsV2 ComplexAbs Conj Cos Cosh Dawsn DebugIdentity
    DebugIdentityV2 DebugIdentityV3 DeepCopy Digamma Elu Erf Erfc Erfinv Exp Expint Expm1 FakeQuantWithMinMaxArgs
    FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel Floor FresnelCos FresnelSin Identity Imag Inv Invert IsFinite
    IsInf IsNan LeakyRelu Lgamma Log Log1p LogicalNot Ndtri Neg OnesLike PlaceholderWithDefault PopulationCount PreventGradient
    QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4 Real Reciprocal RefIdentity
    Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh Snapshot Softplus Softsign Spence Sqrt Square StopGradient Tan Tanh
    ZerosLike AsString Enter RefEnter Exit RefExit NextIteration RefNextIteration LoopCond CollectiveReduce CollectiveReduceV2
    NcclAllReduce InvertPermutation Copy CopyHost StringLower StringUpper StringStrip DecodeBase64 EncodeBase64 StringToNumber
    StringToHashBucketFast StringLength NextAfter LRN Cumsum Cumprod CumulativeLogsumexp Roll ReverseV2 Reverse ReverseSequence
    MatrixBandPart BatchMatrixBandPart MatrixInverse Cholesky MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 LogSoftmax
    _UnaryOpsComposition FFT FFT2D FFT3D IFFT IFFT2D IFFT3D
"""

_SAME_GRADS = """
    EluGrad InvGrad LeakyReluGrad ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad SigmoidGrad SoftplusGrad SoftsignGrad
    SqrtGrad TanhGrad AddN AccumulateNV2 FakeQuantWithMinMaxArgsGradient
"""

_BROADCAST = """
    Add AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor Complex Div DivNoNan FloorDiv FloorMod Greater GreaterEqual Igamma IgammaGradA
    Igammac LeftShift Less LessEqual LogicalAnd LogicalOr Maximum Minimum Mod Mul MulNoNan Polygamma Pow RealDiv RightShift
    SelectV2 SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta Betainc
"""

RULES: "dict[str, Rule]" = {
    **dict.fromkeys(_SAME.split(), same),
    **dict.fromkeys(_SAME_GRADS.split(), merge_all),
    **dict.fromkeys(_BROADCAST.split(), broadcast_all),
    "ApproximateEqual": merge_all,
    "ClipByValue": clip,
    "Cross": merge_all,
    "Equal": optional_broadcast,
    "NotEqual": optional_broadcast,
    "Select": select,
}
