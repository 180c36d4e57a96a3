"""Files of arrays, ``.npy`` and ``.npz``: read ones are as hostile as any, so plain numbers only, and one error for all that can be wrong."""

import io
from collections.abc import Mapping
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


def packed_arrays(arrays: Mapping[str, Any]) -> bytes:
    """Return the ``.npz`` file of arrays by name, whatever their names are, as every NumPy writes it.

    Raises:
        ValueError: If an array holds objects, which files of plain numbers do not.
    """
    from zipfile import ZipFile

    import numpy as np

    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()
