// What suites of CUDA programs share: the device, and functions on it beside the interpreter's results.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/trace/executable.hpp"
#include "src/trace/interpreter.hpp"
#include "src/trace/node.hpp"
#include "src/trace/scope.hpp"
#include "support/cuda_emulator.hpp"
#include "support/property.hpp"

namespace vt_test {

/// Null on a real device.
inline const Emulator* const emulator = use_cuda_emulator();
inline const vt::Device device = vt::cuda(0);

/// f(arguments) on the device against the interpreter's results.
inline void expect_same(const vt::detail::FlatFunction& f, const std::vector<vt::Tensor>& arguments, const Tolerance& tolerance,
                        const std::string& what) {
  using namespace vt::detail;
  std::vector<Aval> avals;
  vt::Vec<BufferRef> inputs;
  for (const vt::Tensor& t : arguments) {
    avals.push_back(aval_of(t));
    inputs.push_back(value_of(t, {}));
  }
  const Recorded recorded = record(f, avals, {});
  for (const vt::Tensor& t : recorded.captured) inputs.push_back(value_of(t, {}));
  const vt::Vec<BufferRef> expected = interpret(recorded.graph, inputs);
  vt::Vec<BufferRef> actual;
  ASSERT_NO_THROW(actual = compile_graph(recorded.graph, device)->run(inputs)) << what << (emulator ? emulator->report() : "");
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Aval& aval = recorded.graph.aval(recorded.graph.outputs[i]);
    const vt::Tensor result = from_buffer(actual[i], aval);
    EXPECT_EQ(result.device(), device) << what;
    expect_close(result, from_buffer(expected[i], aval), tolerance, what + " result " + std::to_string(i));
  }
}

}  // namespace vt_test
