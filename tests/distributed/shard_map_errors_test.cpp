// shard_map: what wrong uses say, on each rank; errors after which ranks go on.
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "distributed/ranks.hpp"
#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::replicated;
using vt::sharded;
using vt::Tensor;
using vt::distributed::Mesh;
using vt::distributed::mesh;
using vt::distributed::rank;
using vt_test::expect_error;
using vt_test::on_ranks;

const Tensor x = vt::arange(6.0);

/// On two ranks `f(mesh)` throws such an error.
void on_two(ErrorKind kind, const std::string& message, const std::function<void(const Mesh&)>& f) {
  SCOPED_TRACE(message);
  on_ranks(2, [&] {
    const Mesh m = mesh({{"data", 2}});
    expect_error([&] { f(m); }, kind, {message});
    // The ranks are in step all the same.
    const auto sum = vt::shard_map([](Tensor v) { return vt::psum(v, "data"); },
                                   {.mesh = m, .in_specs = sharded("data")});
    EXPECT_EQ(sum(vt::tensor({1.0 + rank()})).item<double>(), 3.0);
  });
}
/// shard_map of f on x, cut along "data".
template <class F>
void on_parts(const Mesh& m, F f, vt::ShardSpec out = replicated) {
  static_cast<void>(
      vt::shard_map(f, {.mesh = m, .in_specs = sharded("data"), .out_specs = out})(x));
}

TEST(ShardMapErrors, SpecsThatDoNotFit) {
  on_two(ErrorKind::transform,
         "vt::shard_map: the result, f32[6], may differ between the processes along \"data\", and "
         "out_specs says replicated; combine it, as by vt::psum or vt::pmean, or give it "
         "vt::sharded",
         [](const Mesh& m) { on_parts(m, [](Tensor v) { return v * 2; }); });
  on_two(ErrorKind::transform, "vt::shard_map: result [1], f32[6], may differ", [](const Mesh& m) {
    on_parts(m, [](Tensor v) { return std::pair(vt::psum(v, "data"), v); });
  });
  on_two(ErrorKind::value,
         "vt::shard_map: in_specs of argument 0 names axis \"date\", and the mesh is {data: 2}",
         [](const Mesh& m) {
           static_cast<void>(vt::shard_map([](Tensor v) { return v; },
                                           {.mesh = m, .in_specs = sharded("date")})(x));
         });
  on_two(ErrorKind::shape, "vt::shard_map: in_specs cuts axis 1 of argument 0, which is f32[6]",
         [](const Mesh& m) {
           static_cast<void>(vt::shard_map([](Tensor v) { return v; },
                                           {.mesh = m, .in_specs = sharded("data", 1)})(x));
         });
  on_two(ErrorKind::shape,
         "vt::shard_map: out_specs cuts axis 0 of the result, which is f32[]: a scalar cannot be "
         "cut; give it an axis of one element",
         [](const Mesh& m) { on_parts(m, [](Tensor v) { return vt::sum(v); }, sharded("data")); });
  on_two(ErrorKind::value, "vt::shard_map: in_specs cuts argument 0 twice along \"data\"",
         [](const Mesh& m) {
           static_cast<void>(
               vt::shard_map([](Tensor v) { return v; },
                             {.mesh = m, .in_specs = sharded({{"data", 0}, {"data", 0}})})(x));
         });
  on_two(ErrorKind::tree,
         "vt::shard_map: in_specs {sharded(\"data\", 0)} has 1 entry for 2 arguments: give it one "
         "for each, as in {vt::replicated, vt::sharded(\"data\", 0)} for two",
         [](const Mesh& m) {
           static_cast<void>(vt::shard_map([](Tensor v, Tensor) { return v; },
                                           {.mesh = m, .in_specs = {sharded("data")}})(x, x));
         });
}

// What should be the same on all ranks is compared at the first call, as far as it has values.
TEST(ShardMapErrors, ReplicatedValues) {
  on_two(ErrorKind::value,
         "vt::shard_map: in_specs is not given; write .in_specs = vt::sharded(\"AXIS\") for what",
         [](const Mesh& m) {
           static_cast<void>(vt::shard_map([](Tensor v) { return v; }, {.mesh = m})(x));
         });
  const auto total = [](Tensor v, Tensor w) { return vt::psum(vt::sum(v * w), "data"); };
  on_two(ErrorKind::value,
         "vt::shard_map: argument 1, f32[6], has other values on rank 1 than on rank 0, and "
         "in_specs says replicated; cut it, as by vt::sharded, or give all the same, as by "
         "vt::distributed::broadcast",
         [&](const Mesh& m) {
           static_cast<void>(
               vt::shard_map(total, {.mesh = m, .in_specs = replicated})(x, x + 1.0 * rank()));
         });
  constexpr int line = __LINE__ + 2;
  const auto of_captured = [](const Mesh& m, const Tensor& own) {
    return vt::shard_map([=](Tensor v) { return vt::psum(vt::sum(v * own), "data"); },
                         {.mesh = m, .in_specs = replicated});
  };
  for (const bool jitted : {false, true})
    on_two(ErrorKind::value,
           "vt::shard_map: a value that f captures, f32[6], has other values on rank 1 than on "
           "rank 0; make it an argument that in_specs cuts, as by vt::sharded, or give all the "
           "same, as by vt::distributed::broadcast; at shard_map_errors_test.cpp:" +
               std::to_string(line),
           [&](const Mesh& m) {
             const auto f = of_captured(m, x + 1.0 * rank());
             static_cast<void>(jitted ? vt::jit(f)(x) : f(x));
           });
}

// … of each dtype, and along those axes of the mesh along which it is not cut.
TEST(ShardMapErrors, ReplicatedValuesOfEachKind) {
  using vt::DType;
  for (const DType dtype : {DType::bool_, DType::i8, DType::u16, DType::i64, DType::u64, DType::f16,
                            DType::bf16, DType::f32, DType::f64, DType::c64, DType::c128})
    on_ranks(4, [&] {
      const Mesh m = mesh({{"row", 2}, {"column", 2}});
      const auto f =
          vt::shard_map([](Tensor v) { return v; },
                        {.mesh = m, .in_specs = sharded("row"), .out_specs = sharded("row")});
      const Tensor ones = vt::ones({5}, dtype), last = vt::one_hot(vt::tensor(4), 5, dtype);
      const auto expect_unequal = [&](const Tensor& own) {
        expect_error([&] { static_cast<void>(f(own)); }, ErrorKind::value,
                     {"argument 0, " + std::string(vt::name_of(dtype)) +
                      "[5], has other values on rank 3 than on rank 2, and in_specs says sharded"});
      };
      expect_unequal(rank() == 3 ? last : ones);
      expect_unequal(rank() == 3 ? vt::flip(last, {0}) : last);
      if (vt::is_inexact(dtype)) expect_unequal(rank() == 3 ? last / 0.0 : last);
      static_cast<void>(f(ones));
    });
}

TEST(ShardMapErrors, ReplicatedValuesMayDifferByRounding) {
  on_ranks(2, [&] {
    const auto f = vt::shard_map([](Tensor v) { return vt::psum(v, "data"); },
                                 {.mesh = mesh({{"data", 2}}), .in_specs = replicated});
    for (const double s : {1e-300, 1.0, 1e300, 0.0, std::numeric_limits<double>::infinity()})
      static_cast<void>(f(x.astype(vt::DType::f64) * s * (1.0 + 1e-12 * rank())));
  });
}

TEST(ShardMapErrors, Meshes) {
  on_two(ErrorKind::value, "vt::shard_map: no mesh is given; write {.mesh = vt::distributed::mesh",
         [](const Mesh&) {
           static_cast<void>(
               vt::shard_map([](Tensor v) { return v; }, {.mesh = {}, .in_specs = replicated})(x));
         });
  on_two(ErrorKind::value,
         "vt::distributed::mesh: the mesh {a: 2, b: 2} is for 4 processes, and there are 2; start "
         "the program by mpirun -n 4",
         [](const Mesh&) { static_cast<void>(mesh({{"a", 2}, {"b", 2}})); });
  on_two(ErrorKind::value, "2 processes cannot be laid out in rows of 3, which the axes but \"b\"",
         [](const Mesh&) { static_cast<void>(mesh({{"a", 3}, {"b", -1}})); });
  on_two(ErrorKind::value, "vt::distributed::mesh: axis \"a\" comes twice",
         [](const Mesh&) { static_cast<void>(mesh({{"a", 2}, {"a", 1}})); });
  on_two(ErrorKind::value, "vt::distributed::Mesh: no axis is named \"b\" in {data: 2}",
         [](const Mesh& m) { static_cast<void>(m.index("b")); });
  on_two(ErrorKind::transform, "vt::shard_map: called inside of the function of another",
         [](const Mesh& m) {
           on_parts(m, [m](Tensor v) {
             return vt::shard_map([](Tensor a) { return a; },
                                  {.mesh = m, .in_specs = replicated})(v);
           });
         });
  EXPECT_EQ(vt::distributed::size() == 1 ? mesh({{"a", -1}, {"b", 1}}).str() : "{a: 1, b: 1}",
            "{a: 1, b: 1}");
}

TEST(ShardMapErrors, ProcessesThatWouldWait) {
  on_two(
      ErrorKind::transform,
      "vt::shard_map: a collective over \"data\" in a branch of vt::cond whose predicate differs "
      "between processes",
      [](const Mesh& m) {
        on_parts(m, [](Tensor v) {
          return vt::cond(
              vt::sum(v) > 3.0, [](Tensor a) { return vt::psum(a, "data"); },
              [](Tensor a) { return a; }, v);
        });
      });
  on_two(ErrorKind::transform,
         "vt::shard_map: a collective over \"data\" in a vt::while_loop whose predicate differs "
         "between processes",
         [](const Mesh& m) {
           on_parts(m, [](Tensor v) {
             return vt::while_loop([](Tensor a) { return vt::sum(a) < 100.0; },
                                   [](Tensor a) { return a + vt::psum(a, "data"); }, v);
           });
         });
  on_two(ErrorKind::transform, "so that neither lanes nor processes of a named axis can meet in it",
         [](const Mesh& m) {
           vt::Recursive<Tensor(Tensor, Tensor)> sum("sum");
           sum = [&](Tensor n, Tensor v) {
             return vt::cond(
                 n <= 0, [](Tensor, Tensor a) { return a; },
                 [&](Tensor k, Tensor a) { return sum(k - 1, a + vt::psum(a, "data")); }, n, v);
           };
           on_parts(m, [&](Tensor v) { return sum(vt::tensor(3), v); });
         });
}

TEST(ShardMapErrors, FunctionsThatDiffer) {
  on_two(ErrorKind::transform,
         "  let b:f32[6] = sin a  # shard_map_errors_test.cpp:", [](const Mesh& m) {
           on_parts(m, [](Tensor v) {
             const Tensor u = rank() == 0 ? vt::sin(v) : vt::cos(v);
             return vt::psum(u, "data");
           });
         });
  on_two(ErrorKind::transform,
         "vt::shard_map: argument 0 is f32[3] on rank 0 and f32[4] on rank 1: all processes must "
         "have blocks of one dtype and shape; at shard_map_errors_test.cpp:",
         [](const Mesh& m) {
           static_cast<void>(
               vt::shard_map([](Tensor v) { return vt::psum(vt::sum(v), "data"); },
                             {.mesh = m, .in_specs = sharded("data")})(vt::arange(3.0 + rank())));
         });
  on_two(ErrorKind::transform,
         "argument 1 is f32[] on rank 0 and f64[] on rank 1: all processes must have the same",
         [](const Mesh& m) {
           static_cast<void>(
               vt::shard_map([](Tensor v, Tensor u) { return u * vt::psum(vt::sum(v), "data"); },
                             {.mesh = m, .in_specs = {sharded("data"), replicated}})(
                   x, vt::tensor(1.0f).astype(rank() ? vt::f64 : vt::f32)));
         });
}

// Along "data" the processes have other places then, and their parts lie elsewhere.
TEST(ShardMapErrors, MeshesThatDiffer) {
  on_two(ErrorKind::transform, "on rank 0: mesh {data: 2, k: 1}\n  on rank 1: mesh {k: 1, data: 2}",
         [](const Mesh&) {
           const Mesh m =
               rank() == 0 ? mesh({{"data", 2}, {"k", 1}}) : mesh({{"k", 1}, {"data", 2}});
           on_parts(m, [](Tensor v) { return vt::psum(v, "data"); });
         });
}

TEST(ShardMapErrors, CollectivesThatDoNotFitTheMesh) {
  on_two(ErrorKind::value, "vt::ppermute: there is no process 9 among the 2 of \"data\"",
         [](const Mesh& m) {
           on_parts(m, [](Tensor v) { return vt::ppermute(v, "data", {{0, 9}}); }, sharded("data"));
         });
  on_two(ErrorKind::shape, "axis 0 must have an element for each of the 2 processes of \"data\"",
         [](const Mesh& m) {
           on_parts(m, [](Tensor v) { return vt::psum_scatter(v, "data"); }, sharded("data"));
         });
}

// Of one rank alone: the others are told, and none takes part in another call for this one.
TEST(ShardMapErrors, OfOneProcessEndTheCallsOfTheOthers) {
  if (vt_test::is_process()) return;  // which are no longer in step then
  const auto caught = [](const std::function<void()>& f) {
    try {
      f();
      return std::string("nothing");
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
  };
  using Function = std::function<Tensor(Tensor)>;
  const Function where_recorded = [](Tensor v) {
    if (rank() == 1) throw std::runtime_error("negative mass");
    return vt::psum(v, "data");
  };
  const Function in_a_check = [](Tensor v) {
    vt::check(vt::axis_index("data") != 1, "negative mass");
    return vt::psum(v, "data");
  };
  const Function in_a_callback = [](Tensor v) {
    const auto looked = vt::callback(
        [](Tensor u) {
          if (rank() == 1) throw std::runtime_error("negative mass");
          return u;
        },
        v);
    return vt::psum(looked(v), "data");
  };
  for (const Function& f : {where_recorded, in_a_check, in_a_callback})
    for (const bool jitted : {false, true})
      vt::distributed::simulate(2, [&] {
        const Mesh m = mesh({{"data", 2}});
        const auto sum = [&](Function g) {
          return vt::shard_map(g, {.mesh = m, .in_specs = sharded("data")});
        };
        const Function whole = sum([](Tensor v) { return vt::psum(v, "data"); });
        const Function wrong = jitted ? Function(vt::jit(sum(f))) : Function(sum(f));
        whole(x).eval();
        const std::string message = caught([&] { wrong(x).eval(); });
        EXPECT_NE(message.find(rank() == 1 ? "negative mass" : "rank 1 failed: "),
                  std::string::npos)
            << message;
        const std::string later = caught([&] { whole(x).eval(); });
        EXPECT_NE(later.find("rank 1 failed: "), std::string::npos) << later;
        EXPECT_NE(later.find("negative mass"), std::string::npos) << later;
      });
}

// Nobody waits for a process in a call without collectives: what it throws there is its own.
TEST(ShardMapErrors, OfOneProcessWhereNoneMeet) {
  vt_test::on_ranks(2, [] {
    const Mesh m = mesh({{"data", 2}});
    const auto alone = vt::shard_map(
        [](Tensor v) {
          vt::check(vt::all(v < 5.0), "too large");
          return v * 2.0;
        },
        {.mesh = m, .in_specs = sharded("data"), .out_specs = sharded("data")});
    const auto sum = vt::shard_map([](Tensor v) { return vt::psum(v[0], "data"); },
                                   {.mesh = m, .in_specs = sharded("data")});
    const Tensor x = vt::tensor({1.0 + rank()});
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(alone(x)[0].item<double>(), 2.0 + 2.0 * rank());
      EXPECT_EQ(sum(x).item<double>(), 3.0);
      if (rank() == k % 2)
        expect_error([&] { alone(x * 7.0).eval(); }, ErrorKind::check, {"too large"});
      else alone(x).eval();
    }
  });
}

// A program may be kept; it is that of its mesh.
// A call counts on all ranks, also where the branch that is taken has no collective.
TEST(ShardMapErrors, InABranchWithoutACollective) {
  on_ranks(2, [] {
    const Mesh m = mesh({{"data", 2}});
    const auto f = [](Tensor which, Tensor v) {
      vt::check(vt::all(v < 5.0), "too large");
      return vt::cond(
          which > 0, [](Tensor a) { return vt::psum(a, "data"); }, [](Tensor a) { return a * 2; },
          v);
    };
    const auto mapped = vt::shard_map(
        f, {.mesh = m, .in_specs = {replicated, sharded("data")}, .out_specs = sharded("data")});
    const auto sum = vt::shard_map([](Tensor v) { return vt::psum(v, "data"); },
                                   {.mesh = m, .in_specs = sharded("data")});
    const auto in_jit = vt::jit(mapped);
    for (const bool jitted : {false, true}) {
      const auto call = [&](double v) {
        const Tensor which = vt::tensor(0), own = vt::full({2}, v);
        return jitted ? in_jit(which, own) : mapped(which, own);
      };
      static_cast<void>(call(1).eval());
      if (rank() == 0) expect_error([&] { call(7).eval(); }, ErrorKind::check, {"too large"});
      else static_cast<void>(call(1).eval());
      EXPECT_EQ(sum(vt::tensor({1.0 + rank()})).item<double>(), 3.0);
    }
  });
}

TEST(ShardMapErrors, ProgramsOfAnotherWorld) {
  if (vt_test::is_process()) return;
  std::function<Tensor(Tensor)> sum, index;
  vt::distributed::simulate(2, [&] {
    const Mesh m = mesh({{"data", 2}});
    const auto f = vt::jit(vt::shard_map([](Tensor v) { return vt::psum(v, "data"); },
                                         {.mesh = m, .in_specs = sharded("data")}));
    const auto g = vt::jit(
        vt::shard_map([](Tensor v) { return v + vt::axis_index("data"); },
                      {.mesh = m, .in_specs = sharded("data"), .out_specs = sharded("data")}));
    f(x).eval(), g(x).eval();
    if (rank() == 0) sum = f, index = g;
    const auto is_refused = [&] {
      for (int i = 0; i < 2; ++i)
        expect_error([&] { f(x).eval(); }, ErrorKind::value,
                     {"vt::psum over \"data\": it was recorded for 2 processes, and here is 1"});
    };
    std::thread(is_refused).join();
    EXPECT_EQ(f(x)[1].item<double>(), 2.0);
  });
  for (const int ranks : {1, 4})
    vt::distributed::simulate(ranks, [&] {
      expect_error([&] { sum(x).eval(); }, ErrorKind::value, {"recorded for 2 processes"});
      expect_error([&] { index(x).eval(); }, ErrorKind::value, {"recorded for 2 processes"});
    });
  expect_error([&] { sum(x).eval(); }, ErrorKind::value, {"and here is 1"});
  vt::distributed::simulate(2, [&] { EXPECT_EQ(sum(x)[1].item<double>(), 2.0); });
}

TEST(ShardMapErrors, VariablesAndRules) {
  on_two(ErrorKind::transform,
         "vt::shard_map: a variable is assigned a value that differs between the processes along "
         "\"data\"",
         [](const Mesh& m) {
           const vt::Variable total(vt::tensor(0.0f));
           on_parts(m, [&](Tensor v) {
             total.assign(vt::sum(v));
             return vt::psum(v, "data");
           });
         });
  on_two(ErrorKind::transform,
         "vt::custom_vjp: it has collectives inside, and cannot be differentiated from outside of "
         "its vt::shard_map; differentiate inside",
         [](const Mesh& m) {
           const auto square = vt::custom_vjp(
               [](Tensor a) { return vt::psum(a * a, "data"); },
               [](Tensor a) { return std::pair(vt::psum(a * a, "data"), a); },
               [](Tensor a, Tensor ct) { return std::tuple(2.0 * a * vt::psum(ct, "data")); });
           const auto f = vt::shard_map([&](Tensor v) { return vt::sum(square(v)); },
                                        {.mesh = m, .in_specs = sharded("data")});
           static_cast<void>(vt::grad(f)(x));
         });
  on_two(ErrorKind::tracer,
         "is not known under vt::shard_map: the function runs once, for all "
         "processes",
         [](const Mesh& m) {
           on_parts(m,
                    [](Tensor v) { return vt::psum(v, "data")[0].item<float>() > 1 ? v : v * 2; });
         });
}

TEST(ShardMapErrors, AllRanksMayCatchTheSameAndGoOn) {
  on_two(ErrorKind::check, "vt::check: too large", [](const Mesh& m) {
    const auto f = vt::jit(vt::shard_map(
        [](Tensor v) {
          const Tensor sum = vt::psum(v, "data");
          vt::check(vt::sum(sum) < 5.0, "too large");
          return vt::psum(sum * v, "data");
        },
        {.mesh = m, .in_specs = sharded("data")}));
    static_cast<void>(f(x).eval());
  });
}

// A look is no collective: the others do not come to it.
TEST(ShardMapErrors, NaNsAreTracedToTheProcessThatGaveThem) {
  on_ranks(2, [] {
    const vt::DebugNans watch;
    using Function = std::function<Tensor(Tensor)>;
    const auto on_two = [](Function f) {
      return vt::shard_map(
          f,
          {.mesh = mesh({{"data", 2}}), .in_specs = sharded("data"), .out_specs = sharded("data")});
    };
    const Function sums = on_two([](Tensor v) {
      const Tensor roots = vt::psum(vt::sqrt(v), "data");
      return vt::fori_loop(
          0, 2, [](Tensor, Tensor u) { return u + vt::psum(u, "data"); }, roots * 2.0);
    });
    for (const Function& f : {sums, Function(vt::jit(sums))})
      for (int guilty = 0; guilty < 2; ++guilty) {
        const Tensor got = f(vt::tensor({4.0, rank() == guilty ? -9.0 : 9.0}));
        const auto look = [&] { static_cast<void>(got[1].item<double>()); };
        if (rank() == guilty) expect_error(look, ErrorKind::value, {"vt::sqrt(-9)", "made it"});
        else if (guilty == 0)
          expect_error(look, ErrorKind::value, {"a collective to which other processes came"});
      }
    // Where the program looks at it itself, all throw.
    const Function until = on_two([](Tensor v) {
      return vt::while_loop([](Tensor u) { return vt::psum(u[0], "data") < 100.0; },
                            [](Tensor u) { return u * 2.0; }, vt::sqrt(v));
    });
    expect_error([&] { until(vt::tensor({rank() ? 4.0 : -9.0})).eval(); }, ErrorKind::value,
                 {"vt::lt, which decides where the program goes"});
  });
}

}  // namespace
