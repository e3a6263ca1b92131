// Steps with the code of a loop nest: kernels, and products with or without one on their rows.
#include <algorithm>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "../../../trace/ir/printer.hpp"
#include "../../fusion/epilogue.hpp"
#include "../../nest/cost_model.hpp"
#include "../../report/dump.hpp"
#include "../../services/counters.hpp"
#include "../products/conv.hpp"
#include "../products/matmul.hpp"
#include "compiler.hpp"
#include "program_rows.hpp"
#include "steps.hpp"

namespace vt::detail {

namespace nest_steps {

constexpr std::uint64_t worth_a_range = 4096;

std::uint64_t iterations_of(const Nest& nest, const SmallVec<int, 6>& loops) {
  std::uint64_t n = 1;
  for (int l : loops)
    n *= static_cast<std::uint64_t>(std::max<std::int64_t>(nest.loops[l].extent, 0));
  return n;
}

/// Iterations of the longest stage.
std::uint64_t most_iterations(const Nest& nest) {
  std::uint64_t most = 1;
  for (const NestStage& s : nest.stages) most = std::max(most, iterations_of(nest, s.loops));
  return iterations_of(nest, nest.shared) * most;
}

/// Operations of an iteration; `costs`: by a machine's numbers.
double weight_of(const Nest& nest, const MachineCosts* costs = nullptr) {
  double weight = 1;
  for (const NestValue& v : nest.values) {
    if (v.kind == NestValue::Kind::load) weight += 1;
    if (v.kind == NestValue::Kind::op)
      weight += costs ? op_cost(v.op, v.dtype, *costs) : op_weight(v.op, v.dtype);
  }
  return weight;
}

std::string names_of(const GraphBody& g, const Vec<int>& equations, bool only_work) {
  Vec<int> sorted = equations;
  std::sort(sorted.begin(), sorted.end());
  std::string names;
  for (int e : sorted) {
    const Op op = g.equations[e].op;
    if (only_work && (op == Op::broadcast_in_dim || op == Op::reshape || op == Op::full)) continue;
    names += (names.empty() ? "" : " ") + std::string(name_of(op));
  }
  return names;
}

}  // namespace nest_steps

/// A step with the code of a loop nest: the step itself, or what runs inside of products.
class NestStep : public Step {
 public:
  NestStep(const ProgramPlan& plan, std::size_t number, const char* how) : Step(plan, number, how) {
    const Nest& nest = fused_.nest;
    for (Var v : fused_.buffers) {
      slots_.push_back(v);
      counts_.bytes += bytes_of(v);
    }
    if (!has_nest()) return;
    for (const NestLoop& l : nest.loops)
      if (l.runtime) arguments_.push_back(l.block_of >= 0 ? l.total : l.extent);
    arguments_.append(fused_.arguments.begin(), fused_.arguments.end());
    nest_work_ =
        nest_steps::most_iterations(nest) * static_cast<std::uint64_t>(nest_steps::weight_of(nest));
    if (plan.only) return;
    Counters& c = counters();
    count(c.fused_ops, fused_.fused.size());
    count(c.stages, nest.stages.size());
    for (const NestBuffer& b : nest.buffers) count(c.row_buffers, b.local > 0);
    count(c.parallel_reductions, fused_.partial);
  }

  std::uint64_t vector_work() const override {
    return has_nest() ? nest_work_ / static_cast<std::uint64_t>(fused_.schedule.simd_lanes) : 0;
  }

  void compile(CompileJobs& jobs) override {
    if (has_nest() && !plan_.only)
      jobs.then.push_back([this, hurry = jobs.hurry] { take_code(hurry, false); });
  }

  void finish_code(bool hurry) override {
    if (has_nest() && !plan_.only && !kernel_) take_code(hurry, true);
  }

 protected:
  /// Where an array would begin of which only some rows are in memory.
  struct Elsewhere {
    Var var;
    void* begin;
  };
  void run_nest(const ProgramRun& run, std::int64_t begin, std::int64_t end,
                std::span<const Elsewhere> elsewhere = {}) const {
    if (begin == end) return;  // kernels take it that there is an iteration
    SmallVec<void*, 64> buffers;
    buffers.reserve(slots_.size());
    for (Var v : slots_) buffers.push_back(run.pointers[v]);
    for (const Elsewhere& e : elsewhere)
      for (std::size_t b = 0; b < slots_.size(); ++b)
        if (slots_[b] == e.var) buffers[b] = e.begin;
    if (run.rows < 0 || row_arguments_.empty())
      return kernel_(buffers.data(), arguments_.data(), begin, end);
    Vec<std::int64_t> arguments = arguments_;
    for (const auto& [argument, of_row] : row_arguments_) arguments[argument] = run.rows * of_row;
    kernel_(buffers.data(), arguments.data(), begin, end);
  }

  /// Is there a nest?
  bool has_nest() const { return !slots_.empty(); }
  bool has_row_arguments() const { return !row_arguments_.empty(); }

  // A loop whose extent is a multiple of the number of rows is one over rows, as that is prime and
  // divides nothing else. One over more than rows goes along memory.
  bool cut_nest(const ProgramRows& rows) {
    const bool all_first = all_of(slots_, [&](Var v) { return rows.come_first(v); });
    int argument = 0;
    for (std::size_t l = 0; l < fused_.nest.loops.size(); ++l) {
      const NestLoop& loop = fused_.nest.loops[l];
      const int own = loop.runtime ? argument++ : -1;
      const std::int64_t extent = loop.block_of >= 0 ? loop.total : loop.extent;
      if (extent % rows.most() != 0) continue;
      const bool parallel = fused_.schedule.parallel_loop == static_cast<int>(l);
      if (loop.reduce || loop.block_of >= 0 || (own < 0 && !parallel)) return false;
      if (extent != rows.most() && !all_first) return false;
      if (own >= 0) row_arguments_.push_back({own, extent / rows.most()});
      if (parallel) of_row_ = extent / rows.most();
    }
    return !fused_.partial;
  }

  // What a kernel stores comes from its last equation.
  const Equation* last_fused() const {
    return fused_.fused.empty()
               ? nullptr
               : &graph().equations[*std::max_element(fused_.fused.begin(), fused_.fused.end())];
  }

  /// Of one line: without what only gives shapes.
  std::string short_operations() const {
    constexpr std::size_t longest = 60;
    std::string names = nest_steps::names_of(graph(), fused_.fused, true);
    if (names.empty()) names = nest_steps::names_of(graph(), fused_.fused, false);
    return names.empty()            ? "copy"
           : names.size() > longest ? names.substr(0, names.rfind(' ', longest)) + " …"
                                    : names;
  }

  /// "kernel 0123456789abcdef, fuses 2 equations (exp mul)"
  std::string kernel_text() const {
    const std::size_t n = fused_.fused.size();
    return formatted("kernel {}{}, fuses {} {} ({}){}", short_name(nest_text()),
                     fused_.partial ? ", first half of a cut reduction" : "", n,
                     n == 1 ? "equation" : "equations",
                     nest_steps::names_of(graph(), fused_.fused, false),
                     kernel_.optimised() ? "" : ", not optimised yet");
  }

  std::string nest_text() const override {
    return has_nest() ? fused_.nest.str() + fused_.schedule.str(fused_.nest) : std::string();
  }

  // What the nest leaves to each use (extents known when it runs, and whose elements its buffers
  // hold) and what was chosen over what. Schedules are chosen by shapes and costs alone, so
  // choosing again tells what was chosen.
  std::string nest_details(const printer::Names& names) const override {
    if (!has_nest()) return {};
    const Nest& nest = fused_.nest;
    const std::string shown = nest_text();
    std::string text;
    std::size_t argument = 0;
    const auto bind = [&](const std::string& name, const std::string& value) {
      text += (text.empty() ? "with " : ", ") + name + " = " + value;
    };
    for (std::size_t l = 0; l < nest.loops.size(); ++l) {
      if (!nest.loops[l].runtime) continue;
      const std::string value = std::to_string(arguments_[argument++]), name = formatted("n{}", l);
      if (shown.find(" " + name) != std::string::npos) bind(name, value);
    }
    for (std::size_t b = 0; b < slots_.size() && b < nest.buffers.size(); ++b)
      if (nest.buffers[b].local == 0) bind(formatted("b{}", b), names.typed(slots_[b]));
    text += text.empty() ? "decisions\n" : "\ndecisions\n";
    const int bytes = cpu::vector_bytes();
    std::string chosen;
    if (fused_.row_loop >= 0)
      static_cast<void>(schedule_epilogue(nest, fused_.row_loop, bytes, &chosen));
    else static_cast<void>(choose_schedule(nest, bytes, plan_.costs, &chosen));
    text += chosen;
    const Vec<int>& again = plan_.fusion.again;
    for (std::size_t b = 0; b < nest.buffers.size() && b < slots_.size(); ++b) {
      const std::size_t v = slots_[b];
      if (nest.buffers[b].written && v < again.size() && again[v] > 0)
        text += formatted(
            "  fusion: b{} stored over computed again by its readers (about {} operations an "
            "element)\n",
            b, again[v]);
    }
    return text + "  threads: " + threads_text() + "\n";
  }

  /// Which threads run it.
  virtual std::string threads_text() const { return "those of the product"; }

  SmallVec<Var, 8> slots_;  ///< the nest's buffers
  std::uint64_t nest_work_ = 0;

 private:
  void take_code(bool hurry, bool wait) {
    CodeLabel label;
    if (perf_wanted() || gdb_wanted()) {
      const Equation* last = last_fused();
      label = {short_operations(), short_name(nest_text()), last ? last->where : CallSite(), ""};
      if (gdb_wanted())
        for (const NestValue& v : fused_.nest.values) label.lines += at(v.where);
    }
    const CodeLabelScope scope(std::move(label));
    const bool is_long = is_long_for_its_work(
        static_cast<double>(fused_.nest.values.size()),
        static_cast<double>(nest_work_ / static_cast<std::uint64_t>(fused_.schedule.simd_lanes)));
    kernel_ = cpu::compile_nest(fused_.nest, fused_.schedule, hurry || is_long, wait);
    arguments_.append(kernel_.numbers.begin(), kernel_.numbers.end());
  }

  Kernel kernel_;
  Vec<std::int64_t> arguments_;
  SmallVec<std::pair<int, std::int64_t>, 2> row_arguments_;  ///< those that are as many a row
};

/// A loop nest.
class KernelStep : public NestStep {
 public:
  KernelStep(const ProgramPlan& plan, std::size_t number) : NestStep(plan, number, "kernel") {
    const Schedule& schedule = fused_.schedule;
    const Nest& nest = fused_.nest;
    work_ = nest_work_;
    counts_.kernels = 1;
    if (nest.stages.size() == 1 && nest.stores.size() == 1 && nest.reductions.empty()) {
      const NestStore& s = nest.stores[0];
      const NestValue& v = nest.values[s.value];
      if (v.kind == NestValue::Kind::load && v.index == s.index && s.mask < 0 && v.mask < 0 &&
          v.dtype == nest.buffers[s.buffer].dtype) {
        copied_from_ = slots_[v.buffer];
        copied_to_ = slots_[s.buffer];
      }
    }
    const std::uint64_t vectors = work_ * static_cast<std::uint64_t>(schedule.registers) /
                                  static_cast<std::uint64_t>(schedule.simd_lanes);
    // Of large tables from which few elements are taken, what is taken counts.
    std::uint64_t bytes = 0;
    for (std::size_t b = 0; b < slots_.size(); ++b) {
      if (b < nest.buffers.size() && nest.buffers[b].local > 0) continue;
      const Aval& a = graph().aval(slots_[b]);
      bytes += std::min(static_cast<std::uint64_t>(a.bytes()),
                        nest_steps::most_iterations(nest) * nest.values.size() * size_of(a.dtype));
    }
    const double alone =
        plan.costs.nanoseconds(static_cast<std::uint64_t>(static_cast<double>(vectors) *
                                                          nest_steps::weight_of(nest, &plan.costs) /
                                                          nest_steps::weight_of(nest)),
                               bytes);
    threads_.alone = alone;
    if (schedule.parallel_loop < 0) return;
    threads_ = StepThreads(alone, plan.costs);
    iterations_ = nest.loops[schedule.parallel_loop].extent;
    const std::uint64_t per_iteration = std::max<std::uint64_t>(
        vectors / static_cast<std::uint64_t>(std::max<std::int64_t>(iterations_, 1)), 1);
    grain_ = std::max<std::int64_t>(
        static_cast<std::int64_t>(nest_steps::worth_a_range / per_iteration), 1);
    for (const StageSchedule& s : schedule.stages)
      if (s.vector_loop == schedule.parallel_loop || s.tile_loop == schedule.parallel_loop) {
        // Vectors start at multiples of their length, which the emitter counts on; whole cache
        // lines for each thread besides.
        std::int64_t lanes = schedule.simd_lanes;
        for (const NestStore& w : nest.stores)
          lanes = std::max(lanes,
                           64 / static_cast<std::int64_t>(size_of(nest.buffers[w.buffer].dtype)));
        // So do blocks read those of rows.
        for (const NestValue& v : nest.values)
          if (v.kind == NestValue::Kind::load && s.block_across > 1)
            lanes = std::max(lanes, 64 / static_cast<std::int64_t>(size_of(v.dtype)));
        // In double: sizes that no memory holds are refused later, and must not overflow here.
        const double iterations_per_vector =
            static_cast<double>(iterations_) / std::max(static_cast<double>(vectors), 1.0);
        grain_ = std::max<std::int64_t>(
            static_cast<std::int64_t>(static_cast<double>(nest_steps::worth_a_range) *
                                      iterations_per_vector),
            1);
        grain_ = (grain_ + lanes - 1) / lanes * lanes;
        // Parts of rows that come from far are read the faster the longer they are.
        const bool parts_of_rows =
            s.mode == StageSchedule::Mode::vertical || (s.tile_loop < 0 && s.order.size() > 1);
        if (parts_of_rows &&
            counts_.bytes > static_cast<std::uint64_t>(scheduling::beyond_near_caches))
          ranges_ = 1;
      }
  }

  // What the second kernel writes must not lie where the first one still reads or writes.
  void pair_with(Step& second) override {
    using Kind = BufferPlan::Slot::Kind;
    auto& next = static_cast<KernelStep&>(second);
    const auto overlap = [&](Var v, Var w) {
      const BufferPlan::Slot a = plan_.slot(v), b = plan_.slot(w);
      if (v == w) return true;
      if (a.kind == Kind::arena && b.kind == Kind::arena)
        return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      const auto is_output = [](Kind kind) {
        return kind == Kind::output || kind == Kind::in_output;
      };
      return a.index == b.index && ((is_output(a.kind) && is_output(b.kind)) ||
                                    (a.kind == Kind::input && b.kind == a.kind));
    };
    for (std::size_t b = 0; b < next.slots_.size(); ++b)
      if (next.fused_.nest.buffers[b].written &&
          any_of(slots_, [&](Var v) { return overlap(v, next.slots_[b]); }))
        return;
    pair_ = &next;
    next.is_paired_ = true;
  }

  // Not with rows that no loop goes over.
  bool cut_by_rows(const ProgramRows& rows) override {
    return cut_nest(rows) && (of_row_ > 0 || has_row_arguments() ||
                              none_of(slots_, [&](Var v) { return rows.has_rows(v); }));
  }

  bool run(ProgramRun& run) const override {
    if (pair_) return run_pair(run);
    if (copied_to_ >= 0 && run.pointers[copied_from_] == run.pointers[copied_to_]) return false;
    const std::int64_t iterations = count_of(run, iterations_);
    if (!threads_.share_now()) {
      run_nest(run, 0, iterations);
      return false;
    }
    parallel_ranges(
        iterations, grain_,
        [&](std::int64_t begin, std::int64_t end) { run_nest(run, begin, end); }, ranges_);
    return true;
  }
  const Equation* shown() const override { return last_fused(); }

 private:
  bool run_pair(const ProgramRun& run) const {
    const auto turns = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        const std::int64_t first = p * fused_.pair_rows;
        run_nest(run, first, std::min(first + fused_.pair_rows, iterations_));
        pair_->run_nest(run, p, p + 1);
      }
    };
    const bool shares = threads_.share_now() || pair_->threads_.share_now();
    if (shares) parallel_ranges(pair_->iterations_, 1, turns, ranges_);
    else turns(0, pair_->iterations_);
    return shares;
  }

  std::string operations() const override { return short_operations(); }

  std::string title() const override {
    return formatted("{}, {} bytes, about {} operations{}", kernel_text(), counts_.bytes, work_,
                     threads_.parallel ? ", on all threads" : "") +
           (pair_
                ? formatted("; after each {} iterations one of the next step, which reads the same",
                            fused_.pair_rows)
                : "");
  }

  std::string threads_text() const override {
    const auto us = [](double ns) { return scheduling::cost_text(ns / 1000); };
    return formatted("{}, about {} us alone and woken from {} us on",
                     threads_.wakes      ? "all"
                     : threads_.parallel ? "those that are awake"
                                         : "one",
                     us(threads_.alone), us(plan_.costs.worth_waking()));
  }

  StepThreads threads_;
  std::int64_t iterations_ = 1, grain_ = 1;  ///< of the parallel loop
  int ranges_ = 4;                           ///< for each thread
  /// a plain copy, which is not run where the two are the same memory
  Var copied_from_ = -1, copied_to_ = -1;
  const KernelStep* pair_ = nullptr;  ///< the next step
};

/// A matrix product or a convolution, with or without a loop nest on its rows.
class ProductStep : public NestStep {
 public:
  ProductStep(const ProgramPlan& plan, std::size_t number)
      : NestStep(plan, number,
                 plan.fusion.steps[number].convolution ? "convolution" : "matrix product"),
        a_(storage(equation().inputs[0])),
        b_(storage(equation().inputs[1])),
        c_(storage(equation().outputs[0])) {
    counts_.products = 1;
    counts_.epilogues = has_nest();
    if (has_nest()) counts_.bytes -= bytes_of(c_);  // read while it is in the cache
    if (const ConvSpec* conv = fused_.convolution.get()) {
      work_ = static_cast<std::uint64_t>(2 * conv->multiply_adds());
      row_bytes_ = conv->columns.extent * static_cast<std::int64_t>(size_of(conv->result));
    } else {
      const MatmulSpec& s = *fused_.product;
      work_ = static_cast<std::uint64_t>(2 * s.batch * s.m * s.n * s.k);
    }
  }

  std::uint64_t vector_work() const override {
    const std::uint64_t own =
        fused_.convolution
            ? least_waking_work
            : work_ / 2 / (cpu::vector_bytes() / size_of(fused_.product->accumulate));
    return own + NestStep::vector_work();
  }

  void compile(CompileJobs& jobs) override {
    jobs.first.push_back([this, hurry = jobs.hurry] {
      const CodeLabelScope scope(label());
      if (fused_.convolution) {
        product_ = cpu::make_convolution(*fused_.convolution);
        return;
      }
      MatmulSpec spec = *fused_.product;
      spec.any_rows = plan_.most_rows > 0 && (spec.batch * spec.m) % plan_.most_rows == 0;
      // A vector's worth of element-wise work is about one of multiply-adds.
      if (has_nest())
        spec.work_after = static_cast<std::int64_t>(nest_work_) / (spec.batch * spec.m * spec.n);
      product_ = cpu::make_matmul(spec, hurry);
    });
    NestStep::compile(jobs);
  }

  bool cut_by_rows(const ProgramRows& rows) override {
    if (!fused_.product || (has_nest() && !cut_nest(rows))) return false;
    const MatmulSpec& p = *fused_.product;
    if (rows.are_in(p.n) || rows.are_in(p.k)) return false;
    if (p.batch > 1 && !rows.are_in(p.batch) && rows.are_in(p.m)) return false;
    const Var all[] = {a_, b_, c_};
    // Many rows at a time are counted along memory.
    const std::int64_t many = p.batch * (p.batch == rows.most() ? 1 : p.m);
    if (rows.are_in(many) && many != rows.most() &&
        any_of(all, [&](Var v) { return !rows.come_first(v); }))
      return false;
    of_row_ = rows.of_row(p.batch * p.m);
    return of_row_ > 0 ? !has_nest() || of_row_ % fused_.row_group == 0
                       : !has_nest() && none_of(all, [&](Var v) { return rows.has_rows(v); });
  }

  bool run(ProgramRun& run) const override {
    const auto on_rows = [&](std::int64_t begin, std::int64_t end, const void* elsewhere) {
      const Elsewhere of_rows{
          c_, elsewhere ? static_cast<char*>(const_cast<void*>(elsewhere)) - begin * row_bytes_
                        : nullptr};
      run_nest(run, begin / fused_.row_group, end / fused_.row_group,
               {&of_rows, elsewhere ? 1u : 0u});
    };
    const PackedOperands none;
    const PackedOperands& packed = run.packed ? (*run.packed)[number_] : none;
    const void *a = run.pointers[a_], *b = run.pointers[b_];
    void* c = run.pointers[c_];
    if (run.rows >= 0 && of_row_ > 0)
      product_->run_rows(a, b, c, run.rows * of_row_, rows_done(on_rows), packed);
    else product_->run(a, b, c, rows_done(on_rows), packed);
    return false;
  }

  PackedOperands pack(FunctionRef<const void*(Var)> place) const override {
    const void *a = place(a_), *b = place(b_);
    return a || b ? product_->pack(a, b) : PackedOperands();
  }
  std::uint64_t packed_bytes(std::size_t same_from) const override {
    return product_->packed_bytes(plan_.stays(a_, same_from), plan_.stays(b_, same_from));
  }
  std::int64_t scratch(const RunMemory& use) const override {
    const auto ignore = [](std::int64_t, std::int64_t) {};
    return static_cast<std::int64_t>(
        product_->scratch_bytes(rows_done(ignore), use.frame && plan_.stays(a_, use.same_from),
                                use.frame && plan_.stays(b_, use.same_from)));
  }

 private:
  template <class F>
  RowsDone rows_done(const F& on_rows) const {
    return has_nest() ? RowsDone(on_rows, fused_.row_group, fused_.rows_alone) : RowsDone();
  }
  std::string operations() const override {
    return Step::operations() + (has_nest() ? ", then " + short_operations() : "");
  }
  std::string title() const override {
    return formatted("{} {}, {}, {} flops", how_, product_->describe(), equation_text(), work_) +
           (has_nest() ? "; on its rows as they are done: " + kernel_text() : "");
  }

  std::shared_ptr<const ProductKernel> product_;
  const Var a_, b_, c_;
  std::int64_t row_bytes_ = 0;  ///< of a convolution's result
};

/// Two matrix products and the loop nest between them.
class ChainStep : public NestStep {
 public:
  ChainStep(const ProgramPlan& plan, std::size_t number)
      : NestStep(plan, number, "matrix product") {
    counts_.products = 2;
    counts_.epilogues = counts_.chains = 1;
    // What lies between the products stays in caches.
    counts_.bytes -= 2 * bytes_of(equation().outputs[0]) + bytes_of(fused_.handed_on);
    counts_.bytes += bytes_of(then().inputs[1]) + bytes_of(then().outputs[0]);
    const MatmulSpec &first = *fused_.product, &second = *fused_.product_then;
    work_ = static_cast<std::uint64_t>(2 * first.batch * first.m *
                                       (first.n * first.k + second.n * second.k));
  }
  std::uint64_t vector_work() const override { return least_waking_work + NestStep::vector_work(); }
  void compile(CompileJobs& jobs) override {
    jobs.first.push_back([this] {
      const CodeLabelScope scope(label());
      chain_ = cpu::make_chain(*fused_.product, *fused_.product_then);
    });
    NestStep::compile(jobs);
  }
  bool run(ProgramRun& run) const override {
    const auto at = [&](Var v) { return run.pointers[storage(v)]; };
    const auto between = [&](std::int64_t begin, std::int64_t end, void* made, void* taken) {
      const Elsewhere rows[] = {{storage(equation().outputs[0]), made},
                                {storage(then().inputs[0]), taken}};
      run_nest(run, begin, end, rows);
    };
    chain_->run(at(equation().inputs[0]), at(equation().inputs[1]), at(then().inputs[1]),
                at(then().outputs[0]), between);
    return false;
  }
  std::int64_t scratch(const RunMemory&) const override {
    return static_cast<std::int64_t>(chain_->scratch_bytes());
  }

 private:
  const Equation& then() const { return graph().equations[fused_.then]; }
  std::string operations() const override {
    return Step::operations() + ", then " + short_operations() + ", then dot_general";
  }
  std::string title() const override {
    return formatted(
        "{} {}, {}, {} flops; on its rows as they are done: {}; of those, {} at a time: {} {}, {}",
        how_, chain_->describe(false), equation_text(), work_, kernel_text(), chain_->block_rows(),
        how_, chain_->describe(true), describe(then().op, then().params));
  }

  std::shared_ptr<const ProductChain> chain_;
};

StepPointer kernel_step(const ProgramPlan& plan, std::size_t number) {
  return std::make_unique<KernelStep>(plan, number);
}
StepPointer product_step(const ProgramPlan& plan, std::size_t number) {
  return std::make_unique<ProductStep>(plan, number);
}
StepPointer chain_step(const ProgramPlan& plan, std::size_t number) {
  return std::make_unique<ChainStep>(plan, number);
}

}  // namespace vt::detail
