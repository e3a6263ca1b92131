// autobatch and instances: a transition parser that is written for one sentence and decides by the
// scores of its actions, trained with a dynamic oracle. All sentences of a minibatch take their
// steps together. Checked by its attachments, and against running without batches.
// Usage: parser [FOLDER]; the picture of nodes and batches is written to FOLDER.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "../support/batches.hpp"
#include "../support/training.hpp"

namespace {

using vt::Tensor;

/// Words, and the head of each: another word, or the root, whose number is that of the words.
struct Sentence {
  std::vector<int> words, heads;

  int root() const { return static_cast<int>(words.size()); }
};
using Minibatch = std::vector<Sentence>;

// --- arc-hybrid parsing --------------------------------------------------------------------------

enum Action : std::uint8_t {
  left,   // the top of the stack hangs from the next word, and leaves
  right,  // it hangs from what lies under it, and leaves
  shift   // the next word goes onto the stack
};
constexpr std::array<Action, 3> actions{left, right, shift};

/// The state of a parse: a stack, and the words from `next` on, behind which is the root.
class State {
 public:
  explicit State(const Sentence& s) : truth_(s.heads), root_(s.root()), found(s.words.size()) {}

  bool done() const { return stack_.empty() && next_ == root_; }
  bool allows(Action a) const {
    if (a == shift) return next_ < root_;
    return stack_.size() > (a == left ? 0u : 1u);
  }
  /// How many arcs of the true tree are out of reach after the action.
  int cost(Action a) const {
    if (a == shift) {
      int lost = 0;
      for (std::size_t k = 0; k < stack_.size(); ++k) {
        lost += has_head(stack_[k], next_);
        lost += k + 1 < stack_.size() && has_head(next_, stack_[k]);
      }
      return lost;
    }
    const int top = stack_.back();
    int lost = a == left && stack_.size() > 1 && has_head(top, stack_[stack_.size() - 2]);
    for (int k = next_; k <= root_; ++k) {
      lost += has_head(k, top);
      lost += has_head(top, k) && (a == right || k > next_);
    }
    return lost;
  }
  void apply(Action a) {
    if (a == shift) return stack_.push_back(next_++);
    const int top = stack_.back();
    stack_.pop_back();
    found[top] = a == left ? next_ : stack_.back();
  }
  /// The word at this depth of the stack, or −1.
  int stack(std::size_t depth) const {
    return depth < stack_.size() ? stack_[stack_.size() - 1 - depth] : -1;
  }
  int next() const { return next_; }

 private:
  bool has_head(int word, int head) const { return word < root_ && truth_[word] == head; }

  const std::vector<int>& truth_;
  std::vector<int> stack_;
  int next_ = 0, root_;

 public:
  std::vector<int> found;  ///< the heads
};

// --- the model, for one sentence -----------------------------------------------------------------

constexpr int width = 32, hidden = 48;

struct Lstm {
  Tensor of_word, of_state, offset;
};
struct Scorer {
  Tensor hidden, hidden_offset, out, out_offset;
};
struct Params {
  Tensor embedding;
  Lstm forward, backward;
  Tensor missing;  // in place of a word that is not there
  Scorer scorer;
};
struct Memory {
  Tensor h, c;
};

const auto cell = vt::function("lstm", [](const Lstm& p, const Memory& m, const Tensor& word) {
  const Tensor all = vt::matmul(word, p.of_word) + vt::matmul(m.h, p.of_state) + p.offset;
  const std::vector<Tensor> gates = vt::split(all, 4);
  const Tensor c = vt::sigmoid(gates[0]) * m.c + vt::sigmoid(gates[1]) * vt::tanh(gates[2]);
  return Memory{vt::sigmoid(gates[3]) * vt::tanh(c), c};
});
const auto joined = vt::function(
    "joined", [](const Tensor& f, const Tensor& b) { return vt::concatenate({f, b}); });
const auto scores = vt::function("scores", [](const Scorer& p, const std::vector<Tensor>& words) {
  const Tensor h = vt::tanh(vt::matmul(vt::concatenate(words), p.hidden) + p.hidden_offset);
  return vt::matmul(h, p.out) + p.out_offset;
});
const auto margin =
    vt::function("margin", [](const Tensor& scores, const Tensor& right, const Tensor& wrong) {
      return 1.0f + vt::take(scores, wrong) - vt::take(scores, right);
    });

/// What the LSTMs say of each word, and of the root.
std::vector<Tensor> read(const Params& p, const Sentence& s) {
  std::vector<Tensor> words, forward, result;
  for (const int word : s.words) words.push_back(p.embedding[word]);
  words.push_back(p.embedding[-1]);
  const Memory start{vt::zeros({width}), vt::zeros({width})};
  Memory m = start;
  for (const Tensor& word : words) forward.push_back((m = cell(p.forward, m, word)).h);
  m = start;
  result.resize(words.size());
  for (std::size_t t = words.size(); t-- > 0;)
    result[t] = joined(forward[t], (m = cell(p.backward, m, words[t])).h);
  return result;
}
/// The scores of the actions: of three words of the stack, and of the next one.
Tensor scores_of(const Params& p, const State& state, const std::vector<Tensor>& words) {
  std::vector<Tensor> some{words[state.next()]};
  for (std::size_t depth = 0; depth < 3; ++depth) {
    const int word = state.stack(depth);
    some.push_back(word < 0 ? p.missing : words[word]);
  }
  return scores(p.scorer, some);
}

/// The action of the greatest score among those that `is` holds for, or −1.
template <class Is>
int best(std::span<const float> values, const Is& is) {
  int result = -1;
  for (const Action a : actions)
    if (is(a) && (result < 0 || values[a] > values[result])) result = a;
  return result;
}

/// Of one sentence, by a dynamic oracle (Goldberg, Nivre 2013): an action is right if no arc of the
/// true tree is out of reach after it. The best right one shall win by 1. The parse goes on with
/// the best action, and now and then with a wrong one, so that it learns to go on from there.
Tensor loss_of(const Params& p, const Sentence& s, std::mt19937& random) {
  const std::vector<Tensor> words = read(p, s);
  State state(s);
  Tensor sum = 0.0f;
  while (!state.done()) {
    const Tensor all = scores_of(p, state, words);
    const std::span<const float> values = all.data<float>();  // waits for the other sentences
    const auto is_right = [&](Action a) { return state.allows(a) && state.cost(a) == 0; };
    const int good = best(values, is_right),
              bad = best(values, [&](Action a) { return state.allows(a) && !is_right(a); });
    int chosen = good;
    if (bad >= 0) {
      const float ahead = values[good] - values[bad];
      if (ahead < 1.0f) {
        sum += margin(all, good, bad);
        if (ahead <= 0.0f || random() % 10 == 0) chosen = bad;
      }
    }
    state.apply(static_cast<Action>(chosen));
  }
  return sum;
}
/// How many heads the parser finds.
Tensor right_of(const Params& p, const Sentence& s) {
  const std::vector<Tensor> words = read(p, s);
  State state(s);
  while (!state.done()) {
    const Tensor all = scores_of(p, state, words);
    state.apply(
        static_cast<Action>(best(all.data<float>(), [&](Action a) { return state.allows(a); })));
  }
  int count = 0;
  for (std::size_t k = 0; k < s.heads.size(); ++k) count += state.found[k] == s.heads[k];
  return static_cast<float>(count);
}

// Of a minibatch: its sentences in turns, so that one that looks at scores waits for the others.
Tensor loss(const Params& p, const Minibatch& sentences) {
  std::mt19937 random(1);
  return vt::sum(vt::stack(
      vt::instances(sentences, [&](const Sentence& s) { return loss_of(p, s, random); })));
}
Tensor right_heads(const Params& p, const Minibatch& sentences) {
  return vt::sum(
      vt::stack(vt::instances(sentences, [&](const Sentence& s) { return right_of(p, s); })));
}

// --- the language --------------------------------------------------------------------------------

enum Kind : std::uint8_t { article, adjective, noun, verb, of, with, that, kinds };
constexpr int words_of_kind = 6, vocabulary = kinds * words_of_kind;

/// Clauses of a subject, a verb and mostly an object. Phrases with `of` hang from the noun in front
/// of them, those with `with` from the verb; a noun may have a clause of its own, behind `that`.
class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  Sentence sentence() {
    s_ = {};
    const int at = clause(2);
    for (int& head : s_.heads)
      if (head < 0) head = s_.root();
    s_.heads[at] = s_.root();
    return s_;
  }

 private:
  bool one_in(unsigned n) { return random_() % n == 0; }
  int word(Kind kind) {
    s_.words.push_back(kind * words_of_kind + static_cast<int>(random_() % words_of_kind));
    s_.heads.push_back(-1);
    return s_.root() - 1;
  }
  void hang(int word, int head) { s_.heads[word] = head; }

  // Each gives the word that the phrase hangs by.
  int clause(int depth) {
    const int subject = noun_phrase(depth - 1);
    return verb_phrase(subject, depth);
  }
  int verb_phrase(int subject, int depth) {
    const int at = word(verb);
    if (subject >= 0) hang(subject, at);
    if (!one_in(4)) hang(noun_phrase(depth - 1), at);
    while (one_in(3)) hang(phrase_with(with), at);
    return at;
  }
  int noun_phrase(int depth) {
    std::vector<int> before;
    if (one_in(2)) before.push_back(word(article));
    while (one_in(3)) before.push_back(word(adjective));
    const int at = word(noun);
    for (const int k : before) hang(k, at);
    if (depth > 0 && one_in(3)) hang(phrase_with(of), at);
    if (depth > 0 && one_in(4)) {
      const int link = word(that), inner = verb_phrase(-1, depth);
      hang(link, inner);
      hang(inner, at);
    }
    return at;
  }
  int phrase_with(Kind kind) {
    const int at = word(kind);
    hang(noun_phrase(0), at);
    return at;
  }

  std::mt19937 random_;
  Sentence s_;
};

Minibatch make_sentences(int count, unsigned seed) {
  Writer writer(seed);
  Minibatch all;
  for (int k = 0; k < count; ++k) all.push_back(writer.sentence());
  return all;
}
int words_of(const Minibatch& sentences) {
  int words = 0;
  for (const Sentence& s : sentences) words += s.root();
  return words;
}

// --- training ------------------------------------------------------------------------------------

Params make_params() {
  const auto lstm = [] {
    return Lstm{support::weights({width, 4 * width}), support::weights({width, 4 * width}),
                vt::zeros({4 * width})};
  };
  return {.embedding = support::weights({vocabulary + 1, width}),  // and the root
          .forward = lstm(),
          .backward = lstm(),
          .missing = vt::zeros({2 * width}),
          .scorer = {.hidden = support::weights({8 * width, hidden}),
                     .hidden_offset = vt::zeros({hidden}),
                     .out = support::weights({hidden, 3}),
                     .out_offset = vt::zeros({3})}};
}

/// The unlabelled attachment score: the share of the words whose head is found.
double attachment(const Params& p, const Minibatch& sentences) {
  return vt::autobatch(right_heads)(p, sentences).item<double>() / words_of(sentences);
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
  for (int epoch = 1; epoch <= 3; ++epoch) {
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
    std::printf("epoch %d: loss %.4f a word, %.1f %% of the held-out words attached, %.2f s\n",
                epoch, sum / words_of(sentences), 100 * attachment(p, held_out), seconds);
  }
  return p;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  std::filesystem::create_directories(folder);
  int failures = 0;
  const Minibatch sentences = make_sentences(800, 1), held_out = make_sentences(300, 2);
  const Params start = make_params();
  std::printf(
      "%zu sentences, %d words; before training %.1f %% of the held-out words are attached\n",
      sentences.size(), words_of(sentences), 100 * attachment(start, held_out));
  const Params p = train(start, sentences, held_out);
  if (attachment(p, held_out) < 0.9) {
    std::printf("FAILED: less than 90 %% of the held-out words are attached\n");
    ++failures;
  }

  std::printf("\nLoss and gradient, minibatches of 32\n");
  std::vector<Minibatch> minibatches;
  for (unsigned k = 0; k < 24; ++k) minibatches.push_back(make_sentences(32, 10 + k));
  failures += support::compare_strategies(loss, start, minibatches, "sentences");
  failures +=
      support::count_batches(loss, start, sentences, folder + "/parser_batches.png", "sentences");
  return failures;
}
