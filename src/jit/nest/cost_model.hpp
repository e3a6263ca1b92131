// The cost model of schedules and fusion: costs of ops and accesses in units of a vector addition,
// and the sizes from which something pays.
#pragma once

#include <cstdint>
#include <string>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

struct SimdStep;

/// What the machine's parts take: measured on a machine (src/jit/cpu/machine_costs.hpp), or these
/// numbers. Read only by choices that change no
/// bit of a result: how threads share iterations and whether they are woken, the vector loop of
/// stages without reductions, tiles. What shapes reductions goes by the constants below, so that
/// results are the same on every machine with vectors of the same length.
struct MachineCosts {
  /// where the levels below end
  static constexpr double cache_bytes[] = {32 << 10, 512 << 10, 16 << 20};
  double vector_ns = 0.25;  ///< a vector operation, as one of a long body
  /// of a vector of f32, in vector operations; other functions in proportion
  double exp = 15;
  double gather = 0.8;     ///< a SIMD lane of one, in vector operations
  double wake_ns = 16384;  ///< until a sleeping thread has begun
  /// that one thread reads from the first, second, third cache and memory
  double bytes_per_ns[4] = {200, 120, 80, 15};
  int measured = 0;  ///< so many times

  /// About the time of a kernel on one thread.
  double nanoseconds(std::uint64_t vector_operations, std::uint64_t bytes) const;
  /// From here on another thread is woken: it halves the time, and takes wake_ns to come.
  double worth_waking() const { return 2 * wake_ns; }
  /// Between a quarter and four times the numbers above (waking: twice), whatever a busy machine
  /// seemed to take.
  MachineCosts bounded() const;
  /// The better of each of both, if both were measured: other work only makes a machine slower.
  MachineCosts better(const MachineCosts&) const;
  std::string str() const;
};

/// Bytes that no cache holds, as far as one can tell from shapes.
inline constexpr std::int64_t beyond_all_caches = std::int64_t{64} << 20;

/// Cost of one op in about the cost of an addition; of one that only says which element is meant,
/// of what it adds to the index.
int op_weight(Op, DType);
/// The same on this machine: for choices that change no bit.
double op_cost(Op, DType, const MachineCosts&);

namespace scheduling {

/// bytes that the second level of caches does not hold
inline constexpr std::int64_t beyond_near_caches = std::int64_t{1} << 20;
/// larger bodies are emitted once, with masks, as code generation dominates
inline constexpr int masked_body_weight = 80;
inline constexpr std::int64_t block_elements = 32768;  ///< of a cut reduction
inline constexpr std::int64_t block_rows = 256;        ///< at least, for vertical ones
/// blocks of a vertical reduction; with fewer, threads share the columns
inline constexpr std::int64_t worth_sharing = 8;
/// work of a scan's iteration that outweighs cache lines fetched for a few elements
inline constexpr int worth_jumping = 40;
/// of transposed tiles: lines at the same offset in as many pages fit the second-level cache
inline constexpr int rows_in_flight = 256;
/// work of a body whose operations wait for each other longer than the processor looks ahead
inline constexpr int worth_two_registers = 20;
/// the same where a vector has registers_for_two bytes: such processors look less far ahead
inline constexpr int worth_two_short_registers = 12;
/// bytes of a vector: what does not fit the 16 registers of such sets costs less than waiting
inline constexpr int registers_for_two = 32;
/// bytes of the narrowest vectors, which every x86-64 has
inline constexpr int shortest_vector = 16;
/// at the end of a horizontal reduction, and for each vector of a running one, by SIMD lanes
inline constexpr double combining_simd_lanes = 12;
/// shuffles for a vector of a result that is stored between others
inline constexpr double weaving = 2;

/// Of transposed blocks: bytes on end of each row that comes from far (128 to 256 took a tenth to a
/// third longer), and bytes of their arrays on the stack, which are a part of the second-level
/// cache.
inline constexpr std::int64_t cache_line = 64, run_from_far = 512,
                              transposed_bytes = std::int64_t{64} << 10;
/// Work of an iteration beside which memory would be idle, so that the next row is asked for
/// meanwhile, and bytes of rows that wait for it in the second-level cache.
inline constexpr int worth_fetching = 10;
inline constexpr std::int64_t row_bytes_ahead = std::int64_t{128} << 10;

/// A load of a vector whose SIMD lanes move so; a store costs half as much again. `transposed`:
/// through squares that are transposed in registers, a shuffle for each doubling of the rows and
/// the way over the stack.
double access_cost(const SimdStep&, int simd_lanes, bool transposed, const MachineCosts& = {});

/// As decisions print costs.
std::string cost_text(double);

}  // namespace scheduling

}  // namespace vt::detail
