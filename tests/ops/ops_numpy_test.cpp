// The public functions against NumPy and SciPy: calls and results written by numpy_cases.py.
#include "support/property.hpp"

namespace {

using namespace vt;  // the dtypes' names

constexpr double inf = std::numeric_limits<double>::infinity();

/// "f32[2,1] 0.5 -inf" → that Tensor. Text, as it compiles many times faster than braces.
Tensor t(const char* text) {
  const std::string all = text;
  const std::size_t open = all.find('['), shut = all.find(']');
  const auto dtype =
      std::find_if(std::begin(vt_test::all_dtypes), std::end(vt_test::all_dtypes),
                   [&](DType d) { return all.compare(0, open, vt::name_of(d)) == 0; });
  if (dtype == std::end(vt_test::all_dtypes)) throw std::runtime_error("bad case: " + all);
  Shape shape;
  std::istringstream extents(all.substr(open + 1, shut - open - 1)), numbers(all.substr(shut + 1));
  for (std::string n; std::getline(extents, n, ',');) shape.push_back(std::stoll(n));
  std::vector<double> values;
  for (std::string n; numbers >> n;) values.push_back(std::strtod(n.c_str(), nullptr));
  return vt_test::make_tensor(*dtype, shape, values);
}

void check(const char* call, const Tensor& actual, const Tensor& expected, double ulps) {
  // Numbers near 0 may come out of cancellation: they are compared with the size of the inputs,
  // which is about 1.
  const double absolute = ulps == 0 ? 0 : ulps * vt_test::ulp_of(1.0, expected.dtype());
  vt_test::expect_close(actual, expected, {.ulps = ulps, .absolute = absolute}, call);
}

#include "ops_numpy_cases.inc"

TEST(OpsNumpy, RollAlongSeveralAxes) {
  constexpr int rows = 3, columns = 4;
  const std::vector<int> rolled =
      vt::roll(vt::reshape(vt::arange(rows * columns), {rows, columns}), {2, -1}, {1, 0})
          .to_vector<int>();
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      EXPECT_EQ(rolled[r * columns + c], (r + 1) % rows * columns + (c + 2) % columns);
  try {
    (void)vt::roll(vt::arange(4), {1, 2}, {0});
    FAIL() << "took two shifts for one axis";
  } catch (const vt::Error& e) {
    EXPECT_NE(std::string(e.what()).find("vt::roll: 2 shifts for 1 axes: i32[4]; at "),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
