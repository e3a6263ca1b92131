// function: a function with a name, recorded once for each signature and called by one equation from then on.
#pragma once

#include <memory>
#include <string>

#include <vt/detail/signature.hpp>

namespace vt {

/// What `function` makes. Copies are the same function; any thread may call it.
template <class F>
class Named {
 public:
  Named(std::string name, F f, Where where)
      : f_(std::move(f)), where_(where), cache_(detail::new_shared<detail::FunctionCache>(std::move(name), where)) {}

  /// f(arguments…), as one equation.
  template <class... A>
  auto operator()(const A&... arguments) const {
    return detail::call_by_signature(*cache_, f_, where_, arguments...);
  }

 private:
  mutable F f_;
  Where where_;
  std::shared_ptr<detail::FunctionCache> cache_;
};

/// f as an ordinary callable on trees that is recorded once for each signature (dtypes and shapes of the Tensors, everything static)
/// and is one equation, `call[name=…]`, wherever it is called: a hundred calls are a hundred equations, whatever f is made of. Every
/// transform works on it once, and not for each call. What f captures belongs to what is recorded, as with jit; it cannot look at values.
/// Throws: Error if the name is empty.
template <class F>
Named<F> function(std::string name, F f, Where where = Where::here()) {
  return Named<F>(std::move(name), std::move(f), where);
}

}  // namespace vt
