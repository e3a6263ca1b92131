// The compiled program's sort against the definition, bit for bit: every dtype and way of sorting,
// rows in and across memory, several keys, places, results that nobody reads, and any number of
// threads.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

#include <vt/vt.hpp>

#include "simplify/simplify_check.hpp"
#include "src/trace/ir/executable.hpp"
#include "src/trace/record/node.hpp"
#include "support/property.hpp"

namespace {

using namespace vt;
using namespace vt_test;

/// Runs the Graph compiled, with each of these numbers of threads (0: as many as there are), and
/// interpreted on numbers with zeros of both signs, infinities and NaNs among them.
void expect_same_bits(const GraphBody& g, const std::string& what, std::uint64_t seed = 1,
                      std::initializer_list<int> threads = {0}) {
  std::mt19937 random(static_cast<unsigned>(seed));
  vt::Vec<BufferRef> inputs;
  for (Var v : g.inputs) inputs.push_back(awkward_values(g.aval(v), random));
  const auto expected = interpret(g, inputs);
  for (const int n : threads) {
    if (n) set_num_threads(n);
    const auto actual = compile_graph(g)->run(inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(std::memcmp(actual[i]->data, expected[i]->data, g.aval(g.outputs[i]).bytes()), 0)
          << what << " result " << i << ", " << n << " threads\n"
          << to_text(g);
  }
}

ParamsRef whole(const Shape& shape, int axis, int keys = 1, bool descending = false) {
  return make_params(SortParams{axis, keys, descending, 0, shape[axis]});
}

void sort_all(const std::vector<DType>& dtypes, const Shape& shape, int axis, int keys,
              bool descending) {
  Builder b;
  vt::Vec<Var> operands;
  for (DType d : dtypes) operands.push_back(b.input(d, shape));
  const ParamsRef p = whole(shape, axis, keys, descending);
  b.returns(b.all(Op::sort, p, operands));
  expect_same_bits(b.graph, describe(Op::sort, p) + " of " + Aval(dtypes[0], shape).str(),
                   static_cast<std::uint64_t>(shape.elements()));
}

TEST(JitSort, EveryDtypeAndLength) {
  for (int d = 0; d < real_dtype_count; ++d)
    for (std::int64_t n : {0, 1, 2, 3, 17, 48, 49, 101, 1000, 1031, 5003})
      for (bool descending : {false, true}) {
        const auto dtype = static_cast<DType>(d);
        sort_all({dtype}, {n}, 0, 1, descending);
        sort_all({dtype, i32}, {2, n}, 1, 1, descending);
      }
}

// Numbers without NaN and −0, which are sorted without their places.
TEST(JitSort, PlainNumbers) {
  for (DType d : {f16, bf16, f32, f64})
    for (std::int64_t n : {7, 300, 3001, 140001})
      for (bool descending : {false, true}) {
        Builder b;
        const Var bits = b.input(i32, {n});
        const Var x = b.convert(bits, d);
        b.returns({b.add(Op::sort, whole({n}, 0, 1, descending), {x})});
        expect_same_bits(b.graph, std::string(name_of(d)) + " of " + std::to_string(n));
      }
}

TEST(JitSort, RowsAcrossMemory) {
  for (const Shape& shape : {Shape{5, 3}, Shape{70, 37}, Shape{3, 50, 16}, Shape{2, 600, 5},
                             Shape{1, 0, 3}, Shape{0, 3}, Shape{4000, 17}})
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (DType d : {u8, f32, i64}) {
        sort_all({d}, shape, axis, 1, axis % 2 == 1);
        sort_all({d, f64, i16}, shape, axis, 1, false);
      }
}

// Rows of up to 48, which get a lane each: all lengths, rows and columns, last strips of few rows,
// with and without places.
TEST(JitSort, ShortRows) {
  for (std::int64_t n = 2; n <= 49; ++n)
    for (bool descending : {false, true}) {
      const auto length = static_cast<std::size_t>(n);
      const DType d = static_cast<DType>(length % real_dtype_count);
      sort_all({d}, {67, n}, 1, 1, descending);
      sort_all({f32}, {131, n}, 1, 1, descending);
      sort_all({f64, u8}, {70, n}, 1, 1, descending);
      sort_all({i32, f64, f16}, {3, n, 31}, 1, 1, descending);
      sort_all({f16, i32, u64}, {65, n}, 1, 2, descending);
      Builder b;
      const Var bits = b.input(i32, {9, n, 20}), x = b.convert(bits, f64),
                place = b.iota(i64, {9, n, 20}, 1);
      const ParamsRef some = make_params(SortParams{1, 1, descending, n / 3, n / 2 + 1});
      b.returns(
          {b.add(Op::sort, some, {x}), b.add(Op::sort, some, {b.convert(bits, f32)}),
           b.all(Op::sort, some, {bits, place, x})[1],
           b.all(Op::sort, whole({9, n, 20}, 1, 2, descending), {b.convert(bits, i8), place})[1]});
      expect_same_bits(b.graph, "numbers of rows of " + std::to_string(n));
    }
  if (forced_backend() == "interpreter") return;
  Builder b;
  b.returns({b.add(Op::sort, whole({100, 10}, 1), {b.input(f32, {100, 10})})});
  const std::string text = compile_graph(b.graph)->explain_steps();
  EXPECT_NE(text.find("sort of 100 rows of 10, by networks, a lane for each row"),
            std::string::npos)
      << text;
}

// The best of a long row that threads share, NaN and zeros of both signs among them.
TEST(JitSort, BestOfLongRows) {
  const int before = num_threads();
  for (DType d : {f32, f64, i32, u64, bf16})
    for (bool descending : {false, true})
      for (std::int64_t limit : {1, 100, 3000}) {
        Builder b;
        const Var x = b.input(d, {140001});
        const ParamsRef p = make_params(SortParams{0, 1, descending, 0, limit});
        b.returns({b.add(Op::sort, p, {x}), b.all(Op::sort, p, {x, b.iota(i32, {140001}, 0)})[1]});
        expect_same_bits(b.graph, std::string(name_of(d)) + ", best " + std::to_string(limit),
                         static_cast<std::uint64_t>(limit), {1, 2, 5});
      }
  set_num_threads(before);
}

TEST(JitSort, SeveralKeys) {
  for (std::int64_t n : {3, 40, 1000, 3001})
    for (bool descending : {false, true}) {
      sort_all({i8, u8}, {n}, 0, 2, descending);  // one word of 16 bits
      // a key behind another, and what is carried along
      sort_all({bool_, f16, f32}, {n}, 0, 2, descending);
      sort_all({f32, i32}, {n, 3}, 0, 2, descending);                  // one word of 64 bits
      sort_all({bool_, f64, i8, u64, f32}, {3, n}, 1, 4, descending);  // three iterations
    }
}

TEST(JitSort, Places) {
  for (std::int64_t n : {5, 300, 600, 2500})
    for (auto [start, limit] : {std::pair<std::int64_t, std::int64_t>{0, 1},
                                {0, 3},
                                {2, 5},
                                {n / 8 - 1, n / 8},
                                {n / 2, n / 2 + 1},
                                {n - 2, n}})
      for (bool descending : {false, true})
        for (const auto& [shape, axis] : {std::pair(Shape{3, n}, 1), std::pair(Shape{n, 5}, 0)}) {
          if (start < 0 || limit < start) continue;
          Builder b;
          const Var x = b.input(f32, shape), y = b.input(f64, shape);
          const ParamsRef p = make_params(SortParams{axis, 1, descending, start, limit});
          const auto one = b.all(Op::sort, p, {x}),
                     order = b.all(Op::sort, p, {x, b.iota(i32, shape, axis)}),
                     wide = b.all(Op::sort, p, {y, x});
          b.returns({one[0], order[1], wide[0], wide[1]});
          expect_same_bits(b.graph, describe(Op::sort, p) + " of " + shape.str());
        }
  // The best come last, so that every element is a candidate for a while.
  Builder b;
  const Var x = b.iota(i32, {9000});
  b.returns({b.with(Op::sort, SortParams{0, 1, true, 0, 40}, {x}),
             b.with(Op::sort, SortParams{0, 1, false, 0, 40}, {b.input(f32, {9000})})});
  expect_same_bits(b.graph, "ascending");
}

TEST(JitSort, UnreadResultsAndPlacesAreNotMade) {
  const Shape shape{4, 6000};
  Builder b;
  const Var x = b.input(f32, shape);
  const Var order = b.all(Op::sort, whole(shape, 1), {x, b.iota(i32, shape, 1)})[1];
  b.returns({b.convert(order, i64)});
  expect_same_bits(b.graph, "argsort");
  if (forced_backend() != "interpreter") {
    const std::string text = compile_graph(b.graph)->explain_steps();
    EXPECT_NE(text.find("sort of 4 rows of 6000, digit by digit"), std::string::npos) << text;
    // the order alone
    EXPECT_NE(text.find("0 interpreted equations, 96000 bytes of scratch"), std::string::npos)
        << text;
  }
  // Places as the only operand, as a key, and along another axis (where they are read).
  Builder c;
  const Var places = c.iota(i64, shape, 1), rows = c.iota(i32, shape, 0), y = c.input(bool_, shape);
  c.returns({c.add(Op::sort, whole(shape, 1, 1, true), {places}),
             c.all(Op::sort, whole(shape, 1, 2, true), {y, places, rows})[1],
             c.all(Op::sort, whole(shape, 1, 1), {y, rows})[1]});
  expect_same_bits(c.graph, "places");
}

TEST(JitSort, ThreadsDoNotChangeABit) {
  const int before = num_threads();
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    sort_all({f32}, {200003}, 0, 1, false);
    sort_all({u64, i8}, {2, 131101}, 1, 1, true);
    sort_all({f32, i32, u16}, {70001, 2}, 0, 3, false);
    sort_all({i32, f32}, {3000, 11}, 1, 1, false);
  }
  set_num_threads(before);
}

TEST(JitSort, FusesWithItsNeighbours) {
  Builder b;
  const Var x = b.input(f32, {8, 100}), y = b.input(f32, {8, 100});
  const auto sorted =
      b.all(Op::sort, whole({8, 100}, 1), {b.add(Op::mul, {x, y}), b.add(Op::add, {x, y})});
  b.returns(
      {b.add(Op::sub, {sorted[0], sorted[1]}), b.add(Op::exp, {b.transpose(sorted[0], {1, 0})})});
  std::mt19937 random(1);
  vt::Vec<BufferRef> inputs;
  for (Var v : b.graph.inputs) {
    inputs.push_back(allocate(b.graph.aval(v).bytes()));
    for (int i = 0; i < 800; ++i)
      inputs.back()->as<float>()[i] = static_cast<float>(random() % 64) / 16;
  }
  const auto expected = interpret(b.graph, inputs), actual = compile_graph(b.graph)->run(inputs);
  EXPECT_EQ(std::memcmp(actual[0]->data, expected[0]->data, 3200), 0);
  for (int i = 0; i < 800; ++i)
    EXPECT_NEAR(actual[1]->as<float>()[i] / expected[1]->as<float>()[i], 1, 1e-6);
}

}  // namespace
