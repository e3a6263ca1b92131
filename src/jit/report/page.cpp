// Pieces of HTML pages: one file without scripts, also well-formed XML.
#include "page.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include <vt/detail/message.hpp>

#include "report_text.hpp"

namespace vt::detail::html {

const char style[] = R"(
:root{--ink:#1c2330;--faint:#687385;--line:#dfe4ec;--paper:#fff;--panel:#f5f7fa;--time:#3b6fd4;
  --roof:#2f9e6e;--poor:#d98a29}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ef;--faint:#94a0b3;--line:#333c4b;
  --paper:#161b24;--panel:#1f2632;--time:#6d9bf1;--roof:#4cc290;--poor:#e6a04a}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1180px;padding:2rem 1.5rem 4rem;background:var(--paper);
  color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.4rem 0 .6rem}p{margin:.3rem 0}
.faint{color:var(--faint)}
code,pre{font:12.5px/1.45 ui-monospace,Consolas,monospace}
pre{margin:.4rem 0;padding:.7rem .9rem;background:var(--panel);border-radius:6px;overflow-x:auto}
.tiles{display:flex;flex-wrap:wrap;gap:.7rem;margin:1.2rem 0}
.tile{background:var(--panel);border-radius:8px;padding:.6rem 1rem;min-width:8.5rem}
.tile b{display:block;font-size:1.25rem}.tile span{color:var(--faint);font-size:.85rem}
table{border-collapse:collapse;width:100%}
th{font-weight:500;font-size:.85rem;color:var(--faint);text-align:left;padding:.3rem .6rem;
  border-bottom:1px solid var(--line)}
td{padding:.5rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
td small{color:var(--faint);display:block}tr.head td{background:var(--panel);font-weight:500}
.bar{display:block;height:6px;border-radius:3px;background:var(--line);margin-top:.3rem;width:7rem;
  margin-left:auto}.bar i{display:block;height:6px;border-radius:3px;background:var(--time)}
.bar.roof i{background:var(--roof)}.bar.poor i{background:var(--poor)}
summary{cursor:pointer;color:var(--faint);font-size:.85rem}.src{display:block;white-space:pre-wrap}
.src em{font-style:normal;color:var(--faint)}
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
  }
  return out;
}

std::string time_text(double seconds) {
  constexpr const char* units[] = {"ns", "µs", "ms", "s"};
  return report_text::quantity(seconds * 1e9, 1000, units, 4);
}
std::string percent(double share) {
  if (share < 0.0005) return "under 0.1 %";
  return formatted(share < 0.0995 ? "{:.1f} %" : "{:.0f} %", 100 * share);
}
std::string bar(const char* kind, double share) {
  return formatted("<span class=\"bar {}\"><i style=\"width:{:.1f}%\"></i></span>", kind,
                   100 * std::clamp(share, 0.0, 1.0));
}

std::string source_of(CallSite w) {
  std::FILE* file = std::fopen(w.file, "r");
  std::string text;
  int line = 1;
  for (int c; file && line <= w.line && (c = std::fgetc(file)) != EOF;) {
    if (c == '\n') ++line;
    else if (line == w.line) text += static_cast<char>(c);
  }
  if (file) std::fclose(file);
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first);
}
std::string tile(const std::string& value, const std::string& meaning) {
  return "<div class=\"tile\"><b>" + escaped(value) + "</b><span>" + escaped(meaning) +
         "</span></div>";
}

}  // namespace vt::detail::html
