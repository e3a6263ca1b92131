// The page of explain: one HTML file without scripts, also well-formed XML.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/execution.hpp>

#include "../../trace/base/locks.hpp"
#include "../../trace/ir/executable.hpp"
#include "../services/machine_limits.hpp"
#include "../services/step_time.hpp"
#include "../services/threads.hpp"
#include "page.hpp"
#include "report_text.hpp"

namespace vt::detail {

namespace report_page {

using namespace html;
using report_text::bytes_text, report_text::count_text, report_text::place_of;

// The least time that the machine needs for what a step reads, writes and computes.
struct Bound {
  double memory = 0, arithmetic = 0;
  double seconds() const { return std::max(memory, arithmetic); }
};
Bound bound_of(const ReportStep& s, const MachineLimits& m) {
  if (m.operations == 0) return {};
  std::size_t level = 0;
  while (level + 1 < std::size(MachineLimits::sizes) && s.bytes > MachineLimits::sizes[level])
    ++level;
  const auto runs = static_cast<double>(std::max<std::uint64_t>(s.runs, 1));
  return {runs * static_cast<double>(s.bytes) / m.bandwidth[level],
          runs * static_cast<double>(s.work) * (s.wide ? 2 : 1) / m.operations};
}

struct Measured {
  double seconds = 0;
  int runs = 0;
};
// Runs until the fastest one is known well enough.
Measured measure(Executable& executable, std::span<const BufferRef> inputs) {
  using Clock = std::chrono::steady_clock;
  static LongMutex<> one;
  static std::uint64_t number = 0;
  const std::lock_guard hold(one);
  Measured m;
  executable.run(inputs);
  wait_compiled();
  struct End {
    ~End() { measured_run() = 0; }
  } end;
  const auto start = Clock::now();
  for (; m.runs < 3 || (m.runs < 200 && Clock::now() - start < std::chrono::milliseconds(300));
       ++m.runs) {
    measured_run() = ++number;
    const auto since = Clock::now();
    executable.run(inputs);
    const double seconds = std::chrono::duration<double>(Clock::now() - since).count();
    if (m.runs == 0 || seconds < m.seconds) m.seconds = seconds;
  }
  return m;
}

// `note`: a sentence before the text.
std::string details(const std::string& summary, const std::string& text,
                    const std::string& note = "") {
  return "<details><summary>" + escaped(summary) + "</summary>" +
         (note.empty() ? "" : "<p>" + escaped(note) + "</p>") +
         (text.empty() ? "" : "<pre>" + escaped(text) + "</pre>") + "</details>";
}
int equations_in(const std::string& graph) {
  int n = 0;
  for (std::size_t at = 0; (at = graph.find(" = ", at)) != std::string::npos; ++at) ++n;
  return n;
}
// A step that steps in the report make up. (A loop that is one function is none: its work is not
// known.)
bool made_of_others(const Report& steps, std::size_t i) {
  return i + 1 < steps.size() && steps[i + 1].depth > steps[i].depth;
}

// `inner`: the steps that it is made of are rows too.
std::string row(const ReportStep& s, bool inner, double whole, const MachineLimits& machine) {
  const std::string indent =
      s.depth > 0 ? " style=\"padding-left:" + std::to_string(10 + 22 * s.depth) + "px\"" : "";
  if (s.name.empty())
    return "<tr class=\"head\"><td colspan=\"6\"" + indent + ">" + escaped(s.title) +
           (s.nest.empty() ? "" : details("equations", s.nest)) + "</td></tr>\n";
  std::string lines;
  for (const CallSite& w : s.lines)
    lines += "<code class=\"src\"><em>" + escaped(place_of(w)) + "</em> " + escaped(source_of(w)) +
             "</code>";
  const Bound bound = bound_of(s, machine);
  const double least = bound.seconds(), runs = static_cast<double>(s.runs);
  const auto rate = [&](double each, const char* unit) {
    return s.seconds > 0 ? "<small>" + count_text(each * runs / s.seconds, unit) + "/s</small>"
                         : "";
  };
  std::string text = "<tr><td" + indent + "><b>" + escaped(s.name) + "</b>" +
                     details((s.number < 0 ? s.how : formatted("step {}", s.number)) +
                                 (s.nest.empty() ? "" : ", with its loop nest"),
                             s.nest, s.title) +
                     "</td><td>" + lines;
  text += "</td><td class=\"n\">";
  if (s.seconds > 0) {
    text += time_text(s.seconds) +
            (s.runs > 1 ? "<small>" + std::to_string(s.runs) + " iterations</small>" : "");
    if (whole > 0)
      text += "<small>" + percent(s.seconds / whole) + "</small>" + bar("", s.seconds / whole);
  } else {
    text += "–";
  }
  text += "</td><td class=\"n\">" + bytes_text(static_cast<double>(s.bytes)) +
          rate(static_cast<double>(s.bytes), "B");
  text += "</td><td class=\"n\">" + (s.work ? count_text(static_cast<double>(s.work), "op") +
                                                  rate(static_cast<double>(s.work), "op")
                                            : "–");
  text += "</td><td class=\"n\">";
  if (s.seconds > 0 && least > 0 && !inner)
    text += percent(least / s.seconds) + "<small>" +
            (bound.memory >= bound.arithmetic ? "memory" : "arithmetic") + "</small>" +
            bar(least / s.seconds < 0.5 ? "poor" : "roof", least / s.seconds);
  else text += "–";
  return text + "</td></tr>\n";
}

std::string machine_table(const MachineLimits& m) {
  std::string text = "<h2>The machine</h2><p>Measured once with " + std::to_string(thread_count()) +
                     " threads: " + count_text(m.operations, "op") +
                     "/s in f32 (half of it in f64; a multiply-add is two), and reading again and "
                     "again</p><table><tr>";
  for (const std::uint64_t size : MachineLimits::sizes)
    text += "<th class=\"n\">" + bytes_text(static_cast<double>(size)) + "</th>";
  text += "</tr><tr>";
  for (const double rate : m.bandwidth)
    text += "<td class=\"n\">" + count_text(rate, "B") + "/s</td>";
  return text +
         "</tr></table><p class=\"faint\">A step needs at least the time for its bytes, at the "
         "rate at which so many of them are read, or for its "
         "operations, whichever is longer. "
         "“Of the roofline” is that time as a share of the measured one. Operations of kernels are "
         "in additions: an exp counts as some. What lies in "
         "the "
         "nearest cache when a step begins can be read faster than this says.</p>\n";
}

}  // namespace report_page

std::string explain_page(Executable& executable, std::span<const BufferRef> inputs, bool runs,
                         const Vec<LoggedGraph>& graphs, CallSite title) {
  using namespace report_page;
  const Measured measured = runs ? measure(executable, inputs) : Measured();
  Report steps;
  executable.report(steps, 0);
  double bytes = 0, work = 0, least = 0;
  MachineLimits machine;
  // What was measured while the machine was busy with other things is mended when something is
  // faster.
  for (const bool again : {false, true}) {
    machine = machine_limits(again);
    bytes = work = least = 0;
    bool beyond = false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const ReportStep& s = steps[i];
      if (s.name.empty() || made_of_others(steps, i)) continue;
      const double bound = bound_of(s, machine).seconds(),
                   iterations = static_cast<double>(std::max<std::uint64_t>(s.runs, 1));
      bytes += iterations * static_cast<double>(s.bytes);
      work += iterations * static_cast<double>(s.work);
      least += bound;
      beyond = beyond || (s.seconds > 0 && bound > 1.02 * s.seconds);
    }
    if (!beyond) break;
  }
  const std::string place = title.file ? place_of(title) : "a function";
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" "
      "content=\"width=device-width\"/><title>vt: " +
      escaped(place) + "</title><style>" + style + "</style></head><body>\n<h1>" + escaped(place) +
      "</h1>";
  if (title.file) page += "<p><code>" + escaped(source_of(title)) + "</code></p>";
  page += "\n<div class=\"tiles\">";
  if (runs)
    page += tile(time_text(measured.seconds),
                 "a call, the fastest of " + std::to_string(measured.runs));
  page += tile(bytes_text(bytes), "read and written") + tile(count_text(work, "op"), "operations");
  if (runs && least > 0) page += tile(percent(least / measured.seconds), "of the roofline");
  const Memory memory = executable.memory();
  page += tile(bytes_text(static_cast<double>(memory.peak())), "of memory at most") +
          tile(std::to_string(thread_count()), "threads") + "</div>\n";
  if (!runs) page += "<p>Not measured: this function prints, checks, or calls the host.</p>";
  page +=
      "<h2>Steps, in the order in which they run</h2>\n<table><tr><th>what</th><th>from your "
      "lines</th><th class=\"n\">time</th><th "
      "class=\"n\">bytes</th>"
      "<th class=\"n\">operations</th><th class=\"n\">of the roofline</th></tr>\n";
  for (std::size_t i = 0; i < steps.size(); ++i)
    page += row(steps[i], made_of_others(steps, i), measured.seconds, machine);
  page +=
      "</table>\n<p class=\"faint\">In loop nests b are buffers, d loops, v values, r results of "
      "reductions. What runs on "
      "several threads inside of "
      "loops is not measured by itself.</p>\n";
  page += "<h2>Memory</h2>\n" + details("what lies in memory, and when", memory.str()) + "\n";
  if (machine.operations > 0) page += machine_table(machine);
  page += "<h2>Graphs, from your function to the program</h2>\n";
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    bool again = false;
    for (std::size_t k = 0; k < i; ++k) again = again || graphs[k].text == graphs[i].text;
    const std::string number =
        i + 1 < graphs.size() ? "recorded by " + graphs[i].title : graphs[i].title;
    page +=
        again ? "<p class=\"faint\">" + escaped(number) + ": the same as one above</p>\n"
              : details(number + ", " + std::to_string(equations_in(graphs[i].text)) + " equations",
                        graphs[i].text) +
                    "\n";
  }
  for (const ReportStep& s : steps)
    if (s.graph && s.depth == 0)
      page += details("as it was compiled", to_text(*s.graph, true)) + "\n";
  return page + "</body></html>\n";
}

}  // namespace vt::detail
