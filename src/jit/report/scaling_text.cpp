// The report of scaling as text.
#include "scaling_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>

#include <vt/detail/message.hpp>

#include "page.hpp"
#include "report_text.hpp"

namespace vt::detail::scaling_text {

using distributed::Scaling, distributed::ScalingExchange, distributed::ScalingReport,
    distributed::StepTime;

std::string number(std::int64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string times(double n) {
  return n >= 100 || n == std::floor(n) ? number(std::llround(n)) : formatted("{:.3g}", n);
}
std::string time(double seconds) { return seconds > 0 ? html::time_text(seconds) : "0"; }

std::string link_text(std::span<const Link> ranges) {
  std::string text;
  std::int64_t before = 0;
  for (const Link& l : ranges) {
    if (!text.empty())
      text += "; over " + report_text::bytes_text(static_cast<double>(before)) + ": ";
    text += time(l.latency);
    if (l.bandwidth > 0) text += " and " + report_text::count_text(l.bandwidth, "B") + "/s";
    before = l.up_to;
  }
  return text;
}

bool can_predict(const ScalingData& d) {
  return d.exchanges.empty() || !d.links.within.empty() || !d.links.between.empty();
}

std::string used_links(const ScalingData& d) {
  const bool within = !d.links.within.empty(), between = !d.links.between.empty();
  if (!within && !between)
    return "No link is known, as there is one process: give one by ScalingOptions::link.";
  if (!between) return "Between machines predictions use the link within a machine.";
  const std::string which =
      d.is_given ? "the link that was given" : "the measured link between machines";
  if (!within) return "All predictions use " + which + ".";
  return formatted("Predictions put {} {} on a machine, and between machines use {}.",
                   number(d.links.of_host), d.links.of_host == 1 ? "process" : "processes", which);
}

std::string slower_than_modelled(const ScalingData& d) {
  constexpr double most = 1.5;  // times the model
  std::size_t slower = 0;
  double measured = 0, modelled = 0;
  for (const ScalingExchange& e : d.exchanges)
    if (d.ranks > 1 && e.modelled > 0 && e.transfer > most * e.modelled)
      ++slower, measured += e.transfer, modelled += e.modelled;
  if (slower == 0) return "";
  std::string which = "One collective";
  if (slower > 1) which = number(static_cast<std::int64_t>(slower)) + " collectives";
  return formatted("{} took {:.1f} times as long as modelled: predictions are too low there.",
                   which, measured / modelled);
}

std::string exchange(const ScalingExchange& e) {
  return e.text + (e.line > 0 ? " at " + report_text::place_of({e.file.c_str(), e.line}) : "");
}

std::string limit(const ScalingData& d, const ScalingReport& report, std::int64_t processes,
                  const char* separator) {
  if (d.exchanges.empty() || !can_predict(d)) return "";
  const auto share_of = [&](Scaling how, std::size_t k) {
    const double all = report.predict(processes, how);
    return all > 0 ? transfer_seconds(d, k, processes, how) / all : 0;
  };
  std::size_t most = 0;
  for (std::size_t k = 1; k < d.exchanges.size(); ++k)
    if (share_of(Scaling::weak, k) > share_of(Scaling::weak, most)) most = k;
  return formatted("On {} processes {} of a step (strong: {}) is the transfer of{}{}.",
                   number(processes), html::percent(share_of(Scaling::weak, most)),
                   html::percent(share_of(Scaling::strong, most)), separator,
                   exchange(d.exchanges[most]));
}

namespace columns {

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}
std::string left(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, width_of(text)), ' ');
}
std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + text;
}

}  // namespace columns

std::string table_of_exchanges(const ScalingData& d) {
  using columns::left, columns::right;
  std::size_t what = 10, where = 4;
  const auto line_of = [](const ScalingExchange& e) {
    return e.line > 0 ? report_text::place_of({e.file.c_str(), e.line}) : std::string("–");
  };
  for (const ScalingExchange& e : d.exchanges) {
    what = std::max(what, columns::width_of(e.text));
    where = std::max(where, columns::width_of(line_of(e)));
  }
  const auto row = [&](const std::string& text, const std::string& line, const std::string& times,
                       const std::string& bytes, const std::string& wait,
                       const std::string& transfer, const std::string& model) {
    return "  " + left(text, what) + "  " + left(line, where) + right(times, 7) + right(bytes, 10) +
           right(wait, 9) + right(transfer, 10) + right(model, 9) + "\n";
  };
  std::string text = row("collective", "line", "times", "bytes", "wait", "transfer", "model");
  for (const ScalingExchange& e : d.exchanges)
    text += row(e.text, line_of(e), times(e.times),
                report_text::bytes_text(static_cast<double>(e.bytes)), time(e.wait),
                time(e.transfer), d.ranks > 1 ? time(e.modelled) : "–");
  return text;
}

}  // namespace vt::detail::scaling_text

namespace vt::distributed {

std::string ScalingReport::str() const {
  using namespace detail::scaling_text;
  using columns::right;
  const detail::ScalingData& d = *data_;
  const StepTime& m = d.measured;
  // alone, nothing carries anything
  const std::string ranks =
      d.ranks == 1 ? std::string("1 process")
                   : detail::formatted("{} processes ({})", number(d.ranks), d.transport);
  std::string text =
      detail::formatted("a step on {}, the median of {}: {}\n", ranks, d.steps, time(d.seconds));
  text += detail::formatted("  compute {}, wait {}, transfer {}\n", time(m.compute), time(m.wait),
                            time(m.transfer));
  if (!d.links.within.empty())
    text += "  link within a machine: " + link_text(d.links.within) + "\n";
  if (!d.links.between.empty())
    text += "  link between machines: " + link_text(d.links.between) + "\n";
  if (d.exchanges.empty()) text += "  nothing is exchanged\n";
  else text += "\n" + table_of_exchanges(d);
  text += "\n";
  if (const std::string slower = slower_than_modelled(d); !slower.empty())
    text += "  " + slower + "\n\n";
  if (!can_predict(d)) return text + "  " + used_links(d) + "\n";
  text += "  " + right("processes", 9) + right("weak", 11) + right("compute", 13) +
          right("strong", 11) + right("compute", 13) + "\n";
  for (const std::int64_t p : shown_processes) {
    text += "  " + right(number(p), 9);
    for (const Scaling how : {Scaling::weak, Scaling::strong}) {
      const StepTime t = parts(p, how);
      text += right(time(t.seconds()), 11) +
              right(t.seconds() > 0 ? detail::html::percent(t.compute / t.seconds()) : "–", 13);
    }
    text += "\n";
  }
  if (d.exchanges.empty()) return text;
  return text + "  " + used_links(d) + "\n  " + limit(d, *this, shown_processes[4], "\n    ") +
         "\n";
}

}  // namespace vt::distributed
