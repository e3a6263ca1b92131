// Interpreter rule of fft.
#include "../numerics/fft_kernels.hpp"
#include "interpreter.hpp"

namespace vt::detail::interp_fft {

void fft(Frame& frame) {
  const FftSpec spec = fft_spec(frame.params<FftParams>(), frame.in());
  run_fft(spec, frame.bytes(), frame.make_bytes(),
          [](std::int64_t total, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
            body(context, 0, total);
          });
}

}  // namespace vt::detail::interp_fft
