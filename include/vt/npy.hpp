// NumPy's .npy files: `load_npy` and `save_npy`.
#pragma once

#include <string>

#include <vt/tensor.hpp>

namespace vt {

/// The array in the file at `path`, of any shape, in C or Fortran order and either byte order.
/// dtypes: all of vt's but bf16; others (text, records) are refused.
/// Throws: Error(io) naming the file and what is wrong with it.
[[nodiscard]] Tensor load_npy(const std::string& path, CallSite where = CallSite::here());

/// Writes `t` to `path` in C order (format version 1.0 or 2.0). The file is written beside it,
/// forced to the disk and
/// renamed: a reader sees the old one or the new one, whole, also where several threads or
/// processes save to one path. The mode of a file that is there is kept; a link is replaced, not
/// followed. Forces evaluation. bf16, which NumPy has not, is refused.
/// Throws: Error(io) naming the file.
void save_npy(const std::string& path, const Tensor& t, CallSite where = CallSite::here());

}  // namespace vt
