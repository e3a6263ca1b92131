// Interpreter rules of the reductions, of argmax and argmin, and of the cumulative ops. All but `reduce` widen their operand,
// work on doubles or 64-bit integers, and round once at the end.
#include <cmath>
#include <utility>

#include "accumulate.hpp"
#include "interpreter.hpp"

namespace vt::detail {

namespace interp_reduce {

/// The operand's axes sorted into kept and reduced ones, neighbours of one kind merged.
struct Lanes {
  Shape kept, kept_strides, reduced, reduced_strides;

  Lanes(const Shape& shape, const Axes& axes) {
    const Shape strides = row_major_strides(shape);
    int before = -1;  // kind of the axis before: 0 kept, 1 reduced
    for (int i = 0; i < shape.rank(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const int kind = axes.contains(i) ? 1 : 0;
      Shape &extents = kind ? reduced : kept, &steps = kind ? reduced_strides : kept_strides;
      if (kind == before) {
        extents.back() *= shape[at];
        steps.back() = strides[at];
      } else {
        extents.push_back(shape[at]);
        steps.push_back(strides[at]);
      }
      before = kind;
    }
  }

  /// Calls f(lane, visit) per result element; visit(g) calls g with the position of each of its operand's elements, in
  /// row-major order.
  template <class F>
  void each(F&& f) const {
    std::int64_t lane = 0;
    walk(kept, 0, kept_strides, [&](std::int64_t start) {
      f(lane++, [&](auto&& visit) { walk(reduced, start, reduced_strides, visit); });
    });
  }
};

template <template <class> class State>
void run(Frame& frame) {
  const Lanes lanes(frame.in().shape, frame.params<AxesParams>().axes);
  const BufferRef wide = frame.widened();
  BufferRef results = frame.scratch(static_cast<std::size_t>(frame.out().elements()) * 8);
  with_wide_type(frame.in().dtype, [&](auto tag) {
    using W = decltype(tag);
    const W* in = wide->as<const W>();
    W* out = results->as<W>();
    lanes.each([&](std::int64_t lane, auto&& visit) {
      State<W> state;
      visit([&](std::int64_t p) { state.add(in[p]); });
      out[lane] = state.value();
    });
  });
  frame.narrow(std::move(results));
}

/// Sums and products have no meaning for bool; the frontends widen it first.
void need_numbers(const Frame& frame) {
  if (is_bool(frame.in().dtype)) refuse_dtype(frame);
}

void sum(Frame& frame) {
  need_numbers(frame);
  run<accumulate::Sum>(frame);
}
void prod(Frame& frame) {
  need_numbers(frame);
  run<accumulate::Prod>(frame);
}
void max(Frame& frame) { run<accumulate::Max>(frame); }
void min(Frame& frame) { run<accumulate::Min>(frame); }

/// Whether `wanted` occurs in each lane, as `found`.
void search(Frame& frame, bool wanted, bool found) {
  if (!is_bool(frame.in().dtype)) refuse_dtype(frame);
  const Lanes lanes(frame.in().shape, frame.params<AxesParams>().axes);
  const bool* in = frame.read<bool>();
  bool* out = frame.make<bool>();
  lanes.each([&](std::int64_t lane, auto&& visit) {
    bool seen = !found;
    visit([&](std::int64_t p) {
      if (in[p] == wanted) seen = found;
    });
    out[lane] = seen;
  });
}

void any(Frame& frame) { search(frame, true, true); }
void all(Frame& frame) { search(frame, false, false); }

template <class W>
bool is_nan(W x) {
  if constexpr (std::is_floating_point_v<W>) return std::isnan(x);
  else return false;
}

/// The first position of the greatest element (`sign` 1) or the least one (−1); the first NaN wins over all.
void arg(Frame& frame, int sign) {
  const auto& params = frame.params<ArgParams>();
  const Lanes lanes(frame.in().shape, Axes(params.axis));
  const auto n = static_cast<std::size_t>(frame.out().elements());
  const BufferRef wide = frame.widened(), found = frame.scratch(n * sizeof(std::int64_t));
  with_wide_type(frame.in().dtype, [&](auto tag) {
    using W = decltype(tag);
    const W* in = wide->as<const W>();
    lanes.each([&](std::int64_t lane, auto&& visit) {
      std::int64_t index = 0, best = 0;
      W extreme{};
      visit([&](std::int64_t p) {
        const W x = in[p];
        const bool better = !is_nan(extreme) && (is_nan(x) || (sign > 0 ? x > extreme : x < extreme));
        if (index == 0 || better) extreme = x, best = index;
        ++index;
      });
      found->as<std::int64_t>()[lane] = best;
    });
  });
  void* out = frame.make_bytes();
  convert_elements(found->data, DType::i64, out, frame.out().dtype, n);
}

void argmax(Frame& frame) { arg(frame, 1); }
void argmin(Frame& frame) { arg(frame, -1); }

/// (operands…, inits…): runs the body on (results so far…, elements…) for one element after the other.
void reduce(Frame& frame) {
  const auto& params = frame.params<ReduceParams>();
  const std::size_t count = frame.inputs.size() / 2;
  const Lanes lanes(frame.in().shape, params.axes);
  for (std::size_t i = 0; i < count; ++i) frame.make_bytes(i);
  std::vector<BufferRef> arguments(2 * count);
  lanes.each([&](std::int64_t lane, auto&& visit) {
    std::vector<BufferRef> results(frame.inputs.begin() + static_cast<std::ptrdiff_t>(count), frame.inputs.end());
    visit([&](std::int64_t p) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t size = size_of(frame.in(i).dtype);
        arguments[i] = std::move(results[i]);
        arguments[count + i] = borrow_memory(frame.bytes(i) + static_cast<std::size_t>(p) * size, size);
      }
      results = interpret(*params.body, arguments);
    });
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t size = size_of(frame.out(i).dtype);
      std::memcpy(frame.outputs[i]->as<std::byte>() + static_cast<std::size_t>(lane) * size, results[i]->data, size);
    }
  });
}

}  // namespace interp_reduce

namespace interp_cumulative {

/// One lane after the other; `make` gives a fresh state.
template <class W, class Make>
void run(Frame& frame, Make make) {
  const auto& params = frame.params<CumulativeParams>();
  const Shape& shape = frame.in().shape;
  const auto axis = static_cast<std::size_t>(params.axis);
  const std::int64_t n = shape[axis], inner = row_major_strides(shape)[axis];
  const std::int64_t lanes = n == 0 ? 0 : shape.elements() / n;
  const std::int64_t step = params.reverse ? -inner : inner, begin = params.reverse ? (n - 1) * inner : 0;
  const BufferRef wide = frame.widened();
  BufferRef results = frame.scratch(static_cast<std::size_t>(shape.elements()) * 8);
  const W* in = wide->as<const W>();
  W* out = results->as<W>();
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    auto state = make();
    std::int64_t p = lane / inner * (n * inner) + lane % inner + begin;
    for (std::int64_t i = 0; i < n; ++i, p += step) {
      state.add(in[p]);
      out[p] = state.value();
    }
  }
  frame.narrow(std::move(results));
}

template <template <class> class State>
void run_wide(Frame& frame) {
  with_wide_type(frame.in().dtype, [&](auto tag) {
    using W = decltype(tag);
    run<W>(frame, [] { return State<W>(); });
  });
}

void sum(Frame& frame) {
  interp_reduce::need_numbers(frame);
  run_wide<accumulate::Sum>(frame);
}
void prod(Frame& frame) {
  interp_reduce::need_numbers(frame);
  run_wide<accumulate::Prod>(frame);
}
void max(Frame& frame) { run_wide<accumulate::Max>(frame); }
void min(Frame& frame) { run_wide<accumulate::Min>(frame); }
void logsumexp(Frame& frame) {
  if (!is_float(frame.in().dtype)) refuse_dtype(frame);
  run<double>(frame, [] { return accumulate::LogSumExp(); });
}

}  // namespace interp_cumulative
}  // namespace vt::detail
