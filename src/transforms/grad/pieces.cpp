// Cotangents of slices: laid side by side axis by axis, or padded and added up.
#include "pieces.hpp"

#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../../trace/base/stable_sort.hpp"
#include "build.hpp"

namespace vt::detail {

namespace cotangent_pieces {

using Pieces = std::vector<CotangentPiece>;

Tensor added(Tensor a, const Tensor& b) {
  return a.defined() ? grad_build::binary(Op::add, a, b) : b;
}

/// Zeros around it, along `axis` and the axes after it.
Tensor padded_out(const CotangentPiece& p, const Shape& whole, std::size_t axis) {
  const std::size_t rank = whole.size();
  PadParams around{Shape::filled(rank, 0), Shape::filled(rank, 0), Shape::filled(rank, 0)};
  for (std::size_t d = axis; d < rank; ++d) {
    around.low[d] = p.begin(d);
    around.high[d] = whole[d] - p.end(d);
  }
  return grad_build::padded(p.ct, grad_build::scalar(p.ct.dtype(), 0), std::move(around));
}

bool is_whole(const CotangentPiece& p, const Shape& whole, std::size_t axis) {
  return p.begin(axis) == 0 && p.end(axis) == whole[axis];
}

/// What of the piece lies between two places of an axis, as a piece that begins at the first one.
CotangentPiece part_of(const CotangentPiece& p, std::size_t axis, std::int64_t begin,
                       std::int64_t end) {
  CotangentPiece part = p;
  part.start[axis] = 0;
  if (begin != p.begin(axis) || end != p.end(axis))
    part.ct = grad_build::slice_axis(p.ct, static_cast<int>(axis), begin - p.begin(axis),
                                     end - p.begin(axis));
  return part;
}

/// Where pieces begin and end along an axis, in order, once each.
Vec<std::int64_t> places_of(const Pieces& pieces, std::size_t axis) {
  Vec<std::int64_t> places;
  for (const CotangentPiece& p : pieces) {
    places.push_back(p.begin(axis));
    places.push_back(p.end(axis));
  }
  std::sort(places.begin(), places.end());
  places.resize(std::unique(places.begin(), places.end()) - places.begin());
  return places;
}

/// Whether less is touched where each part of the axis is written once than where the pieces are
/// padded one by one.
bool pays(const Pieces& pieces, const Vec<std::int64_t>& places, const Shape& whole,
          std::size_t axis) {
  std::int64_t in_pieces = 0, meetings = 0;
  bool side_by_side = true;
  for (const CotangentPiece& p : pieces) {
    in_pieces += p.end(axis) - p.begin(axis);
    const auto first = std::lower_bound(places.begin(), places.end(), p.begin(axis)),
               last = std::lower_bound(first, places.end(), p.end(axis));
    meetings += last - first;
    side_by_side = side_by_side && last - first == 1;
  }
  const auto count = static_cast<std::int64_t>(pieces.size());
  return side_by_side ||
         (meetings <= 4 * count && 2 * (in_pieces + whole[axis]) <= count * whole[axis]);
}

/// The sum of pieces that have `whole`'s extents before `axis`.
Tensor sum_from(Pieces pieces, const Aval& whole, std::size_t axis) {
  const auto all_whole = [&] {
    return std::all_of(pieces.begin(), pieces.end(),
                       [&](const CotangentPiece& p) { return is_whole(p, whole.shape, axis); });
  };
  while (axis < whole.shape.size() && all_whole()) ++axis;
  Tensor sum;
  if (axis == whole.shape.size()) {
    for (const CotangentPiece& p : pieces) sum = added(std::move(sum), p.ct);
    return sum;
  }
  const Vec<std::int64_t> places = places_of(pieces, axis);
  if (pieces.size() == 1 || !pays(pieces, places, whole.shape, axis)) {
    for (const CotangentPiece& p : pieces)
      sum = added(std::move(sum), padded_out(p, whole.shape, axis));
    return sum;
  }
  stable_sort(pieces, [&](const CotangentPiece& a, const CotangentPiece& b) {
    return a.begin(axis) < b.begin(axis);
  });
  std::vector<Tensor> parts;
  Aval part = whole;
  const auto add_zeros = [&](std::int64_t begin, std::int64_t end) {
    part.shape[axis] = end - begin;
    if (begin < end) parts.push_back(grad_build::zeros(part));
  };
  add_zeros(0, places[0]);
  Pieces here;
  auto next = pieces.begin();
  for (std::size_t k = 0; k + 1 < places.size(); ++k) {
    const std::int64_t begin = places[k], end = places[k + 1];
    std::erase_if(here, [&](const CotangentPiece& p) { return p.end(axis) <= begin; });
    while (next != pieces.end() && next->begin(axis) == begin) here.push_back(std::move(*next++));
    if (here.empty()) {
      add_zeros(begin, end);
      continue;
    }
    Pieces inside;
    for (const CotangentPiece& p : here) inside.push_back(part_of(p, axis, begin, end));
    part.shape[axis] = end - begin;
    parts.push_back(sum_from(std::move(inside), part, axis + 1));
  }
  add_zeros(places.back(), whole.shape[axis]);
  return emit(Op::concatenate, make_params(AxisParams{static_cast<int>(axis)}), parts, {});
}

}  // namespace cotangent_pieces

Tensor sum_of_pieces(std::vector<CotangentPiece> pieces, const Aval& whole) {
  std::erase_if(pieces, [](const CotangentPiece& p) { return p.ct.size() == 0; });
  if (pieces.empty()) return grad_build::zeros(whole);
  return cotangent_pieces::sum_from(std::move(pieces), whole, 0);
}

}  // namespace vt::detail
