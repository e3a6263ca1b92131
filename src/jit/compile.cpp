// compile_graph: a Graph made ready to run many times, on the device that it is for.
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>

#include "../trace/base/locks.hpp"
#include "../trace/base/warnings.hpp"
#include "../trace/ir/executable.hpp"
#include "../trace/record/devices.hpp"
#include "../trace/record/node.hpp"
#include "../trace/record/thread_state.hpp"
#include "call_list.hpp"
#include "cpu/runtime/host_program.hpp"
#include "cpu/runtime/program.hpp"
#include "passes/lower_complex.hpp"
#include "passes/passes.hpp"
#include "services/counters.hpp"
#include "services/executables.hpp"
#include "services/planning.hpp"
#include "worth_compiling.hpp"

namespace vt::detail {

namespace compilation {

// A Graph that only the host can run, between values on a device.
class HostDetour : public Executable {
 public:
  HostDetour(std::shared_ptr<Executable> host, Device device)
      : host_(std::move(host)), device_(device) {}
  Vec<BufferRef> run(std::span<const BufferRef> inputs) override {
    count(counters().host_steps);
    return brought(host_->run(brought(inputs, vt::cpu())), device_);
  }
  void report(Report& report, int depth) const override {
    ReportStep head;
    head.depth = depth;
    head.title = "on the host, between copies from and to the device";
    report.push_back(std::move(head));
    host_->report(report, depth + 1);
  }
  Memory memory() const override { return host_->memory(); }

 private:
  std::shared_ptr<Executable> host_;
  Device device_;
};

// Batched calls as equations that kernels are made of, complex values as pairs of real ones, which
// are the same bytes. What has no such form is interpreted on the host.
std::shared_ptr<Executable> lowered(GraphBody graph, Device device, std::span<const char> donated) {
  const bool on_host = device.kind == Device::Kind::cpu;
  if (has_batched_calls(graph)) graph = simplify(lower_batched_calls(graph), SimplifyFor::running);
  if (has_complex(graph)) {
    std::optional<GraphBody> real = lower_complex(graph);
    if (!real && on_host) return interpreted_program(std::move(graph));
    if (!real) return std::make_shared<HostDetour>(host_executable(graph), device);
    graph = std::move(*real);
  }
  return on_host ? host_program(graph, donated) : cuda_executable(graph, device.index, donated);
}

// A fault of the compiler, or a lack of what it needs, must not take the user's program down: the
// interpreter gives the same results.
std::shared_ptr<Executable> on_host(const GraphBody& graph, std::span<const char> donated = {}) {
  if (!host_compiles()) return interpreted_program(graph);
  if (suits_call_list(graph)) return std::make_shared<CallList>(graph);
  std::string lack;
  // given back where memory ends: to tell of that takes some, and so does the interpreter
  std::unique_ptr<char[]> spare(new (std::nothrow) char[1 << 20]);
  try {
    return lowered(graph, vt::cpu(), donated);
  } catch (const Error& e) {
    if (stopped_by_end(e)) return interpreted_program(graph);
    if (host_must_compile() || e.kind() != ErrorKind::backend) throw;
    lack = e.what();
  } catch (const std::bad_alloc&) {
    spare = {};
    lack = "vt: there is no memory to compile it";
    if (host_must_compile()) fail(ErrorKind::memory, lack, thread_state().where);
  } catch (const std::system_error& e) {
    lack = std::string("vt: the system refuses what compiling takes: ") + e.what();
    if (host_must_compile()) fail(ErrorKind::memory, lack, thread_state().where);
  }
  warn_once("a Graph could not be compiled and is interpreted: " + lack);
  return interpreted_program(graph);
}

}  // namespace compilation

std::shared_ptr<Executable> compile_graph(GraphBody graph, Device device,
                                          std::span<const char> donated) {
  const Busy busy;
  GraphBody simple = simplify(std::move(graph), SimplifyFor::running);
  return device.kind == Device::Kind::cpu
             ? compilation::on_host(simple, donated)
             : compilation::lowered(std::move(simple), device, donated);
}

std::shared_ptr<Executable> host_executable(const GraphBody& graph) {
  return compilation::on_host(simplify(graph, SimplifyFor::running));
}

Memory plan_graph(const GraphBody& graph) {
  const GraphBody simple = simplify(graph, SimplifyFor::running);
  if (!host_compiles()) return interpreted_memory(simple);
  const Planning only;
  Memory m = compilation::on_host(simple)->memory();
  // Where little is to be done the first run is interpreted.
  if (!host_must_compile() && is_little_work(graph)) {
    Memory first = interpreted_memory(graph);
    if (first.scratch > m.scratch) {
      m.scratch = first.scratch;
      m.values = std::move(first.values);  // they tell why
    }
  }
  return m;
}

}  // namespace vt::detail
