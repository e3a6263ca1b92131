// Wrong uses of control flow: each message names the function, the types and, inside trees, the
// place, and ends with the user's line.
#include <map>

#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::Tensor;

/// The message begins with `says`, which is read here as a user would read it, and ends with this
/// file and a line.
template <class F>
void expect(ErrorKind kind, const std::string& says, F&& use) {
  try {
    use();
  } catch (const vt::Error& e) {
    const std::string message = e.what();
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind)) << message;
    EXPECT_TRUE(message.starts_with(says)) << "expected: " << says << "\n     got: " << message;
    EXPECT_NE(message.find("; at control_errors_test.cpp:"), std::string::npos)
        << "no line in: " << message;
    EXPECT_EQ(Tensor(vt::cond(
                         true, [] { return 1; }, [] { return 2; }))
                  .item<int>(),
              1)
        << "something is broken by it";
    return;
  }
  ADD_FAILURE() << "no error, expected: " << says;
}

const Tensor x = vt::ones({3});
const auto same = [](Tensor v) { return v; };
const auto always = [](auto&&...) { return true; };
struct State {
  Tensor value;
  int steps;
  std::vector<Tensor> more;
};

TEST(ControlErrors, Predicates) {
  expect(ErrorKind::shape,
         "vt::cond: the predicate must be a scalar, not bool[3]; write the function for one "
         "element and use vt::vmap",
         [] { vt::cond(x > 0, same, same, x); });
  expect(ErrorKind::value, "vt::cond: the predicate is an empty Tensor",
         [] { vt::cond(Tensor(), same, same, x); });
  expect(ErrorKind::value, "vt::cond: operand 0 is an empty Tensor",
         [] { vt::cond(true, same, same, Tensor()); });
  expect(ErrorKind::shape, "vt::cond: the predicate must be a scalar, not f32[3]",
         [] { vt::vmap([](Tensor p) { return vt::cond(p, same, same, p); })(vt::ones({2, 3})); });
  expect(ErrorKind::dtype, "vt::switch_: the index must be an integer, not f64[]",
         [] { vt::switch_(vt::tensor(1.5), std::tuple(same, same), x); });
  expect(ErrorKind::shape, "vt::switch_: the index must be a scalar, not i32[2]",
         [] { vt::switch_(vt::tensor({0, 1}), std::tuple(same, same), x); });
  expect(ErrorKind::shape,
         "vt::while_loop: the condition must give a bool scalar, not bool[3]; take vt::all or "
         "vt::any of it",
         [] { vt::while_loop([](Tensor v) { return v > 0; }, same, x); });
  expect(ErrorKind::shape,
         "vt::while_loop: the condition must give a bool scalar, not an empty Tensor",
         [] { vt::while_loop([](Tensor) { return Tensor(); }, same, x); });
}

TEST(ControlErrors, BranchesThatDiffer) {
  expect(ErrorKind::shape,
         "vt::cond: the functions must give the same shapes: the result is f32[] in the function "
         "for false and f32[3] in the function for true",
         [] { vt::cond(true, same, [](Tensor v) { return v[0]; }, x); });
  const auto rows = [](bool whole) {
    return [=](Tensor v) { return std::pair(v, std::vector<Tensor>{v, whole ? v : v[0]}); };
  };
  expect(ErrorKind::shape,
         "vt::cond: the functions must give the same shapes: result [1][1] is f32[] in",
         [&] { vt::cond(true, rows(true), rows(false), x); });
  expect(ErrorKind::dtype,
         "vt::switch_: the functions must give the same dtypes: the result is f32[3] in function 0 "
         "and f64[3] in function 2",
         [] {
           vt::switch_(0, std::tuple(same, same, [](Tensor v) { return v.astype(vt::f64); }), x);
         });
  expect(ErrorKind::dtype,
         "vt::cond: the functions must give the same dtypes: the result is i32[] in the function "
         "for false and f64[] in the function for true",
         [] { vt::cond(true, [](Tensor) { return 0.5; }, same, vt::tensor(3)); });
  const auto lists = [](int n) {
    return [=](Tensor v) { return std::vector<Tensor>(static_cast<std::size_t>(n), v); };
  };
  expect(ErrorKind::tree,
         "vt::cond: the functions must give trees of one structure, but the result differs in its "
         "size, its keys or a value that is no Tensor",
         [&] { vt::cond(true, lists(1), lists(2), x); });
  const auto maps = [](const char* key) {
    return [=](Tensor v) { return std::tuple(v, std::map<std::string, Tensor>{{key, v}}); };
  };
  expect(ErrorKind::tree,
         "vt::cond: the functions must give trees of one structure, but result [1] differs",
         [&] { vt::cond(true, maps("a"), maps("b"), x); });
  const auto states = [](int steps) { return [=](Tensor v) { return State{v, steps, {}}; }; };
  expect(ErrorKind::tree,
         "vt::cond: the functions must give trees of one structure, but result .steps differs",
         [&] { vt::cond(true, states(1), states(2), x); });
  expect(ErrorKind::tree, "vt::cond: result [1] is an empty Tensor", [] {
    const auto half = [](Tensor v) { return std::pair(v, Tensor()); };
    vt::cond(true, half, half, x);
  });
}

TEST(ControlErrors, BodiesThatChangeTheCarry) {
  expect(ErrorKind::shape,
         "vt::while_loop: the body must keep the carry's shapes, but makes f32[6] of the carry, "
         "which is f32[3]",
         [] { vt::while_loop(always, [](Tensor v) { return vt::concatenate({v, v}); }, x); });
  expect(ErrorKind::shape,
         "vt::while_loop: the body must keep the carry's shapes, but makes f32[] of carry [1][1], "
         "which is f32[3]",
         [] {
           vt::while_loop(
               always,
               [](Tensor a, std::vector<Tensor> v) {
                 return std::pair(a, std::vector<Tensor>{v[0], v[1][0]});
               },
               std::pair(x, std::vector<Tensor>{x, x}));
         });
  expect(ErrorKind::dtype,
         "vt::while_loop: the body must keep the carry's dtypes, but makes f32[] of the carry, "
         "which is i32[]; convert one of them with astype",
         [] { vt::while_loop(always, [](Tensor v) { return v + 0.5; }, vt::tensor(1)); });
  expect(ErrorKind::shape,
         "vt::while_loop: the body must keep the carry's shapes, but makes f32[3] of the carry, "
         "which is i32[]",
         [] { vt::while_loop(always, [](Tensor v) { return v + x; }, 1); });
  expect(ErrorKind::tree,
         "vt::while_loop: the body must keep the carry's structure, but carry .steps differs in "
         "its size, its keys or a value that is no Tensor",
         [] {
           vt::while_loop(
               always, [](const State& s) { return State{s.value, s.steps + 1, s.more}; },
               State{x, 1, {x}});
         });
  expect(ErrorKind::tree,
         "vt::while_loop: the body must keep the carry's structure, but carry .more differs", [] {
           vt::while_loop(
               always, [](const State& s) { return State{s.value, s.steps, {s.value, s.value}}; },
               State{x, 1, {x}});
         });
  expect(ErrorKind::dtype,
         "vt::fori_loop: the body must keep the carry's dtypes, but makes f32[] of the carry, "
         "which is i32[]",
         [] { vt::fori_loop(0, 3, [](Tensor, Tensor c) { return c + 1.0; }, vt::tensor(1)); });
  expect(ErrorKind::shape,
         "vt::fori_loop: the body must keep the carry's shapes, but makes i32[2] of carry [1], "
         "which is i32[]",
         [] {
           vt::fori_loop(
               0, vt::tensor(3),
               [](Tensor, Tensor c, Tensor d) { return std::pair(c, vt::stack({d, d})); },
               std::pair(1, vt::tensor(1)));
         });
  expect(ErrorKind::shape,
         "vt::scan: the body must keep the carry's shapes, but makes f32[] of the carry, which is "
         "f32[3]",
         [] { vt::scan([](Tensor c, Tensor e) { return std::pair(e, c); }, x, vt::ones({4})); });
  expect(ErrorKind::tree,
         "vt::scan: the body must keep the carry's structure, but the carry differs", [] {
           vt::scan([](std::vector<Tensor> c,
                       Tensor e) { return std::pair(std::vector<Tensor>{c[0], e}, e); },
                    std::vector<Tensor>{x}, vt::ones({4}));
         });
  expect(ErrorKind::tree, "vt::while_loop: result 0 of the body is an empty Tensor",
         [] { vt::while_loop(always, [](Tensor) { return Tensor(); }, x); });
  expect(ErrorKind::value, "vt::while_loop: the carry is an empty Tensor",
         [] { vt::while_loop(always, same, Tensor()); });
  // What is wrong inside a body names its own line.
  expect(ErrorKind::shape, "vt::add: shapes do not broadcast, 3 and 5 at axis -1: f32[3] · f32[5]",
         [] { vt::while_loop(always, [](Tensor v) { return v + vt::ones({5}); }, x); });
}

TEST(ControlErrors, SequencesAndOptions) {
  const auto keep = [](Tensor c, auto&&...) { return std::pair(c, c); };
  expect(ErrorKind::shape,
         "vt::scan: the sequences must have one length, but xs [1] is f32[4] where the length is 3",
         [&] { vt::scan(keep, x, std::pair(vt::ones({3}), vt::ones({4}))); });
  expect(ErrorKind::shape,
         "vt::scan: the sequences must have one length, but xs is f32[4] where the length is 5",
         [&] { vt::scan(keep, x, vt::ones({4}), {.length = 5}); });
  expect(ErrorKind::shape,
         "vt::scan: there are no sequences, so the length is not known; give {.length = …}",
         [&] { vt::scan(keep, x, std::nullopt); });
  expect(ErrorKind::shape, "vt::scan: xs is a scalar f64[], and has no elements",
         [&] { vt::scan(keep, x, vt::tensor(4.0)); });
  expect(ErrorKind::value, "vt::scan: length is -2; it is a number of elements",
         [&] { vt::scan(keep, x, std::nullopt, {.length = -2}); });
  expect(ErrorKind::value, "vt::scan: unroll is 0; it is a number of elements per iteration",
         [&] { vt::scan(keep, x, vt::ones({4}), {.unroll = 0}); });
  expect(ErrorKind::value, "vt::while_loop: checkpoint is -1; it is a number of states",
         [] { vt::while_loop(always, same, x, {.checkpoint = -1}); });
  expect(ErrorKind::value, "vt::map: batch_size is -1; it is a number of elements, or 0",
         [] { vt::map(same, x, {.batch_size = -1}); });
  expect(ErrorKind::shape, "vt::map: there is no axis 0 in xs, f64[]",
         [] { vt::map(same, vt::tensor(1.0)); });
  expect(
      ErrorKind::shape,
      "vt::map: the sequences must have one length along axis 0, but xs [1] is f32[2,2] where "
      "others have 3",
      [] { vt::map([](auto p) { return p.first; }, std::pair(vt::ones({3}), vt::ones({2, 2}))); });
  const auto left = [](auto a, auto) { return a; };
  expect(ErrorKind::shape,
         "vt::associative_scan: the function must give an element, but makes f32[4] of two f32[2] "
         "of the elements",
         [] {
           (void)vt::associative_scan([](Tensor a, Tensor b) { return vt::concatenate({a, b}); },
                                      vt::ones({3, 2}));
         });
  expect(ErrorKind::dtype,
         "vt::associative_scan: the function must give an element, but makes f64[2] of two f32[2] "
         "of the elements",
         [] {
           (void)vt::associative_scan([](Tensor a, Tensor) { return a.astype(vt::f64); },
                                      vt::ones({3, 2}));
         });
  expect(ErrorKind::shape, "vt::associative_scan: there is no axis 2 in the elements, f32[3,2]",
         [&] { (void)vt::associative_scan(left, vt::ones({3, 2}), {.axis = 2}); });
  expect(ErrorKind::shape,
         "vt::associative_scan: the sequences must have one length along axis 0, but elements [1] "
         "is f32[4] where others have 3",
         [&] { (void)vt::associative_scan(left, std::pair(vt::ones({3, 2}), vt::ones({4}))); });
  const auto step = [](Tensor, Tensor c) { return c; };
  expect(ErrorKind::dtype, "vt::fori_loop: bounds must be integer scalars, not f64[]",
         [&] { vt::fori_loop(0, vt::tensor(1.5), step, x); });
  expect(ErrorKind::dtype, "vt::fori_loop: bounds must be integer scalars, not i32[2]",
         [&] { vt::fori_loop(vt::tensor({1, 2}), 3, step, x); });
  expect(ErrorKind::dtype, "vt::fori_loop: no integer dtype holds both bounds: i64[] · u64[]", [&] {
    vt::fori_loop(vt::tensor(std::int64_t{1}), vt::tensor(std::uint64_t{3}), step, x);
  });
  expect(ErrorKind::value, "vt::fori_loop: a bound is an empty Tensor",
         [&] { vt::fori_loop(Tensor(), 3, step, x); });
}

TEST(ControlErrors, ValuesThatAreNotKnownYet) {
  const Tensor one = vt::tensor(1.0f);
  const auto under = [](const char* name) {
    return std::string("vt::Tensor::item: the value of a tracer f32[] is not known under ") + name;
  };
  expect(ErrorKind::tracer, under("vt::cond"),
         [&] { vt::cond(true, [](Tensor v) { return v.item<float>() > 0 ? v : -v; }, same, one); });
  expect(ErrorKind::tracer, under("vt::while_loop"),
         [&] { vt::while_loop([](Tensor v) { return v.item<float>() > 0; }, same, one); });
  expect(ErrorKind::tracer, under("vt::scan"), [&] {
    vt::scan([](Tensor c, Tensor e) { return std::pair(c * e.item<float>(), c); }, one, x);
  });
  expect(ErrorKind::tracer, under("vt::fori_loop"),
         [&] { vt::fori_loop(0, 3, [](Tensor, Tensor c) { return c * c.item<float>(); }, one); });
  expect(ErrorKind::tracer, under("vt::map"),
         [] { vt::map([](Tensor e) { return Tensor(e.item<float>()); }, x); });
  expect(ErrorKind::tracer, under("vt::map"),
         [] { vt::map([](Tensor e) { return Tensor(e.item<float>()); }, x, {.batch_size = 2}); });
  expect(ErrorKind::tracer, under("vt::associative_scan"), [] {
    (void)vt::associative_scan([](Tensor a, Tensor b) { return a * b.item<float>(); }, x);
  });
  Tensor kept;
  expect(ErrorKind::tracer, "a tracer f32[] made as an argument at control_errors_test.cpp:", [&] {
    vt::while_loop([](Tensor v) { return v > 3; }, [&](Tensor v) { return kept = v; }, one);
    vt::sin(kept).eval();
  });
}

}  // namespace
