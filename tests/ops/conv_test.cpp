// Convolutions against plain loops over random strides, paddings, dilations, groups and layouts;
// their derivatives; what vmap makes of them; the messages of wrong ones.
#include <gtest/gtest.h>

#include <vt/vt.hpp>

#include "support/property.hpp"

namespace {

using namespace vt;
using vt_test::expect_close;
using vt_test::random_quarters;
using vt_test::random_tensor;
using Numbers = std::vector<double>;

// --- the definition, on host numbers -------------------------------------------------------------

/// One convolution with all its numbers; x is [N, spatial…, C], the filter [spatial…, C / groups,
/// O].
struct Problem {
  Shape x, filter, strides, lhs_dilation, rhs_dilation;
  Padding::Edges edges;
  std::int64_t feature_groups = 1, batch_groups = 1;

  int spatial() const { return x.rank() - 2; }
  ConvOptions options() const {
    ConvOptions o;
    o.strides = strides, o.padding = edges, o.lhs_dilation = lhs_dilation,
    o.rhs_dilation = rhs_dilation;
    o.feature_group_count = feature_groups, o.batch_group_count = batch_groups;
    return o;
  }
  Shape result() const {
    Shape y{x[0] / batch_groups};
    for (int k = 0; k < spatial(); ++k) {
      const auto i = static_cast<std::size_t>(k);
      const std::int64_t room = (x[i + 1] == 0 ? 0 : (x[i + 1] - 1) * lhs_dilation[i] + 1) +
                                edges[i].first + edges[i].second;
      const std::int64_t window = (filter[i] - 1) * rhs_dilation[i] + 1;
      y.push_back(room < window ? 0 : (room - window) / strides[i] + 1);
    }
    y.push_back(filter.back());
    return y;
  }
  std::string str() const {
    std::string text = x.str() + " * " + filter.str() + " strides " + strides.str() +
                       " dilations " + lhs_dilation.str() + rhs_dilation.str();
    for (auto [low, high] : edges)
      text += " (" + std::to_string(low) + "," + std::to_string(high) + ")";
    return text + " groups " + std::to_string(feature_groups) + "," + std::to_string(batch_groups);
  }
};

Shape index_of(std::int64_t flat, const Shape& shape) {
  Shape index = Shape::filled(shape.size(), 0);
  for (std::size_t i = shape.size(); i-- > 0; flat /= shape[i]) index[i] = flat % shape[i];
  return index;
}
std::size_t offset_of(const Shape& index, const Shape& shape) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return static_cast<std::size_t>(flat);
}

/// Calls f(offset in x, in the filter, in the result) for every product that the definition adds
/// up.
template <class F>
void each_product(const Problem& p, F&& f) {
  const Shape y = p.result();
  const auto n = static_cast<std::size_t>(p.spatial());
  const std::int64_t channels = p.filter[n], groups = p.feature_groups * p.batch_groups;
  for (std::int64_t r = 0; r < y.elements(); ++r) {
    const Shape to = index_of(r, y);
    const std::int64_t group = to.back() / (y.back() / groups);
    for (std::int64_t w = 0; w < p.filter.elements() / p.filter.back(); ++w) {
      Shape kernel_shape = p.filter;
      kernel_shape.back() = 1;
      Shape kernel = index_of(w, kernel_shape), from = to;
      bool inside = true;
      for (std::size_t k = 0; k < n; ++k) {
        const std::int64_t at =
            to[k + 1] * p.strides[k] + kernel[k] * p.rhs_dilation[k] - p.edges[k].first;
        from[k + 1] = at / p.lhs_dilation[k];
        inside = inside && at >= 0 && at % p.lhs_dilation[k] == 0 && from[k + 1] < p.x[k + 1];
      }
      if (!inside) continue;
      from[0] = p.batch_groups > 1 ? group * y[0] + to[0] : to[0];
      from.back() = p.feature_groups > 1 ? group * channels + kernel[n] : kernel[n];
      kernel.back() = to.back();
      f(offset_of(from, p.x), offset_of(kernel, p.filter), static_cast<std::size_t>(r));
    }
  }
}

Tensor looped(const Problem& p, const Tensor& x, const Tensor& filter) {
  const Numbers a = x.to_vector<double>(), b = filter.to_vector<double>();
  Numbers sums(static_cast<std::size_t>(p.result().elements()));
  each_product(p, [&](std::size_t i, std::size_t j, std::size_t r) { sums[r] += a[i] * b[j]; });
  return vt_test::make_tensor(x.dtype(), p.result(), sums);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool rarely() { return engine_() % 8 == 0; }

 private:
  std::mt19937_64 engine_;
};

Problem random_problem(std::uint64_t seed, int spatial, std::int64_t most_extent) {
  Random r(seed);
  Problem p;
  const std::int64_t groups = r.in(0, 2) == 0 ? r.in(2, 3) : 1;
  (r.in(0, 1) ? p.feature_groups : p.batch_groups) = groups;
  const std::int64_t channels = r.in(1, 4);
  p.x.push_back(r.in(1, 2) * p.batch_groups);
  for (int k = 0; k < spatial; ++k) {
    p.x.push_back(r.rarely() ? r.in(0, 1) : r.in(2, most_extent));
    p.filter.push_back(r.in(1, 4));
    p.strides.push_back(r.in(1, 3));
    p.lhs_dilation.push_back(r.rarely() ? r.in(2, 3) : 1);
    p.rhs_dilation.push_back(r.in(0, 2) == 0 ? r.in(2, 3) : 1);
    p.edges.push_back({r.in(-1, 3), r.in(-1, 3)});
    if (p.x.back() < 2) p.edges.back() = {r.in(0, 3), r.in(0, 3)};
  }
  p.x.push_back(channels * p.feature_groups);
  p.filter.push_back(channels);
  p.filter.push_back(r.in(1, 5) * groups);
  return p;
}

// --- values --------------------------------------------------------------------------------------

TEST(Conv, RandomProblemsAgainstLoops) {
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    const int spatial = static_cast<int>(seed % 4);
    const Problem p = random_problem(seed, spatial, spatial == 3 ? 5 : 9);
    const DType d = seed % 5 == 1 ? i32 : seed % 5 == 2 ? f64 : f32;
    // Whole numbers and quarters: every sum is exact, whatever the order.
    const Tensor x =
        is_float(d) ? random_quarters(d, p.x, seed) : random_tensor(d, p.x, -9, 9, seed);
    const Tensor filter = is_float(d) ? random_quarters(d, p.filter, seed + 1)
                                      : random_tensor(d, p.filter, -9, 9, seed + 1);
    const auto f = [&](const Tensor& a, const Tensor& b) { return conv(a, b, p.options()); };
    const Tensor expected = looped(p, x, filter);
    const auto compiled = jit(f);
    for (int run = 0; run < 2; ++run) expect_close(compiled(x, filter), expected, {}, p.str());
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Conv, LargerOnesInEveryDtype) {
  // Tails of tiles and vectors, several blocks, borders on all sides.
  for (DType d : {f16, bf16, f32, f64, i8, u8, i16, i32, u32, i64})
    for (const auto& [channels, features, extent] :
         {std::tuple{1, 3, 17}, {3, 40, 13}, {17, 32, 9}, {32, 1, 11}}) {
      Problem p{{2, extent, extent + 3, channels},
                {3, 5, channels, features},
                {1, 2},
                {1, 1},
                {1, 1},
                {{1, 1}, {2, 2}}};
      const double most = d == i8 || d == u8 ? 1 : 2;
      const Tensor x = vt_test::random_tensor(i32, p.x, is_unsigned(d) ? 0 : -most, most, 1)
                           .astype(d),
                   filter = vt_test::random_tensor(i32, p.filter, 0, 1, 2).astype(d);
      Numbers sums = looped(p, x.astype(f64), filter.astype(f64)).to_vector<double>();
      const auto compiled =
          jit([&](const Tensor& a, const Tensor& b) { return conv(a, b, p.options()); });
      // integers wrap
      const Tensor expected = vt::tensor(sums, p.result()).astype(is_float(d) ? d : i64).astype(d);
      for (int run = 0; run < 2; ++run)
        expect_close(compiled(x, filter), expected, {}, std::string(name_of(d)) + " " + p.str());
    }
}

TEST(Conv, SchemesOfPadding) {
  for (std::int64_t extent : {1, 4, 7, 8})
    for (std::int64_t window : {1, 2, 3, 5})
      for (std::int64_t stride : {1, 2, 3})
        for (std::int64_t dilation : {1, 2}) {
          const Tensor x = random_quarters(f32, {1, extent, 2}, 1),
                       filter = random_quarters(f32, {window, 2, 3}, 2);
          const std::int64_t reach = (window - 1) * dilation + 1,
                             places = (extent + stride - 1) / stride;
          const std::int64_t all =
              std::max<std::int64_t>((places - 1) * stride + reach - extent, 0);
          const auto with = [&](Padding padding) {
            return conv1d(
                x, filter,
                {.strides = {stride}, .padding = std::move(padding), .rhs_dilation = {dilation}});
          };
          EXPECT_EQ(with("SAME").shape(), (Shape{1, places, 3}));
          expect_close(with("SAME"), with({{all / 2, all - all / 2}}));
          expect_close(with("SAME_LOWER"), with({{all - all / 2, all / 2}}));
          expect_close(with("VALID"), with({{0, 0}}));
        }
}

TEST(Conv, Layouts) {
  const Tensor x = random_quarters(f32, {2, 5, 6, 3}, 1),
               filter = random_quarters(f32, {3, 2, 3, 4}, 2);
  const Tensor y = conv2d(x, filter, {.strides = {2, 1}, .padding = {{1, 0}, {0, 1}}});
  const auto nchw = [](const Tensor& t) { return transpose(t, {0, 3, 1, 2}); };
  expect_close(
      conv2d(nchw(x), filter, {.strides = {2, 1}, .padding = {{1, 0}, {0, 1}}, .layout = "NCHW"}),
      nchw(y));
  expect_close(conv2d(nchw(x), transpose(filter, {3, 2, 0, 1}),
                      {.strides = {2, 1},
                       .padding = {{1, 0}, {0, 1}},
                       .layout = "NCHW",
                       .filter_layout = "OIHW",
                       .out_layout = "NHWC"}),
               y);
  expect_close(conv(transpose(x, {2, 3, 0, 1}), transpose(filter, {1, 3, 0, 2}),
                    {.strides = {1, 2},
                     .padding = {{0, 1}, {1, 0}},
                     .layout = "bCNa",
                     .filter_layout = "bOaI",
                     .out_layout = "CaNb"}),
               transpose(y, {3, 1, 0, 2}));
  // One image; groups that are not the last axis.
  expect_close(conv2d(x[1], filter, {.strides = {2, 1}, .padding = {{1, 0}, {0, 1}}}), y[1]);
  expect_close(conv2d(moveaxis(x[1], -1, 0), filter,
                      {.strides = {2, 1}, .padding = {{1, 0}, {0, 1}}, .layout = "CHW"}),
               moveaxis(y[1], -1, 0));
  const Tensor wide = random_quarters(f32, {2, 5, 6, 6}, 3);
  expect_close(conv2d(nchw(wide), filter, {.feature_group_count = 2, .layout = "NCHW"}),
               nchw(conv2d(wide, filter, {.feature_group_count = 2})));
}

TEST(Conv, DepthwiseIsAGroupForEachChannel) {
  const Tensor x = random_quarters(f32, {2, 6, 5, 3}, 1),
               filter = random_quarters(f32, {3, 2, 3, 4}, 2);
  const Tensor y = depthwise_conv2d(x, filter, {.strides = {2, 1}, .padding = "SAME"});
  ASSERT_EQ(y.shape(), (Shape{2, 3, 5, 12}));
  expect_close(y, conv2d(x, reshape(filter, {3, 2, 1, 12}),
                         {.strides = {2, 1}, .padding = "SAME", .feature_group_count = 3}));
  std::vector<Tensor> parts;
  for (int c = 0; c < 3; ++c)
    parts.push_back(conv2d(slice_in_dim(x, c, c + 1, 3), slice_in_dim(filter, c, c + 1, 2),
                           {.strides = {2, 1}, .padding = "SAME"}));
  expect_close(y, concatenate(parts, 3));
  expect_close(depthwise_conv(transpose(x, {0, 3, 1, 2}), filter,
                              {.strides = {2, 1}, .padding = "SAME", .layout = "NCHW"}),
               transpose(y, {0, 3, 1, 2}));
}

TEST(Conv, TransposedIsTheGradientOfAConvolution) {
  for (const char* padding : {"SAME", "VALID"})
    for (std::int64_t stride : {1, 2, 3})
      for (std::int64_t window : {1, 2, 3, 4}) {
        // x̄ of a convolution that makes y of x: conv_transpose with its filter.
        const Tensor x = random_quarters(f64, {2, 6 * stride, 3}, 1),
                     filter = random_quarters(f64, {window, 3, 2}, 2);
        const ConvOptions o{.strides = {stride}, .padding = padding};
        const Tensor ct = random_quarters(f64, conv1d(x, filter, o).shape(), 3);
        const Tensor expected =
            grad([&](const Tensor& t) { return sum(conv1d(t, filter, o) * ct); })(x);
        const Tensor y = conv_transpose(ct, filter, o, true);
        if (y.shape() == expected.shape())
          expect_close(
              y, expected, {},
              std::string(padding) + " " + std::to_string(stride) + " " + std::to_string(window));
        // the last stride − 1 elements that no window reached are not there
        else EXPECT_EQ(std::string(padding), "VALID");
        expect_close(conv_transpose(ct, swapaxes(rev(filter, {0}), 1, 2), o), y);
      }
  EXPECT_EQ(
      conv_transpose(ones({1, 4, 5, 3}), ones({3, 3, 3, 2}), {.strides = {2, 2}, .padding = "SAME"})
          .shape(),
      (Shape{1, 8, 10, 2}));
  EXPECT_EQ(conv_transpose(ones({1, 4, 3}), ones({3, 3, 2}), {.strides = {2}, .padding = {{1, 1}}})
                .shape(),
            (Shape{1, 7, 2}));
}

TEST(Conv, DtypesMeetAndWiden) {
  const Tensor x = random_quarters(f16, {1, 200, 8}, 1),
               filter = random_quarters(f16, {5, 8, 3}, 2);
  EXPECT_EQ(conv1d(x, filter).dtype(), f16);
  const Tensor wide = conv1d(x, filter, {.dtype = f32});
  EXPECT_EQ(wide.dtype(), f32);
  expect_close(wide, conv1d(x.astype(f32), filter.astype(f32)));
  EXPECT_EQ(conv1d(ones({1, 3, 1}, i8), ones({2, 1, 1}, f32)).dtype(), f32);
  EXPECT_EQ(conv1d(ones({1, 3, 1}, bool_), ones({2, 1, 1}, bool_)).to_vector<int>(),
            (std::vector<int>{2, 2}));
}

// --- vmap ----------------------------------------------------------------------------------------

/// The ops of the Graph that vmap leaves, without leaves and what only moves axes.
std::string ops_of(const Graph& g) {
  std::string text = g.str(), found;
  for (const char* op : {"conv_general", "dot_general", "while", "scan", "gather", "slice",
                         "concatenate", "reduce_sum"})
    for (std::size_t at = text.find(op); at != std::string::npos; at = text.find(op, at + 1))
      found += std::string(found.empty() ? "" : " ") + op;
  return found;
}

TEST(ConvVmap, OneConvolutionWhateverIsMapped) {
  const Tensor x = random_quarters(f32, {4, 2, 6, 3}, 1),
               filter = random_quarters(f32, {4, 2, 3, 5}, 2);
  const auto f = [](const Tensor& a, const Tensor& b) {
    return conv1d(a, b, {.strides = {2}, .padding = "SAME"});
  };
  EXPECT_EQ(ops_of(make_graph(vmap(f))(x, filter)), "conv_general");
  EXPECT_EQ(ops_of(make_graph(vmap(f, {.in_axes = {0, unmapped}}))(x, filter[0])), "conv_general");
  EXPECT_EQ(ops_of(make_graph(vmap(f, {.in_axes = {unmapped, 0}}))(x[0], filter)), "conv_general");
  // Gradients of each example with respect to the shared filter: the mapped images make it a
  // grouped convolution.
  const auto loss = [&](const Tensor& b, const Tensor& a) { return sum(square(f(a, b))); };
  const auto each = vmap(grad(loss), {.in_axes = {unmapped, 0}});
  EXPECT_EQ(ops_of(make_graph(each)(filter[0], x)), "conv_general conv_general");
  std::vector<Tensor> rows;
  for (int i = 0; i < 4; ++i) rows.push_back(grad(loss)(filter[0], x[i]));
  expect_close(each(filter[0], x), vt_test::stack_lanes(rows, 0));
  // Two levels, at odd axes.
  const auto twice =
      vmap(vmap(f, {.in_axes = {2, unmapped}, .out_axes = 1}), {.in_axes = {0, -1}, .out_axes = 3});
  const Tensor deep = random_quarters(f32, {3, 2, 6, 4, 3}, 3),
               filters = random_quarters(f32, {2, 3, 5, 3}, 4);
  const Tensor y = twice(deep, filters);
  ASSERT_EQ(y.shape(), (Shape{2, 4, 3, 3, 5}));
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j)
      expect_close(vt_test::take_lane(vt_test::take_lane(y, 3, i), 1, j),
                   f(vt_test::take_lane(vt_test::take_lane(deep, 0, i), 2, j),
                     vt_test::take_lane(filters, -1, i)));
}

TEST(ConvVmap, EveryDerivativeEqualsTheLoop) {
  const Tensor x = random_quarters(f64, {3, 2, 5, 2}, 1),
               filter = random_quarters(f64, {3, 2, 2, 3}, 2);
  const auto f = [](const Tensor& a, const Tensor& b) {
    return sum(sin(conv1d(a, b, {.strides = {2}, .padding = {{2, 1}}, .rhs_dilation = {2}})));
  };
  const auto first = grad<0, 1>(f);
  const auto second = grad<0, 1>([&](const Tensor& s, const Tensor& t) {
    const auto [ds, dt] = first(s, t);
    return sum(square(ds)) + sum(square(dt));
  });
  const auto check = [&](const auto& derivative, bool mapped_x, bool mapped_filter) {
    const AxisSpec axes = {mapped_x ? AxisSpec(0) : AxisSpec(unmapped),
                           mapped_filter ? AxisSpec(0) : AxisSpec(unmapped)};
    const auto [dx, df] = vmap(derivative, {.in_axes = axes})(
        mapped_x ? x : Tensor(x[0]), mapped_filter ? filter : Tensor(filter[0]));
    for (int i = 0; i < 3; ++i) {
      const auto [ex, ef] = derivative(x[mapped_x ? i : 0], filter[mapped_filter ? i : 0]);
      expect_close(Tensor(dx[i]), ex, {.relative = 1e-12, .absolute = 1e-12});
      expect_close(Tensor(df[i]), ef, {.relative = 1e-12, .absolute = 1e-12});
    }
  };
  for (const auto& [mapped_x, mapped_filter] :
       {std::pair{true, true}, {true, false}, {false, true}}) {
    check(first, mapped_x, mapped_filter);
    check(second, mapped_x, mapped_filter);
  }
}

// --- messages ------------------------------------------------------------------------------------

TEST(Conv, Refusals) {
  const Tensor x = ones({2, 8, 8, 3}), w = ones({3, 3, 3, 4}), none;
  struct Case {
    ErrorKind kind;
    std::string part;
    std::function<void()> call;
  };
  const auto shape = ErrorKind::shape, value = ErrorKind::value;
  const std::vector<Case> cases = {
      {shape, "vt::conv2d: x has 3 channels, the filter 5: f32[2,8,8,3] · f32[3,3,5,4]",
       [&] { (void)conv2d(x, ones({3, 3, 5, 4})); }},
      {shape, "vt::conv2d: x has 3 channels, the filter 3 in each of 3 groups",
       [&] { (void)conv2d(x, w, {.feature_group_count = 3}); }},
      {shape, "vt::conv2d: 3 groups do not divide the 4 output features",
       [&] { (void)conv2d(x, ones({3, 3, 1, 4}), {.feature_group_count = 3}); }},
      {shape, "vt::conv2d: 4 groups do not divide the images",
       [&] { (void)conv2d(x, w, {.batch_group_count = 4}); }},
      {value, "vt::conv2d: takes groups of features or of images, not both",
       [&] { (void)conv2d(x, w, {.feature_group_count = 3, .batch_group_count = 2}); }},
      {value, "vt::conv2d: groups must be at least 1, not 0 and 1",
       [&] { (void)conv2d(x, w, {.feature_group_count = 0}); }},
      {shape, "vt::conv1d: needs a filter of 3 axes: f32[2,8,8,3] · f32[3,3,3,4]",
       [&] { (void)conv1d(x, w); }},
      {shape, "vt::conv3d: needs a filter of 5 axes", [&] { (void)conv3d(x, w); }},
      {shape, "vt::conv: needs 4 axes, or 3 for one image, to go with the filter",
       [&] { (void)conv(ones({2, 3}), w); }},
      {shape, "vt::conv: needs a filter of two or more axes", [&] { (void)conv(x, ones({3})); }},
      {shape, "vt::conv2d: strides needs 2 numbers, one for each axis, not 3: f32[2,8,8,3]",
       [&] { (void)conv2d(x, w, {.strides = {1, 1, 1}}); }},
      {value, "vt::conv2d: strides must be at least 1, not 0",
       [&] { (void)conv2d(x, w, {.strides = {0, 1}}); }},
      {value, "vt::conv2d: rhs_dilation must be at least 1, not -1",
       [&] { (void)conv2d(x, w, {.rhs_dilation = {-1}}); }},
      {value,
       "vt::conv2d: padding must be \"VALID\", \"SAME\", \"SAME_LOWER\" or pairs, not \"same\" "
       "(did you mean \"SAME\"?)",
       [&] { (void)conv2d(x, w, {.padding = "same"}); }},
      {shape, "vt::conv2d: padding needs 2 pairs, one for each axis, not 1",
       [&] { (void)conv2d(x, w, {.padding = {{1, 1}}}); }},
      {shape, "vt::conv2d: the layout \"NHC\" has 3 letters for 4 axes",
       [&] { (void)conv2d(x, w, {.layout = "NHC"}); }},
      {value, "vt::conv2d: the layout \"NHHC\" has the letter H twice",
       [&] { (void)conv2d(x, w, {.layout = "NHHC"}); }},
      {value, "vt::conv2d: the layout \"NHWD\" lacks the letter C",
       [&] { (void)conv2d(x, w, {.layout = "NHWD"}); }},
      {value, "vt::conv2d: the layout \"NHWc\" lacks the letter C (did you mean 'C'?)",
       [&] { (void)conv2d(x, w, {.layout = "NHWc"}); }},
      {value, "vt::conv2d: the layout \"HWiO\" lacks the letter I (did you mean 'I'?)",
       [&] { (void)conv2d(x, w, {.filter_layout = "HWiO"}); }},
      {value, "vt::conv2d: the layout \"HWXO\" lacks the letter I",
       [&] { (void)conv2d(x, w, {.filter_layout = "HWXO"}); }},
      {value, "vt::conv2d: the layouts \"NHWC\" and \"XYIO\" differ in their letters",
       [&] { (void)conv2d(x, w, {.filter_layout = "XYIO"}); }},
      {value, "vt::conv2d: the layouts \"NHWC\" and \"HWCX\" differ in their letters",
       [&] { (void)conv2d(x, w, {.out_layout = "HWCX"}); }},
      {shape, "vt::depthwise_conv2d: x has 3 channels, the filter 2",
       [&] { (void)depthwise_conv2d(x, ones({3, 3, 2, 4})); }},
      {value, "vt::depthwise_conv2d: has a group for each channel",
       [&] { (void)depthwise_conv2d(x, w, {.feature_group_count = 3}); }},
      {value, "vt::conv_transpose: takes neither lhs_dilation nor groups",
       [&] { (void)conv_transpose(x, w, {.lhs_dilation = {2, 2}}); }},
      {value, "vt::conv_transpose: padding must be \"VALID\", \"SAME\" or pairs",
       [&] { (void)conv_transpose(x, w, {.padding = "SAME_LOWER"}); }},
      {value, "or pairs, not \"valid\" (did you mean \"VALID\"?)",
       [&] { (void)conv_transpose(x, w, {.padding = "valid"}); }},
      {shape, "vt::conv_transpose: x has 3 channels, the filter 4",
       [&] { (void)conv_transpose(x, w, {}, true); }},
      {value, "vt::conv2d: an operand is an empty Tensor", [&] { (void)conv2d(x, none); }},
  };
  for (const Case& c : cases)
    vt_test::expect_error(c.call, c.kind, {c.part, "; at conv_test.cpp:"});
}

}  // namespace
