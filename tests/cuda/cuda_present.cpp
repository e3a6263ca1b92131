// Whether a CUDA device can be used here: prints which, with the versions of driver and NVRTC; else
// why not, and ends with 77.
#include <cstdio>
#include <string>

#include "src/jit/cuda/driver/device.hpp"

int main() {
  namespace cuda = vt::detail::cuda;
  std::string reason;
  const cuda::Driver* driver = cuda::driver(&reason);
  const cuda::Nvrtc* nvrtc = driver ? cuda::nvrtc(&reason) : nullptr;
  if (!driver || !nvrtc) {
    std::fprintf(stderr, "no CUDA device can be used: %s\n", reason.c_str());
    return 77;
  }
  try {
    int version = 0, major = 0, minor = 0;
    driver->cuDriverGetVersion(&version);
    nvrtc->nvrtcVersion(&major, &minor);
    const cuda::DeviceFacts& facts = cuda::CudaDevice::get(0).facts();
    std::printf("%s, compute capability %d.%d, driver for CUDA %d.%d, NVRTC %d.%d\n",
                facts.name.c_str(), facts.major, facts.minor, version / 1000, version % 1000 / 10,
                major, minor);
  } catch (const vt::Error& e) {
    std::fprintf(stderr, "no CUDA device can be used: %s\n", e.what());
    return 77;
  }
  return 0;
}
