// Variables: reads and updates in the order of the program, as an explicit loop over lanes does
// them, under every transform, in branches and loops, compiled and not; what lanes may not do; and
// errors, which leave old values.
#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt::Variable;
using vt_test::expect_close;
using vt_test::message;

const Tensor xs = vt::tensor({1.0, -2.0, 3.0});

/// f on a fresh variable, as it is and compiled (twice, the second time by the program of the
/// first): what it returns and leaves.
template <class F, class... A>
void expect_run(const F& f, double start, const Tensor& wanted, double left,
                const A&... arguments) {
  for (const bool compiled : {false, true}) {
    SCOPED_TRACE(compiled ? "compiled" : "as it is");
    Variable v(vt::tensor(start), "v");
    const auto g = [&](const A&... a) { return f(v, a...); };
    const auto h = vt::jit(g);
    for (int run = 0; run < (compiled ? 2 : 1); ++run) {
      v.assign(start);
      expect_close(compiled ? h(arguments...) : g(arguments...), wanted);
      expect_close(v.value(), vt::tensor(left));
    }
  }
}

TEST(Variable, IsATensorThatChanges) {
  Variable v(vt::tensor({1.0f, 2.0f}), "weights");
  EXPECT_EQ(v.name(), "weights");
  EXPECT_EQ(v.shape(), vt::Shape{2});
  EXPECT_EQ(v.dtype(), vt::f32);
  const Tensor before = v.read();
  const Variable same = v;
  same.assign(vt::tensor({3.0f, 4.0f}));
  expect_close(before, vt::tensor({1.0f, 2.0f}));
  expect_close(v.read(), vt::tensor({3.0f, 4.0f}));
  v.assign_add(1);
  v.assign_mul(vt::tensor({2.0f}));
  v.assign_sub(vt::tensor({1.0f, 0.0f}));
  expect_close(v.read(), vt::tensor({7.0f, 10.0f}));
  v.assign_max(8);
  v.assign_min(9);
  expect_close(v.value(), vt::tensor({8.0f, 9.0f}));
  Variable n(vt::tensor(3, vt::CallSite{}), "n");
  n.assign_sub(5);
  EXPECT_EQ(n.read().item<int>(), -2);
}

TEST(Variable, RefusesWhatDoesNotFit) {
  Variable v(vt::zeros({2}), "v");
  EXPECT_NE(message([&] { v.assign(vt::ones({3})); })
                .find("vt::Variable::assign: v is f32[2], and the value does not fit: f32[3]; at "
                      "control_variable_test.cpp"),
            std::string::npos)
      << message([&] { v.assign(vt::ones({3})); });
  EXPECT_NE(message([&] {
              v.assign_add(vt::ones({2}, vt::f64));
            }).find("vt::Variable::assign_add: v is f32[2], and the value does not fit: f64[2]"),
            std::string::npos);
  EXPECT_NE(message([&] { v.assign(Tensor()); }), "no error");
  EXPECT_NE(message([] { Variable(Tensor(), "v"); }), "no error");
  Variable n(vt::zeros({}, vt::i32), "n");
  EXPECT_NE(message([&] { n.assign(1.5); }), "no error");
  expect_close(v.value(), vt::zeros({2}));
}

TEST(Variable, ReadsSeeTheUpdatesBeforeThem) {
  expect_run(
      [](const Variable& v, Tensor x) {
        const Tensor a = v.read();
        v.assign(a + x);
        v.assign_add(1.0);
        const Tensor b = v.read();
        v.assign_mul(2.0);
        return a * 100.0 + b;
      },
      5.0, vt::tensor(508.0), 16.0, vt::tensor(2.0));
}

TEST(Variable, CompiledCallsSeeWhatOthersAssigned) {
  Variable v(vt::tensor(1.0), "v");
  const auto next = vt::jit([&](Tensor x) {
    v.assign_add(x);
    return v.read() * 10.0;
  });
  EXPECT_EQ(next(vt::tensor(2.0)).item<double>(), 30.0);
  v.assign(100.0);
  EXPECT_EQ(next(vt::tensor(2.0)).item<double>(), 1020.0);
  const auto outer = vt::jit([&](Tensor x) { return next(x) + next(x); });
  EXPECT_EQ(outer(vt::tensor(1.0)).item<double>(), 1030.0 + 1040.0);
  EXPECT_EQ(outer(vt::tensor(1.0)).item<double>(), 1050.0 + 1060.0);
  EXPECT_EQ(v.value().item<double>(), 106.0);
  (void)vt::eval_shape(next, vt::tensor(1.0));
  EXPECT_EQ(v.value().item<double>(), 106.0);
}

// --- lanes ---------------------------------------------------------------------------------------

TEST(Variable, LanesReadOneValueAndAddUp) {
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor e) {
          v.assign_add(e * 2.0);
          return e * 3.0;
        })(x);
      },
      10.0, xs * 3.0, 14.0, xs);
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor e) {
          const Tensor r = v.read();
          v.assign_sub(e);
          return e + r;
        })(x);
      },
      10.0, xs + 10.0, 8.0, xs);
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor e) {
          v.assign_mul(e);
          return e;
        })(x);
      },
      10.0, xs, -60.0, xs);
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor e) {
          v.assign_max(e);
          return e;
        })(x);
      },
      2.0, xs, 3.0, xs);
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor e) {
          v.assign_min(e);
          return e;
        })(x);
      },
      2.0, xs, -2.0, xs);
  // What does not differ is added by each lane all the same.
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor e) {
          v.assign_add(2.0);
          return e;
        })(x);
      },
      10.0, xs, 16.0, xs);
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor e) {
          v.assign_mul(2.0);
          return e;
        })(x);
      },
      10.0, xs, 80.0, xs);
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor e) {
          v.assign_max(20.0);
          return e;
        })(x);
      },
      10.0, xs, 20.0, xs);
}

TEST(Variable, VmapsInVmapsAndBlocks) {
  const Tensor m = vt::tensor({{1.0, 2.0}, {3.0, 4.0}});
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap(vt::vmap([&](Tensor e) {
          v.assign_add(e);
          return e;
        }))(x);
      },
      1.0, m, 11.0, m);
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor row) {
          return vt::pfor(
              [&](Tensor i) {
                v.assign_add(row[i]);
                return i;
              },
              2);
        })(x);
      },
      1.0, vt::tensor({{0, 1}, {0, 1}}), 11.0, m);
  for (int chunk : {1, 2, 3, 5})
    expect_run(
        [=](const Variable& v, Tensor x) {
          return vt::pfor(
              [&](Tensor i) {
                v.assign_add(x[i]);
                return x[i];
              },
              0, {.chunk = chunk});
        },
        1.0, vt::zeros({0}, vt::f64), 1.0, xs);
  for (int chunk : {1, 2, 3, 5})
    expect_run(
        [=](const Variable& v, Tensor x) {
          return vt::vmap(
              [&](Tensor e) {
                const Tensor r = v.read();
                v.assign_add(e);
                v.assign_add(1.0);
                return r + e;
              },
              {.chunk = chunk})(x);
        },
        1.0, xs + 1.0, 6.0, xs);
}

TEST(Variable, AssigningWhatAllLanesShare) {
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor e) {
          v.assign(v.read() + 1.0);
          return e * v.read();
        })(x);
      },
      1.0, xs * 2.0, 2.0, xs);
  expect_run(
      [](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor e) {
          v.assign(0.0);
          v.assign_add(e);
          return e;
        })(x);
      },
      7.0, xs, 2.0, xs);
  Variable v(vt::tensor(1.0), "total");
  const auto differs = [&](Tensor e) {
    v.assign(e);
    return e;
  };
  EXPECT_NE(message([&] { vt::vmap(differs)(xs); })
                .find("vt::Variable::assign: vt::vmap would give total, which all lanes share, a "
                      "value that differs between lanes; add to it, or reduce "
                      "the value; at control_variable_test.cpp:"),
            std::string::npos);
  EXPECT_NE(message([&] { vt::jit(vt::vmap(differs))(xs); }).find("would give total"),
            std::string::npos);
  EXPECT_NE(message([&] { vt::vmap(differs, {.chunk = 2})(xs); }).find("would give total"),
            std::string::npos);
  const auto too_early = [&](Tensor e) {
    v.assign_add(e);
    return v.read();
  };
  EXPECT_NE(message([&] { vt::vmap(too_early)(xs); })
                .find("vt::Variable: total is read under vt::vmap behind an update; at "
                      "control_variable_test.cpp"),
            std::string::npos)
      << message([&] { vt::vmap(too_early)(xs); });
  // A branch that some lanes take assigns what differs; what it adds does not count for the others.
  const auto some = [&](Tensor e) {
    return vt::cond(
        e > 0,
        [&] {
          v.assign(0.0);
          return 1.0;
        },
        [] { return 0.0; });
  };
  EXPECT_NE(message([&] { vt::vmap(some)(xs); }).find("would give total"), std::string::npos);
  EXPECT_EQ(v.value().item<double>(), 1.0);
}

// --- control flow --------------------------------------------------------------------------------

TEST(Variable, InBranches) {
  const auto add_or_not = [](const Variable& v, Tensor x) {
    return vt::cond(
        x > 0,
        [&](Tensor e) {
          v.assign_add(e);
          return e;
        },
        [](Tensor e) { return -e; }, x);
  };
  expect_run(add_or_not, 1.0, vt::tensor(2.0), 3.0, vt::tensor(2.0));
  expect_run(add_or_not, 1.0, vt::tensor(2.0), 1.0, vt::tensor(-2.0));
  expect_run([&](const Variable& v,
                 Tensor x) { return vt::vmap([&](Tensor e) { return add_or_not(v, e); })(x); },
             1.0, vt::abs(xs), 5.0, xs);
  const auto mixed = [](const Variable& v, Tensor x) {
    vt::cond(
        x > 0,
        [&] {
          v.assign_add(x);
          return std::tuple<>();
        },
        [&] {
          v.assign(v.read() * 2.0);
          return std::tuple<>();
        });
    return v.read();
  };
  expect_run(mixed, 5.0, vt::tensor(7.0), 7.0, vt::tensor(2.0));
  expect_run(mixed, 5.0, vt::tensor(10.0), 10.0, vt::tensor(-2.0));
  const auto kinds = [](const Variable& v, Tensor x) {
    return vt::switch_(x, std::tuple(
                              [&] {
                                v.assign_add(1.0);
                                return 0.0;
                              },
                              [&] {
                                v.assign_mul(2.0);
                                return 1.0;
                              },
                              [] { return 2.0; },
                              [&] {
                                v.assign_add(1.0);
                                v.assign_mul(2.0);
                                return 3.0;
                              }));
  };
  for (int i = 0; i < 4; ++i)
    expect_run(kinds, 5.0, vt::tensor(static_cast<double>(i)), std::vector<double>{6, 10, 5, 12}[i],
               vt::tensor(i));
}

TEST(Variable, InLoops) {
  const auto count_up = [](const Variable& v, Tensor n) {  // the state is all that the loop has
    vt::while_loop([&](std::tuple<>) { return v.read() < n; },
                   [&](std::tuple<>) {
                     v.assign_add(1.0);
                     return std::tuple<>();
                   },
                   std::tuple<>());
    return v.read() * 2.0;
  };
  expect_run(count_up, 2.0, vt::tensor(14.0), 7.0, vt::tensor(7.0));
  expect_run(count_up, 2.0, vt::tensor(4.0), 2.0, vt::tensor(1.0));
  const auto sum_of_iterations = [](const Variable& v, Tensor n) {
    return vt::fori_loop(
        0, n,
        [&](Tensor i, Tensor s) {
          v.assign_add(i);
          return s + 1;
        },
        0);
  };
  const auto as_double = [&](const Variable& v, Tensor n) {
    return vt::fori_loop(
        0, n,
        [&](Tensor i, Tensor s) {
          v.assign_add(i.astype(vt::f64));
          return s + 1;
        },
        0);
  };
  EXPECT_NE(message([&] {
              Variable v(vt::tensor(1.0));
              sum_of_iterations(v, vt::tensor(3));
            }),
            "no error");  // i32 is no f64
  expect_run(as_double, 1.0, vt::tensor(5), 11.0, vt::tensor(5));
  const Tensor iterations = vt::tensor({3, 0, 5});
  expect_run([&](const Variable& v,
                 Tensor n) { return vt::vmap([&](Tensor e) { return as_double(v, e); })(n); },
             1.0, iterations, 14.0, iterations);
  const auto read_in_loop = [](const Variable& v, Tensor x) {
    auto [last, ys] = vt::scan(
        [&](Tensor c, Tensor e) {
          v.assign(v.read() * 2.0 + e);
          return std::pair(c + 1.0, v.read());
        },
        0.0, x);
    return ys + last;
  };
  expect_run(read_in_loop, 1.0, vt::tensor({6.0, 7.0, 14.0}), 11.0, xs);
  const auto only_read = [](const Variable& v, Tensor x) {
    return vt::scan([&](Tensor c, Tensor e) { return std::pair(c, e * v.read()); }, 0.0, x).second;
  };
  expect_run(only_read, 4.0, xs * 4.0, 4.0, xs);
  expect_run(
      [&](const Variable& v, Tensor x) {
        return vt::vmap([&](Tensor e) {
          return vt::map(
              [&](Tensor t) {
                v.assign_add(t);
                return t;
              },
              e);
        })(x);
      },
      1.0, vt::tensor({{1.0, 2.0}, {3.0, 4.0}}), 11.0, vt::tensor({{1.0, 2.0}, {3.0, 4.0}}));
  const auto nested = [](const Variable& v, Tensor n) {
    return vt::fori_loop(
        0, n,
        [&](Tensor i, Tensor s) {
          vt::cond(
              i % 2 == 0,
              [&] {
                vt::fori_loop(
                    0, i,
                    [&](Tensor, Tensor t) {
                      v.assign(v.read() + 1.0);
                      return t;
                    },
                    0);
                return std::tuple<>();
              },
              [] { return std::tuple<>(); });
          return s + v.read();
        },
        0.0);
  };
  expect_run(nested, 0.0, vt::tensor(10.0), 6.0, vt::tensor(5));
  EXPECT_NE(message([] {
              Variable v(vt::tensor(1.0), "v");
              vt::while_loop(
                  [&](Tensor i) {
                    v.assign_add(1.0);
                    return i < 3;
                  },
                  [](Tensor i) { return i + 1; }, 0);
            }).find("vt::while_loop: the condition: the function updates v"),
            std::string::npos);
}

// --- derivatives ---------------------------------------------------------------------------------

TEST(Variable, DerivativesTreatWhatIsReadAsCaptured) {
  const auto f = [](const Variable& v, Tensor x) { return x * x * v.read(); };
  expect_run(
      [&](const Variable& v, Tensor x) { return vt::grad([&](Tensor t) { return f(v, t); })(x); },
      5.0, vt::tensor(20.0), 5.0, vt::tensor(2.0));
  // what is assigned depends on the argument
  const auto through = [](const Variable& v, Tensor x) {
    v.assign(x * x);
    v.assign_add(v.read());
    return v.read() * x;
  };
  const auto slope = [&](const Variable& v, Tensor x) {
    return vt::grad([&](Tensor t) { return through(v, t); })(x);
  };
  expect_run(slope, 5.0, vt::tensor(24.0), 8.0, vt::tensor(2.0));
  expect_run([&](const Variable& v,
                 Tensor x) { return vt::grad([&](Tensor t) { return slope(v, t); })(x); },
             5.0, vt::tensor(24.0), 8.0, vt::tensor(2.0));
  expect_run(
      [&](const Variable& v, Tensor x) {
        return vt::jvp([&](Tensor t) { return through(v, t); }, std::tuple(x), std::tuple(x))
            .second;
      },
      5.0, vt::tensor(48.0), 8.0, vt::tensor(2.0));
  expect_run([&](const Variable& v,
                 Tensor x) { return vt::jacobian([&](Tensor t) { return through(v, t); })(x); },
             5.0, vt::tensor(24.0), 8.0, vt::tensor(2.0));
  expect_run(
      [&](const Variable& v, Tensor x) {
        return vt::grad(vt::checkpoint([&](Tensor t) { return through(v, t); }))(x);
      },
      5.0, vt::tensor(24.0), 8.0, vt::tensor(2.0));
  // Looking at values while a function is differentiated sees the updates.
  expect_run(
      [&](const Variable& v, Tensor x) {
        return vt::grad([&](Tensor t) {
          v.assign(t);
          v.assign_add(1.0);
          return v.read() * t;
        })(x);
      },
      5.0, vt::tensor(5.0), 3.0, vt::tensor(2.0));
  Variable v(vt::tensor(0.0), "v");
  vt::grad([&](Tensor t) {
    v.assign(t * 3.0);
    EXPECT_EQ(v.read().item<double>(), 6.0);
    return t;
  })(vt::tensor(2.0));
  EXPECT_EQ(v.value().item<double>(), 6.0);
}

TEST(Variable, CountsOncePerCallWhateverTheDerivative) {
  const auto f = [](const Variable& v, Tensor x) {
    const Tensor y = vt::while_loop([](Tensor t) { return t < 100.0; },
                                    [&](Tensor t) {
                                      v.assign_add(1.0);
                                      return t * t;
                                    },
                                    x);
    return vt::cond(
        y > 0,
        [&](Tensor t) {
          v.assign_add(10.0);
          return t;
        },
        [](Tensor t) { return t; }, y);
  };
  expect_run(f, 0.0, vt::tensor(256.0), 13.0, vt::tensor(2.0));
  expect_run(
      [&](const Variable& v, Tensor x) { return vt::grad([&](Tensor t) { return f(v, t); })(x); },
      0.0, vt::tensor(1024.0), 13.0, vt::tensor(2.0));
  expect_run([&](const Variable& v,
                 Tensor x) { return vt::vmap(vt::grad([&](Tensor t) { return f(v, t); }))(x); },
             0.0, vt::tensor({1024.0, 20.0}), 24.0, vt::tensor({2.0, 10.0}));
  expect_run(
      [&](const Variable& v, Tensor x) {
        return vt::grad(vt::checkpoint([&](Tensor t) { return f(v, t); }))(x);
      },
      0.0, vt::tensor(1024.0), 13.0, vt::tensor(2.0));
}

// --- errors --------------------------------------------------------------------------------------

TEST(Variable, ErrorsLeaveTheOldValue) {
  Variable v(vt::tensor(1.0), "v"), w(vt::tensor(1.0), "w");
  const auto f = [&](Tensor x) {
    v.assign_add(x);
    w.assign(vt::fori_loop(0, 3, [&](Tensor, Tensor t) { return t * 2.0; }, w.read()));
    vt::check(x > 0, "no");
    v.assign_add(x);
    return v.read();
  };
  const auto g = vt::jit(f);
  EXPECT_NE(message([&] { g(vt::tensor(-1.0)); }).find("vt::check: no"), std::string::npos);
  EXPECT_EQ(v.value().item<double>(), 1.0);
  EXPECT_EQ(w.value().item<double>(), 1.0);
  EXPECT_EQ(g(vt::tensor(1.0)).item<double>(), 3.0);
  EXPECT_NE(message([&] { vt::vmap(f)(xs); }), "no error");
  EXPECT_EQ(v.value().item<double>(), 3.0);
  EXPECT_EQ(w.value().item<double>(), 8.0);
}

TEST(Variable, WhereUpdatesHaveNoMeaning) {
  Variable v(vt::tensor(1.0), "v");
  const auto adds = [&](Tensor x) {
    v.assign_add(x);
    return x;
  };
  const auto identity = [](Tensor x) { return x; };
  const Tensor x = vt::tensor(2.0);
  EXPECT_NE(message([&] {
              vt::make_graph(adds)(x);
            }).find("vt::make_graph: the function updates v, which cannot be done here"),
            std::string::npos);
  EXPECT_NE(message([&] {
              vt::grad(vt::custom_jvp(adds, [](Tensor a, Tensor d) { return std::pair(a, d); }))(x);
            }).find("vt::custom_jvp: the function updates v"),
            std::string::npos);
  EXPECT_NE(
      message([&] {
        vt::vmap(vt::custom_vmap(adds, [](int, auto, Tensor a) { return std::pair(a, true); }))(xs);
      }).find("vt::custom_vmap: the function updates v"),
      std::string::npos);
  EXPECT_EQ(v.value().item<double>(), 1.0);
  vt::grad(vt::custom_jvp(identity, [](Tensor a, Tensor d) { return std::pair(a, d); }))(x);
}

}  // namespace
