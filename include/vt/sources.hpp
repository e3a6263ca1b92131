// The single list of vt's sources: `#define VT_IMPLEMENTATION` compiles them through it, and CMake reads the same lines.
// Order does not matter; one line each, sorted by folder.
#pragma once
#include "../../src/jit/cpu/compile.cpp"
#include "../../src/jit/cpu/ir_arith.cpp"
#include "../../src/jit/cpu/ir_builder.cpp"
#include "../../src/jit/cpu/ir_convert.cpp"
#include "../../src/jit/cpu/ir_memory.cpp"
#include "../../src/jit/cpu/llvm_library.cpp"
#include "../../src/jit/cpu/runtime_symbols.cpp"
#include "../../src/jit/cpu/target.cpp"
#include "../../src/trace/errors.cpp"
#include "../../src/trace/params.cpp"
#include "../../src/trace/shape_rules.cpp"
#include "../../src/trace/shape_rules_index.cpp"
#include "../../src/trace/shape_rules_structure.cpp"
#include "../../src/jit/counters.cpp"
#include "../../src/jit/execute.cpp"
#include "../../src/jit/threads.cpp"
