// From a loop nest to LLVM code: the loops of a kernel, its stages, and element-wise bodies with
// masked tails.
#include "kernel_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../../nest/nest_sections.hpp"

namespace vt::detail::cpu {

void KernelEmitter::emit(const std::string& name) {
  b_.begin_function(name,
                    {Param::ptr(), Param::ptr(), Param::of(DType::i64), Param::of(DType::i64)});
  values_.load_arguments();
  open_shared(0);
  // Stores past the caches are seen by other threads in no particular order, unless told.
  for (const StageSchedule& s : schedule_.stages)
    if (s.stream) {
      b_.order_streaming_stores();
      break;
    }
  b_.end_function();
}

Values KernelEmitter::open_loop(int loop, Value lo, Value hi, bool known_nonempty,
                                const Vec<int>& needed, const Values& carried,
                                FunctionRef<Values(const Values&)> body) {
  return b_.loop(
      lo, hi, 1, carried,
      [&](Value i, const Values& inner) {
        const Values before = values_.known();
        values_.enter(loop, i);
        values_.hoist(needed);
        Values next = body(inner);
        values_.leave(loop);
        values_.restore(before);
        return next;
      },
      known_nonempty);
}

void KernelEmitter::open_shared(std::size_t depth) {
  if (depth < nest_.shared.size()) {
    open_loop(nest_.shared[depth], {}, {}, [&](const Values&) {
      open_shared(depth + 1);
      return Values{};
    });
    return;
  }
  for (std::size_t k = 0; k < nest_.stages.size(); ++k) {
    emit_stage(static_cast<int>(k));
    values_.stage_done(static_cast<int>(k));
  }
}

bool KernelEmitter::whole_groups(int loop, std::int64_t count) const {
  const NestLoop& l = loop_of(loop);
  if (l.runtime) return false;
  return l.block_of < 0 ? l.extent % count == 0 : l.block % count == 0 && l.total % count == 0;
}

void KernelEmitter::store_all(const Part& part) {
  const auto store_at = [&](int s) -> const NestStore& { return nest_.stores[s]; };
  for (int s : part.stores) values_.get(store_at(s).value);
  for (int s : part.stores)
    if (!values_.store_interleaved(store_at(s))) values_.store(store_at(s), stage_->stream);
}

void KernelEmitter::emit_stage(int k) {
  stage_ = &schedule_.stages[k];
  reductions_.clear();
  body_ = after_ = {};
  Vec<int> roots, after_roots;
  for (std::size_t r = 0; r < nest_.reductions.size(); ++r)
    if (nest_.reductions[r].stage == k) {
      reductions_.push_back(static_cast<int>(r));
      add_roots(nest_.reductions[r], roots);
    }
  for (std::size_t s = 0; s < nest_.stores.size(); ++s) {
    const NestStore& store = nest_.stores[s];
    if (store.stage != k) continue;
    (store.after ? after_ : body_).stores.push_back(static_cast<int>(s));
    add_roots(nest_, store, store.after ? after_roots : roots);
  }
  body_.needed = needed_values(nest_, roots);
  after_.needed = needed_values(nest_, after_roots);
  spaces_.clear();
  reduces_.clear();
  for (int l : stage_->order) {
    if (l == stage_->vector_loop || l == stage_->tile_loop) continue;
    (loop_of(l).reduce ? reduces_ : spaces_).push_back(l);
  }
  values_.set_vector_loop(stage_->vector_loop);
  current_ = k;
  Vec<int> both = body_.needed;
  both.append(after_.needed.begin(), after_.needed.end());
  insertion_sort(both);
  values_.hoist(both);
  open_spaces(0, both);
  values_.set_vector_loop(-1);
}

void KernelEmitter::in_sections(int loop, Value lo, Value hi, std::int64_t aligned,
                                FunctionRef<void(Value, Value, bool)> body) {
  const auto roots_of = [&] {
    Vec<int> roots;
    for (int s : body_.stores) add_roots(nest_, nest_.stores[s], roots);
    return roots;
  };
  SmallVec<std::int64_t, 16> borders;
  if (stage_->mode == Mode::elementwise && loop_of(loop).block_of < 0)
    borders = section_borders(nest_, loop, roots_of(), aligned);
  if (borders.empty()) return body(lo, hi, true);
  for (std::size_t k = 0; k < borders.size(); ++k) {
    const bool last = k + 1 == borders.size();
    // Values keep their numbers, so that what was emitted outside is the same inside.
    Nest all = nest_;
    nest_ = section_of(all, loop, borders[k], last ? -1 : borders[k + 1]);
    const Vec<int> outside = body_.needed;
    body_.needed = needed_values(nest_, roots_of());
    const Value from = k == 0 ? lo : b_.max(lo, values_.iterations(borders[k], loop)),
                to = last ? hi : b_.min(hi, values_.iterations(borders[k + 1], loop));
    b_.if_then(b_.compare(Compare::lt, from, to), [&] { body(from, to, false); });
    nest_ = std::move(all);
    body_.needed = outside;
  }
}

void KernelEmitter::open_spaces(std::size_t depth, const Vec<int>& needed) {
  if (depth < spaces_.size()) {
    const int loop = spaces_[depth];
    in_sections(loop, lower(loop), upper(loop), 1, [&](Value lo, Value hi, bool whole) {
      open_loop(loop, lo, hi, !whole || nonempty(loop), whole ? needed : body_.needed, {},
                [&](const Values&) {
                  open_spaces(depth + 1, whole ? needed : body_.needed);
                  return Values{};
                });
    });
    return;
  }
  switch (stage_->mode) {
    case Mode::elementwise: elementwise(); break;
    case Mode::horizontal: horizontal(); break;
    case Mode::vertical: vertical(); break;
  }
}

Values KernelEmitter::vector_loop(Value lo, Value hi, Values carried, int copies, bool masked,
                                  bool known_nonempty, const VectorBody& body) {
  const int loop = stage_->vector_loop, simd_lanes = values_.simd_lanes();
  const auto one = [&](Value i, const Values& inner, int copy, Value mask) {
    const Values before = values_.known();
    values_.enter(loop, i);
    values_.set_mask(mask);
    Values next = body(inner, copy);
    values_.set_mask({});
    values_.leave(loop);
    values_.restore(before);
    return next;
  };
  const NestLoop& l = loop_of(loop);
  const bool no_tail = whole_groups(loop, simd_lanes);
  const bool whole = loop != schedule_.parallel_loop && !l.runtime && l.block_of < 0 &&
                     stage_->mode != Mode::vertical;
  if (whole && l.extent <= simd_lanes) {
    return one(lo, carried, 0,
               l.extent == simd_lanes ? Value{}
                                      : b_.tail_mask(simd_lanes, at_run_time(b_.index(l.extent))));
  }
  if (masked && !no_tail) {
    return b_.loop(
        lo, hi, simd_lanes, carried,
        [&](Value i, const Values& inner) {
          return one(i, inner, 0, b_.tail_mask(simd_lanes, b_.sub(hi, i)));
        },
        known_nonempty);
  }
  Value from = lo;
  if (copies > 1) {
    const std::int64_t step = std::int64_t{simd_lanes} * copies;
    const Value iterations = b_.bit_and(b_.sub(hi, lo), b_.index(-step));
    const Value to = b_.add(lo, iterations);
    carried = b_.loop(lo, to, step, carried, [&](Value i, Values inner) {
      for (int c = 0; c < copies; ++c)
        inner = one(c ? b_.add(i, b_.index(std::int64_t{c} * simd_lanes)) : i, inner, c, {});
      return inner;
    });
    from = to;
    if (whole && whole_groups(loop, step)) return carried;
  }
  const Value to = no_tail ? hi : b_.add(from, b_.bit_and(b_.sub(hi, from), b_.index(-simd_lanes)));
  carried = b_.loop(
      from, to, simd_lanes, carried,
      [&](Value i, const Values& inner) { return one(i, inner, 0, {}); },
      no_tail && copies == 1 && known_nonempty);
  if (no_tail) return carried;
  return b_.if_else(
      b_.compare(Compare::lt, to, hi),
      [&] { return one(to, carried, 0, b_.tail_mask(simd_lanes, at_run_time(b_.sub(hi, to)))); },
      [&] { return carried; });
}

// Of a constant mask LLVM makes a shuffle with zeros, and of that vexpand, which waits for what its
// destination held before: rows one after the other instead of side by side. So that the mask is
// none, the count takes a detour by the kernel's range, which does not begin below 0.
Value KernelEmitter::at_run_time(Value count) {
  return b_.add(count, b_.min(b_.arg(2), b_.index(0)));
}

void KernelEmitter::elementwise() {
  if (stage_->vector_loop < 0) return store_all(body_);
  if (stage_->tile_loop >= 0) return tiles();
  const int loop = stage_->vector_loop;
  // Sections of whole vectors: their borders are where vectors begin.
  in_sections(loop, lower(loop), upper(loop), values_.simd_lanes(),
              [&](Value lo, Value hi, bool whole) {
                vector_loop(lo, hi, {}, 1, stage_->masked, !whole || nonempty(loop),
                            [&](const Values&, int) {
                              store_all(body_);
                              return Values{};
                            });
              });
}

void emit_nest(IrBuilder& builder, const std::string& name, const Nest& nest,
               const Schedule& schedule) {
  KernelEmitter(builder, nest, schedule).emit(name);
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
