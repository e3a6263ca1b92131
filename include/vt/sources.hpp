// The single list of vt's sources: `#define VT_IMPLEMENTATION` compiles them through it, and CMake reads the same lines.
// Order does not matter; one line each, sorted by folder.
#pragma once
