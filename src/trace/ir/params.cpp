// Equality, hashing and text of the IR's small values: Shape, Axes, Aval, Params; structural
// equality and hash of GraphBody.
#include <algorithm>
#include <bit>
#include <cstring>
#include <ostream>
#include <string>
#include <type_traits>

#include "../base/stack.hpp"
#include "called_function.hpp"
#include "recursive_function.hpp"

namespace vt {

std::string Shape::str() const {
  std::string text = "[";
  for (std::size_t i = 0; i < size(); ++i) {
    if (i) text += ',';
    text += std::to_string((*this)[i]);
  }
  return text += ']';
}
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.str(); }

std::string Axes::str() const {
  std::string text = "(";
  for (std::size_t i = 0; i < size(); ++i) {
    if (i) text += ',';
    text += std::to_string((*this)[i]);
  }
  if (size() == 1) text += ',';  // as Python writes a tuple of one
  return text += ')';
}

}  // namespace vt

namespace vt::detail {

std::string text_of(const Shape& shape) { return shape.str(); }
std::string text_of(const Axes& axes) { return axes.str(); }

std::string Aval::str() const {
  std::string text = name_of(dtype);
  return text += shape.str();
}

namespace params_hash {

/// A running hash; `add` takes every kind of field that a Params struct holds.
struct Hasher {
  std::size_t state = 0x9e3779b97f4a7c15ull;

  void mix(std::uint64_t word) {
    state ^= word + 0x9e3779b97f4a7c15ull + (state << 6) + (state >> 2);
    state *= 0xff51afd7ed558ccdull;
    state ^= state >> 32;
  }
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void add(T v) {
    mix(static_cast<std::uint64_t>(v));
  }
  template <class T, std::size_t n>
  void add(const SmallVec<T, n>& items) {
    mix(items.size());
    for (const T& item : items) add(item);
  }
  void add(const Aval& a) {
    add(a.dtype);
    add(a.weak);
    add<std::int64_t, 6>(a.shape);
  }
  void add(const Scalar& s) {
    add(s.dtype);
    mix(s.natural);
    if (is_complex(s.dtype)) mix(std::bit_cast<std::uint64_t>(s.imaginary));
  }
  void add(const BufferRef& b) { mix(reinterpret_cast<std::uintptr_t>(b.get())); }
  void add(const std::shared_ptr<const CustomRule>& rule) {
    mix(reinterpret_cast<std::uintptr_t>(rule.get()));
  }
  /// Not what its own sub-graphs hold: asked for at every level of nested loops, that would be done
  /// again for each one around.
  void add(const GraphRef& g) {
    if (!g) return mix(0);
    mix(g->inputs.size());
    for (const Equation& e : g->equations) {
      add(e.op);
      add(e.inputs);
      if (family_of(e.op) != Family::structure) mix(hash_of(e.params));
    }
    for (Var v : g->outputs) add(v);
  }

  void add(const NoParams&) {}
  void add(const ConstantParams& p) { all(p.buffer, p.aval); }
  void add(const FullParams& p) { all(p.value, p.aval, p.unset); }
  void add(const IotaParams& p) { all(p.aval, p.axis); }
  void add(const ConvertParams& p) { all(p.dtype, p.weak); }
  void add(const PrecisionParams& p) { all(p.exponent_bits, p.mantissa_bits); }
  void add(const IntegerPowParams& p) { all(p.exponent); }
  void add(const StructuralParams&) { mix(1); }
  void add(const AxesParams& p) { all(p.axes); }
  void add(const ArgParams& p) { all(p.axis, p.dtype); }
  void add(const ReduceParams& p) { all(p.axes, p.body); }
  void add(const CumulativeParams& p) { all(p.axis, p.reverse); }
  void add(const SortParams& p) { all(p.axis, p.keys, p.descending, p.start, p.limit); }
  void add(const ShapeParams& p) { all(p.shape); }
  void add(const PermutationParams& p) { all(p.permutation); }
  void add(const BroadcastParams& p) { all(p.shape, p.axes); }
  void add(const AxisParams& p) { all(p.axis); }
  void add(const PadParams& p) { all(p.low, p.high, p.interior); }
  void add(const SliceParams& p) { all(p.start, p.limit, p.stride); }
  void add(const GatherParams& p) {
    all(p.offset_dims, p.collapsed_slice_dims, p.start_index_map, p.operand_batching_dims,
        p.indices_batching_dims, p.slice_sizes, p.mode);
  }
  void add(const ScatterParams& p) {
    all(p.update_window_dims, p.inserted_window_dims, p.scatter_dims_to_operand_dims,
        p.operand_batching_dims, p.indices_batching_dims, p.mode, p.unique);
  }
  void add(const DotParams& p) {
    all(p.lhs_contract, p.rhs_contract, p.lhs_batch, p.rhs_batch, p.dtype);
  }
  void add(const RowsParams& p) {
    mix(p.runs.size());
    for (const RowRun& run : p.runs) all(run.operand, run.first, run.count);
    add(p.extents);
  }
  void add(const WindowParams& p) { all(p.axes, p.sizes, p.strides, p.dilations, p.extents); }
  void add(const ConvParams& p) {
    add(p.dot);
    all(p.lhs_window, p.rhs_window, p.strides, p.low, p.high, p.lhs_dilation, p.rhs_dilation,
        p.order, p.flipped);
  }
  void add(const FftParams& p) { all(p.kind, p.lengths, p.parts); }
  void add(const TriangularParams& p) { all(p.lower, p.transposed, p.unit_diagonal); }
  void add(const SolveParams& p) { all(p.transposed); }
  void add(const DecompositionParams& p) { all(p.full, p.vectors, p.pivoted); }
  void add(const PartsParams& p) {
    mix(hash_of(p.own));
    all(p.operands);
  }
  void add(const CollectiveParams& p) {
    mix(reinterpret_cast<std::uintptr_t>(p.axis.get()));
    mix(p.shared);
    for (std::int64_t s : p.sources) mix(static_cast<std::uint64_t>(s));
    for (std::int64_t k : p.bundle) mix(static_cast<std::uint64_t>(k));
  }
  void add(const CallParams& p) { all(p.body, p.rule, p.explicit_operands); }
  void add(const RecursionParams& p) { mix(reinterpret_cast<std::uintptr_t>(p.function)); }
  void add(const Lanes& l) { all(l.count, l.mapped); }
  void add(const CondParams& p) {
    mix(p.branches.size());
    for (const GraphRef& b : p.branches) add(b);
    add(p.lanes);
  }
  void add(const WhileParams& p) { all(p.condition, p.body, p.carries, p.lanes, p.checkpoints); }
  void add(const ScanParams& p) {
    all(p.body, p.carries, p.sequences, p.length, p.reverse, p.sums);
  }
  void add(const RegionParams& p) { all(p.body, p.lanes); }
  void add(const BatchedCallParams& p) { all(p.body, p.lanes, p.summed, p.schedule); }
  void add(const std::string& s) { mix(std::hash<std::string>()(s)); }
  void add(const EffectLanes& l) { all(l.extents, l.carried); }
  void add(const PrintParams& p) { all(p.text, p.per_lane, p.lanes); }
  void add(const CheckParams& p) { all(p.text, p.line.line, p.lanes); }
  void add(const CallbackParams& p) {
    mix(reinterpret_cast<std::uintptr_t>(p.function->callable.get()));
    add(p.lanes);
  }

  template <class... Fields>
  void all(const Fields&... fields) {
    (add(fields), ...);
  }
};

/// Of two of one kind.
bool same_fields(const Params& a, const Params& b) {
  return visit([&]<class P>(const P& p) { return p == static_cast<const ParamsOf<P>&>(b).value; },
               a);
}

/// Two sub-graphs are the same function if they are one object or equal in structure.
inline bool same_body(const GraphRef& a, const GraphRef& b) {
  return a == b || (a && b && equal(*a, *b));
}

}  // namespace params_hash

const char* name_of(LaneSchedule schedule) {
  switch (schedule) {
    case LaneSchedule::automatic: return "automatic";
    case LaneSchedule::groups: return "groups";
    case LaneSchedule::hybrid: return "hybrid";
    case LaneSchedule::program_counter: return "program_counter";
  }
  return "?";
}

void Params::wrong_kind(ParamsKind wanted) const {
  throw Error(ErrorKind::value, "vt: internal: parameters of kind " +
                                    std::to_string(static_cast<int>(kind)) + ", not " +
                                    std::to_string(static_cast<int>(wanted)));
}

bool equal(const ParamsRef& a, const ParamsRef& b) {
  if (a.get() == b.get()) return true;
  if (!a || !b) {
    // A NoParams object and the null reference mean the same.
    const ParamsRef& present = a ? a : b;
    return present->is<NoParams>();
  }
  if (a->kind != b->kind) return false;
  // Sub-graphs are compared by structure, and all else with them put aside.
  const Vec<GraphRef> x = bodies_of(a), y = bodies_of(b);
  if (!x.empty() || !y.empty()) {
    if (x.size() != y.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!params_hash::same_body(x[i], y[i])) return false;
    if (!std::equal(x.begin(), x.end(), y.begin()))
      return params_hash::same_fields(*with_bodies(b, x), *a);
  }
  return params_hash::same_fields(*a, *b);
}

Vec<GraphRef> bodies_of(const ParamsRef& params) {
  if (!params) return {};
  need_stack({});
  if (const auto* p = params->get_if<CallParams>()) return {p->body};
  if (const auto* p = params->get_if<ReduceParams>()) return {p->body};
  if (const auto* p = params->get_if<CondParams>()) return p->branches;
  if (const auto* p = params->get_if<WhileParams>()) return {p->condition, p->body};
  if (const auto* p = params->get_if<ScanParams>()) return {p->body};
  if (const auto* p = params->get_if<RegionParams>()) return {p->body};
  if (const auto* p = params->get_if<BatchedCallParams>()) return {p->body};
  return {};
}

ParamsRef with_bodies(const ParamsRef& params, std::span<const GraphRef> bodies) {
  const auto changed = [&](const auto& p, auto change) {
    auto copy = p;
    change(copy);
    return make_params(std::move(copy));
  };
  const auto change_function = [&](auto& c) {
    if (c.body == bodies[0]) return;
    if (c.function) c.function = called_function(c.function->name);
    c.body = bodies[0];
  };
  if (const auto* p = params->get_if<CallParams>())
    return changed(*p, [&](CallParams& c) {
      if (c.body != bodies[0]) c.results = {};
      change_function(c);
    });
  if (const auto* p = params->get_if<BatchedCallParams>()) return changed(*p, change_function);
  if (const auto* p = params->get_if<ReduceParams>())
    return changed(*p, [&](ReduceParams& c) { c.body = bodies[0]; });
  if (const auto* p = params->get_if<CondParams>())
    return changed(*p, [&](CondParams& c) { c.branches.assign(bodies.begin(), bodies.end()); });
  if (const auto* p = params->get_if<WhileParams>())
    return changed(*p, [&](WhileParams& c) {
      c.condition = bodies[0];
      c.body = bodies[1];
    });
  if (const auto* p = params->get_if<ScanParams>())
    return changed(*p, [&](ScanParams& c) { c.body = bodies[0]; });
  if (const auto* p = params->get_if<RegionParams>())
    return changed(*p, [&](RegionParams& c) { c.body = bodies[0]; });
  return params;
}

std::size_t hash_of(const ParamsRef& params) {
  if (!params || params->is<NoParams>()) return 0;
  params_hash::Hasher h;
  h.mix(static_cast<std::uint64_t>(params->kind));
  visit([&](const auto& p) { h.add(p); }, *params);
  return h.state;
}

std::size_t hash_of(const GraphBody& g) {
  params_hash::Hasher h;
  h.mix(g.inputs.size());
  for (Var v : g.inputs) {
    h.add(v);
    h.add(g.aval(v));
  }
  for (const Equation& e : g.equations) {
    h.add(e.op);
    h.add(e.assume_finite);
    h.mix(hash_of(e.params));
    h.add(e.inputs);
    h.add(e.outputs);
  }
  for (Var v : g.outputs) h.add(v);
  return h.state;
}

bool equal(const GraphBody& a, const GraphBody& b) {
  if (&a == &b) return true;
  need_stack({});
  if (a.inputs != b.inputs || a.outputs != b.outputs || a.equations.size() != b.equations.size())
    return false;
  // Only the inputs' types are compared: all others follow from them.
  for (Var v : a.inputs)
    if (a.aval(v) != b.aval(v)) return false;
  for (std::size_t i = 0; i < a.equations.size(); ++i) {
    const Equation &x = a.equations[i], &y = b.equations[i];
    if (x.op != y.op || x.assume_finite != y.assume_finite || x.inputs != y.inputs ||
        x.outputs != y.outputs || !equal(x.params, y.params))
      return false;
  }
  return true;
}

GatherParams gather_of(const ScatterParams& s, const Shape& operand, const Shape& updates) {
  GatherParams g{s.update_window_dims,
                 s.inserted_window_dims,
                 s.scatter_dims_to_operand_dims,
                 s.operand_batching_dims,
                 s.indices_batching_dims,
                 {},
                 s.mode};
  std::size_t window = 0;
  for (int d = 0; d < operand.rank(); ++d) {
    const bool absent = s.inserted_window_dims.contains(d) || s.operand_batching_dims.contains(d);
    g.slice_sizes.push_back(absent ? 1 : updates[s.update_window_dims[window++]]);
  }
  return g;
}

ScatterParams scatter_of(const GatherParams& g) {
  return {g.offset_dims,           g.collapsed_slice_dims,  g.start_index_map,
          g.operand_batching_dims, g.indices_batching_dims, g.mode};
}

bool is_one_update(const ScatterParams& p, const Shape& indices) {
  for (int d = 0; d + 1 < indices.rank(); ++d)
    if (indices[d] != 1 && !p.indices_batching_dims.contains(d)) return false;
  return true;
}

}  // namespace vt::detail
