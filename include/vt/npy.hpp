// NumPy's .npy and .npz files: `load_npy`, `save_npy`, `load_npz`.
#pragma once

#include <map>
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

/// The arrays of the .npz file at `path`, by name (without ".npy"): what `np.savez` and
/// `np.savez_compressed` write, also to a stream, with arrays as `load_npy` reads. What is
/// compressed needs the system's zlib (libz.so.1), which is loaded then; `VT_ZLIB_LIBRARY` names
/// another one. `np.load` gives the bytes of a member that is no .npy file; here it is refused.
/// Throws: Error(io) naming the file, the member and what is wrong: damage of any kind (each
/// CRC-32 is compared), encryption, other methods of compression.
[[nodiscard]] std::map<std::string, Tensor> load_npz(const std::string& path,
                                                     CallSite where = CallSite::here());

}  // namespace vt
