"""A matrix of numbers as a PNG image with a palette: a few lines, and no library for pictures needed."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

# Stops of cividis (Nuñez, Anderton and Renslow 2018), which people see alike whatever their colour vision.
STOPS = np.array(
    [
        (0, 34, 78),
        (18, 53, 112),
        (59, 73, 108),
        (87, 93, 109),
        (112, 113, 115),
        (138, 134, 120),
        (165, 156, 116),
        (195, 179, 105),
        (225, 204, 85),
        (254, 232, 56),
    ],
    dtype=np.float64,
)


def palette(n_colours: int = 256) -> NDArray[np.uint8]:
    """Return colours from dark blue to yellow, one a row."""
    place = np.linspace(0, len(STOPS) - 1, n_colours)
    columns = [np.interp(place, np.arange(len(STOPS)), channel) for channel in STOPS.T]
    return np.stack(columns, axis=1).round().astype(np.uint8)


def png(levels: NDArray[np.uint8]) -> bytes:
    r"""Return an image of a matrix of palette entries.

    Examples
    --------
    >>> png(np.array([[0, 255]], dtype=np.uint8))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    height, width = levels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each row begins with 0: no filter
    rows[:, 1:] = levels
    parts = [
        (b"IHDR", header),
        (b"PLTE", palette().tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(chunk, parts))


def chunk(part: tuple[bytes, bytes]) -> bytes:
    """Return one part of the file with its length and check sum."""
    kind, content = part
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def data_address(image: bytes) -> str:
    """Return an image as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(image).decode("ascii")
