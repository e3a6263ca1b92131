// What a Program says of itself: explain, and the names of its steps in timelines.
#include <algorithm>

#include "../trace/timeline.hpp"
#include "program.hpp"

namespace vt::detail {

namespace program_texts {

std::string names_of(const GraphBody& g, const Vec<int>& equations, bool only_work) {
  Vec<int> sorted = equations;
  std::sort(sorted.begin(), sorted.end());
  std::string names;
  for (int e : sorted) {
    const Op op = g.equations[static_cast<std::size_t>(e)].op;
    if (only_work && (op == Op::broadcast_in_dim || op == Op::reshape || op == Op::full)) continue;
    names += (names.empty() ? "" : " ") + std::string(name_of(op));
  }
  return names;
}

}  // namespace program_texts

std::string Program::operations_of(const Step& s) const { return program_texts::names_of(fusion_.graph, s.fused, false); }

std::string Program::short_operations_of(const Step& s) const {
  constexpr std::size_t longest = 60;
  const std::string names = program_texts::names_of(fusion_.graph, s.fused, true);
  return names.empty() ? "copy" : names.size() > longest ? names.substr(0, names.rfind(' ', longest)) + " …" : names;
}

std::string Program::kernel_text(const Step& s) const {
  return "kernel " + short_name(s.nest_text) + (s.partial ? ", first half of a cut reduction" : "") + ", fuses " + std::to_string(s.fused.size()) +
         " equations (" + operations_of(s) + ")" + (s.kernel.optimised() ? "" : ", not optimised yet");
}

std::string Program::explain() const {
  const GraphBody& g = fusion_.graph;
  std::string text = "program: " + std::to_string(launches_) + " kernels, " + std::to_string(products_) + " matrix products, " +
                     (loops_ ? std::to_string(loops_) + " loops or branches, " : "") + std::to_string(interpreted_) + " interpreted equations, " +
                     std::to_string(plan_.arena_bytes) + " bytes of scratch memory\n";
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step& s = steps_[k];
    text += "step " + std::to_string(k) + ": ";
    if (s.kind == Step::Kind::kernel) {
      text += kernel_text(s) + ", " + std::to_string(s.bytes) + " bytes, about " + std::to_string(s.work) + " operations" +
              (s.parallel ? ", on all threads" : "") + "\n" + s.nest_text;
    } else {
      const Equation& e = g.equations[static_cast<std::size_t>(s.equation)];
      text += s.kind == Step::Kind::product  ? (e.op == Op::dot_general ? "matrix product " : "convolution ") + s.product->describe() + ", "
              : s.kind == Step::Kind::sort   ? "sort of " + describe(s.sort) + ", "
              : s.kind == Step::Kind::linalg ? (s.lanes ? "matrices, " + std::to_string(s.lanes) + " side by side: " : std::string("matrices: "))
              : s.kind == Step::Kind::fft    ? "transform: "
              : s.control                    ? "loop or branch: "
                                             : "interpreter: ";
      text += describe(e.op, e.params) + ", " + std::to_string(s.bytes) + " bytes";
      if (s.kind == Step::Kind::product) text += ", " + std::to_string(s.work) + " flops";
      if (s.has_epilogue()) text += "; on its rows as they are done: " + kernel_text(s) + "\n" + s.nest_text;
      else text += "\n";
      if (s.control) text += s.control->explain();
    }
  }
  return text;
}

const Equation* Program::shown_equation(const Step& s, bool kernel) const {
  if (kernel && s.fused.empty()) return nullptr;
  const int last = kernel ? *std::max_element(s.fused.begin(), s.fused.end()) : s.equation;
  return &fusion_.graph.equations[static_cast<std::size_t>(last)];
}

CodeLabel Program::label_of(const Step& s, bool kernel) const {
  if (!perf_wanted() && !gdb_wanted()) return {};
  const Equation* last = shown_equation(s, kernel);
  std::string lines;
  if (kernel && gdb_wanted())
    for (const NestValue& v : fusion_.steps[static_cast<std::size_t>(&s - steps_.begin())].nest.values) lines += at(v.where);
  return {kernel ? short_operations_of(s) : std::string(name_of(last->op)), kernel ? short_name(s.nest_text) : "", last ? last->where : Where(),
          std::move(lines)};
}

void Program::name_steps() {
  for (Step& s : steps_) {
    const bool kernel = s.kind == Step::Kind::kernel;
    const Equation* last = shown_equation(s, kernel);
    s.name = kernel ? short_operations_of(s) : std::string(name_of(last->op)) + (s.has_epilogue() ? ", then " + short_operations_of(s) : "");
    const auto member = [&](const std::string& text) { s.details += (s.details.empty() || text.empty() ? "" : ",") + text; };
    if (last) member(json_line(last->where));
    if (!s.nest_text.empty()) member(json_member("kernel", short_name(s.nest_text)));
    if (last && !kernel) member(json_member("equation", describe(last->op, last->params)));
    member("\"bytes\":" + std::to_string(s.bytes));
    if (s.work) member("\"operations\":" + std::to_string(s.work));
  }
}

}  // namespace vt::detail
