"""Reading ``.npy`` and ``.npz`` files, which are as hostile as any: plain numbers only, and one error for all that can be wrong."""

from os import PathLike
from typing import Any

from ..errors import FormatError


def load_arrays(path: str | PathLike[str]) -> Any:
    """Return the array of a ``.npy`` file, or a dict of those of a ``.npz`` file by name; objects, which could run code, are refused.

    Raises:
        FormatError: If the file is damaged, holds something else, or numbers of no known kind.
        OSError: If it cannot be read.
        MemoryError: If it says that it holds more than memory does.
    """
    import zlib
    from tokenize import TokenError
    from zipfile import BadZipFile

    import numpy as np

    # Damaged headers and archives, places outside the file (OSError), compression that nobody knows (RuntimeError's
    # NotImplementedError), encrypted members (RuntimeError).
    damages = (ValueError, EOFError, OSError, BadZipFile, zlib.error, TokenError, SyntaxError, RuntimeError)

    with open(path, "rb") as file:
        if file.read(6)[:2] not in (b"\x93N", b"PK"):
            raise FormatError(f"{path} is no .npy or .npz file.")
        file.seek(0)
        try:
            data = np.load(file, allow_pickle=False)
            if isinstance(data, np.ndarray):
                return data
            with data:
                return {name: data[name] for name in data.files}
        except damages as error:
            raise FormatError(f"{path} is no .npy or .npz file of plain numbers: {error}") from error
