// CallList: planning what is summed with what, and running the list.
#include "call_list.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include <vt/detail/message.hpp>

#include "../trace/base/locks.hpp"
#include "../trace/base/recent_map.hpp"
#include "../trace/base/scalar_math.hpp"
#include "../trace/base/timeline.hpp"
#include "../trace/ir/sub_graph.hpp"
#include "../trace/record/node.hpp"
#include "cpu/products/matmul.hpp"
#include "passes/row_sums.hpp"

namespace vt::detail {

namespace call_list {

bool can_be_summed(DType d) {
  return d == DType::f32 || d == DType::f64 || d == DType::c64 || d == DType::c128 ||
         d == DType::i32 || d == DType::i64;
}

template <class T>
void add_elements(void* to, const void* from, std::size_t bytes) {
  T* const sum = static_cast<T*>(to);
  const T* const more = static_cast<const T*>(from);
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) sum[i] = scalar_math::add(sum[i], more[i]);
}
void add_elements(DType d, void* to, const void* from, std::size_t bytes) {
  switch (d) {
    case DType::f32:
    case DType::c64: return add_elements<float>(to, from, bytes);
    case DType::f64:
    case DType::c128: return add_elements<double>(to, from, bytes);
    case DType::i32: return add_elements<std::int32_t>(to, from, bytes);
    default: return add_elements<std::int64_t>(to, from, bytes);
  }
}

/// A function of one row as it runs: its program, and what is summed of what that gives.
struct Callee {
  GraphRef key;  ///< keeps the body that it is found by
  RowSums split;
  std::shared_ptr<const RowProgram> program;
};
using CalleeRef = std::shared_ptr<const Callee>;

// By the body itself, and by the flags of operands and results.
CalleeRef callee_of(const BatchedCallParams& p) {
  struct Cache {
    Mutex mutex;
    RecentMap<std::string, CalleeRef> known{1024};
  };
  static Cache* const cache = new Cache;  // values may be asked for while the process ends
  const GraphBody* body = p.body.get();
  std::string key(reinterpret_cast<const char*>(&body), sizeof body);
  for (bool m : p.lanes.mapped) key += m ? 'm' : '.';
  for (bool s : p.summed) key += s ? 's' : '.';
  {
    const std::lock_guard lock(cache->mutex);
    if (const CalleeRef* known = cache->known.find(key)) return *known;
  }
  auto made = std::make_shared<Callee>();
  made->key = p.body;
  made->split = split_row_sums(p.body, p.summed);
  Vec<bool> mapped;
  for (bool m : p.lanes.mapped) mapped.push_back(m);
  made->program = std::make_shared<const RowProgram>(made->split.body, std::move(mapped));
  Vec<CalleeRef> gone;
  const std::lock_guard lock(cache->mutex);
  return *cache->known.emplace(std::move(key), std::move(made), gone);
}

}  // namespace call_list

bool suits_call_list(const GraphBody& g) {
  using namespace call_list;
  bool any = false;
  for (const Equation& e : g.equations) {
    any = any || e.op == Op::rows || e.op == Op::rows_add;
    if (e.op == Op::rows_add && !can_be_summed(g.aval(e.inputs[0]).dtype)) return false;
    if (e.op != Op::batched_call) continue;
    const auto& p = e.as<BatchedCallParams>();
    if (p.parts_lanes()) return false;
    any = true;
    for (std::size_t i = 0; i < p.summed.size(); ++i)
      if (p.summed[i] && !can_be_summed(g.aval(e.outputs[i]).dtype)) return false;
  }
  return any;
}

struct CallList::Step {
  enum class Kind : std::uint8_t {
    call,
    rows,
    rows_add,
    add,      ///< of two arrays, or of sums that are being made
    reshape,  ///< the same memory
    segment   ///< equations between, a Graph of their own
  } kind = Kind::segment;
  int equation = -1;
  call_list::CalleeRef callee;
  GraphRef segment;
  Vec<Var> inputs, outputs;  ///< of a segment
  Vec<Var> last;             ///< values that nobody reads after it
};

CallList::CallList(GraphBody graph) : graph_(std::move(graph)) {
  const Span span("compile", "plan calls");
  plan();
}
CallList::~CallList() = default;

namespace call_list {

bool is_plain_sum(const GraphBody& g, const Equation& e) {
  const Aval& sum = g.aval(e.outputs[0]);
  return can_be_summed(sum.dtype) && all_of(e.inputs, [&](Var v) {
           return g.aval(v).dtype == sum.dtype && g.aval(v).shape == sum.shape;
         });
}

}  // namespace call_list

void CallList::plan() {
  using namespace call_list;
  const std::size_t count = graph_.avals.size();
  const Vec<int> reads = reads_of(graph_);
  // Sums: what is added up of sums over rows, rows_add and other such sums.
  Vec<bool> sum(count, false);
  sum_.resize(count);
  for (std::size_t v = 0; v < count; ++v) sum_[v] = static_cast<Var>(v);
  Vec<Step::Kind> kinds;
  for (const Equation& e : graph_.equations) {
    Step::Kind kind = Step::Kind::segment;
    if (e.op == Op::batched_call) {
      const auto& p = e.as<BatchedCallParams>();
      kind = Step::Kind::call;
      for (std::size_t i = 0; i < p.summed.size(); ++i) sum[e.outputs[i]] = p.summed[i];
    } else if (e.op == Op::rows_add) {
      kind = Step::Kind::rows_add;
      for (Var v : e.outputs) sum[v] = true;
    } else if (e.op == Op::rows) {
      kind = Step::Kind::rows;
    } else if (e.op == Op::add) {
      const Var a = e.inputs[0], b = e.inputs[1], out = e.outputs[0];
      const auto joins = [&](Var v) {
        return sum[v] && reads[v] == 1 && graph_.aval(v).shape == graph_.aval(out).shape &&
               graph_.aval(v).dtype == graph_.aval(out).dtype;
      };
      if ((joins(a) || joins(b)) && is_plain_sum(graph_, e)) {
        kind = Step::Kind::add;
        sum[out] = true;
        for (Var v : e.inputs)
          if (joins(v)) sum_[v] = out;
      }
    }
    kinds.push_back(kind);
  }
  for (std::size_t v = count; v-- > 0;) {
    Var root = sum_[v];
    while (sum_[root] != root) root = sum_[root];
    sum_[v] = root;
  }

  // Equations that are no calls wait until a call needs what they give.
  Vec<int> waiting;
  Vec<bool> waits(count, false);  // per value: one of them makes it
  const auto waits_for_any = [&](const Equation& e) {
    return any_of(e.inputs, [&](Var v) { return bool{waits[v]}; });
  };
  const auto flush = [&] {
    if (waiting.empty()) return;
    Outline segment(graph_.avals);
    for (int k : waiting) segment.add(graph_.equations[k]);
    segment.output_what_is_read(reads);
    for (int k : waiting)
      for (Var v : graph_.equations[k].outputs) waits[v] = false;
    waiting.clear();
    Step& s = steps_.emplace_back();
    s.segment = std::move(segment.body);
    s.inputs = std::move(segment.inputs);
    s.outputs = std::move(segment.outputs);
  };
  for (std::size_t k = 0; k < graph_.equations.size(); ++k) {
    const Equation& e = graph_.equations[k];
    // What needs no code of its own, for however many rows, unless it is among what is compiled.
    if (kinds[k] == Step::Kind::segment && !waits_for_any(e)) {
      if (e.op == Op::reshape) kinds[k] = Step::Kind::reshape;
      else if (e.op == Op::add && is_plain_sum(graph_, e)) kinds[k] = Step::Kind::add;
    }
    if (kinds[k] == Step::Kind::segment) {
      waiting.push_back(static_cast<int>(k));
      for (Var v : e.outputs) waits[v] = true;
      continue;
    }
    if (waits_for_any(e)) flush();
    Step& s = steps_.emplace_back();
    s.kind = kinds[k];
    s.equation = static_cast<int>(k);
    if (s.kind == Step::Kind::call) s.callee = callee_of(e.as<BatchedCallParams>());
  }
  flush();

  Vec<bool> later(count, false);
  for (Var v : graph_.outputs) later[v] = true;
  for (std::size_t k = steps_.size(); k-- > 0;) {
    Step& s = steps_[k];
    const auto mark = [&](Var v) {
      if (later[v]) return;
      later[v] = true;
      s.last.push_back(v);
    };
    if (s.kind == Step::Kind::segment) {
      for (Var v : s.inputs) mark(v);
    } else {
      for (Var v : graph_.equations[s.equation].inputs) mark(v);
    }
  }
}

/// One run: the values and the sums that there are so far.
class CallList::Run {
 public:
  Run(const CallList& list, std::span<const BufferRef> inputs)
      : list_(list), g_(list.graph_), values_(g_.avals.size()), sums_(g_.avals.size(), -1) {
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) set(g_.inputs[i], inputs[i]);
  }

  Vec<BufferRef> run() {
    for (const Step& s : list_.steps_) {
      switch (s.kind) {
        case Step::Kind::call: call(s); break;
        case Step::Kind::rows: rows(equation(s)); break;
        case Step::Kind::rows_add: rows_add(equation(s)); break;
        case Step::Kind::add: add(equation(s)); break;
        case Step::Kind::reshape:
          value(equation(s).outputs[0]) = value(equation(s).inputs[0]);
          break;
        case Step::Kind::segment: segment(s); break;
      }
      for (Var v : s.last) values_[v] = {};
    }
    Vec<BufferRef> results;
    for (Var v : g_.outputs) results.push_back(whole(v));
    return results;
  }

 private:
  struct Value {
    BufferRef buffer;
    char* data = nullptr;
  };
  /// What rows of one call bring to a sum.
  struct Part {
    const call_list::Callee* callee;
    RowSum sum;
    std::int64_t rows;
    BufferRef a, b;
  };
  struct Sum {
    BufferRef total;  ///< of what is there as arrays; null: nothing
    Vec<Part> parts;
  };

  const Equation& equation(const Step& s) const { return g_.equations[s.equation]; }
  Value& value(Var v) { return values_[v]; }
  void set(Var v, BufferRef buffer) {
    char* const data = static_cast<char*>(buffer->data);
    value(v) = {std::move(buffer), data};
  }
  std::size_t bytes(Var v) const { return g_.aval(v).bytes(); }
  /// As a buffer of its own.
  BufferRef whole(Var v) {
    Value& x = value(v);
    if (x.data == x.buffer->data && x.buffer->bytes == bytes(v)) return x.buffer;
    BufferRef copy = allocate(bytes(v), "rows");
    if (bytes(v)) std::memcpy(copy->data, x.data, bytes(v));
    return copy;
  }

  void call(const Step& s) {
    const Equation& e = equation(s);
    const auto& p = e.as<BatchedCallParams>();
    const call_list::Callee& callee = *s.callee;
    const RowSums& split = callee.split;
    const GraphBody& body = *split.body;
    SmallVec<const void*, 16> in;
    SmallVec<void*, 16> out;
    for (Var v : e.inputs) in.push_back(value(v).data);
    Vec<BufferRef> made;
    for (Var v : body.outputs) {
      made.push_back(allocate(body.aval(v).bytes() * p.lanes.count, "results of a batched call"));
      out.push_back(made.back()->data);
    }
    const std::span<const void* const> operands(in.data(), in.size());
    callee.program->run(p.lanes.count, operands, {out.data(), out.size()},
                        packed(callee, p, e, operands));
    std::size_t own = 0, sum = 0;
    for (std::size_t i = 0; i < p.summed.size(); ++i) {
      const Var v = e.outputs[i];
      if (!p.summed[i]) {
        set(v, made[own++]);
        continue;
      }
      const RowSum& of = split.sums[sum++];
      const Var root = list_.sum_[v];
      sum_of(root).parts.push_back(
          {&callee, of, p.lanes.count, made[of.a], of.b < 0 ? BufferRef() : made[of.b]});
      if (root == v) finish(v);
    }
  }

  // What rows share is packed once, as long as it is the same memory.
  const Program::Packed& packed(const call_list::Callee& callee, const BatchedCallParams& p,
                                const Equation& e, std::span<const void* const> in) {
    Vec<const void*> shared(in.size(), nullptr);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (!p.lanes.mapped[i]) shared[i] = in[i];
    for (Kept& k : packed_)
      if (k.callee == &callee && k.shared == shared) return k.packed;
    Kept& k = packed_.emplace_back();
    k.callee = &callee;
    k.packed = callee.program->pack(shared);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (shared[i]) k.held.push_back(value(e.inputs[i]).buffer);
    k.shared = std::move(shared);
    return k.packed;
  }

  void rows(const Equation& e) {
    const auto& p = e.as<RowsParams>();
    const Var out = e.outputs[0];
    const std::int64_t count = p.count();
    const std::size_t row = count ? bytes(out) / static_cast<std::size_t>(count) : 0;
    if (p.runs.size() == 1 && p.runs[0].operand >= 0) {
      Value x = value(e.inputs[p.runs[0].operand]);
      x.data += static_cast<std::size_t>(p.runs[0].first) * row;
      value(out) = std::move(x);
      return;
    }
    BufferRef made = allocate(bytes(out), "rows");
    char* to = static_cast<char*>(made->data);
    for (const RowRun& run : p.runs) {
      const std::size_t size = static_cast<std::size_t>(run.count) * row;
      if (run.operand < 0) std::memset(to, 0, size);
      else if (size)
        std::memcpy(to,
                    value(e.inputs[run.operand]).data + static_cast<std::size_t>(run.first) * row,
                    size);
      to += size;
    }
    set(out, std::move(made));
  }

  void rows_add(const Equation& e) {
    const auto& p = e.as<RowsParams>();
    const std::int64_t count = p.count();
    const Value& x = value(e.inputs[0]);
    const std::size_t row = count ? bytes(e.inputs[0]) / static_cast<std::size_t>(count) : 0;
    const DType d = g_.aval(e.inputs[0]).dtype;
    for (Var v : e.outputs) total_of(v);
    const char* from = x.data;
    for (const RowRun& run : p.runs) {
      const std::size_t size = static_cast<std::size_t>(run.count) * row;
      if (run.operand >= 0)
        call_list::add_elements(d,
                                static_cast<char*>(total_of(e.outputs[run.operand])->data) +
                                    static_cast<std::size_t>(run.first) * row,
                                from, size);
      from += size;
    }
    for (Var v : e.outputs)
      if (list_.sum_[v] == v) finish(v);
  }

  void add(const Equation& e) {
    const Var out = e.outputs[0], root = list_.sum_[out];
    for (Var v : e.inputs) {
      if (!value(v).buffer) continue;  // it went into the sum as it was made
      Sum& s = sum_of(root);
      if (!s.total) {
        s.total = allocate(bytes(v), "a sum");
        if (bytes(v)) std::memcpy(s.total->data, value(v).data, bytes(v));
      } else {
        call_list::add_elements(g_.aval(v).dtype, s.total->data, value(v).data, bytes(v));
      }
    }
    if (root == out) finish(out);
  }
  Sum& sum_of(Var root) {
    std::int32_t& i = sums_[root];
    if (i < 0) {
      i = static_cast<std::int32_t>(open_.size());
      open_.emplace_back();
    }
    return open_[i];
  }
  /// The array that the sum of v is made in.
  const BufferRef& total_of(Var v) {
    Sum& s = sum_of(list_.sum_[v]);
    if (!s.total) {
      s.total = allocate(bytes(v), "a sum");
      std::memset(s.total->data, 0, bytes(v));
    }
    return s.total;
  }

  void finish(Var v) {
    Sum s = std::move(sum_of(v));
    for (std::size_t i = 0; i < s.parts.size(); ++i) {
      Vec<const Part*> alike;
      const Part& first = s.parts[i];
      if (!first.a) continue;  // has been taken with an earlier one
      for (std::size_t k = i; k < s.parts.size(); ++k)
        if (s.parts[k].a && s.parts[k].callee == first.callee && s.parts[k].sum == first.sum)
          alike.push_back(&s.parts[k]);
      add_parts(v, s, alike);
      for (const Part* p : alike) const_cast<Part*>(p)->a = {};
    }
    if (!s.total) total_zero(v, s);
    set(v, std::move(s.total));
  }
  void total_zero(Var v, Sum& s) {
    s.total = allocate(bytes(v), "a sum");
    std::memset(s.total->data, 0, bytes(v));
  }

  void add_parts(Var v, Sum& s, const Vec<const Part*>& parts) {
    const DType d = g_.aval(v).dtype;
    const RowSum& of = parts[0]->sum;
    std::int64_t rows = 0;
    for (const Part* p : parts) rows += p->rows;
    if (of.b < 0) {  // arrays, one a row
      if (!s.total) total_zero(v, s);
      for (const Part* p : parts)
        for (std::int64_t r = 0; r < p->rows; ++r)
          call_list::add_elements(
              d, s.total->data,
              static_cast<const char*>(p->a->data) + static_cast<std::size_t>(r) * bytes(v),
              bytes(v));
      return;
    }
    const std::int64_t depth = rows * of.depth;
    const BufferRef a = joined(parts, &Part::a, depth * of.m, d),
                    b = joined(parts, &Part::b, depth * of.n, d);
    MatmulSpec spec;
    spec.a_dtype = spec.b_dtype = spec.accumulate = spec.result = d;
    spec.m = of.m, spec.n = of.n, spec.k = depth;
    spec.a_row = 1, spec.a_column = of.m, spec.b_row = of.n, spec.b_column = 1;
    spec.any_depth = true;
    BufferRef product = allocate(bytes(v), "a sum");
    cpu::make_matmul(spec, false)->run(a->data, b->data, product->data);
    if (s.total) call_list::add_elements(d, s.total->data, product->data, bytes(v));
    else s.total = std::move(product);
  }
  BufferRef joined(const Vec<const Part*>& parts, BufferRef Part::* of, std::int64_t elements,
                   DType d) const {
    if (parts.size() == 1) return parts[0]->*of;
    BufferRef all = allocate(elements * size_of(d), "rows of a sum");
    char* to = static_cast<char*>(all->data);
    for (const Part* p : parts) {
      const BufferRef& b = p->*of;
      if (b->bytes) std::memcpy(to, b->data, b->bytes);
      to += b->bytes;
    }
    return all;
  }

  void segment(const Step& s) {
    Vec<BufferRef> in;
    for (Var v : s.inputs) in.push_back(whole(v));
    Vec<BufferRef> out = run_graph(*s.segment, in, true);
    for (std::size_t i = 0; i < out.size(); ++i) set(s.outputs[i], std::move(out[i]));
  }

  struct Kept {
    const call_list::Callee* callee;
    Vec<const void*> shared;
    Vec<BufferRef> held;
    Program::Packed packed;
  };

  const CallList& list_;
  const GraphBody& g_;
  RecycledVec<Value> values_;
  Vec<std::int32_t> sums_;  ///< per Var: its sum in open_; −1: none
  Vec<Sum> open_;
  Vec<Kept> packed_;
};

Vec<BufferRef> CallList::run(std::span<const BufferRef> inputs) {
  const Span span("run", "run calls");
  return Run(*this, inputs).run();
}

void CallList::report(Report& report, int depth) const {
  ReportStep head;
  head.depth = depth;
  head.title = formatted("calls: {} steps", steps_.size());
  report.push_back(std::move(head));
  Vec<const call_list::Callee*> shown;  // how a function runs is told once
  for (const Step& s : steps_) {
    ReportStep step;
    step.depth = depth + 1;
    if (s.kind == Step::Kind::segment) {
      step.title = formatted("a Graph of {} equation{}", s.segment->equations.size(),
                             s.segment->equations.size() == 1 ? "" : "s");
      step.nest = to_text(*s.segment) + "\n";
    } else {
      const Equation& e = graph_.equations[s.equation];
      step.name = name_of(e.op);
      step.how = "call";
      step.title = s.kind == Step::Kind::rows || s.kind == Step::Kind::rows_add
                       ? formatted("{} {}", step.name, graph_.aval(e.outputs[0]).str())
                       : describe(e.op, e.params);
      if (e.where.file) step.lines.push_back(e.where);
    }
    report.push_back(std::move(step));
    const call_list::Callee* callee = s.callee.get();
    if (!callee || std::find(shown.begin(), shown.end(), callee) != shown.end()) continue;
    shown.push_back(callee);
    if (const Executable* program = callee->program->program()) program->report(report, depth + 2);
  }
}

// Each value lives from the step that makes it to the last that reads it.
Memory CallList::memory() const { return interpreted_memory(graph_); }

}  // namespace vt::detail
