// Text of Graphs: one equation a line with short names, sub-graphs indented below theirs; and
// Graphviz text.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <string>
#include <string_view>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/convert.hpp"
#include "../base/stack.hpp"
#include "called_function.hpp"
#include "printer.hpp"
#include "recursive_function.hpp"

namespace vt::detail {

// --- values and parameters -----------------------------------------------------------------------

namespace printer {

/// The shortest decimal that reads back as `v`, with a point so that it is seen to be a float.
template <class T>
std::string float_text(T v) {
  if (__builtin_isnan(v)) return "nan";
  if (__builtin_isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string text = formatted("{}", v);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

inline std::string scalar_text(const Scalar& s) {
  if (is_complex(s.dtype)) {
    const auto part = [&](double v) {
      return s.dtype == DType::c128 ? float_text(v) : float_text(static_cast<float>(v));
    };
    return part(s.real) + (__builtin_signbit(s.imaginary) ? "-" : "+") +
           part(std::fabs(s.imaginary)) + "i";
  }
  if (is_bool(s.dtype)) return s.integer ? "true" : "false";
  // Every 16-bit float is exact in binary32, whose decimals are the shorter.
  if (is_float(s.dtype))
    return s.dtype == DType::f64 ? float_text(s.real) : float_text(static_cast<float>(s.real));
  return is_unsigned(s.dtype) ? formatted("{}", s.natural) : formatted("{}", s.integer);
}

inline std::string constant_text(const ConstantParams& p) {
  constexpr std::int64_t most_shown = 8;
  std::string text = p.aval.str() + ":";
  const std::int64_t n = p.aval.elements();
  if (!p.buffer || p.buffer->device.kind != Device::Kind::cpu) return text + " …";
  for (std::int64_t i = 0; i < std::min(n, most_shown); ++i) {
    text += i ? ", " : " ";
    text += scalar_text(load_scalar(
        p.aval.dtype,
        p.buffer->as<const char>() + static_cast<std::size_t>(i) * size_of(p.aval.dtype)));
  }
  if (n > most_shown) text += ", …";
  return text;
}

inline bool all_are(const Shape& s, std::int64_t value) {
  for (std::int64_t d : s)
    if (d != value) return false;
  return true;
}

inline std::string mode_text(IndexMode mode) {
  return mode == IndexMode::clip ? ", mode=clip" : ", mode=fill";
}

/// Leaves out what is empty: most gathers use two or three of the five lists.
inline std::string axes_fields(std::initializer_list<std::pair<const char*, const Axes*>> fields) {
  std::string text;
  for (const auto& [name, axes] : fields) {
    if (axes->empty()) continue;
    if (!text.empty()) text += ", ";
    text += formatted("{}={}", name, axes->str());
  }
  return text;
}

inline std::string lanes_text(const Lanes& lanes) {
  if (!lanes) return {};
  std::string text = formatted("lanes={}, mapped=", lanes.count);
  for (bool m : lanes.mapped) text += m ? '1' : '0';
  return text;
}

inline std::string effect_lanes_text(const EffectLanes& lanes) {
  std::string text;
  for (std::int64_t extent : lanes.extents)
    text += formatted("{}{}", text.empty() ? ", lanes=" : "×", extent);
  return text;
}

struct ParamsText {
  Op op;
  std::string operator()(const NoParams&) const { return {}; }
  std::string operator()(const ConstantParams& p) const { return constant_text(p); }
  std::string operator()(const FullParams& p) const {
    return p.unset ? "unset" : "value=" + scalar_text(p.value);
  }
  std::string operator()(const IotaParams& p) const { return formatted("axis={}", p.axis); }
  std::string operator()(const ConvertParams& p) const {
    return formatted("dtype={}{}", name_of(p.dtype), p.weak ? ", weak" : "");
  }
  std::string operator()(const PrecisionParams& p) const {
    return formatted("exponent_bits={}, mantissa_bits={}", p.exponent_bits, p.mantissa_bits);
  }
  std::string operator()(const IntegerPowParams& p) const {
    return formatted("exponent={}", p.exponent);
  }
  std::string operator()(const StructuralParams&) const { return "structural"; }
  std::string operator()(const AxesParams& p) const { return "axes=" + p.axes.str(); }
  std::string operator()(const ArgParams& p) const {
    return formatted("axis={}, dtype={}", p.axis, name_of(p.dtype));
  }
  std::string operator()(const ReduceParams& p) const { return "axes=" + p.axes.str(); }
  std::string operator()(const CumulativeParams& p) const {
    return formatted("axis={}{}", p.axis, p.reverse ? ", reverse" : "");
  }
  std::string operator()(const SortParams& p) const {
    return formatted("axis={}, keys={}{}, places={}:{}", p.axis, p.keys,
                     p.descending ? ", descending" : "", p.start, p.limit);
  }
  std::string operator()(const ShapeParams& p) const {
    return (op == Op::dynamic_slice ? "sizes=" : "shape=") + p.shape.str();
  }
  std::string operator()(const PermutationParams& p) const {
    return "permutation=" + p.permutation.str();
  }
  std::string operator()(const BroadcastParams& p) const {
    return formatted("shape={}, axes={}", p.shape.str(), p.axes.str());
  }
  std::string operator()(const AxisParams& p) const { return formatted("axis={}", p.axis); }
  std::string operator()(const PadParams& p) const {
    std::string text = formatted("low={}, high={}", p.low.str(), p.high.str());
    if (!all_are(p.interior, 0)) text += ", interior=" + p.interior.str();
    return text;
  }
  std::string operator()(const SliceParams& p) const {
    std::string text = formatted("start={}, limit={}", p.start.str(), p.limit.str());
    if (!all_are(p.stride, 1)) text += ", stride=" + p.stride.str();
    return text;
  }
  std::string operator()(const GatherParams& p) const {
    std::string text = axes_fields({{"offset_dims", &p.offset_dims},
                                    {"collapsed_slice_dims", &p.collapsed_slice_dims},
                                    {"start_index_map", &p.start_index_map},
                                    {"operand_batching_dims", &p.operand_batching_dims},
                                    {"indices_batching_dims", &p.indices_batching_dims}});
    if (!text.empty()) text += ", ";
    return text + "slice_sizes=" + p.slice_sizes.str() + mode_text(p.mode);
  }
  std::string operator()(const ScatterParams& p) const {
    std::string text =
        axes_fields({{"update_window_dims", &p.update_window_dims},
                     {"inserted_window_dims", &p.inserted_window_dims},
                     {"scatter_dims_to_operand_dims", &p.scatter_dims_to_operand_dims},
                     {"operand_batching_dims", &p.operand_batching_dims},
                     {"indices_batching_dims", &p.indices_batching_dims}});
    text += mode_text(p.mode);
    if (p.unique) text += ", unique";
    return text.compare(0, 2, ", ") == 0 ? text.substr(2) : text;
  }
  std::string operator()(const FftParams& p) const {
    constexpr const char* kinds[] = {"fft", "ifft", "rfft", "irfft"};
    return formatted("kind={}, lengths={}{}", kinds[static_cast<int>(p.kind)], p.lengths.str(),
                     p.parts ? ", parts" : "");
  }
  std::string operator()(const TriangularParams& p) const {
    return std::string(p.lower ? "lower" : "upper") + (p.transposed ? ", transposed" : "") +
           (p.unit_diagonal ? ", unit_diagonal" : "");
  }
  std::string operator()(const SolveParams& p) const { return p.transposed ? "transposed" : ""; }
  std::string operator()(const DecompositionParams& p) const {
    return std::string(p.full ? "full" : "reduced") + (p.vectors ? "" : ", values only") +
           (p.pivoted ? ", pivoted" : "");
  }
  std::string operator()(const DotParams& p) const {
    std::string text = formatted("contract={}·{}", p.lhs_contract.str(), p.rhs_contract.str());
    if (!p.lhs_batch.empty())
      text += formatted(", batch={}·{}", p.lhs_batch.str(), p.rhs_batch.str());
    return text;
  }
  std::string operator()(const RowsParams& p) const {
    std::string text = "runs=(";
    for (const RowRun& run : p.runs) {
      if (text.back() != '(') text += ", ";
      text += run.operand < 0 ? std::string("none") : std::to_string(run.operand);
      text += formatted("[{}:{}]", run.first, run.first + run.count);
    }
    text += ")";
    return op == Op::rows_add ? text + ", extents=" + p.extents.str() : text;
  }
  std::string operator()(const WindowParams& p) const {
    std::string text = formatted("axes={}, sizes={}", p.axes.str(), p.sizes.str());
    if (!all_are(p.strides, 1)) text += ", strides=" + p.strides.str();
    if (!all_are(p.dilations, 1)) text += ", dilations=" + p.dilations.str();
    return op == Op::overlap_add ? text + ", extents=" + p.extents.str() : text;
  }
  std::string operator()(const ConvParams& p) const {
    std::string text = (*this)(p.dot);
    const std::string order = p.order.empty() ? std::string() : ", order=" + p.order.str();
    if (p.lhs_window.empty()) return text + order;
    text += formatted(", window={}·{}", p.lhs_window.str(), p.rhs_window.str());
    if (!all_are(p.strides, 1)) text += ", strides=" + p.strides.str();
    if (!all_are(p.low, 0) || !all_are(p.high, 0))
      text += formatted(", low={}, high={}", p.low.str(), p.high.str());
    if (!all_are(p.lhs_dilation, 1)) text += ", lhs_dilation=" + p.lhs_dilation.str();
    if (!all_are(p.rhs_dilation, 1)) text += ", rhs_dilation=" + p.rhs_dilation.str();
    if (!p.flipped.empty()) text += ", flipped=" + p.flipped.str();
    return text + order;
  }
  std::string operator()(const PartsParams& p) const {
    const std::string own = p.own ? visit(*this, *p.own) : "";
    return own + (own.empty() ? "" : ", ") + (p.operands ? "parts" : "results in parts");
  }
  std::string operator()(const CollectiveParams& p) const {
    std::string text = "axis=" + p.axis->name;
    if (p.shared) text += ", shared";
    const auto list = [](const char* name, const Vec<std::int64_t>& items) {
      std::string s = std::string(", ") + name + "=(";
      for (std::size_t i = 0; i < items.size(); ++i) s += (i ? "," : "") + std::to_string(items[i]);
      return s + ")";
    };
    if (!p.bundle.empty()) text += list("bundle", p.bundle);
    return op == Op::ppermute ? text + list("sources", p.sources) : text;
  }
  std::string operator()(const CallParams& p) const {
    const std::string name = p.function ? p.function->name : p.rule ? p.rule->name : std::string();
    return name.empty() ? name : "name=" + name;
  }
  std::string operator()(const RecursionParams& p) const { return "name=" + p.function->name; }
  std::string operator()(const CondParams& p) const { return lanes_text(p.lanes); }
  std::string operator()(const BatchedCallParams& p) const {
    std::string text = (p.function ? "name=" + p.function->name + ", " : "") + lanes_text(p.lanes);
    for (std::size_t i = 0, n = 0; i < p.summed.size(); ++i)
      if (p.summed[i]) text += (n++ ? "," : ", summed=") + std::to_string(i);
    if (p.parts_lanes()) text += std::string(", schedule=") + name_of(p.schedule);
    return text;
  }
  std::string operator()(const RegionParams& p) const { return lanes_text(p.lanes); }
  std::string operator()(const PrintParams& p) const {
    return "\"" + p.text + "\"" + (p.per_lane ? ", per_lane" : "") + effect_lanes_text(p.lanes);
  }
  std::string operator()(const CheckParams& p) const {
    return "\"" + p.text + "\"" + effect_lanes_text(p.lanes);
  }
  std::string operator()(const CallbackParams& p) const {
    return "name=" + p.function->name + (p.takes_lanes ? ", takes_lanes" : "") +
           effect_lanes_text(p.lanes);
  }
  std::string operator()(const WhileParams& p) const {
    std::string text = formatted("carries={}", p.carries);
    if (p.checkpoints) text += formatted(", checkpoints={}", p.checkpoints);
    return text + (p.lanes ? ", " : "") + lanes_text(p.lanes);
  }
  std::string operator()(const ScanParams& p) const {
    return formatted("carries={}, sequences={}, length={}{}{}", p.carries, p.sequences, p.length,
                     p.reverse ? ", reverse" : "", p.sums ? ", sums" : "");
  }
};

// --- names ---------------------------------------------------------------------------------------

inline std::string letters(std::size_t n) {
  std::string text;
  for (++n; n > 0; n = (n - 1) / 26)
    text.insert(text.begin(), static_cast<char>('a' + (n - 1) % 26));
  return text;
}

inline bool holds_number(const GraphBody& g, const Equation& e) {
  return e.op == Op::full && !e.as<FullParams>().unset && g.aval(e.outputs[0]).shape.empty();
}

Names::Names(const GraphBody& g, Numbers how) : graph_(g), index_(g.avals.size(), -1) {
  if (how == Numbers::inlined) numbers_.resize(g.avals.size(), nullptr);
  for (Var v : g.inputs) add(v);
  for (const Equation& e : g.equations) {
    if (how == Numbers::inlined && holds_number(g, e)) numbers_[e.outputs[0]] = &e;
    else
      for (Var v : e.outputs) add(v);
  }
}
const Equation* Names::number(Var v) const {
  return v >= 0 && static_cast<std::size_t>(v) < numbers_.size() ? numbers_[v] : nullptr;
}
void Names::add(Var v) {
  if (v >= 0 && static_cast<std::size_t>(v) < index_.size() && index_[v] < 0) index_[v] = next_++;
}
std::string Names::operator()(Var v) const {
  // Broken Graphs are printed too, by the checker.
  if (v < 0 || static_cast<std::size_t>(v) >= index_.size()) return formatted("?{}", v);
  if (const Equation* e = number(v))
    return scalar_text(e->as<FullParams>().value) + ":" + graph_.aval(v).str();
  const int i = index_[v];
  return i < 0 ? formatted("?{}", v) : letters(static_cast<std::size_t>(i));
}
std::string Names::typed(Var v) const {
  if (v < 0 || static_cast<std::size_t>(v) >= index_.size() || number(v)) return (*this)(v);
  return (*this)(v) + ":" + graph_.aval(v).str();
}
std::string Names::operands(const Equation& e) const {
  const Family family = family_of(e.op);
  const bool alike = family == Family::binary || family == Family::select;
  Var named = -1;  // the last one with a name; where all are alike numbers have its dtype
  for (Var v : e.inputs)
    if (alike && !number(v)) named = v;
  std::string text;
  for (Var v : e.inputs) {
    const Equation* full = number(v);
    const bool known = full && named >= 0 && graph_.aval(v).dtype == graph_.aval(named).dtype;
    text += " " + (known ? scalar_text(full->as<FullParams>().value) : (*this)(v));
  }
  return text;
}

// --- text ----------------------------------------------------------------------------------------

std::string equation_text(const Equation& e, const Names& names) {
  std::string text;
  for (Var v : e.outputs) text += names.typed(v) + " ";
  text += (e.outputs.empty() ? "" : "= ") + describe(e.op, e.params);
  return text + names.operands(e);
}

std::string line_text(CallSite where) {
  std::string text = at(where);
  return text.empty() ? text : "  # " + text.substr(std::string_view("; at ").size());
}

/// What stands below an equation: of a recursive function its body, too.
inline Vec<GraphRef> bodies_below(const Equation& e) {
  if (e.op != Op::recursive_call) return bodies_of(e.params);
  const GraphRef& body = e.as<RecursionParams>().function->body;
  return body ? Vec<GraphRef>{body} : Vec<GraphRef>{};
}

/// A function that is called again is not shown again.
using Shown = Vec<const GraphBody*>;
inline bool shown_before(const Equation& e, const GraphRef& body, Shown& shown) {
  if (e.op != Op::recursive_call && e.op != Op::batched_call &&
      (e.op != Op::call || !e.as<CallParams>().function))
    return false;
  if (std::find(shown.begin(), shown.end(), body.get()) != shown.end()) return true;
  shown.push_back(body.get());
  return false;
}

inline void write_graph(const GraphBody& g, const std::string& indent, bool lines, Shown& shown,
                        std::string& out, std::span<const std::string> input_names = {}) {
  need_stack({});
  const Names names(g);
  out += indent + "{ lambda";
  for (Var v : g.inputs) out += " " + names.typed(v);
  out += " .\n";
  for (std::size_t i = 0; i < input_names.size(); ++i)
    out += indent + "  " + names(g.inputs[i]) + ": " + input_names[i] + "\n";
  const char* lead = "  let ";
  for (const Equation& e : g.equations) {
    if (names.is_number(e)) continue;
    out += indent + lead + equation_text(e, names);
    if (lines) out += line_text(e.where);
    out += '\n';
    for (const GraphRef& body : bodies_below(e)) {
      if (shown_before(e, body, shown)) continue;
      write_graph(*body, indent + "        ", lines, shown, out);
      out += '\n';
    }
    lead = "      ";
  }
  out += indent + "  in (";
  for (std::size_t i = 0; i < g.outputs.size(); ++i) out += (i ? ", " : "") + names(g.outputs[i]);
  out += ") }";
}

// --- Graphviz ------------------------------------------------------------------------------------

inline std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out += '"';
}

/// Writes the nodes and edges of one Graph; node names carry `prefix`, which is unique per
/// sub-graph.
class DotWriter {
 public:
  explicit DotWriter(std::string& out) : out_(out) {}

  void write(const GraphBody& g, const std::string& prefix, const std::string& indent,
             std::span<const std::string> input_names = {}) {
    need_stack({});
    const Names names(g);
    Vec<std::string> maker(g.avals.size());
    for (std::size_t i = 0; i < g.inputs.size(); ++i) {
      const Var v = g.inputs[i];
      const std::string id = prefix + "in_" + names(v);
      maker[v] = id;
      const std::string name = i < input_names.size() ? input_names[i] + ": " : std::string();
      out_ += formatted("{}{} [shape=ellipse, label={}];\n", indent, id,
                        in_quotes(name + names.typed(v)));
    }
    for (std::size_t i = 0; i < g.equations.size(); ++i) {
      const Equation& e = g.equations[i];
      if (names.is_number(e)) continue;
      const std::string id = formatted("{}eq{}", prefix, i);
      std::string tip = at(e.where);
      if (!tip.empty()) tip = tip.substr(std::string_view("; at ").size());
      out_ += formatted("{}{} [shape=box, label={}, tooltip={}];\n", indent, id,
                        in_quotes(label_of(e, names)), in_quotes(tip));
      for (Var v : e.inputs) edge(g, names, maker[v], id, v, indent);
      for (Var v : e.outputs) maker[v] = id;
      const Vec<GraphRef> bodies = bodies_below(e);
      for (std::size_t k = 0; k < bodies.size(); ++k) {
        if (shown_before(e, bodies[k], shown_)) continue;
        const std::string part = bodies.size() > 1 ? formatted("_{}", k) : std::string();
        const std::string inner = formatted("{}eq{}{}_", prefix, i, part);
        out_ += formatted("{}subgraph cluster_{}{} {{\n{}  label={};\n", indent, id, part, indent,
                          in_quotes(name_of(e.op)));
        write(*bodies[k], inner, indent + "  ");
        out_ += indent + "}\n";
        // Ties the cluster to its equation, in case it has no operands of its own.
        if (!bodies[k]->inputs.empty()) {
          const Names inner_names(*bodies[k]);
          out_ += formatted("{}{} -> {}in_{} [style=dotted, arrowhead=none];\n", indent, id, inner,
                            inner_names(bodies[k]->inputs[0]));
        }
      }
    }
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const Var v = g.outputs[i];
      const std::string id = formatted("{}out{}", prefix, i);
      out_ += formatted("{}{} [shape=ellipse, style=bold, label={}];\n", indent, id,
                        in_quotes("result " + std::to_string(i) +
                                  (names.number(v) ? ": " + names(v) : std::string())));
      edge(g, names, maker[v], id, v, indent);
    }
  }

 private:
  /// With what it reads, if numbers are among that.
  static std::string label_of(const Equation& e, const Names& names) {
    const bool numbers = any_of(e.inputs, [&](Var v) { return names.number(v) != nullptr; });
    return describe(e.op, e.params) + (numbers ? names.operands(e) : std::string());
  }
  void edge(const GraphBody& g, const Names& names, const std::string& from, const std::string& to,
            Var v, const std::string& indent) {
    if (names.number(v)) return;
    out_ += formatted("{}{} -> {} [label={}];\n", indent, from, to,
                      in_quotes(names(v) + ":" + g.aval(v).str()));
  }
  std::string& out_;
  Shown shown_;
};

}  // namespace printer

std::string describe(Op op, const ParamsRef& params) {
  std::string text(name_of(op));
  if (!params) return text;
  const std::string inner = visit(printer::ParamsText{op}, *params);
  return inner.empty() ? text : text + "[" + inner + "]";
}

std::string to_text(const GraphBody& g, bool lines, std::span<const std::string> input_names) {
  std::string text;
  printer::Shown shown;
  printer::write_graph(g, "", lines, shown, text, input_names);
  return text;
}

std::string to_dot_text(const GraphBody& g, std::span<const std::string> input_names) {
  std::string text =
      "digraph vt {\n  node [fontname=\"monospace\"];\n  edge [fontname=\"monospace\", "
      "fontsize=10];\n";
  printer::DotWriter(text).write(g, "", "  ", input_names);
  return text += "}\n";
}

std::string text_of(const Graph& g) { return g.str(); }

}  // namespace vt::detail

namespace vt {

std::string Graph::str(bool lines) const {
  return body_ ? detail::to_text(*body_, lines, input_names_) : "{ }";
}
std::string Graph::to_dot() const {
  return body_ ? detail::to_dot_text(*body_, input_names_) : "digraph vt {\n}\n";
}
std::size_t Graph::size() const { return body_ ? body_->equations.size() : 0; }
std::ostream& operator<<(std::ostream& out, const Graph& g) { return out << g.str(); }

}  // namespace vt
