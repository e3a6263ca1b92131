// Several indices at once: x(i, j, …) and vt::at against loops over all elements, by themselves and
// under every transform; put_along_axis; masks; messages.
#include <algorithm>
#include <optional>
#include <random>
#include <set>

#include <vt/indexing.hpp>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Combine;
using vt::Index;
using vt::Shape;
using vt::Tensor;
using vt_test::environment;
using vt_test::expect_close;
using vt_test::message;
using Places = std::vector<std::int64_t>;

// --- random indices, and which elements they select ----------------------------------------------

/// An index as numbers.
struct Choice {
  enum Kind { number, slice, newaxis, ellipsis, tensor, window } kind;
  std::int64_t value = 0;  // the number, the window's start
  std::int64_t length = 0;
  vt::Slice range = {};
  Shape shape = {};
  Places values = {};
  bool is_static = false;  // of a window: its start is a C++ integer
};

std::int64_t row_major(const Places& at, const Shape& shape) {
  std::int64_t place = 0;
  for (std::size_t i = 0; i < at.size(); ++i) place = place * shape[i] + at[i];
  return place;
}
Places unravelled(std::int64_t place, const Shape& shape) {
  Places at(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; place /= shape[i]) at[i] = place % shape[i];
  return at;
}

/// What a list of indices selects of a Tensor of `shape`: for each element of the result where it
/// is read, and where it is written, −1 for nowhere.
struct Reference {
  Shape result;
  Places read, written;

  Reference(const Shape& shape, const std::vector<Choice>& given) {
    std::vector<Choice> all;
    std::int64_t named = 0;
    bool open = false, tensors = false;
    for (const Choice& c : given) {
      named += c.kind != Choice::newaxis && c.kind != Choice::ellipsis;
      open = open || c.kind == Choice::ellipsis;
      tensors = tensors || c.kind == Choice::tensor;
    }
    // The ellipsis stays, as it stands between Tensors even where it means no axis.
    const auto whole = [&] {
      for (std::int64_t k = named; k < shape.rank(); ++k) all.push_back({Choice::slice});
    };
    for (const Choice& c : given) {
      all.push_back(c);
      if (c.kind == Choice::ellipsis) whole();
    }
    if (!open) whole();

    const auto advanced = [&](const Choice& c) {
      return tensors && (c.kind == Choice::tensor || c.kind == Choice::number);
    };
    std::size_t first = all.size(), last = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (advanced(all[i])) first = std::min(first, i), last = i;
    bool parted = false;
    for (std::size_t i = first; i <= last; ++i) parted = parted || !advanced(all[i]);
    Shape batch;
    for (const Choice& c : all)
      if (c.kind == Choice::tensor) {
        while (batch.rank() < c.shape.rank()) batch.insert(batch.begin(), 1);
        for (int k = 1; k <= c.shape.rank(); ++k) {
          auto& n = batch[batch.rank() - k];
          if (n == 1) n = c.shape[c.shape.rank() - k];
        }
      }

    // Axes of the result: where each index finds its number.
    std::vector<int> axis_of(all.size(), -1);
    int batch_at = 0;
    const auto place_batch = [&] {
      batch_at = result.rank();
      result.append(batch.begin(), batch.end());
    };
    if (tensors && parted) place_batch();
    std::size_t axis = 0;
    std::vector<std::int64_t> extents(all.size(), 0);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Choice& c = all[i];
      if (c.kind != Choice::newaxis && c.kind != Choice::ellipsis) extents[i] = shape[axis++];
      if (tensors && !parted && i == first) place_batch();
      if (advanced(c) || c.kind == Choice::number || c.kind == Choice::ellipsis) continue;
      axis_of[i] = result.rank();
      result.push_back(c.kind == Choice::newaxis  ? 1
                       : c.kind == Choice::window ? c.length
                                                  : count(c.range, extents[i]));
    }

    for (std::int64_t e = 0; e < result.elements(); ++e) {
      const Places at = unravelled(e, result);
      Places place;
      bool inside = true;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const Choice& c = all[i];
        const std::int64_t n = extents[i];
        const auto along = [&] { return at[axis_of[i]]; };
        switch (c.kind) {
          case Choice::newaxis:
          case Choice::ellipsis: break;
          case Choice::number: place.push_back(c.value < 0 ? c.value + n : c.value); break;
          case Choice::slice: place.push_back(start(c.range, n) + along() * c.range.step); break;
          case Choice::window:
            place.push_back(std::clamp<std::int64_t>(c.value, 0, n - c.length) + along());
            break;
          case Choice::tensor: {
            Places in;
            for (int k = 0; k < c.shape.rank(); ++k) {
              const auto a = static_cast<std::size_t>(batch_at + batch.rank() - c.shape.rank() + k);
              in.push_back(c.shape[k] == 1 ? 0 : at[a]);
            }
            std::int64_t v = c.values[row_major(in, c.shape)];
            if (v < 0) v += n;
            inside = inside && v >= 0 && v < n;
            place.push_back(std::clamp<std::int64_t>(v, 0, n - 1));
          }
        }
      }
      read.push_back(row_major(place, shape));
      written.push_back(inside ? read.back() : -1);
    }
  }

  // As Python's slice.indices, by its text.
  static std::int64_t start(const vt::Slice& s, std::int64_t n) {
    if (!s.start) return s.step > 0 ? 0 : n - 1;
    const std::int64_t i = *s.start < 0 ? *s.start + n : *s.start;
    return s.step > 0 ? std::clamp<std::int64_t>(i, 0, n) : std::clamp<std::int64_t>(i, -1, n - 1);
  }
  static std::int64_t count(const vt::Slice& s, std::int64_t n) {
    std::int64_t stop = s.step > 0 ? n : -1, found = 0;
    if (s.stop) {
      stop = *s.stop < 0 ? *s.stop + n : *s.stop;
      stop = std::clamp<std::int64_t>(stop, s.step > 0 ? 0 : -1, n);
    }
    for (std::int64_t i = start(s, n); s.step > 0 ? i < stop : i > stop; i += s.step) ++found;
    return found;
  }
};

class RandomChoices {
 public:
  explicit RandomChoices(std::uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15u + 3) {
    const int rank = 1 + below(4);
    for (int i = 0; i < rank; ++i) shape.push_back(1 + below(4));
    Shape wide;  // the Tensors' shapes broadcast to it
    for (int i = below(3); i > 0; --i) wide.push_back(1 + below(3));
    const int named = below(4) == 0 ? below(rank + 1) : rank;
    const int open = below(3) == 0 ? below(named + 1) : -1;
    // Of half of them all Tensors are single numbers: what loops do.
    const bool scalars = below(2) == 0;
    for (int k = 0; k <= named; ++k) {
      if (below(6) == 0) choices.push_back({Choice::newaxis});
      if (k == open) choices.push_back({Choice::ellipsis});
      if (k == named) break;
      const int axis = open >= 0 && k >= open ? rank - named + k : k;
      choices.push_back(one(shape[axis], wide, scalars));
    }
    if (choices.empty()) choices.push_back({Choice::ellipsis});
  }

  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }

  Shape shape;
  std::vector<Choice> choices;

  std::string text() const {
    std::string s = shape.str() + " at (";
    for (const Choice& c : choices) {
      const auto bound = [](const std::optional<std::int64_t>& b) {
        return b ? std::to_string(*b) : std::string();
      };
      switch (c.kind) {
        case Choice::number: s += std::to_string(c.value); break;
        case Choice::slice:
          s +=
              bound(c.range.start) + ":" + bound(c.range.stop) + ":" + std::to_string(c.range.step);
          break;
        case Choice::newaxis: s += "newaxis"; break;
        case Choice::ellipsis: s += "..."; break;
        case Choice::window:
          s += std::string(c.is_static ? "static " : "") + "window " + std::to_string(c.value) +
               " + " + std::to_string(c.length);
          break;
        case Choice::tensor:
          s += c.shape.str() + "{";
          for (std::int64_t v : c.values) s += " " + std::to_string(v);
          s += " }";
      }
      s += ", ";
    }
    return s + ")";
  }

 private:
  Choice one(std::int64_t extent, const Shape& wide, bool scalars) {
    const int n = static_cast<int>(extent);
    Choice c{static_cast<Choice::Kind>(std::array{0, 1, 1, 4, 4, 5}[below(6)])};
    switch (c.kind) {
      case Choice::number: c.value = below(2 * n) - n; break;
      case Choice::slice:
        if (below(3) == 0) break;  // whole
        if (below(2)) c.range.start = below(2 * n + 3) - n - 1;
        if (below(2)) c.range.stop = below(2 * n + 3) - n - 1;
        c.range.step = std::array{1, 1, 2, 3, -1, -1, -2}[below(7)];
        break;
      case Choice::window:
        c.length = 1 + below(n);
        c.value = below(2 * n + 2) - n;
        c.is_static = below(3) == 0;
        break;
      default: {
        const int rank = scalars ? 0 : below(wide.rank() + 1);
        for (int k = wide.rank() - rank; k < wide.rank(); ++k)
          c.shape.push_back(below(3) == 0 ? 1 : wide[k]);
        for (std::int64_t k = 0; k < c.shape.elements(); ++k)
          c.values.push_back(below(2 * n + 3) - n - 1);
      }
    }
    return c;
  }

  std::mt19937_64 engine_;
};

/// The numbers of Tensors and of windows that are not static, as Tensors.
std::vector<Tensor> tensors_of(const std::vector<Choice>& choices) {
  std::vector<Tensor> all;
  for (const Choice& c : choices) {
    if (c.kind == Choice::tensor) all.push_back(vt::tensor(c.values, c.shape).astype(vt::i32));
    if (c.kind == Choice::window && !c.is_static)
      all.push_back(vt::tensor(static_cast<std::int32_t>(c.value)));
  }
  for (Tensor& t : all) t.eval();
  return all;
}
std::vector<Index> indices_of(const std::vector<Choice>& choices, const Tensor* tensors) {
  std::vector<Index> all;
  for (const Choice& c : choices) switch (c.kind) {
      case Choice::number: all.emplace_back(c.value); break;
      case Choice::slice: all.emplace_back(c.range); break;
      case Choice::newaxis: all.emplace_back(vt::newaxis); break;
      case Choice::ellipsis: all.emplace_back(vt::ellipsis); break;
      case Choice::tensor: all.emplace_back(*tensors++); break;
      case Choice::window:
        all.emplace_back(vt::window(c.is_static ? Tensor(c.value) : *tensors++, c.length));
    }
  return all;
}

constexpr Combine all_of_combine[] = {Combine::set, Combine::add, Combine::mul, Combine::min,
                                      Combine::max};
Tensor combined(const vt::Selection& s, Combine how, const Tensor& values) {
  switch (how) {
    case Combine::add: return s.add(values);
    case Combine::mul: return s.mul(values);
    case Combine::min: return (s.min)(values);
    case Combine::max: return (s.max)(values);
    case Combine::set: break;
  }
  return s.set(values);
}
double combined(Combine how, double old, double value) {
  switch (how) {
    case Combine::add: return old + value;
    case Combine::mul: return old * value;
    case Combine::min: return std::min(old, value);
    case Combine::max: return std::max(old, value);
    case Combine::set: break;
  }
  return value;
}

constexpr std::uint64_t few = 60;
std::uint64_t many() { return std::min<std::uint64_t>(environment("VT_FUZZ_COUNT", 400), 400); }

/// Calls f(x, values, tensors) by itself and compiled, with a case and its reference.
template <class Check>
void for_random_cases(std::uint64_t count, const Check& check) {
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    RandomChoices c(seed);
    const Reference r(c.shape, c.choices);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    check(seed, c, r);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Selection, ReadsAsALoopDoes) {
  for_random_cases(many(), [&](std::uint64_t seed, RandomChoices& c, const Reference& r) {
    const Tensor x = vt_test::random_quarters(vt::f64, c.shape, seed);
    const std::vector<Tensor> tensors = tensors_of(c.choices);
    const std::vector<double> from = x.to_vector<double>();
    std::vector<double> want;
    for (std::int64_t place : r.read) want.push_back(from[place]);
    const Tensor expected = vt::tensor(want, r.result);
    const auto read = [&](const Tensor& x, const std::vector<Tensor>& t) {
      return vt::at(x, indices_of(c.choices, t.data())).get();
    };
    expect_close(read(x, tensors), expected, {}, "by itself");
    expect_close(vt::jit(read)(x, tensors), expected, {}, "jit");
  });
}

TEST(Selection, WritesAsALoopDoes) {
  for_random_cases(many(), [&](std::uint64_t seed, RandomChoices& c, const Reference& r) {
    const Tensor x = vt_test::random_quarters(vt::f64, c.shape, seed);
    // Values that broadcast to the result.
    Shape shape = r.result;
    while (shape.rank() > 0 && c.below(4) == 0) shape.erase(shape.begin());
    for (auto& n : shape)
      if (c.below(5) == 0) n = 1;
    const Tensor values = vt_test::random_quarters(vt::f64, shape, seed + 1000);
    const std::vector<double> old = x.to_vector<double>(),
                              v = vt::broadcast_to(values, r.result).to_vector<double>();
    const std::vector<Tensor> tensors = tensors_of(c.choices);
    for (Combine how : all_of_combine) {
      std::vector<double> want = old;
      std::vector<std::set<double>> may(old.size());
      for (std::size_t k = 0; k < v.size(); ++k) {
        if (r.written[k] < 0) continue;
        const auto place = static_cast<std::size_t>(r.written[k]);
        want[place] = combined(how, want[place], v[k]);
        may[place].insert(v[k]);
      }
      const auto write = [&](const Tensor& x, const Tensor& values, const std::vector<Tensor>& t) {
        return combined(vt::at(x, indices_of(c.choices, t.data())), how, values);
      };
      for (const Tensor& given : {write(x, values, tensors), vt::jit(write)(x, values, tensors)}) {
        ASSERT_EQ(given.shape(), c.shape);
        const std::vector<double> got = given.to_vector<double>();
        for (std::size_t k = 0; k < got.size(); ++k) {
          const bool right =
              how == Combine::set && !may[k].empty() ? may[k].contains(got[k]) : got[k] == want[k];
          EXPECT_TRUE(right) << "combine " << static_cast<int>(how) << ", element " << k << ": "
                             << got[k] << " for " << want[k];
        }
      }
    }
  });
}

/// ⟨ȳ, J v⟩ = ⟨Jᵀ ȳ, v⟩ and J v against differences, of f and of its gradient.
template <class F>
void expect_derivatives(const F& f, const Tensor& x, const Tensor& y, std::uint64_t seed) {
  const auto direction = [&](const Tensor& like) {
    return vt_test::random_tensor(vt::f64, like.shape(), -1, 1, ++seed);
  };
  const auto check = [&](const auto& g, const std::string& what) {
    const Tensor dx = direction(x), dy = direction(y);
    const auto [value, tangent] = vt::jvp(g, std::tuple(x, y), std::tuple(dx, dy));
    const Tensor w = direction(value);
    const auto [bx, by] = vt::vjp(g, x, y).second(w);
    EXPECT_NEAR(vt_test::inner_product({w}, {tangent}), vt_test::inner_product({bx, by}, {dx, dy}),
                1e-10)
        << what;
    const vt_test::FlatFunction flat = [&](const std::vector<Tensor>& a) -> std::vector<Tensor> {
      return {g(a[0], a[1])};
    };
    expect_close(tangent, vt_test::difference(flat, {x, y}, {dx, dy})[0],
                 {.relative = 1e-7, .absolute = 1e-7}, what);
  };
  check(f, "first order");
  const Tensor weights = direction(f(x, y));
  check(
      [&](const Tensor& x, const Tensor& y) {
        const auto [gx, gy] = vt::grad<0, 1>(
            [&](const Tensor& x, const Tensor& y) { return vt::sum(weights * f(x, y)); })(x, y);
        return vt::concatenate({vt::ravel(gx), vt::ravel(gy)}, 0);
      },
      "second order");
}

TEST(Selection, Differentiates) {
  const std::uint64_t count = std::min(many(), few);
  for_random_cases(count, [&](std::uint64_t seed, RandomChoices& c, const Reference& r) {
    if (r.result.elements() == 0) return;
    const std::vector<Tensor> tensors = tensors_of(c.choices);
    const std::vector<Index> indices = indices_of(c.choices, tensors.data());
    const Tensor x = vt_test::random_tensor(vt::f64, c.shape, -1, 1, seed),
                 y = vt_test::random_tensor(vt::f64, r.result, -1, 1, seed + 500);
    expect_derivatives(
        [&](const Tensor& x, const Tensor& y) { return vt::sin(vt::at(x, indices).get()) * y; }, x,
        y, seed);
    Places sorted = r.written;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(sorted.begin(), std::upper_bound(sorted.begin(), sorted.end(), -1));
    const bool unique = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    // Differences mean nothing where the greatest number is about to be another one.
    std::vector<std::vector<double>> met;
    for (double v : vt::sin(x).to_vector<double>()) met.push_back({v});
    const std::vector<double> values = (y * y).to_vector<double>();
    for (std::size_t k = 0; k < values.size(); ++k)
      if (r.written[k] >= 0) met[r.written[k]].push_back(values[k]);
    bool apart = true;
    for (std::vector<double>& m : met) {
      std::sort(m.begin(), m.end());
      for (std::size_t k = 1; k < m.size(); ++k) apart = apart && m[k] - m[k - 1] > 0.02;
    }
    for (Combine how : all_of_combine) {
      if (!unique && how == Combine::set) continue;  // which one stays is open
      if (!apart && (how == Combine::min || how == Combine::max)) continue;
      SCOPED_TRACE("combine " + std::to_string(static_cast<int>(how)));
      expect_derivatives(
          [&](const Tensor& x, const Tensor& y) {
            return vt::cos(combined(vt::at(vt::sin(x), indices), how, y * y));
          },
          x, y, seed);
      if (::testing::Test::HasFailure()) return;
    }
  });
}

TEST(Selection, LanesAreALoop) {
  for_random_cases(
      std::min(many(), 3 * few), [&](std::uint64_t seed, RandomChoices& c, const Reference& r) {
        constexpr std::int64_t lanes = 3;
        const std::vector<Tensor> tensors = tensors_of(c.choices);
        std::vector<Tensor> arguments{vt_test::random_quarters(vt::f64, c.shape, seed),
                                      vt_test::random_quarters(vt::f64, r.result, seed + 1)};
        arguments.insert(arguments.end(), tensors.begin(), tensors.end());
        // Any of them mapped, along any axis.
        vt::Vec<std::optional<int>> axes;
        std::vector<vt::AxisSpec> specs;
        for (std::size_t k = 0; k < arguments.size(); ++k) {
          Tensor& t = arguments[k];
          const bool mapped = c.below(2) == 0 || (k + 1 == arguments.size() && axes.empty());
          if (!mapped) {
            axes.push_back(std::nullopt);
            specs.emplace_back(vt::unmapped);
            continue;
          }
          const int axis = c.below(t.rank() + 1);
          std::vector<Tensor> parts;
          for (std::int64_t l = 0; l < lanes; ++l)
            parts.push_back(
                vt::is_float(t.dtype())
                    ? vt_test::random_quarters(vt::f64, t.shape(),
                                               seed + 10 + k * 7 + static_cast<std::uint64_t>(l))
                    : vt::roll(vt::ravel(t), static_cast<int>(l)).reshape(t.shape()) -
                          static_cast<std::int32_t>(l % 2));
          t = vt_test::stack_lanes(parts, axis);
          axes.push_back(axis);
          specs.emplace_back(axis);
        }
        if (std::none_of(axes.begin(), axes.end(), [](const auto& a) { return a.has_value(); }))
          return;
        for (Combine how : all_of_combine) {
          // Where several values are written to one element any one stays.
          const auto f = [&](const std::vector<Tensor>& a) {
            const vt::Selection s = vt::at(a[0], indices_of(c.choices, a.data() + 2));
            return how == Combine::set ? s.get() + a[1] : combined(s, how, a[1]);
          };
          const vt_test::FlatFunction flat =
              [&](const std::vector<Tensor>& a) -> std::vector<Tensor> { return {f(a)}; };
          const Tensor expected = vt_test::stack_loop(flat, arguments, axes)[0];
          const auto mapped = vt::vmap(f, {.in_axes = {vt::AxisSpec(specs)}});
          expect_close(mapped(arguments), expected, {}, "vmap");
          expect_close(vt::jit(mapped)(arguments), expected, {}, "jit(vmap)");
          if (::testing::Test::HasFailure()) return;
        }
      });
}

// --- forms, masks, messages
// -----------------------------------------------------------------------

const Tensor& numbers() {
  static const Tensor x = vt::reshape(vt::arange(24), {2, 3, 4}).eval();
  return x;
}

TEST(Selection, IndicesOfAnyType) {
  const Tensor x = numbers(), t = vt::tensor({1, 0});
  const std::size_t size = 1;
  const short s = 2;
  EXPECT_EQ(x(size, s, -1).item<int>(), 23);
  EXPECT_EQ(x(1L)(2u).shape(), (Shape{4}));
  EXPECT_EQ(x(vt::slice(), 1, vt::slice(1, 3), vt::newaxis, vt::ellipsis).shape(),
            (Shape{2, 2, 1}));
  EXPECT_EQ(x(t, vt::slice(), t).shape(), (Shape{2, 3}));
  EXPECT_EQ(x(vt::window(5, 2), t[0], vt::window(t[0], 3)).to_vector<int>(),
            (std::vector<int>{5, 6, 7, 17, 18, 19}));
  EXPECT_EQ(x[vt::newaxis].shape(), (Shape{1, 2, 3, 4}));
  EXPECT_EQ(x[vt::ellipsis].shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(x[vt::window(t[0], 1)].shape(), (Shape{1, 3, 4}));
  EXPECT_EQ(vt::at(1, vt::ellipsis).set(2.0f - 1.0f == 1.0f).dtype(), Tensor(1).dtype());
  // Empty selections and Tensors.
  EXPECT_EQ(x(vt::slice(1, 1), t).shape(), (Shape{0, 2, 4}));
  expect_close(vt::at(x, vt::slice(1, 1), t).add(7), x);
  expect_close(vt::at(x, 0, vt::zeros({0}, vt::i32)).set(7), x);
  expect_close(vt::at(vt::zeros({0, 2}), t).set(7.0f), vt::zeros({0, 2}));
}

TEST(Selection, DtypesAreThoseOfX) {
  const Tensor x = vt::zeros({3, 2}, vt::f32), i = vt::tensor({0, 2});
  for (vt::DType d : {vt::i8, vt::u16, vt::i64, vt::u64, vt::f64})
    EXPECT_EQ(vt::at(x, i, 1).set(vt::ones({2}, d)).dtype(), vt::f32);
  EXPECT_EQ(vt::at(vt::zeros({2}, vt::bool_), 0).set(true).dtype(), vt::bool_);
  EXPECT_EQ(vt::at(x, i).apply([](Tensor t) { return vt::exp(t); }).to_vector<float>(),
            (std::vector<float>{1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(vt::at(x, 1, 1).apply(vt::cos).to_vector<float>(),
            (std::vector<float>{0, 0, 0, 1, 0, 0}));
}

TEST(Selection, Masks) {
  const Tensor x = vt::tensor({{1.0, -2.0, 3.0}, {-4.0, 5.0, -6.0}});
  const auto is = [](const Tensor& t, std::vector<double> want) {
    EXPECT_EQ(t.to_vector<double>(), want);
  };
  is(vt::at(x, x < 0.0).set(0.0), {1, 0, 3, 0, 5, 0});
  is(vt::at(x, x < 0.0).add(vt::tensor({1.0, 2.0, 3.0})), {1, 0, 3, -3, 5, -3});
  is(vt::at(x, x < 0.0).mul(-1), {1, 2, 3, 4, 5, 6});
  is((vt::at(x, x < 4.0).max)(2.0), {2, 2, 3, 2, 5, 2});
  is((vt::at(x, x > 0.0).min)(2.0), {1, -2, 2, -4, 2, -6});
  is(vt::at(x, x < 0.0).apply(vt::square), {1, 4, 3, 16, 5, 36});
  is(vt::at(x, vt::tensor({false, true})).set(7.0), {1, -2, 3, 7, 7, 7});
  is(vt::at(x, vt::tensor(true)).set(7.0), {7, 7, 7, 7, 7, 7});
  const auto f = [](const Tensor& x, const Tensor& v) { return vt::at(x, x < 0.0).set(v); };
  const auto [dx, dv] = vt::grad<0, 1>([&](const Tensor& x, const Tensor& v) {
    return vt::sum(f(x, v) * x);
  })(x, vt::tensor({10.0, 20.0, 30.0}));
  is(dx, {2, 20, 6, 10, 10, 30});
  is(dv, {-4, -2, -6});
  expect_close(vt::vmap(f)(x, vt::tensor({8.0, 9.0})),
               vt::tensor({{1.0, 8.0, 3.0}, {9.0, 5.0, 9.0}}));
  const Tensor bits = vt::tensor({true, false});
  vt_test::expect_error([&] { (void)vt::at(x, vt::tensor({true, false, true})).set(0.0); },
                        vt::ErrorKind::shape,
                        {"vt::at(…).set: a mask of shape [3] for a Tensor of shape [2,3]: it must "
                         "be of that shape, or of that of its first axes"});
  for (const auto& wrong : std::vector<std::function<void()>>{
           [&] { (void)vt::at(x, x < 0.0).get(); }, [&] { (void)vt::at(x, bits, 0).set(0.0); },
           [&] { (void)vt::at(x, vt::slice(), x[0] < 0.0).add(0.0); },
           [&] { (void)vt::at(x, bits, vt::ellipsis).apply(vt::sin); },
           [&] { (void)x(0, x[0] < 0.0); }, [&] { (void)x[bits]; }})
    vt_test::expect_error(wrong, vt::ErrorKind::dtype, {"vt::where", "vt::nonzero with a size"});
}

TEST(Selection, PutAlongAxis) {
  const Tensor x = vt::zeros({2, 3}), i = vt::tensor({1, -1}).reshape({2, 1});
  EXPECT_EQ(vt::put_along_axis(x, i, 5.0f, 1).to_vector<int>(),
            (std::vector<int>{0, 5, 0, 0, 0, 5}));
  EXPECT_EQ(vt::put_along_axis(x, vt::tensor({{1, 1, 7}}), vt::tensor({{1.0f, 2.0f, 3.0f}}), 1,
                               Combine::add)
                .to_vector<int>(),
            (std::vector<int>{0, 3, 0, 0, 3, 0}));
  EXPECT_EQ(vt::put_along_axis(x, vt::tensor({{0, 1, -1}}), 2.0f, 0, Combine::max).to_vector<int>(),
            (std::vector<int>{2, 0, 0, 0, 2, 2}));
  // It writes what take_along_axis reads, to any order and by lanes.
  const Tensor y = vt_test::random_tensor(vt::f64, {3, 4, 2}, -1, 1, 5),
               v = vt_test::random_tensor(vt::f64, {3, 3, 2}, -1, 1, 6),
               places = vt::tensor({0, 3, -2, 1, 2, 0, 3, 9, 0}).reshape({3, 3, 1});
  const Tensor put = vt::put_along_axis(y, places, v, 1);
  expect_close(vt::take_along_axis(put, places, 1)[vt::slice(0, 2)], v[vt::slice(0, 2)]);
  const auto added = [&](const Tensor& y, const Tensor& v) {
    return vt::sin(vt::put_along_axis(y * y, places, vt::cos(v), 1, Combine::add));
  };
  expect_derivatives(added, y, v, 7);
  expect_close(vt::vmap([](Tensor y, Tensor i, Tensor v) {
                 return vt::put_along_axis(y, i, v, 0, Combine::mul);
               })(y, places, v),
               vt::put_along_axis(y, places, v, 1, Combine::mul));
  vt_test::expect_error([&] { (void)vt::put_along_axis(x, vt::tensor({1}), 5.0f, 1); },
                        vt::ErrorKind::shape,
                        {"vt::put_along_axis: indices and operand differ in rank"});
  vt_test::expect_error([&] { (void)vt::put_along_axis(x, i, vt::ones({3}), 1); },
                        vt::ErrorKind::shape,
                        {"vt::put_along_axis: the values do not broadcast to [2,1]"});
}

TEST(Selection, Messages) {
  const Tensor x = numbers(), t = vt::tensor({1, 0});
  using vt::ErrorKind;
  struct Wrong {
    std::function<void()> f;
    ErrorKind kind;
    std::string text;
  };
  const std::vector<Wrong> all{
      {[&] { (void)x(0, 1, 2, 3); }, ErrorKind::shape,
       "vt::Tensor::operator(): 4 indices for a Tensor of 3 axes: i32[2,3,4]; at "},
      {[&] { (void)vt::tensor(1)(0); }, ErrorKind::shape,
       "vt::Tensor::operator(): 1 index for a Tensor of 0 axes: i32[]"},
      {[&] { (void)x(vt::ellipsis, 0, vt::ellipsis); }, ErrorKind::value,
       "2 times vt::ellipsis, one may be given"},
      {[&] { (void)x(0, 3); }, ErrorKind::value, "index 3 out of range for axis 1 of size 3"},
      {[&] { (void)x(vt::ellipsis, -5); }, ErrorKind::value,
       "index -5 out of range for axis 2 of size 4"},
      {[&] { (void)vt::at(x, 2, 0).set(1); }, ErrorKind::value,
       "vt::at(…).set: index 2 out of range for axis 0 of size 2"},
      {[&] { (void)x(0, vt::slice(0, 2, 0)); }, ErrorKind::value,
       "the step of a slice must not be 0"},
      {[&] { (void)x(t, vt::tensor({0, 1, 2})); }, ErrorKind::shape, "vt::Tensor::operator(): "},
      {[&] { (void)x(0, vt::tensor({0.5})); }, ErrorKind::dtype, "indices must be integers"},
      {[&] { (void)x(vt::window(0, 3)); }, ErrorKind::shape, "a window of 3 on axis 0 of size 2"},
      {[&] { (void)x(vt::window(t, 1)); }, ErrorKind::shape,
       "the start of a window must be a scalar"},
      {[&] { (void)x(vt::window(0.5, 1)); }, ErrorKind::dtype, "indices must be integers"},
      {[&] { (void)vt::zeros({2, 0})(0, t); }, ErrorKind::shape,
       "nothing to read from an axis of size 0"},
      {[&] { (void)vt::at(x, 0, t).set(vt::zeros({3, 4}, vt::i32)); }, ErrorKind::shape,
       "vt::at(…).set: the values do not broadcast to [2,4]: i32[2,3,4] · i32[3,4]"},
      {[&] { (void)vt::at(x, 0, t).add(0.5); }, ErrorKind::dtype,
       "vt::at(…).add: i32 does not hold the values; convert them with astype first"},
      {[&] { (void)(vt::at(vt::tensor({true}), 0).min)(true); }, ErrorKind::dtype,
       "vt::at(…).min: needs numbers, not bools"},
      {[&] { (void)Tensor()(0, 1); }, ErrorKind::value, "vt::Tensor::operator()"},
  };
  for (const Wrong& w : all) {
    vt_test::expect_error(w.f, w.kind, {w.text, "selection_test.cpp:"});
  }
}

}  // namespace
