// Trees in .npz files: any tree comes back as it was, and what differs is named.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <unordered_map>
#include <variant>

#include <vt/vt.hpp>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::message;

class NpzTrees : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

 private:
  const std::string folder_ =
      (std::filesystem::temp_directory_path() / ("vt_npz_trees_" + std::to_string(::getpid())))
          .string();
};

enum class Activation : std::uint8_t { tanh, relu = 7 };
class Layer {
 public:
  Layer() = default;
  Layer(Tensor w, Tensor b) : w_(std::move(w)), b_(std::move(b)) {}
  const Tensor& w() const { return w_; }
  Activation activation = Activation::relu;

 private:
  Tensor w_, b_;

 public:
  static constexpr auto tree_members = std::tuple(&Layer::w_, &Layer::b_, &Layer::activation);
};
struct Model {
  std::vector<Layer> layers;
  std::unordered_map<std::string, Tensor> tables;
  std::variant<double, Tensor> scale = 0.5;
  std::shared_ptr<Tensor> shift;
  std::optional<Tensor> none;
  std::vector<bool> mask = {true, false, true};
  std::int64_t epoch = -3;
  std::uint8_t small = 200;
  float rate = 0.1f;
  std::complex<double> phase{1, -2};
  bool done = true;
  std::string note = "as given";
};
Model model() {
  Model m;
  m.layers = {{vt_test::random_tensor(vt::f32, {3, 2}, 1), vt_test::random_tensor(vt::f64, {2}, 2)},
              {vt::zeros({0, 2}), vt::tensor(true)}};
  m.tables = {{"z", vt::arange(3)}, {"a b", vt::tensor(std::complex<float>(1, 2))}};
  m.shift = std::make_shared<Tensor>(vt::full({2}, 7, vt::u16));
  return m;
}

TEST_F(NpzTrees, ComeBackAsTheyWere) {
  const Model m = model();
  vt::save_npz(file("model.npz"), m);
  Model like = model();
  like.layers = {Layer(), Layer()};  // empty Tensors take what there is
  like.layers[0].activation = Activation::tanh;
  like.scale = 0.0, like.mask = {false, false, false};
  like.epoch = 0, like.small = 0, like.rate = 0, like.phase = 0, like.done = false;
  like.note = "of like";
  const Model back = vt::load_npz(file("model.npz"), like);
  const std::vector<Tensor> saved = vt::tree_leaves(m), loaded = vt::tree_leaves(back);
  ASSERT_EQ(saved.size(), loaded.size());
  for (std::size_t i = 0; i < saved.size(); ++i) vt_test::expect_close(loaded[i], saved[i]);
  EXPECT_EQ(back.layers[0].activation, Activation::relu);
  EXPECT_EQ(std::get<double>(back.scale), 0.5);
  EXPECT_EQ(back.mask, m.mask);
  EXPECT_EQ(back.epoch, -3);
  EXPECT_EQ(back.small, 200);
  EXPECT_EQ(back.rate, 0.1f);
  EXPECT_EQ(back.phase, m.phase);
  EXPECT_TRUE(back.done);
  EXPECT_EQ(back.note, "of like");
  EXPECT_NE(back.shift, like.shift);
  // The names are the paths, and those of numbers.
  std::vector<std::string> names;
  for (const auto& [name, array] : vt::load_npz(file("model.npz"))) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "done", "epoch", "layers[0].activation", "layers[0].b_", "layers[0].w_",
                       "layers[1].activation", "layers[1].b_", "layers[1].w_", "mask", "phase",
                       "rate", "scale", "shift", "small", "tables[\"a b\"]", "tables[\"z\"]"}));
}

TEST_F(NpzTrees, OfOtherForms) {
  vt::save_npz(file("one.npz"), vt::arange(3));
  EXPECT_EQ(vt::load_npz(file("one.npz")).count("arr_0"), 1u);
  EXPECT_EQ(vt::load_npz(file("one.npz"), Tensor()).to_vector<int>(), (std::vector{0, 1, 2}));
  const std::map<std::string, Tensor> named{{"w", vt::ones({2})}, {"b", vt::tensor(2.0)}};
  vt::save_npz(file("named.npz"), named);
  EXPECT_EQ(vt::load_npz(file("named.npz"), named).at("b").item<double>(), 2.0);
  // Keys are names, so that a map of them is the same file; others keep their brackets.
  const auto loaded = vt::load_npz(file("named.npz"));
  EXPECT_EQ(loaded.count("w"), 1u);
  vt::save_npz(file("again.npz"), loaded);
  EXPECT_EQ(vt::load_npz(file("again.npz"), named).at("b").item<double>(), 2.0);
  const std::map<std::string, std::vector<Tensor>> lists{
      {"a", {vt::ones({2})}}, {"\"", {vt::ones({1})}}, {"", {vt::ones({3})}}};
  vt::save_npz(file("lists.npz"), lists);
  std::vector<std::string> names;
  for (const auto& [name, array] : vt::load_npz(file("lists.npz"))) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"[\"\"\"][0]", "[\"\"][0]", "a[0]"}));
  EXPECT_EQ(vt::load_npz(file("lists.npz"), lists).at("")[0].size(), 3);
  vt::save_npz(file("none.npz"), std::tuple<>());
  EXPECT_TRUE(vt::load_npz(file("none.npz")).empty());
  EXPECT_EQ(vt::load_npz(file("none.npz"), std::vector<Tensor>()).size(), 0u);
}

TEST_F(NpzTrees, WhatDiffersIsNamed) {
  struct Saved {
    Tensor w = vt::ones({2}), b = vt::ones({3});
    int n = 300;
    double x = 0.25;
  };
  vt::save_npz(file("a.npz"), Saved());
  struct Wanted {
    Tensor w = vt::ones({2}, vt::f64), c = vt::ones({3});
    Tensor n = vt::tensor(1);
    double x = 0;
  };
  const auto text = [&](const auto& like) {
    const std::string all = message([&] { (void)vt::load_npz(file("a.npz"), like); });
    EXPECT_EQ(all.find("vt::load_npz: " + file("a.npz") + ": "), 0u) << all;
    const std::size_t begin = all.find(".npz: ") + 6;
    return all.substr(begin, all.find("; at npz_trees_test.cpp") - begin);
  };
  EXPECT_EQ(
      text(Wanted()),
      "it does not hold this tree: w is f32[2] there and f64[2] here; there is no c; b is not "
      "in the tree");
  struct Narrow {
    Tensor w, b;
    std::uint8_t n = 1;
    double x = 0;
  };
  EXPECT_EQ(text(Narrow()), "n is 300 i32[], which is no u8");
  struct Rounded {
    Tensor w, b, n;
    int x = 0;
  };
  EXPECT_EQ(text(Rounded()), "x is 0.25 f64[], which is no i32");
  struct Truth {
    Tensor w, b;
    bool n = true;
    double x = 0;
  };
  EXPECT_EQ(text(Truth()), "n is 300 i32[], which is no bool");
  struct Number {
    float w = 0;
    Tensor b, n;
    float x = 0;
  };
  EXPECT_EQ(text(Number()), "it does not hold this tree: w is f32[2] there and a number here");
  EXPECT_EQ(text(std::vector<Tensor>(12)).substr(0, 62),
            "it does not hold this tree: there is no [0]; there is no [1]; ");
  EXPECT_NE(text(std::vector<Tensor>(12)).find("; and 8 more"), std::string::npos);
}

TEST_F(NpzTrees, NothingIsWrittenOfWhatCannotBe) {
  struct Half {
    Tensor w = vt::ones({2}), b = vt::ones({3}, vt::bf16);
  };
  EXPECT_NE(message([&] { vt::save_npz(file("b.npz"), Half()); }).find("bf16"), std::string::npos);
  struct Empty {
    Tensor w = vt::ones({2}), b;
  };
  EXPECT_NE(message([&] { vt::save_npz(file("b.npz"), Empty()); }).find("b"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file("b.npz")));
}

}  // namespace
