// What tests ask of the stand-ins for the toolkit's libraries (libraries.cpp),
// exported under these names.
#pragma once

extern "C" {

/// A call of `function` (its exported name) fails with `status`: the first that comes after
/// `after_calls` others.
void vt_library_fail(const char* function, int after_calls, int status);
/// How often it was called.
long long vt_library_calls(const char* function);
}
