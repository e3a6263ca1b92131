// VT_WITH_LINE: functions with any number of arguments that know their caller's file and line.
#pragma once

#include <cstddef>
#include <utility>

#include <vt/error.hpp>

/// Defines `name(f, arguments…)`, whose result is declared `[[nodiscard]] auto` or `auto`, as
/// `name_at(where, f, arguments…)`. Behind a pack there is no room for the default argument that
/// asks for the line, so every number of arguments up to five has an overload of its own; for more
/// no line is known.
#define VT_WITH_LINE(result, name, name_at)                                                 \
  template <class F>                                                                        \
  result name(F f, CallSite where = CallSite::here()) {                                     \
    return name_at(where, std::move(f));                                                    \
  }                                                                                         \
  template <class F, class A>                                                               \
  result name(F f, const A& a, CallSite where = CallSite::here()) {                         \
    return name_at(where, std::move(f), a);                                                 \
  }                                                                                         \
  template <class F, class A, class B>                                                      \
  result name(F f, const A& a, const B& b, CallSite where = CallSite::here()) {             \
    return name_at(where, std::move(f), a, b);                                              \
  }                                                                                         \
  template <class F, class A, class B, class C>                                             \
  result name(F f, const A& a, const B& b, const C& c, CallSite where = CallSite::here()) { \
    return name_at(where, std::move(f), a, b, c);                                           \
  }                                                                                         \
  template <class F, class A, class B, class C, class D>                                    \
  result name(F f, const A& a, const B& b, const C& c, const D& d,                          \
              CallSite where = CallSite::here()) {                                          \
    return name_at(where, std::move(f), a, b, c, d);                                        \
  }                                                                                         \
  template <class F, class A, class B, class C, class D, class E>                           \
  result name(F f, const A& a, const B& b, const C& c, const D& d, const E& e,              \
              CallSite where = CallSite::here()) {                                          \
    return name_at(where, std::move(f), a, b, c, d, e);                                     \
  }                                                                                         \
  template <class F, class... A>                                                            \
    requires(sizeof...(A) > 5)                                                              \
  result name(F f, const A&... arguments) {                                                 \
    return name_at(CallSite{}, std::move(f), arguments...);                                 \
  }
