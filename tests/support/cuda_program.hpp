// What suites of CUDA programs share: the device,
// and functions on it beside the interpreter's results.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "cuda_emulator.hpp"
#include "property.hpp"
#include "src/trace/interpret/interpreter.hpp"
#include "src/trace/ir/executable.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"

namespace vt_test {

/// Null on a real device.
inline const Emulator* const emulator = use_cuda_emulator();
inline const vt::Device device = vt::cuda(0);

/// A Graph, the values of its inputs, and what the interpreter makes of them.
struct Interpreted {
  vt::detail::Recorded recorded;
  vt::Vec<vt::detail::BufferRef> inputs, expected;
};
inline Interpreted interpreted(const vt::detail::FlatFunction& f,
                               const std::vector<vt::Tensor>& arguments) {
  using namespace vt::detail;
  std::vector<Aval> avals;
  vt::Vec<BufferRef> inputs;
  for (const vt::Tensor& t : arguments) {
    avals.push_back(aval_of(t));
    inputs.push_back(value_of(t, {}));
  }
  Recorded recorded = record(f, avals, {});
  for (const vt::Tensor& t : recorded.captured) inputs.push_back(value_of(t, {}));
  vt::Vec<BufferRef> expected = interpret(recorded.graph, inputs);
  return {std::move(recorded), std::move(inputs), std::move(expected)};
}

/// f(arguments) on the device against the interpreter's results.
inline void expect_same(const vt::detail::FlatFunction& f, const std::vector<vt::Tensor>& arguments,
                        const Tolerance& tolerance, const std::string& what) {
  using namespace vt::detail;
  const auto [recorded, inputs, expected] = interpreted(f, arguments);
  vt::Vec<BufferRef> actual;
  ASSERT_NO_THROW(actual = compile_graph(recorded.graph, device)->run(inputs))
      << what << (emulator ? emulator->report() : "");
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Aval& aval = recorded.graph.aval(recorded.graph.outputs[i]);
    const vt::Tensor result = from_buffer(actual[i], aval);
    EXPECT_EQ(result.device(), device) << what;
    expect_close(result, from_buffer(expected[i], aval), tolerance,
                 what + " result " + std::to_string(i));
  }
}

using Tensors = std::vector<vt::Tensor>;
using TensorFunction = std::function<Tensors(const Tensors&)>;

/// What a function gives on the device and on the host, and what explain tells of its program on
/// the device.
struct OnBoth {
  Tensors actual, expected;
  std::string log;
};
/// vt::stats() are those of the run on the device. Without results there, the test has failed.
inline OnBoth on_both(const TensorFunction& f, const Tensors& arguments, const std::string& what) {
  Tensors there;
  for (const vt::Tensor& t : arguments) there.push_back(t.to(device));
  const auto compiled = vt::jit(f);
  OnBoth r;
  r.log = vt::explain_steps(compiled)(there);
  vt::reset_stats();
  EXPECT_NO_THROW(r.actual = compiled(there)) << what << (emulator ? emulator->report() : "");
  r.expected = f(arguments);
  EXPECT_EQ(r.actual.size(), r.expected.size()) << what;
  r.expected.resize(r.actual.size());
  return r;
}

}  // namespace vt_test
