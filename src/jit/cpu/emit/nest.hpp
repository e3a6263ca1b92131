// From a loop nest and its schedule to LLVM code: one function per nest.
#pragma once

#include <cstdint>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../nest/loop_nest.hpp"
#include "../../nest/schedule.hpp"
#include "../llvm/ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

/// What the vector accesses of a kernel are, for the counters.
struct AccessCounts {
  int contiguous = 0, strided = 0, gathers = 0, scalarised = 0;
};
AccessCounts count_accesses(const Nest&, const Schedule&);

/// Emits `void name(...)`.
void emit_nest(IrBuilder&, const std::string& name, const Nest&, const Schedule&);

/// An element-wise op on registers of equal SIMD lanes; `dtype` is the result's.
Value emit_op(IrBuilder&, Op op, DType dtype, const ParamsRef& params,
              std::span<const Value> operands);
/// The same where the code has so many uses of it: a long op that has several is a function, which
/// they call.
Value emit_op(IrBuilder&, Op op, DType dtype, const ParamsRef& params,
              std::span<const Value> operands, std::int64_t uses);

/// Emits the values of a nest: each once per scope, as a scalar where it is the same for all
/// SIMD lanes.
class ValueEmitter {
 public:
  ValueEmitter(IrBuilder& builder, const Nest& nest, const Schedule& schedule);

  /// Kernel parameters and extents; call once inside the function.
  void load_arguments();
  Value extent(int loop);
  /// A distance as an index that the code need not be made for, unless it is a small one.
  Value number(std::int64_t x);
  /// The same of a number of iterations of `loop`.
  Value iterations(std::int64_t x, int loop);
  void set_vector_loop(int loop);  ///< −1: values are scalars
  int vector_loop() const { return vector_loop_; }
  int simd_lanes() const { return vector_loop_ >= 0 ? schedule_.simd_lanes : 1; }

  /// the loop is open; for the vector loop, `position` is that of SIMD lane 0
  void enter(int loop, Value position);
  void leave(int loop);
  void set_mask(Value mask) { mask_ = mask; }  ///< of the tail; none: all SIMD lanes
  Value mask() const { return mask_; }
  Value position(int loop) const { return positions_[loop]; }

  /// What was emitted so far; giving it back forgets what came after (values emitted inside a loop
  /// are not known outside).
  Vec<Value> known() const { return known_; }
  void restore(Vec<Value> known) { known_ = std::move(known); }
  void bind(int value, Value v) { known_[value] = v; }
  bool reads_transposed(int value, const StageSchedule& s) const {
    return vt::detail::reads_transposed(nest_, nest_.values[value], s, schedule_.simd_lanes,
                                        dependences_);
  }
  /// A vector along the tile loop of a transposed load, at SIMD lane `simd_lane` of the vector
  /// loop, read as elements of `d`. At an edge: with a mask, and of `rows` SIMD lanes; beyond them
  /// it is any numbers.
  Value load_row(int value, int simd_lane, DType d);
  Value load_row(int value, int simd_lane, DType d, Value mask, Value rows);
  /// Asks for what a load on end reads an iteration of `loop` later, if that is elsewhere.
  void fetch_iteration(int value, int loop);
  bool writes_transposed(const NestStore& store, const StageSchedule& s) const {
    return lies_transposed(nest_, store.index, s, schedule_.simd_lanes, dependences_);
  }
  /// Where the row of SIMD lane `simd_lane` of a transposed store begins.
  Value row_of(const NestStore&, int simd_lane);
  /// Asks for what load_row reads `further` elements on; `near`: into the first-level cache.
  void fetch_row(int value, int simd_lane, std::int64_t further, bool near);
  /// Emits the values that the index of a load is made of, so that several places may use them.
  void prepare_index(int value) {
    nest_.indices.each_value(nest_.values[value].index, [&](int v) { get(v); });
  }
  void bind_result(int reduction, Value v);  ///< the value of `reduced` values of this reduction
  void stage_done(int stage) { stages_done_ = stage + 1; }

  /// Emits those of `values` that no loop still to be opened changes, nor the iterations of a
  /// running reduction.
  void hoist(const Vec<int>& values);
  Value get(int value);             ///< scalar or `lanes()` wide
  Value get_simd_lanes(int value);  ///< `lanes()` wide
  Value widen(Value v) { return v.simd_lanes == simd_lanes() ? v : b_.splat(v, simd_lanes()); }
  void store(const NestStore&, bool stream);
  /// All stores that are interleaved with it, if it is the first of them; false if it is
  /// interleaved with none.
  bool store_interleaved(const NestStore&);

 private:
  bool varies(int value) const {
    return vector_loop_ >= 0 && ((dependences_[value] >> vector_loop_) & 1u) != 0;
  }
  Value emit(int value);
  int uses_of(Op op, DType dtype) const;  ///< how many values of the nest this op makes
  Value keeps_near(const NestValue& load, int mask, bool& fixed);
  Value emit_load(const NestValue& v);
  Value emit_index_value(const NestValue& v);
  Value emit_in_range(const NestValue& v);
  // at SIMD lane 0; skip_varying: without the terms that differ between SIMD lanes
  Value scalar_index(IndexId e, bool skip_varying);
  Value simd_lane_indices(IndexId e, Value* base);  // e = base (i64 scalar) + SIMD lanes
  Value full_simd_lanes(IndexId e);                 // all of e as i64 or i32 SIMD lanes
  bool term_varies(const IndexTerm& t) const;
  Value floor_divide(Value x, std::int64_t by, bool may_be_negative);
  Value pointer(int buffer);
  Value row_pointer(int value, int simd_lane, std::int64_t further);
  // of vectors along the vector loop, in bytes; 0: unknown
  int store_alignment(const NestStore& s, DType d) const;
  void update(const NestStore&);
  void update_one_by_one(const NestStore&, FunctionRef<void()> write);
  void at_simd_lane(int simd_lane, FunctionRef<void()> body);
  Value with_tail(Value mask);  // mask and the tail mask; either may be none

  IrBuilder& b_;
  const Nest& nest_;
  const Schedule& schedule_;
  Vec<std::uint64_t> dependences_;
  Vec<int> ready_stage_;    // per value: stages that must be done before it is known
  Vec<char> in_iteration_;  // per value: it depends on what a reduction has so far
  Vec<Value> known_;
  Vec<Value> positions_;  // per loop
  Vec<Value> extents_, scalars_, pointers_;
  std::uint64_t open_ = 0;
  int vector_loop_ = -1;
  int stages_done_ = 0;
  Value mask_;
};

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
