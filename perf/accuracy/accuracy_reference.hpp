// Declares the references of perf/accuracy: glibc's functions in f64, a block at a time, and in
// x87's 64 bits where f64 leaves a doubt.
#pragma once

#include <cstdint>

namespace perf {

/// One function of one or two numbers; `y` is not read by those of one.
struct Reference {
  const char* name;
  /// within 4 ulp of f64; null: vt's own f64 kernel
  void (*block)(const float* x, const float* y, double* out, std::int64_t n);
  /// within 2 ulp of x87's format; may be null
  long double (*wide)(long double x, long double y);
};

/// The reference of that name, or one without functions.
Reference reference_of(const char* name);

/// Error of `got` in units of the spacing of floats at `exact`; infinite where NaN, infinities or
/// the signs of zeros disagree.
double ulp_error(float got, long double exact);
void ulp_errors(const float* got, const double* exact, double* error, std::int64_t n);

}  // namespace perf
