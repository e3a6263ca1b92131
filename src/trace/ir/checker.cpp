// check_graph: is this GraphBody well formed? Every Var defined once and before its use, every type
// as its shape rule says.
#include <algorithm>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/stack.hpp"
#include "printer.hpp"

namespace vt::detail {

namespace checker {

class GraphChecker {
 public:
  /// `sound`: bodies that need not be looked at, those of `g` are added. `around`: the checker of
  /// the Graph that `g` is a body in.
  GraphChecker(const GraphBody& g, const char* after, Vec<const GraphBody*>& sound,
               const GraphChecker* around)
      : graph_(g), after_(after), sound_(sound), around_(around), defined_(g.avals.size(), false) {}

  void run() {
    need_stack({});
    for (Var v : graph_.inputs) define(v, -1);
    for (at_ = 0; at_ < end(); ++at_) check_equation(at_);
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i)
      if (!is_defined(graph_.outputs[i]))
        fault(end(), formatted("result {} ({}) is never defined", i, name(graph_.outputs[i])));
  }

 private:
  std::ptrdiff_t end() const { return static_cast<std::ptrdiff_t>(graph_.equations.size()); }
  bool in_range(Var v) const { return v >= 0 && static_cast<std::size_t>(v) < defined_.size(); }
  bool is_defined(Var v) const { return in_range(v) && defined_[v]; }
  std::string name(Var v) const {
    return printer::Names(graph_, printer::Names::Numbers::named)(v);
  }

  void define(Var v, std::ptrdiff_t i) {
    if (!in_range(v)) fault(i, formatted("Var {} has no type", v));
    if (is_defined(v)) fault(i, formatted("{} is defined twice", name(v)));
    for (std::int64_t extent : graph_.aval(v).shape)
      if (extent < 0)
        fault(i, formatted("{} has a negative extent: {}", name(v), graph_.aval(v).str()));
    defined_[v] = true;
  }

  void check_equation(std::ptrdiff_t i) {
    const Equation& e = graph_.equations[i];
    SmallVec<const Aval*, 8> operands;
    for (Var v : e.inputs) {
      if (!is_defined(v)) fault(i, formatted("{} is used before it is defined", name(v)));
      operands.push_back(&graph_.aval(v));
    }
    for (const GraphRef& body : bodies_of(e.params)) {
      if (std::find(sound_.begin(), sound_.end(), body.get()) != sound_.end()) continue;
      GraphChecker(*body, after_, sound_, this).run();
      sound_.push_back(body.get());
    }

    SmallVec<Aval, 1> results;
    try {
      results = infer(e.op, e.params, {operands.data(), operands.size()}, {});
    } catch (const Error& error) {
      fault(i, error.what());
    }
    if (results.size() != e.outputs.size())
      fault(i, formatted("{} gives {} results, not {}", name_of(e.op), results.size(),
                         e.outputs.size()));
    for (std::size_t k = 0; k < e.outputs.size(); ++k) {
      define(e.outputs[k], i);
      const Aval& said = graph_.aval(e.outputs[k]);
      if (said.dtype != results[k].dtype || said.shape != results[k].shape)
        fault(i, formatted("{} is said to be {}, but {} gives {}", name(e.outputs[k]), said.str(),
                           name_of(e.op), results[k].str()));
    }
  }

  std::string path() const {
    if (!around_) return {};
    const Op op = around_->graph_.equations[around_->at_].op;
    return around_->path() +
           formatted(" in the body of equation {} ({})", around_->at_, name_of(op));
  }

  /// `i`: the equation at fault; −1 the inputs, end() the results.
  [[noreturn]] void fault(std::ptrdiff_t i, const std::string& what) const {
    const bool in_equation = i >= 0 && i < end();
    std::string text = formatted("{}: the Graph is broken{}", after_, path());
    if (in_equation) text += formatted(" at equation {}", i);
    text += ": " + what + "\n";
    const printer::Names names(graph_, printer::Names::Numbers::named);
    text += "  lambda";
    for (Var v : graph_.inputs) text += " " + names.typed(v);
    const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, i - 6), last = std::min(end(), i + 5);
    if (first > 0) text += formatted("\n    … {} equations", first);
    for (std::ptrdiff_t k = first; k < last; ++k) {
      const Equation& e = graph_.equations[k];
      text += formatted("\n  {} {}: {}{}", k == i ? ">" : " ", k, printer::equation_text(e, names),
                        printer::line_text(e.where));
    }
    if (last < end()) text += formatted("\n    … {} equations", end() - last);
    text += "\n  in (";
    for (std::size_t k = 0; k < graph_.outputs.size(); ++k)
      text += (k ? ", " : "") + names(graph_.outputs[k]);
    fail(ErrorKind::transform, text + ")", in_equation ? graph_.equations[i].where : CallSite{});
  }

  const GraphBody& graph_;
  const char* after_;
  Vec<const GraphBody*>& sound_;
  const GraphChecker* around_;
  std::ptrdiff_t at_ = 0;
  Vec<bool> defined_;
};

}  // namespace checker

void check_graph(const GraphBody& g, const char* after, std::span<const GraphBody* const> known) {
  Vec<const GraphBody*> sound(known.begin(), known.end());
  checker::GraphChecker(g, after, sound, nullptr).run();
}

}  // namespace vt::detail
