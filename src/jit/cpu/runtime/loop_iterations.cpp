// LoopRounds: the iterations of a loop, one after the other, on one thread. If its bodies are plain
// programs, all memory is taken before the first iteration.
#include "loop_iterations.hpp"

#include <algorithm>
#include <cstring>

namespace vt::detail {

namespace loop_memory {

constexpr const char* carry = "a loop's carry";

BufferRef copied(const void* from, std::size_t bytes) {
  BufferRef own = allocate(bytes, carry);
  if (bytes) std::memcpy(own->data, from, bytes);
  return own;
}

}  // namespace loop_memory

LoopIterations::LoopIterations(Program& body, std::size_t carries, Program* condition,
                               const Program::Packed* packed)
    : body_(body),
      condition_(condition),
      current_(carries),
      spare_(carries),
      inputs_(body.inputs(), nullptr),
      same_(body.inputs(), nullptr),
      results_(body.results(), nullptr),
      made_(body.results(), nullptr) {
  if (body.plain()) {
    body.open(frame_);
    frame_.packed = packed;
    for (std::size_t i = 0; i < carries; ++i)
      if (body.writes_result(i)) spare_[i] = allocate(body.result_bytes(i), loop_memory::carry);
  }
  if (condition && condition->plain()) {
    condition->open(asking_);
    answer_ = allocate(condition->result_bytes(0), "a loop's condition");
  }
}

LoopIterations::~LoopIterations() {
  if (frame_.runs) body_.count_runs(frame_);
  if (asking_.runs) condition_->count_runs(asking_);
}

void LoopIterations::begin(std::size_t i, BufferRef&& value) {
  if (value->capacity == 0 || value->references.load(std::memory_order_acquire) != 1)
    return begin(i, value->data);
  inputs_[i] = value->data;
  current_[i] = std::move(value);
}

void LoopIterations::begin(std::size_t i, const void* value) {
  inputs_[i] = value;
  if (std::find(body_.overwritten().begin(), body_.overwritten().end(), i) !=
      body_.overwritten().end())
    own_state(i);
}

void LoopIterations::same(std::size_t i, const void* at) { inputs_[i] = same_[i] = at; }

const BufferRef& LoopIterations::own_state(std::size_t i) {
  if (!current_[i] || current_[i]->data != inputs_[i]) {
    current_[i] = loop_memory::copied(inputs_[i], body_.input_bytes(i));
    inputs_[i] = current_[i]->data;
  }
  return current_[i];
}

const std::uint8_t* LoopIterations::ask() {
  if (!condition_->plain()) {
    answer_ = condition_->run(as_buffers())[0];
    return answer_->as<const std::uint8_t>();
  }
  void* answer = answer_->data;
  condition_->run(asking_, inputs_, {&answer, 1});
  return static_cast<const std::uint8_t*>(answer);
}

void LoopIterations::round() { body_.plain() ? plain_iteration() : iteration_of_steps(); }

void LoopIterations::plain_iteration() {
  const std::size_t carries = current_.size();
  if (!frame_.packed) {
    own_packed_ = body_.pack(same_);
    frame_.packed = &own_packed_;
  }
  for (std::size_t i = 0; i < carries; ++i)
    if (spare_[i]) results_[i] = spare_[i]->data;
  for (std::size_t i = 0; i < made_.size(); ++i) made_[i] = results_[i];
  body_.run(frame_, inputs_, made_);
  // Other results that lie elsewhere (an input handed on) are wanted where they belong.
  for (std::size_t i = carries; i < made_.size(); ++i)
    if (made_[i] != results_[i] && body_.result_bytes(i))
      std::memcpy(results_[i], made_[i], body_.result_bytes(i));
  keep();
}

// What was made becomes the state.
void LoopIterations::keep() {
  const std::size_t carries = current_.size();
  const auto lies_in = [&](std::size_t i, const BufferRef& b) { return b && made_[i] == b->data; };
  for (std::size_t i = 0; i < carries; ++i)
    if (!lies_in(i, spare_[i]) && !lies_in(i, current_[i])) return exchange();
  for (std::size_t i = 0; i < carries; ++i) {
    if (!lies_in(i, current_[i])) {
      std::swap(current_[i], spare_[i]);
      // it began in others' memory
      if (!spare_[i]) spare_[i] = allocate(body_.result_bytes(i), loop_memory::carry);
    }
    inputs_[i] = current_[i]->data;
  }
}

// Some carry's next state lies in another's memory, or is something else that was handed on: memory
// changes hands, what cannot is copied.
void LoopIterations::exchange() {
  const std::size_t carries = current_.size();
  Vec<BufferRef> free, next(carries);
  for (Vec<BufferRef>* all : {&current_, &spare_})
    for (BufferRef& b : *all)
      if (b) free.push_back(std::move(b));
  current_.assign(carries, {});
  spare_.assign(carries, {});
  // Of the free ones that with this size, and at `place` if that is given.
  const auto taken = [&](std::size_t bytes, const void* place) {
    for (BufferRef& b : free)
      if (b && b->bytes == bytes && (!place || b->data == place)) return std::move(b);
    return place ? BufferRef() : allocate(bytes, loop_memory::carry);
  };
  for (std::size_t i = 0; i < carries; ++i) next[i] = taken(body_.result_bytes(i), made_[i]);
  for (std::size_t i = 0; i < carries; ++i) {
    if (next[i]) continue;
    next[i] = taken(body_.result_bytes(i), nullptr);
    if (next[i]->bytes) std::memmove(next[i]->data, made_[i], next[i]->bytes);
  }
  for (std::size_t i = 0; i < carries; ++i) {
    if (body_.writes_result(i)) spare_[i] = taken(body_.result_bytes(i), nullptr);
    inputs_[i] = next[i]->data;
    current_[i] = std::move(next[i]);
  }
}

Vec<BufferRef> LoopIterations::as_buffers() const {
  Vec<BufferRef> values;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    values.push_back(i < current_.size() && current_[i]
                         ? current_[i]
                         : borrow_memory(inputs_[i], body_.input_bytes(i)));
  return values;
}

// Loops inside may take the carries' memory, so they get the only hold on it.
void LoopIterations::iteration_of_steps() {
  Vec<BufferRef> values = as_buffers();
  const std::size_t carries = current_.size();
  current_.assign(carries, {});
  Vec<BufferRef> next = body_.run(values, results_, values);
  for (std::size_t i = 0; i < carries; ++i) {
    // Views of memory that changes or goes with the iteration become buffers of their own.
    current_[i] = next[i]->capacity == 0 && next[i]->bytes > 0
                      ? loop_memory::copied(next[i]->data, next[i]->bytes)
                      : std::move(next[i]);
  }
  values.clear();
  next.clear();
  for (std::size_t i : body_.overwritten())
    if (current_[i]->references.load(std::memory_order_acquire) != 1)
      current_[i] = loop_memory::copied(current_[i]->data, current_[i]->bytes);
  for (std::size_t i = 0; i < carries; ++i) inputs_[i] = current_[i]->data;
}

}  // namespace vt::detail
