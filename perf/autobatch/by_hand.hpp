// The tagger batched by hand: sentences side by side, padded to the longest, in steps over time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models.hpp"

namespace suite {

struct TaggerByHand : Tagger {
  /// A minibatch as arrays, with time in front.
  struct Padded {
    std::int64_t steps, sentences;
    Tensor words;  ///< [steps, sentences]
    Tensor wanted,
        inside;  ///< [steps, sentences, classes], [steps, sentences, 1]: 0 behind the end
  };

  Padded padded(const std::vector<const Sentence*>& batch) const {
    std::size_t longest = 0;
    for (const Sentence* s : batch) longest = std::max(longest, s->size());
    // Of few lengths, for each of which little code is compiled.
    const std::size_t steps = (longest + 7) / 8 * 8, count = batch.size(), classes = wanted.size();
    std::vector<std::int64_t> words(steps * count, 0);
    std::vector<float> tags(steps * count * classes, 0), inside(steps * count, 0);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t t = 0; t < batch[i]->size(); ++t) {
        const Token& token = (*batch[i])[t];
        const std::size_t at = t * count + i;
        words[at] = token.word, inside[at] = 1;
        tags[at * classes + static_cast<std::size_t>(token.tag)] = 1;
      }
    const auto n = static_cast<std::int64_t>(steps), m = static_cast<std::int64_t>(count);
    return {n, m, vt::reshape(vt::tensor(words), {n, m}).eval(),
            vt::reshape(vt::tensor(tags), {n, m, static_cast<std::int64_t>(classes)}).eval(),
            vt::reshape(vt::tensor(inside), {n, m, 1}).eval()};
  }

  Tensor batch_loss(const Parameters& p, const std::vector<const Sentence*>& batch) const {
    // Behind the end of a sentence its state stays 0.
    static const auto masked = vt::function(
        "masked_lstm", [](const Tensor& x, const State& s, const Lstm& q, const Tensor& inside) {
          const State next = lstm_step(x, s, q);
          return State{next.h * inside, next.c * inside};
        });
    static const auto cost =
        vt::function("cost", [](const Tensor& f, const Tensor& b, const Tensor& hidden,
                                const Tensor& out, const Tensor& y, const Tensor& inside) {
          const Tensor both = vt::concatenate({f, b}, 1),
                       scores = vt::matmul(vt::tanh(vt::matmul(both, hidden)), out);
          return vt::sum(vt::logsumexp(scores, {1}, true) * inside) - vt::sum(scores * y);
        });
    const Padded all = padded(batch);
    const Tensor x = vt::take(p.words, all.words, 0);
    const Tensor zeros = vt::zeros({all.sentences, width});
    std::vector<Tensor> f;
    State s{zeros, zeros};
    for (std::int64_t t = 0; t < all.steps; ++t) {
      s = lstm(x[t], s, p.forward);
      f.push_back(s.h);
    }
    s = {zeros, zeros};
    Tensor sum = 0.0f;
    for (std::int64_t t = all.steps; t-- > 0;) {
      s = masked(x[t], s, p.backward, all.inside[t]);
      sum += cost(f[t], s.h, p.hidden, p.out, all.wanted[t], all.inside[t]);
    }
    return sum;
  }
};

}  // namespace suite
