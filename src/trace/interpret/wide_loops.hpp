// Element-wise rules as loops over elements that are widened to f64, i64 or u64 piece by piece and
// rounded once: a loop per op and kind of number instead of one per op and dtype. In double, + − ×
// ÷ and √ of narrower floats round as they would at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "interpreter.hpp"

namespace vt::detail::wide_loops {

/// out[i] = f(a[i]) or f(a[i], b[i]).
using Loop = void (*)(const void* f, const void* a, const void* b, void* out, std::size_t n);
template <class W, class F>
void loop(const void* f, const void* a, const void* b, void* out, std::size_t n) {
  const F& call = *static_cast<const F*>(f);
  const W *x = static_cast<const W*>(a), *y = static_cast<const W*>(b);
  if constexpr (std::is_invocable_v<const F&, W, W>) {
    auto* to = static_cast<std::invoke_result_t<const F&, W, W>*>(out);
    for (std::size_t i = 0; i < n; ++i) to[i] = call(x[i], y[i]);
  } else {
    auto* to = static_cast<std::invoke_result_t<const F&, W>*>(out);
    for (std::size_t i = 0; i < n; ++i) to[i] = call(x[i]);
  }
}

/// Runs the loop over the equation's one or two operands; one of rank 0 stands for all elements.
/// Operands are read as of dtype `seen_as`, which is as wide as theirs, and widened; results are of
/// dtype `result` before they become the equation's.
void run(Frame&, DType seen_as, DType result, Loop, const void* f);

template <class W, class F>
void run(Frame& frame, DType seen_as, const F& f) {
  using Result = typename std::conditional_t<std::is_invocable_v<const F&, W, W>,
                                             std::invoke_result<const F&, W, W>,
                                             std::invoke_result<const F&, W>>::type;
  static_assert(std::is_same_v<Result, W> || std::is_same_v<Result, bool>);
  run(frame, seen_as, std::is_same_v<Result, bool> ? DType::bool_ : wide_of(seen_as), loop<W, F>,
      &f);
}

/// The integer dtype of the same size.
constexpr DType word_of(DType dtype, bool is_signed = false) {
  switch (size_of(dtype)) {
    case 1: return is_signed ? DType::i8 : DType::u8;
    case 2: return is_signed ? DType::i16 : DType::u16;
    case 4: return is_signed ? DType::i32 : DType::u32;
    default: return is_signed ? DType::i64 : DType::u64;
  }
}

/// f of doubles, for the floats only.
template <class F>
void floats(Frame& frame, const F& f) {
  if (!is_float(frame.in().dtype)) refuse_dtype(frame);
  run<double>(frame, frame.in().dtype, f);
}
/// f of the elements' bits with zeros in front; the result is cut to as many bits.
template <class F>
void words(Frame& frame, const F& f) {
  run<std::uint64_t>(frame, word_of(frame.in().dtype), f);
}
/// f for integers (and bool where `bools`) as words: right for what two's complement does alike for
/// both signs.
template <class F>
void integer_words(Frame& frame, const F& f, bool bools = false) {
  if (!is_int(frame.in().dtype) && !(bools && is_bool(frame.in().dtype))) refuse_dtype(frame);
  words(frame, f);
}
/// f for doubles and for words.
template <class F>
void floats_and_words(Frame& frame, const F& f, bool bools = false) {
  is_float(frame.in().dtype) ? floats(frame, f) : integer_words(frame, f, bools);
}
/// f for i64 and u64.
template <class F>
void integers(Frame& frame, const F& f, bool bools = false) {
  const DType dtype = frame.in().dtype;
  if (is_signed_int(dtype)) run<std::int64_t>(frame, dtype, f);
  else if (is_int(dtype) || (bools && is_bool(dtype))) run<std::uint64_t>(frame, dtype, f);
  else refuse_dtype(frame);
}
/// f for double, i64 and u64.
template <class F>
void numbers(Frame& frame, const F& f, bool bools = false) {
  is_float(frame.in().dtype) ? floats(frame, f) : integers(frame, f, bools);
}

}  // namespace vt::detail::wide_loops
