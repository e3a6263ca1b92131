// Compiled objects: loading and unloading, many threads, damaged bytes, refusals, dumps, libraries
// of LLVM that do not fit.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cpu_kernels.hpp"

#if VT_HAS_LLVM_HEADERS

#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>

#include <vt/error.hpp>

namespace {

using namespace vt_test;
using vt::detail::cpu::Linker;

class CompileTest : public IsaTest {};

TEST_P(CompileTest, LoadsUnloadsAndUsesEqualNamesAtOnce) {
  std::vector<std::shared_ptr<Code>> codes;
  const std::vector<std::string> names = {"same_name"};
  for (int round = 0; round < 3; ++round) {
    codes.clear();
    for (int k = 0; k < 5; ++k) {
      IrBuilder b(vt::detail::cpu::make_target(GetParam().isa));
      b.begin_function("same_name", {Param::ptr()});
      b.store(b.arg(0), b.integer(vt::i32, 10 * round + k));
      b.end_function();
      const vt::Vec<char> object =
          vt::detail::cpu::compile_object(b, {.level = k % 3, .passes = k % 2 == 0});
      codes.push_back(k < 3 ? std::make_shared<Code>(object, names)
                            : std::make_shared<Code>(object, names, Linker::llvm));
    }
    for (int k = 0; k < 5; ++k) {
      std::int32_t out = -1;
      codes[k]->function<void(void*)>()(&out);
      EXPECT_EQ(out, 10 * round + k);
    }
  }
}

TEST_P(CompileTest, CompilesOnManyThreads) {
  std::vector<std::thread> threads;
  std::vector<int> results(8, -1);
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&, k] {
      IrBuilder b(vt::detail::cpu::make_target(GetParam().isa));
      b.begin_function("f", {Param::ptr()});
      b.store(b.arg(0), b.integer(vt::i32, k));
      b.end_function();
      const std::vector<std::string> names = {"f"};
      const Code code(vt::detail::cpu::compile_object(b), names);
      code.function<void(void*)>()(&results[k]);
    });
  for (auto& t : threads) t.join();
  for (int k = 0; k < 8; ++k) EXPECT_EQ(results[k], k);
}

TEST_P(CompileTest, RefusesBadObjectsAndUnknownNames) {
  const vt::Vec<char> garbage(100, 'x');
  const std::vector<std::string> names = {"f"};
  for (Linker linker : {Linker::vt, Linker::llvm}) try {
      Code code(garbage, names, linker);
      ADD_FAILURE() << "garbage was loaded";
    } catch (const vt::Error& e) {
      EXPECT_EQ(e.kind(), vt::ErrorKind::backend);
      EXPECT_NE(std::string(e.what()).find("could not be loaded"), std::string::npos) << e.what();
    }
  IrBuilder b(vt::detail::cpu::make_target(GetParam().isa));
  b.begin_function("g", {});
  b.end_function();
  const vt::Vec<char> object = vt::detail::cpu::compile_object(b);
  for (Linker linker : {Linker::vt, Linker::llvm}) try {
      Code code(object, names, linker);
      ADD_FAILURE() << "a name that is not there was found";
    } catch (const vt::Error& e) {
      EXPECT_NE(std::string(e.what()).find("f"), std::string::npos) << e.what();
    }
  const std::vector<std::string> right = {"g"};
  for (Linker linker : {Linker::vt, Linker::llvm}) Code(object, right, linker).function<void()>()();
}

TEST_P(CompileTest, MismatchedOperandsAreNamed) {
  IrBuilder b(vt::detail::cpu::make_target(GetParam().isa));
  b.begin_function("f", {});
  try {
    b.add(b.integer(vt::i32, 1), b.real(vt::f32, 1, 4));
    ADD_FAILURE() << "mixed operands were added";
  } catch (const vt::Error& e) {
    EXPECT_NE(std::string(e.what()).find("add of i32 and f32x4"), std::string::npos) << e.what();
  }
  b.end_function();
}

TEST_P(CompileTest, DumpsTextAndAssembly) {
  Kernels kernels(GetParam().isa);
  kernels.map("twice", {vt::f32}, 4,
              [](IrBuilder& b, const vt::Vec<Value>& x) { return b.add(x[0], x[0]); });
  EXPECT_NE(kernels.builder.text().find("fadd <4 x float>"), std::string::npos);
  EXPECT_NE(vt::detail::cpu::compile_assembly(kernels.builder).find("twice:"), std::string::npos);
  kernels.compile();  // the dump left the module usable
  float in[] = {1, 2, 3}, out[3];
  kernels.run("twice", {in, out}, 3);
  EXPECT_EQ(out[2], 6.0f);
}

INSTANTIATE_TEST_SUITE_P(Host, CompileTest, testing::Values(all_isas[0]),
                         [](const auto& info) { return std::string(info.param.name); });

// Whatever the bytes are, the loader reads inside them and either refuses or links; run under
// AddressSanitizer too.
TEST(ObjectLoader, SurvivesDamagedObjects) {
  if (!vt::detail::cpu::can_load_objects()) GTEST_SKIP() << "LLVM links here";
  if (const std::string& why = vt::detail::cpu::llvm_unavailable_reason(); !why.empty())
    GTEST_SKIP() << why;
  IrBuilder b;
  b.begin_function("f", {Param::ptr(), Param::of(DType::i64)});
  b.call_runtime("vt_simd_sin", {b.arg(0), b.arg(1)});
  b.store(b.arg(0), b.mul(b.load(b.arg(0), vt::f64, 8), b.iota(vt::f64, 8)));
  b.copy_bytes(b.offset_bytes(b.arg(0), b.index(64)), b.arg(0), b.arg(1));
  b.end_function();
  const vt::Vec<char> good = vt::detail::cpu::compile_object(b);
  const auto resolve = [](std::string_view name) -> void* {
    for (const auto& s : vt::detail::cpu::runtime_symbols())
      if (name == s.name) return s.address;
    return nullptr;
  };
  {
    vt::detail::cpu::LoadedObject object;
    ASSERT_EQ(object.load(good, resolve), "");
    EXPECT_NE(object.find("f"), nullptr);
    EXPECT_EQ(object.find("g"), nullptr);
    EXPECT_NE(vt::detail::cpu::LoadedObject()
                  .load(good, [](std::string_view) -> void* { return nullptr; })
                  .find("unknown function"),
              std::string::npos);
  }
  for (std::size_t length = 0; length < good.size(); length += 7) {
    vt::detail::cpu::LoadedObject object;
    // its own allocation
    const vt::Vec<char> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_NE(object.load(cut, resolve), "") << length;
  }
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    vt::Vec<char> bad = good;
    for (int k = 0; k < 1 + round % 4; ++k)
      bad[random() % bad.size()] = static_cast<char>(random());
    vt::detail::cpu::LoadedObject object;
    (void)object.load(bad, resolve);
  }
}

TEST(LlvmLibrary, SaysWhyALibraryDoesNotFit) {
  using vt::detail::cpu::llvm_try_library;
  EXPECT_NE(llvm_try_library("/no/such/libLLVM.so").find("/no/such/libLLVM.so"), std::string::npos);
  EXPECT_EQ(vt::detail::cpu::llvm_missing_reason(), vt::detail::cpu::llvm_unavailable_reason());
  EXPECT_NE(llvm_try_library("libm.so.6").find("no LLVMGetVersion"), std::string::npos);
}

// dlopen takes a library whose end is missing, and the process ends where it is first touched.
TEST(LlvmLibrary, AFileThatIsCutOffIsRefused) {
  ::Dl_info info{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&std::fclose), &info), 0);
  std::ifstream whole(info.dli_fname, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(whole)), {});
  ASSERT_GT(bytes.size(), 100'000u);
  const std::string path =
      ::testing::TempDir() + "vt_cut_off_" + std::to_string(::getpid()) + ".so";
  for (const std::size_t size : {bytes.size() / 2, std::size_t{4096}, sizeof(Elf64_Ehdr) + 10,
                                 sizeof(Elf64_Ehdr) - 10, std::size_t{0}}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    const std::string why = vt::detail::cpu::llvm_try_library(path);
    EXPECT_NE(why.find(size > sizeof(Elf64_Ehdr) ? "cut off" : path), std::string::npos)
        << size << ": " << why;
  }
  std::remove(path.c_str());
}

}  // namespace

#endif
