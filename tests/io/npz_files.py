#!/usr/bin/env python3
"""Writes npz_files.inc: files of NumPy's, for npz_test.cpp. Needs NumPy.

Usage: npz_files.py > npz_files.inc

Element i of an array in C order is i - 2 (unsigned: i, bool: i odd, complex: i - 2 + i j).
"""
import base64
import io

import numpy as np


class Stream(io.RawIOBase):
    """A file that cannot be sought, as a pipe."""

    def __init__(self):
        super().__init__()
        self.bytes = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.bytes += data
        return len(data)


def numbers(dtype, shape, order="C"):
    kind, count = np.dtype(dtype).kind, int(np.prod(shape))
    i = np.arange(count)
    values = {"b": i % 2 == 1, "u": i, "c": i - 2 + 1j * i}.get(kind, i - 2)
    return np.asarray(values).astype(dtype).reshape(shape).copy(order)


ARRAYS = {
    "bool": numbers("?", (5,)), "i8": numbers("i1", (3,)), "i16": numbers(">i2", (2, 2)),
    "i32": numbers("<i4", (2, 3), "F"), "i64": numbers("i8", ()), "u8": numbers("u1", (0, 4)),
    "f16": numbers("f2", (4,)), "f32": numbers(">f4", (3, 2, 2), "F"),
    "f64": numbers("f8", (1, 3), "F"), "größe/c64": numbers("c8", (2, 2)),
    "c128": numbers(">c16", (3,)),
}


def main():
    stream, packed_stream = Stream(), Stream()
    stored, packed = io.BytesIO(), io.BytesIO()
    np.savez(stored, **ARRAYS)
    np.savez(stream, **ARRAYS)
    np.savez_compressed(packed, **ARRAYS)
    np.savez_compressed(packed_stream, **ARRAYS)
    print("// Files that NumPy has written (npz_files.py), as base64.")
    for name, data in (("stored", stored.getvalue()), ("streamed", bytes(stream.bytes)),
                       ("packed", packed.getvalue()), ("packed_stream", packed_stream.bytes)):
        text = base64.b64encode(data).decode()
        lines = [text[i:i + 94] for i in range(0, len(text), 94)]
        print(f"constexpr const char* numpy_{name} =")
        print("\n".join(f'    "{line}"' for line in lines) + ";")


if __name__ == "__main__":
    main()
