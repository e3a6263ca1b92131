// DefaultDType: what takes it, what keeps its own dtype, and who else sees it.
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::DType;
using vt::Tensor;
using Make = std::function<Tensor()>;

/// What has a dtype of its own unless one is given: f32, and f64 within the scope.
std::vector<std::pair<std::string, Make>> makers() {
  const Tensor key = vt::random::key(1), counts = vt::tensor({1, 2, 3}),
               truths = vt::tensor({true, false, true});
  return {
      {"zeros", [] { return vt::zeros({2}); }},
      {"ones", [] { return vt::ones({2}); }},
      {"eye", [] { return vt::eye(2); }},
      {"linspace", [] { return vt::linspace(0.0, 1.0, 11); }},
      {"linspace between counts", [=] { return vt::linspace(counts, 4, 3); }},
      {"arange", [] { return vt::arange(0.0, 1.0, 0.25); }},
      {"fftfreq", [] { return vt::fft::fftfreq(4); }},
      {"rfftfreq", [] { return vt::fft::rfftfreq(4); }},
      {"one_hot", [=] { return vt::one_hot(counts, 4); }},
      {"list", [] { return vt::TensorList::fixed(2, {3}).elements; }},
      {"growing list", [] { return vt::TensorList::growable({3}).elements; }},
      {"uniform", [=] { return vt::random::uniform(key, {2}); }},
      {"normal", [=] { return vt::random::normal(key, {2}); }},
      {"exponential", [=] { return vt::random::exponential(key, {2}); }},
      {"gamma", [=] { return vt::random::gamma(key, {2}, 1.5); }},
      {"dirichlet", [=] { return vt::random::dirichlet(key, {}, vt::ones({3})); }},
      {"truncated normal", [=] { return vt::random::truncated_normal(key, {2}, -1.0, 1.0); }},
      {"a generator's draw", [] { return vt::Generator(3).normal({2}); }},
      {"square root of counts", [=] { return vt::sqrt(counts); }},
      {"mean of counts", [=] { return vt::mean(counts); }},
      {"variance of truths", [=] { return vt::var(truths); }},
      {"quotient of counts", [=] { return vt::divide(counts, 2); }},
      {"counts times a fraction", [=] { return counts * 0.5; }},
      {"counts chosen beside a fraction", [=] { return vt::where(truths, counts, 0.5); }},
      {"median of counts", [=] { return vt::median(counts); }},
      {"softmax of counts", [=] { return vt::softmax(counts); }},
      {"gamma function of counts", [=] { return vt::special::gamma(counts); }},
      {"interp of counts", [=] { return vt::interp(counts, counts, counts); }},
      {"solve of counts", [=] { return vt::linalg::solve(vt::diag(counts), counts); }},
      {"lstsq of counts", [=] { return vt::lstsq(vt::diag(counts), counts).x; }},
      {"polyfit of counts", [=] { return vt::polyfit(counts, counts, 1); }},
      {"trapezoid of counts", [=] { return vt::trapezoid(counts); }},
      {"nanmean of counts", [=] { return vt::nanmean(counts); }},
      {"real part of a transform", [=] { return vt::real(vt::fft::fft(counts)); }},
      {"complex of counts", [=] { return vt::imag(vt::complex(counts, counts)); }},
      {"counts times i", [=] { return vt::imag(counts * std::complex<double>(0.0, 1.0)); }},
  };
}

TEST(DefaultDType, IsTakenByAllThatSayNone) {
  EXPECT_EQ(vt::default_dtype(), vt::f32);
  for (const auto& [name, make] : makers()) EXPECT_EQ(make().dtype(), vt::f32) << name;
  {
    vt::DefaultDType wide(vt::f64);
    EXPECT_EQ(vt::default_dtype(), vt::f64);
    for (const auto& [name, make] : makers()) EXPECT_EQ(make().dtype(), vt::f64) << name;
    for (const auto& [name, make] : makers())
      EXPECT_EQ(vt::jit(make)().dtype(), vt::f64) << name << " under jit";
    {
      vt::DefaultDType narrow(vt::f32);
      EXPECT_EQ(vt::zeros({2}).dtype(), vt::f32);
    }
    EXPECT_EQ(vt::zeros({2}).dtype(), vt::f64);
    // A dtype that is said, data, and what counts or draws whole numbers keep theirs.
    EXPECT_EQ(vt::zeros({2}, vt::f16).dtype(), vt::f16);
    EXPECT_EQ(vt::arange(3).dtype(), vt::i32);
    EXPECT_EQ((vt::tensor({1.0f}) * 0.5).dtype(), vt::f32);
    EXPECT_EQ(vt::random::randint(vt::random::key(1), {2}, 0, 9, vt::i32).dtype(), vt::i32);
    EXPECT_EQ(vt::sum(vt::tensor({1, 2})).dtype(), vt::i32);
  }
  EXPECT_EQ(vt::zeros({2}).dtype(), vt::f32);
  vt_test::expect_error([] { vt::DefaultDType half(vt::f16); }, vt::ErrorKind::dtype,
                        {"vt::DefaultDType", "f32 or f64, not f16", "default_dtype_test.cpp:"});
  EXPECT_EQ(vt::default_dtype(), vt::f32);
}

TEST(DefaultDType, IsOfOneThread) {
  vt::DefaultDType wide(vt::f64);
  DType elsewhere = vt::f64;
  std::thread([&] {
    elsewhere = vt::zeros({2}).dtype();
    vt::DefaultDType own(vt::f64);
  }).join();
  EXPECT_EQ(elsewhere, vt::f32);
  EXPECT_EQ(vt::zeros({2}).dtype(), vt::f64);
}

TEST(DefaultDType, IsPartOfASignature) {
  int recorded = 0;
  const auto f = vt::jit([&](Tensor i) {
    ++recorded;
    return vt::ones({2}) * i;
  });
  const Tensor two = vt::tensor(2);
  EXPECT_EQ(f(two).dtype(), vt::f32);
  {
    vt::DefaultDType wide(vt::f64);
    for (int k = 0; k < 3; ++k) EXPECT_EQ(f(two).dtype(), vt::f64);
  }
  for (int k = 0; k < 3; ++k) EXPECT_EQ(f(two).dtype(), vt::f32);
  EXPECT_EQ(recorded, 2);

  auto g = vt::function("halves", [](Tensor n) { return n * 0.5; });
  const auto twice = [&](Tensor n) { return g(n) + g(n); };
  EXPECT_EQ(vt::jit(twice)(two).dtype(), vt::f32);
  {
    vt::DefaultDType wide(vt::f64);
    EXPECT_EQ(vt::jit(twice)(two).dtype(), vt::f64);
  }
  EXPECT_EQ(vt::jit(twice)(two).dtype(), vt::f32);
}

TEST(DefaultDType, APrefetchThreadHasThatOfWhoBeginsThePass) {
  const auto noise = [](Tensor n) { return n * 0.5; };
  const vt::Dataset<Tensor> ahead = vt::Dataset<Tensor>(vt::arange(4)).map(noise).prefetch(2);
  for (const Tensor& t : ahead) EXPECT_EQ(t.dtype(), vt::f32);
  vt::DefaultDType wide(vt::f64);
  for (const Tensor& t : ahead) EXPECT_EQ(t.dtype(), vt::f64);
}

TEST(DefaultDType, WarningsNameWhereDigitsAreLost) {
  const auto told = [](const char* line) { return vt::warnings().find(line) != std::string::npos; };
  const Tensor data = vt::tensor({1.0, 2.0});
  (void)(data + vt::tensor({1.0f, 2.0f}));  // f32 data are what they are
  (void)(data * 0.1);
  EXPECT_FALSE(told("vt::add: f64 data meet"));
  EXPECT_FALSE(told("vt::multiply: f64 data meet"));
  (void)(data + vt::linspace(0.0, 0.1, 2));
  EXPECT_TRUE(told("vt::add: f64 data meet an f32 array or draw"));
  EXPECT_TRUE(told("default_dtype_test.cpp:"));
  (void)(vt::random::normal(vt::random::key(1), {2}) * data);
  EXPECT_TRUE(told("vt::multiply: f64 data meet"));
  vt::DefaultDType wide(vt::f64);
  (void)(data / vt::linspace(0.0, 0.1, 2));
  EXPECT_FALSE(told("vt::operator/: f64 data meet"));
}

TEST(DefaultDType, WarningsNameWhereWritesLoseDigits) {
  const Tensor data = vt::tensor(16777217.0), place = vt::tensor({0});
  using Write = std::function<Tensor(const Tensor& x, const Tensor& value)>;
  const std::vector<std::pair<std::string, Write>> writes = {
      {"at(…).set", [](const Tensor& x, const Tensor& v) { return vt::at(x, 0).set(v); }},
      {"at(…).add", [](const Tensor& x, const Tensor& v) { return vt::at(x, 0).add(v); }},
      {"at(…).mul", [&](const Tensor& x, const Tensor& v) { return vt::at(x, place).mul(v); }},
      {"at(…).min", [](const Tensor& x, const Tensor& v) { return vt::at(x, x > 1.0).min(v); }},
      {"at(…).max", [](const Tensor& x, const Tensor& v) { return vt::at(x, 0).max(v); }},
      {"index_update",
       [&](const Tensor& x, const Tensor& v) { return vt::index_update(x, place, v); }},
      {"index_add", [&](const Tensor& x, const Tensor& v) { return vt::index_add(x, place, v); }},
      {"index_mul", [&](const Tensor& x, const Tensor& v) { return vt::index_mul(x, place, v); }},
      {"index_min", [&](const Tensor& x, const Tensor& v) { return vt::index_min(x, place, v); }},
      {"index_max", [&](const Tensor& x, const Tensor& v) { return vt::index_max(x, place, v); }},
      {"put_along_axis",
       [&](const Tensor& x, const Tensor& v) { return vt::put_along_axis(x, place, v, 0); }},
      {"dynamic_update_slice",
       [](const Tensor& x, const Tensor& v) {
         return vt::dynamic_update_slice(x, vt::reshape(v, {1}), {vt::tensor(0)});
       }},
      {"dynamic_update_slice_in_dim", [](const Tensor& x, const Tensor& v) {
         return vt::dynamic_update_slice_in_dim(x, vt::reshape(v, {1}), 1, 0);
       }}};
  for (const auto& [name, write] : writes) {
    const auto told = [&](const std::function<Tensor()>& f) {
      const std::size_t before = vt::warnings().size();
      (void)f();
      return vt::warnings().substr(before);
    };
    // Values of the array's dtype, literals, and arrays of data or of f64 lose nothing of note.
    EXPECT_EQ(told([&] { return write(vt::zeros({2}), vt::tensor(1.0f)); }), "") << name;
    EXPECT_EQ(told([&] { return write(vt::zeros({2}), Tensor(0.1)); }), "") << name;
    EXPECT_EQ(told([&] { return write(vt::tensor({1.0f, 2.0f}), data); }), "") << name;
    EXPECT_EQ(told([&] { return write(vt::zeros({2}, vt::f64), data); }), "") << name;
    const std::string line = told([&] { return write(vt::zeros({2}), data); });
    EXPECT_NE(line.find(": f64 data meet an f32 array or draw"), std::string::npos) << name << line;
    EXPECT_NE(line.find("vt::" + name), std::string::npos) << name << ": " << line;
    EXPECT_NE(line.find("default_dtype_test.cpp:"), std::string::npos) << name << ": " << line;
  }
}

}  // namespace
