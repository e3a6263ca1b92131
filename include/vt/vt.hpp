// What users include: the public headers, nothing else; with VT_IMPLEMENTATION defined (in one file
// of a program) also the sources.
#pragma once

// The sources need IEEE arithmetic: NaN, infinities, signed zeros, sums in the order they are
// written. No pragma gives it back whole: under GCC's comparisons with NaN stay wrong.
#if defined(VT_IMPLEMENTATION) &&                                                               \
    (defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
     defined(__NO_SIGNED_ZEROS__) || __FINITE_MATH_ONLY__ > 0)
#error \
    "vt: compile the file with VT_IMPLEMENTATION without -ffast-math, -Ofast, -ffinite-math-only, \
-funsafe-math-optimizations and -fno-signed-zeros (give it a file of its own; the program's other \
files may keep them)"
#endif

#if !defined(__cpp_exceptions)
#error "vt: errors are exceptions: compile files that include vt without -fno-exceptions"
#endif
#if __SIZEOF_POINTER__ < 8
#error "vt: 64-bit processors only (no -m32)"
#endif

// A header of the system may have macros of these names, of which neither vt nor the standard
// library's headers know.
#pragma push_macro("max")
#pragma push_macro("min")
#undef max
#undef min

#include <complex>  // the numbers that elements of c64 and c128 are given and read as

#include <vt/autobatch.hpp>
#include <vt/collectives.hpp>
#include <vt/control.hpp>
#include <vt/conv.hpp>
#include <vt/custom.hpp>
#include <vt/dataset.hpp>
#include <vt/distributed.hpp>
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
#include <vt/indexing.hpp>
#include <vt/jit.hpp>
#include <vt/lanes.hpp>
#include <vt/linalg.hpp>
#include <vt/minimize.hpp>
#include <vt/npy.hpp>
#include <vt/ode.hpp>
#include <vt/ops.hpp>
#include <vt/optim.hpp>
#include <vt/optimizers.hpp>
#include <vt/print.hpp>
#include <vt/random.hpp>
#include <vt/shape.hpp>
#include <vt/solution.hpp>
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
#include <vt/detail/sources.hpp>
#endif

#pragma pop_macro("max")
#pragma pop_macro("min")
