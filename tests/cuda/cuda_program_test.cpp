// Programs on a CUDA device, here the emulated one: every op = interpreter, transforms = loop,
// control flow, where values live, errors, nothing leaked. Where VT_CUDA_LIBRARY names another
// driver, the same on a real device.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/cuda/driver/cuda_library.hpp"
#include "src/jit/cuda/driver/device.hpp"
#include "support/cuda_program.hpp"
#include "support/message.hpp"
#include "support/primitive_cases.hpp"
#include "support/property.hpp"
#include "support/random_program.hpp"

namespace {

using namespace vt::detail;
using vt::Tensor;
using vt_test::all_close;
using vt_test::message;
using Tensors = std::vector<Tensor>;

using vt_test::device, vt_test::emulator, vt_test::expect_same;

TEST(CudaProgram, EveryPrimitiveCase) {
  std::uint64_t seed = 1;
  for (const vt_test::PrimitiveCase& c : vt_test::primitive_cases()) {
    Tensors operands;
    for (std::size_t i = 0; i < c.operands.size(); ++i) operands.push_back(c.operand(i, seed++));
    vt_test::Tolerance tolerance = c.tolerance();
    if (c.op == Op::fft) {
      // The device's transforms are not the host's algorithm: the error of an element is one of the
      // largest element's size.
      const double largest = vt::max(vt::abs(c.run(operands)[0])).astype(vt::f64).item<double>();
      tolerance.absolute =
          8 * largest * (vt::real_dtype(c.operands[0].dtype) == vt::f64 ? 0x1p-52 : 0x1p-23);
    }
    expect_same([&](std::span<const Tensor> a) { return c.run(a); }, operands, tolerance, c.name());
  }
}

TEST(CudaProgram, RandomPrograms) {
  const std::uint64_t last = emulator ? 108 : 125;  // emulated.fuzz_test has others
  for (std::uint64_t seed = 101; seed <= last; ++seed) {
    if (emulator) emulator->set_seed(seed);
    const vt_test::RandomProgram program(seed, 6);
    const Tensor x = vt_test::random_tensor(vt::f64, {2, 3}, -1.2, 1.2, seed),
                 y = vt_test::random_tensor(vt::f64, {2, 3}, -1.2, 1.2, seed + 99);
    const Tensor xs = vt::stack({x, y, x * 0.5}), dx = x.to(device), dy = y.to(device),
                 dxs = xs.to(device);
    const auto scalar = [&](const Tensor& a, const Tensor& b) { return program.scalar(a, b); };
    const auto mapped = vt::vmap(program, {.in_axes = {0, vt::unmapped}});
    const auto results = [&](const Tensor& x, const Tensor& y, const Tensor& xs) {
      return std::vector<std::vector<double>>{program(x, y).to_vector<double>(),
                                              vt::jit(mapped)(xs, y).to_vector<double>(),
                                              vt::jit(vt::grad(scalar))(x, y).to_vector<double>()};
    };
    const auto host = results(x, y, xs);
    // index tables and the like, which the program makes, go there too
    vt::set_default_device(device);
    const auto there = results(dx, dy, dxs);
    vt::set_default_device(vt::cpu());
    for (std::size_t k = 0; k < host.size(); ++k) {
      ASSERT_EQ(there[k].size(), host[k].size());
      for (std::size_t i = 0; i < host[k].size(); ++i)
        EXPECT_NEAR(there[k][i], host[k][i], 1e-9 * (1 + std::fabs(host[k][i])))
            << "seed " << seed << " result " << k;
    }
  }
  if (emulator) emulator->set_seed(0);
}

// --- kernels: shapes that ask for each way of sharing out work

TEST(CudaProgram, ReductionsOfAllShapes) {
  const vt_test::Tolerance rounding{.relative = 1e-5, .absolute = 1e-5};
  for (const vt::Shape& shape : {vt::Shape{3, 5},
                                 {1, 40},
                                 {4, 33},
                                 {2, 1500},
                                 {3, 20000},
                                 {700, 2},
                                 {5000, 6},
                                 {2, 700, 3},
                                 {6, 70, 40}}) {
    const Tensor x = vt_test::random_tensor(vt::f32, shape, -2, 2, 7);
    for (int axis = 0; axis < shape.rank(); ++axis)
      expect_same(
          [&](std::span<const Tensor> a) {
            return Tensors{vt::sum(a[0], axis),    vt::max(a[0], axis),
                           vt::argmin(a[0], axis), vt::softmax(a[0], axis),
                           vt::cumsum(a[0], axis), vt::logsumexp(a[0], axis),
                           vt::cummax(a[0], axis), vt::var(a[0], axis)};
          },
          {x}, rounding, shape.str() + " along " + std::to_string(axis));
    expect_same(
        [&](std::span<const Tensor> a) { return Tensors{vt::sum(a[0] * a[0]), vt::min(a[0])}; },
        {x}, rounding, shape.str());
  }
}

TEST(CudaProgram, ProductsOfAllShapes) {
  for (const auto& [m, k, n] : {std::tuple{1, 1, 1},
                                {3, 200, 5},
                                {64, 16, 64},
                                {65, 17, 130},
                                {33, 9, 40},
                                {200, 70, 1},
                                {1, 300, 90}})
    for (vt::DType d : {vt::f32, vt::f64, vt::f16, vt::bf16, vt::i32, vt::i8}) {
      const Tensor a = vt_test::random_tensor(d, {2, m, k}, -3, 3, 1),
                   b = vt_test::random_tensor(d, {2, k, n}, -3, 3, 2),
                   c = vt_test::random_tensor(d, {n, k}, -3, 3, 3);
      const double ulps = d == vt::f16 || d == vt::bf16 ? 2 : 0;
      expect_same(
          [](std::span<const Tensor> x) {
            return Tensors{vt::matmul(x[0], x[1]), vt::matmul(x[0], vt::transpose(x[2]))};
          },
          {a, b, c},
          {.ulps = ulps, .relative = ulps > 0 ? 0 : 1e-5, .absolute = vt::is_float(d) ? 1e-4 : 0},
          std::string(vt::name_of(d)) + " " + std::to_string(m) + "×" + std::to_string(k) + "×" +
              std::to_string(n));
    }
}

TEST(CudaProgram, ResultsDoNotDependOnTheOrderOfBlocksAndThreads) {
  if (!emulator) GTEST_SKIP() << "only the emulator shuffles them";
  const Tensor x = vt_test::random_tensor(vt::f32, {300, 257}, -1, 1, 3).to(device);
  const Tensor at = (vt::arange(300) * 7) % 11;
  const auto f = vt::jit([](Tensor x, Tensor at) {
    return std::tuple(vt::sum(x), vt::sum(x, 0), vt::softmax(x, 1), vt::matmul(x, vt::transpose(x)),
                      vt::segment_sum(x, at, 11), vt::cumsum(x, 1));
  });
  const auto first = f(x, at.to(device));
  for (unsigned long seed : {1ul, 2ul, 77ul}) {
    emulator->set_seed(seed);
    const auto again = f(x, at.to(device));
    EXPECT_EQ(std::get<0>(first).item<float>(), std::get<0>(again).item<float>());
    EXPECT_EQ(std::get<1>(first).to_vector<float>(), std::get<1>(again).to_vector<float>());
    EXPECT_EQ(std::get<2>(first).to_vector<float>(), std::get<2>(again).to_vector<float>());
    EXPECT_EQ(std::get<3>(first).to_vector<float>(), std::get<3>(again).to_vector<float>());
    EXPECT_EQ(std::get<4>(first).to_vector<float>(), std::get<4>(again).to_vector<float>());
    EXPECT_EQ(std::get<5>(first).to_vector<float>(), std::get<5>(again).to_vector<float>());
  }
  emulator->set_seed(0);
}

TEST(CudaProgram, SoftmaxIsOneKernel) {
  const Tensor x = vt_test::random_tensor(vt::f32, {40, 100}, -3, 3, 1).to(device);
  const auto f = vt::jit([](Tensor x) { return vt::softmax(x, 1); });
  f(x).eval();
  vt::reset_stats();
  f(x).eval();
  EXPECT_EQ(vt::stats().launches, 1u) << vt::explain_steps(f)(x);
  EXPECT_EQ(vt::stats().host_steps, 0u);
}

TEST(CudaProgram, SameRandomBits) {
  const auto draw = [](Tensor key) {
    return std::tuple(vt::random::bits(key, {1000}), vt::random::uniform(key, {1000}));
  };
  const auto [bits, uniform] = vt::jit(draw, {.device = device})(vt::random::key(5));
  const auto [host_bits, host_uniform] = draw(vt::random::key(5));
  EXPECT_EQ(bits.to_vector<std::uint32_t>(), host_bits.to_vector<std::uint32_t>());
  EXPECT_EQ(uniform.to_vector<float>(), host_uniform.to_vector<float>());
}

// --- control flow

TEST(CudaProgram, LanesOfLoopsAreThreads) {
  const auto collatz = [](Tensor n) {
    return std::get<1>(vt::while_loop([](Tensor n, Tensor) { return n != 1; },
                                      [](Tensor n, Tensor steps) {
                                        return std::tuple(vt::where(n % 2 == 0, n / 2, 3 * n + 1),
                                                          steps + 1);
                                      },
                                      std::tuple(n, vt::tensor(0, vt::i32))));
  };
  const Tensor n = vt::arange(1, 200).astype(vt::i32);
  const auto f = vt::jit(vt::vmap(collatz));
  const Tensor steps = f(n.to(device));
  EXPECT_NE(vt::explain_steps(f)(n.to(device)).find("a thread for each of 199 lanes"),
            std::string::npos)
      << vt::explain_steps(f)(n.to(device));
  EXPECT_EQ(steps.device(), device);
  const std::vector<int> counted = steps.to_vector<int>();
  for (int i = 1; i < 200; ++i) {
    int m = i, count = 0;
    for (; m != 1; ++count) m = m % 2 == 0 ? m / 2 : 3 * m + 1;
    EXPECT_EQ(counted[static_cast<std::size_t>(i) - 1], count) << i;
  }
}

TEST(CudaProgram, LoopsSteeredFromTheHost) {
  const auto f = [](Tensor a, Tensor x) {
    auto [last, norms] = vt::scan(
        [&](Tensor x, Tensor scale) {
          const Tensor next = vt::tanh(vt::matmul(a, x)) * scale;
          return std::pair(next, vt::sum(next * next));
        },
        x, vt::linspace(1.0, 0.5, 7));
    const Tensor halved = vt::while_loop([](Tensor y) { return vt::sum(y * y) > 0.01; },
                                         [](Tensor y) { return y * 0.5; }, last);
    return vt::cond(
               vt::sum(halved) > 0, [](Tensor y) { return vt::exp(y); },
               [](Tensor y) { return y - 1; }, halved) +
           norms[3];
  };
  const Tensor a = vt_test::random_tensor(vt::f64, {40, 40}, -0.3, 0.3, 1),
               x = vt_test::random_tensor(vt::f64, {40}, -1, 1, 2);
  const auto loss = [&](Tensor a, Tensor x) { return vt::sum(f(a, x)); };
  EXPECT_TRUE(all_close(vt::jit(f)(a.to(device), x.to(device)), f(a, x),
                        {.relative = 1e-10, .absolute = 1e-10}));
  EXPECT_TRUE(all_close(vt::jit(vt::grad(loss))(a.to(device), x.to(device)), vt::grad(loss)(a, x),
                        {.relative = 1e-9, .absolute = 1e-9}));
}

TEST(CudaProgram, CarriesThatChangePlaces) {
  const auto f = [](Tensor a, Tensor b) {
    return vt::fori_loop(
        0, 5,
        [](Tensor, std::tuple<Tensor, Tensor> carry) {
          return std::tuple(std::get<1>(carry), std::get<0>(carry) + std::get<1>(carry));
        },
        std::tuple(a, b));
  };
  const auto [a, b] = vt::jit(f)(vt::tensor(0.0).to(device), vt::tensor(1.0).to(device));
  EXPECT_EQ(a.item<double>(), 5);
  EXPECT_EQ(b.item<double>(), 8);
}

TEST(CudaProgram, ExplainTellsWhyAStepIsTheHosts) {
  const Tensor x = vt_test::random_tensor(vt::f64, {5, 20}, -1, 1, 4);
  const auto f = vt::jit(
      [](Tensor x) { return vt::pure_callback([](Tensor y) { return y * 3; }, x)(x * 2) + 1; });
  vt::reset_stats();
  EXPECT_TRUE(all_close(f(x.to(device)), x * 6 + 1, {.relative = 1e-12}));
  EXPECT_EQ(vt::stats().host_steps, 1u);
  const std::string text = vt::explain_steps(f)(x.to(device));
  EXPECT_NE(text.find("callback on the host (it calls the user's code)"), std::string::npos)
      << text;
}

TEST(CudaProgram, ComplexNumbers) {
  const Tensor z = vt::complex(vt_test::random_tensor(vt::f32, {30}, -1, 1, 1),
                               vt_test::random_tensor(vt::f32, {30}, -1, 1, 2));
  const auto f = [](Tensor z) { return vt::exp(z) * z + vt::conj(z); };
  EXPECT_TRUE(all_close(vt::jit(f)(z.to(device)), f(z), {.relative = 1e-5, .absolute = 1e-5}));
}

// --- where values live

TEST(CudaDevices, ToAndBack) {
  const Tensor x = vt::tensor({1.0f, 2.0f, 3.0f});
  EXPECT_EQ(x.device(), vt::cpu());
  const Tensor y = x.to(device);
  EXPECT_EQ(y.device(), device);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(y.data<float>()[1], 2.0f);
  const Tensor lazy = y * 2 + 1;
  EXPECT_EQ(lazy.device(), device);
  EXPECT_EQ(lazy.to_vector<float>(), (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(lazy.device(), device);
  EXPECT_EQ(lazy.to(vt::cpu()).device(), vt::cpu());
  EXPECT_EQ(vt::zeros({0, 3}).to(device).to(vt::cpu()).shape(), (vt::Shape{0, 3}));
}

TEST(CudaDevices, MixingThemIsAnError) {
  const Tensor x = vt::tensor({1.0f, 1.0f, 1.0f}), y = x.to(device);
  const std::string lazy = message([&] { (x + y).eval(); });
  EXPECT_NE(
      lazy.find("vt::add: operands lie on different devices: f32[3] on cpu, f32[3] on cuda(0)"),
      std::string::npos)
      << lazy;
  EXPECT_NE(lazy.find("cuda_program_test.cpp"), std::string::npos) << lazy;
  const std::string jitted =
      message([&] { vt::jit([](Tensor a, Tensor b) { return a * b; })(x, y); });
  EXPECT_NE(jitted.find("vt::mul: operands lie on different devices"), std::string::npos) << jitted;
  // Numbers go with anything.
  EXPECT_EQ((y * vt::tensor(2.0f) + 1.0f).to_vector<float>(), (std::vector<float>{3, 3, 3}));
}

TEST(CudaDevices, JitChoosesOne) {
  const auto f = [](Tensor x) { return x * 2 + vt::arange(3).astype(vt::f32); };
  const Tensor x = vt::ones({3});
  EXPECT_EQ(vt::jit(f, {.device = device})(x).device(), device);
  EXPECT_EQ(vt::jit(f, {.device = vt::cpu()})(x.to(device)).device(), vt::cpu());
  const auto where_it_is = vt::jit(f);
  EXPECT_EQ(where_it_is(x).device(), vt::cpu());
  EXPECT_EQ(where_it_is(x.to(device)).device(), device);
  EXPECT_EQ(where_it_is(x).device(), vt::cpu());
}

TEST(CudaDevices, VariablesFollow) {
  vt::Variable total(vt::tensor({1.0f, 2.0f}));
  const auto add = vt::jit([&](Tensor x) {
    total.assign_add(x);
    return total.read() * 2;
  });
  const Tensor x = vt::tensor({10.0f, 20.0f});
  EXPECT_EQ(add(x.to(device)).to_vector<float>(), (std::vector<float>{22, 44}));
  // its value lay on the device
  EXPECT_EQ(add(x).to_vector<float>(), (std::vector<float>{42, 84}));
  EXPECT_EQ(add(x.to(device)).to_vector<float>(), (std::vector<float>{62, 124}));
}

TEST(CudaDevices, TheDefaultOne) {
  vt::set_default_device(device);
  const Tensor x = vt::ones({3}) + 1;
  EXPECT_EQ(x.device(), device);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{2, 2, 2}));
  // what lies on the host follows
  EXPECT_EQ((vt::tensor({1.0f, 2.0f, 3.0f}) * x).device(), device);
  vt::set_default_device(vt::cpu());
  EXPECT_EQ((vt::ones({3}) + 1).device(), vt::cpu());
}

TEST(CudaDevices, Refusals) {
  const std::string none = message([] { (void)vt::ones({3}).to(vt::cuda(17)); });
  EXPECT_NE(none.find("there is no cuda(17)"), std::string::npos) << none;
  const std::string inside =
      message([] { vt::vmap([](Tensor x) { return x.to(vt::cuda(0)) * 2; })(vt::ones({3})); });
  EXPECT_NE(inside.find("inside a transformed function"), std::string::npos) << inside;
}

// --- faults

TEST(CudaFaults, LackOfMemory) {
  if (!emulator) GTEST_SKIP() << "only the emulator fails on demand";
  const Tensor x = vt::ones({1000}).to(device);
  emulator->fail("cuMemAllocAsync", 0, cuda::Constant::CUDA_ERROR_OUT_OF_MEMORY);
  const std::string text = message([&] { (x + 1).eval(); });
  EXPECT_NE(text.find("a result of 4000 bytes does not fit on cuda(0)"), std::string::npos) << text;
  // The line that makes the largest array, not the one that looks at a value.
  const auto wide = vt::jit([](Tensor x) {
    const Tensor all = vt::outer(x, x);  // here
    return vt::sum(vt::cumsum(all, 0) + vt::cumsum(all, 1));
  });
  emulator->fail("cuMemAllocAsync", -1, cuda::Constant::CUDA_ERROR_OUT_OF_MEMORY);
  const std::string larger = message([&] { wide(x).eval(); });
  const std::string line = "cuda_program_test.cpp:" + std::to_string(__LINE__ - 5);
  EXPECT_TRUE(larger.ends_with(line) ||
              larger.ends_with("cuda_program_test.cpp:" + std::to_string(__LINE__ - 5)))
      << larger;
  emulator->reset();
  EXPECT_EQ((x + 1)[999].item<float>(), 2);  // nothing was lost
}

TEST(CudaFaults, AKernelThatDoesNotCompile) {
  if (!emulator) GTEST_SKIP() << "only the emulator fails on demand";
  // Ops of its own for each run: the kernel of an earlier one would come from the disk cache.
  const auto now =
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::microseconds(1);
  const auto chain = [&](auto x, const auto& sine, const auto& cosine) {
    for (int bit = 0; bit < 24; ++bit) x = (now >> bit) % 2 ? sine(x) : cosine(x);
    return x;
  };
  const auto f = [&](const Tensor& x) { return chain(x, vt::sin, vt::cos); };
  emulator->fail("nvrtcCompileProgram", 0, cuda::Constant::NVRTC_ERROR_COMPILATION);
  const Tensor x = vt::ones({13}).to(device);
  const std::string text = message([&] { f(x).eval(); });
  EXPECT_NE(text.find("NVRTC does not compile the kernel kernel_"), std::string::npos) << text;
  emulator->reset();
  const auto sine = [](double x) { return std::sin(x); };
  const auto cosine = [](double x) { return std::cos(x); };
  EXPECT_NEAR(f(x)[12].item<float>(), chain(1.0, sine, cosine), 1e-5);
}

TEST(CudaProgram, AsManyBlocksAsTheDriverSays) {
  if (!emulator) GTEST_SKIP() << "only the emulator's driver is known to the last block";
  // Rows of 32 KiB in shared memory: fewer blocks fit on a multiprocessor than its threads allow.
  const auto f = vt::jit([](Tensor x) { return vt::softmax(x, 1); });
  const Tensor x = vt::zeros({400, 8000}).to(device);
  const auto asked = emulator->count("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  const std::string text = vt::explain_steps(f)(x);
  EXPECT_GT(emulator->count("cuOccupancyMaxActiveBlocksPerMultiprocessor"), asked);
  const int multiprocessors = vt::detail::cuda::CudaDevice::get(0).facts().multiprocessors;
  EXPECT_NE(text.find(" " + std::to_string(std::min(400, 4 * multiprocessors * 7)) +
                      " blocks of 256 threads"),
            std::string::npos)
      << text;
}

TEST(CudaFaults, NothingIsLeaked) {
  if (!emulator) GTEST_SKIP() << "only the emulator counts";
  const auto f = vt::jit([](Tensor x) { return vt::matmul(x, x) + vt::sort(x, 0); });
  // the second run may take memory that replayed programs share
  for (int i = 0; i < 2; ++i) f(vt::ones({40, 40}).to(device)).to_vector<float>();
  const auto before = emulator->count("allocations");
  for (int i = 0; i < 5; ++i) f(vt::ones({40, 40}).to(device)).to_vector<float>();
  EXPECT_EQ(emulator->count("allocations"), before);
}

}  // namespace
