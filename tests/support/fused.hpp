// The steps of a Graph through a part of the pipeline: what fusion makes, without what else a
// program is.
#pragma once

#include <string_view>

#include "src/jit/passes/pipeline.hpp"

namespace vt_test {

/// Leaves out what loops become and, without `matrix_products`, what products become.
class FusedTarget : public vt::detail::PipelineTarget {
 public:
  explicit FusedTarget(const vt::detail::FuseOptions& options) { fuse = options; }
  bool wants(std::string_view pass) const override {
    if (pass == "split_scans" || pass == "form_fused_regions" || pass == "form_single_regions" ||
        pass == "mask_lanes")
      return false;
    return fuse.matrix_products ||
           (pass != "prepare_convolutions" && pass != "sum_before_products" &&
            pass != "order_product_operands" && pass != "attach_epilogues");
  }
};

inline vt::detail::Fusion fused(vt::detail::GraphBody graph,
                                const vt::detail::FuseOptions& options = {}) {
  return vt::detail::run_pipeline(std::move(graph), FusedTarget(options)).fusion;
}

}  // namespace vt_test
