// Any thread may call anything: threads that record, transform, compile, run and look at shared
// values at once.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/services/threads.hpp"
#include "support/property.hpp"

namespace {

/// Runs body(0) … body(n − 1) on as many threads, started together; a throw becomes a failure of
/// the test.
template <class F>
void together(int n, F body) {
  std::atomic<int> waiting = n;
  std::vector<std::thread> threads;
  std::vector<std::string> errors(n);
  for (int i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      try {
        body(i);
      } catch (const std::exception& e) {
        errors[i] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& e : errors) EXPECT_EQ(e, "");
}

vt::Tensor wave(vt::Tensor x) { return vt::sum(vt::sin(x) * x); }

TEST(Threads, TransformOnTheirOwn) {
  std::vector<std::vector<double>> slopes(4);
  together(4, [&](int i) {
    for (int iteration = 0; iteration < 5; ++iteration) {
      const vt::Tensor rows = vt::full({3, 5 + i}, 0.25 * (i + 1));
      slopes[i] = vt::vmap(vt::grad(wave))(rows).to_vector<double>();
    }
  });
  for (int i = 0; i < 4; ++i) {
    const double x = 0.25 * (i + 1);
    ASSERT_EQ(slopes[i].size(), 3u * (5 + i));
    for (const double s : slopes[i]) EXPECT_NEAR(s, std::sin(x) + x * std::cos(x), 1e-12);
  }
}

TEST(Threads, ShareACompiledFunction) {
  const auto fast = vt::jit(vt::value_and_grad(wave));
  std::atomic<int> wrong = 0;
  together(4, [&](int i) {
    for (int n = 1; n < 12; ++n) {  // the same signatures from all threads, in their own order
      const int size = 1 + (n * (i + 3)) % 11;
      const auto [value, slope] = fast(vt::full({size}, 0.5));
      wrong += std::abs(value.item<double>() - size * 0.5 * std::sin(0.5)) > 1e-12;
      wrong += slope.to_vector<double>().size() != static_cast<std::size_t>(size);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, LookAtOnePendingTensor) {
  for (int iteration = 0; iteration < 10; ++iteration) {
    const vt::Tensor x = vt::arange(100).astype(vt::f64);
    const vt::Tensor pending = vt::exp(vt::sin(x) + 1.0 * iteration);  // nothing is computed yet
    std::vector<double> seen(4);
    together(4, [&](int i) {
      seen[i] = pending.to_vector<double>()[37] + vt::sum(pending * (i + 1.0)).item<double>() * 0;
    });
    for (const double s : seen) EXPECT_NEAR(s, std::exp(std::sin(37.0) + iteration), 1e-12 * s);
  }
}

TEST(Threads, ExtendOnePendingTensor) {
  // one thread runs it while others still build on it
  for (int iteration = 0; iteration < 20; ++iteration) {
    const vt::Tensor shared = vt::cumsum(vt::ones({1000}, vt::f64)) * 2.0;
    std::vector<double> sums(4);
    together(4, [&](int i) { sums[i] = vt::sum(shared + 1.0 * i).item<double>(); });
    for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(sums[i], 1001000.0 + 1000.0 * i);
  }
}

TEST(Threads, KernelsUseThePoolAtOnce) {
  vt::set_num_threads(2);
  const auto fast = vt::jit([](vt::Tensor x) { return vt::sum(vt::tanh(x) * x, 1); });
  const vt::Tensor x = vt::reshape(vt::linspace(-1.0, 1.0, 1 << 18), {512, 512}).eval();
  const std::vector<float> alone = fast(x).to_vector<float>();
  std::atomic<int> different = 0;
  together(3, [&](int) {
    for (int iteration = 0; iteration < 4; ++iteration)
      different += fast(x).to_vector<float>() != alone;
  });
  EXPECT_EQ(different, 0);
}

// Memory may run out on any thread: the caller gets the error of the first range that has one, and
// the others still work afterwards.
TEST(Threads, WhatARangeThrowsIsTheCallers) {
  const int before = vt::num_threads();
  for (const int threads : {1, 2, 3}) {
    vt::set_num_threads(threads);
    for (int iteration = 0; iteration < 50; ++iteration) {
      std::atomic<int> at_work = 0, most_begun = 0;
      const auto body = [&](std::int64_t begin, std::int64_t) {
        ++at_work;
        most_begun = std::max(most_begun.load(), static_cast<int>(begin));
        std::this_thread::yield();
        --at_work;
        if (begin >= 5) throw vt::Error(vt::ErrorKind::memory, "range " + std::to_string(begin));
      };
      std::string log;
      try {
        vt::detail::parallel_ranges(40, 1, body, 40);
      } catch (const vt::Error& e) {
        log = e.what();
      }
      // of one thread all is one range, which begins at 0
      EXPECT_EQ(log, threads == 1 ? "" : "range 5");
      EXPECT_EQ(at_work, 0);
      EXPECT_LT(most_begun, threads == 1 ? 1 : 40);
      std::atomic<int> sum = 0;
      vt::detail::parallel_ranges(100, 1, [&](std::int64_t begin, std::int64_t end) {
        sum += static_cast<int>(end - begin);
      });
      EXPECT_EQ(sum, 100);
    }
  }
  vt::set_num_threads(before);
}

// Where the other threads have no processor for long, launches go on one thread, but for some that
// try; and on several again when that is over. (What the other threads lose is played here.)
TEST(Threads, OneThreadWhereOthersHoldItUp) {
  using namespace std::chrono_literals;
  const int before = vt::num_threads();
  vt::set_num_threads(2);
  const auto caller = std::this_thread::get_id();
  // How many of `launches` launches other threads took part in.
  const auto shared = [&](int launches, std::chrono::microseconds lost) {
    int count = 0;
    for (int k = 0; k < launches; ++k) {
      std::atomic<bool> took_part = false;
      vt::detail::parallel_ranges(8, 1, [&](std::int64_t begin, std::int64_t end) {
        const bool other = std::this_thread::get_id() != caller;
        if (other && !took_part.exchange(true)) std::this_thread::sleep_for(lost);
        const auto until = std::chrono::steady_clock::now() + (end - begin) * 20us;
        while (std::chrono::steady_clock::now() < until) {
        }
      });
      count += took_part;
    }
    return count;
  };
  shared(20, 0us);
  shared(100, 3000us);  // what was won before is soon lost
  EXPECT_LT(shared(400, 3000us), 40);
  // Other programs may hold the other threads up meanwhile: half a minute of them is not too long.
  for (int rounds = 0; shared(50, 0us) < 10; ++rounds) ASSERT_LT(rounds, 4000);
  vt::set_num_threads(before);
}

TEST(Threads, SameBitsOnAnyNumberOfThreads) {
  const auto fast = vt::jit([](vt::Tensor x) {
    return std::pair(vt::sum(x * vt::exp(x)), vt::matmul(x, vt::transpose(x)));
  });
  const vt::Tensor x =
      vt::reshape(vt::sin(vt::arange(300 * 301).astype(vt::f32)), {300, 301}).eval();
  std::vector<std::vector<float>> sums, products;
  for (const int threads : {1, 2, 3}) {
    vt::set_num_threads(threads);
    const auto [sum, product] = fast(x);
    sums.push_back(sum.to_vector<float>());
    products.push_back(product.to_vector<float>());
  }
  vt::set_num_threads(2);
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
  EXPECT_EQ(products[0], products[1]);
  EXPECT_EQ(products[0], products[2]);
}

// The steps that share work out themselves: small matrices one per lane, larger ones one after the
// other, loops of many lanes side by side in vectors and in groups, draws by rejection.
TEST(Threads, SameBitsOfMatricesLoopsAndDraws) {
  const auto matrices = vt::jit([](vt::Tensor a) {
    const vt::Tensor positive =
        vt::matmul(a, vt::swapaxes(a, 1, 2)) + vt::eye(a.shape()[1], vt::f64);
    return std::tuple(vt::linalg::inv(positive), vt::linalg::eigvalsh(positive),
                      vt::linalg::cholesky(positive));
  });
  const auto collatz = vt::jit(vt::vmap([](vt::Tensor n) {
    const auto odd = [](vt::Tensor v) { return 3 * v + 1; };
    const auto even = [](vt::Tensor v) { return v / 2; };
    const auto more = [](vt::Tensor v, vt::Tensor) { return v > 1; };
    const auto next = [&](vt::Tensor v, vt::Tensor steps) {
      return std::pair(vt::cond(v % 2 == 1, odd, even, v), steps + 1);
    };
    return vt::while_loop(more, next, std::pair(n, vt::tensor(0))).second;
  }));
  const auto draws =
      vt::jit([](vt::Tensor key) { return vt::random::gamma(key, {20'000}, 0.7, vt::f64); });
  const vt::Tensor small =
      vt::sin(vt::arange(3000 * 16).astype(vt::f64)).reshape({3000, 4, 4}).eval();
  const vt::Tensor large =
      vt::sin(vt::arange(20 * 24 * 24).astype(vt::f64)).reshape({20, 24, 24}).eval();
  const vt::Tensor starts = vt::arange(5000).eval();
  std::vector<std::vector<std::vector<double>>> results;
  for (const int threads : {1, 2, 3}) {
    vt::set_num_threads(threads);
    std::vector<std::vector<double>>& of = results.emplace_back();
    const auto keep = [&](const vt::Tensor& t) {
      of.push_back(t.astype(vt::f64).to_vector<double>());
    };
    // The first may be interpreted; on the interpreter all are.
    for (int iteration = vt_test::forced_backend() == "interpreter" ? 2 : 0; iteration < 3;
         ++iteration) {
      of.clear();
      for (const vt::Tensor& a : {small, large}) {
        const auto [inverse, values, factor] = matrices(a);
        keep(inverse), keep(values), keep(factor);
      }
      keep(collatz(starts));
      keep(draws(vt::random::key(3)));
    }
  }
  vt::set_num_threads(2);
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_EQ(results[0][i], results[1][i]) << i;
    EXPECT_EQ(results[0][i], results[2][i]) << i;
  }
}

TEST(Threads, ChangeTheNumberOfThreadsWhileKernelsRun) {
  const vt::Tensor x = vt::ones({1 << 16}).eval();
  const auto fast = vt::jit([](vt::Tensor x) { return vt::sum(vt::sqrt(x) + x); });
  std::atomic<int> wrong = 0;
  together(3, [&](int i) {
    for (int iteration = 0; iteration < 10; ++iteration) {
      if (i == 0) vt::set_num_threads(1 + iteration % 3);
      else wrong += fast(x).item<float>() != 2.0f * (1 << 16);
    }
  });
  vt::set_num_threads(2);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
