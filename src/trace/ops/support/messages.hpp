// Messages of the public functions about operands that they refuse.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "../../record/node.hpp"
#include "../../record/thread_state.hpp"

namespace vt::detail {

/// Throws "vt::NAME: WHAT: operand · operand; at file:line". `name` comes without "vt::".
[[noreturn]] void refuse(ErrorKind kind, std::string_view name, const std::string& what,
                         std::span<const Tensor> operands, CallSite where);
[[noreturn]] inline void refuse(ErrorKind kind, std::string_view name, const std::string& what,
                                const Tensor& a, CallSite where) {
  refuse(kind, name, what, std::span<const Tensor>(&a, 1), where);
}
[[noreturn]] void refuse(ErrorKind kind, std::string_view name, const std::string& what,
                         const Tensor& a, const Tensor& b, CallSite where);
[[noreturn]] void refuse_empty(std::string_view name, CallSite where);

/// Throws if the Tensor is an empty handle.
inline void need(std::string_view name, const Tensor& t, CallSite where) {
  if (!t.defined()) [[unlikely]]
    refuse_empty(name, where);
}

}  // namespace vt::detail
