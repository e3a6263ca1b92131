// A function's compiled results against the interpreter's, on the same numbers.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "property.hpp"
#include "src/trace/ir/executable.hpp"
#include "src/trace/ir/graph.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"

namespace vt_test {

// Runs `f` compiled and interpreted on the same numbers.
inline void expect_same(const vt::detail::FlatFunction& f, const std::vector<vt::Tensor>& arguments,
                        const Tolerance& tolerance, const std::string& what) {
  using namespace vt::detail;
  std::vector<vt::detail::Aval> avals;
  vt::Vec<vt::detail::BufferRef> inputs;
  for (const vt::Tensor& t : arguments) {
    avals.push_back(Aval(t.dtype(), t.shape()));
    inputs.push_back(value_of(t, {}));
  }
  const Recorded recorded = record(f, avals, {});
  for (const vt::Tensor& t : recorded.captured) inputs.push_back(value_of(t, {}));
  const vt::Vec<vt::detail::BufferRef> expected = interpret(recorded.graph, inputs);
  vt::Vec<vt::detail::BufferRef> actual;
  ASSERT_NO_THROW(actual = compile_graph(recorded.graph)->run(inputs)) << what << "\n"
                                                                       << to_text(recorded.graph);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Aval& aval = recorded.graph.aval(recorded.graph.outputs[i]);
    expect_close(from_buffer(actual[i], aval), from_buffer(expected[i], aval), tolerance,
                 what + " result " + std::to_string(i));
  }
}

}  // namespace vt_test
