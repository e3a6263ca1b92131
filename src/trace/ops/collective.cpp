// Collectives on one Tensor: psum and its relatives over the lanes of a named axis.
#include <utility>

#include <vt/collectives.hpp>
#include <vt/detail/small_vec.hpp>

#include <vt/detail/message.hpp>

#include "../record/named_axes.hpp"
#include "support/operands.hpp"

namespace vt::detail {

namespace collectives {

Vec<AxisRef> axes_of(const AxisNames& names, std::string_view function, CallSite where) {
  if (names.list().empty())
    fail(ErrorKind::value, formatted("vt::{}: no axis is given", function), where);
  Vec<AxisRef> axes;
  for (const std::string& name : names.list()) {
    axes.push_back(live_axis(name, function, where).axis);
    for (std::size_t i = 0; i + 1 < axes.size(); ++i)
      if (axes[i] == axes.back())
        fail(ErrorKind::value, formatted("vt::{}: axis \"{}\" is given twice", function, name),
             where);
  }
  return axes;
}

Tensor emitted(Op op, const Tensor& x, const AxisRef& axis, CallSite where) {
  return emit(op, make_params(CollectiveParams{axis, {}}), {x}, where);
}

Tensor index_of_process(const AxisRef& axis, CallSite where) {
  return emit(Op::axis_index, make_params(CollectiveParams{axis, {}}), {}, where);
}

/// Small integers are summed in 32 bits, as vt::sum does.
Tensor summable(const Tensor& x, CallSite where) {
  return aval_of(x).weak ? to_number(x, where) : cast(x, sum_dtype(x.dtype()), where);
}

Operand at_line(const Tensor& t, CallSite where) { return {t, where.file, where.line}; }

/// Axis `axis` of x, whose blocks go to the lanes, cut in (lane, block) and the lanes put in front:
/// [lanes, … block …].
Tensor with_lanes_in_front(const Tensor& x, int axis, std::int64_t lanes, bool tiled,
                           std::string_view function, const std::string& name, CallSite where) {
  Shape shape = x.shape();
  const std::int64_t n = extent(shape, axis);
  if (tiled ? lanes == 0 || n % lanes != 0 : n != lanes)
    refuse(ErrorKind::shape, function,
           formatted(tiled ? "axis {} cannot be cut in equal blocks for the {} lanes of \"{}\""
                           : "axis {} must have an element for each of the {} lanes of \"{}\"",
                     axis, lanes, name),
           x, where);
  Tensor cut = x;
  if (tiled) {
    shape[axis] = n / lanes;
    shape.insert(shape.begin() + axis, lanes);
    cut = reshaped(x, shape, where);
  }
  return moveaxis(at_line(cut, where), Axes{axis}, Axes{0});
}

/// The lanes of axis 0 behind each other along `axis` of what is left.
Tensor with_lanes_behind(const Tensor& x, int axis, CallSite where) {
  const Tensor moved = moveaxis(at_line(x, where), Axes{0}, Axes{axis});
  Shape shape = moved.shape();
  shape[axis] *= shape[static_cast<std::size_t>(axis) + 1];
  shape.erase(shape.begin() + axis + 1);
  return reshaped(moved, shape, where);
}

Tensor permuted_lanes(const Tensor& x, const AxisRef& axis, Vec<std::int64_t> sources,
                      CallSite where) {
  return emit(Op::ppermute, make_params(CollectiveParams{axis, std::move(sources)}), {x}, where);
}

}  // namespace collectives

Tensor psum_flat(const Tensor& x, const AxisNames& names, CallSite where) {
  const UserLine line(where);
  need("psum", x, where);
  Tensor sum = collectives::summable(x, where);
  for (const AxisRef& axis : collectives::axes_of(names, "psum", where)) {
    // A number counts once for each lane, and stays one.
    if (aval_of(sum).weak && is_known(sum) && !axis->partial)
      sum = multiply(collectives::at_line(sum, where), axis->size);
    else sum = collectives::emitted(Op::psum, sum, axis, where);
  }
  return sum;
}

Tensor pmean_flat(const Tensor& x, const AxisNames& names, CallSite where) {
  const UserLine line(where);
  need("pmean", x, where);
  const Tensor number = to_float(x, where);
  const Tensor sum = psum_flat(widened(number, where), names, where);
  double lanes = 1;
  Tensor mean = sum;
  for (const AxisRef& axis : collectives::axes_of(names, "pmean", where)) {
    lanes *= axis->partial ? 1 : static_cast<double>(axis->size);
    if (!axis->partial) continue;
    // So many as run.
    const Tensor one = full_tensor(Scalar(1.0).converted(sum.dtype()), Aval(sum.dtype(), Shape{}));
    mean = collectives::at_line(mean, where) / collectives::emitted(Op::psum, one, axis, where);
  }
  return cast(collectives::at_line(mean, where) / lanes, number.dtype(), aval_of(number).weak,
              where);
}

Tensor extremum_of_lanes(const Tensor& x, const AxisNames& names, bool greatest, CallSite where) {
  const UserLine line(where);
  const char* name = greatest ? "pmax" : "pmin";
  need(name, x, where);
  Tensor most = x;
  for (const AxisRef& axis : collectives::axes_of(names, name, where))
    most = collectives::emitted(greatest ? Op::pmax : Op::pmin, most, axis, where);
  return most;
}

Tensor all_gather_flat(const Tensor& x, const AxisNames& names, const AllGatherOptions& options,
                       CallSite where) {
  const UserLine line(where);
  need("all_gather", x, where);
  const Vec<AxisRef> axes = collectives::axes_of(names, "all_gather", where);
  const int axis =
      normal_axis("all_gather", options.axis, x.rank() + (options.tiled ? 0 : 1), x, where);
  Tensor all = x;
  for (std::size_t i = axes.size(); i-- > 0;)
    all = collectives::emitted(Op::all_gather, all, axes[i], where);
  if (axes.size() > 1) {
    Shape shape{1};
    for (const AxisRef& a : axes) shape[0] *= a->size;
    shape.append(x.shape().begin(), x.shape().end());
    all = reshaped(all, shape, where);
  }
  return options.tiled ? collectives::with_lanes_behind(all, axis, where)
                       : moveaxis(collectives::at_line(all, where), Axes{0}, Axes{axis});
}

Tensor all_to_all_flat(const Tensor& x, const std::string& name, int split_axis, int concat_axis,
                       const AllToAllOptions& options, CallSite where) {
  const UserLine line(where);
  need("all_to_all", x, where);
  const AxisRef axis = live_axis(name, "all_to_all", where).axis;
  const int split = normal_axis("all_to_all", split_axis, x, where),
            concat = normal_axis("all_to_all", concat_axis, x, where);
  const Tensor given = collectives::with_lanes_in_front(x, split, axis->size, options.tiled,
                                                        "all_to_all", name, where);
  const Tensor got = collectives::emitted(Op::all_to_all, given, axis, where);
  return options.tiled ? collectives::with_lanes_behind(got, concat, where)
                       : moveaxis(collectives::at_line(got, where), Axes{0}, Axes{concat});
}

Tensor psum_scatter_flat(const Tensor& x, const std::string& name,
                         const PsumScatterOptions& options, CallSite where) {
  const UserLine line(where);
  need("psum_scatter", x, where);
  const AxisRef lanes = live_axis(name, "psum_scatter", where).axis;
  const int axis = normal_axis("psum_scatter", options.axis, x, where);
  const Tensor given =
      collectives::with_lanes_in_front(collectives::summable(x, where), axis, lanes->size,
                                       options.tiled, "psum_scatter", name, where);
  return reduced(Op::reduce_sum, collectives::emitted(Op::all_to_all, given, lanes, where), Axes{0},
                 where);
}

Tensor ppermute_flat(const Tensor& x, const std::string& name,
                     const std::vector<std::pair<std::int64_t, std::int64_t>>& permutation,
                     CallSite where) {
  const UserLine line(where);
  need("ppermute", x, where);
  const AxisRef axis = live_axis(name, "ppermute", where).axis;
  Vec<std::int64_t> sources(axis->size, -1);
  for (const auto& [from, to] : permutation) {
    for (std::int64_t lane : {from, to})
      if (lane < 0 || lane >= axis->size)
        fail(ErrorKind::value,
             formatted("vt::ppermute: there is no lane {} among the {} of \"{}\"", lane, axis->size,
                       name),
             where);
    std::int64_t& source = sources[to];
    if (source >= 0)
      fail(ErrorKind::value,
           formatted("vt::ppermute: lane {} of \"{}\" is sent to twice", to, name), where);
    source = from;
  }
  return collectives::permuted_lanes(x, axis, std::move(sources), where);
}

Tensor pshuffle_flat(const Tensor& x, const std::string& name,
                     const std::vector<std::int64_t>& sources, CallSite where) {
  const UserLine line(where);
  need("pshuffle", x, where);
  const AxisRef axis = live_axis(name, "pshuffle", where).axis;
  if (static_cast<std::int64_t>(sources.size()) != axis->size)
    fail(ErrorKind::value,
         formatted("vt::pshuffle: {} sources for the {} lanes of \"{}\"", sources.size(),
                   axis->size, name),
         where);
  Vec<char> taken(sources.size(), 0);
  for (std::int64_t s : sources) {
    if (s < 0 || s >= axis->size)
      fail(ErrorKind::value,
           formatted("vt::pshuffle: there is no lane {} among the {} of \"{}\"", s, axis->size,
                     name),
           where);
    if (std::exchange(taken[s], 1))
      fail(ErrorKind::value, formatted("vt::pshuffle: lane {} is a source twice", s), where);
  }
  return collectives::permuted_lanes(
      x, axis, Vec<std::int64_t>(sources.data(), sources.data() + sources.size()), where);
}

}  // namespace vt::detail

namespace vt {

Tensor axis_index(const AxisNames& names, CallSite where) {
  const detail::UserLine line(where);
  Tensor index;
  for (const detail::AxisRef& axis : detail::collectives::axes_of(names, "axis_index", where)) {
    const Tensor own = axis->is_of_mesh()
                           ? detail::collectives::index_of_process(axis, where)
                           : detail::live_axis(axis->name, "axis_index", where).index;
    index = index.defined() ? index * axis->size + own : own;
  }
  return index;
}

std::int64_t axis_size(const AxisNames& names, CallSite where) {
  std::int64_t size = 1;
  for (const detail::AxisRef& axis : detail::collectives::axes_of(names, "axis_size", where))
    size *= axis->size;
  return size;
}

}  // namespace vt
