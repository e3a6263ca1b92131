// cuFFT, where it is found.
#include "fft_library.hpp"

#include <memory>
#include <mutex>

#include <vt/detail/message.hpp>

#include "../../../trace/base/locks.hpp"
#include "../../../trace/record/thread_state.hpp"

namespace vt::detail::cuda {

namespace fft_loading {

#define VT_CUDA_NAME(name, parameters) #name,
constexpr const char* names[] = {VT_CUFFT_FUNCTIONS(VT_CUDA_NAME)};
#undef VT_CUDA_NAME

const LoadedLibrary<Fft>& loaded() {
  static const auto* const result =
      new LoadedLibrary<Fft>("cufft", {"12", "11"}, "VT_CUFFT_LIBRARY", names);
  return *result;
}

// A plan is made once for each place in a program where it is used.
class Call : public LibraryCall {
 public:
  Call(const CudaDevice& device, const FftSpec& spec) : device_(device), spec_(spec) {}
  ~Call() override {
    if (!made_) return;
    device_.enter_quietly();
    static_cast<void>(loaded().table.cufftDestroy(plan_));
  }
  const char* library() const override { return "cuFFT"; }

  // Empty, or why there is no plan.
  std::string prepare(std::int64_t* work_bytes) {
    const Fft& f = loaded().table;
    device_.enter();
    const bool wide = spec_.part == DType::f64;
    const int type =
        spec_.kind == FftKind::rfft    ? wide ? FftConstant::CUFFT_D2Z : FftConstant::CUFFT_R2C
        : spec_.kind == FftKind::irfft ? wide ? FftConstant::CUFFT_Z2D : FftConstant::CUFFT_C2R
        : wide                         ? FftConstant::CUFFT_Z2Z
                                       : FftConstant::CUFFT_C2C;
    long long lengths[3] = {};
    for (std::size_t i = 0; i < spec_.lengths.size(); ++i) lengths[i] = spec_.lengths[i];
    std::size_t work = 0;
    if (const Result r = f.cufftCreate(&plan_)) return formatted("cufftCreate: error {}", r);
    made_ = true;
    // Memory to work in is the program's: nothing is allocated while a graph is captured.
    if (const Result r = f.cufftSetAutoAllocation(plan_, 0))
      return formatted("cufftSetAutoAllocation: error {}", r);
    if (const Result r =
            f.cufftMakePlanMany64(plan_, static_cast<int>(spec_.lengths.size()), lengths, nullptr,
                                  1, 0, nullptr, 1, 0, type, spec_.batch, &work))
      return formatted("cufftMakePlanMany64: error {}", r);
    *work_bytes = static_cast<std::int64_t>(work);
    return {};
  }

  // Real operands that begin between two complex numbers' places, and all that it may write over,
  // are copied first.
  std::int64_t copy_bytes() const {
    std::int64_t elements = spec_.batch;
    for (std::int64_t n : spec_.lengths) elements *= n;
    const auto number = static_cast<std::int64_t>(size_of(spec_.part));
    if (spec_.kind == FftKind::rfft) return elements * number;
    return spec_.kind == FftKind::irfft ? spec_.batch * (spec_.lengths[0] / 2 + 1) * 2 * number : 0;
  }

  void run(const CudaDevice& device, Stream stream,
           std::span<const DevicePtr> addresses) const override {
    const Fft& f = loaded().table;
    const std::lock_guard lock(mutex_);
    need(f.cufftSetStream(plan_, stream), "cufftSetStream");
    need(f.cufftSetWorkArea(plan_, reinterpret_cast<void*>(addresses[2])), "cufftSetWorkArea");
    DevicePtr at = addresses[0];
    if (spec_.kind == FftKind::irfft || (spec_.kind == FftKind::rfft && at % 16 != 0)) {
      at = addresses[3];
      device.check(device.driver().cuMemcpyDtoDAsync_v2(
                       at, addresses[0], static_cast<std::size_t>(copy_bytes()), stream),
                   "cuMemcpyDtoDAsync");
    }
    auto *from = reinterpret_cast<void*>(at), *to = reinterpret_cast<void*>(addresses[1]);
    const bool wide = spec_.part == DType::f64;
    const int direction = spec_.kind == FftKind::ifft ? FftConstant::inverse : FftConstant::forward;
    if (spec_.kind == FftKind::rfft)
      need(wide ? f.cufftExecD2Z(plan_, static_cast<double*>(from), to)
                : f.cufftExecR2C(plan_, static_cast<float*>(from), to),
           "cufftExecR2C");
    else if (spec_.kind == FftKind::irfft)
      need(wide ? f.cufftExecZ2D(plan_, from, static_cast<double*>(to))
                : f.cufftExecC2R(plan_, from, static_cast<float*>(to)),
           "cufftExecC2R");
    else
      need(wide ? f.cufftExecZ2Z(plan_, from, to, direction)
                : f.cufftExecC2C(plan_, from, to, direction),
           "cufftExecC2C");
  }

 private:
  static void need(Result r, const char* what) {
    if (r == FftConstant::CUFFT_SUCCESS) return;
    fail(r == FftConstant::CUFFT_ALLOC_FAILED ? ErrorKind::memory : ErrorKind::backend,
         formatted("vt: {}: error {} of cuFFT; VT_CUFFT_LIBRARY=none does without cuFFT", what, r),
         thread_state().where);
  }

  const CudaDevice& device_;
  FftSpec spec_;
  FftHandle plan_ = 0;
  bool made_ = false;
  mutable LongMutex<> mutex_;
};

}  // namespace fft_loading

FftCall fft_call(const CudaDevice& device, const FftSpec& spec, std::string* reason) {
  using namespace fft_loading;
  FftCall made;
  *reason = loaded().reason;
  if (!reason->empty()) return made;
  if (spec.lengths.size() > 3) *reason = "it has more than three axes";
  else if (spec.kind == FftKind::irfft && spec.lengths.size() > 1)
    *reason = "it goes to real numbers along several axes";
  if (!reason->empty()) return made;
  auto call = std::make_shared<Call>(device, spec);
  *reason = call->prepare(&made.work_bytes);
  if (!reason->empty()) return made;
  made.copy_bytes = call->copy_bytes();
  made.call = std::move(call);
  return made;
}

}  // namespace vt::detail::cuda
