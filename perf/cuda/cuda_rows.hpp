// Rows of the CUDA benchmarks: what each times, and how it is timed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <vt/vt.hpp>

namespace perf {

/// What a row tells.
struct CudaRow {
  std::string name;
  double seconds = 0;  ///< of one call: on the device by events, on the host where the row says so
  double bytes = 0;    ///< that the work reads and writes at least
  double flops = 0;
  std::string unit;  ///< "device", "host" or "process"
};

class CudaBenchmark {
 public:
  /// `tiny`: sizes with which the emulator comes to an end, each row run once or twice.
  CudaBenchmark(bool tiny, std::string filter);
  bool tiny() const { return tiny_; }
  bool wanted(const std::string& name) const;
  /// A size as it is, or the tiny one.
  std::int64_t size(std::int64_t full, std::int64_t tiny) const { return tiny_ ? tiny : full; }
  /// The time that the device takes for a call of `body`, which gives work to it and waits for
  /// nothing: the median of several groups of calls, between two events.
  void device(const std::string& name, const std::function<void()>& body, double bytes = 0,
              double flops = 0);
  /// The time of the calling thread for a call, while the device is behind.
  void host(const std::string& name, const std::function<void()>& body);
  void add(CudaRow row);
  const std::vector<CudaRow>& rows() const { return rows_; }

 private:
  bool tiny_;
  std::string filter_;
  std::vector<CudaRow> rows_;
};

/// Memory and arithmetic: copies, element-wise chains, reductions, softmax, layer norm, products.
void cuda_kernel_rows(CudaBenchmark&);
/// Per-example gradients, Jacobians, an LSTM over ragged sequences.
void cuda_model_rows(CudaBenchmark&);

/// A tensor of the device.
vt::Tensor on_device(const vt::Tensor& x);

}  // namespace perf
