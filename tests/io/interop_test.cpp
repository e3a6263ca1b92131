// .npy files and DLPack: what goes out comes back, foreign layouts are understood, bad input is
// refused with its reason.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>

#include <vt/vt.hpp>

#include "support/message.hpp"

// As the DLPack specification declares them.
struct DLManagedTensor {
  void* data;
  std::int32_t device_type, device_id, ndim;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  void* data;
  std::int32_t device_type, device_id, ndim;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};

namespace {

using vt_test::message;

struct Interop : testing::Test {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("vt-interop-" + std::to_string(getpid()));
  Interop() { std::filesystem::create_directories(folder); }
  ~Interop() override { std::filesystem::remove_all(folder); }
  std::string file(const char* name) const { return (folder / name).string(); }
  std::string written(const char* name, const std::string& header, const std::string& data,
                      int version = 1) const {
    std::string front("\x93NUMPY");
    front += static_cast<char>(version);
    front += '\0';
    for (std::size_t i = 0, n = header.size(); i < (version == 1 ? 2u : 4u); ++i, n >>= 8)
      front += static_cast<char>(n & 0xff);
    std::ofstream(file(name), std::ios::binary) << front << header << data;
    return file(name);
  }
};

TEST_F(Interop, NpyIterationTripOfEveryDtypeAndRank) {
  using enum vt::DType;
  for (vt::DType d : {bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64})
    for (const vt::Shape& shape : {vt::Shape{}, vt::Shape{0}, vt::Shape{1}, vt::Shape{7},
                                   vt::Shape{2, 3}, vt::Shape{2, 0, 3}, vt::Shape{2, 1, 3, 2}}) {
      const vt::Tensor x = vt::arange(shape.elements()).reshape(shape).astype(d);
      vt::save_npy(file("x.npy"), x);
      const vt::Tensor y = vt::load_npy(file("x.npy"));
      EXPECT_EQ(y.dtype(), d);
      EXPECT_EQ(y.shape(), shape);
      EXPECT_EQ(x.to_vector<double>(), y.to_vector<double>()) << vt::name_of(d) << shape.str();
      std::ifstream in(file("x.npy"), std::ios::binary);
      std::string all((std::istreambuf_iterator<char>(in)), {});
      EXPECT_EQ((all.size() - static_cast<std::size_t>(shape.elements()) * vt::size_of(d)) % 64, 0u)
          << "data begin at a multiple of 64";
    }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1)
      << "no temporary file stays";
}

TEST_F(Interop, NpyForeignLayouts) {
  // Fortran order: columns first.
  const std::string f =
      written("f.npy", "{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }\n",
              std::string("\1\4\2\5\3\6", 6));
  EXPECT_EQ(vt::load_npy(f).to_vector<int>(), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  // Big-endian, other key order, other quotes, version 2 and 3.
  for (int version : {2, 3}) {
    const std::string b =
        written("b.npy", "{\"shape\": (2,), \"descr\": \">u2\", \"fortran_order\": False}",
                std::string("\1\0\0\2", 4), version);
    EXPECT_EQ(vt::load_npy(b).to_vector<int>(), (std::vector<int>{256, 2}));
  }
}

TEST_F(Interop, NpyRefusals) {
  const auto load = [](const std::string& path) {
    return message([&] { (void)vt::load_npy(path); });
  };
  EXPECT_NE(load(file("none.npy")).find("none.npy: No such file"), std::string::npos)
      << load(file("none.npy"));
  EXPECT_NE(load(file("none.npy")).find("interop_test.cpp:"), std::string::npos);
  std::ofstream(file("text.npy")) << "1,2,3\n";
  EXPECT_NE(load(file("text.npy")).find("not a .npy file"), std::string::npos);
  EXPECT_NE(load(written("c.npy", "{'descr': '<c32', 'fortran_order': False, 'shape': (1,), }",
                         std::string(32, '\0')))
                .find("dtype <c32"),
            std::string::npos);
  EXPECT_NE(load(written("s.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
                         std::string(8, '\0')))
                .find("8 bytes of data, 12 wanted for f32[3]"),
            std::string::npos);
  EXPECT_NE(load(written("l.npy", "{'shape': (3,)}  \n", ""))
                .find("header cannot be read: {'shape': (3,)}; at"),
            std::string::npos);
  EXPECT_NE(
      load(written("h.npy", "{'descr': '<f4', 'shape': (3,) }", "")).find("header cannot be read"),
      std::string::npos);
  EXPECT_NE(load(written("n.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", ""))
                .find("header cannot be read"),
            std::string::npos);
  EXPECT_NE(
      load(written("l.npy",
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }",
                   ""))
          .find("too large"),
      std::string::npos);
  std::string axes = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 65; ++i) axes += "1,";
  EXPECT_NE(load(written("a.npy", axes + "), }", std::string(4, '\0')))
                .find("65 axes; a Tensor has at most 64"),
            std::string::npos);
  EXPECT_NE(load(written("v.npy", "{}", "", 9)).find("version 9"), std::string::npos);
  EXPECT_NE(message([&] {
              vt::save_npy(file("x.npy"), vt::ones({2}, vt::bf16));
            }).find("NumPy has no bf16"),
            std::string::npos);
  EXPECT_NE(
      message([&] { vt::save_npy(file("no/such/x.npy"), vt::ones({2})); }).find("No such file"),
      std::string::npos);
}

int freed = 0;

TEST_F(Interop, ManyThreadsSaveToOnePath) {
  const std::string path = file("shared.npy");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      const vt::Tensor x = vt::full({1000 + t}, static_cast<float>(t));
      for (int i = 0; i < 20; ++i) try {
          vt::save_npy(path, x);
          const vt::Tensor y = vt::load_npy(path);
          const auto values = y.to_vector<float>();
          wrong += std::any_of(values.begin(), values.end(),
                               [&](float v) { return v != static_cast<float>(y.size() - 1000); });
        } catch (const vt::Error&) {
          ++wrong;
        }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Interop, SavingKeepsTheModeAndFollowsNoLink) {
  namespace fs = std::filesystem;
  const std::string path = folder / "x.npy", victim = folder / "victim";
  vt::save_npy(path, vt::ones({2}));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  vt::save_npy(path, vt::ones({3}));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  std::ofstream(victim) << "mine";
  // the name that once was used
  fs::create_symlink(victim, path + ".part" + std::to_string(::getpid()));
  fs::remove(path);
  fs::create_symlink(victim, path);
  vt::save_npy(path, vt::ones({4}));
  EXPECT_EQ(vt::load_npy(path).shape(), vt::Shape{4});
  std::string text;
  std::ifstream(victim) >> text;
  EXPECT_EQ(text, "mine");
  // Nothing is left beside the file, whether saving succeeds or fails.
  EXPECT_NE(message([&] { vt::save_npy(folder.string(), vt::ones({1})); }).find("directory"),
            std::string::npos);
  EXPECT_NE(message([&] { vt::save_npy("/dev/full", vt::ones({1})); }).find("No space left"),
            std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 3);
}

// Both forms of DLPack hold the same array.
template <class M>
struct DlPack : testing::Test {
  static M foreign(float* data, std::int64_t* shape, std::int64_t* strides, int ndim) {
    freed = 0;
    M m{};
    m.data = data, m.shape = shape, m.strides = strides, m.ndim = ndim;
    m.device_type = 1, m.code = 2, m.bits = 32, m.lanes = 1;
    m.deleter = [](M*) { ++freed; };
    if constexpr (is_versioned) m.major = 1, m.minor = 3;
    return m;
  }
  static M* view_of(const vt::Tensor& t) {
    if constexpr (is_versioned) return vt::to_dlpack_versioned(t);
    else return vt::to_dlpack(t);
  }
  static constexpr bool is_versioned = std::is_same_v<M, DLManagedTensorVersioned>;
};
using Forms = testing::Types<DLManagedTensor, DLManagedTensorVersioned>;
TYPED_TEST_SUITE(DlPack, Forms);

TYPED_TEST(DlPack, ContiguousMemoryIsSharedAndFreedOnce) {
  float data[] = {1, 2, 3, 4, 5, 6};
  std::int64_t shape[] = {2, 3}, strides[] = {3, 1};
  for (std::int64_t* s : {static_cast<std::int64_t*>(nullptr), strides}) {
    TypeParam m = this->foreign(data, shape, s, 2);
    {
      const vt::Tensor t = vt::from_dlpack(&m);
      EXPECT_EQ(t.data<float>().data(), data);
      const vt::Tensor sum = vt::sum(t, 0);
      EXPECT_EQ(sum.to_vector<float>(), (std::vector<float>{5, 7, 9}));
      EXPECT_EQ(freed, 0);
    }
    EXPECT_EQ(freed, 1);
  }
}

TYPED_TEST(DlPack, StridesAndOffsetsAreCopied) {
  float data[] = {0, 1, 2, 3, 4, 5, 6};
  std::int64_t shape[] = {3, 2}, strides[] = {1, 3};
  TypeParam m = this->foreign(data, shape, strides, 2);
  m.byte_offset = sizeof(float);
  const vt::Tensor t = vt::from_dlpack(&m);
  EXPECT_EQ(freed, 1);
  EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  std::int64_t back[] = {-1};
  std::int64_t three[] = {3};
  TypeParam r = this->foreign(data + 2, three, back, 1);
  EXPECT_EQ(vt::Tensor(vt::from_dlpack(&r)).to_vector<float>(), (std::vector<float>{2, 1, 0}));
}

TYPED_TEST(DlPack, IterationTripOfEveryDtype) {
  using enum vt::DType;
  for (vt::DType d : {bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64}) {
    const vt::Tensor x = vt::arange(6).reshape({3, 2}).astype(d);
    TypeParam* view = this->view_of(x);
    EXPECT_EQ(view->ndim, 2);
    EXPECT_EQ(view->bits, vt::size_of(d) * 8);
    const vt::Tensor y = vt::from_dlpack(view);
    EXPECT_EQ(y.dtype(), d);
    EXPECT_EQ(y.to_vector<double>(), x.to_vector<double>());
  }
  EXPECT_EQ(vt::Tensor(vt::from_dlpack(this->view_of(vt::tensor(2.5)))).item<double>(), 2.5);
  EXPECT_EQ(vt::Tensor(vt::from_dlpack(this->view_of(vt::zeros({0, 4})))).shape(),
            (vt::Shape{0, 4}));
}

TYPED_TEST(DlPack, BoolsAreZeroOrOne) {
  std::uint8_t bytes[] = {0, 1, 2, 255, 0, 128};
  std::int64_t shape[] = {6}, three[] = {3}, strides[] = {2};
  TypeParam m = this->foreign(nullptr, shape, nullptr, 1);
  m.data = bytes, m.code = 6, m.bits = 8;
  EXPECT_EQ(vt::sum(vt::Tensor(vt::from_dlpack(&m)).astype(vt::i32)).item<int>(), 4);
  m.shape = three, m.strides = strides;
  EXPECT_EQ(vt::sum(vt::Tensor(vt::from_dlpack(&m)).astype(vt::i32)).item<int>(), 1);
}

TYPED_TEST(DlPack, BadArraysAreRefused) {
  float data[] = {1};
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t one[] = {1}, negative[] = {-2}, huge[] = {most, most}, large[] = {most / 4},
               far[] = {most / 2, 1}, two[] = {2, 2}, least[] = {-most - 1, 1};
  const auto refusal = [&](std::int64_t* shape, std::int64_t* strides, int ndim, float* at,
                           std::uint64_t offset = 0) {
    TypeParam m = this->foreign(at, shape, strides, ndim);
    m.byte_offset = offset;
    const std::string text = message([&] { (void)vt::from_dlpack(&m); });
    EXPECT_EQ(freed, 1);
    return text;
  };
  EXPECT_NE(refusal(one, nullptr, -1, data).find("-1 axes"), std::string::npos);
  EXPECT_NE(refusal(one, nullptr, 1 << 30, data).find("axes; a Tensor has 0 to 64"),
            std::string::npos);
  EXPECT_NE(refusal(nullptr, nullptr, 1, data).find("null pointer"), std::string::npos);
  EXPECT_NE(refusal(negative, nullptr, 1, data).find("negative extent"), std::string::npos);
  EXPECT_NE(refusal(huge, nullptr, 2, data).find("too large"), std::string::npos);
  EXPECT_NE(refusal(large, nullptr, 1, data).find("too large"), std::string::npos);
  EXPECT_NE(refusal(one, nullptr, 1, nullptr).find("data of f32[1] are a null pointer"),
            std::string::npos);
  EXPECT_NE(refusal(two, far, 2, data).find("strides"), std::string::npos);
  EXPECT_NE(refusal(two, least, 2, data).find("strides"), std::string::npos);
  EXPECT_NE(refusal(one, nullptr, 1, data, ~std::uint64_t{0}).find("byte_offset"),
            std::string::npos);
  EXPECT_NE(refusal(one, nullptr, 1, data, std::uint64_t{1} << 62).find("byte_offset"),
            std::string::npos);
  EXPECT_NE(refusal(one, nullptr, 1, data, 1).find("not aligned"), std::string::npos);
  std::int64_t any_stride[] = {most};  // of an axis of one element: it is not read
  TypeParam single = this->foreign(data, one, any_stride, 1);
  EXPECT_EQ(vt::Tensor(vt::from_dlpack(&single)).item<float>(), 1);
  std::int64_t none[] = {0};
  TypeParam empty = this->foreign(nullptr, none, nullptr, 1);
  EXPECT_EQ(vt::Tensor(vt::from_dlpack(&empty)).shape(), vt::Shape{0});
}

TYPED_TEST(DlPack, RefusalsStillFree) {
  float data[] = {1};
  std::int64_t shape[] = {1};
  TypeParam m = this->foreign(data, shape, nullptr, 1);
  m.device_type = 2;
  EXPECT_NE(message([&] { (void)vt::from_dlpack(&m); }).find("device type 2"), std::string::npos);
  EXPECT_EQ(freed, 1);
  m = this->foreign(data, shape, nullptr, 1);
  m.code = 5;
  EXPECT_NE(message([&] { (void)vt::from_dlpack(&m); }).find("type code 5 of 32 bits"),
            std::string::npos);
  EXPECT_EQ(freed, 1);
  EXPECT_NE(
      message([] { (void)vt::from_dlpack(static_cast<TypeParam*>(nullptr)); }).find("null pointer"),
      std::string::npos);
}

TYPED_TEST(DlPack, AViewKeepsTheMemoryAndSaysWhereItLies) {
  TypeParam* view = this->view_of(vt::arange(24, vt::f32).reshape({2, 3, 4}) + 1);
  EXPECT_EQ(static_cast<const float*>(view->data)[23], 24);
  EXPECT_EQ(std::vector<std::int64_t>(view->shape, view->shape + 3),
            (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(std::vector<std::int64_t>(view->strides, view->strides + 3),
            (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ(view->byte_offset, 0u);
  view->deleter(view);  // AddressSanitizer's part sees whether all is freed
}

TYPED_TEST(DlPack, AnArrayWithoutDeleter) {
  float data[] = {1, 2};
  std::int64_t shape[] = {2};
  TypeParam m = this->foreign(data, shape, nullptr, 1);
  m.deleter = nullptr;
  EXPECT_EQ(vt::Tensor(vt::from_dlpack(&m)).to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(DlPackVersioned, OfAnotherMajorVersionOnlyTheDeleterIsUsed) {
  for (const std::uint32_t major : {0u, 2u}) {
    DLManagedTensorVersioned m =
        DlPack<DLManagedTensorVersioned>::foreign(nullptr, nullptr, nullptr, -1);
    m.major = major, m.minor = 7;
    m.flags = ~std::uint64_t{0};
    EXPECT_NE(message([&] {
                (void)vt::from_dlpack(&m);
              }).find("DLPack " + std::to_string(major) + ".7; only versions 1.x"),
              std::string::npos);
    EXPECT_EQ(freed, 1);
  }
}

TEST(DlPackVersioned, ViewsAreReadOnlyAndFlagsOfOthersMakeNoDifference) {
  const auto is_read_only = [](DLManagedTensorVersioned* view) {
    EXPECT_EQ(view->major, 1u);
    const std::uint64_t flags = view->flags;
    view->deleter(view);
    return flags == 1;
  };
  vt::Tensor sum = vt::ones({2}) + 1;
  const vt::Tensor same = sum;
  const float numbers[] = {1, 2};
  EXPECT_TRUE(is_read_only(vt::to_dlpack_versioned(sum)));
  EXPECT_TRUE(is_read_only(vt::to_dlpack_versioned(std::move(sum))));
  EXPECT_TRUE(
      is_read_only(vt::to_dlpack_versioned(vt::borrow(std::span<const float>(numbers), {2}))));
  // Nobody else holds these.
  EXPECT_FALSE(is_read_only(vt::to_dlpack_versioned(same + 1)));
  EXPECT_FALSE(
      is_read_only(vt::to_dlpack_versioned(vt::jit([](vt::Tensor x) { return x * 2; })(same))));
  EXPECT_FALSE(is_read_only(vt::to_dlpack_versioned(vt::zeros({0}))));
  float data[] = {1, 2};
  std::int64_t shape[] = {2};
  for (const std::uint64_t flags : {0u, 1u, 2u, 3u, 64u}) {
    DLManagedTensorVersioned m = DlPack<DLManagedTensorVersioned>::foreign(data, shape, nullptr, 1);
    m.flags = flags, m.minor = 99;
    {
      const vt::Tensor t = vt::from_dlpack(&m);
      EXPECT_EQ(t.data<float>().data(), data);
      EXPECT_EQ(freed, 0);
    }
    EXPECT_EQ(freed, 1);
  }
}

}  // namespace
