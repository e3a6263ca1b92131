// The simplifier on ops that move elements: views, slices, gathers, scatters, reductions and
// products; and on random Graphs.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "simplify_check.hpp"

namespace {
using namespace vt_test;
using enum vt::DType;

/// What `make(b, x)` of an input x becomes.
template <class Make>
std::string of(Shape shape, Make make, DType d = f32) {
  Builder b;
  const Var x = b.input(d, std::move(shape));
  return simple_ops(b, {make(b, x)});
}

// --- order ---------------------------------------------------------------------------------------

TEST(SimplifySort, OneElementAndUnreadOperands) {
  const auto whole = [](int axis, int keys, std::int64_t n) {
    return make_params(SortParams{axis, keys, false, 0, n});
  };
  EXPECT_EQ(of({3, 1}, [&](Builder& b, Var x) { return b.add(Op::sort, whole(1, 1, 1), {x}); }),
            "");
  Builder b;
  const Var x = b.input(f32, {5}), y = b.input(i32, {5}), z = b.input(f64, {5});
  const GraphBody s =
      simplified(b.returns({b.all(Op::sort, whole(0, 2, 5), {x, y, z, b.iota(i32, {5})})[3]}));
  EXPECT_EQ(ops(s), "iota sort");
  EXPECT_EQ(s.equations.back().inputs.size(), 3u);  // both keys and the iota
}

TEST(SimplifySort, SlicesBecomePlacesAndRows) {
  const auto whole = make_params(SortParams{1, 1, false, 0, 6});
  Builder b;
  const Var x = b.input(f32, {4, 6});
  const Var order = b.all(Op::sort, whole, {x, b.iota(i32, {4, 6}, 1)})[1];
  const GraphBody s = simplified(b.returns({b.slice(order, {1, 2}, {4, 5}, {2, 1})}));
  EXPECT_EQ(ops(s), "slice iota sort");
  EXPECT_EQ(describe(s.equations.back().op, s.equations.back().params),
            "sort[axis=1, keys=1, places=2:5]");
  EXPECT_EQ(of({6},
               [](Builder& c, Var v) {  // not if all is wanted as well, or with gaps
                 const Var y = c.with(Op::sort, SortParams{0, 1, false, 0, 6}, {v});
                 return c.with(Op::concatenate, AxisParams{0}, {y, c.slice(y, {0}, {2}, {1})});
               }),
            "sort slice concatenate");
  EXPECT_EQ(of({6},
               [](Builder& c, Var v) {
                 return c.slice(c.with(Op::sort, SortParams{0, 1, false, 0, 6}, {v}), {0}, {6},
                                {2});
               }),
            "sort slice");
}

// --- views ---------------------------------------------------------------------------------------

TEST(SimplifyViews, Reshape) {
  EXPECT_EQ(of({2, 3}, [](Builder& b, Var x) { return b.reshape(x, {2, 3}); }), "");
  EXPECT_EQ(of({2, 3}, [](Builder& b, Var x) { return b.reshape(b.reshape(x, {6}), {3, 2}); }),
            "reshape");
  EXPECT_EQ(of({2, 3}, [](Builder& b, Var x) { return b.reshape(b.reshape(x, {6}), {2, 3}); }), "");
  EXPECT_EQ(
      of({2, 3},
         [](Builder& b, Var x) { return b.reshape(b.add(Op::sin, {b.reshape(x, {6})}), {2, 3}); }),
      "sin");
  EXPECT_EQ(of({}, [](Builder& b, Var x) { return b.reshape(b.broadcast(x, {6}, {}), {3, 2}); }),
            "broadcast_in_dim");
  EXPECT_EQ(of({3}, [](Builder& b,
                       Var x) { return b.reshape(b.broadcast(x, {4, 3}, {1}), {4, 1, 3, 1}); }),
            "broadcast_in_dim");
  EXPECT_EQ(of({1, 3}, [](Builder& b,
                          Var x) { return b.reshape(b.broadcast(x, {4, 1, 3}, {1, 2}), {4, 3}); }),
            "reshape broadcast_in_dim");
  EXPECT_EQ(of({1}, [](Builder& b, Var) { return b.reshape(b.iota(i32, {1, 5, 1}, 1), {5}); }),
            "iota");
  EXPECT_EQ(of({1}, [](Builder& b, Var) { return b.reshape(b.full(2.0, {4, 5}), {20}); }), "full");
  EXPECT_EQ(of({1}, [](Builder& b,
                       Var) { return b.reshape(b.constant<float>({1, 2, 3, 4}, {4}), {2, 2}); }),
            "constant");
}

TEST(SimplifyViews, Transpose) {
  EXPECT_EQ(of({2, 3}, [](Builder& b, Var x) { return b.transpose(x, {0, 1}); }), "");
  EXPECT_EQ(
      of({2, 3}, [](Builder& b, Var x) { return b.transpose(b.transpose(x, {1, 0}), {1, 0}); }),
      "");
  EXPECT_EQ(of({2, 3, 4},
               [](Builder& b, Var x) { return b.transpose(b.transpose(x, {2, 0, 1}), {2, 0, 1}); }),
            "transpose");
  EXPECT_EQ(of({2, 3, 4},
               [](Builder& b, Var x) { return b.transpose(b.transpose(x, {2, 0, 1}), {1, 2, 0}); }),
            "");
  EXPECT_EQ(of({2, 1, 4}, [](Builder& b, Var x) { return b.transpose(x, {1, 0, 2}); }), "reshape");
  EXPECT_EQ(of({2, 0, 4}, [](Builder& b, Var x) { return b.transpose(x, {2, 0, 1}); }), "reshape");
  EXPECT_EQ(
      of({3}, [](Builder& b, Var x) { return b.transpose(b.broadcast(x, {3, 4}, {0}), {1, 0}); }),
      "broadcast_in_dim");
  EXPECT_EQ(
      of({3, 2}, [](Builder& b,
                    Var x) { return b.transpose(b.broadcast(x, {3, 4, 2}, {0, 2}), {2, 1, 0}); }),
      "transpose broadcast_in_dim");
  EXPECT_EQ(of({1}, [](Builder& b, Var) { return b.transpose(b.iota(i32, {3, 4}, 0), {1, 0}); }),
            "iota");
  EXPECT_EQ(of({2, 3},
               [](Builder& b, Var x) {
                 const Var y =
                     b.add(Op::mul, {b.add(Op::exp, {b.transpose(x, {1, 0})}), b.full(2.0f)});
                 return b.transpose(y, {1, 0});
               }),
            "full exp mul");
}

TEST(SimplifyViews, TransposesOfAllOperandsBecomeOne) {
  Builder b;
  const Var x = b.input(f32, {2, 3}), y = b.input(f32, {2, 3});
  EXPECT_EQ(simple_ops(b, {b.add(Op::sub, {b.transpose(x, {1, 0}), b.transpose(y, {1, 0})})}),
            "sub transpose");
  Builder c;  // but not if one is wanted by itself
  const Var u = c.input(f32, {2, 3}), v = c.input(f32, {2, 3}), t = c.transpose(u, {1, 0});
  EXPECT_EQ(simple_ops(c, {c.add(Op::sub, {t, c.transpose(v, {1, 0})}), t}),
            "transpose transpose sub");
}

TEST(SimplifyViews, ViewsInBetweenThatOthersUseStay) {
  Builder b;
  const Var x = b.input(f32, {2, 3}), y = b.add(Op::sin, {b.transpose(x, {1, 0})});
  EXPECT_EQ(simple_ops(b, {b.transpose(y, {1, 0}), y}), "transpose sin transpose");
}

TEST(SimplifyViews, Broadcast) {
  EXPECT_EQ(of({2, 3}, [](Builder& b, Var x) { return b.broadcast(x, {2, 3}, {0, 1}); }), "");
  EXPECT_EQ(of({2, 3}, [](Builder& b, Var x) { return b.broadcast(x, {2, 1, 3}, {0, 2}); }),
            "reshape");
  EXPECT_EQ(
      of({3}, [](Builder& b,
                 Var x) { return b.broadcast(b.broadcast(x, {4, 3}, {1}), {4, 5, 3}, {0, 2}); }),
      "broadcast_in_dim");
  EXPECT_EQ(
      of({3}, [](Builder& b, Var x) { return b.broadcast(b.reshape(x, {3, 1}), {3, 4}, {0, 1}); }),
      "broadcast_in_dim");
  EXPECT_EQ(
      of({3, 1}, [](Builder& b, Var x) { return b.broadcast(b.reshape(x, {3}), {3, 4}, {0}); }),
      "reshape broadcast_in_dim");
  EXPECT_EQ(of({1}, [](Builder& b, Var) { return b.broadcast(b.iota(i32, {4}), {3, 4}, {1}); }),
            "iota");
  EXPECT_EQ(of({0}, [](Builder& b, Var x) { return b.broadcast(x, {3, 0}, {1}); }), "reshape");
}

TEST(SimplifyViews, Concatenate) {
  const auto cat = [](Builder& b, vt::Vec<Var> parts, int axis) {
    return b.with(Op::concatenate, AxisParams{axis}, parts);
  };
  EXPECT_EQ(of({4}, [&](Builder& b, Var x) { return cat(b, {x}, 0); }), "");
  EXPECT_EQ(of({4}, [&](Builder& b, Var x) { return cat(b, {b.slice(x, {0}, {0}, {1}), x}, 0); }),
            "");
  EXPECT_EQ(of({4},
               [&](Builder& b, Var x) {
                 return cat(b, {b.slice(x, {0}, {1}, {1}), b.slice(x, {1}, {4}, {1})}, 0);
               }),
            "");
  EXPECT_EQ(of({9},
               [&](Builder& b, Var x) {
                 return cat(b, {b.slice(x, {0}, {3}, {2}), b.slice(x, {4}, {9}, {2})}, 0);
               }),
            "slice");
  EXPECT_EQ(of({4},
               [&](Builder& b, Var x) {
                 return cat(b, {b.slice(x, {1}, {4}, {1}), b.slice(x, {0}, {1}, {1})}, 0);
               }),
            "slice slice concatenate");
  EXPECT_EQ(of({4, 2},
               [&](Builder& b, Var x) {
                 return cat(
                     b, {b.slice(x, {0, 0}, {4, 1}, {1, 1}), b.slice(x, {0, 1}, {4, 2}, {1, 1})},
                     1);
               }),
            "");
  EXPECT_EQ(of({4}, [&](Builder& b, Var x) { return cat(b, {cat(b, {x, x}, 0), x}, 0); }),
            "concatenate");
  EXPECT_EQ(of({4}, [&](Builder& b,
                        Var x) { return cat(b, {b.full(1.0f, {2}), b.full(1.0f, {3}), x}, 0); }),
            "full concatenate");
  EXPECT_EQ(of({0}, [&](Builder& b, Var x) { return cat(b, {x, x}, 0); }), "");
}

TEST(SimplifyViews, Pad) {
  const auto pad = [](Builder& b, Var x, Shape l, Shape h, Shape i, float v = 0) {
    return b.with(Op::pad, PadParams{l, h, i}, {x, b.full(v)});
  };
  EXPECT_EQ(of({4}, [&](Builder& b, Var x) { return pad(b, x, {0}, {0}, {0}); }), "");
  EXPECT_EQ(of({1}, [&](Builder& b, Var x) { return pad(b, x, {0}, {0}, {3}); }), "");
  EXPECT_EQ(of({4}, [&](Builder& b, Var x) { return pad(b, x, {-1}, {-1}, {0}); }), "slice");
  EXPECT_EQ(
      of({4}, [&](Builder& b, Var x) { return pad(b, pad(b, x, {1}, {0}, {0}), {1}, {2}, {0}); }),
      "full pad");
  EXPECT_EQ(of({4}, [&](Builder& b,
                        Var x) { return pad(b, pad(b, x, {1}, {0}, {0}), {1}, {2}, {0}, 1); }),
            "full pad full pad");
  EXPECT_EQ(of({4}, [&](Builder& b, Var) { return pad(b, b.full(0.0f, {3}), {1}, {1}, {2}); }),
            "full");
  EXPECT_EQ(of({4}, [&](Builder& b, Var) { return pad(b, b.full(-0.0f, {3}), {1}, {1}, {2}); }),
            "full full pad");
  EXPECT_EQ(of({0}, [&](Builder& b, Var x) { return pad(b, x, {1}, {1}, {0}, 5); }), "full");
}

TEST(SimplifyViews, Rev) {
  const auto rev = [](Builder& b, Var x, Axes a) { return b.with(Op::rev, AxesParams{a}, {x}); };
  EXPECT_EQ(of({3, 2}, [&](Builder& b, Var x) { return rev(b, x, {}); }), "");
  EXPECT_EQ(of({3, 1}, [&](Builder& b, Var x) { return rev(b, x, {1}); }), "");
  EXPECT_EQ(of({3, 2}, [&](Builder& b, Var x) { return rev(b, rev(b, x, {0, 1}), {0, 1}); }), "");
  EXPECT_EQ(of({3, 2}, [&](Builder& b, Var x) { return rev(b, rev(b, x, {0}), {1}); }), "rev");
  EXPECT_EQ(of({3}, [&](Builder& b, Var x) { return rev(b, b.broadcast(x, {4, 3}, {1}), {0}); }),
            "broadcast_in_dim");
  EXPECT_EQ(of({3}, [&](Builder& b, Var x) { return rev(b, b.broadcast(x, {4, 3}, {1}), {0, 1}); }),
            "rev broadcast_in_dim");
}

// --- slices --------------------------------------------------------------------------------------

TEST(SimplifySlices, Slice) {
  EXPECT_EQ(of({4, 3}, [](Builder& b, Var x) { return b.slice(x, {0, 0}, {4, 3}, {1, 1}); }), "");
  EXPECT_EQ(
      of({9}, [](Builder& b, Var x) { return b.slice(b.slice(x, {1}, {9}, {2}), {1}, {4}, {2}); }),
      "slice");
  EXPECT_EQ(
      of({9}, [](Builder& b, Var x) { return b.slice(b.slice(x, {1}, {9}, {2}), {4}, {4}, {1}); }),
      "slice");
  EXPECT_EQ(of({4, 3},
               [](Builder& b, Var x) {
                 return b.slice(b.broadcast(x, {5, 4, 3}, {1, 2}), {2, 1, 0}, {4, 2, 3}, {1, 1, 1});
               }),
            "slice broadcast_in_dim");
  EXPECT_EQ(of({4, 3},
               [](Builder& b, Var x) {
                 return b.slice(b.broadcast(x, {5, 4, 3}, {1, 2}), {2, 0, 0}, {3, 4, 3}, {1, 1, 1});
               }),
            "reshape");
  EXPECT_EQ(
      of({4, 3},
         [](Builder& b, Var x) { return b.slice(b.transpose(x, {1, 0}), {1, 0}, {3, 2}, {1, 1}); }),
      "slice transpose");
  EXPECT_EQ(of({4, 3},
               [](Builder& b, Var x) {  // x[1][2]
                 const Var row = b.reshape(b.slice(x, {1, 0}, {2, 3}, {1, 1}), {3});
                 return b.reshape(b.slice(row, {2}, {3}, {1}), {});
               }),
            "slice reshape");
  EXPECT_EQ(of({4},
               [](Builder& b, Var x) {
                 return b.slice(b.with(Op::concatenate, AxisParams{0}, {x, b.full(1.0f, {2}), x}),
                                {6}, {9}, {1});
               }),
            "slice");
  EXPECT_EQ(of({4},
               [](Builder& b, Var x) {
                 return b.slice(b.with(Op::pad, PadParams{{2}, {3}, {0}}, {x, b.full(0.0f)}), {2},
                                {6}, {1});
               }),
            "");
  EXPECT_EQ(of({4},
               [](Builder& b, Var x) {
                 return b.slice(b.with(Op::pad, PadParams{{2}, {3}, {0}}, {x, b.full(0.0f)}), {6},
                                {9}, {1});
               }),
            "full");
  EXPECT_EQ(of({4},
               [](Builder& b, Var x) {
                 return b.slice(b.with(Op::pad, PadParams{{2}, {3}, {0}}, {x, b.full(0.0f)}), {1},
                                {6}, {1});
               }),
            "full pad slice");
  EXPECT_EQ(of({4}, [](Builder& b, Var x) { return b.slice(b.add(Op::exp, {x}), {1}, {2}, {1}); }),
            "slice exp");
  EXPECT_EQ(of({1}, [](Builder& b,
                       Var) { return b.slice(b.iota(i32, {9, 9}, 1), {3, 0}, {5, 4}, {1, 1}); }),
            "iota");
  EXPECT_EQ(of({7}, [](Builder& b, Var x) { return b.slice(x, {1}, {2}, {5}); }), "slice");
}

TEST(SimplifySlices, Dynamic) {
  const auto slice = [](Builder& b, Var x, Shape sizes, vt::Vec<Var> starts) {
    starts.insert(starts.begin(), x);
    return b.with(Op::dynamic_slice, ShapeParams{sizes}, starts);
  };
  EXPECT_EQ(of({4}, [&](Builder& b, Var x) { return slice(b, x, {2}, {b.full(1)}); }), "slice");
  EXPECT_EQ(of({4}, [&](Builder& b, Var x) { return slice(b, x, {2}, {b.full(9)}); }), "slice");
  EXPECT_EQ(of({4}, [&](Builder& b, Var x) { return slice(b, x, {2}, {b.full(-9)}); }), "slice");
  Builder b;
  const Var x = b.input(f32, {4, 3}), i = b.input(i32, {});
  EXPECT_EQ(simple_ops(b, {slice(b, x, {4, 3}, {i, i}), slice(b, x, {4, 2}, {i, b.full(1)}),
                           slice(b, x, {2, 3}, {i, i})}),
            "slice dynamic_slice");
  Builder c;
  const Var y = c.input(f32, {4}), u = c.input(f32, {4}), j = c.input(i32, {}),
            nothing = c.input(f32, {0});
  EXPECT_EQ(simple_ops(c, {c.add(Op::dynamic_update_slice, {y, u, j}),
                           c.add(Op::dynamic_update_slice, {y, nothing, j})}),
            "");
}

// --- gather and scatter --------------------------------------------------------------------------

GatherParams take_params(Shape slice_sizes, int axis, Axes offset_dims) {
  GatherParams p;
  p.offset_dims = std::move(offset_dims);
  p.collapsed_slice_dims = {axis};
  p.start_index_map = {axis};
  p.slice_sizes = std::move(slice_sizes);
  p.slice_sizes[axis] = 1;
  return p;
}

TEST(SimplifyGather, ByTheLoopIndexIsTheIdentity) {
  EXPECT_EQ(of({5, 3},
               [](Builder& b, Var x) {
                 return b.with(Op::gather, take_params({5, 3}, 0, {1}),
                               {x, b.reshape(b.iota(i32, {5}), {5, 1})});
               }),
            "");
  // As `x[i]` writes it: negative indices count from the end.
  EXPECT_EQ(of({5, 3},
               [](Builder& b, Var x) {
                 const Var i = b.iota(i32, {5});
                 const Var wrapped = b.add(Op::select, {b.add(Op::lt, {i, b.full(0)}),
                                                        b.add(Op::add, {i, b.full(5)}), i});
                 return b.with(Op::gather, take_params({5, 3}, 0, {1}),
                               {x, b.broadcast(wrapped, {5, 1}, {0})});
               }),
            "");
}

TEST(SimplifyGather, ByCountingIsASlice) {
  const auto take = [](Shape shape, int axis, Axes offset_dims, auto indices) {
    return of(shape, [=](Builder& b, Var x) {
      return b.with(Op::gather, take_params(shape, axis, offset_dims), {x, indices(b)});
    });
  };
  const auto count = [](std::int64_t n, int start, int step) {
    return [=](Builder& b) {
      return b.reshape(
          b.add(Op::add, {b.add(Op::mul, {b.iota(i32, {n}), b.full(step)}), b.full(start)}),
          {n, 1});
    };
  };
  EXPECT_EQ(take({5, 3}, 0, {1}, count(3, 1, 1)), "slice");
  EXPECT_EQ(take({5, 3}, 0, {1}, count(2, 1, 2)), "slice");
  EXPECT_EQ(take({5, 3}, 0, {1}, count(5, 4, -1)), "rev");
  EXPECT_EQ(take({5, 3}, 0, {1}, count(2, 4, -2)), "slice rev");
  EXPECT_EQ(take({5, 3}, 1, {0}, count(3, 0, 1)), "");
  EXPECT_EQ(take({5, 3}, 1, {1}, count(3, 0, 1)), "transpose");
  // clips at the edge
  EXPECT_EQ(take({5, 3}, 0, {1}, count(4, 3, 1)).find("gather") != std::string::npos, true);
  // Repeated over a second index axis.
  EXPECT_EQ(
      take({5, 3}, 0, {2}, [](Builder& b) { return b.reshape(b.iota(i32, {4, 5}, 1), {4, 5, 1}); }),
      "broadcast_in_dim");
  EXPECT_EQ(
      take({5, 3}, 0, {1}, [](Builder& b) { return b.constant<std::int32_t>({1, 3}, {2, 1}); }),
      "slice");
  EXPECT_EQ(
      take({5, 3}, 0, {1}, [](Builder& b) { return b.constant<std::int32_t>({1, 3, 4}, {3, 1}); }),
      "constant gather");
  EXPECT_EQ(take({5, 3}, 0, {1}, [](Builder& b) { return b.full(2, {4, 1}); }),
            "slice reshape broadcast_in_dim");
  EXPECT_EQ(take({5, 3}, 0, {1}, [](Builder& b) { return b.full(2, {0, 1}); }), "full");
}

TEST(SimplifyGather, SeveralComponentsAndBatchAxes) {
  // x[b, i[b], :] with i counting along b: batching axes and a counting one cannot both follow one
  // axis.
  GatherParams p;
  p.offset_dims = {1};
  p.collapsed_slice_dims = {1};
  p.start_index_map = {1};
  p.operand_batching_dims = {0};
  p.indices_batching_dims = {0};
  p.slice_sizes = {1, 1, 3};
  EXPECT_NE(of({4, 4, 3},
               [&](Builder& b, Var x) {
                 return b.with(Op::gather, p, {x, b.reshape(b.iota(i32, {4}), {4, 1})});
               })
                .find("gather"),
            std::string::npos);
  EXPECT_EQ(of({4, 4, 3},
               [&](Builder& b, Var x) { return b.with(Op::gather, p, {x, b.full(2, {4, 1})}); }),
            "slice reshape");
  // take_along_axis by counting: index vectors (i0, i1).
  GatherParams q;
  q.collapsed_slice_dims = {0, 1};
  q.start_index_map = {0, 1};
  q.slice_sizes = {1, 1};
  const auto vectors = [](Builder& b, Var i, Var j) {
    return b.with(Op::concatenate, AxisParams{2},
                  {b.reshape(i, {4, 3, 1}), b.reshape(j, {4, 3, 1})});
  };
  EXPECT_EQ(of({4, 3},
               [&](Builder& b, Var x) {
                 return b.with(Op::gather, q,
                               {x, vectors(b, b.iota(i32, {4, 3}, 0), b.iota(i32, {4, 3}, 1))});
               }),
            "");
  EXPECT_EQ(of({4, 4},
               [&](Builder& b, Var x) {
                 return b.with(Op::gather, q,
                               {x, vectors(b, b.iota(i32, {4, 3}, 1), b.iota(i32, {4, 3}, 0))});
               }),
            "slice transpose");
  EXPECT_NE(of({4, 4},
               [&](Builder& b, Var x) {
                 return b.with(Op::gather, q,
                               {x, vectors(b, b.iota(i32, {4, 3}, 0), b.iota(i32, {4, 3}, 0))});
               })
                .find("gather"),
            std::string::npos);
}

TEST(SimplifyGather, FillReadsZeroOutOfRange) {
  GatherParams p = take_params({5, 3}, 0, {1});
  p.mode = IndexMode::fill;
  EXPECT_EQ(
      of({5, 3}, [&](Builder& b, Var x) { return b.with(Op::gather, p, {x, b.full(7, {2, 1})}); }),
      "full");
  EXPECT_EQ(
      of({5, 3}, [&](Builder& b, Var x) { return b.with(Op::gather, p, {x, b.full(4, {1, 1})}); }),
      "slice");
}

TEST(SimplifyScatter, ByCounting) {
  ScatterParams p;
  p.update_window_dims = {1};
  p.inserted_window_dims = {0};
  p.scatter_dims_to_operand_dims = {0};
  const auto scatter = [&](Op op, std::int64_t n, int start, int step, bool into_zeros) {
    Builder b;
    const Var x = b.input(f32, {5, 3}), u = b.input(f32, {n, 3});
    const Var i = b.reshape(
        b.add(Op::add, {b.add(Op::mul, {b.iota(i32, {n}), b.full(step)}), b.full(start)}), {n, 1});
    return simple_ops(b, {b.with(op, p, {into_zeros ? b.full(0.0f, {5, 3}) : x, i, u})});
  };
  EXPECT_EQ(scatter(Op::scatter, 5, 0, 1, false), "");
  EXPECT_EQ(scatter(Op::scatter, 5, 4, -1, false), "rev");
  EXPECT_EQ(scatter(Op::scatter_add, 5, 0, 1, false), "add");
  EXPECT_EQ(scatter(Op::scatter_add, 5, 0, 1, true), "full add");
  EXPECT_EQ(scatter(Op::scatter_mul, 5, 0, 1, false), "mul");
  EXPECT_EQ(scatter(Op::scatter_min, 5, 0, 1, false), "min");
  EXPECT_EQ(scatter(Op::scatter_max, 5, 0, 1, false), "max");
  EXPECT_EQ(scatter(Op::scatter_add, 3, 1, 1, true), "full add pad");
  EXPECT_EQ(scatter(Op::scatter_add, 3, 0, 2, true), "full add pad");
  EXPECT_EQ(scatter(Op::scatter, 2, 3, -2, true), "rev full pad");
  EXPECT_EQ(scatter(Op::scatter_add, 3, 1, 1, false), "slice add full full dynamic_update_slice");
  EXPECT_NE(scatter(Op::scatter_add, 3, 0, 2, false).find("scatter_add"), std::string::npos);
  // one is out of range
  EXPECT_NE(scatter(Op::scatter_add, 3, 3, 1, false).find("scatter_add"), std::string::npos);
  // thrice the same row
  EXPECT_NE(scatter(Op::scatter_add, 3, 2, 0, false).find("scatter_add"), std::string::npos);
  EXPECT_EQ(scatter(Op::scatter_add, 0, 2, 1, false), "");
  EXPECT_EQ(scatter(Op::scatter_add, 1, 9, 0, false), "");  // dropped
  EXPECT_EQ(scatter(Op::scatter_add, 1, 2, 0, false), "slice add full full dynamic_update_slice");
}

// --- reductions and products ---------------------------------------------------------------------

TEST(SimplifyReductions, OneElementOrNone) {
  const auto reduce = [](Op op, Shape shape, Axes axes, DType d = f32) {
    return of(
        std::move(shape), [=](Builder& b, Var x) { return b.with(op, AxesParams{axes}, {x}); }, d);
  };
  EXPECT_EQ(reduce(Op::reduce_max, {3}, {}), "");
  EXPECT_EQ(reduce(Op::reduce_max, {3, 1}, {1}), "reshape");
  EXPECT_EQ(reduce(Op::reduce_sum, {3, 1}, {1}, i32), "reshape");
  EXPECT_EQ(reduce(Op::reduce_sum, {3, 1}, {1}), "reshape full add");  // −0.0 becomes 0.0
  EXPECT_EQ(reduce(Op::reduce_prod, {3, 1}, {1}), "reshape");
  EXPECT_EQ(
      of({3, 1}, [](Builder& b, Var x) { return b.with(Op::argmax, ArgParams{1, i32}, {x}); }),
      "full");
  EXPECT_EQ(of({3, 1}, [](Builder& b,
                          Var x) { return b.with(Op::cumprod, CumulativeParams{1, false}, {x}); }),
            "");
  EXPECT_EQ(of({3, 1}, [](Builder& b,
                          Var x) { return b.with(Op::cumsum, CumulativeParams{1, false}, {x}); }),
            "full add");
}

TEST(SimplifyReductions, LookThroughViews) {
  const auto sum = [](Builder& b, Var x, Axes axes, Op op = Op::reduce_sum) {
    return b.with(op, AxesParams{axes}, {x});
  };
  EXPECT_EQ(of({2, 3}, [&](Builder& b, Var x) { return sum(b, b.transpose(x, {1, 0}), {0}); }),
            "reduce_sum");
  // the order of adding
  EXPECT_EQ(of({2, 3}, [&](Builder& b, Var x) { return sum(b, b.transpose(x, {1, 0}), {0, 1}); }),
            "transpose reduce_sum");
  EXPECT_EQ(
      of(
          {2, 3}, [&](Builder& b, Var x) { return sum(b, b.transpose(x, {1, 0}), {0, 1}); }, i32),
      "reduce_sum");
  EXPECT_EQ(
      of({2, 3, 4}, [&](Builder& b, Var x) { return sum(b, b.transpose(x, {2, 1, 0}), {1}); }),
      "reduce_sum transpose");
  EXPECT_EQ(of({2, 3}, [&](Builder& b, Var x) { return sum(b, b.reshape(x, {2, 1, 3}), {1, 2}); }),
            "reduce_sum");
  EXPECT_EQ(of({2, 3}, [&](Builder& b, Var x) { return sum(b, b.reshape(x, {2, 1, 3}), {0}); }),
            "reduce_sum reshape");
  EXPECT_EQ(of({3}, [&](Builder& b, Var x) { return sum(b, b.broadcast(x, {4, 3}, {1}), {1}); }),
            "reduce_sum broadcast_in_dim");
  EXPECT_EQ(of({3}, [&](Builder& b, Var x) { return sum(b, b.broadcast(x, {4, 3}, {1}), {0}); }),
            "broadcast_in_dim reduce_sum");
  EXPECT_EQ(
      of({3}, [&](Builder& b,
                  Var x) { return sum(b, b.broadcast(x, {4, 3}, {1}), {0}, Op::reduce_max); }),
      "");
  EXPECT_EQ(
      of({3}, [&](Builder& b,
                  Var x) { return sum(b, b.broadcast(x, {4, 3}, {1}), {0, 1}, Op::reduce_min); }),
      "reduce_min");
  EXPECT_EQ(
      of({3, 1}, [&](Builder& b, Var x) { return sum(b, b.broadcast(x, {3, 4}, {0, 1}), {0}); }),
      "reduce_sum broadcast_in_dim");
}

TEST(SimplifyReductions, OfOneNumber) {
  const auto sum = [](auto v, Shape s, Op op = Op::reduce_sum) {
    return of({1},
              [=](Builder& b, Var) { return b.with(op, AxesParams{Axes{0}}, {b.full(v, s)}); });
  };
  EXPECT_EQ(sum(1.0f, {1000}), "full");
  EXPECT_EQ(sum(-0.0f, {1000}), "full");
  EXPECT_EQ(sum(3, {1000}), "full");
  EXPECT_EQ(sum(std::int8_t{100}, {3, 2}), "full reduce_sum");  // wraps
  EXPECT_EQ(sum(0.1f, {1000, 2}), "full reduce_sum");
  EXPECT_EQ(sum(vt::Float16(1.0f), {70000}), "full");
  EXPECT_EQ(sum(0.5f, {7}, Op::reduce_max), "full");
  EXPECT_EQ(sum(true, {7}, Op::reduce_all), "full");
  EXPECT_EQ(sum(0.5f, {0}), "full");
}

TEST(SimplifyDot, TransposesAreFoldedIn) {
  const auto dot = [](Builder& b, Var x, Var y, Axes lc, Axes rc, Axes lb = {}, Axes rb = {}) {
    return b.with(Op::dot_general, DotParams{lc, rc, lb, rb, f32}, {x, y});
  };
  Builder b;
  const Var x = b.input(f32, {2, 3}), y = b.input(f32, {4, 2});
  const GraphBody g =
      simplified(b.returns({dot(b, b.transpose(x, {1, 0}), b.transpose(y, {1, 0}), {1}, {0})}));
  EXPECT_EQ(to_text(g),
            "{ lambda a:f32[2,3] b:f32[4,2] .\n"
            "  let c:f32[3,4] = dot_general[contract=(0,)·(1,)] a b\n"
            "  in (c) }");
  Builder c;
  const Var u = c.input(f32, {2, 3, 5}), v = c.input(f32, {5, 3, 4});
  EXPECT_EQ(simple_ops(c, {dot(c, c.transpose(u, {1, 0, 2}), c.transpose(v, {1, 0, 2}), {2}, {1},
                               {0}, {0})}),
            "dot_general");
  // its free axes are exchanged
  EXPECT_EQ(simple_ops(c, {dot(c, c.transpose(u, {2, 1, 0}), v, {0}, {0})}),
            "transpose dot_general");
  Builder d;
  const Var s = d.input(f32, {2, 3}), t = d.input(f32, {3, 4});
  EXPECT_EQ(simple_ops(d, {d.transpose(dot(d, s, t, {1}, {0}), {1, 0})}), "dot_general");
  Builder e;
  const Var m = e.input(f32, {7, 2, 3}), n = e.input(f32, {7, 3, 4});
  EXPECT_EQ(simple_ops(e, {e.transpose(dot(e, m, n, {2}, {1}, {0}, {0}), {0, 2, 1})}),
            "dot_general");
  EXPECT_EQ(simple_ops(e, {e.transpose(dot(e, m, n, {2}, {1}, {0}, {0}), {1, 0, 2})}),
            "dot_general transpose");
  Builder f;
  const Var nothing = f.input(f32, {2, 0});
  EXPECT_EQ(simple_ops(f, {dot(f, nothing, nothing, {1}, {1})}), "full");
}

// --- random Graphs -------------------------------------------------------------------------------

/// A random Graph over small shapes that is full of what the rules look for.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {}

  GraphBody make(int equations) {
    const DType dtypes[] = {f32, f32, i32, f16, bool_, f64};
    for (int k = 0; k < 3; ++k) values_.push_back(b_.input(dtypes[pick(6)], random_shape()));
    values_.push_back(b_.full(1.0f));
    values_.push_back(b_.full(0));
    values_.push_back(b_.full(-0.0f, {2, 3}));
    values_.push_back(b_.iota(i32, {4}));
    for (int tries = 0, made = 0; made < equations && tries < 40 * equations; ++tries) {
      try {
        const Var v = step();
        if (b_.graph.aval(v).elements() > 400) continue;
        values_.push_back(v);
        ++made;
      } catch (const vt::Error&) {
        // Operands that do not fit: try others.
      }
    }
    vt::Vec<Var> results;
    for (int k = 0; k < 4; ++k)
      results.push_back(values_[values_.size() - 1 -
                                static_cast<std::size_t>(pick(
                                    static_cast<int>(std::min<std::size_t>(8, values_.size()))))]);
    return b_.returns(results);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Var any() {
    return values_[values_.size() - 1 -
                   static_cast<std::size_t>(
                       pick(static_cast<int>(std::min<std::size_t>(10, values_.size()))))];
  }
  Shape random_shape() {
    const Shape shapes[] = {{},     {3},       {4},    {2, 3}, {3, 4},
                            {1, 3}, {2, 1, 3}, {3, 2}, {4, 4}, {0, 3}};
    return shapes[pick(10)];
  }
  Axes random_axes(int rank) {
    Axes axes;
    for (int a = 0; a < rank; ++a)
      if (pick(2)) axes.push_back(a);
    return axes;
  }

  Var step() {
    const Var x = any();
    const Shape s = b_.graph.aval(x).shape;
    const int rank = s.rank();
    switch (pick(20)) {
      case 0:
      case 1: {
        const Op ops[] = {Op::neg,  Op::abs,           Op::sign,   Op::floor, Op::sin,
                          Op::not_, Op::stop_gradient, Op::is_nan, Op::round};
        return b_.add(ops[pick(9)], {x});
      }
      case 2:
      case 3:
      case 4:
      case 5: {
        const Op ops[] = {Op::add, Op::sub, Op::mul,  Op::div, Op::max,  Op::min, Op::eq,
                          Op::lt,  Op::ge,  Op::and_, Op::or_, Op::xor_, Op::pow, Op::rem};
        return b_.add(ops[pick(14)], {x, any()});
      }
      case 6: return b_.add(Op::select, {any(), x, any()});
      case 7: return b_.convert(x, static_cast<DType>(pick(vt::real_dtype_count)));
      case 8: {
        Axes p = Axes::first(rank);
        std::shuffle(p.begin(), p.end(), random_);
        return b_.transpose(x, p);
      }
      case 9: {
        Shape to = s;
        if (pick(2)) to.insert(to.begin() + pick(rank + 1), 1);
        else std::reverse(to.begin(), to.end());
        return b_.reshape(x, to);
      }
      case 10: {
        Shape to;
        Axes axes;
        for (int a = 0; a < rank; ++a) {
          if (pick(3) == 0) to.push_back(2);
          axes.push_back(to.rank());
          to.push_back(s[a] == 1 && pick(2) ? 3 : s[a]);
        }
        if (pick(2)) to.push_back(3);
        return b_.broadcast(x, to, axes);
      }
      case 11:
      case 12: {
        Shape start, limit, stride;
        for (std::int64_t d : s) {
          start.push_back(pick(static_cast<int>(d) + 1));
          limit.push_back(start.back() + pick(static_cast<int>(d - start.back()) + 1));
          stride.push_back(1 + pick(2));
        }
        return b_.slice(x, start, limit, stride);
      }
      case 13: {
        const Op ops[] = {Op::reduce_sum, Op::reduce_prod, Op::reduce_max, Op::reduce_min,
                          Op::reduce_any};
        return b_.with(ops[pick(5)], AxesParams{random_axes(rank)}, {x});
      }
      case 14: return b_.with(Op::rev, AxesParams{random_axes(rank)}, {x});
      case 15:
        return b_.with(Op::concatenate, AxisParams{pick(std::max(1, rank))}, {x, any(), any()});
      case 16: {
        PadParams p;
        for (int a = 0; a < rank; ++a) {
          p.low.push_back(pick(4) - 1);
          p.high.push_back(pick(4) - 1);
          p.interior.push_back(pick(4) == 0);
        }
        return b_.with(Op::pad, p, {x, any()});
      }
      case 17: {
        if (rank < 1) return b_.add(Op::neg, {x});
        GatherParams p;
        p.collapsed_slice_dims = {0};
        p.start_index_map = {0};
        p.slice_sizes = s;
        p.slice_sizes[0] = 1;
        for (int a = 1; a < rank; ++a) p.offset_dims.push_back(a);
        p.mode = pick(2) ? IndexMode::clip : IndexMode::fill;
        const Var i = b_.add(Op::add, {b_.add(Op::mul, {b_.iota(i32, {3}), b_.full(pick(3) - 1)}),
                                       b_.full(pick(4))});
        return b_.with(Op::gather, p, {x, b_.reshape(i, {3, 1})});
      }
      case 18: {
        if (rank < 1) return b_.add(Op::abs, {x});
        ScatterParams p;
        p.inserted_window_dims = {0};
        p.scatter_dims_to_operand_dims = {0};
        for (int a = 1; a < rank; ++a) p.update_window_dims.push_back(a);
        const Op ops[] = {Op::scatter, Op::scatter_add, Op::scatter_mul, Op::scatter_min,
                          Op::scatter_max};
        const Var u = any();
        const std::int64_t n = b_.graph.aval(u).shape.empty() ? 1 : b_.graph.aval(u).shape[0];
        const Var i = b_.add(Op::add, {b_.add(Op::mul, {b_.iota(i32, {n}), b_.full(pick(3) - 1)}),
                                       b_.full(pick(4))});
        return b_.with(ops[pick(5)], p, {x, b_.reshape(i, {n, 1}), u});
      }
      default: {
        DotParams p;
        p.dtype = b_.graph.aval(x).dtype;
        if (rank > 0 && pick(3)) p.lhs_contract = p.rhs_contract = {pick(rank)};
        return b_.with(Op::dot_general, p, {x, any()});
      }
    }
  }

  std::mt19937 random_;
  Builder b_;
  vt::Vec<Var> values_;
};

TEST(Simplify, RandomGraphsKeepEveryBit) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    simplified(RandomGraph(seed).make(20), seed);
    if (HasFailure()) return;
  }
}

}  // namespace
