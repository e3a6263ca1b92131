// Scatters whose updates may write the same element.
#include "scatter.hpp"

#include <algorithm>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "../source/nest_source.hpp"
#include "sort.hpp"

namespace vt::detail::cuda {

namespace device_scatter {

std::int64_t target_elements(const Nest& nest) {
  return nest.indices.bounds(nest.stores[0].index).high + 1;
}

}  // namespace device_scatter

void add_sorted_updates(const Nest& nest, const UpdatePlan& plan,
                        std::span<const Launch::Pointer> buffers, const Vec<std::int64_t>& numbers,
                        int multiprocessors, ScratchLayout& scratch, Vec<Launch>& launches) {
  using namespace device_scatter;
  const NestStore& store = nest.stores[0];
  std::int64_t n = 1, window = 1;
  for (int l : plan.key_loops) n *= nest.loops[l].extent;
  for (int l : plan.window_loops) window *= nest.loops[l].extent;
  if (n * window == 0) return;
  // Keys: the index without its window, or all bits where nothing is updated.
  const std::int64_t targets = target_elements(nest);
  const DType key = targets < 0xffff ? DType::u16 : targets < 0xffffffff ? DType::u32 : DType::u64;
  const DType place = n < 0xffffffff ? DType::u32 : DType::u64;
  const auto bytes = [&](DType d) { return n * static_cast<std::int64_t>(size_of(d)); };
  const Launch::Pointer unordered = scratch.take(bytes(key)), keys = scratch.take(bytes(key)),
                        places = scratch.take(bytes(place));
  Nest index = nest;
  Vec<IndexId> without(nest.loops.size(), -1);
  for (int l : plan.window_loops) without[l] = index.indices.constant(0);
  NestValue value;
  value.kind = NestValue::Kind::index;
  value.dtype = key;
  value.index = index.indices.substitute(store.index, without);
  index.values.push_back(value);
  int number = static_cast<int>(index.values.size()) - 1;
  if (store.mask >= 0) {
    NestValue none, chosen;
    none.kind = NestValue::Kind::literal;
    none.dtype = none.literal.dtype = key;
    none.literal.natural = key == DType::u16   ? 0xffff
                           : key == DType::u32 ? 0xffffffff
                                               : ~std::uint64_t{0};
    index.values.push_back(none);
    chosen.op = Op::select;
    chosen.dtype = key;
    chosen.operands = {store.mask, number, number + 1};
    index.values.push_back(chosen);
    number += 2;
  }
  NestBuffer made;
  made.dtype = key;
  made.written = true;
  for (const NestBuffer& b : nest.buffers) made.alias = std::max(made.alias, b.alias + 1);
  index.buffers.push_back(made);
  NestStore numbered;
  numbered.buffer = static_cast<int>(index.buffers.size()) - 1;
  numbered.value = number;
  numbered.index = index.indices.constant(0);
  std::int64_t stride = 1;
  for (std::size_t i = plan.key_loops.size(); i-- > 0;) {
    const int l = plan.key_loops[i];
    const std::int64_t extent = nest.loops[l].extent;
    numbered.index = index.indices.add(numbered.index,
                                       index.indices.scale(index.indices.loop(l, extent), stride));
    stride *= extent;
  }
  index.stores.clear();
  index.stores.push_back(numbered);
  index.stages[0].loops = plan.key_loops;
  const auto add = [&](const std::string& name, std::string source, std::int64_t blocks,
                       std::initializer_list<Launch::Pointer> more,
                       std::initializer_list<std::int64_t> last) {
    Launch l;
    l.name = name;
    l.source = std::move(source);
    l.grid = {blocks, 256, 0};
    for (const Launch::Pointer& p : buffers) l.pointers.push_back(p);
    for (const Launch::Pointer& p : more) l.pointers.push_back(p);
    l.numbers = numbers;
    for (std::int64_t x : last) l.numbers.push_back(x);
    launches.push_back(std::move(l));
  };
  const Mapping mapping = choose_mapping(index);
  add("kernel_scatter_indices", nest_source(index, mapping, "kernel_scatter_indices"),
      mapping.blocks(), {unordered}, {});
  SortSpec spec;
  spec.length = spec.limit = n;
  spec.dtypes = {key, place};
  spec.is_place = {0, 1};
  const Launch::Pointer from[] = {unordered, {}}, to[] = {keys, places};
  add_sort(spec, from, to, multiprocessors, scratch, launches);
  const auto blocks = [&](std::int64_t iterations) {
    return std::min<std::int64_t>((iterations + 255) / 256, std::int64_t{32} * multiprocessors);
  };
  const SortedUpdates sorted{plan, key, place};
  const std::int64_t pieces = (n + SortedUpdates::piece - 1) / SortedUpdates::piece;
  const DType d = nest.buffers[store.buffer].dtype;
  const Launch::Pointer parts =
      scratch.take(pieces * window * static_cast<std::int64_t>(size_of(d)));
  add("kernel_scatter_combine",
      sorted_updates_source(nest, sorted, false, "kernel_scatter_combine"), blocks(n * window),
      {keys, places, parts}, {n});
  if (pieces > 1 && store.update != Op::select)
    add("kernel_scatter_join", sorted_updates_source(nest, sorted, true, "kernel_scatter_join"),
        blocks((pieces - 1) * window), {keys, places, parts}, {n});
}

}  // namespace vt::detail::cuda
