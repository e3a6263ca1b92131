// Scans with more iterations than a CUDA graph should have nodes: a loop in the graph whose body
// counts on the device.
#include <algorithm>

#include "../../../trace/record/node.hpp"
#include "control.hpp"
#include "program.hpp"
#include "replay_graph.hpp"

namespace vt::detail::cuda {

const char* const counting_source = R"cuda(
extern "C" __global__ void __launch_bounds__(32)
    kernel_iterations_begin(i64* iteration, bool* goes_on) {
  if (threadIdx.x != 0) return;
  VT_STORE(iteration, 0, 0ll);
  VT_STORE(goes_on, 0, true);
}
extern "C" __global__ void __launch_bounds__(32)
    kernel_iteration_is_over(i64* iteration, bool* goes_on, long long iterations) {
  if (threadIdx.x != 0) return;
  const i64 next = VT_LOAD(iteration, 0) + 1;
  VT_STORE(iteration, 0, next);
  VT_STORE(goes_on, 0, next < iterations);
}
VT_FN i64 vt_row(i64 iteration, i64 last) { return last < 0 ? iteration : last - iteration; }
VT_FN void vt_copy_row(u8* to, const u8* from, i64 bytes) {
  const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
  if ((((u64)to | (u64)from | (u64)bytes) & 3) == 0)
    for (i64 i = first; i < bytes / 4; i += step)
      VT_STORE((u32*)to, i, VT_LOAD((const u32*)from, i));
  else
    for (i64 i = first; i < bytes; i += step) VT_STORE(to, i, VT_LOAD(from, i));
}
extern "C" __global__ void __launch_bounds__(256)
    kernel_row_of_iteration(const i64* iteration, const u8* rows, u8* row, long long bytes,
                        long long last) {
  vt_copy_row(row, rows + vt_row(VT_LOAD(iteration, 0), last) * bytes, bytes);
}
extern "C" __global__ void __launch_bounds__(256)
    kernel_row_to_iteration(const i64* iteration, u8* rows, const u8* row, long long bytes,
                        long long last) {
  vt_copy_row(rows + vt_row(VT_LOAD(iteration, 0), last) * bytes, row, bytes);
}
)cuda";

bool DeviceControl::list_counted(ReplayList& l, std::span<const Place> operands,
                                 std::span<const Place> results) const {
  const auto& p = equation_.as<ScanParams>();
  const GraphBody& graph = *graphs_[0];
  const std::size_t carries = p.carries, looped = carries + p.sequences;
  const std::int64_t last = p.reverse ? p.length - 1 : -1;
  const auto bytes = [&](std::size_t i, bool result) {
    return alone_.aval(result ? alone_.outputs[i] : alone_.inputs[i]).bytes();
  };
  const auto kernel = [&](const char* name, std::int64_t row_bytes,
                          std::initializer_list<Place> places,
                          std::initializer_list<std::int64_t> numbers) {
    ReplayStep s;
    s.code = device_code(device_, counting_source, name);
    s.grid =
        row_bytes < 0
            ? DeviceCode::Grid{1, 32, 0}
            : DeviceCode::Grid{std::clamp<std::int64_t>((row_bytes + 1023) / 1024, 1, 512), 256, 0};
    for (const Place& place : places) s.places.push_back(place);
    for (std::int64_t n : numbers) s.numbers.push_back(n);
    return l.add(std::move(s));
  };
  const std::size_t taken = l.taken();
  const Place iteration = l.take(8), goes_on = l.take(1);
  Vec<Place> made, whole, values, next;
  for (std::size_t i = 0; i < results.size(); ++i)
    made.push_back(l.settled(results[i], bytes(i, true)));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    // Carries live where the results will be.
    whole.push_back(i < carries ? made[i] : l.settled(operands[i], bytes(i, false)));
    if (!l.copy(whole[i], operands[i], bytes(i, false))) return false;
    values.push_back(i < carries || i >= looped ? whole[i]
                                                : l.take(graph.aval(graph.inputs[i]).bytes()));
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    next.push_back(l.take(graph.aval(graph.outputs[i]).bytes()));
  if (!kernel("kernel_iterations_begin", -1, {iteration, goes_on}, {})) return false;
  ReplayStep loop;
  loop.kind = ReplayStep::Kind::loop;
  loop.places.push_back(goes_on);
  l.has_conditions = true;
  const bool fits = l.add_with_body(std::move(loop), [&] {
    for (std::size_t i = carries; i < looped; ++i) {
      const auto row = static_cast<std::int64_t>(graph.aval(graph.inputs[i]).bytes());
      if (row &&
          !kernel("kernel_row_of_iteration", row, {iteration, whole[i], values[i]}, {row, last}))
        return false;
    }
    if (!static_cast<const CudaProgram*>(bodies_[0].get())->list(l, values, next)) return false;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto row = static_cast<std::int64_t>(graph.aval(graph.outputs[i]).bytes());
      if (i < carries ? !l.copy(made[i], next[i], bytes(i, true))
                      : row && made[i].base != Place::nowhere &&
                            !kernel("kernel_row_to_iteration", row, {iteration, made[i], next[i]},
                                    {row, last}))
        return false;
    }
    return kernel("kernel_iteration_is_over", -1, {iteration, goes_on}, {p.length});
  });
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!l.copy(results[i], made[i], bytes(i, true))) return false;
  l.give_back(taken);
  return fits;
}

}  // namespace vt::detail::cuda
