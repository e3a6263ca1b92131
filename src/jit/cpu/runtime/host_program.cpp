// A Graph made ready for the host, by what the machine has and the user wants.
#include "host_program.hpp"

#include <chrono>
#include <string>
#include <string_view>

#include <vt/detail/message.hpp>

#include "../../../trace/base/environment.hpp"
#include "../../../trace/base/hash_map.hpp"
#include "../../../trace/base/timeline.hpp"
#include "../../../trace/base/warnings.hpp"
#include "../../../trace/record/node.hpp"
#include "../../../trace/record/thread_state.hpp"
#include "../../services/background.hpp"
#include "../../services/counters.hpp"
#include "../../services/executables.hpp"
#include "../llvm/llvm_library.hpp"
#include "program.hpp"
#include "row_program.hpp"

namespace vt::detail {

Vec<BufferRef> interpreted(const GraphBody& graph, std::span<const BufferRef> inputs) {
  const Span span("run", "interpreter");
  count(counters().interpreter_steps, graph.equations.size());
  return interpret(graph, inputs);
}

namespace host_programs {

class InterpretedGraph : public Executable {
 public:
  explicit InterpretedGraph(GraphBody graph) : graph_(std::move(graph)) {}
  Vec<BufferRef> run(std::span<const BufferRef> inputs) override {
    return interpreted(graph_, inputs);
  }
  void report(Report& report, int depth) const override {
    ReportStep all;
    all.depth = depth;
    all.title = "interpreter: " + std::to_string(graph_.equations.size()) + " equations";
    all.nest = to_text(graph_);
    all.graph = &graph_;
    report.push_back(std::move(all));
  }
  Memory memory() const override { return interpreted_memory(graph_); }

 private:
  GraphBody graph_;
};

std::string_view wanted() {
  static const std::string name(backend_from_environment());
  return name;
}

/// Those of bodies as well, each body once.
std::size_t equations_in(const GraphBody& g, HashMap<const GraphBody*, bool>& counted) {
  std::size_t count = g.equations.size();
  for (const Equation& e : g.equations)
    for (const GraphRef& body : bodies_of(e.params))
      if (counted.emplace(body.get(), true).fresh) count += equations_in(*body, counted);
  return count;
}

}  // namespace host_programs

bool host_must_compile() { return host_programs::wanted() == "cpu"; }

bool host_compiles() {
  if (host_programs::wanted() == "interpreter") return false;
  static const bool possible = [] {
    const std::string reason = cpu::llvm_missing_reason();
    if (!reason.empty())
      warn_once("vt runs on its interpreter, which is slow, as LLVM cannot be used: " + reason);
    return reason.empty();
  }();
  if (!possible) count(counters().llvm_unavailable);
  return possible && !process_ends();
}

bool stopped_by_end(const Error& e) { return e.kind() == ErrorKind::backend && process_ends(); }

std::shared_ptr<Executable> interpreted_program(GraphBody graph) {
  return std::make_shared<host_programs::InterpretedGraph>(std::move(graph));
}

std::shared_ptr<Executable> host_program(const GraphBody& graph, std::span<const char> donated) {
  const auto begin = std::chrono::steady_clock::now();
  auto made = std::make_shared<Program>(
      graph, OwnedInputs{Vec<char>(donated.begin(), donated.end()), graph.outputs.size()});
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (taken.count() > 1) {
    HashMap<const GraphBody*, bool> counted;
    warn_once(formatted("compiling {} equations took {:.1f} s (VT_TRACE shows what of them){}",
                        host_programs::equations_in(graph, counted), taken.count(),
                        at(thread_state().where)));
  }
  return made;
}

std::shared_ptr<const RowProgram> row_program(GraphRef one, Vec<bool> mapped) {
  if (!host_compiles()) return nullptr;
  try {
    return std::make_shared<const RowProgram>(std::move(one), std::move(mapped), RowBody::block);
  } catch (const Error& e) {
    if (!stopped_by_end(e)) throw;
    return nullptr;
  }
}

MachineLimits machine_limits(bool again) {
  return host_compiles() ? cpu::machine_limits(again) : MachineLimits();
}

}  // namespace vt::detail
