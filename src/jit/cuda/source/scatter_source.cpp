// Kernels that combine sorted updates of the same element; see scatter.cpp.
#include "nest_writer.hpp"

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "element_source.hpp"

namespace vt::detail::cuda {

std::string NestWriter::updates(const SortedUpdates& u, bool join, const std::string& name) {
  const NestStore& s = nest_.stores[0];
  const DType d = nest_.buffers[s.buffer].dtype;
  const char *key = memory_type(u.key), *type = register_type(d);
  head(name,
       formatted(
           "const {0}* __restrict__ keys, const {1}* __restrict__ places, {2}* __restrict__ parts",
           key, memory_type(u.place), memory_type(d)),
       "n");
  line(formatted("const {0} none = ({0})~0ull;", key));
  line(formatted("const idx window = {}, piece = {};", iterations(u.plan.window_loops),
                 SortedUpdates::piece));
  line(join ? "const idx all = ((idx)n - 1) / piece * window;"
            : "const idx all = (idx)n * window;");
  open(formatted(
      "for (idx t = (idx)blockIdx.x * {0} + threadIdx.x; t < all; t += (idx)gridDim.x * {0})",
      mapping_.block));
  line(join ? "const idx i = (t / window + 1) * piece, w = t % window;"
            : "const idx i = t / window, w = t % window;");
  line(formatted("const {} own = VT_LOAD(keys, i);", key));
  line("if (own == none) continue;");
  decompose("w", u.plan.window_loops);
  const auto combined = [&](const std::string& so_far, const std::string& x, DType of) {
    const Operand operands[] = {{so_far, d}, {x, of}};
    return element(s.update, d, {}, operands);
  };
  Vec<int> roots;
  const auto iteration_at = [&](const char* j) {
    line(formatted("const idx r = (idx)VT_LOAD(places, {});", j));
    decompose("r", u.plan.key_loops);
    write_all(needed_values(nest_, roots));
  };
  if (s.update == Op::select) {
    line("if (i + 1 < (idx)n && VT_LOAD(keys, i + 1) == own) continue;  // the last one stays");
    add_roots(nest_, s, roots);
    iteration_at("i");
    line("VT_STORE(" + access(s.buffer, s.index) + ", " + to_memory(d, this->name(s.value)) + ");");
  } else if (join) {
    line("// The first of the pieces that go on with an element takes those after it.");
    line(
        "if (VT_LOAD(keys, i - 1) != own || (i > piece && VT_LOAD(keys, i - piece - 1) == own)) "
        "continue;");
    nest_.indices.each_value(s.index, [&](int v) { roots.push_back(v); });
    iteration_at("i");
    line("const idx at = " + index(s.index) + ";");
    line(formatted("{} sum = {};", type, from_memory(d, formatted("VT_LOAD(b{}, at)", s.buffer))));
    open("for (idx j = i; j < (idx)n && VT_LOAD(keys, j) == own; j += piece)");
    line(formatted("const {} part = {};", type,
                   from_memory(d, "VT_LOAD(parts, j / piece * window + w)")));
    line("sum = " + combined("sum", "part", d) + ";");
    close();
    line(formatted("VT_STORE(b{}, at, {});", s.buffer, to_memory(d, "sum")));
  } else {
    line("const bool first = i == 0 || VT_LOAD(keys, i - 1) != own;");
    line("if (!first && i % piece != 0) continue;");
    line("const idx end = vt_min<idx>((idx)n, (i / piece + 1) * piece);");
    line(formatted("{} sum = 0;", type));
    line("idx at = 0;");
    open("for (idx j = i; j < end && VT_LOAD(keys, j) == own; ++j)");
    add_roots(nest_, s, roots);
    iteration_at("j");
    line("at = " + index(s.index) + ";");
    line(formatted("if (j == i && first) sum = {};",
                   from_memory(d, formatted("VT_LOAD(b{}, at)", s.buffer))));
    line(formatted("sum = j == i && !first ? ({}){} : {};", type, this->name(s.value),
                   combined("sum", this->name(s.value), value(s.value).dtype)));
    close();
    line(formatted("if (first) VT_STORE(b{}, at, {});", s.buffer, to_memory(d, "sum")));
    line(formatted("else VT_STORE(parts, i / piece * window + w, {});", to_memory(d, "sum")));
  }
  close();
  text_ += "}\n";
  return std::move(text_);
}

std::string sorted_updates_source(const Nest& nest, const SortedUpdates& updates, bool join,
                                  const std::string& name) {
  const Mapping mapping = choose_mapping(nest);
  return NestWriter(nest, mapping).updates(updates, join, name);
}

}  // namespace vt::detail::cuda
