// Links: how long messages between two ranks are under way, measured and as a model.
#include "link.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "combine.hpp"
#include "exchanges.hpp"
#include "recorder.hpp"

namespace vt::detail {

namespace links {

/// y ≈ a + b·bytes where the error counts relative to `seconds`; neither is negative.
struct Line {
  double a = 0, b = 0, error = 0;
};
Line line_through(std::span<const LinkSample> samples, double LinkSample::* y) {
  double uu = 0, uv = 0, vv = 0, uy = 0, vy = 0;
  for (const LinkSample& s : samples) {
    const double u = 1 / s.seconds, v = s.bytes / s.seconds, w = s.*y / s.seconds;
    uu += u * u, uv += u * v, vv += v * v, uy += u * w, vy += v * w;
  }
  Line line;
  const double determinant = uu * vv - uv * uv;
  if (determinant > 1e-12 * uu * vv) {
    line.a = (uy * vv - vy * uv) / determinant;
    line.b = (vy * uu - uy * uv) / determinant;
  } else {
    line.a = uy / uu;
  }
  if (line.b < 0) line = {uy / uu, 0, 0};
  if (line.a < 0) line = {0, vv > 0 ? vy / vv : 0, 0};
  for (const LinkSample& s : samples) {
    const double e = (line.a + line.b * s.bytes - s.*y) / s.seconds;
    line.error += e * e;
  }
  return line;
}

/// Where the ranges end, and the error of all.
struct Cut {
  std::vector<std::size_t> ends;
  double error = std::numeric_limits<double>::infinity();
};
Cut best_cut(std::span<const LinkSample> samples, int ranges) {
  constexpr std::size_t fewest = 3;  // samples of a range
  if (samples.size() < fewest) return {};
  if (ranges == 1) return {{samples.size()}, line_through(samples, &LinkSample::seconds).error};
  Cut best;
  for (std::size_t end = fewest; end + fewest <= samples.size(); ++end) {
    Cut cut = best_cut(samples.first(end), ranges - 1);
    cut.error += line_through(samples.subspan(end), &LinkSample::seconds).error;
    if (cut.error >= best.error) continue;
    cut.ends.push_back(samples.size());
    best = std::move(cut);
  }
  return best;
}

inline double per_second(double seconds_of_a_byte) {
  return seconds_of_a_byte > 0 ? 1 / seconds_of_a_byte : 0;
}

const Link& range_of(std::span<const Link> link, double bytes) {
  std::size_t k = 0;
  while (k + 1 < link.size() && link[k].up_to > 0 && bytes > static_cast<double>(link[k].up_to))
    ++k;
  return link[k];
}

inline double median(std::vector<double>& x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

/// The same on all ranks of a machine.
std::uint64_t machine() {
  char text[256] = {};
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    const std::size_t n = std::fread(text, 1, sizeof text - 1, file);
    static_cast<void>(std::fclose(file));
    text[n] = 0;
  }
  if (text[0] == 0) static_cast<void>(::gethostname(text, sizeof text - 1));
  std::uint64_t hash = 1469598103934665603ull;
  for (const char c : std::string(text))
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

constexpr int rounds = 15;
constexpr std::size_t most = std::size_t{4} << 20;
constexpr std::int64_t swapped[2] = {1, 0};

/// Both ranks of the group send at once, as they do in the exchanges.
std::vector<LinkSample> measured(Channel& channel, const RankGroup& pair) {
  std::vector<unsigned char> given(most, 1), got(most, 2);
  std::vector<LinkSample> samples;
  // What is sent was written just before, as in a program: it lies in the caches of the sender.
  const auto swap = [&](std::size_t bytes) {
    exchanges::permute(channel, pair, swapped, given.data(), got.data(), bytes);
    given.swap(got);
  };
  for (std::size_t bytes = 8; bytes <= most; bytes *= 2) {
    const int times = bytes <= 4096 ? 50 : bytes <= (std::size_t{64} << 10) ? 10 : 2;
    std::vector<double> whole, own;
    swap(bytes);
    for (int round = 0; round < rounds; ++round) {
      swap(1);
      const double begin = monotonic_seconds();
      for (int k = 0; k < times; ++k) swap(bytes);
      whole.push_back((monotonic_seconds() - begin) / times);
    }
    const double seconds = median(whole), pause = 2 * seconds + 2e-6;
    for (int round = 0; round < rounds; ++round) {
      swap(1);
      Transfer transfers[2];
      const double begin = monotonic_seconds();
      exchanges::begin_permute(channel, pair, swapped, given.data(), got.data(), bytes, transfers);
      const double begun = monotonic_seconds();
      double later = begun;
      while (later < begun + pause) later = monotonic_seconds();
      exchanges::finish(channel, transfers);
      given.swap(got);
      own.push_back(begun - begin + monotonic_seconds() - later);
    }
    samples.push_back({static_cast<double>(bytes), seconds, std::min(median(own), seconds)});
  }
  return samples;
}

/// How far the clock of the second rank is ahead of that of the first one; known to the first one.
double ahead(Channel& channel, const RankGroup& pair) {
  double best = std::numeric_limits<double>::infinity(), offset = 0;
  for (int round = 0; round < 30; ++round) {
    const std::int64_t there[2] = {-1, 0}, back[2] = {1, -1};
    double time = 0;
    const double sent = monotonic_seconds();
    double came = sent;
    exchanges::permute(channel, pair, there, &sent, &came, sizeof sent);
    time = monotonic_seconds();
    double other = time;
    exchanges::permute(channel, pair, back, &time, &other, sizeof time);
    const double now = monotonic_seconds();
    if (round == 0 || now - sent >= best) continue;
    best = now - sent;
    offset = other - (sent + now) / 2;
  }
  return offset;
}

/// Of a byte, in sums of so many.
double combine_seconds(std::size_t bytes) {
  const std::size_t n = bytes / sizeof(double);
  const CombineLoop combine = combine_loop(RankReduction::sum, DType::f64);
  std::vector<double> a(n, 1.0), b(n, 2.0), sum(n), times;
  for (int round = 0; round < rounds; ++round) {
    const double begin = monotonic_seconds();
    combine(sum.data(), a.data(), b.data(), n);
    times.push_back(monotonic_seconds() - begin);
  }
  return median(times) / static_cast<double>(bytes);
}

}  // namespace links

std::vector<Link> fitted_link(std::span<const LinkSample> samples) {
  if (samples.empty()) return {};
  links::Cut cut = {{samples.size()}, links::line_through(samples, &LinkSample::seconds).error};
  for (int ranges = 2; ranges <= 3; ++ranges) {
    constexpr double good = 0.05;  // of relative errors
    if (cut.error < static_cast<double>(samples.size()) * good * good) break;
    links::Cut more = links::best_cut(samples, ranges);
    if (more.error < cut.error / 2) cut = std::move(more);
  }
  std::vector<Link> link;
  std::size_t first = 0;
  for (const std::size_t end : cut.ends) {
    const std::span<const LinkSample> range = samples.subspan(first, end - first);
    const links::Line whole = links::line_through(range, &LinkSample::seconds),
                      own = links::line_through(range, &LinkSample::own_seconds);
    const bool last = end == samples.size();
    link.push_back({.latency = whole.a,
                    .bandwidth = links::per_second(whole.b),
                    .up_to = last ? 0 : static_cast<std::int64_t>(samples[end - 1].bytes),
                    .own_latency = own.a,
                    .own_bandwidth = links::per_second(own.b)});
    first = end;
  }
  return link;
}

double message_seconds(std::span<const Link> link, double bytes, double together, double range) {
  const Link& l = links::range_of(link, range > 0 ? range : bytes);
  return l.latency + (l.bandwidth > 0 ? bytes * together / l.bandwidth : 0);
}

double own_seconds(std::span<const Link> link, double bytes) {
  const Link& l = links::range_of(link, bytes);
  return l.own_latency + (l.own_bandwidth > 0 ? bytes / l.own_bandwidth : 0);
}

MeasuredLinks measure_links(World& world, const CollectiveSite& site) {
  MeasuredLinks found;
  const auto ranks = static_cast<std::size_t>(world.size());
  found.ahead.assign(ranks, 0.0);
  found.combine = links::combine_seconds(std::size_t{64} << 10);
  found.combine_long = links::combine_seconds(links::most);
  if (ranks == 1) return found;
  const RankGroup all = {0, 1, world.size(), world.rank()};
  const std::uint64_t own = links::machine();
  Vec<std::uint64_t> machines(ranks);
  world.all_gather(all, &own, machines.begin(), sizeof own, site);
  world.probe(
      [&](Channel& channel) {
        const auto with = [&](std::size_t other, auto&& f) {
          const int second = static_cast<int>(other);
          if (all.own == 0 || all.own == second) f(RankGroup{0, second, 2, all.own == 0 ? 0 : 1});
        };
        const auto measure = [&](std::vector<Link>& link, std::size_t other) {
          std::vector<LinkSample> samples;
          with(other, [&](const RankGroup& pair) { samples = links::measured(channel, pair); });
          std::uint64_t count = samples.size();
          exchanges::broadcast(channel, all, 0, &count, sizeof count);
          samples.resize(count);
          exchanges::broadcast(channel, all, 0, samples.data(), count * sizeof(LinkSample));
          link = fitted_link(samples);
        };
        for (std::size_t r = 1; r < ranks; ++r) {
          const bool here = machines[r] == machines[0];
          std::vector<Link>& link = here ? found.within : found.between;
          if (link.empty()) measure(link, r);
          std::size_t known = 0;
          while (machines[known] != machines[r]) ++known;
          if (known < r) found.ahead[r] = found.ahead[known];
          else
            with(r, [&](const RankGroup& pair) { found.ahead[r] = links::ahead(channel, pair); });
        }
        exchanges::broadcast(channel, all, 0, found.ahead.begin(), ranks * sizeof(double));
        exchanges::broadcast(channel, all, 0, &found.combine, sizeof found.combine);
        exchanges::broadcast(channel, all, 0, &found.combine_long, sizeof found.combine_long);
      },
      site);
  return found;
}

}  // namespace vt::detail
