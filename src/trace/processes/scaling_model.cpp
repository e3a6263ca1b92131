// The model of a step on other numbers of processes: what the exchanges take by their algorithms.
#include "scaling_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <vt/detail/message.hpp>

#include "exchanges.hpp"

namespace vt::detail {

namespace scaling_models {

using distributed::Scaling;

/// The messages of a collective between the members of its group.
class Messages {
 public:
  Messages(const ModelledExchange& e, const ScalingLinks& links)
      : links_(links),
        on_host_(std::clamp(std::max(links.of_host, 1) / std::max(e.stride, 1), 1, e.processes)),
        crosses_(e.processes > on_host_),
        groups_(std::max(1, links.of_host / on_host_)) {}

  /// To the member so far on; all members send at once.
  double at_distance(int distance, double bytes, double range = 0) const {
    return crosses_ && distance >= on_host_ ? across(bytes, links_.of_host, range)
                                            : message_seconds(here(), bytes, 1, range);
  }
  /// To the next one, as all do: a machine sends as many as it has groups.
  double to_next(double bytes, double range = 0) const {
    return crosses_ ? across(bytes, groups_, range) : message_seconds(here(), bytes, 1, range);
  }
  /// To any one, as all do.
  double to_any(double bytes) const {
    return crosses_ ? across(bytes, links_.of_host) : message_seconds(here(), bytes);
  }
  double own(double bytes) const { return own_seconds(crosses_ ? there() : here(), bytes); }

 private:
  const std::vector<Link>& here() const {
    return links_.within.empty() ? links_.between : links_.within;
  }
  const std::vector<Link>& there() const {
    return links_.between.empty() ? links_.within : links_.between;
  }
  /// Those that leave a machine at once share its link, if that is another one.
  double across(double bytes, int together, double range = 0) const {
    return message_seconds(there(), bytes, links_.between.empty() ? 1 : together, range);
  }

  const ScalingLinks& links_;
  int on_host_;
  bool crosses_;
  int groups_;
};

double all_reduce(const ModelledExchange& e, const ScalingLinks& links) {
  const Messages m(e, links);
  const double combined = e.elements * e.width;
  const int n = e.processes;
  if (combined <= static_cast<double>(exchanges::most_whole(n))) {
    const int whole = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
    double seconds = 0;
    for (int distance = 1; distance < whole; distance *= 2)
      seconds += m.at_distance(distance, combined) + links.combine * combined;
    if (n > whole) seconds += 2 * m.at_distance(1, combined) + links.combine * combined;
    return seconds;
  }
  const double piece = static_cast<double>(Channel::usual_piece);
  if (exchanges::goes_by_halves(static_cast<std::size_t>(combined), n)) {
    const int whole = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
    double seconds = 0, part = combined / 2;
    for (int distance = 1; distance < whole; distance *= 2, part /= 2)
      seconds += m.at_distance(distance, part, std::min(part, piece)) + links.combine_long * part +
                 m.at_distance(distance, part);
    if (n > whole)
      seconds += m.at_distance(1, combined, std::min(combined, piece)) +
                 links.combine_long * combined + m.at_distance(1, combined);
    return seconds;
  }
  const double block = static_cast<double>(
                           exchanges::elements_of_block(static_cast<std::size_t>(e.elements), n)) *
                       e.width,
               part = block / combined * e.bytes;
  return (n - 1) *
         (m.to_next(block, std::min(block, piece)) + links.combine_long * block + m.to_next(part));
}

double all_gather(const ModelledExchange& e, const ScalingLinks& links) {
  const Messages m(e, links);
  const int n = e.processes;
  if (!exchanges::gathers_by_doubling(static_cast<std::size_t>(e.bytes), n))
    return (n - 1) * m.to_next(e.bytes);
  double seconds = 0;
  for (int held = 1; held < n; held *= 2)
    seconds += m.at_distance(held, std::min(held, n - held) * e.bytes);
  return seconds;
}

double permute(const ModelledExchange& e, const ScalingLinks& links) {
  const Messages m(e, links);
  const double whole = m.to_next(e.bytes);
  if (!e.is_begun) return whole;
  const double own = std::min(m.own(e.bytes), whole);
  return own + std::max(0.0, whole - own - e.hide);
}

double barrier(const ModelledExchange& e, const ScalingLinks& links) {
  const Messages m(e, links);
  double seconds = 0;
  for (int distance = 1; distance < e.processes; distance *= 2)
    seconds += m.at_distance(distance, 0);
  return seconds;
}

/// Axes grow alike: of a group of Pᵃ of P processes one of Qᵃ becomes when there are Q.
int grown(int size, int processes, std::int64_t wanted) {
  constexpr double most = 1e9;
  const auto all = static_cast<double>(wanted);
  if (processes == 1 || size == processes) return static_cast<int>(std::min(all, most));
  const double power = std::log(static_cast<double>(size)) / std::log(processes);
  return static_cast<int>(std::clamp(std::round(std::pow(all, power)), 1.0, most));
}

/// What is left of the compute of a process.
double share(const ScalingData& data, std::int64_t processes, Scaling how) {
  return how == Scaling::weak ? 1.0
                              : static_cast<double>(data.ranks) / static_cast<double>(processes);
}

/// The number below which so much of the standard normal distribution lies.
double normal_quantile(double below) {
  double least = -40, most = 40;
  for (int k = 0; k < 100; ++k) {
    const double x = (least + most) / 2;
    (std::erfc(-x / std::sqrt(2.0)) / 2 < below ? least : most) = x;
  }
  return (least + most) / 2;
}

}  // namespace scaling_models

double exchange_seconds(const ModelledExchange& e, const ScalingLinks& links) {
  if (e.processes < 2) return 0;
  switch (e.kind) {
    case ExchangeKind::all_reduce: return scaling_models::all_reduce(e, links);
    case ExchangeKind::all_gather: return scaling_models::all_gather(e, links);
    case ExchangeKind::all_to_all:
      return (e.processes - 1) * scaling_models::Messages(e, links).to_any(e.bytes / e.processes);
    case ExchangeKind::permute: return scaling_models::permute(e, links);
    case ExchangeKind::barrier: return scaling_models::barrier(e, links);
    case ExchangeKind::broadcast:
    case ExchangeKind::compare:
    case ExchangeKind::probe: break;  // not in every step
  }
  return 0;
}

double expected_maximum(double count) {
  return count < 2 ? 0 : scaling_models::normal_quantile((count - 0.375) / (count + 0.25));
}

double transfer_seconds(const ScalingData& data, std::size_t k, std::int64_t processes,
                        distributed::Scaling how) {
  ModelledExchange e = data.models[k];
  e.processes = scaling_models::grown(e.processes, data.ranks, processes);
  if (data.ranks > 1) e.stride = scaling_models::grown(e.stride, data.ranks, processes);
  if (data.ranks == 1 && e.processes == 1) return data.exchanges[k].transfer;  // a copy
  const double share = scaling_models::share(data, processes, how);
  if (e.kind == ExchangeKind::all_gather || e.kind == ExchangeKind::all_to_all) e.bytes *= share;
  e.hide *= share;
  return data.exchanges[k].times * exchange_seconds(e, data.links);
}

}  // namespace vt::detail

namespace vt::distributed {

StepTime ScalingReport::parts(Param<std::int64_t> processes, Scaling how, CallSite where) const {
  const detail::ScalingData& d = *data_;
  if (processes < 1)
    detail::fail(ErrorKind::value,
                 detail::formatted("vt::distributed::ScalingReport: {} processes", processes),
                 where);
  const bool exchanges = !d.exchanges.empty();
  if (exchanges && processes > 1 && d.links.within.empty() && d.links.between.empty())
    detail::fail(ErrorKind::value,
                 "vt::distributed::ScalingReport: no link is known, as there is one process; give "
                 "vt::distributed::scaling one, as {.link = {{.latency = 2e-6, .bandwidth = "
                 "10e9}}}",
                 where);
  const double share = detail::scaling_models::share(d, processes, how);
  StepTime t;
  t.compute = share * d.measured.compute;
  if (exchanges)
    t.wait = share * d.spread * detail::expected_maximum(static_cast<double>(processes));
  for (std::size_t k = 0; k < d.exchanges.size(); ++k)
    t.transfer += detail::transfer_seconds(d, k, processes, how);
  return t;
}

double ScalingReport::predict(Param<std::int64_t> processes, Scaling how, CallSite where) const {
  return parts(processes, how, where).seconds();
}
double ScalingReport::seconds() const { return data_->seconds; }
StepTime ScalingReport::measured() const { return data_->measured; }
std::vector<ScalingExchange> ScalingReport::exchanges() const { return data_->exchanges; }
std::vector<Link> ScalingReport::link() const { return data_->links.within; }

}  // namespace vt::distributed
