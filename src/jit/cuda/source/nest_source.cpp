// From a mapped loop nest to a CUDA kernel: thread groups, stages and reductions.
#include "nest_source.hpp"

#include <algorithm>
#include <limits>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "element_source.hpp"
#include "nest_writer.hpp"

namespace vt::detail::cuda {

namespace nest_reductions {

constexpr RuleTable<const char*> functors = rule_table<const char*>({
    {Op::reduce_sum, "vt_sum"},
    {Op::reduce_prod, "vt_product"},
    {Op::reduce_max, "vt_maximum"},
    {Op::reduce_min, "vt_minimum"},
    {Op::reduce_any, "vt_any"},
    {Op::reduce_all, "vt_all"},
});
static_assert(RuleMissingFor<first_reduction_without_rule(functors)>::ok);
const char* functor(Op op) { return functors[op]; }

std::string identity(Op op, DType d) {
  const Neutral neutral = op == Op::argmax   ? Neutral::least
                          : op == Op::argmin ? Neutral::greatest
                                             : reduction_facts[op].neutral;
  const bool least = neutral == Neutral::least;
  if (is_bool(d)) return neutral == Neutral::zero || least ? "false" : "true";
  if (neutral == Neutral::zero) return number(d, 0);
  if (neutral == Neutral::one) return number(d, 1);
  if (is_float(d))
    return number(d, least ? -std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::infinity());
  const char* type = register_type(d);
  const int bits = static_cast<int>(size_of(d)) * 8;
  if (is_unsigned(d)) return least ? formatted("({})0", type) : formatted("({})~0ull", type);
  return least ? formatted("({})(1ull << {})", type, bits - 1)
               : formatted("({})((1ull << {}) - 1ull)", type, bits - 1);
}

constexpr std::int64_t sum_block = 128;  // elements that one thread adds up one after the other

}  // namespace nest_reductions

std::string NestWriter::kernel(const std::string& name) {
  head(name, {}, {});
  prepare_local_arrays();
  const bool cooperates = mapping_.thread_group > 1;
  const bool columns = mapping_.columns > 1;
  if (columns) line(formatted("const int member = threadIdx.x / {};", mapping_.columns));
  else if (cooperates)
    line(formatted("const int member = threadIdx.x % {};", mapping_.thread_group));
  std::string total = "1";
  for (int l : mapping_.shared) total += " * (idx)" + extent(l);
  line("const idx groups = " + total + ";");
  if (mapping_.vector > 1 || mapping_.tile_loop >= 0) {
    if (mapping_.tile_loop >= 0) tiles();
    else neighbours();
    text_ += "}\n";
    return std::move(text_);
  }
  if (columns) {
    // All threads of a block go through the same iterations, the last of them perhaps without a
    // column of their own.
    open(formatted(
        "for (idx first = (idx)blockIdx.x * {0}; first < groups; first += (idx)gridDim.x * {0})",
        mapping_.columns));
    line(formatted(
        "const idx column = first + threadIdx.x % {}, group = vt_min<idx>(column, groups - 1);",
        mapping_.columns));
  } else {
    const std::string own =
        mapping_.thread_group == mapping_.block
            ? ""
            : formatted(" * {} + threadIdx.x{}", mapping_.thread_groups_in_block(),
                        cooperates ? " / 32" : "");
    open(formatted("for (idx group = (idx)blockIdx.x{}; group < groups; group += (idx)gridDim.x{})",
                   own,
                   mapping_.thread_group == mapping_.block
                       ? ""
                       : formatted(" * {}", mapping_.thread_groups_in_block())));
  }
  decompose("group", mapping_.shared);
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

void NestWriter::stage(int k) {
  const StageParts p = parts_of(k);
  Vec<int> both = p.body.needed;
  both.append(p.after.needed.begin(), p.after.needed.end());
  insertion_sort(both);
  const bool cooperates = mapping_.thread_group > 1;
  // What only the thread that stores a result needs is read by it alone: the result may be written
  // over it.
  const Vec<int>& wanted = cooperates ? p.body.needed : both;
  hoist(wanted);
  const Vec<char> before = known_;
  if (p.reductions.empty()) {
    // Updates go in the loops' order: a thread group of one thread.
    SmallVec<int, 6> all = nest_.stages[k].loops;
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](int l) {
                               return std::find(mapping_.shared.begin(), mapping_.shared.end(),
                                                l) != mapping_.shared.end();
                             }),
              all.end());
    const bool loops = !all.empty();
    if (loops)
      open(formatted("for (idx t{0} = {1}; t{0} < {2}; t{0} += {3})", k,
                     cooperates ? "member" : "0", iterations(all), mapping_.thread_group));
    else if (cooperates) open("if (member == 0)");
    decompose(formatted("t{}", k), all);
    write_all(p.body.needed);
    store_all(p.body.stores);
    if (loops || cooperates) close();
    leave(all);
    known_ = before;
    return;
  }
  if (p.kept.empty()) {
    reduce(k, p, mapping_.thread_group, cooperates ? "member" : "0");
    return;
  }
  // Kept loops of the stage's own: threads take results each, or the thread group takes one after
  // the other.
  const bool alone = !cooperates || p.folds || p.running || per_thread(p);
  open(formatted("for (idx k{0} = {1}; k{0} < {2}; k{0} += {3})", k,
                 alone && cooperates ? "member" : "0", iterations(p.kept),
                 alone ? mapping_.thread_group : 1));
  decompose(formatted("k{}", k), p.kept);
  hoist(alone ? both : wanted);
  reduce(k, p, alone ? 1 : mapping_.thread_group, alone ? "0" : "member");
  close();
  leave(p.kept);
  known_ = before;
}

bool NestWriter::per_thread(const StageParts& p) const {
  double results = 1, elements = 1;
  for (int l : p.kept) results *= static_cast<double>(loop(l).extent);
  for (int l : p.reduced) elements *= static_cast<double>(loop(l).extent);
  return results >= mapping_.thread_group / 2.0 || elements <= 8;
}

void NestWriter::reduce(int k, const StageParts& p, int thread_group, const std::string& member) {
  using namespace nest_reductions;
  const bool in_order = p.folds || (p.running && thread_group == 1);
  // A fold goes iteration by iteration: one thread of the thread group does all of it, as its
  // results may be written over what it reads.
  const bool again = p.folds && thread_group > 1;
  for (int r : p.reductions) {
    const NestReduction& reduction = nest_.reductions[r];
    if (reduction.position >= 0) {
      const DType d = value(reduction.value).dtype;
      line(formatted("vt_best<{0}, {1}> r{2} = {{{3}, ({1})-1}};", register_type(d),
                     register_type(reduction.dtype), r, identity(reduction.op, d)));
    } else {
      if (reduction.op == Op::reduce) write_all(needed_values(nest_, {reduction.init}));
      const std::string init = reduction.op == Op::reduce ? name(reduction.init)
                                                          : identity(reduction.op, reduction.dtype);
      line(formatted("{} r{} = {};", register_type(reduction.dtype), r, init));
    }
  }
  if (again) open("if (member == 0)");
  const Vec<char> before = known_;
  const bool chunks = p.running && !in_order;
  const std::string n = iterations(p.reduced);
  const bool loops = !p.reduced.empty();
  bool blocks =
      loops && !p.running && !p.folds && iterations_of(nest_, p.reduced) > sum_block * thread_group;
  for (int r : p.reductions) {
    const NestReduction& reduction = nest_.reductions[r];
    blocks = blocks && reduction.position < 0;
  }
  if (chunks) {
    // All threads of the thread group go through the same number of iterations, the last of them
    // perhaps without an element.
    line(formatted("const idx n{} = {};", k, n));
    open(formatted("for (idx c{0} = 0; c{0} < n{0}; c{0} += {1})", k, thread_group));
    line(formatted("const bool inside = c{0} + {1} < n{0};", k, member));
    line(formatted("const idx t{0} = inside ? c{0} + {1} : n{0} - 1;", k, member));
  } else if (blocks) {
    // Long sums go in blocks, for their accuracy.
    for (int r : p.reductions)
      line(formatted("{0} s{1} = r{1};", register_type(nest_.reductions[r].dtype), r));
    open(formatted("for (idx c{0} = {1}; c{0} < {2}; c{0} += {3})", k, member, n,
                   sum_block * thread_group));
    for (int r : p.reductions)
      line(
          formatted("r{0} = {1};", r, identity(nest_.reductions[r].op, nest_.reductions[r].dtype)));
    line("#pragma unroll 4");
    open(formatted("for (idx t{0} = c{0}; t{0} < vt_min<idx>({1}, c{0} + {2}); t{0} += {3})", k, n,
                   sum_block * thread_group, thread_group));
  } else if (loops) {
    if (!again && !p.running && p.body.stores.empty()) line("#pragma unroll 4");
    open(formatted("for (idx t{0} = {1}; t{0} < {2}; t{0} += {3})", k, again ? "0" : member, n,
                   again ? 1 : thread_group));
  }
  decompose(formatted("t{}", k), p.reduced);
  accumulate(p, thread_group, chunks);
  if (!p.body.stores.empty()) {
    if (chunks) open("if (inside)");
    store_all(p.body.stores);
    if (chunks) close();
  }
  if (chunks || loops) close();
  if (blocks) {
    for (int r : p.reductions)
      line(formatted("s{0} = {1}::of(s{0}, r{0});", r, functor(nest_.reductions[r].op)));
    close();
    for (int r : p.reductions) line(formatted("r{0} = s{0};", r));
  }
  leave(p.reduced);
  known_ = before;
  if (again) {
    close();
    for (int r : p.reductions) line(formatted("r{0} = vt_share<{1}>(r{0});", r, thread_group));
  }
  const std::string who = mapping_.columns > 1
                              ? formatted("_columns<{}, {}", mapping_.columns, thread_group)
                              : formatted("<{}", thread_group);
  for (int r : p.reductions) {
    const NestReduction& reduction = nest_.reductions[r];
    if (reduction.position >= 0) {
      bind_result(r, formatted("vt_reduce_best{}, {}>(r{}).at", who,
                               reduction.op == Op::argmax ? "true" : "false", r));
    } else if (reduction.op == Op::reduce || reduction.running) {
      bind_result(r, formatted("r{}", r));
    } else {
      bind_result(r, formatted("vt_reduce{}, {}>(r{})", who, functor(reduction.op), r));
    }
  }
  const int stages_done = stages_done_;
  stages_done_ = k + 1;
  if (!p.after.stores.empty()) {
    if (thread_group > 1 && writes_over_operands()) synchronise();  // the others have read it
    if (thread_group > 1)
      open(mapping_.columns > 1 ? "if (member == 0 && column < groups)" : "if (member == 0)");
    const Vec<char> outside = known_;
    write_all(p.after.needed);
    store_all(p.after.stores);
    if (thread_group > 1) {
      close();
      known_ = outside;
    }
  }
  stages_done_ = stages_done;
}

void NestWriter::accumulate(const StageParts& p, int thread_group, bool chunks) {
  for (int r : p.reductions) {
    const NestReduction& reduction = nest_.reductions[r];
    if (reduction.op == Op::reduce) bind(reduction.state, formatted("r{}", r));
  }
  // A running result follows what it is made of in the order of the values' numbers, and comes
  // before what is made of it.
  Vec<int> left = p.reductions;
  for (int v : p.body.needed) {
    if (value(v).kind == Kind::reduced || known_[v]) continue;
    if (value(v).kind != Kind::state) {
      write(v);
      continue;
    }
    const auto at = std::find(left.begin(), left.end(), value(v).argument);
    if (at == left.end()) continue;  // both what it was before and what it is are used
    left.erase(at);
    add_iteration(value(v).argument, thread_group, chunks);
  }
  for (int r : left)
    if (nest_.reductions[r].op != Op::reduce) add_iteration(r, thread_group, chunks);
  // All states change at once.
  Vec<int> folds;
  for (int r : p.reductions)
    if (nest_.reductions[r].op == Op::reduce) folds.push_back(r);
  for (int r : folds) line(formatted("r{} = {};", r, name(nest_.reductions[r].value)));
}

void NestWriter::add_iteration(int r, int thread_group, bool chunks) {
  using namespace nest_reductions;
  const NestReduction& reduction = nest_.reductions[r];
  const std::string x = name(reduction.value), own = formatted("r{}", r);
  if (reduction.position >= 0) {
    const bool greatest = reduction.op == Op::argmax;
    line(formatted(
        "if (vt_wins<{0}>({1}, ({2}){3}, {4}.x, {4}.at)) {{ {4}.x = {1}; {4}.at = ({2}){3}; }}",
        greatest ? "true" : "false", x, register_type(reduction.dtype), name(reduction.position),
        own));
    return;
  }
  const DType d = reduction.dtype;
  const std::string given =
      chunks ? formatted("(inside ? ({}){} : {})", register_type(d), x, identity(reduction.op, d))
             : formatted("({}){}", register_type(d), x);
  if (reduction.running && chunks) {
    bind(reduction.state, formatted("vt_running<{}, {}, {}>({}, {})", thread_group,
                                    functor(reduction.op), register_type(d), given, own));
    return;
  }
  if (reduction.before >= 0) bind(reduction.before, own);
  line(formatted("{0} = {1}::of({0}, {2});", own, functor(reduction.op), given));
  if (reduction.running) bind(reduction.state, own);
}

std::string nest_source(const Nest& nest, const Mapping& mapping, const std::string& name) {
  return NestWriter(nest, mapping).kernel(name);
}

}  // namespace vt::detail::cuda
