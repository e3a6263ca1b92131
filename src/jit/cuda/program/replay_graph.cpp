// ReplayGraph: building a CUDA graph node by node, and updating addresses in its nodes; and the
// choice whether a program is replayed.
#include "replay_graph.hpp"

#include <memory>
#include <mutex>

#include <vt/detail/message.hpp>

#include "../../../trace/base/environment.hpp"
#include "../../../trace/base/timeline.hpp"
#include "../../../trace/base/warnings.hpp"
#include "../../../trace/record/node.hpp"
#include "../../services/counters.hpp"
#include "program.hpp"

namespace vt::detail::cuda {

namespace graph_replay {

KernelNodeParams kernel_params(const DeviceCode& code, const DeviceCode::Grid& grid,
                               void** parameters) {
  return {code.function(),
          static_cast<unsigned>(grid.blocks),
          1,
          1,
          static_cast<unsigned>(grid.threads),
          1,
          1,
          static_cast<unsigned>(grid.shared_bytes),
          parameters,
          nullptr,
          nullptr,
          nullptr};
}

CopyParams copy_params(DevicePtr to, DevicePtr from, std::size_t bytes) {
  CopyParams p{};
  p.from.memory_type = p.to.memory_type = Constant::CU_MEMORYTYPE_DEVICE;
  p.from.device = from;
  p.to.device = to;
  p.from.pitch = p.to.pitch = p.bytes = bytes;
  p.from.height = p.to.height = p.height = p.depth = 1;
  return p;
}

bool wanted() { return cuda_graphs_from_environment(); }

// Branches and loops take a driver and a compiler that know them, 12.4 or newer.
bool has_conditions(const CudaDevice& device) {
  int major = 0, minor = 0;
  const Nvrtc* n = nvrtc(nullptr);
  return device.driver().cuGraphAddNode_v2 && n &&
         n->nvrtcVersion(&major, &minor) == Constant::NVRTC_SUCCESS && major * 100 + minor >= 1204;
}

// Scratch memory up to here stays with the device between runs; more is asked for in each.
constexpr std::size_t most_kept = std::size_t{256} << 20;
// A launch of a graph costs about as much as two kernels'.
constexpr std::size_t least_steps = 3;

}  // namespace graph_replay

DevicePtr ReplayGraph::resolve(Place place) const {
  if (place.base == Place::fixed) return place.offset;
  return (place.base == Place::scratch ? scratch_ : bases_[place.base]) + place.offset;
}

KernelNodeParams ReplayGraph::parameters_of(const ReplayStep& step, Parameters& p) const {
  for (const Place& place : step.places) p.addresses.push_back(resolve(place));
  for (DevicePtr& a : p.addresses) p.pointers.push_back(&a);
  for (const std::int64_t& n : step.numbers) p.pointers.push_back(const_cast<std::int64_t*>(&n));
  return graph_replay::kernel_params(*step.code, step.grid, p.pointers.data());
}

Graph ReplayGraph::capture(const ReplayStep& step) const {
  SmallVec<DevicePtr, 8> addresses;
  for (const Place& place : step.places) addresses.push_back(resolve(place));
  return captured(device_, *step.call, {addresses.data(), addresses.size()});
}

void ReplayGraph::drop() {
  if (!graph_ && !exec_) return;
  device_.enter_quietly();
  if (exec_) static_cast<void>(device_.driver().cuGraphExecDestroy(exec_));
  if (graph_) static_cast<void>(device_.driver().cuGraphDestroy(graph_));
  exec_ = nullptr;
  graph_ = nullptr;
  conditions_.clear();
}

void ReplayGraph::add_kernel(Graph graph, GraphNode& last, const KernelNodeParams& params) const {
  GraphNode node = nullptr;
  device_.check(
      device_.driver().cuGraphAddKernelNode_v2(&node, graph, &last, last ? 1 : 0, &params),
      "cuGraphAddKernelNode");
  last = node;
}

void ReplayGraph::add_condition(Graph graph, GraphNode& last, const ReplayStep& step,
                                unsigned long long handle) {
  const bool loop = step.kind == ReplayStep::Kind::loop;
  conditions_.push_back(device_code(device_, condition_source,
                                    loop ? "kernel_loop_goes_on" : "kernel_branch_is_taken"));
  DevicePtr at = resolve(step.places[0]);
  std::int64_t branch = loop ? 0 : step.numbers[0], most = loop ? 0 : step.numbers[1];
  void* parameters[] = {&handle, &at, &branch, &most};
  add_kernel(graph, last, graph_replay::kernel_params(*conditions_.back(), {1, 1, 0}, parameters));
}

// One node behind the other. `again`: the handle of the loop whose body this is, whose condition is
// looked at in the end.
void ReplayGraph::add_steps(Graph graph, const Vec<ReplayStep>& steps, const ReplayStep* loop,
                            unsigned long long again) {
  using Kind = ReplayStep::Kind;
  const Driver& d = device_.driver();
  GraphNode last = nullptr;
  for (const ReplayStep& step : steps) {
    if (step.kind == Kind::kernel) {
      Parameters p;
      add_kernel(graph, last, parameters_of(step, p));
    } else if (step.kind == Kind::library) {
      const Graph child = capture(step);  // the node has a copy of its own
      GraphNode node = nullptr;
      const Result added = d.cuGraphAddChildGraphNode(&node, graph, &last, last ? 1 : 0, child);
      static_cast<void>(d.cuGraphDestroy(child));
      device_.check(added, "cuGraphAddChildGraphNode");
      last = node;
    } else if (step.kind == Kind::copy) {
      const CopyParams p =
          graph_replay::copy_params(resolve(step.places[0]), resolve(step.places[1]),
                                    static_cast<std::size_t>(step.numbers[0]));
      GraphNode node = nullptr;
      device_.check(
          d.cuGraphAddMemcpyNode(&node, graph, &last, last ? 1 : 0, &p, device_.context()),
          "cuGraphAddMemcpyNode");
      last = node;
    } else {
      ConditionalNodeParams p{};
      p.node_type = Constant::CU_GRAPH_NODE_TYPE_CONDITIONAL;
      p.kind = step.kind == Kind::loop ? Constant::CU_GRAPH_COND_TYPE_WHILE
                                       : Constant::CU_GRAPH_COND_TYPE_IF;
      p.size = 1;
      p.context = device_.context();
      device_.check(d.cuGraphConditionalHandleCreate(&p.handle, graph, device_.context(), 0, 0),
                    "cuGraphConditionalHandleCreate");
      add_condition(graph, last, step, p.handle);
      GraphNode node = nullptr;
      device_.check(d.cuGraphAddNode_v2(&node, graph, &last, nullptr, 1, &p), "cuGraphAddNode");
      last = node;
      add_steps(p.bodies[0], step.body, step.kind == Kind::loop ? &step : nullptr, p.handle);
    }
    for (const Place& place : step.places) {
      if (place.base < 0) continue;
      if (graph != graph_ || step.kind >= Kind::branch) settled_[place.base] = true;
      else used_by_[place.base].push_back(static_cast<int>(nodes_.size()));
    }
    if (graph == graph_) nodes_.push_back({last, &step, false});
  }
  if (loop) add_condition(graph, last, *loop, again);
}

void ReplayGraph::make() {
  const Span span("compile", "make a CUDA graph");
  drop();
  nodes_.clear();
  used_by_ = Vec<Vec<int>>(bases_.size());
  settled_ = Vec<char>(bases_.size(), 0);
  const Driver& d = device_.driver();
  device_.check(d.cuGraphCreate(&graph_, 0), "cuGraphCreate");
  add_steps(graph_, list_.steps, nullptr, 0);
  device_.check(d.cuGraphInstantiateWithFlags(&exec_, graph_, 0), "cuGraphInstantiate");
}

bool ReplayGraph::update(const Movable& node) const {
  const Driver& d = device_.driver();
  const ReplayStep& step = *node.step;
  if (step.kind == ReplayStep::Kind::library) {
    // A library may take other kernels for other addresses, which do not fit in the place of these.
    const Graph child = capture(step);
    const Result updated = d.cuGraphExecChildGraphNodeSetParams(exec_, node.node, child);
    static_cast<void>(d.cuGraphDestroy(child));
    return updated == Constant::CUDA_SUCCESS;
  }
  if (step.kind == ReplayStep::Kind::copy) {
    const CopyParams p = graph_replay::copy_params(resolve(step.places[0]), resolve(step.places[1]),
                                                   static_cast<std::size_t>(step.numbers[0]));
    device_.check(d.cuGraphExecMemcpyNodeSetParams(exec_, node.node, &p, device_.context()),
                  "cuGraphExecMemcpyNodeSetParams");
    return true;
  }
  Parameters p;
  const KernelNodeParams params = parameters_of(step, p);
  device_.check(d.cuGraphExecKernelNodeSetParams_v2(exec_, node.node, &params),
                "cuGraphExecKernelNodeSetParams");
  return true;
}

void ReplayGraph::prepare(std::span<const DevicePtr> bases, DevicePtr scratch) {
  bool anew = !exec_ || scratch != scratch_;
  for (std::size_t b = 0; b < bases.size() && !anew; ++b)
    anew = bases[b] != bases_[b] && settled_[b];
  try {
    if (anew) {
      bases_ = Vec<DevicePtr>(bases.begin(), bases.end());
      scratch_ = scratch;
      make();
      return;
    }
    SmallVec<int, 16> stale;
    for (std::size_t b = 0; b < bases.size(); ++b) {
      if (bases[b] == bases_[b]) continue;
      bases_[b] = bases[b];
      for (int n : used_by_[b])
        if (!nodes_[n].stale) {
          nodes_[n].stale = true;
          stale.push_back(n);
        }
    }
    for (int n : stale) {
      Movable& m = nodes_[n];
      m.stale = false;
      if (update(m)) continue;
      make();
      return;
    }
  } catch (...) {
    drop();
    throw;
  }
}

void ReplayGraph::launch() const {
  device_.check(device_.driver().cuGraphLaunch(exec_, device_.stream()), "cuGraphLaunch");
}

ReplayScratch& replay_scratch(int device) {
  // never destroyed: values may be let go while the process ends
  static ReplayScratch* const all = new ReplayScratch[64];
  return all[device];
}

// What a program knows of its replaying; under the mutex of its device's scratch memory.
struct CudaProgram::Replay {
  std::atomic<bool> possible{graph_replay::wanted()};
  bool listed = false, direct = false;  // direct: it has run kernel by kernel
  ReplayList list;
  ReplayGraph graph;
  // per output: the place of its buffer among the bases; -1: it is an input, a constant, or an
  // earlier result
  Vec<int> results;
  explicit Replay(const CudaDevice& device)
      : list(graph_replay::has_conditions(device)), graph(device, list) {}
};

std::shared_ptr<CudaProgram::Replay> CudaProgram::new_replay() const {
  return std::make_shared<Replay>(device_);
}

bool CudaProgram::replay(std::span<const BufferRef> inputs, Vec<BufferRef>& results) {
  using Kind = BufferPlan::Slot::Kind;
  Replay& r = *replay_;
  if (!r.possible) return false;
  const GraphBody& g = fusion_.graph;
  const auto storage = [&](std::size_t i) { return fusion_.storage[g.outputs[i]]; };
  ReplayScratch& scratch = replay_scratch(device_.index());
  const std::lock_guard lock(scratch.mutex);
  if (!r.listed) {
    r.listed = true;
    Vec<Place> given, wanted;
    for (std::size_t i = 0; i < inputs.size(); ++i) given.push_back({static_cast<int>(i), 0});
    int next = static_cast<int>(inputs.size());
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const BufferPlan::Slot& s = plan_.slots[storage(i)];
      bool fresh = s.kind == Kind::output && s.index == static_cast<int>(i);
      if (s.kind == Kind::produced) {
        fresh = true;
        for (std::size_t k = 0; k < i; ++k) fresh = fresh && storage(k) != storage(i);
      }
      r.results.push_back(fresh ? next++ : -1);
      wanted.push_back(fresh ? Place{r.results.back(), 0} : Place());
    }
    const bool listed = list(r.list, given, wanted);
    if (!listed || (r.list.steps.size() < graph_replay::least_steps && !r.list.has_conditions)) {
      r.possible = false;
      r.list.steps = {};
      return false;
    }
  }
  // What runs once needs no graph, unless that saves waiting in the middle. A library is asked once
  // before it is captured: then it has loaded what it needs.
  if (!r.direct && (!r.list.has_conditions || r.list.has_libraries)) {
    r.direct = true;
    return false;
  }
  const std::size_t bytes = r.list.scratch_bytes();
  BufferRef own;
  if (bytes > graph_replay::most_kept) {
    own = device_.allocate(bytes, "intermediate results", &fusion_.graph);
  } else if (bytes && (!scratch.memory || scratch.memory->bytes < bytes)) {
    std::size_t rounded = std::size_t{1} << 20;
    while (rounded < bytes) rounded *= 2;
    scratch.memory = {};
    scratch.memory = device_.allocate(rounded, "intermediate results", &fusion_.graph);
  }
  if (bytes && !own) own = scratch.memory;
  SmallVec<DevicePtr, 24> bases;
  for (const BufferRef& b : inputs) bases.push_back(address(*b));
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    if (r.results[i] < 0) continue;
    results[i] = device_.allocate(g.aval(g.outputs[i]).bytes(), "a result", &fusion_.graph);
    bases.push_back(address(*results[i]));
  }
  try {
    r.graph.prepare(bases, own ? address(*own) : 0);
  } catch (const Error& e) {
    if (!lost_device_reason(device_.index()).empty()) throw;
    // The driver makes no such graph: kernels one by one come to the same.
    warn_once(formatted(
        "vt: a program on cuda({}) runs kernel by kernel, as no CUDA graph could be made of it: {}",
        device_.index(), e.what()));
    r.possible = false;
    results = Vec<BufferRef>(g.outputs.size());
    return false;
  }
  const Span span("launch", "a CUDA graph");
  r.graph.launch();
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    if (r.results[i] >= 0) continue;
    const BufferPlan::Slot& s = plan_.slots[storage(i)];
    if (s.kind == Kind::input) results[i] = inputs[s.index];
    else if (s.kind == Kind::constant) results[i] = constants_[storage(i)];
    else if (s.kind == Kind::output) results[i] = results[s.index];
    for (std::size_t k = 0; k < i && !results[i]; ++k)
      if (storage(k) == storage(i)) results[i] = results[k];
  }
  count(counters().graph_launches);
  return true;
}

bool CudaProgram::is_replayed() const {
  const std::lock_guard lock(replay_scratch(device_.index()).mutex);
  return replay_->possible && replay_->listed;
}

}  // namespace vt::detail::cuda
