// Collectives: functions that combine values of different lanes of a vt::vmap or vt::pfor whose
// axis has a name.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vt/control.hpp>

namespace vt {

/// The name of an axis of lanes, or several: `"batch"`, `{"rows", "columns"}`.
class AxisNames {
 public:
  AxisNames(const char* name) : names_{name} {}
  AxisNames(std::string name) : names_{std::move(name)} {}
  AxisNames(std::initializer_list<std::string_view> names) : names_(names.begin(), names.end()) {}
  AxisNames(std::vector<std::string> names) : names_(std::move(names)) {}
  const std::vector<std::string>& list() const& { return names_; }
  std::vector<std::string> list() && { return std::move(names_); }

 private:
  std::vector<std::string> names_;
};

/// Options of all_gather.
struct AllGatherOptions {
  Param<int> axis = 0;  ///< of the result
  /// the lanes' values one behind the other along `axis`, instead of along a new axis there
  bool tiled = false;
};
/// Options of all_to_all.
struct AllToAllOptions {
  /// split_axis is cut in a block for each lane; blocks are joined along concat_axis
  bool tiled = false;
};
/// Options of psum_scatter.
struct PsumScatterOptions {
  Param<int> axis = 0;  ///< of the operand
  bool tiled = false;   ///< `axis` stays, cut in a block for each lane
};

namespace detail {

Tensor psum_flat(const Tensor&, const AxisNames&, CallSite);
Tensor pmean_flat(const Tensor&, const AxisNames&, CallSite);
Tensor extremum_of_lanes(const Tensor&, const AxisNames&, bool greatest, CallSite);
Tensor all_gather_flat(const Tensor&, const AxisNames&, const AllGatherOptions&, CallSite);
Tensor all_to_all_flat(const Tensor&, const std::string& name, int split_axis, int concat_axis,
                       const AllToAllOptions&, CallSite);
Tensor psum_scatter_flat(const Tensor&, const std::string& name, const PsumScatterOptions&,
                         CallSite);
Tensor ppermute_flat(const Tensor&, const std::string& name,
                     const std::vector<std::pair<std::int64_t, std::int64_t>>& permutation,
                     CallSite);
Tensor pshuffle_flat(const Tensor&, const std::string& name,
                     const std::vector<std::int64_t>& sources, CallSite);

/// `f` of every Tensor; numbers are Tensors.
template <class T, class F>
auto on_leaves(const T& tree, const F& f) {
  using Check = TreesCheck<T>;
  VT_ASSERT_CALL("vt::psum and the other collectives", Check);
  if constexpr (!Check::holds) {
    return Refused();
  } else {
    LiftedTree<T> own = lifted(tree);
    std::vector<Tensor> leaves = tree_leaves(own);
    for (Tensor& t : leaves) t = f(t);
    return with_leaves(std::move(own), leaves);
  }
}

}  // namespace detail

/// The sum of x over all lanes of the named axes. Every lane gets the same, so that it is no longer
/// mapped along them and may be returned with out_axes = vt::unmapped. An unmapped x counts once
/// for each lane. x: a Tensor, a number or a tree. Derivatives are those of the sum over all lanes
/// of what the differentiated function returns: the transpose of psum is psum.
/// Shapes: any → the same; bools and integers of less than 32 bits are summed in 32, as by vt::sum.
/// Throws: Error that names the axes alive here if there is none of that name.
/// Source: JAX `lax.psum`, as are the others.
template <class T>
[[nodiscard]] auto psum(const T& x, const AxisNames& names, CallSite where = CallSite::here()) {
  return detail::on_leaves(x, [&](const Tensor& t) { return detail::psum_flat(t, names, where); });
}
/// psum divided by the number of lanes; integers become f32.
template <class T>
[[nodiscard]] auto pmean(const T& x, const AxisNames& names, CallSite where = CallSite::here()) {
  return detail::on_leaves(x, [&](const Tensor& t) { return detail::pmean_flat(t, names, where); });
}
/// The greatest x of all lanes, element by element; NaN if any is. Ties share the derivative.
template <class T>
[[nodiscard]] auto pmax(const T& x, const AxisNames& names, CallSite where = CallSite::here()) {
  return detail::on_leaves(
      x, [&](const Tensor& t) { return detail::extremum_of_lanes(t, names, true, where); });
}
/// The least x of all lanes.
template <class T>
[[nodiscard]] auto pmin(const T& x, const AxisNames& names, CallSite where = CallSite::here()) {
  return detail::on_leaves(
      x, [&](const Tensor& t) { return detail::extremum_of_lanes(t, names, false, where); });
}
/// The x of all lanes along a new axis (or, tiled, behind each other along an axis), the same for
/// every lane. Of several names the first is the slowest.
/// Shapes: x[…] → [lanes, …] with `axis` 0.
template <class T>
[[nodiscard]] auto all_gather(const T& x, const AxisNames& names, AllGatherOptions options = {},
                              CallSite where = CallSite::here()) {
  return detail::on_leaves(
      x, [&](const Tensor& t) { return detail::all_gather_flat(t, names, options, where); });
}
/// Element j of the result along concat_axis is what lane j has for this lane along split_axis.
/// Shapes: x.dim(split_axis) is the number of lanes; that axis goes, one of the same size comes at
/// concat_axis (tiled: both stay).
template <class T>
[[nodiscard]] auto all_to_all(const T& x, const std::string& name, Param<int> split_axis,
                              Param<int> concat_axis, AllToAllOptions options = {},
                              CallSite where = CallSite::here()) {
  return detail::on_leaves(x, [&](const Tensor& t) {
    return detail::all_to_all_flat(t, name, split_axis, concat_axis, options, where);
  });
}
/// The sum over all lanes of their element for this lane: psum, of which each lane keeps its part.
/// Shapes: x.dim(axis) is the number of lanes; that axis goes (tiled: it keeps a block).
template <class T>
[[nodiscard]] auto psum_scatter(const T& x, const std::string& name,
                                PsumScatterOptions options = {},
                                CallSite where = CallSite::here()) {
  return detail::on_leaves(
      x, [&](const Tensor& t) { return detail::psum_scatter_flat(t, name, options, where); });
}
/// Lane `to` gets the x of lane `from`, for each pair (from, to); lanes that nobody sends to get
/// zeros.
/// Throws: Error if a lane is out of range, sends twice or is sent to twice.
template <class T>
[[nodiscard]] auto ppermute(const T& x, const std::string& name,
                            const std::vector<std::pair<std::int64_t, std::int64_t>>& permutation,
                            CallSite where = CallSite::here()) {
  return detail::on_leaves(
      x, [&](const Tensor& t) { return detail::ppermute_flat(t, name, permutation, where); });
}
/// Lane i gets the x of lane sources[i]: a permutation of all lanes.
template <class T>
[[nodiscard]] auto pshuffle(const T& x, const std::string& name,
                            const std::vector<std::int64_t>& sources,
                            CallSite where = CallSite::here()) {
  return detail::on_leaves(
      x, [&](const Tensor& t) { return detail::pshuffle_flat(t, name, sources, where); });
}

/// The index of this lane, i32[]; of several names as if they were one axis, the first the slowest.
[[nodiscard]] Tensor axis_index(const AxisNames& names, CallSite where = CallSite::here());
/// The number of lanes, known while the function is recorded.
[[nodiscard]] std::int64_t axis_size(const AxisNames& names, CallSite where = CallSite::here());

}  // namespace vt
