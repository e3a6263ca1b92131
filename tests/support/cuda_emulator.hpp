// Lets a test use the emulated CUDA driver and compiler (tests/cuda_emulator) in the place of
// NVIDIA's, and gives it their controls.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "cuda_emulator/control.hpp"

namespace vt_test {

/// The emulator's controls, by name as in cuda_emulator/control.hpp.
struct Emulator {
  decltype(&::vt_emulator_fail) fail;
  decltype(&::vt_emulator_reset) reset;
  decltype(&::vt_emulator_set_seed) set_seed;
  decltype(&::vt_emulator_set_streams) set_streams;
  decltype(&::vt_emulator_set_races) set_races;
  decltype(&::vt_emulator_count) count;
  decltype(&::vt_emulator_report) report;
  decltype(&::vt_emulator_sources) sources;
  decltype(&::vt_emulator_source) source;
};

/// To be called before anything asks for a driver (at the begin of main, or while static variables
/// are made): sets VT_CUDA_LIBRARY and VT_NVRTC_LIBRARY to the emulator, unless they are set
/// already, and that there is no cuBLAS, cuFFT or cuSOLVER. Null where another driver is set: the
/// tests then run on that one.
inline const Emulator* use_cuda_emulator() {
  const char* chosen = std::getenv("VT_CUDA_LIBRARY");
  if (chosen && std::string(chosen) != VT_EMULATOR_LIBRARY) return nullptr;
  ::setenv("VT_CUDA_LIBRARY", VT_EMULATOR_LIBRARY, 0);
  ::setenv("VT_NVRTC_LIBRARY", VT_EMULATOR_LIBRARY, 0);
  // the real ones need a real driver
  for (const char* library : {"VT_CUBLAS_LIBRARY", "VT_CUFFT_LIBRARY", "VT_CUSOLVER_LIBRARY"})
    ::setenv(library, "none", 0);
  static const Emulator* const made = [] {
    void* library = ::dlopen(VT_EMULATOR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) return static_cast<Emulator*>(nullptr);
    auto* e = new Emulator;
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    };
    find(e->fail, "vt_emulator_fail");
    find(e->reset, "vt_emulator_reset");
    find(e->set_seed, "vt_emulator_set_seed");
    find(e->set_streams, "vt_emulator_set_streams");
    find(e->set_races, "vt_emulator_set_races");
    find(e->count, "vt_emulator_count");
    find(e->report, "vt_emulator_report");
    find(e->sources, "vt_emulator_sources");
    find(e->source, "vt_emulator_source");
    return e;
  }();
  return made;
}

}  // namespace vt_test
