// Collectives over an axis "i" of four lanes or processes, each with the same formula on whole
// arrays.
#pragma once

#include <functional>
#include <vector>

#include <vt/vt.hpp>

namespace vt_test {

constexpr int lanes_of_cases = 4;

/// A collective on what one lane has, f64[4,2], and what all lanes get of all of it, f64[4,4,2].
struct Collective {
  using Function = std::function<vt::Tensor(vt::Tensor)>;
  const char* name;
  Function lane, whole;
};
inline vt::Tensor to_all(vt::Tensor one) { return vt::stack({one, one, one, one}); }
inline const std::vector<Collective> collective_cases = {
    {"psum", [](vt::Tensor x) { return vt::psum(x, "i"); },
     [](vt::Tensor x) { return to_all(vt::sum(x, 0)); }},
    {"pmean", [](vt::Tensor x) { return vt::pmean(x, "i"); },
     [](vt::Tensor x) { return to_all(vt::mean(x, 0)); }},
    {"pmax", [](vt::Tensor x) { return vt::pmax(x, "i"); },
     [](vt::Tensor x) { return to_all(vt::max(x, 0)); }},
    {"pmin", [](vt::Tensor x) { return vt::pmin(x, "i"); },
     [](vt::Tensor x) { return to_all(vt::min(x, 0)); }},
    {"all_gather", [](vt::Tensor x) { return vt::all_gather(x, "i"); },
     [](vt::Tensor x) { return to_all(x); }},
    {"all_gather at the end", [](vt::Tensor x) { return vt::all_gather(x, "i", {.axis = -1}); },
     [](vt::Tensor x) { return to_all(vt::moveaxis(x, {0}, {2})); }},
    {"all_gather tiled",
     [](vt::Tensor x) { return vt::all_gather(x, "i", {.axis = 1, .tiled = true}); },
     [](vt::Tensor x) { return to_all(vt::reshape(vt::moveaxis(x, {0}, {1}), {4, 8})); }},
    {"all_to_all", [](vt::Tensor x) { return vt::all_to_all(x, "i", 0, 1); },
     [](vt::Tensor x) { return vt::transpose(x, {1, 2, 0}); }},
    {"all_to_all tiled", [](vt::Tensor x) { return vt::all_to_all(x, "i", 0, 1, {.tiled = true}); },
     [](vt::Tensor x) { return vt::reshape(vt::transpose(x, {1, 0, 2}), {4, 1, 8}); }},
    {"psum_scatter", [](vt::Tensor x) { return vt::psum_scatter(x, "i"); },
     [](vt::Tensor x) { return vt::sum(x, 0); }},
    {"psum_scatter tiled", [](vt::Tensor x) { return vt::psum_scatter(x, "i", {.tiled = true}); },
     [](vt::Tensor x) { return vt::reshape(vt::sum(x, 0), {4, 1, 2}); }},
    {"ppermute round",
     [](vt::Tensor x) { return vt::ppermute(x, "i", {{0, 1}, {1, 2}, {2, 3}, {3, 0}}); },
     [](vt::Tensor x) { return vt::roll(x, 1, 0); }},
    {"ppermute with gaps", [](vt::Tensor x) { return vt::ppermute(x, "i", {{3, 0}, {1, 2}}); },
     [](vt::Tensor x) { return vt::stack({x[3], x[1] * 0.0, x[1], x[1] * 0.0}); }},
    {"pshuffle", [](vt::Tensor x) { return vt::pshuffle(x, "i", {2, 0, 3, 1}); },
     [](vt::Tensor x) { return vt::take(x, vt::tensor({2, 0, 3, 1}), 0); }},
    {"shared operand",
     [](vt::Tensor x) { return x * vt::psum(vt::tensor({0.2, 0.3}), "i") + vt::psum(1, "i"); },
     [](vt::Tensor x) { return x * vt::tensor({0.8, 1.2}) + 4.0; }},
    {"shared exchange",
     [](vt::Tensor x) {
       return x[0] + vt::all_to_all(vt::tensor({1.0, 2.0, 3.0, 4.0}), "i", 0, 0)[0];
     },
     [](vt::Tensor x) {
       return vt::take(x, vt::tensor(0), 1) + vt::tensor({{1.0}, {2.0}, {3.0}, {4.0}});
     }},
    {"shared ppermute",
     [](vt::Tensor x) { return x + vt::ppermute(vt::tensor({5.0, 7.0}), "i", {{0, 2}}); },
     [](vt::Tensor x) {
       return x + vt::reshape(vt::tensor({0.0, 0.0, 0.0, 0.0, 5.0, 7.0, 0.0, 0.0}), {4, 1, 2});
     }},
    {"index", [](vt::Tensor x) { return 0.3 * x * vt::axis_index("i"); },
     [](vt::Tensor x) { return 0.3 * x * vt::reshape(vt::arange(4), {4, 1, 1}); }},
};

}  // namespace vt_test
