// What the rows of the suite `codegen` share: inputs that perf/peers/codegen.py makes again from
// their descriptions, and samples of the results, which it compares with its own.
#pragma once

#include <functional>
#include <string>

#include "../networks.hpp"

namespace perf {

using Tensors = std::vector<vt::Tensor>;

/// numbers · scale + offset, in f64 and then f32 on the way to any other dtype; bools: where that
/// is positive. Integers lose their fractions, so that `scale` = `offset` = n/2 gives indices below
/// n.
struct Input {
  vt::Shape shape;
  vt::DType dtype = vt::f32;
  double scale = 1, offset = 0;
};
inline Input indices(const vt::Shape& shape, double below) {
  return {shape, vt::i32, below / 2, below / 2};
}

/// A row; the part of its name before the last '/' says what it does, the last part its sizes.
struct CodegenRow {
  std::string name;
  std::vector<Input> inputs;
  std::function<Tensors(const Tensors&)> value;
  /// So many of the inputs, the first ones, are differentiated by; the last input is then the
  /// cotangent of the (one) result, and the results are the value and the cotangents, or, with
  /// `rate`, the inputs less rate times the cotangents.
  std::size_t by = 0;
  double rate = 0;
};

/// Registers a row on two threads, whose inputs are made when it first runs.
void codegen_row(CodegenRow row);

/// "gradient/…": the row of the value beside one of its derivative. `result`: the shape of the
/// value.
inline void with_gradient(CodegenRow row, std::size_t by, const vt::Shape& result) {
  codegen_row(row);
  row.name = "gradient/" + row.name;
  row.by = by;
  row.inputs.push_back(result.rank() == 0 ? Input{result, vt::f32, 0, 1} : Input{result});
  codegen_row(std::move(row));
}

/// For functions that give one Tensor.
template <class F>
std::function<Tensors(const Tensors&)> one(F f) {
  return [f](const Tensors& x) { return Tensors{f(x)}; };
}

/// "1000x37x37"
inline std::string size_of(const vt::Shape& shape) {
  std::string text;
  for (int i = 0; i < shape.rank(); ++i) text += (i > 0 ? "x" : "") + std::to_string(shape[i]);
  return text;
}

void loop_rows();   ///< codegen_loops.cpp
void model_rows();  ///< codegen_models.cpp

}  // namespace perf
