// Derivatives at round numbers, whole parameters and ties beside those close by: a rule that hides
// the next derivative behind a choice, a rounding or a constant is right nearly everywhere, and
// wrong just there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <string>
#include <vector>
#include <vt/vt.hpp>

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensor(const Tensors&)>;
constexpr double inf = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

// --- the functions -------------------------------------------------------------------------------

/// An element-wise function of as many operands as it has lists of points; every combination of
/// these is a point.
struct Row {
  std::string name;
  Function function;
  std::vector<std::vector<double>> points;
};

const std::vector<double> round_numbers = {-4, -2, -1, -0.5, 0, 0.5, 1, 2, 4};
const std::vector<double> few = {-2, -1, 0, 0.5, 1, 2, 4};

std::vector<Row> rows() {
  std::vector<Row> all;
  const auto one = [&](const char* name, Tensor (*f)(vt::Operand)) {
    all.push_back({name, [f](const Tensors& x) { return f(x[0]); }, {round_numbers}});
  };
  const auto two = [&](const char* name, Tensor (*f)(vt::Operand, vt::Operand)) {
    all.push_back({name, [f](const Tensors& x) { return f(x[0], x[1]); }, {few, few}});
  };
#define VT_ONE(name) one(#name, vt::name)
#define VT_TWO(name) two(#name, vt::name)
  VT_ONE(negative), VT_ONE(abs), VT_ONE(sign), VT_ONE(square), VT_ONE(reciprocal), VT_ONE(sqrt);
  VT_ONE(rsqrt), VT_ONE(cbrt), VT_ONE(exp), VT_ONE(exp2), VT_ONE(expm1), VT_ONE(log);
  VT_ONE(log1p), VT_ONE(log2), VT_ONE(log10), VT_ONE(sigmoid), VT_ONE(logit), VT_ONE(sin);
  VT_ONE(cos), VT_ONE(tan), VT_ONE(asin), VT_ONE(acos), VT_ONE(atan), VT_ONE(sinh), VT_ONE(cosh);
  VT_ONE(tanh), VT_ONE(asinh), VT_ONE(acosh), VT_ONE(atanh), VT_ONE(deg2rad), VT_ONE(rad2deg);
  VT_ONE(gamma), VT_ONE(lgamma), VT_ONE(digamma), VT_ONE(trigamma), VT_ONE(factorial);
  VT_ONE(gammasgn), VT_ONE(erf), VT_ONE(erfc), VT_ONE(erf_inv), VT_ONE(erfcx), VT_ONE(erfc_inv);
  VT_ONE(ndtr), VT_ONE(log_ndtr), VT_ONE(ndtri), VT_ONE(dawsn), VT_ONE(bessel_i0);
  VT_ONE(bessel_i1), VT_ONE(bessel_i0e), VT_ONE(bessel_i1e), VT_ONE(bessel_j0), VT_ONE(bessel_j1);
  VT_ONE(bessel_k0), VT_ONE(bessel_k1), VT_ONE(bessel_k0e), VT_ONE(bessel_k1e);
  VT_ONE(bessel_y0), VT_ONE(bessel_y1), VT_ONE(expi), VT_ONE(exp1), VT_ONE(fresnel_sin);
  VT_ONE(fresnel_cos), VT_ONE(spence), VT_ONE(entr), VT_ONE(sinc), VT_ONE(relu), VT_ONE(relu6);
  VT_ONE(selu), VT_ONE(silu), VT_ONE(softplus), VT_ONE(softsign), VT_ONE(hard_tanh);
  VT_TWO(add), VT_TWO(subtract), VT_TWO(multiply), VT_TWO(divide), VT_TWO(pow), VT_TWO(maximum);
  VT_TWO(minimum), VT_TWO(atan2), VT_TWO(hypot), VT_TWO(copysign), VT_TWO(logaddexp);
  VT_TWO(squared_difference), VT_TWO(xlogy), VT_TWO(xlog1py), VT_TWO(xdivy), VT_TWO(rel_entr);
  VT_TWO(kl_div), VT_TWO(beta), VT_TWO(betaln), VT_TWO(binom), VT_TWO(poch), VT_TWO(zeta);
  VT_TWO(igamma), VT_TWO(igammac), VT_TWO(random_gamma_grad), VT_TWO(remainder), VT_TWO(mod);
#undef VT_ONE
#undef VT_TWO
  const auto more = [&](const char* name, std::vector<std::vector<double>> points, Function f) {
    all.push_back({name, std::move(f), std::move(points)});
  };
  more("elu", {round_numbers}, [](const Tensors& x) { return vt::elu(x[0]); });
  more("gelu", {round_numbers}, [](const Tensors& x) { return vt::gelu(x[0]); });
  more("leaky_relu", {round_numbers}, [](const Tensors& x) { return vt::leaky_relu(x[0]); });
  more("sici.sine", {round_numbers}, [](const Tensors& x) { return vt::sici(x[0]).first; });
  more("sici.cosine", {round_numbers}, [](const Tensors& x) { return vt::sici(x[0]).second; });
  more("multigammaln(2)", {{1, 2, 2.5, 4}},
       [](const Tensors& x) { return vt::multigammaln(x[0], 2); });
  for (const int n : {0, 1, 2, 3})
    more(("polygamma(" + std::to_string(n) + ")").c_str(), {round_numbers},
         [n](const Tensors& x) { return vt::polygamma(static_cast<double>(n), x[0]); });
  for (const int n : {0, 1, 2, 3})
    more(("expn(" + std::to_string(n) + ")").c_str(), {{0.5, 1, 2, 4}},
         [n](const Tensors& x) { return vt::expn(static_cast<double>(n), x[0]); });
  for (const double n : {-2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0})
    more(("pow(" + std::to_string(n) + ")").c_str(), {round_numbers},
         [n](const Tensors& x) { return vt::pow(x[0], n); });
  more("betainc", {{0.5, 1, 2, 4}, {0.5, 1, 2, 4}, {0, 0.25, 0.5, 1}},
       [](const Tensors& x) { return vt::betainc(x[0], x[1], x[2]); });
  more("where", {round_numbers}, [](const Tensors& x) {
    return vt::where(x[0] < 0.0, -vt::sin(-x[0]), vt::sin(x[0]));
  });
  more("clip", {round_numbers}, [](const Tensors& x) { return vt::clip(x[0], -1.0, 1.0); });
  return all;
}

// --- derivatives ---------------------------------------------------------------------------------

/// Partial derivatives: by which operands, in order.
using Index = std::vector<std::size_t>;
std::vector<Index> indices(std::size_t operands, std::size_t order) {
  std::vector<Index> all = {{}};
  for (std::size_t k = 0; k < order; ++k) {
    std::vector<Index> longer;
    for (const Index& i : all)
      for (std::size_t next = i.empty() ? 0 : i.back(); next < operands; ++next) {
        longer.push_back(i);
        longer.back().push_back(next);
      }
    all = longer;
  }
  return all;
}
std::string text(const std::string& name, const Index& index) {
  std::string s = name;
  for (const std::size_t i : index) s += "," + std::to_string(i);
  return s;
}
/// f is element-wise: tangents of ones give every element's own derivative.
Function derivative(const Function& f, std::size_t i) {
  return [f, i](const Tensors& x) {
    const auto along = [&](Tensor t) {
      Tensors at = x;
      at[i] = t;
      return f(at);
    };
    return vt::jvp(along, std::tuple(x[i]), std::tuple(vt::ones_like(x[i]))).second;
  };
}

// --- the limits ----------------------------------------------------------------------------------

/// Distances of what is compared: the first two for means, the last two for one-sided limits.
constexpr double distances[] = {1e-4, 2e-4, 1e-6, 1e-12};
constexpr std::size_t beside = 8;  ///< on either side

/// One derivative at a point and at ±distances beside it along one operand.
struct Sample {
  double at;
  double side[2][4];
};
/// What it tends to from a side: ±∞ where it grows all the way.
double limit(const double (&d)[4]) {
  const double near = std::fabs(d[3]), middle = std::fabs(d[2]), far = std::fabs(d[0]);
  if (near > 1.8 * middle && middle > 1.3 * far && middle > 5) return std::copysign(inf, d[3]);
  if (near < 0.8 * middle && middle < 0.8 * far) return 0;
  return d[2];
}

bool goes_on(const Sample& value, int side) {
  return std::fabs(value.side[side][3] - value.at) <= 1e-4 * (1 + std::fabs(value.at));
}
/// Does the function go on on both sides?
bool is_inner(const Sample& value) { return goes_on(value, 0) && goes_on(value, 1); }

/// Why `d` at the point is no limit of those beside it; empty where it is. `value` is the function
/// itself, `scale` the size of what the derivative is made of.
std::string fault(const Sample& value, const Sample& d, double scale) {
  bool there[2];
  for (int s : {0, 1})
    there[s] = goes_on(value, s) &&
               !std::isnan(d.side[s][0] + d.side[s][1] + d.side[s][2] + d.side[s][3]);
  const auto numbers = [&] {
    std::string s = std::to_string(d.at) + " between";
    for (int side : {0, 1})
      if (there[side])
        for (int k : {0, 2, 3}) s += " " + std::to_string(d.side[side][k]);
    return s;
  };
  double limits[2];
  for (int s : {0, 1})
    if (there[s]) limits[s] = limit(d.side[s]);
  if (!there[0] && !there[1]) return "";
  if (there[0] && there[1]) {
    if (std::isinf(limits[0]) || std::isinf(limits[1])) {
      const double mean = limits[0] + limits[1];
      return std::isnan(mean) || d.at == mean ? "" : numbers();
    }
    const double mean = 0.5 * (d.side[0][0] + d.side[1][0]),
                 wider = 0.5 * (d.side[0][1] + d.side[1][1]);
    const double allowed = 1.5 * std::fabs(mean - wider) +
                           1e-6 * (std::fabs(d.side[0][0]) + std::fabs(d.side[1][0])) +
                           1e-9 * scale;
    return std::fabs(d.at - mean) <= allowed ? "" : numbers();
  }
  const int s = there[0] ? 0 : 1;
  if (std::isinf(limits[s])) return d.at == limits[s] ? "" : numbers();
  const double error = std::min(std::fabs(d.at - d.side[s][2]), std::fabs(d.at - d.side[s][3]));
  return error <= 1e-4 * std::fabs(d.side[s][0]) + 1e-5 * scale || d.at == limits[s] ? "" : numbers();
}

// --- what is none --------------------------------------------------------------------------------

struct Exception {
  const char* derivative;  ///< as of text(); those that begin so
  std::function<bool(const std::vector<double>&)> at;
  const char* reason;
};

TEST(Seams, DerivativesAreLimits) {
  std::size_t compared = 0;
  for (const Row& row : rows()) {
    const std::size_t n = row.points.size();
    std::vector<std::vector<double>> points = {{}};
    for (const std::vector<double>& list : row.points) {
      std::vector<std::vector<double>> longer;
      for (const auto& p : points)
        for (const double x : list) {
          longer.push_back(p);
          longer.back().push_back(x);
        }
      points = longer;
    }
    // Every point, then what is beside it along each operand.
    std::vector<std::vector<double>> operands(n);
    for (const auto& p : points) {
      for (std::size_t i = 0; i < n; ++i) operands[i].push_back(p[i]);
      for (std::size_t along = 0; along < n; ++along)
        for (const double sign : {-1.0, 1.0})
          for (const double distance : distances)
            for (std::size_t i = 0; i < n; ++i)
              operands[i].push_back(p[i] + (i == along ? sign * distance : 0.0));
    }
    Tensors x;
    for (const auto& o : operands)
      x.push_back(vt::tensor(o, {static_cast<std::int64_t>(o.size())}));
    const std::size_t stride = 1 + beside * n;
    std::map<Index, Function> functions = {{{}, row.function}};
    std::map<Index, std::vector<double>> values;
    values[{}] = row.function(x).to_vector<double>();
    const auto sample = [&](const Index& index, std::size_t point, std::size_t along) {
      const std::vector<double>& v = values.at(index);
      const std::size_t first = point * stride;
      Sample s{v[first], {}};
      for (std::size_t side = 0; side < 2; ++side)
        for (std::size_t k = 0; k < 4; ++k)
          s.side[side][k] = v[first + 1 + beside * along + 4 * side + k];
      return s;
    };
    for (std::size_t order = 1; order <= 3; ++order)
      for (const Index& index : indices(n, order)) {
        const Index lower(index.begin(), index.end() - 1);
        functions[index] = derivative(functions.at(lower), index.back());
        values[index] = functions.at(index)(x).to_vector<double>();
        for (std::size_t p = 0; p < points.size(); ++p) {
          double scale = 0;
          bool usable = true;
          for (std::size_t part = 0; part + 1 < std::size_t{1} << index.size(); ++part) {
            Index below;
            for (std::size_t k = 0; k < index.size(); ++k)
              if (part >> k & 1) below.push_back(index[k]);
            const double size = std::fabs(values.at(below)[p * stride]);
            usable = usable && std::isfinite(size);
            scale = std::max(scale, size);
          }
          if (!usable) continue;
          bool inner = true;
          for (std::size_t along = 0; along < n; ++along)
            inner = inner && is_inner(sample({}, p, along));
          for (std::size_t along = 0; along < n; ++along) {
            if (!inner && std::find(index.begin(), index.end(), along) == index.end()) continue;
            ++compared;
            const std::string why =
                fault(sample({}, p, along), sample(index, p, along), scale);
            if (why.empty()) continue;
            std::string where;
            for (const double at : points[p]) where += " " + std::to_string(at);
            ADD_FAILURE() << text(row.name, index) << " at" << where << " along " << along << ": "
                          << why;
          }
        }
      }
  }
  EXPECT_GT(compared, 10000U);
}

}  // namespace
