// Printing of loop nests, and what can be read off them: needed values, dependence on loops.
#include "loop_nest.hpp"

#include <vt/detail/message.hpp>

namespace vt::detail {

namespace nest_text {

std::string number(const Scalar& s) {
  if (is_unsigned(s.dtype)) return std::to_string(s.natural);
  if (!is_float(s.dtype)) return std::to_string(s.integer);
  return formatted("{:.17g}", s.real);
}

std::string extent(const Nest& nest, int loop) {
  const NestLoop& l = nest.loops[loop];
  if (l.block_of >= 0)
    return "min(" + std::to_string(l.block) + ", " +
           (l.runtime ? "n" + std::to_string(loop) : std::to_string(l.total)) + " - " +
           std::to_string(l.block) + "*d" + std::to_string(l.block_of) + ")";
  return l.runtime ? "n" + std::to_string(loop) : std::to_string(l.extent);
}

std::string loop_line(const Nest& nest, int loop) {
  const NestLoop& l = nest.loops[loop];
  return std::string(l.reduce ? "reduce d" : "for d") + std::to_string(loop) + " < " +
         extent(nest, loop);
}

// All of them, in order, whether or not anything uses them: they tell where the kernel finds each.
std::string arguments(const Nest& nest) {
  std::string text;
  for (std::size_t l = 0; l < nest.loops.size(); ++l)
    if (nest.loops[l].runtime) text += " n" + std::to_string(l);
  for (int a = 0; a < nest.arguments; ++a) text += " a" + std::to_string(a);
  return text.empty() ? text : ", arguments" + text;
}

void operand_lists(const Nest& nest, const NestValue& v, std::string& text) {
  (void)nest;
  for (int o : v.operands) text += " v" + std::to_string(o);
}

/// "sum"; "fold" of a reduction by a function.
std::string_view reduction_name(Op op) {
  constexpr std::string_view family = "reduce_";
  const std::string_view name = name_of(op);
  return op == Op::reduce ? "fold" : name.starts_with(family) ? name.substr(family.size()) : name;
}

}  // namespace nest_text

std::string describe_value(const Nest& nest, int value) {
  const NestValue& v = nest.values[value];
  std::string text;
  switch (v.kind) {
    case NestValue::Kind::literal: text = "literal " + nest_text::number(v.literal); break;
    case NestValue::Kind::argument: text = "argument a" + std::to_string(v.argument); break;
    case NestValue::Kind::index: text = "index " + nest.indices.str(v.index); break;
    case NestValue::Kind::in_range:
      text = "in_range " + std::to_string(v.low) + " <= " + nest.indices.str(v.index) + " < " +
             std::to_string(v.high);
      break;
    case NestValue::Kind::load:
      text = "load b" + std::to_string(v.buffer) + "[" + nest.indices.str(v.index) + "]";
      if (v.mask >= 0) text += " if v" + std::to_string(v.mask);
      break;
    case NestValue::Kind::op:
      text = describe(v.op, v.params);
      nest_text::operand_lists(nest, v, text);
      break;
    case NestValue::Kind::reduced: text = "result r" + std::to_string(v.argument); break;
    case NestValue::Kind::state:
      text = (v.low == 1 ? "state before r" : "state r") + std::to_string(v.argument);
      break;
  }
  return text + " : " + name_of(v.dtype);
}

void add_roots(const Nest& nest, const NestStore& s, Vec<int>& roots) {
  roots.push_back(s.value);
  roots.push_back(s.mask);
  nest.indices.each_value(s.index, [&](int v) { roots.push_back(v); });
}

void add_roots(const NestReduction& r, Vec<int>& roots) {
  roots.push_back(r.value);
  roots.push_back(r.position);
  roots.push_back(r.init);
}

Vec<int> needed_values(const Nest& nest, const Vec<int>& roots) {
  Vec<bool> seen(nest.values.size(), false);
  Vec<int> pending = roots, found;
  const auto visit = [&](int v) {
    if (v >= 0 && !seen[v]) {
      seen[v] = true;
      pending.push_back(v);
    }
  };
  pending.clear();
  for (int r : roots) visit(r);
  while (!pending.empty()) {
    const int v = pending.back();
    pending.pop_back();
    const NestValue& value = nest.values[v];
    if (value.kind == NestValue::Kind::reduced) continue;
    for (int o : value.operands) visit(o);
    visit(value.mask);
    if (value.index >= 0) nest.indices.each_value(value.index, visit);
  }
  for (std::size_t v = 0; v < seen.size(); ++v)
    if (seen[v]) found.push_back(static_cast<int>(v));
  return found;
}

Vec<std::uint64_t> loop_dependences(const Nest& nest) {
  Vec<std::uint64_t> result(nest.values.size(), 0);
  for (std::size_t v = 0; v < nest.values.size(); ++v) {
    const NestValue& value = nest.values[v];
    std::uint64_t bits = 0;
    for (int o : value.operands) bits |= result[o];
    if (value.mask >= 0) bits |= result[value.mask];
    if (value.index >= 0) {
      nest.indices.each_loop(value.index, [&](int l) { bits |= std::uint64_t{1} << l; });
      nest.indices.each_value(value.index, [&](int o) { bits |= result[o]; });
    }
    if (value.kind == NestValue::Kind::reduced || value.kind == NestValue::Kind::state) {
      for (int l : nest.shared) bits |= std::uint64_t{1} << l;
      for (int l : nest.stages[nest.reductions[value.argument].stage].loops)
        if (value.kind == NestValue::Kind::state || !nest.loops[l].reduce)
          bits |= std::uint64_t{1} << l;
    }
    result[v] = bits;
  }
  return result;
}

std::string Nest::str() const {
  std::string text = "buffers";
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    text += std::string(b ? ", " : " ") + "b" + std::to_string(b) + ": " +
            name_of(buffers[b].dtype) +
            (buffers[b].local     ? " row of " + std::to_string(buffers[b].local)
             : buffers[b].written ? " out"
                                  : " in");
    if (buffers[b].alias != static_cast<int>(b))
      text += " like b" + std::to_string(buffers[b].alias);
  }
  text += nest_text::arguments(*this) + "\n";
  std::string indent;
  for (int l : shared) {
    text += indent + nest_text::loop_line(*this, l) + "\n";
    indent += "  ";
  }
  Vec<bool> printed(values.size(), false);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    std::string inner = indent;
    if (stages.size() > 1) text += indent + "stage " + std::to_string(s) + "\n";
    // Ordinary loops, then reduce loops; stores after the reduce loops stand at the depth of the
    // ordinary ones.
    for (bool reduce : {false, true})
      for (int l : stages[s].loops)
        if (loops[l].reduce == reduce) {
          text += inner + nest_text::loop_line(*this, l) + "\n";
          inner += "  ";
        }
    Vec<int> roots;
    for (const NestReduction& r : reductions)
      if (r.stage == static_cast<int>(s)) add_roots(r, roots);
    for (const NestStore& w : stores)
      if (w.stage == static_cast<int>(s) && !w.after) add_roots(*this, w, roots);
    const auto print = [&](const Vec<int>& wanted, const std::string& at) {
      for (int v : needed_values(*this, wanted))
        if (!printed[v]) {
          printed[v] = true;
          text += at + "v" + std::to_string(v) + " = " + describe_value(*this, v) + "\n";
        }
    };
    const auto print_stores = [&](bool after, const std::string& at) {
      for (const NestStore& w : stores)
        if (w.stage == static_cast<int>(s) && w.after == after) {
          const std::string target =
              "b" + std::to_string(w.buffer) + "[" + indices.str(w.index) + "]";
          if (w.update == Op::input) text += at + "store " + target;
          else
            text += at + "update " + target +
                    (w.update == Op::select ? "" : " by " + std::string(name_of(w.update)));
          text += " = v" + std::to_string(w.value) +
                  (w.mask >= 0 ? " if v" + std::to_string(w.mask) : "") + "\n";
        }
    };
    print(roots, inner);
    for (std::size_t r = 0; r < reductions.size(); ++r)
      if (reductions[r].stage == static_cast<int>(s)) {
        text += inner + "r" + std::to_string(r) + " = " +
                (reductions[r].running ? "running " : "") +
                std::string(nest_text::reduction_name(reductions[r].op)) + " v" +
                std::to_string(reductions[r].value);
        if (reductions[r].init >= 0) text += " from v" + std::to_string(reductions[r].init);
        if (reductions[r].position >= 0) text += " at v" + std::to_string(reductions[r].position);
        text += std::string(" : ") + name_of(reductions[r].dtype) + "\n";
      }
    print_stores(false, inner);
    std::string outer = indent;
    for (int l : stages[s].loops)
      if (!loops[l].reduce) outer += "  ";
    roots.clear();
    for (const NestStore& w : stores)
      if (w.stage == static_cast<int>(s) && w.after) add_roots(*this, w, roots);
    if (!roots.empty()) {
      text += outer + "then\n";
      print(roots, outer);
      print_stores(true, outer);
    }
  }
  return text;
}

}  // namespace vt::detail
