// Scans along few long rows, each cut into blocks that run in parallel.
#include "long_scans.hpp"

#include <algorithm>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "../source/nest_source.hpp"

namespace vt::detail::cuda {

namespace device_scan {

using Kind = NestValue::Kind;

/// A nest while its reduce loop is cut: loop `blocks` counts the blocks, loop `inside` goes through
/// one.
struct Cut {
  Nest nest;
  int inside = -1, blocks = -1;
  std::int64_t count = 0, rows = 1;
  IndexId row = -1;  // among rows, the last loop the fastest

  Cut(const Nest& given, std::int64_t block) : nest(given) {
    SmallVec<int, 6>& loops = nest.stages[0].loops;
    for (int l : loops)
      if (loop(l).reduce) inside = l;
    blocks = static_cast<int>(nest.loops.size());
    const std::int64_t total = loop(inside).extent;
    count = (total + block - 1) / block;
    NestLoop counted;
    counted.extent = count;
    nest.loops.push_back(counted);
    NestLoop& cut = nest.loops[inside];
    cut.block_of = blocks;
    cut.block = cut.extent = block;
    cut.total = total;
    row = nest.indices.constant(0);
    for (std::size_t i = loops.size(); i-- > 0;) {
      if (loops[i] == inside) continue;
      const std::int64_t extent = loop(loops[i]).extent;
      row = nest.indices.add(row, nest.indices.scale(nest.indices.loop(loops[i], extent), rows));
      rows *= extent;
    }
    // Every index goes on from its block.
    Vec<IndexId> moved(nest.loops.size(), -1);
    moved[inside] = nest.indices.add(nest.indices.loop(inside, block),
                                     nest.indices.scale(nest.indices.loop(blocks, count), block));
    for (NestValue& v : nest.values)
      if (v.index >= 0) v.index = nest.indices.substitute(v.index, moved);
    for (NestStore& s : nest.stores) s.index = nest.indices.substitute(s.index, moved);
    loops.insert(loops.begin(), blocks);
  }
  const NestLoop& loop(int l) const { return nest.loops[l]; }
  int add_buffer(DType d, bool written) {
    NestBuffer b;
    b.dtype = d;
    b.written = written;
    for (const NestBuffer& o : nest.buffers) b.alias = std::max(b.alias, o.alias + 1);
    nest.buffers.push_back(b);
    return static_cast<int>(nest.buffers.size()) - 1;
  }
  int add(NestValue v) {
    nest.values.push_back(std::move(v));
    return static_cast<int>(nest.values.size()) - 1;
  }
  /// Where block `counted` of a row is in an array of all blocks, those of a row side by side.
  IndexId place(IndexId counted) {
    return nest.indices.add(nest.indices.scale(row, count), counted);
  }
};

}  // namespace device_scan

std::int64_t scan_block(const Nest& nest) {
  using namespace device_scan;
  if (nest.stages.size() != 1 || !nest.shared.empty() || nest.reductions.empty() ||
      nest.loops.size() > 60)
    return 0;
  double rows = 1, iterations = 1;
  int reduced = 0;
  for (int l : nest.stages[0].loops) {
    const NestLoop& loop = nest.loops[l];
    if (loop.block_of >= 0) return 0;
    reduced += loop.reduce;
    (loop.reduce ? iterations : rows) *= static_cast<double>(loop.extent);
  }
  Vec<int> roots;
  for (const NestReduction& r : nest.reductions) {
    if (!r.running || r.op == Op::reduce || r.position >= 0) return 0;
    roots.push_back(r.value);
  }
  // Scans of scans, and results that come after, are made in one go.
  if (any_of(needed_values(nest, roots), [&](int v) { return nest.values[v].kind == Kind::state; }))
    return 0;
  if (reduced != 1 ||
      any_of(nest.stores, [](const NestStore& s) { return s.after || s.update != Op::input; }))
    return 0;
  if (any_of(nest.buffers, [](const NestBuffer& b) { return b.local > 0; })) return 0;
  // Values get other numbers below.
  bool computed = false;
  for (const NestValue& v : nest.values)
    if (v.index >= 0) nest.indices.each_value(v.index, [&](int) { computed = true; });
  for (const NestStore& s : nest.stores)
    nest.indices.each_value(s.index, [&](int) { computed = true; });
  if (computed) return 0;
  if (choose_mapping(nest).thread_group == 1)
    return rows <= 1 << 14 && iterations >= 1024 ? 256 : 0;
  return rows <= 512 && iterations >= 1 << 15 ? 4096 : 0;
}

void add_long_scan(const Nest& nest, std::int64_t block, std::span<const Launch::Pointer> buffers,
                   const Vec<std::int64_t>& numbers, const DeviceShape& device,
                   ScratchLayout& scratch, Vec<Launch>& launches) {
  using namespace device_scan;
  const std::size_t count = nest.reductions.size();
  SmallVec<Launch::Pointer, 4> totals, before;
  // `thread group`: threads of a row, 0 as for any nest.
  const auto add = [&](const Nest& part, int thread_group, const char* name,
                       std::initializer_list<const SmallVec<Launch::Pointer, 4>*> more, bool own) {
    Mapping mapping = choose_mapping(part, false, device);
    if (thread_group) {
      mapping.thread_group = thread_group;
      mapping.columns = 1;
      mapping.block = thread_group == 32 ? 128 : 256;
    }
    Launch l;
    l.name = name;
    l.source = nest_source(part, mapping, name);
    l.grid = {mapping.blocks(), mapping.block, mapping.local_bytes};
    if (own)
      for (const Launch::Pointer& p : buffers) l.pointers.push_back(p);
    for (const auto* pointers : more)
      for (const Launch::Pointer& p : *pointers) l.pointers.push_back(p);
    if (own) l.numbers = numbers;
    launches.push_back(std::move(l));
  };
  // What each block comes to.
  Cut sums(nest, block);
  for (const NestReduction& r : nest.reductions) {
    const std::int64_t bytes = sums.count * sums.rows * static_cast<std::int64_t>(size_of(r.dtype));
    totals.push_back(scratch.take(bytes));
    before.push_back(scratch.take(bytes));
  }
  sums.nest.stores.clear();
  for (std::size_t r = 0; r < count; ++r) {
    NestReduction& reduction = sums.nest.reductions[r];
    reduction.running = false;
    reduction.state = -1;
    const int counted = sums.blocks;
    const IndexId at = sums.place(sums.nest.indices.loop(counted, sums.count));
    reduction.kept = at;
    NestValue result;
    result.kind = Kind::reduced;
    result.dtype = reduction.dtype;
    result.argument = static_cast<int>(r);
    NestStore store;
    store.value = sums.add(result);
    store.buffer = sums.add_buffer(reduction.dtype, true);
    store.index = at;
    store.after = true;
    sums.nest.stores.push_back(store);
  }
  add(sums.nest, 0, "kernel_scan_blocks", {&totals}, true);
  // What all blocks up to each come to: a scan of rows again.
  Nest carried;
  carried.stages.emplace_back();
  NestLoop rows, counted;
  rows.extent = sums.rows;
  counted.extent = sums.count;
  counted.reduce = true;
  carried.loops.push_back(rows);
  carried.loops.push_back(counted);
  carried.stages[0].loops = {0, 1};
  const IndexId at =
      carried.indices.add(carried.indices.scale(carried.indices.loop(0, sums.rows), sums.count),
                          carried.indices.loop(1, sums.count));
  for (std::size_t r = 0; r < 2 * count; ++r) {
    NestBuffer b;
    b.dtype = nest.reductions[r % count].dtype;
    b.written = r >= count;
    b.alias = static_cast<int>(r);
    carried.buffers.push_back(b);
  }
  for (std::size_t r = 0; r < count; ++r) {
    NestReduction reduction;
    NestValue total, state;
    reduction.op = nest.reductions[r].op;
    total.kind = Kind::load;
    total.dtype = state.dtype = reduction.dtype = nest.reductions[r].dtype;
    total.buffer = static_cast<int>(r);
    total.index = at;
    state.kind = Kind::state;
    state.argument = static_cast<int>(r);
    reduction.value = static_cast<int>(carried.values.size());
    reduction.state = reduction.value + 1;
    reduction.running = true;
    reduction.kept = carried.indices.loop(0, sums.rows);
    carried.values.push_back(total);
    carried.values.push_back(state);
    NestStore store;
    store.buffer = static_cast<int>(count + r);
    store.index = at;
    store.value = reduction.state;
    carried.reductions.push_back(reduction);
    carried.stores.push_back(store);
  }
  add(carried, sums.count > 1024 ? 256 : 32, "kernel_scan_carries", {&totals, &before}, false);
  // The nest, each state with what comes before its block.
  Cut whole(nest, block);
  const Vec<NestValue> given = std::move(whole.nest.values);
  whole.nest.values.clear();
  Vec<int> renamed;
  const auto to = [&](int v) { return v < 0 ? v : renamed[v]; };
  IndexTable& indices = whole.nest.indices;
  for (NestValue v : given) {
    for (int& o : v.operands) o = to(o);
    v.mask = to(v.mask);
    const int own = whole.add(v);
    renamed.push_back(own);
    if (v.kind != Kind::state) continue;
    NestReduction& reduction = whole.nest.reductions[v.argument];
    reduction.state = own;
    NestValue later, read, joined, chosen;
    later.kind = Kind::in_range;
    later.dtype = DType::bool_;
    later.index = indices.loop(whole.blocks, whole.count);
    later.low = 1;
    later.high = whole.count;
    read.kind = Kind::load;
    read.dtype = joined.dtype = chosen.dtype = v.dtype;
    read.mask = whole.add(later);
    read.buffer = static_cast<int>(nest.buffers.size()) + v.argument;
    read.index = whole.place(indices.add(later.index, std::int64_t{-1}));
    joined.op = reduction_facts[reduction.op].combine;
    joined.operands = {whole.add(read), own};
    chosen.op = Op::select;
    chosen.operands = {read.mask, 0, own};
    chosen.operands[1] = whole.add(joined);
    renamed.back() = whole.add(chosen);
  }
  for (NestReduction& r : whole.nest.reductions) {
    r.value = to(r.value);
    whole.add_buffer(r.dtype, false);
    r.kept = whole.place(indices.loop(whole.blocks, whole.count));
  }
  for (NestStore& s : whole.nest.stores) {
    s.value = to(s.value);
    s.mask = to(s.mask);
  }
  // Columns have a thread for each block, neighbours beside each other, as they have without
  // blocks.
  add(whole.nest, choose_mapping(nest).thread_group == 1 ? 1 : 0, "kernel_scan", {&before}, true);
}

}  // namespace vt::detail::cuda
