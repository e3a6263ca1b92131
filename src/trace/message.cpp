// Filling in messages, by fmt.
#include <vt/detail/message.hpp>

#include <vt/fmt.hpp>

#include <fmt/args.h>

namespace vt::detail {

std::string worded(std::string_view pattern, std::initializer_list<MessagePart> parts) {
  fmt::dynamic_format_arg_store<fmt::format_context> arguments;
  for (const MessagePart& part : parts)
    std::visit(
        [&](auto value) {
          if constexpr (std::is_same_v<decltype(value), std::string_view>) arguments.push_back(fmt::string_view(value.data(), value.size()));
          else arguments.push_back(value);
        },
        part.value);
  return fmt::vformat(fmt::string_view(pattern.data(), pattern.size()), arguments);
}

}  // namespace vt::detail
