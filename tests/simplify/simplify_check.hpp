// What the simplifier's tests share: random awkward inputs, and the check that simplify changes no
// bit of any result.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "src/trace/base/convert.hpp"
#include "src/trace/record/node.hpp"
#include "trace/graph_builder.hpp"

namespace vt_test {

/// Numbers that tell rewrites apart: zeros of both signs, infinities, NaN, ones, halves, extremes
/// and random ones.
inline BufferRef awkward_values(const Aval& a, std::mt19937& random) {
  const auto n = static_cast<std::size_t>(a.elements());
  BufferRef buffer = allocate(a.bytes());
  vt::detail::with_type(a.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = buffer->as<T>();
    for (std::size_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<T, bool>) out[i] = random() % 2 == 0;
      else if constexpr (std::is_integral_v<T>) {
        const T some[] = {0,
                          1,
                          2,
                          static_cast<T>(-1),
                          std::numeric_limits<T>::min(),
                          std::numeric_limits<T>::max(),
                          3,
                          7};
        out[i] = random() % 2 ? some[random() % 8] : static_cast<T>(random());
      } else {
        const float some[] = {0.0f, -0.0f, 1.0f, -1.0f,    INFINITY, -INFINITY,
                              NAN,  0.5f,  2.0f, 65504.0f, 1e-40f,   1e-7f};
        const float x =
            random() % 3 == 0
                ? some[random() % 12]
                : std::ldexp(static_cast<float>(static_cast<std::int32_t>(random())), -28);
        if constexpr (std::is_same_v<T, double>)
          out[i] = random() % 2 ? static_cast<double>(x) * 1.1 : static_cast<double>(x);
        else out[i] = T(x);
      }
    }
  });
  return buffer;
}

inline bool same_bits(const Aval& a, const BufferRef& x, const BufferRef& y,
                      std::string& difference) {
  const std::size_t size = vt::size_of(a.dtype);
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const char *p = x->as<char>() + static_cast<std::size_t>(i) * size,
               *q = y->as<char>() + static_cast<std::size_t>(i) * size;
    if (std::memcmp(p, q, size) == 0) continue;
    const Scalar s = load_scalar(a.dtype, p), t = load_scalar(a.dtype, q);
    if (vt::is_float(a.dtype) && std::isnan(s.real) && std::isnan(t.real)) continue;
    difference = "element " + std::to_string(i) + " of " + a.str() + ": " +
                 std::to_string(s.to_double()) + " became " + std::to_string(t.to_double());
    return false;
  }
  return true;
}

/// Checks that `simplify` keeps every bit; returns the simple Graph.
inline GraphBody simplified(const GraphBody& g, unsigned seed = 1,
                            SimplifyFor purpose = SimplifyFor::transforming) {
  check_graph(g, "the test");
  const GraphBody s = simplify(g, purpose);
  check_graph(s, "simplify");
  EXPECT_EQ(s.inputs.size(), g.inputs.size());
  EXPECT_EQ(s.outputs.size(), g.outputs.size());
  for (std::size_t i = 0; i < g.inputs.size(); ++i)
    EXPECT_EQ(s.aval(s.inputs[i]), g.aval(g.inputs[i]));
  for (std::size_t i = 0; i < g.outputs.size(); ++i)
    EXPECT_EQ(s.aval(s.outputs[i]), g.aval(g.outputs[i])) << to_text(g) << "\n" << to_text(s);
  std::mt19937 random(seed);
  for (int iteration = 0; iteration < 4; ++iteration) {
    vt::Vec<BufferRef> inputs;
    for (Var v : g.inputs) inputs.push_back(awkward_values(g.aval(v), random));
    const auto before = interpret(g, inputs), after = interpret(s, inputs);
    for (std::size_t i = 0; i < before.size(); ++i) {
      std::string difference;
      EXPECT_TRUE(same_bits(g.aval(g.outputs[i]), before[i], after[i], difference))
          << difference << "\n"
          << to_text(g) << "\n"
          << to_text(s);
    }
  }
  // A second time there is nothing left to do.
  EXPECT_TRUE(equal(s, simplify(s, purpose))) << to_text(s) << "\n"
                                              << to_text(simplify(s, purpose));
  return s;
}

/// The ops of the equations, in order: "mul sin".
inline std::string ops(const GraphBody& g) {
  std::string text;
  for (const Equation& e : g.equations)
    text += (text.empty() ? "" : " ") + std::string(name_of(e.op));
  return text;
}
inline std::string simple_ops(Builder& b, const vt::Vec<Var>& results) {
  return ops(simplified(b.returns(results)));
}

}  // namespace vt_test
