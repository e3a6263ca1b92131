// Convolutions of dilated images on the CPU: one convolution of the undilated image for each offset
// between two of its elements, so that no zero is multiplied.
#include "conv.hpp"

#include "../llvm/llvm_library.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <cstring>
#include <memory>

#include "../../../trace/base/buffer.hpp"
#include "../../../trace/base/convert.hpp"
#include "../../services/threads.hpp"

namespace vt::detail::cpu {

namespace conv_phases {

// Results that a thread takes at once to convert them or to hand them over, while they are in the
// second-level cache.
constexpr std::int64_t most_elements = 16 << 10;

class Phases : public Matmul {
 public:
  Phases(const ConvSpec& s, const Vec<ConvSpec>& phases)
      : accumulate_(s.accumulate),
        result_(s.result),
        columns_(s.rows_in_order ? s.columns.extent : 1),
        elements_(s.results()) {
    for (ConvSpec phase : phases) {
      phase.result = phase.accumulate;
      if (std::any_of(phase.windows.begin(), phase.windows.end(),
                      [](const ConvWindow& w) { return w.size == 0; }))
        gaps_ = true;
      else phases_.push_back(make_convolution(phase));
    }
  }

  void run(const void* a, const void* b, void* c, const RowsDone& done,
           const PackedOperands&) const override {
    const auto size = static_cast<std::int64_t>(size_of(accumulate_));
    BufferRef sums;
    if (own_sums(done)) sums = allocate(elements_ * size, "vt::conv: sums");
    char* const to = static_cast<char*>(sums ? sums->data : c);
    if (gaps_)
      parallel_ranges(elements_, most_elements, [&](std::int64_t from, std::int64_t end) {
        std::memset(to + from * size, 0, (end - from) * size);
      });
    for (const auto& phase : phases_) phase->run(a, b, to);
    if (!done && result_ == accumulate_) return;
    const std::int64_t group = done.group() * columns_;
    parallel_ranges(
        elements_ / group, std::max<std::int64_t>(most_elements / group, 1),
        [&](std::int64_t from, std::int64_t end) {
          const std::int64_t first = from * group, last = end * group;
          if (result_ != accumulate_)
            convert_elements(
                to + first * size, accumulate_,
                static_cast<char*>(c) + first * static_cast<std::int64_t>(size_of(result_)),
                result_, last - first);
          done(first / columns_, last / columns_, done.alone() ? to + first * size : nullptr);
        });
  }

  // The phases run one after the other.
  std::size_t scratch_bytes(const RowsDone& done, bool, bool) const override {
    std::size_t most = 0;
    for (const auto& phase : phases_) most = std::max(most, phase->scratch_bytes({}, false, false));
    return most + (own_sums(done) ? elements_ * size_of(accumulate_) : 0);
  }

  std::string describe() const override {
    return std::to_string(phases_.size()) + " phases" +
           (phases_.empty() ? "" : ", " + phases_[0]->describe());
  }

 private:
  bool own_sums(const RowsDone& done) const { return result_ != accumulate_ || done.alone(); }

  DType accumulate_, result_;
  std::int64_t columns_, elements_;
  bool gaps_ = false;  ///< some results see no element
  Vec<std::shared_ptr<const Matmul>> phases_;
};

}  // namespace conv_phases

std::shared_ptr<const Matmul> make_phases(const ConvSpec& s, const Vec<ConvSpec>& phases) {
  return std::make_shared<conv_phases::Phases>(s, phases);
}

}  // namespace vt::detail::cpu

#endif
