// Owns the emission of one kernel: its loops, vector bodies, transposed tiles and reductions, on
// top of the values. Internal to the files that implement it.
#pragma once

#include <string>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>
#include "nest.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

using Values = Vec<Value>;

class KernelEmitter {
 public:
  KernelEmitter(IrBuilder& b, const Nest& nest, const Schedule& schedule)
      : b_(b), nest_(nest), schedule_(schedule), values_(b, nest_, schedule) {}
  void emit(const std::string& name);

 private:
  using Mode = StageSchedule::Mode;
  struct Part {
    Vec<int> needed;
    Vec<int> stores;
  };

  // ---- loops (emit/nest.cpp) --------------------------------------------------------------------
  const NestLoop& loop_of(int l) const { return nest_.loops[l]; }
  Value lower(int loop) { return loop == schedule_.parallel_loop ? b_.arg(2) : b_.index(0); }
  Value upper(int loop) {
    return loop == schedule_.parallel_loop ? b_.arg(3) : values_.extent(loop);
  }
  bool nonempty(int loop) const {
    const NestLoop& l = loop_of(loop);
    return loop == schedule_.parallel_loop || (!l.runtime && l.extent > 0) || l.block_of >= 0;
  }
  // Are the iterations of `loop`, in whatever ranges threads take them, whole groups of `count`?
  // Ranges of a vector loop are cut where vectors begin.
  bool whole_groups(int loop, std::int64_t count) const;
  // Opens `loop`, hoists what of `needed` is known then, and runs `body` inside.
  Values open_loop(int loop, const Vec<int>& needed, const Values& carried,
                   FunctionRef<Values(const Values&)> body) {
    return open_loop(loop, lower(loop), upper(loop), nonempty(loop), needed, carried, body);
  }
  Values open_loop(int loop, Value lo, Value hi, bool known_nonempty, const Vec<int>& needed,
                   const Values& carried, FunctionRef<Values(const Values&)> body);
  void open_shared(std::size_t depth);
  void emit_stage(int k);
  void open_spaces(std::size_t depth, const Vec<int>& needed);
  // Runs `body` from lo to hi of an element-wise stage's loop, section by section where conditions
  // depend on it alone.
  void in_sections(int loop, Value lo, Value hi, std::int64_t aligned,
                   FunctionRef<void(Value lo, Value hi, bool whole)> body);
  // All values before all stores: a result may be written over an operand.
  void store_all(const Part& part);

  // Runs `body` on vectors of the vector loop from lo to hi. `copies` bodies in a row take
  // different carried values (their number in `copy`); what is left over goes to copy 0, the last,
  // shorter vector under a mask.
  using VectorBody = FunctionRef<Values(const Values&, int copy)>;
  Values vector_loop(Value lo, Value hi, Values carried, int copies, bool masked,
                     bool known_nonempty, const VectorBody& body);
  Value at_run_time(Value count);
  void elementwise();

  // ---- transposed tiles (emit/tiles.cpp, emit/blocks.cpp) ---------------------------------------
  // Transposing only moves bits: bools and 16-bit floats travel as integers.
  static DType moved_as(DType d) {
    return d == DType::bool_ ? DType::u8 : d == DType::f16 || d == DType::bf16 ? DType::u16 : d;
  }
  DType moved(int value) const { return moved_as(nest_.values[value].dtype); }
  Values transposed(Values rows);
  void tiles();
  void tile(const Vec<int>& tiled, const Values& arrays, Value u, Value v, Value across_end,
            Value along_end);
  void blocks(const Vec<int>& tiled);
  void block(const Vec<int>& tiled, const Values& arrays, Value u, Value v, Value lines,
             Value columns);
  void fill_block(const Vec<int>& tiled, const Values& arrays, Value u, Value v, Value lines,
                  Value columns);
  // Elements from line to line of a block's array: those of one more cache line, as lines a power
  // of two apart share few places of a cache.
  std::int64_t pitch_of(int value) const {
    return std::int64_t{values_.simd_lanes()} * stage_->block_along +
           64 / static_cast<std::int64_t>(size_of(nest_.values[value].dtype));
  }
  void transposed_fold();
  // `whole`: does the square lie in the arrays with all of its lines and columns? None: all squares
  // do.
  void write_tile(const NestStore& store, Value array, Value whole, Value lines, Value columns);
  // Where a square goes: its lines are `pitch` elements apart. What lies `ahead` elements further
  // in each of its rows is asked for, if anything.
  struct Laid {
    Value array;
    std::int64_t pitch = 0, ahead = 0;
  };
  // One beside no others: the same rows are read again for the next square, too far apart for the
  // processor to foresee it.
  Laid alone(Value array) const {
    return {array, values_.simd_lanes(), stage_->fetch_ahead ? values_.simd_lanes() : 0};
  }
  void fill_tile(int tiled, const Laid& to, Value whole, Value lines, Value columns);

  // ---- reductions (emit/reduce.cpp) -------------------------------------------------------------
  const NestReduction& reduction_of(int r) const { return nest_.reductions[r]; }
  // Per reduction one accumulator, or for argmax and argmin two: the extreme and its position.
  Vec<DType> carried_dtypes() const;
  std::size_t carried_per_copy() const { return carried_dtypes().size(); }
  Values initial(int simd_lanes);
  // States of folds are what is carried; they must be known before anything of the iteration is
  // computed.
  void bind_states(const Values& carried, std::size_t first);
  Value wins(Op op, Value x, Value at, Value y, Value where);
  void accumulate(Values& carried, std::size_t first, Value mask);
  void combine_into(Values& a, std::size_t first, const Values& other, std::size_t from);
  Value best_position(Op op, Value x, Value at);
  Value found_place(Value at);
  Value running(Op op, Value x, Value& carried, Value* before);
  // Sums of floats add so many numbers one after the other at most, where more would drift by as
  // many roundings: longer loops go in pieces, each with a sum of its own.
  static constexpr std::int64_t most_additions = 32;
  struct Pieces {
    int depth = -1;                        ///< of the loop in pieces, from the outermost one
    SmallVec<std::int64_t, 2> iterations;  ///< of a piece; before it, of a piece of such pieces
  };
  Pieces pieces(std::int64_t unit) const;
  Values in_pieces(Value lo, Value hi, std::size_t level, const Values& totals,
                   FunctionRef<Values(Value, Value)> piece);
  Values initial_copies();
  Values reduce_loops(std::size_t depth, const Values& carried);
  Values reduce_range(std::size_t depth, Value lo, Value hi, bool known_nonempty,
                      const Values& carried);
  void horizontal();
  void vertical();
  using Slot = FunctionRef<Value(std::size_t, Value)>;
  void rows(std::size_t depth, Value start, Value end, const Slot& slot,
            FunctionRef<void()> finish);
  void rows_of(std::size_t depth, Value from, Value to, bool known_nonempty, Value start, Value end,
               const Slot& slot, FunctionRef<void()> finish);
  void row_vectors(int loop, Value row, int count, Value start, Value end, const Slot& slot);

  IrBuilder& b_;
  Nest nest_;  ///< in a section of a loop: what is left of it there
  const Schedule& schedule_;
  ValueEmitter values_;
  const StageSchedule* stage_ = nullptr;
  int current_ = 0;
  Vec<int> reductions_;
  Pieces pieces_;
  SmallVec<int, 6> spaces_, reduces_;
  Part body_, after_;
};

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
