// What the distributions share: a checked call of vt::random, and numbers made of the key's bits.
#pragma once

#include <string>

#include <vt/detail/message.hpp>
#include <vt/random.hpp>

#include "../support/operands.hpp"
#include "exact_functions.hpp"

namespace vt::detail::randoms {

/// One function of vt::random: its name for messages, its key, and where the caller stands.
struct Draw {
  std::string name;
  Tensor key;
  CallSite where;

  Draw(const char* function, const Operand& k)
      : name(std::string("random::") + function), key(k.tensor), where(k.where) {
    need(name, key, where);
    if (key.dtype() != u64 || key.rank() != 0)
      refuse(ErrorKind::value, name,
             "a key is one u64, made by vt::random::key or split; vmap over several", key, where);
  }

  void want_float(DType d) const {
    if (!is_float(d))
      refuse(ErrorKind::dtype, name, formatted("{} is no float dtype", name_of(d)), key, where);
  }
  void want_shape(const Shape& shape) const {
    need_size(name, u64, shape, {&key, 1}, where);  // of the bits
  }
  /// A parameter of the distribution in the shape and dtype of the draw.
  Tensor parameter(const Operand& p, const Shape& shape, DType d) const {
    need(name, p.tensor, where);
    want_shape(shape);
    if (!broadcasts_to(p.tensor.shape(), shape))
      refuse(ErrorKind::shape, name, formatted("a parameter does not broadcast to {}", shape.str()),
             p.tensor, where);
    const Tensor t = cast(p.tensor, d, where);
    return t.rank() == 0 ? t : broadcast(t, shape, where);
  }
};

// random/random.cpp
Tensor hashed(const Tensor& key, const Tensor& counter, CallSite where);
/// The hash of every element's number, u64.
Tensor words(const Draw& d, const Shape& shape);
/// Unsigned integers with every bit random.
Tensor bits(const Draw& d, const Shape& shape, DType dtype);
/// [0, 1)
Tensor unit(const Draw& d, const Shape& shape, DType dtype);
/// (0, 1): for functions with a pole at 0.
Tensor open_unit(const Draw& d, const Shape& shape, DType dtype);
Tensor exponential(const Draw& d, const Shape& shape, DType dtype);
Tensor gumbel(const Draw& d, const Shape& shape, DType dtype);
/// Refuses logits without any along an axis.
void want_classes(const Draw& d, const Tensor& logits, int axis);
Tensor normal(const Draw& d, const Shape& shape, DType dtype);
/// A normal number from u in (−1, 1).
Tensor normal_at(const Tensor& u, CallSite where);
/// What distributions are computed in: f32 for the 16-bit floats, whose functions are too coarse.
inline DType working(DType d) { return d == f64 ? f64 : f32; }
/// For logarithms and the like of draws: a function's result in f64, rounded to f32, has the same
/// bits on every backend, whose own functions of f32 are right to two units in the last place but
/// not equal.
inline Tensor wide(const Tensor& t) { return cast(t, f64, {}); }
/// Functions in f64 of numbers of dtype d. Where d is f64 itself nothing rounds the last digits
/// away: then they are made of what all round alike.
inline Tensor log_of(const Tensor& x, DType d) { return d == f64 ? exact::log(x) : log(wide(x)); }
inline Tensor log1p_of(const Tensor& x, DType d) {
  return d == f64 ? exact::log1p(x) : log1p(wide(x));
}
inline Tensor exp_of(const Tensor& x, DType d) { return d == f64 ? exact::exp(x) : exp(wide(x)); }
/// The key of part `number` of a draw.
inline Draw part(const Draw& d, std::uint64_t number) {
  Draw p = d;
  p.key = hashed(d.key, full_tensor(Scalar(number), Aval(u64, Shape{})), d.where);
  return p;
}

}  // namespace vt::detail::randoms
