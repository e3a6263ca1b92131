// Functions on the order of elements: sort, argsort, lexsort, top_k, partition, unique.
#include <algorithm>

#include <vt/detail/message.hpp>

#include "support/ordering.hpp"

namespace vt::detail::ordering {

/// Complex keys in NumPy's order: by the real part and then by the imaginary one, what has a NaN
/// behind all else.
std::vector<Tensor> sorted_by_parts(TensorSpan operands, SortParams p, CallSite where) {
  std::vector<Tensor> all;
  const std::size_t keys = p.keys;
  for (std::size_t i = 0; i < keys; ++i) {
    const Tensor& t = operands[i];
    if (is_complex(t.dtype())) {
      all.push_back(cast(isnan(imag(t)), i32, where) + 2 * cast(isnan(real(t)), i32, where));
      all.push_back(real(t));
      all.push_back(imag(t));
    } else {
      all.push_back(t);
    }
  }
  p.keys = static_cast<int>(all.size());
  all.insert(all.end(), operands.begin(), operands.end());
  const std::vector<Tensor> out = sorted(all, p, where);
  return {out.begin() + p.keys, out.end()};
}

std::vector<Tensor> sorted(TensorSpan operands, SortParams p, CallSite where) {
  // else refused below
  const std::size_t keys =
      static_cast<std::size_t>(p.keys) <= operands.size() ? static_cast<std::size_t>(p.keys) : 0;
  for (std::size_t i = 0; i < keys; ++i)
    if (is_complex(operands[i].dtype())) return sorted_by_parts(operands, p, where);
  const SmallVec<Tensor, 1> results = emit_all(Op::sort, make_params(p), operands, where);
  return {results.begin(), results.end()};
}

Tensor places(const Shape& shape, int axis, CallSite where) {
  return counted(count_dtype(extent(shape, axis)), shape, axis, where);
}

std::int64_t known_count(std::string_view name, std::string_view example, const Tensor& count,
                         CallSite where) {
  try {
    return count.item<std::int64_t>(where);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::tracer) throw;
    fail(ErrorKind::tracer,
         formatted("vt::{}: the shape of the result depends on values, which are not known while a "
                   "function is recorded; give it a size, as in {}",
                   name, example),
         where);
  }
}

/// The operand and the axis to sort: the flattened Tensor's if none is given.
struct Along {
  Tensor x;
  int axis;
  std::int64_t n;

  Along(std::string_view name, const Operand& operand, std::optional<int> wanted, CallSite where) {
    need(name, operand.tensor, where);
    x = wanted ? operand.tensor : reshaped(operand.tensor, Shape{operand.tensor.size()}, where);
    axis = wanted ? normal_axis(name, *wanted, operand.tensor, where) : 0;
    n = x.dim(axis);
  }
  SortParams params(bool descending) const { return {axis, 1, descending, 0, n}; }
};

inline Along part_at(std::string_view name, const Operand& x, std::int64_t kth, int axis,
                     CallSite where) {
  Along a(name, x, axis, where);
  if (kth < -a.n || kth >= a.n)
    refuse(ErrorKind::value, name, formatted("there is no place {} on an axis of {}", kth, a.n),
           x.tensor, where);
  return a;
}

}  // namespace vt::detail::ordering

namespace vt {

namespace od = detail::ordering;

Tensor sort(Operand x, std::optional<Param<int>> axis, const SortOptions& options) {
  const detail::UserLine line(x.where);
  const od::Along a("sort", x, axis, x.where);
  return od::sorted({a.x}, a.params(options.descending), x.where)[0];
}

std::vector<Tensor> sort(TensorSpan operands, Param<int> axis, Param<int> num_keys,
                         const SortOptions& options, CallSite where) {
  const detail::UserLine line(where);
  if (operands.empty())
    detail::refuse(ErrorKind::value, "sort", "needs at least one operand", operands, where);
  for (const Tensor& t : operands) detail::need("sort", t, where);
  const int along = detail::normal_axis("sort", axis, operands[0], where);
  return od::sorted(operands, {along, num_keys, options.descending, 0, operands[0].dim(along)},
                    where);
}

Tensor argsort(Operand x, std::optional<Param<int>> axis, const SortOptions& options) {
  const detail::UserLine line(x.where);
  const od::Along a("argsort", x, axis, x.where);
  return od::sorted({a.x, od::places(a.x.shape(), a.axis, x.where)}, a.params(options.descending),
                    x.where)[1];
}

Tensor lexsort(TensorSpan keys, Param<int> axis, CallSite where) {
  const detail::UserLine line(where);
  if (keys.empty())
    detail::refuse(ErrorKind::value, "lexsort", "needs at least one key", keys, where);
  for (const Tensor& t : keys) {
    detail::need("lexsort", t, where);
    if (t.shape() != keys[0].shape())
      detail::refuse(ErrorKind::shape, "lexsort", "the keys differ in shape", keys, where);
  }
  const int along = detail::normal_axis("lexsort", axis, keys[0], where);
  std::vector<Tensor> operands(keys.rbegin(), keys.rend());
  operands.push_back(od::places(keys[0].shape(), along, where));
  return od::sorted(operands, {along, static_cast<int>(keys.size()), false, 0, keys[0].dim(along)},
                    where)
      .back();
}

std::pair<Tensor, Tensor> top_k(Operand x, Param<std::int64_t> k, Param<int> axis,
                                const TopKOptions& options) {
  const detail::UserLine line(x.where);
  const od::Along a("top_k", x, axis, x.where);
  if (k < 0 || k > a.n)
    detail::refuse(ErrorKind::value, "top_k",
                   detail::formatted("cannot give {} elements of an axis of {}", k, a.n), x.tensor,
                   x.where);
  detail::SortParams p = a.params(!options.smallest);
  p.limit = k;
  std::vector<Tensor> best =
      od::sorted({a.x, od::places(a.x.shape(), a.axis, x.where)}, p, x.where);
  return {std::move(best[0]), std::move(best[1])};
}

Tensor partition(Operand x, Param<std::int64_t> kth, Param<int> axis) {
  const detail::UserLine line(x.where);
  const od::Along a = od::part_at("partition", x, kth, axis, x.where);
  return od::sorted({a.x}, a.params(false), x.where)[0];
}

Tensor argpartition(Operand x, Param<std::int64_t> kth, Param<int> axis) {
  const detail::UserLine line(x.where);
  const od::Along a = od::part_at("argpartition", x, kth, axis, x.where);
  return od::sorted({a.x, od::places(a.x.shape(), a.axis, x.where)}, a.params(false), x.where)[1];
}

UniqueResult unique_all(Operand x, const UniqueOptions& options) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  const od::Along a("unique", x, options.axis, w);
  if (options.size && *options.size < 0)
    detail::refuse(ErrorKind::value, "unique",
                   detail::formatted("cannot give {} values", *options.size), x.tensor, w);
  if (options.size) detail::need_size("unique", i64, Shape{*options.size}, {&x.tensor, 1}, w);
  const DType dtype = a.x.dtype();
  if (options.fill_value)
    detail::check_literals("unique", {&options.fill_value->tensor, 1}, dtype,
                           detail::Literal::value, w);
  const Tensor given =
      options.fill_value ? detail::cast(options.fill_value->tensor, dtype, w) : Tensor();
  if (given.defined() && given.rank() != 0)
    detail::refuse(ErrorKind::shape, "unique", "the fill value must be a scalar", x.tensor,
                   options.fill_value->tensor, w);
  // One row for each value that is compared: an element, or a slice along the axis.
  const Tensor slices = moveaxis(a.x, {a.axis}, {0});
  const std::int64_t width = a.n == 0 ? 0 : slices.size() / a.n;
  const auto as_values = [&](const Tensor& rows) {
    Shape shape = slices.shape();
    shape[0] = rows.dim(0);
    return moveaxis(detail::reshaped(rows, shape, w), {0}, {a.axis});
  };
  const Tensor numbers = od::places(Shape{a.n}, 0, w);
  const Shape inverse_shape = options.axis ? Shape{a.n} : x.tensor.shape();
  if (a.n == 0) {
    const Shape shape{options.size.value_or(0)};
    Shape values = a.x.shape();
    values[a.axis] = shape[0];
    const Tensor none = detail::filled("unique", detail::Scalar(0), i32, shape, w);
    return {given.defined() ? detail::broadcast(given, values, w)
                            : detail::filled("unique", detail::Scalar(0), dtype, values, w),
            none, detail::reshaped(numbers, inverse_shape, w), none};
  }
  const Tensor rows = detail::reshaped(slices, Shape{a.n, width}, w);
  std::vector<Tensor> operands;
  for (std::int64_t c = 0; c < width; ++c)
    operands.push_back(detail::reshaped(detail::sliced(rows, 1, c, c + 1, 1, w), Shape{a.n}, w));
  operands.push_back(numbers);
  const std::vector<Tensor> sorted = od::sorted(
      operands, {0, static_cast<int>(std::max<std::int64_t>(width, 1)), false, 0, a.n}, w);
  const Tensor& order = sorted.back();
  const Tensor in_order =
      width == 1 ? detail::reshaped(sorted[0], Shape{a.n, 1}, w) : take(rows, order, 0);
  const Tensor before = detail::sliced(in_order, 0, 0, a.n - 1, 1, w),
               after = detail::sliced(in_order, 0, 1, a.n, 1, w);
  Tensor differs = not_equal(after, before);
  if (is_inexact(dtype) && options.equal_nan)
    differs = differs & logical_not(isnan(after) & isnan(before));
  const Tensor is_first = concatenate({full({1}, true), any(differs, 1)}, 0, w);
  const Tensor rank = cumsum(detail::cast(is_first, numbers.dtype(), w)) - 1, count = rank[-1] + 1;
  const std::int64_t size = options.size ? std::int64_t{*options.size}
                                         : od::known_count("unique", "{.size = 8}", count, w);
  // What there is too much of stands at the first place, as the least value does.
  const Tensor first = nonzero(is_first, size)[0];
  const Tensor is_there = detail::counted(numbers.dtype(), Shape{size}, 0, w) < count;
  const Tensor next = nonzero(is_first, size + 1, a.n)[0];
  UniqueResult result;
  Tensor values = take(in_order, first, 0);
  if (given.defined()) values = where(expand_dims(is_there, 1), values, given);
  result.values = as_values(values);
  result.index = take(order, first, 0);
  result.inverse =
      detail::reshaped(index_update(zeros({a.n}, numbers.dtype()), order, rank), inverse_shape, w);
  result.counts =
      detail::sliced(next, 0, 1, size + 1, 1, w) - detail::sliced(next, 0, 0, size, 1, w);
  return result;
}

Tensor unique(Operand x, const UniqueOptions& options) { return unique_all(x, options).values; }

}  // namespace vt
