// The row parser of the suite autobatch: an arc-hybrid transition parser with a dynamic oracle. All
// sentences of a minibatch take a step together: each looks at its scores to choose its action.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "models.hpp"

namespace suite {

struct ParsedWord {
  std::int64_t word = 0, tag = 0, head = 0, relation = 0;
};
using Parse = std::vector<ParsedWord>;

inline std::vector<Parse> read_parses(std::istream& file, Header& header) {
  file >> header.examples >> header.words >> header.classes >> header.more;
  std::vector<Parse> all(header.examples);
  for (Parse& parse : all) {
    std::size_t parts = 0;
    file >> parts;
    parse.resize(parts);
    for (ParsedWord& w : parse) file >> w.word >> w.tag >> w.head >> w.relation;
  }
  return all;
}

enum class Action : std::uint8_t { left, right, shift };
constexpr std::array<Action, 3> all_actions{Action::left, Action::right, Action::shift};

/// The state of a sentence's parse. Words count from 1; the root, 0, is the last of the buffer.
class ParserState {
 public:
  /// A word, or the root, with the ends of the phrase that hangs from it: places in the sentence,
  /// whose last is that of the root.
  struct Item {
    std::int64_t at, head, relation;
    std::size_t left, right;
  };

  explicit ParserState(const Parse& words) {
    buffer_.push_back({0, -1, -1, words.size(), words.size()});
    for (std::size_t k = words.size(); k-- > 0;)
      buffer_.push_back({static_cast<std::int64_t>(k) + 1, words[k].head, words[k].relation, k, k});
  }

  bool done() const { return stack_.empty() && buffer_.size() == 1; }
  /// The item at this depth of the stack, or null.
  const Item* stack(std::size_t depth) const {
    return depth < stack_.size() ? &stack_[stack_.size() - 1 - depth] : nullptr;
  }
  const Item& next() const { return buffer_.back(); }

  bool allows(Action action) const {
    switch (action) {
      case Action::left: return !stack_.empty();
      case Action::right: return stack_.size() > 1;
      case Action::shift: return buffer_.size() > 1;
    }
    return false;
  }
  /// How many arcs of the true tree an action makes impossible.
  std::int64_t cost(Action action) const {
    const std::span<const Item> stack = stack_, buffer = buffer_;
    const Item& b = buffer.back();
    if (action == Action::shift)
      return count(stack, [&](const Item& x) { return x.head == b.at; }) +
             count(stack.first(stack.size() - std::min<std::size_t>(1, stack.size())),
                   [&](const Item& x) { return x.at == b.head; });
    const Item& s = stack.back();
    const auto is_head = [&](const Item& x) { return x.at == s.head; };
    const std::int64_t dependents = count(buffer, [&](const Item& x) { return x.head == s.at; });
    if (action == Action::right) return dependents + count(buffer, is_head);
    return dependents + count(buffer.first(buffer.size() - 1), is_head) +
           (stack.size() > 1 && is_head(stack[stack.size() - 2]) ? 1 : 0);
  }
  void apply(Action action) {
    if (action == Action::shift) {
      stack_.push_back(buffer_.back());
      buffer_.pop_back();
      return;
    }
    const Item child = stack_.back();
    stack_.pop_back();
    if (action == Action::left) buffer_.back().left = child.left;
    else stack_.back().right = child.right;
  }

 private:
  template <class Is>
  static std::int64_t count(std::span<const Item> items, const Is& is) {
    return std::count_if(items.begin(), items.end(), is);
  }

  std::vector<Item> stack_, buffer_;  ///< both grow and shrink at the end
};

/// `once`: each vector is multiplied with the eight matrices of the heads' first layer once, and
/// not wherever it is an end.
template <bool once>
struct ParserModel {
  using Example = Parse;
  static constexpr std::int64_t word_width = 100, tag_width = 25, hidden = 200, both = 2 * hidden,
                                head = 100, ends = 8;
  static constexpr double explore = 0.1;
  /// The first layers of both heads lie side by side; they have a matrix for each end.
  struct Heads {
    Tensor in_bias;
    Tensor action, action_bias, labelled, labelled_bias;
  };
  struct Parameters {
    Tensor words, tags;
    std::vector<Lstm> forward, backward;
    Tensor empty;  ///< in place of an item that is missing: two ends
    std::vector<Tensor> in;
    Heads heads;
  };
  std::int64_t relations = 0;
  ParsedWord root;
  Tensor spread;  ///< from actions to actions with relations: left, right, shift
  mutable std::mt19937 random{1};

  std::vector<Parse> read(const std::string& folder, Parameters& p) {
    Header header;
    std::ifstream file = opened(folder, "parses.txt");
    std::vector<Parse> all = read_parses(file, header);
    relations = header.more;
    root = {header.words, header.classes, -1, -1};
    p.words = table(header.words + 1, word_width);
    p.tags = table(header.classes + 1, tag_width);
    for (std::int64_t in : {word_width + tag_width, both}) {
      p.forward.push_back(make_lstm(in, hidden));
      p.backward.push_back(make_lstm(in, hidden));
    }
    p.empty = table(2, both);
    const std::int64_t outputs = 2 * relations + 1;
    p.heads = {vt::zeros({2 * head}).eval(), weights(head, 3), vt::zeros({3}).eval(),
               weights(head, outputs), vt::zeros({outputs}).eval()};
    for (std::int64_t k = 0; k < ends; ++k)
      p.in.push_back(random_matrix({both, 2 * head}, limit_of_weights(ends * both, head)));
    const Tensor eye = vt::eye(3);
    spread =
        vt::concatenate({vt::repeat(eye[vt::Slice(0, 2)], relations, 0), eye[vt::Slice(2, 3)]});
    spread = vt::transpose(spread).eval();
    return all;
  }

  /// What the LSTMs say of each word, and of the root.
  std::vector<Tensor> vectors(const Parameters& p, const Parse& words) const {
    static const auto joined = vt::function(
        "joined", [](const Tensor& a, const Tensor& b) { return vt::concatenate({a, b}); });
    std::vector<Tensor> x;
    for (const ParsedWord& w : words) x.push_back(joined(p.words[w.word], p.tags[w.tag]));
    x.push_back(joined(p.words[root.word], p.tags[root.tag]));
    for (std::size_t k = 0; k < p.forward.size(); ++k) {
      const std::vector<Tensor> f = run_lstm(x, p.forward[k], hidden, false),
                                b = run_lstm(x, p.backward[k], hidden, true);
      for (std::size_t t = 0; t < x.size(); ++t) x[t] = joined(f[t], b[t]);
    }
    return x;
  }

  /// A vector as each of the ends; of ParserModel<false> the vector itself.
  using Ends = std::vector<Tensor>;
  static Ends ends_of(const Parameters& p, const Tensor& vector) {
    static const auto f = vt::function("ends", [](const Tensor& x, const std::vector<Tensor>& in) {
      Ends all;
      for (const Tensor& matrix : in) all.push_back(vt::matmul(x, matrix));
      return all;
    });
    return once ? f(vector, p.in) : Ends(ends, vector);
  }

  /// The heads, of the sum of what the ends bring to their first layers.
  static Tensor heads_of(const Tensor& sum, const Heads& q, const Tensor& to) {
    const std::vector<Tensor> h = vt::split(vt::tanh(sum + q.in_bias), 2);
    return vt::matmul(h[1], q.labelled) + q.labelled_bias +
           vt::matmul(vt::matmul(h[0], q.action) + q.action_bias, to);
  }
  static Tensor scores_of(const Parameters& p, const Ends& x, const Tensor& to) {
    if constexpr (once) {
      static const auto f =
          vt::function("scores", [](const Ends& all, const Heads& q, const Tensor& spread) {
            Tensor sum = all[0];
            for (std::size_t k = 1; k < all.size(); ++k) sum = sum + all[k];
            return heads_of(sum, q, spread);
          });
      return f(x, p.heads, to);
    } else {
      static const auto f = vt::function(
          "scores",
          [](const Ends& all, const std::vector<Tensor>& in, const Heads& q, const Tensor& spread) {
            Tensor sum = vt::matmul(all[0], in[0]);
            for (std::size_t k = 1; k < all.size(); ++k) sum = sum + vt::matmul(all[k], in[k]);
            return heads_of(sum, q, spread);
          });
      return f(x, p.in, p.heads, to);
    }
  }

  /// Of left with each relation, right with each relation, and shift.
  Tensor scores(const Parameters& p, const ParserState& state, const std::vector<Ends>& words,
                const std::array<Ends, 2>& empty) const {
    Ends x;
    const auto add = [&](const ParserState::Item* item) {
      for (const bool right : {false, true}) {
        const Ends& all = item ? words[right ? item->right : item->left] : empty[right];
        x.push_back(all[x.size()]);
      }
    };
    for (std::size_t depth = 0; depth < 3; ++depth) add(state.stack(depth));
    add(&state.next());
    return scores_of(p, x, spread);
  }

  /// What the oracle makes of scores: the best that costs nothing, the best other one that is
  /// allowed (or −1), and their values.
  struct Choice {
    std::int64_t right = -1, wrong = -1;
    float right_value = -std::numeric_limits<float>::infinity(), wrong_value = right_value;
  };
  Choice choose(const ParserState& state, std::span<const float> values) const {
    Choice c;
    for (Action action : all_actions) {
      if (!state.allows(action)) continue;
      const std::int64_t count = action == Action::shift ? 1 : relations,
                         first = static_cast<std::int64_t>(action) * relations,
                         relation = action == Action::shift ? 0 : state.stack(0)->relation,
                         right = state.cost(action) == 0 ? first + relation : -1;
      for (std::int64_t k = first; k < first + count; ++k) {
        const float value = values[k];
        if (k == right) {
          if (c.right < 0 || value > c.right_value) c.right = k, c.right_value = value;
        } else if (c.wrong < 0 || value > c.wrong_value) {
          c.wrong = k, c.wrong_value = value;
        }
      }
    }
    return c;
  }

  Tensor loss(const Parameters& p, const Parse& words) const {
    static const auto margin =
        vt::function("margin", [](const Tensor& scores, const Tensor& right, const Tensor& wrong) {
          return 1.0f + vt::take(scores, wrong) - vt::take(scores, right);
        });
    std::vector<Ends> all;
    for (const Tensor& vector : vectors(p, words)) all.push_back(ends_of(p, vector));
    const std::array<Ends, 2> empty{ends_of(p, p.empty[0]), ends_of(p, p.empty[1])};
    // Of all words in the first batch, and not of each when the parser comes to it.
    std::vector<Tensor> first;
    for (const Ends& e : all) first.push_back(e[0]);
    vt::eval(first);
    ParserState state(words);
    Tensor sum = 0.0f;
    while (!state.done()) {
      const Tensor s = scores(p, state, all, empty);
      const Choice c = choose(state, s.data<float>());
      std::int64_t chosen = c.right;
      if (c.wrong >= 0) {
        const float ahead = c.right_value - c.wrong_value;
        if (ahead < 1.0f) sum += margin(s, c.right, c.wrong);
        const bool keeps = ahead > 1.0f || (ahead > 0.0f && uniform() > explore);
        if (!keeps) chosen = c.wrong;
      }
      state.apply(static_cast<Action>(std::min<std::int64_t>(chosen / relations, 2)));
    }
    return sum;
  }
  Tensor batch_loss(const Parameters& p, const std::vector<const Parse*>& batch) const {
    return vt::sum(
        vt::stack(vt::instances(batch, [&](const Parse* words) { return loss(p, *words); })));
  }
  static std::size_t parts(const Parse& words) { return words.size(); }

 private:
  double uniform() const { return std::uniform_real_distribution<double>()(random); }
};

using Parser = ParserModel<false>;
using ParserOnce = ParserModel<true>;

}  // namespace suite
