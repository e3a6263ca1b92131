// Kernels of element-wise nests: neighbouring elements in accesses of 16 bytes, and arrays
// transposed in shared memory.
#include "nest_writer.hpp"

#include <algorithm>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "element_source.hpp"

namespace vt::detail::cuda {

void NestWriter::neighbours() {
  const StageParts p = parts_of(0);
  const int loop = mapping_.shared.back(), n = mapping_.vector;
  const auto packed = [&](IndexId index, int mask) {
    return mask < 0 && is_packed(nest_, mapping_, n, index);
  };
  read_as_.resize(nest_.values.size());
  std::string addresses;
  const auto note = [&](int buffer) {
    const std::string name = formatted("(u64)b{}", buffer);
    if (addresses.find(name + " ") == std::string::npos)
      addresses += (addresses.empty() ? "" : "| ") + name + " ";
  };
  Vec<int> loads, stores;
  for (int v : p.body.needed)
    if (value(v).kind == Kind::load && packed(value(v).index, value(v).mask)) {
      loads.push_back(v);
      note(value(v).buffer);
      read_as_[v] = formatted("x{}[k]", v);
    }
  for (int s : p.body.stores) {
    const NestStore& store = nest_.stores[s];
    if (!packed(store.index, store.mask)) continue;
    stores.push_back(s);
    note(store.buffer);
  }
  line("const bool aligned = (" + addresses + ") % 16 == 0;");
  open(formatted(
      "for (idx group = (idx)blockIdx.x * {0} + threadIdx.x; group < (groups + {1}) / {2}; "
      "group += (idx)gridDim.x * {0})",
      mapping_.block, n - 1, n));
  line(formatted("const idx first = group * {0};", n));
  line(formatted("const int here = (int)vt_min<idx>({}, groups - first);", n));
  line(formatted("const bool whole = aligned && here == {};", n));
  decompose("first", mapping_.shared);
  open_ &= ~(std::uint64_t{1} << loop);
  hoist(p.body.needed);
  line(formatted("const idx base = d{};", loop));
  // Unrolled, so that the arrays are registers.
  const auto lanes = [&] {
    line("#pragma unroll");
    open(formatted("for (int k = 0; k < {}; ++k)", n));
    line(formatted("const idx d{} = base + k;", loop));
    open("if (k < here)");
  };
  const auto close_lanes = [&] {
    close();
    close();
  };
  for (int v : loads)
    line(formatted("{} x{}[{}];", memory_type(nest_.buffers[value(v).buffer].dtype), v, n));
  for (int s : stores)
    line(formatted("{} y{}[{}];", memory_type(nest_.buffers[nest_.stores[s].buffer].dtype), s, n));
  if (!loads.empty()) {
    open("if (whole)");
    for (int v : loads)
      line(formatted("vt_load_pack(x{}, b{} + ({}));", v, value(v).buffer, index(value(v).index)));
    close();
    open("else");
    lanes();
    for (int v : loads)
      line(formatted("x{}[k] = VT_LOAD({});", v, access(value(v).buffer, value(v).index)));
    close_lanes();
    close();
  }
  const Vec<char> before = known_;
  lanes();
  write_all(p.body.needed);
  for (int s : p.body.stores) {
    const NestStore& store = nest_.stores[s];
    if (std::find(stores.begin(), stores.end(), s) == stores.end()) this->store(store);
    else
      line(formatted("y{}[k] = {};", s,
                     to_memory(nest_.buffers[store.buffer].dtype, name(store.value))));
  }
  close_lanes();
  known_ = before;
  if (!stores.empty()) {
    open("if (whole)");
    for (int s : stores) {
      const NestStore& store = nest_.stores[s];
      line(formatted("vt_store_pack(b{} + ({}), y{});", store.buffer, index(store.index), s));
    }
    close();
    open("else");
    lanes();
    for (int s : stores) {
      const NestStore& store = nest_.stores[s];
      line(formatted("VT_STORE({}, y{}[k]);", access(store.buffer, store.index), s));
    }
    close_lanes();
    close();
  }
  close();
}

void NestWriter::tiles() {
  const StageParts p = parts_of(0);
  const int a = mapping_.tile_loop, b = mapping_.shared.back();
  read_as_.resize(nest_.values.size());
  Vec<int> transposed;
  for (int v : p.body.needed)
    if (value(v).kind == Kind::load && value(v).mask < 0 &&
        lies_along(nest_, value(v).index, a, b)) {
      transposed.push_back(v);
      read_as_[v] = formatted("VT_LOAD(tile{}, x * 33 + y)", v);
      line(formatted("__shared__ {} tile{}[32 * 33];",
                     memory_type(nest_.buffers[value(v).buffer].dtype), v));
    }
  SmallVec<int, 6> outer;
  for (int l : mapping_.shared)
    if (l != a && l != b) outer.push_back(l);
  line("const int x = threadIdx.x % 32, y0 = threadIdx.x / 32;");
  line(formatted("const idx across = ((idx){} + 31) / 32, down = ((idx){} + 31) / 32;", extent(b),
                 extent(a)));
  open(formatted(
      "for (idx group = (idx)blockIdx.x; group < {} * across * down; group += (idx)gridDim.x)",
      iterations(outer)));
  line(
      "const idx left = group % across * 32, top = group / across % down * 32, rest = group / "
      "(across "
      "* down);");
  decompose("rest", outer);
  hoist(p.body.needed);
  const auto square = [&](const std::string& i, const std::string& j) {
    line("#pragma unroll");
    open(formatted("for (int y = y0; y < 32; y += {})", mapping_.block / 32));
    line(formatted("const idx d{} = top + {}, d{} = left + {};", a, i, b, j));
    open(formatted("if (d{} < (idx){} && d{} < (idx){})", a, extent(a), b, extent(b)));
  };
  square("x", "y");
  for (int v : transposed)
    line(formatted("VT_STORE(tile{}, y * 33 + x, VT_LOAD({}));", v,
                   access(value(v).buffer, value(v).index)));
  close();
  close();
  line("__syncthreads();");
  const Vec<char> before = known_;
  square("y", "x");
  write_all(p.body.needed);
  store_all(p.body.stores);
  close();
  close();
  known_ = before;
  line("__syncthreads();");
  close();
}

}  // namespace vt::detail::cuda
