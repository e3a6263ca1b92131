// Every kind of type that is a tree, as users write them: what transforms make of it is what they
// make of its Tensors one by one, and the user's object stays as it is.
#include <gtest/gtest.h>

#include <unordered_map>
#include <variant>

#include <vt/vt.hpp>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::message;

void expect_near(const Tensor& actual, const Tensor& expected) {
  vt_test::expect_close(actual, expected, {.relative = 1e-12, .absolute = 1e-14});
}

// Each kind is made of weights and an offset, and tells them.

class Specialised {
 public:
  Specialised(Tensor w, Tensor b) : b_(std::move(b)), w_(std::move(w)) {}
  Tensor w() const { return w_; }
  Tensor b() const { return b_; }
  static std::vector<std::string> paths() { return {"weights", "offset"}; }

 private:
  friend vt::TreeMembers<Specialised>;
  [[maybe_unused]] int uses_ = 0;
  Tensor b_, w_;
};

class Pointers {
 public:
  Pointers(Tensor w, Tensor b) : w_(std::move(w)), b_(std::move(b)) {}
  Tensor w() const { return w_; }
  Tensor b() const { return b_; }
  static std::vector<std::string> paths() { return {"w_", "b_"}; }

 private:
  Tensor w_, b_;
  double scale_ = 2.0;

 public:
  static constexpr auto tree_members = std::tuple(&Pointers::w_, &Pointers::b_, &Pointers::scale_);
};

class Base {
 public:
  explicit Base(Tensor w) : w_(std::move(w)) {}
  Tensor w() const { return w_; }

 protected:
  Tensor w_;

 public:
  static constexpr auto tree_members = std::tuple(&Base::w_);
};
class Derived : public Base {
 public:
  Derived(Tensor w, Tensor b) : Base(std::move(w)), b_(std::move(b)) {}
  Tensor b() const { return b_; }
  static std::vector<std::string> paths() { return {"w_", "b_"}; }

 private:
  Tensor b_;

 public:
  static constexpr auto tree_members = std::tuple_cat(Base::tree_members, std::tuple(&Derived::b_));
};

struct Function {
  Function(Tensor w, Tensor b) : parts{std::move(w), std::move(b)} {}
  Tensor w() const { return parts[0]; }
  Tensor b() const { return parts[1]; }
  auto tree_members() { return std::tie(parts); }
  static std::vector<std::string> paths() { return {"[0][0]", "[0][1]"}; }
  Tensor parts[2];
};

struct Wide {
  Wide(Tensor w, Tensor b) : weights(std::move(w)), offset(std::move(b)) {}
  Tensor w() const { return weights; }
  Tensor b() const { return offset; }
  static std::vector<std::string> paths() { return {"weights", "offset"}; }
  int a0 = 0, a1 = 1, a2 = 2, a3 = 3, a4 = 4, a5 = 5, a6 = 6, a7 = 7, a8 = 8, a9 = 9, a10 = 10,
      a11 = 11, a12 = 12, a13 = 13, a14 = 14, a15 = 15, a16 = 16, a17 = 17, a18 = 18, a19 = 19;
  Tensor weights, offset;
  static constexpr auto tree_members = std::tuple(&Wide::weights, &Wide::offset, &Wide::a0);
};

struct Plain {
  Tensor weights, offset;
};
struct Shared {
  Shared(Tensor w, Tensor b)
      : part(std::make_shared<const Plain>(Plain{std::move(w), std::move(b)})) {}
  Tensor w() const { return part->weights; }
  Tensor b() const { return part->offset; }
  static std::vector<std::string> paths() { return {"part.weights", "part.offset"}; }
  std::shared_ptr<const Plain> part;
  std::shared_ptr<Tensor> none;
  static constexpr auto tree_members = std::tuple(&Shared::part, &Shared::none);
};

struct Layer {
  virtual ~Layer() = default;
  virtual Tensor weights() const = 0;
  virtual Tensor offset() const = 0;
  virtual std::vector<Tensor*> tree_members() = 0;
  virtual std::shared_ptr<Layer> clone() const = 0;
};
struct Dense : Layer {
  Dense(Tensor w, Tensor b) : w(std::move(w)), b(std::move(b)) {}
  Tensor weights() const override { return w; }
  Tensor offset() const override { return b; }
  std::vector<Tensor*> tree_members() override { return {&w, &b}; }
  std::shared_ptr<Layer> clone() const override { return std::make_shared<Dense>(*this); }
  Tensor w, b;
};
struct Polymorphic {
  Polymorphic(Tensor w, Tensor b) : layers{std::make_shared<Dense>(std::move(w), std::move(b))} {}
  Tensor w() const { return layers[0]->weights(); }
  Tensor b() const { return layers[0]->offset(); }
  static std::vector<std::string> paths() { return {"layers[0][0]", "layers[0][1]"}; }
  std::vector<std::shared_ptr<Layer>> layers;
  static constexpr auto tree_members = std::tuple(&Polymorphic::layers);
};

struct Variant {
  Variant(Tensor w, Tensor b) : part(Plain{std::move(w), std::move(b)}) {}
  Tensor w() const { return std::get<Plain>(part).weights; }
  Tensor b() const { return std::get<Plain>(part).offset; }
  static std::vector<std::string> paths() { return {"part.weights", "part.offset"}; }
  std::variant<Tensor, Plain, int> part;
  std::vector<bool> mask = {true, false, true};
  static constexpr auto tree_members = std::tuple(&Variant::part, &Variant::mask);
};

struct Unordered {
  Unordered(Tensor w, Tensor b) : map{{"v", std::move(b)}, {"a", std::move(w)}} {}
  Tensor w() const { return map.at("a"); }
  Tensor b() const { return map.at("v"); }
  static std::vector<std::string> paths() { return {"map[\"a\"]", "map[\"v\"]"}; }
  std::unordered_map<std::string, Tensor> map;
  static constexpr auto tree_members = std::tuple(&Unordered::map);
};

enum class Part { weights = 3, offset = 7 };
struct ByEnum {
  ByEnum(Tensor w, Tensor b) : map{{Part::offset, std::move(b)}, {Part::weights, std::move(w)}} {}
  Tensor w() const { return map.at(Part::weights); }
  Tensor b() const { return map.at(Part::offset); }
  static std::vector<std::string> paths() { return {"map[3]", "map[7]"}; }
  std::map<Part, Tensor> map;
  static constexpr auto tree_members = std::tuple(&ByEnum::map);
};

Tensor value(const Tensor& w, const Tensor& b, const Tensor& x) {
  return vt::sum(vt::square(vt::tanh(vt::matmul(x, w) + b)));
}
template <class T>
Tensor value_of(const T& t, const Tensor& x) {
  return value(t.w(), t.b(), x);
}

template <class T>
class TreeKinds : public testing::Test {
 protected:
  const Tensor w = vt_test::random_tensor(vt::f64, {3, 2}, 1),
               b = vt_test::random_tensor(vt::f64, {2}, 2),
               x = vt_test::random_tensor(vt::f64, {4, 3}, 3);
  const T tree{w, b};

  void expect_unchanged() const { expect(tree, w, b); }
  static void expect(const T& t, const Tensor& w, const Tensor& b) {
    expect_near(t.w(), w);
    expect_near(t.b(), b);
  }
};
using Kinds = testing::Types<Specialised, Pointers, Derived, Function, Wide, Shared, Polymorphic,
                             Variant, Unordered, ByEnum>;
TYPED_TEST_SUITE(TreeKinds, Kinds);

}  // namespace

template <>
struct vt::TreeMembers<Specialised> {
  static auto of(auto& s) { return std::tie(s.w_, s.b_); }
  static constexpr std::array names{"weights", "offset"};
};

TYPED_TEST(TreeKinds, HaveTheirLeavesAndPaths) {
  EXPECT_EQ(vt::tree_paths(this->tree), TypeParam::paths());
  const std::vector<Tensor> leaves = vt::tree_leaves(this->tree);
  ASSERT_EQ(leaves.size(), 2u);
  expect_near(leaves[0], this->w);
  expect_near(leaves[1], this->b);
  EXPECT_EQ(vt::tree_size(this->tree), 8);
  const std::string text = vt::tree_str(this->tree);
  EXPECT_NE(text.find(TypeParam::paths()[1] + ": "), std::string::npos) << text;
}

TYPED_TEST(TreeKinds, Gradients) {
  const auto [gw, gb] = vt::grad<0, 1>(value)(this->w, this->b, this->x);
  const auto gradient = vt::grad(value_of<TypeParam>);
  this->expect(gradient(this->tree, this->x), gw, gb);
  const auto jitted = vt::jit(gradient);
  const TypeParam first = jitted(this->tree, this->x);
  const TypeParam other = jitted(vt::tree_axpy(1.0, this->tree, this->tree), this->x);
  this->expect(first, gw, gb);  // what the second call gives is of its own
  const auto [hw, hb] = vt::grad<0, 1>(value)(this->w * 2, this->b * 2, this->x);
  this->expect(other, hw, hb);
  const auto [v, pull] = vt::vjp([](const TypeParam& t) { return t; }, this->tree);
  this->expect(pull(vt::tree_axpy(2.0, this->tree, this->tree)), this->w * 3, this->b * 3);
  this->expect(v, this->w, this->b);
  this->expect_unchanged();
}

TYPED_TEST(TreeKinds, LanesAndLoops) {
  const TypeParam lanes(vt::stack({this->w, this->w * 2}), vt::stack({this->b, this->b * 2}));
  const Tensor together =
      vt::vmap(value_of<TypeParam>, {.in_axes = {0, vt::unmapped}})(lanes, this->x);
  expect_near(together[0], value(this->w, this->b, this->x));
  expect_near(together[1], value(this->w * 2, this->b * 2, this->x));
  const auto step = [&](Tensor, const TypeParam& t) {
    return vt::tree_axpy(-0.1, vt::grad(value_of<TypeParam>)(t, this->x), t);
  };
  const TypeParam walked = vt::fori_loop(0, 2, step, this->tree);
  Tensor w = this->w, b = this->b;
  for (int i = 0; i < 2; ++i) {
    const auto [gw, gb] = vt::grad<0, 1>(value)(w, b, this->x);
    w = w - 0.1 * gw, b = b - 0.1 * gb;
  }
  this->expect(walked, w, b);
  this->expect(vt::cond(
                   vt::sum(this->x) > 1e9, [&] { return walked; }, [&] { return this->tree; }),
               this->w, this->b);
  this->expect_unchanged();
}

TYPED_TEST(TreeKinds, Jacobians) {
  const auto f = [](const TypeParam& t) { return vt::sum(t.w()) * t.b(); };
  const auto blocks = vt::tree_leaves(vt::jacobian(f)(this->tree));
  ASSERT_EQ(blocks.size(), 2u);
  const auto flat = [](Tensor w, Tensor b) { return vt::sum(w) * b; };
  const auto [jw, jb] = vt::jacobian<0, 1>(flat)(this->w, this->b);
  expect_near(blocks[0], jw);
  expect_near(blocks[1], jb);
  const auto of_tree = vt::tree_leaves(vt::jacobian([](const TypeParam& t) { return t; })(
      vt::tree_axpy(0.0, this->tree, this->tree)));
  ASSERT_EQ(of_tree.size(), 4u);
  expect_near(of_tree[3], vt::eye(2, vt::f64));
  const auto [y, dy] = vt::jvp(value_of<TypeParam>, std::tuple(this->tree, this->x),
                               std::tuple(this->tree, vt::zeros_like(this->x)));
  expect_near(dy, vt::tree_dot(vt::grad(value_of<TypeParam>)(this->tree, this->x), this->tree));
  this->expect_unchanged();
}

TYPED_TEST(TreeKinds, AsListsAndVectors) {
  auto [leaves, structure] = vt::tree_flatten(this->tree);
  EXPECT_EQ(structure.size(), 2u);
  EXPECT_EQ(structure.paths(), TypeParam::paths());
  this->expect(vt::tree_unflatten(structure, leaves), this->w, this->b);
  this->expect(vt::tree_unflatten(structure, std::vector{leaves[0] * 2, leaves[1]}), this->w * 2,
               this->b);
  EXPECT_EQ(message([&, s = structure] { (void)vt::tree_unflatten(s, {}, {}); }),
            "vt::tree_unflatten: 2 Tensors are wanted, not 0");
  const auto [vector, unravel] = vt::ravel_tree(this->tree);
  expect_near(vector, vt::concatenate({vt::ravel(this->w), this->b}));
  this->expect(unravel(vector * 3), this->w * 3, this->b * 3);
  expect_near(vt::tree_norm(this->tree), vt::norm(vector));
  expect_near(vt::tree_dot(this->tree, this->tree), vt::dot(vector, vector));
  this->expect(vt::tree_zeros_like(this->tree), vt::zeros_like(this->w), vt::zeros_like(this->b));
  this->expect(vt::tree_map([](Tensor a, Tensor c) { return a - c; }, this->tree, this->tree),
               vt::zeros_like(this->w), vt::zeros_like(this->b));
  this->expect_unchanged();
}

namespace {

/// Copies share what it lists: the user's object would change.
struct Handle {
  explicit Handle(Tensor w) : part(std::make_shared<Plain>(Plain{std::move(w), vt::ones({1})})) {}
  auto tree_members() { return std::tie(part->weights, part->offset); }
  std::shared_ptr<Plain> part;
};
TEST(TreeKindsOf, ClassesWhoseCopiesShareAreRefused) {
  const Handle h(vt::tensor({1.0, 2.0}));
  const auto f = [](const Handle& t) { return vt::sum(t.part->weights); };
  for (const auto& call : {std::function<void()>([&] { (void)vt::grad(f)(h); }),
                           std::function<void()>([&] { (void)vt::jit(f)(h); })})
    EXPECT_EQ(message(call),
              "vt: a copy of a class shares [0] with the object, which vt would change: let its "
              "copy constructor (and clone(), if it has one) copy what its list of tree members "
              "names");
  expect_near(h.part->weights, vt::tensor({1.0, 2.0}));
}

TEST(TreeKindsOf, AnObjectOfTwoPointersIsTwoLeaves) {
  using Pair = std::array<std::shared_ptr<Tensor>, 2>;
  const auto one = std::make_shared<Tensor>(vt::tensor({1.0, 2.0}));
  const Pair both{one, one};
  const auto f = [](const Pair& p) { return vt::sum(*p[0] * 3.0) + vt::sum(*p[1]); };
  for (const Pair& g : {vt::grad(f)(both), vt::jit(vt::grad(f))(both)}) {
    EXPECT_NE(g[0], g[1]);
    expect_near(*g[0], vt::tensor({3.0, 3.0}));
    expect_near(*g[1], vt::tensor({1.0, 1.0}));
  }
  expect_near(*one, vt::tensor({1.0, 2.0}));
}

struct Offset : Dense {
  using Dense::Dense;
  Tensor weights() const override { return Dense::weights() + 1.0; }
  std::shared_ptr<Layer> clone() const override { return std::make_shared<Offset>(*this); }
};
/// With a clone() that is its base's: an Offset without what it adds.
struct Sliced : Offset {
  using Offset::Offset;
  std::vector<Tensor*> tree_members() override { return {&w, &b, &more}; }
  Tensor more = vt::ones({2});
};
struct Unclonable : Dense {
  using Dense::Dense;
  std::shared_ptr<Layer> clone() const override { return nullptr; }
};
struct WithNull : Dense {
  using Dense::Dense;
  std::vector<Tensor*> tree_members() override { return {&w, nullptr}; }
  std::shared_ptr<Layer> clone() const override { return std::make_shared<WithNull>(*this); }
};
TEST(TreeKindsOf, ClonesAreOfTheSameClass) {
  using Any = std::shared_ptr<Layer>;
  const Tensor x = vt::tensor({1.0, 2.0});
  const auto f = [](const Any& l) { return vt::sum(l->weights()); };
  const auto expect = [&](const Any& l, const char* what) {
    for (const auto& use : {std::function<void()>([&] { (void)vt::grad(f)(l); }),
                            std::function<void()>([&] { (void)vt::jit(f)(l); }),
                            std::function<void()>([&] { (void)vt::ravel_tree(l); })})
      EXPECT_NE(message(use).find(what), std::string::npos) << what << ": " << message(use);
  };
  expect(std::make_shared<Unclonable>(x, x), "Unclonable gives nothing: each class behind a ");
  expect(std::make_shared<WithNull>(x, x), "pointer 1 of a class's list tree_members() is null");
  const Any sliced = std::make_shared<Sliced>(x, x);
  EXPECT_EQ(vt::tree_leaves(sliced).size(), 3u);
  expect(sliced, "Offset: each class behind a pointer to its base has a clone() of its own, { ");
  expect(sliced, "Sliced>(*this); }");
}

TEST(TreeKindsOf, TangentsAreBuiltAsArguments) {
  using Map = std::map<std::string, Tensor>;
  const Map at{{"bias", vt::tensor(1.0)}, {"weight", vt::tensor(10.0)}},
      other{{"bias", vt::tensor(1.0)}, {"scale", vt::tensor(0.0)}};
  const auto same = [](Map m) { return m; };
  const auto expect = [&](const char* start, const std::function<void()>& use) {
    EXPECT_NE(message(use).find(start), std::string::npos) << message(use);
  };
  const char* const unlike = ": the trees are not built alike: another size, key or alternative";
  expect(unlike, [&] { (void)vt::jvp(same, at, other); });
  expect(unlike, [&] { (void)vt::linearize(same, at).second(other); });
  expect(unlike, [&] { (void)vt::vjp(same, at).second(other); });
  expect_near(vt::jvp(same, at, at).second.at("weight"), vt::tensor(10.0));
  using Either = std::variant<Plain, std::pair<Tensor, Tensor>>;
  const auto square = [](Either e) { return std::get<0>(e).weights * std::get<0>(e).offset; };
  const Either plain(Plain{vt::tensor(2.0), vt::tensor(3.0)}),
      pair(std::pair(vt::tensor(2.0), vt::tensor(3.0)));
  expect(unlike, [&] { (void)vt::jvp(square, plain, pair); });
  expect_near(vt::jvp(square, plain, plain).second, vt::tensor(12.0));
  // Numbers may differ.
  const auto scaled = [](std::pair<Tensor, int> p) { return p.first * p.second; };
  expect_near(vt::jvp(scaled, std::pair(vt::tensor(2.0), 3), std::pair(vt::tensor(1.0), 0)).second,
              vt::tensor(3.0));
}

TEST(TreeKindsOf, IntegersAloneHaveNoDerivative) {
  const Tensor i = vt::tensor({1, 2});
  const auto f = [](Tensor x) { return x * 2.5; };
  const auto refused = [&](const std::function<void()>& use) {
    EXPECT_NE(message(use).find("argument 0 is i32[2], and only float and complex Tensors have "
                                "derivatives"),
              std::string::npos)
        << message(use);
  };
  refused([&] { (void)vt::vjp(f, i); });
  refused([&] { (void)vt::linearize(f, std::array{1, 2}); });
  refused([&] { (void)vt::jvp(f, i, i); });
  // Beside floats they are zeros.
  const auto both = [](Tensor x, Tensor k) { return x * k; };
  EXPECT_EQ(std::get<1>(vt::vjp(both, vt::ones({2}), i).second(vt::ones({2}))).to_vector<int>(),
            (std::vector{0, 0}));
}

TEST(TreeKindsOf, StructureSelectsTheProgram) {
  const Tensor x = vt::tensor({1.0, 2.0});
  using Any = std::shared_ptr<Layer>;
  const auto of_layer =
      vt::jit([](const Any& l) { return l ? vt::sum(l->weights()) : vt::zeros({}, vt::f64); });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(of_layer(Any(std::make_shared<Dense>(x, x))).item<double>(), 3.0);
    EXPECT_EQ(of_layer(Any(std::make_shared<Offset>(x, x))).item<double>(), 5.0);
    EXPECT_EQ(of_layer(Any()).item<double>(), 0.0);
  }
  using Either = std::variant<Tensor, std::pair<Tensor, int>>;
  const auto of_variant = vt::jit([](const Either& e) {
    return e.index() == 0 ? vt::sum(std::get<0>(e))
                          : vt::sum(std::get<1>(e).first) * std::get<1>(e).second;
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(of_variant(Either(x)).item<double>(), 3.0);
    EXPECT_EQ(of_variant(Either(std::pair(x, 2))).item<double>(), 6.0);
    EXPECT_EQ(of_variant(Either(std::pair(x, 5))).item<double>(), 15.0);
  }
  const auto of_bits = vt::jit([](Tensor t, std::vector<bool> bits) {
    return vt::sum(t) * static_cast<double>(bits.size() + (bits.empty() ? 0 : bits[0]));
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(of_bits(x, std::vector<bool>{}).item<double>(), 0.0);
    EXPECT_EQ(of_bits(x, std::vector<bool>{false}).item<double>(), 3.0);
    EXPECT_EQ(of_bits(x, std::vector<bool>{true}).item<double>(), 6.0);
  }
}

}  // namespace
