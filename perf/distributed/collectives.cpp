// The rows of single collectives, each beside the function of MPI.
#include "distributed.hpp"

namespace distributed {

namespace {

vt::distributed::Mesh line() { return vt::distributed::mesh({{"i", -1}}); }

/// f of each process's own values, compiled.
template <class F>
auto on_parts(F f) {
  return vt::jit(vt::shard_map(
      f, {.mesh = line(), .in_specs = vt::sharded("i"), .out_specs = vt::sharded("i")}));
}

/// Values that differ between processes.
std::vector<double> values(std::size_t count) {
  std::vector<double> all(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i] = std::sin(0.001 * static_cast<double>(i) + raw::rank());
  return all;
}
Tensor as_tensor(const std::vector<double>& x) {
  return vt::tensor(x, {static_cast<std::int64_t>(x.size())}).eval();
}

/// 1,000 sums of a number in a compiled loop.
void loop_of_sums() {
  constexpr int times = 1000;
  const double part = 1.0 / raw::size();
  const auto make = [=] {
    return on_parts([=](const Tensor& x) {
      // A sum is the same everywhere, and the sum of what is the same needs no message.
      const Tensor none = 0.0 * vt::axis_index("i").astype(vt::f64);
      return vt::reshape(
          vt::fori_loop(
              0, times,
              [&](const Tensor&, const Tensor& v) { return part * vt::psum(v + none, "i"); }, x[0]),
          {1});
    });
  };
  const auto loop = make();
  const Tensor x = vt::tensor({1.5 + raw::rank()});
  const double answer = raw::sums(1.5 + raw::rank(), times), own = loop(x).item<double>();
  measure("psum/loop",
          {{"vt", [&] { (void)loop(x).item<double>(); }, times, error_of({own}, {answer}), 1e-13},
           {"raw", [&] { (void)raw::sums(1.5, times); }, times}});
  compare_prediction("psum/loop", times, make, x);
}

/// Passed round by ppermute in a compiled loop.
void ring(std::size_t count) {
  constexpr int times = 100;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::int64_t i = 0; i < raw::size(); ++i) pairs.emplace_back(i, (i + 1) % raw::size());
  const auto loop = on_parts([&](const Tensor& x) {
    return vt::fori_loop(
        0, times, [&](const Tensor&, const Tensor& v) { return vt::ppermute(v, "i", pairs); }, x);
  });
  const std::vector<double> in = values(count);
  const Tensor x = as_tensor(in);
  std::vector<double> a, b(count);
  const auto plain = [&] {
    a = in;
    for (int i = 0; i < times; ++i) {
      raw::pass_on(a.data(), b.data(), count);
      std::swap(a, b);
    }
  };
  plain();
  const double error = error_of(loop(x).to_vector<double>(), a);
  measure("ppermute/" + std::to_string(8 * count),
          {{"vt", [&] { loop(x).eval(); }, times, error}, {"raw", plain, times}});
}

/// One compiled call of a collective.
template <class F, class Raw>
void call(const std::string& name, F f, Raw plain, std::size_t count, std::size_t results,
          double allowed) {
  const auto compiled = on_parts(f);
  const std::vector<double> in = values(count);
  const Tensor x = as_tensor(in);
  std::vector<double> out(results);
  plain(in.data(), out.data(), count);
  const double error = error_of(compiled(x).template to_vector<double>(), out);
  measure(name + "/" + std::to_string(8 * count),
          {{"vt", [&] { compiled(x).eval(); }, 1, error, allowed},
           {"raw", [&] { plain(in.data(), out.data(), count); }}});
}

}  // namespace

bool collective_row(const std::string& row) {
  const std::string what = report::first_part(row), size = report::last_part(row);
  if (row == "psum/loop") {
    loop_of_sums();
    return true;
  }
  const std::size_t count = std::strtoull(size.c_str(), nullptr, 10) / 8;
  const auto processes = static_cast<std::size_t>(raw::size());
  if (count == 0) return false;
  if (what == "psum")
    call(what, [](const Tensor& x) { return vt::psum(x, "i"); }, raw::sum, count, count, 1e-13);
  else if (what == "ppermute") ring(count);
  else if (what == "all_gather")
    call(
        what, [](const Tensor& x) { return vt::all_gather(x, "i", {.tiled = true}); }, raw::gather,
        count, count * processes, 0);
  else if (what == "all_to_all")
    call(
        what, [](const Tensor& x) { return vt::all_to_all(x, "i", 0, 0, {.tiled = true}); },
        raw::exchange, count, count, 0);
  else return false;
  return true;
}

}  // namespace distributed
