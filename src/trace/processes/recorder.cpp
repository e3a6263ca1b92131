// Recorder: what collectives a rank has been at, and when.
#include "recorder.hpp"

namespace vt::detail {

std::int32_t Recorder::site_of(const ExchangeSite& like, const CollectiveSite& site) {
  const auto is_it = [&](const ExchangeSite& s) {
    return s.kind == like.kind && s.part == like.part && s.first == like.first &&
           s.stride == like.stride && s.size == like.size && s.bytes == like.bytes &&
           s.width == like.width && s.where.file == site.where.file &&
           s.where.line == site.where.line;
  };
  // A program goes through its places in turn.
  for (std::size_t k = 0; k < sites.size(); ++k) {
    if (++last_ >= sites.size()) last_ = 0;
    if (is_it(sites[last_])) return static_cast<std::int32_t>(last_);
  }
  sites.push_back(like);
  sites.back().text = site.text();
  sites.back().where = site.where;
  last_ = sites.size() - 1;
  return static_cast<std::int32_t>(last_);
}

std::int32_t Recorder::begun(const void* got) const {
  for (std::size_t k = records.size(); k-- > 0;) {
    const ExchangeRecord& r = records[k];
    if (r.got == got && sites[static_cast<std::size_t>(r.site)].part == ExchangePart::begin)
      return static_cast<std::int32_t>(k);
  }
  return -1;
}

void Recorder::note(const Facts& facts, const CollectiveSite& site, double begin, double end) {
  const RankGroup& g = facts.group;
  ExchangeRecord r = {begin, end, facts.number, 0, -1, -1, facts.got};
  ExchangeSite like = {facts.kind,  facts.part,     g.first,     g.stride, g.size,
                       facts.bytes, facts.elements, facts.width, {},       {}};
  if (!facts.sources.empty()) {
    const std::int64_t source = facts.sources[static_cast<std::size_t>(g.own)];
    if (source >= 0 && source != g.own) r.from = g.rank(static_cast<int>(source));
  }
  if (facts.part == ExchangePart::finish && (r.partner = begun(facts.got)) >= 0) {
    const ExchangeRecord& other = records[static_cast<std::size_t>(r.partner)];
    r.from = other.from;
    like.bytes = sites[static_cast<std::size_t>(other.site)].bytes;
  }
  r.site = site_of(like, site);
  records.push_back(r);
}

void Recorder::note_finished(const void* got, const CollectiveSite& site, double at) {
  const std::int32_t partner = begun(got);
  if (partner < 0) return;
  const ExchangeRecord other = records[static_cast<std::size_t>(partner)];
  ExchangeSite like = sites[static_cast<std::size_t>(other.site)];
  like.part = ExchangePart::finish;
  const std::int32_t number = site_of(like, site);
  records.push_back({at, at, other.number, number, other.from, partner, got});
}

}  // namespace vt::detail
