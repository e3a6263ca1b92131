// cuSOLVER, where it is found.
#include "solver_library.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>

#include <vt/detail/message.hpp>

#include "../../../trace/base/locks.hpp"
#include "../../../trace/record/thread_state.hpp"

namespace vt::detail::cuda {

namespace solver_loading {

#define VT_CUDA_NAME(name, parameters) #name,
constexpr const char* names[] = {VT_CUSOLVER_FUNCTIONS(VT_CUDA_NAME)};
#undef VT_CUDA_NAME

const LoadedLibrary<Solver>& loaded() {
  static const auto* const result =
      new LoadedLibrary<Solver>("cusolver", {"12", "11"}, "VT_CUSOLVER_LIBRARY", names);
  return *result;
}

// One for each device, for its stream; its lock is held while work is handed over.
struct Handle {
  LongMutex<> mutex;
  SolverHandle handle = nullptr;
  SolverParams params = nullptr;
  std::string reason;
  bool tried = false;
};
Handle& handle_of(const CudaDevice& device) {
  static Handle* const all = new Handle[64];  // never destroyed: as many as there can be devices
  return all[device.index()];
}

// Its lock is held.
void make(const CudaDevice& device, Handle& h) {
  h.tried = true;
  h.reason = loaded().reason;
  if (!h.reason.empty()) return;
  const Solver& s = loaded().table;
  device.enter();
  const auto failed = [&](Result r, const char* what) {
    if (r != SolverConstant::CUSOLVER_STATUS_SUCCESS) h.reason = formatted("{}: error {}", what, r);
    return r != SolverConstant::CUSOLVER_STATUS_SUCCESS;
  };
  if (failed(s.cusolverDnCreate(&h.handle), "cusolverDnCreate")) return;
  if (!failed(s.cusolverDnSetStream(h.handle, device.stream()), "cusolverDnSetStream") &&
      !failed(s.cusolverDnCreateParams(&h.params), "cusolverDnCreateParams"))
    return;
  static_cast<void>(s.cusolverDnDestroy(h.handle));
  h.handle = nullptr;
}

class Call : public LibraryCall {
 public:
  explicit Call(const SolverTask& task)
      : t_(task),
        wide_(task.dtype == DType::f64),
        type_(wide_ ? SolverConstant::CUDA_R_64F : SolverConstant::CUDA_R_32F) {}
  const char* library() const override { return "cuSOLVER"; }
  // Some routines look at what the device found before they go on.
  bool may_be_captured() const override { return false; }

  // Empty, or why it cannot be. Sizes are asked for without addresses, which do not change them.
  std::string prepare(const CudaDevice& device, std::int64_t* work_bytes) {
    Handle& h = handle_of(device);
    const std::lock_guard lock(h.mutex);
    if (!h.tried) make(device, h);
    if (!h.reason.empty()) return h.reason;
    device.enter();
    const auto too_large = [](std::int64_t size) { return size > std::numeric_limits<int>::max(); };
    if (t_.routine == Routine::orgqr && (too_large(t_.m) || too_large(t_.n)))
      return "orgqr counts to 2³¹";
    if (const Result r = ask_sizes(h)) return formatted("{}: error {}", size_name(), r);
    host_.resize(host_bytes_);
    *work_bytes = static_cast<std::int64_t>(device_bytes_);
    return {};
  }

  void run(const CudaDevice& device, Stream, std::span<const DevicePtr> given) const override {
    Handle& h = handle_of(device);
    const std::lock_guard lock(h.mutex);
    const auto number = static_cast<std::int64_t>(size_of(t_.dtype));
    const std::int64_t columns = std::max(t_.a_columns, t_.n), least = std::min(t_.m, t_.n);
    for (std::int64_t matrix = 0; matrix < t_.batch; ++matrix) {
      // Where this matrix's part of each array begins, by its size.
      std::size_t next = 0;
      const auto part = [&](std::int64_t bytes) {
        const DevicePtr base = given[next++];
        return reinterpret_cast<void*>(base ? base + static_cast<DevicePtr>(matrix * bytes) : base);
      };
      Result status = 0;
      void* const a = part(t_.m * columns * number);
      switch (t_.routine) {
        case Routine::potrf: {
          auto* const info = static_cast<int*>(part(4));
          status = table().cusolverDnXpotrf(
              h.handle, h.params, SolverConstant::CUBLAS_FILL_MODE_UPPER, t_.m, type_, a, t_.m,
              type_, part(0), device_bytes_, host_.data(), host_bytes_, info);
          break;
        }
        case Routine::getrf: {
          auto* const pivots = static_cast<std::int64_t*>(part(least * 8));
          auto* const info = static_cast<int*>(part(4));
          status = table().cusolverDnXgetrf(h.handle, h.params, t_.m, t_.n, type_, a, t_.m, pivots,
                                            type_, part(0), device_bytes_, host_.data(),
                                            host_bytes_, info);
          break;
        }
        case Routine::getrs: {
          const auto* const pivots = static_cast<const std::int64_t*>(part(least * 8));
          void* const b = part(t_.m * t_.k * number);
          status = table().cusolverDnXgetrs(
              h.handle, h.params,
              t_.transposed ? SolverConstant::CUBLAS_OP_T : SolverConstant::CUBLAS_OP_N, t_.m, t_.k,
              type_, a, t_.m, pivots, type_, b, t_.m, static_cast<int*>(part(4)));
          break;
        }
        case Routine::geqrf: {
          void* const tau = part(least * number);
          auto* const info = static_cast<int*>(part(4));
          status = table().cusolverDnXgeqrf(h.handle, h.params, t_.m, t_.n, type_, a, t_.m, type_,
                                            tau, type_, part(0), device_bytes_, host_.data(),
                                            host_bytes_, info);
          break;
        }
        case Routine::orgqr: {
          const void* const tau = part(t_.k * number);
          auto* const info = static_cast<int*>(part(4));
          const int m = static_cast<int>(t_.m), n = static_cast<int>(t_.n),
                    k = static_cast<int>(t_.k),
                    work = static_cast<int>(device_bytes_ / size_of(t_.dtype));
          status = wide_ ? table().cusolverDnDorgqr(h.handle, m, n, k, static_cast<double*>(a), m,
                                                    static_cast<const double*>(tau),
                                                    static_cast<double*>(part(0)), work, info)
                         : table().cusolverDnSorgqr(h.handle, m, n, k, static_cast<float*>(a), m,
                                                    static_cast<const float*>(tau),
                                                    static_cast<float*>(part(0)), work, info);
          break;
        }
        case Routine::syevd: {
          void* const values = part(t_.m * number);
          auto* const info = static_cast<int*>(part(4));
          status = table().cusolverDnXsyevd(
              h.handle, h.params, mode(), SolverConstant::CUBLAS_FILL_MODE_LOWER, t_.m, type_, a,
              t_.m, type_, values, type_, part(0), device_bytes_, host_.data(), host_bytes_, info);
          break;
        }
        case Routine::gesvd: {
          void* const values = part(t_.n * number);
          void* const u = part(t_.m * t_.k * number);
          void* const vt = part(t_.n * t_.n * number);
          auto* const info = static_cast<int*>(part(4));
          status =
              table().cusolverDnXgesvd(h.handle, h.params, job(), job(), t_.m, t_.n, type_, a, t_.m,
                                       type_, values, type_, u, t_.m, type_, vt, t_.n, type_,
                                       part(0), device_bytes_, host_.data(), host_bytes_, info);
        }
      }
      if (status != SolverConstant::CUSOLVER_STATUS_SUCCESS)
        fail(status == SolverConstant::CUSOLVER_STATUS_ALLOC_FAILED ? ErrorKind::memory
                                                                    : ErrorKind::backend,
             formatted(
                 "vt: {}: error {} of cuSOLVER; VT_CUSOLVER_LIBRARY=none does without cuSOLVER",
                 name(), status),
             thread_state().where);
      // What a routine keeps on the host the next one writes over.
      if (host_bytes_)
        device.check(device.driver().cuStreamSynchronize(device.stream()), "cuStreamSynchronize");
    }
  }

 private:
  using Routine = SolverTask::Routine;
  static const Solver& table() { return loaded().table; }
  const char* name() const {
    constexpr const char* all[] = {"cusolverDnXpotrf", "cusolverDnXgetrf", "cusolverDnXgetrs",
                                   "cusolverDnXgeqrf", "cusolverDnXorgqr", "cusolverDnXsyevd",
                                   "cusolverDnXgesvd"};
    return all[static_cast<int>(t_.routine)];
  }
  std::string size_name() const { return formatted("{}_bufferSize", name()); }
  int mode() const {
    return t_.vectors ? SolverConstant::CUSOLVER_EIG_MODE_VECTOR
                      : SolverConstant::CUSOLVER_EIG_MODE_NOVECTOR;
  }
  signed char job() const { return t_.vectors ? t_.k > t_.n ? 'A' : 'S' : 'N'; }

  Result ask_sizes(const Handle& h) {
    const Solver& s = table();
    std::size_t *const on_device = &device_bytes_, *const on_host = &host_bytes_;
    switch (t_.routine) {
      case Routine::potrf:
        return s.cusolverDnXpotrf_bufferSize(h.handle, h.params,
                                             SolverConstant::CUBLAS_FILL_MODE_UPPER, t_.m, type_,
                                             nullptr, t_.m, type_, on_device, on_host);
      case Routine::getrf:
        return s.cusolverDnXgetrf_bufferSize(h.handle, h.params, t_.m, t_.n, type_, nullptr, t_.m,
                                             type_, on_device, on_host);
      case Routine::getrs: return 0;
      case Routine::geqrf:
        return s.cusolverDnXgeqrf_bufferSize(h.handle, h.params, t_.m, t_.n, type_, nullptr, t_.m,
                                             type_, nullptr, type_, on_device, on_host);
      case Routine::orgqr: {
        const int m = static_cast<int>(t_.m), n = static_cast<int>(t_.n),
                  k = static_cast<int>(t_.k);
        int numbers = 0;
        const Result r =
            wide_ ? s.cusolverDnDorgqr_bufferSize(h.handle, m, n, k, nullptr, m, nullptr, &numbers)
                  : s.cusolverDnSorgqr_bufferSize(h.handle, m, n, k, nullptr, m, nullptr, &numbers);
        device_bytes_ = numbers * size_of(t_.dtype);
        return r;
      }
      case Routine::syevd:
        return s.cusolverDnXsyevd_bufferSize(
            h.handle, h.params, mode(), SolverConstant::CUBLAS_FILL_MODE_LOWER, t_.m, type_,
            nullptr, t_.m, type_, nullptr, type_, on_device, on_host);
      case Routine::gesvd:
        return s.cusolverDnXgesvd_bufferSize(h.handle, h.params, job(), job(), t_.m, t_.n, type_,
                                             nullptr, t_.m, type_, nullptr, type_, nullptr, t_.m,
                                             type_, nullptr, t_.n, type_, on_device, on_host);
    }
    return 0;
  }

  SolverTask t_;
  bool wide_;
  int type_;
  std::size_t device_bytes_ = 0, host_bytes_ = 0;
  mutable Vec<char> host_;  // that the routine works in, under the handle's lock
};

}  // namespace solver_loading

SolverCall solver_call(const CudaDevice& device, const SolverTask& task, std::string* reason) {
  SolverCall made;
  auto call = std::make_shared<solver_loading::Call>(task);
  *reason = call->prepare(device, &made.work_bytes);
  if (reason->empty()) made.call = std::move(call);
  return made;
}

}  // namespace vt::detail::cuda
