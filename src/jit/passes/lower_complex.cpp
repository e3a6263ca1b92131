// lower_complex: records a Graph again with two real Tensors in place of each complex one.
#include "lower_complex.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <vt/control.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/base/stack.hpp"
#include "../../trace/ir/recursive_function.hpp"
#include "../../trace/record/recursion.hpp"
#include "../../trace/record/scope.hpp"
#include "../../trace/record/thread_state.hpp"
#include "complex_formulas.hpp"

namespace vt::detail {

namespace complex_lowering {

/// Thrown where an op has no real form; caught by lower_complex.
struct NoRealForm {};

/// What a complex Var holds: one Tensor whose last axis are the two parts, or the parts, or (once
/// asked for) both.
struct Value {
  Tensor whole;
  ComplexParts parts;
};

Aval whole_aval(const Aval& a) {
  if (!is_complex(a.dtype)) return a;
  Shape shape = a.shape;
  shape.push_back(2);
  return Aval(real_dtype(a.dtype), shape, a.weak);
}

Tensor part_of(const Tensor& whole, std::int64_t k) {
  SliceParams p{Shape::filled(whole.shape().size(), 0), whole.shape(),
                Shape::filled(whole.shape().size(), 1)};
  p.start.back() = k;
  p.limit.back() = k + 1;
  Shape shape = whole.shape();
  shape.pop_back();
  return emit(Op::reshape, make_params(ShapeParams{shape}),
              {emit(Op::slice, make_params(std::move(p)), {whole}, {})}, {});
}

Tensor joined(const ComplexParts& parts) {
  Shape shape = parts.re.shape();
  shape.push_back(1);
  const ParamsRef p = make_params(ShapeParams{shape});
  return emit(Op::concatenate, make_params(AxisParams{shape.rank() - 1}),
              {emit(Op::reshape, p, {parts.re}, {}), emit(Op::reshape, p, {parts.im}, {})}, {});
}

/// `seen`: bodies that have none, or are being looked at.
bool has_complex(const GraphBody& graph, HashMap<const GraphBody*, bool>& seen) {
  need_stack({});
  if (!seen.emplace(&graph, true).fresh) return false;
  if (any_of(graph.avals, [](const Aval& a) { return vt::is_complex(a.dtype); })) return true;
  return any_of(graph.equations, [&](const Equation& e) {
    if (e.op == Op::recursive_call) {
      const GraphRef& body = e.as<RecursionParams>().function->body;
      return body && has_complex(*body, seen);
    }
    return any_of(bodies_of(e.params),
                  [&](const GraphRef& body) { return has_complex(*body, seen); });
  });
}

class Lowering {
 public:
  explicit Lowering(const GraphBody& graph) : graph_(graph), values_(graph.avals.size()) {}

  /// `as_parts`: complex inputs and outputs are two each instead of one with two parts.
  GraphBody run(bool as_parts) {
    RecordingScope scope({.kind = ScopeKind::branch, .transform = "vt::jit"});
    for (Var v : graph_.inputs) {
      const Aval& a = graph_.aval(v);
      if (as_parts && is_complex(a.dtype)) {
        const Aval part(real_dtype(a.dtype), a.shape);
        Tensor re = scope.input(part), im = scope.input(part);
        at(v).parts = {std::move(re), std::move(im)};
      } else {
        at(v).whole = scope.input(whole_aval(a));
      }
    }
    for (const Equation& e : graph_.equations) {
      const LikeEquation like(e);
      equation(e);
    }
    std::vector<Tensor> outputs;
    for (Var v : graph_.outputs) {
      if (as_parts && is_complex(v)) {
        outputs.push_back(parts(v).re);
        outputs.push_back(parts(v).im);
      } else {
        outputs.push_back(whole(v));
      }
    }
    values_.clear();
    return scope.finish(outputs).graph;
  }

 private:
  Value& at(Var v) { return values_[v]; }
  bool is_complex(Var v) const { return vt::is_complex(graph_.aval(v).dtype); }
  static bool is_complex(DType d) { return vt::is_complex(d); }

  const Tensor& whole(Var v) {
    Value& x = at(v);
    if (!x.whole.defined()) x.whole = joined(x.parts);
    return x.whole;
  }
  const ComplexParts& parts(Var v) {
    Value& x = at(v);
    if (!x.parts.re.defined()) x.parts = {part_of(x.whole, 0), part_of(x.whole, 1)};
    return x.parts;
  }

  /// Formulas may leave a scalar part where only the other operand had a shape.
  void give(Var v, ComplexParts p) {
    for (Tensor* t : {&p.re, &p.im}) {
      const Aval& a = graph_.aval(v);
      if (t->shape() != a.shape)
        *t = emit(Op::broadcast_in_dim, make_params(BroadcastParams{a.shape, {}}), {*t}, {});
    }
    at(v).parts = std::move(p);
  }
  void give_real(Var v, Tensor t) { at(v).whole = std::move(t); }

  /// The equation on the real parts, and on the imaginary ones.
  void by_parts(const Equation& e) {
    ComplexParts result;
    for (Tensor ComplexParts::* part : {&ComplexParts::re, &ComplexParts::im}) {
      SmallVec<Tensor, 4> operands;
      for (Var v : e.inputs) operands.push_back(is_complex(v) ? parts(v).*part : whole(v));
      result.*part =
          emit(e.op, e.params, std::span<const Tensor>(operands.data(), operands.size()), {});
    }
    give(e.outputs[0], std::move(result));
  }

  /// The equation with `params` on operands and results whose last axis are the two parts.
  void as_wholes(const Equation& e, ParamsRef params) {
    SmallVec<Tensor, 4> operands;
    for (Var v : e.inputs) operands.push_back(whole(v));
    const auto results = emit_all(e.op, std::move(params),
                                  std::span<const Tensor>(operands.data(), operands.size()), {});
    for (std::size_t i = 0; i < e.outputs.size(); ++i) at(e.outputs[i]).whole = results[i];
  }
  /// Is it there as one Tensor, and not yet taken apart?
  bool is_whole(Var v) { return at(v).whole.defined() && !at(v).parts.re.defined(); }
  /// A window of an array, read or written, both parts of whose elements lie together. So an array
  /// that a loop carries is updated where it lies.
  void window_of_whole(const Equation& e) {
    std::vector<Tensor> operands;
    for (Var v : e.inputs) operands.push_back(whole(v));
    const Aval index(operands.back().dtype(), Shape{});
    operands.push_back(full_tensor(Scalar(0).converted(index.dtype), index));
    ParamsRef params = e.params;
    if (e.op == Op::dynamic_slice) {
      Shape sizes = e.as<ShapeParams>().shape;
      sizes.push_back(2);
      params = make_params(ShapeParams{sizes});
    }
    at(e.outputs[0]).whole = emit(e.op, std::move(params), operands, {});
  }
  void with_bodies_lowered(const Equation& e) {
    Vec<GraphRef> bodies = bodies_of(e.params);
    for (GraphRef& body : bodies)
      body = std::make_shared<const GraphBody>(Lowering(*body).run(false));
    as_wholes(e, with_bodies(e.params, bodies));
  }

  /// The call of a function that calls itself: of one in real numbers, which belongs to the same
  /// family.
  void recursion(const Equation& e) {
    const auto& p = e.as<RecursionParams>();
    Vec<Aval> outputs;
    for (Var v : e.outputs) outputs.push_back(whole_aval(graph_.aval(v)));
    as_wholes(e, make_params(derive_recursive(
                     p, DerivedKey("real"), std::move(outputs), p.function->effects,
                     [&] { return Recorded{Lowering(*p.function->body).run(false)}; })));
  }

  /// The equation with two operands and results for each complex one.
  void expanded(const Equation& e, ParamsRef params) {
    std::vector<Tensor> operands;
    for (Var v : e.inputs) {
      if (is_complex(v)) {
        operands.push_back(parts(v).re);
        operands.push_back(parts(v).im);
      } else {
        operands.push_back(whole(v));
      }
    }
    const auto results = emit_all(e.op, std::move(params), operands, {});
    std::size_t next = 0;
    for (Var v : e.outputs) {
      if (is_complex(v)) {
        give(v, {results[next], results[next + 1]});
        next += 2;
      } else {
        give_real(v, results[next++]);
      }
    }
  }

  void convert(const Equation& e) {
    const Var in = e.inputs[0], out = e.outputs[0];
    const DType to = real_dtype(graph_.aval(out).dtype);
    // to bool
    if (!is_complex(out)) return give_real(out, (parts(in).re != 0) | (parts(in).im != 0));
    if (is_complex(in)) return give(out, {parts(in).re.astype(to), parts(in).im.astype(to)});
    const Tensor re = whole(in).astype(to);
    give(out, {re, zeros_like(re)});
  }

  /// A matrix product or a convolution.
  void contraction(const Equation& e) {
    ParamsRef params;
    if (e.op == Op::dot_general) {
      DotParams p = e.as<DotParams>();
      p.dtype = real_dtype(p.dtype);
      params = make_params(std::move(p));
    } else {
      ConvParams p = e.as<ConvParams>();
      p.dot.dtype = real_dtype(p.dot.dtype);
      params = make_params(std::move(p));
    }
    const auto product = [&](const Tensor& a, const Tensor& b) {
      return emit(e.op, params, {a, b}, {});
    };
    const ComplexParts a = parts(e.inputs[0]), b = parts(e.inputs[1]);
    give(e.outputs[0],
         {product(a.re, b.re) - product(a.im, b.im), product(a.re, b.im) + product(a.im, b.re)});
  }

  void reduce_prod(const Equation& e) {
    const ComplexParts z = parts(e.inputs[0]);
    const Aval scalar(z.re.dtype(), Shape{});
    RecordingScope scope({.kind = ScopeKind::branch, .transform = "vt::jit"});
    std::vector<Tensor> in;
    for (int i = 0; i < 4; ++i) in.push_back(scope.input(scalar));
    // What it starts from, and any other 1, leaves the next factor as it is.
    const Tensor one_so_far = (in[0] == 1) & (in[1] == 0);
    ComplexParts product = complex_product({in[0], in[1]}, {in[2], in[3]});
    product = {where(one_so_far, in[2], product.re), where(one_so_far, in[3], product.im)};
    ReduceParams p;
    p.axes = e.as<AxesParams>().axes;
    p.body = std::make_shared<const GraphBody>(
        scope.finish(std::vector<Tensor>{product.re, product.im}).graph);
    const Tensor one = full_tensor(Scalar(1).converted(scalar.dtype), scalar),
                 zero = full_tensor(Scalar(0).converted(scalar.dtype), scalar);
    const auto results = emit_all(Op::reduce, make_params(std::move(p)),
                                  std::vector<Tensor>{z.re, z.im, one, zero}, {});
    give(e.outputs[0], {results[0], results[1]});
  }

  void cumprod(const Equation& e) {
    const auto& p = e.as<CumulativeParams>();
    const auto multiply = [](const std::pair<Tensor, Tensor>& a,
                             const std::pair<Tensor, Tensor>& b) {
      const ComplexParts product = complex_product({a.first, a.second}, {b.first, b.second});
      return std::pair(product.re, product.im);
    };
    const ComplexParts z = parts(e.inputs[0]);
    if (z.re.size() == 0) return give(e.outputs[0], z);
    const auto [re, im] =
        associative_scan(multiply, std::pair(z.re, z.im), {.axis = p.axis, .reverse = p.reverse});
    give(e.outputs[0], {re, im});
  }

  void equation(const Equation& e) {
    const bool some = any_of(e.inputs, [&](Var v) { return is_complex(v); }) ||
                      any_of(e.outputs, [&](Var v) { return is_complex(v); });
    if (e.op == Op::recursive_call &&
        (some || detail::has_complex(*e.as<RecursionParams>().function->body)))
      return recursion(e);
    if (!some) {
      const Vec<GraphRef> bodies = bodies_of(e.params);
      if (any_of(bodies, [](const GraphRef& b) { return has_complex(*b); }))
        return with_bodies_lowered(e);
      SmallVec<Tensor, 4> operands;
      for (Var v : e.inputs) operands.push_back(whole(v));
      repeat(graph_, e, std::span<const Tensor>(operands.data(), operands.size()),
             [&](Var v, Tensor t) { give_real(v, std::move(t)); });
      return;
    }
    const Var out = e.outputs[0];
    const auto in = [&](std::size_t i = 0) -> const ComplexParts& { return parts(e.inputs[i]); };
    const auto test = [&](Tensor (*of)(Operand), bool both) {
      const Tensor re = of(in().re), im = of(in().im);
      give_real(out, both ? re & im : re | im);
    };
    switch (e.op) {
      case Op::full: {
        const auto& p = e.as<FullParams>();
        if (p.unset) {
          const Aval all = whole_aval(p.aval);
          at(out).whole = emit(
              Op::full, make_params(FullParams{Scalar(0).converted(all.dtype), all, true}), {}, {});
          return;
        }
        const Aval part(real_dtype(p.aval.dtype), p.aval.shape);
        const auto filled = [&](double number) {
          const Scalar value = Scalar(number).converted(part.dtype);
          return emit(Op::full, make_params(FullParams{value, part}), {}, {});
        };
        return give(out, {filled(p.value.real), filled(p.value.imaginary)});
      }
      case Op::constant: {
        const auto& p = e.as<ConstantParams>();
        at(out).whole =
            emit(Op::constant, make_params(ConstantParams{p.buffer, whole_aval(p.aval)}), {}, {});
        return;
      }
      case Op::real: return give_real(out, in().re);
      case Op::imag: return give_real(out, in().im);
      case Op::complex: return give(out, {whole(e.inputs[0]), whole(e.inputs[1])});
      case Op::abs: return give_real(out, hypot(in().re, in().im));
      case Op::is_finite: return test(isfinite, true);
      case Op::is_nan: return test(isnan, false);
      case Op::is_inf: return test(isinf, false);
      case Op::eq: return give_real(out, (in(0).re == in(1).re) & (in(0).im == in(1).im));
      case Op::ne: return give_real(out, (in(0).re != in(1).re) | (in(0).im != in(1).im));
      case Op::convert: return convert(e);
      case Op::integer_pow:
        return give(out, complex_power(in(), e.as<IntegerPowParams>().exponent));
      case Op::neg:
      case Op::add:
      case Op::sub:
      case Op::select:
      case Op::bitcast:
      case Op::stop_gradient:
      case Op::reduce_sum:
      case Op::cumsum:
      case Op::reshape:
      case Op::transpose:
      case Op::broadcast_in_dim:
      case Op::concatenate:
      case Op::pad:
      case Op::rev:
      case Op::slice:
      case Op::gather:
      case Op::scatter:
      case Op::scatter_add:
      case Op::windows:
      case Op::overlap_add: return by_parts(e);
      case Op::dynamic_slice:
      case Op::dynamic_update_slice:
        return is_whole(e.inputs[0]) && graph_.aval(out).shape.rank() > 0 ? window_of_whole(e)
                                                                          : by_parts(e);
      case Op::reduce_prod: return reduce_prod(e);
      case Op::cumprod: return cumprod(e);
      case Op::dot_general:
      case Op::conv_general: return contraction(e);
      case Op::fft: {
        FftParams p = e.as<FftParams>();
        p.parts = true;
        return as_wholes(e, make_params(std::move(p)));
      }
      case Op::sort: return expanded(e, e.params);
      case Op::reduce: {
        ReduceParams p = e.as<ReduceParams>();
        p.body = std::make_shared<const GraphBody>(Lowering(*p.body).run(true));
        return expanded(e, make_params(std::move(p)));
      }
      case Op::call:
      case Op::batched_call:
      case Op::custom_jvp:
      case Op::custom_vjp:
      case Op::custom_vmap:
      case Op::checkpoint:
      case Op::cond:
      case Op::while_:
      case Op::scan: return with_bodies_lowered(e);
      default: break;
    }
    if (family_of(e.op) == Family::linalg)
      return as_wholes(e, make_params(PartsParams{e.params, is_complex(e.inputs[0])}));
    ComplexParts result;
    const ComplexParts none;
    if (!is_elementwise(e.op) ||
        !complex_formula(e.op, in(0), e.inputs.size() > 1 ? in(1) : none, result))
      throw NoRealForm{};
    give(out, std::move(result));
  }

  const GraphBody& graph_;
  Vec<Value> values_;
};

}  // namespace complex_lowering

bool has_complex(const GraphBody& graph) {
  HashMap<const GraphBody*, bool> seen;
  return complex_lowering::has_complex(graph, seen);
}

std::optional<GraphBody> lower_complex(const GraphBody& graph) {
  try {
    return simplify(complex_lowering::Lowering(graph).run(false), SimplifyFor::running);
  } catch (const complex_lowering::NoRealForm&) {
    return std::nullopt;
  }
}

}  // namespace vt::detail
