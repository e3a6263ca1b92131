// Lists of Tensors: every function against plain arrays; in loops, branches and lanes, inside and
// outside of them; derivatives; errors. And what pfor says of what it cannot vectorize.
#include "support/message.hpp"
#include "support/printed.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt::TensorList;
using vt_test::expect_close;
using vt_test::message;

const Tensor xs = vt::tensor({1.0, -2.0, 3.0});

TEST(TensorList, PushPopReadWrite) {
  for (const bool growing : {false, true}) {
    TensorList list =
        growing ? TensorList::growable({2}, vt::f64) : TensorList::fixed(4, {2}, vt::f64);
    list.push(vt::tensor({1.0, 2.0}));
    list.push(3.0);  // broadcast over an element
    const TensorList copy = list;
    list.push(vt::tensor({5.0, 6.0}));
    EXPECT_EQ(list.size().item<int>(), 3);
    EXPECT_EQ(copy.size().item<int>(), 2);
    EXPECT_EQ(list.capacity(), growing ? 3 : 4);
    expect_close(list.read(1), vt::tensor({3.0, 3.0}));
    expect_close(list.read(vt::tensor(2, vt::CallSite{})), vt::tensor({5.0, 6.0}));
    list.write(0, vt::tensor({7.0, 8.0}));
    expect_close(list.pop(), vt::tensor({5.0, 6.0}));
    EXPECT_EQ(list.size().item<int>(), 2);
    const Tensor rows = vt::tensor({{7.0, 8.0}, {3.0, 3.0}});
    expect_close(list.stack(),
                 growing ? rows : vt::concatenate({rows, vt::zeros({2, 2}, vt::f64)}));
    expect_close(list.concat(), vt::reshape(list.stack(), {-1}));
    expect_close(list.gather(vt::tensor({1, 0, 1})),
                 vt::tensor({{3.0, 3.0}, {7.0, 8.0}, {3.0, 3.0}}));
    list.scatter(vt::tensor({1, 0}), vt::tensor({{1.0, 1.0}, {2.0, 2.0}}));
    expect_close(list.gather(vt::tensor({0, 1})), vt::tensor({{2.0, 2.0}, {1.0, 1.0}}));
  }
  TensorList array = TensorList::fixed(3, {}, vt::i32);
  array.write(1, 5);
  EXPECT_EQ(array.size().item<int>(), 2);  // place 0 exists too
  EXPECT_EQ(array.read(0).item<int>(), 0);
  const TensorList full = TensorList::from(xs);
  EXPECT_EQ(full.size().item<int>(), 3);
  expect_close(full.read(2), vt::tensor(3.0));
}

TEST(TensorList, Errors) {
  TensorList list = TensorList::fixed(2, {2});
  list.push(vt::ones({2}));
  EXPECT_NE(message([&] { (void)list.read(1); })
                .find("vt::check: vt::TensorList::read: index 1 is not one of 1 elements; at "
                      "control_list_test.cpp:"),
            std::string::npos)
      << message([&] { (void)list.read(1); });
  EXPECT_NE(message([&] { (void)list.read(-1); }).find("index -1 is not one of"),
            std::string::npos);
  EXPECT_NE(message([&] {
              list.write(2, 0.0f);
            }).find("vt::TensorList::write: index 2 is not one of 2 elements"),
            std::string::npos);
  EXPECT_NE(message([&] {
              (void)list.gather(vt::tensor({0, 3}));
            }).find("vt::TensorList::gather: index [0 3] is not one of 1 elements"),
            std::string::npos);
  EXPECT_NE(
      message([&] {
        list.push(vt::ones({3}));
      }).find("vt::TensorList::push: elements are f32[2], and the value does not fit: f32[3]"),
      std::string::npos);
  EXPECT_NE(
      message([&] {
        list.push(vt::ones({2}, vt::f64));
      }).find("vt::TensorList::push: elements are f32[2], and the value does not fit: f64[2]"),
      std::string::npos);
  EXPECT_NE(message([&] { (void)list.read(0.5); }).find("the index must be an integer scalar"),
            std::string::npos);
  list.push(2.0f);
  EXPECT_NE(message([&] {
              list.push(2.0f);
            }).find("vt::TensorList::push: the list is full, it has 2 elements"),
            std::string::npos);
  TensorList none = TensorList::growable({});
  EXPECT_NE(message([&] { none.pop(); }).find("vt::TensorList::pop: the list is empty"),
            std::string::npos);
  EXPECT_NE(message([] { TensorList::fixed(-1, {}); }).find("the capacity is -1"),
            std::string::npos);
  EXPECT_NE(message([] { (void)TensorList::fixed(3, {}).concat(); }), "no error");
  EXPECT_NE(message([] { TensorList::from(1.0); }), "no error");
  // Compiled, and under vmap with the lane.
  const auto at = [&](Tensor i) { return vt::sum(TensorList::from(xs).read(i)); };
  EXPECT_NE(message([&] { vt::jit(at)(vt::tensor(3)); }).find("index 3 is not one of 3 elements"),
            std::string::npos);
  EXPECT_NE(message([&] {
              vt::jit(vt::vmap(at))(vt::tensor({0, 5, 2}));
            }).find("index 5 is not one of 3 elements; in lane 1"),
            std::string::npos);
  TensorList unchecked = TensorList::from(xs);
  unchecked.checked = false;
  expect_close(unchecked.read(7), vt::tensor(3.0));
}

/// f as it is, compiled, and under vmap against a loop over lanes.
template <class F>
void expect_all_ways(const F& f, const Tensor& lanes) {
  const vt_test::FlatFunction flat = [&](const std::vector<Tensor>& a) {
    return std::vector<Tensor>{f(a[0])};
  };
  const Tensor expected = vt_test::stack_loop(flat, {lanes}, {0})[0];
  expect_close(vt::vmap(f)(lanes), expected);
  expect_close(vt::jit(vt::vmap(f))(lanes), expected);
  expect_close(vt::jit(f)(lanes[0]), expected[0]);
  const auto slope = vt::grad([&](Tensor x) { return vt::sum(f(x) * f(x)); });
  const vt_test::FlatFunction slopes = [&](const std::vector<Tensor>& a) {
    return std::vector<Tensor>{slope(a[0])};
  };
  const Tensor wanted = vt_test::stack_loop(slopes, {lanes}, {0})[0];
  expect_close(vt::vmap(slope)(lanes), wanted);
  expect_close(vt::jit(vt::vmap(slope))(lanes), wanted);
  const Tensor x = lanes[0], step = vt::full_like(x, 1e-6);
  const auto loss = [&](const Tensor& at) {
    return vt::sum(f(at) * f(at)).template item<double>();
  };
  expect_close(vt::sum(slope(x)), vt::tensor((loss(x + step) - loss(x - step)) / 2e-6),
               {.relative = 1e-6, .absolute = 1e-6});
}

const Tensor rows = vt::tensor({{1.0, -2.0, 3.0, 0.5}, {2.0, 1.0, -1.0, 4.0}});

TEST(TensorList, CarriedByLoops) {
  const auto pushes = [](Tensor x) {
    return vt::fori_loop(
               0, 4,
               [&](Tensor i, TensorList list) {
                 list.push(x[i] * x[i]);
                 return list;
               },
               TensorList::fixed(5, {}, vt::f64))
        .stack();
  };
  expect_all_ways(pushes, rows);
  const auto history = [](Tensor x) {  // each element from the two before it
    TensorList list = TensorList::fixed(8, {}, vt::f64);
    list.push(x[0]);
    list.push(x[1]);
    return vt::while_loop([](TensorList l) { return l.size() < 8; },
                          [](TensorList l) {
                            l.push(l.read(l.size() - 1) + l.read(l.size() - 2));
                            return l;
                          },
                          list)
        .stack();
  };
  expect_all_ways(history, rows);
  const auto reversed = [](Tensor x) {  // a stack
    TensorList list = TensorList::from(x);
    return vt::scan(
               [](TensorList l, Tensor) {
                 const Tensor top = l.pop();
                 return std::pair(l, top);
               },
               list, vt::arange(4))
        .second;
  };
  expect_all_ways(reversed, rows);
  const auto in_branches = [](Tensor x) {
    TensorList list = TensorList::fixed(4, {}, vt::f64);
    return vt::fori_loop(
               0, 4,
               [&](Tensor i, TensorList l) {
                 return vt::cond(
                     x[i] > 0,
                     [&](TensorList a) {
                       a.push(x[i]);
                       return a;
                     },
                     [](TensorList a) { return a; }, l);
               },
               list)
        .stack();
  };
  expect_all_ways(in_branches, rows);
  const auto scattered = [](Tensor x) {
    TensorList list = TensorList::fixed(6, {2}, vt::f64);
    list.scatter(vt::tensor({5, 1}), vt::reshape(x, {2, 2}));
    list.write(3, x[0]);
    return list.gather(vt::tensor({1, 3, 5, 0})) * 2.0;
  };
  expect_all_ways(scattered, rows);
  EXPECT_NE(message([] {
              vt::fori_loop(
                  0, 3,
                  [](Tensor i, TensorList l) {
                    l.push(i);
                    return l;
                  },
                  TensorList::growable({}, vt::i32));
            }),
            "no error");
  const auto grown = [](Tensor x) {
    TensorList list = TensorList::growable({}, vt::f64);
    for (int i = 0; i < 4; ++i) list.push(x[i] * 2.0);
    list.pop();
    return list.stack();
  };
  expect_all_ways(grown, rows);
}

TEST(TensorList, LanesLiveInsideElements) {
  // Made inside: each element has all lanes.
  const auto made = vt::vmap([](Tensor x) {
    TensorList list = TensorList::fixed(3, {}, vt::f64);
    list.push(x);
    list.push(x * x);
    return list;
  })(xs);
  EXPECT_EQ(made.stack().shape(), (vt::Shape{3, 3}));
  EXPECT_EQ(made.size().item<int>(), 2);
  expect_close(made.read(1), xs * xs);
  // Made outside: shared by all lanes, or with its own element for each.
  expect_close(vt::vmap([&](Tensor i) { return TensorList::from(xs).read(i); })(vt::tensor({2, 0})),
               vt::tensor({3.0, 1.0}));
  const auto last = [](TensorList list, Tensor x) {
    list.push(x);
    return list;
  };
  const TensorList more = vt::vmap(last)(made, xs + 1.0);
  EXPECT_EQ(more.size().item<int>(), 3);
  expect_close(more.read(2), xs + 1.0);
  expect_close(vt::vmap([](TensorList list) { return list.read(1); })(made), xs * xs);
  const TensorList columns = vt::vmap(last, {.in_axes = {vt::unmapped, 0}, .out_axes = 1})(
      TensorList::fixed(2, {2}), vt::ones({4, 2}));
  EXPECT_EQ(columns.stack().shape(), (vt::Shape{2, 2, 4}));
  expect_close(vt::pfor(
                   [&](Tensor i) {
                     TensorList l = TensorList::fixed(2, {}, vt::i32);
                     l.push(i);
                     return l;
                   },
                   3)
                   .read(0),
               vt::arange(3));
  // Lanes that push different numbers have no common count.
  const auto some = [](Tensor x) {
    TensorList list = TensorList::fixed(2, {}, vt::f64);
    return vt::cond(
        x > 0,
        [&](TensorList l) {
          l.push(x);
          return l;
        },
        [](TensorList l) { return l; }, list);
  };
  EXPECT_NE(message([&] { vt::vmap(some)(xs); }).find("differs between lanes"), std::string::npos);
  const auto [elements, counts] = vt::vmap([&](Tensor x) {
    const TensorList l = some(x);
    return std::pair(l.stack(), l.size());
  })(xs);
  expect_close(counts, vt::tensor({1, 0, 1}));
  expect_close(elements, vt::tensor({{1.0, 0.0}, {0.0, 0.0}, {3.0, 0.0}}));
}

TEST(Pfor, MayReturnNothing) {
  vt::Variable total(vt::tensor(0.0), "total");
  const auto lines = vt_test::printed([&] {
    vt::pfor(
        [&](Tensor i) {
          total.assign_add(xs[i]);
          vt::debug_print({.per_lane = true}, "{}", i);
        },
        3);
  });
  EXPECT_EQ(lines, (vt_test::Lines{"0", "1", "2"}));
  EXPECT_EQ(total.value().item<double>(), 2.0);
}

TEST(Pfor, FallbackIsALoopOrAnError) {
  const auto host =
      vt::pure_callback([](Tensor x) { return x; }, vt::zeros({}, vt::f64), {.name = "slow"});
  const auto f = [&](Tensor i) { return host(xs[i]) * 2.0; };
  expect_close(vt::pfor(f, 3), xs * 2.0);
  EXPECT_NE(vt::warnings().find("vt::vmap: vt::pure_callback (slow) runs once per lane: it takes "
                                "one lane at a time; with {.takes_lanes = true} one call gets all "
                                "lanes, along axis 0"),
            std::string::npos)
      << vt::warnings();
  EXPECT_NE(message([&] {
              vt::pfor(f, 3, {.fallback = vt::Fallback::error});
            }).find("vt::vmap: vt::pure_callback (slow) cannot be vectorized: it takes one lane"),
            std::string::npos);
  EXPECT_NE(message([&] {
              vt::vmap(host, {.fallback = vt::Fallback::error})(xs);
            }).find("cannot be vectorized"),
            std::string::npos);
  expect_close(vt::pfor([&](Tensor i) { return xs[i]; }, 3, {.fallback = vt::Fallback::error}), xs);
  expect_close(vt::pfor(f, 3, {.chunk = 2}), xs * 2.0);
}

}  // namespace
