// vt::instances: each instance in a coroutine, which waits where it looks at a value.
#include "instances.hpp"

#include <new>
#include <string>
#include <utility>

#include "instance_state.hpp"

namespace vt::detail {

namespace autobatching {

namespace taking_turns {

/// Thrown where an instance waits, so that it ends: another one has failed.
struct Abandoned {};

}  // namespace taking_turns

struct InstanceRun::Instance {
  Instance(InstanceRun& r, std::size_t number) : run(r), coroutine(body, number) {}

  InstanceRun& run;
  InstanceState state;
  std::vector<Tensor> wanted, values;
  CallSite where{};
  std::exception_ptr fault;  ///< of the batch: thrown where it waits
  bool abandoned = false;
  struct Body {
    Instance& self;
    void operator()() const {
      try {
        self.run.body_(self.coroutine.number());
      } catch (const taking_turns::Abandoned&) {
      } catch (...) {
        if (!self.run.thrown_) self.run.thrown_ = std::current_exception();
      }
    }
  } body{*this};
  Coroutine coroutine;
};

InstanceRun::InstanceRun(BatchLooks& looks, FunctionRef<void(std::size_t)> body)
    : looks_(looks), body_(body) {
  looks_.run = this;
}
InstanceRun::~InstanceRun() { looks_.run = nullptr; }

bool InstanceRun::is_running() const {
  return running_ && Coroutine::running() == &running_->coroutine;
}

void InstanceRun::go_on(Instance& instance) {
  running_ = &instance;
  instance.state.enter();
  instance.coroutine.resume();
  instance.state.leave();
  running_ = nullptr;
}

void InstanceRun::run(std::size_t count) {
  for (std::size_t k = 0; k < count && !thrown_; ++k) {
    try {
      auto instance = std::make_unique<Instance>(*this, k);
      go_on(*instance);
      if (!instance->coroutine.ended()) waiting_.push_back(std::move(instance));
    } catch (const std::bad_alloc&) {
      thrown_ = std::make_exception_ptr(
          Error(ErrorKind::memory, "vt::instances: there is no memory for the stack of instance " +
                                       std::to_string(k) + " of " + std::to_string(count)));
    }
  }
  while (!thrown_ && !waiting_.empty()) {
    compute();
    Vec<std::unique_ptr<Instance>> again;
    for (std::unique_ptr<Instance>& instance : waiting_) {
      // Those behind one that has failed are left where they are.
      if (!thrown_ && (instance->fault || !instance->values.empty())) go_on(*instance);
      if (!instance->coroutine.ended()) again.push_back(std::move(instance));
    }
    waiting_ = std::move(again);
  }
  if (!thrown_) return;
  unwind();
  std::rethrow_exception(std::exchange(thrown_, nullptr));
}

std::uint64_t& most_looks() {
  static std::uint64_t most = 1'000'000;
  return most;
}

void InstanceRun::compute() {
  if (++looks_so_far_ > most_looks()) {
    Instance& first = *waiting_.front();
    first.fault = std::make_exception_ptr(Error(
        ErrorKind::value, "vt::instances: instance " + std::to_string(first.coroutine.number()) +
                              " does not end: it waits for a value after " +
                              std::to_string(most_looks()) + " looks; does its loop end?" +
                              at(first.where)));
    return;
  }
  std::vector<Tensor> all;
  for (const std::unique_ptr<Instance>& instance : waiting_)
    all.insert(all.end(), instance->wanted.begin(), instance->wanted.end());
  std::vector<Tensor> values;
  try {
    values = looks_.compute(all, waiting_.front()->where);
  } catch (...) {
    // The first one may catch it, and the others ask again.
    waiting_.front()->fault = std::current_exception();
    return;
  }
  std::size_t next = 0;
  for (const std::unique_ptr<Instance>& instance : waiting_) {
    instance->values.assign(
        values.begin() + static_cast<std::ptrdiff_t>(next),
        values.begin() + static_cast<std::ptrdiff_t>(next + instance->wanted.size()));
    next += instance->wanted.size();
  }
}

void InstanceRun::unwind() {
  for (const std::unique_ptr<Instance>& instance : waiting_) {
    instance->abandoned = true;
    while (!instance->coroutine.ended()) go_on(*instance);
  }
  waiting_.clear();
}

std::vector<Tensor> InstanceRun::wait(std::span<const Tensor> tracers, CallSite where) {
  Instance& self = *running_;
  if (!self.abandoned) {
    self.wanted.assign(tracers.begin(), tracers.end());
    self.where = where;
    Coroutine::wait();
    self.wanted.clear();
  }
  if (self.abandoned) throw taking_turns::Abandoned{};
  if (self.fault) std::rethrow_exception(std::exchange(self.fault, nullptr));
  return std::exchange(self.values, {});
}

}  // namespace autobatching

void run_instances(std::size_t count, FunctionRef<void(std::size_t)> body) {
  using namespace autobatching;
  BatchLooks* looks = nullptr;
  for (const ScopeState& s : thread_state().scopes)
    if (s.kind == ScopeKind::batch) looks = static_cast<BatchLooks*>(s.looks);
  if (looks && !Coroutine::running()) {
    InstanceRun(*looks, body).run(count);
  } else {
    for (std::size_t k = 0; k < count; ++k) body(k);
  }
}

}  // namespace vt::detail
