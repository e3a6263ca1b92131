// Owns the emission of one register kernel: its branches, loops and values. Internal to the files
// that implement it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/dependence.hpp"
#include "../../regions/register_lowering.hpp"
#include "register_kernel.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu::register_emission {

using Elements = Vec<Value>;

using Val = SmallArray<Value>;

/// A value in memory. `start`: where an element of it begins, in elements (scan's element of a
/// sequence).
struct Object {
  Value pointer;
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t row = 0;  ///< elements from lane to lane; 0: shared
  /// Of the elements of `shape`, so many lie together before those of the other lanes come; 0: all.
  std::int64_t block = 0;
  Value start;            ///< or none
  int base = -1;          ///< the object whose memory it is
  bool whole = true;      ///< all of that
  bool writable = false;  ///< by the loop that is being emitted
  /// The lanes that run side by side have it in the frame: each element of theirs after the other.
  bool by_element = false;
};

class RegisterEmitter : SmallArrays<RegisterEmitter, Value> {
 public:
  RegisterEmitter(IrBuilder& b, const LaneForm& form);
  void emit(const std::string& name);

 private:
  friend class SmallArrays<RegisterEmitter, Value>;
  using Env = Vec<Val>;
  using Flags = Dependence::Flags;

  // ---- branches and loops (emit/register_kernel.cpp) --------------------------------------------
  void whole();
  Vec<Val> operands();
  /// Those of loops were made in place, or stored iteration by iteration.
  void store_results(Vec<Val> results);
  /// `load`: results that lie in memory so far, and are small, are loaded.
  Vec<Val> run(const GraphBody& g, const Vec<Val>& inputs, bool load = true);
  /// Equations from … to − 1. `env`: per Var.
  void run_equations(const GraphBody& g, Env& env, std::size_t from, std::size_t to);
  bool is_wide(const Val& v) const;
  Flags wide_flags(const Vec<Val>& values) const;
  /// All registers of some values as one list, and back. Values in memory have none.
  Elements flat(const Vec<Val>& values, std::size_t count) const;
  static Vec<Val> unflat(const Elements& all, const Vec<Val>& like, std::size_t count);
  Elements selected(Value mask, const Elements& on_true, const Elements& on_false);
  Value both(Value mask, Value also) { return mask ? b_.bit_and(mask, also) : also; }
  Vec<Val> control(const GraphBody& g, const Equation& e, const Vec<Val>& operands, bool outermost);
  Vec<Val> branch(const Equation& e, const Vec<Val>& operands);
  Vec<Val> loop_while(const Equation& e, const Vec<Val>& operands, bool outermost);
  Vec<Val> loop_scan(const GraphBody& g, const Equation& e, const Vec<Val>& operands,
                     bool outermost);
  /// With its elements, read now if they were not yet.
  const Val& loaded(Val& v);
  /// A small value that is read where it is first needed: what a fused region is given, and what
  /// loops in it give.
  Val unread(const Object& o);
  /// A sequence as its rows are read: LaneForm::lays_out.
  Val laid_out(const Aval& whole, const Val& sequence);
  /// One element of a sequence.
  Val element(const Aval& whole, const Val& sequence, const Aval& one, Value row);

  // ---- sums over rows (emit/register_sums.cpp) --------------------------------------------------
  /// What the body of a scan with ScanParams::sums gives.
  Vec<Val> added_terms(const GraphBody& g, const Vec<Val>& inputs);
  /// Of the rows from arg(2) to arg(3).
  void sum_rows();

  // ---- lanes that take the places of others (emit/register_places.cpp) --------------------------
  bool gives_places_away() const;
  /// All lanes from arg(2) to arg(3).
  void loop_with_places();
  /// Lanes from `lane_` on, a vector of them, and those that take their places. Gives the next lane
  /// and what is counted (CountedIterations), from these numbers on.
  Elements run_in_places(Value iterations, Value busy);

  // ---- functions that call themselves (emit/register_calls.cpp) ---------------------------------
  void declare_functions();
  void define_functions();
  Elements function_body(std::size_t number, const Vec<Value>& args, int levels);
  Vec<Val> call(const Equation& e, const Vec<Val>& operands);
  Val constant(const Equation& e);

  // ---- memory (emit/register_memory.cpp) --------------------------------------------------------
  Value index_number(std::int64_t i) { return b_.index(i); }
  /// Elements of an object, `by` behind `linear` (i64 scalar or lanes).
  Value read(const Object& o, Value linear, std::int64_t by = 0);
  void write(const Object& o, Value linear, std::int64_t by, Value x);
  Value placed(const Object& o, Value linear);
  /// Reads, or writes `x`, where lanes have an object element by element.
  Value at_element(const Object& o, Value linear, std::int64_t by, Value x);
  Value lane_numbers() {
    return places_ ? places_ : b_.add(b_.splat(lane_, width_), b_.iota(DType::i64, width_));
  }
  Value sum(Value a, Value b) {
    return a.simd_lanes == b.simd_lanes ? b_.add(a, b) : b_.add(wide(a), wide(b));
  }
  Value wide(Value x) { return x.simd_lanes == width_ ? x : b_.splat(x, width_); }
  Val wide(const Val& v);
  Val elements_of(const Object& o);
  void store_elements(const Object& o, const Val& v);
  /// A buffer, whose place among operands and results tells where its lanes are.
  Object object_for(std::size_t buffer, const Aval& aval);
  /// Where element `n` of an object lies, in elements.
  std::int64_t place(const Object& o, std::int64_t n) const {
    return o.block == 0 ? n : n / o.block * (o.block * form_.count) + n % o.block;
  }
  /// The lanes of an element that lie side by side, if they do.
  std::optional<Value> neighbours(const Object& o, std::int64_t n);
  /// Lanes one after the other, each with all of its elements; in a loop's iterations, from a place
  /// that they share.
  bool whole_rows(const Object& o) const {
    return !places_ && o.row > 1 && o.shape.elements() == o.row &&
           (o.block == 0 || o.block == o.row) && (!o.start || o.start.simd_lanes == 1);
  }
  Value row_of(const Object& o, Value lane);
  Value elements_left(const Object& o, std::int64_t first);
  int lanes_of_rows(const Object& o) const {
    return std::min(width_, b_.target().simd_lanes(size_of(o.dtype)));
  }
  Val load_rows(const Object& o);
  void store_rows(const Object& o, const Val& v);
  /// A vector of the lanes, from `first` on; `past` the caches if none of them is behind the end.
  void store_block(const Object& o, const Val& v, int first, bool past);
  const Object& object(const Val& v) const { return objects_[v.object()]; }

  // ---- arrays in memory as wholes (emit/register_arrays.cpp) ------------------------------------
  Val kept(Object o);
  /// An array that is about to be overwritten in place, which its loop carries.
  const Object& updated(const Val& v) const;
  /// In the function's frame.
  Object own_array(const Aval& a);
  Object unset_array(const Aval& a);
  Value first_of(const Object& o) {
    return o.start ? b_.offset(o.pointer, o.dtype, o.start) : o.pointer;
  }
  void copy(const Object& to, const Val& from);
  Val array_value(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  Val joined(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  /// What a loop carries at first: in memory that it may overwrite.
  Vec<Val> begin_carries(const Vec<Val>& operands, std::size_t carries);
  /// At the end of an iteration arrays that lie elsewhere are brought into the carries' memory.
  void hand_on(const Vec<Val>& carried, Vec<Val>& next);
  /// Which objects may be written, then none but those of `carried`.
  Flags restrict_writes(const Vec<Val>& carried);
  void restore_writes(const Flags& flags);

  // ---- numbers, for SmallArrays (emit/register_values.cpp) --------------------------------------
  Value constant(const Scalar& x);
  bool is_constant(Value x) const { return b_.is_constant(x); }
  bool is_number(Value x, double number) { return b_.is_number(x, number); }
  static bool is_same(Value x, Value y) { return x.ref == y.ref; }
  Value apply(Op op, DType dtype, const ParamsRef& params, Operands operands,
              std::int64_t uses = 0);
  Value multiply_add(Value x, Value y, Value sum);
  Value chosen(Value mask, Value a, Value b);
  static Value keep(Value x) { return x; }
  /// The element of `all` at an index in range.
  Value chosen(const Elements& all, Value index);
  Value equals(Value index, std::int64_t i) {
    return b_.compare(Compare::eq, index, b_.integer(index.dtype, i, index.simd_lanes));
  }
  Value both_of(Value a, Value b) {
    return a.simd_lanes == b.simd_lanes ? b_.bit_and(a, b) : b_.bit_and(wide(a), wide(b));
  }
  Value further(Value place, std::int64_t by) {
    return by == 0 ? place : sum(place, index_number(by));
  }
  Value further(Value place, Value by, std::int64_t stride) {
    if (stride != 1) by = b_.mul(by, b_.integer(DType::i64, stride, by.simd_lanes));
    return sum(place, by);
  }
  static const Val& readable(const Val& x) { return x; }
  Value element_at(const Val& x, Value place, std::int64_t by) {
    return x.is_array() ? read(object(x), place, by) : chosen(x.elements(), further(place, by));
  }
  static Val updatable(const Val& x) { return x.is_array() ? x : Val(x.elements()); }
  void put(Val& to, Value place, std::int64_t by, Value inside, Op op, Value x);

  IrBuilder& b_;
  const LaneForm& form_;
  const GraphBody& graph_;  ///< as a lane sees it
  const Equation& equation_;
  const std::size_t carries_;
  int width_ = 1;
  std::int64_t cost_ = 1;  ///< of lanes side by side, as register_cost gives it
  Vec<Value> pointers_;
  Vec<Object> objects_;
  Value lane_;
  Value places_;       ///< the lane at each place of the vector, where these are not neighbours
  Value mask_, tail_;  ///< the lanes that go on; those up to the last one
  /// One of the form's functions: as it is called, and as it is where depth or stack may end.
  struct Callee {
    IrBuilder::Local usual, last;
  };
  Vec<Callee> functions_;
  Value depth_, calls_;              ///< calls around; the kernel's second argument
  int level_ = 0, most_levels_ = 0;  ///< calls that are part of this function: around, at most
  bool far_ = false;                 ///< its results would fill a cache
  bool streams_ = false;             ///< some results go past the caches
};

}  // namespace vt::detail::cpu::register_emission

#endif  // VT_HAS_LLVM_HEADERS
