// scaling: measures the steps of a program on its processes, and what of them is compute, waiting
// and transfer.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vt/detail/message.hpp>
#include <vt/distributed.hpp>
#include <vt/execution.hpp>

#include "../../trace/processes/link.hpp"
#include "../../trace/processes/recorder.hpp"
#include "../../trace/processes/scaling_model.hpp"
#include "../../trace/processes/world.hpp"
#include "../../trace/record/scope.hpp"
#include "../../trace/record/thread_state.hpp"
#include "together.hpp"

namespace vt::detail {

namespace scaling_runs {

using distributed::ScalingExchange;
using Records = std::vector<ExchangeRecord>;

constexpr std::size_t most_records = 100'000;  // of a step
constexpr int before = 3;                      // steps that compile and warm up

/// A step of a rank, in seconds of the clock of rank 0.
struct RankStep {
  double begin = 0, end = 0;
  Records records;
};
/// What writing down costs: all of it, and what of it lies between a record's begin and its end.
struct RecordingCost {
  double all = 0, inside = 0;
};
/// All that a rank has written down.
struct RankLog {
  std::vector<ExchangeSite> sites;
  std::vector<std::string> files;  ///< of the sites
  std::vector<RankStep> steps;
  RecordingCost cost;
};

double median(std::vector<double> x) {
  if (x.empty()) return 0;
  const std::size_t half = x.size() / 2;
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(half), x.end());
  if (x.size() % 2 == 1) return x[half];
  return (x[half] + *std::max_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(half))) /
         2;
}

RecordingCost recording_cost() {
  constexpr int times = 2000;
  Recorder recorder;
  const RankGroup group = {0, 1, 2, 0};
  const auto text = [] { return std::string(); };
  const Recorder::Facts facts = {
      ExchangeKind::barrier, ExchangePart::whole, group, 0, 0, 1, {}, nullptr, 0};
  std::vector<double> inside;
  const double begin = monotonic_seconds();
  for (int k = 0; k < times; ++k) {
    const double since = monotonic_seconds();
    recorder.note(facts, {text, {}}, since, monotonic_seconds());
  }
  const double all = (monotonic_seconds() - begin) / times;
  for (const ExchangeRecord& r : recorder.records) inside.push_back(r.end - r.begin);
  return {all, median(inside)};
}

// --- from rank to rank ---------------------------------------------------------------------------

template <class T>
void put(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& text, const std::string& value) {
  put(text, value.size());
  text += value;
}
struct Reader {
  const std::string& text;
  std::size_t at = 0;
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, text.data() + at, sizeof value);
    at += sizeof value;
    return value;
  }
  std::string take_text() {
    const auto size = take<std::size_t>();
    at += size;
    return text.substr(at - size, size);
  }
};

std::string to_bytes(const Recorder& recorder, const std::vector<RankStep>& steps) {
  std::string text;
  put(text, recording_cost());
  put(text, recorder.sites.size());
  for (const ExchangeSite& s : recorder.sites) {
    put(text, s.kind), put(text, s.part);
    put(text, s.first), put(text, s.stride), put(text, s.size);
    put(text, s.bytes), put(text, s.elements), put(text, s.width), put(text, s.where.line);
    put_text(text, s.text), put_text(text, s.where.file ? s.where.file : "");
  }
  put(text, steps.size());
  for (const RankStep& s : steps) {
    put(text, s.begin), put(text, s.end), put(text, s.records.size());
    text.append(reinterpret_cast<const char*>(s.records.data()),
                s.records.size() * sizeof(ExchangeRecord));
  }
  return text;
}

RankLog from_bytes(const std::string& text, double ahead) {
  Reader in = {text};
  RankLog log;
  log.cost = in.take<RecordingCost>();
  for (auto n = in.take<std::size_t>(); n > 0; --n) {
    ExchangeSite s = {};
    s.kind = in.take<ExchangeKind>(), s.part = in.take<ExchangePart>();
    s.first = in.take<int>(), s.stride = in.take<int>(), s.size = in.take<int>();
    s.bytes = in.take<std::size_t>(), s.elements = in.take<std::size_t>();
    s.width = in.take<std::size_t>(), s.where.line = in.take<int>();
    s.text = in.take_text();
    log.sites.push_back(std::move(s));
    log.files.push_back(in.take_text());
  }
  for (auto n = in.take<std::size_t>(); n > 0; --n) {
    RankStep step;
    step.begin = in.take<double>() - ahead, step.end = in.take<double>() - ahead;
    for (auto k = in.take<std::size_t>(); k > 0; --k) {
      step.records.push_back(in.take<ExchangeRecord>());
      step.records.back().begin -= ahead, step.records.back().end -= ahead;
    }
    log.steps.push_back(std::move(step));
  }
  return log;
}

// --- what the records say ------------------------------------------------------------------------

/// Sums over a step, of a rank.
struct Sums {
  double times = 0, wait = 0, transfer = 0;
};

/// A collective: its group, and its number there.
using Key = std::tuple<int, int, int, std::int64_t>;

/// What a rank computes, and whom it waits for then.
struct Event {
  double compute;
  ExchangePart part;
  bool of_two;  ///< waits for `from` alone
  int from;     ///< −1: for nobody
  Key key;
};
struct Lane {
  std::vector<Event> events;
  double rest = 0;  ///< compute behind the last one
};
using Lanes = std::vector<Lane>;

/// How much later the slowest rank is done than the average one computes, if transfers take no
/// time.
double lateness(const Lanes& lanes) {
  struct Meeting {
    int came = 0;
    double last = 0;
  };
  std::map<Key, Meeting> meetings;
  std::map<std::pair<Key, int>, double> entered;  // permutes
  std::vector<std::size_t> at(lanes.size());
  std::vector<double> clock(lanes.size());
  std::vector<bool> is_inside(lanes.size());
  double computed = 0;
  const auto enter = [&](std::size_t r, const Event& e) {
    clock[r] += e.compute, computed += e.compute;
    is_inside[r] = true;
    if (e.part == ExchangePart::finish) return;
    if (e.of_two) {
      entered[{e.key, static_cast<int>(r)}] = clock[r];
    } else {
      Meeting& m = meetings[e.key];
      ++m.came, m.last = std::max(m.last, clock[r]);
    }
  };
  // Null: others have to come first.
  const auto ready = [&](const Event& e) -> const double* {
    static constexpr double at_once = 0;
    if (e.part == ExchangePart::begin || (e.of_two && e.from < 0)) return &at_once;
    if (e.of_two) {
      const auto found = entered.find({e.key, e.from});
      return found == entered.end() ? nullptr : &found->second;
    }
    const Meeting& m = meetings[e.key];
    return m.came < std::get<2>(e.key) ? nullptr : &m.last;
  };
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t r = 0; r < lanes.size(); ++r)
      while (at[r] < lanes[r].events.size()) {
        const Event& e = lanes[r].events[at[r]];
        if (!is_inside[r]) enter(r, e), moves = true;
        const double* const time = ready(e);
        if (!time) break;
        clock[r] = std::max(clock[r], *time);
        is_inside[r] = false;
        ++at[r], moves = true;
      }
  }
  double last = 0;
  for (std::size_t r = 0; r < lanes.size(); ++r) {
    computed += lanes[r].rest;
    last = std::max(last, clock[r] + lanes[r].rest);
  }
  return std::max(0.0, last - computed / static_cast<double>(lanes.size()));
}

/// Two steps of a process alone in place of two ranks.
Lanes as_pair(const Lane& a, const Lane& b) {
  Lanes lanes = {a, b};
  const std::size_t count = std::min(a.events.size(), b.events.size());
  for (int r = 0; r < 2; ++r) {
    Lane& lane = lanes[static_cast<std::size_t>(r)];
    for (; lane.events.size() > count; lane.events.pop_back())
      lane.rest += lane.events.back().compute;
    std::map<Key, std::int64_t> begun;
    for (std::size_t k = 0; k < count; ++k) {
      Event& e = lane.events[k];
      const auto number = static_cast<std::int64_t>(k);
      const Key own = e.key;
      if (e.part == ExchangePart::begin) begun[own] = number;
      const bool is_end = e.part == ExchangePart::finish && begun.contains(own);
      e.key = {0, 1, 2, is_end ? begun[own] : number};
      e.from = e.part == ExchangePart::finish && !is_end ? -1 : 1 - r;
    }
  }
  return lanes;
}

class Analysis {
 public:
  Analysis(const std::vector<RankLog>& logs, ScalingData& data) : logs_(logs), data_(data) {
    find_lines();
    data.timeline.resize(logs.size());
    const std::size_t steps = logs[0].steps.size();
    std::vector<double> lasted;
    for (std::size_t s = 0; s < steps; ++s) lasted.push_back(duration(s));
    const double middle = median(lasted);
    std::size_t shown = 0;
    for (std::size_t s = 0; s < steps; ++s)
      if (std::abs(lasted[s] - middle) < std::abs(lasted[shown] - middle)) shown = s;
    sums_.resize(data.exchanges.size());
    hidden_.resize(data.exchanges.size());
    for (std::size_t s = 0; s < steps; ++s) add_step(s, s == shown);
    const auto mid = [](const std::vector<double>& x) { return std::max(0.0, median(x)); };
    data.measured = {mid(compute_), mid(wait_), mid(transfer_)};
    for (std::size_t k = 0; k < data.exchanges.size(); ++k) {
      std::vector<double> wait, transfer;
      double times = 0;
      for (const Sums& x : sums_[k]) {
        times += x.times / static_cast<double>(steps);
        wait.push_back(x.wait), transfer.push_back(x.transfer);
      }
      data.exchanges[k].times = times;
      data.exchanges[k].wait = mid(wait);
      data.exchanges[k].transfer = mid(transfer);
      data.models[k].hide = median(hidden_[k]);
    }
    data.spread = spread();
  }

 private:
  double duration(std::size_t s) const {
    double most = 0;
    for (const RankLog& log : logs_) most = std::max(most, log.steps[s].end - log.steps[s].begin);
    return most;
  }

  /// One row for each line, whatever group it was in.
  void find_lines() {
    std::map<std::tuple<std::string, std::string, int, ExchangeKind, std::size_t, int, int>, int>
        known;
    for (const RankLog& log : logs_) {
      std::vector<int> rows;
      for (std::size_t k = 0; k < log.sites.size(); ++k) {
        const ExchangeSite& s = log.sites[k];
        if (s.part == ExchangePart::finish || s.kind == ExchangeKind::compare) {
          rows.push_back(-1);
          continue;
        }
        const auto [at, is_new] =
            known.insert({{s.text, log.files[k], s.where.line, s.kind, s.bytes, s.stride, s.size},
                          static_cast<int>(data_.exchanges.size())});
        rows.push_back(at->second);
        if (!is_new) continue;
        data_.exchanges.push_back({.text = s.text,
                                   .file = log.files[k],
                                   .line = s.where.line,
                                   .bytes = static_cast<std::int64_t>(s.bytes),
                                   .processes = s.size});
        data_.models.push_back({.kind = s.kind,
                                .is_begun = s.part == ExchangePart::begin,
                                .bytes = static_cast<double>(s.bytes),
                                .elements = static_cast<double>(s.elements),
                                .width = static_cast<double>(s.width),
                                .processes = s.size,
                                .stride = s.stride});
      }
      rows_.push_back(std::move(rows));
    }
  }

  const ExchangeSite& site(std::size_t rank, const ExchangeRecord& r) const {
    return logs_[rank].sites[static_cast<std::size_t>(r.site)];
  }
  int row(std::size_t rank, const RankStep& step, const ExchangeRecord& r) const {
    if (r.partner >= 0) return row(rank, step, step.records[static_cast<std::size_t>(r.partner)]);
    return rows_[rank][static_cast<std::size_t>(r.site)];
  }

  Key key(std::size_t rank, const ExchangeRecord& r) const {
    const ExchangeSite& s = site(rank, r);
    return {s.first, s.stride, s.size, r.number};
  }

  /// That of one alone, whose collectives have no number: the record, the beginning of an exchange.
  Key lane_key(std::size_t rank, const RankStep& step, const ExchangeRecord& r) const {
    if (site(rank, r).size > 1) return key(rank, r);
    const std::int64_t number = r.partner >= 0 ? r.partner : &r - step.records.data();
    return {static_cast<int>(rank), 1, 1, number};
  }

  void add_step(std::size_t s, bool is_shown) {
    const std::size_t ranks = logs_.size();
    std::map<Key, double> entered;                              // by the last one
    std::map<std::pair<Key, std::size_t>, double> entered_one;  // permutes
    double start = logs_[0].steps[s].begin;
    for (std::size_t r = 0; r < ranks; ++r) {
      const RankStep& step = logs_[r].steps[s];
      start = std::min(start, step.begin);
      for (const ExchangeRecord& x : step.records) {
        const ExchangeSite& at = site(r, x);
        if (at.size == 1 || at.part == ExchangePart::finish) continue;
        if (at.kind == ExchangeKind::permute) {
          entered_one[{key(r, x), r}] = x.begin;
        } else {
          double& last = entered.insert({key(r, x), x.begin}).first->second;
          last = std::max(last, x.begin);
        }
      }
    }
    const auto ready = [&](std::size_t rank, const ExchangeRecord& x) {
      const ExchangeSite& at = site(rank, x);
      if (at.size == 1 || at.part == ExchangePart::begin) return x.begin;
      if (at.kind != ExchangeKind::permute) return entered[key(rank, x)];
      if (x.from < 0) return x.begin;
      const auto other = entered_one.find({key(rank, x), static_cast<std::size_t>(x.from)});
      return other == entered_one.end() ? x.begin : other->second;
    };
    std::vector<Sums> sums(data_.exchanges.size());
    double compute = 0, wait = 0, transfer = 0;
    lanes_.emplace_back(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      const RankLog& log = logs_[r];
      const RankStep& step = log.steps[s];
      std::vector<TimelineBar>* const bars = is_shown ? &data_.timeline[r] : nullptr;
      double before = step.begin, segment = 0;
      const auto compute_until = [&](double time, double less) {
        const double seconds = std::max(0.0, time - before - less);
        compute += seconds, segment += seconds;
        if (bars && time > before)
          bars->push_back({TimelineBar::Kind::compute, before - start, time - start, -1});
      };
      for (const ExchangeRecord& x : step.records) {
        compute_until(x.begin, log.cost.all - log.cost.inside);
        before = x.end;
        const int k = row(r, step, x);
        const double waited = std::clamp(ready(r, x) - x.begin, 0.0, x.end - x.begin),
                     moved = std::max(0.0, x.end - x.begin - waited - log.cost.inside);
        const ExchangeSite& at = site(r, x);
        lanes_.back()[r].events.push_back(
            {segment, at.part, at.kind == ExchangeKind::permute, x.from, lane_key(r, step, x)});
        segment = 0;
        if (k < 0) continue;
        Sums& sum = sums[static_cast<std::size_t>(k)];
        sum.times += x.partner < 0;
        sum.wait += waited, sum.transfer += moved;
        wait += waited, transfer += moved;
        if (x.partner >= 0)
          hidden_[static_cast<std::size_t>(k)].push_back(
              x.begin - step.records[static_cast<std::size_t>(x.partner)].end);
        if (!bars) continue;
        const double b = x.begin - start, e = x.end - start;
        if (waited > 0) bars->push_back({TimelineBar::Kind::wait, b, b + waited, k});
        bars->push_back({TimelineBar::Kind::transfer, b + waited, e, k});
      }
      compute_until(step.end, 0);
      lanes_.back()[r].rest = segment;
    }
    const auto n = static_cast<double>(ranks);
    compute_.push_back(compute / n), wait_.push_back(wait / n);
    transfer_.push_back(transfer / n);
    for (std::size_t k = 0; k < sums.size(); ++k)
      sums_[k].push_back({sums[k].times / n, sums[k].wait / n, sums[k].transfer / n});
  }

  /// The standard deviation of the compute between ranks, as far as they wait for it.
  double spread() const {
    std::vector<double> late;
    std::size_t ranks = logs_.size();
    if (ranks > 1) {
      for (const Lanes& lanes : lanes_) late.push_back(lateness(lanes));
    } else {
      ranks = 2;
      for (std::size_t s = 0; s + 1 < lanes_.size(); ++s)
        late.push_back(lateness(as_pair(lanes_[s][0], lanes_[s + 1][0])));
    }
    return median(std::move(late)) / expected_maximum(static_cast<double>(ranks));
  }

  const std::vector<RankLog>& logs_;
  ScalingData& data_;
  std::vector<std::vector<int>> rows_;             ///< by rank and site; −1: none
  std::vector<double> compute_, wait_, transfer_;  ///< by step
  std::vector<std::vector<Sums>> sums_;            ///< by row and step
  std::vector<std::vector<double>> hidden_;        ///< by row
  std::vector<Lanes> lanes_;                       ///< by step
};

/// The World writes down meanwhile.
struct Recording {
  World& world;
  Recording(World& w, Recorder& recorder) : world(w) { world.set_recorder(&recorder); }
  ~Recording() { world.set_recorder(nullptr); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
};

/// Runs what may throw anything: this process throws that, the others an Error that tells of it.
void attempt(const Together& together, FunctionRef<void()> work) {
  std::exception_ptr own;
  const auto failed = [&](const char* message) {
    own = std::current_exception();
    return Error(ErrorKind::backend, std::string("vt::distributed::scaling: ") + message);
  };
  try {
    together.attempt([&] {
      try {
        work();
      } catch (const Error&) {
        throw;
      } catch (const std::exception& e) {
        throw failed(e.what());
      } catch (...) {
        throw failed("an exception of another type than std::exception");
      }
    });
  } catch (...) {
    if (own) std::rethrow_exception(own);
    throw;
  }
}

void check_options(const distributed::ScalingOptions& o, CallSite where) {
  const auto refuse = [&](const std::string& what) {
    fail(ErrorKind::value, "vt::distributed::scaling: " + what, where);
  };
  if (o.steps < 1) refuse(formatted("steps is {}", o.steps));
  if (o.processes_of_host < 0) refuse(formatted("processes_of_host is {}", o.processes_of_host));
  for (const Link& l : o.link) {
    if (!(l.latency >= 0)) refuse(formatted("the latency of link is {}", double{l.latency}));
    if (!(l.bandwidth > 0)) refuse(formatted("the bandwidth of link is {}", double{l.bandwidth}));
    if (l.up_to < 0) refuse(formatted("up_to of link is {}", std::int64_t{l.up_to}));
  }
  for (std::size_t k = 0; k + 1 < o.link.size(); ++k) {
    const std::int64_t one = o.link[k].up_to, next = o.link[k + 1].up_to;
    if (one == 0 || (next != 0 && next <= one))
      refuse(
          formatted("the ranges of link are out of order: up_to is {} and then {}; it must "
                    "rise, and only the last range may be without end, which is 0",
                    one, next));
  }
}

}  // namespace scaling_runs

distributed::ScalingReport measure_scaling(FunctionRef<void()> step,
                                           const distributed::ScalingOptions& options,
                                           CallSite where) {
  using namespace scaling_runs;
  for (const ScopeState& scope : thread_state().scopes)
    if (!scope.mesh.empty())
      fail(ErrorKind::transform,
           "vt::distributed::scaling: called inside of the function of a vt::shard_map; call it "
           "outside of that",
           where);
  World& world = World::current();
  const Together together("vt::distributed::scaling", where);
  const auto text = [] { return std::string("vt::distributed::scaling"); };
  const CollectiveSite site = {text, where};
  together.attempt([&] { check_options(options, where); });
  Recorder recorder;
  std::vector<RankStep> steps;
  const auto run = [&] {
    attempt(together, step);
    wait_compiled();
  };
  for (int k = 0; k < before; ++k) run();
  std::vector<double> plain;
  for (int k = 0; k < options.steps; ++k) {
    RankStep own;
    world.barrier(site);
    attempt(together, [&] {
      recorder.records.clear();
      const Recording recording(world, recorder);
      own.begin = monotonic_seconds();
      step();
      own.end = monotonic_seconds();
      if (recorder.records.size() > most_records)
        fail(ErrorKind::value,
             formatted("vt::distributed::scaling: a step has {} collectives, and there may be {}",
                       recorder.records.size(), most_records),
             where);
    });
    own.records.assign(recorder.records.begin(), recorder.records.end());
    steps.push_back(std::move(own));
    double seconds = 0;
    world.barrier(site);
    attempt(together, [&] {
      const double begin = monotonic_seconds();
      step();
      seconds = monotonic_seconds() - begin;
    });
    std::vector<double> all(static_cast<std::size_t>(world.size()));
    together.gather(&seconds, all.data(), sizeof seconds);
    plain.push_back(*std::max_element(all.begin(), all.end()));
  }
  const MeasuredLinks measured = measure_links(world, site);
  std::vector<RankLog> logs;
  {
    const std::vector<std::string> all = together.texts(to_bytes(recorder, steps));
    for (std::size_t r = 0; r < all.size(); ++r)
      logs.push_back(from_bytes(all[r], measured.ahead[r]));
  }
  auto data = std::make_shared<ScalingData>();
  data->ranks = world.size();
  data->steps = options.steps;
  data->transport = world.transport_name();
  data->seconds = median(plain);
  data->where = where;
  data->is_given = !options.link.empty();
  data->links = {
      measured.within, data->is_given ? options.link : measured.between, measured.combine,
      measured.combine_long,
      options.processes_of_host > 0 ? int{options.processes_of_host} : world.ranks_of_host()};
  Analysis(logs, *data);
  for (std::size_t k = 0; k < data->exchanges.size(); ++k)
    data->exchanges[k].modelled =
        transfer_seconds(*data, k, data->ranks, distributed::Scaling::weak);
  return distributed::ScalingReport(std::move(data));
}

}  // namespace vt::detail
