// First calls take time in proportion to the Graph: wide, deep and repeated ones of 500 and of 4000
// equations, in processor time (the machine may be busy), with the compiler's threads counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;

const bool no_disk_cache = ::setenv("VT_CACHE_DIR", "", 1) == 0;

double processor_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Tensors scalars(int n) {
  Tensors all;
  for (int i = 0; i < n; ++i) all.push_back(vt::tensor(static_cast<double>(i)));
  return all;
}
Tensors vectors(int n) {
  Tensors all;
  for (int i = 0; i < n; ++i) all.push_back(vt::full({4}, 0.001 * i));
  return all;
}
Tensor sum_of(const Tensors& all) {
  Tensor s = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) s = s + all[i];
  return s;
}
Tensor repeated(int n, Tensor x, const std::function<Tensor(Tensor)>& step) {
  for (int i = 0; i < n; ++i) x = step(x);
  return x;
}
Tensor either(const Tensor& x) {
  return vt::cond(
      x > 0.0, [](Tensor y) { return vt::sin(y) - 0.3; }, [](Tensor y) { return y + 0.7; }, x);
}
Tensor three_iterations(const Tensor& x) {
  return vt::fori_loop(0, 3, [](Tensor, Tensor y) { return vt::sin(y); }, x);
}

struct Family {
  const char* name;
  std::function<void(int n)> first_call;
};
std::vector<Family> families() {
  const auto on_scalars = [](auto f) { return [f](int n) { vt::jit(f)(scalars(n)).eval(); }; };
  const auto on_vectors = [](auto f) { return [f](int n) { vt::jit(f)(vectors(n)).eval(); }; };
  const auto deep = [](vt::Shape shape, auto step) {
    return [shape, step](int n) {
      vt::jit([=](Tensor x) { return repeated(n, x, step); })(vt::full(shape, 0.5)).eval();
    };
  };
  const auto derivative = [](vt::Shape shape, auto step) {
    return [shape, step](int n) {
      vt::jit(vt::grad([=](Tensor x) { return vt::sum(repeated(n, x, step)); }))(
          vt::full(shape, 0.5))
          .eval();
    };
  };
  return {
      {"stack", on_scalars([](Tensors v) { return vt::stack(v); })},
      {"concatenate", on_vectors([](Tensors v) { return vt::concatenate(v); })},
      {"stack of computed", on_scalars([](Tensors v) {
         for (Tensor& x : v) x = vt::exp(x * -0.001);
         return vt::sum(vt::stack(v));
       })},
      {"stack of products", on_vectors([](Tensors v) {
         Tensors w;
         for (std::size_t i = 0; i + 1 < v.size(); ++i) w.push_back(v[i] * v[i + 1]);
         return vt::stack(w);
       })},
      {"stack, lazily",
       [](int n) {
         for (int k = 0; k < 2; ++k) vt::stack(scalars(n)).eval();
       }},
      {"vmap of stack", on_vectors(vt::vmap([](Tensors v) { return vt::sum(vt::stack(v)); }))},
      {"grad of stack",
       [](int n) {
         vt::stack(vt::jit(vt::grad([](Tensors v) { return vt::sum(vt::sin(vt::stack(v))); }))(
                       scalars(n)))
             .eval();
       }},
      {"sum", on_scalars(sum_of)},
      {"many results",
       [](int n) {
         vt::eval(vt::jit([n](Tensor x) {
           Tensors w;
           for (int i = 0; i < n; ++i) w.push_back(vt::sum(x * static_cast<double>(i)));
           return w;
         })(vt::ones({8})));
       }},
      {"update of all",
       [](int n) {
         vt::eval(vt::jit([](Tensors v) {
           for (Tensor& x : v) x = x * 0.9 + 1.0;
           return v;
         })(vectors(n)));
       }},
      {"operands of cond", on_scalars([](Tensors v) {
         return vt::cond(v[0] > 0.0, sum_of, [](Tensors w) { return w[0] * sum_of(w); }, v);
       })},
      {"captured by a loop",
       [](int n) {
         const Tensors v = scalars(n);
         vt::jit([v](Tensor x) {
           return vt::fori_loop(0, 3, [v](Tensor, Tensor y) { return y + sum_of(v); }, x);
         })(vt::tensor(1.0))
             .eval();
       }},
      {"carries of a loop", on_scalars([](Tensors v) {
         return sum_of(vt::fori_loop(
             0, 3,
             [](Tensor, Tensors w) {
               for (Tensor& y : w) y = y * 1.5;
               return w;
             },
             v));
       })},
      {"chain", deep({64}, [](Tensor x) { return vt::sin(x) + 0.1 * x; })},
      {"chain of sums", deep({64}, [](Tensor x) { return x - 0.1 * vt::mean(x); })},
      {"chain of products",
       [](int n) {
         vt::jit([n](Tensor x, Tensor w) {
           return repeated(n, x, [&](Tensor y) { return vt::tanh(vt::matmul(w, y)); });
         })(vt::ones({8}), vt::full({8, 8}, 0.1))
             .eval();
       }},
      {"chain of sorts", deep({16}, [](Tensor x) { return vt::sort(x) * 1.01; })},
      {"chain of scans", deep({16}, [](Tensor x) { return vt::cumsum(x) * 0.1; })},
      {"chain of lookups",
       deep({16}, [](Tensor x) { return vt::index_add(x, {vt::tensor({1, 2, 5})}, 1.0); })},
      {"grad of a chain", derivative({8}, [](Tensor x) { return vt::sin(x) + 0.1 * x; })},
      {"steps along grad", deep({8},
                                [](Tensor x) {
                                  return x - 0.01 * vt::grad([](Tensor y) {
                                               return vt::sum(vt::sin(y) * y);
                                             })(x);
                                })},
      {"vmap, repeated", deep({8}, vt::vmap([](Tensor x) { return vt::sin(x) * x; }))},
      {"cond, repeated", deep({}, either)},
      {"fori_loop, repeated", deep({}, three_iterations)},
      {"grad of cond, repeated", derivative({}, either)},
      {"grad of fori_loop, repeated", derivative({}, three_iterations)},
      {"cond of lanes, repeated", deep({16}, vt::vmap(either))},
  };
}

// Eight times the equations: about eight times the time, up to twenty where the optimised tier of
// the kernels begins in between. What looks through all for each takes 64 times as long.
TEST(GraphSize, FirstCallsAreNearLinear) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what a sanitizer takes for each allocation is most of the time";
#endif
  constexpr int few = 500, many = 8 * few;
  constexpr double at_most = 32, unnoticed = 0.15;  // times; seconds
  for (const Family& f : families()) {
    const auto seconds = [&](int n) {
      const double before = processor_seconds();
      f.first_call(n);
      return processor_seconds() - before;
    };
    const double small = seconds(few), large = seconds(many);
    EXPECT_LE(large, at_most * small + unnoticed)
        << f.name << ": " << small << " s, then " << large << " s";
  }
}

// Transforming chains of calls of one function, whose weights they share, as a recurrent network's.
TEST(GraphSize, GradientsOfCallsAreNearLinear) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what a sanitizer takes for each allocation is most of the time";
#endif
  using State = std::pair<Tensor, Tensor>;
  const auto cell = vt::function("cell", [](Tensor h, Tensor c, Tensor w) {
    const Tensor gate = vt::sigmoid(w * h), next = gate * c + (1.0 - gate) * vt::tanh(h);
    return State(gate * vt::tanh(next), next);
  });
  const auto seconds = [&](int n) {
    const auto loss = [&](Tensor w) {
      Tensor sum = vt::tensor(0.0);
      for (int chain = 0; chain < 32; ++chain) {
        State s(vt::full({4}, 0.01 * chain), vt::ones({4}));
        for (int i = 0; i < n / 32; ++i) s = cell(s.first, s.second, w);
        sum = sum + vt::sum(s.first);
      }
      return sum;
    };
    const double before = processor_seconds();
    const vt::Graph g = vt::make_graph(vt::grad(loss))(vt::ones({4}));
    const double took = processor_seconds() - before;
    // linearized, pulled back and added to the others' for each call
    EXPECT_LT(std::abs(static_cast<int>(g.size()) - 3 * n), 400);
    return took;
  };
  seconds(1024);  // what is made once
  double few = 1e9, many = 1e9;
  for (int i = 0; i < 3; ++i)
    few = std::min(few, seconds(2048)), many = std::min(many, seconds(16384));
  EXPECT_LE(many, 32 * few) << few << " s, then " << many << " s";
}

// Parts that many operands are put together of are right where each is told its place.
TEST(GraphSize, LongConcatenationsAreRight) {
  for (const int n : {15, 16, 17, 40, 300}) {
    const Tensors v = vectors(n);
    const auto parts = [](Tensors w) {
      for (std::size_t i = 0; i < w.size(); i += 3) w[i] = w[i] * 2.0;
      return w;
    };
    const Tensor joined = vt::jit([&](Tensors w) { return vt::concatenate(parts(w)); })(v);
    const Tensor stacked = vt::jit([&](Tensors w) { return vt::stack(parts(w), 1); })(v);
    ASSERT_EQ(joined.shape(), vt::Shape({4 * n}));
    ASSERT_EQ(stacked.shape(), vt::Shape({4, n}));
    const std::vector<double> a = joined.to_vector<double>(), b = stacked.to_vector<double>();
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < 4; ++k) {
        const double wanted = 0.001 * i * (i % 3 == 0 ? 2 : 1);
        ASSERT_EQ(a[4 * i + k], wanted) << n;
        ASSERT_EQ(b[k * n + i], wanted) << n;
      }
  }
}

}  // namespace
