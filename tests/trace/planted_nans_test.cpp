// A NaN planted in a hundred programs: ops that make one of certain numbers, inside of everything
// that a function can be put into, twice; the op and its line are told each time, of values and of
// first and second derivatives.
#include <gtest/gtest.h>

#include <vt/vt.hpp>

#include "support/message.hpp"

namespace {

using vt::Tensor;
using vt_test::message;
/// Element by element.
using Function = std::function<Tensor(Tensor)>;

struct Maker {
  const char* op;    ///< that makes it
  int line;          ///< of this file
  double bad;        ///< of what; nothing from 1.1 to 1.6 does
  const char* more;  ///< that is said as well
  Function f;
};

/// NaN itself.
const std::vector<Maker>& of_values() {
  static const std::vector<Maker> all{
      {"log", __LINE__, -1, "", [](Tensor y) { return vt::log(y) * 2; }},
      {"sqrt", __LINE__, -2, "", [](Tensor y) { return 1 + vt::sqrt(y); }},
      {"acos", __LINE__, 5, "", [](Tensor y) { return vt::acos(y / 2); }},
      {"atanh", __LINE__, 7, "", [](Tensor y) { return vt::atanh(y / 3); }},
      {"div", __LINE__, 4, "", [](Tensor y) { return (y - 4) / vt::sin(y - 4); }},
      {"mul", __LINE__, 4, "", [](Tensor y) { return (y - 4) * (1 / (y - 4)); }},
      {"sub", __LINE__, 3, "", [](Tensor y) { return vt::exp(y * 300) - vt::exp(y * 299); }},
      {"pow", __LINE__, -1, "", [](Tensor y) { return vt::pow(y, 0.3) - y; }},
      {"rem", __LINE__, 4, "", [](Tensor y) { return vt::fmod(y, y - 4); }},
      {"log1p", __LINE__, -3, "", [](Tensor y) { return vt::log1p(y); }},
  };
  return all;
}

/// A number whose derivative is NaN: 0 times ∞, or 0 / 0.
const std::vector<Maker>& of_derivatives() {
  const int here = __LINE__;
  const auto root = [](Tensor y) { return vt::where(y > 0, vt::sqrt(y), 0.0); };
  const auto log = [](Tensor y) { return vt::where(y > 0, vt::log(y), 0.0); };
  const auto asin = [](Tensor y) { return vt::where(y < 2, vt::asin(y / 2), 0.0); };
  const auto cbrt = [](Tensor y) { return vt::where(y > 0, vt::cbrt(y), 0.0); };
  const auto length = [](Tensor y) { return vt::sqrt(y * y); };
  static const std::vector<Maker> all{
      {"div", here + 1, 0, "in the derivative of vt::sqrt", root},
      {"div", here + 2, 0, "in the derivative of vt::log", log},
      {"mul", here + 3, 2, "in the derivative of vt::asin", asin},
      {"div", here + 4, 0, "in the derivative of vt::cbrt", cbrt},
      {"mul", here + 5, 0, "in the derivative of vt::mul", length},
  };
  return all;
}

/// A number with a derivative whose own is NaN.
const std::vector<Maker>& of_second_derivatives() {
  const int here = __LINE__;
  const auto power = [](Tensor y) { return vt::where(y > 0, vt::pow(y, 1.5), 0.0); };
  const auto angle = [](Tensor y) { return vt::where(y < 2, vt::pow(2 - y, 1.2), 0.0); };
  static const std::vector<Maker> all{
      {"mul", here + 1, 0, "in the second derivative of vt::pow", power},
      {"mul", here + 2, 2, "in the second derivative of vt::pow", angle},
  };
  return all;
}

struct Place {
  const char* name;
  std::function<Function(Function)> put;
};

const std::vector<Place>& places() {
  static const std::vector<Place> all{
      {"itself", [](Function f) { return f; }},
      {"fori_loop",
       [](Function f) {
         return [f](Tensor x) {
           return vt::fori_loop(0, 3, [&](Tensor, Tensor c) { return c + f(x); }, x * 0.5);
         };
       }},
      {"while_loop",
       [](Function f) {
         return [f](Tensor x) {
           return (vt::while_loop([](std::pair<Tensor, Tensor> c) { return c.first < 2; },
                                  [&](std::pair<Tensor, Tensor> c) {
                                    return std::pair(c.first + 1, c.second + f(x));
                                  },
                                  std::pair(vt::tensor(0), x))
                       .second);
         };
       }},
      {"scan",
       [](Function f) {
         return [f](Tensor x) {
           return vt::scan([&](Tensor c, Tensor y) { return std::pair(c + 1.0, f(x) * y + c); },
                           x * 0.0, vt::tensor({1.0, 2.0}))
               .second[1];
         };
       }},
      {"cond",
       [](Function f) {
         return [f](Tensor x) {
           return vt::cond(vt::sum(x) < 1e9, [&] { return f(x) - 1; }, [&] { return x; });
         };
       }},
      {"lanes of cond",
       [](Function f) {
         return [f](Tensor x) {
           const auto lane = [&](Tensor y) {
             return vt::cond(y < 1e9, [&] { return f(y) * 3; }, [&] { return y; });
           };
           const Tensor flat = vt::reshape(x, {-1});
           return vt::reshape(vt::vmap(lane)(flat), x.shape());
         };
       }},
      {"lanes of while_loop",
       [](Function f) {
         return [f](Tensor x) {
           const auto lane = [&](Tensor y) {
             return (
                 vt::while_loop(
                     [&](std::pair<Tensor, Tensor> c) { return c.first < vt::floor(y * y + 1); },
                     [&](std::pair<Tensor, Tensor> c) { return std::pair(c.first + 1, f(y)); },
                     std::pair(vt::tensor(0.0), y))
                     .second);
           };
           return vt::reshape(vt::vmap(lane)(vt::reshape(x, {-1})), x.shape());
         };
       }},
      {"checkpoint", [](Function f) { return vt::checkpoint(f); }},
      {"function", [](Function f) { return vt::function("inner", f); }},
      {"jit", [](Function f) { return vt::jit(f); }},
      {"custom_vjp",
       [](Function f) {
         return vt::custom_vjp(
             f, [f](Tensor x) { return std::pair(f(x), x); },
             [f](Tensor x, Tensor ct) { return vt::vjp(f, x).second(ct); });
       }},
      {"custom_jvp",
       [](Function f) {
         return vt::custom_jvp(f, [f](Tensor x, Tensor dx) { return vt::jvp(f, x, dx); });
       }},
      {"pfor",
       [](Function f) {
         return [f](Tensor x) {
           const Tensor flat = vt::reshape(x, {-1});
           return vt::reshape(vt::pfor([&](Tensor i) { return f(flat[i]); }, flat.size()),
                              x.shape());
         };
       }},
  };
  return all;
}

void expect_told(const Maker& made, const std::string& program, const Function& f,
                 const std::vector<double>& x, const char* more) {
  const vt::DebugNans watch;
  const auto jitted = vt::jit(f);
  for (int run = 0; run < 2; ++run) {
    const std::string text = message([&] { (void)jitted(vt::tensor(x)).to_vector<double>(); });
    EXPECT_NE(text.find(std::string("vt::") + made.op + "("), std::string::npos)
        << program << ": " << text;
    EXPECT_NE(text.find("planted_nans_test.cpp:" + std::to_string(made.line)), std::string::npos)
        << program << ": " << text;
    EXPECT_NE(text.find(more), std::string::npos) << program << ": " << text;
  }
}

std::vector<double> numbers(const Maker& made, std::size_t at) {
  std::vector<double> x{1.1, 1.2, 1.3, 1.4, 1.5, 1.6};
  x[at] = made.bad;
  return x;
}

TEST(PlantedNans, InValues) {
  std::size_t n = 0;
  for (const Maker& m : of_values())
    for (std::size_t k = 0; k < places().size(); ++k) {
      const Place &inner = places()[k], &outer = places()[(7 * n + 3) % places().size()];
      const std::string program = std::string(m.op) + " in " + inner.name + " in " + outer.name;
      expect_told(m, program, outer.put(inner.put(m.f)), numbers(m, n % 6), m.more);
      ++n;
    }
}

Function gradient_of(const Function& f) {
  return vt::grad([f](Tensor x) { return vt::sum(f(x)); });
}

TEST(PlantedNans, InDerivatives) {
  std::size_t n = 0;
  for (const Maker& m : of_derivatives())
    for (std::size_t k = 0; k < places().size(); ++k) {
      const Place &inner = places()[k], &outer = places()[(5 * n + 2) % places().size()];
      const std::string program =
          "derivative of " + std::string(m.more) + " in " + inner.name + " in " + outer.name;
      expect_told(m, program, gradient_of(outer.put(inner.put(m.f))), numbers(m, n % 6), m.more);
      ++n;
    }
}

TEST(PlantedNans, InSecondDerivatives) {
  std::size_t n = 0;
  for (const Maker& m : of_second_derivatives())
    for (const Place& place : places()) {
      const std::string program =
          "second derivative of " + std::string(m.more) + " in " + place.name;
      const Function gradient = gradient_of(place.put(m.f));
      const Function hessian =
          n % 2 ? Function(vt::hessian([f = place.put(m.f)](Tensor x) { return vt::sum(f(x)); }))
                : gradient_of(gradient);
      for (const double g : gradient(vt::tensor(numbers(m, n % 6))).to_vector<double>())
        EXPECT_TRUE(std::isfinite(g)) << program;
      expect_told(m, program, hessian, numbers(m, n % 6), m.more);
      ++n;
    }
}

}  // namespace
