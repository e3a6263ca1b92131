// .npz files that are damaged or lie: each is refused by an Error(io) that names the file, and asks
// for no memory that it could not fill.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include <vt/detail/npz.hpp>
#include <vt/vt.hpp>

#include "src/trace/base/buffer.hpp"
#include "support/zip_files.hpp"

namespace {

#include "npz_files.inc"

using vt_test::number;
using vt_test::zip_bytes;
using vt_test::ZipEnd;
using vt_test::ZipMember;
using Members = std::vector<ZipMember>;
using Arrays = std::map<std::string, vt::Tensor>;

const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
const std::string array = vt_test::npy_bytes(header, std::string("\0\0\x80\x3f\0\0\0\x40", 8));
// `array` by deflate: one block of bytes as they are.
std::string deflated(const std::string& bytes) {
  return "\1" + number(bytes.size(), 2) + number(~bytes.size(), 2) + bytes;
}
ZipMember packed(const std::string& name, const std::string& bytes, const std::string& stream) {
  ZipMember m(name, bytes);
  m.contents = stream;
  m.own.method = 8;
  m.own.stored = stream.size();
  m.listed = m.own;
  return m;
}

struct HostileNpz : testing::Test {
  vt_test::TestFolder folder{"hostile", true};
  std::string path = folder / "x.npz";
  const std::size_t before = vt::detail::pool_use().in_use;

  std::optional<Arrays> load(const std::string& bytes, std::string* why = nullptr) {
    folder.written("x.npz", bytes);
    vt::detail::reset_pool_peak();
    std::optional<Arrays> arrays;
    try {
      arrays = vt::load_npz(path);
    } catch (const vt::Error& e) {
      EXPECT_EQ(e.kind(), vt::ErrorKind::io) << e.what();
      EXPECT_EQ(std::string(e.what()).find("vt::load_npz: " + path + ": "), 0u) << e.what();
      if (why) *why = e.what();
    }
    EXPECT_LE(vt::detail::pool_use().asked_peak, before + 2 * 1032 * bytes.size() + 4096);
    return arrays;
  }
  std::string refusal(const std::string& bytes) {
    std::string why = "no error";
    (void)load(bytes, &why);
    return why;
  }
};

TEST_F(HostileNpz, WhatIsNoArchive) {
  EXPECT_NE(refusal("").find("not a .npz file"), std::string::npos);
  EXPECT_NE(refusal("hello").find("not a .npz file"), std::string::npos);
  EXPECT_NE(refusal(array).find("a .npy file, which vt::load_npy reads"), std::string::npos);
  folder.written("x.npy", zip_bytes({{"a.npy", array}}));
  try {
    (void)vt::load_npy(folder / "x.npy");
    ADD_FAILURE();
  } catch (const vt::Error& e) {
    EXPECT_NE(std::string(e.what()).find(".npz files are read by vt::load_npz"), std::string::npos);
  }
  for (const char* name : {"none.npz", "."}) try {
      (void)vt::load_npz(folder / name);
      ADD_FAILURE();
    } catch (const vt::Error& e) {
      EXPECT_NE(std::string(e.what()).find(name[0] == '.' ? "is a directory" : "No such file"),
                std::string::npos)
          << e.what();
    }
}

TEST_F(HostileNpz, WhatIsRightIsRead) {
  const auto expect_two = [&](const std::string& bytes) {
    std::string why;
    const auto arrays = load(bytes, &why);
    ASSERT_TRUE(arrays) << why;
    ASSERT_EQ(arrays->size(), 2u);
    EXPECT_EQ(arrays->at("a").to_vector<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(arrays->at("b").to_vector<float>(), (std::vector<float>{1, 2}));
  };
  const Members two = {{"a.npy", array}, {"b", array}};
  expect_two(zip_bytes(two));
  expect_two(zip_bytes({packed("a.npy", array, deflated(array)), {"b", array}}));
  // comments, records of 8-byte numbers, sizes behind the contents
  expect_two(zip_bytes(two, [](Members& m, ZipEnd& end) {
    m[0].listed.comment = 0;
    end.comment = "PK\5\6 of a comment, as long as the record is: PK\5\6";
  }));
  expect_two(zip_bytes(two, [](Members&, ZipEnd& end) { end.wide = true; }));
  for (const std::string& signature : {std::string(), number(0x08074b50, 4)})
    for (const int width : {4, 8}) {
      Members streamed = two;
      for (ZipMember& m : streamed) {
        m.behind = signature + number(m.listed.crc, 4) + number(m.listed.stored, width) +
                   number(m.listed.size, width);
        m.own.flags = m.listed.flags = 8;
        m.own.crc = m.own.stored = m.own.size = 0;
        if (width == 8) {
          m.own.extra = number(1, 2) + number(16, 2) + std::string(16, '\0');
          m.own.stored = m.own.size = 0xffffffff;
        }
      }
      expect_two(zip_bytes(streamed));
    }
  Members wide = two;
  wide[1].own.extra = wide[1].listed.extra =
      number(0x5455, 2) + number(1, 2) + "x" + number(1, 2) + number(24, 2) +
      number(array.size(), 8) + number(array.size(), 8) + number(30 + 5 + array.size(), 8);
  wide[1].own.stored = wide[1].own.size = 0xffffffff;
  expect_two(zip_bytes(wide, [](Members& m, ZipEnd&) {
    m[1].listed.stored = m[1].listed.size = m[1].listed.offset = 0xffffffff;
  }));
}

// Each row changes one thing of a good archive of two members.
TEST_F(HostileNpz, LiesAreRefusedByName) {
  using Change = void (*)(Members&, ZipEnd&);
  struct Row {
    const char* wanted;
    Change change;
  };
  const std::string disagree = "its own header and the directory disagree";
  const Row rows[] = {
      {"two members have the name \"a.npy\"",
       [](Members& m, ZipEnd&) { m[1].own.name = m[1].listed.name = "a.npy"; }},
      {"two arrays have the name \"a\"",
       [](Members& m, ZipEnd& end) { m[1].listed.name = "a", end.size -= 4; }},
      {"holds a NUL", [](Members& m, ZipEnd&) { m[1].own.name[0] = m[1].listed.name[0] = 0; }},
      {"or no UTF-8", [](Members& m, ZipEnd&) { m[1].own.name[0] = m[1].listed.name[0] = '\xff'; }},
      {"the name is empty", [](Members& m, ZipEnd& end) { m[1].listed.name = "", end.size -= 5; }},
      {"member \"b.np/\": a folder",
       [](Members& m, ZipEnd&) { m[1].own.name[4] = m[1].listed.name[4] = '/'; }},
      {"member \"b.npy\": it is encrypted",
       [](Members& m, ZipEnd&) { m[1].own.flags = m[1].listed.flags = 1; }},
      {"it is encrypted", [](Members& m, ZipEnd&) { m[1].own.flags = m[1].listed.flags = 0x2000; }},
      {"compressed by method 12",
       [](Members& m, ZipEnd&) { m[1].own.method = m[1].listed.method = 12; }},
      {"two sizes", [](Members& m, ZipEnd&) { --m[1].own.size, --m[1].listed.size; }},
      {"disagree", [](Members& m, ZipEnd&) { m[1].own.name = "c.npy"; }},
      {"disagree", [](Members& m, ZipEnd&) { m[1].own.method = 8; }},
      {"disagree", [](Members& m, ZipEnd&) { m[1].own.flags = 2; }},
      {"disagree", [](Members& m, ZipEnd&) { ++m[1].own.crc; }},
      {"disagree", [](Members& m, ZipEnd&) { ++m[1].own.size; }},
      {"disagree", [](Members& m, ZipEnd&) { m[1].own.stored = 0; }},
      {"the sizes behind it and the directory disagree",
       [](Members& m, ZipEnd&) { m[1].own.flags = m[1].listed.flags = 8; }},
      {"CRC-32", [](Members& m, ZipEnd&) { ++m[1].own.crc, ++m[1].listed.crc; }},
      {"reach into what begins at",
       [](Members& m, ZipEnd&) { ++m[0].own.stored, ++m[0].listed.stored; }},
      {"reach into what begins at",
       [](Members& m, ZipEnd&) { ++m[1].own.stored, ++m[1].listed.stored; }},
      {"reach into what begins at", [](Members& m, ZipEnd&) { m[1].listed.offset = 0; }},
      {"reach into what begins at", [](Members& m, ZipEnd&) { m[1].listed.offset = 0xfffffff0; }},
      {"reach into what begins at", [](Members& m, ZipEnd&) { m[1].listed.offset -= 1; }},
      {"does not begin where",
       [](Members& m, ZipEnd&) { --m[1].listed.stored, --m[1].listed.size, ++m[1].listed.offset; }},
      {"in another file of several", [](Members& m, ZipEnd&) { m[1].listed.disk = 1; }},
      {"a part of an archive of several files", [](Members&, ZipEnd& end) { end.disk = 1; }},
      {"a part of an archive of several files",
       [](Members&, ZipEnd& end) { end.wide = true, end.disks = 2; }},
      {"8-byte numbers lies outside",
       [](Members&, ZipEnd& end) { end.wide = true, end.moved = 1u << 30; }},
      {"8-byte numbers is damaged",
       [](Members&, ZipEnd& end) { end.wide = true, end.moved = ~std::uint64_t{0}; }},
      {"directory is not where", [](Members&, ZipEnd& end) { end.offset += 1; }},
      {"directory is not where", [](Members&, ZipEnd& end) { end.size = 0xfffffffe; }},
      {"directory is not where",
       [](Members&, ZipEnd& end) { end.wide = true, end.offset = ~std::uint64_t{0}; }},
      {"directory holds more", [](Members&, ZipEnd& end) { end.members = 1; }},
      {"directory is damaged", [](Members&, ZipEnd& end) { end.members = 3; }},
      {"directory is damaged",
       [](Members&, ZipEnd& end) { end.wide = true, end.members = ~std::uint64_t{0}; }},
  };
  for (const Row& row : rows) {
    const std::string why = refusal(zip_bytes({{"a.npy", array}, {"b.npy", array}}, row.change));
    EXPECT_NE(why.find(row.wanted), std::string::npos)
        << "row " << &row - rows << ": " << why << ", wanted: " << row.wanted;
  }
  Members extra = {{"a.npy", array}};
  for (const std::string& field : {number(1, 2) + number(8, 2), number(7, 2) + number(1, 2)}) {
    extra[0].listed.extra = field;
    EXPECT_NE(refusal(zip_bytes(extra)).find("extra field is cut off"), std::string::npos);
  }
  extra[0].listed.extra = number(1, 2) + number(4, 2) + number(1, 4);
  extra[0].listed.size = 0xffffffff;
  EXPECT_NE(refusal(zip_bytes(extra)).find("8 bytes is missing"), std::string::npos);
}

TEST_F(HostileNpz, ContentsThatAreNoneOfTheirs) {
  const auto stored = [&](const std::string& bytes) {
    return refusal(zip_bytes({{"a.npy", bytes}}));
  };
  EXPECT_NE(refusal(zip_bytes({{"read.me", "some text"}})).find("member \"read.me\": not a .npy"),
            std::string::npos);
  EXPECT_NE(stored("").find("not a .npy file"), std::string::npos);
  EXPECT_NE(stored(array.substr(0, 20)).find("the header is cut off"), std::string::npos);
  EXPECT_NE(stored(array + "x").find("9 bytes of data, 8 wanted for f32[2]"), std::string::npos);
  EXPECT_NE(stored(array.substr(0, array.size() - 1)).find("7 bytes of data, 8 wanted"),
            std::string::npos);
  EXPECT_NE(stored(vt_test::npy_bytes("{'descr': '|O', 'fortran_order': False, 'shape': (), }", ""))
                .find("dtype |O is none of vt's"),
            std::string::npos);
  const auto inflated = [&](const std::string& bytes, const std::string& stream) {
    return refusal(zip_bytes({packed("a.npy", bytes, stream)}));
  };
  const std::string whole = deflated(array);
  EXPECT_EQ(inflated(array, whole), "no error");
  EXPECT_NE(inflated(array, whole.substr(0, whole.size() - 1)).find("cut off"), std::string::npos);
  EXPECT_NE(inflated(array, whole + "x").find("1 bytes stand behind the compressed data"),
            std::string::npos);
  EXPECT_NE(inflated(array, deflated(array.substr(0, array.size() - 1))).find("data hold"),
            std::string::npos);
  EXPECT_NE(inflated(array, deflated(array + "x")).find("hold more than"), std::string::npos);
  EXPECT_NE(inflated(array, "\7" + whole).find("compressed data are damaged: invalid block type"),
            std::string::npos);
  EXPECT_NE(inflated(array, "").find("0 bytes cannot hold"), std::string::npos);
  // Neither size is true, and both are the same as in the header of the array.
  const std::string far =
      vt_test::npy_bytes("{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000,), }", "");
  Members bomb = {packed("a.npy", far, deflated(far))};
  bomb[0].own.size = bomb[0].listed.size = far.size() + 1000000000;
  EXPECT_NE(refusal(zip_bytes(bomb)).find("bytes cannot hold 1000"), std::string::npos);
}

TEST_F(HostileNpz, CutOffAnywhere) {
  const std::string mine = zip_bytes({{"a.npy", array}, packed("b.npy", array, deflated(array))},
                                     [](Members&, ZipEnd& end) { end.wide = true; });
  for (const std::string& whole : {mine, vt_test::from_base64(numpy_streamed)}) {
    ASSERT_TRUE(load(whole));
    for (std::size_t size = 0; size < whole.size(); ++size)
      ASSERT_FALSE(load(whole.substr(0, size))) << size;
  }
}

// A generator whose numbers are the same everywhere.
struct Draws {
  std::uint64_t state;
  std::size_t below(std::size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state >> 33) % n;
  }
};

std::string changed(std::string bytes, Draws& draw) {
  for (std::size_t changes = 1 + draw.below(3); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = draw.below(bytes.size());
    const std::size_t count = 1 + draw.below(std::min<std::size_t>(16, bytes.size() - at));
    switch (draw.below(7)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << draw.below(8)); break;
      case 1: bytes[at] = static_cast<char>(draw.below(256)); break;
      case 2: std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, '\xff'); break;
      case 3: std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, '\0'); break;
      case 4: bytes.erase(at, count); break;
      case 5: bytes.insert(at, bytes.substr(draw.below(bytes.size()), count)); break;
      default: bytes.resize(at); break;
    }
  }
  return bytes;
}

template <class T>
std::string bytes_of(const vt::Tensor& t) {
  const std::vector<T> values = t.to_vector<T>();
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
std::string contents(const vt::Tensor& t) {
  return vt::name_of(t.dtype()) + t.shape().str() +
         (vt::is_complex(t.dtype()) ? bytes_of<std::complex<double>>(t) : bytes_of<double>(t));
}

// Not the names: a change may come to both places where one stands.
std::vector<std::string> contents(const Arrays& arrays) {
  std::vector<std::string> all;
  for (const auto& [name, t] : arrays) all.push_back(contents(t));
  std::sort(all.begin(), all.end());
  return all;
}

std::uint64_t rounds() {
  const char* given = std::getenv("VT_FUZZ_COUNT");
  return given ? std::strtoull(given, nullptr, 10) * 2 : 3000;
}

TEST_F(HostileNpz, RandomChangesAreRefusedOrHarmless) {
  Members streamed = {{"a.npy", array}, packed("b.npy", array, deflated(array))};
  for (ZipMember& m : streamed) {
    m.behind = number(0x08074b50, 4) + number(m.listed.crc, 4) + number(m.listed.stored, 4) +
               number(m.listed.size, 4);
    m.own.flags = m.listed.flags = 8;
  }
  const std::string files[] = {
      zip_bytes({{"a.npy", array}, packed("b.npy", array, deflated(array))}),
      zip_bytes(streamed, [](Members&, ZipEnd& end) { end.wide = true; }),
      vt_test::from_base64(numpy_stored), vt_test::from_base64(numpy_packed_stream)};
  std::size_t refused = 0, read = 0;
  for (std::size_t file = 0; file < std::size(files); ++file) {
    const auto right = load(files[file]);
    ASSERT_TRUE(right);
    const auto wanted = contents(*right);
    for (std::uint64_t seed = 0; seed < rounds(); ++seed) {
      Draws draw{seed * 4 + file};
      const std::string bytes = changed(files[file], draw);
      if (const auto arrays = load(bytes)) {
        ++read;
        ASSERT_EQ(contents(*arrays), wanted) << "file " << file << ", seed " << seed;
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, read);
  EXPECT_GT(read, 0u) << "times and attributes are not looked at";
}

// Behind a right CRC-32 stands what load_npy reads in the same way.
TEST_F(HostileNpz, RandomArraysAreReadAsByLoadNpy) {
  const std::string shapes[] = {
      array,
      vt_test::npy_bytes("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n",
                         "\1\2\3\4\5\6\7\10\11\12\13\14"),
      vt_test::npy_bytes("{'descr': '|b1', 'fortran_order': False, 'shape': (3L, 1L), }\n", "abc")};
  std::size_t read = 0;
  for (std::size_t shape = 0; shape < std::size(shapes); ++shape)
    for (std::uint64_t seed = 0; seed < rounds(); ++seed) {
      Draws draw{seed * 4 + shape};
      const std::string bytes = changed(shapes[shape], draw);
      const bool small = bytes.size() < 65536;
      const auto arrays =
          load(zip_bytes({small && draw.below(2) == 0 ? packed("a.npy", bytes, deflated(bytes))
                                                      : ZipMember("a.npy", bytes)}));
      folder.written("x.npy", bytes);
      std::optional<vt::Tensor> alone;
      try {
        alone = vt::load_npy(folder / "x.npy");
      } catch (const vt::Error& e) {
        ASSERT_EQ(e.kind(), vt::ErrorKind::io) << e.what();
      }
      if (arrays) {
        ++read;
        ASSERT_TRUE(alone) << "shape " << shape << ", seed " << seed;
        ASSERT_EQ(contents(arrays->at("a")), contents(*alone)) << seed;
      }
    }
  EXPECT_GT(read, 0u);
}

}  // namespace
