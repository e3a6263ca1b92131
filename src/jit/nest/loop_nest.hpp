// Nest: one kernel as data, the same for every backend: loops, index expressions, values in single
// assignment form, reductions and stores. Its text is the kernel's identity in the caches.
#pragma once

#include <cstdint>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"
#include "index_table.hpp"

namespace vt::detail {

struct NestLoop {
  std::int64_t extent = 0;
  bool runtime = false;  ///< the extent is a kernel argument; `extent` is that of the first use
  bool reduce = false;   ///< results do not depend on it
  /// This loop runs inside one block of a longer one: block number = loop `block_of`, which has
  /// blocks of `block` iterations, and `total` iterations in all, so that the last block may be
  /// shorter. −1: an ordinary loop.
  int block_of = -1;
  std::int64_t block = 0;
  std::int64_t total = 0;  ///< of the loop that was cut; runtime if `runtime`
};

struct NestBuffer {
  DType dtype = DType::f32;
  bool written = false;
  /// buffers of equal number may be the same memory (updated in place); others never overlap
  int alias = 0;
  /// > 0: an array of so many elements of the thread's own, overwritten for every iteration of the
  /// shared loops
  std::int64_t local = 0;
};

struct NestValue {
  enum class Kind : std::uint8_t {
    literal,   ///< a number baked into the code
    argument,  ///< a number given at run time
    index,     ///< an index expression as a number
    in_range,  ///< low ≤ index < high, a bool
    load,      ///< buffer[index]; 0 where the mask is false (nothing is read there)
    op,        ///< an element-wise op of values
    reduced,   ///< the result of a reduction, known after the stage's reduce loops
    /// what a fold has so far, before this iteration; of a running reduction, this iteration
    /// included, unless low is 1
    state,
  } kind = Kind::op;
  Op op = Op::input;
  DType dtype = DType::f32;
  SmallVec<int, 3> operands;  ///< values
  ParamsRef params;           ///< op: integer_pow, reduce_precision …
  Scalar literal;
  int argument = -1;  ///< argument: its number; reduced, state: number of the reduction
  int buffer = -1;
  IndexId index = -1;
  int mask = -1;  ///< load: a bool value, or −1
  std::int64_t low = 0, high = 0;
  CallSite where;  ///< the user's line; neither printed nor compared
};

struct NestReduction {
  /// of the family reduce. reduce: any function of what was there and what comes, in the loops'
  /// order, one after the other
  Op op = Op::reduce_sum;
  int value = -1;  ///< what is accumulated; reduce: the next state
  /// argmax, argmin: the index value that belongs to it; the result is the winner's
  int position = -1;
  int stage = 0;
  DType dtype = DType::f32;  ///< of the accumulator (argmax, argmin: of the position)
  IndexId kept = -1;         ///< row-major offset of the result among the loops that are kept
  int init = -1;             ///< reduce: the state before the first iteration, the same for all
  int state = -1;            ///< reduce or running: the value that stands for it inside the loops
  /// its result so far is used in every iteration, which therefore keep their order
  bool running = false;
  int before = -1;  ///< running: the value that stands for its result before this iteration
  CallSite where;   ///< the user's line
};

/// Whether its iterations need what is there before each of them.
inline bool goes_one_by_one(const NestReduction& r) { return r.op == Op::reduce || r.before >= 0; }

struct NestStore {
  int buffer = -1;
  IndexId index = -1;
  int value = -1;
  int stage = 0;
  bool after = false;  ///< after the stage's reduce loops instead of inside them
  /// An update: buffer[index] = combine(buffer[index], value), one after the other in the loops'
  /// order. Op::input: no update; Op::select: the value replaces what is there.
  Op update = Op::input;
  int mask = -1;  ///< of an update: a bool value, or −1
};

/// A stage is a set of loops with its reductions and stores. All stages run, in order, inside the
/// shared loops.
struct NestStage {
  SmallVec<int, 6> loops;  ///< outermost first as the arrays lie in memory; without the shared ones
};

struct Nest {
  IndexTable indices;
  Vec<NestLoop> loops;
  Vec<NestBuffer> buffers;
  Vec<NestValue> values;
  Vec<NestReduction> reductions;
  Vec<NestStore> stores;
  SmallVec<int, 6> shared;
  Vec<NestStage> stages;
  /// scalars given at run time; they follow the loops' extents in the kernel's arguments
  int arguments = 0;
  int fused_ops = 0;  ///< equations in it

  /// Stable text: equal text, equal kernel (extents of runtime loops are not part of it).
  std::string str() const;
};

/// "[d0, d1]" of one value, "mul v0 v1".
std::string describe_value(const Nest&, int value);

/// Adds what a store needs: its value, and for an update also its mask and the values in its index.
void add_roots(const Nest&, const NestStore&, Vec<int>& roots);
/// Adds what a reduction accumulates.
void add_roots(const NestReduction&, Vec<int>& roots);
/// The values that `roots` need, in order, without going below `reduced` values.
Vec<int> needed_values(const Nest&, const Vec<int>& roots);
/// Loops that a value depends on, as a bit mask over loop numbers (at most 64 loops); a reduction's
/// result depends on the loops it was kept for.
Vec<std::uint64_t> loop_dependences(const Nest&);

}  // namespace vt::detail
