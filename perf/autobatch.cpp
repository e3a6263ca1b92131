// The rows of the suite autobatch: models of sentences and trees, written for one example, trained
// in minibatches through vt::autobatch. perf/autobatch/README.md says what they are.
//
// Usage: bench_autobatch FOLDER [NAME ...] [--strategy none|by_depth|agenda] [--batches N]
#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "autobatch/models.hpp"
#include "autobatch/parser.hpp"

namespace {

using vt::Tensor;

constexpr std::size_t batch_size = 64;

struct Options {
  std::string folder;
  std::vector<std::string> names;
  vt::Batching strategy = vt::Batching::agenda;
  std::size_t batches = 0;  ///< 0: all
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
  const std::vector<Example> examples = model.read(options.folder, p);
  const auto loss = vt::autobatch(
      [&model](const P& q, const std::vector<const Example*>& batch) {
        if constexpr (requires { model.batch_loss(q, batch); }) return model.batch_loss(q, batch);
        else {
          Tensor sum = 0.0f;
          for (const Example* e : batch) sum += model.loss(q, *e);
          return sum;
        }
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
  if (wanted("tagger")) train<suite::Tagger>("tagger", options);
  if (wanted("tagger_chars")) train<suite::TaggerWithCharacters>("tagger_chars", options);
  if (wanted("tree_lstm")) train<suite::TreeLstm>("tree_lstm", options);
  if (wanted("parser")) train<suite::Parser>("parser", options);
  if (wanted("synthetic_tagger")) train<suite::SyntheticTagger>("synthetic_tagger", options);
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
