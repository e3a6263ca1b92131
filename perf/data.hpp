// Data of benchmarks: the same numbers in every run.
#pragma once

#include <vector>

#include <vt/vt.hpp>

namespace perf {

/// Numbers between −1 and 1 from a fixed generator.
template <class T>
std::vector<T> numbers(std::size_t n, std::uint64_t seed = 1) {
  std::vector<T> values(n);
  for (T& v : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<T>(static_cast<double>(seed >> 11) * 0x1p-52 - 1.0);
  }
  return values;
}
template <class T>
vt::Tensor random_tensor(const vt::Shape& shape, std::uint64_t seed = 1) {
  return vt::tensor(numbers<T>(static_cast<std::size_t>(shape.elements()), seed), shape).eval();
}

}  // namespace perf
