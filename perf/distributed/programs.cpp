// The rows of whole programs: a step of data-parallel training, and the heat equation.
#include <tuple>

#include "../../examples/support/digits.hpp"
#include "../../examples/support/digits_network.hpp"
#include "distributed.hpp"

namespace distributed {

namespace {

using support::Params;

/// A step on a batch, of which each process has a part, beside one process with all of it, and each
/// process with its part and no average.
void digits(std::int64_t batch) {
  const support::Data data = support::read_digits(VT_EXAMPLE_DATA "/digits.csv");
  const std::int64_t part = batch / raw::size();
  const auto images_from = [&](std::int64_t first, std::int64_t count) {
    const Tensor chosen = (vt::arange(count) + first) % data.train.count();
    return std::pair(vt::take(data.train.pixels, chosen, 0).eval(),
                     vt::take(data.train.labels, chosen, 0).eval());
  };
  const Params start = support::evaluated(support::random_start());
  const vt::Sgd sgd{.rate = 0.2, .momentum = 0.9};
  const auto state = sgd.init(start);
  using State = decltype(sgd.init(start));
  const auto mean_loss = [](const Params& p, const Tensor& x, const Tensor& y) {
    return vt::mean(vt::vmap(support::loss, {.in_axes = {vt::unmapped, 0, 0}})(p, x, y));
  };
  const auto by_all = [&](const Params& p, const State& s, const Tensor& x, const Tensor& y) {
    return sgd.step(p, vt::pmean(vt::grad(mean_loss)(p, x, y), "data"), s);
  };
  const auto by_one =
      vt::jit([&](const Params& p, const State& s, const Tensor& x, const Tensor& y) {
        return sgd.step(p, vt::grad(mean_loss)(p, x, y), s);
      });
  const auto make = [&] {
    return vt::jit(vt::shard_map(by_all, {.mesh = vt::distributed::mesh({{"data", -1}}),
                                          .in_specs = {vt::replicated, vt::replicated,
                                                       vt::sharded("data"), vt::sharded("data")},
                                          .out_specs = vt::replicated}));
  };
  const auto together = make();
  const auto [all_x, all_y] = images_from(0, batch);
  const auto [x, y] = images_from(raw::rank() * part, part);
  const auto flat = [](const Params& p) {
    std::vector<double> all;
    for (const Tensor& leaf : vt::tree_leaves(p))
      for (const double v : leaf.to_vector<double>()) all.push_back(v);
    return all;
  };
  const double error = error_of(flat(together(start, state, x, y).first),
                                flat(by_one(start, state, all_x, all_y).first));
  measure("digits/" + std::to_string(batch),
          {{"vt", [&] { vt::eval(together(start, state, x, y)); }, 1, error, 1e-5},
           {"one",
            [&] {
              if (raw::rank() == 0) vt::eval(by_one(start, state, all_x, all_y));
            }},
           {"apart", [&] { vt::eval(by_one(start, state, x, y)); }}});
  compare_prediction("digits/" + std::to_string(batch), 1, make, start, state, x, y);
}

Tensor rows(const Tensor& u, std::int64_t first, std::int64_t last) {
  return vt::slice_in_dim(u, first, last, 0);
}
/// All rows but the first and the last, a step later; zeros left and right.
Tensor later(const Tensor& u) {
  const std::int64_t r = u.dim(0), c = u.dim(1);
  const Tensor own = rows(u, 1, r - 1), wide = vt::pad(own, {{0, 0}, {1, 1}});
  return own + 0.2 * (rows(u, 0, r - 2) + rows(u, 2, r) + vt::slice_in_dim(wide, 0, c, 1) +
                      vt::slice_in_dim(wide, 2, c + 2, 1) - 4.0 * own);
}
struct Borders {
  Tensor above, below;
};
Borders exchanged(const Tensor& first, const Tensor& last) {
  std::vector<std::pair<std::int64_t, std::int64_t>> down, up;
  for (std::int64_t i = 1; i < vt::axis_size("y"); ++i) {
    down.emplace_back(i - 1, i);
    up.emplace_back(i, i - 1);
  }
  return {vt::ppermute(last, "y", down), vt::ppermute(first, "y", up)};
}
Tensor with_borders(const Tensor& u, const Borders& b) {
  const std::int64_t r = u.dim(0);
  return vt::concatenate({later(vt::concatenate({b.above, rows(u, 0, 2)}, 0)), later(u),
                          later(vt::concatenate({rows(u, r - 2, r), b.below}, 0))},
                         0);
}

/// Beside a plain program, the steps without their exchanges, and the exchanges alone.
void heat(std::int64_t points) {
  const std::int64_t height = points / raw::size();
  const int steps =
      static_cast<int>(std::clamp<std::int64_t>((1 << 25) / (points * points), 8, 200));
  const auto compiled = [&](auto step, const auto& specs) {
    return vt::jit(vt::shard_map(
        [=](const auto& u) {
          return vt::fori_loop(0, steps, [=](const Tensor&, const auto& v) { return step(v); }, u);
        },
        {.mesh = vt::distributed::mesh({{"y", -1}}), .in_specs = specs, .out_specs = specs}));
  };
  const vt::ShardSpec by_rows = vt::sharded("y");
  const auto make = [&] {
    return compiled(
        [=](const Tensor& u) {
          return with_borders(u, exchanged(rows(u, 0, 1), rows(u, height - 1, height)));
        },
        by_rows);
  };
  const auto run = make();
  const auto still = compiled(
      [=](const Tensor& u) {
        return with_borders(u, {rows(u, height - 1, height), rows(u, 0, 1)});
      },
      by_rows);
  const auto borders = compiled(
      [](const Tensor& u) {
        const Borders b = exchanged(rows(u, 0, 1), rows(u, 1, 2));
        return vt::concatenate({b.below, b.above}, 0);
      },
      by_rows);

  std::vector<double> start(static_cast<std::size_t>(height * points)), out(start.size());
  for (std::size_t i = 0; i < start.size(); ++i)
    start[i] = std::sin(1e-3 * static_cast<double>(i) + 0.1 * raw::rank());
  const Tensor u = vt::tensor(start, {height, points}).eval();
  const Tensor edges = vt::slice_in_dim(u, 0, 2, 0).eval();
  raw::Heat plain(start.data(), static_cast<std::size_t>(height), static_cast<std::size_t>(points));
  plain.run(steps);
  plain.get(out.data());
  const double error = error_of(run(u).to_vector<double>(), out);
  report::write(VT_MPI_FAMILY "/heat/" + std::to_string(points),
                "rank" + std::to_string(raw::rank()), out);
  const double times = steps;
  measure("heat/" + std::to_string(points),
          {{"vt", [&] { run(u).eval(); }, times, error, 1e-13},
           {"raw", [&] { plain.run(steps); }, times},
           {"still", [&] { still(u).eval(); }, times},
           {"borders", [&] { borders(edges).eval(); }, times},
           {"spun", [&] { raw::borders(static_cast<std::size_t>(points), steps, true); }, times},
           {"spin", [&] { raw::borders(static_cast<std::size_t>(points), steps, false); }, times}});
  compare_prediction("heat/" + std::to_string(points), times, make, u);
}

}  // namespace

bool program_row(const std::string& row) {
  const std::string what = report::first_part(row);
  const std::int64_t size = std::atoll(report::last_part(row).c_str());
  if (size <= 0) return false;
  if (what == "digits") digits(size);
  else if (what == "heat") heat(size);
  else return false;
  return true;
}

}  // namespace distributed
