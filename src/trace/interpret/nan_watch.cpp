// DebugNans: keeps runs whose results are not all finite, and tells where such a value comes from.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/execution.hpp>

#include "../base/locks.hpp"
#include "../record/devices.hpp"
#include "../record/nan_watch.hpp"
#include "../record/node.hpp"
#include "../record/thread_state.hpp"
#include "../record/without_effects.hpp"
#include "nan_origin.hpp"

namespace vt::detail {

/// A run that gave something that is not finite: its Graph and what it read.
struct KeptRun {
  GraphRef graph;
  Vec<BufferRef> inputs;                          ///< on the host
  Vec<std::shared_ptr<const NanSource>> sources;  ///< of the inputs; null: no run made them so
  Vec<std::string> names;                         ///< of the inputs, for messages
  int depth = 1;                                  ///< runs in a row that are kept, with this one
};
/// What made a value.
struct NanSource {
  std::shared_ptr<KeptRun> run;  ///< null: it is not kept any more
  std::size_t output = 0;
  std::optional<NanSink> sink = std::nullopt;  ///< of a result of one: what got the value
  std::string origin = {};                     ///< of a run that is not kept: where it came from
};

namespace nan_watching {

// So many runs in a row are kept. Of an older one only the text remains.
constexpr int most_runs = 8;

/// Guards what kept runs know of those before them.
Mutex& mutex() {
  static Mutex m;
  return m;
}

NotFinite wanted() { return {thread_state().nan_watch.infinities}; }

int depth_of(const std::shared_ptr<const NanSource>& s) { return s && s->run ? s->run->depth : 0; }

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

std::string origin_text(const NanOrigin& o, const KeptRun& run) {
  switch (o.kind) {
    case NanOrigin::Kind::made: {
      std::string text =
          o.op == Op::full || o.op == Op::constant
              ? formatted("it is a constant of the program{}, {}", line_text(o.where), o.place)
              : formatted("vt::{}{} made it{}, {}", o.call, line_text(o.where),
                          derivative_text(o.where), o.place);
      for (const std::string& place : o.inside) text += ", in " + place;
      return text;
    }
    case NanOrigin::Kind::input: {
      const std::string element =
          element_text(run.graph->aval(run.graph->inputs[o.input]), o.element);
      return run.names[o.input] + " brought it" + (element.empty() ? "" : ", at " + element);
    }
    case NanOrigin::Kind::lost: break;
  }
  return "the interpreter does not make it again: a callback with effects gave it, or memory that "
         "was borrowed has changed";
}

/// Where an element comes from, over all runs that are kept.
std::string traced(const NanSource& source, std::int64_t element) {
  const NanSource* at = &source;
  while (at->run) {
    const KeptRun& run = *at->run;
    const NanOrigin o = nan_origin(run.graph, run.inputs, at->output, element, wanted());
    const NanSource* const before =
        o.kind == NanOrigin::Kind::input ? run.sources[o.input].get() : nullptr;
    if (!before) return origin_text(o, run);
    at = before;
    element = o.element;
  }
  return at->origin;
}
std::string traced_locked(const NanSource& source, std::int64_t element) {
  const std::lock_guard lock(mutex());
  return traced(source, element);
}

/// The source of input `i` of a run as a text. Its own run is the oldest of those in a row: what an
/// older one brought there is taken for the origin of this, without a search.
std::shared_ptr<const NanSource> as_text(const KeptRun& run, std::size_t i) {
  const NanSource& source = *run.sources[i];
  NanSource text{nullptr, 0, source.sink, {}};
  for (const auto& before : source.run->sources)
    if (before && text.origin.empty()) text.origin = before->origin;
  if (text.origin.empty()) {
    const Aval& aval = run.graph->aval(run.graph->inputs[i]);
    const std::int64_t element = source.sink ? 0 : first_not_finite(*run.inputs[i], aval, wanted());
    text.origin = traced(source, std::max<std::int64_t>(element, 0));
  }
  return std::make_shared<const NanSource>(std::move(text));
}
/// Lets go of the oldest runs behind this one.
void shorten(KeptRun& newest) {
  Vec<KeptRun*> runs{&newest};
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (std::size_t i = 0; i < runs[r]->sources.size(); ++i) {
      auto& source = runs[r]->sources[i];
      if (depth_of(source) == 1) source = as_text(*runs[r], i);
      else if (depth_of(source) > 1 &&
               std::find(runs.begin(), runs.end(), source->run.get()) == runs.end())
        runs.push_back(source->run.get());
    }
  for (KeptRun* run : runs) --run->depth;
}

std::shared_ptr<KeptRun> kept_run(const WatchedGraph& watched, std::span<const BufferRef> inputs,
                                  FunctionRef<std::string(std::size_t)> name) {
  auto run = std::make_shared<KeptRun>();
  run->graph = watched.graph;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    run->inputs.push_back(on_host(inputs[k]));
    run->sources.push_back(inputs[k]->not_finite);
    run->names.push_back(name(k));
  }
  const std::lock_guard lock(mutex());
  for (const auto& source : run->sources) run->depth = std::max(run->depth, 1 + depth_of(source));
  if (run->depth > most_runs) shorten(*run);
  return run;
}

}  // namespace nan_watching

void keep_not_finite(const WatchedGraph& watched, std::span<const BufferRef> inputs,
                     std::span<const BufferRef> results,
                     FunctionRef<std::string(std::size_t)> name) {
  using namespace nan_watching;
  const GraphBody& body = *watched.graph;
  std::shared_ptr<KeptRun> run;
  for (std::size_t i = 0; i < results.size(); ++i) {
    Buffer& value = *results[i];
    const Aval& aval = body.aval(body.outputs[i]);
    if (is_handed_on(value, inputs, body)) continue;
    value.not_finite.reset();  // of what was there before
    if (!is_inexact(aval.dtype)) continue;
    const BufferRef host = on_host(results[i]);
    if (first_not_finite(*host, aval, wanted()) < 0) continue;
    if (!run) run = kept_run(watched, inputs, name);
    value.not_finite = std::make_shared<const NanSource>(NanSource{run, i});
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
                   traced_locked(*found, 0)),
         sink.where.file ? sink.where : where);
  };
  const std::size_t first = results.size() - watched.sinks.size();
  for (std::size_t s = 0; s < watched.sinks.size(); ++s)
    if (watched.sinks[s].result == NanSink::inside) refuse(results[first + s]->not_finite);
  for (const NanSink& s : watched.of_inputs)
    if (s.result == NanSink::inside) refuse(inputs[s.input]->not_finite);
}

std::string told_inside(const WatchedGraph& watched, std::span<const BufferRef> inputs,
                        FunctionRef<std::string(std::size_t)> name) {
  using namespace nan_watching;
  if (watched.sinks.empty()) return {};
  const auto run = kept_run(watched, inputs, name);
  Vec<BufferRef> results;
  try {
    results = interpret(*without_effects(watched.graph), run->inputs);
  } catch (const Error&) {
    return {};
  }
  const std::size_t first = results.size() - watched.sinks.size();
  for (std::size_t s = 0; s < watched.sinks.size(); ++s) {
    const NanSink& sink = watched.sinks[s];
    const Aval& aval = watched.graph->aval(watched.graph->outputs[first + s]);
    if (sink.result != NanSink::inside || first_not_finite(*results[first + s], aval, wanted()) < 0)
      continue;
    return formatted("; vt::{}{} got a value that is not finite: {}", name_of(sink.op),
                     line_text(sink.where), traced_locked({run, first + s}, 0));
  }
  return {};
}

void refuse_not_finite(const Buffer& value, const Buffer& host, const Aval& aval, CallSite where,
                       const char* function) {
  using namespace nan_watching;
  if (!value.not_finite) return;
  if (const auto& sink = value.not_finite->sink)
    fail(ErrorKind::value,
         formatted("{}: {} follows from vt::{}{}, which got a value that is not finite: {}",
                   function, aval.str(), name_of(sink->op), line_text(sink->where),
                   traced_locked(*value.not_finite, 0)),
         where);
  const std::int64_t element = first_not_finite(host, aval, wanted());
  if (element < 0) return;
  const std::string place = element_text(aval, element);
  fail(ErrorKind::value,
       formatted("{}: {} is not finite{}: {}", function, aval.str(),
                 place.empty() ? place : " at " + place, traced_locked(*value.not_finite, element)),
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
