// Which kernels a source has.
#include <algorithm>
#include <cctype>

#include "ahead.hpp"
#include "emulator.hpp"

namespace emulator {

namespace {

// Comments and texts blanked out, so that only code is searched.
std::string only_code(const std::string& source) {
  std::string code = source;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i], next = i + 1 < code.size() ? code[i + 1] : '\0';
    std::size_t end = i;
    if (c == '/' && next == '/') end = std::min(code.find('\n', i), code.size());
    else if (c == '/' && next == '*') end = std::min(code.find("*/", i + 2), code.size() - 2) + 2;
    for (; i < end; ++i)
      if (code[i] != '\n') code[i] = ' ';
  }
  return code;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

std::vector<KernelName> kernels_of(const std::string& source) {
  const std::string code = only_code(source), word = "__global__";
  std::vector<KernelName> kernels;
  for (std::size_t at = 0; (at = code.find(word, at)) != std::string::npos;) {
    std::size_t before = code.find_last_not_of(" \t\r\n", at == 0 ? 0 : at - 1);
    at += word.size();
    if (before != std::string::npos && code[before] == '>') continue;  // a template
    KernelName kernel;
    kernel.bounds = "1024";
    std::string last;
    for (std::size_t i = at; i < code.size(); ++i) {
      if (is_word(code[i])) {
        last.clear();
        while (i < code.size() && is_word(code[i])) last += code[i++];
        --i;
      } else if (code[i] == '(') {
        std::size_t end = i;
        int depth = 0;
        do {
          depth += code[end] == '(' ? 1 : code[end] == ')' ? -1 : 0;
        } while (depth > 0 && ++end < code.size());
        if (last != "__launch_bounds__") {
          kernel.name = last;
          break;
        }
        kernel.bounds = code.substr(i + 1, end - i - 1);
        kernel.bounds = kernel.bounds.substr(0, kernel.bounds.find(','));
        i = end;
      } else if (code[i] == ';' || code[i] == '{') {
        break;
      }
    }
    const bool again = std::any_of(kernels.begin(), kernels.end(),
                                   [&](const KernelName& k) { return k.name == kernel.name; });
    if (!kernel.name.empty() && !again) kernels.push_back(kernel);
  }
  return kernels;
}

std::string description_of(const std::vector<KernelName>& kernels) {
  std::string text = "constexpr vt_kernel vt_kernels[] = {";
  for (const KernelName& k : kernels)
    text += "vt_describe<&" + k.name + ">(\"" + k.name + "\", " + k.bounds + ", &" + k.name + "), ";
  return text + "{}};\n";
}

}  // namespace emulator
