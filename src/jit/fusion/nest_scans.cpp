// Scans and user reductions as values that the loops of a nest carry.
#include "nest_scans.hpp"

#include <limits>

#include "../nest/two_sum.hpp"

namespace vt::detail {

namespace nest_scanning {

/// So many scans side by side have a SIMD lane each, and need not be grouped.
constexpr std::int64_t rows_for_simd_lanes = 8;

// The state of a reduction that is still to be added as number `reduction`.
int state_value(NestBuilder& b, int reduction, DType dtype, bool before = false) {
  NestValue v;
  v.kind = NestValue::Kind::state;
  v.low = before ? 1 : 0;
  v.argument = reduction;
  v.dtype = dtype;
  return b.add_value(std::move(v));
}

// States of a fold whose next values are given after the states are known.
class Fold {
 public:
  Fold(NestBuilder& b, int stage)
      : b_(b), stage_(stage), first_(static_cast<int>(b.nest().reductions.size())) {}

  /// All states before the first `next`.
  int state(int init) {
    NestReduction r;
    r.op = Op::reduce;
    r.stage = stage_;
    r.dtype = b_.nest().values[init].dtype;
    r.init = init;
    r.state = state_value(b_, static_cast<int>(b_.nest().reductions.size()), r.dtype);
    b_.nest().reductions.push_back(r);
    return r.state;
  }
  void next(std::size_t k, int value) {
    b_.nest().reductions[static_cast<std::size_t>(first_) + k].value = value;
  }
  int first() const { return first_; }

 private:
  NestBuilder& b_;
  int stage_, first_;
};

// Arithmetic on values of one dtype.
struct Numbers {
  NestBuilder& b;
  DType d;
  int number(double x) const { return b.literal(Scalar(x).converted(d)); }
  int binary(Op op, int x, int y) const { return b.op(op, d, {x, y}); }
  int add(int x, int y) const { return binary(Op::add, x, y); }
  int sub(int x, int y) const { return binary(Op::sub, x, y); }
  int mul(int x, int y) const { return binary(Op::mul, x, y); }
  int unary(Op op, int x) const { return b.op(op, d, {x}); }
  int test(Op op, int x, int y) const { return b.op(op, DType::bool_, {x, y}); }
  int is_nan(int x) const { return b.op(Op::is_nan, DType::bool_, {x}); }
  int either(int x, int y) const { return b.op(Op::or_, DType::bool_, {x, y}); }
  int select(int mask, int x, int y) const { return b.op(Op::select, d, {mask, x, y}); }
};

// Scans whose iterations may be grouped: the emitter does several SIMD lanes at once.
int running(NestBuilder& b, Op op, int x, int stage) {
  NestReduction r;
  r.op = op;
  r.stage = stage;
  r.value = x;
  r.dtype = b.nest().values[x].dtype;
  r.running = true;
  r.state = state_value(b, static_cast<int>(b.nest().reductions.size()), r.dtype);
  b.nest().reductions.push_back(r);
  return r.state;
}

// The sum and what rounding took from it, in double.
int compensated_sum(NestBuilder& b, int x, int stage) {
  const Numbers n{b, DType::f64};
  Fold fold(b, stage);
  const int sum = fold.state(n.number(0)), lost = fold.state(n.number(0));
  const int next = n.add(sum, x);
  const auto apply = [&](Op op, int a, int b) { return n.binary(op, a, b); };
  const int all_lost = n.add(lost, taken_by_rounding(sum, x, next, apply));
  fold.next(0, next);
  fold.next(1, all_lost);
  return n.select(b.op(Op::is_finite, DType::bool_, {next}), n.add(next, all_lost), next);
}

// The same where iterations may be grouped. However the sum is made, what it rose by in an
// iteration is the difference of two doubles, which two doubles hold exactly (Knuth's TwoSum);
// what is missing of x then is added up beside it.
int grouped_compensated_sum(NestBuilder& b, int x, int stage) {
  const Numbers n{b, DType::f64};
  const auto r = b.nest().reductions.size();
  const int sum = running(b, Op::reduce_sum, x, stage);
  const int before = state_value(b, static_cast<int>(r), DType::f64, true);
  b.nest().reductions[r].before = before;
  const int rise = n.sub(sum, before), back = n.sub(rise, sum);
  const int cut = n.sub(n.sub(sum, n.sub(rise, back)), n.add(before, back));
  const int missing = n.sub(n.sub(x, rise), cut);
  // Once the sum is infinite or NaN nothing is.
  const int lost = n.select(b.op(Op::is_finite, DType::bool_, {missing}), missing, n.number(0));
  return n.add(sum, running(b, Op::reduce_sum, lost, stage));
}

int product(NestBuilder& b, int x, int stage) {
  const Numbers n{b, DType::f64};
  Fold fold(b, stage);
  const int next = n.mul(fold.state(n.number(1)), x);
  fold.next(0, next);
  return next;
}

// log Σ exp, scaled by the greatest element so far, in double.
int log_sum_exp(NestBuilder& b, int x, int stage) {
  const Numbers n{b, DType::f64};
  const int lowest = n.number(-std::numeric_limits<double>::infinity());
  Fold fold(b, stage);
  const int greatest = fold.state(lowest), scaled = fold.state(n.number(0));
  const int x_nan = n.is_nan(x), rises = n.test(Op::gt, x, greatest);
  // Of equal infinities the difference would be NaN.
  const int factor =
      n.select(n.test(Op::eq, x, greatest), n.number(1),
               n.unary(Op::exp, n.select(rises, n.sub(greatest, x), n.sub(x, greatest))));
  const int grown =
      n.select(rises, n.add(n.mul(scaled, factor), n.number(1)), n.add(scaled, factor));
  const int unchanged = n.either(n.either(x_nan, n.is_nan(greatest)), n.test(Op::eq, x, lowest));
  const int next_scaled = n.select(unchanged, scaled, grown);
  const int next_greatest = n.select(n.either(x_nan, rises), x, greatest);
  fold.next(0, next_greatest);
  fold.next(1, next_scaled);
  return n.add(next_greatest, n.unary(Op::log, next_scaled));
}

}  // namespace nest_scanning

int add_scan(NestBuilder& b, Op op, int operand, DType dtype, int stage, std::int64_t rows) {
  using namespace nest_scanning;
  const bool floats = is_float(dtype);
  const auto wide = [&] { return b.convert(operand, DType::f64); };
  int result = -1;
  switch (op) {
    case Op::cummax: return running(b, Op::reduce_max, operand, stage);
    case Op::cummin: return running(b, Op::reduce_min, operand, stage);
    case Op::cumlogsumexp: result = log_sum_exp(b, wide(), stage); break;
    case Op::cumprod:
      // In any other order a product of finite numbers may overflow before a zero comes.
      if (!floats) return running(b, Op::reduce_prod, operand, stage);
      result = product(b, wide(), stage);
      break;
    default:
      if (!floats) return running(b, Op::reduce_sum, operand, stage);
      result = dtype != DType::f64          ? running(b, Op::reduce_sum, wide(), stage)
               : rows < rows_for_simd_lanes ? grouped_compensated_sum(b, operand, stage)
                                            : compensated_sum(b, operand, stage);
      break;
  }
  return b.convert(result, dtype);
}

int add_fold(NestBuilder& b, const GraphBody& body, const Vec<int>& elements, const Vec<int>& inits,
             int stage) {
  nest_scanning::Fold fold(b, stage);
  Vec<int> arguments;
  for (int init : inits) arguments.push_back(fold.state(init));
  arguments.append(elements.begin(), elements.end());
  const Vec<int> next = b.apply(body, arguments);
  for (std::size_t k = 0; k < next.size(); ++k) fold.next(k, next[k]);
  return fold.first();
}

}  // namespace vt::detail
