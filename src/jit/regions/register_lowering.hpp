// Small arrays of register kernels: every op as ops on single numbers, for any emitter.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../../trace/base/convert.hpp"
#include "../../trace/elements/element_maps.hpp"
#include "../../trace/ir/graph.hpp"
#include "../nest/cost_model.hpp"
#include "../nest/two_sum.hpp"
#include "register_matrices.hpp"

namespace vt::detail {

/// Is it a sequence of a scan, whose rows its iterations take?
inline bool is_sequence(const Equation& e, std::size_t operand) {
  return operand >= carries_of(e) && operand < carries_of(e) + sequences_of(e);
}

/// A value: its elements in row-major order, or an array in memory, as the number of an emitter's
/// object. What is computed is made of elements alone, so that it never claims to lie where one of
/// its operands lies.
template <class Number>
class SmallArray {
 public:
  using Elements = Vec<Number>;

  SmallArray() = default;
  SmallArray(Elements computed) : elements_(std::move(computed)) {}
  /// Elements that an object holds too.
  SmallArray(Elements held, int object) : elements_(std::move(held)), memory_(object) {}
  static SmallArray array(int object) {
    SmallArray a;
    a.object_ = object;
    return a;
  }
  /// Elements that are read where they are first needed, from an object that nothing writes to.
  static SmallArray unread(int object) { return {{}, object}; }

  const Elements& elements() const { return elements_; }
  const Number& operator[](std::integral auto i) const { return elements_[i]; }
  void set(std::size_t i, Number x) { elements_[i] = std::move(x); }
  bool is_array() const { return object_ >= 0; }
  int object() const { return object_; }
  /// The object that the elements can be read from; −1: there is none.
  int memory() const { return memory_; }
  bool is_unread() const { return memory_ >= 0 && elements_.empty(); }
  /// The elements as they are in memory.
  void read(SmallArray from_memory) { elements_ = std::move(from_memory.elements_); }

 private:
  Elements elements_;
  int object_ = -1, memory_ = -1;
};

/// What an emitter derives from. `Number` is a number in a register, with its `dtype`; by default
/// it is none, and false. The emitter has:
///   constant(scalar)               the number, of the scalar's dtype
///   is_constant(x), is_number(x, 0.0)
///                                  what is known of it; 0 and −0 differ
///   is_same(x, y)                  are they one number, kept once?
///   apply(op, dtype, params, operands, uses)
///                                  an element-wise op of which the code has so many; 0: it is part
///                                  of another op
///   multiply_add(x, y, sum)        in one rounding where the executor has that; before the first
///                                  term `sum` is none
///   chosen(mask, x, y)             select
///   keep(x)                        the same, to be used several times
///   further(place, index, stride)  place + index · stride, of i64
///   readable(array), element_at(array, place, by)
///   updatable(array), put(array, place, by, inside, op, x)
/// where readable and updatable give an array whose elements can be read or overwritten at places
/// that are known only when the code runs; put combines the old element with x (Op::scatter:
/// overwrites it) unless `inside` is false.
template <class Emitter, class Number_>
class SmallArrays {
 public:
  using Number = Number_;
  using Elements = Vec<Number>;
  using Operands = SmallVec<Number, 3>;
  using Val = SmallArray<Number>;

  /// Results of an equation without sub-graphs.
  Vec<Val> values(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
    if (family_of(e.op) == Family::linalg) return matrices(g, e, in);
    return {value(g, e, in)};
  }
  /// The same of one that has one result, and is of another family than linalg.
  Val value(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
    switch (e.op) {
      case Op::argmax:
      case Op::argmin: return position(g, e, in[0]);
      case Op::dot_general: return product(g, e, in);
      case Op::dynamic_slice: return dynamic_slice(g, e, in);
      case Op::dynamic_update_slice: return dynamic_update_slice(g, e, in);
      case Op::gather: return gathered(g, e, in);
      default: break;
    }
    if (is_scatter(e.op)) return scattered(g, e, in);
    switch (family_of(e.op)) {
      case Family::unary:
      case Family::binary:
      case Family::select: return elementwise(g, e, in);
      case Family::leaf: return leaf(e, g.aval(e.outputs[0]));
      case Family::reduce: return reduced(g, e, in[0]);
      case Family::cumulative: return running(g, e, in[0]);
      default: return in[0].is_array() ? picked(g, e, in[0]) : moved(g, e, in);
    }
  }

 protected:
  /// The first place of a window: its starts, moved inside as the interpreter does.
  Number start_of(const Shape& shape, const Shape& sizes, std::span<const Val> starts) {
    Elements index;
    for (std::size_t d = 0; d < shape.size(); ++d)
      index.push_back(clamped(starts[d][0], shape[d] - sizes[d]));
    return self().keep(linear(shape, index));
  }
  Number linear(const Shape& shape, const Elements& index) {
    Number place = of_i64(0);
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d])
      if (index[d]) place = self().further(place, index[d], stride);
    return place;
  }
  Number of_i64(std::int64_t x) { return self().constant(Scalar(x)); }

 private:
  Emitter& self() { return static_cast<Emitter&>(*this); }
  template <class X>
  Number number(X x, DType d) {
    return self().constant(Scalar(x).converted(d));
  }
  bool is_zero(const Number& x) { return self().is_number(x, 0.0) || self().is_number(x, -0.0); }
  Number converted(const Number& x, DType d) {
    return x.dtype == d ? x : self().apply(Op::convert, d, {}, {x});
  }
  Number kept(Op op, DType d, const Number& x, const Number& y) {
    return self().keep(self().apply(op, d, {}, {x, y}));
  }
  Number kept(Op op, DType d, const Number& x) { return self().keep(self().apply(op, d, {}, {x})); }
  Number kept_choice(const Number& mask, const Number& x, const Number& y) {
    return self().keep(self().chosen(mask, x, y));
  }
  Number kept_multiply_add(const Number& x, const Number& y, const Number& sum) {
    return self().keep(self().multiply_add(x, y, sum));
  }
  /// Sums and products of 16-bit floats are made in f32.
  static DType accumulator(DType d) { return is_float(d) && size_of(d) == 2 ? DType::f32 : d; }
  /// The number that a reduction of no elements gives.
  Number neutral(Op reduction, DType d) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    const Neutral n = reduction_facts[reduction].neutral;
    if (is_bool(d)) return number(n == Neutral::one || n == Neutral::greatest, d);
    return number(n == Neutral::zero    ? 0
                  : n == Neutral::one   ? 1
                  : n == Neutral::least ? -inf
                                        : inf,
                  d);
  }

 protected:
  // ---- numbers ----------------------------------------------------------------------------------

  Val elementwise(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
    const Aval& out = g.aval(e.outputs[0]);
    const std::int64_t n = out.elements();
    // exp and its like are not called: a softmax of rows took a fifth longer.
    const std::int64_t uses = op_weight(e.op, out.dtype) > op_weight(Op::exp, DType::f32) ? n : 1;
    Elements all;
    all.reserve(n);
    for (std::int64_t i = 0; i < n; ++i) {
      Operands operands;
      for (const Val& x : in) operands.push_back(x[x.elements().size() == 1 ? 0 : i]);
      Number x = without_operation(e, operands);
      if (!x) x = self().keep(self().apply(e.op, out.dtype, e.params, std::move(operands), uses));
      all.push_back(std::move(x));
    }
    return all;
  }

  /// Factors of 1, and zeros that change nothing: −0 in a sum. Where the equation allows it, all
  /// zeros.
  Number without_operation(const Equation& e, const Operands& x) {
    if (!is_float(x[0].dtype)) return {};
    const auto is = [&](std::size_t k, double number) { return self().is_number(x[k], number); };
    const auto vanishes = [&](std::size_t k) { return e.assume_finite && is_zero(x[k]); };
    switch (e.op) {
      case Op::add:
        return is(0, -0.0) || vanishes(0) ? x[1] : is(1, -0.0) || vanishes(1) ? x[0] : Number();
      case Op::sub:
        return is(1, 0.0) || vanishes(1) ? x[0]
               : is(0, -0.0) || vanishes(0)
                   ? self().keep(self().apply(Op::neg, x[1].dtype, {}, {x[1]}))
                   : Number();
      case Op::mul:
        return is(0, 1) || vanishes(1) ? x[1] : is(1, 1) || vanishes(0) ? x[0] : Number();
      case Op::div: return is(1, 1) || vanishes(0) ? x[0] : Number();
      default: return {};
    }
  }

  Val leaf(const Equation& e, const Aval& out) {
    const std::int64_t n = out.elements();
    if (e.op == Op::full)
      return Elements(n, self().constant(e.as<FullParams>().value.converted(out.dtype)));
    Elements all;
    if (e.op == Op::iota) {
      const AxisRuns runs(out.shape, e.as<IotaParams>().axis);
      for (std::int64_t i = 0; i < n; ++i)
        all.push_back(self().constant(Scalar(i / runs.step % runs.length).converted(out.dtype)));
      return all;
    }
    const auto* numbers = e.as<ConstantParams>().buffer->template as<const char>();
    for (std::int64_t i = 0; i < n; ++i, numbers += size_of(out.dtype))
      all.push_back(self().constant(load_scalar(out.dtype, numbers)));
    return all;
  }

  Val reduced(const GraphBody& g, const Equation& e, const Val& x) {
    const Aval &from = g.aval(e.inputs[0]), &to = g.aval(e.outputs[0]);
    const Op op = reduction_facts[e.op].combine;
    const DType carried = accumulates_wide(e.op) ? accumulator(to.dtype) : to.dtype;
    // A float sum starts at +0: of nothing but −0 it is +0, and no zero changes it.
    const bool sums_floats = op == Op::add && is_float(carried);
    Elements results(to.elements());
    std::size_t k = 0;
    for (const std::int64_t place : reduced_elements(from.shape, e.as<AxesParams>().axes)) {
      Number& so_far = results[place];
      const Number& element = x[k++];
      if (sums_floats && is_zero(element)) continue;
      Number next = converted(element, carried);
      if (sums_floats && !so_far && !e.assume_finite) so_far = number(0, carried);
      so_far = so_far ? kept(op, carried, so_far, next) : std::move(next);
    }
    for (Number& result : results)
      result = self().keep(converted(result ? result : neutral(e.op, carried), to.dtype));
    return results;
  }

  /// The first place of the greatest or least element of each run; NaN wins.
  Val position(const GraphBody& g, const Equation& e, const Val& x) {
    const Aval &from = g.aval(e.inputs[0]), &to = g.aval(e.outputs[0]);
    const bool greatest = e.op == Op::argmax;
    const AxisRuns runs(from.shape, e.as<ArgParams>().axis);
    const auto predicate = [&](Op op, Operands operands) {
      return self().apply(op, DType::bool_, {}, std::move(operands));
    };
    Elements places;
    for (std::int64_t n = 0; n < runs.count; ++n) {
      Number best = x[runs.at(n, 0)], where = number(0, to.dtype);
      for (std::int64_t k = 1; k < runs.length; ++k) {
        const Number& next = x[runs.at(n, k)];
        const Number better = self().keep(
            is_float(from.dtype)
                ? predicate(
                      Op::and_,
                      {predicate(Op::not_, {predicate(greatest ? Op::le : Op::ge, {next, best})}),
                       predicate(Op::not_, {predicate(Op::is_nan, {best})})})
                : predicate(greatest ? Op::gt : Op::lt, {next, best}));
        best = kept_choice(better, next, best);
        where = kept_choice(better, self().constant(Scalar(k).converted(to.dtype)), where);
      }
      places.push_back(std::move(where));
    }
    return places;
  }

  Val running(const GraphBody& g, const Equation& e, const Val& x) {
    const Aval& out = g.aval(e.outputs[0]);
    const auto& p = e.as<CumulativeParams>();
    const AxisRuns runs(out.shape, p.axis);
    const RunningOp step(e.op, out.dtype, runs.length);
    Elements all = x.elements();
    for (std::int64_t n = 0; n < runs.count; ++n) {
      // As a sum of all elements starts.
      Number so_far = step.op == Op::add && is_float(out.dtype) ? number(0, step.dtype) : Number();
      Number lost{};
      for (std::int64_t k = 0; k < runs.length; ++k) {
        Number& element = all[runs.at(n, p.reverse ? runs.length - 1 - k : k)];
        const Number next = self().keep(converted(element, step.dtype)), before = so_far;
        so_far = so_far ? kept(step.op, step.dtype, so_far, next) : next;
        element = self().keep(converted(so_far, out.dtype));
        if (!step.compensated || k == 0) continue;
        const auto in_double = [&](Op op, const Number& a, const Number& b) {
          return kept(op, DType::f64, a, b);
        };
        const Number taken = taken_by_rounding(before, next, so_far, in_double),
                     error = kept_choice(self().apply(Op::is_finite, DType::bool_, {}, {taken}),
                                         taken, number(0, DType::f64));
        lost = lost ? in_double(Op::add, lost, error) : error;
        element = in_double(Op::add, so_far, lost);
      }
    }
    return all;
  }

  Val product(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
    const DType dtype = e.as<DotParams>().dtype, carried = accumulator(dtype);
    const SmallProduct product(g, e);
    constexpr std::int64_t together = 8;  // terms in one expression
    Elements sums;
    for (std::int64_t i = 0, count = g.aval(e.outputs[0]).elements(); i < count; ++i) {
      // From +0 on, as all sums.
      Number sum = e.assume_finite ? Number() : number(0, carried);
      for (std::int64_t t = 0; t < product.terms(); ++t) {
        const SmallProduct::Factors factors = product.at(i, t);
        const Number x = converted(in[0][factors.lhs], carried),
                     y = converted(in[1][factors.rhs], carried);
        const bool is_known = self().is_constant(x) && self().is_constant(y);
        if (is_known ? is_zero(self().apply(Op::mul, carried, {}, {x, y}))
                     : e.assume_finite && (is_zero(x) || is_zero(y)))
          continue;
        sum = self().multiply_add(x, y, sum);
        if (t % together == together - 1 && sum) sum = self().keep(sum);
      }
      sums.push_back(self().keep(converted(sum ? sum : number(0, carried), dtype)));
    }
    return sums;
  }

  // ---- small matrices ---------------------------------------------------------------------------

  using Matrices = SmallMatrices<SmallArrays>;
  friend Matrices;

  Vec<Val> matrices(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
    const SmallMatrixSizes sizes = *small_matrix_sizes(g, e);
    const std::int64_t square = sizes.n * sizes.n, right = sizes.n * sizes.columns;
    Matrices of(*this, g.aval(e.inputs[0]).dtype, sizes.n);
    const auto part = [](const Val& v, std::int64_t at, std::int64_t count) {
      const Number* first = v.elements().begin() + at * count;
      return Elements(first, first + count);
    };
    Vec<Elements> results(e.outputs.size());
    const auto append = [&](std::size_t k, const Elements& x) {
      results[k].append(x.begin(), x.end());
    };
    for (std::int64_t at = 0; at < sizes.count; ++at) {
      Elements a = part(in[0], at, square);
      switch (e.op) {
        case Op::cholesky: {
          roots_.push_back(of.cholesky(a));
          append(0, roots_.back().lower);
          break;
        }
        case Op::lu: {
          typename Matrices::Factors factors = of.factored(a);
          const typename Matrices::Lu lu = of.lu(factors);
          append(0, lu.both);
          append(1, lu.pivots);
          append(2, lu.permutation);
          factors_.push_back({lu.both, std::move(factors)});
          break;
        }
        case Op::solve: {
          const bool transposed = e.as<SolveParams>().transposed;
          const bool is_factored = in.size() == 4;
          Elements b = part(in.back(), at, right);
          // Factors that are not made here are not read: a tells more of them where they overflow.
          const auto* known =
              is_factored ? find_same(factors_, part(in[1], at, square),
                                      [](const auto& f) -> const Elements& { return f.first; })
                          : nullptr;
          append(0, known ? of.solved(known->second, std::move(b), sizes.columns, transposed)
                          : of.solved(std::move(a), std::move(b), sizes.columns, transposed));
          break;
        }
        default: {  // triangular_solve
          const auto& p = e.as<TriangularParams>();
          const auto* root =
              find_same(roots_, a, [](const auto& r) -> const Elements& { return r.lower; });
          append(0, of.triangular_solved(a, part(in[1], at, right), sizes.columns,
                                         {p.lower, p.transposed, p.unit_diagonal},
                                         root ? &root->inverses : nullptr));
        }
      }
    }
    Vec<Val> values;
    for (Elements& all : results) values.push_back(std::move(all));
    return values;
  }
  /// What was made of these very numbers, if it was.
  template <class Made, class ElementsOf>
  const Made* find_same(const Vec<Made>& made, const Elements& x, const ElementsOf& elements_of) {
    for (const Made& m : made) {
      const Elements& own = elements_of(m);
      if (std::equal(own.begin(), own.end(), x.begin(), x.end(),
                     [&](const Number& a, const Number& b) { return self().is_same(a, b); }))
        return &m;
    }
    return nullptr;
  }
  /// What is known of matrices beyond the results of their equations.
  Vec<std::pair<Elements, typename Matrices::Factors>> factors_;
  Vec<typename Matrices::Cholesky> roots_;

  // ---- places that are known now ----------------------------------------------------------------

  Val moved(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
    Elements all;
    if (e.op != Op::concatenate) {
      for (const std::int64_t source : source_elements(g, e))
        all.push_back(source < 0 ? in[1][0] : in[0][source]);  // pad's value where there is none
      return all;
    }
    const Shape& shape = g.aval(e.outputs[0]).shape;
    std::int64_t outer = 1;
    for (int d = 0; d < e.as<AxisParams>().axis; ++d) outer *= shape[d];
    for (std::int64_t o = 0; o < outer; ++o)
      for (const Val& part : in) {
        const auto run = static_cast<std::int64_t>(part.elements().size()) / outer;
        for (std::int64_t i = 0; i < run; ++i) all.push_back(part[o * run + i]);
      }
    return all;
  }

 private:
  Val picked(const GraphBody& g, const Equation& e, const Val& array) {
    Elements all;
    for (const std::int64_t source : source_elements(g, e))
      all.push_back(self().keep(self().element_at(array, of_i64(source), 0)));
    return all;
  }

  // ---- places that are known at run time --------------------------------------------------------

  /// A start along an axis as an i64, moved inside as the interpreter does.
  Number clamped(Number start, std::int64_t most) {
    // An unsigned or wide start is compared in its own type, before it is narrowed.
    const DType d = start.dtype;
    const int bits = static_cast<int>(size_of(d)) * 8 - !is_unsigned(d);
    if (bits < 63) most = std::min(most, (std::int64_t{1} << bits) - 1);
    start = self().apply(Op::min, d, {}, {start, self().constant(Scalar(most).converted(d))});
    if (!is_unsigned(d)) start = self().apply(Op::max, d, {}, {start, number(0, d)});
    return self().keep(converted(start, DType::i64));
  }

  /// How far the elements of a window, here its element `n`, lie behind its first.
  static std::int64_t in_window(const Shape& shape, const Shape& sizes, std::int64_t n) {
    std::int64_t stride = 1, place = 0;
    for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d], n /= sizes[d])
      place += n % sizes[d] * stride;
    return place;
  }

  Val dynamic_slice(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
    const Shape &shape = g.aval(e.inputs[0]).shape, &sizes = e.as<ShapeParams>().shape;
    const Number start = start_of(shape, sizes, std::span<const Val>(in).subspan(1));
    const Val& from = self().readable(in[0]);
    Elements all;
    for (std::int64_t n = 0; n < sizes.elements(); ++n)
      all.push_back(self().keep(self().element_at(from, start, in_window(shape, sizes, n))));
    return all;
  }

  Val dynamic_update_slice(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
    const Shape &shape = g.aval(e.inputs[0]).shape, &sizes = g.aval(e.inputs[1]).shape;
    const Number start = start_of(shape, sizes, std::span<const Val>(in).subspan(2));
    Val to = self().updatable(in[0]);
    for (std::int64_t n = 0; n < sizes.elements(); ++n)
      self().put(to, start, in_window(shape, sizes, n), {}, Op::scatter, in[1][n]);
    return to;
  }

  /// An element as the definition in graph.hpp reads; `inside`: none if it always is.
  struct Target {
    Number place, inside;
  };
  Target target(const Shape& shape, const IndexedElement& at, IndexMode mode, const Val& indices) {
    Elements index(shape.size());
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (at.fixed[d] >= 0) index[d] = of_i64(at.fixed[d]);
    Target t{};
    const auto predicate = [&](Op op, const Number& x, const Number& y) {
      return self().apply(op, DType::bool_, {}, {x, y});
    };
    for (std::size_t k = 0; k < at.moved.size(); ++k) {
      const Number &start = indices[static_cast<std::size_t>(at.first) + k],
                   moved = clamped(start, at.at_most[k]);
      if (mode == IndexMode::fill) {
        // Unchanged by clamping: inside.
        const Number good = predicate(Op::eq, converted(moved, start.dtype), start);
        t.inside = t.inside ? predicate(Op::and_, t.inside, good) : good;
      }
      Number& i = index[at.moved[k]];
      i = i ? self().further(i, moved, 1) : moved;
    }
    t.place = self().keep(linear(shape, index));
    return t;
  }

  Val gathered(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
    const Aval& out = g.aval(e.outputs[0]);
    const Val& from = self().readable(in[0]);
    Elements all;
    for (std::int64_t n = 0, count = out.elements(); n < count; ++n) {
      const Target t = target(g.aval(e.inputs[0]).shape, gathered_element(g, e, n),
                              e.as<GatherParams>().mode, in[1]);
      const Number x = self().element_at(from, t.place, 0);
      all.push_back(t.inside ? kept_choice(t.inside, x, number(0, out.dtype)) : self().keep(x));
    }
    return all;
  }

  /// One update after the other, in row-major order.
  Val scattered(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
    Val to = self().updatable(in[0]);
    for (std::int64_t n = 0, count = g.aval(e.inputs[2]).elements(); n < count; ++n) {
      const Target t = target(g.aval(e.inputs[0]).shape, scattered_element(g, e, n),
                              e.as<ScatterParams>().mode, in[1]);
      self().put(to, t.place, 0, t.inside, combination_of(e.op), in[2][n]);
    }
    return to;
  }
};

}  // namespace vt::detail
