// Checkpoints: what any number of ranks saves, any number loads, cut in any way; processes that are
// killed while they save; damaged files; messages of wrong uses, on all ranks.
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <random>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "distributed/shared_folder.hpp"
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::replicated;
using vt::sharded;
using vt::Sharding;
using vt::ShardSpec;
using vt::Tensor;
using vt::distributed::latest_step;
using vt::distributed::load;
using vt::distributed::mesh;
using vt::distributed::Mesh;
using vt::distributed::MeshAxis;
using vt::distributed::rank;
using vt::distributed::save;
using vt_test::expect_error;
using vt_test::on_any_ranks;
using vt_test::part_by_hand;
using vt_test::same_bits;
using vt_test::SharedFolder;

enum class Phase { warm, cold = 7 };
struct Layer {
  Tensor weights, bias;
};
struct State {
  std::vector<Layer> layers;
  std::map<std::string, Tensor> moments;
  int epoch = 0;
  double rate = 0;
  Phase phase = Phase::warm;
  std::vector<bool> frozen;
  std::string title;
};

/// Whole.
State state_at(double step) {
  const auto values = [&](vt::Shape shape, int seed) {
    return vt_test::random_tensor(vt::f64, std::move(shape), 0.0, 1.0, seed) + step;
  };
  return {.layers = {{values({12, 8}, 1), values({8}, 2)}, {values({24, 4}, 3), values({4}, 4)}},
          .moments = {{"m \"one\"\n", values({4, 12}, 5)}, {"v", vt::tensor(step)}},
          .epoch = static_cast<int>(step),
          .rate = 0.1 + step,
          .phase = Phase::cold,
          .frozen = {true, false, true},
          .title = "a state"};
}
/// weights, bias of both layers; moments; and the numbers.
using Shardings = std::array<Sharding, 6>;
ShardSpec specs_of(const Shardings& s) {
  const ShardSpec number = replicated;
  return {{{s[0], s[1]}, {s[2], s[3]}}, {s[4], s[5]}, number, number, number, number, number};
}
State part_of(State state, const Mesh& m, const Shardings& s) {
  std::size_t i = 0;
  return vt::tree_map([&](Tensor x) { return part_by_hand(x, m, s[i++]); }, state);
}
State empty_state() {
  State s = vt::tree_map([](Tensor) { return Tensor(); }, state_at(0));
  s.frozen = {false, false, false};
  s.rate = 0;
  s.phase = Phase::warm;
  s.title = "another";
  return s;
}
void expect_same(const State& got, const State& wanted) {
  const auto a = vt::tree_leaves(got), b = vt::tree_leaves(wanted);
  for (std::size_t i = 0; i < b.size(); ++i) EXPECT_TRUE(same_bits(a[i], b[i])) << i;
  EXPECT_EQ(got.epoch, wanted.epoch);
  EXPECT_EQ(got.rate, wanted.rate);
  EXPECT_EQ(got.phase, wanted.phase);
  EXPECT_EQ(got.frozen, wanted.frozen);
}

struct Way {
  std::vector<MeshAxis> axes;
  Shardings shardings;
  int ranks() const {
    std::int64_t n = 1;
    for (const MeshAxis& a : axes) n *= a.size;
    return static_cast<int>(n);
  }
};
const std::vector<Way>& ways() {
  const Sharding all = replicated;
  const auto rows = sharded("i"), columns = sharded("i", 1);
  static const std::vector<Way> known{
      {{{"i", 1}}, {all, all, all, all, all, all}},
      {{{"i", 2}}, {rows, rows, columns, rows, all, all}},
      {{{"i", 3}}, {rows, all, rows, all, columns, all}},
      {{{"i", 4}}, {columns, rows, rows, rows, rows, all}},
      {{{"i", 4}}, {all, all, all, all, all, all}},
      {{{"a", 2}, {"b", 2}},
       {sharded({{"a", 0}, {"b", 1}}), sharded("b"), sharded({{"b", 0}, {"a", 0}}), all,
        sharded({{"a", 1}, {"b", 1}}), all}},
  };
  return known;
}

TEST(Checkpoint, ThreadsOrProcessesLoadWhatAnyNumberOfThemSaved) {
  const SharedFolder folder("checkpoint_ways");
  const std::string path = folder.file("some/state");
  int step = 0;
  for (const Way& from : ways()) {
    const State whole = state_at(++step);
    on_any_ranks(from.ranks(), [&] {
      const Mesh m = mesh(from.axes);
      save(path, part_of(whole, m, from.shardings),
           {.mesh = m, .specs = specs_of(from.shardings), .step = step});
      EXPECT_EQ(latest_step(path), step);
    });
    for (const Way& to : ways())
      on_any_ranks(to.ranks(), [&] {
        const Mesh m = mesh(to.axes);
        const State wanted = part_of(whole, m, to.shardings);
        for (const State& like : {part_of(state_at(0), m, to.shardings), empty_state()}) {
          const State got = load(path, like, {.mesh = m, .specs = specs_of(to.shardings)});
          expect_same(got, wanted);
          EXPECT_EQ(got.title, like.title);
        }
      });
  }
  // Of the earlier ones no file is left.
  if (rank() == 0) {
    const std::filesystem::directory_iterator names(path);
    EXPECT_EQ(std::distance(begin(names), end(names)), 1 + ways().back().ranks());
  }
}

TEST(Checkpoint, EveryDtypeAndEveryShape) {
  const SharedFolder folder("checkpoint_dtypes");
  for (int ranks : {1, 2, 4})
    on_any_ranks(ranks, [&] {
      const Mesh m = mesh({{"i", -1}});
      std::vector<Tensor> all{vt::zeros({0, 4}), vt::zeros({4, 0}), vt::zeros({4, 3, 2, 1})};
      for (int d = 0; d < vt::dtype_count; ++d)
        all.push_back(vt::arange(4).astype(static_cast<vt::DType>(d)));
      std::vector<Tensor> parts;
      for (const Tensor& x : all) parts.push_back(part_by_hand(x, m, sharded("i")));
      save(folder.file("all"), parts, {.mesh = m, .specs = sharded("i")});
      const auto same = load(folder.file("all"), parts, {.mesh = m, .specs = sharded("i")});
      const auto whole = load(folder.file("all"), all);
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_TRUE(same_bits(same[i], parts[i])) << i;
        EXPECT_TRUE(same_bits(whole[i], all[i])) << i;
      }
      // A Tensor alone; and no specs at all.
      save(folder.file("one"), all.back());
      EXPECT_TRUE(same_bits(load(folder.file("one"), all.back()), all.back()));
      save(folder.file("none"), std::vector<Tensor>());
      EXPECT_TRUE(load(folder.file("none"), std::vector<Tensor>()).empty());
      vt::distributed::barrier();
    });
}

TEST(Checkpoint, LargePartsAreReadInPieces) {
  const SharedFolder folder("checkpoint_large");
  const Tensor x = vt::reshape(vt::arange(3'000'000, vt::f64), {1500, 2000});
  on_any_ranks(2, [&] {
    const Mesh m = mesh({{"i", 2}});
    save(folder.file("x"), part_by_hand(x, m, sharded("i")), {.mesh = m, .specs = sharded("i")});
  });
  for (const Sharding& s : {sharded("i", 1), sharded("i"), Sharding(replicated)})
    on_any_ranks(4, [&] {
      const Mesh m = mesh({{"i", 4}});
      const Tensor own = part_by_hand(x, m, s);
      EXPECT_TRUE(same_bits(load(folder.file("x"), own, {.mesh = m, .specs = s}), own));
    });
}

TEST(Checkpoint, WrongUsesAreErrorsOnAllRanks) {
  const SharedFolder folder("checkpoint_wrong");
  using Map = std::map<std::string, Tensor>;
  on_any_ranks(2, [&] {
    const Mesh m = mesh({{"i", 2}});
    const std::string path = folder.file("state");
    expect_error(
        [&] { (void)load(path, Tensor()); }, ErrorKind::io,
        {"vt::distributed::load: " + path + ": there is no checkpoint: no checkpoint.txt"});
    EXPECT_EQ(latest_step(path), -1);
    const Map good{{"w", vt::zeros({2, 3})}, {"b", vt::zeros({4})}};
    const ShardSpec specs = sharded("i");
    save(path, good, {.mesh = m, .specs = specs, .step = 5});

    expect_error([&] { save(path, good, {.mesh = m, .specs = specs, .step = 6 + rank()}); },
                 ErrorKind::value,
                 {"vt::distributed::save: the steps differ between processes: on rank 0 6, on rank "
                  "1 7; at "});
    expect_error([&] { save(path, good, {.step = -1}); }, ErrorKind::value, {"step -1"});
    const Mesh turned = rank() == 0 ? mesh({{"i", 2}, {"k", 1}}) : mesh({{"k", 1}, {"i", 2}});
    expect_error([&] { save(path, good, {.mesh = turned, .specs = specs}); }, ErrorKind::value,
                 {"the meshes differ between processes: on rank 0 {i: 2, k: 1}, on rank 1 {k: 1"});
    expect_error([&] { save(path, std::vector<Tensor>(1 + rank(), vt::zeros({2}))); },
                 ErrorKind::tree,
                 {"the trees differ between processes: on rank 0 nothing, on rank 1 [1] f32[2]"});
    expect_error([&] { save(path, vt::zeros({2 + rank()}), {.mesh = m, .specs = specs}); },
                 ErrorKind::tree, {"on rank 0 arr_0 f32[4]", "on rank 1 arr_0 f32[6]"});
    expect_error([&] { save(path, std::pair(vt::zeros({2}), rank())); }, ErrorKind::value,
                 {"the numbers of the tree differ between processes", "on rank 1 [1] is 1"});
    expect_error(
        [&] { save(path, Map{{"w", vt::zeros({2}) + rank()}}); }, ErrorKind::value,
        {"vt::distributed::save: w has other values on rank 1 than on rank 0, and specs "
         "says replicated: give specs that cut it, as by vt::sharded, or all the same; at"});
    expect_error([&] { save(path, Map{{"w", Tensor()}}); }, ErrorKind::value,
                 {"w is an empty Tensor"});
    expect_error([&] { save(path, good, {.mesh = m, .specs = sharded("i", 1)}); }, ErrorKind::shape,
                 {"sharded(\"i\", 1) cuts axis 1 of b, which has 1 axes"});
    expect_error([&] { save(path, good, {.mesh = m, .specs = {replicated}}); }, ErrorKind::tree,
                 {"vt::distributed::save: specs: the tree has 2 parts"});
    expect_error([&] { save(path, good, {.specs = specs}); }, ErrorKind::value,
                 {"names axis \"i\", and the mesh is {processes: 2}"});
    if (rank() == 0) std::ofstream(folder.file("file")) << "no folder";
    vt::distributed::barrier();
    expect_error([&] { save(folder.file("file"), good); }, ErrorKind::io,
                 {"/file: the folder cannot be made: "});
    expect_error([&] { save(folder.file("file/below"), good); }, ErrorKind::io,
                 {"the folder cannot be made: "});
    // One rank alone fails, before and while it writes; and both throw.
    const Map one_empty{{"w", rank() == 1 ? Tensor() : vt::zeros({2})}};
    expect_error([&] { save(path, one_empty); }, ErrorKind::value,
                 {rank() == 1 ? "save: w is an empty" : "rank 1 failed: vt::distributed::save: w"});

    // All of this has left the checkpoint as it was.
    EXPECT_EQ(latest_step(path), 5);
    EXPECT_TRUE(same_bits(load(path, good, {.mesh = m, .specs = specs}).at("b"), good.at("b")));
    const Map other{{"w", vt::zeros({3, 3})}, {"c", Tensor()}};
    expect_error([&] { (void)load(path, other, {.mesh = m, .specs = specs}); }, ErrorKind::io,
                 {path + ": it does not hold this tree: there is no c; w is f32[4,3] there and "
                         "f32[6,3] here; b is not in the tree; at "});
    const Map integers{{"w", vt::zeros({2, 3}, vt::i32)}, {"b", Tensor()}};
    expect_error([&] { (void)load(path, integers, {.mesh = m, .specs = specs}); }, ErrorKind::io,
                 {"w is f32[4,3] there and i32[4,3] here"});
    const Map any{{"w", Tensor()}, {"b", Tensor()}};
    expect_error(
        [&] { (void)load(path, any, {.mesh = m, .specs = {replicated, sharded("i", 1)}}); },
        ErrorKind::shape, {"axis 1 of w of " + path + ", which is [4,3], has 3 elements"});
    const auto one_other = rank() == 1 ? other : good;
    expect_error(
        [&] { (void)load(path, one_other, {.mesh = m, .specs = specs}); }, ErrorKind::io,
        {rank() == 1 ? "load: " : "rank 1 failed: vt::distributed::load: ", "there is no c"});
    vt::distributed::barrier();
  });
  on_any_ranks(2, [&] {
    // Numbers as load_npz takes them.
    const std::string path = folder.file("numbers");
    save(path, std::tuple(300, 2.5, true));
    const auto [a, b, c] = load(path, std::tuple(std::int64_t{0}, 0.0f, false));
    EXPECT_EQ(a, 300);
    EXPECT_EQ(b, 2.5f);
    EXPECT_TRUE(c);
    expect_error([&] { (void)load(path, std::tuple(std::int8_t{0}, 0.0, false)); }, ErrorKind::io,
                 {"[0] is 300", "which is no i8"});
    expect_error([&] { (void)load(path, std::tuple(0, 0, false)); }, ErrorKind::io,
                 {"[1] is 2.5", "which is no i32"});
  });
}

// --- what can happen to files --------------------------------------------------------------------

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}
void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

TEST(Checkpoint, DamageIsFound) {
  const SharedFolder folder("checkpoint_damage");
  const std::string path = folder.file("state");
  on_any_ranks(2, [&] {
    const Mesh m = mesh({{"i", 2}});
    const Shardings& s = ways()[1].shardings;
    save(path, part_of(state_at(1), m, s), {.mesh = m, .specs = specs_of(s), .step = 1});
  });
  if (rank() == 0) {
    // Any byte of any file, and any end of one.
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      files.push_back(entry.path());
    EXPECT_EQ(files.size(), 3u);
    for (const std::filesystem::path& file : files) {
      const std::string good = text_of(file);
      const auto expect_refused = [&](const std::string& text, std::size_t at) {
        write_text(file, text);
        vt::distributed::simulate(1, [&] {
          try {
            (void)load(path, empty_state());
            ADD_FAILURE() << file << ", " << at << ": taken";
          } catch (const vt::Error& e) {
            EXPECT_EQ(e.kind(), ErrorKind::io) << e.what();
            EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
          }
        });
      };
      const std::size_t step = good.size() / 40 + 1;
      for (std::size_t at = 0; at < good.size(); at += step) {
        std::string other = good;
        other[at] = static_cast<char>(other[at] ^ 0x20);
        expect_refused(other, at);
        expect_refused(good.substr(0, at), at);
      }
      std::filesystem::remove(file);
      EXPECT_THROW((void)vt::distributed::simulate(1, [&] { (void)load(path, empty_state()); }),
                   vt::Error);
      write_text(file, good);
    }
    vt::distributed::simulate(1, [&] {
      expect_same(load(path, empty_state()), state_at(1));
      const std::string manifest = path + "/checkpoint.txt", good = text_of(manifest);
      std::string other = good;
      other.replace(other.find("version 1"), 9, "version 2");
      write_text(manifest, other);
      expect_error([&] { (void)latest_step(path); }, ErrorKind::io,
                   {"format version 2 is not known; this vt reads version 1"});
      write_text(manifest, "hello");
      expect_error([&] { (void)latest_step(path); }, ErrorKind::io,
                   {"not the manifest of a checkpoint"});
      // Files of which nothing is known stay until there is a new one.
      save(path, state_at(2), {.step = 2});
      expect_same(load(path, empty_state()), state_at(2));
    });
  }
  vt::distributed::barrier();
}

TEST(Checkpoint, LeftoversGoWithTheNextSave) {
  const SharedFolder folder("checkpoint_leftovers");
  const std::string path = folder.file("state");
  on_any_ranks(2, [&] {
    if (rank() == 0) {
      std::filesystem::create_directories(path);
      for (const char* name :
           {"checkpoint-0123456789abcdef-0.part", "checkpoint-0123456789abcdef-17.part",
            "checkpoint-0123456789abcdef.new", "checkpoint-best.part", "notes.txt",
            "checkpoint-0123456789abcdef-.part", "checkpoint-0123456789abcdef-1.partial"})
        write_text(path + "/" + name, name);
    }
    vt::distributed::barrier();
    save(path, vt::zeros({3}));
    save(path, vt::zeros({3}));
    if (rank() == 0) {
      std::vector<std::string> names;
      for (const auto& entry : std::filesystem::directory_iterator(path))
        names.push_back(entry.path().filename().string());
      EXPECT_EQ(names.size(), 6u);  // two of the checkpoint, four that are not vt's
      EXPECT_TRUE(std::filesystem::exists(path + "/checkpoint-best.part"));
      EXPECT_TRUE(std::filesystem::exists(path + "/notes.txt"));
    }
    vt::distributed::barrier();
  });
}

/// While one exists, files may not become longer.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit lower{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &lower);
  }
  ~FileLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(Checkpoint, WhereOneRankFindsNoRoomThereIsTheLastOne) {
  const SharedFolder folder("checkpoint_full");
  const std::string path = folder.file("state");
  const auto save_at = [&](double step) {
    const Mesh m = mesh({{"i", -1}});
    const std::pair state(vt::full({2}, step), vt::full({400'000}, step));
    save(path, state, {.mesh = m, .specs = {sharded("i"), replicated}});
  };
  on_any_ranks(2, [&] { save_at(1); });
  const FileLimit limit(1 << 20);  // of the whole process; only rank 0 writes more
  on_any_ranks(2, [&] {
    expect_error([&] { save_at(2); }, ErrorKind::io,
                 {rank() == 0 ? "vt::distributed::save: " + path + "/checkpoint-"
                              : "rank 0 failed: vt::distributed::save: ",
                  "-0.part: File too large; at "});
    const auto [own, all] = load(path, std::pair(Tensor(), Tensor()));
    EXPECT_EQ(vt::sum(own).item<double>(), 4);
    EXPECT_EQ(vt::sum(all).item<double>(), 400'000);
    vt::distributed::barrier();
    const std::filesystem::directory_iterator names(path);
    EXPECT_EQ(std::distance(begin(names), end(names)), 3);
    const Mesh m = mesh({{"i", 2}});
    expect_error(
        [&] {
          vt::distributed::save_npy(folder.file("x.npy"), vt::zeros({400'000}), m, sharded("i"));
        },
        ErrorKind::io, {"x.npy: File too large"});
    EXPECT_FALSE(std::filesystem::exists(folder.file("x.npy")));
  });
}

TEST(Checkpoint, WhereARankLeavesThereIsTheLastOne) {
  const SharedFolder folder("checkpoint_left");
  const std::string path = folder.file("state");
  if (rank() == 0) {
    vt::distributed::simulate(3, [&] { save(path, vt::tensor(1.0), {.step = 1}); });
    EXPECT_THROW(vt::distributed::simulate(3,
                                           [&] {
                                             if (rank() == 1) throw std::runtime_error("left");
                                             expect_error(
                                                 [&] { save(path, vt::tensor(2.0), {.step = 2}); },
                                                 ErrorKind::backend,
                                                 {"vt::distributed::save: rank 1 failed: left"});
                                             throw std::runtime_error("and so do the others");
                                           }),
                 std::runtime_error);
    vt::distributed::simulate(2, [&] {
      EXPECT_EQ(latest_step(path), 1);
      EXPECT_EQ(load(path, Tensor()).item<double>(), 1.0);
    });
  }
  vt::distributed::barrier();
}

constexpr int savers = 3;
const Shardings saver_shardings = ways()[2].shardings;

/// Saves one step after the other, from the one behind the last.
void save_for_ever(const std::string& path) {
  vt::distributed::simulate(savers, [&] {
    const Mesh m = mesh({{"i", savers}});
    for (std::int64_t step = latest_step(path) + 1;; ++step)
      save(path, part_of(state_at(static_cast<double>(step)), m, saver_shardings),
           {.mesh = m, .specs = specs_of(saver_shardings), .step = step});
  });
}
/// The step of a checkpoint that must be whole.
std::int64_t whole_step(const std::string& path, const Way& to) {
  std::atomic<std::int64_t> found{-1};
  vt::distributed::simulate(to.ranks(), [&] {
    const Mesh m = mesh(to.axes);
    const State got = load(path, empty_state(), {.mesh = m, .specs = specs_of(to.shardings)});
    expect_same(got, part_of(state_at(got.epoch), m, to.shardings));
    if (rank() == 0) found = got.epoch;
  });
  return found;
}

TEST(Checkpoint, ProcessesThatAreKilledLeaveAWholeOne) {
  const SharedFolder folder("checkpoint_killed");
  const std::string path = folder.file("state");
  if (rank() == 0) {
    std::mt19937 random(5);
    std::int64_t step = -1, moved = 0;
    for (int kill = 0; kill < 40; ++kill) {
      const pid_t saver = ::fork();
      if (saver == 0) {
        try {
          save_for_ever(path);
        } catch (const std::exception& e) {
          std::fprintf(stderr, "%s\n", e.what());
        }
        ::_exit(1);
      }
      // At once, or some time after it has saved.
      const std::string manifest = path + "/checkpoint.txt", before = text_of(manifest);
      for (int wait = 0; kill % 2 == 0 && wait < 20'000 && text_of(manifest) == before; ++wait)
        ::usleep(1000);
      ::usleep(random() % 40'000);
      ::kill(saver, SIGKILL);
      int status = 0;
      ::waitpid(saver, &status, 0);
      ASSERT_TRUE(WIFSIGNALED(status)) << "the process ended itself";
      if (step < 0 && !std::filesystem::exists(manifest)) continue;
      const std::int64_t now = whole_step(path, ways()[static_cast<std::size_t>(kill) % 6]);
      EXPECT_GE(now, step);
      moved += now > step;
      step = now;
    }
    EXPECT_GE(moved, 20);
  }
  vt::distributed::barrier();
}

TEST(Checkpoint, WhoLoadsWhileOthersSaveHasAWholeOne) {
  const SharedFolder folder("checkpoint_readers");
  const std::string path = folder.file("state");
  if (rank() == 0) {
    vt::distributed::simulate(1, [&] { save(path, state_at(0)); });
    const pid_t saver = ::fork();
    if (saver == 0) {
      try {
        save_for_ever(path);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
      }
      ::_exit(1);
    }
    std::int64_t step = 0;
    for (int i = 0; i < 60; ++i) {
      const std::int64_t now = whole_step(path, ways()[static_cast<std::size_t>(i) % 6]);
      EXPECT_GE(now, step);
      step = now;
    }
    ::kill(saver, SIGKILL);
    int status = 0;
    ::waitpid(saver, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the process ended itself";
    EXPECT_GT(step, 0);
  }
  vt::distributed::barrier();
}

}  // namespace
