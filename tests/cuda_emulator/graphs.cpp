// Graphs of the emulated driver: built node by node or captured, instantiated, changed, launched;
// nodes that choose and repeat graphs of their own.
#include <algorithm>

#include "emulator.hpp"

namespace emulator {

namespace {

// Nodes of a graph are named by handles of their own, which end with it.
struct NodeObject {
  GraphObject* graph;
  std::size_t index;
};
struct GraphExecObject {
  GraphObject graph;
  const GraphObject* made_of;
  int device = 0;
};
using Exec = std::shared_ptr<GraphExecObject>;

struct Graphs {
  std::mutex mutex;
  std::set<GraphObject*> graphs;
  std::set<Exec*> execs;
  std::set<NodeObject*> nodes;
  std::map<std::uint64_t, unsigned> conditions;  // what kernels have set
  std::map<std::uint64_t, const GraphObject*> handles;
  std::uint64_t next_handle = 1;
};
Graphs& graphs() {
  static Graphs* const all = new Graphs;
  return *all;
}

GraphObject* known(vt::detail::cuda::Graph handle) {
  auto* graph = reinterpret_cast<GraphObject*>(handle);
  return graphs().graphs.count(graph) ? graph : nullptr;
}
Exec* known(vt::detail::cuda::GraphExec handle) {
  auto* exec = reinterpret_cast<Exec*>(handle);
  return graphs().execs.count(exec) ? exec : nullptr;
}
NodeObject* known(vt::detail::cuda::GraphNode handle) {
  auto* node = reinterpret_cast<NodeObject*>(handle);
  return graphs().nodes.count(node) ? node : nullptr;
}

// A graph as it is now, with those of its conditional nodes.
GraphObject copy_of(const GraphObject& graph) {
  GraphObject copy = graph;
  for (GraphNode& node : copy.nodes)
    for (std::shared_ptr<GraphObject>& body : node.bodies)
      body = std::make_shared<GraphObject>(copy_of(*body));
  return copy;
}

bool has_conditions(const GraphObject& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const GraphNode& node) { return node.conditional >= 0; });
}

// Ends a graph, its nodes' handles, and the graphs of its conditional nodes.
void end_graph(GraphObject* graph) {
  Graphs& g = graphs();
  for (GraphNode& node : graph->nodes)
    for (const std::shared_ptr<GraphObject>& body : node.bodies) end_graph(body.get());
  for (auto at = g.nodes.begin(); at != g.nodes.end();)
    if ((*at)->graph == graph) {
      delete *at;
      at = g.nodes.erase(at);
    } else {
      ++at;
    }
  for (auto at = g.handles.begin(); at != g.handles.end();)
    at = at->second == graph ? g.handles.erase(at) : std::next(at);
  g.graphs.erase(graph);
}

// Nodes in one of the orders that their edges allow.
std::vector<int> order_of(const GraphObject& graph) {
  const std::uint64_t seed = emulator::seed();
  std::vector<int> order, ready, missing(graph.nodes.size());
  std::vector<std::vector<int>> followers(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    missing[i] = static_cast<int>(graph.nodes[i].after.size());
    if (missing[i] == 0) ready.push_back(static_cast<int>(i));
    for (int before : graph.nodes[i].after) followers[before].push_back(static_cast<int>(i));
  }
  Random random(seed);
  while (!ready.empty()) {
    const std::size_t pick = seed == 0   ? 0
                             : seed == 1 ? ready.size() - 1
                                         : random.below(ready.size());
    const int node = ready[pick];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    order.push_back(node);
    for (int next : followers[node])
      if (--missing[next] == 0) ready.push_back(next);
  }
  return order;
}

unsigned condition(std::uint64_t handle) {
  const std::lock_guard lock(graphs().mutex);
  return graphs().conditions[handle];
}

Result run_graph(const GraphObject& graph) {
  for (const auto& [handle, value] : graph.conditions) set_condition(handle, value);
  for (int i : order_of(graph)) {
    const GraphNode& node = graph.nodes[i];
    if (node.conditional < 0) {
      if (const Result result = node.run()) return result;
    } else if (node.conditional == Constant::CU_GRAPH_COND_TYPE_WHILE) {
      while (condition(node.handle)) {
        count("graph_rounds");
        if (const Result result = run_graph(*node.bodies[0])) return result;
      }
    } else {
      const bool holds = condition(node.handle) != 0;
      if (!holds && node.bodies.size() < 2) continue;
      if (const Result result = run_graph(*node.bodies[holds ? 0 : 1])) return result;
    }
  }
  return 0;
}

// Adds a node behind others of the same graph. Hold the mutex.
Result add(vt::detail::cuda::GraphNode* made, vt::detail::cuda::Graph handle,
           const vt::detail::cuda::GraphNode* after, std::size_t count, GraphNode node) {
  GraphObject* graph = known(handle);
  if (!graph || !made || (count && !after)) return Constant::CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const NodeObject* before = known(after[i]);
    if (!before || before->graph != graph) return Constant::CUDA_ERROR_INVALID_VALUE;
    node.after.push_back(static_cast<int>(before->index));
  }
  graph->nodes.push_back(std::move(node));
  auto* object = new NodeObject{graph, graph->nodes.size() - 1};
  graphs().nodes.insert(object);
  *made = reinterpret_cast<vt::detail::cuda::GraphNode>(object);
  return 0;
}

Result kernel_node(const vt::detail::cuda::KernelNodeParams* p, GraphNode* node) {
  if (!p || p->kernel) return Constant::CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Launch> launch;
  if (const Result error = describe_launch(p->function, {p->grid_x, p->grid_y, p->grid_z},
                                           {p->block_x, p->block_y, p->block_z}, p->shared_bytes,
                                           p->parameters, p->extra, &launch))
    return error;
  node->kind = std::string("kernel ") + launch->function.kernel->name;
  node->run = [launch] { return run_launch(*launch); };
  return 0;
}

Result copy_node(const vt::detail::cuda::CopyParams* p, int device, GraphNode* node) {
  const auto plain = [](const vt::detail::cuda::CopySide& s) {
    return s.memory_type == Constant::CU_MEMORYTYPE_DEVICE && !s.x && !s.y && !s.z && !s.level &&
           !s.array && !s.reserved;
  };
  if (!p || !plain(p->from) || !plain(p->to) || p->height != 1 || p->depth != 1 || p->bytes == 0)
    return Constant::CUDA_ERROR_INVALID_VALUE;
  node->kind = "copy";
  node->run = [to = p->to.device, from = p->from.device, bytes = p->bytes, device] {
    return copy_on_device(to, from, bytes, device);
  };
  return 0;
}

// What may not change of a graph that takes the place of a node's: how many nodes, of which types,
// behind which.
std::string shape_of(const GraphObject& graph) {
  std::string text;
  for (const GraphNode& node : graph.nodes) {
    text += " " + node.kind.substr(0, node.kind.find(' '));
    for (int before : node.after) text += "," + std::to_string(before);
  }
  return text;
}

// A graph within a node, as it is now.
Result child_node(vt::detail::cuda::Graph handle, GraphNode* node) {
  const GraphObject* graph = known(handle);
  if (!graph || has_conditions(*graph)) return Constant::CUDA_ERROR_INVALID_VALUE;
  node->kind = "graph" + shape_of(*graph);
  node->run = [child = std::make_shared<GraphObject>(copy_of(*graph))] {
    return run_graph(*child);
  };
  return 0;
}

// The node of an executable graph that is to be changed: no other kind may take its place, nor one
// in a graph of a conditional node. Hold the mutex.
Result replace(vt::detail::cuda::GraphExec exec_handle, vt::detail::cuda::GraphNode handle,
               GraphNode node) {
  Exec* exec = known(exec_handle);
  const NodeObject* object = known(handle);
  if (!exec || !object || object->graph != (*exec)->made_of)
    return Constant::CUDA_ERROR_INVALID_VALUE;
  // launches that wait keep what they were given
  auto changed = std::make_shared<GraphExecObject>(**exec);
  GraphNode& old = changed->graph.nodes[object->index];
  if (old.kind != node.kind) return Constant::CUDA_ERROR_INVALID_VALUE;
  old.run = std::move(node.run);
  *exec = std::move(changed);
  return 0;
}

}  // namespace

vt::detail::cuda::Graph keep_graph(GraphObject* graph) {
  const std::lock_guard lock(graphs().mutex);
  graphs().graphs.insert(graph);
  return reinterpret_cast<vt::detail::cuda::Graph>(graph);
}

void set_condition(unsigned long handle, unsigned value) {
  const std::lock_guard lock(graphs().mutex);
  graphs().conditions[handle] = value;
}

long long alive_graphs(const std::string& what) {
  const std::lock_guard lock(graphs().mutex);
  const Graphs& g = graphs();
  if (what == "graphs")
    return std::count_if(g.graphs.begin(), g.graphs.end(),
                         [](const GraphObject* graph) { return !graph->is_body; });
  if (what == "graph_execs") return static_cast<long long>(g.execs.size());
  return -1;
}

}  // namespace emulator

using namespace emulator;
using namespace vt::detail::cuda;

extern "C" {

Result cuGraphCreate(Graph* graph, unsigned flags) {
  if (const Result error = enter("cuGraphCreate", needs_start)) return error;
  if (!graph || flags) return Constant::CUDA_ERROR_INVALID_VALUE;
  *graph = keep_graph(new GraphObject);
  return 0;
}
Result cuGraphDestroy(Graph handle) {
  if (const Result error = enter("cuGraphDestroy", needs_start | even_if_lost)) return error;
  const std::lock_guard lock(graphs().mutex);
  GraphObject* graph = known(handle);
  if (!graph || graph->is_body) return Constant::CUDA_ERROR_INVALID_VALUE;
  end_graph(graph);
  delete graph;
  return 0;
}
Result cuGraphAddKernelNode_v2(vt::detail::cuda::GraphNode* made, Graph graph,
                               const vt::detail::cuda::GraphNode* after, std::size_t count,
                               const KernelNodeParams* params) {
  if (const Result error = enter("cuGraphAddKernelNode_v2", needs_start | needs_context))
    return error;
  emulator::GraphNode node;
  if (const Result error = kernel_node(params, &node)) return error;
  const std::lock_guard lock(graphs().mutex);
  return add(made, graph, after, count, std::move(node));
}
Result cuGraphAddMemcpyNode(vt::detail::cuda::GraphNode* made, Graph graph,
                            const vt::detail::cuda::GraphNode* after, std::size_t count,
                            const CopyParams* params, Context context) {
  if (const Result error = enter("cuGraphAddMemcpyNode", needs_start | needs_context)) return error;
  emulator::GraphNode node;
  if (!context) return Constant::CUDA_ERROR_INVALID_CONTEXT;
  if (const Result error = copy_node(params, current_device(), &node)) return error;
  const std::lock_guard lock(graphs().mutex);
  return add(made, graph, after, count, std::move(node));
}
Result cuGraphAddChildGraphNode(vt::detail::cuda::GraphNode* made, Graph graph,
                                const vt::detail::cuda::GraphNode* after, std::size_t count,
                                Graph child) {
  if (const Result error = enter("cuGraphAddChildGraphNode", needs_start | needs_context))
    return error;
  emulator::GraphNode node;
  const std::lock_guard lock(graphs().mutex);
  if (const Result error = child_node(child, &node)) return error;
  return add(made, graph, after, count, std::move(node));
}
Result cuGraphExecChildGraphNodeSetParams(GraphExec exec, vt::detail::cuda::GraphNode handle,
                                          Graph child) {
  if (const Result error = enter("cuGraphExecChildGraphNodeSetParams", needs_start | needs_context))
    return error;
  emulator::GraphNode node;
  const std::lock_guard lock(graphs().mutex);
  if (const Result error = child_node(child, &node)) return error;
  return replace(exec, handle, std::move(node)) ? Constant::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
                                                : 0;
}
Result cuGraphConditionalHandleCreate(unsigned long long* handle, Graph graph_handle,
                                      Context context, unsigned value, unsigned flags) {
  if (const Result error = enter("cuGraphConditionalHandleCreate", needs_start | needs_context))
    return error;
  const std::lock_guard lock(graphs().mutex);
  GraphObject* graph = known(graph_handle);
  if (!graph || !handle || !context || flags > 1) return Constant::CUDA_ERROR_INVALID_VALUE;
  *handle = graphs().next_handle++;
  graphs().handles[*handle] = graph;
  if (flags) graph->conditions.push_back({*handle, value});
  return 0;
}
Result cuGraphAddNode_v2(vt::detail::cuda::GraphNode* made, Graph graph,
                         const vt::detail::cuda::GraphNode* after, const void* edges,
                         std::size_t count, ConditionalNodeParams* params) {
  if (const Result error = enter("cuGraphAddNode_v2", needs_start | needs_context)) return error;
  if (!params || edges || params->node_type != Constant::CU_GRAPH_NODE_TYPE_CONDITIONAL)
    return Constant::CUDA_ERROR_NOT_SUPPORTED;
  if (params->kind < 0 || params->kind > Constant::CU_GRAPH_COND_TYPE_WHILE || params->size != 1 ||
      !params->context)
    return Constant::CUDA_ERROR_INVALID_VALUE;  // as the first drivers that had them
  const std::lock_guard lock(graphs().mutex);
  const auto owner = graphs().handles.find(params->handle);
  if (owner == graphs().handles.end() || owner->second != known(graph))
    return Constant::CUDA_ERROR_INVALID_VALUE;
  emulator::GraphNode node;
  node.kind = "conditional";
  node.conditional = params->kind;
  node.handle = params->handle;
  auto body = std::make_shared<GraphObject>();
  body->is_body = true;
  node.bodies.push_back(body);
  if (const Result error = add(made, graph, after, count, std::move(node))) return error;
  graphs().graphs.insert(body.get());
  static thread_local Graph handed_out[1];
  handed_out[0] = reinterpret_cast<Graph>(body.get());
  params->bodies = handed_out;
  return 0;
}
Result cuGraphInstantiateWithFlags(GraphExec* exec, Graph handle, unsigned long long) {
  if (const Result error = enter("cuGraphInstantiateWithFlags", needs_start | needs_context))
    return error;
  const std::lock_guard lock(graphs().mutex);
  const GraphObject* graph = known(handle);
  if (!graph || graph->is_body) return Constant::CUDA_ERROR_INVALID_VALUE;
  if (has_conditions(*graph))  // such graphs are instantiated once at a time
    for (const Exec* other : graphs().execs)
      if ((*other)->made_of == graph) return Constant::CUDA_ERROR_NOT_SUPPORTED;
  auto* made = new Exec(new GraphExecObject{copy_of(*graph), graph, current_device()});
  graphs().execs.insert(made);
  *exec = reinterpret_cast<GraphExec>(made);
  return 0;
}
Result cuGraphExecKernelNodeSetParams_v2(GraphExec exec, vt::detail::cuda::GraphNode handle,
                                         const KernelNodeParams* params) {
  if (const Result error = enter("cuGraphExecKernelNodeSetParams_v2", needs_start | needs_context))
    return error;
  emulator::GraphNode node;
  if (const Result error = kernel_node(params, &node)) return error;
  const std::lock_guard lock(graphs().mutex);
  return replace(exec, handle, std::move(node));
}
Result cuGraphExecMemcpyNodeSetParams(GraphExec exec, vt::detail::cuda::GraphNode handle,
                                      const CopyParams* params, Context context) {
  if (const Result error = enter("cuGraphExecMemcpyNodeSetParams", needs_start | needs_context))
    return error;
  emulator::GraphNode node;
  if (!context) return Constant::CUDA_ERROR_INVALID_CONTEXT;
  if (const Result error = copy_node(params, current_device(), &node)) return error;
  const std::lock_guard lock(graphs().mutex);
  return replace(exec, handle, std::move(node));
}
Result cuGraphLaunch(GraphExec handle, Stream stream) {
  if (const Result error = enter("cuGraphLaunch", needs_start | needs_context)) return error;
  Exec exec;
  {
    const std::lock_guard lock(graphs().mutex);
    const Exec* held = known(handle);
    if (!held) return Constant::CUDA_ERROR_INVALID_VALUE;
    exec = *held;  // what an update changes later is not meant
  }
  count("graph_launches");
  return enqueue(stream, "graph", [exec] { return run_graph(exec->graph); });
}
Result cuGraphExecDestroy(GraphExec handle) {
  if (const Result error = enter("cuGraphExecDestroy", needs_start | needs_context | even_if_lost))
    return error;
  const std::lock_guard lock(graphs().mutex);
  Exec* held = known(handle);
  if (!held) return Constant::CUDA_ERROR_INVALID_VALUE;
  graphs().execs.erase(held);
  delete held;
  return 0;
}
Result cuGraphExecUpdate_v2(GraphExec exec_handle, Graph graph_handle, GraphExecUpdateInfo* info) {
  if (const Result error = enter("cuGraphExecUpdate_v2", needs_start | needs_context)) return error;
  const std::lock_guard lock(graphs().mutex);
  Exec* held = known(exec_handle);
  const GraphObject* graph = known(graph_handle);
  if (!held || !graph || !info) return Constant::CUDA_ERROR_INVALID_VALUE;
  *info = {0, nullptr, nullptr};
  const std::vector<emulator::GraphNode>& old = (*held)->graph.nodes;
  bool same = old.size() == graph->nodes.size();
  for (std::size_t i = 0; same && i < old.size(); ++i) same = old[i].after == graph->nodes[i].after;
  if (!same) {
    info->result = 2;  // the topology changed
    return Constant::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  const auto type = [](const std::string& kind) { return kind.substr(0, kind.find(' ')); };
  for (std::size_t i = 0; i < old.size(); ++i)
    if (type(old[i].kind) != type(graph->nodes[i].kind)) {
      info->result = 3;  // a node's type changed
      return Constant::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
  *held = std::make_shared<GraphExecObject>(
      GraphExecObject{copy_of(*graph), (*held)->made_of, (*held)->device});
  return 0;
}
}
