// The simplifier on nested control flow made at random: no bit of any result changes.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "control_builder.hpp"

namespace {
using namespace vt_test;
using enum vt::DType;

/// Nested control flow made at random from vectors f32[2]: values handed through, swapped, given
/// twice, forgotten, the same in all branches, iterations or lanes, so that every rewrite meets
/// every other.
class RandomControl {
 public:
  explicit RandomControl(unsigned seed) : random_(seed) {}

  Vars statements(Builder& b, Vars pool, std::size_t results, int depth) {
    const int count = static_cast<int>(below(4)) + 1;
    for (int k = 0; k < count; ++k) {
      const Vars made = statement(b, pool, depth);
      pool.insert(pool.end(), made.begin(), made.end());
    }
    return chosen(pool, results);
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  Var any(const Vars& pool) { return pool[below(pool.size())]; }
  Vars chosen(const Vars& pool, std::size_t count) {
    Vars some;
    for (std::size_t i = 0; i < count; ++i) some.push_back(any(pool));
    return some;
  }
  /// One of 0 … 2 that is not known, from a vector.
  Var number(Builder& b, Var v) {
    const Var large = b.add(Op::gt, {b.slice(v, {0}, {1}, {1}), b.full(0.25f, {1})}),
              set = b.add(Op::lt, {b.slice(v, {1}, {2}, {1}), b.full(0.5f, {1})});
    return b.reshape(b.add(Op::add, {b.convert(large, i32), b.convert(set, i32)}), {});
  }
  Var index(Builder& b, const Vars& pool) {
    return below(6) == 0 ? b.full(static_cast<std::int32_t>(below(4)) - 1) : number(b, any(pool));
  }
  Make body(std::size_t results, int depth, std::size_t first = 0) {
    const unsigned seed = random_();
    return [=](Builder& b, const Vars& in) {
      return RandomControl(seed).statements(
          b, Vars(in.begin() + static_cast<std::ptrdiff_t>(first), in.end()), results, depth - 1);
    };
  }
  /// The vector for each of the lanes: its own ones, or the same.
  Var in_lanes(Builder& b, const Vars& pool, std::int64_t lanes) {
    const Var all = b.broadcast(any(pool), {lanes, 2}, {1});
    return below(4) == 0
               ? all
               : b.add(Op::mul,
                       {all, b.broadcast(b.add(Op::sin, {b.iota(f32, {lanes})}), {lanes, 2}, {0})});
  }
  Var all_lanes_of(Builder& b, Var in, std::int64_t lanes) {
    Vars parts;
    for (std::int64_t k = 0; k < lanes; ++k)
      parts.push_back(number(b, b.reshape(b.slice(in, {k, 0}, {k + 1, 2}, {1, 1}), {2})));
    for (Var& v : parts) v = b.reshape(v, {1});
    return b.with(Op::concatenate, AxisParams{0}, parts);
  }

  Vars statement(Builder& b, const Vars& pool, int depth) {
    if (depth == 0 || below(3) == 0) {
      const Op unary[] = {Op::sin, Op::cos, Op::neg, Op::sigmoid},
               binary[] = {Op::add, Op::mul, Op::sub, Op::max};
      switch (below(5)) {
        case 0: return {b.full(static_cast<float>(below(3)), {2})};
        case 1:
        case 2: return {b.add(unary[below(4)], {any(pool)})};
        default: return {b.add(binary[below(4)], {any(pool), any(pool)})};
      }
    }
    const std::size_t results = below(3) + 1, carries = below(4) + 1;
    const std::int64_t lanes = static_cast<std::int64_t>(below(3)) + 1;
    switch (below(5)) {
      case 0: {
        std::vector<Make> branches;
        for (std::size_t k = below(3) + 1; k-- > 0;) branches.push_back(body(results, depth));
        if (below(4) == 0) branches.assign(2, branches[0]);
        return cond(b, index(b, pool), chosen(pool, 3), branches);
      }
      case 1: {
        const std::int64_t length = static_cast<std::int64_t>(below(4));
        Vars operands = chosen(pool, carries);
        const std::size_t sequences = below(3);
        for (std::size_t k = 0; k < sequences; ++k) operands.push_back(in_lanes(b, pool, length));
        for (const Var v : chosen(pool, 2)) operands.push_back(v);
        Vars out = scan(b, static_cast<int>(carries), static_cast<int>(sequences), length, operands,
                        body(carries + below(3), depth), below(2));
        for (std::size_t k = carries; k < out.size(); ++k)
          out[k] = b.with(Op::reduce_sum, AxesParams{{0}}, {out[k]});
        return out;
      }
      case 2: {
        Vars operands = chosen(pool, carries);
        operands.insert(operands.begin(), below(5) ? b.full(0) : b.full(2));
        for (const Var v : chosen(pool, 2)) operands.push_back(v);
        operands.push_back(index(b, pool));
        Vars out = while_loop(b, static_cast<int>(carries) + 1, operands,
                              less(0, operands.size() - 1), counting(carries, depth));
        out.erase(out.begin());
        return out;
      }
      case 3: {
        Vars operands;
        std::string mapped = "1";
        const Var decides = in_lanes(b, pool, lanes);
        for (int k = 0; k < 3; ++k) {
          const bool own = below(3) != 0;
          operands.push_back(own ? in_lanes(b, pool, lanes) : any(pool));
          mapped += own ? '1' : '0';
        }
        std::vector<Make> branches;
        for (std::size_t k = below(3) + 1; k-- > 0;) branches.push_back(body(results, depth));
        Vars out =
            cond(b, all_lanes_of(b, decides, lanes), operands, branches, lanes_of(lanes, mapped));
        for (Var& v : out) v = b.with(Op::reduce_max, AxesParams{{0}}, {v});
        return out;
      }
      default: {
        Vars operands{b.full(0, {lanes})};
        std::string mapped = "1";
        for (std::size_t k = 0; k < carries; ++k)
          operands.push_back(in_lanes(b, pool, lanes)), mapped += '1';
        for (int k = 0; k < 2; ++k) {
          const bool own = below(2);
          operands.push_back(own ? in_lanes(b, pool, lanes) : any(pool));
          mapped += own ? '1' : '0';
        }
        operands.push_back(below(3) ? all_lanes_of(b, in_lanes(b, pool, lanes), lanes)
                                    : number(b, any(pool)));
        mapped += b.graph.aval(operands.back()).shape.empty() ? '0' : '1';
        Vars out =
            while_loop(b, static_cast<int>(carries) + 1, operands, less(0, operands.size() - 1),
                       counting(carries, depth), lanes_of(lanes, mapped));
        out.erase(out.begin());
        for (Var& v : out) v = b.with(Op::reduce_max, AxesParams{{0}}, {v});
        return out;
      }
    }
  }
  /// A while's body: the counter, then vectors; the number of iterations is the last operand.
  Make counting(std::size_t carries, int depth) {
    const Make make = body(carries, depth, 1);
    return [=](Builder& b, const Vars& in) {
      Vars out = make(b, Vars(in.begin(), in.end() - 1));
      out.insert(out.begin(), next(b, in[0]));
      return out;
    };
  }

  std::mt19937 random_;
};

TEST(SimplifyControl, RandomProgramsKeepTheirValues) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Builder b;
    const Vars in{b.input(f32, {2}), b.input(f32, {2}), b.input(f32, {2})};
    simple_of(b, RandomControl(seed).statements(b, in, 3, 3));
    if (HasFailure()) break;
  }
}

}  // namespace
