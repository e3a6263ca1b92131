// Dataset: elements against loops over plain vectors, in every order of steps; batches first;
// threads; messages of wrong uses and files.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::Tensor;
using vt_test::expect_close;
using vt_test::expect_error;
using Pair = std::pair<Tensor, Tensor>;

const Tensor xs = vt::reshape(vt::arange(20, vt::f64), {10, 2}), ys = vt::arange(10);
const vt::Dataset data(Pair{xs, ys});

std::vector<int> labels(const vt::Dataset<Pair>& d) {
  std::vector<int> all;
  for (const auto& [x, y] : d)
    for (int v : vt::reshape(y, {y.size()}).to_vector<int>()) all.push_back(v);
  return all;
}

TEST(Dataset, RowsOneByOneAndInBatches) {
  EXPECT_EQ(data.size(), 10);
  int i = 0;
  for (const auto& [x, y] : data) {
    expect_close(x, xs[i]);
    EXPECT_EQ(y.item<int>(), i++);
  }
  EXPECT_EQ(i, 10);
  const auto batches = data.batch(4).to_vector();
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(data.batch(4).size(), 3);
  expect_close(batches[1].first, xs[vt::slice(4, 8)]);
  expect_close(batches[2].second, ys[vt::slice(8, 10)]);
  EXPECT_EQ(data.batch(4, {.drop_remainder = true}).size(), 2);
  EXPECT_EQ(data.batch(4, {.drop_remainder = true}).to_vector().size(), 2u);
  EXPECT_EQ(data.batch(10).to_vector()[0].first.shape(), vt::Shape({10, 2}));
  EXPECT_EQ(data.batch(2).batch(3).to_vector()[1].first.shape(), vt::Shape({2, 2, 2}));
  EXPECT_TRUE(vt::Dataset(vt::zeros({0, 3})).batch(2).to_vector().empty());
  EXPECT_EQ(vt::Dataset(vt::zeros({4, 0})).batch(3).to_vector()[0].shape(), vt::Shape({3, 0}));
}

TEST(Dataset, TakeSkipRepeatAndShuffle) {
  EXPECT_EQ(labels(data.skip(3).take(2)), (std::vector<int>{3, 4}));
  EXPECT_EQ(labels(data.take(3).repeat(2)), (std::vector<int>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(labels(data.take(2).repeat().take(5)), (std::vector<int>{0, 1, 0, 1, 0}));
  EXPECT_EQ(data.repeat().size(), -1);
  EXPECT_EQ(data.repeat(3).skip(25).size(), 5);
  EXPECT_TRUE(labels(data.take(0).repeat()).empty());
  EXPECT_TRUE(labels(data.repeat(0)).empty());
  EXPECT_TRUE(labels(data.skip(11)).empty());
  const auto shuffled = data.shuffle(vt::random::key(3));
  const std::vector<int> order = labels(shuffled), again = labels(shuffled),
                         twice = labels(shuffled.repeat(2));
  EXPECT_EQ(order, again);
  EXPECT_NE(order, labels(data));
  EXPECT_NE(order, labels(data.shuffle(vt::random::key(4))));
  EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 10u);
  EXPECT_TRUE(std::equal(order.begin(), order.end(), twice.begin()));
  const std::vector<int> second(twice.begin() + 10, twice.end());
  EXPECT_NE(second, order);  // another order in each repetition
  EXPECT_EQ(std::set<int>(second.begin(), second.end()).size(), 10u);
  EXPECT_EQ(labels(shuffled.batch(3)), order);
  EXPECT_EQ(labels(data.batch(2).shuffle(vt::random::key(1))).size(), 10u);
  EXPECT_EQ(labels(data.batch(4).take(1)), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(labels(data.batch(5).repeat(2).skip(1)),
            (std::vector<int>{5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// A repeat behind batches begins the shuffle before them anew, as one behind rows does.
TEST(Dataset, ShardsTakeTurnsAndAreOfOneLength) {
  EXPECT_EQ(data.shard(3, 0).size(), 3);
  EXPECT_EQ(labels(data.shard(3, 0)), (std::vector<int>{0, 3, 6}));
  EXPECT_EQ(labels(data.shard(3, 2)), (std::vector<int>{2, 5, 8}));  // 9 is left out
  EXPECT_EQ(labels(data.shard(1, 0)), labels(data));
  EXPECT_TRUE(labels(data.shard(11, 10)).empty());
  EXPECT_EQ(data.shard(11, 0).size(), 0);
  EXPECT_EQ(labels(data.skip(1).shard(2, 1).take(2)), (std::vector<int>{2, 4}));
  // Shards of shards, and what repeats before and after.
  EXPECT_EQ(labels(data.shard(2, 1).shard(2, 0)), (std::vector<int>{1, 5}));
  EXPECT_EQ(labels(data.shard(4, 3).repeat(2)), (std::vector<int>{3, 7, 3, 7}));
  EXPECT_EQ(labels(data.take(3).repeat(3).shard(4, 3)), (std::vector<int>{0, 1}));
  EXPECT_EQ(data.repeat().shard(3, 1).size(), -1);
  EXPECT_EQ(labels(data.repeat().shard(3, 1).take(5)), (std::vector<int>{1, 4, 7, 0, 3}));
  EXPECT_TRUE(labels(data.take(2).repeat(0).shard(2, 1)).empty());
  // Elements that are no rows: batches, and what is shuffled, prefetched and shown.
  EXPECT_EQ(labels(data.batch(2).shard(2, 1)), (std::vector<int>{2, 3, 6, 7}));
  EXPECT_EQ(data.batch(2).shard(2, 1).size(), 2);
  EXPECT_EQ(labels(data.batch(2).shard(2, 1).repeat(2).batch(2)),
            (std::vector<int>{2, 3, 6, 7, 2, 3, 6, 7}));
  EXPECT_EQ(labels(data.prefetch(2).shard(5, 1).prefetch(1)), (std::vector<int>{1, 6}));
  EXPECT_EQ(labels(data.batch(5).shuffle(vt::random::key(2)).shard(1, 0)),
            labels(data.batch(5).shuffle(vt::random::key(2))));
  // Of a map only what is asked for is made; and maps stay behind batches.
  const auto doubled = data.map([](Tensor x, Tensor y) { return std::pair(x, 2 * y); });
  EXPECT_EQ(labels(doubled.shard(3, 1)), (std::vector<int>{2, 8, 14}));
  EXPECT_EQ(doubled.shard(3, 1).batch(2).str(),
            "rows of f64[10,2] i32[10]\nshard 1 of 3\nbatch 2\nmap, vectorized");
  expect_error([] { (void)data.shard(0, 0); }, ErrorKind::value, {"at least one part, not 0"});
  expect_error([] { (void)data.shard(3, 3); }, ErrorKind::value,
               {"shard 3 of 3; they are numbered from 0 to 2"});
  expect_error([] { (void)data.shard(3, -1); }, ErrorKind::value, {"shard -1 of 3"});
}

TEST(Dataset, BatchesOfShardsTogetherAreThoseOfTheWhole) {
  const vt::Dataset many(std::pair(vt::arange(48, vt::f64), vt::arange(48)));
  const auto shuffled = many.shuffle(vt::random::key(5)).repeat(2);
  constexpr std::int64_t batch = 12;
  const auto whole = shuffled.batch(batch).to_vector();
  for (std::int64_t count : {1, 2, 3, 4, 6, 12}) {
    std::vector<std::set<int>> together(whole.size());
    for (std::int64_t index = 0; index < count; ++index) {
      const auto own = shuffled.shard(count, index).batch(batch / count).to_vector();
      ASSERT_EQ(own.size(), whole.size()) << count;
      for (std::size_t k = 0; k < own.size(); ++k)
        for (int v : own[k].second.to_vector<int>()) together[k].insert(v);
    }
    for (std::size_t k = 0; k < whole.size(); ++k) {
      const auto all = whole[k].second.to_vector<int>();
      EXPECT_EQ(together[k], std::set<int>(all.begin(), all.end())) << count << ", batch " << k;
    }
  }
}

TEST(Dataset, RepetitionsOfBatchesAreShuffledAnew) {
  const auto rows = data.shuffle(vt::random::key(3));
  const std::vector<int> wanted = labels(rows.repeat(3));
  const auto same = [](Tensor x, Tensor y) { return std::pair(x, y); };
  EXPECT_EQ(labels(rows.batch(5).repeat(3)), wanted);
  EXPECT_EQ(labels(rows.map(same).batch(4).repeat(3).prefetch(2)), wanted);
  EXPECT_EQ(labels(rows.map(same).batch(4).prefetch(2).repeat(3)), wanted);
  EXPECT_EQ(labels(rows.prefetch(2).map(same).take(10).batch(4).repeat(3)), wanted);
  EXPECT_EQ(labels(rows.batch(5).repeat().take(6)), wanted);
  EXPECT_EQ(labels(rows.batch(5).repeat(3)), labels(rows.batch(5).repeat(3)));
  const auto batches = data.batch(2).shuffle(vt::random::key(2));
  const std::vector<int> twice = labels(batches.repeat(2));
  EXPECT_NE(std::vector<int>(twice.begin() + 10, twice.end()),
            std::vector<int>(twice.begin(), twice.begin() + 10));
}

TEST(Dataset, MapsRunOnBatchesWhereABatchFollows) {
  int traced = 0;
  const auto f = [&](Tensor x, Tensor y) {
    ++traced;
    EXPECT_EQ(x.shape(), vt::Shape({2}));  // written for one example
    return std::pair(vt::sum(x * x) + y, vt::sin(x));
  };
  const auto mapped = data.map(f);
  const auto batched = mapped.batch(4);
  EXPECT_EQ(batched.str(), "rows of f64[10,2] i32[10]\nbatch 4\nmap, vectorized");
  EXPECT_EQ(mapped.shuffle(vt::random::key(1)).take(6).batch(2).str(),
            "rows of f64[10,2] i32[10]\nshuffle\ntake 6\nbatch 2\nmap, vectorized");
  const Tensor wanted =
      vt_test::stack_loop([](Tensor x, Tensor y) { return vt::sum(x * x) + y; }, 0, xs, ys);
  std::int64_t at = 0;
  for (const auto& [s, r] : batched) {
    expect_close(s, wanted[vt::slice(at, at + s.size())]);
    expect_close(r, vt::sin(xs[vt::slice(at, at + s.size())]), {.ulps = 2});
    at += s.size();
  }
  EXPECT_EQ(at, 10);
  const int before = traced;
  for (const auto& b : batched) EXPECT_GT(b.first.size(), 0);
  EXPECT_EQ(traced, before);  // compiled for the two sizes, once
  at = 0;
  for (const auto& one : mapped) expect_close(one.first, wanted[at++]);
  EXPECT_EQ(at, 10);
  // Maps of maps, of batches, and of what is not a pair.
  const auto chain = data.map([](Tensor x, Tensor) { return x; })
                         .map([](Tensor x) { return x * 2.0; })
                         .batch(3)
                         .map([](Tensor b) { return vt::sum(b, 0); });
  expect_close(chain.to_vector()[0], vt::sum(xs[vt::slice(0, 3)] * 2.0, 0));
  EXPECT_EQ(chain.size(), 4);
  struct Example {
    Tensor image;
    int width;
  };
  const auto structs =
      vt::Dataset(xs).map([](Tensor x) { return Example{x + 1.0, 7}; }).batch(5).to_vector();
  EXPECT_EQ(structs[1].width, 7);
  expect_close(structs[1].image, xs[vt::slice(5, 10)] + 1.0);
}

TEST(Dataset, PrefetchGivesTheSameAndPassesErrorsOn) {
  const auto plain = data.shuffle(vt::random::key(2))
                         .map([](Tensor x, Tensor y) { return std::pair(x * 3.0, y); })
                         .batch(3);
  for (int ahead : {1, 2, 50}) EXPECT_EQ(labels(plain.prefetch(ahead)), labels(plain));
  for (int k = 0; k < 20; ++k)
    for (const auto& b : data.repeat().batch(2).prefetch(3)) {  // left before its end
      EXPECT_EQ(b.second.size(), 2);
      break;
    }
  const auto broken = data.map([](Tensor x, Tensor) {
    vt::check(x[0] < 9.0, "too large");
    return x;
  });
  expect_error([&] { broken.batch(2).prefetch(2).to_vector().back().eval(); }, ErrorKind::check,
               {"too large"});
}

struct TemporaryFile {
  std::string path;
  explicit TemporaryFile(const std::string& text)
      : path((std::filesystem::temp_directory_path() /
              ("vt_dataset_" + std::to_string(::getpid()) + ".csv"))
                 .string()) {
    std::ofstream(path, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

TEST(Dataset, CsvFiles) {
  const TemporaryFile good("1, 2.5,-3e2\n\n +4,5,6\r\n7,8,nan");
  const Tensor t = vt::load_csv(good.path, {.dtype = vt::f64});
  EXPECT_EQ(t.shape(), vt::Shape({3, 3}));
  EXPECT_EQ(t[0].to_vector<double>(), (std::vector<double>{1, 2.5, -300}));
  EXPECT_TRUE(std::isnan(t[2][2].item<double>()));
  EXPECT_EQ(vt::load_csv(good.path).dtype(), vt::f32);
  EXPECT_EQ(vt::Dataset(vt::load_csv(good.path)).batch(2).size(), 2);
  const auto refuse = [](const std::string& text, vt::CsvOptions options, const std::string& part) {
    const TemporaryFile file(text);
    expect_error([&] { (void)vt::load_csv(file.path, options); }, ErrorKind::io,
                 {"vt::load_csv: " + file.path + part, "; at dataset_test.cpp:"});
  };
  refuse("1,2\n3\n", {}, ":2: has 1 columns where 2 are needed");
  refuse("1,2\n\n3,x1\n", {}, ":3: column 2 is \"x1\", which is not a number");
  refuse("1,,2\n", {}, ":1: column 2 is \"\", which is not a number");
  refuse("", {}, ": has no rows");
  refuse("a,b\n", {.header = true}, ": has no rows");
  refuse("a,b\n1,2\n", {}, ":1: column 1 is \"a\"");
  refuse("1;2\n", {.separator = ';', .columns = 3}, ":1: has 2 columns where 3 are needed");
  const TemporaryFile headed("a;b\n1;2\n");
  EXPECT_EQ(vt::load_csv(headed.path, {.separator = ';', .header = true}).shape(),
            vt::Shape({1, 2}));
  expect_error([] { (void)vt::load_csv("/no/such/file.csv"); }, ErrorKind::io,
               {"vt::load_csv: /no/such/file.csv: No such file"});
}

TEST(Dataset, CsvFilesOfSpreadsheets) {
  const TemporaryFile file("\xEF\xBB\xBF\"1\",\" -2.5 \"\r\n3,\"4\"\r\n");
  const Tensor t = vt::load_csv(file.path, {.dtype = vt::f64});
  EXPECT_EQ(t.shape(), vt::Shape({2, 2}));
  EXPECT_EQ(t.to_vector<double>(), (std::vector<double>{1, -2.5, 3, 4}));
  const TemporaryFile open("\"1,2\n");
  expect_error([&] { (void)vt::load_csv(open.path); }, ErrorKind::io,
               {":1: column 1 is \"\"1\", which is not a number"});
}

TEST(Dataset, CsvNumbersBeyondDoubles) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const TemporaryFile file("1e400,-1e400,1e-400,4e-320,1e39");
  EXPECT_EQ(vt::load_csv(file.path, {.dtype = vt::f64}).to_vector<double>(),
            (std::vector<double>{inf, -inf, 0, 4e-320, 1e39}));
  EXPECT_EQ(vt::load_csv(file.path)[0][4].item<float>(), std::numeric_limits<float>::infinity());
  const TemporaryFile far(
      "1e-5000,-1e-5000,1e5000,-0.000000000000000000001e5000,0.1e-99999999999999999999,"
      "1e99999999999999999999");
  EXPECT_EQ(vt::load_csv(far.path, {.dtype = vt::f64}).to_vector<double>(),
            (std::vector<double>{0, 0, inf, -inf, 0, inf}));
  const TemporaryFile trailing("1e400x");
  expect_error([&] { (void)vt::load_csv(trailing.path); }, ErrorKind::io,
               {":1: column 1 is \"1e400x\", which is not a number"});
  for (const std::string text : {"nan(123)", "+-1", "-nan(7)"})
    for (const vt::DType dtype : {vt::f64, vt::i64, vt::u8}) {
      const TemporaryFile file(text);
      expect_error([&] { (void)vt::load_csv(file.path, {.dtype = dtype}); }, ErrorKind::io,
                   {"\"" + text + "\", which is not a number"});
    }
}

TEST(Dataset, CsvFieldsBetweenTabs) {
  const TemporaryFile file("1\t 2 \t3\r\n\n4\t5\t6\n");
  EXPECT_EQ(vt::load_csv(file.path, {.separator = '\t'}).to_vector<double>(),
            (std::vector<double>{1, 2, 3, 4, 5, 6}));
  for (const std::string text : {"1\t2\t\n", "\t1\t2\n", "1\t\t2\n", "\t\t\n"}) {
    const TemporaryFile gap(text);
    expect_error([&] { (void)vt::load_csv(gap.path, {.separator = '\t'}); }, ErrorKind::io,
                 {"is \"\", which is not a number"});
  }
  EXPECT_EQ(vt::load_csv(TemporaryFile("\t1,\t2\t\n").path).to_vector<double>(),
            (std::vector<double>{1, 2}));
}

TEST(Dataset, CsvErrorsQuoteTheStartOfAField) {
  const TemporaryFile file("1," + std::string(5'000'000, 'x') + "\n");
  const std::string text = vt_test::message([&] { (void)vt::load_csv(file.path); });
  EXPECT_LT(text.size(), 300u);
  EXPECT_NE(text.find(":1: column 2 is \"" + std::string(40, 'x') + "…\""), std::string::npos)
      << text;
}

// Integers are read with all their digits, and refused where the dtype has no room for them.
TEST(Dataset, CsvIntegers) {
  const TemporaryFile wide("18446744073709551615,9007199254740993,+7,2e3,3.0,-0");
  EXPECT_EQ(vt::load_csv(wide.path, {.dtype = vt::u64}).to_vector<std::uint64_t>(),
            (std::vector<std::uint64_t>{18446744073709551615u, 9007199254740993u, 7, 2000, 3, 0}));
  const TemporaryFile edges(
      "-9223372036854775808,9223372036854775807,9007199254740993.0,-9007199254740993e0,"
      "900719925474099.30e1,-0.0,0e9999,1200e-2");
  EXPECT_EQ(vt::load_csv(edges.path, {.dtype = vt::i64}).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(),
                                       std::numeric_limits<std::int64_t>::max(), 9007199254740993,
                                       -9007199254740993, 9007199254740993, 0, 0, 12}));
  const TemporaryFile bytes("-128,127");
  EXPECT_EQ(vt::load_csv(bytes.path, {.dtype = vt::i8}).to_vector<int>(),
            (std::vector<int>{-128, 127}));
  const auto refuse = [](const std::string& text, vt::DType dtype) {
    const TemporaryFile file("1," + text + "\n");
    expect_error(
        [&] { (void)vt::load_csv(file.path, {.dtype = dtype}); }, ErrorKind::io,
        {":1: column 2 is \"" + text + "\", which does not fit " + std::string(vt::name_of(dtype)),
         "; at dataset_test.cpp:"});
  };
  for (const char* text : {"9223372036854775808", "9223372036854775807.5", "1e19",
                           "-9223372036854775809.0", "1e-1", "1e999999", "inf", "nan"})
    refuse(text, vt::i64);
  refuse("128", vt::i8);
  refuse("-129", vt::i8);
  refuse("256", vt::u8);
  refuse("-1", vt::u64);
  refuse("18446744073709551616", vt::u64);
  refuse("9223372036854775808", vt::i64);
  refuse("1.5", vt::i32);
  refuse("nan", vt::i32);
  refuse("1e400", vt::i64);
}

// A loop over a dataset of one argument while another one is differentiated.
TEST(Dataset, GradientsByWhatIsNoExample) {
  const auto total = [](const Tensor& w, const Tensor& rows) {
    Tensor sum = vt::tensor(0.0);
    for (const Tensor& row : vt::Dataset(rows).batch(4)) sum = sum + vt::sum(row * w);
    return sum;
  };
  const Tensor w = vt::tensor({0.5, -2.0}), sums = vt::sum(xs, 0);
  expect_close(vt::grad<0>(total)(w, xs), sums);
  expect_close(vt::jacfwd<0>(total)(w, xs), sums);
  expect_close(vt::grad([&](Tensor v) { return total(v * v, xs); })(w), 2.0 * w * sums);
}

TEST(Dataset, WrongUses) {
  expect_error(
      [] {
        vt::jit([](Tensor k) {
          return data.shuffle(vt::random::fold_in(k, 1)).to_vector()[0].first;
        })(vt::random::key(0));
      },
      ErrorKind::tracer, {"under vt::jit", "; at dataset_test.cpp:"});
  expect_error(
      [] { data.batch(4).batch(3).to_vector(); }, ErrorKind::shape,
      {"vt::Dataset: elements of different shapes cannot be put in a batch: f64[4,2] and f64[2,2]",
       "; at dataset_test.cpp:"});
  expect_error(
      [] { vt::Dataset(Pair{xs, vt::arange(9)}); }, ErrorKind::shape,
      {"vt::Dataset: the Tensors have 10 and 9 examples along axis 0", "dataset_test.cpp"});
  expect_error([] { vt::Dataset(vt::tensor(1.0)); }, ErrorKind::shape,
               {"vt::Dataset: a scalar f64[] has no examples"});
  expect_error([] { vt::Dataset(std::vector<Tensor>()); }, ErrorKind::tree,
               {"vt::Dataset: there is no Tensor"});
  expect_error([] { data.batch(0); }, ErrorKind::value, {"vt::Dataset: a batch of 0 elements"});
  expect_error([] { data.take(-2); }, ErrorKind::value,
               {"vt::Dataset: -2 elements cannot be taken"});
  expect_error([] { data.prefetch(0); }, ErrorKind::value, {"vt::Dataset: prefetch 0 elements"});
  expect_error([] { data.repeat().shuffle(vt::random::key(0)); }, ErrorKind::value,
               {"vt::Dataset: what has no end cannot be shuffled"});
  expect_error([] { data.map([](Tensor x, Tensor y) { return vt::matmul(x, y); }); },
               ErrorKind::shape, {"vt::matmul"});  // when it is said, not when it runs
}

TEST(Dataset, ProgressIsShownOnlyWhenAsked) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(labels(data.batch(3)).size(), 10u);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(labels(data.batch(3).progress({.label = "rows", .interval = 0})).size(), 10u);
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_NE(shown.find("rows [##############################] 4/4, "), std::string::npos) << shown;
  EXPECT_EQ(shown.back(), '\n');
}

}  // namespace
