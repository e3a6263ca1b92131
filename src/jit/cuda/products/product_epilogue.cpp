// Epilogues of products: element-wise kernels that run inside the product's own kernel.
#include "product_epilogue.hpp"

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "../../fusion/element_epilogue.hpp"
#include "../source/element_source.hpp"
#include "../source/nest_writer.hpp"

namespace vt::detail::cuda {

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
  const DType product = nest_.buffers[buffer].dtype;
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
