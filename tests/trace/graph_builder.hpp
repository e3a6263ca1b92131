// Graphs made by hand, for the tests of the IR: a Builder that adds equations with inferred types.
#pragma once

#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/ir/graph.hpp"

namespace vt_test {

using namespace vt::detail;  // the names of the IR, in tests only
using vt::Axes;
using vt::DType;
using vt::Shape;
using vt::SmallVec;

class Builder {
 public:
  GraphBody graph;

  Var input(DType dtype, Shape shape) {
    const Var v = graph.fresh(Aval(dtype, std::move(shape)));
    graph.inputs.push_back(v);
    return v;
  }
  /// Adds an equation; its line is `line` of "user.cpp" (0: unknown).
  vt::Vec<Var> all(Op op, ParamsRef params, const vt::Vec<Var>& inputs, int line = 0) {
    vt::Vec<const Aval*> operands;
    for (Var v : inputs) operands.push_back(&graph.aval(v));
    const vt::CallSite where =
        line ? vt::CallSite{"/somewhere/else/user.cpp", line} : vt::CallSite{};
    auto avals = infer(op, params, operands, where);
    Equation e;
    e.op = op;
    e.where = where;
    e.params = std::move(params);
    for (Var v : inputs) e.inputs.push_back(v);
    for (Aval& a : avals) e.outputs.push_back(graph.fresh(std::move(a)));
    const vt::Vec<Var> outputs(e.outputs.begin(), e.outputs.end());
    graph.equations.push_back(std::move(e));
    return outputs;
  }
  Var add(Op op, ParamsRef params, const vt::Vec<Var>& inputs, int line = 0) {
    return all(op, std::move(params), inputs, line)[0];
  }
  Var add(Op op, const vt::Vec<Var>& inputs, int line = 0) { return add(op, {}, inputs, line); }
  template <class P>
  Var with(Op op, P params, const vt::Vec<Var>& inputs, int line = 0) {
    return add(op, make_params(std::move(params)), inputs, line);
  }

  template <class T>
  Var full(T value, Shape shape = {}) {
    return with(Op::full, FullParams{Scalar(value), Aval(vt::dtype_of<T>(), std::move(shape))}, {});
  }
  Var iota(DType dtype, Shape shape, int axis = 0) {
    return with(Op::iota, IotaParams{Aval(dtype, std::move(shape)), axis}, {});
  }
  template <class T>
  Var constant(const std::vector<T>& values, Shape shape) {
    BufferRef buffer = allocate(values.size() * sizeof(T));
    std::memcpy(buffer->data, values.data(), values.size() * sizeof(T));
    return with(Op::constant,
                ConstantParams{std::move(buffer), Aval(vt::dtype_of<T>(), std::move(shape))}, {});
  }
  Var reshape(Var x, Shape shape) { return with(Op::reshape, ShapeParams{std::move(shape)}, {x}); }
  Var transpose(Var x, Axes permutation) {
    return with(Op::transpose, PermutationParams{std::move(permutation)}, {x});
  }
  Var broadcast(Var x, Shape shape, Axes axes) {
    return with(Op::broadcast_in_dim, BroadcastParams{std::move(shape), std::move(axes)}, {x});
  }
  Var slice(Var x, Shape start, Shape limit, Shape stride) {
    return with(Op::slice, SliceParams{std::move(start), std::move(limit), std::move(stride)}, {x});
  }
  Var convert(Var x, DType dtype) { return with(Op::convert, ConvertParams{dtype, false}, {x}); }

  GraphBody& returns(const vt::Vec<Var>& outputs) {
    graph.outputs = outputs;
    return graph;
  }
};

/// The message of the vt::Error that `f` throws; "" if it throws none.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const vt::Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace vt_test
