// How datasets are put together: plans, and their rewriting to batches first.
#include <memory>

#include <vt/detail/message.hpp>

#include "../../trace/record/node.hpp"
#include "plan.hpp"

namespace vt::detail {

namespace dataset_parts {

std::shared_ptr<DatasetPlan> step(Kind kind, PlanRef from, std::int64_t count = 0) {
  auto plan = std::make_shared<DatasetPlan>();
  plan->kind = kind;
  plan->from = std::move(from);
  plan->count = count;
  return plan;
}

/// The step before a map makes what the map takes: `make` changes which elements there are, not
/// what they are.
template <class Make>
PlanRef before_maps(const PlanRef& plan, const Make& make) {
  if (plan->kind != Kind::map) return make(plan);
  auto moved = std::make_shared<DatasetPlan>(*plan);
  moved->from = before_maps(plan->from, make);
  return moved;
}

/// `f` compiled for the shapes it meets.
FlatFunction compiled(FlatFunction f, CallSite where) {
  auto cache = std::make_shared<JitCache>();
  return [cache, f = std::move(f), where](std::span<const Tensor> leaves) {
    std::shared_ptr<void> kept;
    return cache->call(leaves, {}, f, [] { return std::shared_ptr<void>(); }, kept, where);
  };
}
/// `f`, written for one example, of all examples of a batch.
std::vector<Tensor> for_examples(const FlatFunction& f, std::span<const Tensor> batch,
                                 CallSite where) {
  const Vec<MappedAxis> axes(batch.size(), 0);
  VmapCall call;
  call.arguments = batch;
  call.in_axes = axes;
  call.transform = "vt::Dataset::map";
  call.where = where;
  return vmap_flat(f, call);
}

[[noreturn]] void refuse(const std::string& what, CallSite where,
                         ErrorKind kind = ErrorKind::value) {
  fail(kind, "vt::Dataset: " + what, where);
}

}  // namespace dataset_parts

PlanRef rows_plan(std::span<const Tensor> arrays, CallSite where) {
  using namespace dataset_parts;
  if (arrays.empty()) refuse("there is no Tensor to take examples from", where, ErrorKind::tree);
  auto plan = step(Kind::rows, nullptr);
  for (const Tensor& t : arrays) {
    if (!t.defined()) refuse("a Tensor is empty", where);
    if (t.rank() == 0)
      refuse("a scalar " + aval_of(t).str() + " has no examples; they lie along axis 0", where,
             ErrorKind::shape);
    if (t.dim(0) != arrays[0].dim(0))
      refuse(
          formatted("the Tensors have {} and {} examples along axis 0", arrays[0].dim(0), t.dim(0)),
          where, ErrorKind::shape);
    plan->arrays.push_back(t);
    plan->values.push_back(value_of(t, where, "vt::Dataset"));
  }
  return plan;
}

PlanRef shuffled_plan(const PlanRef& plan, const Tensor& key, CallSite where) {
  using namespace dataset_parts;
  if (length_of(plan) < 0)
    refuse("what has no end cannot be shuffled; shuffle before repeat", where);
  if (!key.defined() || key.dtype() != u64 || key.rank() != 0)
    refuse("shuffle wants a key, one u64 made by vt::random::key, not " +
               (key.defined() ? aval_of(key).str() : std::string("an empty Tensor")),
           where);
  return before_maps(plan, [&](const PlanRef& from) {
    auto s = step(Kind::shuffle, from);
    s->where = where;
    s->key = key;
    return PlanRef(s);
  });
}

PlanRef taken_plan(const PlanRef& plan, std::int64_t skip, std::int64_t take, CallSite where) {
  using namespace dataset_parts;
  if (skip < 0 || take < -1)
    refuse(formatted("{} elements cannot be taken or skipped", skip < 0 ? skip : take), where);
  return before_maps(plan, [&](const PlanRef& from) {
    auto s = step(Kind::part, from, take);
    s->skip = skip;
    return PlanRef(s);
  });
}

PlanRef sharded_plan(const PlanRef& plan, std::int64_t count, std::int64_t index, CallSite where) {
  using namespace dataset_parts;
  if (count < 1) refuse(formatted("shard wants at least one part, not {}", count), where);
  if (index < 0 || index >= count)
    refuse(formatted("shard {} of {}; they are numbered from 0 to {}", index, count, count - 1),
           where);
  return before_maps(plan, [&](const PlanRef& from) {
    auto s = step(Kind::shard, from, count);
    s->skip = index;
    return PlanRef(s);
  });
}

PlanRef repeated_plan(const PlanRef& plan, std::int64_t times, CallSite where) {
  using namespace dataset_parts;
  if (times < -1) refuse(formatted("repeat {} times; −1 is without end", times), where);
  return before_maps(plan,
                     [&](const PlanRef& from) { return PlanRef(step(Kind::repeat, from, times)); });
}

PlanRef mapped_plan(const PlanRef& plan, FlatFunction f, CallSite where) {
  using namespace dataset_parts;
  auto s = step(Kind::map, plan);
  s->f = compiled(f, where);
  s->element = std::make_shared<const FlatFunction>(std::move(f));
  return s;
}

PlanRef batched_plan(const PlanRef& plan, std::int64_t size, const BatchOptions& options,
                     CallSite where) {
  using namespace dataset_parts;
  if (size < 1) refuse(formatted("a batch of {} elements", size), where);
  if (plan->kind == Kind::map) {
    // Batch, then the function for all examples of one.
    auto s = std::make_shared<DatasetPlan>(*plan);
    s->from = batched_plan(plan->from, size, options, where);
    s->vectorized = true;
    const FlatFunction f = *plan->element;
    s->element = std::make_shared<const FlatFunction>(
        [f, where](std::span<const Tensor> leaves) { return for_examples(f, leaves, where); });
    s->f = compiled(*s->element, where);
    return s;
  }
  auto s = step(Kind::batch, plan, size);
  s->drop_remainder = options.drop_remainder;
  s->where = where;
  return s;
}

PlanRef prefetched_plan(const PlanRef& plan, std::int64_t elements, CallSite where) {
  using namespace dataset_parts;
  if (elements < 1) refuse(formatted("prefetch {} elements", elements), where);
  return step(Kind::prefetch, plan, elements);
}

PlanRef progress_plan(const PlanRef& plan, const ProgressOptions& options) {
  auto s = dataset_parts::step(dataset_parts::Kind::progress, plan);
  s->label = options.label;
  s->interval = options.interval;
  return s;
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
    case Kind::shard: return n < 0 ? -1 : n / plan->count;
    case Kind::repeat:
      return n == 0 || plan->count == 0 ? 0 : n < 0 || plan->count < 0 ? -1 : n * plan->count;
    case Kind::batch:
      return n < 0                  ? -1
             : plan->drop_remainder ? n / plan->count
                                    : (n + plan->count - 1) / plan->count;
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
    case Kind::part:
      return before + (plan->count < 0 ? "skip " + std::to_string(plan->skip)
                                       : "take " + std::to_string(plan->count));
    case Kind::shard: return before + formatted("shard {} of {}", plan->skip, plan->count);
    case Kind::repeat:
      return before + "repeat" +
             (plan->count < 0 ? std::string() : " " + std::to_string(plan->count));
    case Kind::map: return before + (plan->vectorized ? "map, vectorized" : "map");
    case Kind::batch:
      return before + "batch " + std::to_string(plan->count) +
             (plan->drop_remainder ? ", drop remainder" : "");
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
      for (const Tensor& t :
           eval_shape_flat(*plan->element, element_shapes(plan->from), CallSite{}))
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
