// jit: compile once per signature; make_graph and eval_shape: what a function records.
#pragma once

#include <memory>

#include <vt/detail/tree_function.hpp>

namespace vt {

/// A compiled function. Copies share their programs; any thread may call it.
template <class F>
class Jitted {
 public:
  Jitted(F f, Where where) : f_(std::move(f)), where_(where), cache_(std::make_shared<detail::JitCache>()) {}

  /// Traces and compiles on a new signature (dtypes and shapes of the Tensors, everything static), else runs the program.
  template <class... A>
  auto operator()(const A&... arguments) const {
    using Function = detail::TreeFunction<F, detail::Owned<A>...>;
    using Result = typename Function::Result;
    SmallVec<Tensor, 8> leaves;
    const detail::StaticKey key = signature(leaves, arguments...);
    std::unique_ptr<Function> g;  // only made when the function has to be traced
    std::shared_ptr<void> kept;
    const std::vector<Tensor> results = cache_->call(
        {leaves.data(), leaves.size()}, key,
        [&](std::span<const Tensor> tracers) {
          g = std::make_unique<Function>(f_, detail::own(arguments...));
          return (*g)(tracers);
        },
        [&]() -> std::shared_ptr<void> {
          auto result = std::make_shared<Result>(g->last());
          detail::for_each_leaf(*result, [](Tensor& t) { t = Tensor(); });
          return result;
        },
        kept, where_);
    Result result = *static_cast<const Result*>(kept.get());
    const Tensor* next = results.data();
    detail::assign_leaves(result, next);
    return result;
  }

  /// What runs for arguments like these, once they have been called: see vt::explain.
  template <class... A>
  std::string explain(const A&... arguments) const {
    SmallVec<Tensor, 8> leaves;
    const detail::StaticKey key = signature(leaves, arguments...);
    return cache_->explain({leaves.data(), leaves.size()}, key);
  }

 private:
  // The Tensors among the arguments, and everything else that decides the program.
  template <class... A>
  static detail::StaticKey signature(SmallVec<Tensor, 8>& leaves, const A&... arguments) {
    (append_leaves_of(leaves, arguments), ...);
    detail::StaticKey key;
    static constexpr char type_tag = 0;  // its address stands for the argument types
    detail::append_bytes(key, &type_tag);
    (append_one(key, arguments), ...);
    return key;
  }
  template <class T>
  static void append_leaves_of(SmallVec<Tensor, 8>& leaves, const T& argument) {
    if constexpr (!std::is_array_v<T>) detail::for_each_leaf(argument, [&](const Tensor& t) { leaves.push_back(t); });
  }
  template <class T>
  static void append_one(detail::StaticKey& key, const T& argument) {
    if constexpr (std::is_same_v<T, Tensor>) return;
    else if constexpr (std::is_array_v<T>) detail::append_text(key, argument);
    else detail::append_static(key, argument);
  }

  mutable F f_;
  Where where_;
  std::shared_ptr<detail::JitCache> cache_;
};

template <class F>
Jitted<F> jit(F f, Where where = Where::here()) {
  return Jitted<F>(std::move(f), where);
}

/// `explain(f)(args…)`: calls f and tells what ran: each kernel with the ops it fused, its loops, vector width, bytes and flops.
/// A function that is not jitted is jitted for it.
template <class F>
auto explain(const Jitted<F>& f) {
  return [f](const auto&... arguments) {
    static_cast<void>(f(arguments...));
    return f.explain(arguments...);
  };
}
template <class F>
auto explain(F f, Where where = Where::here()) {
  return explain(jit(std::move(f), where));
}

/// `make_graph(f)(args…)`: the Graph that f records on Tensors like these.
template <class F>
auto make_graph(F f, Where where = Where::here()) {
  return [f = detail::Callable(std::move(f)), where]<class... A>(const A&... arguments) {
    auto g = detail::tree_function(f, detail::own(arguments...));
    return detail::make_graph_flat(g.flat(), g.leaves(), where);
  };
}

/// The result's tree with Tensors that have only a shape and a dtype. Nothing is computed.
template <class F, class... A>
auto eval_shape(F f, const A&... arguments) {
  auto g = detail::tree_function(f, detail::own(arguments...));
  const std::vector<Tensor> out = detail::eval_shape_flat(g.flat(), g.leaves(), Where{});
  return g.rebuild(out);
}

}  // namespace vt
