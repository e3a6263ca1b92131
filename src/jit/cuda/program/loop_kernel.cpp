// Loops and branches with small bodies as one kernel of one block.
#include "loop_kernel.hpp"

#include <algorithm>

#include <vt/detail/message.hpp>

#include "../../../trace/base/environment.hpp"
#include "../driver/device_costs.hpp"
#include "../source/source_writer.hpp"

namespace vt::detail::cuda {

namespace loop_kernels {

constexpr const char* helpers = R"cuda(
struct vt_at {
  unsigned char* p;
  template <class T> __device__ __forceinline__ operator T*() const { return (T*)p; }
};
VT_FN void vt_copy_bytes(unsigned char* to, const unsigned char* from, i64 bytes) {
  if ((((u64)to | (u64)from | (u64)bytes) & 3) == 0)
    for (i64 i = threadIdx.x; i < bytes / 4; i += blockDim.x)
      VT_STORE((u32*)to, i, VT_LOAD((const u32*)from, i));
  else
    for (i64 i = threadIdx.x; i < bytes; i += blockDim.x) VT_STORE(to, i, VT_LOAD(from, i));
}
)cuda";

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size())
    text.replace(at, what.size(), with);
}

// A kernel's text as a function `run`, whose block's number is a parameter. What it reads others
// have written in the same kernel, so that no pointer is the only one to its memory. Empty: it is
// not written as vt's kernels are.
std::string as_function(std::string text) {
  const std::string head = "extern \"C\" __global__ void __launch_bounds__(";
  const std::size_t at = text.find(head);
  if (at == text.npos || text.find(head, at + 1) != text.npos) return {};
  const std::size_t open = text.find('(', at + head.size());
  const bool bare = text[open + 1] == ')';
  text.replace(at, open + 1 - at,
               std::string("static __device__ void run(const i64 vt_block, const i64 vt_blocks") +
                   (bare ? "" : ", "));
  replace_all(text, "blockIdx.x", "vt_block");
  replace_all(text, "gridDim.x", "vt_blocks");
  replace_all(text, " __restrict__", "");
  return text;
}

class LoopKernelWriter : SourceWriter {
 public:
  explicit LoopKernelWriter(std::size_t bases) : bases_(bases) { indent_ = 1; }

  LoopKernel kernel(const ReplayList& list, const std::string& name) {
    find_threads(list.steps);
    if (!possible_) return {};
    write(list.steps);
    if (!possible_) return {};
    std::string text = helpers + functions_;
    text += formatted("extern \"C\" __global__ void __launch_bounds__({}) {}(", threads_, name);
    for (std::size_t b = 0; b < bases_; ++b) text += formatted("unsigned char* p{}, ", b);
    text += "unsigned char* scratch";
    for (std::size_t k = 0; k < made_.fixed.size(); ++k)
      text += formatted(", unsigned char* c{}", k);
    made_.source = text + ") {\n" + text_ + "}\n";
    made_.grid.threads = threads_;
    return std::move(made_);
  }

 private:
  using Kind = ReplayStep::Kind;

  // As many as the largest kernel has; those with barriers must have as many.
  void find_threads(const Vec<ReplayStep>& steps) {
    for (const ReplayStep& s : steps) {
      find_threads(s.body);
      if (s.kind == Kind::library) possible_ = false;
      if (s.kind != Kind::kernel) continue;
      possible_ = possible_ && s.text && s.work >= 0;
      threads_ = std::max(threads_, s.grid.threads);
      made_.grid.shared_bytes = std::max(made_.grid.shared_bytes, s.grid.shared_bytes);
    }
  }

  void barrier() { line("__syncthreads();"); }

  std::string address(const Place& place) {
    std::string text;
    if (place.base == Place::nowhere) return "(unsigned char*)0";
    if (place.base == Place::fixed) {
      std::size_t k = 0;
      while (k < made_.fixed.size() && made_.fixed[k] != place.offset) ++k;
      if (k == made_.fixed.size()) made_.fixed.push_back(place.offset);
      return formatted("c{}", k);
    }
    text = place.base == Place::scratch ? std::string("scratch") : formatted("p{}", place.base);
    if (place.offset) text += formatted(" + {}ll", place.offset);
    if (place.step) text += formatted(" + iteration * ({}ll)", place.step);
    return text;
  }

  // The number of the function that does what this text does.
  std::size_t function_of(const std::string& source) {
    for (std::size_t k = 0; k < sources_.size(); ++k)
      if (*sources_[k] == source) return k;
    const std::string function = as_function(source);
    // What all functions have of their own in shared memory must fit beside each other.
    const bool has_shared = source.find("__shared__") != source.npos;
    shared_ += has_shared;
    possible_ =
        possible_ && !function.empty() && shared_ <= 3 && source.find("[32 * 33]") == source.npos;
    sources_.push_back(&source);
    functions_ += formatted("namespace vt_step{} {{\n", sources_.size() - 1) + function + "}\n";
    return sources_.size() - 1;
  }

  void write_kernel(const ReplayStep& s) {
    const std::size_t function = function_of(*s.text);
    const bool waits = s.text->find("__syncthreads") != s.text->npos;
    possible_ = possible_ && (!waits || s.grid.threads == threads_);
    std::string call = formatted("vt_step{}::run(block, {}ll", function, s.grid.blocks);
    for (const Place& p : s.places) call += ", vt_at{" + address(p) + "}";
    for (std::int64_t n : s.numbers)
      call += formatted(", (i64){}ull", static_cast<std::uint64_t>(n));
    line(formatted("for (i64 block = 0; block < {}; ++block) {{", s.grid.blocks));
    // Arrays of a block's own are used again.
    line((s.grid.threads < threads_ ? formatted("  if (threadIdx.x < {}) ", s.grid.threads)
                                    : std::string("  ")) +
         call + ");" +
         (s.text->find("__shared__") != s.text->npos ||
                  s.text->find("VT_DYNAMIC_SHARED") != s.text->npos
              ? " __syncthreads();"
              : ""));
    line("}");
    barrier();
    ++made_.steps;
    made_.operations += s.work;
  }

  void write(const Vec<ReplayStep>& steps) {
    for (const ReplayStep& s : steps) {
      switch (s.kind) {
        case Kind::kernel: write_kernel(s); break;
        case Kind::copy:
          line(formatted("vt_copy_bytes({}, {}, {}ll);", address(s.places[0]), address(s.places[1]),
                         s.numbers[0]));
          barrier();
          ++made_.steps;
          made_.operations += static_cast<double>(s.numbers[0]) / 4;
          break;
        case Kind::branch:
          line(formatted(
              "if (vt_min<i64>(vt_max<i64>(VT_LOAD((const i32*)({}), 0), 0), {}) == {}) {{",
              address(s.places[0]), s.numbers[1], s.numbers[0]));
          inside(s);
          // what stands where the number was may be written next
          if (s.numbers[0] == s.numbers[1]) barrier();
          break;
        case Kind::loop:
          line(formatted("while (VT_LOAD((const u8*)({}), 0)) {{", address(s.places[0])));
          ++indent_;
          barrier();  // before anybody sets it again
          --indent_;
          inside(s);
          barrier();  // all have read it
          break;
        case Kind::iterations:
          line(formatted("for (i64 iteration = 0; iteration < {}; ++iteration) {{", s.numbers[0]));
          inside(s);
          break;
        case Kind::library: break;
      }
    }
  }
  void inside(const ReplayStep& s) {
    ++indent_;
    write(s.body);
    --indent_;
    line("}");
  }

  std::size_t bases_;
  LoopKernel made_;
  Vec<const std::string*> sources_;
  std::string functions_;
  int threads_ = 32, shared_ = 0;
  bool possible_ = true;
};

}  // namespace loop_kernels

LoopKernel loop_kernel(const ReplayList& list, std::size_t bases, const std::string& name) {
  return loop_kernels::LoopKernelWriter(bases).kernel(list, name);
}

bool is_worth_a_kernel(const LoopKernel& k, std::int64_t iterations, bool conditions) {
  using namespace device_costs;
  if (k.source.empty() || !cuda_loops_from_environment()) return false;
  const auto steps = static_cast<double>(k.steps);
  const double otherwise =
      iterations > 0 ? steps * (k.steps * iterations <= most_in_graph ? graph_node : launch)
      : conditions   ? graph_decision + steps * graph_node
                     : wait + steps * launch;
  return in_one_block(k.steps, k.operations) < otherwise;
}

}  // namespace vt::detail::cuda
