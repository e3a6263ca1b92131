// Kernels that perf and gdb see: names, lines and addresses in perf's map and in gdb's list, also
// of kernels from disk and in children.
#include <gtest/gtest.h>

#include <elf.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/cpu/llvm/object_loader.hpp"

struct JitEntry {
  JitEntry *next, *before;
  const char* file;
  std::uint64_t size;
};
struct JitDescriptor {
  std::uint32_t version, action;
  JitEntry *relevant, *first;
};
#if defined(__x86_64__) && defined(__ELF__)
extern "C" JitDescriptor __jit_debug_descriptor;
#endif

namespace {

using vt::Tensor;

// Read once. A process that this one starts has the folder from it.
const std::string folder = [] {
  if (const char* given = std::getenv("VT_TEST_FOLDER")) return std::string(given);
  const std::string made =
      std::filesystem::temp_directory_path() / ("vt_visible_" + std::to_string(::getpid()));
  ::setenv("VT_TEST_FOLDER", made.c_str(), 1);
  ::setenv("VT_CACHE_DIR", made.c_str(), 1);
  ::setenv("VT_TIERS", "off", 1);
  ::setenv("VT_PERF", "1", 1);
  ::setenv("VT_GDB", "1", 1);
  return made;
}();
const bool child = std::getenv("VT_TEST_CHILD") != nullptr;

constexpr int line_of_exp = __LINE__ + 2;
Tensor weights(Tensor x) {
  const Tensor e = vt::exp(x - vt::max(x, 1, true));
  return e / vt::sum(e, 1, true);
}
const auto program =
    vt::jit([](Tensor x, Tensor w) { return std::pair(weights(x), vt::matmul(x, w)); });
std::string explained() {
  return vt::explain_steps(program)(vt::ones({40, 30}), vt::ones({30, 50}));
}
bool visible() {
  return vt::detail::cpu::can_load_objects() && explained().rfind("interpreter", 0) != 0;
}

struct Function {
  std::uint64_t start = 0, size = 0;
  std::string name;
};
std::vector<Function> perf_map(pid_t process) {
  std::ifstream file("/tmp/perf-" + std::to_string(process) + ".map");
  std::vector<Function> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream text(line);
    Function f;
    text >> std::hex >> f.start >> f.size;
    std::getline(text >> std::ws, f.name);
    all.push_back(f);
  }
  return all;
}
const Function* named(const std::vector<Function>& all, const std::string& part) {
  for (const Function& f : all)
    if (f.name.find(part) != std::string::npos) return &f;
  return nullptr;
}
/// The name that explain gives the kernel with an exp.
std::string kernel_name() {
  const std::string text = explained();
  // not the head's word on what an exp takes
  const std::size_t at = text.rfind("kernel ", text.find("exp", text.find("step 0")));
  return text.substr(at + 7, 16);
}
bool executable(std::uint64_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long from = 0, to = 0;
    char rights[5] = "";
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &from, &to, rights) == 3 && from <= address &&
        address < to)
      return rights[2] == 'x';
  }
  return false;
}
std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  for (int c; pipe && (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  if (pipe) ::pclose(pipe);
  return text;
}
const std::string self = std::filesystem::read_symlink("/proc/self/exe");

TEST(VisibleCode, PerfFindsKernelsByOpsLineAndTheNameInExplain) {
  if (!visible()) GTEST_SKIP() << "no code that vt loads";
  const std::vector<Function> all = perf_map(::getpid());
  const Function* kernel = named(all, "[" + kernel_name() + "]");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->name.rfind("vt: reduce_max sub exp reduce_sum div visible_code_test.cpp:", 0),
            0u)
      << kernel->name;
  EXPECT_GT(kernel->size, 50u);
  EXPECT_TRUE(executable(kernel->start));
  EXPECT_TRUE(executable(kernel->start + kernel->size - 1));
  const Function* product = named(all, "dot_general visible_code_test.cpp:");
  ASSERT_TRUE(product);
  EXPECT_TRUE(executable(product->start));
  for (const Function& f : all)
    EXPECT_TRUE(&f == product || f.start + f.size <= product->start ||
                product->start + product->size <= f.start)
        << f.name;
  if (child) {
    EXPECT_EQ(vt::stats().kernels_compiled, 0u);
    EXPECT_GT(vt::stats().kernel_disk_hits, 0u);
  }
  std::filesystem::remove("/tmp/perf-" + std::to_string(::getpid()) + ".map");
}

TEST(VisibleCode, WhatComesFromDiskIsSeenToo) {
  if (child || !visible()) GTEST_SKIP() << "no code that vt loads";
  const std::string text = output_of("VT_TEST_CHILD=1 " + self +
                                     " --gtest_filter='VisibleCode.Perf*:VisibleCode.Gdbs*'");
  EXPECT_NE(text.find("[  PASSED  ] 2 tests"), std::string::npos) << text;
}

TEST(VisibleCode, AChildHasAMapOfItsOwn) {
  if (!visible()) GTEST_SKIP() << "no code that vt loads";
  const pid_t forked = ::fork();
  if (forked == 0) ::_exit(0);
  ::waitpid(forked, nullptr, 0);
  EXPECT_TRUE(named(perf_map(forked), "[" + kernel_name() + "]"));
  std::filesystem::remove("/tmp/perf-" + std::to_string(forked) + ".map");
}

#if defined(__x86_64__) && defined(__ELF__)
TEST(VisibleCode, GdbsListHasTheObjectsWhereTheyLie) {
  if (!visible()) GTEST_SKIP() << "no code that vt loads";
  bool found = false, lines = false;
  for (const JitEntry* e = __jit_debug_descriptor.first; e; e = e->next) {
    Elf64_Ehdr header;
    std::memcpy(&header, e->file, sizeof header);
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    std::memcpy(sections.data(), e->file + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
    bool here = false;
    for (const Elf64_Shdr& s : sections) {
      if (s.sh_type != SHT_SYMTAB) continue;
      const char* strings = e->file + sections[s.sh_link].sh_offset;
      for (std::size_t at = 0; at < s.sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, e->file + s.sh_offset + at, sizeof symbol);
        const std::string name = strings + symbol.st_name;
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || name.find("vt_reduce_max_sub_exp") != 0 ||
            name.find(kernel_name()) == std::string::npos)
          continue;
        here = true;
        EXPECT_TRUE(executable(sections[symbol.st_shndx].sh_addr + symbol.st_value));
      }
    }
    for (const Elf64_Shdr& s : sections)
      lines =
          lines || (here && std::strcmp(e->file + sections[header.e_shstrndx].sh_offset + s.sh_name,
                                        ".debug_line") == 0);
    found = found || here;
  }
  EXPECT_TRUE(found);
  EXPECT_TRUE(lines);
}
#endif

TEST(VisibleCode, GdbStopsInAKernelAtTheUsersLine) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "gdb runs the plain program";
#endif
  if (child || !visible()) GTEST_SKIP() << "no code that vt loads";
  if (output_of("gdb --version").find("GNU gdb") == std::string::npos) GTEST_SKIP() << "no gdb";
  // In the function that is recorded, where the program has lines itself, and in the kernel.
  const std::string commands = folder + "/commands";
  std::ofstream(commands) << "set pagination off\nset confirm off\nset debuginfod enabled off\nset "
                             "breakpoint pending on\n"
                          << "break visible_code_test.cpp:" << line_of_exp
                          << "\ncommands\nbt 2\ncontinue\nend\nrun\n";
  const std::string text =
      output_of("VT_TEST_CHILD=1 timeout 100 gdb -nx -batch -x " + commands + " --args " + self +
                " --gtest_filter=VisibleCode.PerfFindsKernelsByOpsLineAndTheNameInExplain");
  if (text.find("ptrace") != std::string::npos) GTEST_SKIP() << "gdb may not trace here";
  EXPECT_NE(text.find("#0  vt_reduce_max_sub_exp_reduce_sum_div_visible_code_test_cpp_"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("visible_code_test.cpp:" + std::to_string(line_of_exp)), std::string::npos)
      << text;
}

class Folder : public ::testing::Environment {
  void TearDown() override {
    if (!child) std::filesystem::remove_all(folder);
  }
};
const auto* const cleanup = ::testing::AddGlobalTestEnvironment(new Folder);

}  // namespace
