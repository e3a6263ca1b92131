// Interpreter rules of ops on complex numbers. Everything is computed in complex doubles and
// rounded once.
#include <cmath>

#include "../base/accumulate.hpp"
#include "../numerics/complex_functions.hpp"
#include "interpreter.hpp"

namespace vt::detail::interp_complex {

using complex_functions::C;

// Frame::widened gives c128 elements, which are what std::complex<double> is.
const C* numbers(const BufferRef& buffer) { return buffer->as<const C>(); }

std::size_t count_of(const Aval& a) { return a.elements(); }

/// A result to fill with doubles or complex doubles.
template <class W>
struct Results {
  Frame& frame;
  BufferRef buffer;
  explicit Results(Frame& f) : frame(f), buffer(f.scratch(count_of(f.out()) * sizeof(W))) {}
  W* begin() { return buffer->as<W>(); }
  void finish() { frame.narrow(std::move(buffer)); }
};

void unary_function(Frame& frame, C (*f)(C)) {
  const BufferRef in = frame.widened();
  Results<C> out(frame);
  for (std::size_t i = 0, n = count_of(frame.out()); i < n; ++i) out.begin()[i] = f(numbers(in)[i]);
  out.finish();
}
template <C (*f)(C)>
void unary(Frame& frame) {
  unary_function(frame, f);
}
// Of the overloads and templates of <complex> those for C.
#define VT_COMPLEX_FUNCTION(name) \
  C name(C z) { return std::name(z); }
VT_COMPLEX_FUNCTION(exp)
VT_COMPLEX_FUNCTION(log)
VT_COMPLEX_FUNCTION(sqrt)
VT_COMPLEX_FUNCTION(sin)
VT_COMPLEX_FUNCTION(cos)
VT_COMPLEX_FUNCTION(tan)
VT_COMPLEX_FUNCTION(asin)
VT_COMPLEX_FUNCTION(acos)
VT_COMPLEX_FUNCTION(atan)
VT_COMPLEX_FUNCTION(sinh)
VT_COMPLEX_FUNCTION(cosh)
VT_COMPLEX_FUNCTION(tanh)
VT_COMPLEX_FUNCTION(asinh)
VT_COMPLEX_FUNCTION(acosh)
VT_COMPLEX_FUNCTION(atanh)
VT_COMPLEX_FUNCTION(conj)
#undef VT_COMPLEX_FUNCTION
C neg(C z) { return -z; }

void real_function(Frame& frame, double (*f)(C)) {
  const BufferRef in = frame.widened();
  Results<double> out(frame);
  for (std::size_t i = 0, n = count_of(frame.out()); i < n; ++i) out.begin()[i] = f(numbers(in)[i]);
  out.finish();
}
void abs(Frame& frame) {
  real_function(frame, [](C z) { return std::hypot(z.real(), z.imag()); });
}
void real(Frame& frame) {
  real_function(frame, [](C z) { return z.real(); });
}
void imag(Frame& frame) {
  real_function(frame, [](C z) { return z.imag(); });
}

void test(Frame& frame, bool (*f)(C)) {
  const BufferRef in = frame.widened();
  bool* out = frame.make<bool>();
  for (std::size_t i = 0, n = count_of(frame.out()); i < n; ++i) out[i] = f(numbers(in)[i]);
}
void is_finite(Frame& frame) {
  test(frame, [](C z) { return __builtin_isfinite(z.real()) && __builtin_isfinite(z.imag()); });
}
void is_nan(Frame& frame) {
  test(frame, [](C z) { return __builtin_isnan(z.real()) || __builtin_isnan(z.imag()); });
}
void is_inf(Frame& frame) {
  test(frame, [](C z) { return __builtin_isinf(z.real()) || __builtin_isinf(z.imag()); });
}

void integer_pow(Frame& frame) {
  const int exponent = frame.params<IntegerPowParams>().exponent;
  const BufferRef in = frame.widened();
  Results<C> out(frame);
  for (std::size_t i = 0, n = count_of(frame.out()); i < n; ++i)
    out.begin()[i] = complex_functions::integer_pow(numbers(in)[i], exponent);
  out.finish();
}

/// How far to step in operand i per element of the result.
std::size_t step_of(const Frame& frame, std::size_t i) { return frame.in(i).shape.empty() ? 0 : 1; }

void binary_function(Frame& frame, C (*f)(C, C)) {
  const BufferRef a = frame.widened(0), b = frame.widened(1);
  const std::size_t a_step = step_of(frame, 0), b_step = step_of(frame, 1);
  Results<C> out(frame);
  for (std::size_t i = 0, n = count_of(frame.out()); i < n; ++i)
    out.begin()[i] = f(numbers(a)[i * a_step], numbers(b)[i * b_step]);
  out.finish();
}
template <C (*f)(C, C)>
void binary(Frame& frame) {
  binary_function(frame, f);
}

template <bool wanted>
void equal(Frame& frame) {
  const BufferRef a = frame.widened(0), b = frame.widened(1);
  const std::size_t a_step = step_of(frame, 0), b_step = step_of(frame, 1);
  bool* out = frame.make<bool>();
  for (std::size_t i = 0, n = count_of(frame.out()); i < n; ++i)
    out[i] = (numbers(a)[i * a_step] == numbers(b)[i * b_step]) == wanted;
}

void complex(Frame& frame) {
  const BufferRef re = frame.widened(0), im = frame.widened(1);
  const std::size_t re_step = step_of(frame, 0), im_step = step_of(frame, 1);
  Results<C> out(frame);
  for (std::size_t i = 0, n = count_of(frame.out()); i < n; ++i)
    out.begin()[i] = C(re->as<const double>()[i * re_step], im->as<const double>()[i * im_step]);
  out.finish();
}

// --- reductions and scans ------------------------------------------------------------------------

class Sum {
 public:
  void add(C z) {
    re_.add(z.real());
    im_.add(z.imag());
  }
  C value() const { return {re_.value(), im_.value()}; }

 private:
  accumulate::Sum<double> re_, im_;
};
class Prod {
 public:
  void add(C z) { product_ = complex_functions::product(product_, z); }
  C value() const { return product_; }

 private:
  C product_ = 1;
};

template <class State>
void reduction(Frame& frame) {
  const interp_reduce::Rows rows = interp_reduce::gather_rows(
      frame, frame.widened(), DType::c128, frame.in().shape, frame.params<AxesParams>().axes);
  Results<C> out(frame);
  for (std::int64_t i = 0; i < rows.count; ++i) {
    State state;
    for (std::int64_t k = 0; k < rows.length; ++k) state.add(rows.row<C>(i)[k]);
    out.begin()[i] = state.value();
  }
  out.finish();
}

template <class State>
void cumulative(Frame& frame) {
  const auto& params = frame.params<CumulativeParams>();
  const Shape& shape = frame.in().shape;
  const std::size_t axis = params.axis;
  const std::int64_t n = shape[axis], inner = row_major_strides(shape)[axis],
                     rows = n == 0 ? 0 : shape.elements() / n;
  const std::int64_t step = params.reverse ? -inner : inner,
                     begin = params.reverse ? (n - 1) * inner : 0;
  const BufferRef in = frame.widened();
  Results<C> out(frame);
  for (std::int64_t row = 0; row < rows; ++row) {
    State state;
    std::int64_t p = row / inner * (n * inner) + row % inner + begin;
    for (std::int64_t i = 0; i < n; ++i, p += step) {
      state.add(numbers(in)[p]);
      out.begin()[p] = state.value();
    }
  }
  out.finish();
}

// --- scatters ------------------------------------------------------------------------------------

template <C (*combine)(C, C)>
void scatter(Frame& frame) {
  const BufferRef before = frame.widened(0), updates = frame.widened(2);
  Results<C> out(frame);
  std::memcpy(out.begin(), before->data, count_of(frame.out()) * sizeof(C));
  const C* update = numbers(updates);
  for (const std::int64_t to : interp_index::update_positions(frame)) {
    if (to >= 0) out.begin()[to] = combine(out.begin()[to], *update);
    ++update;
  }
  out.finish();
}

// --- the table -----------------------------------------------------------------------------------

namespace fn = complex_functions;

inline constexpr auto rules = rule_table<InterpretRule>({
    {Op::neg, unary<neg>},
    {Op::abs, abs},
    {Op::sign, unary<fn::sign>},
    {Op::exp, unary<exp>},
    {Op::exp2, unary<fn::exp2>},
    {Op::expm1, unary<fn::expm1>},
    {Op::log, unary<log>},
    {Op::log1p, unary<fn::log1p>},
    {Op::log2, unary<fn::log2>},
    {Op::sqrt, unary<sqrt>},
    {Op::rsqrt, unary<fn::rsqrt>},
    {Op::sin, unary<sin>},
    {Op::cos, unary<cos>},
    {Op::tan, unary<tan>},
    {Op::asin, unary<asin>},
    {Op::acos, unary<acos>},
    {Op::atan, unary<atan>},
    {Op::sinh, unary<sinh>},
    {Op::cosh, unary<cosh>},
    {Op::tanh, unary<tanh>},
    {Op::asinh, unary<asinh>},
    {Op::acosh, unary<acosh>},
    {Op::atanh, unary<atanh>},
    {Op::sigmoid, unary<fn::sigmoid>},
    {Op::real, real},
    {Op::imag, imag},
    {Op::conj, unary<conj>},
    {Op::is_finite, is_finite},
    {Op::is_nan, is_nan},
    {Op::is_inf, is_inf},
    {Op::integer_pow, integer_pow},
    {Op::add, binary<fn::add>},
    {Op::sub, binary<fn::sub>},
    {Op::mul, binary<fn::mul>},
    {Op::div, binary<fn::div>},
    {Op::pow, binary<fn::pow>},
    {Op::eq, equal<true>},
    {Op::ne, equal<false>},
    {Op::complex, complex},
    {Op::reduce_sum, reduction<Sum>},
    {Op::reduce_prod, reduction<Prod>},
    {Op::cumsum, cumulative<Sum>},
    {Op::cumprod, cumulative<Prod>},
    {Op::scatter_add, scatter<fn::add>},
    {Op::scatter_mul, scatter<fn::product>},
});

InterpretRule rule_of(Op op) {
  return rules.has[static_cast<std::size_t>(op)] ? rules[op] : nullptr;
}

}  // namespace vt::detail::interp_complex
