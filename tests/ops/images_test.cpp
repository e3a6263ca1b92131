// Windows and sizes of images, against loops; dropout; messages.
#include <cmath>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using vt_test::message;

double pixel(const Tensor& x, std::int64_t n, std::int64_t y, std::int64_t z, std::int64_t c) {
  return x.to_vector<double>()[((n * x.dim(1) + y) * x.dim(2) + z) * x.dim(3) + c];
}

// The middle of new pixel j is in old pixel floor((2j + 1) n / 2m), on a border in the upper one.
TEST(Images, NearestPixelsAreThoseOfWholeNumbers) {
  for (const auto& [n, m] : {std::pair<std::int64_t, std::int64_t>{2, 49},
                             {2, 103},
                             {2, 187},
                             {3, 5},
                             {7, 3},
                             {10, 10},
                             {6, 98},
                             {100, 161}}) {
    const auto places = vt::resize(vt::arange(n), {m}, vt::Resize::nearest).to_vector<int>();
    for (std::int64_t j = 0; j < m; ++j)
      EXPECT_EQ(places[j], (2 * j + 1) * n / (2 * m)) << n << " to " << m << " at " << j;
  }
}

// A side that ends on the last pixel has it, wherever it starts.
TEST(Images, CropsReachTheirEnds) {
  const Tensor x = vt::reshape(vt::arange(5).astype(vt::f32), {1, 1, 5, 1});
  for (const float from : {-7.6f, -3.8f, -3.3f, -1.4f, 0.3f}) {
    const Tensor crop =
        vt::crop_and_resize(x, vt::reshape(vt::tensor({0.0f, from, 0.0f, 1.0f}), {1, 4}),
                            vt::zeros({1}, vt::i32), 1, 7, vt::Resize::linear, -1.0);
    EXPECT_EQ(vt::ravel(crop)[-1].item<float>(), 4.0f) << from;
  }
}

TEST(Images, CropsAreResizedAsByALoop) {
  const Tensor x = vt_test::random_tensor(vt::f64, {2, 4, 5, 3}, -1, 1, 1);
  const Tensor boxes = vt::tensor(
      {{0.1, 0.2, 0.9, 0.7}, {0.8, 1.0, 0.1, 0.0}, {-0.5, 0.0, 0.5, 1.5}, {0.0, 0.0, 1.0, 1.0}});
  const std::vector<std::int64_t> of = {1, 0, 1, 5};
  const Tensor images = vt::tensor(of, {4});
  const std::vector<double> b = boxes.to_vector<double>();
  for (const auto method : {vt::Resize::linear, vt::Resize::nearest})
    for (const std::int64_t height : {1, 3})
      for (const std::int64_t width : {1, 4}) {
        std::vector<double> want;
        for (std::size_t m = 0; m < 4; ++m)
          for (std::int64_t i = 0; i < height; ++i)
            for (std::int64_t j = 0; j < width; ++j)
              for (std::int64_t c = 0; c < 3; ++c) {
                const auto at = [&](std::int64_t k, std::int64_t count, double from, double to,
                                    double end) {
                  return (count == 1 ? (from + to) / 2
                                     : from + static_cast<double>(k) * (to - from) /
                                                  static_cast<double>(count - 1)) *
                         end;
                };
                const double y = at(i, height, b[4 * m], b[4 * m + 2], 3),
                             z = at(j, width, b[4 * m + 1], b[4 * m + 3], 4);
                if (of[m] > 1 || y < 0 || y > 3 || z < 0 || z > 4) {
                  want.push_back(-7);
                  continue;
                }
                const auto p = [&](double r, double s) {
                  return pixel(x, of[m], std::min<std::int64_t>(std::llround(r), 3),
                               std::min<std::int64_t>(std::llround(s), 4), c);
                };
                const double top = std::floor(y), left = std::floor(z), u = y - top, v = z - left;
                want.push_back(
                    method == vt::Resize::nearest
                        ? p(std::nearbyint(y), std::nearbyint(z))
                        : (1 - u) * ((1 - v) * p(top, left) + v * p(top, left + 1)) +
                              u * ((1 - v) * p(top + 1, left) + v * p(top + 1, left + 1)));
              }
        expect_close(vt::crop_and_resize(x, boxes, images, height, width, method, -7.0),
                     vt::tensor(want, {4, height, width, 3}),
                     {.relative = 1e-12, .absolute = 1e-12});
      }
  // By the boxes, too.
  const Tensor inner = vt::tensor({{0.13, 0.21, 0.87, 0.72}}), first = vt::tensor({1});
  const auto f = [&](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{vt::crop_and_resize(t[0], t[1], first, 3, 2)};
  };
  const std::vector<Tensor> at = {x, inner};
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<Tensor> along = {vt::zeros_like(x), vt::zeros_like(inner)};
    along[i] = vt_test::random_tensor(vt::f64, at[i].shape(), -1, 1, 5 + i);
    const Tensor slope = vt::jvp([&](Tensor a, Tensor c) { return f({a, c})[0]; },
                                 std::tuple(x, inner), std::tuple(along[0], along[1]))
                             .second;
    expect_close(slope, vt_test::difference(f, at, along)[0], {.relative = 1e-7, .absolute = 1e-7});
  }
}

TEST(Images, SizesOfNothingAndOfIntegers) {
  EXPECT_EQ(vt::resize(vt::ones({2, 0}), {3, 0}).shape(), (vt::Shape{3, 0}));
  EXPECT_EQ(vt::resize(vt::ones({2, 3}), {0, 5}).shape(), (vt::Shape{0, 5}));
  EXPECT_EQ(vt::resize(vt::arange(4), {2}, vt::Resize::nearest).dtype(), vt::i32);
  // the widened triangle
  EXPECT_EQ(vt::resize(vt::arange(4), {2}).to_vector<float>(),
            (std::vector<float>{5.0f / 7, 16.0f / 7}));
  EXPECT_EQ(vt::resize(vt::arange(4), {2}, vt::Resize::linear, false).to_vector<float>(),
            (std::vector<float>{0.5f, 2.5f}));
  EXPECT_EQ(vt::resize(vt::ones({4}, vt::f16), {3}).dtype(), vt::f16);
  EXPECT_EQ(
      vt::crop_and_resize(vt::ones({1, 2, 2, 1}), vt::zeros({0, 4}), vt::zeros({0}, vt::i32), 2, 2)
          .shape(),
      (vt::Shape{0, 2, 2, 1}));
  expect_close(vt::rgb_to_grayscale(vt::tensor({{{1.0, 0.0, 0.0}, {0.0, 2.0, 0.0}}})),
               vt::tensor({{{0.299}, {1.174}}}));
}

TEST(Images, MasksArePaddedWithFalse) {
  const Tensor mask = vt::tensor({{true, true}, {true, true}});
  EXPECT_EQ(vt::pad(mask, {{1, 0}, {0, 1}}).to_vector<bool>(),
            (std::vector<bool>{false, false, false, true, true, false, true, true, false}));
  EXPECT_EQ(vt::space_to_batch(mask, {2}, {{1, 1}}).to_vector<bool>(),
            (std::vector<bool>{false, true, false, true, true, false, true, false}));
  EXPECT_EQ(vt::batch_to_space(mask, {2}, {{0, 1}}).to_vector<bool>(),
            (std::vector<bool>{true, true, true}));
  EXPECT_EQ(vt::pad(vt::ones({1}, vt::i8), {{1, 0}}).dtype(), vt::i8);
}

TEST(Images, Refusals) {
  const auto refused = [](const std::string& what, const std::function<void()>& f) {
    const std::string text = message(f);
    EXPECT_NE(text.find(what), std::string::npos) << text;
    EXPECT_NE(text.find("; at images_test.cpp:"), std::string::npos) << text;
  };
  const Tensor x = vt::ones({2, 3});
  refused("vt::resize: needs a size for each of 2 axes, not [2]: f32[2,3]",
          [&] { (void)vt::resize(x, {2}); });
  refused("vt::resize: negative extent in shape [2,-1]: f32[2,3]",
          [&] { (void)vt::resize(x, {2, -1}); });
  refused("vt::resize: axis 0 has no elements to make 1 of: f32[0,3]",
          [&] { (void)vt::resize(vt::ones({0, 3}), {1, 3}); });
  refused("vt::crop_and_resize: needs images [N,H,W,C]",
          [&] { (void)vt::crop_and_resize(x, x, x, 2, 2); });
  refused("vt::pad: what crops has no edge",
          [&] { (void)vt::pad(x, {{-1, 0}}, vt::PadMode::edge); });
  refused("vt::pad: axis 0 has no elements",
          [&] { (void)vt::pad(vt::ones({0}), {{1, 0}}, vt::PadMode::wrap); });
  refused("vt::pad: 3 pairs of edges for rank 2",
          [&] { (void)vt::pad(x, {{1, 0}, {1, 0}, {1, 0}}, vt::PadMode::wrap); });
  refused("vt::space_to_batch: blocks [2] and 2 pairs of edges do not fit",
          [&] { (void)vt::space_to_batch(x, {2}, {{0, 0}, {0, 0}}); });
  refused("vt::space_to_batch: padded it is [2,3], of which [2] are no blocks",
          [&] { (void)vt::space_to_batch(x, {2}, {{0, 0}}); });
  refused("vt::batch_to_space: there are no 3 images for each block",
          [&] { (void)vt::batch_to_space(x, {3}, {{0, 0}}); });
  refused("vt::batch_to_space: there is less than what is cropped",
          [&] { (void)vt::batch_to_space(x, {2}, {{4, 3}}); });
  refused("vt::dropout: the rate must be a scalar",
          [&] { (void)vt::dropout(vt::random::key(1), x, x); });
}

TEST(Dropout, KeepsTheMeanAndPassesGradientsWhereElementsStay) {
  const Tensor key = vt::random::key(5), x = vt::ones({100000});
  const Tensor y = vt::dropout(key, x, 0.3);
  EXPECT_NEAR(vt::mean(y).item<float>(), 1.0f, 0.01f);
  EXPECT_NEAR(vt::mean((y == 0.0f).astype(vt::f32)).item<float>(), 0.3f, 0.01f);
  expect_close(vt::grad([&](Tensor t) { return vt::sum(vt::dropout(key, t, 0.3)); })(x), y);
  expect_close(vt::dropout(key, x, 0.0), x);
  const Tensor none = vt::dropout(key, x, 1.0);
  EXPECT_EQ(vt::sum(none).item<float>(), 0.0f);
  EXPECT_EQ(vt::sum(vt::grad([&](Tensor t) { return vt::sum(vt::dropout(key, t, 1.0)); })(x))
                .item<float>(),
            0.0f);
  const Tensor keys = vt::random::split(key, 3), rows = vt::ones({3, 7}, vt::f64);
  const Tensor mapped = vt::vmap([](Tensor k, Tensor r) { return vt::dropout(k, r); })(keys, rows);
  for (int i = 0; i < 3; ++i) expect_close(mapped[i], vt::dropout(keys[i], rows[i]));
}

}  // namespace
