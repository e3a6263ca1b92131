// Batch rules, over the whole op table: vmap of an op equals the op on every lane, stacked; for
// every combination of mapped operands, every position of the lanes, and two maps inside each
// other.
#include <gtest/gtest.h>

#include <set>

#include <vt/detail/entry_points.hpp>

#include "src/trace/ir/graph.hpp"
#include "src/transforms/vmap/batch_rules.hpp"
#include "support/primitive_cases.hpp"
#include "support/property.hpp"

namespace {

using namespace vt_test;
using vt::Tensor;
using vt::detail::MappedAxis;
using vt::detail::Op;

// vmap of a flat function, lanes of the results at `out_axis`.
std::vector<Tensor> vmap(const vt::detail::FlatFunction& f, const std::vector<Tensor>& arguments,
                         const vt::Vec<MappedAxis>& in_axes, std::int64_t lanes, int out_axis = 0) {
  vt::detail::VmapCall call;
  call.arguments = arguments;
  call.in_axes = in_axes;
  call.out_axes = [&](std::size_t n) { return vt::Vec<MappedAxis>(n, out_axis); };
  call.axis_size = lanes;
  return vt::detail::vmap_flat(f, call);
}

vt::detail::FlatFunction function_of(const PrimitiveCase& c) {
  return [&c](std::span<const Tensor> a) { return c.run(a); };
}

// How many ways to lay lanes along axes are tried for each op; compiled, each is a kernel of its
// own.
const std::size_t most_patterns = environment("VT_AXIS_PATTERNS", 8);

// Every way to give the mapped operands an axis, or some of them; some counted from the end.
std::vector<vt::Vec<MappedAxis>> axis_patterns(const PrimitiveCase& c, unsigned mask, bool every) {
  std::vector<vt::Vec<MappedAxis>> patterns{{}};
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    std::vector<vt::Vec<MappedAxis>> longer;
    for (const auto& p : patterns) {
      const int positions = (mask >> i & 1u) ? c.operands[i].shape.rank() + 1 : 0;
      for (int axis = 0; axis < std::max(positions, 1); ++axis) {
        longer.push_back(p);
        const bool from_end = (longer.size() + i) % 2 == 1;
        longer.back().push_back(positions == 0 ? std::nullopt
                                               : MappedAxis(from_end ? axis - positions : axis));
      }
    }
    patterns = std::move(longer);
  }
  const std::size_t most = every ? most_patterns : std::min<std::size_t>(most_patterns, 2);
  if (patterns.size() <= most) return patterns;
  std::vector<vt::Vec<MappedAxis>> picked;
  for (std::size_t k = 0; k < most; ++k)
    picked.push_back(patterns[k * (patterns.size() - 1) / std::max<std::size_t>(most - 1, 1)]);
  return picked;
}

std::string text_of(const vt::Vec<MappedAxis>& axes) {
  std::string text;
  for (const MappedAxis& a : axes)
    text += (text.empty() ? "" : ",") + (a ? std::to_string(*a) : "-");
  return "(" + text + ")";
}

void check_against_loop(const PrimitiveCase& c, std::int64_t lanes, bool every_pattern) {
  for (unsigned mask = 1; mask < 1u << c.operands.size(); ++mask) {
    // lane_operands[i][l]; unmapped operands have one entry
    std::vector<std::vector<Tensor>> lane_operands(c.operands.size());
    for (std::size_t i = 0; i < c.operands.size(); ++i)
      for (std::int64_t l = 0; l < ((mask >> i & 1u) ? lanes : 1); ++l)
        lane_operands[i].push_back(c.operand(i, 1000 * i + static_cast<std::uint64_t>(l)));
    std::vector<std::vector<Tensor>> expected;
    for (std::int64_t l = 0; l < lanes; ++l) {
      std::vector<Tensor> own;
      for (const auto& operands : lane_operands)
        own.push_back(operands[operands.size() == 1 ? 0 : static_cast<std::size_t>(l)]);
      const std::vector<Tensor> results = c.run(own);
      expected.resize(results.size());
      for (std::size_t k = 0; k < results.size(); ++k) expected[k].push_back(results[k]);
    }
    std::vector<Tensor> stacked;
    for (const auto& parts : expected) stacked.push_back(stack_lanes(parts, 0));
    for (const auto& axes : axis_patterns(c, mask, every_pattern)) {
      std::vector<Tensor> arguments;
      for (std::size_t i = 0; i < axes.size(); ++i)
        arguments.push_back(axes[i] ? stack_lanes(lane_operands[i], *axes[i])
                                    : lane_operands[i][0]);
      const std::string what =
          c.name() + " axes " + text_of(axes) + " lanes " + std::to_string(lanes);
      try {
        expect_close(vmap(function_of(c), arguments, axes, lanes), stacked, c.tolerance(), what);
      } catch (const vt::Error& e) {
        ADD_FAILURE() << what << ": " << e.what();
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
}

bool family_is(const PrimitiveCase& c, std::initializer_list<vt::detail::Family> families) {
  return std::find(families.begin(), families.end(), vt::detail::family_of(c.op)) != families.end();
}

TEST(VmapRules, EveryOpHasACase) {
  std::set<Op> covered;
  for (const PrimitiveCase& c : primitive_cases()) covered.insert(c.op);
  for (int i = 0; i < vt::detail::op_count; ++i) {
    const Op op = static_cast<Op>(i);
    // vmap_collectives_test
    if (vt::detail::family_of(op) == vt::detail::Family::leaf || vt::detail::is_collective(op))
      continue;
    // control_effects_test: no results
    if (op == Op::debug_print || op == Op::check) continue;
    EXPECT_TRUE(covered.contains(op))
        << vt::detail::name_of(op) << " has no row in primitive_cases.hpp";
  }
}

class FamilyTest : public ::testing::TestWithParam<vt::detail::Family> {};

TEST_P(FamilyTest, EqualsTheLoopForEveryAxis) {
  for (const PrimitiveCase& c : primitive_cases())
    if (family_is(c, {GetParam()})) check_against_loop(c, 3, true);
}

TEST_P(FamilyTest, EqualsTheLoopForOneAndManyLanes) {
  for (const PrimitiveCase& c : primitive_cases())
    if (family_is(c, {GetParam()}))
      for (std::int64_t lanes : {1, 17}) check_against_loop(c, lanes, false);
}

TEST_P(FamilyTest, NoLanesGiveEmptyResults) {
  for (const PrimitiveCase& c : primitive_cases()) {
    if (!family_is(c, {GetParam()})) continue;
    std::vector<Tensor> one_lane;
    for (std::size_t i = 0; i < c.operands.size(); ++i) one_lane.push_back(c.operand(i, i));
    const std::vector<Tensor> like = c.run(one_lane);
    for (unsigned mask = 1; mask < 1u << c.operands.size(); ++mask) {
      std::vector<Tensor> arguments = one_lane;
      vt::Vec<MappedAxis> axes(c.operands.size());
      for (std::size_t i = 0; i < axes.size(); ++i) {
        if (!(mask >> i & 1u)) continue;
        axes[i] = -1;
        vt::Shape shape = c.operands[i].shape;
        shape.push_back(0);
        arguments[i] = make_tensor(c.operands[i].dtype, shape, {});
      }
      const std::vector<Tensor> results = vmap(function_of(c), arguments, axes, 0, -1);
      ASSERT_EQ(results.size(), like.size()) << c.name();
      for (std::size_t k = 0; k < results.size(); ++k) {
        vt::Shape shape = like[k].shape();
        shape.push_back(0);
        EXPECT_EQ(results[k].shape(), shape) << c.name();
        EXPECT_EQ(results[k].dtype(), like[k].dtype()) << c.name();
        EXPECT_EQ(results[k].eval().size(), 0);
      }
    }
  }
}

// Each operand may have the inner lanes, the outer ones, both or neither, each at some axis.
TEST_P(FamilyTest, TwoMapsEqualTwoLoops) {
  constexpr std::int64_t inner = 2, outer = 3;
  std::mt19937_64 engine(7);
  for (const PrimitiveCase& c : primitive_cases()) {
    if (!family_is(c, {GetParam()})) continue;
    const unsigned combinations = 1u << (2 * c.operands.size());
    const unsigned step = (combinations - 2) / static_cast<unsigned>(most_patterns) + 1;
    for (unsigned states = 1; states < combinations; states += step) {
      std::vector<Tensor> arguments;
      vt::Vec<MappedAxis> inner_axes, outer_axes;
      for (std::size_t i = 0; i < c.operands.size(); ++i) {
        const unsigned state = states >> (2 * i) & 3u;
        // Made with the lanes in front, where matrices stay what the case says they are.
        PrimitiveCase spec = c;
        vt::Shape& shape = spec.operands[i].shape;
        MappedAxis in, out;
        if (state & 1u) {
          in = static_cast<int>(engine() % (shape.size() + 1));
          shape.insert(shape.begin(), inner);
        }
        if (state & 2u) {
          out = static_cast<int>(engine() % (shape.size() + 1));
          shape.insert(shape.begin(), outer);
        }
        Tensor argument = spec.operand(i, engine());
        if (in) argument = vt::moveaxis(argument, out ? 1 : 0, *in + (out ? 1 : 0));
        if (out) argument = vt::moveaxis(argument, 0, *out);
        arguments.push_back(argument);
        inner_axes.push_back(in);
        outer_axes.push_back(out);
      }
      std::vector<std::vector<Tensor>> rows;
      for (std::int64_t o = 0; o < outer; ++o) {
        std::vector<std::vector<Tensor>> columns;
        for (std::int64_t l = 0; l < inner; ++l) {
          std::vector<Tensor> own;
          for (std::size_t i = 0; i < arguments.size(); ++i) {
            Tensor t = outer_axes[i] ? take_lane(arguments[i], *outer_axes[i], o) : arguments[i];
            own.push_back(inner_axes[i] ? take_lane(t, *inner_axes[i], l) : t);
          }
          const std::vector<Tensor> results = c.run(own);
          columns.resize(results.size());
          for (std::size_t k = 0; k < results.size(); ++k) columns[k].push_back(results[k]);
        }
        rows.resize(columns.size());
        for (std::size_t k = 0; k < columns.size(); ++k)
          rows[k].push_back(stack_lanes(columns[k], -1));
      }
      std::vector<Tensor> expected;
      for (const auto& parts : rows) expected.push_back(stack_lanes(parts, 0));
      const std::string what =
          c.name() + " inner " + text_of(inner_axes) + " outer " + text_of(outer_axes);
      try {
        const auto results = vmap(
            [&](std::span<const Tensor> a) {
              return vmap(function_of(c), {a.begin(), a.end()}, inner_axes, inner, -1);
            },
            arguments, outer_axes, outer);
        expect_close(results, expected, c.tolerance(), what);
      } catch (const vt::Error& e) {
        ADD_FAILURE() << what << ": " << e.what();
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
}

using vt::detail::Family;

std::string family_name(const ::testing::TestParamInfo<Family>& info) {
  constexpr const char* names[] = {"leaf",       "unary",    "binary",   "select", "reduce",
                                   "cumulative", "order",    "shape",    "index",  "rows",
                                   "window",     "contract", "spectral", "linalg", "collective",
                                   "structure",  "effect"};
  return names[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTest,
                         ::testing::Values(Family::unary, Family::binary, Family::select,
                                           Family::reduce, Family::cumulative, Family::order,
                                           Family::shape, Family::index, Family::rows,
                                           Family::window, Family::contract, Family::spectral,
                                           Family::linalg, Family::structure, Family::effect),
                         family_name);

}  // namespace
