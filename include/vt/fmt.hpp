// The one way vt's sources include fmt: header-only, so that prototypes link nothing; with the
// formatters for vt's types.
#pragma once

#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY
#endif
#include <fmt/format.h>

#include <vt/formatter.hpp>
