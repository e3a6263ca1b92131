// Recorder: what collectives a rank has been at, and when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <vt/detail/small_vec.hpp>
#include <vt/error.hpp>

#include "world.hpp"

namespace vt::detail {

/// What ranks do at a place of a program.
struct ExchangeSite {
  ExchangeKind kind;
  ExchangePart part;
  int first, stride, size;  ///< of the group
  std::size_t bytes;        ///< that a rank gives
  std::size_t elements;     ///< all_reduce: that are combined
  std::size_t width;        ///< … of so many bytes each
  std::string text;         ///< "vt::psum over \"data\" of f64[3]"
  CallSite where;
};

/// One collective, or one half of it.
struct ExchangeRecord {
  double begin, end;
  std::int64_t number;        ///< in its group
  std::int32_t site;          ///< in Recorder::sites
  std::int32_t from = -1;     ///< permute: the rank whose values come; −1: none
  std::int32_t partner = -1;  ///< finish: the record of what it waits for; −1: unknown
  const void* got;
};

/// A World that has one writes each collective down in it.
class Recorder {
 public:
  Vec<ExchangeSite> sites;
  Vec<ExchangeRecord> records;  ///< in the order in which they ended

  /// What World knows of a collective.
  struct Facts {
    ExchangeKind kind;
    ExchangePart part;
    const RankGroup& group;
    std::size_t bytes, elements, width;
    std::span<const std::int64_t> sources;
    const void* got;
    std::int64_t number;
  };
  void note(const Facts&, const CollectiveSite&, double begin, double end);
  /// finish of what ended as it began.
  void note_finished(const void* got, const CollectiveSite&, double at);

 private:
  std::int32_t site_of(const ExchangeSite& like, const CollectiveSite&);
  std::int32_t begun(const void* got) const;
  std::size_t last_ = 0;  ///< of the sites
};

}  // namespace vt::detail
