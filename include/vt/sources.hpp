// The single list of vt's sources: `#define VT_IMPLEMENTATION` compiles them through it, and CMake reads the same lines.
// Order does not matter; one line each, sorted by folder.
#pragma once
#include "../../src/trace/errors.cpp"
#include "../../src/trace/params.cpp"
#include "../../src/trace/shape_rules.cpp"
#include "../../src/trace/shape_rules_index.cpp"
#include "../../src/trace/shape_rules_structure.cpp"
