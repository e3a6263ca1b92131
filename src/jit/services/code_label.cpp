// Labels of generated code for perf and gdb, and the switches that ask for them.
#include "code_label.hpp"

#include <string_view>

#include "../../trace/base/environment.hpp"

namespace vt::detail {

namespace code_labels {

const CodeLabel*& current() {
  constinit static thread_local const CodeLabel* label = nullptr;
  return label;
}

}  // namespace code_labels

bool perf_wanted() {
  static const bool wanted = perf_from_environment();
  return wanted;
}
bool gdb_wanted() {
  static const bool wanted = gdb_from_environment();
  return wanted;
}

std::string CodeLabel::text() const {
  std::string text = operations;
  if (where.file) {
    const std::string_view path = where.file;
    text.append(" ")
        .append(path.substr(path.rfind('/') + 1))
        .append(":")
        .append(std::to_string(where.line));
  }
  return kernel.empty() ? text : text + " [" + kernel + "]";
}

std::string CodeLabel::symbol() const {
  std::string name = "vt";
  bool between = true;
  for (const char c : text()) {
    const bool part = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (part) (name += between ? "_" : "") += c;
    between = !part;
  }
  return name;
}

CodeLabelScope::CodeLabelScope(CodeLabel label)
    : label_(std::move(label)), outer_(code_labels::current()) {
  code_labels::current() = label_.operations.empty() ? nullptr : &label_;
}
CodeLabelScope::~CodeLabelScope() { code_labels::current() = outer_; }
const CodeLabel* CodeLabelScope::innermost() { return code_labels::current(); }

std::string code_symbol(const std::string& name) {
  const CodeLabel* label = gdb_wanted() ? CodeLabelScope::innermost() : nullptr;
  return !label ? name : name == "kernel" ? label->symbol() : label->symbol() + "_" + name;
}

}  // namespace vt::detail
