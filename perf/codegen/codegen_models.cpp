// Rows of the suite `codegen` from machine learning: softmax, norms and losses at many sizes,
// attention, products, convolutions, training steps.
#include "codegen.hpp"

namespace perf {
namespace {

using vt::Tensor;

void rows_of_numbers() {
  const vt::Shape sizes[] = {{64, 64},     {1000, 10},   {4096, 16},   {1024, 128},
                             {512, 1000},  {100, 4099},  {1000, 1000}, {32, 32768},
                             {2048, 2048}, {4, 1000000}, {1000000, 5}};
  for (const vt::Shape& s : sizes)
    with_gradient({"softmax/" + size_of(s), {{s, vt::f32, 5}}, one([](const Tensors& x) {
                     return vt::softmax(x[0]);
                   })},
                  1, s);
  for (const vt::Shape& s : sizes)
    with_gradient({"layer_norm/" + size_of(s),
                   {{s, vt::f32, 2, 1}, {{s[1]}}, {{s[1]}}},
                   one([](const Tensors& x) { return vt::layer_norm(x[0], x[1], x[2]); })},
                  3, s);
  for (const vt::Shape& s : sizes)
    with_gradient(
        {"cross_entropy/" + size_of(s),
         {{s, vt::f32, 5}, indices({s[0]}, static_cast<double>(s[1]))},
         one([](const Tensors& x) { return vt::mean(vt::sparse_cross_entropy(x[0], x[1])); })},
        1, {});
  // GroupNorm(3, 90) with channels last, and groups of a million numbers.
  with_gradient({"group_norm/3/8x32x32x90",
                 {{{8, 32, 32, 90}}, {{90}}, {{90}}},
                 one([](const Tensors& x) { return vt::group_norm(x[0], 3, x[1], x[2]); })},
                3, {8, 32, 32, 90});
  with_gradient({"group_norm/2/1x256x256x32",
                 {{{1, 256, 256, 32}}, {{32}}, {{32}}},
                 one([](const Tensors& x) { return vt::group_norm(x[0], 2, x[1], x[2]); })},
                3, {1, 256, 256, 32});
  // Groups of eight channels: half a vector of the longest.
  with_gradient({"group_norm/6/4x65x63x48",
                 {{{4, 65, 63, 48}}, {{48}}, {{48}}},
                 one([](const Tensors& x) { return vt::group_norm(x[0], 6, x[1], x[2]); })},
                3, {4, 65, 63, 48});
  codegen_row({"log_softmax/0/1000x1000", {{{1000, 1000}, vt::f32, 5}}, one([](const Tensors& x) {
                 return vt::log_softmax(x[0], 0);
               })});
  codegen_row(
      {"norm_softmax/1024x512", {{{1024, 512}}, {{512}}, {{512}}}, one([](const Tensors& x) {
         return vt::softmax(vt::layer_norm(x[0], x[1], x[2]));
       })});
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  Tensor scores =
      vt::matmul(q, vt::matrix_transpose(k)) * (1.0f / std::sqrt(static_cast<float>(q.dim(-1))));
  if (causal) {
    const Tensor place = vt::arange(q.dim(-2));
    scores = vt::where(vt::expand_dims(place, {1}) >= place, scores, -1e30f);
  }
  return vt::matmul(vt::softmax(scores), v);
}

void attentions() {
  for (const std::int64_t length : {64, 256, 1024}) {
    const vt::Shape s = {8, length, 64};
    const auto f = [](bool causal) {
      return one([causal](const Tensors& x) { return attention(x[0], x[1], x[2], causal); });
    };
    with_gradient({"attention/" + size_of(s), {{s, vt::f32, 2}, {s, vt::f32, 2}, {s}}, f(false)}, 3,
                  s);
    if (length == 256)
      codegen_row(
          {"causal_attention/" + size_of(s), {{s, vt::f32, 2}, {s, vt::f32, 2}, {s}}, f(true)});
  }
  // A block of a transformer, its norms in front: x, the first norm, qkv, out, the second norm, two
  // dense layers.
  const vt::Shape x = {4, 128, 256};
  const auto block = [](const Tensors& p) {
    const Tensor qkv = vt::matmul(vt::layer_norm(p[0], p[1], p[2]), p[3]);
    std::vector<Tensor> part = vt::split(qkv, 3, -1);
    for (Tensor& t : part) t = vt::transpose(vt::reshape(t, {4, 128, 4, 64}), {0, 2, 1, 3});
    const Tensor seen = vt::reshape(
        vt::transpose(attention(part[0], part[1], part[2], false), {0, 2, 1, 3}), {4, 128, 256});
    const Tensor y = p[0] + vt::matmul(seen, p[4]);
    return y +
           vt::matmul(vt::gelu(vt::matmul(vt::layer_norm(y, p[5], p[6]), p[7]) + p[8], true),
                      p[9]) +
           p[10];
  };
  with_gradient({"transformer/4x128x256",
                 {{x},
                  {{256}, vt::f32, 0.1, 1},
                  {{256}, vt::f32, 0.1},
                  {{256, 768}, vt::f32, 0.1},
                  {{256, 256}, vt::f32, 0.1},
                  {{256}, vt::f32, 0.1, 1},
                  {{256}, vt::f32, 0.1},
                  {{256, 1024}, vt::f32, 0.1},
                  {{1024}, vt::f32, 0.1},
                  {{1024, 256}, vt::f32, 0.05},
                  {{256}, vt::f32, 0.1}},
                 one(block)},
                11, x);
}

void products() {
  struct Product {
    vt::DType dtype;
    int m, n, k;
  };
  for (const Product& p : {Product{vt::f32, 64, 64, 64}, Product{vt::f32, 192, 192, 192},
                           Product{vt::f32, 512, 512, 512}, Product{vt::f32, 1000, 1000, 1000},
                           Product{vt::f64, 512, 512, 512}, Product{vt::bf16, 512, 512, 512},
                           Product{vt::f16, 512, 512, 512}, Product{vt::f32, 1, 2048, 2048},
                           Product{vt::f32, 2048, 1, 2048}, Product{vt::f32, 1024, 1024, 8},
                           Product{vt::f32, 8, 1024, 1024}, Product{vt::f32, 1024, 8, 1024}})
    codegen_row(
        {std::string("matmul/plain/") + vt::name_of(p.dtype) + "/" + size_of({p.m, p.n, p.k}),
         {{{p.m, p.k}, p.dtype}, {{p.k, p.n}, p.dtype}},
         one([](const Tensors& x) { return vt::matmul(x[0], x[1]); })});
  codegen_row({"matmul/i8/512x512x512",
               {{{512, 512}, vt::i8, 100}, {{512, 512}, vt::i8, 100}},
               one([](const Tensors& x) {
                 return vt::dot_general(x[0], x[1], {.lhs_contract = {1}, .rhs_contract = {0}},
                                        vt::i32);
               })});
  codegen_row({"matmul/plain/f32/64x128x128x128",
               {{{64, 128, 128}}, {{64, 128, 128}}},
               one([](const Tensors& x) { return vt::matmul(x[0], x[1]); })});
  codegen_row({"matmul/tn/f32/512x512x512", {{{512, 512}}, {{512, 512}}}, one([](const Tensors& x) {
                 return vt::matmul(vt::transpose(x[0]), x[1]);
               })});
  codegen_row({"matmul/nt/f32/512x512x512", {{{512, 512}}, {{512, 512}}}, one([](const Tensors& x) {
                 return vt::matmul(x[0], vt::transpose(x[1]));
               })});
  with_gradient({"dense_tanh/2048x1024x64",
                 {{{2048, 64}}, {{64, 1024}}, {{1024}}},
                 one([](const Tensors& x) { return vt::tanh(vt::matmul(x[0], x[1]) + x[2]); })},
                3, {2048, 1024});
  with_gradient({"dense_relu/512x512x512",
                 {{{512, 512}}, {{512, 512}}, {{512}}},
                 one([](const Tensors& x) { return vt::relu(vt::matmul(x[0], x[1]) + x[2]); })},
                3, {512, 512});
}

/// The larger grid, beside JAX alone, is perf/conv.cpp's.
void convolutions() {
  const auto conv = [](const std::string& name, const vt::Shape& x, const vt::Shape& filter,
                       const vt::Shape& result, const vt::ConvOptions& options) {
    with_gradient({"conv/" + name + "/" + size_of(x),
                   {{x}, {filter, vt::f32, 0.1}},
                   one([options](const Tensors& t) { return vt::conv2d(t[0], t[1], options); })},
                  2, result);
  };
  conv("3x3", {16, 28, 28, 64}, {3, 3, 64, 64}, {16, 28, 28, 64}, {.padding = "SAME"});
  conv("1x1", {16, 28, 28, 128}, {1, 1, 128, 128}, {16, 28, 28, 128}, {});
  conv("depthwise", {16, 28, 28, 64}, {3, 3, 1, 64}, {16, 28, 28, 64},
       {.padding = "SAME", .feature_group_count = 64});
  conv("7x7_strided", {4, 112, 112, 3}, {7, 7, 3, 64}, {4, 53, 53, 64}, {.strides = {2}});
}

/// Gradients of the mean loss of a batch and a step against them.
void training() {
  CodegenRow digits{"train/convnet/64",
                    {{{5, 5, 1, 32}, vt::f32, 0.3},
                     {{32}, vt::f32, 0.1},
                     {{5, 5, 32, 64}, vt::f32, 0.05},
                     {{64}, vt::f32, 0.1},
                     {{3136, 1024}, vt::f32, 0.03},
                     {{1024}, vt::f32, 0.1},
                     {{1024, 10}, vt::f32, 0.05},
                     {{10}, vt::f32, 0.1},
                     {{64, 28, 28, 1}},
                     {{64, 1024}, vt::f32, 0.5, 0.5},
                     indices({64}, 10),
                     {{}, vt::f32, 0, 1}},
                    one([](const Tensors& x) {
                      return mean_loss({x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]}, x[8], x[9],
                                       x[10]);
                    }),
                    8,
                    0.01};
  codegen_row(std::move(digits));
  CodegenRow vgg{"train/vgg16/8", {}, {}, 0, 0.01};
  for (const vt::Shape& s : vgg16_shapes(10)) {
    vgg.inputs.push_back({s, vt::f32, weight_scale(s)});
    vgg.inputs.push_back({{s.back()}, vt::f32, 0.1});
  }
  vgg.by = vgg.inputs.size();
  vgg.inputs.insert(vgg.inputs.end(),
                    {Input{{8, 48, 48, 3}}, indices({8}, 10), Input{{}, vt::f32, 0, 1}});
  vgg.value = one([](const Tensors& x) {
    const Weights p(x.begin(), x.end() - 2);
    return vt::mean(vt::vmap([&](const Tensor& image, const Tensor& label) {
      return vt::sparse_cross_entropy(vgg16_logits(p, image), label);
    })(x[x.size() - 2], x.back()));
  });
  codegen_row(std::move(vgg));
}

}  // namespace

void model_rows() {
  rows_of_numbers();
  attentions();
  products();
  convolutions();
  training();
}

}  // namespace perf
