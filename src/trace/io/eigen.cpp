// What Tensors and Eigen's objects ask of each other, but for Eigen's types: see vt/eigen.hpp.
#include <string>
#include <vector>

#include <vt/detail/message.hpp>
#include <vt/tensor.hpp>

#include "../record/node.hpp"
#include "../record/thread_state.hpp"

namespace vt::detail {

[[noreturn]] void not_of_eigen(const Tensor& t, std::int64_t rows, std::int64_t columns,
                               const char* function, CallSite where) {
  const auto extent = [](std::int64_t n) { return n < 0 ? std::string("n") : std::to_string(n); };
  const std::string wanted = rows < 0 && columns < 0
                                 ? "of rank 0 to 2"
                                 : "with the elements of " + extent(rows) + "×" + extent(columns);
  fail(ErrorKind::shape,
       formatted("{}: a Tensor {} is wanted, not {}", function, wanted, aval_of(t).str()), where);
}

void refuse_tracer(const Tensor& t, CallSite where) {
  if (!t.defined() || node_of(t)->level == 0) return;
  const ScopeState& scope = thread_state().scopes[static_cast<std::size_t>(node_of(t)->level) - 1];
  fail(ErrorKind::tracer,
       formatted("vt::Tensor to Eigen: {} has no value of its own inside of {}: write the function "
                 "over vt::Tensor; vt::as_eigen looks at values where they are known",
                 aval_of(t).str(), scope.transform),
       where);
}

std::vector<std::int64_t> coordinates(const Tensor& indices, const Tensor& values,
                                      std::int64_t rows, std::int64_t columns, CallSite where) {
  const char* const name = "vt::to_eigen_sparse";
  if (!is_int(indices.dtype(where)))
    fail(ErrorKind::dtype,
         formatted("{}: the indices are integers, not {}", name, aval_of(indices).str()), where);
  if (values.rank(where) != 1 || indices.shape() != Shape{values.dim(0), 2})
    fail(ErrorKind::shape,
         formatted("{}: indices [n,2] and values [n] are wanted, not {} and {}", name,
                   indices.shape().str(), values.shape().str()),
         where);
  std::vector<std::int64_t> at = indices.to_vector<std::int64_t>(where);
  for (std::size_t i = 0; i < at.size(); i += 2)
    if (at[i] < 0 || at[i] >= rows || at[i + 1] < 0 || at[i + 1] >= columns)
      fail(ErrorKind::value,
           formatted("{}: entry {} is at ({}, {}), which is not in a {}×{} matrix", name, i / 2,
                     at[i], at[i + 1], rows, columns),
           where);
  return at;
}

}  // namespace vt::detail
