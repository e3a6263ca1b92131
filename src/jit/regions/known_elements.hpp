// Which elements of small values are numbers when code is made, and what is left to compute.
#pragma once

#include <cstdint>
#include <optional>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// Is it a derivative with zeros that transforms have kept (as −0), or does an equation assume that
/// all is finite? Then many elements may be known.
bool keeps_zeros(const GraphBody&);

/// Follows a Graph's equations in order, as emitters of register kernels do, which know as much: a
/// unit matrix, and where the rows of a Jacobian stay 0.
class KnownElements {
 public:
  /// Values of more elements than `most` are not followed.
  KnownElements(const GraphBody& graph, std::int64_t most)
      : graph_(graph), most_(most), elements_(graph.avals.size()) {}

  /// The next equation. How many element-wise operations are left of it, where it has any: the
  /// elements of its result or, of sums and products, their terms.
  std::int64_t add(const Equation&);
  /// Are the numbers of the elements that an index op picks known?
  bool knows_places(const Equation&) const;
  /// Of a float value: 1 for the elements that are not known to be 0, and the zeros of the others.
  struct Zeros {
    BufferRef elsewhere;  ///< of bool
    BufferRef numbers;    ///< of the value's dtype; 0 for those that are not known
  };
  /// Nothing if none is.
  std::optional<Zeros> zeros(Var) const;

 private:
  /// A whole number, or NaN: not known.
  using Elements = Vec<float>;

  const Elements& of(Var v) const { return elements_[v]; }
  float element(Var v, std::size_t k) const;
  bool follows(Var v) const { return graph_.aval(v).elements() <= most_; }
  void leaf(const Equation&, Elements&) const;
  std::int64_t elementwise(const Equation&, Elements&) const;
  void moved(const Equation&, Elements&) const;
  std::int64_t sums(const Equation&, Elements&) const;
  std::int64_t products(const Equation&, Elements&) const;

  const GraphBody& graph_;
  const std::int64_t most_;
  Vec<Elements> elements_;  ///< per Var; empty: none is known
};

}  // namespace vt::detail
