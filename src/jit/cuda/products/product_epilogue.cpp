// Epilogues of products: element-wise kernels that run inside the product's own kernel.
#include "product_epilogue.hpp"

#include <algorithm>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "../../fusion/epilogue.hpp"
#include "../source/element_source.hpp"
#include "../source/nest_writer.hpp"

namespace vt::detail::cuda {

namespace element_epilogues {

// At which index the nest reads the buffer; −1: at several, or under a mask.
IndexId read_of(const Nest& nest, int buffer) {
  IndexId read = -1;
  for (const NestValue& v : nest.values) {
    if (v.kind != NestValue::Kind::load || v.buffer != buffer) continue;
    if (v.mask >= 0 || (read >= 0 && read != v.index)) return -1;
    read = v.index;
  }
  return read;
}

// Is an array walked through as the product is along its neighbours, or not at all?
bool lies_with(const Nest& nest, IndexId index, int loop, bool may_stay) {
  const std::int64_t factor = nest.indices.factor_of_loop(index, loop);
  return (factor == 1 || (may_stay && factor == 0)) &&
         !nest.indices.loop_inside_division(index, loop);
}

// All loops of its only stage; others that the nest lists were joined with these.
SmallVec<int, 6> loops_of(const Nest& nest) {
  SmallVec<int, 6> loops = nest.shared;
  loops.append(nest.stages[0].loops.begin(), nest.stages[0].loops.end());
  return loops;
}

// Does an iteration of the loops stand for each of the `elements`, once?
bool takes_elements(const Nest& nest, int buffer, std::int64_t elements) {
  const IndexId read = read_of(nest, buffer);
  if (elements < 2 || read < 0 || nest.stages.size() != 1 || !nest.reductions.empty() ||
      nest.indices[read].constant != 0)
    return false;
  if (any_of(nest.buffers, [](const NestBuffer& b) { return b.local > 0; })) return false;
  if (any_of(nest.stores, [](const NestStore& s) { return s.update != Op::input || s.mask >= 0; }))
    return false;
  if (any_of(nest.indices[read].terms, [&](const IndexTerm& t) {
        return nest.indices.atom(t.atom).kind != IndexAtom::Kind::loop;
      }))
    return false;
  SmallVec<int, 6> loops;
  for (int l : loops_of(nest)) {
    if (nest.loops[static_cast<std::size_t>(l)].block_of >= 0) return false;
    if (nest.loops[static_cast<std::size_t>(l)].extent != 1) loops.push_back(l);
  }
  insertion_sort(loops, [&](int a, int b) {
    return nest.indices.factor_of_loop(read, a) < nest.indices.factor_of_loop(read, b);
  });
  std::int64_t passed = 1;
  for (int l : loops) {
    if (nest.indices.factor_of_loop(read, l) != passed) return false;
    passed *= nest.loops[static_cast<std::size_t>(l)].extent;
  }
  // Neighbours stay neighbours: what is transposed has a kernel of its own, which does that in
  // shared memory.
  return passed == elements &&
         all_of(nest.stores,
                [&](const NestStore& s) { return lies_with(nest, s.index, loops[0], false); }) &&
         all_of(nest.values, [&](const NestValue& v) {
           return v.kind != NestValue::Kind::load || lies_with(nest, v.index, loops[0], true);
         });
}

}  // namespace element_epilogues

void attach_element_epilogues(Fusion& fusion, FunctionRef<bool(const Equation&)> takes) {
  attach_to_products(fusion, [&](FusedStep& kernel, const FusedStep& product, bool alone) {
    const Equation& e = fusion.graph.equations[static_cast<std::size_t>(product.equation)];
    const Var result = fusion.storage[static_cast<std::size_t>(e.outputs[0])];
    const auto buffer = static_cast<int>(
        std::find(kernel.buffers.begin(), kernel.buffers.end(), result) - kernel.buffers.begin());
    if (!element_epilogues::takes_elements(kernel.nest, buffer,
                                           fusion.graph.aval(result).elements()) ||
        !takes(e))
      return false;
    kernel.equation = product.equation;
    kernel.row_loop = 0;
    kernel.rows_alone = alone;
    return true;
  });
}

ProductEpilogue NestWriter::epilogue(int buffer, std::int64_t columns) {
  ProductEpilogue e;
  e.wide = mapping_.wide_indices;
  for (std::size_t b = 0; b < nest_.buffers.size(); ++b) {
    if (static_cast<int>(b) == buffer) continue;
    e.parameters += ", " + pointer(b);
    e.arguments += formatted(", b{}", b);
  }
  for (int a = 0; a < nest_.arguments; ++a) {
    e.parameters += formatted(", long long a{}", a);
    e.arguments += formatted(", a{}", a);
  }
  const IndexId read = element_epilogues::read_of(nest_, buffer);
  const DType product = nest_.buffers[static_cast<std::size_t>(buffer)].dtype;
  text_ =
      formatted("VT_FN void vt_epilogue(const idx row, const idx column, const {} product{}) {{\n",
                register_type(product), e.parameters);
  indent_ = 1;
  const SmallVec<int, 6> loops = element_epilogues::loops_of(nest_);
  std::int64_t elements = 1;
  for (int l : loops) elements *= loop(l).extent;
  for (int l : loops) {
    // A loop within a row depends on the column alone, one over rows on the row, so that neither is
    // computed again for each element of a tile.
    const std::int64_t extent = loop(l).extent, factor = nest_.indices.factor_of_loop(read, l);
    const bool within = columns > 0 && factor * extent <= columns,
               over = columns > 0 && factor % columns == 0;
    std::string at = extent == 1 ? "0" : within ? "column" : over ? "row" : "(row + column)";
    if (extent != 1 && factor > 1) at += formatted(" / (idx){}", factor);
    if (extent != 1 && factor * extent != (within ? columns : elements))
      at += formatted(" % (idx){}", extent);
    line(formatted("const idx d{} = {};", l, at));
    open_ |= std::uint64_t{1} << l;
  }
  const StageParts p = parts_of(0);
  for (int v : p.body.needed)
    if (value(v).kind == Kind::load && value(v).buffer == buffer) bind(v, "product");
  write_all(p.body.needed);
  store_all(p.body.stores);
  text_ += "}\n";
  e.function = std::move(text_);
  return e;
}

ProductEpilogue product_epilogue(const Nest& nest, int buffer, std::int64_t columns, bool keep) {
  const Mapping mapping = choose_mapping(nest);
  ProductEpilogue e = NestWriter(nest, mapping).epilogue(buffer, columns);
  e.keep = keep;
  return e;
}

}  // namespace vt::detail::cuda
