// Batches of tiny matrix products: each whole product lies in a vector register, often several side
// by side.
#include "matmul_emit.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/detail/small_vec.hpp>

namespace vt::detail::cpu {

namespace matmul_registers {

// Lane l of c belongs to product l / (m·n) and there to row l / n % m and column l % n. For each k
// one shuffle of a's register and one of b's bring the two factors into that lane.
class RegisterProducts {
 public:
  RegisterProducts(IrBuilder& b, const MatmulSpec& s, const RegisterPlan& plan)
      : b_(b), s_(s), plan_(plan) {}

  void emit(const std::string& name) {
    b_.begin_function(name, {Param::ptr(), Param::ptr(), Param{.pointer = true, .noalias = true},
                             Param::of(i64), Param::of(i64)});
    const Value begin = b_.arg(3), end = b_.arg(4), per = b_.index(plan_.products);
    const Value middle = b_.add(begin, b_.mul(b_.div(b_.sub(end, begin), per), per));
    b_.for_range(begin, middle, plan_.products, [&](Value i) { some(i, per); });
    if (plan_.products > 1)
      b_.if_then(b_.compare(Compare::lt, middle, end), [&] { some(middle, b_.sub(end, middle)); });
    b_.end_function();
  }

 private:
  // `count` products from product i on.
  void some(Value i, Value count) {
    const Value a = load(b_.arg(0), s_.a_dtype, i, s_.a_batch, s_.m * s_.k, count);
    const bool by_rows = plan_.products == 1 && s_.b_column == 1 && plan_.simd_lanes % s_.n == 0;
    const Value all_b =
        by_rows ? Value{} : load(b_.arg(1), s_.b_dtype, i, s_.b_batch, s_.k * s_.n, count);
    Value sum = b_.integer(s_.accumulate, 0, plan_.simd_lanes);
    for (std::int64_t k = 0; k < s_.k; ++k) {
      const Value left = pick(a, s_.a_batch, [&](std::int64_t row, std::int64_t) {
        return row * s_.a_row + k * s_.a_column;
      });
      Value right;
      if (by_rows) {  // a load that repeats what it reads needs no shuffle
        const Value at =
            b_.offset(b_.offset(b_.arg(1), s_.b_dtype, b_.mul(i, b_.index(s_.b_batch))), s_.b_dtype,
                      b_.index(k * s_.b_row));
        const Value row =
            b_.convert(b_.load(at, s_.b_dtype, static_cast<int>(s_.n)), s_.accumulate);
        right = s_.n == 1 ? b_.splat(row, plan_.simd_lanes)
                          : pick(row, 0, [&](std::int64_t, std::int64_t column) { return column; });
      } else {
        right = pick(all_b, s_.b_batch, [&](std::int64_t, std::int64_t column) {
          return k * s_.b_row + column * s_.b_column;
        });
      }
      sum = b_.mul_add(left, right, sum);
    }
    const Value to = b_.offset(b_.arg(2), s_.result, b_.mul(i, b_.index(s_.m * s_.n)));
    sum = b_.convert(sum, s_.result);
    const Value mask = mask_of(s_.m * s_.n, count);
    if (mask) b_.store_masked(to, sum, mask);
    else b_.store(to, sum);
  }

  Value mask_of(std::int64_t elements, Value count) {
    if (b_.is_constant(count) && plan_.products * elements == plan_.simd_lanes) return {};
    return b_.tail_mask(plan_.simd_lanes, b_.mul(count, b_.index(elements)));
  }

  Value load(Value operand, DType d, Value i, std::int64_t batch, std::int64_t elements,
             Value count) {
    const Value at = b_.offset(operand, d, b_.mul(i, b_.index(batch)));
    const Value mask = batch == 0 ? elements == plan_.simd_lanes
                                        ? Value{}
                                        : b_.tail_mask(plan_.simd_lanes, b_.index(elements))
                                  : mask_of(elements, count);
    return b_.convert(mask ? b_.load_masked(at, d, mask) : b_.load(at, d, plan_.simd_lanes),
                      s_.accumulate);
  }

  template <class Place>
  Value pick(Value from, std::int64_t batch, const Place& place) {
    Vec<int> simd_lanes;
    for (std::int64_t l = 0; l < plan_.simd_lanes; ++l) {
      const std::int64_t product = l / (s_.m * s_.n), row = l / s_.n % s_.m, column = l % s_.n;
      simd_lanes.push_back(
          product < plan_.products ? static_cast<int>(product * batch + place(row, column)) : -1);
    }
    return b_.shuffle(from, from, simd_lanes);
  }

  IrBuilder& b_;
  const MatmulSpec& s_;
  const RegisterPlan& plan_;
};

}  // namespace matmul_registers

std::optional<RegisterPlan> plan_register_products(const MatmulSpec& s, const Target& target) {
  const auto whole = [](std::int64_t batch, std::int64_t row, std::int64_t column,
                        std::int64_t rows, std::int64_t columns) {
    const bool dense = (row == columns && column == 1) || (row == 1 && column == rows);
    return dense && (batch == 0 || batch == rows * columns);
  };
  if (s.batch < 2 || !target.fma || !whole(s.a_batch, s.a_row, s.a_column, s.m, s.k) ||
      !whole(s.b_batch, s.b_row, s.b_column, s.k, s.n))
    return std::nullopt;
  const std::int64_t most = std::max({s.m * s.n, s.m * s.k, s.k * s.n});
  std::int64_t simd_lanes = target.simd_lanes(std::max<std::size_t>(size_of(s.accumulate), 4));
  if (most > simd_lanes) simd_lanes *= 2;  // two registers each
  if (most > simd_lanes) return std::nullopt;
  return RegisterPlan{static_cast<int>(simd_lanes), static_cast<int>(simd_lanes / most)};
}

void emit_register_products(IrBuilder& b, const std::string& name, const MatmulSpec& s,
                            const RegisterPlan& plan) {
  matmul_registers::RegisterProducts(b, s, plan).emit(name);
}

}  // namespace vt::detail::cpu

#endif
