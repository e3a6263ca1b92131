// Zeros in derivatives: what no input reaches is 0 beside infinity and NaN, every other zero is a
// number, which gives NaN there. Random programs against derivatives taken element by element, in
// every mode, with every number captured, literal or given.
#include <functional>
#include <map>

#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");
constexpr vt_test::Tolerance near{.relative = 1e-12, .absolute = 1e-13};

// --- the reference: element by element, with the partial derivatives that there are --------------

struct Tape {
  struct Node {
    std::vector<std::pair<int, double>> operands;  ///< and the partial derivatives by them
  };
  std::vector<Node> nodes;
};
struct Number {
  double value = 0;
  int node = -1;  ///< none: it depends on no input
};

/// What reaches `of`, by input: those that are not there do not. The two modes add up the same
/// products in another order, which infinities can tell.
std::map<int, double> forward_slopes(const Tape& tape, int inputs, int of) {
  std::vector<std::map<int, double>> slopes(tape.nodes.size());
  for (int i = 0; i < inputs; ++i) slopes[i][i] = 1;
  for (std::size_t k = 0; k < tape.nodes.size(); ++k)
    for (const auto& [operand, partial] : tape.nodes[k].operands)
      for (const auto& [input, t] : slopes[operand]) {
        const auto [there, fresh] = slopes[k].emplace(input, t * partial);
        if (!fresh) there->second += t * partial;
      }
  return of < 0 ? std::map<int, double>() : slopes[of];
}
std::map<int, double> reverse_slopes(const Tape& tape, int inputs, int of) {
  std::map<int, double> cotangents, result;
  if (of >= 0) cotangents[of] = 1;
  for (int k = of; k >= 0; --k) {
    const auto own = cotangents.find(k);
    if (own == cotangents.end()) continue;
    if (k < inputs) result[k] = own->second;
    for (const auto& [operand, partial] : tape.nodes[k].operands) {
      const auto [there, fresh] = cotangents.emplace(operand, own->second * partial);
      if (!fresh) there->second += own->second * partial;
    }
  }
  return result;
}

/// Numbers on a tape.
struct Recorder {
  Tape tape;
  Number made(double value, std::vector<std::pair<Number, double>> operands) {
    Tape::Node node;
    for (const auto& [x, partial] : operands)
      if (x.node >= 0) node.operands.push_back({x.node, partial});
    if (node.operands.empty()) return {value};
    tape.nodes.push_back(node);
    return {value, static_cast<int>(tape.nodes.size()) - 1};
  }
  Number input(double value) {
    tape.nodes.push_back({});
    return {value, static_cast<int>(tape.nodes.size()) - 1};
  }
  Number sum(Number a, Number b) { return made(a.value + b.value, {{a, 1}, {b, 1}}); }
  Number product(Number a, Number b) {
    return made(a.value * b.value, {{a, b.value}, {b, a.value}});
  }
};
using Vector = std::vector<Number>;

// --- programs ------------------------------------------------------------------------------------

enum class Kind {
  root,
  exponential,
  times,
  plus,
  product,
  reversed,
  rolled,
  padded,
  picked,
  summed,
  mixed,
  running,
  scanned,
  repeated,
  taken,
  sliced,
  updated,
  window,
  added,
  shuffled,
  branched,
  count_
};
struct Step {
  Kind kind;
  int other = 0;                ///< another value
  std::vector<double> numbers;  ///< factors, or a matrix
  std::vector<std::int64_t> places;
};
/// Of vectors of `width` elements; all slopes are ≥ 0, so that infinities of different signs do not
/// meet, which sums in another order would tell apart.
struct Program {
  int width;
  std::vector<Step> steps;
};

Program random_program(std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  const auto pick = [&](int n) { return static_cast<int>(draw() % static_cast<std::uint64_t>(n)); };
  Program p{2 + pick(5), {}};
  const double numbers[] = {0, 0, 1, 0.5, 2, inf};
  for (int k = 0, n = 2 + pick(6); k < n; ++k) {
    Step s{static_cast<Kind>(pick(static_cast<int>(Kind::count_))), pick(k + 1), {}, {}};
    const int count = s.kind == Kind::mixed ? p.width * p.width : p.width;
    for (int i = 0; i < count; ++i) {
      s.numbers.push_back(numbers[pick(i % 3 == 0 ? 6 : 5)]);
      s.places.push_back(pick(p.width));
    }
    s.places.resize(p.width);
    if (s.kind == Kind::window) s.places[0] = pick(p.width - 1);
    p.steps.push_back(s);
  }
  return p;
}

Vector reference(Recorder& r, const Program& p, const std::vector<double>& x) {
  std::vector<Vector> all(1);
  const auto n = static_cast<std::size_t>(p.width);
  for (const double v : x) all[0].push_back(r.input(v));
  for (const Step& s : p.steps) {
    const Vector a = all.back(), b = all[s.other];
    const auto times = [&](const Number& t, std::size_t k) { return r.product(t, {s.numbers[k]}); };
    const auto place = [&](std::size_t k) { return static_cast<std::size_t>(s.places[k]); };
    Number total;
    for (const Number& t : a) total = s.kind == Kind::summed ? r.sum(total, t) : total;
    Vector y(n);
    for (std::size_t i = 0; i < n; ++i) switch (s.kind) {
        case Kind::root: {
          const double root = std::sqrt(a[i].value);
          y[i] = r.made(root, {{a[i], 1 / (2 * root)}});
          break;
        }
        case Kind::exponential: {
          const double e = std::exp(-a[i].value);
          y[i] = r.made(1 - e, {{a[i], e}});
          break;
        }
        case Kind::times: y[i] = times(a[i], i); break;
        case Kind::plus: y[i] = r.sum(a[i], b[i]); break;
        case Kind::product: y[i] = r.product(a[i], b[i]); break;
        case Kind::reversed: y[i] = a[n - 1 - i]; break;
        case Kind::rolled: y[i] = a[(i + 1) % n]; break;
        case Kind::padded: y[i] = i > 0 ? a[i] : Number(); break;
        case Kind::picked:
        case Kind::taken: y[i] = a[place(i)]; break;
        case Kind::sliced: y[i] = a[(place(0) + i) % n]; break;
        // One element after the other, of which places may name one twice.
        case Kind::updated:
        case Kind::added:
          if (i == 0) y = a;
          y[place(i)] = s.kind == Kind::added ? r.sum(y[place(i)], b[i]) : b[i];
          break;
        case Kind::window:
          y[i] = i == place(0) || i == place(0) + 1 ? b[i - place(0)] : a[i];
          break;
        case Kind::shuffled: y[i] = a[place(place(i))]; break;
        case Kind::branched:
          y[i] = place(0) > 1 ? a[n - 1 - i] : i > 0 ? times(a[i], i) : Number();
          break;
        case Kind::summed: y[i] = total; break;
        case Kind::mixed:
          for (std::size_t k = 0; k < n; ++k) y[i] = r.sum(y[i], times(a[k], i * n + k));
          break;
        case Kind::running: y[i] = i == 0 ? a[0] : r.sum(y[i - 1], a[i]); break;
        // Three rounds in which every element is added to itself, times its number.
        case Kind::scanned:
        case Kind::repeated:
          y[i] = a[i];
          for (int round = 0; round < 3; ++round) y[i] = r.sum(y[i], times(y[i], i));
          break;
        case Kind::count_: break;
      }
    all.push_back(y);
  }
  return all.back();
}

enum class Numbers { captured, literal, given };

/// `given`: numbers and places of all steps, one after the other.
Tensor run(const Program& p, const Tensor& x, Numbers how, const std::vector<Tensor>& given) {
  std::vector<Tensor> all{x};
  const std::int64_t n = p.width;
  for (std::size_t k = 0; k < p.steps.size(); ++k) {
    const Step& s = p.steps[k];
    const Tensor a = all.back(), b = all[s.other];
    Tensor c = given[2 * k], places = given[2 * k + 1];
    if (how == Numbers::literal) {
      std::vector<Tensor> elements, indices;
      for (const double v : s.numbers) elements.push_back(vt::full({}, v, vt::f64));
      for (const std::int64_t v : s.places) indices.push_back(vt::full({}, v, vt::i64));
      c = vt::stack(elements);
      places = vt::stack(indices);
    }
    Tensor y;
    switch (s.kind) {
      case Kind::root: y = vt::sqrt(a); break;
      case Kind::exponential: y = 1.0 - vt::exp(-a); break;
      case Kind::times: y = a * c; break;
      case Kind::plus: y = a + b; break;
      case Kind::product: y = a * b; break;
      case Kind::reversed: y = vt::flip(a); break;
      case Kind::rolled: y = vt::roll(a, -1); break;
      case Kind::padded:
        y = vt::concatenate({vt::zeros({1}, vt::f64), vt::slice_in_dim(a, 1, n)});
        break;
      case Kind::picked: {
        std::vector<Tensor> elements;
        for (const std::int64_t place : s.places) elements.push_back(a[place]);
        y = vt::stack(elements);
        break;
      }
      case Kind::summed: y = vt::broadcast_to(vt::sum(a), {n}); break;
      case Kind::mixed: y = vt::matmul(vt::reshape(c, {n, n}), a); break;
      case Kind::running: y = vt::cumsum(a); break;
      case Kind::scanned:
        y = vt::fori_loop(0, 3, [&](Tensor, Tensor t) { return t + t * c; }, a);
        break;
      case Kind::repeated:
        y = vt::while_loop([](std::pair<Tensor, Tensor> s) { return s.first < 3; },
                           [&](std::pair<Tensor, Tensor> s) {
                             return std::pair(s.first + 1, s.second + s.second * c);
                           },
                           std::pair(vt::tensor(0), a))
                .second;
        break;
      case Kind::taken: y = vt::take(a, places); break;
      case Kind::sliced: y = vt::dynamic_slice(vt::concatenate({a, a}), {places[0]}, {n}); break;
      case Kind::updated: y = vt::index_update(a, places, b); break;
      case Kind::window:
        y = vt::dynamic_update_slice(a, vt::slice_in_dim(b, 0, 2), {places[0]});
        break;
      case Kind::added: y = vt::index_add(a, places, b); break;
      case Kind::shuffled:
        y = vt::fori_loop(0, 2, [&](Tensor, Tensor t) { return vt::take(t, places); }, a);
        break;
      case Kind::branched:
        y = vt::cond(
            places[0] > 1, [](Tensor t) { return vt::flip(t); },
            [&](Tensor t) {
              const Tensor rest = vt::slice_in_dim(t * c, 1, n);
              return vt::concatenate({vt::zeros({1}, vt::f64), rest});
            },
            a);
        break;
      case Kind::count_: break;
    }
    all.push_back(y);
  }
  return all.back();
}

std::string text(const Program& p) {
  std::ostringstream out;
  out << "width " << p.width << ":";
  for (const Step& s : p.steps) {
    out << " " << static_cast<int>(s.kind) << "/" << s.other << "[";
    for (const double v : s.numbers) out << v << " ";
    for (const std::int64_t v : s.places) out << "@" << v;
    out << "]";
  }
  return out.str();
}

void check(std::uint64_t seed) {
  const Program p = random_program(seed);
  const auto n = static_cast<std::size_t>(p.width);
  std::mt19937_64 draw(seed * 7 + 1);
  std::vector<double> x;
  for (std::size_t i = 0; i < n; ++i)
    x.push_back(std::vector<double>{0, 0, 1, 4, 0.25}[draw() % 5]);
  Recorder recorder;
  const Vector y = reference(recorder, p, x);
  const auto matrix = [&](const auto& slopes_of) {
    std::vector<double> rows(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (const auto& [input, t] : slopes_of(recorder.tape, p.width, y[i].node))
        rows[i * n + static_cast<std::size_t>(input)] = t;
    return vt::tensor(rows, {p.width, p.width});
  };
  const Tensor at = vt::tensor(x);
  std::vector<Tensor> given;
  for (const Step& s : p.steps) {
    given.push_back(vt::tensor(s.numbers));
    given.push_back(vt::tensor(s.places));
  }
  for (const Numbers how : {Numbers::captured, Numbers::literal, Numbers::given}) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", numbers " +
                 std::to_string(static_cast<int>(how)) + ": " + text(p));
    const auto compare = [&](const auto& jacobian, const Tensor& expected,
                             const std::string& what) {
      expect_close(jacobian(at, given), expected, near, what);
      const auto jitted = vt::jit(jacobian);
      expect_close(jitted(at, given), expected, near, what + ", jitted");
      expect_close(jitted(at, given), expected, near, what + ", jitted, again");
      const Tensor two =
          vt::vmap(jacobian, {.in_axes = {0, vt::unmapped}})(vt::stack({at, at}), given);
      expect_close(two[1], expected, near, what + ", in lanes");
    };
    const auto f = [p, how, given](Tensor x, std::vector<Tensor> numbers) {
      return run(p, x, how, how == Numbers::given ? numbers : given);
    };
    compare(vt::jacfwd(f), matrix(forward_slopes), "forward");
    compare(vt::jacrev(f), matrix(reverse_slopes), "reverse");
  }
}

TEST(ZeroDerivatives, RandomProgramsAsElementByElement) {
  const std::uint64_t first = vt_test::environment("VT_FUZZ_SEED", 1),
                      count = vt_test::environment("VT_FUZZ_COUNT", 400) / 12;
  for (std::uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed)
    check(seed);
}

// Second derivatives multiply in the order of their modes; each is the same however it is asked
// for.
TEST(ZeroDerivatives, SecondOnesAreTheSameInEveryMode) {
  const std::uint64_t first = vt_test::environment("VT_FUZZ_SEED", 1),
                      count = vt_test::environment("VT_FUZZ_COUNT", 400) / 40;
  for (std::uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) {
    const Program p = random_program(seed);
    std::mt19937_64 draw(seed * 7 + 1);
    std::vector<double> x;
    for (int i = 0; i < p.width; ++i)
      x.push_back(std::vector<double>{0, 0, 1, 4, 0.25}[draw() % 5]);
    const Tensor at = vt::tensor(x);
    std::vector<Tensor> numbers;
    for (const Step& s : p.steps) {
      numbers.push_back(vt::tensor(s.numbers));
      numbers.push_back(vt::tensor(s.places));
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(p));
    const auto given = [p](Tensor x, std::vector<Tensor> n) {
      return run(p, x, Numbers::given, n);
    };
    const auto captured = [p, numbers](Tensor x, std::vector<Tensor>) {
      return run(p, x, Numbers::captured, numbers);
    };
    const auto compare = [&](const auto& derivative, const char* what) {
      const auto of_given = derivative(given), of_captured = derivative(captured);
      const Tensor expected = of_given(at, numbers);
      expect_close(of_captured(at, numbers), expected, near, what);
      expect_close(vt::jit(of_given)(at, numbers), expected, near, what);
      expect_close(vt::jit(of_captured)(at, numbers), expected, near, what);
      const Tensor two =
          vt::vmap(of_given, {.in_axes = {0, vt::unmapped}})(vt::stack({at, at}), numbers);
      expect_close(two[1], expected, near, what);
    };
    compare([](auto f) { return vt::jacfwd(vt::jacfwd(f)); }, "forward of forward");
    compare([](auto f) { return vt::jacfwd(vt::jacrev(f)); }, "forward of reverse");
    compare([](auto f) { return vt::jacrev(vt::jacfwd(f)); }, "reverse of forward");
    compare([](auto f) { return vt::jacrev(vt::jacrev(f)); }, "reverse of reverse");
  }
}

// --- matrices, of which whole rows and columns are read, written and multiplied
// -------------------

/// One step, on a tape (of the elements in order) and on a Tensor. `places` index rows or columns.
struct MatrixStep {
  const char* name;
  std::function<Vector(Recorder&, const Vector& a, const Vector& x)> reference;
  std::function<Tensor(const Tensor& a, const Tensor& x, const Tensor& places)> run;
};
constexpr std::size_t side = 3;

std::vector<MatrixStep> matrix_steps(const std::vector<double>& m,
                                     const std::vector<std::int64_t>& places) {
  const Tensor matrix = vt::tensor(m, {side, side});
  const auto at = [](std::size_t i, std::size_t j) { return i * side + j; };
  const auto place = [places](std::size_t k) { return static_cast<std::size_t>(places[k]); };
  // Each element from those of the step before.
  const auto each = [=](auto element) {
    return [=](Recorder& r, const Vector& a, const Vector& x) {
      Vector y(side * side);
      for (std::size_t i = 0; i < side; ++i)
        for (std::size_t j = 0; j < side; ++j) y[at(i, j)] = element(r, a, x, i, j);
      return y;
    };
  };
  using Index = std::size_t;
  const auto product = [=](bool on_the_left) {
    return each([=](Recorder& r, const Vector& a, const Vector&, Index i, Index j) {
      Number sum;
      for (Index k = 0; k < side; ++k)
        sum = r.sum(sum, on_the_left ? r.product({m[at(i, k)]}, a[at(k, j)])
                                     : r.product(a[at(i, k)], {m[at(k, j)]}));
      return sum;
    });
  };
  const auto written = [=](bool adds, bool columns) {
    return [=](Recorder& r, const Vector& a, const Vector& x) {
      Vector y = a;
      for (Index k = 0; k < side; ++k)
        for (Index j = 0; j < side; ++j) {
          Number& to = y[columns ? at(j, place(k)) : at(place(k), j)];
          const Number from = x[columns ? at(j, k) : at(k, j)];
          to = adds ? r.sum(to, from) : from;
        }
      return y;
    };
  };
  const auto root = [](Recorder& r, const Number& t) {
    return r.made(std::sqrt(t.value), {{t, 1 / (2 * std::sqrt(t.value))}});
  };
  return {
      {"root", each([=](Recorder& r, const Vector& a, const Vector&, Index i, Index j) {
         return root(r, a[at(i, j)]);
       }),
       [](Tensor a, Tensor, Tensor) { return vt::sqrt(a); }},
      {"times", each([=](Recorder& r, const Vector& a, const Vector&, Index i, Index j) {
         return r.product(a[at(i, j)], {m[at(i, j)]});
       }),
       [=](Tensor a, Tensor, Tensor) { return a * matrix; }},
      {"rows", each([=](Recorder&, const Vector& a, const Vector&, Index i, Index j) {
         return a[at(place(i), j)];
       }),
       [](Tensor a, Tensor, Tensor p) { return vt::take(a, p, 0); }},
      {"columns", each([=](Recorder&, const Vector& a, const Vector&, Index i, Index j) {
         return a[at(i, place(j))];
       }),
       [](Tensor a, Tensor, Tensor p) { return vt::take(a, p, 1); }},
      {"along", each([=](Recorder&, const Vector& a, const Vector&, Index i, Index j) {
         return a[at(i, place((i + j) % side))];
       }),
       [](Tensor a, Tensor, Tensor p) {
         return vt::take_along_axis(a, vt::stack({p, vt::roll(p, -1), vt::roll(p, -2)}), 1);
       }},
      {"rows written", written(false, false),
       [](Tensor a, Tensor x, Tensor p) { return vt::index_update(a, p, x); }},
      {"columns written", written(false, true),
       [](Tensor a, Tensor x, Tensor p) {
         return vt::matrix_transpose(
             vt::index_update(vt::matrix_transpose(a), p, vt::matrix_transpose(x)));
       }},
      {"rows added", written(true, false),
       [](Tensor a, Tensor x, Tensor p) { return vt::index_add(a, p, x); }},
      {"segments", each([=](Recorder& r, const Vector& a, const Vector&, Index i, Index j) {
         Number sum;
         for (Index k = 0; k < side; ++k)
           if (place(k) == i + 1) sum = r.sum(sum, a[at(k, j)]);
         return sum;
       }),
       // Those of segment −1 are dropped.
       [](Tensor a, Tensor, Tensor p) { return vt::segment_sum(a, p - 1, side); }},
      {"product", product(true), [=](Tensor a, Tensor, Tensor) { return vt::matmul(matrix, a); }},
      {"product with", product(false),
       [=](Tensor a, Tensor, Tensor) { return vt::matmul(a, matrix); }},
      {"transposed", each([=](Recorder&, const Vector& a, const Vector&, Index i, Index j) {
         return a[at(j, i)];
       }),
       [](Tensor a, Tensor, Tensor) { return vt::matrix_transpose(a); }},
      {"shifted", each([=](Recorder&, const Vector& a, const Vector&, Index i, Index j) {
         return a[(at(i, j) + 2) % (side * side)];
       }),
       [](Tensor a, Tensor, Tensor) {
         return vt::reshape(vt::roll(vt::reshape(a, {side * side}), -2), {side, side});
       }},
      {"block", each([=](Recorder&, const Vector& a, const Vector& x, Index i, Index j) {
         const Index first = std::min<Index>(place(0), 1);
         return i == first || i == first + 1 ? x[at(i - first, j)] : a[at(i, j)];
       }),
       [](Tensor a, Tensor x, Tensor p) {
         return vt::dynamic_update_slice(a, vt::slice_in_dim(x, 0, 2), {p[0], 0});
       }},
      {"sums", each([=](Recorder& r, const Vector& a, const Vector&, Index i, Index) {
         return r.sum(r.sum(r.sum({}, a[at(i, 0)]), a[at(i, 1)]), a[at(i, 2)]);
       }),
       [](Tensor a, Tensor, Tensor) {
         return vt::broadcast_to(vt::sum(a, 1, true), {side, side});
       }},
      {"running",
       [=](Recorder& r, const Vector& a, const Vector&) {
         Vector y = a;
         for (Index k = side; k < side * side; ++k) y[k] = r.sum(y[k - side], a[k]);
         return y;
       },
       [](Tensor a, Tensor, Tensor) { return vt::cumsum(a, 0); }},
      {"rolled rows", each([=](Recorder&, const Vector& a, const Vector&, Index i, Index j) {
         return a[at(place(place(i)), j)];
       }),
       [](Tensor a, Tensor, Tensor p) {
         return vt::fori_loop(0, 2, [&](Tensor, Tensor t) { return vt::take(t, p, 0); }, a);
       }},
      {"one of two", each([=](Recorder&, const Vector& a, const Vector&, Index i, Index j) {
         return a[at(place(i), j)];
       }),
       [](Tensor a, Tensor, Tensor p) {
         return vt::cond(
             p[0] >= 0, [&](Tensor t) { return vt::take(t, p, 0); }, [](Tensor t) { return t; }, a);
       }},
      // Each row takes its own way, or its own number of rounds.
      {"lanes", each([=](Recorder&, const Vector& a, const Vector&, Index i, Index j) {
         return place(i) > 0 ? a[at(i, place(j))] : a[at(i, j)];
       }),
       [](Tensor a, Tensor, Tensor p) {
         const auto row = [&](Tensor t, Tensor way) {
           return vt::cond(
               way > 0, [&](Tensor t) { return vt::take(t, p); }, [](Tensor t) { return t; }, t);
         };
         return vt::vmap(row)(a, p);
       }},
      {"rounds of lanes", each([=](Recorder& r, const Vector& a, const Vector&, Index i, Index j) {
         Number y = a[at(i, j)];
         for (Index k = 0; k < place(i); ++k) y = r.sum(y, r.product(y, {m[at(0, j)]}));
         return y;
       }),
       [=](Tensor a, Tensor, Tensor p) {
         const auto row = [&](Tensor t, Tensor rounds) {
           return vt::fori_loop(0, rounds, [&](Tensor, Tensor c) { return c + c * matrix[0]; }, t);
         };
         return vt::vmap(row)(a, p);
       }},
      {"mapped", each([=](Recorder& r, const Vector& a, const Vector&, Index i, Index j) {
         return r.sum(root(r, a[at(i, j)]), a[at(i, place(j))]);
       }),
       [](Tensor a, Tensor, Tensor p) {
         return vt::map([&](Tensor row) { return vt::sqrt(row) + vt::take(row, p); }, a);
       }},
      {"called", each([=](Recorder&, const Vector& a, const Vector&, Index i, Index j) {
         return a[at(place(i), j)];
       }),
       [](Tensor a, Tensor, Tensor p) {
         return vt::jit([](Tensor t, Tensor at_rows) { return vt::take(t, at_rows, 0); })(a, p);
       }},
  };
}

void check_matrices(std::uint64_t seed) {
  std::mt19937_64 draw(seed * 11 + 3);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(draw() % n); };
  struct Drawn {
    std::size_t kind;
    std::vector<double> numbers;
    std::vector<std::int64_t> places;
  };
  std::vector<Drawn> program;
  std::vector<Tensor> places;
  std::string text;
  const std::size_t kinds = matrix_steps(std::vector<double>(9), {0, 0, 0}).size();
  for (std::size_t k = 0, n = 2 + pick(5); k < n; ++k) {
    Drawn d{pick(kinds), {}, {}};
    for (std::size_t i = 0; i < side * side; ++i)
      d.numbers.push_back(std::vector<double>{0, 0, 1, 0.5, 2, inf}[pick(i % 4 == 0 ? 6 : 5)]);
    for (std::size_t i = 0; i < side; ++i)
      d.places.push_back(static_cast<std::int64_t>(pick(side)));
    text += std::string(" ") + matrix_steps(d.numbers, d.places)[d.kind].name;
    places.push_back(vt::tensor(d.places));
    program.push_back(std::move(d));
  }
  std::vector<double> x;
  for (std::size_t i = 0; i < side * side; ++i)
    x.push_back(std::vector<double>{0, 0, 1, 4, 0.25}[pick(5)]);
  SCOPED_TRACE("seed " + std::to_string(seed) + ":" + text);

  Recorder recorder;
  Vector first;
  for (const double v : x) first.push_back(recorder.input(v));
  Vector y = first;
  for (const Drawn& d : program)
    y = matrix_steps(d.numbers, d.places)[d.kind].reference(recorder, y, first);
  const auto f = [program](Tensor x, std::vector<Tensor> places) {
    Tensor y = x;
    for (std::size_t k = 0; k < program.size(); ++k)
      y = matrix_steps(program[k].numbers, program[k].places)[program[k].kind].run(y, x, places[k]);
    return y;
  };
  const auto captured = [f, places](Tensor x, std::vector<Tensor>) { return f(x, places); };
  constexpr std::int64_t n = side * side;
  const auto matrix = [&](const auto& slopes_of) {
    std::vector<double> rows(side * side * side * side);
    for (std::size_t i = 0; i < side * side; ++i)
      for (const auto& [input, t] : slopes_of(recorder.tape, static_cast<int>(n), y[i].node))
        rows[i * side * side + static_cast<std::size_t>(input)] = t;
    return vt::tensor(rows, {side, side, side, side});
  };
  const Tensor at = vt::tensor(x, {side, side});
  const auto compare = [&](const auto& jacobian, const Tensor& expected, const std::string& what) {
    expect_close(jacobian(at, places), expected, near, what);
    const auto jitted = vt::jit(jacobian);
    for (int round = 0; round < 2; ++round)
      expect_close(jitted(at, places), expected, near, what + ", jitted");
    const Tensor two =
        vt::vmap(jacobian, {.in_axes = {0, vt::unmapped}})(vt::stack({at, at}), places);
    expect_close(two[1], expected, near, what + ", in lanes");
  };
  compare(vt::jacfwd(f), matrix(forward_slopes), "forward");
  compare(vt::jacrev(f), matrix(reverse_slopes), "reverse");
  compare(vt::jacfwd(captured), matrix(forward_slopes), "forward, captured");
  compare(vt::jacrev(captured), matrix(reverse_slopes), "reverse, captured");
}

TEST(ZeroDerivatives, RandomProgramsOfMatricesAsElementByElement) {
  const std::uint64_t first = vt_test::environment("VT_FUZZ_SEED", 1),
                      count = vt_test::environment("VT_FUZZ_COUNT", 400) / 12;
  for (std::uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed)
    check_matrices(seed);
}

// --- the smallest --------------------------------------------------------------------------------

TEST(ZeroDerivatives, OfDataAreNoZerosOfStructure) {
  const Tensor x = vt::tensor({0.0, 1.0, 4.0}), z = vt::tensor({0.0, 1.0, 1.0});
  const Tensor expected = vt::tensor({{nan, 0.0, 0.0}, {0.0, 0.5, 0.0}, {0.0, 0.0, 0.25}});
  const auto captured = [](Tensor z) { return [z](Tensor x) { return vt::sqrt(x) * z; }; };
  const auto given = [](Tensor x, Tensor z) { return vt::sqrt(x) * z; };
  // The answer does not depend on what was jitted before.
  for (const Tensor& before : {z, vt::tensor({2.0, 3.0, 4.0})}) {
    vt::jit(vt::jacobian(captured(before)))(x);
    expect_close(vt::jit(vt::jacobian(captured(z)))(x), expected, near);
    expect_close(vt::jit(vt::jacrev(captured(z)))(x), expected, near);
    expect_close(vt::jacfwd(captured(z))(x), expected, near);
    expect_close(vt::jit(vt::jacfwd(given))(x, z), expected, near);
    expect_close(vt::jacrev(given)(x, z), expected, near);
  }
  const auto total = [&](Tensor x) { return vt::sum(vt::sqrt(x) * z); };
  expect_close(vt::grad(total)(x), vt::tensor({nan, 0.5, 0.25}), near);
  expect_close(vt::jacfwd(total)(x), vt::tensor({nan, 0.5, 0.25}), near);
  expect_close(vt::jit(vt::grad(total))(x), vt::tensor({nan, 0.5, 0.25}), near);
}

TEST(ZeroDerivatives, ALiteralZeroIsDataToo) {
  const Tensor x = vt::tensor({0.0, 1.0});
  const Tensor expected = vt::tensor({{nan, 0.0}, {0.0, 0.0}});
  for (const auto& f : {+[](Tensor x) { return vt::sqrt(x) * 0.0 * vt::tensor({3.0, 4.0}); },
                        +[](Tensor x) { return (vt::sqrt(x) - vt::sqrt(x)) * 2.0; }}) {
    expect_close(vt::jacfwd(f)(x), expected, near);
    expect_close(vt::jacrev(f)(x), expected, near);
    expect_close(vt::jit(vt::jacfwd(f))(x), expected, near);
    expect_close(vt::jit(vt::jacrev(f))(x), expected, near);
  }
}

TEST(ZeroDerivatives, GradientsAndTangentsKeepWhatIsNotReached) {
  const Tensor x = vt::tensor({0.0, 1.0, 4.0});
  const auto upper = [](Tensor x) { return vt::sum(vt::slice_in_dim(vt::sqrt(x), 1, 3)); };
  const Tensor expected = vt::tensor({0.0, 0.5, 0.25});
  expect_close(vt::grad(upper)(x), expected, near);
  expect_close(vt::jit(vt::grad(upper))(x), expected, near);
  expect_close(vt::vjp(upper, x).second(vt::tensor(1.0)), expected, near);
  // Part of what is rooted is a constant.
  const auto joined = [](Tensor x) {
    return vt::sqrt(vt::concatenate({x, vt::zeros({2}, vt::f64)}));
  };
  expect_close(vt::jvp(joined, x, vt::ones({3}, vt::f64)).second,
               vt::tensor({inf, 0.5, 0.25, 0.0, 0.0}), near);
  // Tangents that are given are data.
  expect_close(vt::jvp([](Tensor x) { return vt::sqrt(x); }, x, vt::tensor({0.0, 1.0, 0.0})).second,
               vt::tensor({nan, 0.5, 0.0}), near);
}

TEST(ZeroDerivatives, HessiansToo) {
  const auto f = [](Tensor x) { return vt::sum(vt::pow(x, 1.5) * vt::tensor({0.0, 1.0, 1.0})); };
  const Tensor x = vt::tensor({0.0, 1.0, 4.0});
  const Tensor expected = vt::tensor({{nan, 0.0, 0.0}, {0.0, 0.75, 0.0}, {0.0, 0.0, 0.375}});
  expect_close(vt::hessian(f)(x), expected, near);
  expect_close(vt::jit(vt::hessian(f))(x), expected, near);
}

// Masks of the inner derivative say what is there, and are no zeros to the outer one.
TEST(ZeroDerivatives, OfDerivativesInAnyOrder) {
  const Tensor x = vt::tensor({0.0, 1.0, 4.0, 0.0});
  const auto check = [&](const auto& f, const Tensor& expected, const char* what) {
    expect_close(vt::jacfwd(vt::jacfwd(f))(x), expected, near, std::string(what) + ", f f");
    expect_close(vt::jacfwd(vt::jacrev(f))(x), expected, near, std::string(what) + ", f r");
    expect_close(vt::jacrev(vt::jacfwd(f))(x), expected, near, std::string(what) + ", r f");
    expect_close(vt::jacrev(vt::jacrev(f))(x), expected, near, std::string(what) + ", r r");
    expect_close(vt::jit(vt::jacrev(vt::jacfwd(f)))(x), expected, near, what);
    expect_close(vt::jit(vt::jacrev(vt::jacrev(f)))(x), expected, near, what);
    expect_close(vt::vmap(vt::jacrev(vt::jacfwd(f)))(vt::stack({x, x}))[1], expected, near, what);
  };
  // ∂²yᵢ/∂xⱼ∂xₖ is not 0 only where all three are one.
  const auto diagonal = [](const Tensor& slopes) {
    const Tensor i = vt::eye(4, vt::f64) > 0.0;
    const Tensor all = vt::expand_dims(i, 2) & vt::expand_dims(i, 0);
    return vt::where(all, vt::reshape(slopes, {4, 1, 1}), 0.0);
  };
  check([](Tensor x) { return vt::pow(x, 1.5) * vt::tensor({1.0, 2.0, 3.0, 4.0}); },
        diagonal(vt::tensor({inf, 1.5, 1.125, inf})), "powers");
  // The first and the last element are not taken.
  check([](Tensor x) { return vt::take(vt::pow(x, 1.5), vt::tensor({1, 2})); },
        vt::slice_in_dim(diagonal(vt::tensor({0.0, 0.75, 0.375, 0.0})), 1, 3), "taken");
  // A mask of many elements is a formula.
  const auto padded = [](Tensor x) {
    return vt::pow(vt::concatenate({x, vt::zeros({60}, vt::f64)}), 1.5);
  };
  check([=](Tensor x) { return vt::slice_in_dim(padded(x), 0, 4); },
        diagonal(vt::tensor({inf, 0.75, 0.375, inf})), "padded");
}

// Only constants are looked through for masks: a Tensor that has been evaluated has lost what it
// was made of.
TEST(ZeroDerivatives, ChoicesByEvaluatedTensors) {
  const Tensor m = vt::tensor({{1.0, -1.0}, {2.0, -3.0}});
  const Tensor expected = vt::tensor({{1.0, 0.0}, {0.0, 0.0}});
  const auto relu = [](Tensor x) { return vt::relu(x); };
  const auto check = [&](Tensor y) {
    for (int round = 0; round < 2; ++round) {
      expect_close(vt::jacfwd(relu)(y), expected, near);
      expect_close(vt::jacrev(relu)(y), expected, near);
      expect_close(vt::hessian([&](Tensor x) { return vt::sum(vt::square(relu(x))); })(y),
                   2.0 * expected, near);
      const auto chosen = [=](Tensor x) { return vt::where(y > 0.0, x * x, x); };
      expect_close(vt::jit(vt::jacobian(chosen))(vt::tensor({3.0, 4.0})),
                   vt::tensor({{6.0, 0.0}, {0.0, 1.0}}), near);
      y.eval();
    }
  };
  check(m[1]);
  check(vt::flip(vt::tensor({-1.0, 2.0})));
  check(vt::slice_in_dim(vt::tensor({0.0, 2.0, -1.0}), 1, 3));
  check(vt::eye(2, vt::f64)[0] - 0.5);
  check(vt::broadcast_to(vt::tensor(0.0), {2}) + vt::tensor({1.0, -1.0}));
}

TEST(ZeroDerivatives, GradientsOfGradients) {
  const Tensor x = vt::tensor({0.0, 4.0}), v = vt::tensor({1.0, 1.0});
  for (const auto& f :
       {+[](Tensor x) { return vt::pow(x, 1.5)[1]; },
        +[](Tensor x) { return vt::take(vt::pow(x, 1.5), vt::tensor({1}))[0]; },
        +[](Tensor x) { return vt::sum(vt::index_update(vt::pow(x, 1.5), 0, 0.0)); },
        +[](Tensor x) {
          return vt::sum(
              vt::matmul(vt::tensor({{2.0}, {-1.0}}), vt::slice_in_dim(vt::pow(x, 1.5), 1, 2)));
        }}) {
    const Tensor expected = vt::tensor({0.0, 0.375});
    const auto total = [&](Tensor x) { return vt::sum(vt::grad(f)(x)); };
    expect_close(vt::grad(total)(x), expected, near);
    expect_close(vt::jit(vt::grad(total))(x), expected, near);
    expect_close(vt::jacfwd(total)(x), expected, near);
    expect_close(vt::vjp(vt::grad(f), x).second(v), expected, near);
    expect_close(vt::jvp(vt::grad(f), x, v).second, expected, near);
    const auto penalty = [&](Tensor x) { return vt::sum(vt::square(vt::grad(f)(x))); };
    expect_close(vt::grad(penalty)(x), vt::tensor({0.0, 2.0 * 3.0 * 0.375}), near);
  }
}

// Known zeros vanish where that is asked for, and nowhere else, whatever was compiled before.
TEST(ZeroDerivatives, VanishWhereAllIsAssumedFinite) {
  if (vt_test::forced_backend() == "interpreter" || vt_test::forced_backend() == "cuda")
    GTEST_SKIP() << "only the CPU's compiled code leaves zeros out";
  const Tensor x = vt::tensor({0.0, 1.0, 4.0});
  const auto f = [](Tensor x) {
    const Tensor o = vt::full({}, 0.0, vt::f64), l = o + 1.0;
    return vt::sqrt(x) * vt::stack({o, l, l});
  };
  const Tensor strict = vt::tensor({{nan, 0.0, 0.0}, {0.0, 0.5, 0.0}, {0.0, 0.0, 0.25}}),
               finite = vt::tensor({{0.0, 0.0, 0.0}, {0.0, 0.5, 0.0}, {0.0, 0.0, 0.25}});
  const auto both = vt::jit(vt::jacobian(f));
  for (int round = 0; round < 2; ++round) {
    expect_close(both(x), strict, near);
    expect_close(vt::jit(vt::jacobian(f), {.assume_finite = true})(x), finite, near);
    {
      const vt::AssumeFinite scope;
      expect_close(both(x), finite, near);
      const vt::AssumeFinite not_here(false);
      expect_close(both(x), strict, near);
    }
    // Values too, and inside of another function.
    const auto value = vt::jit([](Tensor x) { return (1.0 / x) * 0.0; }, {.assume_finite = true});
    expect_close(value(x), vt::zeros({3}, vt::f64));
    expect_close(vt::jit([&](Tensor x) { return value(x) + (1.0 / x) * 0.0; })(x),
                 vt::tensor({nan, 0.0, 0.0}));
  }
}

// Nothing reaches, and the sign of the zero does not show that either.
TEST(ZeroDerivatives, ArePositive) {
  const Tensor x = vt::tensor({1.0, 2.0, 4.0});
  const auto has_minus_zero = [](const Tensor& t) {
    for (const double v : t.to_vector<double>())
      if (v == 0 && std::signbit(v)) return true;
    return false;
  };
  const auto check = [&](const auto& f, const char* what) {
    EXPECT_FALSE(has_minus_zero(vt::jacfwd(f)(x))) << what << ", forward";
    EXPECT_FALSE(has_minus_zero(vt::jacrev(f)(x))) << what << ", reverse";
    EXPECT_FALSE(has_minus_zero(vt::jit(vt::jacobian(f))(x))) << what << ", jitted";
  };
  check([](Tensor x) { return vt::take(x, vt::tensor({2, 0})); }, "take");
  check([](Tensor x) { return vt::map([](Tensor e) { return e * e; }, x); }, "map");
  check([](Tensor x) { return vt::sort(x); }, "sort");
  check([](Tensor x) { return vt::where(x > 1.5, x, 2.0); }, "where");
  check([](Tensor x) { return vt::slice_in_dim(x, 1, 3); }, "slice");
  check(
      [](Tensor x) {
        return vt::while_loop([](Tensor c) { return vt::sum(c) < 50.0; },
                              [](Tensor c) { return c * 2.0; }, x);
      },
      "while_loop");
}

// A product that is large is written as it is, with one beside it that leaves terms out.
TEST(ZeroDerivatives, LargeProductsLeaveTermsOut) {
  constexpr std::int64_t n = 70;
  const Tensor w = vt_test::random_tensor(vt::f64, {n, n}, 5);
  const Tensor infinite = vt::where(vt::eye(n, vt::f64) > 0.0, inf, w);
  const Tensor x = vt_test::random_tensor(vt::f64, {n}, 0.5, 1.0, 6);
  for (const Tensor& m : {w, infinite}) {
    const auto f = [m](Tensor x) { return vt::matmul(m, vt::square(x)); };
    const Tensor expected = m * (2.0 * x);
    expect_close(vt::jacfwd(f)(x), expected, near);
    expect_close(vt::jacrev(f)(x), expected, near);
    expect_close(vt::jit(vt::jacfwd(f))(x), expected, near);
    expect_close(vt::jit(vt::jacrev(f))(x), expected, near);
  }
}

}  // namespace
