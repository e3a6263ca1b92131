// Element epilogues: element-wise kernels that run on each element of a product as it is done.
#include "element_epilogue.hpp"

#include <algorithm>

#include <vt/detail/loops.hpp>

#include "epilogue.hpp"

namespace vt::detail {

namespace element_epilogues {

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
    if (nest.loops[l].block_of >= 0) return false;
    if (nest.loops[l].extent != 1) loops.push_back(l);
  }
  insertion_sort(loops, [&](int a, int b) {
    return nest.indices.factor_of_loop(read, a) < nest.indices.factor_of_loop(read, b);
  });
  std::int64_t passed = 1;
  for (int l : loops) {
    if (nest.indices.factor_of_loop(read, l) != passed) return false;
    passed *= nest.loops[l].extent;
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

void attach_element_epilogues(Fusion& fusion, FunctionRef<bool(const FusedStep&)> takes) {
  attach_to_products(fusion, [&](FusedStep& kernel, const FusedStep& product, bool alone) {
    const Equation& e = fusion.graph.equations[product.equation];
    const Var result = fusion.storage[e.outputs[0]];
    const auto buffer = static_cast<int>(
        std::find(kernel.buffers.begin(), kernel.buffers.end(), result) - kernel.buffers.begin());
    if (!element_epilogues::takes_elements(kernel.nest, buffer,
                                           fusion.graph.aval(result).elements()) ||
        !takes(product))
      return false;
    kernel.join(product);
    kernel.row_loop = 0;
    kernel.rows_alone = alone;
    return true;
  });
}

}  // namespace vt::detail
