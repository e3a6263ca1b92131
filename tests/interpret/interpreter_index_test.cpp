// Ops that move elements (shape, slices, gather, scatter) against their definitions, written per
// result element over multi-indices.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "support/run_op.hpp"

namespace {

using vt::Axes;
using vt::DType;
using vt::Shape;
using vt::Tensor;
using vt_test::make_tensor;
using vt_test::run_op;
using namespace vt::detail;

using Index = std::vector<std::int64_t>;

Index unravel(std::int64_t flat, const Shape& shape) {
  Index index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}
std::size_t ravel(const Index& index, const Shape& shape) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return static_cast<std::size_t>(flat);
}

/// Checks every element of `y` against element `source(index of y)` of `x`; an empty index stands
/// for `otherwise`.
void expect_moved(const Tensor& y, const Tensor& x,
                  const std::function<std::optional<Index>(const Index&)>& source,
                  double otherwise = 0) {
  ASSERT_EQ(y.dtype(), x.dtype());
  const auto in = x.to_vector<double>(), out = y.to_vector<double>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto from = source(unravel(static_cast<std::int64_t>(i), y.shape()));
    ASSERT_EQ(out[i], from ? in[ravel(*from, x.shape())] : otherwise)
        << "element " << vt_test::index_text(static_cast<std::int64_t>(i), y.shape());
  }
}

/// Distinct numbers where the dtype can hold that many.
Tensor numbered(DType dtype, const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        vt::is_bool(dtype) ? static_cast<double>(i * 7 % 3 == 0) : static_cast<double>(i % 120 + 1);
  return make_tensor(dtype, shape, values);
}

const std::vector<Shape> shapes = {{},     {0},     {1},       {3},          {17},        {2, 3},
                                   {3, 0}, {1, 17}, {2, 3, 4}, {2, 1, 0, 3}, {2, 1, 3, 2}};

TEST(InterpreterShape, Transpose) {
  for (DType dtype : vt_test::all_dtypes)
    for (const Shape& shape : shapes) {
      std::vector<int> p(shape.size());
      for (std::size_t i = 0; i < p.size(); ++i) p[i] = static_cast<int>(i);
      do {
        const Tensor x = numbered(dtype, shape),
                     y = run_op(Op::transpose, PermutationParams{Axes(p)}, {x});
        expect_moved(y, x, [&](const Index& i) {
          Index from(i.size());
          for (std::size_t k = 0; k < i.size(); ++k) from[p[k]] = i[k];
          return from;
        });
      } while (std::next_permutation(p.begin(), p.end()));
    }
}

TEST(InterpreterShape, ReshapeSharesTheBuffer) {
  const Tensor x = numbered(vt::i16, {2, 3}), y = run_op(Op::reshape, ShapeParams{{3, 1, 2}}, {x});
  EXPECT_EQ(y.shape(), (Shape{3, 1, 2}));
  EXPECT_EQ(y.data<std::int16_t>().data(), x.data<std::int16_t>().data());
}

TEST(InterpreterShape, BroadcastInDim) {
  struct Row {
    Shape from, to;
    Axes axes;
  };
  const Row rows[] = {{{}, {2, 3}, {}},         {{3}, {2, 3}, {1}}, {{2}, {2, 3}, {0}},
                      {{1}, {4}, {0}},          {{}, {}, {}},       {{2, 1}, {2, 5, 3}, {0, 2}},
                      {{1, 3}, {0, 3}, {0, 1}}, {{0}, {2, 0}, {1}}, {{17}, {17, 17}, {0}},
                      {{1, 1}, {3, 1}, {0, 1}}, {{}, {0}, {}}};
  for (DType dtype : vt_test::all_dtypes)
    for (const Row& row : rows) {
      const Tensor x = numbered(dtype, row.from),
                   y = run_op(Op::broadcast_in_dim, BroadcastParams{row.to, row.axes}, {x});
      ASSERT_EQ(y.shape(), row.to);
      expect_moved(y, x, [&](const Index& i) {
        Index from;
        for (std::size_t k = 0; k < row.from.size(); ++k)
          from.push_back(row.from[k] == 1 ? 0 : i[row.axes[k]]);
        return from;
      });
    }
}

TEST(InterpreterShape, Concatenate) {
  for (DType dtype : vt_test::all_dtypes)
    for (int axis : {0, 1, 2})
      for (const std::vector<std::int64_t>& extents :
           {std::vector<std::int64_t>{2}, {1, 3}, {0, 2, 17}, {0, 0}}) {
        std::vector<Tensor> parts;
        std::int64_t total = 0;
        for (std::int64_t e : extents) {
          Shape shape{2, 3, 2};
          shape[axis] = e;
          parts.push_back(numbered(dtype, shape));
          total += e;
        }
        const Tensor y = run_op(Op::concatenate, AxisParams{axis}, parts);
        ASSERT_EQ(y.dim(axis), total);
        const auto out = y.to_vector<double>();
        for (std::size_t f = 0; f < out.size(); ++f) {
          Index i = unravel(static_cast<std::int64_t>(f), y.shape());
          std::size_t part = 0;
          std::int64_t& along = i[axis];
          while (along >= extents[part]) along -= extents[part++];
          ASSERT_EQ(out[f], parts[part].to_vector<double>()[ravel(i, parts[part].shape())]);
        }
      }
  const Tensor nothing = run_op(Op::concatenate, AxisParams{1},
                                {numbered(vt::f32, {0, 2}), numbered(vt::f32, {0, 3})});
  EXPECT_EQ(nothing.shape(), (Shape{0, 5}));
}

TEST(InterpreterShape, PadCropsAndSpreads) {
  for (DType dtype : vt_test::all_dtypes) {
    const Tensor fill = make_tensor(dtype, {}, {1});
    auto check = [&](const Shape& shape, const Shape& low, const Shape& high,
                     const Shape& interior) {
      const Tensor x = numbered(dtype, shape),
                   y = run_op(Op::pad, PadParams{low, high, interior}, {x, fill});
      for (std::size_t a = 0; a < shape.size(); ++a)
        ASSERT_EQ(y.shape()[a], low[a] + high[a] + shape[a] +
                                    std::max<std::int64_t>(shape[a] - 1, 0) * interior[a]);
      expect_moved(
          y, x,
          [&](const Index& i) -> std::optional<Index> {
            Index from;
            for (std::size_t a = 0; a < i.size(); ++a) {
              const std::int64_t spread = i[a] - low[a];
              if (spread < 0 || spread % (interior[a] + 1) != 0 ||
                  spread / (interior[a] + 1) >= shape[a])
                return std::nullopt;
              from.push_back(spread / (interior[a] + 1));
            }
            return from;
          },
          1);
    };
    check({3}, {2}, {1}, {0});
    check({17}, {0}, {0}, {2});
    check({5}, {-1}, {-2}, {0});
    check({5}, {-3}, {4}, {2});
    check({5}, {3}, {-4}, {1});
    check({5}, {-8}, {9}, {0});  // everything cropped away
    check({5}, {9}, {-8}, {0});
    check({5}, {-2}, {-1}, {3});
    check({4}, {-5}, {0}, {1});
    check({0}, {2}, {3}, {5});
    check({1}, {0}, {0}, {7});
    check({2, 3}, {1, -1}, {0, 2}, {2, 1});
    check({2, 0, 3}, {0, 1, 0}, {0, 1, -1}, {0, 0, 1});
    check({}, {}, {}, {});
  }
}

TEST(InterpreterShape, Rev) {
  for (DType dtype : vt_test::all_dtypes)
    for (const Shape& shape : shapes)
      for (unsigned mask = 0; mask < (1u << shape.size()); ++mask) {
        Axes axes;
        for (int a = 0; a < shape.rank(); ++a)
          if (mask >> a & 1) axes.push_back(a);
        const Tensor x = numbered(dtype, shape), y = run_op(Op::rev, AxesParams{axes}, {x});
        expect_moved(y, x, [&](Index i) {
          for (int a : axes) i[a] = shape[a] - 1 - i[a];
          return i;
        });
      }
}

TEST(InterpreterShape, Leaves) {
  for (DType dtype : vt_test::all_dtypes)
    for (const Shape& shape : shapes) {
      const Scalar seven = Scalar(7).converted(dtype);
      const auto values =
          run_op(Op::full, FullParams{seven, Aval(dtype, shape)}, {}).to_vector<double>();
      ASSERT_EQ(values.size(), static_cast<std::size_t>(shape.elements()));
      for (double v : values) EXPECT_EQ(v, vt::is_bool(dtype) ? 1 : 7);
      if (vt::is_bool(dtype)) continue;
      for (int axis = 0; axis < shape.rank(); ++axis) {
        const Tensor y = run_op(Op::iota, IotaParams{Aval(dtype, shape), axis}, {});
        const auto out = y.to_vector<double>();
        for (std::size_t i = 0; i < out.size(); ++i)
          EXPECT_EQ(out[i], unravel(static_cast<std::int64_t>(i), shape)[axis]);
      }
    }
  const Tensor x = vt::tensor({1.5, 2.5});
  const Tensor y = run_op(Op::constant, ConstantParams{value_of(x, {}), Aval(vt::f64, {2})}, {});
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{1.5, 2.5}));
}

// --- slices --------------------------------------------------------------------------------------

TEST(InterpreterIndex, Slice) {
  for (DType dtype : vt_test::all_dtypes) {
    auto check = [&](const Shape& shape, const Shape& start, const Shape& limit,
                     const Shape& stride) {
      const Tensor x = numbered(dtype, shape),
                   y = run_op(Op::slice, SliceParams{start, limit, stride}, {x});
      for (std::size_t a = 0; a < shape.size(); ++a)
        ASSERT_EQ(y.shape()[a], (limit[a] - start[a] + stride[a] - 1) / stride[a]);
      expect_moved(y, x, [&](Index i) {
        for (std::size_t a = 0; a < i.size(); ++a) i[a] = start[a] + i[a] * stride[a];
        return i;
      });
    };
    check({17}, {0}, {17}, {1});
    check({17}, {2}, {16}, {3});
    check({17}, {16}, {17}, {5});
    check({17}, {4}, {4}, {1});
    check({0}, {0}, {0}, {1});
    check({3, 5}, {1, 0}, {3, 5}, {1, 2});
    check({2, 3, 4}, {0, 1, 1}, {2, 2, 4}, {1, 1, 2});
    check({}, {}, {}, {});
  }
}

/// Index scalars of a dtype; negative ones only where it has them.
TEST(InterpreterIndex, DynamicSlicesStayInside) {
  const Shape shape{5, 7}, sizes{2, 3};
  for (DType dtype : vt_test::all_dtypes)
    for (DType index : vt_test::int_dtypes)
      for (std::int64_t row : {-100, -1, 0, 2, 3, 4, 100})
        for (std::int64_t column : {-3, 0, 4, 5, 120}) {
          if (vt::is_unsigned(index) && (row < 0 || column < 0)) continue;
          const Tensor x = numbered(dtype, shape),
                       update = make_tensor(dtype, sizes, {0, 1, 0, 1, 0, 1});
          const Tensor i = make_tensor(index, {}, {static_cast<double>(row)}),
                       j = make_tensor(index, {}, {static_cast<double>(column)});
          const std::int64_t r = std::clamp<std::int64_t>(row, 0, 3),
                             c = std::clamp<std::int64_t>(column, 0, 4);
          expect_moved(run_op(Op::dynamic_slice, ShapeParams{sizes}, {x, i, j}), x,
                       [&](const Index& at) { return Index{at[0] + r, at[1] + c}; });
          const Tensor updated = run_op(Op::dynamic_update_slice, {x, update, i, j});
          const auto in = x.to_vector<double>(), out = updated.to_vector<double>();
          for (std::size_t f = 0; f < out.size(); ++f) {
            const Index at = unravel(static_cast<std::int64_t>(f), shape);
            const bool inside = at[0] >= r && at[0] < r + 2 && at[1] >= c && at[1] < c + 3;
            ASSERT_EQ(out[f],
                      inside ? static_cast<double>(((at[0] - r) * 3 + at[1] - c) % 2) : in[f]);
          }
        }
  // A number that no int64 holds is beyond the end, not negative.
  const Tensor huge = vt::tensor(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(run_op(Op::dynamic_slice, ShapeParams{{1}}, {vt::tensor({1, 2, 3}), huge}).item<int>(),
            3);
  EXPECT_EQ(
      run_op(Op::dynamic_slice, ShapeParams{{0}}, {numbered(vt::f32, {0}), vt::tensor(4)}).size(),
      0);
  EXPECT_EQ(run_op(Op::dynamic_slice, ShapeParams{{}}, {vt::tensor(7)}).item<int>(), 7);
}

// --- gather and scatter --------------------------------------------------------------------------

/// XLA's definition of gather, result element by result element. nullopt: the window is outside and
/// the mode is fill.
std::optional<Index> gather_source(const GatherParams& p, const Shape& operand,
                                   const Shape& indices, const std::vector<std::int64_t>& values,
                                   const Index& at) {
  Index batch, offset;
  for (std::size_t a = 0; a < at.size(); ++a)
    (p.offset_dims.contains(static_cast<int>(a)) ? offset : batch).push_back(at[a]);
  Index start(operand.size(), 0), window(operand.size(), 0);
  for (std::size_t k = 0; k < p.start_index_map.size(); ++k) {
    Index where = batch;
    where.push_back(static_cast<std::int64_t>(k));
    start[p.start_index_map[k]] = values[ravel(where, indices)];
  }
  for (std::size_t k = 0; k < p.operand_batching_dims.size(); ++k)
    start[p.operand_batching_dims[k]] = batch[p.indices_batching_dims[k]];
  std::size_t next = 0;
  for (std::size_t a = 0; a < operand.size(); ++a)
    if (!p.collapsed_slice_dims.contains(static_cast<int>(a)) &&
        !p.operand_batching_dims.contains(static_cast<int>(a)))
      window[a] = offset[next++];
  for (std::size_t a = 0; a < operand.size(); ++a) {
    const std::int64_t last = operand[a] - p.slice_sizes[a];
    if (p.mode == IndexMode::fill && (start[a] < 0 || start[a] > last)) return std::nullopt;
    start[a] = std::clamp<std::int64_t>(start[a], 0, last) + window[a];
  }
  return start;
}

struct GatherCase {
  Shape operand, indices;
  GatherParams params;
};
std::vector<GatherCase> gather_cases() {
  return {
      // rows of a matrix, of a vector; with the window in front; whole windows; two components,
      // reversed; batching axes
      {{5}, {3, 1}, {{}, {0}, {0}, {}, {}, {1}}},
      {{5, 4}, {3, 1}, {{1}, {0}, {0}, {}, {}, {1, 4}}},
      {{5, 4}, {3, 1}, {{0}, {1}, {1}, {}, {}, {5, 1}}},
      {{5, 4}, {2, 3, 2}, {{}, {0, 1}, {1, 0}, {}, {}, {1, 1}}},
      {{5, 4}, {17, 2}, {{1, 2}, {}, {0, 1}, {}, {}, {2, 3}}},
      {{5, 4, 3}, {2, 2, 1}, {{1, 3}, {1}, {1}, {}, {}, {5, 1, 2}}},
      {{3, 5, 4}, {3, 2, 1}, {{2}, {1}, {1}, {0}, {0}, {1, 1, 4}}},
      {{3, 5, 2}, {4, 2, 3, 1}, {{}, {1}, {1}, {0, 2}, {2, 1}, {1, 1, 1}}},
      {{5, 4}, {2}, {{0, 1}, {}, {0, 1}, {}, {}, {2, 2}}},
      {{5}, {0, 1}, {{}, {0}, {0}, {}, {}, {1}}},
      {{5, 0}, {3, 1}, {{1}, {0}, {0}, {}, {}, {1, 0}}},
      {{0}, {0, 1}, {{}, {0}, {0}, {}, {}, {1}}},
      {{4, 3}, {2, 0}, {{1, 2}, {}, {}, {}, {}, {4, 3}}},  // index vectors without components
  };
}

TEST(InterpreterIndex, GatherEveryForm) {
  for (const GatherCase& c : gather_cases())
    for (IndexMode mode : {IndexMode::clip, IndexMode::fill})
      for (DType index : vt_test::int_dtypes)
        for (DType dtype : vt_test::all_dtypes) {
          GatherParams params = c.params;
          params.mode = mode;
          const Tensor x = numbered(dtype, c.operand),
                       i = vt_test::random_tensor(index, c.indices, -2, 6, 17);
          const auto values = i.to_vector<std::int64_t>();
          const Tensor y = run_op(Op::gather, params, {x, i});
          expect_moved(y, x, [&](const Index& at) {
            return gather_source(params, c.operand, c.indices, values, at);
          });
        }
}

TEST(InterpreterIndex, GatherByHand) {
  const Tensor x = vt::tensor({{1, 2, 3}, {4, 5, 6}}), rows = vt::tensor({{1}, {0}, {9}, {-1}});
  const GatherParams p{{1}, {0}, {0}, {}, {}, {1, 3}, IndexMode::clip};
  EXPECT_EQ(run_op(Op::gather, p, {x, rows}).to_vector<int>(),
            (std::vector<int>{4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3}));
  GatherParams fill = p;
  fill.mode = IndexMode::fill;
  EXPECT_EQ(run_op(Op::gather, fill, {x, rows}).to_vector<int>(),
            (std::vector<int>{4, 5, 6, 1, 2, 3, 0, 0, 0, 0, 0, 0}));
  const Tensor huge =
      vt::tensor(std::vector<std::uint64_t>{std::numeric_limits<std::uint64_t>::max()}, {1, 1});
  EXPECT_EQ(run_op(Op::gather, p, {x, huge}).to_vector<int>(), (std::vector<int>{4, 5, 6}));
}

/// The mirror of a gather case.
ScatterParams mirrored(const GatherParams& p, IndexMode mode) {
  return {p.offset_dims,
          p.collapsed_slice_dims,
          p.start_index_map,
          p.operand_batching_dims,
          p.indices_batching_dims,
          mode,
          false};
}

TEST(InterpreterIndex, ScatterEveryForm) {
  const std::pair<Op, double (*)(double, double)> ops[] = {
      {Op::scatter, [](double, double u) { return u; }},
      {Op::scatter_add, [](double a, double u) { return a + u; }},
      {Op::scatter_mul, [](double a, double u) { return a * u; }},
      {Op::scatter_min, [](double a, double u) { return std::min(a, u); }},
      {Op::scatter_max, [](double a, double u) { return std::max(a, u); }}};
  for (const GatherCase& c : gather_cases())
    for (IndexMode mode : {IndexMode::clip, IndexMode::fill})
      for (DType index : {vt::i8, vt::u16, vt::i32, vt::u64})
        for (DType dtype : vt_test::all_dtypes)
          for (const auto& [op, combine] : ops) {
            // refused by the shape rule
            if (vt::is_bool(dtype) && (op == Op::scatter_add || op == Op::scatter_mul)) continue;
            const Tensor x = numbered(dtype, c.operand),
                         i = vt_test::random_tensor(index, c.indices, -2, 6, 18);
            const auto values = i.to_vector<std::int64_t>();
            // The updates have the shape of the gather's result.
            GatherParams reads = c.params;
            reads.mode = mode;
            const Shape updates = run_op(Op::gather, reads, {x, i}).shape();
            const Tensor u = vt_test::random_tensor(dtype, updates, 0, 3, 19);
            const Tensor y = run_op(op, mirrored(c.params, mode), {x, i, u});
            auto expected = x.to_vector<double>();
            const auto us = u.to_vector<double>();
            for (std::size_t f = 0; f < us.size(); ++f) {
              const auto to = gather_source(reads, c.operand, c.indices, values,
                                            unravel(static_cast<std::int64_t>(f), updates));
              if (!to) continue;
              double& element = expected[ravel(*to, c.operand)];
              element = combine(element, us[f]);
            }
            // Rounded, or wrapped, once when all updates are in.
            const Tensor sums =
                vt::is_float(dtype)
                    ? vt::tensor(expected)
                    : vt::tensor(std::vector<std::int64_t>(expected.begin(), expected.end()));
            expected = run_op(Op::convert, ConvertParams{dtype}, {sums}).to_vector<double>();
            ASSERT_EQ(y.to_vector<double>(), expected)
                << name_of(op) << " " << vt::name_of(dtype) << c.operand.str();
          }
}

TEST(InterpreterIndex, ScatterByHand) {
  const ScatterParams p{{}, {0}, {0}, {}, {}, IndexMode::fill, false};
  const Tensor zeros = make_tensor(vt::f32, {4}, {0, 0, 0, 0}),
               i = vt::tensor({{1}, {3}, {1}, {4}, {-1}}),
               u = vt::tensor({1.0f, 2.0f, 4.0f, 8.0f, 16.0f});
  EXPECT_EQ(run_op(Op::scatter_add, p, {zeros, i, u}).to_vector<float>(),
            (std::vector<float>{0, 5, 0, 2}));
  // the last one stays
  EXPECT_EQ(run_op(Op::scatter, p, {zeros, i, u}).to_vector<float>(),
            (std::vector<float>{0, 4, 0, 2}));
  ScatterParams clip = p;
  clip.mode = IndexMode::clip;
  EXPECT_EQ(run_op(Op::scatter_add, clip, {zeros, i, u}).to_vector<float>(),
            (std::vector<float>{16, 5, 0, 10}));
  // Nowhere to write: an empty axis drops everything.
  const Tensor nothing = make_tensor(vt::f32, {0}, {});
  EXPECT_EQ(run_op(Op::scatter_add, p, {nothing, i, u}).size(), 0);
  const double nan = std::nan("");
  const auto y = run_op(Op::scatter_max, p,
                        {make_tensor(vt::f64, {4}, {nan, 1, 1, 1}), vt::tensor({{0}, {2}}),
                         vt::tensor({5.0, nan})})
                     .to_vector<double>();
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[2]) && y[1] == 1);
}

/// Two windows that overlap, window axes leading: the updates count in row-major order, not window
/// by window.
TEST(InterpreterIndex, OverlappingUpdatesAreCombinedInRowMajorOrder) {
  const ScatterParams p{{0}, {}, {0}, {}, {}, IndexMode::fill, false};
  const Tensor x = make_tensor(vt::i32, {3}, {0, 0, 0}), starts = vt::tensor({{0}, {1}});
  // [window, vector]: windows (1, 3) at 0 and (2, 4) at 1
  const Tensor u = vt::tensor({{1, 2}, {3, 4}});
  // Row-major: 1 → 0, 2 → 1, 3 → 1, 4 → 2. Window by window, element 1 would end as 2.
  EXPECT_EQ(run_op(Op::scatter, p, {x, starts, u}).to_vector<int>(), (std::vector<int>{1, 3, 4}));
}

}  // namespace
