// Rows of the suite `codegen` that are loop nests: element-wise, casts, reductions in every
// direction, scans, layouts, indices, sorting.
#include "codegen.hpp"

namespace perf {
namespace {

using vt::Tensor;

constexpr vt::DType kinds[] = {vt::f32, vt::f64, vt::bf16, vt::f16,
                               vt::i8,  vt::u8,  vt::i32,  vt::i64};

/// Tails everywhere: neither 37 nor 37² is a number of vectors.
void odd_sizes() {
  const vt::Shape shape = {1000, 37, 37};
  for (const vt::DType d : kinds) {
    const std::string of = std::string(vt::name_of(d)) + "/" + size_of(shape);
    const Input x = d == vt::u8 ? Input{shape, d, 3.5, 3.5} : Input{shape, d, 7};
    codegen_row(
        {"pointwise/" + of, {x, x}, one([](const Tensors& x) { return x[0] * x[1] + x[0]; })});
    codegen_row({"sum/axis2/" + of, {x}, one([](const Tensors& x) { return vt::sum(x[0], 2); })});
  }
}

void elementwise() {
  const vt::Shape shape = {1000, 1000};
  codegen_row({"mask/where/1000x1000", {{shape}, {shape}}, one([](const Tensors& x) {
                 return vt::where((x[0] > 0) & (x[1] < 0.5f), x[0], x[1]);
               })});
  codegen_row({"mask/bool/1000x1000", {{shape}, {shape}}, one([](const Tensors& x) {
                 return (x[0] > 0) | (x[1] < 0.5f);
               })});
  with_gradient({"gelu/1000x1000", {{shape}}, one([](const Tensors& x) { return vt::gelu(x[0]); })},
                1, shape);
  with_gradient({"gelu_tanh/1000x1000", {{shape}}, one([](const Tensors& x) {
                   return vt::gelu(x[0], true);
                 })},
                1, shape);
  codegen_row({"pow/1000x1000", {{shape, vt::f32, 1, 2}, {shape}}, one([](const Tensors& x) {
                 return vt::pow(x[0], x[1]);
               })});
  const vt::DType casts[] = {vt::f16, vt::bf16, vt::f32, vt::f64,
                             vt::i8,  vt::i32,  vt::i64, vt::bool_};
  for (const vt::DType from : casts)
    codegen_row({std::string("cast/") + vt::name_of(from) + "/1000003",
                 {{{1000003}, from, 100}},
                 [casts, from](const Tensors& x) {
                   Tensors out;
                   for (const vt::DType to : casts)
                     if (to != from) out.push_back(x[0].astype(to));
                   return out;
                 }});
  // An optimizer's step (Kingma and Ba, "Adam", 2015) of the tree of a small transformer.
  CodegenRow adam{"adam/26_leaves", {}, [](const Tensors& x) {
                    const std::size_t n = x.size() / 4;
                    Tensors out(3 * n);
                    for (std::size_t i = 0; i < n; ++i) {
                      const Tensor m = 0.9f * x[2 * n + i] + 0.1f * x[n + i],
                                   v = 0.999f * x[3 * n + i] + 0.001f * vt::square(x[n + i]);
                      out[i] = x[i] - 1e-3f * (m / 0.1f) / (vt::sqrt(v / 0.001f) + 1e-8f);
                      out[n + i] = m;
                      out[2 * n + i] = v;
                    }
                    return out;
                  }};
  const std::vector<vt::Shape> layer = {{256},       {256}, {256, 768}, {768},       {256, 256},
                                        {256},       {256}, {256},      {256, 1024}, {1024},
                                        {1024, 256}, {256}, {256}};
  for (int part = 0; part < 4; ++part)
    for (int l = 0; l < 2; ++l)
      for (const vt::Shape& s : layer)
        adam.inputs.push_back(part == 3 ? Input{s, vt::f32, 0.5, 0.5} : Input{s});
  codegen_row(std::move(adam));
}

void reductions() {
  const vt::Shape square = {2048, 2048}, cube = {128, 256, 128};
  const std::pair<const char*, vt::ReduceAxes> directions[] = {
      {"axis0", 0}, {"axis1", 1}, {"all", {}}};
  for (const auto& [direction, axes] : directions) {
    const std::string of = std::string("/") + direction + "/";
    for (const vt::DType d : {vt::f32, vt::f64, vt::bf16})
      codegen_row({"sum" + of + vt::name_of(d) + "/2048x2048",
                   {{square, d}},
                   one([axes](const Tensors& x) { return vt::sum(x[0], axes); })});
    codegen_row({"max" + of + "f32/2048x2048", {{square}}, one([axes](const Tensors& x) {
                   return vt::max(x[0], axes);
                 })});
    codegen_row({"var" + of + "f64/1000x1000",
                 {{{1000, 1000}, vt::f64, 1, 1e10}},
                 one([axes](const Tensors& x) { return vt::var(x[0], axes); })});
    codegen_row({"var" + of + "f32/1000x1000",
                 {{{1000, 1000}, vt::f32, 1, 100}},
                 one([axes](const Tensors& x) { return vt::var(x[0], axes); })});
    codegen_row({"any" + of + "f32/2048x2048", {{square}}, one([axes](const Tensors& x) {
                   return vt::any(x[0] > 2, axes);
                 })});
    codegen_row({"prod" + of + "f32/1000x1000",
                 {{{1000, 1000}, vt::f32, 1e-3, 1}},
                 one([axes](const Tensors& x) { return vt::prod(x[0], axes); })});
  }
  for (const vt::DType d : {vt::f32, vt::f64, vt::bf16})
    codegen_row({std::string("sum/middle/") + vt::name_of(d) + "/128x256x128",
                 {{cube, d}},
                 one([](const Tensors& x) { return vt::sum(x[0], 1); })});
  codegen_row({"max/middle/f32/128x256x128", {{cube}}, one([](const Tensors& x) {
                 return vt::max(x[0], 1);
               })});
  for (const int axis : {0, 1})
    codegen_row({"argmax/axis" + std::to_string(axis) + "/f32/2048x2048",
                 {{square}},
                 one([axis](const Tensors& x) { return vt::argmax(x[0], axis); })});
  codegen_row({"argmax/all/f64/2048x2048", {{square, vt::f64}}, one([](const Tensors& x) {
                 return vt::argmax(x[0]);
               })});
}

void scans() {
  const vt::Shape square = {2048, 2048};
  for (const int axis : {0, 1})
    codegen_row({"cumsum/axis" + std::to_string(axis) + "/f32/2048x2048",
                 {{square}},
                 one([axis](const Tensors& x) { return vt::cumsum(x[0], axis); })});
  codegen_row({"cumsum/axis1/f64/1000x1000", {{{1000, 1000}, vt::f64}}, one([](const Tensors& x) {
                 return vt::cumsum(x[0], 1);
               })});
  codegen_row({"cumsum/axis1/i32/2048x2048", {{square, vt::i32, 100}}, one([](const Tensors& x) {
                 return vt::cumsum(x[0], 1);
               })});
  codegen_row({"cumsum/axis0/f32/1000000", {{{1000000}}}, one([](const Tensors& x) {
                 return vt::cumsum(x[0]);
               })});
  codegen_row({"cumprod/axis1/f32/1000x1000",
               {{{1000, 1000}, vt::f32, 1e-3, 1}},
               one([](const Tensors& x) { return vt::cumprod(x[0], 1); })});
  codegen_row({"cummax/axis1/f32/2048x2048", {{square}}, one([](const Tensors& x) {
                 return vt::cummax(x[0], 1);
               })});
  codegen_row({"cumlogsumexp/axis1/f32/1000x1000", {{{1000, 1000}}}, one([](const Tensors& x) {
                 return vt::cumlogsumexp(x[0], 1);
               })});
}

void layouts() {
  const auto transposed = [](const vt::Shape& shape, vt::DType d, const vt::Axes& order) {
    std::string name = "transpose/";
    for (const int axis : order) name += std::to_string(axis);
    codegen_row({name + "/" + vt::name_of(d) + "/" + size_of(shape),
                 {{shape, d, 100}},
                 one([order](const Tensors& x) { return vt::transpose(x[0], order); })});
  };
  transposed({1021, 1021}, vt::f32, {1, 0});
  transposed({1021, 1021}, vt::f64, {1, 0});
  transposed({1021, 1021}, vt::i8, {1, 0});
  transposed({1021, 1021}, vt::bf16, {1, 0});
  transposed({700, 37, 41}, vt::f32, {0, 2, 1});
  transposed({101, 103, 107}, vt::f32, {2, 1, 0});
  transposed({101, 103, 107}, vt::f32, {1, 2, 0});
  transposed({32, 56, 56, 24}, vt::f32, {0, 3, 1, 2});
  const Input wide{{1000, 1000}};
  codegen_row(
      {"concat/1000x1024", {{{1000, 300}}, {{1000, 500}}, {{1000, 224}}}, one([](const Tensors& x) {
         return vt::concatenate({x[0] * 2.0f, vt::relu(x[1]), x[2]}, 1);
       })});
  codegen_row({"concat_sum/1000x1024",
               {{{1000, 300}}, {{1000, 500}}, {{1000, 224}}},
               one([](const Tensors& x) {
                 return vt::sum(vt::concatenate({x[0] * 2.0f, vt::relu(x[1]), x[2]}, 1), 1);
               })});
  codegen_row({"pad_stencil/1000x1000", {wide}, one([](const Tensors& x) {
                 const Tensor p = vt::pad(x[0], {{1, 1}, {1, 1}});
                 const auto part = [&](std::int64_t i, std::int64_t j) {
                   return vt::slice(p, {i, j}, {i + 1000, j + 1000});
                 };
                 return part(0, 1) + part(2, 1) + part(1, 0) + part(1, 2) - 4.0f * x[0];
               })});
  codegen_row({"pad_reflect/1000x1000", {wide}, one([](const Tensors& x) {
                 return vt::pad(x[0], {{3, 3}, {3, 3}}, vt::PadMode::reflect);
               })});
  codegen_row({"inner/100x203x7", {{{100, 203, 7}}, {{100, 203, 7}}}, one([](const Tensors& x) {
                 return vt::einsum("ijk,ijk->ik", x[0], x[1]);
               })});
  codegen_row({"stencil/1000x1000", {wide}, one([](const Tensors& x) {
                 const Tensor& a = x[0];
                 return vt::roll(a, 1, 0) + vt::roll(a, -1, 0) + vt::roll(a, 1, 1) +
                        vt::roll(a, -1, 1) - a * 4.0f;
               })});
  codegen_row({"cross/100000x3", {{{100000, 3}}, {{100000, 3}}}, one([](const Tensors& x) {
                 return vt::cross(x[0], x[1]);
               })});
  codegen_row({"roll/1000x1000", {wide}, one([](const Tensors& x) {
                 return x[0] - vt::roll(x[0], 1, 1);
               })});
  codegen_row(
      {"flip/1000x1000", {wide}, one([](const Tensors& x) { return vt::flip(x[0], 1) * 2.0f; })});
  codegen_row({"stack/1000x1000x3", {wide, wide, wide}, one([](const Tensors& x) {
                 return vt::stack({x[0], x[1] * 2.0f, x[2]}, 2);
               })});
  with_gradient({"glu/1000x1000", {wide}, one([](const Tensors& x) {
                   const std::vector<Tensor> half = vt::split(x[0], 2, 1);
                   return half[0] * vt::sigmoid(half[1]);
                 })},
                1, {1000, 500});
  codegen_row({"repeat/1000x1008", {{{1000, 63}}, {{1000, 1008}}}, one([](const Tensors& x) {
                 return vt::repeat(x[0], 16, 1) * x[1];
               })});
  codegen_row({"tile/1000x1008", {{{1000, 63}}, {{1000, 1008}}}, one([](const Tensors& x) {
                 return vt::tile(x[0], {1, 16}) * x[1];
               })});
  codegen_row({"strided/1000x1000", {wide}, one([](const Tensors& x) {
                 return vt::slice_in_dim(x[0], 0, 1000, 1, 2) -
                        vt::slice_in_dim(x[0], 1, 1000, 1, 2);
               })});
}

void by_index() {
  codegen_row({"take/1000000",
               {{{1000000}}, indices({1000000}, 1000000)},
               one([](const Tensors& x) { return vt::take(x[0], x[1], 0); })});
  with_gradient({"embedding/30000x256_4096",
                 {{{30000, 256}}, indices({4096}, 30000)},
                 one([](const Tensors& x) { return vt::take(x[0], x[1], 0); })},
                1, {4096, 256});
  codegen_row({"take_along/1000x1000",
               {{{1000, 1000}}, indices({1000, 1000}, 1000)},
               one([](const Tensors& x) { return vt::take_along_axis(x[0], x[1], 1); })});
  codegen_row(
      {"sort/100000x10", {{{100000, 10}}}, one([](const Tensors& x) { return vt::sort(x[0]); })});
  codegen_row({"top_k/1000000", {{{1000000}}}, one([](const Tensors& x) {
                 return vt::top_k(x[0], 100).first;
               })});
}

}  // namespace

void loop_rows() {
  odd_sizes();
  elementwise();
  reductions();
  scans();
  layouts();
  by_index();
}

}  // namespace perf
