// Lines of CUDA text, indented by two for each block that is open.
#pragma once

#include <string>

namespace vt::detail::cuda {

/// What writes a kernel derives from it; `text_` is the source so far.
class SourceWriter {
 protected:
  void line(const std::string& s) {
    text_.append(static_cast<std::size_t>(indent_) * 2, ' ').append(s) += '\n';
  }
  void open(const std::string& s) {
    line(s + " {");
    ++indent_;
  }
  void close() {
    --indent_;
    line("}");
  }

  std::string text_;
  int indent_ = 0;
};

}  // namespace vt::detail::cuda
