// Interpreter rules of the reductions, of argmax and argmin, and of the cumulative ops.
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

/// Sums and products have no meaning for bool (the frontends widen it first); max and min do.
template <template <class> class State, class T>
inline constexpr bool takes = !std::is_same_v<T, bool> || requires { State<bool>::of_bools; };

template <template <class> class State>
void run(Frame& frame) {
  const Lanes lanes(frame.in().shape, frame.params<AxesParams>().axes);
  with_type(frame.in().dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (!takes<State, T>) refuse_dtype(frame);
    else {
      const T* in = frame.read<T>();
      T* out = frame.make<T>();
      lanes.each([&](std::int64_t lane, auto&& visit) {
        State<T> state;
        visit([&](std::int64_t p) { state.add(in[p]); });
        out[lane] = state.value();
      });
    }
  });
}

void sum(Frame& frame) { run<accumulate::Sum>(frame); }
void prod(Frame& frame) { run<accumulate::Prod>(frame); }
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

/// The first position that `better` prefers to all before it; the first NaN wins over all.
template <class Better>
void arg(Frame& frame, Better better) {
  const auto& params = frame.params<ArgParams>();
  const Lanes lanes(frame.in().shape, Axes(params.axis));
  const std::int64_t n = frame.out().elements();
  const BufferRef found = allocate(static_cast<std::size_t>(n) * sizeof(std::int64_t), "argmax's indices");
  with_type(frame.in().dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* in = frame.read<T>();
    lanes.each([&](std::int64_t lane, auto&& visit) {
      std::int64_t index = 0, best = 0;
      scalar_math::Working<T> extreme{};
      visit([&](std::int64_t p) {
        const scalar_math::Working<T> x = in[p];
        if constexpr (is_real_type<T>) {
          if (index == 0 || (!std::isnan(extreme) && (std::isnan(x) || better(x, extreme)))) extreme = x, best = index;
        } else if (index == 0 || better(x, extreme)) {
          extreme = x, best = index;
        }
        ++index;
      });
      found->as<std::int64_t>()[lane] = best;
    });
  });
  void* out = frame.make_bytes();
  convert_elements(found->data, DType::i64, out, frame.out().dtype, static_cast<std::size_t>(n));
}

void argmax(Frame& frame) {
  arg(frame, [](auto x, auto y) { return x > y; });
}
void argmin(Frame& frame) {
  arg(frame, [](auto x, auto y) { return x < y; });
}

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

template <template <class> class State>
void run(Frame& frame) {
  const auto& params = frame.params<CumulativeParams>();
  const Shape& shape = frame.in().shape;
  const auto axis = static_cast<std::size_t>(params.axis);
  const std::int64_t n = shape[axis], inner = row_major_strides(shape)[axis];
  const std::int64_t lanes = n == 0 ? 0 : shape.elements() / n;
  const std::int64_t step = params.reverse ? -inner : inner, begin = params.reverse ? (n - 1) * inner : 0;
  with_type(frame.in().dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (!interp_reduce::takes<State, T>) refuse_dtype(frame);
    else {
      const T* in = frame.read<T>();
      T* out = frame.make<T>();
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        State<T> state;
        std::int64_t p = lane / inner * (n * inner) + lane % inner + begin;
        for (std::int64_t i = 0; i < n; ++i, p += step) {
          state.add(in[p]);
          out[p] = state.value();
        }
      }
    }
  });
}

void sum(Frame& frame) { run<accumulate::Sum>(frame); }
void prod(Frame& frame) { run<accumulate::Prod>(frame); }
void max(Frame& frame) { run<accumulate::Max>(frame); }
void min(Frame& frame) { run<accumulate::Min>(frame); }
void logsumexp(Frame& frame) {
  if (!is_float(frame.in().dtype)) refuse_dtype(frame);
  run<accumulate::LogSumExp>(frame);
}

}  // namespace interp_cumulative
}  // namespace vt::detail
