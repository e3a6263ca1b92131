// Libraries of the CUDA toolkit: vt's declarations of cuBLAS against NVIDIA's header where it is installed; which products go there, in every layout
// and dtype, through a stand-in (cuda_emulator/libraries.cpp); what happens when it fails.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "cuda_emulator/libraries.hpp"
#include "src/jit/cuda/blas_library.hpp"
#include "support/cuda_emulator.hpp"
#include "support/message.hpp"
#include "support/passed_alike.hpp"
#include "support/property.hpp"

#if defined(__has_include)
#if __has_include(<cublas_v2.h>)
#define VT_TEST_HAS_CUBLAS_HEADER 1
#include <cublas_v2.h>
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
// The header adds an overload for C++ to one of them: the library's own is the one with these enumerations.
using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*, const void*, cudaDataType, int,
                                long long, const void*, cudaDataType, int, long long, const void*, void*, cudaDataType, int, long long, int,
                                cublasComputeType_t, cublasGemmAlgo_t);
struct Header {
#define VT_HEADER_FUNCTION(name) decltype(&::name) name;
  VT_HEADER_FUNCTION(cublasCreate_v2)
  VT_HEADER_FUNCTION(cublasDestroy_v2)
  VT_HEADER_FUNCTION(cublasGetVersion_v2)
  VT_HEADER_FUNCTION(cublasSetStream_v2)
  VT_HEADER_FUNCTION(cublasSetWorkspace_v2)
  VT_HEADER_FUNCTION(cublasSetMathMode)
#undef VT_HEADER_FUNCTION
  decltype(static_cast<Gemm>(&::cublasGemmStridedBatchedEx)) cublasGemmStridedBatchedEx;
};
#define VT_SAME_FUNCTION(name, parameters) \
  static_assert(vt_test::Alike<decltype(cuda::Blas::name), decltype(Header::name)>::value, #name " is declared otherwise in cublas_v2.h");
VT_CUBLAS_FUNCTIONS(VT_SAME_FUNCTION)
static_assert(vt_test::Alike<decltype(cuda::Blas::cublasGetStatusString), decltype(&::cublasGetStatusString)>::value);
#define VT_SAME_CONSTANT(name, number) \
  static_assert(static_cast<int>(::name) == cuda::BlasConstant::name, #name " has another value in NVIDIA's header");
VT_CUBLAS_CONSTANTS(VT_SAME_CONSTANT)
#endif

const vt_test::Emulator* const emulator = [] {
  std::string libraries = VT_EMULATOR_LIBRARY;  // which the stand-ins lie beside
  libraries.replace(libraries.rfind("emulator"), 8, "libraries");
  ::setenv("VT_CUBLAS_LIBRARY", libraries.c_str(), 0);
  ::setenv("VT_EMULATOR_DEVICES", "3", 0);
  return vt_test::use_cuda_emulator();
}();

/// The stand-in's controls; null where the real library is used.
struct Controls {
  decltype(&::vt_library_fail) fail;
  decltype(&::vt_library_calls) calls;
};
const Controls* controls() {
  static const Controls* const made = []() -> const Controls* {
    void* library = ::dlopen(std::getenv("VT_CUBLAS_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    void *fail = library ? ::dlsym(library, "vt_library_fail") : nullptr, *calls = library ? ::dlsym(library, "vt_library_calls") : nullptr;
    if (!fail || !calls) return nullptr;
    return new Controls{reinterpret_cast<decltype(&::vt_library_fail)>(fail), reinterpret_cast<decltype(&::vt_library_calls)>(calls)};
  }();
  return made;
}
long long products() { return controls() ? controls()->calls("cublasGemmStridedBatchedEx") : -1; }

/// f on the device = f on the host; `calls` of cuBLAS.
void expect_same(const Function& f, const Tensors& arguments, long long calls, const std::string& what, const vt_test::Tolerance& tolerance = {}) {
  Tensors there;
  for (const Tensor& t : arguments) there.push_back(t.to(vt::cuda(0)));
  const auto compiled = vt::jit(f);
  const std::string text = vt::explain(compiled)(there);
  const long long before = products();
  const Tensors actual = compiled(there), expected = f(arguments);
  for (std::size_t i = 0; i < expected.size(); ++i) vt_test::expect_close(actual[i], expected[i], tolerance, what + " result " + std::to_string(i));
  EXPECT_EQ(text.find("by cuBLAS") != std::string::npos, calls > 0) << what << "\n" << text;
  if (controls()) {
    EXPECT_EQ(products() - before, calls) << what << "\n" << text;
  }
}

TEST(CudaBlas, EveryLayoutAndDtype) {
  // Quarters: sums are exact in any order.
  for (vt::DType d : {vt::f32, vt::f64, vt::f16, vt::bf16}) {
    const Tensor a = random_quarters(d, {80, 140}, 1), b = random_quarters(d, {140, 200}, 2), at = vt::transpose(a).eval(),
                 bt = vt::transpose(b).eval();
    expect_same(
        [](const Tensors& x) {
          return Tensors{vt::matmul(x[0], x[1]), vt::matmul(vt::transpose(x[2]), x[1]), vt::matmul(x[0], vt::transpose(x[3])),
                         vt::matmul(vt::transpose(x[2]), vt::transpose(x[3]))};
        },
        {a, b, at, bt}, 4, std::string(vt::name_of(d)), {.ulps = size_of(d) == 2 ? 1.0 : 0.0});
  }
  const Tensor a = random_quarters(vt::f16, {80, 140}, 1), b = random_quarters(vt::f16, {140, 200}, 2);
  expect_same([](const Tensors& x) { return Tensors{vt::einsum("ij,jk->ik", {x[0], x[1]})}; }, {a, b}, 1, "einsum", {.ulps = 1});
}

TEST(CudaBlas, Batches) {
  const Tensor a = random_quarters(vt::f32, {3, 130, 128}, 1), b = random_quarters(vt::f32, {3, 128, 132}, 2),
               shared = random_quarters(vt::f32, {128, 140}, 3), middle = random_quarters(vt::f32, {130, 3, 128}, 4);
  expect_same(
      [](const Tensors& x) {
        // A batch that both have, one matrix for all, and a batch between rows and columns.
        return Tensors{vt::matmul(x[0], x[1]), vt::matmul(x[0], x[2]), vt::matmul(vt::swapaxes(x[3], 0, 1), x[1])};
      },
      {a, b, shared, middle}, 3, "batches");
}

TEST(CudaBlas, WhatStaysWithOwnKernels) {
  const auto product = [](const Tensors& x) { return Tensors{vt::matmul(x[0], x[1])}; };
  expect_same(product, {random_quarters(vt::f32, {40, 64, 64}, 1), random_quarters(vt::f32, {40, 64, 64}, 2)}, 0, "small ones of a batch");
  expect_same(product, {random_quarters(vt::f32, {4, 900}, 1), random_quarters(vt::f32, {900, 900}, 2)}, 0, "few rows");
  expect_same(product, {vt_test::random_tensor(vt::i32, {130, 130}, -9, 9, 1), vt_test::random_tensor(vt::i32, {130, 130}, -9, 9, 2)}, 0, "integers");
}

TEST(CudaBlas, AFailingProductIsAnError) {
  if (!controls()) GTEST_SKIP() << "only the stand-in fails on demand";
  const Tensor x = vt::ones({128, 128}).to(vt::cuda(0));
  const auto f = vt::jit([](Tensor x) { return vt::matmul(x, x); });
  EXPECT_EQ(f(x)[5][7].item<float>(), 128);
  controls()->fail("cublasGemmStridedBatchedEx", 0, 13);
  const std::string text = message([&] { f(x).eval(); });
  EXPECT_NE(text.find("cublasGemmStridedBatchedEx: CUBLAS_STATUS_EXECUTION_FAILED; VT_CUBLAS_LIBRARY=none does without cuBLAS"), std::string::npos)
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
    const std::string text = vt::explain(f)(x);
    EXPECT_NE(text.find("CUBLAS_STATUS_NOT_INITIALIZED"), std::string::npos) << text;
  }
}

}  // namespace
