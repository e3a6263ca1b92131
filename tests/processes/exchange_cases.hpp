// Cases of collectives, for ranks that are threads and for those that are processes: each rank
// runs them on the world it finds, and compares with a plain loop over what all ranks give.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/trace/base/convert.hpp"
#include "src/trace/processes/world.hpp"

namespace collective_cases {

using vt::DType;
using vt::detail::RankGroup;
using vt::detail::RankReduction;
using vt::detail::World;
using Bytes = std::vector<unsigned char>;

/// Calls f with the site of a collective of that name.
template <class F>
void at_site(const std::string& text, F&& f, vt::CallSite where = vt::CallSite::here()) {
  const auto name = [&] { return text; };
  f(vt::detail::CollectiveSite{name, where});
}

inline void expect(bool holds, const std::string& what) {
  if (!holds)
    throw std::runtime_error("rank " + std::to_string(World::current().rank()) + ": " + what);
}

/// The groups of this rank along the axes of all meshes of two axes.
inline std::vector<RankGroup> groups() {
  const int size = World::current().size(), rank = World::current().rank();
  std::vector<RankGroup> all;
  for (int inner = 1; inner <= size; ++inner) {
    if (size % inner != 0) continue;
    all.push_back({rank - rank % inner, 1, inner, rank % inner});
    all.push_back({rank % inner, inner, size / inner, rank / inner});
  }
  return all;
}
inline RankGroup whole() { return {0, 1, World::current().size(), World::current().rank()}; }

inline std::uint64_t drawn(std::uint64_t rank, std::uint64_t i, std::uint64_t salt) {
  std::uint64_t h = (rank * 0x9e3779b97f4a7c15u) ^ (i * 0xbf58476d1ce4e5b9u) ^ (salt << 32);
  h ^= h >> 29;
  h *= 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

/// n elements of a rank: any bits of integers; of floats numbers whose sums f32 holds exactly, and
/// now and then a NaN.
inline Bytes elements_of(int rank, DType dtype, std::size_t n, bool with_nans = false) {
  Bytes made(n * size_of(dtype));
  if (n == 0) return made;
  const DType part = real_dtype(dtype);
  const std::size_t parts = is_complex(dtype) ? 2 * n : n;
  if (!is_float(part)) {
    std::vector<std::int64_t> values(parts);
    for (std::size_t i = 0; i < parts; ++i)
      values[i] = static_cast<std::int64_t>(drawn(static_cast<std::uint64_t>(rank), i, 1));
    if (is_bool(dtype))
      for (std::int64_t& v : values) v &= 1;
    vt::detail::convert_elements(values.data(), vt::i64, made.data(), dtype, parts);
  } else {
    std::vector<double> values(parts);
    for (std::size_t i = 0; i < parts; ++i) {
      const std::uint64_t h = drawn(static_cast<std::uint64_t>(rank), i, 2);
      values[i] = (static_cast<double>(h % 4095) - 2047) / 64;
      if (with_nans && h % 13 == 0) values[i] = std::nan("");
    }
    vt::detail::convert_elements(values.data(), vt::f64, made.data(), part, parts);
  }
  return made;
}

template <class T>
void combine_plainly(RankReduction how, T* sum, const T* next, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (how == RankReduction::sum) {
      if constexpr (std::is_integral_v<T>)
        sum[i] = static_cast<T>(static_cast<std::uint64_t>(sum[i]) +
                                static_cast<std::uint64_t>(next[i]));
      else sum[i] += next[i];
    } else if (next[i] != next[i] ||
               (how == RankReduction::max ? next[i] > sum[i] : next[i] < sum[i])) {
      sum[i] = next[i];
    }
  }
}

/// What all_reduce must give: computed in i64, u64 or f64 and converted once.
inline Bytes reduced_plainly(const RankGroup& group, RankReduction how, DType dtype, std::size_t n,
                             bool with_nans) {
  const DType part = real_dtype(dtype), wide = vt::detail::wide_of(part);
  const std::size_t parts = is_complex(dtype) ? 2 * n : n;
  std::vector<std::uint64_t> sum(parts), next(parts);
  for (int m = 0; m < group.size; ++m) {
    const Bytes given = elements_of(group.rank(m), dtype, n, with_nans);
    vt::detail::convert_elements(given.data(), part, m == 0 ? sum.data() : next.data(), wide,
                                 parts);
    if (m == 0) continue;
    if (wide == vt::f64)
      combine_plainly(how, reinterpret_cast<double*>(sum.data()),
                      reinterpret_cast<const double*>(next.data()), parts);
    else if (wide == vt::i64)
      combine_plainly(how, reinterpret_cast<std::int64_t*>(sum.data()),
                      reinterpret_cast<const std::int64_t*>(next.data()), parts);
    else combine_plainly(how, sum.data(), next.data(), parts);
  }
  Bytes made(n * size_of(dtype));
  if (n) vt::detail::convert_elements(sum.data(), wide, made.data(), part, parts);
  return made;
}

/// Equal, where all NaNs are.
inline bool alike(const Bytes& a, const Bytes& b, DType dtype) {
  if (a == b) return true;
  const DType part = real_dtype(dtype);
  if (!is_float(part) || a.size() != b.size()) return false;
  const std::size_t n = a.size() / size_of(part);
  std::vector<double> x(n), y(n);
  vt::detail::convert_elements(a.data(), part, x.data(), vt::f64, n);
  vt::detail::convert_elements(b.data(), part, y.data(), vt::f64, n);
  for (std::size_t i = 0; i < n; ++i)
    if (x[i] != y[i] && !(x[i] != x[i] && y[i] != y[i])) return false;
  return true;
}

/// Bytes: many in one of the groups.
inline std::size_t longest(const RankGroup& g) {
  return g.size == World::current().size() && g.stride == 1 ? 100'003 : 5'003;
}

inline std::string named(const RankGroup& g) {
  return std::to_string(g.size) + " ranks from " + std::to_string(g.first) + " in steps of " +
         std::to_string(g.stride);
}

inline void reduce_case(const RankGroup& group, RankReduction how, DType dtype, std::size_t n,
                        bool in_place, bool with_nans) {
  World& world = World::current();
  const Bytes given = elements_of(world.rank(), dtype, n, with_nans);
  Bytes got = in_place ? given : Bytes(given.size(), 0xab);
  at_site("vt::psum", [&](const auto& site) {
    world.all_reduce(group, how, dtype, in_place ? got.data() : given.data(), got.data(),
                     static_cast<std::int64_t>(n), site);
  });
  expect(alike(got, reduced_plainly(group, how, dtype, n, with_nans), dtype),
         std::string("all_reduce ") + std::to_string(static_cast<int>(how)) + " of " +
             name_of(dtype) + "[" + std::to_string(n) + "] over " + named(group));
}

/// Every dtype and way to combine, in every group.
inline void reductions() {
  for (const RankGroup& group : groups())
    for (int d = 0; d < vt::dtype_count; ++d)
      for (const RankReduction how : {RankReduction::sum, RankReduction::max, RankReduction::min})
        for (const std::size_t n : {0, 1, 3, 257}) {
          const auto dtype = static_cast<DType>(d);
          if (how != RankReduction::sum && is_complex(dtype)) continue;
          if (how == RankReduction::sum && is_bool(dtype)) continue;
          reduce_case(group, how, dtype, n, n == 3, how != RankReduction::sum || n == 257);
        }
}
/// Beyond what goes as a whole, in pieces that end within an element of no group.
inline void large_reductions() {
  constexpr std::size_t bytes = (std::size_t{1} << 18) + 1000;
  for (const DType dtype : {vt::f32, vt::bf16, vt::c128, vt::u8})
    reduce_case(whole(), RankReduction::sum, dtype, bytes / size_of(dtype), dtype == vt::bf16,
                false);
  for (const RankGroup& group : groups())
    reduce_case(group, RankReduction::max, vt::f32, 20'011, group.stride == 1, true);
  reduce_case(whole(), RankReduction::sum, vt::f64, 16'385, true, false);
}

/// Sums that are rounded come out with the same bits on all ranks, near the exact ones.
inline void rounded_sums() {
  World& world = World::current();
  const RankGroup group = whole();
  for (const std::size_t n : {5, 1'000, 40'009}) {
    std::vector<float> given(n), got(n);
    std::vector<double> exact(n, 0.0);
    for (int r = 0; r < group.size; ++r)
      for (std::size_t i = 0; i < n; ++i) {
        const auto x = static_cast<float>(
            static_cast<double>(drawn(static_cast<std::uint64_t>(r), i, 3)) * 0x1p-64);
        exact[i] += static_cast<double>(x);
        if (r == world.rank()) given[i] = i % 97 == 0 && r % 2 == 1 ? -std::nanf("") : x;
      }
    at_site("vt::psum", [&](const auto& site) {
      world.all_reduce(group, RankReduction::sum, vt::f32, given.data(), got.data(),
                       static_cast<std::int64_t>(n), site);
    });
    std::vector<float> all(n * static_cast<std::size_t>(group.size));
    at_site("vt::all_gather", [&](const auto& site) {
      world.all_gather(group, got.data(), all.data(), 4 * n, site);
    });
    for (int r = 0; r < group.size; ++r)
      expect(std::memcmp(got.data(), all.data() + n * static_cast<std::size_t>(r), 4 * n) == 0,
             "other bits than rank " + std::to_string(r) + " of " + std::to_string(n) + " sums");
    for (std::size_t i = 0; i < n; ++i)
      expect((i % 97 == 0 && group.size > 1) ||
                 std::abs(static_cast<double>(got[i]) - exact[i]) <= 1e-6 * group.size,
             "sum " + std::to_string(i) + " is far from the exact one");
  }
}

inline void gathers() {
  World& world = World::current();
  for (const RankGroup& group : groups())
    for (const std::size_t bytes :
         std::initializer_list<std::size_t>{0, 1, 7, 1'009, longest(group)}) {
      const Bytes given = elements_of(world.rank(), vt::u8, bytes);
      Bytes got(bytes * static_cast<std::size_t>(group.size), 0xab), expected;
      for (int m = 0; m < group.size; ++m) {
        const Bytes part = elements_of(group.rank(m), vt::u8, bytes);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      at_site("vt::all_gather", [&](const auto& site) {
        world.all_gather(group, given.data(), got.data(), bytes, site);
      });
      expect(got == expected,
             "all_gather of " + std::to_string(bytes) + " bytes over " + named(group));
    }
}

inline void transpositions() {
  World& world = World::current();
  for (const RankGroup& group : groups())
    for (const std::size_t bytes : {0, 1, 7, 1'009, 12'007})
      for (const bool in_place : {false, true}) {
        const auto n = static_cast<std::size_t>(group.size);
        const Bytes given = elements_of(world.rank(), vt::u8, bytes * n);
        Bytes got = in_place ? given : Bytes(bytes * n, 0xab), expected;
        for (int m = 0; m < group.size; ++m) {
          const Bytes parts = elements_of(group.rank(m), vt::u8, bytes * n);
          const auto first = parts.begin() + static_cast<std::ptrdiff_t>(bytes) * group.own;
          expected.insert(expected.end(), first, first + static_cast<std::ptrdiff_t>(bytes));
        }
        at_site("vt::all_to_all", [&](const auto& site) {
          world.all_to_all(group, in_place ? got.data() : given.data(), got.data(), bytes, site);
        });
        expect(got == expected,
               "all_to_all of " + std::to_string(bytes) + " bytes over " + named(group));
      }
}

inline void permute_case(const RankGroup& group, const std::vector<std::int64_t>& sources,
                         std::size_t bytes, bool in_place) {
  World& world = World::current();
  const Bytes given = elements_of(world.rank(), vt::u8, bytes);
  Bytes got = in_place ? given : Bytes(bytes, 0xab);
  const std::int64_t source = sources[static_cast<std::size_t>(group.own)];
  const Bytes expected = source < 0
                             ? Bytes(bytes, 0)
                             : elements_of(group.rank(static_cast<int>(source)), vt::u8, bytes);
  at_site("vt::ppermute", [&](const auto& site) {
    world.permute(group, sources, in_place ? got.data() : given.data(), got.data(), bytes, site);
  });
  expect(got == expected, "permute of " + std::to_string(bytes) + " bytes over " + named(group));
}
inline void permutations() {
  for (const RankGroup& group : groups())
    for (const std::size_t bytes : std::initializer_list<std::size_t>{0, 1, 1'009, longest(group)})
      for (const bool in_place : {false, true}) {
        const std::int64_t n = group.size;
        std::vector<std::int64_t> sources(static_cast<std::size_t>(n));
        const auto run = [&](auto source_of) {
          for (std::int64_t m = 0; m < n; ++m) sources[static_cast<std::size_t>(m)] = source_of(m);
          permute_case(group, sources, bytes, in_place);
        };
        run([&](std::int64_t m) { return m; });
        run([&](std::int64_t m) { return (m + 1) % n; });
        run([&](std::int64_t m) { return n - 1 - m; });
        run([&](std::int64_t m) { return m - 1; });  // the first one gets zeros
        run([&](std::int64_t) { return std::int64_t{-1}; });
        run([&](std::int64_t) { return n - 1; });  // one to all
      }
}

/// Ranks do not run in step.
inline void barriers() {
  World& world = World::current();
  for (int i = 0; i < 200; ++i)
    at_site("a barrier", [&](const auto& site) { world.barrier(site); });
}

inline void comparisons() {
  World& world = World::current();
  const auto compare = [&](const std::string& text) {
    std::string message;
    at_site("comparing programs", [&](const auto& site) {
      try {
        world.compare(
            text, [&] { return text; },
            [](const std::string& first, int rank, const std::string& own) {
              return "first " + first.substr(0, 8) + " but rank " + std::to_string(rank) + " " +
                     own.substr(0, 8) + std::to_string(own.size());
            },
            site);
      } catch (const vt::Error& e) {
        expect(e.kind() == vt::ErrorKind::transform, "not an error of a transform");
        message = e.what();
      }
    });
    return message;
  };
  expect(compare("").empty(), "empty texts differ");
  expect(compare("the same text").empty(), "equal texts differ");
  for (int odd = 0; odd < world.size() && world.size() > 1; ++odd) {
    const std::string message =
        compare(world.rank() == odd ? "odd text" + std::string(100'000, '.') : "usual one");
    const std::string expected =
        odd == 0 ? "first odd text but rank 1 usual on9"
                 : "first usual on but rank " + std::to_string(odd) + " odd text100008";
    expect(message.starts_with(expected), "message: " + message);
  }
  expect(compare("again the same").empty(), "the world is not used on");
}

struct Case {
  const char* name;
  void (*run)();
};
inline constexpr Case all[] = {{"reductions", reductions},
                               {"large_reductions", large_reductions},
                               {"rounded_sums", rounded_sums},
                               {"gathers", gathers},
                               {"transpositions", transpositions},
                               {"permutations", permutations},
                               {"barriers", barriers},
                               {"comparisons", comparisons}};

}  // namespace collective_cases
