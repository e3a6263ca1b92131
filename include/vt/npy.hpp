// NumPy's files: .npy with one array, .npz with several or with a tree.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <vt/tree.hpp>

namespace vt {

/// The array in the file at `path`, of any shape, in C or Fortran order and either byte order.
/// dtypes: all of vt's but bf16; others (text, records) are refused.
/// Throws: Error(io) naming the file and what is wrong with it.
[[nodiscard]] Tensor load_npy(const std::string& path, CallSite where = CallSite::here());

/// Writes `t` to `path` in C order (format version 1.0 or 2.0). The file is written beside it,
/// forced to the disk and renamed: a reader sees the old one or the new one, whole, also where
/// several threads or processes save to one path. The mode of a file that is there is kept; a link
/// is replaced, not followed. Forces evaluation. bf16, which NumPy has not, is refused. Throws:
/// Error(io) naming the file.
void save_npy(const std::string& path, const Tensor& t, CallSite where = CallSite::here());

/// The arrays of the .npz file at `path`, by name (without ".npy"): what `np.savez` and
/// `np.savez_compressed` write, also to a stream, with arrays as `load_npy` reads. What is
/// compressed needs the system's zlib (libz.so.1), which is loaded then; `VT_ZLIB_LIBRARY` names
/// another one. `np.load` gives the bytes of a member that is no .npy file; here it is refused.
/// Throws: Error(io) naming the file, the member and what is wrong: damage of any kind (each
/// CRC-32 is compared), encryption, other methods of compression.
[[nodiscard]] std::map<std::string, Tensor> load_npz(const std::string& path,
                                                     CallSite where = CallSite::here());

namespace detail {
/// A .npz file of a tree that is being written. Its parts are named by their paths.
class NpzTreeWriter {
 public:
  NpzTreeWriter();
  ~NpzTreeWriter();
  void add(const std::string& path, const Tensor& value);
  void write(const std::string& file, CallSite where) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};
/// One that is being read: all parts are told first, and compared with the file.
class NpzTreeReader {
 public:
  /// Throws: Error(io) if it cannot be read.
  NpzTreeReader(const std::string& file, CallSite where);
  ~NpzTreeReader();
  /// An array like this one; any, where it is empty.
  void expect(const std::string& path, const Tensor& like);
  void expect_number(const std::string& path);
  void expect_bits(const std::string& path, std::size_t count);
  /// Throws: Error(io) that names what differs, unless the file has exactly these parts.
  void check() const;
  Tensor tensor(const std::string& path) const;
  /// Throws: Error(io) where `dtype` does not hold it.
  Tensor number(const std::string& path, DType dtype) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// visit(part, path) for each Tensor, number, enum and list of bools of a tree.
template <class T, class Visit>
void for_each_stored(T& tree, const std::string& path, Visit&& visit) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, Tensor> || Number<Plain> || std::is_enum_v<Plain> ||
                is_bits<Plain>)
    visit(tree, path);
  else if constexpr (!is_static<Plain>)
    for_each_child(tree,
                   [&](auto& child, auto&& name) { for_each_stored(child, path + name(), visit); });
}
/// The number that stands for a number or an enum.
template <class T>
struct NumberFor {
  using type = T;
};
template <class T>
  requires std::is_enum_v<T>
struct NumberFor<T> : std::underlying_type<T> {};
template <class T>
using NumberOf = typename NumberFor<T>::type;
}  // namespace detail

/// Writes a tree to the .npz file at `path`, as save_npy writes a file: an array for each Tensor,
/// with its path as the name ("layers[1].weights", see tree_paths; of a map the key, "weights"; of
/// a Tensor alone "arr_0"), and one for each number, bool, enum (as its integer) and
/// std::vector<bool>. Texts are not written.
/// Forces evaluation, of all at once.
/// Throws: Error(io) naming the file, and for bf16; Error(value) for empty Tensors.
/// Source: NumPy `savez`.
template <class T>
void save_npz(const std::string& path, const T& tree, CallSite where = CallSite::here()) {
  using Check = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::save_npz", Check);
  if constexpr (Check::holds) {
    detail::NpzTreeWriter writer;
    detail::for_each_stored(tree, "", [&]<class P>(const P& part, const std::string& name) {
      if constexpr (std::is_same_v<P, Tensor>) writer.add(name, part);
      else if constexpr (detail::is_bits<P>) writer.add(name, tensor(part));
      else writer.add(name, tensor(static_cast<detail::NumberOf<P>>(part)));
    });
    writer.write(path, where);
  }
}

/// The tree that is built as `like` with what the .npz file at `path` holds. Names, dtypes and
/// shapes of its Tensors must be those of the file, numbers must fit; a Tensor of `like` that is
/// empty takes any array. Texts are those of `like`.
/// Throws: Error(io) naming the file and all that differs; as load_npz for files that are damaged.
template <class T>
[[nodiscard]] T load_npz(const std::string& path, const T& like,
                         CallSite where = CallSite::here()) {
  using Check = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::load_npz", Check);
  T tree = detail::copied(like);
  if constexpr (Check::holds) {
    detail::NpzTreeReader reader(path, where);
    detail::for_each_stored(like, "", [&]<class P>(const P& part, const std::string& name) {
      if constexpr (std::is_same_v<P, Tensor>) reader.expect(name, part);
      else if constexpr (detail::is_bits<P>) reader.expect_bits(name, part.size());
      else reader.expect_number(name);
    });
    reader.check();
    detail::for_each_stored(tree, "", [&]<class P>(P& part, const std::string& name) {
      if constexpr (std::is_same_v<P, Tensor>) {
        part = reader.tensor(name);
      } else if constexpr (detail::is_bits<P>) {
        part = reader.tensor(name).to_vector<bool>(where);
      } else if constexpr (!std::is_const_v<P>) {
        using N = detail::NumberOf<P>;
        const Tensor number = reader.number(name, dtype_of<N>());
        part = static_cast<P>(number.item<N>(where));
      }
    });
  }
  return tree;
}

}  // namespace vt
