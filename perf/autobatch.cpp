// The rows of the suite autobatch: models of sentences and trees, written for one example, trained
// in minibatches through vt::autobatch. perf/autobatch/README.md says what they are.
//
// Usage: bench_autobatch FOLDER [NAME ...] [--strategy none|by_depth|agenda] [--batches N]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <vt/vt.hpp>

namespace {

using vt::Tensor;

constexpr std::size_t batch_size = 64;
constexpr std::int64_t width = 256;

struct Options {
  std::string folder;
  std::vector<std::string> names;
  vt::Batching strategy = vt::Batching::agenda;
  std::size_t batches = 0;  ///< 0: all
};

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
std::ifstream opened(const Options& options, const std::string& name) {
  std::ifstream file(options.folder + "/" + name);
  if (!file) throw std::runtime_error("no " + name + "; see perf/autobatch/README.md");
  return file;
}
std::vector<Sentence> read_sentences(std::istream& file, Header& header) {
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
std::vector<Tree> read_trees(std::istream& file, Header& header) {
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

Tensor random_matrix(const vt::Shape& shape, double limit) {
  static std::uint64_t seed = 0;
  return ((vt::random::uniform(vt::random::key(++seed), shape, vt::f32) * 2.0f - 1.0f) * limit)
      .eval();
}
Tensor weights(std::int64_t in, std::int64_t out) {
  return random_matrix({in, out}, std::sqrt(6.0 / static_cast<double>(in + out)));
}
Tensor table(std::int64_t rows, std::int64_t columns) {
  return random_matrix({rows, columns}, 0.1);
}

struct Lstm {
  Tensor input, hidden, bias;
};
Lstm make_lstm(std::int64_t in, std::int64_t out) {
  return {weights(in, 4 * out), weights(out, 4 * out), vt::zeros({4 * out}).eval()};
}
struct State {
  Tensor h, c;
};
State lstm_step(const Tensor& x, const State& before, const Lstm& p) {
  const Tensor gates = vt::matmul(x, p.input) + vt::matmul(before.h, p.hidden) + p.bias;
  const std::vector<Tensor> g = vt::split(gates, 4);
  const Tensor c = vt::sigmoid(g[0]) * before.c + vt::sigmoid(g[1]) * vt::tanh(g[2]);
  return {vt::sigmoid(g[3]) * vt::tanh(c), c};
}
Tensor cross_entropy(const Tensor& scores, const Tensor& wanted) {
  return vt::logsumexp(scores) - vt::sum(scores * wanted);
}

/// What the models do again and again.
const auto lstm = vt::function("lstm", lstm_step);
const auto loss_of_scores = vt::function("cross_entropy", cross_entropy);

std::vector<Tensor> run_lstm(const std::vector<Tensor>& x, const Lstm& p, std::int64_t size,
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

std::vector<Tensor> one_hot(std::int64_t classes) {
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

  std::vector<Sentence> read(const Options& options, Parameters& p) {
    Header header;
    std::ifstream file = opened(options, "tagger.txt");
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
      sum += loss_of_scores(scores(f[t], b[t], p.hidden, p.out),
                            wanted[static_cast<std::size_t>(s[t].tag)]);
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

  std::vector<Sentence> read(const Options& options, Parameters& p) {
    std::vector<Sentence> all = Tagger::read(options, p.tagger);
    Header header;
    std::ifstream file = opened(options, "tagger.txt");
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

  std::vector<Sentence> read(const Options& options, Parameters& p) {
    Header header;
    std::ifstream file = opened(options, "synthetic.txt");
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
    for (std::size_t t = 0; t < s.size(); ++t)
      sum += cost(f[t], b[t], p.out, wanted[static_cast<std::size_t>(s[t].tag)]);
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

  std::vector<Tree> read(const Options& options, Parameters& p) {
    Header header;
    std::ifstream file = opened(options, "trees.txt");
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
                                : inner(made[static_cast<std::size_t>(n.left)],
                                        made[static_cast<std::size_t>(n.right)], p));
      sum += cost(made.back().h, p.out, wanted[static_cast<std::size_t>(n.label)]);
    }
    return sum;
  }
  static std::size_t parts(const Tree& tree) { return tree.size(); }
};

// --- training ------------------------------------------------------------------------------------

template <class P>
struct Moments {
  P first, second;
};
template <class P>
auto adam() {
  return vt::jit(
      [](const P& p, const Moments<P>& m, const P& gradient, const Tensor& step) {
        const double a = 0.9, b = 0.999;
        std::pair<P, Moments<P>> next{p, m};
        std::vector<const Tensor*> old_p, old_a, old_b, slopes;
        const auto list = [](const auto& tree, std::vector<const Tensor*>& leaves) {
          vt::detail::for_each_leaf(tree, [&](const Tensor& t) { leaves.push_back(&t); });
        };
        list(p, old_p), list(m.first, old_a), list(m.second, old_b), list(gradient, slopes);
        std::size_t k = 0;
        vt::detail::for_each_leaf(next.second.first, [&](Tensor& t) {
          t = a * *old_a[k] + (1 - a) * *slopes[k];
          ++k;
        });
        k = 0;
        vt::detail::for_each_leaf(next.second.second, [&](Tensor& t) {
          t = b * *old_b[k] + (1 - b) * *slopes[k] * *slopes[k];
          ++k;
        });
        std::vector<const Tensor*> new_a, new_b;
        list(next.second.first, new_a), list(next.second.second, new_b);
        const Tensor rate = 0.001f * vt::sqrt(1.0f - vt::pow(Tensor(0.999f), step)) /
                            (1.0f - vt::pow(Tensor(0.9f), step));
        k = 0;
        vt::detail::for_each_leaf(next.first, [&](Tensor& t) {
          t = *old_p[k] - rate * *new_a[k] / (vt::sqrt(*new_b[k]) + 1e-8f);
          ++k;
        });
        return next;
      },
      {.donate = {0, 1}});
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double processor_time() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <class Model>
void train(const std::string& name, const Options& options) {
  using P = typename Model::Parameters;
  using Example = typename Model::Example;
  Model model;
  P p;
  const std::vector<Example> examples = model.read(options, p);
  const auto loss = vt::autobatch(
      [&model](const P& q, const std::vector<const Example*>& batch) {
        Tensor sum = 0.0f;
        for (const Example* e : batch) sum += model.loss(q, *e);
        return sum;
      },
      {.strategy = options.strategy});
  Moments<P> m{p, p};
  vt::detail::for_each_leaf(m, [](Tensor& t) { t = vt::zeros_like(t).eval(); });
  const auto update = adam<P>();
  std::int64_t steps = 0;
  double value = 0, first = 0, used = 0, last = 0;
  std::string losses;
  vt::BatchStats stats;
  double recorded = 0, scheduled = 0, emitted = 0;
  std::size_t trained = 0;
  for (const bool shuffled : {false, true}) {
    const double begin = now(), began = processor_time();
    trained = 0;
    for (std::size_t k = 0; k < examples.size(); k += batch_size) {
      if (options.batches && k / batch_size >= options.batches) break;
      std::vector<const Example*> batch;
      std::size_t parts = 0;
      for (std::size_t i = k; i < std::min(k + batch_size, examples.size()); ++i) {
        batch.push_back(&examples[shuffled ? (i * 77 + 5) % examples.size() : i]);
        parts += Model::parts(*batch.back());
      }
      auto [l, gradient] = vt::value_and_grad([&](const P& q) { return loss(q, batch); })(p);
      stats = vt::batch_stats();
      recorded += stats.record_seconds, scheduled += stats.schedule_seconds;
      emitted += stats.emit_seconds;
      vt::eval(l, gradient);
      std::tie(p, m) = update(p, m, gradient, Tensor(static_cast<float>(++steps)));
      last = l.template item<double>() / static_cast<double>(parts);
      if (!shuffled) losses += (losses.empty() ? "" : ", ") + std::to_string(last);
      trained += batch.size();
    }
    (shuffled ? value : first) = static_cast<double>(trained) / (now() - begin);
    used = (processor_time() - began) / (now() - begin);
  }
  const double batches = static_cast<double>(steps);
  const char* who[] = {"vt_none", "vt_by_depth", "vt"};
  std::cout << "{\"name\": \"" << name << "\", \"who\": \""
            << who[static_cast<int>(options.strategy)]
            << "\", \"unit\": \"examples/s\", \"first\": " << first << ", \"value\": " << value
            << ", \"losses\": [" << losses << "], \"last_loss\": " << last
            << ", \"processors\": " << used << ", \"examples\": " << trained
            << ", \"nodes\": " << stats.nodes << ", \"groups\": " << stats.groups
            << ", \"record_ms\": " << 1e3 * recorded / batches
            << ", \"schedule_ms\": " << 1e3 * scheduled / batches
            << ", \"emit_ms\": " << 1e3 * emitted / batches << "}" << std::endl;
  std::cerr << name << " " << who[static_cast<int>(options.strategy)] << ": " << value << "/s\n";
}

Options parsed(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string a = arguments[i];
    if (a == "--strategy" && i + 1 < count) {
      const std::string s = arguments[++i];
      options.strategy = s == "none"       ? vt::Batching::none
                         : s == "by_depth" ? vt::Batching::by_depth
                                           : vt::Batching::agenda;
    } else if (a == "--batches" && i + 1 < count) {
      options.batches = std::stoul(arguments[++i]);
    } else if (options.folder.empty()) {
      options.folder = a;
    } else {
      options.names.push_back(a);
    }
  }
  if (options.folder.empty()) throw std::runtime_error("usage: bench_autobatch FOLDER [NAME ...]");
  return options;
}

}  // namespace

int main(int count, char** arguments) try {
  const Options options = parsed(count, arguments);
  vt::set_num_threads(1);
  const auto wanted = [&](const char* name) {
    return options.names.empty() ||
           std::find(options.names.begin(), options.names.end(), name) != options.names.end();
  };
  if (wanted("tagger")) train<Tagger>("tagger", options);
  if (wanted("tagger_chars")) train<TaggerWithCharacters>("tagger_chars", options);
  if (wanted("tree_lstm")) train<TreeLstm>("tree_lstm", options);
  if (wanted("synthetic_tagger")) train<SyntheticTagger>("synthetic_tagger", options);
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
