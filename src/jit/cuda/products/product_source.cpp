// Matrix products and convolutions as CUDA kernels: c = Σ a · b over axes of four kinds (batch,
// rows, columns, depth), each of which may be an axis of an image.
#include "product_source.hpp"

#include <algorithm>

#include <vt/detail/message.hpp>

#include "../../../trace/base/stable_sort.hpp"
#include "product_writer.hpp"

namespace vt::detail::cuda {

namespace product_text {

std::string multiply_add(DType d, const std::string& sum, const std::string& a,
                         const std::string& b) {
  if (d == DType::f32) return formatted("fmaf({}, {}, {})", a, b, sum);
  if (d == DType::f64) return formatted("fma({}, {}, {})", a, b, sum);
  return formatted("vt_add({}, vt_mul({}, {}))", sum, a, b);
}

std::string element(DType memory, DType sums, const std::string& place) {
  return converted({from_memory(memory, "VT_LOAD(" + place + ")"),
                    is_float(memory) && memory != DType::f64 ? DType::f32 : memory},
                   sums);
}

std::int64_t iterations_of(const AxisList& axes) {
  std::int64_t n = 1;
  for (const Axis& x : axes) n *= x.extent;
  return n;
}
std::int64_t nearest(const AxisList& axes, std::int64_t Axis::* distance) {
  std::int64_t least = std::int64_t{1} << 62;
  for (const Axis& x : axes)
    if (x.extent > 1 && x.*distance != 0)
      least = std::min(least, x.*distance < 0 ? -(x.*distance) : x.*distance);
  return least;
}
void sort_by(AxisList& axes, std::int64_t Axis::* distance) {
  stable_sort(axes, [&](const Axis& x, const Axis& y) { return x.*distance > y.*distance; });
}

ProductWriter::ProductWriter(const ConvSpec& spec, bool tensor_cores,
                             const ProductEpilogue* epilogue)
    : s_(spec), epilogue_(epilogue) {
  tensor_ = tensor_cores && s_.a_dtype == s_.b_dtype && size_of(s_.a_dtype) == 2 &&
            is_float(s_.a_dtype) && s_.accumulate == DType::f32;
  const auto add = [](AxisList& list, const ConvAxes& axes) {
    for (const ConvAxis& x : axes)
      if (x.extent != 1) list.push_back({x.extent, x.a, x.b, x.c});
  };
  for (const ConvAxes* axes : {&s_.outer_batch, &s_.inner_batch}) add(batch_, *axes);
  for (const ConvAxes* axes : {&s_.outer_free, &s_.inner_free}) add(rows_, *axes);
  add(columns_, s_.b_free);
  if (s_.columns.extent != 1)
    (s_.columns.a != 0 ? batch_ : columns_)
        .push_back({s_.columns.extent, s_.columns.a, s_.columns.b, s_.columns.c});
  for (const ConvAxes* axes : {&s_.outer_contract, &s_.inner_contract}) add(depth_, *axes);
  results_ = s_.results();
  depth_count_ = iterations_of(depth_);
  std::int64_t last_a = 0, last_b = 0;  // as far as offsets go
  for (const AxisList* axes : {&batch_, &rows_, &columns_, &depth_})
    for (const Axis& x : *axes)
      last_a += (x.extent - 1) * std::abs(x.a), last_b += (x.extent - 1) * std::abs(x.b);
  for (const ConvWindow& w : s_.windows) {
    last_a += (w.extent + (w.out + w.size) * w.stride * w.rhs_dilation) * std::abs(w.a),
        last_b += w.size * std::abs(w.b);
    depth_count_ *= w.size;
  }
  wide_ = std::max({last_a, last_b, results_, depth_count_}) >= (std::int64_t{1} << 31) - 4096 ||
          (epilogue && epilogue->wide);
  sums_ = register_type(s_.accumulate);
}

ProductSource ProductWriter::write() {
  std::int64_t rows = iterations_of(rows_);
  for (const ConvWindow& w : s_.windows) rows *= w.out;
  const std::int64_t columns = iterations_of(columns_);
  p_.name = formatted("kernel_{}_{}", s_.windows.empty() ? "product" : "convolution",
                      name_of(s_.accumulate)) +
            (epilogue_ ? epilogue_->name : "");
  p_.threads = threads;
  // Fewer would leave most of a tile's threads idle.
  constexpr std::int64_t many = 32, some = 12;
  const bool tiled =
      depth_count_ >= 8 && std::min(rows, columns) >= some && std::max(rows, columns) >= many;
  if (results_ == 0) return p_;
  if (tiled) tiles();
  else elements();
  if (p_.parts > 1) join();
  return std::move(p_);
}

void ProductWriter::unrolled(const std::string& s) {
  text_ += "#pragma unroll\n";
  open(s);
}

bool ProductWriter::phased(int window) const {
  const ConvWindow& w = s_.windows[window];
  return w.lhs_dilation > 1 && w.stride == 1 && w.rhs_dilation == 1;
}

std::int64_t ProductWriter::places(int window) const {
  const ConvWindow& w = s_.windows[window];
  return phased(window) ? (w.size + w.lhs_dilation - 1) / w.lhs_dilation : w.size;
}

AxisList ProductWriter::depth_axes() const {
  AxisList axes = depth_;
  for (std::size_t k = 0; k < s_.windows.size(); ++k) {
    const ConvWindow& w = s_.windows[k];
    const std::int64_t step = phased(static_cast<int>(k)) ? w.lhs_dilation : 1;
    axes.push_back(
        {places(static_cast<int>(k)), w.rhs_dilation * w.a, step * w.b, 0, static_cast<int>(k)});
  }
  sort_by(axes, &Axis::a);
  return axes;
}

void ProductWriter::begin() {
  text_ = formatted("typedef {} idx;\n", wide_ ? "i64" : "i32");
  if (epilogue_ && p_.parts == 1) text_ += epilogue_->function;
  const std::string last =
      p_.parts > 1 ? formatted(", {}* __restrict__ c", sums_) : last_parameters();
  text_ += formatted(
      "extern \"C\" __global__ void __launch_bounds__({}) {}(const {}* __restrict__ a, const {}* "
      "__restrict__ b{}) {{\n",
      threads, p_.name, memory_type(s_.a_dtype), memory_type(s_.b_dtype), last);
  indent_ = 1;
}

std::string ProductWriter::last_parameters() const {
  std::string text;
  if (!epilogue_ || epilogue_->keep)
    text += formatted(", {}* __restrict__ c", memory_type(s_.result));
  return epilogue_ ? text + epilogue_->parameters : text;
}

std::string ProductWriter::finished(const std::string& row, const std::string& column,
                                    const std::string& sum) const {
  const std::string product = converted({sum, s_.accumulate}, s_.result),
                    at = column == "0" ? row : row + " + " + column;
  if (!epilogue_) return formatted("VT_STORE(c, {}, {});", at, to_memory(s_.result, product));
  std::string text = formatted("{{ const {} product = {}; ", register_type(s_.result), product);
  if (epilogue_->keep)
    text += formatted("VT_STORE(c, {}, {}); ", at, to_memory(s_.result, "product"));
  return text + formatted("vt_epilogue({}, {}, product{}); }}", row, column, epilogue_->arguments);
}

std::string ProductWriter::store(const std::string& row, const std::string& column,
                                 const std::string& sum) const {
  if (p_.parts == 1) return finished(row, column, sum);
  return formatted("VT_STORE(c, (i64)part * {}ll + {}{}{}, {});", results_, row,
                   column == "0" ? "" : " + ", column == "0" ? "" : column, sum);
}

std::int64_t ProductWriter::dense_columns() const {
  AxisList columns = columns_;
  sort_by(columns, &Axis::c);
  std::int64_t n = 1;
  for (std::size_t i = columns.size(); i-- > 0;) {
    if (columns[i].c != n) return 0;
    n *= columns[i].extent;
  }
  for (const AxisList* axes : {&batch_, &rows_})
    for (const Axis& x : *axes)
      if (x.c % n != 0) return 0;
  for (const ConvWindow& w : s_.windows)
    if (w.out > 1 && w.c % n != 0) return 0;
  return n > 1 ? n : 0;
}

void ProductWriter::choose_parts(std::int64_t parts) {
  p_.parts = std::max<std::int64_t>(parts, 1);
  if (p_.parts > 1)
    p_.parts_bytes = p_.parts * results_ * static_cast<std::int64_t>(size_of(s_.accumulate));
}

void ProductWriter::decode(const std::string& of, const AxisList& axes, const std::string& prefix) {
  std::string rest = of;
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (i == 0) {
      line(formatted("const idx {}0 = {};", prefix, rest));
      break;
    }
    const std::string next = formatted("{}_{}", prefix, i);
    line(formatted("const idx {}{} = {} % {}, {} = {} / {};", prefix, i, rest, axes[i].extent, next,
                   rest, axes[i].extent));
    rest = next;
  }
}

std::string ProductWriter::offset(const std::string& start, const AxisList& axes,
                                  const std::string& prefix, std::int64_t Axis::* distance) {
  std::string text = start;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    // A window's places say where they are in a by their elements.
    if (axes[i].*distance == 0 || (axes[i].window >= 0 && distance == &Axis::a)) continue;
    text += formatted(" + (idx){} * {}{}", axes[i].*distance, prefix, i);
  }
  return text;
}

std::string ProductWriter::first_place(int window, const std::string& o,
                                       const std::string& phase) const {
  const ConvWindow& w = s_.windows[window];
  if (phased(window))
    return formatted("{} + ({} + first{} - (idx){}) / {}", o, phase, window, w.low, w.lhs_dilation);
  return formatted("(idx){} * {} - (idx){}", w.stride, o, w.low);
}

std::string ProductWriter::meet(int window, const std::string& first, const std::string& p) {
  const ConvWindow& w = s_.windows[window];
  const bool asked = dilated(window) && !phased(window);
  const std::string at =
      formatted("{} + (idx){} * {}", first, phased(window) ? 1 : w.rhs_dilation, p);
  line(formatted("const idx e{} = {};", window,
                 asked ? formatted("vt_floor_div<idx>({}, {})", at, w.lhs_dilation) : at));
  std::string met = formatted("e{0} >= 0 && e{0} < {1}", window, w.extent);
  if (asked) met += formatted(" && {} == e{} * {}", at, window, w.lhs_dilation);
  if (phased(window))
    met += formatted(" && first{} + {} * {} < {}", window, w.lhs_dilation, p, w.size);
  return met;
}

void ProductWriter::first_of_phase(int window, const std::string& phase) {
  const ConvWindow& w = s_.windows[window];
  line(formatted("const idx first{} = vt_floor_mod<idx>((idx){} - {}, {});", window, w.low, phase,
                 w.lhs_dilation));
}

void ProductWriter::elements() {
  AxisList c = batch_;
  c.append(rows_.begin(), rows_.end());
  c.append(columns_.begin(), columns_.end());
  for (std::size_t k = 0; k < s_.windows.size(); ++k)
    c.push_back({s_.windows[k].out, 0, 0, s_.windows[k].c, static_cast<int>(k)});
  sort_by(c, &Axis::c);
  const AxisList depth = depth_axes();
  std::size_t longest = 0;
  for (std::size_t i = 1; i < depth.size(); ++i)
    if (depth[i].extent > depth[longest].extent) longest = i;
  std::int64_t each = 0;
  constexpr std::int64_t enough = 1 << 16, least = 128;  // threads; products for each
  if (!depth.empty() && results_ < enough / 4 && depth_count_ >= 4 * least) {
    const std::int64_t extent = depth[longest].extent;
    const std::int64_t parts =
        std::min({(enough + results_ - 1) / results_, depth_count_ / least, extent});
    each = (extent + parts - 1) / parts;
    choose_parts((extent + each - 1) / each);
  }
  const std::int64_t total = results_ * p_.parts;
  p_.blocks = (total + threads - 1) / threads;
  p_.way = p_.parts > 1
               ? formatted("an element and one of {} parts of its sum per thread", p_.parts)
               : std::string("an element per thread");
  begin();
  line(formatted("const i64 iteration = (i64)blockIdx.x * {} + threadIdx.x;", threads));
  line(formatted("if (iteration >= {}ll) return;", total));
  line(p_.parts > 1
           ? formatted("const idx at = (idx)(iteration % {0}ll), part = (idx)(iteration / {0}ll);",
                       results_)
           : std::string("const idx at = (idx)iteration;"));
  decode("at", c, "x");
  for (std::size_t i = 0; i < c.size(); ++i) {
    const int w = c[i].window;
    if (w < 0) continue;
    const std::string o = formatted("x{}", i);
    std::string phase, of_phase = o;
    if (phased(w)) {
      const std::int64_t d = s_.windows[w].lhs_dilation;
      phase = formatted("{} % {}", o, d), of_phase = formatted("{} / {}", o, d);
      first_of_phase(w, phase);
    }
    line(formatted("const idx w{} = {};", w, first_place(w, of_phase, phase)));
  }
  std::string b_start = formatted("(idx){}", s_.b_start);
  for (std::size_t k = 0; k < s_.windows.size(); ++k)
    if (phased(static_cast<int>(k)))
      b_start += formatted(" + (idx){} * first{}", s_.windows[k].b, k);
  line(formatted("const idx first_a = {}, first_b = {};", offset("0", c, "x", &Axis::a),
                 offset(b_start, c, "x", &Axis::b)));
  line(formatted("{} sum = 0;", sums_));
  std::string a_at = "first_a";
  for (std::size_t i = 0; i < depth.size(); ++i) {
    if (i == longest && p_.parts > 1)
      open(formatted(
          "for (idx d{0} = part * {1}; d{0} < vt_min<idx>(part * {1} + {1}, {2}); ++d{0})", i, each,
          depth[i].extent));
    else open(formatted("for (idx d{0} = 0; d{0} < {1}; ++d{0})", i, depth[i].extent));
    const int w = depth[i].window;
    if (w < 0) continue;
    line(formatted("if (!({})) continue;", meet(w, formatted("w{}", w), formatted("d{}", i))));
    a_at += formatted(" + (idx){} * e{}", s_.windows[w].a, w);
  }
  a_at = offset(a_at, depth, "d", &Axis::a);
  line("sum = " +
       multiply_add(
           s_.accumulate, "sum", element(s_.a_dtype, s_.accumulate, "a, " + a_at),
           element(s_.b_dtype, s_.accumulate, "b, " + offset("first_b", depth, "d", &Axis::b))) +
       ";");
  for (std::size_t i = 0; i < depth.size(); ++i) close();
  // Results are numbered as they lie.
  const std::int64_t n = dense_columns();
  if (p_.parts > 1) line("VT_STORE(c, iteration, sum);");
  else
    line(n ? finished(formatted("at - at % {}", n), formatted("at % {}", n), "sum")
           : finished("at", "0", "sum"));
  close();
  p_.source = std::move(text_);
}

void ProductWriter::join() {
  p_.join_name = p_.name + "_parts";
  p_.join_blocks = (results_ + threads - 1) / threads;
  text_ = formatted("typedef {} idx;\n", wide_ ? "i64" : "i32");
  if (epilogue_) text_ += epilogue_->function;
  text_ += formatted(
      "extern \"C\" __global__ void __launch_bounds__({}) {}(const {}* __restrict__ parts{}) {{\n",
      threads, p_.join_name, sums_, last_parameters());
  indent_ = 1;
  line(formatted("const i64 at = (i64)blockIdx.x * {} + threadIdx.x;", threads));
  line(formatted("if (at >= {}ll) return;", results_));
  line(formatted("{} sum = VT_LOAD(parts, at);", sums_));
  line(formatted(
      "for (i64 part = 1; part < {}; ++part) sum = vt_add(sum, VT_LOAD(parts, part * {}ll + at));",
      p_.parts, results_));
  const std::int64_t n = dense_columns();
  line("const idx row = (idx)(at" + (n ? formatted(" - at % {}), column = (idx)(at % {});", n, n)
                                       : std::string("), column = 0;")));
  line(finished("row", "column", "sum"));
  close();
  p_.join_source = std::move(text_);
}

}  // namespace product_text

ProductSource product_source(const ConvSpec& s, bool tensor_cores,
                             const ProductEpilogue* epilogue) {
  return product_text::ProductWriter(s, tensor_cores, epilogue).write();
}

std::int64_t dense_columns(const ConvSpec& s) {
  return product_text::ProductWriter(s, false, nullptr).dense_columns();
}

ConvSpec as_convolution(const MatmulSpec& m) {
  ConvSpec s;
  s.a_dtype = m.a_dtype, s.b_dtype = m.b_dtype, s.accumulate = m.accumulate, s.result = m.result;
  s.outer_batch.push_back({m.batch, m.a_batch, m.b_batch, m.m * m.n});
  s.outer_free.push_back({m.m, m.a_row, 0, m.n});
  s.outer_contract.push_back({m.k, m.a_column, m.b_row, 0});
  s.b_free.push_back({m.n, 0, m.b_column, 1});
  return s;
}

}  // namespace vt::detail::cuda
