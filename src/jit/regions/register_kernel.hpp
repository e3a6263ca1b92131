// Register kernels: control-flow equations and fused regions whose values are few enough for
// registers. Each becomes one function with its loops and branches, which runs a vector of lanes at
// a time if it has lanes.
#pragma once

#include <algorithm>
#include <cstdint>

#include <vt/detail/small_vec.hpp>

#include "../../trace/elements/element_maps.hpp"
#include "../../trace/ir/graph.hpp"
#include "lane_form.hpp"

namespace vt::detail {

/// What an executor can hold and compile in one function; these numbers are a CPU's.
struct RegisterLimits {
  /// Elements of a value for each lane, where lanes go side by side and no element's place is known
  /// only when the code runs: what does not fit in registers then lies in the frame, from which an
  /// instruction reads an operand.
  std::int64_t of_a_lane = 96;
  /// And of values whose elements are only brought to other places, which takes no instructions:
  /// LaneForm::most_in_registers there.
  std::int64_t moved = 288;
  /// The same where no loops are inside, whose rows had to be laid out: Jacobians, mostly zeros.
  std::int64_t moved_without_loops = 4096;
  /// So many lanes may also compute on values of more elements: what else goes through memory
  /// between steps, Jacobians most of all, goes through the nearest cache then.
  std::int64_t fewest_lanes = 8, several_lanes = 64, of_several = 288;
  std::int64_t computed(std::int64_t lanes) const {
    return lanes >= several_lanes ? std::max(of_a_lane, of_several) : of_a_lane;
  }
  /// … and of those that are mostly zeros of derivatives.
  std::int64_t sparse(std::int64_t lanes) const {
    return lanes >= fewest_lanes ? moved_without_loops : of_a_lane;
  }
  /// Instructions, about, each for a vector of lanes; more would take long to compile and spill
  /// what they keep.
  std::int64_t instructions = 16000;
  /// A step of a program takes as long as so many operations on scalars, about: it is found, called
  /// and goes through memory. 0: functions of scalars take no more than registers hold.
  std::int64_t operations_of_a_step = 300;
  /// Of many lanes, which run 10 to 60 times faster so than step by step through memory: a tenth of
  /// a millisecond each to compile. Loops from fewest_lanes on: programs of as many equations take
  /// longer to compile.
  std::int64_t instructions_of_many = 60000, many_lanes = 256;
  /// Of Jacobians, where no more than half of what they are made of is left to compute, or where
  /// there are no lanes: other forms of these take many steps, and compute the zeros.
  std::int64_t instructions_of_sparse = 140000;
  /// Elements of a lane's own that come from memory and go back. Bringing those of the lanes side
  /// by side is not counted above; functions with 9,000 of them, what stages of a larger one hand
  /// on to each other, took LLVM 20 seconds.
  std::int64_t of_rows = 3000;
  /// Rows of at most so many elements are put together in a lane's registers rather than by lanes
  /// along them. The same on every machine with the same executor, as it gives sums an order; 0:
  /// never.
  std::int64_t short_row = 32;
  /// Bytes of a lane's own arrays that are unset at first (FullParams), which lie in the frame: of
  /// these only what is written is touched. 0: they are like others.
  std::int64_t of_unset = std::int64_t{1} << 15;
  bool recursion = true;           ///< may functions call themselves?
  bool (*has_code)(Op) = nullptr;  ///< which element-wise ops it has code for; null: for all
};

/// From so many rows on, the rows of sums without lanes are lanes.
constexpr std::int64_t least_summed_rows = 1024;

/// Loops inside a loop may make arrays (what a scan inside gives in its iterations, and the rows
/// that are made of that). Where there are no lanes and the executor has memory for them in the
/// function's frame, they lie there, so many bytes at most.
constexpr std::int64_t most_in_frame = std::int64_t{1} << 16;
/// Per Var: is it an array that is unset at first, or what loops make of one? Whatever its size, it
/// lies in the frame. `given`: the inputs that are.
Vec<bool> unset_arrays(const GraphBody&, const Vec<bool>& given = {});

/// LaneForm::known of an equation's operands: integers that the Graph fills arrays with. `maker`:
/// see Fusion.
Vec<std::optional<std::int64_t>> known_integers(const GraphBody&, const Vec<int>& maker,
                                                const Equation&);

/// The (only) equation of `alone` in the form to compile, if it can be compiled so: for each lane
/// if it has lanes of its own or iterations that do the same along an axis, else as it is. `frame`:
/// bytes of arrays that the function may have of its own.
std::optional<LaneForm> register_form(const GraphBody& alone, std::int64_t frame = 0,
                                      const RegisterLimits& limits = {});
/// Is a lane call that recurs in such a form, and does its schedule leave that open? Of others
/// the loops inside are.
bool lanes_in_registers(const Equation& lane_call, std::int64_t frame = 0,
                        const RegisterLimits& limits = {});
/// If the lane call's lanes run in groups: is each loop or branch that calls recursive functions in
/// such a form then?
bool recursions_in_registers(const Equation& lane_call, std::int64_t frame = 0);
/// Can it be compiled so? The emitter counts on what is checked here.
bool fits_registers(const LaneForm&, std::int64_t frame = 0, const RegisterLimits& limits = {});
/// About the instructions of a gather, a scatter, a dynamic slice or its update in registers, where
/// the places are known only when the code runs: choices among all elements.
std::int64_t operations_of_choices(const GraphBody&, const Equation&);
/// About how many instructions its function has, each for a vector of lanes.
std::int64_t register_cost(const LaneForm&);
/// At most about how many it runs in a call, if a vector has 8 lanes; very many for loops that go
/// on until a condition is met.
double register_work(const LaneForm&);

/// Is a window of such sizes one run of memory?
bool is_run(const Shape& shape, const Shape& sizes);
/// An order for copies between arrays (`from[k]` to `to[k]`, by number) in which none is
/// overwritten before it is read, if there is one.
std::optional<Vec<std::size_t>> copy_order(const Vec<int>& to, const Vec<int>& from);

}  // namespace vt::detail
