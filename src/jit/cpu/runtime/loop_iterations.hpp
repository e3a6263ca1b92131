// LoopIterations: the iterations of a loop, one after the other, on one thread. If its bodies are
// plain programs, all memory is taken before the first iteration.
#pragma once

#include <vt/detail/small_vec.hpp>

#include "program.hpp"

namespace vt::detail {

class LoopIterations {
 public:
  /// `condition`: null where it is never asked. `packed`: what the body's pack() makes of the
  /// inputs that stay the same, if the caller has it.
  LoopIterations(Program& body, std::size_t carries, Program* condition = nullptr,
                 const Program::Packed* packed = nullptr);
  ~LoopIterations();
  LoopIterations(const LoopIterations&) = delete;
  LoopIterations& operator=(const LoopIterations&) = delete;

  /// What carry i begins with. Memory that nobody else holds becomes the loop's, other is copied
  /// only if the body writes over it.
  void begin(std::size_t i, BufferRef&& value);
  void begin(std::size_t i, const void* value);
  /// What else the bodies read, in all iterations the same.
  void same(std::size_t i, const void* at);
  /// What they read in the next iteration, and where the results beside the carries go then.
  void input(std::size_t i, const void* at) { inputs_[i] = at; }
  void result(std::size_t i, void* at) { results_[i] = at; }

  /// What the condition says of the state.
  const std::uint8_t* ask();
  void round();

  const void* state(std::size_t i) const { return inputs_[i]; }
  /// The state's own memory: to write to it, and to keep it.
  const BufferRef& own_state(std::size_t i);

 private:
  void plain_iteration();
  void iteration_of_steps();
  void keep();
  void exchange();
  Vec<BufferRef> as_buffers() const;

  Program& body_;
  Program* const condition_;
  Program::Frame frame_, asking_;
  Program::Packed own_packed_;
  /// per carry: the memory of its state, and where the next one goes if it is not written over that
  Vec<BufferRef> current_, spare_;
  BufferRef answer_;
  Vec<const void*> inputs_, same_;
  Vec<void*> results_, made_;
};

}  // namespace vt::detail
