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

#include "support/check.hpp"
#include "support/png.hpp"
#include "support/training.hpp"

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

using Minibatch = std::vector<Sentence>;

/// The sum of `of(scores, tag)` over all words of all sentences.
template <class F>
Tensor sum_over_words(const Params& p, const Minibatch& sentences, const F& of) {
  Tensor sum = 0.0f;
  for (const Sentence& s : sentences) {
    const std::vector<Tensor> all = all_scores(p, s);
    for (std::size_t t = 0; t < all.size(); ++t) sum += of(all[t], s.tags[t]);
  }
  return sum;
}
Tensor loss(const Params& p, const Minibatch& sentences) {
  return sum_over_words(p, sentences, cost);
}
Tensor right(const Params& p, const Minibatch& sentences) {
  return sum_over_words(p, sentences, is_right);
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

}  // namespace

int main(int argc, char** argv) {
  if (argc < 0) std::puts(argv[0]);
  using Clock = std::chrono::steady_clock;
  int failures = 0;
  const auto seconds_since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  constexpr int minibatch = 32, epochs = 4;
  Minibatch train = make_sentences(2000, 1);
  const Minibatch held_out = make_sentences(300, 2);
  const auto gradient = vt::value_and_grad(vt::autobatch(loss));
  const auto accuracy = [&](const Params& p) {
    return vt::autobatch(right)(p, held_out).item<double>() / words_of(held_out);
  };

  Params p = make_params(vocabulary);
  support::Adam<Params> adam(p, 0.01);
  std::mt19937 random(3);
  std::printf("%zu sentences, %d words; before training %.1f %% of held-out words are right\n",
              train.size(), words_of(train), 100 * accuracy(p));
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    const auto start = Clock::now();
    std::shuffle(train.begin(), train.end(), random);
    double sum = 0;
    for (std::size_t at = 0; at < train.size(); at += minibatch) {
      const Minibatch some(train.begin() + static_cast<std::ptrdiff_t>(at),
                           train.begin() + static_cast<std::ptrdiff_t>(
                                               std::min(train.size(), at + minibatch)));
      const auto [value, g] = gradient(p, some);
      adam.step(p, g);
      sum += value.item<double>();
    }
    std::printf("epoch %d: loss %.4f a word, %.1f %% of held-out words right, %.2f s\n", epoch,
                sum / words_of(train), 100 * accuracy(p), seconds_since(start));
  }
  return failures;
}
