// part, gather and broadcast, and .npy files that ranks read and write in parts: every way to cut a
// value, against slices of the whole; derivatives; messages of wrong uses, on all ranks.
#include <cstring>
#include <fstream>

#include "distributed/shared_folder.hpp"
#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::replicated;
using vt::sharded;
using vt::Sharding;
using vt::Tensor;
using vt::distributed::broadcast;
using vt::distributed::gather;
using vt::distributed::mesh;
using vt::distributed::Mesh;
using vt::distributed::MeshAxis;
using vt::distributed::part;
using vt::distributed::rank;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::on_any_ranks;
using vt_test::part_by_hand;
using vt_test::same_bits;
using vt_test::SharedFolder;
using namespace std::string_literals;

constexpr vt_test::Tolerance same{.relative = 1e-12, .absolute = 1e-13};

struct Case {
  std::vector<MeshAxis> axes;
  Sharding sharding;
  int ranks() const {
    std::int64_t n = 1;
    for (const MeshAxis& a : axes) n *= a.size;
    return static_cast<int>(n);
  }
};
/// Of values with three axes of 12, 4 and 8 elements.
std::vector<Case> cases() {
  std::vector<Case> all{{{{"i", 1}}, replicated}, {{{"i", 1}}, sharded("i")}};
  for (int n : {2, 3, 4}) {
    all.push_back({{{"i", n}}, replicated});
    all.push_back({{{"i", n}}, sharded("i")});
    all.push_back({{{"i", n}}, sharded("i", -3)});
    if (n != 3) all.push_back({{{"i", n}}, sharded("i", 1)});
    if (n != 3) all.push_back({{{"i", n}}, sharded("i", -1)});
  }
  const std::vector<MeshAxis> grid{{"a", 2}, {"b", 2}};
  for (const Sharding& s :
       {Sharding(replicated), sharded("a"), sharded("b", 1), sharded("b", 2),
        sharded({{"a", 0}, {"b", 1}}), sharded({{"a", 2}, {"b", 0}}), sharded({{"a", 0}, {"b", 0}}),
        sharded({{"b", 0}, {"a", 0}}), sharded({{"b", -1}, {"a", -1}})})
    all.push_back({grid, s});
  return all;
}
const Tensor whole = vt_test::random_tensor(vt::f64, {12, 4, 8}, 0.2, 1.2, 3);

TEST(Parts, PartIsASliceAndGatherTheWayBack) {
  for (const Case& c : cases())
    on_any_ranks(c.ranks(), [&] {
      SCOPED_TRACE(c.sharding.str());
      const Mesh m = mesh(c.axes);
      const Tensor own = part(whole, m, c.sharding);
      EXPECT_TRUE(same_bits(own, part_by_hand(whole, m, c.sharding)));
      EXPECT_TRUE(same_bits(gather(own, m, c.sharding), whole));
      const auto there_and_back =
          vt::jit([&](Tensor x) { return gather(part(x, m, c.sharding), m, c.sharding); });
      EXPECT_TRUE(same_bits(there_and_back(whole), whole));
      EXPECT_TRUE(same_bits(there_and_back(2.0 * whole), 2.0 * whole));
      const auto lanes =
          vt::vmap([&](Tensor x) { return part(x, m, c.sharding); }, {.in_axes = 1, .out_axes = 1});
      EXPECT_TRUE(same_bits(lanes(vt::stack({whole, -whole}, 1)), vt::stack({own, -own}, 1)));
    });
}

TEST(Parts, EveryDtype) {
  on_any_ranks(2, [] {
    const Mesh m = mesh({{"i", 2}});
    for (int d = 0; d < vt::dtype_count; ++d) {
      const Tensor x = vt::arange(6).astype(static_cast<vt::DType>(d));
      const Tensor own = part(x, m, sharded("i"));
      EXPECT_TRUE(same_bits(own, part_by_hand(x, m, sharded("i"))));
      EXPECT_TRUE(same_bits(gather(own, m, sharded("i")), x));
    }
    EXPECT_EQ(part(vt::zeros({0, 3}), m, sharded("i")).shape(), vt::Shape({0, 3}));
    EXPECT_EQ(part(vt::tensor(3), m, replicated).item<int>(), 3);
  });
}

TEST(Parts, DerivativesAreThoseOfTheWhole) {
  on_any_ranks(4, [] {
    for (const Sharding& s :
         {sharded("a", 2), sharded({{"b", 0}, {"a", 1}}), Sharding(replicated)}) {
      SCOPED_TRACE(s.str());
      const Mesh m = mesh({{"a", 2}, {"b", 2}});
      // Of what ranks share each value counts once; and all parts do, all at once.
      const auto of_part = [&](Tensor x) { return vt::sum(vt::sin(part(x, m, s))); };
      expect_close(vt::grad(of_part)(whole), vt::cos(whole), same);
      expect_close(vt::jit(vt::grad(of_part))(whole), vt::cos(whole), same);
      const Tensor weights = vt_test::random_tensor(vt::f64, whole.shape(), 5);
      const auto of_whole = [&](Tensor x) { return vt::sum(vt::sin(gather(x, m, s)) * weights); };
      expect_close(vt::grad(of_whole)(part(whole, m, s)),
                   part_by_hand(vt::cos(whole) * weights, m, s), same);
      const auto through = [&](Tensor x) { return of_whole(part(x, m, s)); };
      expect_close(vt::grad(through)(whole), vt::cos(whole) * weights, same);
    }
  });
}

TEST(Parts, WrongUses) {
  on_any_ranks(4, [] {
    const Mesh m = mesh({{"a", 2}, {"b", 2}});
    const auto cut = [&](const Sharding& s) { (void)part(vt::zeros({6, 5}), m, s); };
    expect_error([&] { cut(sharded("b", 1)); }, ErrorKind::shape,
                 {"vt::distributed::part: axis 1 of the Tensor, which is [6,5], has 5 elements, "
                  "and the mesh {a: 2, b: 2} has 2 processes along \"b\"",
                  "4 or 6 elements could be cut; at "});
    expect_error([&] { cut(sharded({{"a", 0}, {"b", 0}})); }, ErrorKind::shape,
                 {"has 6 elements", "has 4 processes along \"a\" and \"b\""});
    expect_error([&] { cut(sharded("c")); }, ErrorKind::value,
                 {"names axis \"c\", and the mesh is {a: 2, b: 2}"});
    expect_error([&] { cut(sharded("a", 2)); }, ErrorKind::shape, {"cuts axis 2", "has 2 axes"});
    expect_error([&] { cut(sharded({{"a", 0}, {"a", 1}})); }, ErrorKind::value,
                 {"cuts the Tensor twice along \"a\""});
    expect_error([&] { (void)part(vt::tensor(1.0), m, sharded("a")); }, ErrorKind::shape,
                 {"a scalar cannot be cut"});
    expect_error([&] { (void)part(vt::zeros({4}) + rank(), m, sharded("a")); }, ErrorKind::value,
                 {"vt::distributed::part: the Tensor, f32[4], has other values on rank 1 than on "
                  "rank 0; give all the same, as by vt::distributed::broadcast; at "});
    expect_error([&] { (void)part(Tensor(), m, sharded("a")); }, ErrorKind::value,
                 {"the Tensor is empty"});
    expect_error([&] { (void)gather(vt::zeros({2}), Mesh(), sharded("a")); }, ErrorKind::value,
                 {"vt::distributed::gather: the mesh is empty"});
    const auto inside =
        vt::shard_map([&](Tensor x) { return part(x, m, sharded("a")); },
                      {.mesh = m, .in_specs = replicated, .out_specs = sharded("a")});
    expect_error([&] { (void)inside(vt::zeros({4})); }, ErrorKind::transform,
                 {"called inside of the function of vt::shard_map"});
  });
}

// --- broadcast -----------------------------------------------------------------------------------

enum class Phase { warm, hot };
struct Layer {
  Tensor weights, bias;
};
struct Tree {
  std::vector<Layer> layers;
  std::map<std::string, Tensor> by_name;
  int epoch;
  double rate;
  Phase phase;
  std::vector<bool> frozen;
  std::string name;
};
Tree tree_of(int n) {
  return {
      {{vt::arange(6.0).reshape({2, 3}) + n, vt::tensor(1.5 * n)}, {vt::zeros({0, 2}), n * 2.0}},
      {{"a", vt::complex(vt::tensor({1.0 + n}), vt::tensor({2.0}))}},
      n,
      0.5 * n,
      n == 0 ? Phase::warm : Phase::hot,
      {n == 1, true},
      "of " + std::to_string(n)};
}

TEST(Broadcast, TreesOfEachProcess) {
  for (const int ranks : {1, 2, 3, 4})
    on_any_ranks(ranks, [&] {
      for (int from = 0; from < ranks; ++from) {
        const Tree wanted = tree_of(from), got = broadcast(tree_of(rank()), from);
        for (std::size_t i = 0; i < 2; ++i) {
          EXPECT_TRUE(same_bits(got.layers[i].weights, wanted.layers[i].weights));
          EXPECT_TRUE(same_bits(got.layers[i].bias, wanted.layers[i].bias));
        }
        EXPECT_TRUE(same_bits(got.by_name.at("a"), wanted.by_name.at("a")));
        EXPECT_EQ(got.epoch, from);
        EXPECT_EQ(got.rate, 0.5 * from);
        EXPECT_EQ(got.phase, wanted.phase);
        EXPECT_EQ(got.frozen, wanted.frozen);
        EXPECT_EQ(got.name, "of " + std::to_string(rank()));
      }
    });
}

TEST(Broadcast, EveryDtypeAndEmptyTensors) {
  on_any_ranks(3, [] {
    for (int d = 0; d < vt::dtype_count; ++d) {
      const Tensor x = (vt::arange(70000) - 7).astype(static_cast<vt::DType>(d));
      EXPECT_TRUE(same_bits(broadcast(rank() == 2 ? x : Tensor(), 2), x));
      EXPECT_TRUE(same_bits(broadcast(rank() == 2 ? x : vt::ones_like(x), 2), x));
    }
    const std::vector<double> odd = {-0.0, std::nan("7"), 1e-310};
    const auto got = broadcast(rank() == 0 ? vt::tensor(odd) : Tensor()).to_vector<double>();
    EXPECT_EQ(std::memcmp(got.data(), odd.data(), sizeof(double) * 3), 0);
    // A weak one stays weak, and each process goes on in the same dtype.
    EXPECT_EQ((broadcast(Tensor(2.0)) * vt::ones({2})).dtype(), vt::f32);
  });
}

TEST(Broadcast, WrongUses) {
  on_any_ranks(3, [] {
    const Tensor x = vt::zeros({3 + (rank() == 1)});
    const std::string named = rank() == 1 ? "" : "rank 1 failed: ";
    expect_error([&] { (void)broadcast(std::vector{x}); }, ErrorKind::shape,
                 {named + "vt::distributed::broadcast: [0] is f32[3] on rank 0, and f32[4] on rank "
                          "1; at files_test.cpp:"});
    expect_error([&] { (void)broadcast(std::vector<Tensor>(rank() == 2 ? 2u : 1u, x)); },
                 ErrorKind::tree, {"vt::distributed::broadcast: the trees differ between proces"});
    expect_error([&] { (void)broadcast(rank() == 1 ? Tensor() : x, 1); }, ErrorKind::value,
                 {"vt::distributed::broadcast: the Tensor is empty on rank 1"});
    expect_error([&] { (void)broadcast(x, 3); }, ErrorKind::value,
                 {"vt::distributed::broadcast: from is 3, and there are 3 processes"});
    expect_error([&] { (void)vt::jit([](Tensor v) { return broadcast(v); })(vt::ones({2})); },
                 ErrorKind::tracer, {"vt::distributed::broadcast: the value of a tracer f32[2]"});
    EXPECT_EQ(broadcast(vt::tensor(5 + rank()), 2).item<int>(), 7);
  });
}

// --- .npy files ----------------------------------------------------------------------------------

/// A file as NumPy writes it, of doubles, with the axes and the bytes in this order.
void write_by_hand(const std::string& path, const Tensor& x, bool columns_first, bool big_endian) {
  std::string shape;
  for (std::int64_t n : x.shape()) shape += std::to_string(n) + ", ";
  const std::string header = "{'descr': '"s + (big_endian ? ">" : "<") +
                             "f8', 'fortran_order': " + (columns_first ? "True" : "False") +
                             ", 'shape': (" + shape + "), }\n";
  std::ofstream out(path, std::ios::binary);
  out << "\x93NUMPY\1"s << '\0' << static_cast<char>(header.size() & 255)
      << static_cast<char>(header.size() >> 8) << header;
  for (double v :
       vt::reshape(columns_first ? vt::transpose(x) : x, {x.size()}).to_vector<double>()) {
    char bytes[8];
    std::memcpy(bytes, &v, 8);
    if (big_endian) std::reverse(bytes, bytes + 8);
    out.write(bytes, 8);
  }
}

TEST(NpyParts, EachRankReadsItsPart) {
  const SharedFolder folder("npy_read");
  if (rank() == 0)
    for (bool columns : {false, true})
      for (bool big : {false, true})
        write_by_hand(folder.file("x"s + (columns ? "F" : "C") + (big ? "b" : "l")), whole, columns,
                      big);
  for (const Case& c : cases())
    on_any_ranks(c.ranks(), [&] {
      SCOPED_TRACE(c.sharding.str());
      vt::distributed::barrier();
      const Mesh m = mesh(c.axes);
      for (const char* name : {"xCl", "xFl", "xCb", "xFb"})
        EXPECT_TRUE(same_bits(vt::distributed::load_npy(folder.file(name), m, c.sharding),
                              part_by_hand(whole, m, c.sharding)))
            << name;
    });
}

TEST(NpyParts, LongRowsAndManyShortOnes) {
  const SharedFolder folder("npy_long");
  const auto wide = vt::reshape(vt::arange(3'000'000, vt::f32), {12, 250'000}),
             tall = vt::transpose(wide), thin = vt::reshape(wide, {1'500'000, 2});
  for (const Tensor& x : {wide, tall, thin})
    for (int axis : {0, 1})
      on_any_ranks(2, [&] {
        const Mesh m = mesh({{"i", 2}});
        const std::string path = folder.file("x.npy");
        const Sharding s = sharded("i", axis);
        const Tensor own = part_by_hand(x, m, s);
        // One value a call would be slow here: a cut of `thin` along axis 1 has 1,500,000 runs.
        if (x.shape() == thin.shape() && axis == 1) {
          if (rank() == 0) vt::save_npy(path, x);
          vt::distributed::barrier();
        } else {
          vt::distributed::save_npy(path, own, m, s);
          EXPECT_TRUE(same_bits(vt::load_npy(path), x));
        }
        EXPECT_TRUE(same_bits(vt::distributed::load_npy(path, m, s), own));
        vt::distributed::barrier();
      });
}

TEST(NpyParts, OneFileOfTheWholeIsWritten) {
  const SharedFolder folder("npy_write");
  for (const Case& c : cases())
    on_any_ranks(c.ranks(), [&] {
      SCOPED_TRACE(c.sharding.str());
      const Mesh m = mesh(c.axes);
      const std::string path = folder.file("y.npy");
      vt::distributed::save_npy(path, part(whole, m, c.sharding), m, c.sharding);
      EXPECT_TRUE(same_bits(vt::load_npy(path), whole));
      vt::distributed::barrier();
      if (rank() == 0) {
        // The same bytes as of one process, and no other file.
        vt::save_npy(folder.file("one.npy"), whole);
        const auto bytes = [](const std::string& name) {
          std::ifstream in(name, std::ios::binary);
          return std::string(std::istreambuf_iterator<char>(in), {});
        };
        EXPECT_EQ(bytes(path), bytes(folder.file("one.npy")));
        const std::filesystem::directory_iterator names(folder.path());
        EXPECT_EQ(std::distance(begin(names), end(names)), 2);
      }
      vt::distributed::barrier();
    });
  on_any_ranks(2, [&] {
    const Mesh m = mesh({{"i", 2}});
    for (int d = 0; d < vt::dtype_count; ++d) {
      const auto dtype = static_cast<vt::DType>(d);
      if (dtype == vt::bf16) continue;
      const std::string path = folder.file(vt::name_of(dtype));
      const Tensor x = vt::arange(6).astype(dtype), own = part(x, m, sharded("i"));
      vt::distributed::save_npy(path, own, m, sharded("i"));
      EXPECT_TRUE(same_bits(vt::load_npy(path), x));
      EXPECT_TRUE(same_bits(vt::distributed::load_npy(path, m, sharded("i")), own));
    }
    for (const Tensor& x : {vt::zeros({0, 3}), vt::zeros({4, 0})}) {
      const Tensor own = part(x, m, sharded("i"));
      vt::distributed::save_npy(folder.file("empty"), own, m, sharded("i"));
      EXPECT_EQ(vt::load_npy(folder.file("empty")).shape(), x.shape());
      EXPECT_EQ(vt::distributed::load_npy(folder.file("empty"), m, sharded("i")).shape(),
                own.shape());
      vt::distributed::barrier();
    }
    vt::distributed::save_npy(folder.file("number"), vt::tensor(2.5), m, replicated);
    EXPECT_EQ(vt::load_npy(folder.file("number")).item<double>(), 2.5);
    EXPECT_EQ(vt::distributed::load_npy(folder.file("number"), m, replicated).item<double>(), 2.5);
  });
}

TEST(NpyParts, WrongUsesAreErrorsOnAllRanks) {
  const SharedFolder folder("npy_wrong");
  on_any_ranks(2, [&] {
    const Mesh m = mesh({{"i", 2}});
    const std::string path = folder.file("x.npy");
    const auto load = [&](const std::string& name, const Sharding& s) {
      return [&m, name, s] { (void)vt::distributed::load_npy(name, m, s); };
    };
    const auto save = [&](const std::string& name, const Tensor& x) {
      return [&m, name, x] { vt::distributed::save_npy(name, x, m, sharded("i")); };
    };
    expect_error(load(path, sharded("i")), ErrorKind::io,
                 {"vt::distributed::load_npy: " + path + ": No such file or directory; at "});
    save(path, vt::arange(6))();
    expect_error(load(path, sharded("j")), ErrorKind::value, {"names axis \"j\""});
    if (rank() == 0) vt::save_npy(folder.file("odd.npy"), vt::zeros({5, 2}));
    vt::distributed::barrier();
    expect_error(
        load(folder.file("odd.npy"), sharded("i")), ErrorKind::shape,
        {"odd.npy, which is [5,2], has 5 elements", "the mesh {i: 2} has 2 processes along \"i\""});
    if (rank() == 0) {
      std::filesystem::resize_file(folder.file("odd.npy"), 160);
      std::ofstream(folder.file("text.npy")) << "1,2,3\n";
    }
    vt::distributed::barrier();
    expect_error(load(folder.file("odd.npy"), sharded("i", 1)), ErrorKind::io,
                 {"32 bytes of data, 40 wanted for f32[5,2]"});
    expect_error(load(folder.file("text.npy"), sharded("i")), ErrorKind::io, {"not a .npy file"});
    // What is there stays when saving fails.
    const Mesh turned = rank() == 0 ? mesh({{"i", 2}, {"k", 1}}) : mesh({{"k", 1}, {"i", 2}});
    expect_error([&] { vt::distributed::save_npy(path, vt::zeros({2}), turned, sharded("i")); },
                 ErrorKind::shape,
                 {"what they have of the file differ between processes", "mesh {k: 1"});
    expect_error(save(path, vt::zeros({2}).astype(vt::bf16)), ErrorKind::io, {"NumPy has no bf16"});
    expect_error(save(path, Tensor()), ErrorKind::value, {"the Tensor is empty"});
    expect_error(save(path, vt::zeros({2 + rank()})), ErrorKind::shape,
                 {"differ between processes: on rank 0 f32[2]", "on rank 1 f32[3]"});
    expect_error(save(folder.file("none/x.npy"), vt::zeros({2})), ErrorKind::io,
                 {"No such file or directory"});
    expect_error(save(folder.path().string(), vt::zeros({2})), ErrorKind::io, {"Is a directory"});
    // One rank alone fails, and both throw.
    const Tensor one_empty = rank() == 1 ? Tensor() : vt::zeros({2});
    expect_error(save(path, one_empty), ErrorKind::value,
                 {rank() == 1 ? "save_npy: the Tensor is empty"
                              : "rank 1 failed: vt::distributed::save_npy: the Tensor is empty"});
    EXPECT_EQ(vt::load_npy(path).size(), 12);
    vt::distributed::barrier();
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      EXPECT_NE(entry.path().filename().string().substr(0, 4), ".vt-");
  });
}

}  // namespace
