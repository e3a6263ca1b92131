// Contractions: dot_general, matmul and the other products of two operands.
#include <algorithm>

#include <vt/detail/message.hpp>

#include "support/contract.hpp"

namespace vt::detail {

Tensor summed_to(Tensor t, Labels& labels, const Labels& keep, CallSite where) {
  Axes gone;
  Labels left;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (has_label(keep, labels[i])) left.push_back(labels[i]);
    else gone.push_back(static_cast<int>(i));
  }
  labels = left;
  return reduced(Op::reduce_sum, t, gone, where);
}

Tensor ordered(const Tensor& t, const Labels& labels, const Labels& out, CallSite where) {
  Axes permutation;
  for (int label : out) permutation.push_back(label_axis(labels, label));
  return permuted(t, permutation, where);
}

namespace contraction {

/// Nothing is summed: an element-wise product, each operand broadcast over the labels it lacks.
inline Tensor product(const Tensor& a, const Labels& la, const Tensor& b, const Labels& lb,
                      const Labels& out, CallSite where) {
  Shape shape;
  for (int label : out)
    shape.push_back(has_label(la, label) ? extent(a.shape(), label_axis(la, label))
                                         : extent(b.shape(), label_axis(lb, label)));
  auto placed = [&](const Tensor& t, const Labels& labels) {
    if (labels.empty()) return t;
    Labels mine;
    Axes axes;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!has_label(labels, out[i])) continue;
      mine.push_back(out[i]);
      axes.push_back(static_cast<int>(i));
    }
    return broadcast_along(ordered(t, labels, mine, where), shape, axes, where);
  };
  const Tensor operands[2] = {placed(a, la), placed(b, lb)};
  const Aval &x = aval_of(operands[0]), &y = aval_of(operands[1]);
  return emit_fitting(Op::mul, {}, operands, x.dtype, x.weak && y.weak, where);
}

}  // namespace contraction

Tensor contract(Tensor a, Labels la, Tensor b, Labels lb, const Labels& out, CallSite where) {
  // What only one side has and nobody wants is summed before it is multiplied.
  Labels keep = lb;
  keep.append(out.begin(), out.end());
  a = summed_to(std::move(a), la, keep, where);
  keep = la;
  keep.append(out.begin(), out.end());
  b = summed_to(std::move(b), lb, keep, where);

  DotParams p;
  p.dtype = aval_of(a).dtype;
  for (int label : la) {
    if (!has_label(lb, label) || has_label(out, label)) continue;
    p.lhs_contract.push_back(label_axis(la, label));
    p.rhs_contract.push_back(label_axis(lb, label));
  }
  if (p.lhs_contract.empty()) return contraction::product(a, la, b, lb, out, where);

  Labels batch, free_a, free_b;
  for (int label : out)
    if (has_label(la, label) && has_label(lb, label)) {
      batch.push_back(label);
      p.lhs_batch.push_back(label_axis(la, label));
      p.rhs_batch.push_back(label_axis(lb, label));
    }
  for (int label : la)
    if (has_label(out, label) && !has_label(batch, label)) free_a.push_back(label);
  for (int label : lb)
    if (has_label(out, label) && !has_label(batch, label)) free_b.push_back(label);
  auto joined_labels = [&](const Labels& first, const Labels& second) {
    Labels all = batch;
    all.append(first.begin(), first.end());
    all.append(second.begin(), second.end());
    return all;
  };
  Labels given = joined_labels(free_a, free_b);
  if (given != out && joined_labels(free_b, free_a) == out) {
    std::swap(a, b);
    std::swap(p.lhs_contract, p.rhs_contract);
    std::swap(p.lhs_batch, p.rhs_batch);
    given = out;
  }
  return ordered(emit(Op::dot_general, make_params(std::move(p)), {a, b}, where), given, out,
                 where);
}

namespace contraction {

/// Brings two operands to the dtype of their product.
inline void meet_for_product(std::string_view name, Operand& a, Operand& b) {
  need(name, a.tensor, a.where);
  need(name, b.tensor, a.where);
  Common c = common_dtype(aval_of(a.tensor), aval_of(b.tensor));
  if (is_bool(c.dtype)) c.dtype = i32;
  check_literals(name, {&a.tensor, 1}, c.dtype, Literal::value, a.where);
  check_literals(name, {&b.tensor, 1}, c.dtype, Literal::value, a.where);
  a.tensor = cast(a.tensor, c.dtype, c.weak, a.where);
  b.tensor = cast(b.tensor, c.dtype, c.weak, a.where);
}

/// tensordot along these axes: a's other axes, then b's.
inline Tensor along(std::string_view name, Operand& a, Operand& b, const Axes& a_axes,
                    const Axes& b_axes) {
  const Tensor &x = a.tensor, &y = b.tensor;
  if (a_axes.size() != b_axes.size())
    refuse(ErrorKind::shape, name,
           formatted("axes {} and {} differ in length", a_axes.str(), b_axes.str()), x, y, a.where);
  Labels la, lb, out;
  for (int i = 0; i < x.rank(); ++i) la.push_back(i);
  for (int i = 0; i < y.rank(); ++i) lb.push_back(x.rank() + i);
  for (std::size_t k = 0; k < a_axes.size(); ++k) {
    if (x.dim(a_axes[k]) != y.dim(b_axes[k]))
      refuse(ErrorKind::shape, name,
             formatted("inner sizes differ along axes {} and {}", a_axes[k], b_axes[k]), x, y,
             a.where);
    lb[b_axes[k]] = a_axes[k];
  }
  for (int label : la)
    if (!a_axes.contains(label)) out.push_back(label);
  for (int label : lb)
    if (label >= x.rank()) out.push_back(label);
  Shape shape;
  for (int label : out) shape.push_back(label < x.rank() ? x.dim(label) : y.dim(label - x.rank()));
  const Tensor both[2] = {x, y};
  need_size(name, x.dtype(), shape, both, a.where);
  return contract(x, la, y, lb, out, a.where);
}

}  // namespace contraction

}  // namespace vt::detail

namespace vt {

namespace ct = detail::contraction;

Tensor dot_general(Operand a, Operand b, const DotDimensions& d, std::optional<DType> dtype) {
  ct::meet_for_product("dot_general", a, b);
  const detail::Aval& x = detail::aval_of(a.tensor);
  if (dtype && detail::category(*dtype) > detail::category(x.dtype)) {
    a.tensor = detail::cast(a.tensor, *dtype, a.where);
    b.tensor = detail::cast(b.tensor, *dtype, a.where);
  }
  const int m = a.tensor.rank(), n = b.tensor.rank();
  detail::DotParams p;
  p.lhs_contract = detail::normal_axes("dot_general", d.lhs_contract, m, a.tensor, a.where);
  p.rhs_contract = detail::normal_axes("dot_general", d.rhs_contract, n, b.tensor, a.where);
  p.lhs_batch = detail::normal_axes("dot_general", d.lhs_batch, m, a.tensor, a.where);
  p.rhs_batch = detail::normal_axes("dot_general", d.rhs_batch, n, b.tensor, a.where);
  p.dtype = dtype.value_or(a.tensor.dtype());
  return detail::emit(detail::Op::dot_general, detail::make_params(std::move(p)),
                      {a.tensor, b.tensor}, a.where);
}

Tensor matmul(Operand a, Operand b) {
  ct::meet_for_product("matmul", a, b);
  Tensor &x = a.tensor, &y = b.tensor;
  const int m = x.rank(), n = y.rank();
  if (m == 0 || n == 0)
    detail::refuse(ErrorKind::shape, "matmul", "a scalar is neither a matrix nor a vector; use *",
                   x, y, a.where);
  const int inner_b = n == 1 ? 0 : n - 2;
  if (detail::extent(x.shape(), m - 1) != detail::extent(y.shape(), inner_b))
    detail::refuse(
        ErrorKind::shape, "matmul",
        detail::formatted(
            "inner sizes differ, {} at axis {} of the first and {} at axis {} of the "
            "second{}",
            x.dim(m - 1), m - 1, y.dim(inner_b), inner_b,
            n == 2 && y.dim(1) == x.dim(m - 1)     ? "; vt::transpose of the second would fit"
            : m == 2 && x.dim(0) == y.dim(inner_b) ? "; vt::transpose of the first would fit"
                                                   : ""),
        x, y, a.where);
  if (m <= 2 && n <= 2) {
    const Shape shape{m == 2 ? x.dim(0) : 1, n == 2 ? y.dim(1) : 1};
    if (!detail::addressable(x.dtype(), shape))
      detail::refuse(ErrorKind::shape, "matmul", detail::size_fault(x.dtype(), shape), x, y,
                     a.where);
    detail::DotParams p;
    p.lhs_contract.push_back(m - 1);
    p.rhs_contract.push_back(0);
    p.dtype = x.dtype();
    return detail::emit(detail::Op::dot_general, detail::make_params(std::move(p)), {x, y},
                        a.where);
  }
  constexpr int inner = -1, row = -2, column = -3;  // batch labels count from 0 at the right
  const int batch_a = std::max(0, m - 2), batch_b = std::max(0, n - 2);
  detail::Labels la, lb, out;
  Axes gone_a, gone_b;  // axes of size 1 that broadcast: left out, never tiled
  for (int k = std::max(batch_a, batch_b); k-- > 0;) {
    const int i = batch_a - 1 - k, j = batch_b - 1 - k;
    const std::int64_t p = i < 0 ? 1 : detail::extent(x.shape(), i),
                       q = j < 0 ? 1 : detail::extent(y.shape(), j);
    if (p != q && p != 1 && q != 1)
      detail::refuse(ErrorKind::shape, "matmul", "batch shapes do not broadcast", x, y, a.where);
    out.push_back(k);
    if (i >= 0) {
      if (p == 1 && q != 1) gone_a.push_back(i);
      else la.push_back(k);
    }
    if (j >= 0) {
      if (q == 1 && p != 1) gone_b.push_back(j);
      else lb.push_back(k);
    }
  }
  if (m >= 2) la.push_back(row);
  la.push_back(inner);
  lb.push_back(inner);
  if (n >= 2) lb.push_back(column);
  if (m >= 2) out.push_back(row);
  if (n >= 2) out.push_back(column);
  const Tensor p = squeeze(Operand(x, a.where.file, a.where.line), gone_a),
               q = squeeze(Operand(y, a.where.file, a.where.line), gone_b);
  return detail::contract(p, la, q, lb, out, a.where);
}

Tensor dot(Operand a, Operand b) {
  detail::need("dot", a.tensor, a.where);
  detail::need("dot", b.tensor, a.where);
  if (a.tensor.rank() == 0 || b.tensor.rank() == 0) return multiply(std::move(a), std::move(b));
  ct::meet_for_product("dot", a, b);
  const int n = b.tensor.rank();
  return ct::along("dot", a, b, Axes(a.tensor.rank() - 1), Axes(n == 1 ? 0 : n - 2));
}
Tensor vdot(Operand a, Operand b) {
  const detail::UserLine line(a.where);
  ct::meet_for_product("vdot", a, b);
  if (a.tensor.size() != b.tensor.size())
    detail::refuse(ErrorKind::shape, "vdot", "sizes differ", a.tensor, b.tensor, a.where);
  a.tensor = ravel(conj(a));
  b.tensor = ravel(b);
  return ct::along("vdot", a, b, Axes(0), Axes(0));
}
Tensor inner(Operand a, Operand b) {
  detail::need("inner", a.tensor, a.where);
  detail::need("inner", b.tensor, a.where);
  if (a.tensor.rank() == 0 || b.tensor.rank() == 0) return multiply(std::move(a), std::move(b));
  ct::meet_for_product("inner", a, b);
  return ct::along("inner", a, b, Axes(a.tensor.rank() - 1), Axes(b.tensor.rank() - 1));
}
Tensor outer(Operand a, Operand b) {
  ct::meet_for_product("outer", a, b);
  a.tensor = ravel(a);
  b.tensor = ravel(b);
  return ct::along("outer", a, b, {}, {});
}
Tensor tensordot(Operand a, Operand b, Param<int> axes) {
  ct::meet_for_product("tensordot", a, b);
  const int m = a.tensor.rank(), n = b.tensor.rank();
  if (axes < 0 || axes > m || axes > n)
    detail::refuse(ErrorKind::shape, "tensordot",
                   detail::formatted("cannot sum over {} axes", axes), a.tensor, b.tensor, a.where);
  Axes last, first;
  for (int k = 0; k < axes; ++k) {
    last.push_back(m - axes + k);
    first.push_back(k);
  }
  return ct::along("tensordot", a, b, last, first);
}
Tensor tensordot(Operand a, Operand b, const Axes& a_axes, const Axes& b_axes) {
  ct::meet_for_product("tensordot", a, b);
  return ct::along("tensordot", a, b,
                   detail::normal_axes("tensordot", a_axes, a.tensor.rank(), a.tensor, a.where),
                   detail::normal_axes("tensordot", b_axes, b.tensor.rank(), b.tensor, a.where));
}

}  // namespace vt
