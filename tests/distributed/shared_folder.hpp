// What tests of files on several ranks share: a folder that all of them use, and ranks of any
// number.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <unistd.h>

#include "distributed/ranks.hpp"

namespace vt_test {

/// A folder of that name, the same on all processes, empty; it goes with this.
class SharedFolder {
 public:
  explicit SharedFolder(const std::string& name) {
    // A name of their own for tests that run at the same time.
    const auto all = vt::distributed::mesh({{"all", -1}});
    const vt::Tensor ids =
        vt::distributed::gather(vt::full({1}, std::int64_t{::getpid()}), all, vt::sharded("all"));
    path_ = std::filesystem::temp_directory_path() /
            ("vt_" + name + "_" + std::to_string(ids[0].item<std::int64_t>()));
    if (vt::distributed::rank() == 0) {
      std::filesystem::remove_all(path_);
      std::filesystem::create_directories(path_);
    }
    vt::distributed::barrier();
  }
  ~SharedFolder() {
    std::error_code ignored;
    if (vt::distributed::rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Runs `program` on so many ranks: on the processes if there are so many, else on threads of the
/// first one, for which the others wait.
inline void on_any_ranks(int ranks, const std::function<void()>& program) {
  if (!is_process() || vt::distributed::size() == ranks) {
    on_ranks(ranks, program);
  } else if (vt::distributed::rank() == 0) {
    vt::distributed::simulate(ranks, program);
  }
  if (is_process()) vt::distributed::barrier();
}

/// The part by hand.
inline vt::Tensor part_by_hand(vt::Tensor x, const vt::distributed::Mesh& mesh,
                               const vt::Sharding& sharding) {
  for (const vt::Sharding::Cut& c : sharding.cuts()) {
    const std::int64_t n = x.dim(c.dim) / mesh.size(c.axis), i = mesh.index(c.axis);
    x = vt::slice_in_dim(x, i * n, (i + 1) * n, c.dim);
  }
  return x;
}

/// The same bits?
inline bool same_bits(const vt::Tensor& a, const vt::Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && vt::all(vt::equal(a, b)).item<bool>();
}

}  // namespace vt_test
