// VT_DUMP on a CUDA device: source, PTX, machine code, and SASS by the disassembler that is found.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <unistd.h>

#include <vt/vt.hpp>

#include "support/cuda_emulator.hpp"

namespace {

namespace fs = std::filesystem;

const vt_test::Emulator* const emulator = vt_test::use_cuda_emulator();
// Before anything asks for it: a folder, and a toolkit whose cuobjdump is a script.
const fs::path folder = [] {
  const fs::path made = fs::temp_directory_path() / ("vt-cuda-dump-" + std::to_string(::getpid()));
  fs::create_directories(made / "toolkit" / "bin");
  std::ofstream(made / "toolkit" / "bin" / "cuobjdump")
      << "#!/bin/sh\n[ \"$1\" = -sass ] && [ -s \"$2\" ] && echo \"SASS of $2\"\n";
  fs::permissions(made / "toolkit" / "bin" / "cuobjdump", fs::perms::owner_all);
  ::setenv("VT_DUMP", (made / "dump").c_str(), 1);
  ::setenv("VT_CUDA_HOME", (made / "toolkit").c_str(), 1);
  return made;
}();

TEST(CudaDump, SourcePtxMachineCodeAndSass) {
  const vt::Tensor x = vt::ones({7, 11}).to(vt::cuda(0));
  vt::jit([](vt::Tensor x) { return vt::exp(x) * 0.8125f; })(x).to_vector<float>();
  std::string kernel;
  for (const auto& entry : fs::directory_iterator(folder / "dump"))
    if (entry.path().extension() == ".cu" &&
        entry.path().string().find("kernel_exp") != std::string::npos)
      kernel = entry.path();
  ASSERT_FALSE(kernel.empty());
  const auto text = [&](const char* extension) {
    std::ostringstream out;
    out << std::ifstream(fs::path(kernel).replace_extension(extension), std::ios::binary).rdbuf();
    return out.str();
  };
  EXPECT_NE(text(".cu").find("kernel_exp_mul"), std::string::npos);
  EXPECT_FALSE(text(".ptx").empty());
  EXPECT_FALSE(text(".cubin").empty());
  EXPECT_EQ(text(".sass"),
            "SASS of " + fs::path(kernel).replace_extension(".cubin").string() + "\n");
  fs::remove_all(folder);
}

}  // namespace
