// ReplayList: all work that a program gives to the device, in order, with symbolic addresses that
// each run fills in. CUDA graphs are made of it.
#pragma once

#include <cstdint>
#include <memory>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>

#include "../libraries/library_call.hpp"
#include "compile.hpp"

namespace vt::detail::cuda {

/// Where something lies while a program is replayed: so many bytes behind a base that each run
/// tells.
struct Place {
  static constexpr int fixed = -1, scratch = -2, nowhere = -3;
  /// an input or a result of the program by its number (inputs first); or `fixed`: `offset` is the
  /// address
  int base = nowhere;
  std::uint64_t offset = 0;
  /// further by so many bytes in each of the `iterations` that it is used in
  std::int64_t step = 0;
  Place operator+(std::uint64_t bytes) const { return {base, offset + bytes, step}; }
  bool operator==(const Place&) const = default;
};

struct ReplayStep {
  enum class Kind : std::uint8_t {
    kernel,   ///< with pointers to `places`, then `numbers`
    library,  ///< `call`, for `places`
    copy,     ///< to places[0] from places[1], numbers[0] bytes
    branch,   ///< `body` runs if the i32 at places[0], within 0 … numbers[1], is numbers[0]
    /// `body` runs as long as the bool at places[0] holds, which stands there before and which it
    /// sets
    loop,
    iterations,  ///< `body` runs numbers[0] times; only in lists for one kernel
  } kind = Kind::kernel;
  std::shared_ptr<const DeviceCode> code;
  const std::string* text = nullptr;  ///< the kernel's source, where it is kept …
  double work = -1;                   ///< … and about how many operations it does; −1: not known
  std::shared_ptr<const LibraryCall> call;
  DeviceCode::Grid grid;
  SmallVec<Place, 8> places;
  Vec<std::int64_t> numbers;
  Vec<ReplayStep> body;
};

class ReplayList {
 public:
  /// `conditions`: whether the driver's graphs have branches and loops. `kernel`: it becomes one
  /// kernel, which has them anyway.
  explicit ReplayList(bool conditions, bool kernel = false)
      : conditions_(conditions || kernel), kernel_(kernel) {}

  Vec<ReplayStep> steps;
  bool has_conditions = false;  ///< a branch or a loop is in it
  bool has_libraries = false;   ///< a call of a library is in it

  bool may_have_conditions() const { return conditions_; }
  bool for_kernel() const { return kernel_; }
  /// Scratch memory until `give_back`, as steps run one after the other.
  Place take(std::size_t bytes) {
    const Place place{Place::scratch, used_};
    used_ += (bytes + 255) / 256 * 256;
    if (used_ > scratch_bytes_) scratch_bytes_ = used_;
    return place;
  }
  std::size_t taken() const { return used_; }
  void give_back(std::size_t taken) { used_ = taken; }
  std::size_t scratch_bytes() const { return scratch_bytes_; }

  /// False where there are so many steps that replaying them pays no more.
  bool add(ReplayStep step) {
    steps.push_back(std::move(step));
    return ++count_ <= most;
  }
  /// Would so many more be too many?
  bool has_room(std::int64_t more) const { return count_ + more <= most; }
  std::int64_t steps_in_all() const { return count_; }  ///< those of bodies, too
  bool copy(Place to, Place from, std::size_t bytes);
  /// Steps that `write` adds become the body of `step`, which is added.
  bool add_with_body(ReplayStep step, FunctionRef<bool()> write);
  /// A place that stays where it is from run to run: graphs of branches and loops are not changed
  /// once they are made. Small values that lie elsewhere get scratch memory, large ones stay: then
  /// the graph is made anew when they move.
  Place settled(Place place, std::size_t bytes);

 private:
  static constexpr int most = 4096;
  bool conditions_, kernel_;
  int count_ = 0;
  std::size_t used_ = 0, scratch_bytes_ = 0;
};

}  // namespace vt::detail::cuda
