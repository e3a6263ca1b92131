// autobatch: a BiLSTM tagger written for one sentence, trained on minibatches of sentences of any
// length, which run as batches. Checked by its accuracy, and against running without batches.
// Usage: tagger [FOLDER]; the picture of nodes and batches is written to FOLDER.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "../support/batches.hpp"
#include "../support/training.hpp"

namespace {

using vt::Tensor;

// --- the model, for one sentence -----------------------------------------------------------------

constexpr int width = 32, tags = 5;

struct Lstm {
  Tensor of_word, of_state, offset;
};
struct Params {
  Tensor embedding;
  Lstm forward, backward;
  Tensor hidden, hidden_offset, out;
};
struct State {
  Tensor h, c;
};
struct Sentence {
  std::vector<int> words, tags;
};

// What runs for each word is a vt::function: its calls are what is batched.
const auto cell = vt::function("lstm", [](const Lstm& p, const State& s, const Tensor& word) {
  const Tensor all = vt::matmul(word, p.of_word) + vt::matmul(s.h, p.of_state) + p.offset;
  const std::vector<Tensor> gates = vt::split(all, 4);
  const Tensor c = vt::sigmoid(gates[0]) * s.c + vt::sigmoid(gates[1]) * vt::tanh(gates[2]);
  return State{vt::sigmoid(gates[3]) * vt::tanh(c), c};
});
const auto scores = vt::function("scores", [](const Params& p, const Tensor& f, const Tensor& b) {
  const Tensor both = vt::concatenate({f, b});
  return vt::matmul(vt::tanh(vt::matmul(both, p.hidden) + p.hidden_offset), p.out);
});
const auto cost = vt::function("cost", [](const Tensor& scores, const Tensor& tag) {
  return vt::sparse_cross_entropy(scores, tag);
});
const auto is_right = vt::function("is_right", [](const Tensor& scores, const Tensor& tag) {
  return (vt::argmax(scores) == tag).astype(vt::f32);
});

/// The scores of each word's tags.
std::vector<Tensor> all_scores(const Params& p, const Sentence& s) {
  const State start{vt::zeros({width}), vt::zeros({width})};
  std::vector<Tensor> forward, result(s.words.size());
  State state = start;
  for (const int word : s.words) {
    state = cell(p.forward, state, p.embedding[word]);
    forward.push_back(state.h);
  }
  state = start;
  for (std::size_t t = s.words.size(); t-- > 0;) {
    state = cell(p.backward, state, p.embedding[s.words[t]]);
    result[t] = scores(p, forward[t], state.h);
  }
  return result;
}

/// The sum of `of(scores, tag)` over the words of a sentence.
template <class F>
Tensor sum_over_words(const Params& p, const Sentence& s, const F& of) {
  const std::vector<Tensor> all = all_scores(p, s);
  Tensor sum = 0.0f;
  for (std::size_t t = 0; t < all.size(); ++t) sum += of(all[t], s.tags[t]);
  return sum;
}

// Of a minibatch: a loop over its sentences.
using Minibatch = std::vector<Sentence>;

Tensor loss(const Params& p, const Minibatch& sentences) {
  Tensor sum = 0.0f;
  for (const Sentence& s : sentences) sum += sum_over_words(p, s, cost);
  return sum;
}
Tensor right(const Params& p, const Minibatch& sentences) {
  Tensor sum = 0.0f;
  for (const Sentence& s : sentences) sum += sum_over_words(p, s, is_right);
  return sum;
}

Params make_params(int words) {
  const auto lstm = [] {
    return Lstm{support::weights({width, 4 * width}), support::weights({width, 4 * width}),
                vt::zeros({4 * width})};
  };
  return {.embedding = support::weights({words, width}),
          .forward = lstm(),
          .backward = lstm(),
          .hidden = support::weights({2 * width, width}),
          .hidden_offset = vt::zeros({width}),
          .out = support::weights({width, tags})};
}

// --- the language --------------------------------------------------------------------------------

// A phrase is an opening word of one of two kinds, words that mean nothing by themselves, and a
// closing word of one of two kinds. The tag of a word inside depends on both: on a word before it
// and on one behind it. The other words have the tag 4.
constexpr int openings = 8, closings = 8, inside = 24, vocabulary = openings + closings + inside;

Minibatch make_sentences(int count, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Minibatch all(static_cast<std::size_t>(count));
  for (Sentence& s : all)
    for (int phrases = 1 + below(4); phrases > 0; --phrases) {
      const int open = below(openings), close = below(closings);
      s.words.push_back(open);
      s.tags.push_back(4);
      for (int n = 1 + below(5); n > 0; --n) {
        s.words.push_back(openings + closings + below(inside));
        s.tags.push_back(2 * (open % 2) + close % 2);
      }
      s.words.push_back(openings + close);
      s.tags.push_back(4);
    }
  return all;
}
int words_of(const Minibatch& sentences) {
  std::size_t words = 0;
  for (const Sentence& s : sentences) words += s.words.size();
  return static_cast<int>(words);
}

// --- training ------------------------------------------------------------------------------------

double accuracy(const Params& p, const Minibatch& sentences) {
  return vt::autobatch(right)(p, sentences).item<double>() / words_of(sentences);
}

Params train(Params p, Minibatch sentences, const Minibatch& held_out) {
  constexpr std::size_t minibatch = 32;
  const auto gradient = vt::value_and_grad(vt::autobatch(loss));
  const vt::Adam adam{.rate = 0.01};
  auto state = adam.init(p);
  const auto step = vt::jit([&](const Params& q, const Params& g, const vt::AdamState<Params>& s) {
    return adam.step(q, g, s);
  });
  std::mt19937 random(3);
  for (int epoch = 1; epoch <= 2; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    std::shuffle(sentences.begin(), sentences.end(), random);
    double sum = 0;
    for (std::size_t at = 0; at < sentences.size(); at += minibatch) {
      const std::size_t end = std::min(sentences.size(), at + minibatch);
      const Minibatch some(&sentences[at], sentences.data() + end);
      const auto [value, g] = gradient(p, some);
      std::tie(p, state) = step(p, g, state);
      sum += value.item<double>();
    }
    const double seconds = support::seconds_since(start);
    std::printf("epoch %d: loss %.4f a word, %.1f %% of the held-out words right, %.2f s\n", epoch,
                sum / words_of(sentences), 100 * accuracy(p, held_out), seconds);
  }
  return p;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  std::filesystem::create_directories(folder);
  int failures = 0;
  const Minibatch sentences = make_sentences(1200, 1), held_out = make_sentences(300, 2);
  const Params start = make_params(vocabulary);
  std::printf("%zu sentences, %d words; before training %.1f %% of the held-out words are right\n",
              sentences.size(), words_of(sentences), 100 * accuracy(start, held_out));
  const Params p = train(start, sentences, held_out);
  if (accuracy(p, held_out) < 0.95) {
    std::printf("FAILED: less than 95 %% of the held-out words are right\n");
    ++failures;
  }

  std::printf("\nLoss and gradient, minibatches of 32\n");
  std::vector<Minibatch> minibatches;
  for (unsigned k = 0; k < 24; ++k) minibatches.push_back(make_sentences(32, 10 + k));
  failures += support::compare_strategies(loss, start, minibatches, "sentences");
  failures +=
      support::count_batches(loss, start, sentences, folder + "/tagger_batches.png", "sentences");
  return failures;
}
