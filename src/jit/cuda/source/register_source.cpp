// Register kernels as CUDA text. Each element of a value is a variable of the thread.
#include "register_source.hpp"

#include <algorithm>
#include <limits>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/convert.hpp"
#include "../../nest/two_sum.hpp"
#include "../../regions/register_kernel.hpp"
#include "element_source.hpp"
#include "register_writer.hpp"

namespace vt::detail::cuda {

namespace register_text {

// Fewer lanes are a few warps for each multiprocessor at most: nothing then waits for memory's
// width.
constexpr std::int64_t fewest_in_tiles = 1024;

std::string RegisterWriter::kernel(const std::string& name) {
  const std::size_t inputs = equation_.inputs.size();
  text_ = formatted("extern \"C\" __global__ void __launch_bounds__({}) {}(",
                    register_kernel_threads, name);
  for (std::size_t k = 0; k < inputs + equation_.outputs.size(); ++k) {
    const DType d =
        graph_.aval(k < inputs ? equation_.inputs[k] : equation_.outputs[k - inputs]).dtype;
    text_ += formatted("{}{}{}* b{}", k ? ", " : "", k < inputs ? "const " : "", memory_type(d), k);
  }
  text_ += ") {\n";
  indent_ = 1;
  tiles_ = form_.count >= fewest_in_tiles && !carries_memory(form_);
  if (tiles_) {
    line(
        formatted("const i64 first = (i64)blockIdx.x * {} + threadIdx.x / 32 * 32, own = first + "
                  "threadIdx.x % 32;",
                  register_kernel_threads));
    line(formatted("if (first >= {}ll) return;", form_.count));
    line(formatted("const i64 lane = vt_min<i64>(own, {}ll);", form_.count - 1));
    line(formatted("__shared__ u64 tiles[{}][{}];", register_kernel_threads / 32, 32 * 17));
  } else if (form_) {
    line(
        formatted("const i64 lane = (i64)blockIdx.x * {} + threadIdx.x;", register_kernel_threads));
    line(formatted("if (lane >= {}ll) return;", form_.count));
  } else {
    line("if (threadIdx.x != 0) return;");
  }
  Vec<Val> operands;
  for (std::size_t i = 0; i < inputs; ++i) {
    const Aval& aval = graph_.aval(equation_.inputs[i]);
    const bool sequence =
        equation_.op == Op::scan && i >= carries_ &&
        i < carries_ + static_cast<std::size_t>(equation_.as<ScanParams>().sequences);
    Val v{
        .start = "0", .dtype = aval.dtype, .count = aval.elements(), .buffer = static_cast<int>(i)};
    if (!sequence && form_.in_registers(aval)) v = loaded(v);
    // updated in place, in the result
    else if (i < carries_) v.buffer = static_cast<int>(inputs + i);
    operands.push_back(std::move(v));
  }
  const Vec<Val> results = control(graph_, equation_, operands, true);
  for (std::size_t k = 0; k < results.size(); ++k) {
    // in place, or stored iteration by iteration
    if (results[k].buffer >= 0 || results[k].elements.empty()) continue;
    store_all({.start = "0",
               .dtype = results[k].dtype,
               .count = results[k].count,
               .buffer = static_cast<int>(inputs + k)},
              results[k]);
  }
  text_ += "}\n";
  return std::move(text_);
}

std::string RegisterWriter::named(DType d, const std::string& text) {
  std::string name = fresh_name();
  line(formatted("const {} {} = {};", register_type(d), name, text));
  return name;
}

Val RegisterWriter::variables(DType d, std::int64_t count) {
  Val v{.dtype = d, .count = count};
  std::string text = register_type(d);
  for (std::int64_t i = 0; i < count; ++i) {
    v.elements.push_back(fresh_name());
    text += (i ? ", " : " ") + v.elements.back();
  }
  if (count > 0) line(text + ";");
  return v;
}

Val RegisterWriter::in_array(const Val& v) {
  Val a{.array = fresh_name(), .dtype = v.dtype, .count = v.count};
  std::string text = formatted("{} {}[{}] = {{", register_type(v.dtype), a.array,
                               std::max<std::int64_t>(v.count, 1));
  for (std::int64_t i = 0; i < v.count; ++i) {
    text += (i ? ", " : "") + element(v, i);
    a.elements.push_back(formatted("{}[{}]", a.array, i));
  }
  line(text + "};");
  return a;
}

std::int64_t RegisterWriter::block_of(int buffer) const {
  if (!form_) return 0;
  const std::size_t inputs = equation_.inputs.size(), k = static_cast<std::size_t>(buffer);
  const int axis = form_.axes[k];
  if (axis < 0) return 0;
  const Shape& shape =
      graph_.aval(k < inputs ? equation_.inputs[k] : equation_.outputs[k - inputs]).shape;
  std::int64_t block = 1;
  for (std::size_t d = static_cast<std::size_t>(axis); d < shape.size(); ++d) block *= shape[d];
  return block;
}

std::string RegisterWriter::place(const Val& v, const std::string& at) const {
  const std::string linear =
      v.start == "0" ? formatted("(i64)({})", at) : formatted("((i64)({}) + ({}))", at, v.start);
  const std::int64_t block = block_of(v.buffer);
  if (block == 0) return linear;
  if (block == 1) return formatted("{} * {}ll + lane", linear, form_.count);
  return formatted("({0} / {1}ll * {2}ll + lane) * {1}ll + {0} % {1}ll", linear, block,
                   form_.count);
}

std::string RegisterWriter::read(const Val& v, const std::string& at) const {
  if (v.buffer < 0) return formatted("{}[{}]", v.array, at);
  return from_memory(v.dtype, formatted("VT_LOAD(b{}, {})", v.buffer, place(v, at)));
}

void RegisterWriter::write(const Val& v, const std::string& at, const std::string& x) {
  if (v.buffer < 0) line(formatted("{}[{}] = {};", v.array, at, x));
  else line(formatted("VT_STORE(b{}, {}, {});", v.buffer, place(v, at), to_memory(v.dtype, x)));
}

bool RegisterWriter::goes_in_tiles(const Val& object) const {
  // as close together as that, threads find what they read in lines that their neighbours have
  // asked for
  constexpr std::int64_t bytes = 16;
  return tiles_ && object.start == "0" && block_of(object.buffer) == object.count &&
         object.count * static_cast<std::int64_t>(size_of(object.dtype)) >= bytes;
}

std::string RegisterWriter::tile(const Val& object) const {
  return formatted("({}*)tiles[threadIdx.x / 32]", memory_type(object.dtype));
}

Val RegisterWriter::loaded(const Val& object) {
  Val v{.dtype = object.dtype, .count = object.count};
  const bool in_tiles = goes_in_tiles(object);
  const std::int64_t widest = in_tiles ? tile_width(object.dtype) : object.count;
  for (std::int64_t begin = 0; begin < object.count; begin += widest) {
    const std::int64_t width = std::min(widest, object.count - begin);
    if (in_tiles)
      line(formatted("vt_rows_in<{}>({}, b{}, first, {}ll, {}, {});", width, tile(object),
                     object.buffer, form_.count, object.count, begin));
    for (std::int64_t i = begin; i < begin + width; ++i)
      v.elements.push_back(named(
          v.dtype,
          in_tiles ? from_memory(v.dtype, formatted("VT_LOAD({}, (int)(lane - first) * {} + {})",
                                                    tile(object), width | 1, i - begin))
                   : read(object, formatted("{}", i))));
  }
  return v;
}

void RegisterWriter::store_all(const Val& object, const Val& v) {
  const bool in_tiles = goes_in_tiles(object);
  const std::int64_t widest = in_tiles ? tile_width(object.dtype) : object.count;
  for (std::int64_t begin = 0; begin < object.count; begin += widest) {
    const std::int64_t width = std::min(widest, object.count - begin);
    if (in_tiles) line("__syncwarp();");
    else if (tiles_) open(formatted("if (own < {}ll)", form_.count));
    for (std::int64_t i = begin; i < begin + width; ++i) {
      const std::string x = to_memory(v.dtype, element(v, i));
      line(in_tiles ? formatted("VT_STORE({}, (int)threadIdx.x % 32 * {} + {}, {});", tile(object),
                                width | 1, i - begin, x)
                    : formatted("VT_STORE(b{}, {}, {});", object.buffer,
                                place(object, formatted("{}", i)), x));
    }
    if (in_tiles)
      line(formatted("vt_rows_out<{}>({}, b{}, first, {}ll, {}, {});", width, tile(object),
                     object.buffer, form_.count, object.count, begin));
    else if (tiles_) close();
  }
}

void RegisterWriter::copy(const Val& to, const Val& from) {
  if (to.buffer >= 0 || from.buffer >= 0) return;  // in place
  for (std::int64_t i = 0; i < to.count; ++i)
    if (element(to, i) != element(from, i)) line(element(to, i) + " = " + element(from, i) + ";");
}

void RegisterWriter::exchange(const Vec<Val>& carry, Vec<Val> next) {
  Vec<std::string> written;
  for (std::size_t i = 0; i < carry.size(); ++i)
    for (std::size_t k = 0; k < carry[i].elements.size(); ++k)
      if (next[i].buffer < 0 && carry[i].elements[k] != next[i].elements[k])
        written.push_back(carry[i].elements[k]);
  for (std::size_t i = 0; i < carry.size(); ++i)
    for (std::size_t k = 0; k < carry[i].elements.size() && next[i].buffer < 0; ++k) {
      std::string& x = next[i].elements[k];
      if (x != carry[i].elements[k] &&
          std::find(written.begin(), written.end(), x) != written.end())
        x = named(carry[i].dtype, x);
    }
  for (std::size_t i = 0; i < carry.size(); ++i) copy(carry[i], next[i]);
}

Vec<Val> RegisterWriter::run(const GraphBody& g, const Vec<Val>& inputs) {
  Vec<Val> env(g.avals.size());
  const auto at = [&](Var v) -> Val& { return env[v]; };
  for (std::size_t i = 0; i < inputs.size(); ++i) at(g.inputs[i]) = inputs[i];
  for (const Equation& e : g.equations) {
    Vec<Val> operands;
    for (Var v : e.inputs) operands.push_back(at(v));
    if (!may_be_register_kernel(e.op)) {
      at(e.outputs[0]) = value(g, e, operands);
      continue;
    }
    Vec<Val> results = control(g, e, operands, false);
    for (std::size_t k = 0; k < results.size(); ++k) at(e.outputs[k]) = std::move(results[k]);
  }
  Vec<Val> outputs;
  for (Var v : g.outputs) outputs.push_back(at(v));
  return outputs;
}

Vec<Val> RegisterWriter::control(const GraphBody& g, const Equation& e, const Vec<Val>& operands,
                                 bool outermost) {
  if (e.op == Op::cond) return branch(e, operands);
  if (e.op == Op::fused_region) return run(*e.as<RegionParams>().body, operands);
  return e.op == Op::while_ ? loop_while(e, operands) : loop_scan(g, e, operands, outermost);
}

Vec<Val> RegisterWriter::branch(const Equation& e, const Vec<Val>& operands) {
  const auto& branches = e.as<CondParams>().branches;
  const Vec<Val> inputs(operands.begin() + 1, operands.end());
  if (branches.size() == 1) return run(*branches[0], inputs);
  Vec<Val> results;
  for (Var v : branches[0]->outputs) {
    const Aval& a = branches[0]->aval(v);
    results.push_back(form_.in_registers(a) ? variables(a.dtype, a.elements()) : Val{});
  }
  for (std::size_t k = 0; k < branches.size(); ++k) {
    const bool last = k + 1 == branches.size();
    if (last) open("else");
    else open(formatted("{}if ({} <= {})", k ? "else " : "", element(operands[0], 0), k));
    const Vec<Val> own = run(*branches[k], inputs);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i].buffer >= 0) results[i] = own[i];  // every branch hands on the same memory
      else copy(results[i], own[i]);
    }
    close();
  }
  return results;
}

Vec<Val> RegisterWriter::carried(const Vec<Val>& operands, std::size_t carries) {
  Vec<Val> own;
  for (std::size_t i = 0; i < carries; ++i) {
    if (operands[i].buffer >= 0) {
      own.push_back(operands[i]);
      continue;
    }
    own.push_back(variables(operands[i].dtype, operands[i].count));
    copy(own.back(), operands[i]);
  }
  return own;
}

Vec<Val> RegisterWriter::loop_while(const Equation& e, const Vec<Val>& operands) {
  const auto& p = e.as<WhileParams>();
  const std::size_t carries = p.carries;
  const Vec<Val> carry = carried(operands, carries);
  Vec<Val> inputs = operands;
  for (std::size_t i = 0; i < carries; ++i) inputs[i] = carry[i];
  open("for (;;)");
  line(formatted("if (!{}) break;", element(run(*p.condition, inputs)[0], 0)));
  const Vec<Val> next = run(*p.body, inputs);
  exchange(carry, next);
  close();
  return carry;
}

Vec<Val> RegisterWriter::loop_scan(const GraphBody& g, const Equation& e, const Vec<Val>& operands,
                                   bool outermost) {
  const auto& p = e.as<ScanParams>();
  const std::size_t carries = p.carries, looped = carries + p.sequences;
  Vec<Val> carry = carried(operands, carries), sequences;
  for (std::size_t i = carries; i < looped; ++i)
    sequences.push_back(operands[i].buffer >= 0 ? operands[i] : in_array(operands[i]));
  const std::string iteration = fresh_name(), row = fresh_name();
  open(formatted("for (i64 {0} = 0; {0} < {1}ll; ++{0})", iteration, p.length));
  line(p.reverse ? formatted("const i64 {} = {}ll - {};", row, p.length - 1, iteration)
                 : formatted("const i64 {} = {};", row, iteration));
  Vec<Val> inputs = operands;
  for (std::size_t i = 0; i < carries; ++i) inputs[i] = carry[i];
  for (std::size_t i = carries; i < looped; ++i) {
    const Aval& one = p.body->aval(p.body->inputs[i]);
    const std::int64_t n = one.elements();
    Val part = sequences[i - carries];
    part.count = n;
    if (part.buffer >= 0) {
      part.start = formatted("{} * {}ll + ({})", row, n, part.start);
      inputs[i] = form_.in_registers(one) ? loaded(part) : part;
    } else {
      inputs[i] = empty(one);
      for (std::int64_t k = 0; k < n; ++k)
        inputs[i].elements.push_back(
            named(one.dtype, read(part, formatted("{} * {} + {}", row, n, k))));
    }
  }
  const Vec<Val> next = run(*p.body, inputs);
  if (outermost)
    for (std::size_t k = carries; k < next.size(); ++k) {
      const std::int64_t n = next[k].count;
      store_all({.start = formatted("{} * {}ll", row, n),
                 .dtype = next[k].dtype,
                 .count = n,
                 .buffer = static_cast<int>(equation_.inputs.size() + k)},
                next[k]);
    }
  exchange(carry, next);
  close();
  carry.resize(p.body->outputs.size());
  static_cast<void>(g);
  return carry;
}

std::string RegisterWriter::apply(Op op, DType dtype, const ParamsRef& params,
                                  std::initializer_list<Operand> operands) {
  return cuda::element(op, dtype, params, {operands.begin(), operands.size()});
}

Val RegisterWriter::value(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const Aval& out = g.aval(e.outputs[0]);
  const std::int64_t n = out.elements();
  switch (family_of(e.op)) {
    case Family::unary:
    case Family::binary:
    case Family::select: {
      Val v = empty(out);
      for (std::int64_t i = 0; i < n; ++i) {
        SmallVec<Operand, 3> operands;
        for (const Val& x : in) operands.push_back({element(x, x.count == 1 ? 0 : i), x.dtype});
        v.elements.push_back(named(out.dtype, cuda::element(e.op, out.dtype, e.params,
                                                            {operands.data(), operands.size()})));
      }
      return v;
    }
    case Family::leaf: return leaf(e, out);
    case Family::reduce:
      return e.op == Op::argmax || e.op == Op::argmin ? position(g, e, in[0])
                                                      : reduced(g, e, in[0]);
    case Family::cumulative: return running(g, e, in[0]);
    case Family::contract: return product(g, e, in);
    case Family::index:
      if (e.op == Op::dynamic_slice) return dynamic_slice(g, e, in);
      if (e.op == Op::dynamic_update_slice) return dynamic_update_slice(g, e, in);
      if (e.op == Op::gather) return gathered(g, e, in);
      if (is_scatter(e.op)) return scattered(g, e, in);
      break;
    default: break;
  }
  Val v = empty(out);
  if (e.op == Op::concatenate) {
    const std::size_t axis = e.as<AxisParams>().axis;
    std::int64_t outer = 1;
    for (std::size_t d = 0; d < axis; ++d) outer *= out.shape[d];
    for (std::int64_t o = 0; o < outer; ++o)
      for (const Val& part : in)
        for (std::int64_t run = part.count / outer, i = 0; i < run; ++i)
          v.elements.push_back(element(part, o * run + i));
    return v;
  }
  // What only moves elements.
  for (const std::int64_t source : source_elements(g, e)) {
    if (source < 0) v.elements.push_back(element(in[1], 0));  // pad's value where there is none
    else
      v.elements.push_back(in[0].buffer < 0
                               ? element(in[0], source)
                               : named(out.dtype, read(in[0], formatted("{}", source))));
  }
  return v;
}

Val RegisterWriter::leaf(const Equation& e, const Aval& out) {
  Val v = empty(out);
  for (std::int64_t i = 0; i < v.count; ++i) {
    Scalar x;
    if (e.op == Op::full) {
      x = e.as<FullParams>().value;
    } else if (e.op == Op::iota) {
      std::int64_t inner = 1;
      const int axis = e.as<IotaParams>().axis;
      for (int d = axis + 1; d < out.shape.rank(); ++d) inner *= out.shape[d];
      x = Scalar(i / inner % out.shape[axis]);
    } else {
      x = load_scalar(out.dtype, e.as<ConstantParams>().buffer->as<const std::byte>() +
                                     static_cast<std::size_t>(i) * size_of(out.dtype));
    }
    v.elements.push_back("(" + literal(x.converted(out.dtype)) + ")");
  }
  return v;
}

Val RegisterWriter::reduced(const GraphBody& g, const Equation& e, const Val& x) {
  const Aval &from = g.aval(e.inputs[0]), &to = g.aval(e.outputs[0]);
  const Axes& axes = e.as<AxesParams>().axes;
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Op op = reduction_facts[e.op].combine;
  const Neutral start = reduction_facts[e.op].neutral;
  const double neutral = start == Neutral::zero    ? 0
                         : start == Neutral::one   ? 1
                         : start == Neutral::least ? -inf
                                                   : inf;
  // 16-bit sums and products are made in f32.
  const bool half = to.dtype == DType::f16 || to.dtype == DType::bf16;
  const DType sums = half && accumulates_wide(e.op) ? DType::f32 : to.dtype;
  Vec<std::string> sum(to.elements());
  std::int64_t k = 0;
  for (const std::int64_t at : reduced_elements(from.shape, axes)) {
    std::string& so_far = sum[at];
    const std::string& next = element(x, k++);
    // The sum starts at +0: a sum of nothing but -0 is +0.
    if (op == Op::add && so_far.empty() && is_float(sums))
      so_far = "(" + literal(Scalar(0).converted(sums)) + ")";
    so_far =
        so_far.empty() ? next : named(sums, apply(op, sums, {}, {{so_far, sums}, {next, sums}}));
  }
  Val v = empty(to);
  for (const std::string& s : sum) {
    const std::string all = s.empty() ? "(" + literal(Scalar(neutral).converted(sums)) + ")" : s;
    v.elements.push_back(sums == to.dtype ? all
                                          : named(to.dtype, converted({all, sums}, to.dtype)));
  }
  return v;
}

Val RegisterWriter::position(const GraphBody& g, const Equation& e, const Val& x) {
  const Aval &from = g.aval(e.inputs[0]), &to = g.aval(e.outputs[0]);
  const AxisRuns runs(from.shape, e.as<ArgParams>().axis);
  Val v = empty(to);
  for (std::int64_t n = 0; n < runs.count; ++n) {
    std::string best = element(x, runs.at(n, 0)),
                where = "(" + literal(Scalar(0).converted(to.dtype)) + ")";
    for (std::int64_t k = 1; k < runs.length; ++k) {
      const std::string next = element(x, runs.at(n, k));
      std::string better = formatted("{} {} {}", next, e.op == Op::argmax ? ">" : "<", best);
      // NaN wins, the first of several.
      if (is_float(from.dtype))
        better =
            formatted("{1} == {1} && !({0} {2} {1})", next, best, e.op == Op::argmax ? "<=" : ">=");
      const std::string wins = named(DType::bool_, better);
      best = named(from.dtype, formatted("{} ? {} : {}", wins, next, best));
      where = named(to.dtype,
                    formatted("{} ? {} : {}", wins, literal(Scalar(k).converted(to.dtype)), where));
    }
    v.elements.push_back(where);
  }
  return v;
}

Val RegisterWriter::running(const GraphBody& g, const Equation& e, const Val& x) {
  const Aval& out = g.aval(e.outputs[0]);
  const auto& p = e.as<CumulativeParams>();
  const AxisRuns runs(out.shape, p.axis);
  const RunningOp step(e.op, out.dtype, runs.length);
  Val v = empty(out);
  v.elements.resize(v.count);
  for (std::int64_t n = 0; n < runs.count; ++n) {
    std::string so_far = step.op == Op::add && is_float(out.dtype)
                             ? "(" + literal(Scalar(0).converted(step.dtype)) + ")"
                             : "";
    std::string lost;
    for (std::int64_t k = 0; k < runs.length; ++k) {
      const std::size_t at = runs.at(n, p.reverse ? runs.length - 1 - k : k);
      const std::string next =
          named(step.dtype, converted({x.elements[at], out.dtype}, step.dtype));
      const auto applied = [&](Op op, const std::string& a, const std::string& b) {
        return named(step.dtype, apply(op, step.dtype, {}, {{a, step.dtype}, {b, step.dtype}}));
      };
      const std::string before = so_far;
      so_far = so_far.empty() ? next : applied(step.op, so_far, next);
      v.elements[at] = named(out.dtype, converted({so_far, step.dtype}, out.dtype));
      if (!step.compensated || k == 0) continue;
      const std::string taken = taken_by_rounding(before, next, so_far, applied),
                        error =
                            named(step.dtype, formatted("vt_abs({0}) < VT_INF ? {0} : 0.0", taken));
      lost = lost.empty() ? error : applied(Op::add, lost, error);
      v.elements[at] = applied(Op::add, so_far, lost);
    }
  }
  return v;
}

Val RegisterWriter::product(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const auto& p = e.as<DotParams>();
  const Aval& out = g.aval(e.outputs[0]);
  const bool half = p.dtype == DType::f16 || p.dtype == DType::bf16;
  const DType sums = half ? DType::f32 : p.dtype;
  const SmallProduct product(g, e);
  constexpr std::int64_t together = 8;  // terms in one statement
  Val v = empty(out);
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    std::string sum = "(" + literal(Scalar(0.0).converted(sums)) + ")";
    for (std::int64_t t = 0; t < product.terms(); ++t) {
      const SmallProduct::Factors factors = product.at(i, t);
      const std::string x = converted({element(in[0], factors.lhs), in[0].dtype}, sums);
      const std::string y = converted({element(in[1], factors.rhs), in[1].dtype}, sums);
      sum = sums == DType::f32   ? formatted("fmaf({}, {}, {})", x, y, sum)
            : sums == DType::f64 ? formatted("fma({}, {}, {})", x, y, sum)
                                 : formatted("vt_add({}, vt_mul({}, {}))", sum, x, y);
      if (t % together == together - 1) sum = named(sums, sum);
    }
    v.elements.push_back(named(out.dtype, converted({sum, sums}, out.dtype)));
  }
  return v;
}

}  // namespace register_text

LaunchGrid register_kernel_grid(const LaneForm& form) {
  return {form.count < 0 ? 1 : (form.count + register_kernel_threads - 1) / register_kernel_threads,
          register_kernel_threads, 0};
}

bool carries_memory(const LaneForm& form) {
  const Equation& e = form.lane.equations[0];
  const int carries = e.op == Op::while_ ? e.as<WhileParams>().carries
                      : e.op == Op::scan ? e.as<ScanParams>().carries
                                         : 0;
  for (int i = 0; i < carries; ++i)
    if (!form.in_registers(form.lane.aval(e.inputs[i]))) return true;
  return false;
}

std::string register_kernel_source(const LaneForm& form, const std::string& name) {
  return register_text::RegisterWriter(form).kernel(name);
}

}  // namespace vt::detail::cuda
