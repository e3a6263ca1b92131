// Owns the emission of one register kernel: its branches, loops and values. Internal to the files
// that implement it.
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/dependence.hpp"
#include "register_kernel.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu::register_emission {

using Elements = Vec<Value>;

/// A value: its elements in row-major order, or an array in memory. What is computed is made of
/// elements alone, so that it never claims to lie where one of its operands lies.
class Val {
 public:
  Val() = default;
  Val(Elements computed) : elements_(std::move(computed)) {}
  static Val array(int object) {
    Val v;
    v.object_ = object;
    return v;
  }
  /// Elements that are read where they are first needed, from an object that nothing writes to.
  static Val unread(int object) {
    Val v;
    v.memory_ = object;
    return v;
  }

  const Elements& elements() const { return elements_; }
  const Value& operator[](std::integral auto i) const { return elements_[i]; }
  bool is_array() const { return object_ >= 0; }
  int object() const { return object_; }
  /// The object that the elements can be read from; −1: there is none.
  int memory() const { return memory_; }
  bool is_unread() const { return memory_ >= 0 && elements_.empty(); }
  /// The elements as they are in memory.
  void read(Val from_memory) { elements_ = std::move(from_memory.elements_); }

 private:
  Elements elements_;
  int object_ = -1, memory_ = -1;
};

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

class RegisterEmitter {
 public:
  RegisterEmitter(IrBuilder& b, const LaneForm& form);
  void emit(const std::string& name);

 private:
  using Env = Vec<Val>;
  using Flags = Dependence::Flags;

  // ---- branches and loops (emit/register_kernel.cpp) --------------------------------------------
  void whole();
  /// `load`: results that lie in memory so far, and are small, are loaded.
  Vec<Val> run(const GraphBody& g, const Vec<Val>& inputs, bool load = true);
  static bool is_sequence(const Equation& e, std::size_t operand);
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
  Value lane_numbers() { return b_.add(b_.splat(lane_, width_), b_.iota(DType::i64, width_)); }
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
  static bool whole_rows(const Object& o) {
    return o.row > 1 && o.shape.elements() == o.row && (o.block == 0 || o.block == o.row) &&
           (!o.start || o.start.simd_lanes == 1);
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

  // ---- values (emit/register_values.cpp) --------------------------------------------------------
  /// all[index], the index in range.
  Value chosen(const Elements& all, Value index);
  Value equals(Value index, std::int64_t i) {
    return b_.compare(Compare::eq, index, b_.integer(index.dtype, i, index.simd_lanes));
  }
  Value either(Value mask, Value a, Value b);
  Value apply(Op op, DType dtype, const ParamsRef& params, Elements operands,
              std::int64_t uses = 1);
  Value without_operation(const Equation&, const Elements& operands);
  Value number(const Scalar& s, DType d);
  Val value(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  Val leaf(const Equation& e, const Aval& out);
  Val reduced(const GraphBody& g, const Equation& e, const Val& x);
  Val position(const GraphBody& g, const Equation& e, const Val& x);
  Val running(const GraphBody& g, const Equation& e, const Val& x);
  Val product(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  Val concatenated(const GraphBody& g, const Equation& e, const Vec<Val>& in);

  // ---- places that are known at run time (emit/register_values.cpp) -----------------------------
  /// The start along an axis, moved inside as the interpreter does.
  Value clamped(Value start, std::int64_t most);
  static std::int64_t largest(DType d, std::int64_t most);
  Value linear(const Shape& shape, const Vec<Value>& index);
  /// Distances of a window's elements from its first.
  static Vec<std::int64_t> window(const Shape& shape, const Shape& sizes);
  Value element_at(const Val& x, Value place, std::int64_t by = 0) {
    return x.is_array() ? read(object(x), place, by) : chosen(x.elements(), further(place, by));
  }
  Value further(Value place, std::int64_t by) {
    return by == 0 ? place : sum(place, index_number(by));
  }
  Value start_of(const Shape& shape, const Shape& sizes, std::span<const Val> starts);
  Val dynamic_slice(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  Val dynamic_update_slice(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  /// As the definition in graph.hpp reads.
  struct Target {
    Value place, inside;
  };
  Target target(const Shape& shape, const IndexedElement& at, IndexMode mode, const Val& indices);
  Val gathered(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  /// One update after the other, in row-major order.
  Val scattered(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  Value both_of(Value a, Value b) {
    return a.simd_lanes == b.simd_lanes ? b_.bit_and(a, b) : b_.bit_and(wide(a), wide(b));
  }

  IrBuilder& b_;
  const LaneForm& form_;
  const GraphBody& graph_;  ///< as a lane sees it
  const Equation& equation_;
  std::size_t carries_ = 0;
  int width_ = 1;
  Vec<Value> pointers_;
  Vec<Object> objects_;
  Value lane_;
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
