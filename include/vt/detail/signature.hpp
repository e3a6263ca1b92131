// What jit and named functions share: the signature of a call (the types of its Tensors and everything static), and calling by it.
#pragma once

#include <memory>

#include <vt/detail/shared.hpp>
#include <vt/detail/tree_function.hpp>

namespace vt::detail {

template <class T>
void append_leaves_of(SmallVec<Tensor, 8>& leaves, const T& argument) {
  if constexpr (!std::is_array_v<T>) for_each_leaf(argument, [&](const Tensor& t) { leaves.push_back(t); });
}
template <class T>
void append_signature_of(StaticKey& key, const T& argument) {
  if constexpr (std::is_same_v<T, Tensor>) return;
  else append_static<std::decay_t<const T>>(key, argument);
}

/// The Tensors among the arguments, and everything else that decides what is recorded.
template <class... A>
StaticKey signature_of(SmallVec<Tensor, 8>& leaves, const A&... arguments) {
  (append_leaves_of(leaves, arguments), ...);
  StaticKey key;
  static constexpr char type_tag = 0;  // its address stands for the argument types
  append_bytes(key, &type_tag);
  (append_signature_of(key, arguments), ...);
  return key;
}

/// use(the Tensors among the arguments, their signature, f by its leaves, what keeps the static part of its results).
template <class F, class Use, class... A>
auto with_signature(F& f, const Use& use, const A&... arguments) {
  using Traced = TreeFunction<F, Owned<A>...>;
  SmallVec<Tensor, 8> leaves;
  const StaticKey key = signature_of(leaves, arguments...);
  Box<Traced> g;  // only made when the function has to be traced
  const auto flat = [&](std::span<const Tensor> tracers) {
    g = new_box<Traced>(f, own(arguments...));
    return (*g)(tracers);
  };
  const auto keep = [&]() -> std::shared_ptr<void> { return new_shared<typename Traced::Result>(hollow(g->last())); };
  return use(std::span<const Tensor>(leaves.data(), leaves.size()), key, flat, keep);
}

/// f(arguments…) by way of what `cache` keeps for their signature; f itself runs only where it is new.
template <class Cache, class F, class... A>
auto call_by_signature(Cache& cache, F& f, Where where, const A&... arguments) {
  using Check = CallCheck<F, Owned<A>...>;
  VT_ASSERT_CALL("vt::jit, vt::function", Check);
  if constexpr (!Check::holds) {
    return Refused();
  } else {
    using Result = typename TreeFunction<F, Owned<A>...>::Result;
    std::shared_ptr<void> kept;
    const std::vector<Tensor> results = with_signature(f, [&](const auto&... call) { return cache.call(call..., kept, where); }, arguments...);
    Result result = *static_cast<const Result*>(kept.get());
    const Tensor* next = results.data();
    assign_leaves(result, next);
    return result;
  }
}

}  // namespace vt::detail
