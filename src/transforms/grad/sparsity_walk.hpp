// The walk that keeps zeros of derivatives, and the masks that it reads. Internal to its sources.
#pragma once

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "../../trace/base/hash_map.hpp"
#include "sparsity.hpp"

namespace vt::detail::sparsity {

using Bits = std::vector<char>;

/// The first of these bits that is `bit`, or null.
inline const char* find_bit(const char* bits, std::int64_t count, char bit) {
  return count > 0 ? static_cast<const char*>(std::memchr(bits, bit, count)) : nullptr;
}
/// Null where all are reached.
SparsityPattern shared(Bits bits);

/// What is known of a value.
struct Reach {
  bool linear = false;           ///< it depends on a tangent
  bool zero = false;             ///< it does not, and is the number 0
  bool positive = false;         ///< … a finite number above 0, of which −0 stays −0
  SparsityPattern pattern = {};  ///< of a linear one
  bool plus = false;             ///< … that is +0 where nothing reaches, and not −0
  /// … whose mask the Graph computes: `pattern` is what it may be at most
  bool computed = false;
  Axes varied = {};  ///< the axes that the computed mask may vary along
  /// of a mask of an inner derivative, which is no tangent here; null: not known
  SparsityPattern elements = {};

  friend bool operator==(const Reach& a, const Reach& b) {
    return a.linear == b.linear && a.zero == b.zero && a.positive == b.positive &&
           a.plus == b.plus && a.computed == b.computed && a.varied == b.varied &&
           same(a.pattern, b.pattern) && same(a.elements, b.elements);
  }
  static bool same(const SparsityPattern& a, const SparsityPattern& b) {
    return a == b || (a && b && *a == *b);
  }
};

/// Patterns as arrays, without the axes along which they do not vary.
class Masks {
 public:
  explicit Masks(std::int64_t directions) : directions_(directions) {}

  struct Mask {
    BufferRef values;
    Shape shape;  ///< of one direction
    Axes axes;    ///< those of the value that it varies along
    bool by_direction = false;
  };

  std::int64_t directions() const { return directions_; }
  /// Of what is the same in all directions, in bodies that run for lanes.
  Masks& of_lanes();
  /// Zeros of a pattern have become elements that count as reached: some may be −0.
  void leak() { leaks_ = true; }
  bool leaks() const { return leaks_; }
  const Mask& operator[](int number) const { return masks_[number]; }
  /// That of a value of such a shape.
  int number(const SparsityPattern&, const Shape&);
  /// That of one which is the same in all directions.
  int number_of(const Mask&);
  /// A body that has been written anew; null: it stays as it is.
  struct Written {
    GraphRef body;
    Vec<int> masks;  ///< its last inputs
  };
  /// What the walk over a body has found for such inputs.
  struct Outcome {
    const GraphBody* body;
    Vec<Reach> inputs, results;
    std::optional<Written> written = {};  ///< for a call; none: not yet
  };
  /// Null: nobody has walked there.
  Outcome* outcome(const GraphBody*, const Vec<Reach>& inputs);
  void remember(const GraphBody* body, Vec<Reach> inputs, Vec<Reach> results) {
    outcomes_.push_back({body, std::move(inputs), std::move(results)});
  }
  /// A mask as a Tensor: of one direction, or with the directions along axis 0.
  Tensor value(int number) const;

 private:
  struct Known {
    SparsityPattern pattern;
    Shape shape;
    int number;
  };
  Mask compact(const Bits&, const Shape&) const;

  const std::int64_t directions_;
  std::unique_ptr<Masks> of_lanes_;
  bool leaks_ = false;
  Vec<Mask> masks_;
  HashMap<const void*, Vec<Known>> known_;
  Vec<Outcome> outcomes_;
};

/// Writes equations at the end of a Graph.
struct Writer {
  GraphBody& graph;
  CallSite where = {};
  bool assume_finite = false;

  const Aval& aval(Var v) const { return graph.aval(v); }
  void append(Op, ParamsRef, std::initializer_list<Var> inputs, Var output);
  Var make(Op, ParamsRef, std::initializer_list<Var> inputs, const Aval& out);
  Var filled(const Aval&, double value);
  Var number(DType d, double value) { return filled(Aval(d, Shape{}), value); }
  Var broadcast(Var x, const Shape&, const Axes&);
  /// Of both operands what the mask says is there.
  void select(Var mask, Var if_true, Var if_false, Var output);
  Var select(Var mask, Var if_true, Var if_false, const Aval& out);
};

/// The elements of a mask that is made of constants only; null: of something else.
SparsityPattern elements_of(const Tensor& mask);

inline Axes united(Axes a, const Axes& b) {
  for (int d : b)
    if (!a.contains(d)) a.push_back(d);
  std::sort(a.begin(), a.end());
  return a;
}

/// A product of which one operand is a tangent.
struct SparseProduct {
  DotParams params;
  bool on_the_left;        ///< the tangent
  Shape tangent, factors;  ///< shapes
  Axes varied;             ///< axes of the tangent that its pattern varies along

  const Axes& batch(bool of_tangent) const {
    return of_tangent == on_the_left ? params.lhs_batch : params.rhs_batch;
  }
  const Axes& contract(bool of_tangent) const {
    return of_tangent == on_the_left ? params.lhs_contract : params.rhs_contract;
  }
  Shape shape() const;
  /// The product without the terms that `mask` (over `varied`, of bool) leaves out.
  Var write(Writer&, Var tangent, Var factors, Var mask) const;
  /// The same, or the plain product where all factors are finite, as the same values come out then.
  Var write_checked(Writer&, Var tangent, Var factors, Var mask) const;
  /// Which elements of the product are reached, in its shape.
  Var reached(Writer&, Var mask) const;
  /// Where the axes of the mask that are left come to lie there.
  Axes places_reached() const;

 private:
  Var plain(Writer&, Var tangent, Var factors, const DotParams&, const Shape& out) const;
};

/// Follows a Graph's equations and writes the Graph that keeps zeros.
class Walk {
 public:
  Walk(const GraphBody& from, Masks& masks);

  void run(const Vec<Reach>& inputs);
  Reach result(std::size_t k) const { return reach(from_.outputs[k]); }
  /// A result that depends on no tangent, where other bodies or iterations give one that does.
  void make_linear(std::size_t k);
  /// With +0 where nothing reaches.
  void finish_results();
  /// Has anything been written that was not there?
  bool changed() const { return changed_; }
  GraphBody take() { return std::move(to_); }
  /// Makes the masks of these results results, too.
  void give_masks(const Vec<Reach>& results);
  /// Where operands or results stand in groups, their computed masks are a group behind each.
  using GroupEnds = std::initializer_list<std::size_t>;
  /// The same with the computed masks, and behind all inputs these constant ones.
  GraphBody take_body(GroupEnds inputs, GroupEnds results, const Vec<int>& masks);
  /// The constant masks that it reads.
  const Vec<int>& masks() const { return numbers_; }

 private:
  /// Until the next one is set.
  const Reach& reach(Var v) const {
    return static_cast<std::size_t>(v) < reach_.size() ? reach_[v] : unknown_;
  }
  void set_reach(Var, Reach);
  const Aval& aval(Var v) const { return to_.aval(v); }
  std::int64_t directions() const { return masks_.directions(); }

  // ---- what is written --------------------------------------------------------------------------
  Var minus_zero(const Aval&);
  Var input(int mask);
  /// The pattern of a value of such a shape, or a scalar where it is the same for all elements.
  Var mask(const SparsityPattern&, Shape);
  /// The computed mask of a value, in its shape; −1: it has none.
  Var computed(Var) const;
  /// Is there anything of a tangent that is not reached, or may not be?
  bool has_holes(Var v) const { return reach(v).pattern || reach(v).computed; }
  /// What is reached of a value, as its mask or a scalar; −1: all of it.
  Var reached(Var);
  /// The same in the shape of the value.
  Var whole_mask(Var);
  /// The equation on masks in place of the operands that have one (not −1), with this op.
  Var like(const Equation&, std::initializer_list<Var> masks, Op);
  Var like(const Equation& e, std::initializer_list<Var> masks) { return like(e, masks, e.op); }
  /// A factor or divisor of a tangent of that shape: 1 where the mask is false.
  Var factor(Var mask, Var x, Shape);
  /// The equation, with results that are −0 where nothing reaches.
  void append_masked(Equation);
  void append(Equation);

  // ---- patterns ---------------------------------------------------------------------------------
  Bits none(std::int64_t elements) const { return Bits(directions() * elements, 0); }
  /// Operand `i`, in which the equation is linear. What does not depend on a tangent is 0 there.
  SparsityPattern operand(Equation&, std::size_t i);
  /// `sources`: of each element, −1: none.
  SparsityPattern moved(const SparsityPattern&, std::int64_t from,
                        const Vec<std::int64_t>& sources) const;
  SparsityPattern spread(const SparsityPattern&, std::int64_t from, std::int64_t to) const;
  SparsityPattern united(const SparsityPattern&, const SparsityPattern&) const;
  /// Per direction: is any element reached?
  Bits any_of_direction(const SparsityPattern&, std::int64_t elements) const;
  void give(const Equation&, SparsityPattern, std::size_t result = 0);
  /// With a computed mask, or −1.
  void give(const Equation&, SparsityPattern bound, Var mask, Axes varied, std::size_t result = 0);
  /// The axes that what is reached of a value may vary along.
  Axes varied(Var);
  Axes varied_by_move(const Equation&);
  /// From any element that is reached of a value to all.
  SparsityPattern spread_any(Var, const Aval& to) const;

  // ---- equations --------------------------------------------------------------------------------
  void equation(const Equation&);
  void note(const Equation&);
  void elementwise(Equation);
  void structural_select(Equation);
  Var union_of(const Vec<Var>& tangents, const Shape&);
  void move(Equation, SparsityPattern);
  void joined(Equation, SparsityPattern);
  void slice(Equation);
  void pad(Equation);
  void concatenate(Equation);
  void sum(Equation);
  void running(Equation);
  void counted(Equation);
  void product(Equation);
  void masked_product(Var product, const SparseProduct&, Var tangent, Var factors, Var mask);
  void read_at(Equation);
  void write_at(Equation);
  Axes varied_where_read(const Equation&);
  Axes varied_where_written(const Equation&);
  void whole(Equation);

  // ---- bodies -----------------------------------------------------------------------------------
  void call(Equation);
  void cond(Equation);
  void loop_while(Equation);
  void scan(Equation);
  Masks& masks_for(const Lanes*);
  Reach as_operand(Var, const Lanes*, std::size_t operand);
  Reach of_all(Reach, const Aval& result, const Lanes*) const;
  Vec<Reach> outcome(Masks&, const GraphBody& body, const Vec<Reach>& inputs);
  Masks::Written body_of_call(const GraphBody& body, bool has_rule, const Vec<Reach>& inputs,
                              const Vec<Reach>& results);
  Vec<Reach> looped(Masks&, const GraphBody& body, std::size_t carries, Vec<Reach>& inputs);
  bool join(Masks&, Reach& carry, const Reach& next, const Shape&) const;
  void begin_loop(Equation&, Walk& body, std::size_t carries, const Vec<Reach>& inputs);
  /// What the equation's results are, with new results for computed masks.
  void give_results(Equation&, const Vec<Reach>&, GroupEnds);
  /// The operands from `first` on with their computed masks, and behind them these constant ones.
  void add_masks(Equation&, std::size_t first, GroupEnds, const Vec<Reach>&, const Masks&,
                 const Vec<int>& masks, Lanes* lanes = nullptr);

  const GraphBody& from_;
  GraphBody to_;
  Writer writer_{to_};
  Masks& masks_;
  Vec<Reach> reach_;
  const Reach unknown_;
  Vec<int> numbers_;
  HashMap<int, Var> inputs_;
  Vec<std::tuple<int, Shape, Var>> broadcast_;
  Vec<std::tuple<Var, Var, Shape, Var>> factors_;
  HashMap<Var, Var> computed_;
  Vec<Var> input_masks_, result_masks_;  ///< the computed one of each, or −1
  bool changed_ = false;
  bool writes_ = true;  ///< else only patterns are followed, through bodies
};

}  // namespace vt::detail::sparsity
