// What is computed of lists (stack, concatenate) whose length differs from instance to instance:
// it has the values and derivatives that it has alone, and is of one kind for all lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/property.hpp"

namespace {

using vt::Tensor;

constexpr std::int64_t width = 5;
constexpr std::size_t words = 40;
using Minibatch = std::vector<std::vector<int>>;

struct Params {
  Tensor embedding, query, matrix, scale;
};
/// Rows of two matrices [n, width], and n numbers.
struct Lists {
  Tensor keys, values, numbers;
  std::int64_t n() const { return numbers.dim(0); }
};
struct Case {
  const char* name;
  Tensor (*of)(const Params&, const Lists&);
  bool one_kind = true;  ///< for all lengths
};

Tensor squares(const Tensor& x) { return vt::sum(x * x); }

const Case cases[] = {
    {"attention",
     [](const Params& p, const Lists& l) {
       return squares(vt::matmul(vt::softmax(vt::matmul(l.keys, p.query)), l.values));
     }},
    {"attention as a function",
     [](const Params& p, const Lists& l) {
       static const auto attend =
           vt::function("attend", [](const Tensor& keys, const Tensor& rows, const Tensor& q) {
             return vt::matmul(vt::softmax(vt::matmul(keys, q)), rows);
           });
       return squares(attend(l.keys, l.values, attend(l.values, l.keys, p.query)));
     }},
    {"weights of rows",
     [](const Params&, const Lists& l) {
       return squares(vt::sum(vt::expand_dims(vt::softmax(l.numbers), 1) * l.values, 0));
     }},
    {"log-sum-exp",
     [](const Params&, const Lists& l) {
       return vt::logsumexp(l.numbers) + vt::sum(vt::logsumexp(l.values, 0)) +
              vt::logsumexp(l.keys);
     }},
    {"moments",
     [](const Params&, const Lists& l) {
       return squares(vt::mean(l.values, 0)) + vt::var(l.numbers) + vt::sum(vt::std(l.keys, 0));
     }},
    {"extremes",
     [](const Params&, const Lists& l) {
       return vt::max(l.numbers) + squares(vt::max(l.values, 0)) + 3.0 * vt::max(l.keys) +
              squares(vt::min(l.keys, 0)) - vt::min(l.numbers);
     }},
    {"extremes that tie",
     [](const Params&, const Lists& l) {
       const Tensor twice = vt::concatenate({l.numbers, l.numbers, l.numbers[vt::slice(0, 1)]});
       return 3.0 * vt::max(twice) - vt::min(twice) +
              vt::max(vt::concatenate({l.keys, l.values, l.keys}));
     }},
    {"places of extremes",
     [](const Params& p, const Lists& l) {
       const vt::DType d = l.numbers.dtype();
       return vt::argmax(l.numbers).astype(d) +
              vt::sum(vt::argmin(l.values, 0).astype(d) * p.query);
     }},
    {"normalised rows",
     [](const Params&, const Lists& l) {
       const Tensor centred = l.values - vt::mean(l.values, 1, true);
       return squares(vt::sum(vt::tanh(centred / (vt::std(l.values, 1, 0, true) + 0.1)), 0));
     }},
    {"products",
     [](const Params& p, const Lists& l) {
       return vt::sum(vt::tanh(vt::matmul(l.keys, p.matrix) + vt::expand_dims(l.numbers, 1))) +
              vt::sum(vt::matmul(vt::transpose(l.keys), l.values) * p.matrix) +
              vt::sum(vt::matmul(p.matrix, vt::softmax(vt::transpose(l.keys), 1)));
     }},
    {"rows by number",
     [](const Params&, const Lists& l) {
       const Tensor w = vt::softmax(l.numbers);
       return squares(l.values[0]) + squares(l.keys[-1]) + w[0] + vt::log(w[-1]) + w[l.n() / 2];
     }},
    {"parts",
     [](const Params&, const Lists& l) {
       const Tensor later = l.numbers[vt::slice(l.n() / 2, l.n())];
       return squares(
                  vt::sum(l.values[vt::slice(1, l.n())] - l.values[vt::slice(0, l.n() - 1)], 0)) +
              vt::sum(vt::softmax(later) * later);
     }},
    {"joined",
     [](const Params&, const Lists& l) {
       const Tensor all = vt::concatenate({l.keys, l.values});
       return squares(vt::sum(vt::softmax(all, 0) * all, 0)) +
              squares(vt::mean(vt::concatenate({l.keys, l.values}, 1), 0));
     }},
    {"counted",
     [](const Params&, const Lists& l) {
       const Tensor k = vt::arange(l.n());
       return vt::sum(l.numbers * k.astype(l.numbers.dtype())) +
              vt::sum(vt::where(vt::expand_dims(k, 1) < 2, l.values, l.keys));
     }},
    {"filled",
     [](const Params& p, const Lists& l) {
       const vt::DType d = l.numbers.dtype();
       return vt::sum(vt::ones({l.n()}, d) / (2.0 + vt::exp(l.numbers))) +
              vt::sum(vt::zeros_like(l.values) + p.query * l.keys +
                      vt::full({l.n(), width}, 2.0, d) * l.values);
     }},
    {"outer products",
     [](const Params& p, const Lists& l) {
       return squares(vt::sum(vt::expand_dims(l.numbers, 1) * vt::expand_dims(p.query, 0), 0));
     }},
    {"truths",
     [](const Params& p, const Lists& l) {
       const vt::DType d = l.numbers.dtype();
       return vt::any(l.numbers > 1.0).astype(d) +
              vt::sum(vt::all(l.values > -1.0, 0).astype(d) * p.query) +
              vt::sum(vt::count_nonzero(l.values > 0.0, 0).astype(d));
     }},
    {"integers",
     [](const Params& p, const Lists& l) {
       const vt::DType d = l.numbers.dtype();
       const Tensor i = vt::clip(l.numbers * 10.0, -1000.0, 1000.0).astype(vt::i32);
       return (vt::sum(i) + vt::max(i) - vt::min(i) + vt::argmax(i)).astype(d) * p.scale;
     }},
    {"log-softmax",
     [](const Params&, const Lists& l) {
       return vt::sum(vt::log_softmax(l.numbers) * l.numbers) +
              vt::sum(vt::log_softmax(l.keys, 0) * l.values) + vt::norm(l.numbers);
     }},
    {"reshaped",
     [](const Params&, const Lists& l) {
       return squares(vt::sum(vt::reshape(l.numbers, {l.n(), 1}) * l.keys, 0)) +
              vt::sum(vt::reshape(l.keys, {1, l.n(), width}) * 2.0);
     }},
    // These are computed of the list as one value, of a kind for each length.
    {"attention of the rows to one another",
     [](const Params&, const Lists& l) {
       const Tensor scores = vt::matmul(l.keys, vt::transpose(l.values));
       return squares(vt::matmul(vt::softmax(scores, 1), l.values));
     },
     false},
    {"in order",
     [](const Params&, const Lists& l) {
       return vt::sum(vt::cumsum(l.numbers) * l.numbers) + vt::sum(vt::sort(l.numbers)) +
              vt::prod(l.numbers * 0.5 + 1.0) + vt::sum(vt::cumsum(l.values, 1) * l.keys);
     },
     false},
    {"at indices",
     [](const Params&, const Lists& l) {
       return squares(vt::take(l.keys, vt::tensor({0, 0}), 0)) +
              vt::sum(vt::softmax(vt::reshape(l.keys, {-1})) * vt::reshape(l.values, {-1}));
     },
     false},
};

enum class Numbers : std::uint8_t { finite, infinite, nan };

Params parameters(vt::DType d, Numbers which) {
  const auto random = [&](int key, const vt::Shape& shape) {
    return vt::random::normal(vt::random::key(key), shape, d).eval();
  };
  std::vector<double> rows = random(1, {words, width}).to_vector<double>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (which != Numbers::finite) {
    rows[12] = rows[32] = rows[7] = infinity;
    rows[40] = rows[51] = rows[52] = -infinity;
  }
  if (which == Numbers::nan) rows[61] = rows[102] = std::nan("");
  return {vt::reshape(vt::tensor(rows), {words, width}).astype(d).eval(), random(2, {width}),
          random(3, {width, width}), vt::tensor(0.5).astype(d).eval()};
}
/// Tensor (Params, Minibatch): a number for each instance. Without arithmetic in front of the lists
/// nothing of an instance that is not read meets infinities of another one.
auto all_of(const Case& c, bool arithmetic) {
  return [&c, arithmetic](const Params& p, const Minibatch& batch) {
    std::vector<Tensor> all;
    for (const std::vector<int>& words_of : batch) {
      std::vector<Tensor> keys, values, numbers;
      for (const int word : words_of) {
        keys.push_back(p.embedding[word]);
        const Tensor other = p.embedding[(word * 7 + 1) % static_cast<int>(words)];
        values.push_back(arithmetic ? vt::tanh(other * p.scale) : other);
        numbers.push_back(arithmetic ? vt::sum(p.embedding[word] * p.query) : p.embedding[word][1]);
      }
      all.push_back(c.of(p, {vt::stack(keys), vt::stack(values), vt::stack(numbers)}));
    }
    return vt::stack(all);
  };
}
Minibatch minibatch(std::mt19937& random, std::size_t instances, std::size_t longest) {
  Minibatch batch(instances);
  for (std::vector<int>& s : batch) {
    s.resize(1 + random() % longest);
    for (int& word : s) word = static_cast<int>(random() % words);
  }
  return batch;
}

void expect_same(const Tensor& got, const Tensor& wanted, const std::string& what) {
  const std::vector<double> g = got.to_vector<double>(), w = wanted.to_vector<double>();
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  double most = 1;
  for (const double x : w)
    if (std::isfinite(x)) most = std::max(most, std::abs(x));
  const double off = most * (got.dtype() == vt::f64 ? 1e-11 : 1e-4);
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (std::isnan(w[i]))
      EXPECT_TRUE(std::isnan(g[i])) << what << ", element " << i << ": " << g[i];
    else if (std::isinf(w[i])) EXPECT_EQ(g[i], w[i]) << what << ", element " << i;
    else EXPECT_NEAR(g[i], w[i], off) << what << ", element " << i;
  }
}

class AutobatchLists : public testing::TestWithParam<Numbers> {};

TEST_P(AutobatchLists, HaveTheValuesAndDerivativesThatTheyHaveAlone) {
  std::mt19937 random(3);
  const Minibatch batch = minibatch(random, 5, 7);
  for (const vt::DType d : {vt::f64, vt::f32}) {
    if (d == vt::f32 && GetParam() != Numbers::finite) continue;
    const Params p = parameters(d, GetParam());
    for (const Case& c : cases) {
      const auto alone = all_of(c, GetParam() == Numbers::finite);
      const auto batched = vt::autobatch(alone);
      const auto summed = [](const auto& f) {
        return [&f](const Params& q, const Minibatch& of) { return vt::sum(f(q, of)); };
      };
      const std::string what = c.name + std::string(d == vt::f64 ? ", f64" : ", f32");
      expect_same(batched(p, batch), alone(p, batch), what);
      const Params g = vt::grad(summed(batched))(p, batch), w = vt::grad(summed(alone))(p, batch);
      expect_same(g.embedding, w.embedding, what + ", slope of the embedding");
      expect_same(g.query, w.query, what + ", slope of the query");
      expect_same(g.matrix, w.matrix, what + ", slope of the matrix");
      expect_same(g.scale, w.scale, what + ", slope of the scale");
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Numbers, AutobatchLists,
                         testing::Values(Numbers::finite, Numbers::infinite, Numbers::nan));

TEST(AutobatchListKinds, GradientsInsideAreThoseOfEachInstance) {
  const Params p = parameters(vt::f64, Numbers::finite);
  const auto own = all_of(cases[0], true);
  const auto slopes = [&](const Params& q, const Minibatch& batch) {
    std::vector<Tensor> all;
    for (const std::vector<int>& s : batch)
      all.push_back(vt::grad([&](const Tensor& query) {
        return own({q.embedding, query, q.matrix, q.scale}, {s})[0];
      })(q.query));
    return vt::stack(all);
  };
  std::mt19937 random(1);
  const auto batched = vt::autobatch(slopes);
  for (int k = 0; k < 3; ++k) {
    const Minibatch batch = minibatch(random, 7, 12);
    expect_same(batched(p, batch), slopes(p, batch), "slopes");
  }
}

TEST(AutobatchListKinds, GoThroughAllTransforms) {
  const Params p = parameters(vt::f64, Numbers::finite);
  std::mt19937 random(1);
  const Minibatch batch = minibatch(random, 4, 5);
  for (const Case& c : cases) {
    if (std::string_view(c.name) != "attention" && std::string_view(c.name) != "extremes" &&
        std::string_view(c.name) != "parts")
      continue;
    const auto alone = all_of(c, true);
    const auto batched = vt::autobatch(alone);
    const auto of_query = [&](const auto& f) {
      return [&](const Tensor& query) {
        return vt::sum(f(Params{p.embedding, query, p.matrix, query[0]}, batch));
      };
    };
    const auto got = of_query(batched);
    const auto wanted = of_query(alone);
    const Tensor direction = vt::cos(p.query), some = vt::stack({p.query, direction});
    expect_same(vt::jvp(got, p.query, direction).second, vt::jvp(wanted, p.query, direction).second,
                c.name);
    expect_same(vt::hessian(got)(p.query), vt::hessian(wanted)(p.query), c.name);
    expect_same(vt::vmap(vt::grad(got))(some), vt::vmap(vt::grad(wanted))(some), c.name);
    expect_same(vt::jit(got)(p.query), wanted(p.query), c.name);
  }
}

// Lengths that have not been there before compile nothing.
TEST(AutobatchListKinds, AreThoseOfAnyLength) {
  const Params p = parameters(vt::f64, Numbers::finite);
  if (p.query.device() != vt::cpu() || vt_test::forced_backend() == "interpreter") GTEST_SKIP();
  for (const Case& c : cases) {
    if (!c.one_kind) continue;
    const auto batched = vt::autobatch(all_of(c, true));
    const auto loss = [&](const Params& q, const Minibatch& batch) {
      return vt::sum(batched(q, batch));
    };
    std::mt19937 random(1);
    std::uint64_t late = 0;
    for (int k = 0; k < 14; ++k) {
      const Minibatch batch = minibatch(random, 24, k < 10 ? 20 : 40);
      const std::uint64_t before = vt::stats().kernels_compiled;
      const auto [value, slope] = vt::value_and_grad(loss)(p, batch);
      vt::eval(value, slope);
      if (k >= 10) late += vt::stats().kernels_compiled - before;
    }
    EXPECT_EQ(late, 0u) << c.name;
    EXPECT_LE(vt::batch_stats().groups, 60u) << c.name;
  }
}

TEST(AutobatchListKinds, OfOneLengthAreComputedWhole) {
  const Params p = parameters(vt::f64, Numbers::finite);
  const auto batched = vt::autobatch(all_of(cases[1], true));
  const Minibatch batch(4, std::vector<int>{1, 2, 3});
  batched(p, batch).eval();
  const auto kinds = vt::batch_stats().kinds;
  EXPECT_TRUE(std::any_of(kinds.begin(), kinds.end(), [](const vt::BatchKind& k) {
    return k.operands.find("f64[3,5]") != std::string::npos;
  }));
}

}  // namespace
