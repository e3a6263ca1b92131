// The rows of the suite autobatch: models of sentences and trees, written for one example, trained
// in minibatches through vt::autobatch. perf/autobatch/README.md says what they are.
//
// Usage: bench_autobatch FOLDER [NAME ...] [--strategy none|by_depth|agenda] [--batches N]
//                        [--batch EXAMPLES] [--phases]
//        bench_autobatch FOLDER --figure strategies|by_hand|sizes
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

#include "autobatch/by_hand.hpp"
#include "autobatch/models.hpp"
#include "autobatch/parser.hpp"

namespace {

using vt::Tensor;

struct Options {
  std::string folder, figure;
  std::vector<std::string> names;
  vt::Batching strategy = vt::Batching::agenda;
  std::size_t batch = 64;
  std::size_t batches = 0;  ///< 0: all
  bool phases = false;      ///< tell forward and backward apart, which takes a forward pass more
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

/// Seconds of the second pass.
struct Phases {
  double record = 0, schedule = 0, emit = 0;
  double transforms = 0;  ///< the rest of value_and_grad: derivatives, and what looks run
  double run = 0;         ///< forward and backward
  double forward = 0;     ///< the loss alone, in a run of its own
  double update = 0;
};

template <class Model>
class Training {
 public:
  Training(std::string name, const Options& options)
      : name_(std::move(name)),
        options_(options),
        examples_(model_.read(options.folder, p_)),
        m_{p_, p_} {
    vt::detail::for_each_leaf(m_, [](Tensor& t) { t = vt::zeros_like(t).eval(); });
  }

  void run() {
    for (const bool shuffled : {false, true}) {
      phases_ = {};
      trained_ = 0;
      double seconds = 0, used = 0;
      for (std::size_t k = 0; k < examples_.size(); k += options_.batch) {
        if (options_.batches && k / options_.batch >= options_.batches) break;
        Batch batch;
        for (std::size_t i = k; i < std::min(k + options_.batch, examples_.size()); ++i)
          batch.push_back(&examples_[shuffled ? (i * 77 + 5) % examples_.size() : i]);
        const double begin = now(), began = processor_time();
        step(batch);
        seconds += now() - begin, used += processor_time() - began;
        if (!shuffled) losses_ += (losses_.empty() ? "" : ", ") + std::to_string(last_);
        if (shuffled && options_.phases) forward(batch);
      }
      (shuffled ? value_ : first_) = static_cast<double>(trained_) / seconds;
      processors_ = used / seconds;
    }
    print();
  }

 private:
  using P = typename Model::Parameters;
  using Example = typename Model::Example;
  using Batch = std::vector<const Example*>;

  Tensor loss(const P& p, const Batch& batch) const {
    const auto batched = vt::autobatch(
        [this](const P& q, const Batch& all) {
          if constexpr (requires { model_.batch_loss(q, all); }) return model_.batch_loss(q, all);
          else {
            Tensor sum = 0.0f;
            for (const Example* e : all) sum += model_.loss(q, *e);
            return sum;
          }
        },
        {.strategy = options_.strategy});
    return batched(p, batch);
  }

  void step(const Batch& batch) {
    double since = now();
    const auto lap = [&] {
      const double before = std::exchange(since, now());
      return since - before;
    };
    auto [l, gradient] = vt::value_and_grad([&](const P& q) { return loss(q, batch); })(p_);
    stats_ = vt::batch_stats();
    phases_.record += stats_.record_seconds;
    phases_.schedule += stats_.schedule_seconds;
    phases_.emit += stats_.emit_seconds;
    phases_.transforms +=
        lap() - stats_.record_seconds - stats_.schedule_seconds - stats_.emit_seconds;
    vt::eval(l, gradient);
    phases_.run += lap();
    std::tie(p_, m_) = update_(p_, m_, gradient, Tensor(static_cast<float>(++steps_)));
    vt::eval(p_, m_.first, m_.second);
    std::size_t parts = 0;
    for (const Example* e : batch) parts += Model::parts(*e);
    last_ = l.template item<double>() / static_cast<double>(parts);
    phases_.update += lap();
    trained_ += batch.size();
  }
  void forward(const Batch& batch) {
    const double begin = now();
    loss(p_, batch).eval();
    const vt::BatchStats stats = vt::batch_stats();
    phases_.forward +=
        now() - begin - stats.record_seconds - stats.schedule_seconds - stats.emit_seconds;
  }

  void print() const {
    constexpr std::array<const char*, 3> who{"vt_none", "vt_by_depth", "vt"};
    const char* const own = who[static_cast<std::size_t>(options_.strategy)];
    const auto batches = static_cast<double>((trained_ + options_.batch - 1) / options_.batch);
    const auto ms = [&](const char* key, double seconds) {
      std::cout << ", \"" << key << "_ms\": " << 1e3 * seconds / batches;
    };
    std::cout << "{";
    if (!options_.figure.empty()) std::cout << "\"figure\": \"" << options_.figure << "\", ";
    std::cout << "\"name\": \"" << name_ << "\", \"who\": \"" << own
              << "\", \"unit\": \"examples/s\", \"first\": " << first_ << ", \"value\": " << value_
              << ", \"losses\": [" << losses_ << "], \"last_loss\": " << last_
              << ", \"processors\": " << processors_ << ", \"examples\": " << trained_
              << ", \"batch\": " << options_.batch << ", \"nodes\": " << stats_.nodes
              << ", \"groups\": " << stats_.groups;
    ms("record", phases_.record);
    ms("schedule", phases_.schedule);
    ms("emit", phases_.emit);
    ms("transforms", phases_.transforms);
    ms("run", phases_.run);
    if (options_.phases) ms("forward", phases_.forward);
    ms("update", phases_.update);
    std::cout << "}" << std::endl;
    std::cerr << name_ << " " << own << ", " << options_.batch << " at a time: " << value_
              << "/s\n";
  }

  std::string name_;
  Options options_;
  Model model_;
  P p_;
  std::vector<Example> examples_;
  Moments<P> m_;
  decltype(adam<P>()) update_ = adam<P>();
  std::int64_t steps_ = 0;
  double value_ = 0, first_ = 0, processors_ = 0, last_ = 0;
  std::size_t trained_ = 0;
  std::string losses_;
  vt::BatchStats stats_;
  Phases phases_;
};

template <class Model>
void train(const char* name, const Options& options) {
  suite::next_seed = 0;
  Training<Model>(name, options).run();
}
void train_row(const std::string& name, const Options& options) {
  if (name == "tagger") train<suite::Tagger>("tagger", options);
  else if (name == "tagger_by_hand") train<suite::TaggerByHand>("tagger_by_hand", options);
  else if (name == "tagger_chars") train<suite::TaggerWithCharacters>("tagger_chars", options);
  else if (name == "tree_lstm") train<suite::TreeLstm>("tree_lstm", options);
  else if (name == "parser") train<suite::Parser>("parser", options);
  else if (name == "parser_once") train<suite::ParserOnce>("parser_once", options);
  else if (name == "synthetic_tagger") train<suite::SyntheticTagger>("synthetic_tagger", options);
  else throw std::runtime_error("no row " + name);
}

/// One by one takes long: of so many examples only.
constexpr std::size_t examples_one_by_one = 128;

void train_strategy(const char* name, Options options, vt::Batching strategy) {
  options.strategy = strategy;
  if (strategy == vt::Batching::none)
    options.batches = std::max<std::size_t>(1, examples_one_by_one / options.batch);
  train_row(name, options);
}

/// What the paper's figures and tables compare.
void draw_figure(Options options) {
  constexpr std::array<vt::Batching, 3> all{vt::Batching::none, vt::Batching::by_depth,
                                            vt::Batching::agenda};
  if (options.figure == "by_hand") {
    options.phases = true;
    for (const char* name : {"tagger", "tagger_by_hand"})
      for (const vt::Batching strategy : all) train_strategy(name, options, strategy);
  } else if (options.figure == "strategies") {
    for (const char* name : {"tagger", "tagger_chars", "tree_lstm", "parser"})
      for (const vt::Batching strategy : all) train_strategy(name, options, strategy);
  } else if (options.figure == "sizes") {
    for (options.batch = 1; options.batch <= 128; options.batch *= 2)
      for (const vt::Batching strategy : {vt::Batching::none, vt::Batching::agenda})
        train_strategy("tree_lstm", options, strategy);
  } else {
    throw std::runtime_error("no figure " + options.figure);
  }
}

vt::Batching strategy_of(const std::string& name) {
  if (name == "none") return vt::Batching::none;
  if (name == "by_depth") return vt::Batching::by_depth;
  if (name == "agenda") return vt::Batching::agenda;
  throw std::runtime_error("no strategy " + name);
}

Options parsed(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string a = arguments[i];
    if (a == "--phases") {
      options.phases = true;
    } else if (a.starts_with("--")) {
      if (i + 1 == count) throw std::runtime_error(a + " wants a value");
      const std::string value = arguments[++i];
      if (a == "--strategy") options.strategy = strategy_of(value);
      else if (a == "--batches") options.batches = std::stoul(value);
      else if (a == "--batch") options.batch = std::max(1ul, std::stoul(value));
      else if (a == "--figure") options.figure = value;
      else throw std::runtime_error("no option " + a);
    } else if (options.folder.empty()) {
      options.folder = a;
    } else {
      options.names.push_back(a);
    }
  }
  if (options.folder.empty()) throw std::runtime_error("usage: bench_autobatch FOLDER [NAME ...]");
  if (options.names.empty())
    options.names = {"tagger", "tagger_chars", "tree_lstm",
                     "parser", "parser_once",  "synthetic_tagger"};
  return options;
}

}  // namespace

int main(int count, char** arguments) try {
  const Options options = parsed(count, arguments);
  vt::set_num_threads(1);
  if (!options.figure.empty()) draw_figure(options);
  else
    for (const std::string& name : options.names) train_row(name, options);
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
