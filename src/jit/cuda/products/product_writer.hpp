// ProductWriter: writes the text of a product's kernel: c = Σ a · b over axes of four kinds (batch,
// rows, columns, depth), each of which may be an axis of an image.
#pragma once

#include <string>

#include <vt/detail/small_vec.hpp>

#include "../source/element_source.hpp"
#include "../source/source_writer.hpp"
#include "product_source.hpp"

namespace vt::detail::cuda::product_text {

std::string multiply_add(DType d, const std::string& sum, const std::string& a,
                         const std::string& b);
/// An operand's element as a number of the sums.
std::string element(DType memory, DType sums, const std::string& place);

constexpr int threads = 256;

/// An axis with its distances; `window` ≥ 0: it counts that window's results (of c) or its places
/// (of depth).
struct Axis {
  std::int64_t extent, a, b, c;
  int window = -1;
};
using AxisList = SmallVec<Axis, 8>;

std::int64_t iterations_of(const AxisList&);
/// The least distance of an axis, but for 0.
std::int64_t nearest(const AxisList&, std::int64_t Axis::* distance);
/// The longest distance first.
void sort_by(AxisList&, std::int64_t Axis::* distance);

class ProductWriter : SourceWriter {
 public:
  ProductWriter(const ConvSpec& spec, bool tensor_cores, const ProductEpilogue* epilogue);
  std::int64_t dense_columns() const;

  ProductSource write();

 private:
  void unrolled(const std::string& s);

  // A dilated image is taken phase by phase: results between two elements see places of the
  // filter that no other phase sees, and all others meet zeros. With steps or gaps in the filter as
  // well, places are asked one by one whether they meet an element.
  bool dilated(int window) const { return s_.windows[window].lhs_dilation > 1; }
  bool phased(int window) const;
  std::int64_t places(int window) const;
  AxisList depth_axes() const;

  void begin();
  void choose_parts(std::int64_t parts);
  // What the kernel's last parameters are, and a finished sum's way to memory; of a sum that was
  // cut in parts both are the second kernel's.
  std::string last_parameters() const;
  std::string store(const std::string& row, const std::string& column,
                    const std::string& sum) const;
  std::string finished(const std::string& row, const std::string& column,
                       const std::string& sum) const;

  /// Numbers `prefix`0 … of all axes from a number of all their iterations, the last axis the
  /// fastest.
  void decode(const std::string& of, const AxisList& axes, const std::string& prefix);
  static std::string offset(const std::string& start, const AxisList& axes,
                            const std::string& prefix, std::int64_t Axis::* distance);
  /// Where the window's first place stands, of result `o`; of a phase: of result `o` of phase
  /// `phase`.
  std::string first_place(int window, const std::string& o, const std::string& phase) const;
  /// Declares the element e`window` of the image that place `p` meets, and returns on what it
  /// depends that there is one.
  std::string meet(int window, const std::string& first, const std::string& p);
  void first_of_phase(int window, const std::string& phase);

  // An element of c per thread (and part of the sum).
  void elements();

  // A block makes a tile of `side` × `side`, a thread `own` × `own` of it; `deep` steps of the sum
  // at a time lie in shared memory. Threads read an operand along the axis on which it is dense, so
  // that a warp reads whole lines.
  void tiles();

  void multiply(int deep, int own);
  // A warp has `each` × `each` products of 16 × 16 by 16 × 8.
  void multiply_on_tensor_cores(int deep, int each);

  // What a thread reads of an operand, four numbers (eight of 16 bits) for each iteration: always
  // the same rows (of b: columns), or the same places of the depth.
  void operand_lines(char which, bool by_k, int side, int deep, const AxisList& axes,
                     std::int64_t extent, const SmallVec<std::string, 3>& phases);
  void fetch(char which, bool by_k, int side, int deep, const AxisList& depth);

  // The parts of each element's sum, the first one first.
  void join();

  ConvSpec s_;
  AxisList batch_, rows_, columns_, depth_;  // but for windows
  std::int64_t results_ = 0, depth_count_ = 0;
  bool wide_ = false, tensor_ = false;
  const char* sums_ = nullptr;
  const ProductEpilogue* epilogue_ = nullptr;
  ProductSource p_;
};

}  // namespace vt::detail::cuda::product_text
