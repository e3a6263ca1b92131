// Interpreter rules of debug_print, check and callback, which compiled programs run as steps of
// their own; and where lines go.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/effects.hpp>

#include "../base/locks.hpp"
#include "../ir/effects.hpp"
#include "../record/thread_state.hpp"
#include "interpreter.hpp"

namespace vt::detail::interp_effect {

struct Sink {
  Mutex mutex;
  std::shared_ptr<const PrintSink> function;
};
inline Sink& sink() {
  // never destroyed: something may be printed while the process ends
  static Sink* const made = new Sink;
  return *made;
}

inline void print_line(std::string line) {
  std::shared_ptr<const PrintSink> to;
  {
    std::lock_guard lock(sink().mutex);
    to = sink().function;
  }
  if (to) return (*to)(line);  // without the lock: it may print
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

/// The operands of an effect as one lane sees them.
class LaneView {
 public:
  LaneView(const Frame& frame, const EffectLanes& lanes, std::int64_t lane)
      : frame_(frame), lanes_(lanes) {
    append_index(index_, {lanes.extents.data(), lanes.extents.size()}, lane);
  }
  static std::int64_t count(const EffectLanes& lanes) {
    std::int64_t n = 1;
    for (std::int64_t extent : lanes.extents) n *= extent;
    return n;
  }
  TextValue operator[](std::size_t i) const {
    Aval own = frame_.in(i);
    std::int64_t row = 0;
    for (std::size_t k = 0; k < index_.size(); ++k) {
      if (!(lanes_.carried[i] >> k & 1u)) continue;
      row = row * lanes_.extents[k] + index_[k];
      own.shape.erase(own.shape.begin());
    }
    const std::size_t bytes = own.bytes();
    return {std::move(own), frame_.bytes(i) + static_cast<std::size_t>(row) * bytes};
  }
  /// From operand `first` on.
  Vec<TextValue> all(std::size_t first) const {
    Vec<TextValue> values;
    for (std::size_t i = first; i < frame_.inputs.size(); ++i) values.push_back((*this)[i]);
    return values;
  }
  /// "in lane 3", behind the lanes that this thread is in already; empty where there are none.
  std::string place() const {
    Vec<std::int64_t> all = thread_state().lane;
    all.append(index_.begin(), index_.end());
    if (all.empty()) return {};
    std::string text = "; in lane ";
    if (all.size() == 1) return text + std::to_string(all[0]);
    for (std::size_t k = 0; k < all.size(); ++k) text += (k ? ", " : "(") + std::to_string(all[k]);
    return text + ")";
  }

 private:
  const Frame& frame_;
  const EffectLanes& lanes_;
  Vec<std::int64_t> index_;
};

/// Throws an exception that is an `E`, and nothing derived from it, once more with more to say.
template <class E>
void throw_longer(const std::exception& thrown, const std::string& more) {
  if (typeid(thrown) != typeid(E)) return;
  if constexpr (std::is_same_v<E, Error>)
    throw Error(static_cast<const Error&>(thrown).kind(), thrown.what() + more);
  else throw E(thrown.what() + more);
}
/// In a handler: throws on what a function of the user's threw. vt's exception and those of
/// <stdexcept> say more; types of the user's own stay as they are.
[[noreturn]] void throw_with_place(const std::string& more) {
  try {
    throw;
  } catch (const std::exception& e) {
    throw_longer<Error>(e, more);
    throw_longer<std::runtime_error>(e, more);
    throw_longer<std::range_error>(e, more);
    throw_longer<std::overflow_error>(e, more);
    throw_longer<std::underflow_error>(e, more);
    throw_longer<std::logic_error>(e, more);
    throw_longer<std::domain_error>(e, more);
    throw_longer<std::invalid_argument>(e, more);
    throw_longer<std::length_error>(e, more);
    throw_longer<std::out_of_range>(e, more);
    throw;
  }
}

void debug_print(Frame& frame) {
  const auto& p = frame.params<PrintParams>();
  const std::int64_t lanes = LaneView::count(p.lanes);
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const LaneView view(frame, p.lanes, lane);
    std::string line = filled_in(p.text, view.all(0));
    try {
      print_line(std::move(line));
    } catch (...) {
      throw_with_place("; in the sink of vt::debug_print" + view.place() +
                       at(frame.equation.where));
    }
  }
}

void check(Frame& frame) {
  const auto& p = frame.params<CheckParams>();
  const auto* all = frame.read<std::uint8_t>(0);
  // Mostly everything holds.
  if (std::find(all, all + frame.in(0).elements(), 0) == all + frame.in(0).elements()) return;
  const std::int64_t lanes = LaneView::count(p.lanes);
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const LaneView view(frame, p.lanes, lane);
    const TextValue holds = view[0];
    const auto* own = static_cast<const std::uint8_t*>(holds.data);
    if (std::find(own, own + holds.aval.elements(), 0) == own + holds.aval.elements()) continue;
    fail(p.kind, p.function + ": " + filled_in(p.text, view.all(1)) + view.place(), p.line);
  }
}

/// While it lives, what this thread does happens outside of the transforms that are under way: a
/// value may be asked for inside one, but the host's functions are no part of it.
class Outside {
 public:
  Outside() : inside_(std::exchange(thread_state(), ThreadState{})) {}
  ~Outside() { thread_state() = std::move(inside_); }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  ThreadState inside_;
};

inline void call_host(Frame& frame, const CallbackParams& p, std::span<const Tensor> arguments,
                      std::int64_t lane, std::int64_t lanes, const LaneView& view) {
  const auto line = frame.equation.where;
  const auto place = [&] { return view.place(); };
  std::vector<Tensor> results;
  Vec<BufferRef> values;
  try {
    const Outside outside;
    results = p.function->run(arguments);
    evaluate_leaves(results, line);
  } catch (...) {
    throw_with_place("; in " + p.function->name + place() + at(line));
  }
  {
    const Outside outside;
    if (results.size() != p.results.size())
      fail(ErrorKind::tree,
           formatted("{}: the function gave {} Tensors, not {}{}", p.function->name, results.size(),
                     p.results.size(), place()),
           line);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const Aval& wanted = p.takes_lanes ? frame.out(k) : p.results[k];
      if (!results[k].defined())
        fail(ErrorKind::tree,
             formatted("{}: the function gave an empty Tensor as result {}{}", p.function->name, k,
                       place()),
             line);
      const Aval got = aval_of(results[k]);
      if (got.shape != wanted.shape || (got.dtype != wanted.dtype && !got.weak))
        fail(got.shape != wanted.shape ? ErrorKind::shape : ErrorKind::dtype,
             formatted("{}: the function gave {} as result {}, which must be {}{}",
                       p.function->name, got.str(), k, wanted.str(), place()),
             line);
      values.push_back(value_of(
          results[k].dtype() == wanted.dtype ? results[k] : results[k].astype(wanted.dtype), line));
    }
  }
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::size_t bytes = frame.out(k).bytes() / static_cast<std::size_t>(lanes);
    if (bytes)
      std::memcpy(frame.outputs[k]->as<std::byte>() + static_cast<std::size_t>(lane) * bytes,
                  values[k]->data, bytes);
  }
}

void callback(Frame& frame) {
  const auto& p = frame.params<CallbackParams>();
  for (std::size_t k = 0; k < frame.outputs.size(); ++k) frame.make_bytes(k);
  const std::int64_t lanes = p.takes_lanes ? 1 : LaneView::count(p.lanes);
  EffectLanes own = p.lanes;
  if (p.takes_lanes) own.extents.clear();
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const LaneView view(frame, own, lane);
    std::vector<Tensor> arguments;
    for (std::size_t i = 0; i < frame.inputs.size(); ++i) {
      // The function may keep them.
      TextValue v = view[i];
      BufferRef copy = frame.scratch(v.aval.bytes());
      if (copy->bytes) std::memcpy(copy->data, v.data, copy->bytes);
      arguments.push_back(from_buffer(std::move(copy), Aval(v.aval.dtype, v.aval.shape)));
    }
    call_host(frame, p, arguments, lane, lanes, view);
  }
}

}  // namespace vt::detail::interp_effect

namespace vt {

void set_print_sink(PrintSink function) {
  auto& sink = detail::interp_effect::sink();
  std::lock_guard lock(sink.mutex);
  sink.function = function ? std::make_shared<const PrintSink>(std::move(function)) : nullptr;
}

}  // namespace vt
