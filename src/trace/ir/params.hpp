// The parameters of equations: one plain struct per kind, and Params, which holds any of them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <vt/detail/entry_points.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/tensor.hpp>

#include "../base/buffer.hpp"
#include "../base/ref.hpp"
#include "aval.hpp"
#include "op.hpp"

namespace vt::detail {

struct GraphBody;
using GraphRef = std::shared_ptr<const GraphBody>;

// --- parameters, one plain struct per kind -------------------------------------------------------

/// What an index outside the operand does. Reads: `clip` moves it to the edge, `fill` gives zero.
/// Writes: `clip` moves it to the edge, `fill` drops the update.
enum class IndexMode : std::uint8_t { clip, fill };

struct NoParams {
  bool operator==(const NoParams&) const = default;
};
struct ConstantParams {  ///< constant: a value inside a Graph (after constant folding)
  BufferRef buffer;
  Aval aval;
  bool operator==(const ConstantParams& o) const {
    return buffer.get() == o.buffer.get() && aval == o.aval;
  }
};
struct FullParams {  ///< full: every element is `value`
  Scalar value;
  Aval aval;
  bool unset = false;  ///< no element is read before it is written: any value will do
  bool operator==(const FullParams&) const = default;
};
struct IotaParams {  ///< iota: each element is its index along `axis`
  Aval aval;
  int axis = 0;
  bool operator==(const IotaParams&) const = default;
};
struct ConvertParams {  ///< convert, bitcast; argmax and argmin have ArgParams
  DType dtype = DType::f32;
  bool weak = false;
  bool operator==(const ConvertParams&) const = default;
};
struct PrecisionParams {  ///< reduce_precision
  int exponent_bits = 8, mantissa_bits = 23;
  bool operator==(const PrecisionParams&) const = default;
};
struct IntegerPowParams {
  int exponent = 1;
  bool operator==(const IntegerPowParams&) const = default;
};
/// select: the predicate is no data but says what is there: nothing reaches a result from the
/// operand that is not chosen, and derivatives follow that element by element.
struct StructuralParams {
  bool operator==(const StructuralParams&) const = default;
};
struct AxesParams {  ///< reduce_*, rev: sorted, non-negative
  Axes axes;
  bool operator==(const AxesParams&) const = default;
};
struct ArgParams {  ///< argmax, argmin: the first extreme element along one axis; NaN wins
  int axis = 0;
  DType dtype = DType::i32;
  bool operator==(const ArgParams&) const = default;
};
/// reduce: n operands then n scalar inits; body maps (acc…, x…) scalars to acc…
struct ReduceParams {
  Axes axes;
  GraphRef body;
  bool operator==(const ReduceParams&) const = default;
};
struct CumulativeParams {  ///< cumsum …
  int axis = 0;
  bool reverse = false;
  bool operator==(const CumulativeParams&) const = default;
};
/// sort: the operands, all of one shape, are put in order along `axis` together: by the first
/// `keys` of them, lexicographically. Equal elements keep their order. NaN comes after all numbers,
/// every NaN is equal to every other, and −0 to +0; `descending` turns that order around (NaN
/// first), but not the order of equals. The results are places start … limit − 1 of the order.
struct SortParams {
  int axis = 0;
  int keys = 1;
  bool descending = false;
  std::int64_t start = 0, limit = 0;
  bool operator==(const SortParams&) const = default;
};
struct ShapeParams {  ///< reshape; dynamic_slice (the sizes)
  Shape shape;
  bool operator==(const ShapeParams&) const = default;
};
struct PermutationParams {  ///< transpose: result axis i is operand axis permutation[i]
  Axes permutation;
  bool operator==(const PermutationParams&) const = default;
};
/// broadcast_in_dim: operand axis i becomes result axis axes[i] (strictly increasing); size 1
/// broadcasts
struct BroadcastParams {
  Shape shape;
  Axes axes;
  bool operator==(const BroadcastParams&) const = default;
};
struct AxisParams {  ///< concatenate
  int axis = 0;
  bool operator==(const AxisParams&) const = default;
};
struct PadParams {  ///< pad: low and high may be negative (crop), interior ≥ 0
  Shape low, high, interior;
  bool operator==(const PadParams&) const = default;
};
struct SliceParams {  ///< slice: start ≤ limit, stride ≥ 1
  Shape start, limit, stride;
  bool operator==(const SliceParams&) const = default;
};
/// gather(operand, indices): the last axis of `indices` holds index vectors. For each of them a
/// window of `slice_sizes` is read at the index vector, whose component k addresses operand axis
/// start_index_map[k]. Result axes: offset_dims hold the window's axes (without collapsed and
/// batching ones), the others the indices' leading axes, in order. operand_batching_dims[k] runs in
/// step with indices axis indices_batching_dims[k]. As XLA's Gather.
struct GatherParams {
  Axes offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
      indices_batching_dims;
  Shape slice_sizes;
  IndexMode mode = IndexMode::clip;
  bool operator==(const GatherParams&) const = default;
};
/// scatter*(operand, indices, updates): the mirror of gather: each window of `updates` (axes
/// update_window_dims) is combined into the operand at its index vector. Several updates of one
/// element are combined in row-major order of `updates`.
struct ScatterParams {
  Axes update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims,
      operand_batching_dims, indices_batching_dims;
  IndexMode mode = IndexMode::fill;
  bool unique = false;  ///< the caller promises that no element is written twice
  bool operator==(const ScatterParams&) const = default;
};
/// The gather that reads what a scatter with these parameters writes.
GatherParams gather_of(const ScatterParams&, const Shape& operand, const Shape& updates);
/// The scatter that writes what a gather with these parameters reads.
ScatterParams scatter_of(const GatherParams&);
/// Does a scatter at such indices write one window, or one for each index of its batch?
bool is_one_update(const ScatterParams&, const Shape& indices);
/// Rows first … first + count − 1 (along axis 0) of an operand of rows, or of a result of rows_add.
/// operand −1: of none; rows gives zeros there, and rows_add leaves them out.
struct RowRun {
  std::int32_t operand = 0;
  std::int64_t first = 0, count = 0;
  bool operator==(const RowRun&) const = default;
};
/// rows: arrays that differ only along axis 0 → one array, the rows of all runs in order.
/// rows_add: its transpose: one array → arrays of `extents` rows that hold the sums of the rows
/// that `rows` with these runs would have read there.
struct RowsParams {
  Vec<RowRun> runs;
  Shape extents = {};  ///< rows_add: rows of each result
  std::int64_t count() const {
    std::int64_t all = 0;
    for (const RowRun& run : runs) all += run.count;
    return all;
  }
  bool operator==(const RowsParams&) const = default;
};
/// windows: each axes[k] (increasing), of extent extents[k], becomes the axis of window numbers o,
/// and a new last axis, one for each in order, the place p inside the window: element (… o … , p …)
/// is that at strides[k] · o + dilations[k] · p. There are as many windows as lie inside the
/// operand. overlap_add is its transpose: it adds up, for each element, its copies in all windows.
struct WindowParams {
  Axes axes;
  Shape sizes, strides, dilations, extents;
  /// How many windows there are along axes[k].
  std::int64_t count(std::size_t k) const {
    const std::int64_t last = extents[k] - dilated(sizes[k], dilations[k]);
    return last < 0 ? 0 : last / strides[k] + 1;
  }
  bool operator==(const WindowParams&) const = default;
};
/// dot_general: result axes are batch axes, then lhs free, then rhs free. `dtype`: of the
/// accumulation and the result.
struct DotParams {
  Axes lhs_contract, rhs_contract, lhs_batch, rhs_batch;
  DType dtype = DType::f32;
  bool operator==(const DotParams&) const = default;
};
/// conv_general: a dot_general in which further pairs of axes, `lhs_window` and `rhs_window`, slide
/// along each other. The left one is dilated by zeros between its elements (lhs_dilation) and
/// edged by zeros (low, high; cropped where negative); result element o adds up lhs[strides · o +
/// rhs_dilation · p] · rhs[p]. Result axes: batch, lhs free, the windows' o, rhs free; with
/// `order`, axis order[i] of these as result axis i.
struct ConvParams {
  DotParams dot;
  Axes lhs_window = {}, rhs_window = {};
  Shape strides = {}, low = {}, high = {}, lhs_dilation = {}, rhs_dilation = {};
  Axes order = {};
  /// pairs of windows whose right one is read from its end; only programs have them
  /// (src/jit/fusion/conv_spec.hpp)
  Axes flipped = {};
  bool operator==(const ConvParams&) const = default;
};

/// fft and ifft: complex → complex, rfft: real → complex, irfft: complex → real. ifft and irfft
/// divide by the number of elements.
enum class FftKind : std::uint8_t { fft, ifft, rfft, irfft };
/// fft: along the last axes, as many as `lengths`, at most three, which are those of the real array
/// for rfft and irfft: the complex one has lengths.back() / 2 + 1 elements along the last axis.
/// `parts`: complex numbers are given as a last axis of two real ones.
struct FftParams {
  FftKind kind = FftKind::fft;
  Shape lengths;
  bool parts = false;
  bool operator==(const FftParams&) const = default;
};

// Linear algebra works on the last two axes; those in front are a batch, the same for all operands.
// f32 and f64.

/// triangular_solve(a, b): x with op(a) x = b, where op transposes or not; a is [n,n], only its one
/// triangle is read; b is [n,k].
struct TriangularParams {
  bool lower = true, transposed = false;
  bool unit_diagonal = false;  ///< the diagonal is not read but taken for ones
  bool operator==(const TriangularParams&) const = default;
};
/// solve(a, b) or solve(a, lu, permutation, b): x with a x = b (transposed: aᵀ x = b); b is [n,k].
/// In the second form `lu` and `permutation` are what lu gives for `a`: that is what is computed
/// with, while `a` is what the derivative is taken by.
struct SolveParams {
  bool transposed = false;
  bool operator==(const SolveParams&) const = default;
};
/// qr, eigh, svd, eig. `full`: square orthogonal factors even where a is not square. `vectors`: not
/// only the eigenvalues or singular values. `pivoted`, of qr: column j of q r is column order[j] of
/// a, where `order` is a third result, i32[n]; the diagonal of r does not grow.
struct DecompositionParams {
  bool full = false, vectors = true, pivoted = false;
  bool operator==(const DecompositionParams&) const = default;
};

/// Linear algebra of complex numbers that are given as a last axis of two real ones. `own`: the
/// op's parameters for complex numbers; `operands`: are the operands so too, or the results alone
/// (eig of real matrices)?
struct PartsParams {
  Ref<const struct Params> own;
  bool operands = true;
  bool operator==(const PartsParams&) const;
};

/// An axis of lanes that a vmap has named, or of the processes of a mesh. It is known by its
/// object: a name may come again further in, and mesh_axis gives one object for equal axes of
/// meshes.
struct NamedAxis {
  std::string name;
  std::int64_t size = 0;
  bool partial = false;  ///< some of its lanes may not run: of a pfor whose n is a Tensor
  /// of a mesh: ranks from one of the axis to the next; 0: lanes of a vmap
  std::int64_t stride = 0;
  std::int64_t ranks = 0;  ///< of the whole mesh
  bool is_of_mesh() const { return stride > 0; }
};
using AxisRef = std::shared_ptr<const NamedAxis>;
/// psum, pmax, pmin: x of all lanes combined, the same for each. all_gather: the x of all lanes
/// along a new axis 0. all_to_all: axis 0 of x has an element for each lane; result[j] of lane i is
/// x[i] of lane j. ppermute: x of another lane. spread: x, as if each process had its own.
/// axis_index: which process this one is.
struct CollectiveParams {
  AxisRef axis;
  Vec<std::int64_t> sources;  ///< ppermute: for each lane the one whose x it gets; −1: zeros
  /// Of a mesh, outside of the shard_map: what all processes share counts once. The transpose of
  /// psum is then spread, and the other way round.
  bool shared = false;
  /// Of sums in one message: which exchanges of the Graph they were, from 0 on. Else empty.
  Vec<std::int64_t> bundle = {};
  bool any_line = false;  ///< processes may come to it from several lines, as of the same function
  bool operator==(const CollectiveParams&) const = default;
};

/// (operands or residuals, tangents or cotangents) → results of either kind. Undefined Tensors are
/// zeros.
using LinearRule = Function<std::vector<Tensor>(std::span<const Tensor>, std::span<const Tensor>)>;
/// A function at a point: its results, of which the first ones have tangents, and its derivative
/// there. The rules hold no Tensors.
struct Linearization {
  std::vector<Tensor> results, residuals;
  std::size_t tangents = 0;
  LinearRule push;  ///< (residuals, tangents of the operands) → tangents of the results
  LinearRule pull;  ///< (residuals, cotangents of the results) → cotangents of the operands
};
/// The derivatives of an equation that transforms know better than its body, which only says how it
/// runs.
struct OwnDerivative {
  LinearRule forward;  ///< (operands, tangents) → results…, tangents…
  Function<Linearization(std::span<const Tensor>, const Vec<bool>& wanted)> linearize;
  /// (operands, undefined where linear; cotangents) → cotangents of those. Operands from
  /// `first_linear` on may be linear.
  LinearRule transpose = {};
  std::size_t first_linear = ~std::size_t{0};
};

/// The rules of custom_jvp, custom_vjp and custom_vmap as flat functions; which are set depends on
/// the op.
struct CustomRule {
  std::string name;
  std::shared_ptr<const OwnDerivative> own = {};  ///< custom_vjp: in place of forward and backward
  /// beside `own`: the rule of the function without its effects, if it has any
  std::shared_ptr<const CustomRule> quiet = {};
  FlatFunction jvp;  ///< (primals…, tangents…) → (outputs…, output tangents…)
  /// custom_jvp of a function linear in its first `linear` operands: (cotangents…, the other
  /// operands…) → cotangents of those
  FlatFunction transpose;
  int linear = 0;
  FlatFunction forward;   ///< (primals…) → (outputs…, residuals…)
  FlatFunction backward;  ///< (residuals…, cotangents…) → (cotangents of primals…)
  /// (axis size, which operands carry the axis (at 0), operands) → results; sets which results
  /// carry it
  Function<std::vector<Tensor>(std::int64_t, const Vec<bool>&, std::span<const Tensor>, Vec<bool>&)>
      batch;
};
struct CalledFunction;
using CalledRef = std::shared_ptr<const CalledFunction>;
/// call, checkpoint, custom_*: `body` maps the operands to the results. Operands beyond
/// `explicit_operands` are captured values that the body needs; custom rules see only the explicit
/// ones.
struct CallParams {
  GraphRef body;
  std::shared_ptr<const CustomRule> rule;
  int explicit_operands = 0;
  /// call: the body's name, and what transforms have made of it; no part of what the call means
  CalledRef function = {};
  /// call: the types of the body's results for the nodes of all calls; null: each has its own
  SharedAvalsRef results = {};
  bool operator==(const CallParams& o) const {
    return body == o.body && rule == o.rule && explicit_operands == o.explicit_operands;
  }
};

/// As a user writes it.
const char* name_of(LaneSchedule);

struct RecursiveFunction;
/// recursive_call: to a function that calls itself (see recursion.hpp), which has no sub-graph
/// here.
struct RecursionParams {
  const RecursiveFunction* function = nullptr;
  /// of the function; null inside of the bodies that it owns itself
  std::shared_ptr<const void> owner = {};
  bool operator==(const RecursionParams& o) const { return function == o.function; }
};

/// The lanes of an equation whose predicate vmap has mapped: each decides for itself, and what it
/// does not take is never run for it. The sub-graphs stay those of one lane, so that derivatives,
/// effects and termination do, too.
struct Lanes {
  std::int64_t count = -1;  ///< −1: no lanes, one predicate decides
  /// per operand: it holds a value for each lane, along axis 0; others are shared
  SmallVec<bool, 8> mapped;
  /// of the mapped axes, the outermost first, whose product is `count`: for messages
  SmallVec<std::int64_t, 2> extents = {};
  explicit operator bool() const { return count >= 0; }
  bool operator==(const Lanes&) const = default;
};
/// cond: (index, x…) → the results of branch `index`, an i32 that is clamped, on x…. With lanes
/// results hold them at axis 0.
struct CondParams {
  Vec<GraphRef> branches;
  Lanes lanes;
  bool operator==(const CondParams&) const = default;
};
/// while: (carry…, rest…) → carry…; as long as condition(carry…, rest…) gives true, carry… =
/// body(carry…, rest…). With lanes all carries hold them at axis 0.
struct WhileParams {
  GraphRef condition, body;
  int carries = 0;
  Lanes lanes;
  /// states that reverse mode keeps; 0: as many as fit in a budget of memory
  std::int64_t checkpoints = 0;
  bool operator==(const WhileParams&) const = default;
};
/// scan: (carry…, xs…, rest…) → (carry…, ys…): for each element along axis 0 of xs, (carry…, y…) =
/// body(carry…, x…, rest…).
struct ScanParams {
  GraphRef body;
  int carries = 0, sequences = 0;
  std::int64_t length = 0;
  bool reverse = false;  ///< from the last element to the first; ys lie as xs do
  /// A sum in its carries adds a term to each, which depends on no carry but a counter; in any
  /// order. Passes make it, of sums.
  bool sums = false;
  bool operator==(const ScanParams&) const = default;
};
/// batched_call: (x…) → the results of `body` on x…, for each lane: along axis 0, or their sum over
/// all lanes, in order. The body is that of one lane and is kept so by all transforms.
struct BatchedCallParams {
  GraphRef body;
  Lanes lanes;
  SmallVec<bool, 4> summed;  ///< per result
  CalledRef function = {};   ///< as in CallParams
  /// Not `groups`: a lane call, in whose body lanes go different ways.
  LaneSchedule schedule = LaneSchedule::groups;
  bool parts_lanes() const { return schedule != LaneSchedule::groups; }
  bool operator==(const BatchedCallParams& o) const {
    return body == o.body && lanes == o.lanes && summed == o.summed && schedule == o.schedule;
  }
};
/// fused_region: (x…) → the results of `body` on x…, for each lane. Formed while a program is
/// compiled, after all transforms.
struct RegionParams {
  GraphRef body;
  Lanes lanes;
  bool operator==(const RegionParams&) const = default;
};

/// The lanes that vmap has given an effect: it happens for each of them, the last extent fastest.
struct EffectLanes {
  SmallVec<std::int64_t, 2> extents;  ///< the outermost vmap first
  /// per operand: bit k, it carries extent k; these are its leading axes
  SmallVec<std::uint32_t, 4> carried = {};
  bool operator==(const EffectLanes&) const = default;
};
/// debug_print: (x…) → nothing. `text` holds {0}, {1:.3f} … where operands come.
struct PrintParams {
  std::string text;
  bool per_lane = false;
  EffectLanes lanes;  ///< only if per_lane; else mapped operands just get larger
  bool operator==(const PrintParams&) const = default;
};
/// check: (holds, x…) → nothing. Throws with `text`, filled in, if an element of `holds` is false.
/// The line is a part of it, as a program made for one line must not speak for another.
struct CheckParams {
  std::string text;
  CallSite line;
  EffectLanes lanes;
  ErrorKind kind = ErrorKind::check;
  std::string function = "vt::check";  ///< whose error it is
  bool operator==(const CheckParams& o) const {
    return text == o.text && line.file == o.line.file && line.line == o.line.line &&
           lanes == o.lanes && kind == o.kind && function == o.function;
  }
};
/// A function of the user's that runs on the host, on values.
struct HostFunction {
  std::string name;
  FlatFunction run;
  /// whose calls are the same function if their static arguments are
  std::shared_ptr<const void> callable;
  std::string static_key;
};
/// callback: (x…) → results of the given types, for each lane.
struct CallbackParams {
  std::shared_ptr<const HostFunction> function;
  Vec<Aval> results;         ///< of one lane
  bool pure = false;         ///< it may run any number of times, or not at all
  bool takes_lanes = false;  ///< it takes operands of all lanes at once, and gives results of all
  EffectLanes lanes;
  bool operator==(const CallbackParams& o) const {
    return function->callable == o.function->callable &&
           function->static_key == o.function->static_key && results == o.results &&
           pure == o.pure && takes_lanes == o.takes_lanes && lanes == o.lanes;
  }
};

/// Every struct of parameters. A new one needs its line here, a hash in params.cpp and a text in
/// printer.cpp.
// clang-format off
#define VT_PARAMS(X) \
  X(NoParams) X(ConstantParams) X(FullParams) X(IotaParams) X(ConvertParams) \
  X(PrecisionParams) X(IntegerPowParams) X(StructuralParams) X(AxesParams) X(ArgParams) \
  X(ReduceParams) X(CumulativeParams) X(SortParams) X(ShapeParams) X(PermutationParams) \
  X(BroadcastParams) X(AxisParams) X(PadParams) X(SliceParams) X(GatherParams) \
  X(ScatterParams) X(RowsParams) X(WindowParams) X(DotParams) X(ConvParams) X(FftParams) \
  X(TriangularParams) X(SolveParams) X(DecompositionParams) X(PartsParams) X(CollectiveParams) \
  X(CallParams) X(BatchedCallParams) X(RecursionParams) X(CondParams) X(WhileParams) \
  X(ScanParams) X(RegionParams) X(PrintParams) X(CheckParams) X(CallbackParams)
// clang-format on

enum class ParamsKind : std::uint8_t {
#define VT_KIND(P) P,
  VT_PARAMS(VT_KIND)
#undef VT_KIND
};
template <class P>
inline constexpr ParamsKind kind_of =
    [] { static_assert(sizeof(P) == 0, "no struct of VT_PARAMS"); }();
#define VT_KIND(P) \
  template <>      \
  inline constexpr ParamsKind kind_of<P> = ParamsKind::P;
VT_PARAMS(VT_KIND)
#undef VT_KIND

template <class P>
struct ParamsOf;

/// The parameters of an equation: one of the structs of VT_PARAMS. (A std::variant of so many costs
/// a header-only program 2,000 functions, and every literal the room of the largest.)
struct Params : RefCounted {
  const ParamsKind kind;
  explicit Params(ParamsKind k) : kind(k) {}
  virtual ~Params() = default;
  // Literals make one each: their memory comes from a free list, as that of nodes. (node.cpp)
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory, std::size_t bytes) noexcept;

  template <class P>
  [[gnu::always_inline]] bool is() const {
    return kind == kind_of<P>;
  }
  /// Null if they are another struct.
  template <class P>
  [[gnu::always_inline]] const P* get_if() const {
    return kind == kind_of<P> ? &static_cast<const ParamsOf<P>*>(this)->value : nullptr;
  }
  template <class P>
  [[gnu::always_inline]] const P& as() const {
    if (kind != kind_of<P>) [[unlikely]]
      wrong_kind(kind_of<P>);
    return static_cast<const ParamsOf<P>*>(this)->value;
  }
  [[noreturn]] void wrong_kind(ParamsKind wanted) const;
};
template <class P>
struct ParamsOf final : Params {
  P value;
  explicit ParamsOf(P&& p) : Params(kind_of<P>), value(static_cast<P&&>(p)) {}
};
/// f of the struct that `params` are.
template <class F>
decltype(auto) visit(const F& f, const Params& params) {
  switch (params.kind) {
#define VT_KIND(P) \
  case ParamsKind::P: return f(static_cast<const ParamsOf<P>&>(params).value);
    VT_PARAMS(VT_KIND)
#undef VT_KIND
  }
  __builtin_unreachable();
}

/// Null for NoParams, so that element-wise ops allocate nothing.
using ParamsRef = Ref<const Params>;
template <class P>
ParamsRef make_params(P p) {
  return ParamsRef::of_new(new ParamsOf<P>(std::move(p)));
}
bool equal(const ParamsRef& a, const ParamsRef& b);
inline bool PartsParams::operator==(const PartsParams& o) const {
  return operands == o.operands && equal(own, o.own);
}
std::size_t hash_of(const ParamsRef&);
/// The sub-graphs that an equation owns, mostly none. Walks go into them by recursion, so this is
/// where they meet the stack's end. Throws: Error if this thread's stack holds no more levels.
Vec<GraphRef> bodies_of(const ParamsRef&);
/// The same parameters with other sub-graphs, as many as bodies_of gives.
ParamsRef with_bodies(const ParamsRef&, std::span<const GraphRef>);

}  // namespace vt::detail
