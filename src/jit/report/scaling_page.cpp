// The report of scaling as a page: the timeline of a step, its collectives, and a chart of what is
// predicted.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <vt/detail/message.hpp>

#include "../../trace/processes/scaling_model.hpp"
#include "page.hpp"
#include "report_text.hpp"
#include "scaling_text.hpp"

namespace vt::detail::scaling_page {

using distributed::Scaling, distributed::ScalingExchange, distributed::ScalingReport,
    distributed::StepTime;
using html::escaped, html::percent, html::tile;
using scaling_text::number, scaling_text::time;

constexpr char style[] = R"(
svg{display:block;width:100%;height:auto;margin:.4rem 0}
svg text{font:12px system-ui,sans-serif;fill:var(--faint)}
svg line{stroke:var(--line)}svg .n{text-anchor:end}svg .m{text-anchor:middle}
.compute{fill:var(--time)}.wait{fill:var(--poor)}.transfer{fill:var(--roof)}
path{fill:none;stroke-width:2.5}.weak{stroke:var(--time)}.strong{stroke:var(--roof)}
path.ideal{stroke-width:1.5;stroke-dasharray:3 5}
svg text.weak{fill:var(--time);stroke:none}svg text.strong{fill:var(--roof);stroke:none}
circle{fill:var(--paper);stroke-width:2.5;stroke:var(--ink)}
.key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .35em 0 1.2em}
.key i.compute{background:var(--time);margin-left:0}.key i.wait{background:var(--poor)}
.key i.transfer{background:var(--roof)}
)";

const char* name_of(TimelineBar::Kind kind) {
  return kind == TimelineBar::Kind::compute ? "compute"
         : kind == TimelineBar::Kind::wait  ? "wait"
                                            : "transfer";
}

// --- the timeline --------------------------------------------------------------------------------

constexpr double left_edge = 80, right_edge = 990;  // of charts, which are 1000 wide

/// Steps of an axis: 1, 2 or 5 times a power of ten, at most so many of them up to `end`.
double tick_of(double end, int most) {
  const double least = end / most, power = std::pow(10, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0})
    if (times * power >= least) return times * power;
  return 10 * power;
}

std::string rectangle(const char* kind, double x, double y, double width, double height,
                      const std::string& title) {
  return formatted(
             "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.2f}\"",
             kind, x, y, width, height) +
         (title.empty() ? "/>" : "><title>" + escaped(title) + "</title></rect>");
}

/// Bars that are too narrow to be seen are shown as shares of a column.
std::string shares_of(const std::vector<TimelineBar>& bars, double end, double y, double height) {
  constexpr int columns = 300;
  constexpr double width = (right_edge - left_edge) / columns;
  using Kind = TimelineBar::Kind;
  std::string text;
  std::size_t first = 0;
  for (int c = 0; c < columns; ++c) {
    const double from = end * c / columns, to = end * (c + 1) / columns;
    while (first < bars.size() && bars[first].end <= from) ++first;
    double seconds[3] = {};
    for (std::size_t k = first; k < bars.size() && bars[k].begin < to; ++k)
      seconds[static_cast<int>(bars[k].kind)] +=
          std::max(0.0, std::min(bars[k].end, to) - std::max(bars[k].begin, from));
    double top = y;
    for (const Kind kind : {Kind::transfer, Kind::wait, Kind::compute}) {
      const double h = height * std::min(1.0, seconds[static_cast<int>(kind)] / (to - from));
      if (h < 0.05) continue;
      text += rectangle(name_of(kind), left_edge + c * width, top, width + 0.3, h, "");
      top += h;
    }
  }
  return text;
}

std::string timeline(const ScalingData& d) {
  constexpr std::size_t most_rows = 64, most_bars = 400;
  const std::size_t rows = std::min(d.timeline.size(), most_rows);
  const double height = rows <= 8 ? 26 : 14, row = height + (rows <= 8 ? 8 : 3);
  double end = 0;
  for (const auto& bars : d.timeline)
    for (const TimelineBar& b : bars) end = std::max(end, b.end);
  if (end <= 0) return "";
  const double bottom = row * static_cast<double>(rows) + 4, scale = (right_edge - left_edge) / end;
  std::string text = formatted("<svg viewBox=\"0 0 1000 {:.0f}\" role=\"img\">", bottom + 20);
  const double tick = tick_of(end, 10);
  for (int k = 0; k * tick <= end; ++k) {
    const double x = left_edge + k * tick * scale;
    text += formatted("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"0\" y2=\"{:.0f}\"/>", x, x, bottom) +
            formatted("<text class=\"m\" x=\"{:.1f}\" y=\"{:.0f}\">", x, bottom + 15) +
            time(k * tick) + "</text>";
  }
  for (std::size_t r = 0; r < rows; ++r) {
    const double y = row * static_cast<double>(r) + 2;
    const std::vector<TimelineBar>& bars = d.timeline[r];
    text += formatted("\n<text class=\"n\" x=\"70\" y=\"{:.1f}\">rank {}</text>",
                      y + height / 2 + 4, r);
    if (bars.size() > most_bars) {
      text += shares_of(bars, end, y, height);
      continue;
    }
    for (const TimelineBar& b : bars) {
      std::string title = std::string(name_of(b.kind)) + ", " + time(b.end - b.begin);
      if (b.exchange >= 0)
        title += ": " + scaling_text::exchange(d.exchanges[static_cast<std::size_t>(b.exchange)]);
      constexpr double least = 0.8;  // that is seen
      text += rectangle(name_of(b.kind), left_edge + b.begin * scale, y,
                        std::max(least, (b.end - b.begin) * scale), height, title);
    }
  }
  text += "</svg>";
  text += "<p class=\"faint\">";
  text += d.steps == 1
              ? "The step that was recorded. The time of a step above is that without recording."
              : formatted(
                    "One step: of {} recorded ones, that of the median duration. All numbers "
                    "are medians over the steps; the time of a step is that without "
                    "recording.",
                    d.steps);
  if (rows < d.timeline.size())
    text += formatted(" The first {} of {} processes.", rows, d.timeline.size());
  return text + "</p>";
}

// --- tables --------------------------------------------------------------------------------------

std::string table_of_lines(const ScalingData& d) {
  std::string text =
      "<table><tr><th>collective</th><th>from your line</th><th class=\"n\">times</th>"
      "<th class=\"n\">bytes</th><th class=\"n\">wait</th><th class=\"n\">transfer</th>"
      "<th class=\"n\">as modelled</th></tr>\n";
  const auto cell = [](const std::string& value) {
    return "<td class=\"n\">" + escaped(value) + "</td>";
  };
  for (std::size_t k = 0; k < d.exchanges.size(); ++k) {
    const ScalingExchange& e = d.exchanges[k];
    const CallSite where = {e.file.c_str(), e.line};
    text += "<tr><td>" + escaped(e.text) +
            (d.models[k].is_begun ? "<small>begun early, waited for late</small>" : "") +
            "</td><td>";
    if (e.line > 0)
      text += "<code class=\"src\"><em>" + escaped(report_text::place_of(where)) + "</em> " +
              escaped(html::source_of(where)) + "</code>";
    text += "</td>" + cell(scaling_text::times(e.times)) +
            cell(report_text::bytes_text(static_cast<double>(e.bytes))) + cell(time(e.wait)) +
            cell(time(e.transfer)) + cell(d.ranks > 1 ? time(e.modelled) : "–") + "</tr>\n";
  }
  return text + "</table>";
}

std::string predictions(const ScalingReport& report) {
  std::string text =
      "<table><tr><th class=\"n\">processes</th><th class=\"n\">weak</th><th class=\"n\">compute"
      "</th><th class=\"n\">wait</th><th class=\"n\">transfer</th><th class=\"n\">strong</th>"
      "<th class=\"n\">compute</th><th class=\"n\">wait</th><th class=\"n\">transfer</th></tr>\n";
  for (const std::int64_t p : scaling_text::shown_processes) {
    text += "<tr><td class=\"n\">" + number(p) + "</td>";
    for (const Scaling how : {Scaling::weak, Scaling::strong}) {
      const StepTime t = report.parts(p, how);
      const double all = t.seconds();
      text += "<td class=\"n\"><b>" + time(all) + "</b></td>";
      for (const double part : {t.compute, t.wait, t.transfer})
        text += "<td class=\"n\">" + (all > 0 && part > 0 ? percent(part / all) : "–") + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</table>";
}

/// 10ᵏ seconds: "100 µs".
std::string power_text(int k) {
  const int unit = std::clamp(static_cast<int>(std::floor((k + 9) / 3.0)), 0, 3);
  constexpr const char* units[] = {"ns", "µs", "ms", "s"};
  return formatted("{:.6g} {}", std::pow(10, k + 9 - 3 * unit), units[unit]);
}

// --- the chart -----------------------------------------------------------------------------------

std::string chart(const ScalingData& d, const ScalingReport& report) {
  constexpr double top = 14, bottom = 300, right = 890, decades = 4;
  constexpr int points = 41;
  std::vector<double> weak, strong;
  std::vector<std::int64_t> counts;
  double least = d.seconds, most = d.seconds;
  for (int k = 0; k < points; ++k) {
    const auto p = static_cast<std::int64_t>(std::lround(std::pow(10, decades * k / (points - 1))));
    if (!counts.empty() && counts.back() == p) continue;
    counts.push_back(p);
    weak.push_back(report.predict(p)), strong.push_back(report.predict(p, Scaling::strong));
    for (const double t : {weak.back(), strong.back()})
      least = std::min(least, t), most = std::max(most, t);
  }
  if (!(least > 0)) return "";
  const double low = std::floor(std::log10(least)),
               high = std::max(low + 1, std::ceil(std::log10(most)));
  const auto x_of = [&](double p) {
    return left_edge + (right - left_edge) * std::log10(p) / decades;
  };
  const auto y_of = [&](double seconds) {
    const double level = (std::log10(seconds) - low) / (high - low);
    return bottom - (bottom - top) * std::clamp(level, 0.0, 1.0);
  };
  std::string text = "<svg viewBox=\"0 0 1000 330\" role=\"img\">";
  for (int k = static_cast<int>(low); k <= static_cast<int>(high); ++k) {
    const double y = y_of(std::pow(10, k));
    text += formatted("<line x1=\"{:.0f}\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", left_edge,
                      right, y, y) +
            formatted("<text class=\"n\" x=\"70\" y=\"{:.1f}\">", y + 4) + power_text(k) +
            "</text>";
  }
  for (int k = 0; k <= static_cast<int>(decades); ++k) {
    const double p = std::pow(10, k), x = x_of(p);
    text += formatted("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.0f}\" y2=\"{:.0f}\"/>", x, x, top,
                      bottom) +
            formatted("<text class=\"m\" x=\"{:.1f}\" y=\"{:.0f}\">", x, bottom + 18) +
            number(std::lround(p)) + "</text>";
  }
  const auto line = [&](const char* kind, auto seconds_of) {
    std::string path;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const double seconds = seconds_of(k);
      if (std::log10(seconds) < low) break;
      path += formatted("{}{:.1f} {:.1f}", k == 0 ? "M" : " L",
                        x_of(static_cast<double>(counts[k])), y_of(seconds));
    }
    return formatted("<path class=\"{}\" d=\"{}\"/>", kind, path);
  };
  text += line("ideal weak", [&](std::size_t) { return weak[0]; }) +
          line("ideal strong",
               [&](std::size_t k) { return strong[0] / static_cast<double>(counts[k]); }) +
          line("weak", [&](std::size_t k) { return weak[k]; }) +
          line("strong", [&](std::size_t k) { return strong[k]; });
  double weak_y = y_of(weak.back()), strong_y = y_of(strong.back());
  if (std::abs(weak_y - strong_y) < 16) (weak_y < strong_y ? strong_y : weak_y) += 16;
  text +=
      formatted("<text class=\"weak\" x=\"{:.0f}\" y=\"{:.1f}\">weak</text>", right + 8,
                weak_y + 4) +
      formatted("<text class=\"strong\" x=\"{:.0f}\" y=\"{:.1f}\">strong</text>", right + 8,
                strong_y + 4) +
      formatted("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>measured, {}</title></circle>",
                x_of(d.ranks), y_of(d.seconds), time(d.seconds));
  return text +
         "</svg><p class=\"faint\">Time of a step by the number of processes. Weak: each "
         "process keeps its part. Strong: the same problem in more parts; the model does not know "
         "from how many processes on a part has no row left. Dotted: if nothing were exchanged. "
         "The ring is what was measured. A curve jumps where a collective goes by another "
         "algorithm: large sums are fastest on a power of two of processes.</p>\n";
}

}  // namespace vt::detail::scaling_page

namespace vt::distributed {

std::string ScalingReport::html() const {
  namespace text_of = detail::scaling_text;
  using namespace detail::scaling_page;
  const detail::ScalingData& d = *data_;
  const StepTime& m = d.measured;
  const std::string place = detail::report_text::place_of(d.where);
  const std::string title =
      detail::formatted("How a step scales: {}", d.where.file ? place : std::string("a function"));
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" "
      "content=\"width=device-width\"/><title>vt: " +
      escaped(title) + "</title><style>" + detail::html::style + style +
      "</style></head><body>\n<h1>" + escaped(title) + "</h1>\n<div class=\"tiles\">";
  page += tile(time(d.seconds), detail::formatted("on {} {}", number(d.ranks),
                                                  d.ranks == 1 ? "process" : "processes"));
  page += tile(time(m.compute), "compute") + tile(time(m.wait), "wait") +
          tile(time(m.transfer), "transfer");
  const bool can_predict = text_of::can_predict(d);
  if (can_predict)
    for (const std::int64_t p : {std::int64_t{100}, std::int64_t{10'000}})
      page += tile(time(predict(p)), "predicted on " + number(p));
  page +=
      "</div>\n<h2>A step</h2>\n<p class=\"key\"><i class=\"compute\"></i>compute<i "
      "class=\"wait\"></i>wait<i class=\"transfer\"></i>transfer</p>\n" +
      timeline(d) + "\n";
  page += "<h2>Collectives</h2>\n" +
          (d.exchanges.empty() ? "<p>Nothing is exchanged.</p>" : table_of_lines(d)) + "\n";
  if (const std::string slower = text_of::slower_than_modelled(d); !slower.empty())
    page += "<p>" + escaped(slower) + "</p>\n";
  page += "<h2>On more processes</h2>\n";
  if (can_predict) {
    const std::string limit = text_of::limit(d, *this, 10'000, " ");
    if (!limit.empty()) page += "<p>" + escaped(limit) + "</p>\n";
    page += chart(d, *this) + predictions(*this) + "\n";
  } else {
    page += "<p>" + escaped(text_of::used_links(d)) + "</p>\n";
  }
  if (!d.exchanges.empty() && can_predict) {
    page += "<h2>The link</h2>\n<p>" + escaped(text_of::used_links(d)) + "</p>\n<table>";
    const auto row = [&](const char* name, const std::vector<Link>& link) {
      if (!link.empty())
        page += std::string("<tr><td>") + name + "</td><td>" + escaped(text_of::link_text(link)) +
                "</td></tr>";
    };
    row("within a machine", d.links.within);
    row(d.is_given ? "between machines, as given" : "between machines", d.links.between);
    if (d.links.combine > 0)
      page += "<tr><td>adding up what has come</td><td>" +
              detail::report_text::count_text(1 / d.links.combine, "B") +
              "/s; in long sums, whose parts leave the caches, " +
              detail::report_text::count_text(1 / d.links.combine_long, "B") + "/s</td></tr>";
    page += "</table>\n";
  }
  return page + "</body></html>\n";
}

}  // namespace vt::distributed
