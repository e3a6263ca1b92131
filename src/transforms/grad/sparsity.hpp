// Sparsity of derivatives: an element of a tangent that nothing reaches stays 0, whatever it is
// multiplied by.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"
#include "../../trace/record/node.hpp"

namespace vt::detail {

/// Which elements of a tangent are reached: 0 or 1 for each, in row-major order, for one direction
/// after the other. Null: all are, in every direction.
using SparsityPattern = std::shared_ptr<const std::vector<char>>;

/// The pattern of rows `start` … of the identity on `elements` elements.
SparsityPattern identity_pattern(std::int64_t start, std::int64_t rows, std::int64_t elements);

/// What a Graph needs beside its own inputs, in this order, behind them.
struct SparsityMask {
  Tensor value;       ///< a constant, bool
  bool by_direction;  ///< along axis 0 is one for each direction
};
struct MaskedGraph {
  GraphBody graph;
  Vec<SparsityMask> masks;
};

/// `graph` is linear in its first inputs, whose patterns are `linear`; the others are `captured`.
/// The same Graph in which elements that no direction reaches are 0: they come from its first
/// inputs as −0, to which sums add nothing, and factors and terms that would make NaN of them are
/// left out. Its results have +0 there. Reach is by element where an op says so by its form
/// (element-wise, moves, sums, products), from any to all elsewhere; never by values. Nothing where
/// all elements of everything are reached.
std::optional<MaskedGraph> keep_zeros(const GraphBody& graph, const Vec<SparsityPattern>& linear,
                                      std::span<const Tensor> captured, std::int64_t directions);

/// Records `f`, which is linear, for dense `arguments`, and runs it so.
std::vector<Tensor> with_zeros_kept(const FlatFunction& f, std::span<const Tensor> arguments,
                                    const char* transform);

enum class LinearDirection { push, pull };
/// May factors meet elements that are reached by none, where dense tangents are pushed through or
/// dense cotangents pulled back?
bool may_be_sparse(const GraphBody& linear, LinearDirection);

}  // namespace vt::detail
