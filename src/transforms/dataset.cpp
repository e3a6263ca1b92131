// How datasets make their elements: plans, their rewriting to batches first, and the streams that run them.
#include <vt/dataset.hpp>
#include <vt/small_vec.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include <vt/detail/message.hpp>
#include <vt/random.hpp>

#include "../trace/buffer.hpp"
#include "../trace/node.hpp"

namespace vt::detail {

/// Steps that only choose rows come first, then maps, which are moved behind them, and behind batches; see the functions that make plans.
struct DatasetPlan {
  enum class Kind : std::uint8_t { rows, shuffle, part, repeat, map, batch, prefetch, progress } kind;
  PlanRef from;
  std::int64_t count = 0, skip = 0;  ///< part: first, how many (−1: the rest); repeat, batch, prefetch: how many
  bool drop_remainder = false;
  bool vectorized = false;  ///< map: of every example of a batch
  ElementLeaves arrays;     ///< rows
  Vec<BufferRef> values;
  Tensor key;                                   ///< shuffle
  FlatFunction f;                               ///< map, compiled
  std::shared_ptr<const FlatFunction> element;  ///< map, as it was given, or for a batch
  std::string label;
  double interval = 0;
};

namespace dataset_parts {

using Kind = DatasetPlan::Kind;

std::shared_ptr<DatasetPlan> step(Kind kind, PlanRef from, std::int64_t count = 0) {
  auto plan = new_shared<DatasetPlan>();
  plan->kind = kind;
  plan->from = std::move(from);
  plan->count = count;
  return plan;
}
bool chooses_rows(const DatasetPlan& p) { return p.kind == Kind::rows || p.kind == Kind::shuffle || p.kind == Kind::part || p.kind == Kind::repeat; }
bool all_choose_rows(const PlanRef& p) { return chooses_rows(*p) && (!p->from || all_choose_rows(p->from)); }

/// The step before a map makes what the map takes: `make` changes which elements there are, not what they are.
template <class Make>
PlanRef before_maps(const PlanRef& plan, const Make& make) {
  if (plan->kind != Kind::map) return make(plan);
  auto moved = new_shared<DatasetPlan>(*plan);
  moved->from = before_maps(plan->from, make);
  return moved;
}

/// `f` compiled for the shapes it meets.
FlatFunction compiled(FlatFunction f, Where where) {
  auto cache = new_shared<JitCache>();
  return [cache, f = std::move(f), where](std::span<const Tensor> leaves) {
    std::shared_ptr<void> kept;
    return cache->call(leaves, {}, f, [] { return std::shared_ptr<void>(); }, kept, where);
  };
}
/// `f`, written for one example, of all examples of a batch.
std::vector<Tensor> for_examples(const FlatFunction& f, std::span<const Tensor> batch, Where where) {
  const Vec<MappedAxis> axes(batch.size(), 0);
  VmapCall call;
  call.arguments = batch;
  call.in_axes = axes;
  call.transform = "vt::Dataset::map";
  call.where = where;
  return vmap_flat(f, call);
}

// --- which rows, in which order --------------------------------------------------------------------------------------

/// A pass over row numbers. `round`: how often an enclosing repeat has begun again, which shuffles differently.
class RowOrder {
 public:
  virtual ~RowOrder() = default;
  virtual bool next(std::int64_t& row) = 0;
};
Box<RowOrder> order_of(const PlanRef& plan, std::int64_t round);

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
  ShuffledRows(const PlanRef& plan, std::int64_t round) {
    const auto inner = order_of(plan->from, round);
    Vec<std::int64_t> all;
    for (std::int64_t row; inner->next(row);) all.push_back(row);
    const Tensor key = round == 0 ? plan->key : random::fold_in(plan->key, round);
    const Tensor places = random::permutation(key, static_cast<std::int64_t>(all.size()));
    for (std::int64_t p : places.to_vector<std::int64_t>()) rows_.push_back(all[static_cast<std::size_t>(p)]);
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
  PartOfRows(const PlanRef& plan, std::int64_t round) : inner_(order_of(plan->from, round)), skip_(plan->skip), left_(plan->count) {}
  bool next(std::int64_t& row) override {
    for (; skip_ > 0; --skip_)
      if (!inner_->next(row)) return false;
    if (left_ == 0) return false;
    if (left_ > 0) --left_;
    return inner_->next(row);
  }

 private:
  Box<RowOrder> inner_;
  std::int64_t skip_, left_;
};
class RepeatedRows : public RowOrder {
 public:
  RepeatedRows(const PlanRef& plan, std::int64_t round) : plan_(plan), outer_(round) {}
  bool next(std::int64_t& row) override {
    for (;;) {
      if (inner_ && inner_->next(row)) {
        any_ = true;
        return true;
      }
      if (round_ == plan_->count || (inner_ && !any_)) return false;  // nothing repeated for ever is nothing
      inner_ = order_of(plan_->from, outer_ * std::max<std::int64_t>(plan_->count, 1) + round_++);
    }
  }

 private:
  PlanRef plan_;
  std::int64_t outer_, round_ = 0;
  bool any_ = false;
  Box<RowOrder> inner_;
};

Box<RowOrder> order_of(const PlanRef& plan, std::int64_t round) {
  switch (plan->kind) {
    case Kind::rows: return new_box<AllRows>(plan->arrays[0].dim(0));
    case Kind::shuffle: return new_box<ShuffledRows>(plan, round);
    case Kind::part: return new_box<PartOfRows>(plan, round);
    default: return new_box<RepeatedRows>(plan, round);
  }
}

const DatasetPlan& source_of(const PlanRef& plan) { return plan->from ? source_of(plan->from) : *plan; }

// --- streams ---------------------------------------------------------------------------------------------------------

/// Rows one by one (size 0), or in groups.
class RowStream : public LeafStream {
 public:
  RowStream(const PlanRef& rows, std::int64_t size, bool drop_remainder)
      : plan_(rows), source_(source_of(rows)), order_(order_of(rows, 0)), size_(size), drop_(drop_remainder) {}
  bool next(ElementLeaves& out) override {
    chosen_.clear();
    const std::int64_t wanted = std::max<std::int64_t>(size_, 1);
    for (std::int64_t row; static_cast<std::int64_t>(chosen_.size()) < wanted && order_->next(row);) chosen_.push_back(row);
    if (chosen_.empty() || (drop_ && static_cast<std::int64_t>(chosen_.size()) < wanted)) return false;
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
                    static_cast<const char*>(source_.values[k]->data) + static_cast<std::size_t>(chosen_[i]) * row, row);
      out.push_back(from_buffer(std::move(buffer), aval));
    }
    return true;
  }

 private:
  PlanRef plan_;
  const DatasetPlan& source_;
  Box<RowOrder> order_;
  std::int64_t size_;
  bool drop_;
  Vec<std::int64_t> chosen_;
};

class MapStream : public LeafStream {
 public:
  explicit MapStream(const PlanRef& plan) : plan_(plan), inner_(open_stream(plan->from)) {}
  bool next(ElementLeaves& out) override {
    if (!inner_->next(given_)) return false;
    out = plan_->f(given_);
    return true;
  }

 private:
  PlanRef plan_;
  Box<LeafStream> inner_;
  ElementLeaves given_;
};

/// Groups of elements that are no rows: batches of batches.
class GroupStream : public LeafStream {
 public:
  explicit GroupStream(const PlanRef& plan) : plan_(plan), inner_(open_stream(plan->from)) {}
  bool next(ElementLeaves& out) override {
    Vec<ElementLeaves> columns;
    std::int64_t n = 0;
    for (ElementLeaves one; n < plan_->count && inner_->next(one); ++n) {
      columns.resize(one.size());
      for (std::size_t i = 0; i < one.size(); ++i) columns[i].push_back(one[i]);
    }
    if (n == 0 || (plan_->drop_remainder && n < plan_->count)) return false;
    out.clear();
    for (const ElementLeaves& parts : columns) out.push_back(stack(parts));
    return true;
  }

 private:
  PlanRef plan_;
  Box<LeafStream> inner_;
};

class PartStream : public LeafStream {
 public:
  explicit PartStream(const PlanRef& plan) : inner_(open_stream(plan->from)), skip_(plan->skip), left_(plan->count) {}
  bool next(ElementLeaves& out) override {
    for (; skip_ > 0; --skip_)
      if (!inner_->next(out)) return false;
    if (left_ == 0) return false;
    if (left_ > 0) --left_;
    return inner_->next(out);
  }

 private:
  Box<LeafStream> inner_;
  std::int64_t skip_, left_;
};

class RepeatStream : public LeafStream {
 public:
  explicit RepeatStream(const PlanRef& plan) : plan_(plan) {}
  bool next(ElementLeaves& out) override {
    for (;;) {
      if (inner_ && inner_->next(out)) return any_ = true;
      if (round_ == plan_->count || (inner_ && !any_)) return false;
      inner_ = open_stream(plan_->from);
      ++round_;
    }
  }

 private:
  PlanRef plan_;
  Box<LeafStream> inner_;
  std::int64_t round_ = 0;
  bool any_ = false;
};

/// All elements in memory, in another order.
class ShuffleStream : public LeafStream {
 public:
  explicit ShuffleStream(const PlanRef& plan) {
    const auto inner = open_stream(plan->from);
    for (ElementLeaves one; inner->next(one);) all_.push_back(one);
    const auto drawn = random::permutation(plan->key, static_cast<std::int64_t>(all_.size())).to_vector<std::int64_t>();
    places_.assign(drawn.data(), drawn.data() + drawn.size());
  }
  bool next(ElementLeaves& out) override {
    if (next_ == places_.size()) return false;
    out = all_[static_cast<std::size_t>(places_[next_++])];
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
  explicit PrefetchStream(const PlanRef& plan) : plan_(plan), thread_([this] { run(); }) {}
  ~PrefetchStream() override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  bool next(ElementLeaves& out) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || done_; });
    if (ready_.empty()) {
      if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
      return false;
    }
    out = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return true;
  }

 private:
  void run() {
    try {
      const auto inner = open_stream(plan_->from);
      for (ElementLeaves one; inner->next(one);) {
        for (const Tensor& t : one) t.eval();  // made here, not where it is looked at
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopped_ || static_cast<std::int64_t>(ready_.size()) < plan_->count; });
        if (stopped_) return;
        ready_.push_back(std::move(one));
        lock.unlock();
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  PlanRef plan_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ElementLeaves> ready_;
  std::exception_ptr error_;
  bool stopped_ = false, done_ = false;
  std::thread thread_;
};

class ProgressStream : public LeafStream {
 public:
  explicit ProgressStream(const PlanRef& plan) : plan_(plan), inner_(open_stream(plan->from)), total_(length_of(plan->from)), start_(Clock::now()) {}
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
    if (total_ > 0) std::memset(bar, '#', static_cast<std::size_t>(width * std::min(done_, total_) / total_));
    const double rate = now > 0 ? static_cast<double>(done_) / now : 0;
    if (total_ >= 0)
      std::fprintf(stderr, "\r%s [%s] %lld/%lld, %.1f/s, %.0f s left  ", plan_->label.c_str(), bar, static_cast<long long>(done_),
                   static_cast<long long>(total_), rate, rate > 0 ? static_cast<double>(total_ - done_) / rate : 0.0);
    else std::fprintf(stderr, "\r%s %lld, %.1f/s  ", plan_->label.c_str(), static_cast<long long>(done_), rate);
    std::fflush(stderr);
  }
  void finish() {
    if (finished_) return;
    finished_ = true;
    show(seconds());
    std::fputc('\n', stderr);
  }

  PlanRef plan_;
  Box<LeafStream> inner_;
  std::int64_t total_, done_ = 0;
  Clock::time_point start_;
  double shown_ = 0;
  bool finished_ = false;
};

[[noreturn]] void refuse(const std::string& what, Where where, ErrorKind kind = ErrorKind::value) { fail(kind, "vt::Dataset: " + what, where); }

}  // namespace dataset_parts

PlanRef rows_plan(std::span<const Tensor> arrays, Where where) {
  using namespace dataset_parts;
  if (arrays.empty()) refuse("there is no Tensor to take examples from", where, ErrorKind::tree);
  auto plan = step(Kind::rows, nullptr);
  for (const Tensor& t : arrays) {
    if (!t.defined()) refuse("a Tensor is empty", where);
    if (t.rank() == 0) refuse("a scalar " + aval_of(t).str() + " has no examples; they lie along axis 0", where, ErrorKind::shape);
    if (t.dim(0) != arrays[0].dim(0))
      refuse(worded("the Tensors have {} and {} examples along axis 0", arrays[0].dim(0), t.dim(0)), where, ErrorKind::shape);
    plan->arrays.push_back(t);
    plan->values.push_back(value_of(t, where));
  }
  return plan;
}

PlanRef shuffled_plan(const PlanRef& plan, const Tensor& key, Where where) {
  using namespace dataset_parts;
  if (length_of(plan) < 0) refuse("what has no end cannot be shuffled; shuffle before repeat", where);
  if (!key.defined() || key.dtype() != u64 || key.rank() != 0)
    refuse("shuffle wants a key, one u64 made by vt::random::key, not " + (key.defined() ? aval_of(key).str() : std::string("an empty Tensor")),
           where);
  return before_maps(plan, [&](const PlanRef& from) {
    auto s = step(Kind::shuffle, from);
    s->key = key;
    return PlanRef(s);
  });
}

PlanRef taken_plan(const PlanRef& plan, std::int64_t skip, std::int64_t take, Where where) {
  using namespace dataset_parts;
  if (skip < 0 || take < -1) refuse(worded("{} elements cannot be taken or skipped", skip < 0 ? skip : take), where);
  return before_maps(plan, [&](const PlanRef& from) {
    auto s = step(Kind::part, from, take);
    s->skip = skip;
    return PlanRef(s);
  });
}

PlanRef repeated_plan(const PlanRef& plan, std::int64_t times, Where where) {
  using namespace dataset_parts;
  if (times < -1) refuse(worded("repeat {} times; −1 is without end", times), where);
  return before_maps(plan, [&](const PlanRef& from) { return PlanRef(step(Kind::repeat, from, times)); });
}

PlanRef mapped_plan(const PlanRef& plan, FlatFunction f, Where where) {
  using namespace dataset_parts;
  auto s = step(Kind::map, plan);
  s->f = compiled(f, where);
  s->element = new_shared<const FlatFunction>(std::move(f));
  return s;
}

PlanRef batched_plan(const PlanRef& plan, std::int64_t size, const BatchOptions& options, Where where) {
  using namespace dataset_parts;
  if (size < 1) refuse(worded("a batch of {} elements", size), where);
  if (plan->kind == Kind::map) {
    // Batch, then the function for all examples of one.
    auto s = new_shared<DatasetPlan>(*plan);
    s->from = batched_plan(plan->from, size, options, where);
    s->vectorized = true;
    const FlatFunction f = *plan->element;
    s->element = new_shared<const FlatFunction>([f, where](std::span<const Tensor> leaves) { return for_examples(f, leaves, where); });
    s->f = compiled(*s->element, where);
    return s;
  }
  auto s = step(Kind::batch, plan, size);
  s->drop_remainder = options.drop_remainder;
  return s;
}

PlanRef prefetched_plan(const PlanRef& plan, std::int64_t elements, Where where) {
  using namespace dataset_parts;
  if (elements < 1) refuse(worded("prefetch {} elements", elements), where);
  return step(Kind::prefetch, plan, elements);
}

PlanRef progress_plan(const PlanRef& plan, const ProgressOptions& options) {
  auto s = dataset_parts::step(dataset_parts::Kind::progress, plan);
  s->label = options.label;
  s->interval = options.interval;
  return s;
}

Box<LeafStream> open_stream(const PlanRef& plan) {
  using namespace dataset_parts;
  if (all_choose_rows(plan)) return new_box<RowStream>(plan, 0, false);
  switch (plan->kind) {
    case Kind::map: return new_box<MapStream>(plan);
    case Kind::batch:
      if (all_choose_rows(plan->from)) return new_box<RowStream>(plan->from, plan->count, plan->drop_remainder);
      return new_box<GroupStream>(plan);
    case Kind::part: return new_box<PartStream>(plan);
    case Kind::repeat: return new_box<RepeatStream>(plan);
    case Kind::shuffle: return new_box<ShuffleStream>(plan);
    case Kind::prefetch: return new_box<PrefetchStream>(plan);
    default: return new_box<ProgressStream>(plan);
  }
}

std::int64_t length_of(const PlanRef& plan) {
  using namespace dataset_parts;
  if (plan->kind == Kind::rows) return plan->arrays[0].dim(0);
  const std::int64_t n = length_of(plan->from);
  switch (plan->kind) {
    case Kind::part: {
      const std::int64_t left = n < 0 ? -1 : std::max<std::int64_t>(n - plan->skip, 0);
      return plan->count < 0 ? left : left < 0 ? plan->count : std::min(left, plan->count);
    }
    case Kind::repeat: return n == 0 || plan->count == 0 ? 0 : n < 0 || plan->count < 0 ? -1 : n * plan->count;
    case Kind::batch: return n < 0 ? -1 : plan->drop_remainder ? n / plan->count : (n + plan->count - 1) / plan->count;
    default: return n;
  }
}

std::string text_of(const PlanRef& plan) {
  using namespace dataset_parts;
  const std::string before = plan->from ? text_of(plan->from) + "\n" : std::string();
  switch (plan->kind) {
    case Kind::rows: {
      std::string text = "rows of";
      for (const Tensor& t : plan->arrays) text += " " + aval_of(t).str();
      return text;
    }
    case Kind::shuffle: return before + "shuffle";
    case Kind::part: return before + (plan->count < 0 ? "skip " + std::to_string(plan->skip) : "take " + std::to_string(plan->count));
    case Kind::repeat: return before + "repeat" + (plan->count < 0 ? std::string() : " " + std::to_string(plan->count));
    case Kind::map: return before + (plan->vectorized ? "map, vectorized" : "map");
    case Kind::batch: return before + "batch " + std::to_string(plan->count) + (plan->drop_remainder ? ", drop remainder" : "");
    case Kind::prefetch: return before + "prefetch " + std::to_string(plan->count);
    default: return before + "progress";
  }
}

ElementLeaves element_shapes(const PlanRef& plan) {
  using namespace dataset_parts;
  switch (plan->kind) {
    case Kind::rows: {
      ElementLeaves out;
      for (const Tensor& t : plan->arrays) {
        Shape shape = t.shape();
        shape.erase(shape.begin());
        out.push_back(full_tensor(Scalar(false).converted(t.dtype()), Aval(t.dtype(), shape)));
      }
      return out;
    }
    case Kind::map: {
      // A function outside every trace: only what it would give is asked for.
      ElementLeaves out;
      for (const Tensor& t : eval_shape_flat(*plan->element, element_shapes(plan->from), Where{}))
        out.push_back(full_tensor(Scalar(false).converted(t.dtype()), Aval(t.dtype(), t.shape())));
      return out;
    }
    case Kind::batch: {
      ElementLeaves out;
      for (const Tensor& t : element_shapes(plan->from)) {
        Shape shape = t.shape();
        shape.insert(shape.begin(), plan->count);
        out.push_back(full_tensor(Scalar(false).converted(t.dtype()), Aval(t.dtype(), shape)));
      }
      return out;
    }
    default: return element_shapes(plan->from);
  }
}

}  // namespace vt::detail
