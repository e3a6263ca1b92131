// VT_DUMP: PTX, machine code, and its text where the toolkit's disassembler is found.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "../../report/dump.hpp"
#include "compile.hpp"

namespace vt::detail::cuda {

namespace code_dump {

/// cuobjdump or nvdisasm, with the option that makes it write SASS; empty where there is neither.
std::string disassembler() {
  Vec<std::string> folders;
  for (const char* variable : {"VT_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable); root && *root)
      folders.push_back(std::string(root) + "/bin");
  const char* path = std::getenv("PATH");
  std::string rest = path ? path : "";
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    folders.push_back(rest.substr(0, end));
    rest = end == rest.npos ? std::string() : rest.substr(end + 1);
  }
  folders.push_back("/usr/local/cuda/bin");
  for (const char* tool : {"/cuobjdump", "/nvdisasm"})
    for (const std::string& folder : folders)
      if (const std::string file = folder + tool;
          ::access(file.c_str(), X_OK) == 0 && file.find('\'') == file.npos)
        return "'" + file + "'" + (tool[1] == 'c' ? " -sass" : "");
  return {};
}

}  // namespace code_dump

void dump_code(const std::string& stem, const std::string& ptx, const Vec<char>& cubin) {
  if (dump_folder().empty()) return;
  if (!ptx.empty()) dump_text(stem + ".ptx", ptx);
  dump_text(stem + ".cubin", std::string(cubin.begin(), cubin.end()));
  static const std::string tool = code_dump::disassembler();
  const std::string file = dump_folder() + "/" + stem + ".cubin";
  if (tool.empty() || file.find('\'') != file.npos) return;
  std::FILE* const pipe = ::popen((tool + " '" + file + "' 2>/dev/null").c_str(), "r");
  if (!pipe) return;
  std::string text;
  char part[4096];
  for (std::size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  if (::pclose(pipe) == 0 && !text.empty()) dump_text(stem + ".sass", text);
}

}  // namespace vt::detail::cuda
