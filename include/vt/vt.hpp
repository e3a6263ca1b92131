// What users include: the public headers, nothing else; with VT_IMPLEMENTATION defined (in one file of a program) also the sources.
#pragma once

// The sources need IEEE arithmetic (NaN, infinities, signed zeros, sums in the order they are written).
#if defined(VT_IMPLEMENTATION) && (defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || \
    defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__) || __FINITE_MATH_ONLY__ > 0)
#if defined(__clang__)
#error "vt: clang cannot compile VT_IMPLEMENTATION under -ffast-math, -Ofast or -ffinite-math-only: \
compile this one file without (the other files of the program may keep it)"
#elif defined(_STL_ALGOBASE_H) || defined(_GLIBCXX_CMATH)
#error "vt: under -ffast-math <vt/vt.hpp> has to be the first include of the file with VT_IMPLEMENTATION: \
move it to the front, or compile this file without -ffast-math"
#else
#define VT_STRICT_MATH
#pragma GCC push_options
#pragma GCC optimize("no-fast-math", "no-unsafe-math-optimizations", "no-finite-math-only")
#pragma GCC optimize("no-associative-math", "no-reciprocal-math", "signed-zeros", "trapping-math")
#endif
#endif

#include <vt/collectives.hpp>
#include <vt/control.hpp>
#include <vt/conv.hpp>
#include <vt/custom.hpp>
#include <vt/dataset.hpp>
#include <vt/dlpack.hpp>
#include <vt/dtype.hpp>
#include <vt/effects.hpp>
#include <vt/error.hpp>
#include <vt/execution.hpp>
#include <vt/fft.hpp>
#include <vt/function.hpp>
#include <vt/generator.hpp>
#include <vt/grad.hpp>
#include <vt/graph.hpp>
#include <vt/jit.hpp>
#include <vt/linalg.hpp>
#include <vt/npy.hpp>
#include <vt/ops.hpp>
#include <vt/random.hpp>
#include <vt/shape.hpp>
#include <vt/solvers.hpp>
#include <vt/special.hpp>
#include <vt/tensor.hpp>
#include <vt/tensor_list.hpp>
#include <vt/tree.hpp>
#include <vt/variable.hpp>
#include <vt/vmap.hpp>
// fmt::format("{}", tensor) works in any file that has fmt; only fmt's small header is read here.
#if __has_include(<fmt/core.h>)
#include <vt/formatter.hpp>
#endif

#ifdef VT_IMPLEMENTATION
#include <vt/sources.hpp>
#endif
#ifdef VT_STRICT_MATH
#undef VT_STRICT_MATH
#pragma GCC pop_options
#endif
