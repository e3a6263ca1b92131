// Register kernels as CUDA text. Each element of a value is a variable of the thread.
#include "register_source.hpp"

#include <algorithm>
#include <span>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "element_source.hpp"
#include "register_writer.hpp"

namespace vt::detail::cuda {

// NVRTC's time grows with the square of straight-line code: 0.3 s for 2,000 machine instructions, 7
// s for 10,000, of which each product and sum counts for one here and the multiply-adds of matrices
// for two. Values of 96 elements lie in 255 registers with few of them spilled: none of f32
// (Jacobians of six joints, chains of 9 × 9), 6 % of the instructions of f64. Elements that are
// another value's, or known, take none.
const RegisterLimits& device_limits() {
  static constexpr RegisterLimits limits{.of_a_lane = 96,
                                         .moved = 96,
                                         .moved_without_loops = 288,
                                         .instructions = 6000,
                                         .operations_of_a_step = 0,
                                         .instructions_of_many = 12000,
                                         .short_row = 0,
                                         .of_unset = 0,
                                         .recursion = false,
                                         .has_code = has_element_source};
  return limits;
}

std::optional<LaneForm> form_in_registers(const GraphBody& alone) {
  return register_form(alone, 0, device_limits());
}

namespace register_text {

// Fewer lanes are a few warps for each multiprocessor at most: nothing then waits for memory's
// width.
constexpr std::int64_t fewest_in_tiles = 1024;

std::string RegisterWriter::kernel(const std::string& name) {
  const std::size_t inputs = equation_.inputs.size();
  text_ = formatted("extern \"C\" __global__ void __launch_bounds__({}) {}(",
                    register_kernel_threads, name);
  for (std::size_t k = 0; k < inputs + equation_.outputs.size(); ++k) {
    const DType d = object_for(k).dtype;
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
    if (!is_sequence(equation_, i) && form_.in_registers(graph_.aval(equation_.inputs[i])))
      operands.push_back(loaded(object_for(i)));
    else  // what is carried is updated in place, in the result
      operands.push_back(kept(object_for(i < carries_ ? inputs + i : i)));
  }
  const Vec<Val> results = control(equation_, operands, true);
  for (std::size_t k = 0; k < results.size(); ++k)
    // others were made in place, or stored iteration by iteration
    if (!results[k].elements().empty()) store_all(object_for(inputs + k), results[k]);
  text_ += "}\n";
  return std::move(text_);
}

Operand RegisterWriter::named(DType d, const std::string& text) {
  std::string name = fresh_name();
  line(formatted("const {} {} = {};", register_type(d), name, text));
  return {std::move(name), d, true};
}

Val RegisterWriter::variables(DType d, std::size_t count) {
  Elements all;
  std::string text = register_type(d);
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back({fresh_name(), d, true});
    text += (i ? ", " : " ") + all.back().text;
  }
  if (count > 0) line(text + ";");
  return all;
}

Val RegisterWriter::kept(Object o) {
  objects_.push_back(std::move(o));
  return Val::array(static_cast<int>(objects_.size()) - 1);
}

Val RegisterWriter::in_array(const Elements& all) {
  Object o{.dtype = all.empty() ? DType::f32 : all[0].dtype, .array = fresh_name()};
  Elements held;
  std::string text;
  for (const Operand& x : all) {
    text += (held.empty() ? "" : ", ") + x.text;
    held.push_back({formatted("{}[{}]", o.array, held.size()), o.dtype, true});
  }
  line(formatted("{} {}[{}] = {{{}}};", register_type(o.dtype), o.array,
                 std::max<std::size_t>(all.size(), 1), text));
  return Val(std::move(held), kept(std::move(o)).object());
}

const Aval& RegisterWriter::aval_of(int buffer) const {
  const std::size_t inputs = equation_.inputs.size(), k = static_cast<std::size_t>(buffer);
  return graph_.aval(k < inputs ? equation_.inputs[k] : equation_.outputs[k - inputs]);
}

Object RegisterWriter::object_for(std::size_t buffer) const {
  const int k = static_cast<int>(buffer);
  return {.dtype = aval_of(k).dtype, .count = aval_of(k).elements(), .buffer = k};
}

std::int64_t RegisterWriter::block_of(int buffer) const {
  if (!form_ || form_.axes[buffer] < 0) return 0;
  const Shape& shape = aval_of(buffer).shape;
  std::int64_t block = 1;
  for (auto d = static_cast<std::size_t>(form_.axes[buffer]); d < shape.size(); ++d)
    block *= shape[d];
  return block;
}

std::string RegisterWriter::place(const Object& o, const std::string& at) const {
  const std::string linear =
      o.start == "0" ? formatted("(i64)({})", at) : formatted("((i64)({}) + ({}))", at, o.start);
  const std::int64_t block = o.buffer < 0 ? 0 : block_of(o.buffer);
  if (block == 0) return linear;
  if (block == 1) return formatted("{} * {}ll + lane", linear, form_.count);
  return formatted("({0} / {1}ll * {2}ll + lane) * {1}ll + {0} % {1}ll", linear, block,
                   form_.count);
}

std::string RegisterWriter::read(const Object& o, const std::string& at) const {
  if (o.buffer < 0) return formatted("{}[{}]", o.array, place(o, at));
  return from_memory(o.dtype, formatted("VT_LOAD(b{}, {})", o.buffer, place(o, at)));
}

bool RegisterWriter::goes_in_tiles(const Object& object) const {
  // as close together as that, threads find what they read in lines that their neighbours have
  // asked for
  constexpr std::int64_t bytes = 16;
  return tiles_ && object.start == "0" && block_of(object.buffer) == object.count &&
         object.count * static_cast<std::int64_t>(size_of(object.dtype)) >= bytes;
}

std::string RegisterWriter::tile(const Object& object) const {
  return formatted("({}*)tiles[threadIdx.x / 32]", memory_type(object.dtype));
}

Val RegisterWriter::loaded(const Object& object) {
  Elements all;
  const bool in_tiles = goes_in_tiles(object);
  const std::int64_t widest = in_tiles ? tile_width(object.dtype) : object.count;
  for (std::int64_t begin = 0; begin < object.count; begin += widest) {
    const std::int64_t width = std::min(widest, object.count - begin);
    if (in_tiles)
      line(formatted("vt_rows_in<{}>({}, b{}, first, {}ll, {}, {});", width, tile(object),
                     object.buffer, form_.count, object.count, begin));
    for (std::int64_t i = begin; i < begin + width; ++i)
      all.push_back(named(
          object.dtype,
          in_tiles
              ? from_memory(object.dtype, formatted("VT_LOAD({}, (int)(lane - first) * {} + {})",
                                                    tile(object), width | 1, i - begin))
              : read(object, formatted("{}", i))));
  }
  return all;
}

void RegisterWriter::store_all(const Object& object, const Val& v) {
  const bool in_tiles = goes_in_tiles(object);
  const std::int64_t widest = in_tiles ? tile_width(object.dtype) : object.count;
  for (std::int64_t begin = 0; begin < object.count; begin += widest) {
    const std::int64_t width = std::min(widest, object.count - begin);
    if (in_tiles) line("__syncwarp();");
    else if (tiles_) open(formatted("if (own < {}ll)", form_.count));
    for (std::int64_t i = begin; i < begin + width; ++i) {
      const std::string x = to_memory(object.dtype, v[i].text);
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
  if (to.is_array() || from.is_array()) return;  // in place
  for (std::size_t i = 0; i < to.elements().size(); ++i)
    if (to[i].text != from[i].text) line(to[i].text + " = " + from[i].text + ";");
}

void RegisterWriter::exchange(const Vec<Val>& carry, Vec<Val> next) {
  Vec<std::string> written;
  const auto each_written = [&](auto visit) {
    for (std::size_t i = 0; i < carry.size(); ++i)
      for (std::size_t k = 0; k < carry[i].elements().size() && !next[i].is_array(); ++k)
        if (carry[i][k].text != next[i][k].text) visit(i, k);
  };
  each_written([&](std::size_t i, std::size_t k) { written.push_back(carry[i][k].text); });
  each_written([&](std::size_t i, std::size_t k) {
    const std::string x = next[i][k].text;
    if (std::find(written.begin(), written.end(), x) != written.end())
      next[i].set(k, named(carry[i][k].dtype, x));
  });
  for (std::size_t i = 0; i < carry.size(); ++i) copy(carry[i], next[i]);
}

Vec<Val> RegisterWriter::run(const GraphBody& g, const Vec<Val>& inputs) {
  Vec<Val> env(g.avals.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) env[g.inputs[i]] = inputs[i];
  for (const Equation& e : g.equations) {
    Vec<Val> operands;
    for (Var v : e.inputs) operands.push_back(env[v]);
    const bool is_view = e.op == Op::reshape && !form_.in_registers(g.aval(e.outputs[0]));
    Vec<Val> results = may_be_register_kernel(e.op) ? control(e, operands, false)
                       : is_view                    ? Vec<Val>{operands[0]}
                                                    : values(g, e, operands);
    for (std::size_t k = 0; k < results.size(); ++k) env[e.outputs[k]] = std::move(results[k]);
  }
  Vec<Val> outputs;
  for (Var v : g.outputs) outputs.push_back(env[v]);
  return outputs;
}

Vec<Val> RegisterWriter::control(const Equation& e, const Vec<Val>& operands, bool outermost) {
  if (e.op == Op::cond) return branch(e, operands);
  if (e.op == Op::fused_region) return run(*e.as<RegionParams>().body, operands);
  return e.op == Op::while_ ? loop_while(e, operands) : loop_scan(e, operands, outermost);
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
    else open(formatted("{}if ({} <= {})", k ? "else " : "", operands[0][0].text, k));
    const Vec<Val> own = run(*branches[k], inputs);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i].is_array()) results[i] = own[i];  // every branch hands on the same memory
      else copy(results[i], own[i]);
    }
    close();
  }
  return results;
}

Vec<Val> RegisterWriter::carried(const Vec<Val>& operands, std::size_t carries) {
  Vec<Val> own;
  for (const Val& x : std::span(operands).first(carries)) {
    own.push_back(
        x.is_array() || x.elements().empty() ? x : variables(x[0].dtype, x.elements().size()));
    copy(own.back(), x);
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
  line(formatted("if (!{}) break;", run(*p.condition, inputs)[0][0].text));
  const Vec<Val> next = run(*p.body, inputs);
  exchange(carry, next);
  close();
  return carry;
}

Vec<Val> RegisterWriter::loop_scan(const Equation& e, const Vec<Val>& operands, bool outermost) {
  const auto& p = e.as<ScanParams>();
  const std::size_t carries = p.carries, looped = carries + p.sequences;
  Vec<Val> carry = carried(operands, carries), inputs = operands;
  for (std::size_t i = carries; i < looped; ++i) inputs[i] = readable(operands[i]);
  const std::string iteration = fresh_name(), row = fresh_name();
  open(formatted("for (i64 {0} = 0; {0} < {1}ll; ++{0})", iteration, p.length));
  line(p.reverse ? formatted("const i64 {} = {}ll - {};", row, p.length - 1, iteration)
                 : formatted("const i64 {} = {};", row, iteration));
  for (std::size_t i = 0; i < carries; ++i) inputs[i] = carry[i];
  for (std::size_t i = carries; i < looped; ++i) {
    const Aval& one = p.body->aval(p.body->inputs[i]);
    Object part = object(inputs[i]);
    part.dtype = one.dtype;
    part.count = one.elements();
    part.start = formatted("{} * {}ll + ({})", row, part.count, part.start);
    inputs[i] = form_.in_registers(one) ? loaded(part) : kept(part);
  }
  const Vec<Val> next = run(*p.body, inputs);
  for (std::size_t k = carries; k < next.size() && outermost; ++k) {
    Object part = object_for(equation_.inputs.size() + k);
    part.count = static_cast<std::int64_t>(next[k].elements().size());
    part.start = formatted("{} * {}ll", row, part.count);
    store_all(part, next[k]);
  }
  exchange(carry, next);
  close();
  carry.resize(p.body->outputs.size());
  return carry;
}

}  // namespace register_text

LaunchGrid register_kernel_grid(const LaneForm& form) {
  return {form.count < 0 ? 1 : (form.count + register_kernel_threads - 1) / register_kernel_threads,
          register_kernel_threads, 0};
}

bool carries_memory(const LaneForm& form) {
  const Equation& e = form.lane.equations[0];
  for (std::size_t i = 0; i < carries_of(e); ++i)
    if (!form.in_registers(form.lane.aval(e.inputs[i]))) return true;
  return false;
}

std::string register_kernel_source(const LaneForm& form, const std::string& name) {
  return register_text::RegisterWriter(form).kernel(name);
}

}  // namespace vt::detail::cuda
