// Labels of generated code: which step the code belongs to that a thread is compiling, as perf and
// gdb show it.
#pragma once

#include <string>

#include <vt/error.hpp>

namespace vt::detail {

/// VT_PERF=1: /tmp/perf-PID.map names the kernels for perf. Read once.
bool perf_wanted();
/// VT_GDB=1: gdb is told of kernels, which have the user's lines. Read once.
bool gdb_wanted();

struct CodeLabel {
  std::string operations;  ///< "sub exp sum"
  std::string kernel;      ///< the name that explain gives it, or empty
  CallSite where;          ///< the user's line
  /// with gdb: those of all that the code does, on which its line table depends
  std::string lines;
  /// "sub exp sum softmax.cpp:12 [0123456789abcdef]"
  std::string text() const;
  /// The same of letters, digits and _.
  std::string symbol() const;
};

/// The label of what this thread makes while it exists; one without operations: of nothing.
class CodeLabelScope {
 public:
  explicit CodeLabelScope(CodeLabel label);
  ~CodeLabelScope();
  CodeLabelScope(const CodeLabelScope&) = delete;
  CodeLabelScope& operator=(const CodeLabelScope&) = delete;
  /// Null: none, as nobody wants to see any.
  static const CodeLabel* innermost();

 private:
  CodeLabel label_;
  const CodeLabel* outer_;
};

/// What an exported function is called in its object file: with gdb, after the innermost label.
std::string code_symbol(const std::string& name);

}  // namespace vt::detail
