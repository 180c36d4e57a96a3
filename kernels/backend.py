"""Where programs run: NumPy on the CPU, or CuPy on a GPU. The only module that looks for CuPy."""

import functools
from typing import Any, NamedTuple

from ..graph.errors import KernelError

#: The oldest GPUs programs run on: those with tensor cores.
LEAST_CAPABILITY = (7, 0)


class Backend(NamedTuple):
    """An array module and the device its arrays live on.

    Attributes:
        name: ``"cpu"``, or ``"gpu:0"`` …
        xp: The array module.
    """

    name: str
    xp: Any


def get_backend(device: str = "cpu") -> Backend:
    """Return the backend for a device.

    Args:
        device: ``"cpu"``; ``"gpu"`` or ``"gpu:N"``; or ``"auto"``: the first GPU that can be used, else the CPU.

    Raises:
        KernelError: If the device is unknown, missing or too old.
    """
    import numpy as np

    kind, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind == "cpu" and not number:
        _keep_freed_memory()
        return Backend("cpu", np)
    if kind not in ("gpu", "auto") or (number and (kind == "auto" or not number.isdecimal())):
        raise KernelError(f"A device is 'cpu', 'gpu', 'gpu:N' or 'auto'. Received: {device!r}")
    found = _find_gpu(int(number or 0))
    if isinstance(found, Backend):
        return found
    if kind == "auto":
        return get_backend("cpu")
    raise KernelError(f"Device {device!r} cannot be used: {found} Run on 'cpu'.")


@functools.cache
def _keep_freed_memory() -> None:
    """Free an array of 32 MB, once in a process, of which nothing was touched.

    The allocator of the GNU C library learns from it: it keeps freed memory of arrays up to that size for the next ones, and does
    not give it back to the system, whose fresh pages take longer than most kernels compute in them.
    """
    import numpy as np

    np.empty((32 << 20) - 8192, np.uint8)


def _find_gpu(number: int) -> Backend | str:
    """Return the backend of a GPU, or why there is none."""
    try:
        import cupy  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        return f"CuPy cannot be imported ({error})."
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no GPU ({error})."
    if number >= count:
        return f"there are {count} GPUs, counted from 0."
    text = str(cupy.cuda.Device(number).compute_capability)
    capability = (int(text[:-1]), int(text[-1]))
    if capability < LEAST_CAPABILITY:
        least = ".".join(map(str, LEAST_CAPABILITY))
        return f"its compute capability is {capability[0]}.{capability[1]}, and {least} is needed."
    return Backend(f"gpu:{number}", cupy)
