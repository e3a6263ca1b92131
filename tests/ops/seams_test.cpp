// Derivatives at round numbers, whole parameters and ties beside those close by: a rule that hides
// the next derivative behind a choice, a rounding or a constant is right nearly everywhere, and
// wrong just there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
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
  std::size_t orders = 3;  ///< of derivatives
};

const std::vector<double> round_numbers = {-4, -2, -1, -0.5, 0, 0.5, 1, 2, 4};
const std::vector<double> few = {-2, -1, -0.5, 0, 0.5, 1, 2, 4};

/// "special::gamma" is "gamma" here.
const char* name_of(const char* qualified) {
  const char* colon = std::strrchr(qualified, ':');
  return colon ? colon + 1 : qualified;
}

std::vector<Row> rows() {
  std::vector<Row> all;
  const auto one = [&](const char* name, Tensor (*f)(vt::Operand)) {
    all.push_back({name, [f](const Tensors& x) { return f(x[0]); }, {round_numbers}});
  };
  const auto two = [&](const char* name, Tensor (*f)(vt::Operand, vt::Operand)) {
    all.push_back({name, [f](const Tensors& x) { return f(x[0], x[1]); }, {few, few}});
  };
#define VT_ONE(name) one(name_of(#name), vt::name)
#define VT_TWO(name) two(name_of(#name), vt::name)
  VT_ONE(negative), VT_ONE(abs), VT_ONE(sign), VT_ONE(square), VT_ONE(reciprocal), VT_ONE(sqrt);
  VT_ONE(rsqrt), VT_ONE(cbrt), VT_ONE(exp), VT_ONE(exp2), VT_ONE(expm1), VT_ONE(log);
  VT_ONE(log1p), VT_ONE(log2), VT_ONE(log10), VT_ONE(sigmoid), VT_ONE(special::logit), VT_ONE(sin);
  VT_ONE(cos), VT_ONE(tan), VT_ONE(asin), VT_ONE(acos), VT_ONE(atan), VT_ONE(sinh), VT_ONE(cosh);
  VT_ONE(tanh), VT_ONE(asinh), VT_ONE(acosh), VT_ONE(atanh), VT_ONE(deg2rad), VT_ONE(rad2deg);
  VT_ONE(special::gamma), VT_ONE(lgamma), VT_ONE(digamma), VT_ONE(special::factorial);
  VT_ONE(special::gammasgn), VT_ONE(erf), VT_ONE(erfc), VT_ONE(erf_inv), VT_ONE(special::erfcx),
      VT_ONE(special::erfcinv);
  VT_ONE(special::ndtr), VT_ONE(special::log_ndtr), VT_ONE(special::ndtri), VT_ONE(special::dawsn),
      VT_ONE(special::i0);
  VT_ONE(special::i1), VT_ONE(bessel_i0e), VT_ONE(bessel_i1e), VT_ONE(special::j0),
      VT_ONE(special::j1);
  VT_ONE(special::k0), VT_ONE(special::k1), VT_ONE(special::k0e), VT_ONE(special::k1e);
  VT_ONE(special::y0), VT_ONE(special::y1), VT_ONE(special::expi), VT_ONE(special::exp1);
  VT_ONE(special::spence), VT_ONE(special::entr), VT_ONE(sinc), VT_ONE(relu), VT_ONE(relu6);
  VT_ONE(selu), VT_ONE(silu), VT_ONE(softplus), VT_ONE(softsign), VT_ONE(hard_tanh);
  VT_TWO(add), VT_TWO(subtract), VT_TWO(multiply), VT_TWO(divide), VT_TWO(pow), VT_TWO(maximum);
  VT_TWO(minimum), VT_TWO(atan2), VT_TWO(hypot), VT_TWO(copysign), VT_TWO(logaddexp);
  VT_TWO(squared_difference), VT_TWO(special::xlogy), VT_TWO(special::xlog1py),
      VT_TWO(special::rel_entr);
  VT_TWO(special::kl_div), VT_TWO(special::beta), VT_TWO(special::betaln), VT_TWO(special::binom),
      VT_TWO(special::poch), VT_TWO(zeta);
  VT_TWO(igamma), VT_TWO(igammac), VT_TWO(random_gamma_grad), VT_TWO(mod);
  VT_ONE(floor), VT_ONE(ceil), VT_ONE(round), VT_ONE(trunc);
  VT_TWO(floor_divide), VT_TWO(fmod), VT_TWO(nextafter), VT_TWO(heaviside);
#undef VT_ONE
#undef VT_TWO
  // Those of third order are Graphs that take seconds to compile.
  for (Row& row : all)
    if (row.name == "beta" || row.name == "binom" || row.name == "poch") row.orders = 2;
  const auto more = [&](const char* name, std::vector<std::vector<double>> points, Function f) {
    all.push_back({name, std::move(f), std::move(points)});
  };
  more("elu", {round_numbers}, [](const Tensors& x) { return vt::elu(x[0]); });
  more("gelu", {round_numbers}, [](const Tensors& x) { return vt::gelu(x[0]); });
  more("leaky_relu", {round_numbers}, [](const Tensors& x) { return vt::leaky_relu(x[0]); });
  more("sici.sine", {round_numbers},
       [](const Tensors& x) { return vt::special::sici(x[0]).first; });
  more("sici.cosine", {round_numbers},
       [](const Tensors& x) { return vt::special::sici(x[0]).second; });
  more("multigammaln(2)", {{1, 2, 2.5, 4}},
       [](const Tensors& x) { return vt::special::multigammaln(x[0], 2); });
  for (const int n : {0, 1, 2, 3})
    more(("polygamma(" + std::to_string(n) + ")").c_str(), {round_numbers},
         [n](const Tensors& x) { return vt::polygamma(static_cast<double>(n), x[0]); });
  for (const int n : {0, 1, 2, 3})
    more(("expn(" + std::to_string(n) + ")").c_str(), {{0.5, 1, 2, 4}},
         [n](const Tensors& x) { return vt::special::expn(static_cast<double>(n), x[0]); });
  for (const double n : {-2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0})
    more(("pow(" + std::to_string(n) + ")").c_str(), {round_numbers},
         [n](const Tensors& x) { return vt::pow(x[0], n); });
  more("betainc", {{0.5, 1, 2, 4}, {0.5, 1, 2, 4}, {0, 0.25, 0.5, 1}},
       [](const Tensors& x) { return vt::betainc(x[0], x[1], x[2]); });
  more("where", {round_numbers},
       [](const Tensors& x) { return vt::where(x[0] < 0.0, -vt::sin(-x[0]), vt::sin(x[0])); });
  more("integer_pow", {round_numbers}, [](const Tensors& x) { return vt::integer_pow(x[0], -3); });
  more("nan_to_num", {round_numbers}, [](const Tensors& x) { return vt::nan_to_num(x[0]); });
  more("fresnel", {round_numbers},
       [](const Tensors& x) { return vt::special::fresnel(x[0]).first; });
  more("clamp", {{-1, 0}, {-1, 0, 1, 2}, {1, 2}},
       [](const Tensors& x) { return vt::clamp(x[0], x[1], x[2]); });
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
  if (near > 1.8 * middle && middle > 1.3 * far && near > 5) return std::copysign(inf, d[3]);
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
    there[s] =
        goes_on(value, s) && !std::isnan(d.side[s][0] + d.side[s][1] + d.side[s][2] + d.side[s][3]);
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
  return error <= 1e-4 * std::fabs(d.side[s][0]) + 1e-5 * scale || d.at == limits[s] ? ""
                                                                                     : numbers();
}

// --- where there is no limit, or another value is meant ------------------------------------------

struct Exception {
  std::string derivatives;  ///< of text(): those that begin so
  std::function<bool(const std::vector<double>&)> at;
  const char* reason;
};
const std::vector<Exception>& exceptions() {
  using Point = std::vector<double>;
  const auto all = [](const Point&) { return true; };
  const auto zero = [](const Point& x) { return x[0] == 0; };
  const auto origin = [](const Point& x) { return x[0] == 0 && x[1] == 0; };
  const auto is_pole = [](double x) { return x <= 0 && x == std::floor(x); };
  static const char *const kink = "the slope of one side at the kink, as in JAX",
                           *const next = "|x| is part of it: the derivative before has a kink at 0",
                           *const none = "0 whatever the other operand is, so derivatives are 0",
                           *const logarithm =
                               "x^a log x at the end: the limits by a and by x differ";
  static const std::vector<Exception> rows = {
      {"relu,0", all, kink},
      {"relu6,0", all, kink},
      {"leaky_relu,0", all, kink},
      {"hard_tanh,0", all, kink},
      {"elu,0,0", zero, kink},
      {"selu,0", zero, kink},
      {"softsign,0,0,0", zero, next},
      {"bessel_i0e,0,0", zero, next},
      {"bessel_i1e,0,0,0", zero, next},
      {"atan2,", origin, "every direction has a limit of its own"},
      {"hypot,", origin, "the tip of a cone; slopes are 0 there"},
      {"xlogy,0", origin, none},
      {"xlog1py,0", [](const Point& x) { return x[0] == 0 && x[1] == -1; }, none},
      {"pow,0", zero, "0^y: log x is left out"},
      {"poch,0,1", [=](const Point& x) { return is_pole(x[0]) && is_pole(x[0] + x[1]); },
       "a quotient of poles, which is no number beside by the second operand"},
      {"igamma,0", [](const Point& x) { return x[1] == 0; }, logarithm},
      {"igammac,0", [](const Point& x) { return x[1] == 0; }, logarithm},
      {"betainc,0", [](const Point& x) { return x[2] == 0; }, logarithm},
      {"betainc,0,1", [](const Point& x) { return x[2] == 1; }, logarithm},
      {"betainc,1", [](const Point& x) { return x[2] == 1; }, logarithm},
  };
  return rows;
}

/// All combinations.
std::vector<std::vector<double>> points_of(const std::vector<std::vector<double>>& lists) {
  std::vector<std::vector<double>> points = {{}};
  for (const std::vector<double>& list : lists) {
    std::vector<std::vector<double>> longer;
    for (const auto& p : points)
      for (const double x : list) {
        longer.push_back(p);
        longer.back().push_back(x);
      }
    points = longer;
  }
  return points;
}

TEST(Seams, DerivativesAreLimits) {
  std::size_t compared = 0;
  std::vector<bool> used(exceptions().size());
  for (const Row& row : rows()) {
    const std::size_t n = row.points.size(), stride = 1 + beside * n;
    const auto points = points_of(row.points);
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
    std::vector<Index> order;
    std::map<Index, Function> functions;
    for (std::size_t k = 0; k <= row.orders; ++k)
      for (const Index& index : indices(n, k)) {
        order.push_back(index);
        functions[index] =
            k == 0 ? row.function
                   : derivative(functions.at(Index(index.begin(), index.end() - 1)), index.back());
      }
    const Tensors results = vt::jit([&](const Tensors& at) {
      Tensors each;
      for (const Index& index : order) each.push_back(functions.at(index)(at));
      return each;
    })(x);
    std::map<Index, std::vector<double>> values;
    for (std::size_t i = 0; i < order.size(); ++i)
      values[order[i]] = results[i].to_vector<double>();

    const auto sample = [&](const Index& index, std::size_t point, std::size_t along) {
      const std::vector<double>& v = values.at(index);
      const std::size_t first = point * stride;
      Sample s{v[first], {}};
      for (std::size_t side = 0; side < 2; ++side)
        for (std::size_t k = 0; k < std::size(distances); ++k)
          s.side[side][k] = v[first + 1 + beside * along + beside / 2 * side + k];
      return s;
    };
    for (const Index& index : order) {
      if (index.empty()) continue;
      for (std::size_t p = 0; p < points.size(); ++p) {
        // Nothing is asked where the function or a derivative of lower order is no number.
        double scale = 0;
        bool usable = true, inner = true;
        for (std::size_t part = 0; part + 1 < std::size_t{1} << index.size(); ++part) {
          Index below;
          for (std::size_t k = 0; k < index.size(); ++k)
            if (part >> k & 1) below.push_back(index[k]);
          const double size = std::fabs(values.at(below)[p * stride]);
          usable = usable && std::isfinite(size);
          scale = std::max(scale, size);
        }
        if (!usable) continue;
        for (std::size_t along = 0; along < n; ++along)
          inner = inner && is_inner(sample({}, p, along));
        for (std::size_t along = 0; along < n; ++along) {
          // At ends of the domain along what the derivative is by.
          if (!inner && std::find(index.begin(), index.end(), along) == index.end()) continue;
          ++compared;
          const std::string why = fault(sample({}, p, along), sample(index, p, along), scale);
          if (why.empty()) continue;
          const std::string name = text(row.name, index);
          bool expected = false;
          for (std::size_t k = 0; k < exceptions().size(); ++k) {
            const Exception& e = exceptions()[k];
            if (name.rfind(e.derivatives, 0) != 0 || !e.at(points[p])) continue;
            used[k] = expected = true;
          }
          std::string where;
          for (const double at : points[p]) where += " " + std::to_string(at);
          EXPECT_TRUE(expected) << name << " at" << where << " along " << along << ": " << why;
        }
      }
    }
  }
  EXPECT_GT(compared, 9000U);
  for (std::size_t k = 0; k < used.size(); ++k)
    EXPECT_TRUE(used[k]) << exceptions()[k].derivatives
                         << " needs no exception: " << exceptions()[k].reason;
}

/// Of the pages' functions, those without slopes, and those of complex numbers and of dtypes.
const std::vector<std::string> without_row = {
    "isfinite", "isnan", "isinf", "signbit", "isclose", "allclose", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left",
    "shift_right_logical", "shift_right_arithmetic", "popcount", "clz", "convert", "bitcast",
    "reduce_precision", "complex", "real", "imag", "conj", "angle", "iscomplex", "isreal",
    "select",  // `where` of whole numbers
    // SciPy's names of functions that have a row
    "gammaln", "gammainc", "gammaincc", "erfinv", "expit", "i0e", "i1e"};
TEST(Seams, EveryFunctionHasARow) {
  std::vector<std::string> names = without_row;
  for (const Row& row : rows()) names.push_back(row.name.substr(0, row.name.find_first_of("(.")));
  std::size_t found = 0;
  for (const char* page : {"elementwise", "special"}) {
    std::ifstream file(VT_SOURCE_DIR "/docs/api/" + std::string(page) + ".md");
    std::string word;
    bool inside = false;
    while (file >> word) {
      if (word == "-->") inside = false;
      if (word.rfind("special::", 0) == 0) word = word.substr(9);
      if (inside && word != "-->") {
        ++found;
        EXPECT_NE(std::find(names.begin(), names.end(), word), names.end())
            << word << " needs a row";
      }
      if (word == "api:") inside = true;
    }
  }
  EXPECT_GT(found, 130U);
}

// --- where the value is NaN ----------------------------------------------------------------------

// The slope is that of the formula, as for other operands: a number or NaN, not the 0 of a
// constant.
TEST(Seams, SlopesAreNoConstantsWhereTheValueIsNaN) {
  std::size_t outside = 0;
  for (const Row& row : rows()) {
    if (row.name == "gammasgn" || row.name == "floor_divide") continue;  // steps
    auto lists = row.points;
    for (auto& list : lists) list.insert(list.end(), {-1.5, 2.5, -0.25});
    const auto points = points_of(lists);
    Tensors x;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      std::vector<double> operand;
      for (const auto& p : points) operand.push_back(p[i]);
      x.push_back(vt::tensor(operand, {static_cast<std::int64_t>(operand.size())}));
    }
    const std::vector<double> value = row.function(x).to_vector<double>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::vector<double> forward = derivative(row.function, i)(x).to_vector<double>();
      const auto total = [&](Tensor t) {
        Tensors at = x;
        at[i] = t;
        return vt::sum(row.function(at));
      };
      const std::vector<double> reverse = vt::grad(total)(x[i]).to_vector<double>();
      for (std::size_t p = 0; p < points.size(); ++p) {
        if (!std::isnan(value[p])) continue;
        ++outside;
        std::string where;
        for (const double at : points[p]) where += " " + std::to_string(at);
        EXPECT_NE(forward[p], 0) << row.name << " by " << i << " at" << where;
        EXPECT_NE(reverse[p], 0) << row.name << " by " << i << " at" << where;
      }
    }
  }
  EXPECT_GT(outside, 400U);
}
TEST(Seams, FormulasGoOnWhereTheValueIsNaN) {
  struct Case {
    const char* name;
    Tensor (*f)(Tensor);
    double x, slope;
  };
  const Case cases[] = {
      {"log", [](Tensor x) { return vt::log(x); }, -1, -1},
      {"log2", [](Tensor x) { return vt::log2(x); }, -1, -1 / std::numbers::ln2},
      {"log1p", [](Tensor x) { return vt::log1p(x); }, -2, -1},
      {"atanh", [](Tensor x) { return vt::atanh(x); }, 2, -1.0 / 3},
      {"acosh", [](Tensor x) { return vt::acosh(x); }, -1.5, 1 / std::sqrt(1.25)},
      {"exp1", [](Tensor x) { return vt::special::exp1(x); }, -1, std::numbers::e},
      {"logit", [](Tensor x) { return vt::special::logit(x); }, 2, -0.5},
      {"xlogy", [](Tensor x) { return vt::special::xlogy(1.0, x); }, -1, -1},
      {"sqrt", [](Tensor x) { return vt::sqrt(x); }, -1, nan},
      {"asin", [](Tensor x) { return vt::asin(x); }, 2, nan},
      {"ndtri", [](Tensor x) { return vt::special::ndtri(x); }, 2, nan},
      {"igamma", [](Tensor x) { return vt::igamma(1.0, x); }, -1, nan},
      {"betainc", [](Tensor x) { return vt::betainc(2.0, 1.0, x); }, -1, nan},
      {"polygamma", [](Tensor x) { return vt::polygamma(1.5, x); }, 1, nan},
  };
  for (const Case& c : cases) {
    const double slope = vt::grad(c.f)(vt::tensor(c.x)).item<double>();
    EXPECT_TRUE(std::isnan(c.f(vt::tensor(c.x)).item<double>())) << c.name;
    if (std::isnan(c.slope)) EXPECT_TRUE(std::isnan(slope)) << c.name << " " << slope;
    else EXPECT_NEAR(slope, c.slope, 1e-14) << c.name;
  }
}

// --- values --------------------------------------------------------------------------------------

struct Point {
  std::vector<double> at, derivatives;  ///< of first order, then of second: 00, 01, 11
};
struct Known {
  const char* name;
  Function function;
  std::size_t by;  ///< how many operands, from the first on, the derivatives are by
  std::vector<Point> points;
};
// Digits of mpmath 1.3 (diff of gamma, betainc, besseli, psi at 50 digits).
const std::vector<Known>& known() {
  static const std::vector<Known> all = {
      {"betainc",
       [](const Tensors& t) { return vt::betainc(t[0], t[1], t[2]); },
       2,
       {{{1, 1, 0.5},
         {-0.34657359027997265471, 0.34657359027997265471, 0.24022650695910071233, 0,
          -0.24022650695910071233}},
        {{2, 3, 0.25},
         {-0.2280536023243463729, 0.10692153005229138784, 0.16448084692502159809,
          -0.044644732263860357789, -0.0004179387762597931198}},
        {{4, 2, 0.75},
         {-0.10294724897339261815, 0.2600065232237098366, 0.0068599765037009876079,
          0.020098024495585636785, -0.12948360230647531943}},
        {{3, 1, 0.3},
         {-0.032507265716800269191, 0.042544720452386600256, 0.039137863866024379128,
          -0.044188976662896857365, 0.030432884647099973843}}}},
      {"binom",
       [](const Tensors& t) { return vt::special::binom(t[0], t[1]); },
       2,
       {{{4, 2}, {3.5, 0, 1, 2.3696044010893586188, -4.7392088021787172377}},
        {{3, 4},
         {0.25, -0.25, 0.91666666666666666667, -0.97916666666666666667, 1.0416666666666666667}},
        {{4, -1}, {0, 0.2, 0, -0.04, 0.91333333333333333333}},
        {{2.5, 3.5},
         {0.28571428571428571429, -0.28571428571428571429, 0.96021274602672917019,
          -1.04184539908795366, 1.1234780521491781498}}}},
      {"poch",
       [](const Tensors& t) { return vt::special::poch(t[0], t[1]); },
       2,
       {{{2, 0}, {0, 0.42278433509846713939, 0, 0.64493406684822643647, 0.82368066085287938958}},
        {{0, 2}, {1, 0, 2, 0.42278433509846713939, 0}},
        {{-3, 5}, {-6, 0, 10, -2.5367060105908028364, 0}},
        {{-1, 0.5},
         {3.5449077018110320546, 0, -2.7387557118001446967, 0.12935358979554005532, 0}}}},
      {"beta",
       [](const Tensors& t) { return vt::special::beta(t[0], t[1]); },
       2,
       {{{-1.5, 0.5},
         {-4.1887902047863909846, -4.1887902047863909846, -2.3488415343354252527,
          8.8212656784282840396, 19.991372891191993332}}}},
      // −E₁(½), …, e⁻ˣ/x, 0
      {"igamma",
       [](const Tensors& t) { return vt::igamma(t[0], t[1]); },
       2,
       {{{0, 0.5},
         {-0.55977359477616081175, 0, -0.58675958376872604469, 1.2130613194252668472, 0}}}},
      {"bessel_i0",
       [](const Tensors& t) { return vt::special::i0(t[0]); },
       1,
       {{{1e-12}, {5e-13, 0.5}},
        {{1e-17}, {5e-18, 0.5}},
        {{712}, {2.4666770135246151862e307, 2.4649466237549931388e307}}}},
      {"bessel_i1",
       [](const Tensors& t) { return vt::special::i1(t[0]); },
       1,
       {{{712}, {2.4649466237549931388e307}},
        {{-712}, {2.4649466237549931388e307}},
        {{0.3}, {0.51698074600628772336}}}},
      {"digamma",
       [](const Tensors& t) { return vt::digamma(t[0]); },
       1,
       {{{-1000000.3}, {15.07941269959764317}}, {{-100000.7}, {15.079403702721996116}}}},
      // −2 ζ(3, x)
      {"trigamma",
       [](const Tensors& t) { return vt::polygamma(1.0, t[0]); },
       1,
       {{{-1000000.25}, {124.0251067211982807}}}},
      {"ndtri",
       [](const Tensors& t) { return vt::special::ndtri(t[0]); },
       1,
       {{{0.5}, {2.5066282746310005024, 0}}}},
      {"erfc_inv",
       [](const Tensors& t) { return vt::special::erfcinv(t[0]); },
       1,
       {{{1}, {-0.88622692545275801365, 0}}}},
  };
  return all;
}

TEST(Seams, KnownDerivatives) {
  for (const Known& k : known()) {
    const std::size_t n = k.by, count = k.points.size(), operands = k.points[0].at.size();
    std::vector<double> numbers, others;
    for (const Point& p : k.points) {
      numbers.insert(numbers.end(), p.at.begin(), p.at.begin() + static_cast<std::ptrdiff_t>(n));
      others.push_back(operands > n ? p.at[n] : 0);
    }
    const Tensor x = vt::tensor(numbers,
                                {static_cast<std::int64_t>(count), static_cast<std::int64_t>(n)}),
                 other = vt::tensor(others, {static_cast<std::int64_t>(count)});
    const auto f = [&](Tensor t, Tensor o) {
      Tensors each;
      for (std::size_t i = 0; i < n; ++i) each.push_back(t[static_cast<std::int64_t>(i)]);
      each.push_back(o);
      return k.function(each);
    };
    const auto gradient = vt::vmap(vt::grad<0>(f));
    const auto curvature = vt::vmap(vt::hessian<0>(f));
    const auto check = [&](const char* way, const Tensor& first, const Tensor& second) {
      const std::vector<double> g = first.to_vector<double>(), h = second.to_vector<double>();
      for (std::size_t p = 0; p < count; ++p) {
        const Point& point = k.points[p];
        std::vector<double> got(g.begin() + static_cast<std::ptrdiff_t>(p * n),
                                g.begin() + static_cast<std::ptrdiff_t>((p + 1) * n));
        double scale = 0;
        for (const double d : point.derivatives) scale = std::max(scale, std::fabs(d));
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = i; j < n; ++j) {
            const double upper = h[(p * n + i) * n + j], lower = h[(p * n + j) * n + i];
            got.push_back(upper);
            EXPECT_NEAR(upper, lower, 1e-12 * std::max(scale, std::fabs(upper)))
                << k.name << " " << way;
          }
        for (std::size_t i = 0; i < point.derivatives.size(); ++i)
          EXPECT_NEAR(got[i], point.derivatives[i],
                      1e-12 * std::max(std::fabs(point.derivatives[i]), 1e-2 * scale))
              << k.name << " at " << point.at[0] << ", " << i << ", " << way;
      }
    };
    check("eager", gradient(x, other), curvature(x, other));
    check("jitted", vt::jit(gradient)(x, other), vt::jit(curvature)(x, other));
  }
}
// Where a slope is infinite or a constant by itself.
TEST(Seams, EndsAndSteps) {
  const auto slope = [](auto f, double x) {
    return vt::grad(f)(vt::tensor(x)).template item<double>();
  };
  EXPECT_EQ(slope([](Tensor x) { return vt::asin(x); }, 1), inf);
  EXPECT_EQ(slope([](Tensor x) { return vt::asin(x); }, -1), inf);
  EXPECT_EQ(slope([](Tensor x) { return vt::acos(x); }, 1), -inf);
  EXPECT_EQ(slope([](Tensor x) { return vt::acos(x); }, -1), -inf);
  EXPECT_EQ(slope([](Tensor x) { return vt::special::entr(x); }, 0), inf);
  EXPECT_EQ(slope([](Tensor x) { return vt::special::rel_entr(x, 2.0); }, 0), -inf);
  EXPECT_EQ(slope([](Tensor x) { return vt::special::kl_div(x, 2.0); }, 0), -inf);
  EXPECT_EQ(slope([](Tensor x) { return vt::floor_divide(x, 0.0); }, 1), 0);
  EXPECT_EQ(slope([](Tensor x) { return vt::nextafter(x, 2.0); }, 1), 1);
  EXPECT_EQ(slope([](Tensor x) { return vt::nextafter(1.0, x); }, 2), 0);
  EXPECT_EQ(slope([](Tensor x) { return vt::polygamma(0.0, x); }, 1e-110), 1e220);
  EXPECT_EQ(slope([](Tensor x) { return vt::special::sici(x).first; }, inf), 0);
  EXPECT_EQ(slope([](Tensor x) { return vt::special::sici(x).second; }, inf), 0);
  EXPECT_TRUE(std::isnan(vt::special::xlogy(vt::tensor(0.0), nan).item<double>()));
  EXPECT_TRUE(std::isnan(vt::special::xlog1py(vt::tensor(0.0), nan).item<double>()));
}

}  // namespace
