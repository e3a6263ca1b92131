// What jit and named functions share: the signature of a call (the types of its Tensors and
// everything static), and calling by it.
#pragma once

#include <memory>

#include <vt/detail/tree_function.hpp>

namespace vt::detail {

template <class T>
void append_leaves_of(SmallVec<Tensor, 8>& leaves, const T& argument) {
  if constexpr (!std::is_array_v<T>)
    for_each_leaf(argument, [&](const Tensor& t) { leaves.push_back(t); });
}
template <class T>
void append_signature_of(std::string& key, const T& argument) {
  if constexpr (std::is_same_v<T, Tensor>) return;
  else append_static<std::decay_t<const T>>(key, argument);
}

/// Argument `index` for a message. Its type is compiled once, not for each function.
template <class T>
void describe_argument(NamedParts& parts, std::size_t index, const T& argument) {
  const std::string name = "argument " + std::to_string(index);
  if constexpr (std::is_array_v<T>) {
    parts.fixed.emplace_back(name, std::string(argument));
  } else if constexpr (std::is_same_v<T, Tensor>) {
    parts.leaves.push_back(name);
  } else {
    const auto named = [&](const std::string& path) {
      return path.empty() ? name : name + " " + path;
    };
    const std::size_t before = parts.fixed.size(), leaves = parts.leaves.size();
    append_parts(parts.fixed, "", argument);
    for (std::size_t i = before; i < parts.fixed.size(); ++i)
      parts.fixed[i].first = named(parts.fixed[i].first);
    append_leaf_paths(parts.leaves, "", argument);
    for (std::size_t i = leaves; i < parts.leaves.size(); ++i)
      parts.leaves[i] = named(parts.leaves[i]);
  }
}
template <class... A>
void describe_arguments(const void* const* arguments, NamedParts& parts) {
  std::size_t index = 0;
  (describe_argument(parts, index++, *static_cast<const A*>(*arguments++)), ...);
}

/// Everything but the Tensors among the arguments that decides what is recorded.
template <class... A>
StaticKey static_key_of(const A&... arguments) {
  StaticKey key;
  static constexpr char type_tag = 0;  // its address stands for the argument types
  append_bytes(key.bytes, &type_tag);
  (append_signature_of(key.bytes, arguments), ...);
  if constexpr (!(std::is_same_v<A, Tensor> && ...)) key.describe = describe_arguments<A...>;
  return key;
}
/// The Tensors among the arguments, and everything else that decides what is recorded.
template <class... A>
StaticKey signature_of(SmallVec<Tensor, 8>& leaves, const A&... arguments) {
  (append_leaves_of(leaves, arguments), ...);
  return static_key_of(arguments...);
}

/// The Tensors among the arguments, where they are.
template <class T>
void append_addresses_of(SmallVec<const Tensor*, 8>& leaves, const T& argument) {
  if constexpr (!std::is_array_v<T>)
    for_each_leaf(argument, [&](const Tensor& t) { leaves.push_back(&t); });
}

/// use(the Tensors among the arguments, their signature, f by its leaves, what keeps the static
/// part of its results).
template <class F, class Use, class... A>
auto with_signature(F& f, const Use& use, const A&... arguments) {
  using Traced = TreeFunction<F, Owned<A>...>;
  SmallVec<Tensor, 8> leaves;
  StaticKey key = signature_of(leaves, arguments...);
  const void* const all[] = {static_cast<const void*>(&arguments)..., nullptr};
  if constexpr (!(std::is_same_v<A, Tensor> && ...)) key.arguments = all;
  std::unique_ptr<Traced> g;  // only made when the function has to be traced
  const auto flat = [&](std::span<const Tensor> tracers) {
    g = std::make_unique<Traced>(f, own(arguments...));
    return (*g)(tracers);
  };
  const auto keep = [&]() -> std::shared_ptr<void> {
    return std::make_shared<typename Traced::Result>(hollow(g->last()));
  };
  return use(std::span<const Tensor>(leaves.data(), leaves.size()), key, flat, keep);
}

/// Runs the program for these arguments if it is known: JitCache::call_known with `results`.
template <class Results, class... A>
bool call_if_known(JitCache& cache, Results&& results, CallSite where, const A&... arguments) {
  SmallVec<const Tensor*, 8> leaves;
  (append_addresses_of(leaves, arguments), ...);
  return cache.call_known({leaves.data(), leaves.size()}, static_key_of(arguments...), results,
                          where);
}
template <class Result>
Result tree_of(KnownResults& known) {
  if constexpr (std::is_same_v<Result, Tensor>) return std::move(known.tensors[0]);
  else
    return with_leaves(*static_cast<const Result*>(known.kept.get()),
                       {known.tensors.data(), known.tensors.size()});
}

/// f(arguments…) by what `cache` keeps for their signature; f itself runs only if that is new.
template <class Cache, class F, class... A>
auto call_by_signature(Cache& cache, F& f, CallSite where, const A&... arguments) {
  using Result = typename TreeFunction<F, Owned<A>...>::Result;
  if constexpr (std::is_same_v<Cache, JitCache>) {
    KnownResults known;
    if (call_if_known(cache, known, where, arguments...)) return tree_of<Result>(known);
  }
  std::shared_ptr<void> kept;
  const auto results = with_signature(
      f, [&](const auto&... call) { return cache.call(call..., kept, where); }, arguments...);
  return with_leaves(*static_cast<const Result*>(kept.get()), {results.data(), results.size()});
}

}  // namespace vt::detail
