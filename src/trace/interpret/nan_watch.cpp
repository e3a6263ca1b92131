// DebugNans: keeps runs whose results are not all finite, and tells where such a value comes from.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/execution.hpp>

#include "../base/locks.hpp"
#include "../ir/collectives.hpp"
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
  return "the interpreter does not make it again: a callback with effects gave it, or a collective "
         "to which other processes came, or memory that was borrowed has changed";
}

using SourceRef = std::shared_ptr<const NanSource>;

/// Where an element comes from, over all runs that are kept. Searches without the mutex: a callback
/// of the program may look at values itself.
std::string traced(NanSource source, std::int64_t element) {
  while (source.run) {
    const std::shared_ptr<KeptRun> run = source.run;
    const NanOrigin o = nan_origin(run->graph, run->inputs, source.output, element, wanted());
    SourceRef before;
    if (o.kind == NanOrigin::Kind::input) {
      const std::lock_guard lock(mutex());
      before = run->sources[o.input];
    }
    if (!before) return origin_text(o, *run);
    source = *before;
    element = o.element;
  }
  return source.origin;
}

void set_depth(KeptRun& run) {
  run.depth = 1;
  for (const SourceRef& source : run.sources) run.depth = std::max(run.depth, 1 + depth_of(source));
}

/// What is older than the runs that are kept, and what each of those read of it.
struct Oldest {
  std::shared_ptr<KeptRun> reader;
  std::size_t input;
  SourceRef source;
};
/// The runs in a row that end with this one; with the mutex.
Vec<std::shared_ptr<KeptRun>> runs_behind(const std::shared_ptr<KeptRun>& newest,
                                          Vec<Oldest>& oldest) {
  Vec<std::shared_ptr<KeptRun>> runs{newest};
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (std::size_t i = 0; i < runs[r]->sources.size(); ++i) {
      const SourceRef source = runs[r]->sources[i];
      if (depth_of(source) == 1) oldest.push_back({runs[r], i, source});
      else if (depth_of(source) > 1 &&
               std::find(runs.begin(), runs.end(), source->run) == runs.end())
        runs.push_back(source->run);
    }
  return runs;
}
/// The source as a text. What an older one brought its run is taken for its origin, without a
/// search.
SourceRef as_text(const Oldest& old) {
  NanSource text{nullptr, 0, old.source->sink, {}};
  {
    const std::lock_guard lock(mutex());
    for (const SourceRef& before : old.source->run->sources)
      if (before && text.origin.empty()) text.origin = before->origin;
  }
  if (text.origin.empty()) {
    const KeptRun& reader = *old.reader;
    const Aval& aval = reader.graph->aval(reader.graph->inputs[old.input]);
    const std::int64_t element =
        text.sink ? 0 : first_not_finite(*reader.inputs[old.input], aval, wanted());
    text.origin = traced(*old.source, std::max<std::int64_t>(element, 0));
  }
  return std::make_shared<const NanSource>(std::move(text));
}
/// Lets go of the oldest runs behind this one, if there are too many.
void shorten(const std::shared_ptr<KeptRun>& newest) {
  Vec<Oldest> oldest;
  {
    const std::lock_guard lock(mutex());
    if (newest->depth <= most_runs) return;
    (void)runs_behind(newest, oldest);
  }
  Vec<SourceRef> texts;
  for (const Oldest& old : oldest) texts.push_back(as_text(old));
  const std::lock_guard lock(mutex());
  for (std::size_t i = 0; i < oldest.size(); ++i)
    oldest[i].reader->sources[oldest[i].input] = texts[i];
  Vec<Oldest> none;
  auto runs = runs_behind(newest, none);
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a->depth < b->depth; });
  for (const auto& run : runs) set_depth(*run);
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
  {
    const std::lock_guard lock(mutex());
    set_depth(*run);
  }
  shorten(run);
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
                   is_effect ? "" : ", which decides where the program goes,", traced(*found, 0)),
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
  if (watched.sinks.empty() || communicates(*watched.graph)) return {};
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
                     line_text(sink.where), traced({run, first + s}, 0));
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
                   traced(*value.not_finite, 0)),
         where);
  const std::int64_t element = first_not_finite(host, aval, wanted());
  if (element < 0) return;
  const std::string place = element_text(aval, element);
  fail(ErrorKind::value,
       formatted("{}: {} is not finite{}: {}", function, aval.str(),
                 place.empty() ? place : " at " + place, traced(*value.not_finite, element)),
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
