// What users include: the public headers, nothing else; with VT_IMPLEMENTATION defined (in one file of a program) also the sources.
#pragma once

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
