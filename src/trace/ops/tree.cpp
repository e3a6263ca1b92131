// What is computed of all Tensors of a tree: one vector of them and back, products, norms.
#include <cstdlib>

#include <cxxabi.h>

#include <vt/linalg.hpp>
#include <vt/tree.hpp>

#include "support/operands.hpp"

namespace vt::detail {

void refuse_unlike(const char* function, const std::string& path, CallSite where) {
  fail(ErrorKind::tree,
       std::string(function) + ": the trees are not built alike: another size, key or alternative" +
           (path.empty() ? " at the top" : " at " + path),
       where);
}
void refuse_leaves(const char* function, std::size_t wanted, std::size_t given, CallSite where) {
  fail(ErrorKind::tree,
       std::string(function) + ": " + std::to_string(wanted) + " Tensors are wanted, not " +
           std::to_string(given),
       where);
}
void refuse_shared_copy(const std::string& path) {
  fail(ErrorKind::tree,
       "vt: a copy of a class shares " + (path.empty() ? "its Tensors" : path) +
           " with the object, which vt would change: let its copy constructor (and clone(), if it "
           "has one) copy what its list of tree members names",
       {});
}
void refuse_clone(const char* wanted, const char* given) {
  const auto name = [](const char* mangled) {
    int status = 0;
    char* const text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
    const std::string plain = text ? text : mangled;
    std::free(text);
    return plain;
  };
  const std::string own = *wanted ? name(wanted) : "a class";
  fail(ErrorKind::tree,
       "vt: clone() of " + own + " gives " + (*given ? "a " + name(given) : "nothing") +
           ": each class behind a pointer to its base has a clone() of its own, { return "
           "std::make_shared<" +
           own + ">(*this); }",
       {});
}
std::vector<Tensor*> checked_members(std::vector<Tensor*> list) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!list[i])
      fail(ErrorKind::tree,
           "vt: pointer " + std::to_string(i) + " of a class's list tree_members() is null", {});
  return list;
}

void refuse_valueless() {
  fail(ErrorKind::tree,
       "vt: a std::variant in a tree holds nothing, as an exception was thrown while it was "
       "assigned",
       {});
}

Tensor ravel_leaves(std::span<const Tensor> leaves, RavelParts& parts, CallSite where) {
  const UserLine line(where);
  if (leaves.empty()) return zeros({0}, default_dtype(), where);
  std::vector<Tensor> vectors;
  for (const Tensor& t : leaves) {
    need("ravel_tree", t, where);
    parts.emplace_back(t.dtype(), t.shape());
    vectors.push_back(ravel({t, where.file, where.line}));
  }
  return vectors.size() == 1 ? vectors[0] : concatenate(vectors, 0, where);
}
std::vector<Tensor> unravel_leaves(const Tensor& vector, const RavelParts& parts, CallSite where) {
  const UserLine line(where);
  need("ravel_tree", vector, where);
  std::int64_t size = 0;
  for (const auto& [dtype, shape] : parts) size += shape.elements();
  if (vector.shape() != Shape{size})
    fail(ErrorKind::shape,
         "vt::ravel_tree: its tree is made of a vector [" + std::to_string(size) + "], not of " +
             vector.shape().str(),
         where);
  std::vector<Tensor> leaves;
  std::int64_t begin = 0;
  for (const auto& [dtype, shape] : parts) {
    const std::int64_t end = begin + shape.elements();
    leaves.push_back(vector[slice(begin, end)].reshape(shape, where).astype(dtype, where));
    begin = end;
  }
  return leaves;
}

Tensor dot_of_leaves(std::span<const Tensor> a, std::span<const Tensor> b, CallSite where) {
  const UserLine line(where);
  if (a.empty()) return zeros({}, default_dtype(), where);
  Tensor sum;
  for (std::size_t i = 0; i < a.size(); ++i) {
    need("tree_dot", a[i], where);
    need("tree_dot", b[i], where);
    if (a[i].shape() != b[i].shape())
      fail(ErrorKind::shape,
           "vt::tree_dot: Tensor " + std::to_string(i) + " is " + a[i].shape().str() +
               " in one tree and " + b[i].shape().str() + " in the other",
           where);
    const Tensor product = vdot({a[i], where.file, where.line}, {b[i], where.file, where.line});
    sum = i == 0 ? product : sum + product;
  }
  return sum;
}
Tensor norm_of_leaves(std::span<const Tensor> leaves, CallSite where) {
  const UserLine line(where);
  if (leaves.empty()) return zeros({}, default_dtype(), where);
  std::vector<Tensor> norms;
  for (const Tensor& t : leaves) {
    need("tree_norm", t, where);
    norms.push_back(norm(ravel({t, where.file, where.line})));
  }
  return norms.size() == 1 ? norms[0] : norm(stack(norms, 0, where));
}
std::vector<Tensor> zeros_like_leaves(std::span<const Tensor> leaves, CallSite where) {
  std::vector<Tensor> zeros;
  for (const Tensor& t : leaves) zeros.push_back(zeros_like({t, where.file, where.line}));
  return zeros;
}
std::vector<Tensor> axpy_of_leaves(const Operand& a, std::span<const Tensor> x,
                                   std::span<const Tensor> y, CallSite where) {
  const UserLine line(where);
  std::vector<Tensor> sums;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Tensor product = multiply(a, {x[i], where.file, where.line});
    sums.push_back(add(product, {y[i], where.file, where.line}));
  }
  return sums;
}

}  // namespace vt::detail
