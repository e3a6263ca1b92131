// DebugNans, as those see it that run Graphs: a Graph with results for what it looks at itself,
// runs that are kept because of what they gave, and the Errors. Defined by src/trace/interpret.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "../ir/graph.hpp"

namespace vt::detail {

/// Where a Graph itself looks at values: a comparison that decides where it goes, or what a result
/// of one bool is, or an effect that gets values.
struct NanSink {
  static constexpr std::size_t inside = ~std::size_t{0};
  Op op = Op::input;
  CallSite where = {};
  std::size_t input = 0;        ///< with Op::input: a bool that decides, which another run has made
  std::size_t result = inside;  ///< the result that it decides; else something inside
};
struct WatchedGraph {
  GraphRef graph;  ///< behind its results one of f32[] for each of `sinks`, of which NaN tells
  Vec<NanSink> sinks;
  Vec<NanSink> of_inputs;
};
/// The Graph with its sinks: the same one if it has none.
WatchedGraph watched(const GraphRef&);

/// Remembers a run of watched.graph at those of its results that are not finite, or follow from
/// such a comparison, unless others hold them. `name` of an input is asked for if there are any.
void keep_not_finite(const WatchedGraph& watched, std::span<const BufferRef> inputs,
                     std::span<const BufferRef> results,
                     FunctionRef<std::string(std::size_t)> name);
/// Throws: Error(value) that tells where it comes from, if something inside got what is not finite.
/// After keep_not_finite().
void refuse_inside(const WatchedGraph& watched, std::span<const BufferRef> inputs,
                   std::span<const BufferRef> results, CallSite where);
/// Of a run that ended with an Error: what the program got that is not finite, and where that came
/// from, behind "; "; nothing if there was none.
std::string told_inside(const WatchedGraph& watched, std::span<const BufferRef> inputs,
                        FunctionRef<std::string(std::size_t)> name);
/// Throws: Error(value) that tells where it comes from, if a value that some run has made is not
/// finite, or follows from a comparison with such a value. `host`: its elements on the host.
void refuse_not_finite(const Buffer& value, const Buffer& host, const Aval& aval, CallSite where,
                       const char* function);

}  // namespace vt::detail
