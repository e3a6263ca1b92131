// The suite `codegen`: runs its rows, and writes what they take and samples of what they give to
// the file of the option --values=.
#include "codegen.hpp"

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "../support.hpp"

namespace perf {
namespace {

/// What the peers need to do the same work and to compare: a JSON object for each row that has run.
std::map<std::size_t, std::string>& records() {
  static std::map<std::size_t, std::string> all;
  return all;
}

vt::Tensor make(const Input& in, std::uint64_t seed) {
  std::vector<double> x = numbers<double>(static_cast<std::size_t>(in.shape.elements()), seed);
  for (double& v : x) v = v * in.scale + in.offset;
  const vt::Tensor wide = vt::tensor(x, in.shape);
  if (in.dtype == vt::f64) return wide.eval();
  const vt::Tensor narrow = wide.astype(vt::f32);
  return (in.dtype == vt::bool_ ? narrow > 0 : narrow.astype(in.dtype)).eval();
}

std::string list_of(const vt::Shape& shape) {
  std::string text;
  for (int i = 0; i < shape.rank(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return "[" + text + "]";
}
std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", x);
  return text;
}

/// Sum, sum of squares and a hundred elements of a result.
std::string sample(const vt::Tensor& t) {
  const std::vector<double> x = t.astype(vt::f64).to_vector<double>();
  double sum = 0, squares = 0;
  for (const double v : x) {
    sum += v;
    squares += v * v;
  }
  std::string text = "{\"shape\": " + list_of(t.shape()) + ", \"dtype\": \"" +
                     vt::name_of(t.dtype()) + "\", \"sum\": " + number(sum) +
                     ", \"squares\": " + number(squares) + ", \"elements\": [";
  for (std::size_t i = 0; i < 100; ++i)
    text += (i > 0 ? ", " : "") + number(x[i * (x.size() - 1) / 99]);
  return text + "]}";
}

std::string record(const CodegenRow& row, const Tensors& results) {
  std::string text = "{\"name\": \"" + row.name + "\", \"by\": " + std::to_string(row.by) +
                     ", \"rate\": " + number(row.rate) + ", \"inputs\": [";
  for (const Input& in : row.inputs)
    text += std::string(&in == row.inputs.data() ? "" : ", ") + "{\"shape\": " + list_of(in.shape) +
            ", \"dtype\": \"" + vt::name_of(in.dtype) + "\", \"scale\": " + number(in.scale) +
            ", \"offset\": " + number(in.offset) + "}";
  text += "], \"results\": [";
  for (const vt::Tensor& t : results) text += (&t == results.data() ? "" : ", ") + sample(t);
  return text + "]}";
}

/// The row's value or, if it differentiates, what its derivative gives.
Tensors results_of(const CodegenRow& row, const Tensors& x) {
  if (row.by == 0) return row.value(x);
  const auto by = static_cast<std::ptrdiff_t>(row.by);
  const Tensors wanted(x.begin(), x.begin() + by), rest(x.begin() + by, x.end() - 1);
  const auto [y, pull] = vt::vjp(
      [&](const Tensors& p) {
        Tensors all = p;
        all.insert(all.end(), rest.begin(), rest.end());
        return row.value(all).at(0);
      },
      wanted);
  Tensors out = pull(x.back());
  if (row.rate != 0)
    for (std::size_t i = 0; i < row.by; ++i)
      out[i] = wanted[i] - static_cast<float>(row.rate) * out[i];
  else out.insert(out.begin(), y);
  return out;
}

}  // namespace

void codegen_row(CodegenRow row) {
  static std::size_t count = 0;
  struct State {
    Tensors x;
    bool ran = false;
  };
  const auto compiled = vt::jit([row](const Tensors& x) { return results_of(row, x); });
  const std::string name = "codegen/" + row.name + "/vt";
  row_on(2, name,
         [row = std::move(row), compiled, at = count++, state = std::make_shared<State>()] {
           if (!state->ran)
             for (std::size_t i = 0; i < row.inputs.size(); ++i)
               state->x.push_back(make(row.inputs[i], i + 1));
           const Tensors results = compiled(state->x);
           for (const vt::Tensor& t : results) t.eval();
           if (!state->ran) records()[at] = record(row, results);
           state->ran = true;
         });
}

}  // namespace perf

int main(int argc, char** argv) {
  const char* values = nullptr;
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], "--values=", 9) == 0) {
      values = argv[i] + 9;
      for (int k = i; k < argc; ++k) argv[k] = argv[k + 1];
      --argc;
      break;
    }
  perf::loop_rows();
  perf::model_rows();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  if (!values) return 0;
  std::FILE* file = std::fopen(values, "w");
  if (!file) {
    std::fprintf(stderr, "%s: cannot be written\n", values);
    return 1;
  }
  const char* separator = "[";
  for (const auto& [at, text] : perf::records()) {
    std::fprintf(file, "%s\n%s", separator, text.c_str());
    separator = ",";
  }
  std::fprintf(file, "%s\n]\n", perf::records().empty() ? "[" : "");
  return std::fclose(file);
}
