// Several indices at once: x(i, j, …), vt::at(x, i, j).set(v) and its like, put_along_axis.
#include <cstdlib>
#include <limits>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/indexing.hpp>

#include "support/indexing.hpp"

namespace vt::detail {

namespace selection {

/// What is selected along one axis of x.
struct Part {
  enum class Kind : std::uint8_t { number, range, tensor, window } kind = Kind::range;
  /// The elements first, first + step, …, if these are known; of a window only how many.
  std::int64_t first = 0, count = 1, step = 1;
  Tensor index;  ///< the Tensor, or a window's start
  CallSite where;

  bool is_whole(std::int64_t extent) const {
    return kind == Kind::range && step == 1 && count == extent;
  }
  /// In the order of the axis.
  std::int64_t lowest() const { return step < 0 ? first + (count - 1) * step : first; }
};

/// What is selected, and how the axes of the result lie.
struct Plan {
  std::string_view name;
  Tensor x;
  CallSite where;
  SmallVec<Part, 4> parts;  ///< of each axis of x
  Shape batch;              ///< the shape that the Tensors broadcast to
  /// Per axis of the result: the axis of x, new_axis, or batch_axis + k for axis k of `batch`.
  SmallVec<int, 8> layout;
  bool has_tensors = false, has_windows = false, is_strided = false;

  static constexpr int new_axis = -1, batch_axis = std::numeric_limits<int>::min();
  static bool is_of_batch(int axis) { return axis < new_axis; }
  std::int64_t extent_of(int axis) const {
    if (axis == new_axis) return 1;
    return is_of_batch(axis) ? batch[axis - batch_axis] : parts[axis].count;
  }
  /// The shape of the result; without new axes what gathers give and scatters take.
  Shape shape(bool new_axes = true) const {
    Shape all;
    for (int axis : layout)
      if (new_axes || axis != new_axis) all.push_back(extent_of(axis));
    return all;
  }
  /// Is every element selected at most once?
  bool is_unique() const { return !has_tensors || batch.elements() <= 1; }
};

/// NumPy's rule for where the axes of Tensors stand: at the first of them, in front of everything
/// if something else stands between two of them.
class BatchPlace {
 public:
  void advanced(std::size_t place) {
    if (state_ == State::none) place_ = place, state_ = State::inside;
    else if (state_ == State::behind) place_ = 0, state_ = State::parted;
  }
  void basic() {
    if (state_ == State::inside) state_ = State::behind;
  }
  std::size_t place() const { return place_; }

 private:
  enum class State : std::uint8_t { none, inside, behind, parted } state_ = State::none;
  std::size_t place_ = 0;
};

/// A window's start, if it is known while recording.
std::optional<std::int64_t> known_start(const Tensor& start) {
  const Node* n = node_of(start);
  if (n->op != Op::full) return std::nullopt;
  const Scalar& s = n->params->as<FullParams>().value;
  if (!is_unsigned(s.dtype)) return s.integer;
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(s.natural, std::numeric_limits<std::int64_t>::max()));
}

Part window_of(const Plan& p, const Index& index, int axis) {
  const CallSite w = user_line(p.where);
  const std::int64_t n = extent(p.x.shape(), axis);
  need(p.name, index.tensor, w);
  if (index.tensor.rank() != 0)
    refuse(ErrorKind::shape, p.name, "the start of a window must be a scalar", p.x, index.tensor,
           w);
  if (index.number < 0 || index.number > n)
    refuse(ErrorKind::shape, p.name,
           formatted("a window of {} on axis {} of size {}", index.number, axis, n), p.x, w);
  Part part;
  part.count = index.number;
  part.index = index_dtype(p.name, index.tensor, n, w);
  if (const auto start = known_start(part.index))
    part.first = std::clamp<std::int64_t>(*start, 0, n - part.count);
  else part.kind = Part::Kind::window;
  return part;
}

Plan planned(std::string_view name, const Tensor& x, std::span<const Index> indices,
             CallSite where) {
  Plan p{name, x, where, {}, {}, {}};
  const int rank = x.rank();
  int given = 0, open = 0;
  SmallVec<Tensor, 4> tensors;
  for (const Index& i : indices) {
    if (i.kind == Index::Kind::rest) ++open;
    else if (i.kind != Index::Kind::new_axis) ++given;
    if (i.kind != Index::Kind::tensor) continue;
    need(name, i.tensor, where);
    tensors.push_back(i.tensor);
  }
  if (given > rank)
    refuse(ErrorKind::shape, name,
           formatted("{} {} for a Tensor of {} {}", given, given == 1 ? "index" : "indices", rank,
                     rank == 1 ? "axis" : "axes"),
           x, where);
  if (open > 1)
    refuse(ErrorKind::value, name, formatted("{} times vt::ellipsis, one may be given", open), x,
           where);
  p.has_tensors = !tensors.empty();
  BatchPlace place;
  const auto whole = [&](int axes) {
    for (; axes > 0; --axes) {
      const int axis = static_cast<int>(p.parts.size());
      p.layout.push_back(axis);
      Part part;
      part.count = extent(x.shape(), axis);
      p.parts.push_back(part);
    }
  };
  for (const Index& i : indices) {
    const int axis = static_cast<int>(p.parts.size());
    Part part;
    switch (i.kind) {
      case Index::Kind::number:
        part.kind = Part::Kind::number;
        part.first = place_on_axis(name, i.number, axis, x, where);
        if (p.has_tensors) place.advanced(p.layout.size());
        p.parts.push_back(part);
        continue;
      case Index::Kind::tensor:
        part.kind = Part::Kind::tensor;
        part.index = wrapped_index(name, i.tensor, extent(x.shape(), axis), where);
        place.advanced(p.layout.size());
        p.parts.push_back(part);
        continue;
      case Index::Kind::new_axis: p.layout.push_back(Plan::new_axis); break;
      case Index::Kind::rest: whole(rank - given); break;
      case Index::Kind::slice: {
        const auto [first, count] = resolved(name, i.range, extent(x.shape(), axis), x, where);
        part.first = count == 0 ? 0 : first;
        part.count = count;
        part.step = count > 1 ? i.range.step : 1;
        p.is_strided = p.is_strided || std::abs(part.step) > 1;
        p.layout.push_back(axis);
        p.parts.push_back(part);
        break;
      }
      case Index::Kind::window:
        p.parts.push_back(window_of(p, i, axis));
        p.has_windows = p.has_windows || p.parts.back().kind == Part::Kind::window;
        p.layout.push_back(axis);
        break;
    }
    place.basic();
  }
  whole(rank - static_cast<int>(p.parts.size()));
  if (!p.has_tensors) return p;
  p.batch = broadcast_shape(name, std::span<const Tensor>(tensors.data(), tensors.size()), where);
  SmallVec<int, 8> layout;
  for (std::size_t k = 0; k <= p.layout.size(); ++k) {
    if (k == place.place())
      for (int axis = 0; axis < p.batch.rank(); ++axis) layout.push_back(Plan::batch_axis + axis);
    if (k < p.layout.size()) layout.push_back(p.layout[k]);
  }
  p.layout = layout;
  return p;
}

// --- boxes: no Tensors, and windows only where steps are 1 or −1 ---------------------------------

Tensor number(std::int64_t v, DType d) {
  return full_tensor(Scalar(v).converted(d), Aval(d, Shape{}));
}
/// i64 if one of the Tensors is.
DType dtype_of_indices(const Plan& p) {
  DType d = i32;
  for (std::size_t axis = 0; axis < p.parts.size(); ++axis)
    if ((p.parts[axis].index.defined() && p.parts[axis].index.dtype() == i64) ||
        p.x.shape()[axis] > std::numeric_limits<std::int32_t>::max())
      d = i64;
  return d;
}

Axes reversed_axes(const Plan& p) {
  Axes axes;
  for (std::size_t axis = 0; axis < p.parts.size(); ++axis)
    if (p.parts[axis].step < 0) axes.push_back(static_cast<int>(axis));
  return axes;
}
Tensor reversed(const Plan& p, const Tensor& t) {
  const Axes axes = reversed_axes(p);
  return axes.empty() ? t : emit(Op::rev, make_params(AxesParams{axes}), {t}, p.where);
}
/// The extents of the box, of all axes of x.
Shape box_shape(const Plan& p) {
  Shape shape;
  for (const Part& part : p.parts) shape.push_back(part.count);
  return shape;
}
/// Where it begins, a scalar for each axis of x.
void append_starts(const Plan& p, SmallVec<Tensor, 8>& operands) {
  const DType d = dtype_of_indices(p);
  for (const Part& part : p.parts)
    operands.push_back(part.kind == Part::Kind::window ? cast(part.index, d, p.where)
                                                       : number(part.lowest(), d));
}

/// The box as it lies in x: of x's rank, nothing reversed.
Tensor box(const Plan& p) {
  if (p.has_windows) {
    SmallVec<Tensor, 8> operands{p.x};
    append_starts(p, operands);
    return emit(Op::dynamic_slice, make_params(ShapeParams{box_shape(p)}),
                std::span<const Tensor>(operands.data(), operands.size()), p.where);
  }
  SliceParams s;
  bool everything = true;
  for (std::size_t axis = 0; axis < p.parts.size(); ++axis) {
    const Part& part = p.parts[axis];
    const std::int64_t step = std::abs(part.step), first = part.lowest();
    s.start.push_back(first);
    s.limit.push_back(part.count == 0 ? first : first + (part.count - 1) * step + 1);
    s.stride.push_back(step);
    everything = everything && part.count == p.x.shape()[axis];
  }
  return everything ? p.x : emit(Op::slice, make_params(std::move(s)), {p.x}, p.where);
}
bool is_box(const Plan& p) { return !p.has_tensors && !(p.has_windows && p.is_strided); }

// --- gather and scatter --------------------------------------------------------------------------

struct Addresses {
  GatherParams params;
  Tensor indices;
};

/// Index vectors. Tensors, and ranges whose step is not 1, are axes of them; other ranges and
/// windows are windows of the gather.
Addresses addresses(const Plan& p, bool clamped) {
  Addresses a;
  GatherParams& g = a.params;
  g.mode = IndexMode::clip;
  const auto counts = [&](const Part& part) {
    return part.kind == Part::Kind::range && part.step != 1;
  };
  Shape leading;                               // of the indices
  int batch_at = 0, moved = 0;                 // where the axes of `batch` begin among them
  SmallVec<int, 4> place(p.parts.size(), -1);  // of a range with steps: its axis of the indices
  for (int axis : p.layout) {
    if (axis == Plan::new_axis) continue;
    if (axis == Plan::batch_axis) batch_at = leading.rank();
    const bool of_batch = Plan::is_of_batch(axis);
    if (of_batch || counts(p.parts[axis])) {
      if (!of_batch) place[axis] = leading.rank();
      leading.push_back(p.extent_of(axis));
    } else {
      g.offset_dims.push_back(moved);
    }
    ++moved;
  }
  const DType d = dtype_of_indices(p);
  SmallVec<Tensor, 4> components;
  for (std::size_t axis = 0; axis < p.parts.size(); ++axis) {
    const Part& part = p.parts[axis];
    const std::int64_t n = p.x.shape()[axis];
    const bool is_window =
        part.kind == Part::Kind::window || (part.kind == Part::Kind::range && part.step == 1);
    g.slice_sizes.push_back(is_window ? part.count : 1);
    if (!is_window) g.collapsed_slice_dims.push_back(static_cast<int>(axis));
    if (part.is_whole(n)) continue;
    g.start_index_map.push_back(static_cast<int>(axis));
    Tensor component;
    Axes axes;
    if (counts(part)) {
      axes = {place[axis]};
      component =
          counted(d, Shape{part.count}, 0, p.where) * number(part.step, d) + number(part.first, d);
    } else if (part.kind == Part::Kind::tensor) {
      component = cast(part.index, d, p.where);
      for (int k = p.batch.rank() - component.rank(); k < p.batch.rank(); ++k)
        axes.push_back(batch_at + k);
    } else if (part.kind == Part::Kind::window) {
      component = cast(part.index, d, p.where);
      if (clamped) component = vt::clamp(number(0, d), component, number(n - part.count, d));
    } else {
      component = number(part.first, d);
    }
    components.push_back(
        with_index_axis(broadcast_along(component, leading, axes, p.where), p.where));
  }
  a.indices = components.size() == 1
                  ? components[0]
                  : emit(Op::concatenate, make_params(AxisParams{leading.rank()}),
                         std::span<const Tensor>(components.data(), components.size()), p.where);
  return a;
}

// --- reading and writing -------------------------------------------------------------------------

Tensor read(const Plan& p) {
  const Shape shape = p.shape();
  if (p.has_tensors)
    for (std::size_t axis = 0; axis < p.parts.size(); ++axis)
      if (p.parts[axis].kind == Part::Kind::tensor)
        need_elements(p.name, p.x, p.x.shape()[axis], p.parts[axis].index, p.where);
  if (shape.elements() == 0) return filled(p.name, Scalar(0), p.x.dtype(), shape, p.where);
  if (is_box(p)) return reshaped(reversed(p, box(p)), shape, p.where);
  Addresses a = addresses(p, false);
  return reshaped(emit(Op::gather, make_params(std::move(a.params)), {p.x, a.indices}, p.where),
                  shape, p.where);
}

constexpr Op scatter_for(Combine combine) {
  switch (combine) {
    case Combine::add: return Op::scatter_add;
    case Combine::mul: return Op::scatter_mul;
    case Combine::min: return Op::scatter_min;
    case Combine::max: return Op::scatter_max;
    case Combine::set: break;
  }
  return Op::scatter;
}
constexpr const char* name_for(Combine combine) {
  switch (combine) {
    case Combine::add: return "at(…).add";
    case Combine::mul: return "at(…).mul";
    case Combine::min: return "at(…).min";
    case Combine::max: return "at(…).max";
    case Combine::set: break;
  }
  return "at(…).set";
}
/// The two, element by element.
Tensor combination(Combine combine, const Tensor& old, const Tensor& values, CallSite where) {
  if (combine == Combine::set) return values;
  return emit(combination_of(scatter_for(combine)), {}, {old, values}, where);
}

Tensor written(const Plan& p, Combine combine, const Tensor& values) {
  const Shape shape = p.shape();
  const Tensor update = fitting_values(p.name, p.x, values, p.where);
  if (!broadcasts_to(update.shape(), shape))
    refuse(ErrorKind::shape, p.name, formatted("the values do not broadcast to {}", shape.str()),
           p.x, values, p.where);
  if (shape.elements() == 0 || p.x.size() == 0) return p.x;
  const Tensor moved = reshaped(broadcast(update, shape, p.where), p.shape(false), p.where);
  if (is_box(p) && !p.is_strided) {
    const Tensor now = reversed(p, reshaped(moved, box_shape(p), p.where));
    if (now.shape() == p.x.shape()) return combination(combine, p.x, now, p.where);
    SmallVec<Tensor, 8> operands{
        p.x, combine == Combine::set ? now : combination(combine, box(p), now, p.where)};
    append_starts(p, operands);
    return emit(Op::dynamic_update_slice, {},
                std::span<const Tensor>(operands.data(), operands.size()), p.where);
  }
  Addresses a = addresses(p, true);
  ScatterParams s = scatter_of(a.params);
  s.mode = IndexMode::fill;
  s.unique = p.is_unique();
  return emit(scatter_for(combine), make_params(std::move(s)), {p.x, a.indices, moved}, p.where);
}

// --- masks ---------------------------------------------------------------------------------------

/// Is the only index a mask? Refuses masks beside other indices.
bool is_mask(std::string_view name, const Tensor& x, std::span<const Index> indices,
             CallSite where) {
  const Tensor* mask = nullptr;
  for (const Index& i : indices) {
    if (i.kind != Index::Kind::tensor) continue;
    need(name, i.tensor, where);
    if (is_bool(i.tensor.dtype())) mask = &i.tensor;
  }
  if (mask && indices.size() > 1)
    refuse(ErrorKind::dtype, name,
           "a bool Tensor must be the only index; beside others use vt::where, or indices made by "
           "vt::nonzero with a size",
           x, *mask, where);
  return mask;
}

Tensor masked(std::string_view name, const Tensor& x, const Tensor& mask, Combine combine,
              const Tensor& values, CallSite where) {
  Shape spread = mask.shape();
  bool fits = spread.rank() <= x.rank();
  for (int axis = 0; fits && axis < spread.rank(); ++axis) fits = mask.dim(axis) == x.dim(axis);
  if (!fits)
    refuse(ErrorKind::shape, name,
           formatted("a mask of shape {} for a Tensor of shape {}: it must be of that shape, or of "
                     "that of its first axes",
                     mask.shape().str(), x.shape().str()),
           x, mask, where);
  const Tensor update = fitting_values(name, x, values, where);
  if (!broadcasts_to(update.shape(), x.shape()))
    refuse(ErrorKind::shape, name, formatted("the values do not broadcast to {}", x.shape().str()),
           x, values, where);
  while (spread.rank() < x.rank()) spread.push_back(1);
  return vt::where(reshaped(mask, spread, where),
                   combination(combine, x, broadcast(update, x.shape(), where), where), x);
}

}  // namespace selection

Tensor elements_at(const char* name, const Tensor& x, std::span<const Index> indices,
                   CallSite where) {
  const CallSite w = user_line(where);
  const UserLine line(w);
  need(name, x, w);
  return selection::read(selection::planned(name, x, indices, w));
}

}  // namespace vt::detail

namespace vt {

namespace sel = detail::selection;

Selection::Selection(Operand x, std::span<const Index> indices)
    : x_(std::move(x)), indices_(indices.begin(), indices.end()) {}
Selection::Selection(const Selection&) = default;
Selection& Selection::operator=(const Selection&) = default;
Selection::~Selection() = default;

Tensor Selection::get() const {
  return detail::elements_at("at(…).get", x_.tensor, indices_, x_.where);
}

Tensor Selection::selected() const {
  const CallSite w = detail::user_line(x_.where);
  detail::need("at(…).apply", x_.tensor, w);
  if (sel::is_mask("at(…).apply", x_.tensor, indices_, w)) return x_.tensor;
  return detail::elements_at("at(…).apply", x_.tensor, indices_, w);
}

Tensor Selection::combined(Combine combine, const Operand& values) const {
  const char* name = sel::name_for(combine);
  const CallSite w = detail::user_line(x_.where);
  const detail::UserLine line(w);
  detail::need(name, x_.tensor, w);
  detail::need(name, values.tensor, w);
  if (is_bool(x_.tensor.dtype()) && combine != Combine::set)
    detail::refuse(ErrorKind::dtype, name, "needs numbers, not bools", x_.tensor, w);
  detail::need_order(name, sel::scatter_for(combine), x_.tensor, w);
  const Tensor x = detail::cast(x_.tensor, x_.tensor.dtype(), w);
  if (sel::is_mask(name, x, indices_, w))
    return sel::masked(name, x, indices_[0].tensor, combine, values.tensor, w);
  return sel::written(sel::planned(name, x, indices_, w), combine, values.tensor);
}

Tensor put_along_axis(Operand x, Operand indices, Operand values, Param<int> axis,
                      Combine combine) {
  const char* const name = "put_along_axis";
  const CallSite w = detail::user_line(x.where);
  const detail::UserLine line(w);
  detail::need(name, x.tensor, w);
  detail::need(name, indices.tensor, w);
  detail::need(name, values.tensor, w);
  if (is_bool(x.tensor.dtype()) && combine != Combine::set)
    detail::refuse(ErrorKind::dtype, name, "needs numbers, not bools", x.tensor, w);
  detail::need_order(name, sel::scatter_for(combine), x.tensor, w);
  const Tensor operand = detail::cast(x.tensor, x.tensor.dtype(), w);
  const int along = detail::normal_axis(name, axis, operand, w);
  Shape shape;
  detail::ScatterParams p =
      detail::scatter_of(detail::along_axis(name, operand, indices.tensor, along, shape, w));
  p.mode = detail::IndexMode::fill;
  const Tensor index = detail::wrapped_index(name, indices.tensor, operand.dim(along), w),
               update = detail::fitting_values(name, operand, values.tensor, w);
  if (!detail::broadcasts_to(update.shape(), shape))
    detail::refuse(ErrorKind::shape, name,
                   detail::formatted("the values do not broadcast to {}", shape.str()), operand,
                   values.tensor, w);
  if (shape.elements() == 0 || operand.size() == 0) return operand;
  return detail::emit(sel::scatter_for(combine), detail::make_params(std::move(p)),
                      {operand, detail::with_index_axis(detail::broadcast(index, shape, w), w),
                       detail::broadcast(update, shape, w)},
                      w);
}

}  // namespace vt
