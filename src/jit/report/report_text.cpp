// What runs, as text: vt::explain, which fits on a screen, and vt::explain_steps, which has all.
#include "report_text.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/executable.hpp"

namespace vt::detail {

namespace report_text {

std::string quantity(double x, double step, const char* const* units, int count) {
  int k = 0;
  for (; k + 1 < count && x >= step; ++k) x /= step;
  const bool whole = x >= 100 || std::abs(x - std::round(x)) <= 1e-9 * x;
  return formatted(whole ? "{:.0f} {}" : x >= 10 ? "{:.1f} {}" : "{:.3g} {}", x, units[k]);
}
std::string bytes_text(double x) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return quantity(x, 1024, units, 5);
}
std::string count_text(double x, const char* unit) {
  const std::string names[] = {unit, std::string("k") + unit, std::string("M") + unit,
                               std::string("G") + unit, std::string("T") + unit};
  const char* units[] = {names[0].c_str(), names[1].c_str(), names[2].c_str(), names[3].c_str(),
                         names[4].c_str()};
  return quantity(x, 1000, units, 5);
}
std::string place_of(CallSite w) {
  const std::string_view path = w.file ? w.file : "";
  return std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(w.line);
}

// "model.cpp:12, 13; loss.cpp:4"
std::string places_of(const Vec<CallSite>& lines) {
  std::string text;
  const char* file = nullptr;
  for (const CallSite& w : lines) {
    const bool same = file && std::string_view(w.file) == file;
    text += same ? ", " + std::to_string(w.line) : (file ? "; " : "") + place_of(w);
    file = w.file;
  }
  return text;
}

std::string indented(int depth) { return std::string(static_cast<std::size_t>(2 * depth), ' '); }

// --- at most a screen ----------------------------------------------------------------------------

constexpr std::size_t screen_lines = 24, screen_columns = 100;

// In characters, of which UTF-8 has some in several bytes.
std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return width;
}
std::string cut(std::string text, std::size_t columns) {
  if (width_of(text) <= columns) return text;
  std::size_t end = 0;
  for (std::size_t width = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80;
    if (begins && ++width == columns) break;
  }
  return text.substr(0, end) + "…";
}
std::string filled(std::string text, std::size_t columns) {
  text = cut(std::move(text), columns);
  return text + std::string(columns - width_of(text), ' ');
}

// "program: 3 kernels, 64 bytes of scratch memory": what there is none of is left out.
std::string without_zeros(const std::string& title) {
  std::string text;
  for (std::size_t at = 0; at < title.size();) {
    const std::size_t end = std::min(title.find(", ", at), title.size());
    if (text.empty()) text = title.substr(at, end - at);
    else if (title.compare(at, 2, "0 ") != 0) text += ", " + title.substr(at, end - at);
    at = end + 2;
  }
  return text;
}

std::string line_of(const ReportStep& s) {
  const std::string indent = indented(s.depth);
  if (s.name.empty()) return cut(indent + without_zeros(s.title), screen_columns);
  const std::string number = s.number < 0 ? "" : std::to_string(s.number) + " ",
                    what = filled(indent + number + s.how + ": " + s.name, 52),
                    bytes = bytes_text(static_cast<double>(s.bytes)),
                    work = s.work ? count_text(static_cast<double>(s.work), "op") : "";
  std::string line = what + "  " + filled(bytes, 9) + filled(work, 10) + places_of(s.lines);
  line.erase(line.find_last_not_of(' ') + 1);
  return cut(std::move(line), screen_columns);
}

// Which steps are shown: all if there is room for them, else those with the most bytes and
// operations, and what they stand in; one line says then how many are left out.
Vec<bool> chosen(const Report& steps) {
  Vec<bool> shown(steps.size(), steps.size() <= screen_lines);
  if (steps.size() <= screen_lines) return shown;
  Vec<std::size_t> order;
  Vec<std::ptrdiff_t> around(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    order.push_back(i);
    auto outer = static_cast<std::ptrdiff_t>(i) - 1;
    while (outer >= 0 && steps[outer].depth >= steps[i].depth) outer = around[outer];
    around[i] = outer;
  }
  const auto weight = [&](std::size_t i) { return steps[i].bytes + steps[i].work; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return weight(a) > weight(b); });
  shown[0] = true;
  std::size_t count = 1;
  for (std::size_t i : order) {
    Vec<std::size_t> more;
    for (auto k = static_cast<std::ptrdiff_t>(i); k >= 0 && !shown[k]; k = around[k])
      more.push_back(static_cast<std::size_t>(k));
    if (count + more.size() > screen_lines - 1) continue;
    for (std::size_t k : more) shown[k] = true;
    count += more.size();
  }
  return shown;
}

}  // namespace report_text

std::string Executable::explain() const {
  using namespace report_text;
  Report steps;
  report(steps, 0);
  const Vec<bool> shown = chosen(steps);
  std::string text;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (shown[i]) text += line_of(steps[i]) + "\n";
    else ++left_out;
  }
  if (left_out > 0)
    text += formatted("… and {} smaller steps: vt::explain_steps shows them all\n", left_out);
  return text;
}

std::string Executable::explain_steps() const {
  using namespace report_text;
  Report steps;
  report(steps, 0);
  std::string text;
  for (const ReportStep& s : steps) {
    const std::string indent = indented(s.depth);
    text +=
        indent + (s.number < 0 ? std::string() : formatted("step {}: ", s.number)) + s.title + "\n";
    if (!s.lines.empty()) text += indent + "  of " + places_of(s.lines) + "\n";
    for (std::size_t at = 0; at < s.nest.size();) {
      const std::size_t end = s.nest.find('\n', at);
      text.append(indent).append(s.nest, at, end - at + 1);
      at = end == std::string::npos ? end : end + 1;
    }
  }
  return text;
}

}  // namespace vt::detail
