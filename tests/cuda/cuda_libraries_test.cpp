// Libraries of the CUDA toolkit: vt's declarations of cuBLAS and cuFFT against NVIDIA's headers
// where they are installed; which products go there, in every layout and dtype, alone and within
// replayed graphs, through a stand-in (cuda_emulator/libraries.cpp); what happens when it fails.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "cuda_emulator/libraries.hpp"
#include "src/jit/cuda/libraries/blas_library.hpp"
#include "src/jit/cuda/libraries/fft_library.hpp"
#include "support/cuda_emulator.hpp"
#include "support/cuda_libraries.hpp"
#include "support/message.hpp"
#include "support/passed_alike.hpp"
#include "support/property.hpp"

#if defined(__has_include)
#if __has_include(<cublas_v2.h>)
#define VT_TEST_HAS_CUBLAS_HEADER 1
#include <cublas_v2.h>
#endif
#if __has_include(<cufft.h>)
#define VT_TEST_HAS_CUFFT_HEADER 1
#include <cufft.h>
#endif
#endif

namespace {

namespace cuda = vt::detail::cuda;
using vt::Shape;
using vt::Tensor;
using vt_test::message;
using vt_test::random_quarters;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

#ifdef VT_TEST_HAS_CUBLAS_HEADER
// The header adds an overload for C++ to one of them: the library's own is the one with these
// enumerations.
using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                const void*, const void*, cudaDataType, int, long long, const void*,
                                cudaDataType, int, long long, const void*, void*, cudaDataType, int,
                                long long, int, cublasComputeType_t, cublasGemmAlgo_t);
struct Header {
#define VT_HEADER_FUNCTION(name) decltype(&::name) name;
  VT_HEADER_FUNCTION(cublasCreate_v2)
  VT_HEADER_FUNCTION(cublasDestroy_v2)
  VT_HEADER_FUNCTION(cublasGetVersion_v2)
  VT_HEADER_FUNCTION(cublasSetStream_v2)
  VT_HEADER_FUNCTION(cublasSetWorkspace_v2)
  VT_HEADER_FUNCTION(cublasSetMathMode)
  VT_HEADER_FUNCTION(cublasStrsm_v2)
  VT_HEADER_FUNCTION(cublasDtrsm_v2)
#undef VT_HEADER_FUNCTION
  decltype(static_cast<Gemm>(&::cublasGemmStridedBatchedEx)) cublasGemmStridedBatchedEx;
};
#define VT_SAME_FUNCTION(name, parameters)                                                 \
  static_assert(vt_test::Alike<decltype(cuda::Blas::name), decltype(Header::name)>::value, \
                #name " is declared otherwise in cublas_v2.h");
VT_CUBLAS_FUNCTIONS(VT_SAME_FUNCTION)
static_assert(vt_test::Alike<decltype(cuda::Blas::cublasGetStatusString),
                             decltype(&::cublasGetStatusString)>::value);
#define VT_SAME_CONSTANT(name, number)                                \
  static_assert(static_cast<int>(::name) == cuda::BlasConstant::name, \
                #name " has another value in NVIDIA's header");
VT_CUBLAS_CONSTANTS(VT_SAME_CONSTANT)
#endif

#ifdef VT_TEST_HAS_CUFFT_HEADER
#define VT_SAME_TRANSFORM(name, parameters)                                          \
  static_assert(vt_test::Alike<decltype(cuda::Fft::name), decltype(&::name)>::value, \
                #name " is declared otherwise in cufft.h");
VT_CUFFT_FUNCTIONS(VT_SAME_TRANSFORM)
#define VT_SAME_KIND(name, number)                                   \
  static_assert(static_cast<int>(::name) == cuda::FftConstant::name, \
                #name " has another value in NVIDIA's header");
VT_CUFFT_CONSTANTS(VT_SAME_KIND)
static_assert(CUFFT_FORWARD == cuda::FftConstant::forward &&
              CUFFT_INVERSE == cuda::FftConstant::inverse);
#endif

const vt_test::Emulator* const emulator = vt_test::use_cuda_emulator();
const vt_test::LibraryControls* controls() { return vt_test::library_controls(); }
long long products() { return controls() ? controls()->calls("cublasGemmStridedBatchedEx") : -1; }

/// f on the device = f on the host; `calls` of cuBLAS.
void expect_same(const Function& f, const Tensors& arguments, long long calls,
                 const std::string& what, const vt_test::Tolerance& tolerance = {}) {
  Tensors there;
  for (const Tensor& t : arguments) there.push_back(t.to(vt::cuda(0)));
  const auto compiled = vt::jit(f);
  const std::string text = vt::explain_steps(compiled)(there);
  const long long before = products();
  const Tensors actual = compiled(there), expected = f(arguments);
  for (std::size_t i = 0; i < expected.size(); ++i)
    vt_test::expect_close(actual[i], expected[i], tolerance, what + " result " + std::to_string(i));
  EXPECT_EQ(text.find("by cuBLAS") != std::string::npos, calls > 0) << what << "\n" << text;
  if (controls()) {
    EXPECT_EQ(products() - before, calls) << what << "\n" << text;
  }
}

TEST(CudaBlas, EveryLayoutAndDtype) {
  // Quarters: sums are exact in any order.
  for (vt::DType d : {vt::f32, vt::f64, vt::f16, vt::bf16}) {
    const Tensor a = random_quarters(d, {80, 140}, 1), b = random_quarters(d, {140, 200}, 2),
                 at = vt::transpose(a).eval(), bt = vt::transpose(b).eval();
    expect_same(
        [](const Tensors& x) {
          return Tensors{vt::matmul(x[0], x[1]), vt::matmul(vt::transpose(x[2]), x[1]),
                         vt::matmul(x[0], vt::transpose(x[3])),
                         vt::matmul(vt::transpose(x[2]), vt::transpose(x[3]))};
        },
        {a, b, at, bt}, 4, std::string(vt::name_of(d)), {.ulps = size_of(d) == 2 ? 1.0 : 0.0});
  }
  const Tensor a = random_quarters(vt::f16, {80, 140}, 1),
               b = random_quarters(vt::f16, {140, 200}, 2);
  expect_same([](const Tensors& x) { return Tensors{vt::einsum("ij,jk->ik", {x[0], x[1]})}; },
              {a, b}, 1, "einsum", {.ulps = 1});
}

TEST(CudaBlas, Batches) {
  const Tensor a = random_quarters(vt::f32, {3, 130, 128}, 1),
               b = random_quarters(vt::f32, {3, 128, 132}, 2),
               shared = random_quarters(vt::f32, {128, 140}, 3),
               middle = random_quarters(vt::f32, {130, 3, 128}, 4);
  expect_same(
      [](const Tensors& x) {
        // A batch that both have, one matrix for all, and a batch between rows and columns.
        return Tensors{vt::matmul(x[0], x[1]), vt::matmul(x[0], x[2]),
                       vt::matmul(vt::swapaxes(x[3], 0, 1), x[1])};
      },
      {a, b, shared, middle}, 3, "batches");
}

TEST(CudaBlas, WhatStaysWithOwnKernels) {
  const auto product = [](const Tensors& x) { return Tensors{vt::matmul(x[0], x[1])}; };
  expect_same(
      product,
      {random_quarters(vt::f32, {40, 64, 64}, 1), random_quarters(vt::f32, {40, 64, 64}, 2)}, 0,
      "small ones of a batch");
  expect_same(product,
              {random_quarters(vt::f32, {4, 900}, 1), random_quarters(vt::f32, {900, 900}, 2)}, 0,
              "few rows");
  expect_same(product,
              {vt_test::random_tensor(vt::i32, {130, 130}, -9, 9, 1),
               vt_test::random_tensor(vt::i32, {130, 130}, -9, 9, 2)},
              0, "integers");
}

TEST(CudaBlas, AFailingProductIsAnError) {
  if (!controls()) GTEST_SKIP() << "only the stand-in fails on demand";
  const Tensor x = vt::ones({128, 128}).to(vt::cuda(0));
  const auto f = vt::jit([](Tensor x) { return vt::matmul(x, x); });
  EXPECT_EQ(f(x)[5][7].item<float>(), 128);
  controls()->fail("cublasGemmStridedBatchedEx", 0, 13);
  const std::string text = message([&] { f(x).eval(); });
  EXPECT_NE(text.find("cublasGemmStridedBatchedEx: CUBLAS_STATUS_EXECUTION_FAILED; "
                      "VT_CUBLAS_LIBRARY=none does without cuBLAS"),
            std::string::npos)
      << text;
  EXPECT_EQ(f(x)[5][7].item<float>(), 128);  // nothing was lost
}

TEST(CudaBlas, WithoutAHandleOwnKernelsDoIt) {
  if (!controls()) GTEST_SKIP() << "only the stand-in fails on demand";
  // A handle that cannot be made, and one without a workspace, each on a device of its own.
  const char* functions[] = {"cublasCreate_v2", "cublasSetWorkspace_v2"};
  for (int i = 0; i < 2; ++i) {
    controls()->fail(functions[i], 0, 1);
    const Tensor x = vt::ones({128, 128}).to(vt::cuda(i + 1));
    const auto f = vt::jit([](Tensor x) { return vt::matmul(x, x); });
    const long long before = products();
    EXPECT_EQ(f(x)[5][7].item<float>(), 128);
    EXPECT_EQ(products(), before);
    const std::string text = vt::explain_steps(f)(x);
    EXPECT_NE(text.find("CUBLAS_STATUS_NOT_INITIALIZED"), std::string::npos) << text;
  }
}

TEST(CudaBlas, WithoutRoomForItsWorkspaceOwnKernelsDoIt) {
  if (!controls() || !emulator) GTEST_SKIP() << "only the stand-in fails on demand";
  const Tensor x = vt::ones({128, 128}).to(vt::cuda(3));
  const auto f = vt::jit([](Tensor x) { return vt::matmul(x, x) + 1.0f; });
  emulator->fail("cuMemAllocAsync", 0, cuda::Constant::CUDA_ERROR_OUT_OF_MEMORY);
  const long long before = products();
  EXPECT_EQ(f(x)[5][7].item<float>(), 129);
  EXPECT_EQ(products(), before);
  const std::string text = vt::explain_steps(f)(x);
  EXPECT_NE(text.find("not by cuBLAS: there was no room for its workspace"), std::string::npos)
      << text;
  // Programs that are made when there is room have it.
  EXPECT_EQ(vt::jit([](Tensor x) { return vt::matmul(x, x) - 1.0f; })(x)[5][7].item<float>(), 127);
  EXPECT_EQ(products(), before + 1);
}

// --- inside replayed graphs

std::uint64_t graph_launches(auto run) {
  vt::reset_stats();
  run();
  return vt::stats().graph_launches;
}
const vt_test::Tolerance rounding{.relative = 1e-5, .absolute = 1e-4};
bool has_conditions() { return cuda::driver(nullptr)->cuGraphAddNode_v2 != nullptr; }

Tensor network(const Tensor& x, const Tensor& w) {
  Tensor y = x;
  for (int i = 0; i < 3; ++i) {
    y = vt::tanh(vt::matmul(y, w));
    y = y - vt::sum(y, 0) * 0.001f;
  }
  return y;
}

TEST(CudaBlas, ProductsAreReplayed) {
  const Tensor w = vt_test::random_tensor(vt::f32, {128, 128}, -0.1, 0.1, 1);
  const auto f = vt::jit(network);
  Tensors arguments, results;
  for (std::uint64_t i = 0; i < 4; ++i)
    arguments.push_back(vt_test::random_tensor(vt::f32, {130, 128}, -1, 1, i + 2));
  f(arguments[0].to(vt::cuda(0)), w.to(vt::cuda(0))).eval();
  if (emulator) emulator->reset();
  const long long before = products();
  // All live at once: each call has other addresses, and all but the first tell their nodes.
  EXPECT_EQ(graph_launches([&] {
              for (const Tensor& x : arguments)
                results.push_back(f(x.to(vt::cuda(0)), w.to(vt::cuda(0))).eval());
            }),
            4u)
      << vt::explain_steps(f)(arguments[0].to(vt::cuda(0)), w.to(vt::cuda(0)));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(vt_test::all_close(results[i], network(arguments[i], w), rounding)) << i;
  if (emulator) {
    EXPECT_EQ(emulator->count("cuLaunchKernel"), products() - before);  // only what was captured
    EXPECT_EQ(emulator->count("cuGraphInstantiateWithFlags"), 1);
    EXPECT_GT(emulator->count("cuGraphExecChildGraphNodeSetParams"), 0);
  }
}

TEST(CudaBlas, AnUpdateThatTheDriverRefusesIsAnotherGraph) {
  if (!emulator) GTEST_SKIP() << "only the emulator fails on demand";
  const Tensor w = vt_test::random_tensor(vt::f32, {128, 128}, -0.1, 0.1, 1).to(vt::cuda(0)),
               x = vt::ones({130, 128}).to(vt::cuda(0)),
               y = vt::full({130, 128}, 0.5f).to(vt::cuda(0));
  const auto f = vt::jit([](Tensor x, Tensor w) { return network(x, w); });
  f(x, w).eval();
  const Tensor first = f(x, w).eval();
  const auto graphs = emulator->count("graphs"), execs = emulator->count("graph_execs");
  emulator->fail("cuGraphExecChildGraphNodeSetParams", 0,
                 cuda::Constant::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  Tensor second;
  EXPECT_EQ(graph_launches([&] { second = f(y, w).eval(); }), 1u);
  emulator->reset();
  EXPECT_TRUE(vt_test::all_close(second, network(y.to(vt::cpu()), w.to(vt::cpu())), rounding));
  EXPECT_EQ(emulator->count("graphs"), graphs);
  EXPECT_EQ(emulator->count("graph_execs"), execs);
}

TEST(CudaBlas, AProductThatFailsWhileItIsCaptured) {
  if (!controls() || !emulator) GTEST_SKIP() << "only the stand-in fails on demand";
  const Tensor w = vt_test::random_tensor(vt::f32, {128, 128}, -0.1, 0.1, 1).to(vt::cuda(0)),
               x = vt::ones({130, 128}).to(vt::cuda(0));
  const auto f = vt::jit([](Tensor x, Tensor w) { return network(x, w); });
  f(x, w).eval();
  const auto graphs = emulator->count("graphs");
  controls()->fail("cublasGemmStridedBatchedEx", 1, 13);
  // Kernels run one by one then, and the stream of captures is free again.
  EXPECT_EQ(graph_launches([&] { f(x, w).eval(); }), 0u);
  EXPECT_NE(
      vt::warnings().find("no CUDA graph could be made of it: vt: cublasGemmStridedBatchedEx"),
      std::string::npos)
      << vt::warnings();
  EXPECT_EQ(emulator->count("graphs"), graphs);
  const auto g = vt::jit([](Tensor x, Tensor w) { return network(x, w) * 2.0f; });
  g(x, w).eval();
  EXPECT_EQ(graph_launches([&] { g(x, w).eval(); }), 1u);
}

Tensor steered(const Tensor& a, const Tensor& x) {
  return vt::while_loop([](Tensor y) { return vt::sum(y * y) > 1.0f; },
                        [&](Tensor y) { return vt::tanh(vt::matmul(a, y)); }, x);
}

TEST(CudaBlas, InALoopThatTheDeviceSteers) {
  const Tensor a = vt_test::random_tensor(vt::f32, {128, 128}, -0.1, 0.1, 1),
               x = vt_test::random_tensor(vt::f32, {128, 140}, -1, 1, 2);
  const auto f = vt::jit(steered);
  const Tensor da = a.to(vt::cuda(0)), dx = x.to(vt::cuda(0));
  f(da, dx).eval();
  const auto waits = emulator ? emulator->count("synchronisations") : 0;
  Tensor result;
  EXPECT_EQ(graph_launches([&] { result = f(da, dx); }), has_conditions() ? 1u : 0u);
  if (emulator && has_conditions()) {
    EXPECT_EQ(emulator->count("synchronisations"), waits);
  }
  EXPECT_TRUE(vt_test::all_close(result, steered(a, x), rounding));
}

// --- cuFFT

long long transforms() {
  long long all = 0;
  for (const char* name : {"C2C", "R2C", "C2R", "Z2Z", "D2Z", "Z2D"})
    all += controls()->calls((std::string("cufftExec") + name).c_str());
  return all;
}

TEST(CudaFft, RowsBeyondSharedMemory) {
  if (!controls()) GTEST_SKIP() << "counts the stand-in's calls";
  // A prime is nobody else's on a device; the other one would take two kernels.
  for (const auto& [d, n] : {std::pair{vt::f32, std::int64_t{4099}}, {vt::f64, 2310}}) {
    const Tensor x = vt_test::random_tensor(d, {2, n}, -1, 1, 1),
                 y = vt_test::random_tensor(d, {2, n}, -1, 1, 2);
    const auto f = [n = n](Tensor x, Tensor y) {
      const Tensor z = vt::complex(x, y), half = vt::fft::rfft(x);
      return std::tuple(vt::fft::fft(z), vt::fft::ifft(z), half, vt::fft::irfft(half * 2.0f, n));
    };
    const auto there = vt::jit(f);
    const Tensor dx = x.to(vt::cuda(0)), dy = y.to(vt::cuda(0));
    vt::reset_stats();
    for (int run = 0; run < 2; ++run) {  // the second one is replayed
      const long long before = transforms();
      const auto [a, b, c, e] = there(dx, dy);
      const auto [ha, hb, hc, he] = f(x, y);
      const vt_test::Tolerance t{.relative = d == vt::f32 ? 1e-4 : 1e-10,
                                 .absolute = d == vt::f32 ? 2e-3 : 1e-9};
      vt_test::expect_close(a, ha, t, "fft");
      vt_test::expect_close(b, hb, t, "ifft");
      vt_test::expect_close(c, hc, t, "rfft");
      vt_test::expect_close(e, he, t, "irfft");
      EXPECT_EQ(transforms() - before, 4) << vt::explain_steps(there)(dx, dy);
    }
    EXPECT_EQ(vt::stats().host_steps, 0u);
    EXPECT_EQ(vt::stats().graph_launches, 1u);
  }
}

TEST(CudaFft, SeveralAxesAndAnOperandThatBeginsInBetween) {
  if (!controls()) GTEST_SKIP() << "counts the stand-in's calls";
  // One of the axes is too long.
  const Tensor x = vt_test::random_tensor(vt::f32, {2, 3, 4099}, -1, 1, 1);
  const auto planes = [](Tensor x) { return vt::fft::rfftn(x, std::nullopt, {1, 2}); };
  long long before = transforms();
  vt_test::expect_close(vt::jit(planes)(x.to(vt::cuda(0))), planes(x),
                        {.relative = 1e-4, .absolute = 5e-3}, "rfftn");
  EXPECT_EQ(transforms() - before, 1);
  // Rows of a scan: the second one begins at an odd number.
  const auto rows = [](Tensor x) {
    return vt::scan([](Tensor s, Tensor row) { return std::pair(s, vt::abs(vt::fft::rfft(row))); },
                    vt::tensor(0.0f), x, {})
        .second;
  };
  before = transforms();
  vt_test::expect_close(vt::jit(rows)(x[0].to(vt::cuda(0))), rows(x[0]),
                        {.relative = 1e-4, .absolute = 5e-3}, "rows");
  EXPECT_EQ(transforms() - before, 3);
}

TEST(CudaFft, WhereItFails) {
  if (!controls()) GTEST_SKIP() << "only the stand-in fails on demand";
  const Tensor x = vt_test::random_tensor(vt::f32, {4098}, -1, 1, 1), there = x.to(vt::cuda(0));
  const auto f = vt::jit([](Tensor x) { return vt::fft::rfft(x); });
  f(there).eval();
  controls()->fail("cufftExecR2C", 0, 6);
  const std::string text = message([&] { f(there).eval(); });
  EXPECT_NE(text.find("cufftExecR2C: error 6 of cuFFT; VT_CUFFT_LIBRARY=none does without cuFFT"),
            std::string::npos)
      << text;
  vt_test::expect_close(f(there), vt::fft::rfft(x), {.relative = 1e-4, .absolute = 2e-3},
                        "nothing was lost");
  // Without a plan vt's own kernels do it.
  controls()->fail("cufftMakePlanMany64", 0, 5);
  const auto g = vt::jit([](Tensor x) { return vt::fft::rfft(x) * 2.0f; });
  const long long before = transforms();
  vt_test::expect_close(g(there), vt::fft::rfft(x) * 2.0f, {.relative = 1e-4, .absolute = 2e-3},
                        "own kernels");
  EXPECT_EQ(transforms(), before);
}

}  // namespace
