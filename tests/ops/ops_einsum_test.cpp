// einsum against a loop over all index combinations, on random expressions; and what it refuses.
#include <algorithm>
#include <map>

#include "support/property.hpp"

namespace {

using namespace vt;

struct Random {
  std::mt19937 engine;
  int below(int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); }
  bool coin(int in = 2) { return below(in) == 0; }
};

/// Walks every combination of label values and adds the products: the meaning of the notation, with
/// nothing clever.
Tensor brute_force(const std::vector<std::string>& terms, const std::string& out,
                   const std::vector<Tensor>& operands, DType dtype) {
  std::map<char, std::int64_t> sizes;
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t i = 0; i < terms[k].size(); ++i)
      sizes[terms[k][i]] = std::max(sizes[terms[k][i]], operands[k].shape()[i]);
  // a size of 0 is no larger than 1, but it is the one that counts
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t i = 0; i < terms[k].size(); ++i)
      if (operands[k].shape()[i] == 0) sizes[terms[k][i]] = 0;
  Shape shape;
  for (char c : out) shape.push_back(sizes[c]);
  std::vector<double> result(static_cast<std::size_t>(shape.elements()));
  std::vector<std::vector<double>> values;
  for (const Tensor& t : operands) values.push_back(t.to_vector<double>());
  std::vector<std::pair<char, std::int64_t>> labels(sizes.begin(), sizes.end());
  std::map<char, std::int64_t> at;
  auto flat = [&](const std::string& term, const Shape& s) {
    std::int64_t index = 0;
    for (std::size_t i = 0; i < term.size(); ++i)
      index = index * s[i] + (s[i] == 1 ? 0 : at[term[i]]);
    return static_cast<std::size_t>(index);
  };
  std::function<void(std::size_t)> walk = [&](std::size_t depth) {
    if (depth < labels.size()) {
      for (at[labels[depth].first] = 0; at[labels[depth].first] < labels[depth].second;
           ++at[labels[depth].first])
        walk(depth + 1);
      return;
    }
    double product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k)
      product *= values[k][flat(terms[k], operands[k].shape())];
    result[flat(out, shape)] += product;
  };
  walk(0);
  return vt_test::make_tensor(dtype, shape, result);
}

TEST(Einsum, RandomExpressions) {
  for (int seed = 0; seed < 400; ++seed) {
    Random r{std::mt19937(static_cast<unsigned>(seed))};
    const std::string alphabet = "ijkLmZ";
    std::map<char, std::int64_t> sizes;
    for (char c : alphabet) sizes[c] = r.coin(12) ? 0 : 1 + r.below(3);
    const int count = 1 + r.below(4);
    std::vector<std::string> terms;
    std::string used;
    for (int k = 0; k < count; ++k) {
      std::string term;
      for (int n = r.below(4); n > 0; --n) term += alphabet[r.below(6)];
      terms.push_back(term);
      for (char c : term)
        if (used.find(c) == std::string::npos) used += c;
    }
    std::vector<Tensor> operands;
    for (std::size_t k = 0; k < terms.size(); ++k) {
      Shape shape;
      std::map<char, std::int64_t> here = sizes;
      for (char c : terms[k])
        if (r.coin(8)) here[c] = 1;  // broadcasts
      for (char c : terms[k]) shape.push_back(here[c]);
      std::vector<double> values(static_cast<std::size_t>(shape.elements()));
      // whole numbers: any order of summation is exact
      for (double& v : values) v = r.below(7) - 3;
      operands.push_back(vt_test::make_tensor(r.coin(4) ? i32 : f64, shape, values));
    }
    DType dtype = i32;
    for (const Tensor& t : operands)
      if (t.dtype() == f64) dtype = f64;
    std::string out, text;
    for (std::size_t k = 0; k < terms.size(); ++k) text += (k ? "," : "") + terms[k];
    if (r.coin(3)) {  // implicit output: the labels that occur once, in alphabetical order
      std::string all;
      for (const std::string& term : terms) all += term;
      for (char c : used)
        if (std::count(all.begin(), all.end(), c) == 1) out += c;
      std::sort(out.begin(), out.end());
    } else {
      std::shuffle(used.begin(), used.end(), r.engine);
      out = used.substr(0, static_cast<std::size_t>(r.below(static_cast<int>(used.size()) + 1)));
      text += "->" + out;
    }
    std::string what = "seed " + std::to_string(seed) + ": " + text;
    for (const Tensor& t : operands) what += " " + t.shape().str();
    const Tensor expected = brute_force(terms, out, operands, dtype);
    vt_test::expect_close(einsum(text, operands), expected, vt_test::exact, what);
  }
}

TEST(Einsum, EllipsisIsTheMissingAxes) {
  const Tensor a = vt_test::random_quarters(f64, {2, 1, 3, 4}, 1),
               b = vt_test::random_quarters(f64, {5, 4, 3}, 2);
  // With letters in the place of the dots.
  vt_test::expect_close(einsum("...ij,...jk->...ik", a, b),
                        brute_force({"pqij", "qjk"}, "pqik", {a, b}, f64));
  vt_test::expect_close(
      einsum("i...j,...", a, vt_test::random_quarters(f64, {3}, 3)),
      brute_force({"iabj", "b"}, "abij", {a, vt_test::random_quarters(f64, {3}, 3)}, f64));
  vt_test::expect_close(einsum("...->...", a), a);
  vt_test::expect_close(einsum("...ij->...", b), sum(b, {1, 2}));
}

TEST(Einsum, ContractsWithoutNeedlessTransposes) {
  const Tensor a = ones({3, 4}), b = ones({4, 5}), c = ones({2, 3, 4}), d = ones({2, 4, 5});
  for (const auto& [text, x, y] :
       {std::tuple("ij,jk->ik", a, b), std::tuple("ij,jk->ki", a, b),
        std::tuple("bij,bjk->bik", c, d), std::tuple("bij,bjk->bki", c, d),
        std::tuple("bij,jk->bik", c, b), std::tuple("ji,jk", swapaxes(a, 0, 1), b)}) {
    (void)y;
    const std::string graph =
        make_graph([&, text = text](Tensor p, Tensor q) { return einsum(text, p, q); })(x, y).str();
    EXPECT_NE(graph.find("dot_general"), std::string::npos) << graph;
    EXPECT_EQ(graph.find("transpose"), std::string::npos) << text << "\n" << graph;
  }
}

TEST(Einsum, TakesTheCheapPairFirst) {
  // (a b) c would make a 1000 × 1000 matrix.
  const Tensor a = ones({1000, 2}), b = ones({2, 1000}), c = ones({1000});
  const std::string graph = make_graph([](Tensor x, Tensor y, Tensor z) {
                              return einsum("ij,jk,k->i", x, y, z);
                            })(a, b, c)
                                .str();
  EXPECT_EQ(graph.find("[1000,1000]"), std::string::npos) << graph;
  vt_test::expect_close(einsum("ij,jk,k->i", a, b, c), full({1000}, 2000.0f));
}

TEST(Einsum, Refusals) {
  const Tensor a = ones({2, 3}), b = ones({4, 5});
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"ij,jk", "label 'j' has size 3 in operand 0 and 4 in operand 1"},
      {"i...,j...", "axis -1 of the ellipsis has size 3 in operand 0 and 5 in operand 1"},
      {"ij", "1 terms for 2 operands"},
      {"i,jk", "1 labels for operand 0 of rank 2; '...' stands for axes without labels"},
      {"ijk,jk", "3 labels for operand 0 of rank 2"},
      {"ij,kl->iz", "output label 'z' is in no operand; they have ijkl"},
      {"ij,kl->iK", "output label 'K' is in no operand (did you mean 'k'?); they have ijkl"},
      {"ij,kl->ii", "output label 'i' occurs twice"},
      {"i1,jk", "'1' is no label"},
      {"..ij,kl", "no part of an ellipsis"},
      {"...ij...,kl", "more than one ellipsis"},
      {"ii,kl", "label 'i' of operand 0 has sizes 2 and 3"},
      {"...j,kl->jkl", "lacks the ellipsis of the operands (did you mean \"->...jkl\"?)"},
      {"...j,kl-> ", "lacks the ellipsis of the operands (did you mean \"->...\"?)"}};
  for (const auto& [text, message] : cases)
    vt_test::expect_error(
        [&, text = text] { (void)einsum(text, a, b); },
        message.find(" size") != std::string::npos || message.find("of rank") != std::string::npos
            ? ErrorKind::shape
            : ErrorKind::value,
        {"vt::einsum", message, "f32[2,3] · f32[4,5]", "ops_einsum_test.cpp"});
}

}  // namespace
