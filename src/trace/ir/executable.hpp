// Executable: a Graph made ready to run many times, whatever the backend. Implemented by src/jit.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <vt/detail/small_vec.hpp>
#include <vt/execution.hpp>

#include "graph.hpp"

namespace vt::detail {

/// A step of a program as people see it, or the head of a program.
struct ReportStep {
  int depth = 0;        ///< loops and branches around it
  int number = -1;      ///< of a step in its program
  std::string title;    ///< one line
  std::string how;      ///< what runs it, in a word or two: "kernel"
  std::string name;     ///< the ops; empty: the head of a program
  std::string nest;     ///< loop nest and schedule, lines that end
  Vec<CallSite> lines;  ///< the user's, none twice
  std::uint64_t bytes = 0, work = 0;
  bool wide = false;                 ///< its results have 8 bytes an element
  double seconds = 0;                ///< of all its runs in one run of the whole; 0: not measured
  std::uint64_t runs = 0;            ///< in one run of the whole
  const GraphBody* graph = nullptr;  ///< of a program
};
using Report = Vec<ReportStep>;

class Executable {
 public:
  virtual ~Executable() = default;
  /// One buffer per Graph output. `inputs` are read only; their sizes are those of the Graph's
  /// inputs. A device's program copies there what lies elsewhere; a program of the host reads the
  /// host's memory only. Any thread may call it.
  virtual Vec<BufferRef> run(std::span<const BufferRef> inputs) = 0;
  /// May run_into() be used? Not of what makes memory of its own for results.
  virtual bool runs_into() const { return false; }
  /// run() on inputs and for results at these places, which do not overlap. Results that are large
  /// begin at multiples of 64 bytes.
  virtual void run_into(std::span<const void* const> /*inputs*/,
                        std::span<void* const> /*results*/) {}
  /// The inputs that run() writes over: nobody else may hold them.
  virtual std::span<const std::size_t> overwritten() const { return {}; }
  /// What runs, for people: kernels, what each fused, loops, bytes and flops. Graphs in it belong
  /// to this.
  virtual void report(Report&, int depth) const = 0;
  /// It as text: at most a screen, or all.
  std::string explain() const;
  std::string explain_steps() const;
  /// What it takes, by the plan of its buffers.
  virtual Memory memory() const = 0;
};

/// Simplifies, fuses and compiles for a device (on the host for the interpreter where there is no
/// compiler). `donated`: inputs that it may write over, by as many flags as there are of those; see
/// Executable::overwritten.
std::shared_ptr<Executable> compile_graph(GraphBody, Device = default_device(),
                                          std::span<const char> donated = {});
/// Runs what was compiled from the Graph; where the process ends before all that it needs is there,
/// the interpreter runs the Graph.
Vec<BufferRef> run_program(Executable&, const GraphBody&, std::span<const BufferRef> inputs);
/// Where a Graph runs whose first inputs are at these places, and whose others follow: on the one
/// device that they are on, else on the default one. Numbers (values without axes) may lie on the
/// host. Throws: Error(backend) if there are several, which names the first equation that brings
/// them together.
Device device_of(const GraphBody&, std::span<const Device> places);
/// Inputs where the device can read them.
Vec<BufferRef> brought(std::span<const BufferRef> inputs, Device);
/// What run_graph would take for it on the host; nothing is compiled.
Memory plan_graph(const GraphBody&);

/// What a function records on its way to the program.
struct LoggedGraph {
  std::string title;
  std::string text;
};
/// explain's page of `executable`: runs it on `inputs` a few times if `runs`, to measure it.
/// `title`: the user's line.
std::string explain_page(Executable& executable, std::span<const BufferRef> inputs, bool runs,
                         const Vec<LoggedGraph>& graphs, CallSite title);

}  // namespace vt::detail
