"""The operations that NumPy lacks, for functions that become graphs: ``ampgraph.nn``.

All take symbolic arrays; activations, softmaxes and normalizations take NumPy arrays too, outside of a trace. Weights and biases
are arrays or variables like any other operand.
"""

from .activation import (
    elu,
    erf,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
)
from .attention import attention
from .convolution import avg_pool, bias_add, conv2d, depthwise_conv2d, max_pool
from .dropout import dropout
from .embedding import embedding, one_hot
from .loss import softmax_cross_entropy, sparse_softmax_cross_entropy
from .normalization import batch_norm, layer_norm
from .recurrent import gru, lstm

__all__ = [
    "attention",
    "avg_pool",
    "batch_norm",
    "bias_add",
    "conv2d",
    "depthwise_conv2d",
    "dropout",
    "elu",
    "embedding",
    "erf",
    "gelu",
    "gru",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "lstm",
    "max_pool",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmax_cross_entropy",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy",
]
