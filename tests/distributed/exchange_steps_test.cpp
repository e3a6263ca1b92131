// What passes make of collectives in a program: sums in one message, exchanges begun early and
// waited for late, and errors in between.
#include "distributed/ranks.hpp"
#include "support/property.hpp"

namespace {

using vt::sharded;
using vt::Tensor;
using vt::distributed::Mesh;
using vt::distributed::mesh;
using vt::distributed::rank;
using vt_test::expect_error;
using vt_test::on_ranks;

const std::vector<std::pair<std::int64_t, std::int64_t>> swap = {{0, 1}, {1, 0}};

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
/// f of this rank's part, compiled.
template <class F>
auto on_parts(F f) {
  return vt::jit(vt::shard_map(
      f, {.mesh = mesh({{"data", 2}}), .in_specs = sharded("data"), .out_specs = sharded("data")}));
}

TEST(ExchangeSteps, SumsThatDoNotWaitForEachOtherAreOneMessage) {
  on_ranks(2, [] {
    const auto f = on_parts([](Tensor x) {
      const Tensor a = vt::psum(vt::sin(x), "data"), b = vt::psum(vt::cos(x[0]), "data");
      const Tensor most = vt::pmax(x, "data"), later = vt::psum(a * x, "data");
      const Tensor c = vt::psum(vt::sum(x) * 2.0, "data");
      return x * a + b + most + later + c;
    });
    const Tensor own = vt::tensor({1.0, 2.0, 3.0}) * (1.0 + rank());
    const Tensor x = vt::tensor({1.0, 2.0, 3.0}), y = x * 2.0;
    const Tensor a = vt::sin(x) + vt::sin(y), b = vt::cos(x[0]) + vt::cos(y[0]);
    const Tensor wanted = own * a + b + y + a * (x + y) + 2.0 * vt::sum(x + y);
    vt_test::expect_close(f(own), wanted, {.relative = 1e-12});
    const std::string text = f.explain(own);
    EXPECT_EQ(count(text, "processes: psum"), 2) << text;  // a, b and c; then what waits for a
    EXPECT_EQ(count(text, "processes: pmax"), 1) << text;
  });
}

TEST(ExchangeSteps, ExchangesAreBegunFirstAndWaitedForLast) {
  on_ranks(2, [] {
    const auto f = on_parts([](Tensor x) {
      const Tensor border = vt::ppermute(x[0], "data", swap);
      const Tensor inner = vt::sum(vt::sin(x), 1);
      return vt::concatenate({inner, vt::expand_dims(vt::sum(border * border), 0)}, 0);
    });
    const Tensor all =
        vt::sin(vt::arange(2 * 96 * 128).astype(vt::f64)).reshape({2, 96, 128}).eval();
    const Tensor own = all[rank()], other = all[1 - rank()];
    const Tensor wanted = vt::concatenate(
        {vt::sum(vt::sin(own), 1), vt::expand_dims(vt::sum(other[0] * other[0]), 0)}, 0);
    vt_test::expect_close(f(own), wanted, {.relative = 1e-12});
    const std::string text = f.explain(own);
    const std::size_t begun = text.find("processes, begun: ppermute"),
                      waited = text.find("processes, waited for: ppermute"),
                      between = text.find("kernel", begun);
    EXPECT_LT(begun, waited) << text;
    EXPECT_LT(between, waited) << text;
  });
}

// An update's copy of the operand is made before the update, whatever each of them waits for.
TEST(ExchangeSteps, UpdatesComeAfterWhatTheyUpdate) {
  on_ranks(2, [] {
    const auto at = [](const Tensor& all) { return std::pair(all[rank()], all[1 - rank()]); };
    const auto [own, other] = at(vt::arange(128.0).reshape({2, 64}).eval());
    const Tensor index = vt::arange(8) * 3;
    for (const vt::DType d : {vt::f32, vt::f16}) {
      const auto add = on_parts([&](Tensor x) {
        const Tensor first = vt::ppermute(x[vt::slice(0, 8)], "data", swap),
                     second = vt::ppermute(x[vt::slice(8, 16)], "data", swap);
        return vt::index_add(vt::index_add(x, index, second), index, first);
      });
      const Tensor sum =
          vt::index_add(own, index, other[vt::slice(0, 8)] + other[vt::slice(8, 16)]);
      vt_test::expect_close(add(own.astype(d)), sum.astype(d), {.ulps = 1});
    }
    const auto write = on_parts([&](Tensor x) {
      const Tensor first = vt::ppermute(x[vt::slice(0, 8)], "data", swap),
                   second = vt::ppermute(x[vt::slice(8, 16)], "data", swap);
      const Tensor start = vt::argmax(x) % 7;
      return vt::dynamic_update_slice_in_dim(vt::dynamic_update_slice_in_dim(x, second, start + 4),
                                             first, start);
    });
    const Tensor start = vt::argmax(own) % 7;
    vt_test::expect_close(
        write(own), vt::dynamic_update_slice_in_dim(
                        vt::dynamic_update_slice_in_dim(own, other[vt::slice(8, 16)], start + 4),
                        other[vt::slice(0, 8)], start));
  });
}

TEST(ExchangeSteps, AnErrorInBetweenLeavesRanksInStep) {
  on_ranks(2, [] {
    const auto f = on_parts([](Tensor x) {
      const Tensor other = vt::ppermute(x, "data", swap);
      const Tensor size = vt::sum(vt::abs(x));
      vt::check(size < 10.0, "too large");
      return other + size;
    });
    const Tensor x = vt::tensor({1.0, 2.0});
    for (int k = 0; k < 3; ++k) {
      vt_test::expect_close(f(x * (1.0 + rank())), x * (2.0 - rank()) + 3.0 * (1.0 + rank()), {});
      expect_error([&] { static_cast<void>(f(x * (10.0 + rank())).eval()); }, vt::ErrorKind::check,
                   {"too large"});
    }
  });
}

}  // namespace
