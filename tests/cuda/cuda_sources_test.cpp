// The text of kernels: golden ones to read, and all kernels of the table of primitive cases through
// NVIDIA's own compiler where there is one, for the oldest devices that it knows of those that are
// supported; some of them for data-centre ones and for the newest.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/cuda/products/product_epilogue.hpp"
#include "src/jit/cuda/program/compile.hpp"
#include "src/jit/cuda/program/control.hpp"
#include "src/jit/cuda/program/large_matrices.hpp"
#include "src/jit/cuda/program/long_scans.hpp"
#include "src/jit/cuda/program/loop_kernel.hpp"
#include "src/jit/cuda/program/replay_graph.hpp"
#include "src/jit/cuda/program/scatter.hpp"
#include "src/jit/cuda/program/sort.hpp"
#include "src/jit/cuda/source/element_source.hpp"
#include "src/jit/cuda/source/fft_source.hpp"
#include "src/jit/cuda/source/matrix_source.hpp"
#include "src/jit/cuda/source/nest_source.hpp"
#include "src/jit/cuda/source/register_source.hpp"
#include "src/jit/passes/pipeline.hpp"
#include "src/jit/regions/register_kernel.hpp"
#include "src/jit/services/threads.hpp"
#include "src/trace/simplify/simplify.hpp"
#include "support/primitive_cases.hpp"

namespace {

using namespace vt::detail;
using vt::Tensor;
using Tensors = std::vector<Tensor>;

GraphBody graph_of(const FlatFunction& f, const Tensors& arguments) {
  std::vector<Aval> avals;
  for (const Tensor& t : arguments) avals.push_back(aval_of(t));
  return simplify(record(f, avals, {}).graph, SimplifyFor::running);
}

/// A device whose products all have kernels of vt's own.
class SourcesTarget : public PipelineTarget {
 public:
  SourcesTarget() {
    fuse = {.matrix_products = true, .on_host = false, .has_code = cuda::has_element_source};
    registers = cuda::device_limits();
  }
  bool wants(PassName pass) const override {
    return pass != PassName::split_scans && pass != PassName::mask_lanes;
  }
};

/// The kernels of a Graph, each once.
void add_kernels(const GraphBody& graph, std::set<std::string>& sources) {
  for (const Aval& a : graph.avals)
    if (vt::is_complex(a.dtype)) return;
  const Fusion fusion = run_pipeline(graph, SourcesTarget()).fusion;
  for (const FusedStep& step : fusion.steps) {
    if (step.equation < 0) {
      const cuda::Mapping mapping = cuda::choose_mapping(step.nest);
      cuda::ScratchLayout scratch;
      vt::Vec<cuda::Launch> launches;
      if (const std::int64_t block = cuda::scan_block(step.nest)) {
        cuda::add_long_scan(step.nest, block, {}, {}, {}, scratch, launches);
      } else if (mapping.updates == cuda::UpdatePlan::Way::sorted) {
        cuda::add_sorted_updates(step.nest, cuda::plan_updates(step.nest, false), {}, {}, 100,
                                 scratch, launches);
      } else {
        sources.insert(cuda::nest_source(step.nest, mapping, "kernel"));
      }
      for (cuda::Launch& l : launches) {
        if (!l.name.starts_with("kernel_sc")) continue;  // sorts are below
        l.source.replace(l.source.find(" " + l.name + "(") + 1, l.name.size(), "kernel");
        sources.insert(l.source);
      }
      continue;
    }
    const Equation& e = fusion.graph.equations[step.equation];
    if (family_of(e.op) == Family::contract) {
      const ConvSpec spec = step.product ? cuda::as_convolution(*step.product) : *step.convolution;
      std::optional<cuda::ProductEpilogue> epilogue;
      if (step.row_loop >= 0) {
        const Var c = fusion.storage[e.outputs[0]];
        const auto buffer =
            std::find(step.buffers.begin(), step.buffers.end(), c) - step.buffers.begin();
        epilogue = cuda::product_epilogue(step.nest, static_cast<int>(buffer),
                                          cuda::dense_columns(spec), !step.rows_alone);
      }
      cuda::ProductSource p = cuda::product_source(spec, false, epilogue ? &*epilogue : nullptr);
      if (p.blocks == 0) continue;
      p.source.replace(p.source.find(p.name), p.name.size(), "kernel");
      sources.insert(p.source);
      if (p.parts == 1) continue;
      p.join_source.replace(p.join_source.find(p.join_name), p.join_name.size(), "kernel");
      sources.insert(p.join_source);
    } else if (family_of(e.op) == Family::linalg) {
      cuda::MatrixSource m = cuda::matrix_source(linalg_spec(fusion.graph, e));
      if (m.source.empty()) continue;
      m.source.replace(m.source.find(m.name), m.name.size(), "kernel");
      sources.insert(m.source);
    } else if (is_control(e.op)) {
      if (const std::optional<LaneForm> form = cuda::form_in_registers(alone(fusion.graph, e)))
        sources.insert(cuda::register_kernel_source(*form, "kernel"));
      else
        for (const GraphRef& body : bodies_of(e.params))
          add_kernels(simplify(*body, SimplifyFor::running), sources);
    }
  }
}

std::string as_one_kernel(const std::set<std::string>& parts) {
  using Kind = cuda::ReplayStep::Kind;
  cuda::ReplayList all(false, true);
  cuda::ReplayStep iterations, branch, loop, copy;
  iterations.kind = Kind::iterations, branch.kind = Kind::branch, loop.kind = Kind::loop,
  copy.kind = Kind::copy;
  iterations.numbers = {7}, branch.numbers = {1, 2}, copy.numbers = {12};
  for (cuda::ReplayStep* s : {&branch, &loop}) s->places.push_back({0, 4});
  copy.places.push_back({cuda::Place::scratch, 16});
  copy.places.push_back({cuda::Place::fixed, 1 << 20});
  for (const std::string& text : parts) {
    const std::size_t open = text.find('(', text.find(" kernel("));
    const std::string head = text.substr(open, text.find(") {", open) - open);
    cuda::ReplayStep step;
    step.text = &text;
    step.work = 1;
    step.grid = {3, std::stoi(text.substr(text.find("__launch_bounds__(") + 18)), 0};
    for (char c : head)
      if (c == '*') step.places.push_back({1, 256, -8});
    for (std::size_t at = 0; (at = head.find("long long", at)) != head.npos; ++at)
      step.numbers.push_back(-5);
    iterations.body.push_back(std::move(step));
  }
  loop.body.push_back(copy);
  branch.body.push_back(std::move(loop));
  iterations.body.push_back(std::move(branch));
  all.add(std::move(iterations));
  const cuda::LoopKernel made = cuda::loop_kernel(all, 2, "kernel");
  EXPECT_FALSE(made.source.empty());
  EXPECT_EQ(made.fixed.size(), 1u);
  return made.source;
}

std::set<std::string> kernels_of(const FlatFunction& f, const Tensors& arguments) {
  std::set<std::string> sources;
  add_kernels(graph_of(f, arguments), sources);
  return sources;
}

/// Sources of kernels, by the name of each.
using Kernels = std::vector<std::pair<std::string, std::string>>;

/// Every kernel through NVRTC, with nothing to say about any: for sm_75, as what a kernel asks for
/// is what that has least of, but of eight batches one for sm_90 and one for the newest
/// architecture that it knows; where there are fewer batches, these two as well. Many at a time,
/// each in a namespace of its own: the compiler's way into the prelude is longer than through most
/// kernels.
void expect_compiled(const Kernels& kernels) {
  std::string reason;
  const cuda::Nvrtc* n = cuda::nvrtc(&reason);
  ASSERT_NE(n, nullptr) << reason;
  int count = 0;
  ASSERT_EQ(n->nvrtcGetNumSupportedArchs(&count), 0);
  std::vector<int> known(static_cast<std::size_t>(count));
  ASSERT_EQ(n->nvrtcGetSupportedArchs(known.data()), 0);
  std::vector<std::string> architectures = {"sm_75", "sm_90"};
  if (const int newest = *std::max_element(known.begin(), known.end()); newest > 90)
    architectures.push_back("sm_" + std::to_string(newest));
  constexpr std::size_t together = 24;
  const std::size_t batches = (kernels.size() + together - 1) / together;
  struct Call {
    std::size_t batch, architecture;
  };
  std::vector<Call> calls;
  const bool many = batches >= 8;
  for (std::size_t b = 0; b < batches; ++b)
    calls.push_back({b, many && b % 8 < architectures.size() ? b % 8 : 0});
  for (std::size_t a = 1; a < architectures.size() && !many; ++a) calls.push_back({a % batches, a});
  std::vector<std::string> problems(calls.size());
  parallel_ranges(
      static_cast<std::int64_t>(problems.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          const std::string& architecture = architectures[calls[i].architecture];
          const std::size_t first = calls[i].batch * together,
                            last = std::min(first + together, kernels.size());
          std::string text;
          for (std::size_t k = first; k < last; ++k) {
            std::string source = kernels[k].second;
            const std::size_t name = source.find(" " + kernels[k].first + "(");
            if (name == std::string::npos)
              problems[i] += "no kernel " + kernels[k].first + " in\n" + source;
            else source.insert(name + 1 + kernels[k].first.size(), "_" + std::to_string(k));
            text += "namespace of_" + std::to_string(k) + " {\n" + source + "}\n";
            for (std::size_t at = 0; (at = source.find("#define ", at)) != std::string::npos;) {
              at += 8;
              text += "#undef " + source.substr(at, source.find_first_of("( \n", at) - at) + "\n";
            }
          }
          try {
            std::string log;
            if (cuda::compile_cubin(text, "kernels", architecture, &log).empty())
              problems[i] += "nothing came out";
            problems[i] += log;
          } catch (const vt::Error& e) {
            problems[i] += e.what();
          }
          if (!problems[i].empty())
            problems[i] = architecture + ": " + problems[i].substr(0, 4000) + "\n" + text;
        }
      });
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
}

TEST(CudaSources, AnElementIsAThread) {
  const std::set<std::string> sources =
      kernels_of([](std::span<const Tensor> a) { return Tensors{vt::exp(a[0]) * 2 + 1}; },
                 {vt::ones({20, 30})});
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(*sources.begin(),
            "typedef i32 idx;\n"
            "extern \"C\" __global__ void __launch_bounds__(256) "
            R"(kernel(const f32* b0, f32* b1, long long e0, long long e1) {
  const idx groups = 1 * (idx)e1;
)"
            "  for (idx group = (idx)blockIdx.x * 256 + threadIdx.x; group < groups; "
            "group += (idx)gridDim.x * 256) {\n"
            R"(    const idx d1 = group;
    const f32 v0 = VT_LOAD(b0, d1);
    const f32 v1 = expf(v0);
    const f32 v3 = vt_mul(v1, (2.0f));
    const f32 v5 = vt_add(v3, (1.0f));
    VT_STORE(b1, d1, v5);
  }
}
)");
}

TEST(CudaSources, ARowIsAWarpOrABlock) {
  for (const auto& [n, reduction] :
       {std::pair{100, "vt_reduce<32, vt_maximum>"}, {3000, "vt_reduce<256, vt_maximum>"}}) {
    const std::set<std::string> sources = kernels_of(
        [](std::span<const Tensor> a) { return Tensors{vt::max(a[0], 1)}; }, {vt::ones({20, n})});
    ASSERT_EQ(sources.size(), 1u);
    EXPECT_NE(sources.begin()->find(reduction), std::string::npos) << *sources.begin();
  }
}

TEST(CudaSources, NvrtcCompilesSorts) {
  std::string reason;
  if (!cuda::nvrtc(&reason)) GTEST_SKIP() << reason;
  const auto spec = [](std::int64_t length, std::int64_t limit,
                       std::initializer_list<vt::DType> dtypes, int keys, bool place) {
    SortSpec s;
    s.length = length;
    s.limit = limit;
    s.keys = keys;
    s.dtypes = dtypes;
    s.is_place.assign(dtypes.size(), 0);
    s.is_place.back() = place;
    s.outer = 3;
    s.inner = 2;
    return s;
  };
  std::set<std::pair<std::string, std::string>> kernels;
  for (const SortSpec& s :
       {spec(50, 50, {vt::f16}, 1, false), spec(300, 300, {vt::f64, vt::i16, vt::i32}, 2, true),
        spec(100000, 100000, {vt::f32, vt::i32}, 1, true), spec(100000, 100000, {vt::i8}, 1, false),
        spec(100000, 100000, {vt::f64, vt::bool_, vt::i64}, 2, true),
        spec(100000, 20, {vt::bf16, vt::i32}, 1, true), spec(100000, 20, {vt::i64}, 1, false)}) {
    cuda::ScratchLayout scratch;
    vt::Vec<cuda::Launch> launches;
    vt::SmallVec<cuda::Launch::Pointer, 8> pointers(s.dtypes.size(), {0});
    cuda::add_sort(s, pointers, pointers, 100, scratch, launches);
    for (const cuda::Launch& l : launches) kernels.insert({l.name, l.source});
  }
  EXPECT_GE(kernels.size(), 15u);
  expect_compiled({kernels.begin(), kernels.end()});
}

// What vt's own kernels do around the libraries' routines on large matrices.
TEST(CudaSources, NvrtcCompilesLargeMatrices) {
  std::string reason;
  if (!cuda::nvrtc(&reason)) GTEST_SKIP() << reason;
  std::set<std::pair<std::string, std::string>> kernels;
  const cuda::MatrixLibraries libraries{
      [](const cuda::SolverTask&, std::string*) { return cuda::SolverCall{nullptr, 64}; },
      [](const cuda::TriangleSpec&, std::string*) {
        return std::shared_ptr<const cuda::LibraryCall>();
      }};
  const auto add = [&](LinalgSpec s) {
    for (vt::DType d : {vt::f32, vt::f64}) {
      s.dtype = d, s.batch = 2;
      const vt::SmallVec<cuda::Launch::Pointer, 8> pointers(4, {0});
      cuda::ScratchLayout scratch;
      vt::Vec<cuda::Launch> launches;
      EXPECT_EQ(cuda::add_large_matrices(s, pointers, pointers, libraries, scratch, launches), "");
      for (const cuda::Launch& l : launches)
        if (!l.source.empty()) kernels.insert({l.name, l.source});
    }
  };
  for (Op op : {Op::cholesky, Op::lu, Op::solve, Op::triangular_solve})
    add({.op = op, .m = 300, .n = 300, .columns = 3});
  for (bool transposed : {false, true})
    add({.op = Op::solve,
         .transposed = transposed,
         .factored = true,
         .m = 300,
         .n = 300,
         .columns = 3});
  for (bool vectors : {false, true}) add({.op = Op::eigh, .vectors = vectors, .m = 300, .n = 300});
  for (const auto& [m, n] : {std::pair{300, 200}, {200, 300}})
    for (bool full : {false, true})
      for (Op op : {Op::lu, Op::qr, Op::svd}) add({.op = op, .full = full, .m = m, .n = n});
  EXPECT_GT(kernels.size(), 40u);
  expect_compiled({kernels.begin(), kernels.end()});
}

TEST(CudaSources, NvrtcCompilesCounting) {
  std::string reason;
  if (!cuda::nvrtc(&reason)) GTEST_SKIP() << reason;
  for (const char* name : {"kernel_iterations_begin", "kernel_iteration_is_over",
                           "kernel_row_of_iteration", "kernel_row_to_iteration"})
    expect_compiled({{name, cuda::counting_source}});
}

// What branches and loops of a CUDA graph ask the device.
TEST(CudaSources, NvrtcCompilesConditions) {
  std::string reason;
  const cuda::Nvrtc* n = cuda::nvrtc(&reason);
  if (!n) GTEST_SKIP() << reason;
  int major = 0, minor = 0;
  ASSERT_EQ(n->nvrtcVersion(&major, &minor), 0);
  if (major * 100 + minor < 1204) GTEST_SKIP() << "no conditional nodes before 12.4";
  for (const char* name : {"kernel_loop_goes_on", "kernel_branch_is_taken"}) {
    EXPECT_NE(std::string(cuda::condition_source).find(std::string(" ") + name + "("),
              std::string::npos);
    expect_compiled({{name, cuda::condition_source}});
  }
}

// Takes most of this file's time, where NVRTC is found; needs nothing else.
TEST(CudaSources, NvrtcCompilesEveryKernel) {
  std::string reason;
  if (!cuda::nvrtc(&reason)) GTEST_SKIP() << reason;
  std::set<std::string> sources;
  std::uint64_t seed = 1;
  for (const vt_test::PrimitiveCase& c : vt_test::primitive_cases()) {
    Tensors operands;
    for (std::size_t i = 0; i < c.operands.size(); ++i) operands.push_back(c.operand(i, seed++));
    add_kernels(graph_of([&](std::span<const Tensor> a) { return c.run(a); }, operands), sources);
  }
  for (const vt::Shape& shape : {vt::Shape{4, 33}, {2, 1500}, {3, 20000}, {5000, 6}, {2, 700, 3}})
    for (int axis = 0; axis < shape.rank(); ++axis)
      add_kernels(graph_of(
                      [&](std::span<const Tensor> a) {
                        return Tensors{vt::sum(a[0], axis), vt::argmin(a[0], axis),
                                       vt::softmax(a[0], axis), vt::cumsum(a[0], axis)};
                      },
                      {vt::ones(shape)}),
                  sources);
  add_kernels(graph_of([](std::span<const Tensor> a) { return Tensors{vt::matmul(a[0], a[0])}; },
                       {vt::ones({100, 100})}),
              sources);
  // Neighbours at a time, squares that are transposed, columns.
  add_kernels(graph_of(
                  [](std::span<const Tensor> a) {
                    return Tensors{a[0] * a[1] + a[2],
                                   a[0].astype(vt::f16) * vt::tensor(2, vt::f16)};
                  },
                  {vt::ones({2048, 1024}), vt::ones({1024}), vt::ones({2048, 1})}),
              sources);
  add_kernels(
      graph_of([](std::span<const Tensor> a) { return Tensors{a[0] * 2, a[1] > 0, a[2] + 1}; },
               {vt::ones({2048, 1025}, vt::bf16), vt::ones({2048, 1025}, vt::f64),
                vt::ones({2048, 2048}, vt::i8)}),
      sources);
  add_kernels(graph_of(
                  [](std::span<const Tensor> a) {
                    return Tensors{vt::transpose(a[0]) + a[0], vt::argmax(a[0], 0)};
                  },
                  {vt::ones({200, 200})}),
              sources);
  add_kernels(graph_of(
                  [](std::span<const Tensor> a) {
                    return Tensors{vt::cumsum(a[0], 1), vt::cummax(a[0], 1)};
                  },
                  {vt::ones({2, 40000})}),
              sources);
  add_kernels(graph_of([](std::span<const Tensor> a) { return Tensors{vt::cumsum(a[0], 0)}; },
                       {vt::ones({3000, 40}, vt::f16)}),
              sources);
  const Tensor places = vt::zeros({1000}, vt::i32);
  for (const Tensor& x : {vt::ones({1000, 3}), vt::ones({1000}, vt::bf16),
                          vt::ones({1000}, vt::i64), vt::ones({1000}, vt::i8)})
    add_kernels(graph_of(
                    [](std::span<const Tensor> a) {
                      return Tensors{vt::segment_sum(a[0], a[1], 9),
                                     vt::segment_min(a[0], a[1], 9)};
                    },
                    {x, places}),
                sources);
  // Tiles of both sizes, sums in parts, dilated images by phases and place by place.
  const auto convolution = [&](const vt::Shape& x, const vt::Shape& filter,
                               const vt::ConvOptions& options, vt::DType d) {
    add_kernels(
        graph_of([&](std::span<const Tensor> a) { return Tensors{vt::conv(a[0], a[1], options)}; },
                 {vt::ones(x, d), vt::ones(filter, d)}),
        sources);
  };
  convolution({2, 9, 9, 16}, {3, 3, 16, 40}, {.padding = "SAME"}, vt::f32);
  convolution({4, 64, 64, 2}, {3, 3, 2, 128}, {.padding = "SAME"}, vt::bf16);
  convolution({1, 14, 14, 40}, {8, 8, 40, 16}, {}, vt::f64);
  convolution({1, 33, 33, 8}, {32, 32, 8, 3}, {}, vt::f16);
  for (std::int64_t stride : {1, 2}) {
    convolution({2, 6, 7, 8}, {4, 3, 8, 20},
                {.strides = {stride, stride}, .padding = "SAME", .lhs_dilation = {3, 2}}, vt::f32);
    convolution({2, 6, 7, 8}, {4, 3, 8, 2},
                {.strides = {stride, stride}, .padding = "SAME", .lhs_dilation = {3, 2}}, vt::i32);
  }
  const auto halve = [](Tensor x) {
    return vt::while_loop([](Tensor x) { return x > 1; }, [](Tensor x) { return x * 0.5; }, x);
  };
  add_kernels(graph_of([&](std::span<const Tensor> a) { return Tensors{vt::vmap(halve)(a[0])}; },
                       {vt::ones({100})}),
              sources);
  // Chains of small matrices, a lane for each thread, and what is read and written by way of shared
  // memory.
  const auto chain = [](Tensor x, Tensor y) {
    return vt::matmul(vt::matmul(x, y) * 2.0f + vt::eye(3).astype(x.dtype()), vt::sin(x));
  };
  for (vt::DType d : {vt::f32, vt::f64, vt::f16, vt::i32, vt::bool_})
    for (int lanes : {100, 2000})
      add_kernels(
          graph_of([&](std::span<const Tensor> a) { return Tensors{vt::vmap(chain)(a[0], a[1])}; },
                   {vt::ones({lanes, 3, 3}, d), vt::ones({lanes, 3, 3}, vt::f32)}),
          sources);
  // What is done to the elements of products: in tiles, in parts, an element per thread.
  for (const auto& [m, k] : {std::pair{70, 40}, {24, 1100}, {3, 5}})
    add_kernels(graph_of(
                    [](std::span<const Tensor> a) {
                      return Tensors{vt::tanh(vt::matmul(a[0], a[1]) + a[2]) * a[3]};
                    },
                    {vt::ones({m, k}, vt::f16), vt::ones({k, 48}, vt::f16), vt::ones({48}),
                     vt::ones({m, 1})}),
                sources);
  // Some of them as steps of one kernel, with a loop, a branch and iterations.
  const std::set<std::string> parts = kernels_of(
      [](std::span<const Tensor> a) {
        return Tensors{vt::softmax(vt::matmul(a[0], a[0]), 1), vt::sum(a[0], 0), vt::exp(a[1]) * 2,
                       vt::matmul(a[0], vt::transpose(a[1]))};
      },
      {vt::ones({40, 40}), vt::ones({3, 40})});
  sources.insert(as_one_kernel(parts));
  // Transforms in one step and in two, of all kinds.
  for (const auto& [kind, d, n] : {std::tuple{FftKind::fft, vt::f32, std::int64_t{34}},
                                   {FftKind::rfft, vt::f64, 120},
                                   {FftKind::irfft, vt::f32, 8192}})
    for (cuda::FftPass& p :
         cuda::fft_source({.kind = kind, .part = d, .batch = 2, .lengths = {3, n}}).passes) {
      p.source.replace(p.source.find(p.name), p.name.size(), "kernel");
      sources.insert(p.source);
    }
  // A thread, a warp and a block for each matrix.
  for (int n : {4, 20, 40})
    add_kernels(graph_of(
                    [](std::span<const Tensor> a) {
                      namespace la = vt::linalg;
                      const la::SvdResult svd = la::svd(a[0], false);
                      return Tensors{la::cholesky(a[0]),          la::lu(a[0]).lu,
                                     la::solve(a[0], a[0]),       la::qr(a[0]).q,
                                     la::eigh(a[0]).eigenvectors, svd.u};
                    },
                    {vt::ones({2, n, n})}),
                sources);
  EXPECT_GT(sources.size(), 200u);
  // Tensor cores are those of newer devices.
  for (vt::DType d : {vt::f16, vt::bf16})
    for (std::int64_t m : {200, 2000}) {
      MatmulSpec s{.a_dtype = d,
                   .b_dtype = d,
                   .result = d,
                   .m = m,
                   .n = m,
                   .k = 100,
                   .a_row = 100,
                   .b_row = m};
      const cuda::ProductSource p = cuda::product_source(cuda::as_convolution(s), true);
      std::string log;
      EXPECT_FALSE(
          cuda::compile_cubin(p.source, p.name, m == 200 ? "sm_80" : "sm_90", &log).empty());
      EXPECT_EQ(log, "") << p.source;
    }
  Kernels kernels;
  for (const std::string& source : sources) kernels.emplace_back("kernel", source);
  expect_compiled(kernels);
}

}  // namespace
