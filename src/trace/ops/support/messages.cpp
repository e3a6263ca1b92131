// Messages of the public functions about operands that they refuse.
#include "messages.hpp"

#include <string>

#include <vt/detail/message.hpp>

namespace vt::detail {

void refuse(ErrorKind kind, std::string_view name, const std::string& what,
            std::span<const Tensor> operands, CallSite where) {
  std::string message = formatted("vt::{}: {}", name, what);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    message += i ? " · " : ": ";
    if (i == 8 && operands.size() > 9) {
      message += formatted("… ({} operands)", operands.size());
      break;
    }
    message += operands[i].defined() ? aval_of(operands[i]).str() : std::string("(empty)");
  }
  fail(kind, std::move(message), user_line(where));
}
void refuse(ErrorKind kind, std::string_view name, const std::string& what, const Tensor& a,
            const Tensor& b, CallSite where) {
  const Tensor both[2] = {a, b};
  refuse(kind, name, what, std::span<const Tensor>(both, 2), where);
}
void refuse_empty(std::string_view name, CallSite where) {
  refuse(ErrorKind::value, name, "an operand is an empty Tensor", std::span<const Tensor>(), where);
}

}  // namespace vt::detail
