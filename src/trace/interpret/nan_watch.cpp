// DebugNans: keeps runs whose results are not all finite, and tells where such a value comes from.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/execution.hpp>

#include "../record/devices.hpp"
#include "../record/nan_watch.hpp"
#include "../record/thread_state.hpp"
#include "nan_origin.hpp"

namespace vt::detail {

/// A run that gave something that is not finite: its Graph and what it read.
struct KeptRun {
  std::shared_ptr<const GraphBody> graph;
  Vec<BufferRef> inputs;
  Vec<std::shared_ptr<const NanSource>> sources;  ///< of the inputs; null: nothing is kept
  Vec<std::string> names;                         ///< of the inputs, for messages
};
/// The run that made a value.
struct NanSource {
  std::shared_ptr<const KeptRun> run;
  std::size_t output = 0;
  std::optional<std::int64_t> element = std::nullopt;  ///< if only one is known
  int depth = 1;                                       ///< runs before it that are kept as well
  std::optional<NanSink> sink = std::nullopt;          ///< of a result of one: what got the value
};

namespace nan_watching {

// So many runs are kept behind each other; then the one where it began is looked for at once.
constexpr int most_runs = 8;

NotFinite wanted() { return {thread_state().nan_watch.infinities}; }

int depth_of(const Buffer& b) { return b.not_finite ? b.not_finite->depth : 0; }

/// Where an element comes from, over all runs that are kept: the source of its origin.
struct Traced {
  NanOrigin origin;
  std::shared_ptr<const KeptRun> run;
};
Traced traced(const NanSource& source, std::int64_t element) {
  const NanSource* at = &source;
  for (;;) {
    NanOrigin o = nan_origin(at->run->graph, at->run->inputs, at->output,
                             at->element.value_or(element), wanted());
    if (o.kind != NanOrigin::Kind::input) return {std::move(o), at->run};
    const NanSource* before = at->run->sources[o.input].get();
    if (!before) return {std::move(o), at->run};
    at = before;
    element = o.element;
  }
}

/// Is this result an input or a constant of the Graph, which the run has not made?
bool is_handed_on(const Buffer& value, std::span<const BufferRef> inputs, const GraphBody& body) {
  const auto is_it = [&](const BufferRef& b) { return b.get() == &value; };
  if (std::any_of(inputs.begin(), inputs.end(), is_it)) return true;
  return std::any_of(body.equations.begin(), body.equations.end(), [&](const Equation& e) {
    return e.op == Op::constant && is_it(e.as<ConstantParams>().buffer);
  });
}

std::string line_text(CallSite where) {
  const std::string line = at(where);
  return line.empty() ? line : line.substr(1);
}

std::string derivative_text(CallSite where) {
  if (where.derivatives == 0) return "";
  const char* which = where.derivatives == 1   ? "the derivative"
                      : where.derivatives == 2 ? "the second derivative"
                                               : "a higher derivative";
  return formatted(", in {} of vt::{}", which, name_of(static_cast<Op>(where.differentiated)));
}

std::string origin_text(const Traced& t) {
  const NanOrigin& o = t.origin;
  switch (o.kind) {
    case NanOrigin::Kind::made: {
      std::string text = formatted("vt::{}{} made it{}, {}", o.call, line_text(o.where),
                                   derivative_text(o.where), o.place);
      for (const std::string& place : o.inside) text += ", in " + place;
      return text;
    }
    case NanOrigin::Kind::input: {
      const std::string element =
          element_text(t.run->graph->aval(t.run->graph->inputs[o.input]), o.element);
      return t.run->names[o.input] + " brought it" + (element.empty() ? "" : ", at " + element);
    }
    case NanOrigin::Kind::lost: break;
  }
  return "it is not made again on the interpreter, or has effects that must not happen twice";
}

}  // namespace nan_watching

void keep_not_finite(const WatchedGraph& watched, std::span<const BufferRef> inputs,
                     std::span<const BufferRef> results,
                     FunctionRef<std::string(std::size_t)> name) {
  using namespace nan_watching;
  const GraphBody& body = *watched.graph;
  std::shared_ptr<KeptRun> run;
  int depth = 1;
  for (std::size_t i = 0; i < results.size(); ++i) {
    Buffer& value = *results[i];
    const Aval& aval = body.aval(body.outputs[i]);
    if (is_handed_on(value, inputs, body)) continue;
    value.not_finite.reset();  // of what was there before
    if (!is_inexact(aval.dtype)) continue;
    const BufferRef host = on_host(results[i]);
    const std::int64_t element = first_not_finite(*host, aval, wanted());
    if (element < 0) continue;
    if (!run) {
      run = std::make_shared<KeptRun>();
      run->graph = watched.graph;
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        run->inputs.push_back(on_host(inputs[k]));
        run->sources.push_back(inputs[k]->not_finite);
        run->names.push_back(name(k));
        depth = std::max(depth, 1 + depth_of(*inputs[k]));
      }
    }
    NanSource source{run, i, std::nullopt, depth};
    if (depth > most_runs) {
      const NanOrigin o = nan_origin(run->graph, run->inputs, i, element, wanted());
      if (o.kind == NanOrigin::Kind::input && run->sources[o.input]) {
        source = *run->sources[o.input];
        source.element = source.element.value_or(o.element);
      } else {
        source.element = element;
        source.depth = 1;
      }
    }
    value.not_finite = std::make_shared<const NanSource>(std::move(source));
  }
  // What a result of one bool is remembers the value that was compared.
  const std::size_t first = results.size() - watched.sinks.size();
  for (std::size_t s = 0; s < watched.sinks.size(); ++s) {
    auto& found = results[first + s]->not_finite;
    if (!found) continue;
    NanSource source = *found;
    source.sink = watched.sinks[s];
    found = std::make_shared<const NanSource>(std::move(source));
    if (watched.sinks[s].result != NanSink::inside)
      results[watched.sinks[s].result]->not_finite = found;
  }
  for (const NanSink& s : watched.of_inputs)
    if (s.result != NanSink::inside && inputs[s.input]->not_finite)
      results[s.result]->not_finite = inputs[s.input]->not_finite;
}

void refuse_inside(const WatchedGraph& watched, std::span<const BufferRef> inputs,
                   std::span<const BufferRef> results, CallSite where) {
  using namespace nan_watching;
  const auto refuse = [&](const std::shared_ptr<const NanSource>& found) {
    if (!found || !found->sink) return;
    const NanSink& sink = *found->sink;
    const bool is_effect = family_of(sink.op) == Family::effect;
    fail(ErrorKind::value,
         formatted("vt::{}{} got a value that is not finite: {}", name_of(sink.op),
                   is_effect ? "" : ", which decides where the program goes,",
                   origin_text(traced(*found, 0))),
         sink.where.file ? sink.where : where);
  };
  const std::size_t first = results.size() - watched.sinks.size();
  for (std::size_t s = 0; s < watched.sinks.size(); ++s)
    if (watched.sinks[s].result == NanSink::inside) refuse(results[first + s]->not_finite);
  for (const NanSink& s : watched.of_inputs)
    if (s.result == NanSink::inside) refuse(inputs[s.input]->not_finite);
}

void refuse_not_finite(const Buffer& value, const Buffer& host, const Aval& aval, CallSite where,
                       const char* function) {
  using namespace nan_watching;
  if (!value.not_finite) return;
  if (const auto& sink = value.not_finite->sink)
    fail(ErrorKind::value,
         formatted("{}: {} follows from vt::{}{}, which got a value that is not finite: {}",
                   function, aval.str(), name_of(sink->op), line_text(sink->where),
                   origin_text(traced(*value.not_finite, 0))),
         where);
  const std::int64_t element = first_not_finite(host, aval, wanted());
  if (element < 0) return;
  const std::string place = element_text(aval, element);
  fail(ErrorKind::value,
       formatted("{}: {} is not finite{}: {}", function, aval.str(),
                 place.empty() ? place : " at " + place,
                 origin_text(traced(*value.not_finite, element))),
       where);
}

}  // namespace vt::detail

namespace vt {

DebugNans::DebugNans(DebugNansOptions options)
    : was_on_(detail::thread_state().nan_watch.on),
      had_infinities_(detail::thread_state().nan_watch.infinities) {
  detail::thread_state().nan_watch = {true, options.infinities};
}
DebugNans::~DebugNans() { detail::thread_state().nan_watch = {was_on_, had_infinities_}; }

}  // namespace vt
