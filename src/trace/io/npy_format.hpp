// NumPy's .npy format, which is also that of the members of .npz files. Format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <string>
#include <string_view>

#include "../ir/aval.hpp"
#include "../record/node.hpp"
#include "input_file.hpp"

namespace vt::detail::npy {

/// What such a file begins with.
constexpr std::string_view magic = "\x93NUMPY";

/// What the header says of the data behind it.
struct ArrayHeader {
  Aval aval;
  bool columns_first = false;   ///< Fortran's order
  bool foreign_endian = false;  ///< not this machine's byte order
};

/// Reads up to the data. Throws: Error(io), also for dtypes that vt has not and for sizes that
/// cannot be.
ArrayHeader read_header(ByteSource&, const FileUse&);
/// Reads the data, which the source must hold whole.
Tensor read_data(ByteSource&, const ArrayHeader&, const FileUse&);

/// The value of `buffer`, which holds some of the data as they lie in the file: of an array of this
/// dtype and shape, in the order and the byte order of the header.
Tensor from_data(BufferRef buffer, const Aval&, const ArrayHeader&);
/// Throws: Error(io) unless the source holds all data of the array.
void check_length(const ByteSource&, const ArrayHeader&, const FileUse&);

/// The header of an array in C order, in this machine's byte order; a multiple of 64 bytes long.
/// Throws: Error(io) for bf16.
std::string header_of(const Aval&, const FileUse&);
/// The bytes behind the header.
std::string_view data_of(const BufferRef&, const Aval&);

}  // namespace vt::detail::npy
