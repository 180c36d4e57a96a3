"""Which function computes which op.

A kernel is a function ``f(call, *operands)`` registered under the names of the ops that it computes: ``"Relu"`` for the
standard's own domain, ``"com.microsoft:Gelu"`` for another. Operands are arrays, None where omitted, lists for sequences; it
returns one result or a tuple of results. :class:`~.call.Call` says what else it can ask for.

A kernel whose arrays are often small can be :func:`bound`: then what attributes and constants decide is decided once.
"""

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

#: The modules that hold kernels.
_MODULES = (
    *("elementwise", "binary", "cast", "matmul", "reduce", "shape", "constant", "quantize", "softmax", "conv", "pool", "resize"),
    *("image", "signal", "pictures", "sample", "norm", "control", "sequence", "gather", "scatter", "choose", "cumulative"),
    *("boxes", "text", "random", "rnn", "attention", "loss", "training"),
    # ai.onnx.ml
    *("ml", "linear_models", "trees"),
    # com.microsoft
    *("contrib", "block_quantized", "crop", "experts", "fused", "group_query_attention", "linear_attention", "packing"),
    *("position_bias", "qlinear", "qmatmul", "rotary", "runtime_attention"),
    # TensorFlow
    *("tf_activation", "tf_arrays", "tf_batchnorm", "tf_binary", "tf_blocks", "tf_cast", "tf_choose", "tf_control"),
    *("tf_conv", "tf_conv_grad", "tf_counting", "tf_crop", "tf_ctc", "tf_cudnn", "tf_cudnn_grad", "tf_dilation"),
    *("tf_einsum", "tf_fourier", "tf_fused", "tf_gamma", "tf_gather", "tf_image", "tf_join", "tf_linalg", "tf_lists"),
    *("tf_math", "tf_matmul", "tf_optimizers", "tf_optional", "tf_pad", "tf_pool", "tf_pool_grad", "tf_random"),
    *("tf_reduce", "tf_rnn", "tf_scale", "tf_scatter", "tf_segment", "tf_shape", "tf_slice", "tf_softmax", "tf_special"),
    *("tf_stack", "tf_variables"),
    # ampgraph's own
    "apply_gradients",
)


class Kernel(NamedTuple):
    """A registered kernel.

    Attributes:
        function: Computes the op.
        moves: Whether it only moves or chooses elements, so that it takes every dtype as it is.
        inplace: Whether it can write its result over an operand, which is then ``call.out``.
        elementwise: Whether every element of its result depends only on the elements of the operands, broadcast, at its place.
        bind: Makes a plain function of a node: see :func:`bound`.
        is_stateful: Whether that function takes first what variables hold.
    """

    function: Callable[..., Any]
    moves: bool
    inplace: bool
    elementwise: bool
    bind: Callable[..., Any] | None = None
    is_stateful: bool = False


_F = TypeVar("_F", bound=Callable[..., Any])
_kernels: dict[str, Kernel] = {}


def kernel(*names: str, moves: bool = False, inplace: bool = False, elementwise: bool = False) -> Callable[[_F], _F]:
    """Register the decorated function as the kernel of the named ops.

    Args:
        names: ``"Op"`` or ``"domain:Op"``.
        moves: Whether it only moves or chooses elements. Others get operands narrower than float32 (or int8) as float32 (or
            int8 and uint8), and their results are rounded once to the declared dtypes.
        inplace: Whether it writes its result to ``call.out`` where that is given; the result then has the shape and dtype of
            all operands, broadcast, and is elementwise.
        elementwise: Whether every element of the result depends only on the elements of the operands, broadcast, at its place.
    """

    def register(function: _F) -> _F:
        for name in names:
            if name in _kernels:
                raise ValueError(f"Two kernels compute op {name!r}. Received: {function} and {_kernels[name].function}")
            _kernels[name] = Kernel(function, moves, inplace, elementwise or inplace)
        return function

    return register


def bound(*names: str, is_stateful: bool = False) -> Callable[[_F], _F]:
    """Register the decorated function as what binds the kernels of the named ops, which are registered already.

    ``bind(call)`` gets a call without operands, but :meth:`.Call.constant` tells those that are constants. It returns a function of
    the operands that has the same results as the kernel, to the last bit, and does not write over operands; or None, where only the
    kernel will do. Where that function raises anything, the kernel is asked after it, and its error is the one that users see.

    Args:
        names: As for :func:`kernel`.
        is_stateful: Whether the function takes first what variables hold, a dict by handles.
    """

    def register(function: _F) -> _F:
        for name in names:
            _kernels[name] = _kernels[name]._replace(bind=function, is_stateful=is_stateful)
        return function

    return register


def find_kernel(domain: str, op_type: str) -> Kernel | None:
    """Return the kernel of an op, or None when there is none."""
    return all_kernels().get(f"{domain}:{op_type}" if domain else op_type)


@functools.cache
def all_kernels() -> dict[str, Kernel]:
    """Return every kernel by the name of its op."""
    package = __name__.rpartition(".")[0]
    for name in _MODULES:
        import_module(f"{package}.{name}")
    return _kernels
