// What the peers in C++ share. A peer has a name, and a template `Of<Problem>` whose objects
// compute, once made, `derivative(x, d)`, and `value(x, y)` where that is not plain C++'s.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "../../native/problems.hpp"

namespace peer {

inline void row(const std::string& name, auto body) {
  benchmark::RegisterBenchmark(name.c_str(), [body](benchmark::State& state) mutable {
    for (auto _ : state) body();
  })->UseRealTime();
}

/// A time that was taken before.
inline void taken(const std::string& name, double seconds) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [seconds](benchmark::State& state) {
                                 for (auto _ : state) state.SetIterationTime(seconds);
                               })
      ->UseManualTime()
      ->Iterations(1);
}

template <class Peer, class P>
void rows() {
  if constexpr (requires { typename Peer::template Of<P>; }) {
    if (!problems::wanted<P>(benchmark::GetBenchmarkFilter(), Peer::name)) return;
    const std::string name = P::name, who = std::string("/") + Peer::name;
    const auto begin = std::chrono::steady_clock::now();
    const auto of = std::make_shared<typename Peer::template Of<P>>();
    const auto loop = [of](auto one, int outputs, int lanes) {
      std::vector<double> x, out(static_cast<std::size_t>(lanes) * outputs);
      for (int lane = 0; lane < lanes; ++lane)
        for (const double v : problems::start<P>(lane)) x.push_back(v);
      return [of, one, x, out, outputs, lanes]() mutable {
        for (int lane = 0; lane < lanes; ++lane)
          one(*of, x.data() + lane * P::inputs, out.data() + lane * outputs);
        benchmark::DoNotOptimize(out.data());
        benchmark::ClobberMemory();
      };
    };
    const auto all = [&](const std::string& what, auto one, int outputs) {
      row(name + "/" + what + who, loop(one, outputs, 1));
      if (P::lanes)
        row(name + "/" + std::to_string(P::lanes) + "/" + what + who, loop(one, outputs, P::lanes));
    };
    const std::vector<double> x = problems::start<P>();
    std::vector<double> out(problems::derivatives<P> + P::outputs);
    if constexpr (requires { of->derivative(x.data(), out.data()); }) {
      of->derivative(x.data(), out.data());
      if (Peer::compiles)
        taken(name + "/first" + who,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      problems::check<P>(Peer::name, x, nullptr, out.data());
      all(
          "derivative", [](auto& f, const double* x, double* d) { f.derivative(x, d); },
          problems::derivatives<P>);
    }
    if constexpr (requires { of->value(x.data(), out.data()); }) {
      of->value(x.data(), out.data());
      problems::check<P>(Peer::name, x, out.data(), nullptr);
      all("value", [](auto& f, const double* x, double* y) { f.value(x, y); }, P::outputs);
    }
  }
}

template <class... Peers>
int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const auto each = [&]<class... P>(auto rows_of, std::tuple<P...>*) {
    (rows_of.template operator()<P>(), ...);
  };
  (each([]<class P>() { rows<Peers, P>(); }, static_cast<problems::All*>(nullptr)), ...);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace peer
