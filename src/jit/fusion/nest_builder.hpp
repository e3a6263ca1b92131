// NestBuilder: writes the values of a kernel by walking back from what it stores, turning shape ops
// into index expressions.
#pragma once

#include <vt/detail/small_vec.hpp>

#include "../../trace/base/hash_map.hpp"
#include "../nest/loop_nest.hpp"
#include "fuse.hpp"

namespace vt::detail {

using IndexVector = SmallVec<IndexId, 6>;

/// How many windows may hold one element, along each window axis: what an overlap_add adds up. All
/// ones: windows do not overlap.
Shape overlap_iterations(const WindowParams&);

/// Decides, for the builder, what of the Graph is in memory and what is computed on the spot.
struct NestSource {
  const GraphBody* graph = nullptr;
  Vec<int> definition;  ///< per Var: its equation, −1 for inputs
  Vec<char> stored;     ///< per Var: its elements are (also) in a buffer
  Vec<Var> storage;     ///< per Var: whose buffer
};

class NestBuilder {
 public:
  NestBuilder(const NestSource& source, FusedStep& step)
      : source_(source), step_(step), nest_(step.nest) {}

  /// A new loop (none for a baked extent of 1) and its variable.
  int add_loop(std::int64_t extent, bool reduce, bool runtime);
  IndexId variable(int loop) { return nest_.indices.loop(loop, limit_of(loop)); }

  /// This Var is computed here rather than loaded.
  void compute_here(Var v, bool here) { here_[v] = here; }
  /// Reading `v` gives this value, whatever the index.
  void bind(Var v, int value) { bound_[v] = value; }
  void unbind(Var v) { bound_.erase(v); }

  /// The value of `v` at `index`, computed only where `mask` (a bool value; −1: everywhere) holds.
  int value_at(Var v, const IndexVector& index, int mask = -1);
  int buffer_of(Var v, bool written);
  int add_value(NestValue v);
  int literal(Scalar s);
  /// A number that the kernel is given when it runs: those that differ in it only share their code.
  int argument(DType dtype, std::int64_t bits);
  int op(Op op, DType dtype, std::initializer_list<int> operands, ParamsRef params = {});
  int convert(int value, DType dtype);
  int load(Var v, const IndexVector& index, int mask);
  /// The results of a body of scalar operations on these values.
  Vec<int> apply(const GraphBody& body, const Vec<int>& arguments);
  /// What overlap_add adds up: for the element that `index` begins with, its part in the iteration
  /// (see overlap_rounds) that it ends with.
  int overlapping(const Equation& e, const IndexVector& index, int mask = -1);
  /// Where a scatter's update at `index` goes in the operand; `inside`: a bool value, −1 if it
  /// always counts.
  IndexVector scatter_index(const Equation& e, const IndexVector& index, int* inside);
  /// Where dynamic_update_slice puts the element `index` of its update.
  IndexVector window_index(const Equation& e, const IndexVector& index);

  Nest& nest() { return nest_; }
  IndexTable& indices() { return nest_.indices; }
  /// An integer value moved into [0, most] as an index expression; `inside`: a bool value, whether
  /// it was there (on request).
  IndexId clipped(int value, std::int64_t most, int* inside);

 private:
  struct Key {
    Var var;
    int mask;
    IndexVector index;
    bool operator==(const Key&) const = default;
    friend std::size_t key_hash(const Key& k) {
      std::size_t h = static_cast<std::size_t>(k.var) * 0x9e3779b97f4a7c15ull +
                      static_cast<std::size_t>(k.mask + 1);
      for (IndexId i : k.index) h = (h ^ static_cast<std::size_t>(i)) * 0x100000001b3ull;
      return h;
    }
  };
  bool is_here(Var v) const {
    const auto* known = here_.find(v);
    return known != here_.end() && known->second;
  }
  std::int64_t limit_of(int loop) const;
  int compute(const Equation& e, Var v, const IndexVector& index, int mask);
  int elementwise(const Equation& e, DType dtype, SmallVec<int, 3> operands);
  int concatenate(const Equation& e, const IndexVector& index, int mask);
  int pad(const Equation& e, const IndexVector& index, int mask);
  int gather(const Equation& e, const IndexVector& index, int mask);
  int dynamic_slice(const Equation& e, const IndexVector& index, int mask);
  int dynamic_update_slice(const Equation& e, Var v, const IndexVector& index, int mask);
  int full(const FullParams& p);
  int both(int mask_a, int mask_b);
  /// `low ≤ index < high`; −1 if always true, −2 if never.
  int in_range(IndexId index, std::int64_t low, std::int64_t high);

  const NestSource& source_;
  FusedStep& step_;
  Nest& nest_;
  HashMap<Var, bool> here_;
  HashMap<Var, int> bound_;
  HashMap<Var, int> buffers_;
  HashMap<Key, int> memo_;
  HashMap<std::size_t, SmallVec<int, 1>> known_;
  HashMap<std::size_t, bool> counted_;  // equations that are part of the kernel
  CallSite line_;                       // of the equation that is being written
};

}  // namespace vt::detail
