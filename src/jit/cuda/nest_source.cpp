// From a loop nest to a CUDA kernel.
#include "nest_source.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "../schedule.hpp"
#include "element_source.hpp"

namespace vt::detail::cuda {

namespace nest_text {

using Kind = NestValue::Kind;

const char* functor(ReduceOp op) {
  switch (op) {
    case ReduceOp::product: return "vt_product";
    case ReduceOp::maximum: return "vt_maximum";
    case ReduceOp::minimum: return "vt_minimum";
    case ReduceOp::any: return "vt_any";
    case ReduceOp::all: return "vt_all";
    default: return "vt_sum";
  }
}

std::string identity(ReduceOp op, DType d) {
  const bool least = op == ReduceOp::maximum || op == ReduceOp::argmax;
  if (op == ReduceOp::all) return "true";
  if (op == ReduceOp::any) return "false";
  if (op == ReduceOp::product) return number(d, 1);
  if (op == ReduceOp::sum) return number(d, 0);
  if (is_float(d)) return number(d, least ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
  if (is_bool(d)) return least ? "false" : "true";
  const char* type = register_type(d);
  const int bits = static_cast<int>(size_of(d)) * 8;
  if (is_unsigned(d)) return least ? worded("({})0", type) : worded("({})~0ull", type);
  return least ? worded("({})(1ull << {})", type, bits - 1) : worded("({})((1ull << {}) - 1ull)", type, bits - 1);
}

constexpr std::int64_t sum_block = 128;  // elements that one thread adds up one after the other

class Writer {
 public:
  Writer(const Nest& nest, const Mapping& mapping) : nest_(nest), mapping_(mapping), dependences_(loop_dependences(nest)) {
    known_.assign(nest.values.size(), 0);
    ready_stage_.assign(nest.values.size(), 0);
    in_round_.assign(nest.values.size(), 0);
    for (std::size_t v = 0; v < nest.values.size(); ++v) {
      const NestValue& value = nest.values[v];
      const auto use = [&](int o) {
        ready_stage_[v] = std::max(ready_stage_[v], ready_stage_[static_cast<std::size_t>(o)]);
        if (in_round_[static_cast<std::size_t>(o)]) in_round_[v] = 1;
      };
      for (int o : value.operands) use(o);
      if (value.mask >= 0) use(value.mask);
      if (value.index >= 0) nest.indices.each_value(value.index, use);
      if (value.kind == Kind::state) in_round_[v] = 1;
      if (value.kind == Kind::reduced) ready_stage_[v] = nest.reductions[static_cast<std::size_t>(value.argument)].stage + 1;
    }
  }

  std::string kernel(const std::string& name) {
    head(name, {}, {});
    prepare_local_arrays();
    const bool cooperates = mapping_.team > 1;
    if (cooperates) line(worded("const int lane = threadIdx.x % {};", mapping_.team));
    std::string total = "1";
    for (int l : mapping_.shared) total += " * (idx)" + extent(l);
    line("const idx teams = " + total + ";");
    const std::string own =
        mapping_.team == mapping_.block ? "" : worded(" * {} + threadIdx.x{}", mapping_.teams_in_block(), cooperates ? " / 32" : "");
    open(worded("for (idx team = (idx)blockIdx.x{}; team < teams; team += (idx)gridDim.x{})", own,
                mapping_.team == mapping_.block ? "" : worded(" * {}", mapping_.teams_in_block())));
    decompose("team", mapping_.shared);
    for (std::size_t k = 0; k < nest_.stages.size(); ++k) {
      if (k) synchronise();
      stage(static_cast<int>(k));
      stages_done_ = static_cast<int>(k) + 1;
    }
    if (nest_.stages.size() > 1) synchronise();
    close();
    text_ += "}\n";
    return std::move(text_);
  }

  // See sorted_updates_source.
  std::string updates(const SortedUpdates& u, bool join, const std::string& name) {
    const NestStore& s = nest_.stores[0];
    const DType d = nest_.buffers[static_cast<std::size_t>(s.buffer)].dtype;
    const char *key = memory_type(u.key), *type = register_type(d);
    head(name,
         worded("const {0}* __restrict__ keys, const {1}* __restrict__ places, {2}* __restrict__ parts", key, memory_type(u.place), memory_type(d)),
         "n");
    line(worded("const {0} none = ({0})~0ull;", key));
    line(worded("const idx window = {}, piece = {};", rounds(u.plan.window_loops), SortedUpdates::piece));
    line(join ? "const idx all = ((idx)n - 1) / piece * window;" : "const idx all = (idx)n * window;");
    open(worded("for (idx t = (idx)blockIdx.x * {0} + threadIdx.x; t < all; t += (idx)gridDim.x * {0})", mapping_.block));
    line(join ? "const idx i = (t / window + 1) * piece, w = t % window;" : "const idx i = t / window, w = t % window;");
    line(worded("const {} own = VT_LOAD(keys, i);", key));
    line("if (own == none) continue;");
    decompose("w", u.plan.window_loops);
    const auto combined = [&](const std::string& so_far, const std::string& x, DType of) {
      const Operand operands[] = {{so_far, d}, {x, of}};
      return element(s.update, d, {}, operands);
    };
    Vec<int> roots;
    const auto round_at = [&](const char* j) {
      line(worded("const idx r = (idx)VT_LOAD(places, {});", j));
      decompose("r", u.plan.key_loops);
      write_all(needed_values(nest_, roots));
    };
    if (s.update == Op::select) {
      line("if (i + 1 < (idx)n && VT_LOAD(keys, i + 1) == own) continue;  // the last one stays");
      add_roots(nest_, s, roots);
      round_at("i");
      line("VT_STORE(" + access(s.buffer, s.index) + ", " + to_memory(d, this->name(s.value)) + ");");
    } else if (join) {
      line("// The first of the pieces that go on with an element takes those after it.");
      line("if (VT_LOAD(keys, i - 1) != own || (i > piece && VT_LOAD(keys, i - piece - 1) == own)) continue;");
      nest_.indices.each_value(s.index, [&](int v) { roots.push_back(v); });
      round_at("i");
      line("const idx at = " + index(s.index) + ";");
      line(worded("{} sum = {};", type, from_memory(d, worded("VT_LOAD(b{}, at)", s.buffer))));
      open("for (idx j = i; j < (idx)n && VT_LOAD(keys, j) == own; j += piece)");
      line(worded("const {} part = {};", type, from_memory(d, "VT_LOAD(parts, j / piece * window + w)")));
      line("sum = " + combined("sum", "part", d) + ";");
      close();
      line(worded("VT_STORE(b{}, at, {});", s.buffer, to_memory(d, "sum")));
    } else {
      line("const bool first = i == 0 || VT_LOAD(keys, i - 1) != own;");
      line("if (!first && i % piece != 0) continue;");
      line("const idx end = vt_min<idx>((idx)n, (i / piece + 1) * piece);");
      line(worded("{} sum = 0;", type));
      line("idx at = 0;");
      open("for (idx j = i; j < end && VT_LOAD(keys, j) == own; ++j)");
      add_roots(nest_, s, roots);
      round_at("j");
      line("at = " + index(s.index) + ";");
      line(worded("if (j == i && first) sum = {};", from_memory(d, worded("VT_LOAD(b{}, at)", s.buffer))));
      line(worded("sum = j == i && !first ? ({}){} : {};", type, this->name(s.value), combined("sum", this->name(s.value), value(s.value).dtype)));
      close();
      line(worded("if (first) VT_STORE(b{}, at, {});", s.buffer, to_memory(d, "sum")));
      line(worded("else VT_STORE(parts, i / piece * window + w, {});", to_memory(d, "sum")));
    }
    close();
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  // The kernel's parameters: buffers, `pointers`, extents, arguments and `number`.
  void head(const std::string& name, const std::string& pointers, const std::string& number) {
    text_ += worded("typedef {} idx;\n", mapping_.wide_indices ? "i64" : "i32");
    text_ += worded("extern \"C\" __global__ void __launch_bounds__({}) {}(", mapping_.block, name);
    bool first = true;
    const auto parameter = [&](const std::string& p) {
      text_ += (first ? "" : ", ") + p;
      first = false;
    };
    for (std::size_t b = 0; b < nest_.buffers.size(); ++b) {
      const NestBuffer& buffer = nest_.buffers[b];
      if (buffer.local) continue;
      const bool alone = count_if(nest_.buffers, [&](const NestBuffer& o) { return o.alias == buffer.alias; }) == 1;
      parameter(worded("{}{}*{} b{}", buffer.written ? "" : "const ", memory_type(buffer.dtype), alone ? " __restrict__" : "", b));
    }
    if (!pointers.empty()) parameter(pointers);
    for (std::size_t l = 0; l < nest_.loops.size(); ++l)
      if (nest_.loops[l].runtime) parameter(worded("long long e{}", l));
    for (int a = 0; a < nest_.arguments; ++a) parameter(worded("long long a{}", a));
    if (!number.empty()) parameter("long long " + number);
    text_ += ") {\n";
    indent_ = 1;
  }
  const NestLoop& loop(int l) const { return nest_.loops[static_cast<std::size_t>(l)]; }
  const NestValue& value(int v) const { return nest_.values[static_cast<std::size_t>(v)]; }
  void line(const std::string& s) { text_.append(static_cast<std::size_t>(indent_) * 2, ' ').append(s) += '\n'; }
  void open(const std::string& s) {
    line(s + " {");
    ++indent_;
  }
  void close() {
    --indent_;
    line("}");
  }
  bool writes_over_operands() const {
    return any_of(nest_.buffers, [&](const NestBuffer& b) {
      return b.written && count_if(nest_.buffers, [&](const NestBuffer& o) { return o.alias == b.alias; }) > 1;
    });
  }
  void synchronise() {
    if (mapping_.team == 1) return;
    line(mapping_.team == mapping_.block ? "__syncthreads();" : "__syncwarp();");
  }

  void prepare_local_arrays() {
    std::int64_t offset = 0;
    if (mapping_.local_bytes > 0) line("VT_DYNAMIC_SHARED(vt_rows);");
    for (std::size_t b = 0; b < nest_.buffers.size(); ++b) {
      const NestBuffer& buffer = nest_.buffers[b];
      if (!buffer.local) continue;
      const char* type = memory_type(buffer.dtype);
      if (mapping_.team == 1) {
        line(worded("{} b{}[{}];", type, b, buffer.local));
        continue;
      }
      const std::string own =
          mapping_.team == mapping_.block ? "" : worded(" + threadIdx.x / 32 * {}", mapping_.local_bytes / mapping_.teams_in_block());
      line(worded("{0}* const b{1} = ({0}*)(vt_rows + {2}{3});", type, b, offset, own));
      offset += (buffer.local * static_cast<std::int64_t>(size_of(buffer.dtype)) + 15) / 16 * 16;
    }
  }

  std::string extent(int l) const {
    const NestLoop& s = loop(l);
    if (s.block_of < 0) return s.runtime ? worded("e{}", l) : worded("{}", s.extent);
    const std::string total = s.runtime ? worded("(idx)e{}", l) : worded("(idx){}", s.total);
    return worded("vt_min((idx){0}, {1} - (idx)d{2} * {0})", s.block, total, s.block_of);
  }
  // Loop variables from a number of all their rounds, the last loop the fastest.
  void decompose(const std::string& of, const SmallVec<int, 6>& loops) {
    if (loops.empty()) return;
    std::string rest = of;
    for (std::size_t i = loops.size(); i-- > 0;) {
      const int l = loops[i];
      if (i == 0) {
        line(worded("const idx d{} = {};", l, rest));
      } else {
        const std::string n = extent(l), next = worded("{}_{}", of, i);
        line(worded("const idx d{} = {} % (idx)({}), {} = {} / (idx)({});", l, rest, n, next, rest, n));
        rest = next;
      }
    }
    for (int l : loops) open_ |= std::uint64_t{1} << l;
  }
  void leave(const SmallVec<int, 6>& loops) {
    for (int l : loops) open_ &= ~(std::uint64_t{1} << l);
  }

  // --- values

  std::string name(int v) const {
    const NestValue& x = value(v);
    if (x.kind == Kind::literal) return literal(x.literal);
    return worded("v{}", v);
  }
  std::string index(IndexId e) const {
    const IndexExpr& expr = nest_.indices[e];
    std::string text;
    for (const IndexTerm& t : expr.terms) {
      const IndexAtom& a = nest_.indices.atom(t.atom);
      std::string factor;
      switch (a.kind) {
        case IndexAtom::Kind::loop: factor = worded("d{}", a.id); break;
        case IndexAtom::Kind::value: factor = "(idx)" + name(a.id); break;
        default: {
          const bool whole = nest_.indices.bounds(a.of).low >= 0, quotient = a.kind == IndexAtom::Kind::quotient;
          if (whole) factor = worded("({}) {} (idx){}", index(a.of), quotient ? "/" : "%", a.by);
          else factor = worded("vt_floor_{}<idx>({}, {})", quotient ? "div" : "mod", index(a.of), a.by);
        }
      }
      if (t.factor != 1) factor = worded("(idx){} * ({})", t.factor, factor);
      text += (text.empty() ? "" : " + ") + (t.factor == 1 && a.kind != IndexAtom::Kind::loop ? "(" + factor + ")" : factor);
    }
    if (expr.constant != 0 || text.empty()) text += (text.empty() ? "(idx)" : " + (idx)") + worded("{}", expr.constant);
    return text;
  }
  std::string access(int buffer, IndexId at) const { return worded("b{}, {}", buffer, index(at)); }

  std::string expression(int id) const {
    const NestValue& v = value(id);
    switch (v.kind) {
      case Kind::argument: {
        const std::string bits = worded("a{}", v.argument);
        if (v.dtype == DType::f64) return "__longlong_as_double(" + bits + ")";
        if (is_float(v.dtype)) return "__int_as_float((i32)" + bits + ")";
        return is_bool(v.dtype) ? "((" + bits + " & 1) != 0)" : worded("({}){}", register_type(v.dtype), bits);
      }
      case Kind::index: return converted({worded("((i64)({}))", index(v.index)), DType::i64}, v.dtype);
      case Kind::in_range: return worded("({0} >= {1} && {0} < {2})", "(" + index(v.index) + ")", v.low, v.high);
      case Kind::load: {
        const DType d = nest_.buffers[static_cast<std::size_t>(v.buffer)].dtype;
        const std::string read = from_memory(d, "VT_LOAD(" + access(v.buffer, v.index) + ")");
        if (v.mask < 0) return read;
        return worded("({} ? {} : {})", name(v.mask), read, is_bool(d) ? std::string("false") : number(d, 0));
      }
      case Kind::op: {
        SmallVec<Operand, 3> operands;
        for (int o : v.operands) operands.push_back({name(o), value(o).dtype});
        return element(v.op, v.dtype, v.params, {operands.data(), operands.size()});
      }
      default: throw Error(ErrorKind::backend, "vt: internal fault: a reduction's result is used before it is known");
    }
  }

  void write(int v) {
    if (known_[static_cast<std::size_t>(v)] || value(v).kind == Kind::literal) return;
    known_[static_cast<std::size_t>(v)] = 1;
    line(worded("const {} v{} = {};", register_type(value(v).dtype), v, expression(v)));
  }
  // What no loop changes that is still to be opened.
  void hoist(const Vec<int>& values) {
    for (int v : values) {
      const auto k = static_cast<std::size_t>(v);
      if ((dependences_[k] & ~open_) != 0 || in_round_[k] || ready_stage_[k] > stages_done_) continue;
      if (value(v).kind == Kind::reduced) continue;
      write(v);
    }
  }
  void write_all(const Vec<int>& values) {
    for (int v : values)
      if (value(v).kind != Kind::reduced && value(v).kind != Kind::state) write(v);
  }
  void bind(int v, const std::string& text) {
    known_[static_cast<std::size_t>(v)] = 1;
    line(worded("const {} v{} = {};", register_type(value(v).dtype), v, text));
  }
  void bind_result(int reduction, const std::string& text) {
    for (std::size_t v = 0; v < nest_.values.size(); ++v)
      if (nest_.values[v].kind == Kind::reduced && nest_.values[v].argument == reduction) bind(static_cast<int>(v), text);
  }

  void store(const NestStore& s) {
    const DType d = nest_.buffers[static_cast<std::size_t>(s.buffer)].dtype;
    const Operand x{name(s.value), value(s.value).dtype};
    const std::string target = access(s.buffer, s.index);
    if (s.update == Op::input || s.update == Op::select) {
      line((s.mask >= 0 ? "if (" + name(s.mask) + ") " : std::string()) + "VT_STORE(" + target + ", " + to_memory(d, x.text) + ");");
      return;
    }
    if (mapping_.updates == UpdatePlan::Way::atomic) {
      // Sums of signed integers are those of unsigned ones.
      const char* call = s.update == Op::add ? "atomicAdd" : s.update == Op::min ? "atomicMin" : "atomicMax";
      const char* type = s.update == Op::add ? (size_of(d) == 8 ? "u64" : "u32") : register_type(d);
      line(worded("{0}{1}(({2}*)b{3} + ({4}), ({2}){5});", s.mask >= 0 ? "if (" + name(s.mask) + ") " : "", call, type, s.buffer, index(s.index),
                  x.text));
      return;
    }
    open(s.mask >= 0 ? "if (" + name(s.mask) + ")" : "");
    line(worded("const idx at = {};", index(s.index)));
    line(worded("const {} before = {};", register_type(d), from_memory(d, worded("VT_LOAD(b{}, at)", s.buffer))));
    const Operand operands[] = {{"before", d}, x};
    line(worded("const {} after = {};", register_type(d), element(s.update, d, {}, operands)));
    line(worded("VT_STORE(b{}, at, {});", s.buffer, to_memory(d, "after")));
    close();
  }
  void store_all(const Vec<int>& stores) {
    for (int s : stores) store(nest_.stores[static_cast<std::size_t>(s)]);
  }

  // --- stages

  struct Part {
    Vec<int> stores, needed;
  };
  struct StageParts {
    Vec<int> reductions;
    Part body, after;
    SmallVec<int, 6> kept, reduced;
    bool folds = false, running = false;
  };
  StageParts parts_of(int k) const {
    StageParts p;
    Vec<int> roots, after_roots;
    for (std::size_t r = 0; r < nest_.reductions.size(); ++r) {
      const NestReduction& reduction = nest_.reductions[r];
      if (reduction.stage != k) continue;
      p.reductions.push_back(static_cast<int>(r));
      add_roots(reduction, roots);
      p.folds = p.folds || reduction.op == ReduceOp::fold;
      p.running = p.running || reduction.running;
    }
    for (std::size_t s = 0; s < nest_.stores.size(); ++s) {
      const NestStore& store = nest_.stores[s];
      if (store.stage != k) continue;
      (store.after ? p.after : p.body).stores.push_back(static_cast<int>(s));
      add_roots(nest_, store, store.after ? after_roots : roots);
    }
    p.body.needed = needed_values(nest_, roots);
    p.after.needed = needed_values(nest_, after_roots);
    for (int l : nest_.stages[static_cast<std::size_t>(k)].loops) {
      if (std::find(mapping_.shared.begin(), mapping_.shared.end(), l) != mapping_.shared.end()) continue;
      (loop(l).reduce ? p.reduced : p.kept).push_back(l);
    }
    return p;
  }

  std::string rounds(const SmallVec<int, 6>& loops) const {
    std::string text = "(idx)1";
    for (int l : loops) text += " * (idx)" + extent(l);
    return text;
  }

  void stage(int k) {
    const StageParts p = parts_of(k);
    Vec<int> both = p.body.needed;
    both.append(p.after.needed.begin(), p.after.needed.end());
    insertion_sort(both);
    const bool cooperates = mapping_.team > 1;
    // What only the thread that stores a result needs is read by it alone: the result may be written over it.
    const Vec<int>& wanted = cooperates ? p.body.needed : both;
    hoist(wanted);
    const Vec<char> before = known_;
    if (p.reductions.empty()) {
      // Updates go in the loops' order: a team of one thread.
      SmallVec<int, 6> all = nest_.stages[static_cast<std::size_t>(k)].loops;
      all.erase(std::remove_if(all.begin(), all.end(),
                               [&](int l) { return std::find(mapping_.shared.begin(), mapping_.shared.end(), l) != mapping_.shared.end(); }),
                all.end());
      const bool loops = !all.empty();
      if (loops) open(worded("for (idx t{0} = {1}; t{0} < {2}; t{0} += {3})", k, cooperates ? "lane" : "0", rounds(all), mapping_.team));
      else if (cooperates) open("if (lane == 0)");
      decompose(worded("t{}", k), all);
      write_all(p.body.needed);
      store_all(p.body.stores);
      if (loops || cooperates) close();
      leave(all);
      known_ = before;
      return;
    }
    if (p.kept.empty()) {
      reduce(k, p, mapping_.team, cooperates ? "lane" : "0");
      return;
    }
    // Kept loops of the stage's own: threads take results each, or the team takes one after the other.
    const bool alone = !cooperates || p.folds || p.running || per_thread(p);
    open(worded("for (idx k{0} = {1}; k{0} < {2}; k{0} += {3})", k, alone && cooperates ? "lane" : "0", rounds(p.kept), alone ? mapping_.team : 1));
    decompose(worded("k{}", k), p.kept);
    hoist(alone ? both : wanted);
    reduce(k, p, alone ? 1 : mapping_.team, alone ? "0" : "lane");
    close();
    leave(p.kept);
    known_ = before;
  }

  // Are there more results than elements for each of them?
  bool per_thread(const StageParts& p) const {
    double results = 1, elements = 1;
    for (int l : p.kept) results *= static_cast<double>(loop(l).extent);
    for (int l : p.reduced) elements *= static_cast<double>(loop(l).extent);
    return results >= mapping_.team / 2.0 || elements <= 8;
  }

  // One result of each of the stage's reductions, by `team` threads of which this is number `lane`.
  void reduce(int k, const StageParts& p, int team, const std::string& lane) {
    const bool in_order = p.folds || (p.running && team == 1);
    // A fold goes round by round: one thread of the team does all of it, as its results may be written over what it reads.
    const bool again = p.folds && team > 1;
    for (int r : p.reductions) {
      const NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(r)];
      if (reduction.position >= 0) {
        const DType d = value(reduction.value).dtype;
        line(worded("vt_best<{0}, {1}> r{2} = {{{3}, ({1})-1}};", register_type(d), register_type(reduction.dtype), r, identity(reduction.op, d)));
      } else {
        if (reduction.op == ReduceOp::fold) write_all(needed_values(nest_, {reduction.init}));
        const std::string init = reduction.op == ReduceOp::fold ? name(reduction.init) : identity(reduction.op, reduction.dtype);
        line(worded("{} r{} = {};", register_type(reduction.dtype), r, init));
      }
    }
    if (again) open("if (lane == 0)");
    const Vec<char> before = known_;
    const bool chunks = p.running && !in_order;
    const std::string n = rounds(p.reduced);
    const bool loops = !p.reduced.empty();
    bool blocks = loops && !p.running && !p.folds && rounds_of(nest_, p.reduced) > sum_block * team;
    for (int r : p.reductions) {
      const NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(r)];
      blocks = blocks && reduction.position < 0;
    }
    if (chunks) {
      // All threads of the team go through the same number of rounds, the last of them perhaps without an element.
      line(worded("const idx n{} = {};", k, n));
      open(worded("for (idx c{0} = 0; c{0} < n{0}; c{0} += {1})", k, team));
      line(worded("const bool inside = c{0} + {1} < n{0};", k, lane));
      line(worded("const idx t{0} = inside ? c{0} + {1} : n{0} - 1;", k, lane));
    } else if (blocks) {
      // Long sums go in blocks, for their accuracy.
      for (int r : p.reductions) line(worded("{0} s{1} = r{1};", register_type(nest_.reductions[static_cast<std::size_t>(r)].dtype), r));
      open(worded("for (idx c{0} = {1}; c{0} < {2}; c{0} += {3})", k, lane, n, sum_block * team));
      for (int r : p.reductions)
        line(worded("r{0} = {1};", r,
                    identity(nest_.reductions[static_cast<std::size_t>(r)].op, nest_.reductions[static_cast<std::size_t>(r)].dtype)));
      line("#pragma unroll 4");
      open(worded("for (idx t{0} = c{0}; t{0} < vt_min<idx>({1}, c{0} + {2}); t{0} += {3})", k, n, sum_block * team, team));
    } else if (loops) {
      if (!again && !p.running && p.body.stores.empty()) line("#pragma unroll 4");
      open(worded("for (idx t{0} = {1}; t{0} < {2}; t{0} += {3})", k, again ? "0" : lane, n, again ? 1 : team));
    }
    decompose(worded("t{}", k), p.reduced);
    accumulate(p, team, chunks);
    if (!p.body.stores.empty()) {
      if (chunks) open("if (inside)");
      store_all(p.body.stores);
      if (chunks) close();
    }
    if (chunks || loops) close();
    if (blocks) {
      for (int r : p.reductions) line(worded("s{0} = {1}::of(s{0}, r{0});", r, functor(nest_.reductions[static_cast<std::size_t>(r)].op)));
      close();
      for (int r : p.reductions) line(worded("r{0} = s{0};", r));
    }
    leave(p.reduced);
    known_ = before;
    if (again) {
      close();
      for (int r : p.reductions) line(worded("r{0} = vt_share<{1}>(r{0});", r, team));
    }
    for (int r : p.reductions) {
      const NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(r)];
      if (reduction.position >= 0) {
        bind_result(r, worded("vt_reduce_best<{}, {}>(r{}).at", team, reduction.op == ReduceOp::argmax ? "true" : "false", r));
      } else if (reduction.op == ReduceOp::fold || reduction.running) {
        bind_result(r, worded("r{}", r));
      } else {
        bind_result(r, worded("vt_reduce<{}, {}>(r{})", team, functor(reduction.op), r));
      }
    }
    const int stages_done = stages_done_;
    stages_done_ = k + 1;
    if (!p.after.stores.empty()) {
      if (team > 1 && writes_over_operands()) synchronise();  // the others have read it
      if (team > 1) open("if (lane == 0)");
      const Vec<char> outside = known_;
      write_all(p.after.needed);
      store_all(p.after.stores);
      if (team > 1) {
        close();
        known_ = outside;
      }
    }
    stages_done_ = stages_done;
  }

  void accumulate(const StageParts& p, int team, bool chunks) {
    for (int r : p.reductions) {
      const NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(r)];
      if (reduction.op == ReduceOp::fold) bind(reduction.state, worded("r{}", r));
    }
    // A running result follows what it is made of in the order of the values' numbers, and comes before what is made of it.
    Vec<int> left = p.reductions;
    for (int v : p.body.needed) {
      if (value(v).kind == Kind::reduced || known_[static_cast<std::size_t>(v)]) continue;
      if (value(v).kind != Kind::state) {
        write(v);
        continue;
      }
      add_round(value(v).argument, team, chunks);
      left.erase(std::find(left.begin(), left.end(), value(v).argument));
    }
    for (int r : left)
      if (nest_.reductions[static_cast<std::size_t>(r)].op != ReduceOp::fold) add_round(r, team, chunks);
    // All states change at once.
    Vec<int> folds;
    for (int r : p.reductions)
      if (nest_.reductions[static_cast<std::size_t>(r)].op == ReduceOp::fold) folds.push_back(r);
    for (int r : folds) line(worded("r{} = {};", r, name(nest_.reductions[static_cast<std::size_t>(r)].value)));
  }
  // One more round of a reduction that is no fold.
  void add_round(int r, int team, bool chunks) {
    const NestReduction& reduction = nest_.reductions[static_cast<std::size_t>(r)];
    const std::string x = name(reduction.value), own = worded("r{}", r);
    if (reduction.position >= 0) {
      const bool greatest = reduction.op == ReduceOp::argmax;
      line(worded("if (vt_wins<{0}>({1}, ({2}){3}, {4}.x, {4}.at)) {{ {4}.x = {1}; {4}.at = ({2}){3}; }}", greatest ? "true" : "false", x,
                  register_type(reduction.dtype), name(reduction.position), own));
      return;
    }
    const DType d = reduction.dtype;
    const std::string given =
        chunks ? worded("(inside ? ({}){} : {})", register_type(d), x, identity(reduction.op, d)) : worded("({}){}", register_type(d), x);
    if (reduction.running && chunks) {
      bind(reduction.state, worded("vt_running<{}, {}, {}>({}, {})", team, functor(reduction.op), register_type(d), given, own));
      return;
    }
    line(worded("{0} = {1}::of({0}, {2});", own, functor(reduction.op), given));
    if (reduction.running) bind(reduction.state, own);
  }

  const Nest& nest_;
  const Mapping& mapping_;
  Vec<std::uint64_t> dependences_;
  Vec<char> known_, in_round_;
  Vec<int> ready_stage_;
  std::uint64_t open_ = 0;
  int stages_done_ = 0, indent_ = 0;
  std::string text_;
};

}  // namespace nest_text

std::string sorted_updates_source(const Nest& nest, const SortedUpdates& updates, bool join, const std::string& name) {
  const Mapping mapping = choose_mapping(nest);
  return nest_text::Writer(nest, mapping).updates(updates, join, name);
}

std::string nest_source(const Nest& nest, const Mapping& mapping, const std::string& name) { return nest_text::Writer(nest, mapping).kernel(name); }

}  // namespace vt::detail::cuda
