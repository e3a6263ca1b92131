// The costs that schedules are decided by.
#include "cost_model.hpp"

#include <bit>

#include "schedule.hpp"

namespace vt::detail {

// clang-format off
int op_weight(Op op, DType d) {
  switch (op) {
    case Op::exp: case Op::exp2: case Op::sigmoid: case Op::expm1: case Op::log: case Op::log2: case Op::log1p: case Op::tanh: return 15;
    case Op::sin: case Op::cos: case Op::tan: case Op::asin: case Op::acos: case Op::atan: case Op::sinh: case Op::cosh: case Op::asinh:
    case Op::acosh: case Op::atanh: case Op::erf: case Op::erfc: case Op::erf_inv: case Op::cbrt: case Op::atan2:
      return 25;
    case Op::pow: case Op::lgamma: case Op::digamma: case Op::threefry: return 60;
    case Op::gamma: case Op::erfcx: case Op::erfc_inv: case Op::ndtr: case Op::log_ndtr: case Op::dawsn: case Op::expi: case Op::spence: case Op::fresnel_sin: case Op::fresnel_cos:
    case Op::bessel_i0e: case Op::bessel_i1e: case Op::bessel_k0e: case Op::bessel_k1e: case Op::bessel_j0: case Op::bessel_j1: case Op::bessel_y0: case Op::bessel_y1:
    case Op::zeta:
      return 120;
    case Op::div: return is_float(d) ? 4 : 15;
    case Op::rem: return 20;
    case Op::sqrt: case Op::rsqrt: return 6;
    case Op::max: case Op::min: case Op::nextafter: case Op::sign: return 3;
    default: return d == DType::f16 || d == DType::bf16 ? 4 : 1;
  }
}
// clang-format on

double scheduling::access_cost(const LaneStep& s, int lanes, bool turned) {
  if (turned && (!s.regular || s.step > 1 || s.step < -1)) return 2 + 0.5 * std::bit_width(static_cast<unsigned>(lanes));
  if (!s.regular) return 0.8 * lanes + 2;
  if (s.step == 0) return 0.3;
  if (s.step == 1) return 1.0;
  if (s.step == -1) return 2.0;
  return s.step >= 2 && s.step <= 4 ? 1.5 * static_cast<double>(s.step) : 0.7 * lanes + 2;
}

}  // namespace vt::detail
