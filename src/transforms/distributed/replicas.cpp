// Compares replicated values by sketches: a few sums over all elements.
#include "replicas.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "../../trace/ir/collectives.hpp"
#include "../../trace/record/devices.hpp"
#include "../../trace/record/node.hpp"

namespace vt::detail {

namespace replicas {

struct Sketch {
  std::uint64_t known = 0;
  std::uint64_t exact = 0;  ///< of integers and bools; of floats that are not finite
  double size = 0;          ///< the sum of |x|
  double weighted = 0;      ///< the sum of x with a weight in [−1, 1] for each position
};

/// 64 bits that look random, for each position.
inline std::uint64_t bits_of_position(std::size_t i) {
  std::uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15ull;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ull;
  return bits ^ bits >> 31;
}

template <class T>
Sketch sketch_of(const T* x, std::size_t n) {
  Sketch s{.known = 1};
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = bits_of_position(i);
    if constexpr (std::is_integral_v<T>) {
      s.exact += static_cast<std::uint64_t>(x[i]) * (bits | 1u);
    } else if (const auto v = static_cast<double>(x[i]); std::isfinite(v)) {
      constexpr double scale = 1.0 / 9223372036854775808.0;  // 2⁻⁶³
      s.size += std::abs(v);
      s.weighted += v * (static_cast<double>(static_cast<std::int64_t>(bits)) * scale);
    } else {
      const std::uint64_t what = std::isnan(v) ? 1u : v > 0 ? 2u : 3u;
      s.exact += what * (bits | 1u);
    }
  }
  return s;
}

inline Sketch sketch_of(const Tensor& x, CallSite where) {
  if (!has_value(x)) return {};
  const BufferRef buffer = on_host(buffer_of(x, where));
  const Aval& aval = aval_of(x);
  const auto n = static_cast<std::size_t>(aval.elements());
  const auto of_floats = [&](DType d, std::size_t count) {
    return with_type(d, [&](auto one) { return sketch_of(buffer->as<decltype(one)>(), count); });
  };
  if (!is_complex(aval.dtype)) return of_floats(aval.dtype, n);
  return of_floats(aval.dtype == DType::c64 ? DType::f32 : DType::f64, 2 * n);
}

/// Of a dtype: half of its digits may be rounding.
inline double tolerance_of(DType d) {
  switch (d) {
    case DType::f64:
    case DType::c128: return std::sqrt(std::numeric_limits<double>::epsilon());
    case DType::f16: return 0x1p-5;
    case DType::bf16: return 0x1p-4;
    default: return std::sqrt(double{std::numeric_limits<float>::epsilon()});
  }
}

inline bool is_alike(const Sketch& a, const Sketch& b, double tolerance) {
  if (a.known == 0 || b.known == 0) return true;
  const double most = tolerance * std::max(a.size, b.size);
  // Sums that overflow tell nothing.
  return a.exact == b.exact && !(std::abs(a.size - b.size) > most) &&
         !(std::abs(a.weighted - b.weighted) > most);
}

}  // namespace replicas

Vec<AxisRef> axes_of(const distributed::Mesh& mesh) {
  Vec<AxisRef> axes;
  std::int64_t stride = 1;
  for (std::size_t k = mesh.axes().size(); k-- > 0;) {
    const auto& a = mesh.axes()[k];
    axes.push_back(mesh_axis(a.name, a.size, stride, mesh.size()));
    stride *= a.size;
  }
  return axes;
}

UnequalReplica unequal_replica(std::span<const Tensor> values, const Vec<Differs>& differs,
                               std::span<const AxisRef> mesh, const CollectiveSite& site) {
  World& world = World::current();
  if (world.size() == 1) return {};
  const auto processes = static_cast<std::size_t>(world.size()), n = values.size();
  Vec<replicas::Sketch> own(n), all(n * processes);
  const Differs everywhere = (Differs{1} << mesh.size()) - 1;
  for (std::size_t i = 0; i < n; ++i)
    if (differs[i] != everywhere) own[i] = replicas::sketch_of(values[i], site.where);
  world.all_gather({0, 1, world.size(), world.rank()}, own.begin(), all.begin(),
                   n * sizeof(replicas::Sketch), site);
  for (std::size_t i = 0; i < n; ++i) {
    if (differs[i] == everywhere) continue;
    const double tolerance = replicas::tolerance_of(aval_of(values[i]).dtype);
    for (int rank = 0; rank < world.size(); ++rank) {
      // The lowest rank with the same index along the axes in which the value may differ.
      std::int64_t first = 0;
      for (std::size_t k = 0; k < mesh.size(); ++k)
        if ((differs[i] >> k & 1u) != 0)
          first += rank / mesh[k]->stride % mesh[k]->size * mesh[k]->stride;
      const auto at = [&](std::int64_t r) { return all[static_cast<std::size_t>(r) * n + i]; };
      if (!replicas::is_alike(at(first), at(rank), tolerance))
        return {static_cast<std::int64_t>(i), static_cast<int>(first), rank};
    }
  }
  return {};
}

}  // namespace vt::detail
