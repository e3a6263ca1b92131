// run_graph and compile_graph: what the rest of vt calls to have a Graph run.
#include "../trace/executable.hpp"
#include "../trace/node.hpp"
#include "counters.hpp"

namespace vt::detail {

namespace execution {

class InterpretedGraph : public Executable {
 public:
  explicit InterpretedGraph(GraphBody graph) : graph_(std::move(graph)) {}
  std::vector<BufferRef> run(std::span<const BufferRef> inputs) override {
    count(counters().interpreter_steps, graph_.equations.size());
    return interpret(graph_, inputs);
  }
  std::string explain() const override { return "interpreter: " + std::to_string(graph_.equations.size()) + " equations\n"; }

 private:
  GraphBody graph_;
};

}  // namespace execution

std::vector<BufferRef> run_graph(const GraphBody& graph, std::span<const BufferRef> inputs) {
  count(counters().interpreter_steps, graph.equations.size());
  return interpret(graph, inputs);
}

std::shared_ptr<Executable> compile_graph(GraphBody graph) { return std::make_shared<execution::InterpretedGraph>(simplify(graph)); }

}  // namespace vt::detail
