// The CUDA text of the algorithms on small matrices; each kernel takes the parts that it needs.
#pragma once

#include <string_view>

namespace vt::detail::cuda {

extern const std::string_view matrix_basics, matrix_cholesky, matrix_lu, matrix_triangle, matrix_qr,
    matrix_rotations, matrix_eigh, matrix_svd, matrix_tridiagonal;

}  // namespace vt::detail::cuda
