// Matrix products as CUDA kernels.
#pragma once

#include <cstdint>
#include <string>

#include "../matmul_spec.hpp"

namespace vt::detail::cuda {

struct ProductSource {
  std::string source, name;
  std::int64_t blocks = 0;
  int threads = 0;
};

/// A kernel `name(a, b, c)` for this product: small ones an element per thread, others in tiles that a block keeps in shared memory. Each element is
/// summed over k in one order, whatever the device.
ProductSource product_source(const MatmulSpec&);

}  // namespace vt::detail::cuda
