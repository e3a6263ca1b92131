// Collectives on one Tensor: psum and its relatives over the lanes of a named axis.
#include <algorithm>
#include <utility>

#include <vt/collectives.hpp>
#include <vt/detail/small_vec.hpp>

#include <vt/detail/message.hpp>

#include "../record/named_axes.hpp"
#include "support/operands.hpp"

namespace vt::detail {

namespace collectives {

/// Those of the names, the slowest first. Lanes that extend an axis of a mesh come behind it.
Vec<AxisRef> axes_of(const AxisNames& names, std::string_view function, CallSite where) {
  if (names.list().empty())
    fail(ErrorKind::value, formatted("vt::{}: no axis is given", function), where);
  Vec<AxisRef> axes;
  for (const std::string& name : names.list()) {
    const LiveAxis live = live_axis(name, function, where);
    for (const AxisRef& known : axes)
      if (known == live.axis)
        fail(ErrorKind::value, formatted("vt::{}: axis \"{}\" is given twice", function, name),
             where);
    if (live.mesh) axes.push_back(live.mesh);
    axes.push_back(live.axis);
  }
  return axes;
}

/// The same for what combines: lanes first, so that processes exchange what is combined already.
Vec<AxisRef> lanes_first(Vec<AxisRef> axes) {
  std::stable_partition(axes.begin(), axes.end(),
                        [](const AxisRef& axis) { return !axis->is_of_mesh(); });
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

/// What messages call so many of an axis.
std::string members_of(const LiveAxis& axis, std::int64_t count = 1) {
  if (axis.axis->is_of_mesh()) return count == 1 ? "process" : "processes";
  return count == 1 ? "lane" : "lanes";
}

/// Axis `axis` of x, whose blocks go to the lanes, cut in (lane, block) and the lanes put in front:
/// [lanes, … block …].
Tensor with_lanes_in_front(const Tensor& x, int axis, const LiveAxis& along, bool tiled,
                           std::string_view function, CallSite where) {
  Shape shape = x.shape();
  const std::int64_t lanes = along.size();
  const std::int64_t n = extent(shape, axis);
  if (tiled ? lanes == 0 || n % lanes != 0 : n != lanes)
    refuse(ErrorKind::shape, function,
           formatted(tiled ? "axis {} cannot be cut in equal blocks for the {} {} of \"{}\""
                           : "axis {} must have an element for each of the {} {} of \"{}\"",
                     axis, lanes, members_of(along, lanes), along.axis->name),
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

/// Axis 0 of x, the lanes of a joint axis, as (process, lane).
Tensor by_process(const Tensor& x, const LiveAxis& along, CallSite where) {
  Shape shape = x.shape();
  shape[0] = along.axis->size;
  shape.insert(shape.begin(), along.mesh->size);
  return reshaped(x, shape, where);
}

Tensor swapped(const Tensor& x, CallSite where) { return swapaxes(at_line(x, where), 0, 1); }

/// x[indices], none of which counts from the end
Tensor row_of(const Tensor& x, const Tensor& indices, CallSite where) {
  return take(at_line(x, where), at_line(cast(indices, DType::u32, where), where), 0);
}

/// Axis 0 of x has an element for each lane; so does that of the result, which came from there.
Tensor exchanged(const Tensor& x, const LiveAxis& along, CallSite where) {
  if (!along.mesh) return emitted(Op::all_to_all, x, along.axis, where);
  const Tensor cut = by_process(x, along, where);
  // Of [process p, lane b]: what lane b here has from this one's number there, then from lane b.
  const Tensor of_processes = emitted(Op::all_to_all, cut, along.mesh, where);
  const Tensor of_lanes = emitted(Op::all_to_all, swapped(of_processes, where), along.axis, where);
  return reshaped(swapped(of_lanes, where), x.shape(), where);
}

/// Axis 0 of x has an element for each lane, of which the sum over all lanes comes there. Lanes add
/// theirs before processes exchange them.
Tensor sum_exchanged(const Tensor& x, const LiveAxis& along, CallSite where) {
  const auto step = [&](const Tensor& parts, const AxisRef& axis) {
    return reduced(Op::reduce_sum, emitted(Op::all_to_all, parts, axis, where), Axes{0}, where);
  };
  if (!along.mesh) return step(x, along.axis);
  return step(step(swapped(by_process(x, along, where), where), along.axis), along.mesh);
}

/// Lanes that extend an axis of a mesh get the x of others. From each process to the one that is
/// `shift` further goes one message, with the lanes that have their x to give there.
Tensor permuted_jointly(const Tensor& x, const LiveAxis& along, const Vec<std::int64_t>& sources,
                        CallSite where) {
  const std::int64_t processes = along.mesh->size, lanes = along.axis->size;
  const Tensor all = emitted(Op::all_gather, x, along.axis, where);
  const Tensor process = index_of_process(along.mesh, where);
  Vec<char> taken(sources.size(), 0);
  for (const std::int64_t s : sources)
    if (s >= 0 && std::exchange(taken[s], 1))
      fail(ErrorKind::value,
           formatted("vt::ppermute: lane {} of \"{}\" is a source twice", s, along.axis->name),
           where);
  Shape element{1};
  element.append(x.shape().begin(), x.shape().end());
  std::vector<Tensor> got;
  std::int64_t count = 0;
  Vec<std::int64_t> place(sources.size(), -1);  // of what each lane gets, in `got`
  for (std::int64_t shift = 0; shift < processes; ++shift) {
    Vec<Vec<std::int64_t>> given(processes);  // by the process that gives
    for (std::size_t to = 0; to < sources.size(); ++to) {
      if (sources[to] < 0) continue;
      const std::int64_t from = sources[to] / lanes;
      if ((from + shift) % processes != static_cast<std::int64_t>(to) / lanes) continue;
      place[to] = count + static_cast<std::int64_t>(given[from].size());
      given[from].push_back(sources[to] % lanes);
    }
    std::size_t most = 0;
    for (const Vec<std::int64_t>& g : given) most = std::max(most, g.size());
    if (most == 0) continue;
    std::vector<std::uint32_t> rows;
    Vec<std::int64_t> from_process(processes, -1);
    for (std::int64_t p = 0; p < processes; ++p) {
      const Vec<std::int64_t>& g = given[p];
      for (std::size_t i = 0; i < most; ++i)
        rows.push_back(static_cast<std::uint32_t>(i < g.size() ? g[i] : 0));
      if (!g.empty()) from_process[(p + shift) % processes] = p;
    }
    const Shape table{processes, static_cast<std::int64_t>(most)};
    const Tensor own =
        row_of(from_host(rows.data(), DType::u32, table, true, where), process, where);
    Tensor part = row_of(all, own, where);
    if (shift > 0)
      part = emit(Op::ppermute, make_params(CollectiveParams{along.mesh, std::move(from_process)}),
                  {part}, where);
    got.push_back(part);
    count += static_cast<std::int64_t>(most);
  }
  const Tensor zero = filled("ppermute", Scalar(false), x.dtype(), element, where);
  if (got.empty()) return reshaped(zero, x.shape(), where);
  got.push_back(zero);
  std::vector<std::uint32_t> rows;
  for (const std::int64_t at : place)
    rows.push_back(static_cast<std::uint32_t>(at < 0 ? count : at));
  const Tensor table = from_host(rows.data(), DType::u32, Shape{processes, lanes}, true, where);
  const Tensor own = row_of(row_of(table, process, where), along.index, where);
  const Tensor result = row_of(concatenate(got, 0, where), own, where);
  return cast(result, x.dtype(), aval_of(x).weak, where);
}

Tensor permuted_lanes(const Tensor& x, const LiveAxis& along, Vec<std::int64_t> sources,
                      CallSite where) {
  if (along.mesh && along.mesh->size > 1) return permuted_jointly(x, along, sources, where);
  return emit(Op::ppermute, make_params(CollectiveParams{along.axis, std::move(sources)}), {x},
              where);
}

}  // namespace collectives

Tensor psum_flat(const Tensor& x, const AxisNames& names, CallSite where) {
  const UserLine line(where);
  need("psum", x, where);
  Tensor sum = collectives::summable(x, where);
  for (const AxisRef& axis : collectives::lanes_first(collectives::axes_of(names, "psum", where))) {
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
  for (const std::string& name : names.list()) {
    const LiveAxis live = live_axis(name, "pmean", where);
    if (!live.axis->partial) {
      lanes *= static_cast<double>(live.size());
      continue;
    }
    // So many as run.
    const Tensor one = full_tensor(Scalar(1.0).converted(sum.dtype()), Aval(sum.dtype(), Shape{}));
    Tensor count = collectives::emitted(Op::psum, one, live.axis, where);
    if (live.mesh) count = collectives::emitted(Op::psum, count, live.mesh, where);
    mean = collectives::at_line(mean, where) / count;
  }
  return cast(collectives::at_line(mean, where) / lanes, number.dtype(), aval_of(number).weak,
              where);
}

Tensor extremum_of_lanes(const Tensor& x, const AxisNames& names, bool greatest, CallSite where) {
  const UserLine line(where);
  const char* name = greatest ? "pmax" : "pmin";
  need(name, x, where);
  Tensor most = x;
  for (const AxisRef& axis : collectives::lanes_first(collectives::axes_of(names, name, where)))
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
  const LiveAxis axis = live_axis(name, "all_to_all", where);
  const int split = normal_axis("all_to_all", split_axis, x, where),
            concat = normal_axis("all_to_all", concat_axis, x, where);
  const Tensor given =
      collectives::with_lanes_in_front(x, split, axis, options.tiled, "all_to_all", where);
  const Tensor got = collectives::exchanged(given, axis, where);
  return options.tiled ? collectives::with_lanes_behind(got, concat, where)
                       : moveaxis(collectives::at_line(got, where), Axes{0}, Axes{concat});
}

Tensor psum_scatter_flat(const Tensor& x, const std::string& name,
                         const PsumScatterOptions& options, CallSite where) {
  const UserLine line(where);
  need("psum_scatter", x, where);
  const LiveAxis lanes = live_axis(name, "psum_scatter", where);
  const int axis = normal_axis("psum_scatter", options.axis, x, where);
  const Tensor given = collectives::with_lanes_in_front(
      collectives::summable(x, where), axis, lanes, options.tiled, "psum_scatter", where);
  return collectives::sum_exchanged(given, lanes, where);
}

Tensor ppermute_flat(const Tensor& x, const std::string& name,
                     const std::vector<std::pair<std::int64_t, std::int64_t>>& permutation,
                     CallSite where) {
  const UserLine line(where);
  need("ppermute", x, where);
  const LiveAxis axis = live_axis(name, "ppermute", where);
  Vec<std::int64_t> sources(axis.size(), -1);
  for (const auto& [from, to] : permutation) {
    for (std::int64_t lane : {from, to})
      if (lane < 0 || lane >= axis.size())
        fail(ErrorKind::value,
             formatted("vt::ppermute: there is no {} {} among the {} of \"{}\"",
                       collectives::members_of(axis), lane, axis.size(), name),
             where);
    std::int64_t& source = sources[to];
    if (source >= 0)
      fail(ErrorKind::value,
           formatted("vt::ppermute: {} {} of \"{}\" is sent to twice",
                     collectives::members_of(axis), to, name),
           where);
    source = from;
  }
  return collectives::permuted_lanes(x, axis, std::move(sources), where);
}

Tensor pshuffle_flat(const Tensor& x, const std::string& name,
                     const std::vector<std::int64_t>& sources, CallSite where) {
  const UserLine line(where);
  need("pshuffle", x, where);
  const LiveAxis axis = live_axis(name, "pshuffle", where);
  if (static_cast<std::int64_t>(sources.size()) != axis.size())
    fail(ErrorKind::value,
         formatted("vt::pshuffle: {} sources for the {} {} of \"{}\"", sources.size(), axis.size(),
                   collectives::members_of(axis, axis.size()), name),
         where);
  Vec<char> taken(sources.size(), 0);
  for (std::int64_t s : sources) {
    if (s < 0 || s >= axis.size())
      fail(ErrorKind::value,
           formatted("vt::pshuffle: there is no {} {} among the {} of \"{}\"",
                     collectives::members_of(axis), s, axis.size(), name),
           where);
    if (std::exchange(taken[s], 1))
      fail(ErrorKind::value,
           formatted("vt::pshuffle: {} {} is a source twice", collectives::members_of(axis), s),
           where);
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
