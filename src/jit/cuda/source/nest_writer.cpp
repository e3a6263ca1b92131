// NestWriter: a kernel's signature, loop variables, values and accesses.
#include "nest_writer.hpp"

#include <algorithm>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "element_source.hpp"

namespace vt::detail::cuda {

NestWriter::NestWriter(const Nest& nest, const Mapping& mapping)
    : nest_(nest), mapping_(mapping), dependences_(loop_dependences(nest)) {
  known_.assign(nest.values.size(), 0);
  ready_stage_.assign(nest.values.size(), 0);
  in_iteration_.assign(nest.values.size(), 0);
  for (std::size_t v = 0; v < nest.values.size(); ++v) {
    const NestValue& value = nest.values[v];
    const auto use = [&](int o) {
      ready_stage_[v] = std::max(ready_stage_[v], ready_stage_[o]);
      if (in_iteration_[o]) in_iteration_[v] = 1;
    };
    for (int o : value.operands) use(o);
    if (value.mask >= 0) use(value.mask);
    if (value.index >= 0) nest.indices.each_value(value.index, use);
    if (value.kind == Kind::state) in_iteration_[v] = 1;
    if (value.kind == Kind::reduced) ready_stage_[v] = nest.reductions[value.argument].stage + 1;
  }
}

void NestWriter::head(const std::string& name, const std::string& pointers,
                      const std::string& number) {
  text_ += formatted("typedef {} idx;\n", mapping_.wide_indices ? "i64" : "i32");
  text_ +=
      formatted("extern \"C\" __global__ void __launch_bounds__({}) {}(", mapping_.block, name);
  bool first = true;
  const auto parameter = [&](const std::string& p) {
    text_ += (first ? "" : ", ") + p;
    first = false;
  };
  for (std::size_t b = 0; b < nest_.buffers.size(); ++b) {
    const NestBuffer& buffer = nest_.buffers[b];
    if (buffer.local) continue;
    parameter(pointer(b));
  }
  if (!pointers.empty()) parameter(pointers);
  for (std::size_t l = 0; l < nest_.loops.size(); ++l)
    if (nest_.loops[l].runtime) parameter(formatted("long long e{}", l));
  for (int a = 0; a < nest_.arguments; ++a) parameter(formatted("long long a{}", a));
  if (!number.empty()) parameter("long long " + number);
  text_ += ") {\n";
  indent_ = 1;
}

std::string NestWriter::pointer(std::size_t b) const {
  const NestBuffer& buffer = nest_.buffers[b];
  const bool alone =
      count_if(nest_.buffers, [&](const NestBuffer& o) { return o.alias == buffer.alias; }) == 1;
  return formatted("{}{}*{} b{}", buffer.written ? "" : "const ", memory_type(buffer.dtype),
                   alone ? " __restrict__" : "", b);
}

void NestWriter::prepare_local_arrays() {
  std::int64_t offset = 0;
  if (mapping_.local_bytes > 0) line("VT_DYNAMIC_SHARED(vt_rows);");
  for (std::size_t b = 0; b < nest_.buffers.size(); ++b) {
    const NestBuffer& buffer = nest_.buffers[b];
    if (!buffer.local) continue;
    const char* type = memory_type(buffer.dtype);
    if (mapping_.thread_group == 1) {
      line(formatted("{} b{}[{}];", type, b, buffer.local));
      continue;
    }
    const std::string own =
        mapping_.thread_group == mapping_.block
            ? ""
            : formatted(" + threadIdx.x / 32 * {}",
                        mapping_.local_bytes / mapping_.thread_groups_in_block());
    line(formatted("{0}* const b{1} = ({0}*)(vt_rows + {2}{3});", type, b, offset, own));
    offset += (buffer.local * static_cast<std::int64_t>(size_of(buffer.dtype)) + 15) / 16 * 16;
  }
}

std::string NestWriter::extent(int l) const {
  const NestLoop& s = loop(l);
  if (s.block_of < 0) return s.runtime ? formatted("e{}", l) : formatted("{}", s.extent);
  const std::string total = s.runtime ? formatted("(idx)e{}", l) : formatted("(idx){}", s.total);
  return formatted("vt_min((idx){0}, {1} - (idx)d{2} * {0})", s.block, total, s.block_of);
}

void NestWriter::decompose(const std::string& of, const SmallVec<int, 6>& loops) {
  if (loops.empty()) return;
  std::string rest = of;
  for (std::size_t i = loops.size(); i-- > 0;) {
    const int l = loops[i];
    if (i == 0) {
      line(formatted("const idx d{} = {};", l, rest));
    } else {
      const std::string n = extent(l), next = formatted("{}_{}", of, i);
      line(formatted("const idx d{} = {} % (idx)({}), {} = {} / (idx)({});", l, rest, n, next, rest,
                     n));
      rest = next;
    }
  }
  for (int l : loops) open_ |= std::uint64_t{1} << l;
}

void NestWriter::leave(const SmallVec<int, 6>& loops) {
  for (int l : loops) open_ &= ~(std::uint64_t{1} << l);
}

std::string NestWriter::iterations(const SmallVec<int, 6>& loops) const {
  std::string text = "(idx)1";
  for (int l : loops) text += " * (idx)" + extent(l);
  return text;
}

std::string NestWriter::name(int v) const {
  const NestValue& x = value(v);
  if (x.kind == Kind::literal) return literal(x.literal);
  return formatted("v{}", v);
}

std::string NestWriter::index(IndexId e) const {
  const IndexExpr& expr = nest_.indices[e];
  std::string text;
  for (const IndexTerm& t : expr.terms) {
    const IndexAtom& a = nest_.indices.atom(t.atom);
    std::string factor;
    switch (a.kind) {
      case IndexAtom::Kind::loop: factor = formatted("d{}", a.id); break;
      case IndexAtom::Kind::value: factor = "(idx)" + name(a.id); break;
      default: {
        const bool whole = nest_.indices.bounds(a.of).low >= 0,
                   quotient = a.kind == IndexAtom::Kind::quotient;
        if (whole) factor = formatted("({}) {} (idx){}", index(a.of), quotient ? "/" : "%", a.by);
        else
          factor =
              formatted("vt_floor_{}<idx>({}, {})", quotient ? "div" : "mod", index(a.of), a.by);
      }
    }
    if (t.factor != 1) factor = formatted("(idx){} * ({})", t.factor, factor);
    text += (text.empty() ? "" : " + ") +
            (t.factor == 1 && a.kind != IndexAtom::Kind::loop ? "(" + factor + ")" : factor);
  }
  if (expr.constant != 0 || text.empty())
    text += (text.empty() ? "(idx)" : " + (idx)") + formatted("{}", expr.constant);
  return text;
}

std::string NestWriter::expression(int id) const {
  const NestValue& v = value(id);
  switch (v.kind) {
    case Kind::argument: {
      const std::string bits = formatted("a{}", v.argument);
      if (v.dtype == DType::f64) return "__longlong_as_double(" + bits + ")";
      if (is_float(v.dtype)) return "__int_as_float((i32)" + bits + ")";
      return is_bool(v.dtype) ? "((" + bits + " & 1) != 0)"
                              : formatted("({}){}", register_type(v.dtype), bits);
    }
    case Kind::index:
      return converted({formatted("((i64)({}))", index(v.index)), DType::i64}, v.dtype);
    case Kind::in_range:
      return formatted("({0} >= {1} && {0} < {2})", "(" + index(v.index) + ")", v.low, v.high);
    case Kind::load: {
      const DType d = nest_.buffers[v.buffer].dtype;
      const std::string* elsewhere = read_as_.empty() ? nullptr : &read_as_[id];
      const std::string read = from_memory(d, elsewhere && !elsewhere->empty()
                                                  ? *elsewhere
                                                  : "VT_LOAD(" + access(v.buffer, v.index) + ")");
      if (v.mask < 0) return read;
      return formatted("({} ? {} : {})", name(v.mask), read,
                       is_bool(d) ? std::string("false") : number(d, 0));
    }
    case Kind::op: {
      SmallVec<Operand, 3> operands;
      for (int o : v.operands) operands.push_back({name(o), value(o).dtype});
      return element(v.op, v.dtype, v.params, {operands.data(), operands.size()});
    }
    default:
      throw Error(ErrorKind::backend,
                  "vt: internal fault: a reduction's result is used before it is known");
  }
}

void NestWriter::write(int v) {
  if (known_[v] || value(v).kind == Kind::literal) return;
  known_[v] = 1;
  line(formatted("const {} v{} = {};", register_type(value(v).dtype), v, expression(v)));
}

void NestWriter::hoist(const Vec<int>& values) {
  for (int v : values) {
    const std::size_t k = v;
    if ((dependences_[k] & ~open_) != 0 || in_iteration_[k] || ready_stage_[k] > stages_done_)
      continue;
    if (value(v).kind == Kind::reduced) continue;
    write(v);
  }
}

void NestWriter::write_all(const Vec<int>& values) {
  for (int v : values)
    if (value(v).kind != Kind::reduced && value(v).kind != Kind::state) write(v);
}

void NestWriter::bind(int v, const std::string& text) {
  known_[v] = 1;
  line(formatted("const {} v{} = {};", register_type(value(v).dtype), v, text));
}

void NestWriter::bind_result(int reduction, const std::string& text) {
  for (std::size_t v = 0; v < nest_.values.size(); ++v)
    if (nest_.values[v].kind == Kind::reduced && nest_.values[v].argument == reduction)
      bind(static_cast<int>(v), text);
}

void NestWriter::store(const NestStore& s) {
  const DType d = nest_.buffers[s.buffer].dtype;
  const Operand x{name(s.value), value(s.value).dtype};
  const std::string target = access(s.buffer, s.index);
  if (s.update == Op::input || s.update == Op::select) {
    line((s.mask >= 0 ? "if (" + name(s.mask) + ") " : std::string()) + "VT_STORE(" + target +
         ", " + to_memory(d, x.text) + ");");
    return;
  }
  if (mapping_.updates == UpdatePlan::Way::atomic) {
    // Sums of signed integers are those of unsigned ones.
    const char* call = s.update == Op::add   ? "atomicAdd"
                       : s.update == Op::min ? "atomicMin"
                                             : "atomicMax";
    const char* type = s.update == Op::add ? (size_of(d) == 8 ? "u64" : "u32") : register_type(d);
    line(formatted("{0}{1}(({2}*)b{3} + ({4}), ({2}){5});",
                   s.mask >= 0 ? "if (" + name(s.mask) + ") " : "", call, type, s.buffer,
                   index(s.index), x.text));
    return;
  }
  open(s.mask >= 0 ? "if (" + name(s.mask) + ")" : "");
  line(formatted("const idx at = {};", index(s.index)));
  line(formatted("const {} before = {};", register_type(d),
                 from_memory(d, formatted("VT_LOAD(b{}, at)", s.buffer))));
  const Operand operands[] = {{"before", d}, x};
  line(formatted("const {} after = {};", register_type(d), element(s.update, d, {}, operands)));
  line(formatted("VT_STORE(b{}, at, {});", s.buffer, to_memory(d, "after")));
  close();
}

void NestWriter::store_all(const Vec<int>& stores) {
  for (int s : stores) store(nest_.stores[s]);
}

NestWriter::StageParts NestWriter::parts_of(int k) const {
  StageParts p;
  Vec<int> roots, after_roots;
  for (std::size_t r = 0; r < nest_.reductions.size(); ++r) {
    const NestReduction& reduction = nest_.reductions[r];
    if (reduction.stage != k) continue;
    p.reductions.push_back(static_cast<int>(r));
    add_roots(reduction, roots);
    p.folds = p.folds || goes_one_by_one(reduction);
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
  for (int l : nest_.stages[k].loops) {
    if (std::find(mapping_.shared.begin(), mapping_.shared.end(), l) != mapping_.shared.end())
      continue;
    (loop(l).reduce ? p.reduced : p.kept).push_back(l);
  }
  return p;
}

bool NestWriter::writes_over_operands() const {
  return any_of(nest_.buffers, [&](const NestBuffer& b) {
    return b.written &&
           count_if(nest_.buffers, [&](const NestBuffer& o) { return o.alias == b.alias; }) > 1;
  });
}

void NestWriter::synchronise() {
  if (mapping_.thread_group == 1) return;
  line(mapping_.thread_group == mapping_.block || mapping_.columns > 1 ? "__syncthreads();"
                                                                       : "__syncwarp();");
}

}  // namespace vt::detail::cuda
