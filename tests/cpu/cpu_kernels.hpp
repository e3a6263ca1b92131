// Helpers for tests of generated CPU code: make kernels over arrays through IrBuilder, for every
// instruction set here.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/jit/cpu/llvm/compile.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt_test {

using vt::DType;
using vt::detail::cpu::Code;
using vt::detail::cpu::CompileOptions;
using vt::detail::cpu::IrBuilder;
using vt::detail::cpu::Isa;
using vt::detail::cpu::Param;
using vt::detail::cpu::Value;

struct NamedIsa {
  Isa isa;
  const char* name;
};
// The host stands for the widest set that it has.
inline const NamedIsa all_isas[] = {{Isa::host, "host"}, {Isa::avx2, "avx2"}, {Isa::sse2, "sse2"}};

/// A test for each instruction set; skipped where there is no LLVM.
class IsaTest : public testing::TestWithParam<NamedIsa> {
 protected:
  void SetUp() override {
    if (const std::string& why = vt::detail::cpu::llvm_unavailable_reason(); !why.empty())
      GTEST_SKIP() << why;
  }
};

inline constexpr DType every_dtype[] = {vt::bool_, vt::i8,  vt::u8,  vt::i16, vt::u16,
                                        vt::i32,   vt::u32, vt::i64, vt::u64, vt::f16,
                                        vt::bf16,  vt::f32, vt::f64};

template <class T>
constexpr bool is_half_v = std::is_same_v<T, vt::Float16> || std::is_same_v<T, vt::BFloat16>;
template <class T>
constexpr bool is_floating_v = std::is_floating_point_v<T> || is_half_v<T>;

/// The i-th T of bytes.
template <class T>
T element(const std::vector<std::uint8_t>& b, std::size_t i) {
  T x;
  std::memcpy(&x, b.data() + i * sizeof(T), sizeof(T));
  return x;
}

/// Whether the bits are the same; any NaN equals any other.
template <class T>
bool same(T a, T b) {
  if constexpr (is_half_v<T>) {
    const auto x = static_cast<float>(a), y = static_cast<float>(b);
    return std::isnan(y) ? std::isnan(x) : a.bits == b.bits;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(b) ? std::isnan(a) : a == b && std::signbit(a) == std::signbit(b);
  } else {
    return a == b;
  }
}

/// A set of kernels `void(void** buffers, int64 n)` compiled as one module.
class Kernels {
 public:
  using Kernel = void(void**, std::int64_t);
  explicit Kernels(Isa isa) : builder(vt::detail::cpu::make_target(isa)) {}

  /// Opens a kernel; fill it, then call done(). Buffer i is `buffer(i)`, the length is `n()`.
  void open(const std::string& name) {
    names_.push_back(name);
    builder.begin_function(name, {Param::ptr(), Param::of(DType::i64)});
  }
  Value buffer(int i) { return builder.load_pointer(builder.arg(0), i); }
  Value n() { return builder.arg(1); }
  void done() { builder.end_function(); }

  /// out[i] = body(inputs[i]…) for i < n in steps of `lanes` with a masked tail; inputs are buffers
  /// 0…, out is the last.
  void map(const std::string& name, const std::vector<DType>& inputs, int lanes,
           const std::function<Value(IrBuilder&, const vt::Vec<Value>&)>& body) {
    open(name);
    IrBuilder& b = builder;
    vt::Vec<Value> pointers;
    for (std::size_t k = 0; k <= inputs.size(); ++k)
      pointers.push_back(buffer(static_cast<int>(k)));
    b.for_range(b.index(0), n(), lanes, [&](Value i) {
      const Value mask = b.tail_mask(lanes, b.sub(n(), i));
      vt::Vec<Value> loaded;
      for (std::size_t k = 0; k < inputs.size(); ++k)
        loaded.push_back(b.load_masked(b.offset(pointers[k], inputs[k], i), inputs[k], mask));
      const Value out = body(b, loaded);
      b.store_masked(b.offset(pointers.back(), out.dtype, i), out, mask);
    });
    done();
  }

  void compile(const CompileOptions& options = {}) {
    const std::string wrong = builder.verify();
    ASSERT_EQ(wrong, "") << builder.text();
    code_ = std::make_shared<Code>(vt::detail::cpu::compile_object(builder, options), names_);
    for (std::size_t i = 0; i < names_.size(); ++i) at_[names_[i]] = code_->function<Kernel>(i);
  }

  void run(const std::string& name, std::vector<void*> buffers, std::int64_t n) const {
    const auto found = at_.find(name);
    ASSERT_NE(found, at_.end()) << name;
    found->second(buffers.data(), n);
  }

  IrBuilder builder;

 private:
  std::vector<std::string> names_;
  std::map<std::string, Kernel*> at_;
  std::shared_ptr<Code> code_;
};

}  // namespace vt_test

#endif
