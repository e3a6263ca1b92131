// The simplifier's inside: a Pass rebuilds a Graph equation by equation, asking the rewrite rules
// before it places each one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../base/hash_map.hpp"
#include "../ir/collectives.hpp"
#include "../ir/dependence.hpp"
#include "../ir/graph.hpp"

namespace vt::detail::simplification {

/// A vector whose elements never move, so that rules may hold on to what they look at while they
/// add equations.
template <class T>
class StableList {
 public:
  StableList() = default;
  StableList(const StableList&) = delete;
  StableList& operator=(const StableList&) = delete;
  ~StableList() {
    for (std::size_t i = 0; i < size_; ++i) std::destroy_at(&(*this)[i]);
    for (T* block : blocks_) std::allocator<T>().deallocate(block, block_size);
  }
  T& operator[](std::size_t i) { return blocks_[i / block_size][i % block_size]; }
  const T& operator[](std::size_t i) const { return blocks_[i / block_size][i % block_size]; }
  std::size_t size() const { return size_; }
  T& push_back(T item) {
    if (size_ == blocks_.size() * block_size)
      blocks_.push_back(std::allocator<T>().allocate(block_size));
    T* at = &(*this)[size_];
    std::construct_at(at, std::move(item));
    ++size_;
    return *at;
  }

 private:
  static constexpr std::size_t block_size = 256;
  Vec<T*> blocks_;
  std::size_t size_ = 0;
};

/// An equation with one result that is about to be placed.
struct Candidate {
  Op op;
  const ParamsRef& params;
  std::span<const Var> inputs;
  const Aval& aval;

  Var in(std::size_t i = 0) const { return inputs[i]; }
  template <class P>
  [[gnu::always_inline]] const P& as() const {
    return params->as<P>();
  }
};

/// What is known of sub-graphs, so that shared ones are looked at once.
struct BodyMemo {
  struct Entry {
    GraphRef graph;  ///< kept, as its address is the key
    GraphRef simple;
  };
  HashMap<const GraphBody*, Entry> bodies;
  /// the simple ones: a Graph that has them need not have them checked once more
  Vec<const GraphBody*> checked;
  Liveness liveness;
};

/// Is it known that simplify would leave the Graph as it is?
bool is_simple(const GraphBody&, SimplifyFor);
/// a op b = b op a, also in which of two NaNs or zeros comes out.
bool commutes(Op);
std::size_t hash_equation(Op, const ParamsRef&, std::span<const Var> inputs);

/// One walk over a Graph. Rules call emit(), which simplifies what it is given in turn; so after
/// one walk everything is as simple as it gets, except where a rule waits for a value to lose its
/// other uses.
class Pass {
 public:
  Pass(BodyMemo& memo, SimplifyFor purpose) : memo_(memo), purpose_(purpose) {}
  Pass(const Pass&) = delete;

  GraphBody run(const GraphBody&);
  /// Will the Graph be run as it is, and not be transformed again?
  bool for_running() const { return purpose_ == SimplifyFor::running; }
  /// Rewrites done, dead and merged equations not counted.
  std::size_t rewrites() const { return rewrites_; }

  static constexpr Var none = -1;

  const Aval& aval(Var v) const { return avals_[v]; }
  const Shape& shape(Var v) const { return aval(v).shape; }
  DType dtype(Var v) const { return aval(v).dtype; }
  /// The equation that makes `v`; null for inputs.
  const Equation* def(Var v) const {
    const std::int32_t i = makers_[v];
    return i < 0 ? nullptr : &equations_[i];
  }
  /// The same if that is an `op`.
  const Equation* def(Var v, Op op) const {
    const Equation* e = def(v);
    return e && e->op == op ? e : nullptr;
  }
  /// What every element of `v` is, if it is a `full`.
  /// Equation::assume_finite of the equation being simplified.
  bool assumes_finite() const { return assume_finite_; }
  const Scalar* full_value(Var v) const {
    const Equation* e = def(v, Op::full);
    return e ? &e->as<FullParams>().value : nullptr;
  }
  bool is_any_number(Var v) const {
    const Equation* e = def(v, Op::full);
    return e && is_unset(*e);
  }
  /// Are they one number, every element?
  bool are_alike(Var a, Var b) const {
    const Scalar *x = full_value(a), *y = full_value(b);
    return x && y && *x == *y && !is_any_number(a) && !is_any_number(b);
  }
  bool is_full_of(Var v, double value) const {
    const Scalar* s = full_value(v);
    return s && s->is_value(value);
  }
  /// May a rule move the equation that makes `v` elsewhere, because nothing else uses it?
  bool used_once(Var v) const { return uses_[v] <= 1; }

  bool unused(Var v) const { return uses_[v] == 0; }

  /// Adds an equation (or finds a simpler value that equals it); the type follows from the shape
  /// rules.
  Var emit(Op, ParamsRef, std::span<const Var> inputs);
  Var emit(Op op, ParamsRef params, std::initializer_list<Var> inputs) {
    return emit(op, std::move(params), std::span<const Var>(inputs.begin(), inputs.size()));
  }
  /// The same for ops with several results; these are placed as they are.
  SmallVec<Var, 1> emit_all(Op, ParamsRef, std::span<const Var> inputs);
  Var emit(Op op, std::initializer_list<Var> inputs) { return emit(op, ParamsRef{}, inputs); }
  Var emit(Op op, std::span<const Var> inputs) { return emit(op, ParamsRef{}, inputs); }

  // Shorthands.
  Var full(const Scalar&, const Aval&);
  Var full(const Equation& of_another_type, const Aval&);
  Var full_like(double value, const Aval&);  ///< of the Aval's dtype
  Var reshape(Var, const Shape&);
  Var transpose(Var, const Axes& permutation);
  Var broadcast(Var, const Shape&, const Axes& axes);
  Var slice(Var, const Shape& start, const Shape& limit, const Shape& stride);

 private:
  friend class ControlRewrite;

  void walk(const GraphBody&, Vec<Var>& map, bool outermost);
  void copy_equation(const GraphBody&, const Equation&, Vec<Var>& map,
                     const Vec<std::int32_t>& uses);
  SmallVec<Var, 2> copied_sort(const GraphBody&, const Equation&, std::span<const Var> inputs,
                               const Vec<std::int32_t>& uses);
  SmallVec<Var, 1> copied_call(const Equation&, std::span<const Var> inputs,
                               const Vec<std::int32_t>& uses);
  SmallVec<Var, 1> copied_matrices(const Equation&, std::span<const Var> inputs,
                                   const Vec<std::int32_t>& uses);
  Var simplified(const Candidate&);
  Var place(const Candidate&);
  const Equation& place_all(Op, const ParamsRef&, std::span<const Var> inputs,
                            std::span<const Aval* const> avals);
  std::int32_t find_equal(Op, const ParamsRef&, std::span<const Var> inputs,
                          std::size_t hash) const;
  void remember(std::int32_t equation, std::size_t hash);
  Var fresh(Aval);
  GraphRef remembered(GraphRef simple);
  GraphRef simplified_body(const GraphRef&);
  GraphRef simplified_body(GraphBody&&);
  GraphBody compacted(std::span<const Var> inputs, std::span<const Var> outputs);
  /// The results of a body that runs here.
  Vec<Var> inlined(const GraphBody& body, std::span<const Var> inputs);

  BodyMemo& memo_;
  SimplifyFor purpose_;
  StableList<Aval> avals_;
  StableList<Equation> equations_;
  Vec<std::int32_t> makers_;    ///< per Var: its equation, −1 for inputs
  Vec<std::int32_t> uses_;      ///< per Var: uses in the Graph walked, by equations and results
  Vec<std::size_t> hashes_;     ///< per equation
  Vec<std::int32_t> table_;     ///< hash table of equations, open addressing
  CallSite where_{};            ///< the user's line of the equation being simplified
  bool assume_finite_ = false;  ///< has it Equation::assume_finite?
  std::size_t rewrites_ = 0;
  int depth_ = 0;
};

/// Simplifies to a fixpoint.
GraphBody simplify_body(const GraphBody&, BodyMemo&, SimplifyFor);

// The rules, by file. Each returns a value equal to the candidate's bit for bit (NaNs count as one
// value), or Pass::none. A scalar stands for a result of any shape whose elements are all that.
Var fold_constants(Pass&, const Candidate&);
Var simplify_elementwise(Pass&, const Candidate&);
Var simplify_arithmetic(Pass&, const Candidate&);
Var simplify_shape(Pass&, const Candidate&);
Var simplify_index(Pass&, const Candidate&);
Var simplify_gather(Pass&, const Candidate&);
Var simplify_scatter(Pass&, const Candidate&);
/// select(condition, a, b) where one of the two is the other with some elements overwritten, and
/// the condition is one for each array: only those elements are chosen.
Var select_of_updates(Pass&, const Candidate&);
Var simplify_reduction(Pass&, const Candidate&);
Var simplify_dot(Pass&, const Candidate&);
Var simplify_conv(Pass&, const Candidate&);
Var simplify_windows(Pass&, const Candidate&);

}  // namespace vt::detail::simplification
