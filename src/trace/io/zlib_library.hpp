// The functions of zlib that inflate, loaded at run time and declared here.
#pragma once

#include <string>

namespace vt::detail {

/// zlib's z_stream (npz_test.cpp compares it and the functions with zlib.h).
struct ZStream {
  const unsigned char* next_in = nullptr;
  unsigned available_in = 0;
  unsigned long total_in = 0;
  unsigned char* next_out = nullptr;
  unsigned available_out = 0;
  unsigned long total_out = 0;
  const char* message = nullptr;
  void* state = nullptr;
  void* (*allocate)(void*, unsigned, unsigned) = nullptr;
  void (*release)(void*, void*) = nullptr;
  void* opaque = nullptr;
  int data_type = 0;
  unsigned long adler = 0;
  unsigned long reserved = 0;
};

#define VT_ZLIB_FUNCTIONS(X)                               \
  X(inflateInit2_, int, (ZStream*, int, const char*, int)) \
  X(inflate, int, (ZStream*, int))                         \
  X(inflateEnd, int, (ZStream*))

/// One pointer per function of the library in use.
struct Zlib {
#define VT_ZLIB_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  VT_ZLIB_FUNCTIONS(VT_ZLIB_MEMBER)
#undef VT_ZLIB_MEMBER
  enum : int { ok = 0, stream_end = 1, buffer_error = -5, no_flush = 0, out_of_memory = -4 };
};

/// zlib, loaded on the first call; any thread. Null where there is none: then `why` says so.
/// VT_ZLIB_LIBRARY names a file, or "none".
const Zlib* zlib(std::string& why);

/// The outcome of one attempt to load, for tests of the refusals: empty when the library at `path`
/// has every function.
std::string zlib_try_library(const std::string& path);

}  // namespace vt::detail
