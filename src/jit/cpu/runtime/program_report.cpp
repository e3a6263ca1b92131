// A Program's description of itself: explain, and the names of its steps in timelines.
#include <algorithm>
#include <cstring>

#include <vt/detail/loops.hpp>

#include "../../../trace/base/timeline.hpp"
#include "../../../trace/ir/printer.hpp"
#include "../../fusion/epilogue.hpp"
#include "../../report/dump.hpp"
#include "program.hpp"

namespace vt::detail {

namespace program_texts {

std::string names_of(const GraphBody& g, const Vec<int>& equations, bool only_work) {
  Vec<int> sorted = equations;
  std::sort(sorted.begin(), sorted.end());
  std::string names;
  for (int e : sorted) {
    const Op op = g.equations[e].op;
    if (only_work && (op == Op::broadcast_in_dim || op == Op::reshape || op == Op::full)) continue;
    names += (names.empty() ? "" : " ") + std::string(name_of(op));
  }
  return names;
}

std::string counted(std::uint64_t n, const std::string& thing) {
  return std::to_string(n) + " " +
         (n == 1                      ? thing
          : thing == "loop or branch" ? "loops or branches"
                                      : thing + "s");
}

}  // namespace program_texts

std::string Program::operations_of(const Step& s) const {
  return program_texts::names_of(fusion_.graph, s.fused, false);
}

std::string Program::short_operations_of(const Step& s) const {
  constexpr std::size_t longest = 60;
  std::string names = program_texts::names_of(fusion_.graph, s.fused, true);
  if (names.empty()) names = operations_of(s);
  return names.empty()            ? "copy"
         : names.size() > longest ? names.substr(0, names.rfind(' ', longest)) + " …"
                                  : names;
}

std::string Program::kernel_text(const Step& s) const {
  return "kernel " + short_name(s.nest_text) +
         (s.partial ? ", first half of a cut reduction" : "") + ", fuses " +
         program_texts::counted(s.fused.size(), "equation") + " (" + operations_of(s) + ")" +
         (s.kernel.optimised() ? "" : ", not optimised yet");
}

// What was chosen over what. Schedules are chosen by shapes and costs alone, so choosing again
// tells what was chosen.
std::string Program::decisions_of(const Step& s) const {
  const FusedStep& fused = fusion_.steps[&s - steps_.begin()];
  std::string text;
  if (fused.row_loop >= 0)
    static_cast<void>(schedule_epilogue(fused.nest, fused.row_loop, vector_bytes_, &text));
  else static_cast<void>(choose_schedule(fused.nest, vector_bytes_, costs_, &text));
  for (std::size_t b = 0; b < fused.nest.buffers.size() && b < fused.buffers.size(); ++b) {
    const std::size_t v = fused.buffers[b];
    if (fused.nest.buffers[b].written && v < fusion_.again.size() && fusion_.again[v] > 0)
      text += "  fusion: b" + std::to_string(b) +
              " stored over computed again by its readers (about " +
              std::to_string(fusion_.again[v]) + " operations an element)\n";
  }
  if (s.has_epilogue()) text += "  threads: those of the product\n";
  else
    text += std::string("  threads: ") +
            (s.wakes      ? "all"
             : s.parallel ? "those that are awake"
                          : "one") +
            ", about " + scheduling::cost_text(s.alone / 1000) + " us alone and woken from " +
            scheduling::cost_text(costs_.worth_waking() / 1000) + " us on\n";
  return "decisions\n" + text;
}

// What the nest leaves to each use: extents known when it runs, and whose elements its buffers
// hold.
std::string Program::bindings_of(const Step& s, const printer::Names& names) const {
  const Nest& nest = fusion_.steps[&s - steps_.begin()].nest;
  std::string text;
  std::size_t argument = 0;
  for (std::size_t l = 0; l < nest.loops.size(); ++l)
    if (nest.loops[l].runtime) {
      const std::string value = std::to_string(s.arguments[argument++]),
                        name = "n" + std::to_string(l);
      if (s.nest_text.find(" " + name) != std::string::npos)
        text += (text.empty() ? "with " : ", ") + name + " = " + value;
    }
  for (std::size_t b = 0; b < s.slots.size() && b < nest.buffers.size(); ++b)
    if (nest.buffers[b].local == 0)
      text +=
          (text.empty() ? "with b" : ", b") + std::to_string(b) + " = " + names.typed(s.slots[b]);
  return text.empty() ? text : text + "\n";
}

Vec<CallSite> Program::lines_of(const Step& s) const {
  Vec<CallSite> lines;
  const auto add_line = [&](CallSite w) {
    const bool known = any_of(
        lines, [&](CallSite l) { return l.line == w.line && std::strcmp(l.file, w.file) == 0; });
    if (w.file && !known) lines.push_back(w);
  };
  const auto add = [&](int equation) {
    const Equation& e = fusion_.graph.equations[equation];
    if (e.op != Op::fused_region) return add_line(e.where);
    for (const Equation& inside : e.as<RegionParams>().body->equations) add_line(inside.where);
  };
  for (int e : {s.equation, s.then})
    if (e >= 0) add(e);
  for (int e : s.fused) add(e);
  insertion_sort(lines, [](CallSite x, CallSite y) {
    const int files = std::strcmp(x.file, y.file);
    return files != 0 ? files < 0 : x.line < y.line;
  });
  return lines;
}

void Program::report(Report& report, int depth) const {
  using program_texts::counted;
  const GraphBody& g = fusion_.graph;
  const printer::Names names(g);
  ReportStep head;
  head.depth = depth;
  head.title = "program: " + counted(launches_, "kernel") + ", " +
               counted(products_, "matrix product") + ", " +
               (loops_ ? counted(loops_, "loop or branch") + ", " : "") +
               (regions_ ? counted(regions_, "fused region") + ", " : "") +
               counted(interpreted_, "interpreted equation") + ", " +
               std::to_string(plan_.arena_bytes) + " bytes of scratch memory";
  head.graph = &g;
  head.nest = "passes: " + text_of(passes_) + "\n" + (depth == 0 ? costs_.str() : "");
  report.push_back(head);
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step& s = steps_[k];
    ReportStep r;
    r.depth = depth;
    r.number = static_cast<int>(k);
    r.name = step_name(s);
    r.lines = lines_of(s);
    r.bytes = s.bytes;
    r.work = s.work;
    r.seconds = s.time.seconds();
    r.runs = s.time.count;
    if (!s.nest_text.empty()) r.nest = s.nest_text + bindings_of(s, names) + decisions_of(s);
    const Equation* shown = shown_equation(s, s.kind == Step::Kind::kernel);
    r.wide = shown && !shown->outputs.empty() && size_of(g.aval(shown->outputs[0]).dtype) == 8;
    if (s.kind == Step::Kind::kernel) {
      r.how = "kernel";
      r.title = kernel_text(s) + ", " + std::to_string(s.bytes) + " bytes, about " +
                std::to_string(s.work) + " operations" + (s.parallel ? ", on all threads" : "");
      if (s.pair)
        r.title += "; after each " + std::to_string(s.pair_rows) +
                   " iterations one of the next step, which reads the same";
    } else {
      const Equation& e = g.equations[s.equation];
      const bool is_product = e.op == Op::dot_general;
      r.how = s.kind == Step::Kind::product  ? is_product ? "matrix product" : "convolution"
              : s.kind == Step::Kind::sort   ? "sort"
              : s.kind == Step::Kind::linalg ? "matrices"
              : s.kind == Step::Kind::fft    ? "transform"
              : e.op == Op::fused_region     ? "region"
              : s.control                    ? "loop or branch"
              : is_unset(e)                  ? "memory for what a loop keeps"
                                             : "interpreter";
      r.title =
          s.kind == Step::Kind::product
              ? r.how + " " + (s.chain ? s.chain->describe(false) : s.product->describe()) + ", "
          : s.kind == Step::Kind::sort ? "sort of " + describe(s.sort) + ", "
          : s.kind == Step::Kind::linalg && s.lanes > 1
              ? "matrices, " + std::to_string(s.lanes) + " side by side: "
          : e.op == Op::fused_region ? ""
                                     : r.how + ": ";
      r.title += describe(e.op, e.params) + ", " + std::to_string(s.bytes) + " bytes";
      if (s.kind == Step::Kind::product) r.title += ", " + std::to_string(s.work) + " flops";
      if (s.has_epilogue()) r.title += "; on its rows as they are done: " + kernel_text(s);
      if (s.chain) {
        const Equation& then = g.equations[s.then];
        r.title += "; of those, " + std::to_string(s.chain->block_rows()) +
                   " at a time: matrix product " + s.chain->describe(true) + ", " +
                   describe(then.op, then.params);
      }
    }
    report.push_back(std::move(r));
    if (s.control) s.control->report(report, depth + 1);
  }
}

const Equation* Program::shown_equation(const Step& s, bool kernel) const {
  if (kernel && s.fused.empty()) return nullptr;
  const int last = kernel ? *std::max_element(s.fused.begin(), s.fused.end()) : s.equation;
  return &fusion_.graph.equations[last];
}

CodeLabel Program::label_of(const Step& s, bool kernel) const {
  if (!perf_wanted() && !gdb_wanted()) return {};
  const Equation* last = shown_equation(s, kernel);
  std::string lines;
  if (kernel && gdb_wanted())
    for (const NestValue& v : fusion_.steps[&s - steps_.begin()].nest.values) lines += at(v.where);
  return {kernel ? short_operations_of(s) : std::string(name_of(last->op)),
          kernel ? short_name(s.nest_text) : "", last ? last->where : CallSite(), std::move(lines)};
}

std::string Program::step_name(const Step& s) const {
  if (s.kind == Step::Kind::kernel) return short_operations_of(s);
  return std::string(name_of(shown_equation(s, false)->op)) +
         (s.has_epilogue() ? ", then " + short_operations_of(s) : "") +
         (s.chain ? ", then dot_general" : "");
}

void Program::name_steps() {
  for (Step& s : steps_) {
    const bool kernel = s.kind == Step::Kind::kernel;
    const Equation* last = shown_equation(s, kernel);
    s.name = step_name(s);
    const auto member = [&](const std::string& text) {
      s.details += (s.details.empty() || text.empty() ? "" : ",") + text;
    };
    if (last) member(json_line(last->where));
    if (!s.nest_text.empty()) member(json_member("kernel", short_name(s.nest_text)));
    if (last && !kernel) member(json_member("equation", describe(last->op, last->params)));
    member("\"bytes\":" + std::to_string(s.bytes));
    if (s.work) member("\"operations\":" + std::to_string(s.work));
  }
}

}  // namespace vt::detail
