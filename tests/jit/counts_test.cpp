// What is counted: histograms by the edges that linspace gives, and the dtypes of counts and
// indices beyond 2^31.
#include <algorithm>
#include <cmath>
#include <limits>

#include "support/property.hpp"

namespace {

using namespace vt;

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Range {
  double low, high;
  std::int64_t bins;
};

std::vector<double> numbers(const Tensor& t) { return t.astype(f64).to_vector<double>(); }

/// edges[i] ≤ x < edges[i + 1]; the last bin has its upper edge as well.
std::vector<std::int64_t> by_edges(const std::vector<double>& x, const std::vector<double>& edges) {
  std::vector<std::int64_t> counts(edges.size() - 1);
  for (double v : x) {
    if (!std::isfinite(v) || v < edges.front() || v > edges.back()) continue;
    const auto above = std::upper_bound(edges.begin(), edges.end(), v) - edges.begin();
    ++counts[std::min(above, edges.end() - edges.begin() - 1) - 1];
  }
  return counts;
}

/// The edges, their neighbours, numbers between and beyond them, and what is none.
Tensor probes(const Range& r, DType d) {
  const Tensor edges = linspace(r.low, r.high, r.bins + 1, true, d);
  const auto beside = [&](double to) { return nextafter(edges, tensor(to).astype(d)); };
  return concatenate({edges, beside(infinity), beside(-infinity),
                      random::uniform(random::key(3), {300}, r.low, r.high, d),
                      tensor({std::nan(""), infinity, -infinity}).astype(d)});
}

void expect_counts(const Range& r, const Tensor& x, const std::vector<double>& edges,
                   bool transformed = true) {
  const auto f = [&](Tensor t) { return histogram(t, r.bins, r.low, r.high); };
  const std::vector<std::int64_t> wanted = by_edges(numbers(x), edges);
  std::vector<Tensor> all = {f(x)};
  if (transformed) all.insert(all.end(), {jit(f)(x), vmap(f)(stack({x + x, x}))[1]});
  for (const Tensor& counts : all) {
    EXPECT_EQ(counts.dtype(), i32);
    EXPECT_EQ(counts.astype(i64).to_vector<std::int64_t>(), wanted)
        << name_of(x.dtype()) << ": " << r.bins << " bins from " << r.low << " to " << r.high;
  }
}

void expect_own_edges(const Range& r, DType d, bool transformed = false) {
  const Tensor edges = linspace(r.low, r.high, r.bins + 1, true, d);
  expect_counts(r, probes(r, d), numbers(edges), transformed);
}

TEST(Histogram, CountsByItsEdges) {
  std::vector<Range> ranges = {{2.5, 9.7, 36}, {0.9, 1.1, 10},     {0, 1, 10},       {0, 1, 1},
                               {-1, 1, 7},     {-0.3, 0.7, 49},    {1e-3, 1e3, 97},  {100, 101, 13},
                               {-5, -4, 30},   {1e6, 1e6 + 1, 10}, {1000, 1100, 300}};
  const auto ends = random::uniform(random::key(8), {20}, -10.0, 10.0, f64).to_vector<double>();
  for (std::size_t i = 0; i + 1 < ends.size(); i += 2)
    ranges.push_back({std::min(ends[i], ends[i + 1]), std::max(ends[i], ends[i + 1]),
                      11 + 5 * static_cast<std::int64_t>(i)});
  for (DType d : {f16, bf16, f32, f64})
    for (std::size_t i = 0; i < ranges.size(); ++i) expect_own_edges(ranges[i], d, i < 2);
}

// Widths beyond the dtype or f64, below their normal numbers, and bins narrower than the steps of
// the dtype.
TEST(Histogram, CountsByItsEdgesAtTheEnds) {
  for (const Range& r : {Range{-1.7e308, 1.7e308, 36},
                         {-1e308, 1.5e308, 7},
                         {0, 5e-324, 3},
                         {0, 4.94e-322, 36},
                         {-1e-320, 3e-320, 11},
                         {1, std::nextafter(1.0, 2.0), 5},
                         {1e16, 1e16 + 100, 100},
                         {-3, 1e300, 10}})
    expect_own_edges(r, f64);
  for (const Range& r : {Range{-3e38, 3e38, 36},
                         {0, 1.4e-43, 36},
                         {1, 1.0000001, 3},
                         {1e8, 1e8 + 100, 30},
                         {0, 1e39, 10},
                         {0, 1e-50, 5}})
    expect_own_edges(r, f32);
  for (const Range& r : {Range{-65504, 65504, 36}, {2000, 2100, 300}, {0, 1e-6, 5}, {0, 1e5, 10}})
    expect_own_edges(r, f16);
  for (const Range& r : {Range{-3e38, 3e38, 36}, {100, 110, 300}, {0, 1e-40, 4}})
    expect_own_edges(r, bf16);
}

// Integers are compared with edges in f64.
TEST(Histogram, CountsIntegers) {
  for (DType d : {u8, i8, i32, u32, i64})
    for (const Range& r : {Range{0, 10, 10}, {0, 10, 3}, {0.5, 9.5, 9}, {0, 100, 7}}) {
      const Tensor x = arange(0, 120).astype(d);
      expect_counts(r, x, numbers(linspace(r.low, r.high, r.bins + 1, true, f64)));
    }
}

// numpy 2.4.6: histogram(x, bins, (low, high)) of what stands on the edges, where a division alone
// is wrong.
TEST(Histogram, CountsAsNumPyDoes) {
  EXPECT_EQ(histogram(tensor({1.0}), 10, 0.9, 1.1).to_vector<int>(),
            (std::vector<int>{0, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(histogram(tensor({1.0f}), 10, 0.9, 1.1).to_vector<int>(),
            (std::vector<int>{0, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
  std::vector<int> once(36, 1);
  once.back() = 2;
  EXPECT_EQ(histogram(linspace(2.5, 9.7, 37, true, f64), 36, 2.5, 9.7).to_vector<int>(), once);
  EXPECT_EQ(histogram(linspace(2.5, 9.7, 37), 36, 2.5, 9.7).to_vector<int>(), once);
}

TEST(Linspace, OfWidthsBeyondF64AndStepsBelowIt) {
  const auto x = linspace(-1.7e308, 1.7e308, 5, true, f64).to_vector<double>();
  EXPECT_EQ(x.front(), -1.7e308);
  EXPECT_EQ(x[2], 0.0);
  EXPECT_DOUBLE_EQ(x[3], 0.85e308);
  EXPECT_EQ(x.back(), 1.7e308);
  const double tiny = std::numeric_limits<double>::denorm_min();
  const auto y = linspace(0.0, 100 * tiny, 37, true, f64).to_vector<double>();
  EXPECT_TRUE(std::is_sorted(y.begin(), y.end()));
  for (std::size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], std::nearbyint(static_cast<double>(i) / 36 * 100) * tiny) << i;
}

// --- beyond 2^31 ---------------------------------------------------------------------------------
// All of values that are broadcast and not stored.

constexpr std::int64_t many = std::int64_t{3} << 30;

TEST(WideCounts, BeyondI32AreI64) {
  if (vt_test::forced_backend() == "interpreter")
    GTEST_SKIP() << "the interpreter stores what it broadcasts";
  const Tensor yes = tensor(std::vector<bool>{true}),
               either = tensor(std::vector<bool>{false, true});
  const auto count = [](Tensor x) { return count_nonzero(broadcast_to(x, {many})); };
  const auto total = [](Tensor x) { return sum(broadcast_to(x, {3, many / 3})); };
  for (const Tensor& n : {count_nonzero(ones({many})), jit(count)(yes), jit(total)(yes),
                          vmap(count)(either)[1], jit(vmap(total))(either)[1]}) {
    EXPECT_EQ(n.dtype(), i64);
    EXPECT_EQ(n.item<std::int64_t>(), many);
  }
}

TEST(WideCounts, TheirDtypesFollowTheExtents) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t n : {std::int64_t{4}, most, most + 1, many}) {
    const DType d = n > most ? i64 : i32;
    const Tensor b = broadcast_to(tensor(std::vector<bool>{true}), {n}),
                 x = broadcast_to(tensor(std::vector<float>{1}), {n});
    EXPECT_EQ(count_nonzero(b).dtype(), d) << n;
    EXPECT_EQ(sum(b).dtype(), d) << n;
    EXPECT_EQ(sum(b, Axes{}).dtype(), i32) << n;
    EXPECT_EQ(cumsum(b).dtype(), d) << n;
    EXPECT_EQ(argmax(x).dtype(), d) << n;
    EXPECT_EQ(argsort(x).dtype(), d) << n;
    EXPECT_EQ(bincount(b.astype(i32), 2).dtype(), d) << n;
    EXPECT_EQ(histogram(x, 4, 0.0, 1.0).dtype(), d) << n;
    EXPECT_EQ(nonzero(b, 1)[0].dtype(), d) << n;
    EXPECT_EQ(searchsorted(x, 0.5).dtype(), d) << n;
    EXPECT_EQ(sum(broadcast_to(tensor({1}), {n})).dtype(), i32)
        << n;  // integers keep theirs and wrap
  }
  const Tensor box = broadcast_to(tensor(std::vector<bool>{true}), {3, many / 3});
  EXPECT_EQ(count_nonzero(box).dtype(), i64);
  EXPECT_EQ(count_nonzero(box, 0).dtype(), i32);
  EXPECT_EQ(count_nonzero(box, 1).dtype(), i32);  // 2^30 each
}

}  // namespace
