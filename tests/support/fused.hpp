// The steps of a Graph through a part of the pipeline: what fusion makes, without what else a
// program is.
#pragma once

#include "src/jit/passes/pipeline.hpp"

namespace vt_test {

/// Leaves out what loops become and, without `matrix_products`, what products become.
class FusedTarget : public vt::detail::PipelineTarget {
 public:
  explicit FusedTarget(const vt::detail::FuseOptions& options) { fuse = options; }
  bool wants(vt::detail::PassName pass) const override {
    using P = vt::detail::PassName;
    if (pass == P::split_scans || pass == P::form_fused_regions || pass == P::form_single_regions ||
        pass == P::mask_lanes)
      return false;
    return fuse.matrix_products ||
           (pass != P::prepare_convolutions && pass != P::sum_before_products &&
            pass != P::order_product_operands && pass != P::attach_epilogues);
  }
};

inline vt::detail::Fusion fused(vt::detail::GraphBody graph,
                                const vt::detail::FuseOptions& options = {}) {
  return vt::detail::run_pipeline(std::move(graph), FusedTarget(options)).fusion;
}

}  // namespace vt_test
