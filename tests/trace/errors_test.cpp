// The catalogue of wrong uses: each names the op, the shapes and the user's line, and leaves
// everything usable.
#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <thread>

#include <vt/vt.hpp>

namespace {

using vt::ErrorKind;
using vt::Tensor;

struct Wrong {
  ErrorKind kind;
  std::initializer_list<const char*> says;  ///< parts of the message
  std::function<void()> use;
  bool names_line = true;  ///< the message ends with this file and a line
};

void expect(const char* name, const Wrong& w) {
  SCOPED_TRACE(name);
  try {
    w.use();
  } catch (const vt::Error& e) {
    const std::string message = e.what();
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(w.kind)) << message;
    for (const char* part : w.says)
      EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in: " << message;
    if (w.names_line) {
      EXPECT_NE(message.find("errors_test.cpp:"), std::string::npos) << "no line in: " << message;
    }
    // Nothing is broken by it.
    EXPECT_EQ(vt::sum(vt::ones({3}) + 1.0).item<float>(), 6.0f);
    return;
  } catch (const std::exception& e) {
    FAIL() << "threw something else: " << e.what();
  }
  FAIL() << "no error";
}

Tensor f(const vt::Shape& shape) { return vt::ones(shape); }
Tensor ints(const vt::Shape& shape) { return vt::ones(shape, vt::i32); }
Tensor kept;  // a tracer that a function keeps

TEST(Errors, element_wise) {
  expect("shapes",
         {ErrorKind::shape, {"vt::add", "f32[2,3]", "f32[4]"}, [] { f({2, 3}) + f({4}); }});
  expect("three operands", {ErrorKind::shape, {"vt::where", "bool[2]", "f32[3]"}, [] {
                              (void)vt::where(f({2}) > 0, f({3}), f({3}));
                            }});
  expect("bits of floats",
         {ErrorKind::dtype, {"vt::bitwise_and", "f32[2]"}, [] { f({2}) & f({2}); }});
  expect("shift of floats", {ErrorKind::dtype, {"vt::shift_left", "f32[2]"}, [] { f({2}) << 1; }});
  expect("not of floats", {ErrorKind::dtype, {"vt::bitwise_not", "f32[2]"}, [] { ~f({2}); }});
  expect("popcount of floats",
         {ErrorKind::dtype, {"popcount", "f32[2]"}, [] { (void)vt::popcount(f({2})); }});
  expect("bitcast of another size", {ErrorKind::dtype, {"vt::bitcast", "f32", "f64"}, [] {
                                       (void)vt::bitcast(f({2}), vt::f64);
                                     }});
  expect("precision", {ErrorKind::value, {"vt::reduce_precision"}, [] {
                         (void)vt::reduce_precision(f({2}), 0, 3);
                       }});
  expect("empty Tensor", {ErrorKind::value, {"empty Tensor"}, [] { (void)vt::sin(Tensor()); }});
  expect("empty Tensor on the right",
         {ErrorKind::value, {"empty Tensor"}, [] { f({2}) * Tensor(); }});
  expect("number that wraps", {ErrorKind::dtype,
                               {"vt::add", "300 does not fit the u8", "u8[2]"},
                               [] { vt::ones({2}, vt::u8) + 300; }});
  expect("number that no dtype 32 bits wide holds",
         {ErrorKind::dtype, {"vt::where", "1099511627776", "i32[2]"}, [] {
            (void)vt::where(true, ints({2}), 1LL << 40);
          }});
  expect("filling with a number that wraps", {ErrorKind::dtype,
                                              {"vt::full", "300 does not fit u8"},
                                              [] { (void)vt::full({2}, 300, vt::u8); }});
  expect("filling alike with a number that wraps",
         {ErrorKind::dtype, {"vt::full", "-129 does not fit i8"}, [] {
            (void)vt::full_like(vt::ones({2}, vt::i8), -129);
          }});
  expect("filling with a negative number", {ErrorKind::dtype,
                                            {"vt::full", "-1 does not fit u8"},
                                            [] { (void)vt::full({2}, -1, vt::u8); }});
  EXPECT_EQ(vt::full({2}, 255, vt::u8).to_vector<int>(), std::vector<int>({255, 255}));
  expect("unsigned beside a negative number", {ErrorKind::dtype,
                                               {"vt::add", "-1 does not fit the u8"},
                                               [] { vt::ones({2}, vt::u8) + -1; }});
  for (const auto& [name, f] :
       {std::pair<const char*, void (*)()>{"vt::multiply", [] { ints({2}) * 3000000000LL; }},
        {"vt::subtract", [] { 3000000000LL - ints({2}); }},
        {"vt::minimum", [] { (void)vt::minimum(ints({2}), 3000000000u); }},
        {"vt::index_update", [] { (void)vt::index_update(ints({2}), 0, 3000000000LL); }},
        {"vt::stack", [] { (void)vt::stack({ints({2})[0], 3000000000LL}); }},
        {"vt::pad", [] { (void)vt::pad(ints({2}), {{1, 1}}, 3000000000LL); }},
        {"vt::searchsorted", [] { (void)vt::searchsorted(ints({2}), 3000000000LL); }}})
    expect(name, {ErrorKind::dtype, {name, "3000000000 does not fit"}, f});
  expect("clip to what the dtype cannot hold",
         {ErrorKind::dtype, {"vt::clip", "200 does not fit the i8"}, [] {
            (void)vt::clip(vt::ones({2}, vt::i8), -128, 200);
          }});
  expect("broadcast_to", {ErrorKind::shape, {"vt::broadcast_to", "f32[3]", "[2,4]"}, [] {
                            (void)vt::broadcast_to(f({3}), {2, 4});
                          }});
}

TEST(Errors, making_and_reading) {
  expect("values and shape", {ErrorKind::shape, {"vt::tensor", "3 values", "[2,2]"}, [] {
                                (void)vt::tensor(std::vector<double>{1, 2, 3}, {2, 2});
                              }});
  expect("ragged braces", {ErrorKind::shape, {"vt::tensor", "different lengths"}, [] {
                             (void)vt::tensor({{1.0, 2.0}, {3.0}});
                           }});
  expect("borrow", {ErrorKind::shape, {"vt::borrow", "2 values", "[3]"}, [] {
                      static float p[2];
                      (void)vt::borrow(std::span<float>(p, 2), {3});
                    }});
  expect("negative extent",
         {ErrorKind::shape, {"vt::zeros", "[2,-1]"}, [] { (void)vt::zeros({2, -1}); }});
  expect("negative matrix",
         {ErrorKind::value, {"vt::eye", "[2,-1]"}, [] { (void)vt::eye(2, -1); }});
  expect("item of many", {ErrorKind::shape, {"vt::Tensor::item", "f32[3]", "3 elements"}, [] {
                            f({3}).item<float>();
                          }});
  expect("data of another type", {ErrorKind::dtype, {"vt::Tensor::data", "f64", "f32[3]"}, [] {
                                    const Tensor t = f({3});
                                    t.data<double>();
                                  }});
  expect("dim", {ErrorKind::shape, {"axis 2", "f32[3,4]"}, [] { f({3, 4}).dim(2); }});
  expect("zero step",
         {ErrorKind::value, {"vt::arange", "step"}, [] { (void)vt::arange(0, 5, 0); }});
  expect("truth of many",
         {ErrorKind::shape, {"bool[3]", "vt::any"}, [] { return f({3}) > 0 ? 1 : 2; }});
  expect("truth of a value",
         {ErrorKind::shape, {"f64[2]", "vt::any"}, [] { return vt::tensor({1.0, 2.0}) ? 1 : 2; }});
  expect("shape of an empty Tensor",
         {ErrorKind::value, {"vt::Tensor", "empty"}, [] { Tensor().size(); }});
  expect("item of an empty Tensor",
         {ErrorKind::value, {"vt::Tensor", "empty"}, [] { Tensor().item<float>(); }});
  expect("no such device", {ErrorKind::backend, {"vt::Tensor::to", "cuda(63)"}, [] {
                              (void)f({2}).to(vt::cuda(63));
                            }});
  expect("out of memory", {ErrorKind::memory, {"bytes"}, [] { vt::zeros({1LL << 45}).eval(); }});
  // More than a std::vector can have: AddressSanitizer does not let the heap refuse.
  expect("out of memory for a copy", {ErrorKind::memory,
                                      {"to_vector", "no memory", "f32[1152921504606846976]"},
                                      [] { vt::zeros({1LL << 60}).to_vector<double>(); }});
  expect("out of memory when compiled",
         {ErrorKind::memory, {"bytes"}, [] {
            vt::jit([](Tensor a) { return vt::broadcast_to(a, {1LL << 45, 2}) + 1; })(f({2}));
          }});
  expect("negative extents of values", {ErrorKind::shape, {"vt::tensor", "[-1,-2]"}, [] {
                                          (void)vt::tensor(std::vector<double>{1, 2}, {-1, -2});
                                        }});
  expect("ragged braces of mixed numbers", {ErrorKind::shape,
                                            {"vt::tensor", "different lengths"},
                                            [] { (void)vt::tensor({{1.0, 2}, {3}}); }});
  expect("overflowing size",
         {ErrorKind::shape, {"[4611686018427387904,8]"}, [] { vt::zeros({1LL << 62, 8}).eval(); }});
  expect("threads",
         {ErrorKind::value, {"vt::set_num_threads", "0"}, [] { vt::set_num_threads(0); }});
}

TEST(Errors, reductions_and_scans) {
  expect("axis", {ErrorKind::shape, {"vt::sum", "axis 2", "f32[2,3]"}, [] {
                    (void)vt::sum(f({2, 3}), 2);
                  }});
  expect("repeated axis",
         {ErrorKind::shape, {"vt::sum", "f32[2,3]"}, [] { (void)vt::sum(f({2, 3}), {0, -2}); }});
  expect("max of nothing",
         {ErrorKind::shape, {"vt::max", "f32[0]"}, [] { (void)vt::max(f({0})); }});
  expect("argmax of nothing",
         {ErrorKind::shape, {"vt::argmax", "f32[2,0]"}, [] { (void)vt::argmax(f({2, 0}), 1); }});
  expect("argmax axis",
         {ErrorKind::shape, {"vt::argmax", "axis -3"}, [] { (void)vt::argmax(f({2, 2}), -3); }});
  expect("scan axis", {ErrorKind::shape, {"vt::cumsum", "axis 1", "f32[4]"}, [] {
                         (void)vt::cumsum(f({4}), 1);
                       }});
  expect("scan of a scalar",
         {ErrorKind::shape, {"vt::cumsum", "f32[]"}, [] { (void)vt::cumsum(f({}), 0); }});
  expect("reduce with a wrong body",
         {ErrorKind::shape, {"vt::reduce"}, [] {
            (void)vt::reduce(f({3}), 0.0, [](Tensor a, Tensor) { return vt::stack({a, a}); });
          }});
}

TEST(Errors, shapes) {
  expect("reshape", {ErrorKind::shape, {"vt::reshape", "f32[2,3]", "[4]"}, [] {
                       (void)vt::reshape(f({2, 3}), {4});
                     }});
  expect("two unknown extents", {ErrorKind::shape, {"vt::reshape", "[-1,-1]"}, [] {
                                   (void)vt::reshape(f({2, 3}), {-1, -1});
                                 }});
  expect("unknown extent that does not divide", {ErrorKind::shape, {"vt::reshape", "f32[2,3]"}, [] {
                                                   (void)vt::reshape(f({2, 3}), {4, -1});
                                                 }});
  expect("permutation", {ErrorKind::shape, {"vt::transpose", "f32[2,3]"}, [] {
                           (void)vt::transpose(f({2, 3}), {0, 0});
                         }});
  expect("concatenate", {ErrorKind::shape, {"vt::concatenate", "f32[2,3]", "f32[3,2]"}, [] {
                           (void)vt::concatenate({f({2, 3}), f({3, 2})});
                         }});
  expect("concatenate nothing",
         {ErrorKind::shape, {"vt::concatenate"}, [] { (void)vt::concatenate({}); }});
  expect("stack", {ErrorKind::shape, {"vt::stack", "f32[2]", "f32[3]"}, [] {
                     (void)vt::stack({f({2}), f({3})});
                   }});
  expect("squeeze",
         {ErrorKind::shape, {"vt::squeeze", "f32[2,3]"}, [] { (void)vt::squeeze(f({2, 3}), 0); }});
  expect("expand_dims",
         {ErrorKind::shape, {"vt::expand_dims", "3"}, [] { (void)vt::expand_dims(f({2}), 3); }});
  expect("split", {ErrorKind::shape, {"vt::split", "f32[5]"}, [] { (void)vt::split(f({5}), 2); }});
  expect("pad", {ErrorKind::shape, {"vt::pad", "f32[2,2]"}, [] {
                   (void)vt::pad(f({2, 2}), {{1, 1}, {1, 1}, {1, 1}});
                 }});
  expect("crop too much",
         {ErrorKind::shape, {"vt::pad", "f32[2]"}, [] { (void)vt::pad(f({2}), {{-3, 0}}); }});
  expect("flip", {ErrorKind::shape, {"vt::flip", "axis 1"}, [] { (void)vt::flip(f({2}), 1); }});
  expect("tile", {ErrorKind::value, {"vt::tile"}, [] { (void)vt::tile(f({2}), {-1}); }});
  expect("slice",
         {ErrorKind::shape, {"vt::slice", "f32[4]"}, [] { (void)vt::slice(f({4}), {1}, {6}); }});
  expect("moveaxis",
         {ErrorKind::shape, {"vt::moveaxis"}, [] { (void)vt::moveaxis(f({2, 3}), {0, 1}, {0}); }});
}

TEST(Errors, indices) {
  expect("static index", {ErrorKind::value, {"index 5", "f32[3]"}, [] { f({3})[5]; }});
  expect("index of a scalar", {ErrorKind::shape, {"f32[]"}, [] { f({})[0]; }});
  expect("float index", {ErrorKind::dtype, {"f32[2]"}, [] { f({3})[f({2})]; }});
  expect("bool mask", {ErrorKind::dtype, {"bool[3]", "where"}, [] { f({3})[f({3}) > 0]; }});
  expect("take", {ErrorKind::shape, {"vt::take", "axis 1", "f32[3]"}, [] {
                    (void)vt::take(f({3}), ints({2}), 1);
                  }});
  expect("take from nothing",
         {ErrorKind::shape, {"vt::take", "f32[0]"}, [] { (void)vt::take(f({0}), ints({2}), 0); }});
  expect("take_along_axis", {ErrorKind::shape, {"vt::take_along_axis", "f32[2,3]", "i32[2]"}, [] {
                               (void)vt::take_along_axis(f({2, 3}), ints({2}), 1);
                             }});
  expect("index_update", {ErrorKind::shape, {"vt::index_update", "f32[4]"}, [] {
                            (void)vt::index_update(f({4}), ints({2}), f({3}));
                          }});
  expect("dynamic_slice", {ErrorKind::shape, {"vt::dynamic_slice", "f32[4]", "[5]"}, [] {
                             (void)vt::dynamic_slice(f({4}), {Tensor(0)}, {5});
                           }});
  expect("dynamic_slice starts", {ErrorKind::shape, {"vt::dynamic_slice", "f32[4,4]"}, [] {
                                    (void)vt::dynamic_slice(f({4, 4}), {Tensor(0)}, {2, 2});
                                  }});
  expect("dynamic_update_slice",
         {ErrorKind::shape, {"vt::dynamic_update_slice", "f32[4]", "f32[6]"}, [] {
            (void)vt::dynamic_update_slice(f({4}), f({6}), {Tensor(0)});
          }});
  expect("one_hot of floats",
         {ErrorKind::dtype, {"vt::one_hot", "f32[2]"}, [] { (void)vt::one_hot(f({2}), 3); }});
  expect("segment ids", {ErrorKind::shape, {"vt::segment_sum", "f32[4]", "i32[3]"}, [] {
                           (void)vt::segment_sum(f({4}), ints({3}), 2);
                         }});
  expect("slice of no step", {ErrorKind::value, {"step"}, [] { f({4})[vt::slice(0, 4, 0)]; }});
}

TEST(Errors, contractions) {
  expect("matmul", {ErrorKind::shape,
                    {"vt::matmul", "inner sizes differ", "f32[3,4]", "f32[5,6]"},
                    [] { (void)vt::matmul(f({3, 4}), f({5, 6})); }});
  expect("matmul of scalars",
         {ErrorKind::shape, {"vt::matmul", "f32[]"}, [] { (void)vt::matmul(f({}), f({2})); }});
  expect("matmul batch", {ErrorKind::shape, {"vt::matmul", "f32[2,3,4]", "f32[5,4,6]"}, [] {
                            (void)vt::matmul(f({2, 3, 4}), f({5, 4, 6}));
                          }});
  expect("dot_general", {ErrorKind::shape, {"vt::dot_general", "f32[2,3]"}, [] {
                           (void)vt::dot_general(f({2, 3}), f({3, 2}),
                                                 {.lhs_contract = {1}, .rhs_contract = {1}});
                         }});
  expect("tensordot", {ErrorKind::shape, {"vt::tensordot", "f32[2]"}, [] {
                         (void)vt::tensordot(f({2}), f({2}), 2);
                       }});
  expect("einsum labels", {ErrorKind::shape, {"vt::einsum", "ij,jk->ik"}, [] {
                             (void)vt::einsum("ij,jk->ik", f({2, 3}), f({4, 5}));
                           }});
  expect("einsum operands",
         {ErrorKind::value, {"vt::einsum"}, [] { (void)vt::einsum("ij,jk->ik", f({2, 3})); }});
  expect("einsum output",
         {ErrorKind::value, {"vt::einsum", "z"}, [] { (void)vt::einsum("ij->z", f({2, 3})); }});
  expect("einsum rank", {ErrorKind::shape, {"vt::einsum", "f32[2,3]"}, [] {
                           (void)vt::einsum("ijk->i", f({2, 3}));
                         }});
  expect("cross",
         {ErrorKind::shape, {"vt::cross", "f32[4]"}, [] { (void)vt::cross(f({4}), f({4})); }});
}

TEST(Errors, vmap) {
  const auto add = [](Tensor a, Tensor b) { return a + b; };
  expect("sizes of lanes", {ErrorKind::shape,
                            {"vt::vmap", "argument 0", "argument 1", "3", "4"},
                            [&] { vt::vmap(add)(f({3}), f({4})); }});
  expect("axis", {ErrorKind::shape, {"vt::vmap", "argument 1", "axis 1", "f32[3]"}, [&] {
                    vt::vmap(add, {.in_axes = {0, 1}})(f({3}), f({3}));
                  }});
  expect("scalar argument", {ErrorKind::shape, {"vt::vmap", "argument 1", "f32[]"}, [&] {
                               vt::vmap(add)(f({3}), f({}));
                             }});
  expect("entries", {ErrorKind::tree, {"vt::vmap", "in_axes", "3 entries", "2 arguments"}, [&] {
                       vt::vmap(add, {.in_axes = {0, 0, 0}})(f({3}), f({3}));
                     }});
  expect("nothing mapped", {ErrorKind::shape, {"vt::vmap", "axis_size"}, [&] {
                              vt::vmap(add, {.in_axes = vt::unmapped})(f({3}), f({3}));
                            }});
  expect("axis_size", {ErrorKind::shape, {"vt::vmap", "axis_size", "5"}, [&] {
                         vt::vmap(add, {.axis_size = 5})(f({3}), f({3}));
                       }});
  expect("path inside a tree", {ErrorKind::tree, {"vt::vmap", "argument 0", "[1]"}, [] {
                                  vt::vmap([](std::pair<Tensor, Tensor> p) { return p.first; },
                                           {.in_axes = {{0, {0, 1}}}})(std::pair(f({3}), f({3})));
                                }});
  expect("list for a pair", {ErrorKind::tree, {"vt::vmap", "argument 0", "2 parts", "3"}, [] {
                               vt::vmap([](std::pair<Tensor, Tensor> p) { return p.first; },
                                        {.in_axes = {{0, 0, 0}}})(std::pair(f({3}), f({3})));
                             }});
  expect("out_axes", {ErrorKind::shape, {"vt::vmap", "out_axes", "3"}, [] {
                        vt::vmap([](Tensor a) { return a; }, {.out_axes = 3})(f({3, 2}));
                      }});
  expect("unmapped result", {ErrorKind::transform, {"vt::vmap", "unmapped", "result"}, [] {
                               vt::vmap([](Tensor a) { return a; },
                                        {.out_axes = vt::unmapped})(f({3}));
                             }});
  expect("out_axes of a pair", {ErrorKind::tree, {"out_axes", "result", "2 parts"}, [] {
                                  vt::vmap([](Tensor a) { return std::pair(a, a); },
                                           {.out_axes = {0, 0, 0}})(f({3}));
                                }});
  expect("value", {ErrorKind::tracer, {"not known under vt::vmap", "f32[]", "vt::where"}, [] {
                     vt::vmap([](Tensor a) { return a.item<float>() > 0 ? a : -a; })(f({3}));
                   }});
  expect("truth", {ErrorKind::tracer, {"not known under vt::vmap", "bool[]"}, [] {
                     vt::vmap([](Tensor a) { return a > 0.0 ? a : -a; })(f({3}));
                   }});
  expect("truth of an argument", {ErrorKind::tracer, {"not known under vt::vmap", "f32[]"}, [] {
                                    vt::vmap([](Tensor a) { return a ? a : -a; })(f({3}));
                                  }});
  expect("per-lane shapes in messages",
         {ErrorKind::shape, {"vt::matmul", "f32[3,4]", "f32[5,6]"}, [] {
            vt::vmap([](Tensor a, Tensor b) { return vt::matmul(a, b); })(f({7, 3, 4}),
                                                                          f({7, 5, 6}));
          }});
  expect("negative lanes",
         {ErrorKind::value, {"vt::pfor", "-1"}, [] { vt::pfor([](Tensor i) { return i; }, -1); }});
}

TEST(Errors, derivatives) {
  const auto id = [](Tensor a) { return a; };
  const auto total = [](Tensor a) { return vt::sum(a); };
  expect("not a scalar",
         {ErrorKind::shape, {"vt::grad", "f32[3]", "scalar"}, [&] { vt::grad(id)(f({3})); }});
  expect("integer argument", {ErrorKind::dtype, {"vt::grad", "i32[3]", "argument 0"}, [&] {
                                vt::grad(total)(ints({3}));
                              }});
  expect("integer result", {ErrorKind::dtype, {"vt::grad", "i32[]"}, [] {
                              vt::grad([](Tensor a) { return vt::argmax(a); })(f({3}));
                            }});
  expect("tangent shape", {ErrorKind::shape, {"vt::jvp", "f32[3]", "f32[2]"}, [&] {
                             (void)vt::jvp(id, std::tuple(f({3})), std::tuple(f({2})));
                           }});
  expect("tangent dtype", {ErrorKind::dtype, {"vt::jvp", "f32[3]", "f64[3]"}, [&] {
                             (void)vt::jvp(id, std::tuple(f({3})),
                                           std::tuple(vt::ones({3}, vt::f64)));
                           }});
  const auto list = [](std::vector<Tensor> x) { return x[0]; };
  expect("tangent count", {ErrorKind::tree, {"vt::jvp", "another size", "at [0]"}, [&] {
                             (void)vt::jvp(list, std::vector{f({3})}, std::vector{f({3}), f({3})});
                           }});
  expect("cotangent shape", {ErrorKind::shape, {"vt::vjp", "f32[3]", "f32[4]"}, [&] {
                               vt::vjp(id, f({3})).second(f({4}));
                             }});
  expect("push shape", {ErrorKind::shape, {"vt::linearize", "f32[3]", "f32[4]"}, [&] {
                          vt::linearize(id, f({3})).second(f({4}));
                        }});
  expect("push of nothing", {ErrorKind::value,
                             {"vt::linearize", "tangent of argument 0", "empty"},
                             [&] { vt::linearize(id, f({3})).second(Tensor()); }});
  expect("linearize at nothing", {ErrorKind::value, {"vt::linearize", "argument 0", "empty"}, [&] {
                                    (void)vt::linearize(id, Tensor());
                                  }});
  expect("vjp at nothing", {ErrorKind::value, {"vt::vjp", "argument 1", "empty"}, [] {
                              (void)vt::vjp([](Tensor a, Tensor b) { return a * b; }, f({}),
                                            Tensor());
                            }});
  expect("pull of too few",
         {ErrorKind::tree, {"vt::vjp", "another size", "at the top"}, [] {
            vt::vjp([](Tensor a) { return std::vector{a, a}; }, f({3})).second(std::vector{f({3})});
          }});
  expect("pull of nothing", {ErrorKind::value,
                             {"vt::vjp", "cotangent of the result", "empty"},
                             [&] { vt::vjp(id, f({3})).second(Tensor()); }});
  expect("shape of what does not fit", {ErrorKind::shape, {"vt::matmul", "f32[3,4]"}, [] {
                                          (void)vt::eval_shape(
                                              [](Tensor a) { return vt::matmul(a, a); }, f({3, 4}));
                                        }});
  expect("shape of nothing", {ErrorKind::value, {"vt::eval_shape", "empty"}, [&] {
                                (void)vt::eval_shape(id, Tensor());
                              }});
  expect("jacobian of integers",
         {ErrorKind::dtype, {"vt::jacobian", "i32[3]"}, [&] { vt::jacobian(id)(ints({3})); }});
  expect("hessian of integers",
         {ErrorKind::dtype, {"vt::hessian", "i32[3]"}, [&] { vt::hessian(total)(ints({3})); }});
  expect("value under linear",
         {ErrorKind::tracer, {"not known", "vt::jit"}, [] {
            vt::jit([](Tensor a) {
              return vt::grad([](Tensor b) { return b.item<float>() > 0 ? b : -b; })(a);
            })(f({}));
          }});
}

// Whoever asks for a value that is recorded is named, with the transform and what to write instead.
TEST(Errors, values_that_are_recorded) {
  using Function = std::function<Tensor(Tensor)>;
  struct Transform {
    const char* name;
    std::function<void(const Function&)> run;
  };
  const Transform transforms[] = {
      {"vt::jit", [](const Function& g) { vt::jit(g)(f({2})); }},
      {"vt::vmap", [](const Function& g) { vt::vmap(g)(f({3, 2})); }},
      {"vt::vmap", [](const Function& g) { vt::jit(vt::vmap(g))(f({3, 2})); }},
      {"vt::vmap",
       [](const Function& g) {
         vt::vmap(vt::grad([g](Tensor a) { return vt::sum(g(a)); }))(f({3, 2}));
       }},
      {"vt::jit",
       [](const Function& g) {
         vt::jit(vt::grad([g](Tensor a) { return vt::sum(g(a)); }))(f({2}));
       }},
      {"vt::cond",
       [](const Function& g) { vt::cond(true, g, [](Tensor a) { return a; }, f({2})); }},
      {"vt::while_loop",
       [](const Function& g) {
         vt::while_loop([](Tensor a) { return vt::all(a < 0.0f); }, g, f({2}));
       }},
      {"vt::fori_loop",
       [](const Function& g) {
         vt::fori_loop(0, 3, [g](Tensor, Tensor c) { return g(c); }, f({2}));
       }},
  };
  struct Look {
    const char* name;
    Function look;
    bool names_line = true;
  };
  const Look looks[] = {
      {"vt::Tensor::item: ", [](Tensor a) { return a * a[0].item<float>(); }},
      {"vt::Tensor::to_vector: ", [](Tensor a) { return a * a.to_vector<float>()[0]; }},
      {"vt::Tensor::to_vector: ", [](Tensor a) { return a.to_vector<bool>()[0] ? a : -a; }},
      {"vt::Tensor::data: ", [](Tensor a) { return a * a.data<float>()[0]; }},
      {"vt::Tensor as a truth value: ", [](Tensor a) { return a[0] > 0 ? a : -a; }},
      {"vt::Tensor::eval: ", [](Tensor a) { return (a + 1.0f).eval(); }},
      {"vt::eval: ", [](Tensor a) { return vt::eval(a + 1.0f); }},
      {"vt::save_npy: ", [](Tensor a) { return vt::save_npy("/tmp/never", a), a; }},
      {"vt::to_dlpack: ", [](Tensor a) { return (void)vt::to_dlpack(a), a; }},
      {"vt::Variable: ", [](Tensor a) { return vt::Variable(a).read(); }},
      {"vt::Dataset: ", [](Tensor a) { return (void)vt::Dataset(a), a; }},
  };
  for (const Transform& t : transforms)
    for (const Look& l : looks)
      expect(
          (std::string(l.name) + "under " + t.name).c_str(),
          {ErrorKind::tracer,
           {l.name, "not known under ", t.name, "the function runs once", "vt::cond or vt::where",
            "vt::while_loop or vt::fori_loop", "vt::debug_print or vt::callback"},
           [&] { t.run(l.look); }});
  try {
    vt::jit([](Tensor a) { return a * a[0].item<float>(); })(f({2}));
    FAIL();
  } catch (const vt::Error& e) {
    const std::string text = e.what();
    EXPECT_LT(text.size(), 300u) << text;
    EXPECT_TRUE(
        text.starts_with("vt::Tensor::item: the value of a tracer f32[] is not known under "
                         "vt::jit: the function runs once, for all later values. "))
        << text;
  }
  // Under vt::grad alone values are known.
  EXPECT_EQ(vt::grad([](Tensor a) { return vt::sum(a * a[0].item<float>()); })(vt::ones({2}))[1]
                .item<float>(),
            1.0f);
}

TEST(Errors, tracers) {
  expect("value under jit",
         {ErrorKind::tracer, {"not known under vt::jit", "f32[2]"}, [] {
            vt::jit([](Tensor a) { return a * a.to_vector<float>()[0]; })(f({2}));
          }});
  expect("kept after vmap", {ErrorKind::tracer, {"after its trace ended"}, [] {
                               vt::vmap([](Tensor a) { return kept = a * 2.0; })(f({3}));
                               kept + 1.0;
                             }});
  expect("kept after jit", {ErrorKind::tracer, {"after its trace ended"}, [] {
                              vt::jit([](Tensor a) { return kept = a * 2.0; })(f({3}));
                              vt::sum(kept).item<float>();
                            }});
  expect("read after grad", {ErrorKind::tracer, {"after its trace ended"}, [] {
                               vt::grad([](Tensor a) { return kept = vt::sum(a * 2.0); })(f({3}));
                               kept.item<float>();
                             }});
  expect("kept and used in another trace",
         {ErrorKind::tracer, {"after its trace ended"}, [] {
            vt::vmap([](Tensor a) { return kept = a * 2.0; })(f({3}));
            vt::vmap([](Tensor a) { return a + kept; })(f({3}));
          }});
  expect("on another thread", {ErrorKind::tracer, {"another thread"}, [] {
                                 vt::vmap([](Tensor a) {
                                   std::string message;
                                   std::thread([&] {
                                     try {
                                       a + 1.0;
                                     } catch (const vt::Error& e) {
                                       message = e.what();
                                     }
                                   }).join();
                                   if (!message.empty())
                                     throw vt::Error(ErrorKind::tracer, message);
                                   return a;
                                 })(f({3}));
                               }});
  expect("abstract value", {ErrorKind::tracer, {"after its trace ended"}, [] {
                              vt::eval_shape([](Tensor a) { return a; }, f({3})) + 1.0;
                            }});
  const auto nothing = [](Tensor) { return Tensor(); };
  expect("empty result", {ErrorKind::tree, {"vt::jit", "result 0", "empty Tensor"}, [&] {
                            vt::jit(nothing)(f({3}));
                          }});
  expect("empty result of a lane", {ErrorKind::tree, {"vt::vmap", "result 0", "empty Tensor"}, [&] {
                                      vt::vmap(nothing)(f({3}));
                                    }});
  expect("empty value", {ErrorKind::tree, {"vt::grad", "result 0", "empty Tensor"}, [&] {
                           vt::grad(nothing)(f({}));
                         }});
  kept = Tensor();
}

TEST(Errors, trees_and_rules) {
  expect("tree_map", {ErrorKind::tree, {"vt::tree_map", "not built alike", "at [1]"}, [] {
                        (void)vt::tree_map([](Tensor a, Tensor b) { return a + b; },
                                           std::vector{std::vector{f({})}, {f({}), f({})}},
                                           std::vector{std::vector{f({})}, {f({})}});
                      }});
  expect("tree_map of others", {ErrorKind::tree, {"vt::tree_map", "2", "1"}, [] {
                                  (void)vt::tree_map([](Tensor a, Tensor b) { return a + b; },
                                                     std::vector{f({}), f({})}, f({}));
                                }});
  expect("custom_vjp",
         {ErrorKind::tree, {"vt::custom_vjp", "1", "2"}, [] {
            auto g = vt::custom_vjp(
                [](Tensor a, Tensor b) { return a * b; },
                [](Tensor a, Tensor b) { return std::pair(a * b, std::tuple(a, b)); },
                [](std::tuple<Tensor, Tensor> r, Tensor c) { return c * std::get<0>(r); });
            vt::grad([&](Tensor a, Tensor b) { return g(a, b); })(f({}), f({}));
          }});
  expect("graph arguments", {ErrorKind::tree, {"vt::Graph", "1"}, [] {
                               vt::make_graph([](Tensor a, Tensor b) { return a + b; })(
                                   f({2}), f({2}))(std::vector{f({2})});
                             }});
  expect("graph argument shape",
         {ErrorKind::shape, {"vt::Graph", "f32[3]", "f32[2]"}, [] {
            vt::make_graph([](Tensor a) { return a; })(f({2}))(std::vector{f({3})});
          }});
}

TEST(Errors, options_and_solvers) {
  const Tensor v = f({3}), image = f({8, 8, 1}), key = vt::random::key(1);
  const auto same = [](Tensor x) { return x; };
  expect("condition of nothing", {ErrorKind::shape,
                                  {"vt::linalg::cond", "the matrix is empty", "f32[0,0]"},
                                  [] { vt::linalg::cond(f({0, 0})); }});
  expect("no classes", {ErrorKind::shape,
                        {"vt::random::categorical", "no classes along axis 1", "f32[3,0]"},
                        [&] { (void)vt::random::categorical(key, f({3, 0})); }});
  expect("qr's mode",
         {ErrorKind::value,
          {"vt::qr: mode is neither \"reduced\" nor \"complete\" but \"Reduced\" (did you mean "
           "\"reduced\"?)"},
          [] { (void)vt::linalg::qr(f({2, 2}), "Reduced"); }});
  expect("norm's name", {ErrorKind::value,
                         {"vt::linalg::norm", "frob", "(did you mean \"fro\"?)"},
                         [] { (void)vt::linalg::norm(f({2, 2}), "frob"); }});
  expect("tridiagonal_solve", {ErrorKind::shape,
                               {"vt::tridiagonal_solve", "f32[3]", "f32[4]"},
                               [&] { (void)vt::tridiagonal_solve(v, v, v, f({4})); }});
  expect("tridiagonal_solve of a number", {ErrorKind::shape,
                                           {"vt::tridiagonal_solve", "axis", "f32[]"},
                                           [&] { (void)vt::tridiagonal_solve(v, v, v, f({})); }});
  expect("no window", {ErrorKind::value, {"vt::max_pool", "window", "f32[8,8,1]"}, [&] {
                         (void)vt::max_pool(image, {});
                       }});
  expect("layout", {ErrorKind::shape, {"vt::conv2d", "NCHW", "4 letters", "3 axes"}, [&] {
                      (void)vt::conv2d(image, f({3, 3, 1, 1}), {.layout = "NCHW"});
                    }});
  expect("window's function", {ErrorKind::shape, {"vt::reduce_window", "f32[2]"}, [&] {
                                 (void)vt::reduce_window(
                                     v, 0.0, [](Tensor a, Tensor b) { return vt::stack({a, b}); },
                                     {.window = {2}});
                               }});
  expect("size that depends on values", {ErrorKind::tracer, {"vt::unique", "size"}, [&] {
                                           vt::jit([](Tensor a) { return vt::unique(a); })(v);
                                         }});
  expect("nonzero of a lane", {ErrorKind::tracer, {"vt::nonzero", "size"}, [] {
                                 vt::vmap([](Tensor a) { return vt::nonzero(a)[0]; })(f({2, 3}));
                               }});
  expect("tolerance", {ErrorKind::value, {"vt::cg", "tolerance", "-1"}, [&] {
                         (void)vt::cg(same, v, vt::IterationOptions{.tolerance = -1});
                       }});
  expect("rounds", {ErrorKind::value, {"vt::newton", "max_iterations", "-1"}, [&] {
                      (void)vt::newton(same, v, {.max_iterations = -1});
                    }});
  expect("fixed point of another shape",
         {ErrorKind::shape, {"vt::fixed_point", "f32[]", "f32[3]"}, [&] {
            (void)vt::fixed_point([](Tensor x) { return vt::sum(x); }, v);
          }});
  expect("shuffle without a key", {ErrorKind::value,
                                   {"vt::Dataset", "vt::random::key", "f32[3]"},
                                   [&] { vt::Dataset(v).shuffle(v); }});
  expect("all of what never ends", {ErrorKind::value, {"vt::Dataset::to_vector", "never end"}, [&] {
                                      vt::Dataset(v).repeat().to_vector();
                                    }});
  expect("file that is missing", {ErrorKind::io, {"vt::load_npy", "missing.npy"}, [] {
                                    (void)vt::load_npy("missing.npy");
                                  }});
  expect("lanes of pfor", {ErrorKind::tracer, {"vt::pfor", "the index"}, [&] {
                             vt::pfor([&](Tensor i) { return v[i.item<int>()]; }, 3);
                           }});
}

// An exception of the user's own passes through whatever is open, and everything can be used again,
// the same function too.
TEST(Errors, thrown_by_the_function) {
  struct Mine {};
  bool armed = true;
  const Tensor x = vt::tensor({1.0, 2.0, 3.0});
  vt::Variable count(vt::tensor(0.0), "count");
  const auto square = [&](Tensor a) {
    count.assign_add(1.0);
    const Tensor b = a * a;
    if (armed) throw Mine{};
    return b;
  };
  const auto everywhere = [&](auto&& use) {
    armed = true;
    EXPECT_THROW(use(), Mine);
    EXPECT_EQ(count.read().item<double>(), 0.0);
    armed = false;
    const std::vector<double> all = use().template to_vector<double>();
    EXPECT_EQ(all.back(), 9.0);
    count.assign(0.0);
  };
  const auto jitted = vt::jit(square);
  everywhere([&] { return vt::vmap(square)(x); });
  everywhere([&] { return vt::jvp(square, x[2], x[0]).first; });
  everywhere([&] { return vt::vjp(square, x[2]).first; });
  everywhere(
      [&] { return vt::grad([&](Tensor a) { return vt::sum(square(a)) * a / 3.0; })(x[2]); });
  everywhere([&] { return jitted(x); });
  everywhere([&] { return vt::pfor([&](Tensor i) { return square(x[i]); }, 3); });
  everywhere([&] {
    return vt::scan([&](Tensor c, Tensor e) { return std::pair(c, square(e)); }, 0.0, x).second;
  });
  everywhere([&] { return vt::cond(x[0] > 0, square, [](Tensor a) { return a; }, x[2]); });
  everywhere([&] { return vt::while_loop([](Tensor a) { return a < 5.0; }, square, x[2]); });
  everywhere([&] { return vt::map(square, x); });
  everywhere([&] { return vt::jvp(vt::checkpoint(square), x[2], x[0]).first; });
  everywhere([&] {
    return vt::jit(vt::vmap(
        [&](Tensor a) { return vt::cond(a > 2, square, [](Tensor b) { return b; }, a); }))(x);
  });
  everywhere([&] {
    return vt::vmap([&](Tensor a) { return vt::vjp(square, a).first; }, {.axis_name = "i"})(x);
  });
  armed = true;
  EXPECT_THROW(vt::make_graph([&](Tensor a) { return a * (throw Mine{}, 1.0); })(x), Mine);
  EXPECT_THROW((void)vt::newton([&](Tensor a) { return a * (throw Mine{}, 1.0); }, x), Mine);
}

// What a kept program says does not depend on how long the caller keeps its texts.
TEST(Errors, texts_of_the_caller) {
  const auto named = vt::jit([](Tensor a, const char* name) { return std::pair(a + 1.0, name); });
  const auto viewed =
      vt::jit([](Tensor a, std::string_view name) { return std::pair(a + 1.0, name); });
  for (int i = 0; i < 2; ++i) {
    const std::string name(100, static_cast<char>('a'));
    EXPECT_EQ(named(f({2}), name.c_str()).second, name);
    std::string other = name;
    EXPECT_EQ(named(f({2}), other.c_str()).second, name);
    EXPECT_EQ(viewed(f({2}), std::string_view(other)).second, name);
    other.assign(100, 'x');
    EXPECT_EQ(named(f({2}), name.c_str()).second, name);
    EXPECT_EQ(viewed(f({2}), std::string_view(name)).second, name);
  }
  const char* none = nullptr;
  EXPECT_EQ(named(f({2}), none).second, nullptr);
  EXPECT_EQ(named(f({2}), "").second, std::string_view());
}

}  // namespace
