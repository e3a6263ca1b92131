// .npz files: what goes out comes back and is read by others, NumPy's files are read, of a large
// file only what is asked for.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <vector>
#include <vt/detail/npz.hpp>
#include <vt/vt.hpp>

#include "src/trace/io/crc32.hpp"
#include "src/trace/io/zip.hpp"
#include "src/trace/io/zlib_library.hpp"
#include "support/message.hpp"
#include "support/passed_alike.hpp"
#include "support/zip_files.hpp"
#if __has_include(<zlib.h>)
#define VT_TEST_HAS_ZLIB 1
#include <zlib.h>
#endif

namespace {

#include "npz_files.inc"

using vt::detail::NpzEntry;
using vt_test::bytes_of_file;
using vt_test::message;

#ifdef VT_TEST_HAS_ZLIB
#define VT_SAME_FUNCTION(name, result, parameters)                                          \
  static_assert(vt_test::Alike<decltype(vt::detail::Zlib::name), decltype(&::name)>::value, \
                #name " is declared otherwise in zlib.h");
VT_ZLIB_FUNCTIONS(VT_SAME_FUNCTION)
#undef VT_SAME_FUNCTION
#define VT_SAME_MEMBER(ours, theirs)                                                 \
  static_assert(offsetof(vt::detail::ZStream, ours) == offsetof(z_stream, theirs) && \
                    sizeof(vt::detail::ZStream::ours) == sizeof(z_stream::theirs),   \
                "ZStream::" #ours " lies elsewhere in zlib.h");
VT_SAME_MEMBER(next_in, next_in)
VT_SAME_MEMBER(available_in, avail_in)
VT_SAME_MEMBER(total_in, total_in)
VT_SAME_MEMBER(next_out, next_out)
VT_SAME_MEMBER(available_out, avail_out)
VT_SAME_MEMBER(total_out, total_out)
VT_SAME_MEMBER(message, msg)
VT_SAME_MEMBER(state, state)
VT_SAME_MEMBER(allocate, zalloc)
VT_SAME_MEMBER(release, zfree)
VT_SAME_MEMBER(opaque, opaque)
VT_SAME_MEMBER(data_type, data_type)
VT_SAME_MEMBER(adler, adler)
VT_SAME_MEMBER(reserved, reserved)
#undef VT_SAME_MEMBER
static_assert(sizeof(vt::detail::ZStream) == sizeof(z_stream));
static_assert(vt::detail::Zlib::ok == Z_OK && vt::detail::Zlib::stream_end == Z_STREAM_END &&
              vt::detail::Zlib::buffer_error == Z_BUF_ERROR &&
              vt::detail::Zlib::out_of_memory == Z_MEM_ERROR &&
              vt::detail::Zlib::no_flush == Z_NO_FLUSH);
#endif

struct Npz : testing::Test {
  vt_test::TestFolder folder{"npz"};
  std::string path = folder / "x.npz";
  void write(const std::vector<NpzEntry>& entries, const std::string& to = {}) const {
    vt::detail::write_npz(to.empty() ? path : to, entries, "vt::save_npz", vt::CallSite::here());
  }
  std::string refusal(const std::vector<NpzEntry>& entries) const {
    return message([&] { write(entries); });
  }
  vt::detail::NpzFile open() const {
    return vt::detail::read_npz(path, "vt::load_npz", vt::CallSite::here());
  }
};

template <class T = double>
void expect_equal(const vt::Tensor& a, const vt::Tensor& b, const std::string& name) {
  EXPECT_EQ(a.dtype(), b.dtype()) << name;
  ASSERT_EQ(a.shape(), b.shape()) << name;
  EXPECT_EQ(a.to_vector<T>(), b.to_vector<T>()) << name;
}

constexpr vt::DType real_dtypes[] = {vt::bool_, vt::i8,  vt::i16, vt::i32, vt::i64, vt::u8,
                                     vt::u16,   vt::u32, vt::u64, vt::f16, vt::f32, vt::f64};
const vt::Shape& shape_of(std::size_t i) {
  static const vt::Shape shapes[] = {{}, {0}, {1}, {7}, {2, 3}, {2, 0, 3}, {2, 1, 3, 2}, {400, 33}};
  return shapes[i % std::size(shapes)];
}

std::vector<NpzEntry> one_of_each() {
  std::vector<NpzEntry> entries;
  for (const vt::DType d : real_dtypes)
    for (std::size_t i = 0; i < 8; ++i) {
      const vt::Shape& shape = shape_of(i);
      entries.push_back({std::string(vt::name_of(d)) + shape.str(),
                         vt::arange(shape.elements()).reshape(shape).astype(d)});
    }
  for (const vt::DType d : {vt::c64, vt::c128})
    entries.push_back({vt::name_of(d), vt::complex(vt::arange(6, vt::f64).reshape({3, 2}),
                                                   vt::full({3, 2}, -0.5, vt::f64))
                                           .astype(d)});
  return entries;
}

TEST_F(Npz, EveryDtypeAndShapeComesBack) {
  const std::vector<NpzEntry> entries = one_of_each();
  write(entries);
  const std::map<std::string, vt::Tensor> back = vt::load_npz(path);
  ASSERT_EQ(back.size(), entries.size());
  for (const auto& [name, value] : entries)
    if (vt::is_complex(value.dtype()))
      expect_equal<std::complex<double>>(back.at(name), value, name);
    else expect_equal(back.at(name), value, name);
  EXPECT_EQ(folder.files(), 1) << "no temporary file stays";
  const vt::detail::NpzFile file = open();
  std::vector<std::string> names;
  for (const auto& [name, value] : entries) {
    names.push_back(name);
    EXPECT_EQ(file.form(name).dtype, value.dtype());
    EXPECT_EQ(file.form(name).shape, value.shape());
    EXPECT_TRUE(file.has(name));
  }
  EXPECT_EQ(file.names(), names) << "in the order in which they were written";
  EXPECT_FALSE(file.has("none"));
  EXPECT_NE(message([&] { (void)file.read("none"); }).find("it holds no array \"none\""),
            std::string::npos);
}

TEST_F(Npz, NamesOfAllSorts) {
  std::vector<NpzEntry> entries;
  for (const std::string& name : {std::string("größe/ω"), std::string("a.npy"), std::string("a b"),
                                  std::string("../x"), std::string("\n"), std::string(65531, 'n')})
    entries.push_back({name, vt::tensor(static_cast<float>(entries.size()))});
  write(entries);
  const auto back = vt::load_npz(path);
  ASSERT_EQ(back.size(), entries.size());
  for (const auto& [name, value] : entries) expect_equal(back.at(name), value, name);
  write({});
  EXPECT_TRUE(vt::load_npz(path).empty());
}

TEST_F(Npz, EqualEntriesGiveEqualBytes) {
  write(one_of_each());
  const std::string first = bytes_of_file(path);
  write(one_of_each(), folder / "y.npz");
  EXPECT_EQ(first, bytes_of_file(folder / "y.npz"));
}

TEST_F(Npz, RefusedBeforeAnythingIsWritten) {
  const vt::Tensor x = vt::ones({2});
  const std::string kept = "what was there";
  folder.written("x.npz", kept);
  EXPECT_NE(refusal({{"a", x}, {"b", x.astype(vt::bf16)}})
                .find("vt::save_npz: " + path + ": array \"b\": NumPy has no bf16"),
            std::string::npos);
  EXPECT_NE(refusal({{"", x}}).find("without a name"), std::string::npos);
  EXPECT_NE(refusal({{"a", x}, {"b", x}, {"a", x}}).find("array \"a\": two arrays have this name"),
            std::string::npos);
  EXPECT_NE(refusal({{std::string("a\0b", 3), x}}).find("array \"a?b\": the name holds a NUL"),
            std::string::npos);
  for (const char* name : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"})
    EXPECT_NE(refusal({{name, x}}).find("no UTF-8"), std::string::npos);
  EXPECT_NE(refusal({{std::string(65532, 'n'), x}}).find("65532 bytes; at most 65531"),
            std::string::npos);
  EXPECT_NE(refusal({{"a", vt::Tensor()}}).find("array \"a\" is an empty Tensor"),
            std::string::npos);
  EXPECT_NE(message([&] {
              (void)vt::vmap([&](const vt::Tensor& lane) {
                write({{"a", lane}});
                return lane;
              })(x);
            }).find("vt::save_npz"),
            std::string::npos);
  EXPECT_EQ(bytes_of_file(path), kept);
  EXPECT_EQ(folder.files(), 1);
  EXPECT_NE(message([&] { write({{"a", x}}, folder / "no/such/x.npz"); }).find("No such file"),
            std::string::npos);
  EXPECT_NE(message([&] { write({{"a", x}}, "/dev/full"); }).find("No space left"),
            std::string::npos);
}

/// What a program prints, and how it ends.
std::pair<std::string, int> output_of(const std::string& command) {
  std::string text;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) return {"no pipe", -1};
  std::array<char, 4096> block{};
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), pipe))
    text.append(block.data(), n);
  return {text, ::pclose(pipe)};
}

// Python's own reader of archives, and NumPy where it is installed.
TEST_F(Npz, PythonReadsThem) {
  if (output_of("python3 -c 'print(1)' 2>/dev/null").first != "1\n") GTEST_SKIP() << "no python3";
  const std::vector<NpzEntry> entries = one_of_each();
  write(entries);
  const auto [text, status] =
      output_of("python3 " VT_SOURCE_DIR "/tests/io/npz_check.py '" + path + "' 2>&1");
  ASSERT_EQ(status, 0) << text;
  std::string wanted;
  for (const auto& [name, value] : entries) {
    std::string shape;
    for (const std::int64_t extent : value.shape()) shape += std::to_string(extent) + " ";
    const vt::Tensor real = vt::is_complex(value.dtype()) ? vt::real(value) : value;
    wanted += name + " of " + shape + "holds " +
              std::to_string(vt::sum(real.astype(vt::i64)).item<std::int64_t>()) + "\n";
  }
  EXPECT_EQ(text, wanted);
}

// The arrays of npz_files.py.
vt::Tensor numpy_numbers(vt::DType d, const vt::Shape& shape) {
  const vt::Tensor i = vt::arange(shape.elements(), vt::i64).reshape(shape);
  if (d == vt::bool_) return i % 2 == 1;
  if (d == vt::u8) return i.astype(d);
  if (vt::is_complex(d)) return vt::complex((i - 2).astype(vt::f64), i.astype(vt::f64)).astype(d);
  return (i - 2).astype(d);
}

TEST_F(Npz, NumPysFilesAreRead) {
  const std::map<std::string, std::pair<vt::DType, vt::Shape>> arrays = {
      {"bool", {vt::bool_, {5}}},       {"i8", {vt::i8, {3}}},         {"i16", {vt::i16, {2, 2}}},
      {"i32", {vt::i32, {2, 3}}},       {"i64", {vt::i64, {}}},        {"u8", {vt::u8, {0, 4}}},
      {"f16", {vt::f16, {4}}},          {"f32", {vt::f32, {3, 2, 2}}}, {"f64", {vt::f64, {1, 3}}},
      {"größe/c64", {vt::c64, {2, 2}}}, {"c128", {vt::c128, {3}}}};
  for (const char* text : {numpy_stored, numpy_streamed, numpy_packed, numpy_packed_stream}) {
    folder.written("x.npz", vt_test::from_base64(text));
    const auto found = vt::load_npz(path);
    EXPECT_EQ(found.size(), arrays.size());
    for (const auto& [name, form] : arrays)
      expect_equal<std::complex<double>>(found.at(name).astype(vt::c128),
                                         numpy_numbers(form.first, form.second).astype(vt::c128),
                                         name);
    for (const auto& [name, form] : arrays) EXPECT_EQ(found.at(name).dtype(), form.first);
  }
}

// One .npy file as a file, stored and as an array of an archive: the same reader.
TEST_F(Npz, FortranOrderOfEverySizeAndRank) {
  for (const vt::DType d : {vt::u8, vt::i16, vt::f32, vt::f64, vt::c128})
    for (const vt::Shape& shape : {vt::Shape{5}, vt::Shape{1, 4}, vt::Shape{40, 33},
                                   vt::Shape{2, 3, 4}, vt::Shape{3, 1, 2, 5}, vt::Shape{2, 0}}) {
      const vt::Tensor x = vt::arange(shape.elements()).reshape(shape).astype(d);
      vt::save_npy(folder / "x.npy", vt::transpose(x));
      std::string file = bytes_of_file(folder / "x.npy");
      std::string reversed = "(", given = "(";
      for (std::size_t i = 0; i < shape.size(); ++i) {
        const bool comma = shape.size() == 1 || i + 1 < shape.size();
        given += std::to_string(shape[i]) + (comma ? shape.size() == 1 ? "," : ", " : "");
        reversed += std::to_string(shape[shape.size() - 1 - i]) +
                    (comma ? shape.size() == 1 ? "," : ", " : "");
      }
      const auto replace = [&](const std::string& from, const std::string& to) {
        ASSERT_NE(file.find(from), std::string::npos) << file;
        file.replace(file.find(from), from.size(), to);
      };
      replace("False", "True ");
      replace(reversed, given);
      const std::string npy = folder.written("f.npy", file);
      folder.written("x.npz", vt_test::zip_bytes({{"f.npy", file}}));
      for (const vt::Tensor& y : {vt::load_npy(npy), vt::load_npz(path).at("f")})
        expect_equal<std::complex<double>>(y.astype(vt::c128), x.astype(vt::c128), shape.str());
      // also within a recording
      const vt::Tensor z =
          vt::jit([&](const vt::Tensor& one) { return one + vt::load_npy(npy); })(vt::ones({}, d));
      EXPECT_EQ(z.shape(), shape);
    }
}

// More than 4 GB of a file with holes, of which next to nothing is read.
TEST_F(Npz, OneArrayOfALargeFile) {
  constexpr std::int64_t large = (std::int64_t{5} << 30) / 8;
  const vt::Tensor small = vt::arange(5);
  vt::save_npy(folder / "small.npy", small);
  const std::string npy = bytes_of_file(folder / "small.npy");
  std::string header =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(large) + ",), }";
  header.append(117 - header.size(), ' ');
  const std::string front = vt_test::npy_bytes(header + '\n', "");
  vt::detail::zip::NewArchive archive;
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  ASSERT_TRUE(file);
  const auto put = [&](const std::string& bytes) {
    ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  };
  put(archive.front_of("large.npy", front.size() + large * 8, 0x12345678) + front);
  ASSERT_EQ(::fseeko(file, large * 8, SEEK_CUR), 0);
  put(archive.front_of("small.npy", npy.size(), vt_test::slow_crc32(npy)) + npy);
  put(archive.directory());
  ASSERT_EQ(std::fclose(file), 0);
  const vt::detail::NpzFile opened = open();
  EXPECT_EQ(opened.names(), (std::vector<std::string>{"large", "small"}));
  EXPECT_EQ(opened.form("large").shape, vt::Shape{large});
  expect_equal(opened.read("small"), small, "small");
  if (output_of("python3 -c 'print(1)' 2>/dev/null").first == "1\n") {
    EXPECT_EQ(output_of("python3 -c 'import sys, zipfile; print([(i.filename, i.file_size) for i "
                        "in zipfile.ZipFile(sys.argv[1]).infolist()], "
                        "len(zipfile.ZipFile(sys.argv[1]).read(\"small.npy\")))' '" +
                        path + "' 2>&1")
                  .first,
              "[('large.npy', 5368709248), ('small.npy', 148)] 148\n");
  }
}

// Numbers of 8 bytes stand where they must and nowhere else.
TEST_F(Npz, WideNumbersOnlyWhereTheyMust) {
  const auto has = [](const std::string& text, const std::string& record) {
    return text.find(record) != std::string::npos;
  };
  constexpr std::uint64_t most = 0xffffffff;
  const std::string wide_extra = vt_test::number(1, 2) + vt_test::number(16, 2);
  const std::string wide_offset = vt_test::number(1, 2) + vt_test::number(8, 2);
  const std::string wide_end = "PK\6\6";
  for (const std::uint64_t size : {most - 1, most, most + 1}) {
    vt::detail::zip::NewArchive archive;
    const std::string front = archive.front_of("a.npy", size, 7);
    EXPECT_EQ(front.size() % 64, 0u);
    EXPECT_EQ(has(front, wide_extra + vt_test::number(size, 8) + vt_test::number(size, 8)),
              size >= most);
    const std::string directory = archive.directory();
    EXPECT_EQ(has(directory, wide_extra + vt_test::number(size, 8) + vt_test::number(size, 8)),
              size >= most);
    EXPECT_TRUE(has(directory, wide_end)) << "the directory lies behind 4 GB";
  }
  for (const std::uint64_t before : {most - 200, most + 10}) {
    vt::detail::zip::NewArchive archive;
    const std::string first = archive.front_of("a", before - 128, 7);
    const std::string second = archive.front_of("b", 0, 0);
    EXPECT_EQ((first.size() + before - 128 + second.size()) % 64, 0u);
    const std::uint64_t offset = first.size() + before - 128;
    EXPECT_EQ(has(archive.directory(), wide_offset + vt_test::number(offset, 8)), offset >= most);
    EXPECT_EQ(has(archive.directory(), wide_end), offset + second.size() >= most);
  }
  vt::detail::zip::NewArchive archive;
  for (int i = 0; i < 65534; ++i) (void)archive.front_of("n", 0, 0);
  EXPECT_FALSE(has(archive.directory(), wide_end));
  (void)archive.front_of("n", 0, 0);
  EXPECT_TRUE(has(archive.directory(), wide_end));
}

TEST_F(Npz, SeventyThousandArrays) {
  const vt::Tensor x = vt::tensor(std::vector<std::int8_t>{7}).eval();
  std::vector<NpzEntry> entries;
  for (int i = 0; i < 70000; ++i) entries.push_back({std::to_string(i), x});
  write(entries);
  const vt::detail::NpzFile file = open();
  ASSERT_EQ(file.names().size(), entries.size());
  for (const char* name : {"0", "65535", "69999"})
    EXPECT_EQ(file.read(name).to_vector<int>(), std::vector<int>{7});
}

TEST(Crc32, EqualsTheDefinition) {
  using vt::detail::crc32;
  EXPECT_EQ(crc32("123456789", 9), 0xcbf43926u);
  std::string bytes;
  std::uint32_t state = 1;
  for (int i = 0; i < 40000; ++i)
    bytes += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  for (const std::size_t from : {0u, 1u, 5u})
    for (const std::size_t count :
         {0u, 1u, 7u, 8u, 9u, 100u, 8191u, 8192u, 8200u, 16384u, 39990u}) {
      const std::string part = bytes.substr(from, count);
      const std::uint32_t wanted = vt_test::slow_crc32(part);
      EXPECT_EQ(crc32(bytes.data() + from, count), wanted);
      const std::size_t cut = count / 3;
      EXPECT_EQ(crc32(part.data() + cut, count - cut, crc32(part.data(), cut)), wanted);
    }
}

TEST_F(Npz, SaysHowToDoWithoutZlib) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process, which has not loaded it yet
  EXPECT_NE(vt::detail::zlib_try_library("/nowhere/libz.so.1").find("cannot open shared object"),
            std::string::npos);
  EXPECT_EQ(vt::detail::zlib_try_library("libm.so.6"),
            "libm.so.6 lacks the function inflateInit2_");
  folder.written("x.npz", vt_test::from_base64(numpy_packed));
  EXPECT_EXIT(
      {
        ::setenv("VT_ZLIB_LIBRARY", "none", 1);
        folder.written("x.npz", vt_test::from_base64(numpy_packed));
        std::fputs(message([&] { (void)vt::load_npz(path); }).c_str(), stderr);
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "member \"bool.npy\": it is compressed, which needs zlib: VT_ZLIB_LIBRARY is none "
      ".*np.savez");
}

}  // namespace
