// The streams that make a dataset's elements: rows in their order, maps, batches, shuffling,
// prefetching on a thread, progress.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include <vt/detail/message.hpp>
#include <vt/execution.hpp>
#include <vt/random.hpp>

#include "../../trace/base/locks.hpp"
#include "../../trace/record/node.hpp"
#include "plan.hpp"

namespace vt::detail {

namespace dataset_parts {

// --- which rows, in which order ------------------------------------------------------------------

/// A pass over row numbers. `iteration`, here and in streams: how often an enclosing repeat has
/// begun again, which shuffles differently.
class RowOrder {
 public:
  virtual ~RowOrder() = default;
  virtual bool next(std::int64_t& row) = 0;
};
std::unique_ptr<RowOrder> order_of(const PlanRef& plan, std::int64_t iteration);

/// The key of a shuffle in that iteration.
Tensor key_in(const PlanRef& shuffle, std::int64_t iteration) {
  return iteration == 0 ? shuffle->key : random::fold_in(shuffle->key, iteration);
}
/// The iteration of what a repeat, itself in iteration `outer`, begins for the time number `inner`.
std::int64_t round_within(const PlanRef& repeat, std::int64_t outer, std::int64_t inner) {
  return outer * std::max<std::int64_t>(repeat->count, 1) + inner;
}

class AllRows : public RowOrder {
 public:
  explicit AllRows(std::int64_t count) : count_(count) {}
  bool next(std::int64_t& row) override {
    row = next_;
    return next_++ < count_;
  }

 private:
  std::int64_t count_, next_ = 0;
};
class ShuffledRows : public RowOrder {
 public:
  ShuffledRows(const PlanRef& plan, std::int64_t iteration) {
    const auto inner = order_of(plan->from, iteration);
    Vec<std::int64_t> all;
    for (std::int64_t row; inner->next(row);) all.push_back(row);
    const Tensor places =
        random::permutation(key_in(plan, iteration), static_cast<std::int64_t>(all.size()));
    for (std::int64_t p : places.to_vector<std::int64_t>(plan->where)) rows_.push_back(all[p]);
  }
  bool next(std::int64_t& row) override {
    if (next_ == rows_.size()) return false;
    row = rows_[next_++];
    return true;
  }

 private:
  Vec<std::int64_t> rows_;
  std::size_t next_ = 0;
};
class PartOfRows : public RowOrder {
 public:
  PartOfRows(const PlanRef& plan, std::int64_t iteration)
      : inner_(order_of(plan->from, iteration)), skip_(plan->skip), left_(plan->count) {}
  bool next(std::int64_t& row) override {
    for (; skip_ > 0; --skip_)
      if (!inner_->next(row)) return false;
    if (left_ == 0) return false;
    if (left_ > 0) --left_;
    return inner_->next(row);
  }

 private:
  std::unique_ptr<RowOrder> inner_;
  std::int64_t skip_, left_;
};
/// Of each full group of rows one.
class ShardOfRows : public RowOrder {
 public:
  ShardOfRows(const PlanRef& plan, std::int64_t iteration)
      : inner_(order_of(plan->from, iteration)), count_(plan->count), index_(plan->skip) {}
  bool next(std::int64_t& row) override {
    std::int64_t other = 0;
    for (std::int64_t i = 0; i < count_; ++i)
      if (!inner_->next(i == index_ ? row : other)) return false;
    return true;
  }

 private:
  std::unique_ptr<RowOrder> inner_;
  std::int64_t count_, index_;
};
class RepeatedRows : public RowOrder {
 public:
  RepeatedRows(const PlanRef& plan, std::int64_t iteration) : plan_(plan), outer_(iteration) {}
  bool next(std::int64_t& row) override {
    for (;;) {
      if (inner_ && inner_->next(row)) {
        any_ = true;
        return true;
      }
      // nothing repeated for ever is nothing
      if (iteration_ == plan_->count || (inner_ && !any_)) return false;
      inner_ = order_of(plan_->from, round_within(plan_, outer_, iteration_++));
    }
  }

 private:
  PlanRef plan_;
  std::int64_t outer_, iteration_ = 0;
  bool any_ = false;
  std::unique_ptr<RowOrder> inner_;
};

std::unique_ptr<RowOrder> order_of(const PlanRef& plan, std::int64_t iteration) {
  switch (plan->kind) {
    case Kind::rows: return std::make_unique<AllRows>(plan->arrays[0].dim(0));
    case Kind::shuffle: return std::make_unique<ShuffledRows>(plan, iteration);
    case Kind::part: return std::make_unique<PartOfRows>(plan, iteration);
    case Kind::shard: return std::make_unique<ShardOfRows>(plan, iteration);
    default: return std::make_unique<RepeatedRows>(plan, iteration);
  }
}

const DatasetPlan& source_of(const PlanRef& plan) {
  return plan->from ? source_of(plan->from) : *plan;
}

// --- streams -------------------------------------------------------------------------------------

std::unique_ptr<LeafStream> stream_of(const PlanRef& plan, std::int64_t iteration);

/// Rows one by one (size 0), or in groups.
class RowStream : public LeafStream {
 public:
  RowStream(const PlanRef& rows, std::int64_t iteration, std::int64_t size, bool drop_remainder)
      : plan_(rows),
        source_(source_of(rows)),
        order_(order_of(rows, iteration)),
        size_(size),
        drop_(drop_remainder) {}
  bool next(ElementLeaves& out) override {
    chosen_.clear();
    const std::int64_t wanted = std::max<std::int64_t>(size_, 1);
    for (std::int64_t row; static_cast<std::int64_t>(chosen_.size()) < wanted && order_->next(row);)
      chosen_.push_back(row);
    if (chosen_.empty() || (drop_ && static_cast<std::int64_t>(chosen_.size()) < wanted))
      return false;
    out.clear();
    for (std::size_t k = 0; k < source_.arrays.size(); ++k) {
      const Tensor& all = source_.arrays[k];
      Shape shape = all.shape();
      if (size_ > 0) shape[0] = static_cast<std::int64_t>(chosen_.size());
      else shape.erase(shape.begin());
      const Aval aval(all.dtype(), shape);
      const std::size_t row = aval.bytes() / chosen_.size();
      BufferRef buffer = allocate(aval.bytes(), "a batch");
      for (std::size_t i = 0; i < chosen_.size() && row > 0; ++i)
        std::memcpy(static_cast<char*>(buffer->data) + i * row,
                    static_cast<const char*>(source_.values[k]->data) +
                        static_cast<std::size_t>(chosen_[i]) * row,
                    row);
      out.push_back(from_buffer(std::move(buffer), aval));
    }
    return true;
  }

 private:
  PlanRef plan_;
  const DatasetPlan& source_;
  std::unique_ptr<RowOrder> order_;
  std::int64_t size_;
  bool drop_;
  Vec<std::int64_t> chosen_;
};

class MapStream : public LeafStream {
 public:
  MapStream(const PlanRef& plan, std::int64_t iteration)
      : plan_(plan), inner_(stream_of(plan->from, iteration)) {}
  bool next(ElementLeaves& out) override {
    if (!inner_->next(given_)) return false;
    out = plan_->f(given_);
    return true;
  }

 private:
  PlanRef plan_;
  std::unique_ptr<LeafStream> inner_;
  ElementLeaves given_;
};

/// Groups of elements that are no rows: batches of batches.
class GroupStream : public LeafStream {
 public:
  GroupStream(const PlanRef& plan, std::int64_t iteration)
      : plan_(plan), inner_(stream_of(plan->from, iteration)) {}
  bool next(ElementLeaves& out) override {
    Vec<ElementLeaves> columns;
    std::int64_t n = 0;
    for (ElementLeaves one; n < plan_->count && inner_->next(one); ++n) {
      columns.resize(one.size());
      for (std::size_t i = 0; i < one.size(); ++i) {
        if (n > 0 && one[i].shape() != columns[i][0].shape()) refuse_ragged(columns[i][0], one[i]);
        columns[i].push_back(one[i]);
      }
    }
    if (n == 0 || (plan_->drop_remainder && n < plan_->count)) return false;
    out.clear();
    for (const ElementLeaves& parts : columns) out.push_back(stack(parts));
    return true;
  }

 private:
  /// A last batch that is not full, among batches that are.
  [[noreturn]] void refuse_ragged(const Tensor& first, const Tensor& other) const {
    fail(ErrorKind::shape,
         formatted("vt::Dataset: elements of different shapes cannot be put in a batch: {} and {}; "
                   "leave out the one that is not full with "
                   "{{.drop_remainder = true}}",
                   aval_of(first).str(), aval_of(other).str()),
         plan_->where);
  }

  PlanRef plan_;
  std::unique_ptr<LeafStream> inner_;
};

class PartStream : public LeafStream {
 public:
  PartStream(const PlanRef& plan, std::int64_t iteration)
      : inner_(stream_of(plan->from, iteration)), skip_(plan->skip), left_(plan->count) {}
  bool next(ElementLeaves& out) override {
    for (; skip_ > 0; --skip_)
      if (!inner_->next(out)) return false;
    if (left_ == 0) return false;
    if (left_ > 0) --left_;
    return inner_->next(out);
  }

 private:
  std::unique_ptr<LeafStream> inner_;
  std::int64_t skip_, left_;
};

class ShardStream : public LeafStream {
 public:
  ShardStream(const PlanRef& plan, std::int64_t iteration)
      : inner_(stream_of(plan->from, iteration)), count_(plan->count), index_(plan->skip) {}
  bool next(ElementLeaves& out) override {
    ElementLeaves other;
    for (std::int64_t i = 0; i < count_; ++i)
      if (!inner_->next(i == index_ ? out : other)) return false;
    return true;
  }

 private:
  std::unique_ptr<LeafStream> inner_;
  std::int64_t count_, index_;
};

class RepeatStream : public LeafStream {
 public:
  RepeatStream(const PlanRef& plan, std::int64_t iteration) : plan_(plan), outer_(iteration) {}
  bool next(ElementLeaves& out) override {
    for (;;) {
      if (inner_ && inner_->next(out)) return any_ = true;
      if (iteration_ == plan_->count || (inner_ && !any_)) return false;
      inner_ = stream_of(plan_->from, round_within(plan_, outer_, iteration_++));
    }
  }

 private:
  PlanRef plan_;
  std::unique_ptr<LeafStream> inner_;
  std::int64_t outer_, iteration_ = 0;
  bool any_ = false;
};

/// All elements in memory, in another order.
class ShuffleStream : public LeafStream {
 public:
  ShuffleStream(const PlanRef& plan, std::int64_t iteration) {
    const auto inner = stream_of(plan->from, iteration);
    for (ElementLeaves one; inner->next(one);) all_.push_back(one);
    const auto drawn =
        random::permutation(key_in(plan, iteration), static_cast<std::int64_t>(all_.size()))
            .to_vector<std::int64_t>(plan->where);
    places_.assign(drawn.data(), drawn.data() + drawn.size());
  }
  bool next(ElementLeaves& out) override {
    if (next_ == places_.size()) return false;
    out = all_[places_[next_++]];
    return true;
  }

 private:
  Vec<ElementLeaves> all_;
  Vec<std::int64_t> places_;
  std::size_t next_ = 0;
};

/// A thread that runs ahead of who asks. What it throws is thrown to them.
class PrefetchStream : public LeafStream {
 public:
  PrefetchStream(const PlanRef& plan, std::int64_t iteration)
      : ahead_(std::make_unique<Ahead>()), process_(forks_behind()) {
    ahead_->plan = plan;
    ahead_->iteration = iteration;
    try {
      ahead_->thread = std::thread([ahead = ahead_.get()] { ahead->run(); });
    } catch (const std::system_error& e) {
      fail(ErrorKind::memory,
           std::string("vt::Dataset::prefetch: the system starts no thread: ") + e.what(),
           plan->where);
    }
  }
  ~PrefetchStream() override {
    if (is_lost()) {
      static_cast<void>(ahead_.release());  // nobody would end it
      return;
    }
    {
      const std::lock_guard lock(ahead_->mutex);
      ahead_->stopped = true;
    }
    ahead_->changed.notify_all();
    ahead_->thread.join();
  }
  bool next(ElementLeaves& out) override {
    if (is_lost())
      fail(ErrorKind::value,
           "vt::Dataset::prefetch: this iteration began before the process was forked, and its "
           "thread is in the other process; begin an iteration here",
           ahead_->plan->where);
    Ahead& a = *ahead_;
    std::unique_lock lock(a.mutex);
    a.changed.wait(lock, [&] { return !a.ready.empty() || a.done; });
    if (a.ready.empty()) {
      if (a.error) std::rethrow_exception(std::exchange(a.error, nullptr));
      return false;
    }
    out = std::move(a.ready.front());
    a.ready.pop_front();
    lock.unlock();
    a.changed.notify_all();
    return true;
  }

 private:
  struct Ahead {
    PlanRef plan;
    std::int64_t iteration = 0;
    DType dtype = default_dtype();  ///< of the thread that begins the pass
    Mutex mutex;
    std::condition_variable_any changed;
    std::deque<ElementLeaves> ready;
    std::exception_ptr error;
    bool stopped = false, done = false;
    std::thread thread;

    void run() {
      try {
        const DefaultDType own(dtype);
        const auto inner = stream_of(plan->from, iteration);
        for (ElementLeaves one; inner->next(one);) {
          for (const Tensor& t : one) t.eval();  // made here, not where it is looked at
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] {
            return stopped || static_cast<std::int64_t>(ready.size()) < plan->count;
          });
          if (stopped) return;
          ready.push_back(std::move(one));
          lock.unlock();
          changed.notify_all();
        }
      } catch (...) {
        const std::lock_guard lock(mutex);
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      done = true;
      changed.notify_all();
    }
  };
  bool is_lost() const { return process_ != forks_behind(); }

  std::unique_ptr<Ahead> ahead_;
  int process_;
};

class ProgressStream : public LeafStream {
 public:
  ProgressStream(const PlanRef& plan, std::int64_t iteration)
      : plan_(plan),
        inner_(stream_of(plan->from, iteration)),
        total_(length_of(plan->from)),
        start_(Clock::now()) {}
  ~ProgressStream() override { finish(); }
  bool next(ElementLeaves& out) override {
    if (!inner_->next(out)) {
      finish();
      return false;
    }
    ++done_;
    const double now = seconds();
    if (now - shown_ >= plan_->interval) show(now);
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void show(double now) {
    shown_ = now;
    constexpr int width = 30;
    char bar[width + 1] = {};
    std::memset(bar, '.', width);
    if (total_ > 0) std::memset(bar, '#', width * std::min(done_, total_) / total_);
    const double rate = now > 0 ? static_cast<double>(done_) / now : 0;
    // Not by printf's own numbers: those follow the locale.
    const std::string line =
        total_ >= 0 ? detail::formatted("\r{} [{}] {}/{}, {:.1f}/s, {:.0f} s left  ", plan_->label,
                                        bar, done_, total_, rate,
                                        rate > 0 ? static_cast<double>(total_ - done_) / rate : 0.0)
                    : detail::formatted("\r{} {}, {:.1f}/s  ", plan_->label, done_, rate);
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
  }
  void finish() {
    if (finished_) return;
    finished_ = true;
    show(seconds());
    std::fputc('\n', stderr);
  }

  PlanRef plan_;
  std::unique_ptr<LeafStream> inner_;
  std::int64_t total_, done_ = 0;
  Clock::time_point start_;
  double shown_ = 0;
  bool finished_ = false;
};

std::unique_ptr<LeafStream> stream_of(const PlanRef& plan, std::int64_t iteration) {
  if (all_choose_rows(plan)) return std::make_unique<RowStream>(plan, iteration, 0, false);
  switch (plan->kind) {
    case Kind::map: return std::make_unique<MapStream>(plan, iteration);
    case Kind::batch:
      if (all_choose_rows(plan->from))
        return std::make_unique<RowStream>(plan->from, iteration, plan->count,
                                           plan->drop_remainder);
      return std::make_unique<GroupStream>(plan, iteration);
    case Kind::part: return std::make_unique<PartStream>(plan, iteration);
    case Kind::shard: return std::make_unique<ShardStream>(plan, iteration);
    case Kind::repeat: return std::make_unique<RepeatStream>(plan, iteration);
    case Kind::shuffle: return std::make_unique<ShuffleStream>(plan, iteration);
    case Kind::prefetch: return std::make_unique<PrefetchStream>(plan, iteration);
    default: return std::make_unique<ProgressStream>(plan, iteration);
  }
}

}  // namespace dataset_parts

std::unique_ptr<LeafStream> open_stream(const PlanRef& plan) {
  return dataset_parts::stream_of(plan, 0);
}

}  // namespace vt::detail
