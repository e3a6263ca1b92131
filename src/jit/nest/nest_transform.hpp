// Rewriting of whole loop nests: joining adjacent loops, splitting loops at divisions, cutting long
// reductions.
#pragma once

#include <span>

#include "loop_nest.hpp"

namespace vt::detail {

/// Replaces loop variables in every index expression of the nest; −1 leaves one as it is.
void substitute_loops(Nest&, const Vec<IndexId>& replacement);

/// Splits loops so that quotients and remainders by a constant become loops of their own, and joins
/// adjacent loops that every access walks through as one.
void normalise_loops(Nest&);

/// Splits `loop` into iterations of `by`, which must divide its extent: the loop keeps the outer
/// iterations, the inner ones are a new loop.
int split_loop(Nest&, int loop, std::int64_t by);
/// Makes one loop of `outer` and `inner`, which has a fixed extent: it keeps inner's number, and
/// indices divide where they must.
void join_by_division(Nest&, int outer, int inner);

/// Cuts reduce loop `loop` into blocks of `block` iterations: a new, ordinary loop (returned)
/// counts the blocks.
int cut_loop(Nest&, int loop, std::int64_t block);

/// Element-wise nests whose results lie along a short loop inside a longer one (coordinates of
/// points, channels of pixels, a stack of arrays): the short loop's iterations become one body,
/// whose stores lie side by side, so that SIMD lanes can go along the longer loop.
void unroll_short_loop(Nest&);

/// Leaves the nest and the list of what is behind its buffers with those in `order`, in that order;
/// all others are unused.
void keep_buffers(Nest&, Vec<Var>& behind, const Vec<int>& order);

/// Says which buffers may share memory: a result that is stored where one operand was read, element
/// by element. `wanted`: per buffer, for a result the operand that it should rather share with, or
/// −1.
void find_updates_in_place(Nest&, std::span<const int> wanted = {});

}  // namespace vt::detail
