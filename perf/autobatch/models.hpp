// The models of the suite autobatch, written for one example; and what they read.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <istream>
#include <stdexcept>
#include <string>
#include <vector>

#include <vt/vt.hpp>

namespace suite {

using vt::Tensor;

constexpr std::int64_t width = 256;

// --- data ----------------------------------------------------------------------------------------

struct Token {
  std::int64_t word = 0, tag = 0;
  std::vector<std::int64_t> characters;
};
using Sentence = std::vector<Token>;
struct TreeNode {
  std::int64_t left = -1, right = -1, word = -1, label = 0;
};
using Tree = std::vector<TreeNode>;  // children in front of parents

struct Header {
  std::size_t examples = 0;
  std::int64_t words = 0, classes = 0, more = 0;
};
inline std::ifstream opened(const std::string& folder, const std::string& name) {
  std::ifstream file(folder + "/" + name);
  if (!file) throw std::runtime_error("no " + name + "; see perf/autobatch/README.md");
  return file;
}
inline std::vector<Sentence> read_sentences(std::istream& file, Header& header) {
  file >> header.examples >> header.words >> header.classes >> header.more;
  std::vector<Sentence> all(header.examples);
  for (Sentence& s : all) {
    std::size_t parts = 0;
    file >> parts;
    s.resize(parts);
    for (Token& t : s) {
      std::size_t characters = 0;
      file >> t.word >> t.tag >> characters;
      t.characters.resize(characters);
      for (std::int64_t& c : t.characters) file >> c;
    }
  }
  return all;
}
inline std::vector<Tree> read_trees(std::istream& file, Header& header) {
  file >> header.examples >> header.words >> header.classes;
  std::vector<Tree> all(header.examples);
  for (Tree& tree : all) {
    std::size_t parts = 0;
    file >> parts;
    tree.resize(parts);
    for (TreeNode& n : tree) file >> n.left >> n.right >> n.word >> n.label;
  }
  return all;
}

// --- parameters ----------------------------------------------------------------------------------

/// Of the next matrix; each model begins with 0.
inline std::uint64_t next_seed = 0;
inline Tensor random_matrix(const vt::Shape& shape, double limit) {
  return ((vt::random::uniform(vt::random::key(++next_seed), shape, vt::f32) * 2.0f - 1.0f) * limit)
      .eval();
}
inline double limit_of_weights(std::int64_t in, std::int64_t out) {
  return std::sqrt(6.0 / static_cast<double>(in + out));
}
inline Tensor weights(std::int64_t in, std::int64_t out) {
  return random_matrix({in, out}, limit_of_weights(in, out));
}
/// As DyNet begins with tables.
inline Tensor table(std::int64_t rows, std::int64_t columns) {
  return random_matrix({rows, columns}, std::sqrt(3.0 / static_cast<double>(columns)));
}

struct Lstm {
  Tensor input, hidden, bias;
};
inline Lstm make_lstm(std::int64_t in, std::int64_t out) {
  return {weights(in, 4 * out), weights(out, 4 * out), vt::zeros({4 * out}).eval()};
}
struct State {
  Tensor h, c;
};
inline State lstm_step(const Tensor& x, const State& before, const Lstm& p) {
  const Tensor gates = vt::matmul(x, p.input) + vt::matmul(before.h, p.hidden) + p.bias;
  const std::vector<Tensor> g = vt::split(gates, 4, -1);
  const Tensor c = vt::sigmoid(g[0]) * before.c + vt::sigmoid(g[1]) * vt::tanh(g[2]);
  return {vt::sigmoid(g[3]) * vt::tanh(c), c};
}
inline Tensor cross_entropy(const Tensor& scores, const Tensor& wanted) {
  return vt::logsumexp(scores) - vt::sum(scores * wanted);
}

/// What the models do again and again.
inline const auto lstm = vt::function("lstm", lstm_step);
inline const auto loss_of_scores = vt::function("cross_entropy", cross_entropy);

inline std::vector<Tensor> run_lstm(const std::vector<Tensor>& x, const Lstm& p, std::int64_t size,
                                    bool backward) {
  std::vector<Tensor> h(x.size());
  State s{vt::zeros({size}), vt::zeros({size})};
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::size_t t = backward ? x.size() - 1 - k : k;
    s = lstm(x[t], s, p);
    h[t] = s.h;
  }
  return h;
}

inline std::vector<Tensor> one_hot(std::int64_t classes) {
  std::vector<Tensor> all;
  for (std::int64_t k = 0; k < classes; ++k) all.push_back(vt::one_hot(Tensor(k), classes).eval());
  return all;
}

// --- models --------------------------------------------------------------------------------------

struct Tagger {
  using Example = Sentence;
  struct Parameters {
    Tensor words;
    Lstm forward, backward;
    Tensor hidden, out;
  };
  std::vector<Tensor> wanted;

  std::vector<Sentence> read(const std::string& folder, Parameters& p) {
    Header header;
    std::ifstream file = opened(folder, "tagger.txt");
    std::vector<Sentence> all = read_sentences(file, header);
    p = {table(header.words, width), make_lstm(width, width), make_lstm(width, width),
         weights(2 * width, width), weights(width, header.classes)};
    wanted = one_hot(header.classes);
    return all;
  }
  Tensor loss(const Parameters& p, const Sentence& s, const std::vector<Tensor>& x) const {
    static const auto scores = vt::function(
        "scores", [](const Tensor& f, const Tensor& b, const Tensor& hidden, const Tensor& out) {
          return vt::matmul(vt::tanh(vt::matmul(vt::concatenate({f, b}), hidden)), out);
        });
    const std::vector<Tensor> f = run_lstm(x, p.forward, width, false),
                              b = run_lstm(x, p.backward, width, true);
    Tensor sum = 0.0f;
    for (std::size_t t = 0; t < s.size(); ++t)
      sum += loss_of_scores(scores(f[t], b[t], p.hidden, p.out), wanted[s[t].tag]);
    return sum;
  }
  Tensor loss(const Parameters& p, const Sentence& s) const {
    std::vector<Tensor> x;
    for (const Token& t : s) x.push_back(p.words[t.word]);
    return loss(p, s, x);
  }
  static std::size_t parts(const Sentence& s) { return s.size(); }
};

struct TaggerWithCharacters : Tagger {
  struct Parameters {
    Tagger::Parameters tagger;
    Tensor characters;
    Lstm forward, backward;
  };
  static constexpr std::int64_t character_width = 64, character_hidden = width / 2;

  std::vector<Sentence> read(const std::string& folder, Parameters& p) {
    std::vector<Sentence> all = Tagger::read(folder, p.tagger);
    Header header;
    std::ifstream file = opened(folder, "tagger.txt");
    file >> header.examples >> header.words >> header.classes >> header.more;
    p.characters = table(header.more, character_width);
    p.forward = make_lstm(character_width, character_hidden);
    p.backward = make_lstm(character_width, character_hidden);
    return all;
  }
  Tensor loss(const Parameters& p, const Sentence& s) const {
    std::vector<Tensor> x;
    for (const Token& t : s) {
      if (t.characters.empty()) {
        x.push_back(p.tagger.words[t.word]);
        continue;
      }
      std::vector<Tensor> c;
      for (std::int64_t k : t.characters) c.push_back(p.characters[k]);
      x.push_back(vt::concatenate({run_lstm(c, p.forward, character_hidden, false).back(),
                                   run_lstm(c, p.backward, character_hidden, true).front()}));
    }
    return Tagger::loss(p.tagger, s, x);
  }
};

struct SyntheticTagger {
  using Example = Sentence;
  static constexpr std::int64_t word_width = 200;
  struct Parameters {
    Tensor words;
    std::vector<Lstm> forward, backward;
    Tensor out;
  };
  std::vector<Tensor> wanted;

  std::vector<Sentence> read(const std::string& folder, Parameters& p) {
    Header header;
    std::ifstream file = opened(folder, "synthetic.txt");
    std::vector<Sentence> all = read_sentences(file, header);
    p.words = table(header.words, word_width);
    for (std::int64_t in : {word_width, 2 * width}) {
      p.forward.push_back(make_lstm(in, width));
      p.backward.push_back(make_lstm(in, width));
    }
    p.out = weights(2 * width, header.classes);
    wanted = one_hot(header.classes);
    return all;
  }
  Tensor loss(const Parameters& p, const Sentence& s) const {
    static const auto cost = vt::function(
        "cost", [](const Tensor& f, const Tensor& b, const Tensor& out, const Tensor& y) {
          return cross_entropy(vt::matmul(vt::concatenate({f, b}), out), y);
        });
    static const auto both = vt::function(
        "both", [](const Tensor& f, const Tensor& b) { return vt::concatenate({f, b}); });
    std::vector<Tensor> x, f, b;
    for (const Token& t : s) x.push_back(p.words[t.word]);
    for (std::size_t k = 0; k < p.forward.size(); ++k) {
      f = run_lstm(x, p.forward[k], width, false);
      b = run_lstm(x, p.backward[k], width, true);
      for (std::size_t t = 0; t < x.size() && k + 1 < p.forward.size(); ++t)
        x[t] = both(f[t], b[t]);
    }
    Tensor sum = 0.0f;
    for (std::size_t t = 0; t < s.size(); ++t) sum += cost(f[t], b[t], p.out, wanted[s[t].tag]);
    return sum;
  }
  static std::size_t parts(const Sentence& s) { return s.size(); }
};

struct TreeLstm {
  using Example = Tree;
  struct Parameters {
    Tensor words;
    Tensor leaf, both, bias;  ///< of i, o, u: [width, 3 · width], [2 · width, 3 · width]
    Tensor forget_left, forget_right, forget_bias;
    Tensor out;
  };
  std::vector<Tensor> wanted;

  std::vector<Tree> read(const std::string& folder, Parameters& p) {
    Header header;
    std::ifstream file = opened(folder, "trees.txt");
    std::vector<Tree> all = read_trees(file, header);
    p = {table(header.words, width),    weights(width, 3 * width),
         weights(2 * width, 3 * width), vt::zeros({3 * width}).eval(),
         weights(width, width),         weights(width, width),
         vt::zeros({width}).eval(),     weights(width, header.classes)};
    wanted = one_hot(header.classes);
    return all;
  }
  Tensor loss(const Parameters& p, const Tree& tree) const {
    static const auto leaf =
        vt::function("leaf", [](const Tensor& x, const Tensor& w, const Tensor& bias) {
          const std::vector<Tensor> g = vt::split(vt::matmul(x, w) + bias, 3);
          const Tensor c = vt::sigmoid(g[0]) * vt::tanh(g[2]);
          return State{vt::sigmoid(g[1]) * vt::tanh(c), c};
        });
    static const auto inner =
        vt::function("inner", [](const State& l, const State& r, const Parameters& q) {
          const std::vector<Tensor> g =
              vt::split(vt::matmul(vt::concatenate({l.h, r.h}), q.both) + q.bias, 3);
          const Tensor c = vt::sigmoid(g[0]) * vt::tanh(g[2]) +
                           vt::sigmoid(vt::matmul(l.h, q.forget_left) + q.forget_bias) * l.c +
                           vt::sigmoid(vt::matmul(r.h, q.forget_right) + q.forget_bias) * r.c;
          return State{vt::sigmoid(g[1]) * vt::tanh(c), c};
        });
    static const auto cost =
        vt::function("cost", [](const Tensor& h, const Tensor& out, const Tensor& y) {
          return cross_entropy(vt::matmul(h, out), y);
        });
    Tensor sum = 0.0f;
    std::vector<State> made;
    for (const TreeNode& n : tree) {
      made.push_back(n.left < 0 ? leaf(p.words[n.word], p.leaf, p.bias)
                                : inner(made[n.left], made[n.right], p));
      sum += cost(made.back().h, p.out, wanted[n.label]);
    }
    return sum;
  }
  static std::size_t parts(const Tree& tree) { return tree.size(); }
};

}  // namespace suite
