// The pipeline: which passes a Graph goes through on its way to the steps of a program, by target.
#pragma once

#include <cstdint>
#include <string>

#include "../fusion/buffer_plan.hpp"
#include "../fusion/fuse.hpp"
#include "../regions/register_kernel.hpp"

namespace vt::detail {

/// Every pass, by its name in reports and in files of VT_DUMP.
// clang-format off
#define VT_PASSES(X) \
  X(group_lanes) X(inline_calls) X(bundle_sums) X(mask_lanes) X(scan_sums) X(split_scans) \
  X(form_fused_regions) X(prepare_convolutions) X(sum_before_products) X(order_product_operands) \
  X(split_short_axes) X(form_sparse_regions) X(form_single_regions) X(fuse) \
  X(keep_rows_local) X(give_results_stages) X(attach_epilogues) X(attach_element_epilogues) \
  X(chain_products) X(overlap_exchanges) X(choose_schedules) X(pair_kernels) X(prefer_owned)
// clang-format on
enum class PassName : std::uint8_t {
#define VT_PASS(name) name,
  VT_PASSES(VT_PASS)
#undef VT_PASS
};
/// "inline_calls"
const char* name_of(PassName);

/// What the passes ask of the target.
class PipelineTarget {
 public:
  FuseOptions fuse{.matrix_products = true};
  RegisterLimits registers;
  MachineCosts costs;      ///< what schedules go by
  std::int64_t frame = 0;  ///< bytes of arrays that a register kernel may have of its own

  virtual ~PipelineTarget() = default;
  /// Does it pay to run two matrix products as one step, block of rows by block of rows?
  virtual bool chains(const MatmulSpec& /*first*/, const MatmulSpec& /*second*/) const {
    return false;
  }
  /// May an element-wise kernel run inside the kernel of this product?
  virtual bool takes_epilogue(const FusedStep& /*product*/) const { return true; }
  /// Does the pass run? Tests of single passes leave out others.
  virtual bool wants(PassName) const { return true; }
};

/// A pass that has changed how many equations, or steps, there are.
struct PassNote {
  PassName pass;
  std::size_t before, after;
};
struct PipelineResult {
  Fusion fusion;
  Vec<PassNote> notes;
};

/// Runs all passes of the target, in the order of pipeline.cpp. With VT_DUMP the Graph or the steps
/// after each pass that changes them become files that are named after the pass.
PipelineResult run_pipeline(GraphBody, const PipelineTarget&, const OwnedInputs& = {});
/// "inline_calls 12 → 15 equations, fuse 15 equations → 4 steps"
std::string text_of(const Vec<PassNote>&);

}  // namespace vt::detail
