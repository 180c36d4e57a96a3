"""The cases that gradients are tried on: for every rule at least one."""

from typing import Any

import numpy as np

from ampgraph.graph.types import Shape
from tests.graph.gradients.check import Case


def _i(*items: Any) -> Any:
    return np.array(items if len(items) != 1 else items[0], np.int32)


def _spread(*shape: int, step: float = 0.37) -> Any:
    """Return numbers at least ``step`` apart from each other and a half of it from 0, in no order."""
    size = int(np.prod(shape))
    values = (np.arange(size) - size // 2 + 0.5) * step
    return np.random.default_rng(5).permutation(values).reshape(shape)


_ANY = (2, 3)

#: Functions of one number on which interval.
UNARY = [
    *(Case(op, [_spread(2, 3)]) for op in ["Abs", "Elu", "LeakyRelu", "Relu", "Selu", "Softsign", "Softplus"]),
    *(
        Case(op, [_ANY])
        for op in [
            "Asinh",
            "Atan",
            "Cos",
            "Cosh",
            "Erf",
            "Erfc",
            "Exp",
            "Expm1",
            "Identity",
            "Neg",
            "Sigmoid",
            "Sin",
            "Sinh",
            "Snapshot",
            "Square",
            "Tanh",
            "BesselI0",
            "BesselI1",
            "Softmax",
            "LogSoftmax",
        ]
    ),
    *(Case(op, [_spread(2, 3)]) for op in ("BesselI0e", "BesselI1e")),
    *(Case(op, [_ANY], among=(-0.9, 0.9)) for op in ("Acos", "Asin", "Atanh", "Erfinv", "Tan")),
    *(Case(op, [_ANY], among=(0.5, 3)) for op in ["Inv", "Log", "Log1p", "Reciprocal", "Rsqrt", "Sqrt"]),
    *(Case(op, [_ANY], among=(0.5, 3)) for op in ("Lgamma", "Digamma")),
    Case("Acosh", [_ANY], among=(1.5, 3)),
    Case("CheckNumerics", [_ANY], {"message": "m"}),
    Case("EnsureShape", [_ANY], {"shape": Shape((None, 3))}),
    Case("Sign", [_spread(2, 3)], second=False),
    Case("L2Loss", [_ANY]),
    Case("Ndtri", [_ANY], among=(0.1, 0.9)),
    Case("Polygamma", [np.array([1.0, 2.0, 3.0]), (2, 3)], among=(0.5, 3), fixed=[0]),
    Case("Relu6", [_spread(3, 6, step=0.9)]),
    Case("Cast", [_ANY], types={"DstT": "float64"}),
    Case("IdentityN", [_ANY, (4,)]),
    Case("PlaceholderWithDefault", [_ANY], {"shape": Shape((2, 3))}),
    Case("Print", [_ANY, np.zeros(1)], {"first_n": 0}, fixed=[1]),
    Case("LeakyRelu", [_spread(4)], {"alpha": 0.3}, note="alpha"),
]

#: Ops that are gradients of others.
GRADIENT_OPS = [
    *(Case(op, [_ANY, _ANY]) for op in ["InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "TanhGrad", "SoftplusGrad"]),
    Case("SqrtGrad", [(2, 3), (2, 3)], among=(0.5, 2)),
    *(Case(op, [_ANY, _spread(2, 3)]) for op in ["EluGrad", "LeakyReluGrad", "ReluGrad", "SeluGrad", "SoftsignGrad"]),
    Case("Relu6Grad", [(3, 6), _spread(3, 6, step=0.9)]),
    Case("BiasAddGrad", [(2, 3, 4)]),
    Case("BiasAddGrad", [(2, 3, 4, 2)], {"data_format": "NCHW"}, note="NCHW"),
]

BINARY = [
    *(Case(op, [(2, 3), (2, 3)]) for op in ["Add", "AddV2", "Atan2", "Mul", "MulNoNan", "SquaredDifference", "Sub"]),
    *(Case(op, [(2, 1, 3), (4, 1)], note="broadcast") for op in ["AddV2", "Mul", "SquaredDifference", "Sub"]),
    *(Case(op, [(2, 3), (3,)], among=(0.5, 2)) for op in ["Div", "DivNoNan", "RealDiv", "Pow", "Xdivy", "Xlogy", "Xlog1py"]),
    *(Case(op, [(2, 3), (2, 3)]) for op in ("Maximum", "Minimum")),
    *(Case(op, [(), (2, 3)], note="scalar") for op in ("AddV2", "Maximum", "RealDiv")),
    Case("FloorMod", [np.array([5.3, -4.2, 3.1]), np.array([2.0, 1.5, -2.0])]),
    Case("AddN", [(2, 3)] * 3, {"N": 3}),
    Case("AccumulateNV2", [(2, 3)] * 2, {"N": 2, "shape": Shape((2, 3))}),
    Case("ClipByValue", [_spread(3, 3), np.array(-1.0), np.array(0.9)]),
    Case("ClipByValue", [_spread(3, 3), np.full((3, 3), -1.0), np.full((3, 3), 0.9)], note="bounds"),
    Case("Select", [np.array([True, False]), (2, 3), (2, 3)], note="rows"),
    Case("Select", [np.array([[True, False, True]]), (1, 3), (1, 3)]),
    Case("SelectV2", [np.array([True, False, True]), (2, 1), (4, 1, 3)]),
]

MATMUL = [
    *(
        Case(
            "MatMul",
            [(3, 4) if not ta else (4, 3), (4, 2) if not tb else (2, 4)],
            {"transpose_a": ta, "transpose_b": tb},
            note=f"{ta:d}{tb:d}",
        )
        for ta in (False, True)
        for tb in (False, True)
    ),
    *(
        Case(
            "BatchMatMulV2",
            [(2, 1, 3, 4) if not ta else (2, 1, 4, 3), (5, 4, 2) if not tb else (5, 2, 4)],
            {"adj_x": ta, "adj_y": tb},
            note=f"{ta:d}{tb:d}",
        )
        for ta in (False, True)
        for tb in (False, True)
    ),
    Case("BatchMatMul", [(2, 3, 4), (2, 4, 2)]),
    *(
        Case("Einsum", [*shapes], {"equation": equation, "N": len(shapes)}, note=equation, dynamic="..." not in equation)
        for equation, shapes in [
            ("ij,jk->ik", [(2, 3), (3, 4)]),
            ("bij,bjk->bki", [(2, 2, 3), (2, 3, 4)]),
            ("ij->ji", [(2, 3)]),
            ("ij->j", [(2, 3)]),
            ("ijk,k->i", [(2, 3, 4), (4,)]),
            ("ii->i", [(3, 3)]),
            ("ii->", [(3, 3)]),
            ("iij,jk->k", [(3, 3, 2), (2, 2)]),
            ("i->ii", [(3,)]),
            ("...ij,...jk->...ik", [(2, 1, 2, 3), (5, 3, 4)]),
            ("...j->...", [(2, 2, 3)]),
            ("i,j->ij", [(2,), (3,)]),
        ]
    ),
]

REDUCE = [
    *(Case(op, [_spread(2, 3, 4), _i(0, -1)]) for op in ["EuclideanNorm", "Max", "Mean", "Min", "Sum"]),
    *(
        Case(op, [_spread(2, 3, 4), np.array([1], np.int64)], {"keep_dims": True}, note="keep")
        for op in ["EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"]
    ),
    *(Case(op, [_spread(2, 3), np.zeros(0, np.int32)], note="none") for op in ("Sum", "Mean")),
    Case("Sum", [(3,), np.array(0, np.int32)], note="scalar"),
    Case("Prod", [(2, 3, 4), _i(2, 0)]),
    Case("Prod", [np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.5]]), _i([1])], note="zeros", second=False),
    *(
        Case("Cumsum", [(2, 4), np.array(1, np.int32)], {"exclusive": e, "reverse": r}, note=f"{e:d}{r:d}")
        for e in (False, True)
        for r in (False, True)
    ),
    Case("Cumprod", [(2, 4), np.array(-1, np.int32)], {"reverse": True}),
    Case("Cumprod", [(3, 2), np.array(0, np.int32)], {"exclusive": True}, note="exclusive"),
    Case("CumulativeLogsumexp", [(2, 4), np.array(1, np.int32)]),
]

SHAPE = [
    Case("Reshape", [(2, 6), _i(3, -1)]),
    Case("ExpandDims", [(2, 3), np.array(1, np.int32)]),
    Case("Squeeze", [(2, 1, 3)], {"squeeze_dims": [1]}),
    Case("Transpose", [(2, 3, 4), _i(2, 0, 1)]),
    Case("BroadcastTo", [(3, 1), _i(2, 3, 4)]),
    Case("Tile", [(2, 3), _i(3, 2)]),
    Case("Tile", [(2,), np.array([2], np.int64)], note="int64"),
    Case("Fill", [_i(2, 3), ()]),
    Case("Pad", [(2, 3), _i([[1, 0], [2, 1]])]),
    Case("PadV2", [(2, 3), _i([[1, 0], [2, 1]]), ()]),
    Case("MirrorPad", [(3, 4), _i([[1, 0], [2, 1]])], {"mode": "REFLECT"}),
    Case("MirrorPadGrad", [(5, 6), _i([[1, 1], [2, 1]])], {"mode": "SYMMETRIC"}),
    Case("Roll", [(3, 4), _i(1, -2), _i(0, 1)]),
    Case("ReverseV2", [(3, 4), _i([1])]),
    Case("Reverse", [(3, 4), np.array([True, False])]),
    Case("ReverseSequence", [(2, 4, 3), np.array([2, 3], np.int64)], {"seq_dim": 1, "batch_dim": 0}),
    Case("Diag", [(3,)]),
    Case("DiagPart", [(3, 3)]),
    Case("MatrixDiag", [(2, 3)]),
    Case("MatrixDiagPart", [(2, 3, 4)]),
    Case("MatrixSetDiag", [(2, 3, 4), (2, 3)]),
    Case("MatrixBandPart", [(2, 3, 4), np.array(1, np.int64), np.array(0, np.int64)]),
    Case("SpaceToDepth", [(1, 4, 4, 3)], {"block_size": 2}),
    Case("DepthToSpace", [(1, 2, 2, 12)], {"block_size": 2}),
    Case("SpaceToBatch", [(1, 4, 3, 2), _i([[0, 0], [1, 0]])], {"block_size": 2}),
    Case("BatchToSpace", [(4, 2, 2, 2), _i([[0, 0], [1, 0]])], {"block_size": 2}),
    Case("SpaceToBatchND", [(1, 4, 3, 2), _i(2, 2), _i([[0, 0], [1, 0]])]),
    Case("BatchToSpaceND", [(4, 2, 2, 2), _i(2, 2), _i([[0, 0], [1, 0]])]),
]

_SLICES = {"begin_mask": 1, "end_mask": 2, "new_axis_mask": 4, "shrink_axis_mask": 8}

PARTS = [
    Case("Slice", [(3, 4), _i(1, 0), _i(2, -1)]),
    Case("StridedSlice", [(5, 4, 3), _i(0, 1, 0, 2), _i(4, 0, 0, 3), _i(2, 1, 1, 1)], _SLICES),
    Case("StridedSlice", [(5,), _i([4]), _i([0]), _i([-2])], note="backward"),
    Case("StridedSliceGrad", [_i(5, 3), _i([0]), _i([5]), _i([2]), (3, 3)]),
    Case("TensorStridedSliceUpdate", [(5, 3), _i([0]), _i([5]), _i([2]), (3, 3)]),
    Case("Concat", [np.array(1, np.int32), (2, 3), (2, 1)], {"N": 2}),
    Case("ConcatV2", [(2, 3), (2, 1), (2, 2), np.array(-1, np.int32)], {"N": 3}),
    Case("Split", [np.array(1, np.int32), (2, 6)], {"num_split": 3}),
    Case("Split", [np.array(1, np.int32), (2, 6)], {"num_split": 3}, results=[1], note="one"),
    Case("SplitV", [(2, 6), _i(1, 2, 3), np.array(1, np.int32)], {"num_split": 3}),
    Case("Pack", [(2, 3), (2, 3)], {"N": 2, "axis": 1}),
    Case("Unpack", [(2, 3)], {"num": 3, "axis": 1}),
    Case("Unpack", [(2, 3)], {"num": 3, "axis": 1}, results=[0, 2], note="two"),
    Case("DynamicPartition", [(4, 2), _i(1, 0, 1, 2)], {"num_partitions": 3}),
    Case("DynamicStitch", [_i(2, 0), _i([1]), (2, 3), (1, 3)], {"N": 2}),
    Case("ParallelDynamicStitch", [_i(2, 0), _i([1]), (2, 3), (1, 3)], {"N": 2}),
]

INDEX = [
    Case("Gather", [(4, 3), _i([[0, 2], [2, 3]])]),
    Case("GatherV2", [(4, 3), _i([[0, 2], [2, 3]]), np.array(0, np.int32)], dynamic=False),
    Case("GatherV2", [(2, 4, 3), _i(3, 3, 0), np.array(1, np.int32)], note="axis", dynamic=False),
    Case("GatherV2", [(2, 4, 3), _i([[0, 2], [2, 1]]), np.array(-1, np.int32)], note="last", dynamic=False),
    Case("GatherV2", [(2, 5, 3), _i([[0, 2], [2, 2]]), np.array(1, np.int32)], {"batch_dims": 1}, note="batch", dynamic=False),
    Case("GatherV2", [(2, 3, 5), _i([[0, 2], [2, 2]]), np.array(2, np.int32)], {"batch_dims": 1}, note="batch2", dynamic=False),
    Case("GatherNd", [(3, 4), _i([[0, 1], [2, 2], [0, 1]])]),
    Case("ScatterNd", [_i([[0], [2], [0]]), (3, 2), _i(4, 2)]),
    *(
        Case(op, [(4, 2), _i([[0], [2], [0]]), (3, 2)])
        for op in ("TensorScatterAdd", "TensorScatterSub", "ScatterNdNonAliasingAdd")
    ),
    Case("TensorScatterUpdate", [(4, 2), _i([[0], [2]]), (2, 2)]),
    *(Case(op, [(4, 2), _i([[0], [2], [0]]), (3, 2)]) for op in ("TensorScatterMax", "TensorScatterMin")),
    Case("TopK", [_spread(2, 5)], {"k": 3}, results=[0]),
    Case("TopKV2", [_spread(2, 5), np.array(3, np.int32)], results=[0]),
]

_SEGMENTS = _i(0, 0, 1, 3)
_NEGATIVE = _i(0, -1, 1, 0)

SEGMENT = [
    *(
        Case(f"SparseSegment{kind}Grad", [(3, 2), _i(0, 3, 3), _i(0, 0, 1), np.array(5, np.int32)])
        for kind in ("Mean", "SqrtN", "Sum")
    ),
    *(Case(f"Segment{kind}", [_spread(4, 2), _SEGMENTS]) for kind in ("Max", "Mean", "Min", "Prod", "Sum")),
    *(
        Case(f"UnsortedSegment{kind}", [_spread(4, 2), _NEGATIVE, np.array(2, np.int32)])
        for kind in ("Max", "Min", "Prod", "Sum")
    ),
    Case("UnsortedSegmentSum", [(2, 2, 3), _i([[0, 1], [1, 0]]), np.array(2, np.int32)], note="ranks"),
    *(Case(f"SparseSegment{kind}", [(5, 2), _i(0, 3, 3), _i(0, 0, 1)]) for kind in ("Mean", "SqrtN", "Sum")),
    *(
        Case(f"SparseSegment{kind}WithNumSegments", [(5, 2), _i(0, 3, 3), _i(0, 0, 1), np.array(3, np.int32)])
        for kind in ("Mean", "SqrtN", "Sum")
    ),
]

_LABELS = np.array([[0.1, 0.2, 0.3, 0.4], [0, 0, 1, 0], [0.5, 0, 0, 0.5]])

LOSSES = [
    Case("SoftmaxCrossEntropyWithLogits", [(3, 4), _LABELS], results=[0], fixed=[1]),
    Case("SoftmaxCrossEntropyWithLogits", [(3, 4), _LABELS], note="both", fixed=[1]),
    Case("SoftmaxCrossEntropyWithLogits", [(3, 4), (3, 4)], note="labels", fixed=[0]),
    Case("SoftmaxCrossEntropyWithLogits", [(3, 4), np.full((1, 4), 0.25)], results=[0], fixed=[1], note="broadcast"),
    Case("SparseSoftmaxCrossEntropyWithLogits", [(3, 4), _i(0, 3, 2)], results=[0]),
    Case("SparseSoftmaxCrossEntropyWithLogits", [(3, 4), _i(0, 3, 2)], note="both"),
]

_TIME = [(4, 2, 3), np.array([[0, 0], [0, 1], [1, 0]], np.int64), _i(1, 0, 0), _i(4, 4)]

LOSSES.append(Case("CTCLoss", _TIME, results=[0], second=False))

_CONV = {"strides": [1, 2, 1, 1], "padding": "SAME"}
_CONV3 = {"strides": [1, 1, 2, 1, 1], "padding": "VALID"}

CONV = [
    Case("Conv2D", [(2, 5, 4, 2), (3, 2, 2, 3)], _CONV),
    Case(
        "Conv2D",
        [(1, 6, 6, 2), (2, 2, 2, 2)],
        {
            "strides": [1, 1, 1, 1],
            "padding": "EXPLICIT",
            "explicit_paddings": [0, 0, 1, 0, 0, 2, 0, 0],
            "dilations": [1, 2, 1, 1],
        },
        note="explicit",
    ),
    Case("Conv2DBackpropInput", [_i(2, 5, 4, 2), (3, 2, 2, 3), (2, 3, 4, 3)], _CONV),
    Case("Conv2DBackpropFilter", [(2, 5, 4, 2), _i(3, 2, 2, 3), (2, 3, 4, 3)], _CONV),
    Case("Conv3D", [(1, 3, 5, 3, 2), (2, 2, 2, 2, 3)], _CONV3),
    Case("Conv3DBackpropInputV2", [_i(1, 3, 5, 3, 2), (2, 2, 2, 2, 3), (1, 2, 2, 2, 3)], _CONV3),
    Case("Conv3DBackpropFilterV2", [(1, 3, 5, 3, 2), _i(2, 2, 2, 2, 3), (1, 2, 2, 2, 3)], _CONV3),
    Case("DepthwiseConv2dNative", [(2, 5, 4, 2), (3, 2, 2, 3)], {"strides": [1, 2, 2, 1], "padding": "SAME"}),
    Case(
        "DepthwiseConv2dNativeBackpropInput",
        [_i(2, 5, 4, 2), (3, 2, 2, 3), (2, 3, 2, 6)],
        {"strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    Case(
        "DepthwiseConv2dNativeBackpropFilter",
        [(2, 5, 4, 2), _i(3, 2, 2, 3), (2, 3, 2, 6)],
        {"strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    Case(
        "Dilation2D",
        [_spread(1, 4, 4, 2), (2, 2, 2)],
        {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"},
        second=False,
    ),
]

_POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
_POOL3 = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 2, 2, 1], "padding": "VALID"}
_X = _spread(1, 5, 4, 2)
_X3 = _spread(1, 3, 4, 4, 2)


def _largest(x: Any, axes: int, strides: Any) -> Any:
    """Return the pooled maxima of windows of size 2."""
    from tests.kernels.tf_node import run_tf

    attributes = {1: _POOL, 2: _POOL3}[axes]
    return run_tf("MaxPool" if axes == 1 else "MaxPool3D", x, **{**attributes, "padding": attributes["padding"]})


_Y, _Y3 = _largest(_X, 1, None), _largest(_X3, 2, None)

POOL = [
    Case("MaxPool", [_X], _POOL),
    Case("MaxPoolV2", [_X, _i(1, 2, 2, 1), _i(1, 2, 2, 1)], {"padding": "SAME"}),
    Case("MaxPool3D", [_X3], _POOL3, dtype="float32"),
    Case("MaxPoolGrad", [_X, _Y, (1, 3, 2, 2)], _POOL, fixed=[0, 1]),
    Case("MaxPoolGradV2", [_X, _Y, (1, 3, 2, 2), _i(1, 2, 2, 1), _i(1, 2, 2, 1)], {"padding": "SAME"}, fixed=[0, 1]),
    Case("MaxPoolGradGrad", [_X, _Y, (1, 5, 4, 2)], _POOL, fixed=[0, 1]),
    Case("MaxPoolGradGradV2", [_X, _Y, (1, 5, 4, 2), _i(1, 2, 2, 1), _i(1, 2, 2, 1)], {"padding": "SAME"}, fixed=[0, 1]),
    Case("MaxPool3DGrad", [_X3, _Y3, _Y3.shape], _POOL3, fixed=[0, 1], dtype="float32"),
    Case("MaxPool3DGradGrad", [_X3, _Y3, _X3.shape], _POOL3, fixed=[0, 1], dtype="float32"),
    Case("MaxPoolWithArgmax", [_X], _POOL, results=[0], second=False),
    Case("AvgPool", [(1, 5, 4, 2)], _POOL),
    Case("AvgPool3D", [(1, 3, 4, 4, 2)], _POOL3),
    Case("AvgPoolGrad", [_i(1, 5, 4, 2), (1, 3, 2, 2)], _POOL),
    Case("AvgPool3DGrad", [_i(1, 3, 4, 4, 2), (1, 2, 2, 2, 2)], _POOL3),
]

_STATS = [np.linspace(0.5, 1.5, 3), np.linspace(-0.5, 0.5, 3)]
_GIVEN = [np.linspace(-0.2, 0.3, 3), np.linspace(0.7, 1.9, 3)]


NORM = [
    Case("BiasAdd", [(2, 2, 3), (3,)]),
    Case("BiasAdd", [(2, 3, 2, 2), (3,)], {"data_format": "NCHW"}, note="NCHW"),
    Case("BiasAddV1", [(2, 2, 3), (3,)]),
    *(
        Case(
            f"FusedBatchNorm{version}",
            [(2, 3, 3, 3), _STATS[0], _STATS[1], np.zeros(0), np.zeros(0)],
            {"is_training": True, "epsilon": 0.1},
            results=[0],
            fixed=[3, 4],
            dtype="float32",
        )
        for version in ("", "V2", "V3")
    ),
    *(
        Case(
            f"FusedBatchNorm{version}",
            [(2, 3, 2, 2), *_STATS, *_GIVEN],
            {"is_training": False, "epsilon": 0.1, "data_format": "NCHW"},
            results=[0],
            fixed=[3, 4],
            dtype="float32",
            note="given",
        )
        for version in ("V2", "V3")
    ),
    *(
        Case(
            f"FusedBatchNormGrad{version}",
            [
                *([(2, 3, 2, 2)] * 2 if first else [(2, 2, 2, 3)] * 2),
                _STATS[0],
                *_GIVEN,
                *([np.zeros(0)] if version == "V3" else []),
            ],
            {"is_training": False, "epsilon": 0.1, "data_format": "NCHW" if first else "NHWC"},
            results=[0, 1, 2],
            fixed=[3, 4, 5],
            dtype="float32",
            note="given" + "NCHW" * first,
        )
        for version in ("", "V2", "V3")
        for first in (False, True)
    ),
    Case("LRN", [(1, 2, 2, 7)], {"depth_radius": 2, "alpha": 0.3}, second=False, dtype="float32"),
]

_PICTURE = (1, 3, 4, 2)

IMAGE = [
    *(
        Case(f"Resize{kind}", [_PICTURE, _i(5, 7)], {"half_pixel_centers": half}, dtype="float32", note=f"{half:d}")
        for kind in ("Bicubic", "Bilinear")
        for half in (False, True)
    ),
    *(Case(f"Resize{kind}Grad", [(1, 5, 7, 2), _PICTURE], dtype="float32", fixed=[1]) for kind in ("Bicubic", "Bilinear")),
    Case(
        "CropAndResize",
        [(2, 4, 5, 2), np.array([[0.1, 0.2, 0.7, 0.83], [0.3, 0.05, 0.9, 0.6]], np.float32), _i(1, 0), _i(3, 3)],
        dtype="float32",
        second=False,
    ),
    Case(
        "ScaleAndTranslate",
        [_PICTURE, _i(5, 7), np.array([1.5, 1.7], np.float32), np.array([0.1, -0.2], np.float32)],
        {"antialias": False},
        dtype="float32",
        second=False,
        fixed=[2, 3],
    ),
    Case("ResizeNearestNeighbor", [_PICTURE, _i(5, 7)]),
    Case("ResizeNearestNeighborGrad", [(1, 5, 7, 2), _i(3, 4)]),
]

_CELLS = {"cell_clip": -1.0, "forget_bias": 0.5}

RNN = [
    *(
        Case(
            op,
            [np.array(3, np.int64), (3, 2, 2), (2, 3), (2, 3), (5, 12), (3,), (3,), (3,), (12,)],
            {**(_CELLS if op == "BlockLSTM" else {"cell_clip": -1.0}), "use_peephole": peephole},
            results=[1, 6],
            second=False,
            dtype="float32",
            among=(-1, 1),
            fixed=[] if peephole else [5, 6, 7],
            note=f"{peephole:d}",
        )
        for op in ("BlockLSTM", "BlockLSTMV2")
        for peephole in (False, True)
    ),
    Case(
        "LSTMBlockCell",
        [(2, 2), (2, 3), (2, 3), (5, 12), (3,), (3,), (3,), (12,)],
        {**_CELLS, "use_peephole": True},
        results=[1, 6],
        second=False,
        dtype="float32",
        among=(-1, 1),
    ),
    Case(
        "LSTMBlockCell",
        [(2, 2), (2, 3), (2, 3), (5, 12), (3,), (3,), (3,), (12,)],
        _CELLS,
        results=[6],
        second=False,
        dtype="float32",
        among=(-1, 1),
        fixed=[4, 5, 6],
        note="plain",
    ),
    Case(
        "GRUBlockCell",
        [(2, 2), (2, 3), (5, 6), (5, 3), (6,), (3,)],
        results=[3],
        second=False,
        dtype="float32",
        among=(-1, 1),
    ),
    *(
        Case(
            f"CudnnRNN{version}",
            [(3, 2, 2), (1, 2, 3), (1, 2, 3), (4 * 3 * (2 + 3 + 2),), *([_i(3, 3)] if version == "V3" else [])],
            results=[0, 1, 2],
            second=False,
            among=(-1, 1),
        )
        for version in ("", "V2", "V3")
    ),
]

CASES = [
    *(*UNARY, *GRADIENT_OPS, *BINARY, *MATMUL, *REDUCE, *SHAPE, *PARTS, *INDEX, *SEGMENT, *LOSSES, *CONV, *POOL, *NORM),
    *(*IMAGE, *RNN),
]
