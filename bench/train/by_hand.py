"""Training steps as a NumPy programmer writes them: float32, in place where that is easy, nothing computed that nobody needs.

Weights are lists of arrays, which a step changes: those of each layer, kernel and bias. A step returns the loss.
"""

from typing import Any

import numpy as np

RATE = np.float32(0.1)


def mlp(weights: list[Any], x: Any, y: Any) -> Any:
    """Dense layers with relu, the last with softmax; the loss is the mean squared error."""
    inputs, count = [x], len(weights) // 2
    for i in range(count):
        z = inputs[-1] @ weights[2 * i]
        z += weights[2 * i + 1]
        inputs.append(np.maximum(z, 0, out=z) if i < count - 1 else softmax(z))
    p = inputs.pop()
    error = p - y
    loss = np.mean(np.square(error))
    error *= np.float32(2 / error.size)
    dz = (error - (error * p).sum(-1, keepdims=True)) * p
    for i in reversed(range(count)):
        dx = dz @ weights[2 * i].T if i else None
        weights[2 * i] -= RATE * (inputs[i].T @ dz)
        weights[2 * i + 1] -= RATE * dz.sum(0)
        if dx is not None:
            dx *= inputs[i] > 0
            dz = dx
    return loss


def cnn(weights: list[Any], x: Any, labels: Any) -> Any:
    """Two convolutions, 3 by 3, each with relu and a pool, 2 by 2; a dense layer and the cross entropy of its softmax."""
    w1, b1, w2, b2, w3, b3 = weights
    columns1 = windows(x)
    y1 = convolve(columns1, w1, b1, x.shape)
    p1 = pool(y1)
    columns2 = windows(p1)
    y2 = convolve(columns2, w2, b2, p1.shape)
    p2 = pool(y2)
    flat = p2.reshape(len(x), -1)
    p = softmax(flat @ w3 + b3)
    rows = np.arange(len(x))
    loss = -np.mean(np.log(p[rows, labels]))
    p[rows, labels] -= 1
    p /= np.float32(len(x))
    dflat = p @ w3.T
    w3 -= RATE * (flat.T @ p)
    b3 -= RATE * p.sum(0)
    dy2 = pool_gradient(y2, p2, dflat.reshape(p2.shape))
    dp1 = images_gradient(dy2, w2, p1.shape)
    w2 -= RATE * (columns2.T @ dy2).reshape(w2.shape)
    b2 -= RATE * dy2.sum(0)
    dy1 = pool_gradient(y1, p1, dp1)
    w1 -= RATE * (columns1.T @ dy1).reshape(w1.shape)
    b1 -= RATE * dy1.sum(0)
    return loss


def softmax(z: Any) -> Any:
    """Softmax of rows, in place."""
    z -= z.max(-1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(-1, keepdims=True)
    return z


def windows(x: Any) -> Any:
    """Return the windows of 3 by 3 pixels of images [N, H, W, C] as rows, zeros around the images."""
    n, h, w, c = x.shape
    padded = np.zeros((n, h + 2, w + 2, c), x.dtype)
    padded[:, 1:-1, 1:-1] = x
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.ascontiguousarray(seen.transpose(0, 1, 2, 4, 5, 3)).reshape(n * h * w, 9 * c)


def images_gradient(dy: Any, weights: Any, shape: Any) -> Any:
    """Return the gradient of a convolution by its images: a product for each tap, added where the tap was."""
    n, h, w, c = shape
    padded = np.zeros((n, h + 2, w + 2, c), dy.dtype)
    for i in range(3):
        for j in range(3):
            padded[:, i : i + h, j : j + w] += (dy @ weights[i, j].T).reshape(shape)
    return padded[:, 1:-1, 1:-1]


def convolve(columns: Any, w: Any, b: Any, shape: Any) -> Any:
    """Return a convolution with relu behind it."""
    y = columns @ w.reshape(-1, w.shape[-1])
    y += b
    return np.maximum(y, 0, out=y).reshape(*shape[:3], -1)


def pool(y: Any) -> Any:
    """Return the greatest of every 2 by 2 pixels."""
    rows = np.maximum(y[:, ::2], y[:, 1::2])
    return np.maximum(rows[:, :, ::2], rows[:, :, 1::2])


def pool_gradient(y: Any, p: Any, dp: Any) -> Any:
    """Return the gradient by what :func:`convolve` added up, as rows: where several pixels are the greatest, these are 0."""
    dy = np.empty_like(y)
    dp = dp * (p > 0)
    for i in range(2):
        for j in range(2):
            np.multiply(dp, y[:, i::2, j::2] == p, out=dy[:, i::2, j::2])
    return dy.reshape(-1, y.shape[-1])
