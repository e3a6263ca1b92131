// Scatters as loop nests: what threads share, values and bits with any number of them.
#include <gtest/gtest.h>

#include <cstring>

#include <vt/vt.hpp>

#include "src/jit/nest/schedule.hpp"
#include "src/trace/record/devices.hpp"
#include "support/compare_executors.hpp"
#include "support/fused.hpp"

namespace {

using namespace vt;
using namespace vt::detail;
using vt_test::random_tensor;
using Tensors = std::vector<Tensor>;
using S = std::span<const Tensor>;

// The update nest of a function that scatters once: the last step.
std::string update_text(const vt::detail::FlatFunction& f, const std::vector<Aval>& avals) {
  const vt::Vec<FusedStep> steps =
      vt_test::fused(simplify(record(f, avals, {}).graph, SimplifyFor::running)).steps;
  for (const FusedStep& s : steps)
    for (const NestStore& w : s.nest.stores)
      if (w.update != Op::input) return s.nest.str() + choose_schedule(s.nest, 64).str(s.nest);
  return "no update";
}

TEST(JitScatter, RowsOfAnEmbeddingAreSharedByColumns) {
  const auto rows = [](S t) -> Tensors { return {segment_sum(t[0], t[1], 50)}; };
  const std::string text = update_text(rows, {Aval(f32, {400, 256}), Aval(i32, {400})});
  EXPECT_NE(text.find("threads along d1\n  element-wise, loops d0 d1, vector d1"),
            std::string::npos)
      << text;
  // Two axes of columns: the outer one has all of the inner one's elements to itself.
  const std::string cubes = update_text(rows, {Aval(f32, {400, 6, 8}), Aval(i32, {400})});
  EXPECT_NE(cubes.find("threads along"), std::string::npos) << cubes;
  // Single elements may meet anywhere.
  const std::string elements = update_text(rows, {Aval(f32, {400}), Aval(i32, {400})});
  EXPECT_EQ(elements.find("threads along"), std::string::npos) << elements;
  // A row of one vector takes a thread as long as its half.
  for (std::int64_t columns : {2, 3, 8, 16}) {
    const std::string short_rows = update_text(rows, {Aval(f32, {400, columns}), Aval(i32, {400})});
    EXPECT_EQ(short_rows.find("threads along"), std::string::npos) << short_rows;
  }
  // Windows that start anywhere overlap: columns of different windows are the same element.
  const std::string windows = update_text(
      [](S t) -> Tensors {
        return {grad([&](Tensor x) {
          return sum(vmap([&](Tensor start) { return dynamic_slice(x, {start}, {64}); })(t[1]) *
                     t[0]);
        })(zeros({1000}, f32))};
      },
      {Aval(f32, {40, 64}), Aval(i32, {40})});
  EXPECT_EQ(windows.find("threads along"), std::string::npos) << windows;
}

TEST(JitScatter, ValuesAndBitsWithAnyNumberOfThreads) {
  const int before = num_threads();
  struct Case {
    Shape shape;
    DType dtype;
    int segments;
  };
  for (const Case& c :
       {Case{{3000, 256}, f32, 17}, Case{{2000, 130}, f64, 300}, Case{{900, 1000}, bf16, 5},
        Case{{500, 40, 33}, i32, 9}, Case{{5000}, f32, 11}, Case{{4000, 64}, i8, 3},
        Case{{0, 5}, f32, 4}, Case{{70, 1}, f32, 4}, Case{{4000, 3}, f32, 50},
        Case{{4000, 8}, f32, 3}, Case{{3000, 3}, f64, 7}, Case{{3000, 5}, bf16, 40},
        Case{{3000, 3}, u8, 9}, Case{{2000, 9}, i32, 9}, Case{{900, 5, 3}, f32, 20}}) {
    // Multiples of a quarter: sums are exact in whatever order and precision the executor makes
    // them.
    const Tensor x = is_float(c.dtype) ? vt_test::random_quarters(c.dtype, c.shape, 1)
                                       : random_tensor(c.dtype, c.shape, -4, 4, 1),
                 at = random_tensor(i32, {c.shape[0]}, -1, c.segments, 2);
    const auto f = [&](S t) -> Tensors {
      return {segment_sum(t[0], t[1], c.segments), segment_max(t[0], t[1], c.segments),
              grad([&](Tensor table) { return sum(take(table, t[1], 0).astype(f32)); })(
                  reshape(zeros({c.segments * 8}, f32), {c.segments, 8}))};
    };
    const std::string what = std::string(name_of(c.dtype)) + c.shape.str();
    vt_test::expect_same(f, {x, at}, vt_test::exact, what);
    const std::vector<Aval> avals = {Aval(c.dtype, c.shape), Aval(i32, {c.shape[0]})};
    const Recorded r = record(f, avals, {});
    vt::Vec<BufferRef> inputs = {value_of(x, {}), value_of(at, {})}, first;
    for (const Tensor& t : r.captured) inputs.push_back(value_of(t, {}));
    for (int threads : {1, 2, 7}) {
      set_num_threads(threads);
      const vt::Vec<BufferRef> results = compile_graph(r.graph)->run(inputs);
      if (first.empty()) first = results;
      for (std::size_t i = 0; i < results.size(); ++i)
        EXPECT_EQ(std::memcmp(moved(results[i], vt::cpu())->data, moved(first[i], vt::cpu())->data,
                              r.graph.aval(r.graph.outputs[i]).bytes()),
                  0)
            << what << " result " << i << " with " << threads << " threads";
    }
  }
  set_num_threads(before);
}

// A vector's places may be equal, negative or outside, some of them or all.
TEST(JitScatter, PlacesThatMeetWithinAVector) {
  for (const DType d : {f32, f64, i32, bf16})
    for (const std::int64_t n : {1, 7, 16, 33, 100})
      for (const int least : {0, -5, -9}) {
        const Tensor x = is_float(d) ? vt_test::random_quarters(d, {n}, 3)
                                     : random_tensor(d, {n}, -4, 4, 3),
                     at = random_tensor(i32, {n}, least, least < -5 ? 9 : 4, 4);
        const auto f = [](S t) -> Tensors {
          const Tensor table = zeros({5}, t[0].dtype());
          return {index_add(table, t[1], t[0]), index_max(table, t[1], t[0]),
                  index_update(table, t[1], t[0])};
        };
        vt_test::expect_same(f, {x, at}, vt_test::exact,
                             std::string(name_of(d)) + " " + std::to_string(n));
      }
}

}  // namespace
