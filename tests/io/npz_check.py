#!/usr/bin/env python3
"""Reads a .npz file that vt has written by Python's zipfile, for npz_test.cpp: prints the sum of
each array (of the real parts, as an integer), and compares with NumPy where it is installed.

Usage: npz_check.py FILE
"""
import ast
import struct
import sys
import zipfile

try:
    import numpy
except ImportError:
    numpy = None
LETTERS = {"|b1": "?", "|i1": "b", "|u1": "B", "<i2": "h", "<u2": "H", "<i4": "i", "<u4": "I",
           "<i8": "q", "<u8": "Q", "<f2": "e", "<f4": "f", "<f8": "d", "<c8": "f", "<c16": "d"}


def main():
    path = sys.argv[1]
    archive = zipfile.ZipFile(path)
    assert archive.testzip() is None, "a CRC-32 is wrong"
    file = open(path, "rb").read()
    arrays = numpy.load(path) if numpy else None
    for info in archive.infolist():
        assert info.filename.endswith(".npy") and info.compress_type == zipfile.ZIP_STORED
        assert info.date_time == (1980, 1, 1, 0, 0, 0)
        assert info.external_attr >> 16 == 0o100644
        bytes_ = archive.read(info)
        name, extra = struct.unpack("<HH", file[info.header_offset + 26:info.header_offset + 30])
        start = info.header_offset + 30 + name + extra
        length, = struct.unpack("<H", bytes_[8:10])
        assert (start + 10 + length) % 64 == 0, "the data begin at no multiple of 64"
        header = ast.literal_eval(bytes_[10:10 + length].decode())
        data = bytes_[10 + length:]
        letter = LETTERS[header["descr"].replace(">", "<")]
        order = ">" if header["descr"][0] == ">" else "<"
        values = struct.unpack(f"{order}{len(data) // struct.calcsize(order + letter)}{letter}",
                               data)
        if "c" in header["descr"]:
            values = values[::2]
        total = sum(int(v) for v in values)
        name = info.filename.removesuffix(".npy")
        if numpy:
            array = arrays[name]
            assert array.shape == header["shape"] and array.dtype.str == header["descr"]
            assert array.flags.c_contiguous and array.tobytes() == data
            mapped = numpy.memmap(path, array.dtype, "r", start + 10 + length, array.shape) \
                if array.size else array
            assert (mapped == array).all() and mapped.ctypes.data % 64 == 0 or not array.size
        shape = "".join(f"{extent} " for extent in header["shape"])
        print(f"{name} of {shape}holds {total}")


if __name__ == "__main__":
    main()
