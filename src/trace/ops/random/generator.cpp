// vt::Generator: its state, a variable with a key and a count, and the keys that lanes continue
// with.
#include <memory>

#include <vt/generator.hpp>

#include "../../record/state.hpp"
#include "random_draw.hpp"

namespace vt::detail {

namespace generators {

Tensor number(std::uint64_t value, CallSite where) {
  return from_host(&value, u64, Shape{}, true, where);
}
Tensor fresh(std::uint64_t key, std::uint64_t count, CallSite where) {
  const std::uint64_t state[] = {key, count};
  return from_host(state, u64, Shape{2}, true, where);
}
}  // namespace generators

Tensor next_key(const VariableRef& stream, CallSite where) {
  using namespace generators;
  const UserLine line(where);
  if (current_level() == 0) {
    const Turns turn({stream.get()});  // two threads get two keys
    std::lock_guard lock(stream->mutex);
    const std::span<const std::uint64_t> old = stream->value.data<std::uint64_t>();
    const std::uint64_t key = old[0], count = old[1];
    stream->value = fresh(key, count + 1, where);
    return randoms::hashed(number(key, where), number(count, where), where);
  }
  const Tensor state = read_state(stream, where);
  const Tensor step = full_tensor(Scalar(std::uint64_t{1}), Aval(u64, Shape{}));
  const Tensor key = state[0], count = state[1];
  update_state(
      {stream, Update::assign, stack({key, emit(Op::add, {}, {count, step}, where)}), where});
  return randoms::hashed(key, count, where);
}

Tensor lane_streams(const VariableRef& stream, std::int64_t lanes, CallSite where) {
  const Tensor key = next_key(stream, where);
  const Tensor keys = randoms::hashed(broadcast(key, Shape{lanes}, where),
                                      counted(u64, Shape{lanes}, 0, where), where);
  return stack({keys, full_tensor(Scalar(std::uint64_t{0}), Aval(u64, Shape{lanes}))}, 1);
}

}  // namespace vt::detail

namespace vt {

Generator::Generator(std::uint64_t seed, CallSite where)
    : state_(std::make_shared<detail::VariableState>()) {
  state_->name = "a generator";
  state_->stream = true;
  state_->aval = detail::Aval(u64, Shape{2});
  state_->value = detail::generators::fresh(seed, 0, detail::user_line(where));
}
Generator::Generator(const Tensor& key, CallSite where) : Generator(std::uint64_t{0}, where) {
  where = detail::user_line(where);
  detail::need("Generator", key, where);
  if (key.dtype() != u64 || key.rank() != 0)
    detail::refuse(ErrorKind::value, "Generator",
                   "a key is one u64, made by vt::random::key or split", key, where);
  state_->value = detail::generators::fresh(key.item<std::uint64_t>(where), 0, where);
}

Tensor Generator::next(CallSite where) const {
  return detail::next_key(state_, detail::user_line(where));
}
void Generator::seed(Param<std::uint64_t> seed, CallSite where) const {
  set_state({detail::generators::fresh(seed, 0, where), where.file, where.line});
}
Tensor Generator::state(CallSite where) const {
  return detail::read_state(state_, detail::user_line(where));
}
void Generator::set_state(Operand state) const {
  const CallSite where = detail::user_line(state.where);
  detail::need("Generator::set_state", state.tensor, where);
  if (state.tensor.dtype() != u64 || state.tensor.shape() != Shape{2})
    detail::refuse(ErrorKind::value, "Generator::set_state",
                   "a state is u64[2], as Generator::state gives it", state.tensor, where);
  detail::update_state({state_, detail::Update::assign, state.tensor, where});
}

}  // namespace vt
