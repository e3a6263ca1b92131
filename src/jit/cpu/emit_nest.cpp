// The loops of a kernel: element-wise bodies with masked tails, horizontal reductions with several accumulators, vertical ones
// with accumulators in a local array.
#include "emit_nest.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <functional>

namespace vt::detail::cpu {

namespace nest_emission {

using Mode = StageSchedule::Mode;
using Values = std::vector<Value>;

Reduce lane_reduce(ReduceOp op) {
  switch (op) {
    case ReduceOp::product: return Reduce::mul;
    case ReduceOp::maximum: return Reduce::max;
    case ReduceOp::minimum: return Reduce::min;
    case ReduceOp::any: return Reduce::bit_or;
    case ReduceOp::all: return Reduce::bit_and;
    default: return Reduce::add;
  }
}

class KernelEmitter {
 public:
  KernelEmitter(IrBuilder& b, const Nest& nest, const Schedule& schedule) : b_(b), nest_(nest), schedule_(schedule), values_(b, nest, schedule) {}

  void emit(const std::string& name) {
    b_.begin_function(name, {Param::ptr(), Param::ptr(), Param::of(DType::i64), Param::of(DType::i64)});
    values_.load_arguments();
    open_shared(0);
    b_.end_function();
  }

 private:
  // ---- plain loops -----------------------------------------------------------------------------------------------------
  Value lower(int loop) { return loop == schedule_.parallel_loop ? b_.arg(2) : b_.index(0); }
  Value upper(int loop) { return loop == schedule_.parallel_loop ? b_.arg(3) : values_.extent(loop); }
  bool nonempty(int loop) const {
    const NestLoop& l = nest_.loops[static_cast<std::size_t>(loop)];
    return loop == schedule_.parallel_loop || (!l.runtime && l.extent > 0) || l.block_of >= 0;
  }

  // Opens `loop`, hoists what of `needed` is known then, and runs `body` inside.
  Values open_loop(int loop, const std::vector<int>& needed, const Values& carried, const std::function<Values(const Values&)>& body) {
    return b_.loop(lower(loop), upper(loop), 1, carried, [&](Value i, const Values& inner) {
      const Values before = values_.known();
      values_.enter(loop, i);
      values_.hoist(needed);
      Values next = body(inner);
      values_.leave(loop);
      values_.restore(before);
      return next;
    }, nonempty(loop));
  }

  void open_shared(std::size_t depth) {
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

  // ---- a stage ---------------------------------------------------------------------------------------------------------
  struct Part {
    std::vector<int> needed;
    std::vector<const NestStore*> stores;
  };

  // All values before all stores: a result may be written over an operand.
  void store_all(const Part& part) {
    for (const NestStore* s : part.stores) values_.get(s->value);
    for (const NestStore* s : part.stores) values_.store(*s);
  }

  void emit_stage(int k) {
    stage_ = &schedule_.stages[static_cast<std::size_t>(k)];
    reductions_.clear();
    body_ = after_ = {};
    std::vector<int> roots, after_roots;
    for (std::size_t r = 0; r < nest_.reductions.size(); ++r)
      if (nest_.reductions[r].stage == k) {
        reductions_.push_back(static_cast<int>(r));
        roots.push_back(nest_.reductions[r].value);
        roots.push_back(nest_.reductions[r].position);
      }
    for (const NestStore& s : nest_.stores)
      if (s.stage == k) {
        (s.after ? after_ : body_).stores.push_back(&s);
        add_roots(nest_, s, s.after ? after_roots : roots);
      }
    body_.needed = needed_values(nest_, roots);
    after_.needed = needed_values(nest_, after_roots);
    spaces_.clear();
    reduces_.clear();
    for (int l : stage_->order) {
      if (l == stage_->vector_loop || l == stage_->tile_loop) continue;
      (nest_.loops[static_cast<std::size_t>(l)].reduce ? reduces_ : spaces_).push_back(l);
    }
    values_.set_vector_loop(stage_->vector_loop);
    current_ = k;
    std::vector<int> both = body_.needed;
    both.insert(both.end(), after_.needed.begin(), after_.needed.end());
    std::sort(both.begin(), both.end());
    values_.hoist(both);
    open_spaces(0, both);
    values_.set_vector_loop(-1);
  }

  void open_spaces(std::size_t depth, const std::vector<int>& needed) {
    if (depth < spaces_.size()) {
      open_loop(spaces_[depth], needed, {}, [&](const Values&) {
        open_spaces(depth + 1, needed);
        return Values{};
      });
      return;
    }
    switch (stage_->mode) {
      case Mode::elementwise: elementwise(); break;
      case Mode::horizontal: horizontal(); break;
      case Mode::vertical: vertical(); break;
    }
  }

  // ---- vector loops ----------------------------------------------------------------------------------------------------
  using VectorBody = std::function<Values(const Values&, int copy)>;

  // Runs `body` on vectors of the vector loop from lo to hi. `copies` bodies in a row take different carried values (their
  // number in `copy`); what is left over goes to copy 0, the last, shorter vector under a mask.
  Values vector_loop(Value lo, Value hi, Values carried, int copies, bool masked, bool known_nonempty,
                     const VectorBody& body) {
    const int loop = stage_->vector_loop, lanes = values_.lanes();
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
    const NestLoop& l = nest_.loops[static_cast<std::size_t>(loop)];
    const bool whole = loop != schedule_.parallel_loop && !l.runtime && l.block_of < 0 && stage_->mode != Mode::vertical;
    if (whole && l.extent <= lanes) {
      return one(lo, carried, 0, l.extent == lanes ? Value{} : b_.tail_mask(lanes, b_.index(l.extent)));
    }
    if (masked) {
      return b_.loop(lo, hi, lanes, carried, [&](Value i, const Values& inner) { return one(i, inner, 0, b_.tail_mask(lanes, b_.sub(hi, i))); },
                     known_nonempty);
    }
    Value from = lo;
    if (copies > 1) {
      const std::int64_t step = std::int64_t{lanes} * copies;
      const Value rounds = b_.mul(b_.div(b_.sub(hi, lo), b_.index(step)), b_.index(step));
      const Value to = b_.add(lo, rounds);
      carried = b_.loop(lo, to, step, carried, [&](Value i, Values inner) {
        for (int c = 0; c < copies; ++c) inner = one(c ? b_.add(i, b_.index(std::int64_t{c} * lanes)) : i, inner, c, {});
        return inner;
      });
      from = to;
    }
    const Value rounds = b_.mul(b_.div(b_.sub(hi, from), b_.index(lanes)), b_.index(lanes));
    const Value to = b_.add(from, rounds);
    carried = b_.loop(from, to, lanes, carried, [&](Value i, const Values& inner) { return one(i, inner, 0, {}); });
    if (whole && l.extent % lanes == 0) return carried;
    return b_.if_else(
        b_.compare(Compare::lt, to, hi), [&] { return one(to, carried, 0, b_.tail_mask(lanes, b_.sub(hi, to))); }, [&] { return carried; });
  }

  void elementwise() {
    const auto stores = [&] { store_all(body_); };
    if (stage_->vector_loop < 0) return stores();
    if (stage_->tile_loop >= 0) return tiles(stores);
    vector_loop(lower(stage_->vector_loop), upper(stage_->vector_loop), {}, 1, stage_->masked, nonempty(stage_->vector_loop),
                [&](const Values&, int) {
                  stores();
                  return Values{};
                });
  }

  // ---- turned tiles ----------------------------------------------------------------------------------------------------
  // Rows of 2^k vectors become columns in k rounds of pairwise exchange.
  Values transposed(Values rows) {
    const int n = static_cast<int>(rows.size());
    for (int width = 1; width < n; width *= 2) {
      std::vector<int> low, high;
      for (int i = 0; i < n; ++i) {
        // Lane i of a pair's first result: from the first row where bit `width` of i is clear, else from the second, shifted.
        low.push_back(i & width ? n + (i ^ width) : i);
        high.push_back(i & width ? n + i : i | width);
      }
      for (int r = 0; r < n; ++r) {
        if (r & width) continue;
        const Value a = rows[static_cast<std::size_t>(r)], c = rows[static_cast<std::size_t>(r | width)];
        rows[static_cast<std::size_t>(r)] = b_.shuffle(a, c, low);
        rows[static_cast<std::size_t>(r | width)] = b_.shuffle(a, c, high);
      }
    }
    return rows;
  }

  // Squares of lanes × lanes: operands that lie along the tile loop are read by rows, turned in registers and laid on the
  // stack; then the body runs along the vector loop for each line of the square.
  void tiles(const std::function<void()>& stores) {
    const int along = stage_->vector_loop, across = stage_->tile_loop, lanes = values_.lanes();
    std::vector<int> turned;
    for (int v : body_.needed)
      if (values_.reads_turned(v, *stage_)) turned.push_back(v);
    Values arrays;
    for (int v : turned) arrays.push_back(b_.stack_array(nest_.values[static_cast<std::size_t>(v)].dtype, std::int64_t{lanes} * lanes));
    const Value across_end = upper(across), along_end = upper(along);
    // A few tiles wide blocks: each row that is read and each that is written is on a page of its own, and the pages in use
    // must stay in the translation buffer.
    const std::int64_t block = std::int64_t{lanes} * 4;
    b_.for_range(lower(along), along_end, block, [&](Value first) {
    const Value last = b_.min(b_.add(first, b_.index(block)), along_end);
    b_.for_range(lower(across), across_end, lanes, [&](Value u) {
      const Value lines = b_.min(b_.index(lanes), b_.sub(across_end, u));
      b_.for_range(first, last, lanes, [&](Value v) {
        const Values before = values_.known();
        values_.enter(across, u);
        values_.enter(along, v);
        const Value columns = b_.min(b_.index(lanes), b_.sub(along_end, v));
        const Value whole = b_.compare(Compare::eq, b_.add(lines, columns), b_.index(2 * lanes));
        for (std::size_t k = 0; k < turned.size(); ++k) {
          const auto rows = [&](bool masked) {
            Values all;
            for (int r = 0; r < lanes; ++r) {
              Value mask{};
              if (masked) mask = b_.tail_mask(lanes, b_.select(b_.compare(Compare::lt, b_.index(r), columns), lines, b_.index(0)));
              all.push_back(values_.load_row(turned[k], r, mask));
            }
            return all;
          };
          values_.prepare_index(turned[k]);
          const Values columns_of = transposed(b_.if_else(whole, [&] { return rows(false); }, [&] { return rows(true); }));
          const DType d = nest_.values[static_cast<std::size_t>(turned[k])].dtype;
          for (int c = 0; c < lanes; ++c) b_.store(b_.offset(arrays[k], d, b_.index(std::int64_t{c} * lanes)), columns_of[static_cast<std::size_t>(c)]);
        }
        const Value mask = b_.tail_mask(lanes, columns);
        b_.for_range(b_.index(0), lines, 1, [&](Value c) {
          const Values outside = values_.known();
          values_.enter(across, b_.add(u, c));
          values_.set_mask(mask);
          for (std::size_t k = 0; k < turned.size(); ++k) {
            const DType d = nest_.values[static_cast<std::size_t>(turned[k])].dtype;
            values_.bind(turned[k], b_.load(b_.offset(arrays[k], d, b_.mul(c, b_.index(lanes))), d, lanes));
          }
          stores();
          values_.set_mask({});
          values_.restore(outside);
        }, true);
        values_.leave(along);
        values_.leave(across);
        values_.restore(before);
      }, true);
    }, nonempty(across));
    }, nonempty(along));
  }

  // ---- accumulators ----------------------------------------------------------------------------------------------------
  // Per reduction one value, or for argmax and argmin two: the extreme and its position.
  Values initial(int lanes) {
    Values init;
    for (int r : reductions_) {
      const NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(r)];
      if (reduction.position >= 0) {
        const DType d = nest_.values[static_cast<std::size_t>(reduction.value)].dtype;
        init.push_back(b_.identity(reduction.op == ReduceOp::argmax ? Reduce::max : Reduce::min, d, lanes));
        init.push_back(b_.integer(reduction.dtype, -1, lanes));  // none yet: loses against every element
      } else {
        init.push_back(b_.identity(lane_reduce(reduction.op), reduction.dtype, lanes));
      }
    }
    return init;
  }

  // Does element (x, at) win over (y, where)? NaN beats numbers, earlier beats later; `where` −1 is no element.
  Value wins(ReduceOp op, Value x, Value at, Value y, Value where) {
    const Value none = b_.compare(Compare::eq, where, b_.integer(where.dtype, -1, where.lanes));
    const Value some = b_.compare(Compare::ne, at, b_.integer(at.dtype, -1, at.lanes));
    const Value earlier = b_.compare(Compare::lt, at, where);
    Value better = b_.compare(op == ReduceOp::argmax ? Compare::gt : Compare::lt, x, y);
    Value equal = b_.compare(Compare::eq, x, y);
    if (is_float(x.dtype)) {
      const Value x_nan = b_.is_nan(x), y_nan = b_.is_nan(y);
      better = b_.select(x_nan, b_.bit_not(y_nan), better);
      equal = b_.bit_or(equal, b_.bit_and(x_nan, y_nan));
    }
    const Value won = b_.bit_or(none, b_.bit_or(better, b_.bit_and(equal, earlier)));
    return b_.bit_and(some, won);
  }

  Value masked_input(Value x, Value identity, Value mask) { return mask ? b_.select(mask, x, identity) : x; }

  // carried[first…] after one more vector of inputs.
  void accumulate(Values& carried, std::size_t first, Value mask) {
    const int lanes = values_.lanes();
    for (int r : reductions_) {
      const NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(r)];
      if (reduction.position >= 0) {
        const Value x = values_.get_lanes(reduction.value);
        Value at = values_.get_lanes(reduction.position);
        if (mask) at = b_.select(mask, at, b_.integer(at.dtype, -1, lanes));
        const Value better = wins(reduction.op, x, at, carried[first], carried[first + 1]);
        carried[first] = b_.select(better, x, carried[first]);
        carried[first + 1] = b_.select(better, at, carried[first + 1]);
        first += 2;
      } else {
        const Reduce op = lane_reduce(reduction.op);
        const Value x = masked_input(values_.get_lanes(reduction.value), b_.identity(op, reduction.dtype, lanes), mask);
        carried[first] = b_.combine(op, carried[first], x);
        ++first;
      }
    }
  }

  void combine_into(Values& a, std::size_t first, const Values& other, std::size_t from) {
    for (int r : reductions_) {
      const NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(r)];
      if (reduction.position >= 0) {
        const Value better = wins(reduction.op, other[from], other[from + 1], a[first], a[first + 1]);
        a[first] = b_.select(better, other[from], a[first]);
        a[first + 1] = b_.select(better, other[from + 1], a[first + 1]);
        first += 2;
        from += 2;
      } else {
        a[first] = b_.combine(lane_reduce(reduction.op), a[first], other[from]);
        ++first;
        ++from;
      }
    }
  }

  // Folds the lanes of an extreme and its position: upper half onto lower half.
  Value best_position(ReduceOp op, Value x, Value at) {
    while (x.lanes > 1) {
      const int half = x.lanes / 2;
      const Value x0 = b_.slice_lanes(x, 0, half), x1 = b_.slice_lanes(x, half, half);
      const Value at0 = b_.slice_lanes(at, 0, half), at1 = b_.slice_lanes(at, half, half);
      const Value better = wins(op, x1, at1, x0, at0);
      x = b_.select(better, x1, x0);
      at = b_.select(better, at1, at0);
    }
    return at;
  }

  std::size_t carried_per_copy() const {
    std::size_t n = 0;
    for (int r : reductions_) n += nest_.reductions[static_cast<std::size_t>(r)].position >= 0 ? 2 : 1;
    return n;
  }

  // ---- horizontal ------------------------------------------------------------------------------------------------------
  Values reduce_loops(std::size_t depth, Values carried) {
    if (depth < reduces_.size())
      return open_loop(reduces_[depth], body_.needed, carried, [&](const Values& inner) { return reduce_loops(depth + 1, inner); });
    const std::size_t per_copy = carried_per_copy();
    const auto body = [&](Values inner, int copy) {
      const Value mask = values_.mask();
      accumulate(inner, static_cast<std::size_t>(copy) * per_copy, mask);
      store_all(body_);
      return inner;
    };
    if (stage_->vector_loop < 0) return body(carried, 0);
    return vector_loop(lower(stage_->vector_loop), upper(stage_->vector_loop), carried, stage_->accumulators, stage_->masked,
                       nonempty(stage_->vector_loop), body);
  }

  void horizontal() {
    const int lanes = values_.lanes(), copies = stage_->vector_loop < 0 ? 1 : stage_->accumulators;
    Values carried;
    for (int c = 0; c < copies; ++c)
      for (const Value& v : initial(lanes)) carried.push_back(v);
    carried = reduce_loops(0, carried);
    // Neighbours first: the same tree whatever the number of elements.
    const std::size_t per_copy = carried_per_copy();
    for (int step = 1; step < copies; step *= 2)
      for (int c = 0; c + step < copies; c += 2 * step)
        combine_into(carried, static_cast<std::size_t>(c) * per_copy, carried, static_cast<std::size_t>(c + step) * per_copy);
    std::size_t at = 0;
    for (int r : reductions_) {
      const NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(r)];
      if (reduction.position >= 0) {
        values_.bind_result(r, best_position(reduction.op, carried[at], carried[at + 1]));
        at += 2;
      } else {
        values_.bind_result(r, b_.reduce_lanes(lane_reduce(reduction.op), carried[at]));
        ++at;
      }
    }
    values_.stage_done(current_);
    const int loop = stage_->vector_loop;
    values_.set_vector_loop(-1);
    store_all(after_);
    values_.set_vector_loop(loop);
  }

  // ---- vertical --------------------------------------------------------------------------------------------------------
  // Tiles of the vector loop have their accumulators in a local array that stays in the first-level cache while the rows
  // stream by.
  void vertical() {
    constexpr std::int64_t tile_bytes = 16384;
    const int loop = stage_->vector_loop, lanes = values_.lanes();
    const NestLoop& l = nest_.loops[static_cast<std::size_t>(loop)];
    std::int64_t bytes = 0;
    std::vector<DType> dtypes;
    for (int r : reductions_) {
      const NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(r)];
      if (reduction.position >= 0) dtypes.push_back(nest_.values[static_cast<std::size_t>(reduction.value)].dtype);
      dtypes.push_back(reduction.dtype);
    }
    for (DType d : dtypes) bytes += static_cast<std::int64_t>(size_of(d));
    std::int64_t tile = std::max<std::int64_t>(tile_bytes / bytes / lanes, 1) * lanes;
    if (!l.runtime) tile = std::min(tile, (l.extent + lanes - 1) / lanes * lanes);
    Values arrays;
    for (DType d : dtypes) arrays.push_back(b_.stack_array(d, tile));
    const Value lo = lower(loop), hi = upper(loop);
    b_.for_range(lo, hi, tile, [&](Value start) {
      const Value end = b_.min(b_.add(start, b_.index(tile)), hi);
      const auto slot = [&](std::size_t k, Value i) { return b_.offset(arrays[k], dtypes[k], b_.sub(i, start)); };
      // The arrays are whole vectors, so accumulators need no mask.
      const Values init = initial(lanes);
      b_.for_range(start, end, lanes, [&](Value i) {
        for (std::size_t k = 0; k < init.size(); ++k) b_.store(slot(k, i), init[k]);
      });
      rows(0, start, end, slot);
      const Values before = values_.known();
      values_.hoist(after_.needed);
      vector_loop(start, end, {}, 1, false, true, [&](const Values&, int) {
        const Value i = values_.position(loop);
        std::size_t k = 0;
        for (int r : reductions_) {
          if (nest_.reductions[static_cast<std::size_t>(r)].position >= 0) ++k;
          values_.bind_result(r, b_.load(slot(k, i), dtypes[k], lanes));
          ++k;
        }
        store_all(after_);
        return Values{};
      });
      values_.restore(before);
    }, nonempty(loop));
  }

  using Slot = std::function<Value(std::size_t, Value)>;

  void rows(std::size_t depth, Value start, Value end, const Slot& slot) {
    if (reduces_.empty()) return row_vectors(-1, b_.index(0), 1, start, end, slot);  // only axes of extent 1 are reduced
    if (depth + 1 < reduces_.size()) {
      open_loop(reduces_[depth], body_.needed, {}, [&](const Values&) {
        rows(depth + 1, start, end, slot);
        return Values{};
      });
      return;
    }
    const int loop = reduces_[depth], together = stage_->accumulators;
    const Value hi = values_.extent(loop);
    Value from = b_.index(0);
    if (together > 1) {
      const Value whole = b_.mul(b_.div(hi, b_.index(together)), b_.index(together));
      b_.for_range(from, whole, together, [&](Value i) { row_vectors(loop, i, together, start, end, slot); });
      from = whole;
    }
    b_.for_range(from, hi, 1, [&](Value i) { row_vectors(loop, i, 1, start, end, slot); }, together == 1 && nonempty(loop));
  }

  // `count` rows from `row` on: their inputs are combined with each other first, then with the accumulators.
  void row_vectors(int loop, Value row, int count, Value start, Value end, const Slot& slot) {
    const Values before = values_.known();
    std::vector<Values> hoisted;
    Values positions;
    for (int c = 0; c < count; ++c) {
      values_.restore(before);
      positions.push_back(c ? b_.add(row, b_.index(c)) : row);
      if (loop >= 0) values_.enter(loop, positions.back());
      values_.hoist(body_.needed);
      hoisted.push_back(values_.known());
    }
    vector_loop(start, end, {}, 1, stage_->masked, true, [&](const Values&, int) {
      const Value i = values_.position(stage_->vector_loop), mask = values_.mask();
      const std::size_t per_copy = carried_per_copy();
      std::vector<Values> inputs;
      Values old;
      for (std::size_t k = 0; k < per_copy; ++k) old.push_back(b_.load(slot(k, i), k_dtype(k), values_.lanes()));
      for (int c = 0; c < count; ++c) {
        values_.restore(hoisted[static_cast<std::size_t>(c)]);
        if (loop >= 0) values_.enter(loop, positions[static_cast<std::size_t>(c)]);
        if (count == 1) {
          accumulate(old, 0, mask);
        } else {
          Values x;
          for (int r : reductions_) x.push_back(values_.get_lanes(nest_.reductions[static_cast<std::size_t>(r)].value));
          inputs.push_back(std::move(x));
        }
        store_all(body_);
      }
      if (count > 1) {
        for (int step = 1; step < count; step *= 2)
          for (int c = 0; c + step < count; c += 2 * step) combine_into(inputs[static_cast<std::size_t>(c)], 0, inputs[static_cast<std::size_t>(c + step)], 0);
        combine_into(old, 0, inputs[0], 0);
      }
      for (std::size_t k = 0; k < per_copy; ++k) b_.store(slot(k, i), old[k]);
      return Values{};
    });
    if (loop >= 0) values_.leave(loop);
    values_.restore(before);
  }

  DType k_dtype(std::size_t k) const {
    std::size_t at = 0;
    for (int r : reductions_) {
      const NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(r)];
      if (reduction.position >= 0 && at++ == k) return nest_.values[static_cast<std::size_t>(reduction.value)].dtype;
      if (at++ == k) return reduction.dtype;
    }
    return DType::f32;
  }

  IrBuilder& b_;
  const Nest& nest_;
  const Schedule& schedule_;
  ValueEmitter values_;
  const StageSchedule* stage_ = nullptr;
  int current_ = 0;
  std::vector<int> reductions_;
  SmallVec<int, 6> spaces_, reduces_;
  Part body_, after_;
};

}  // namespace nest_emission

void emit_nest(IrBuilder& builder, const std::string& name, const Nest& nest, const Schedule& schedule) {
  nest_emission::KernelEmitter(builder, nest, schedule).emit(name);
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
