// Which functions that call themselves a Graph calls, directly or not.
#include "recursive_bodies.hpp"

#include <memory>

#include <vt/detail/function.hpp>

#include "../../trace/ir/recursive_function.hpp"

namespace vt::detail {

namespace recursions {

void each(Op op, const GraphBody& g, FunctionRef<void(const Equation&)> found) {
  for (const Equation& e : g.equations)
    if (e.op == op) found(e);
    else
      for (const GraphRef& body : bodies_of(e.params)) each(op, *body, found);
}
void each_call(const GraphBody& g, FunctionRef<void(const Equation&)> found) {
  each(Op::recursive_call, g, found);
}

// Of functions that lower_complex knows no real form of: only the interpreter runs them.
bool has_complex_values(const GraphBody& g) {
  return any_of(g.avals, [](const Aval& a) { return is_complex(a.dtype); }) ||
         any_of(g.equations, [](const Equation& e) {
           return any_of(bodies_of(e.params),
                         [](const GraphRef& body) { return has_complex_values(*body); });
         });
}

}  // namespace recursions

std::int64_t count_recursions(const GraphBody& g) {
  std::int64_t count = 0;
  recursions::each_call(g, [&](const Equation&) { ++count; });
  return count;
}

std::optional<Vec<RecursiveBody>> recursive_bodies(const GraphBody& g) {
  Vec<RecursiveBody> all;
  bool fits = true;
  const auto add = [&](const Equation& e) {
    const RecursiveFunction& f = *e.as<RecursionParams>().function;
    if (number_of(all, e) >= 0) return;
    fits = fits && f.body && !f.effects && !f.remembers;
    all.push_back({&f, f.body, f.users->name, f.max_depth});
  };
  recursions::each_call(g, add);
  for (std::size_t k = 0; k < all.size() && fits; ++k) {
    all[k].body = std::make_shared<const GraphBody>(simplify(*all[k].body, SimplifyFor::running));
    const GraphRef body = all[k].body;
    fits = !recursions::has_complex_values(*body);
    recursions::each_call(*body, add);
  }
  if (!fits) return std::nullopt;
  return all;
}

int number_of(const Vec<RecursiveBody>& all, const Equation& e) {
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].function == e.as<RecursionParams>().function) return static_cast<int>(k);
  return -1;
}

Vec<BufferRef> constants_in_memory(const GraphBody& g, const Vec<RecursiveBody>& functions) {
  constexpr std::int64_t most_in_code = 8;  // as many as a Graph's text shows
  Vec<BufferRef> all;
  const auto add = [&](const Equation& e) {
    const auto& p = e.as<ConstantParams>();
    if (p.aval.elements() > most_in_code && number_of(all, e) < 0) all.push_back(p.buffer);
  };
  recursions::each(Op::constant, g, add);
  for (const RecursiveBody& f : functions) recursions::each(Op::constant, *f.body, add);
  return all;
}

int number_of(const Vec<BufferRef>& all, const Equation& e) {
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].get() == e.as<ConstantParams>().buffer.get()) return static_cast<int>(k);
  return -1;
}

// Equations show no more than a function's name, and some of its body; of constants not which they
// are.
std::string text_of(const GraphBody& g, const Vec<RecursiveBody>& functions,
                    const Vec<BufferRef>& constants) {
  std::string text;
  const auto add = [&](const GraphBody& body) {
    text += to_text(body);
    recursions::each_call(body, [&](const Equation& e) {
      text += "calls " + std::to_string(number_of(functions, e)) + "\n";
    });
    recursions::each(Op::constant, body, [&](const Equation& e) {
      text += "constant " + std::to_string(number_of(constants, e)) + "\n";
    });
  };
  add(g);
  for (std::size_t k = 0; k < functions.size(); ++k) {
    text += "function " + std::to_string(k) + ", at most " +
            std::to_string(functions[k].max_depth) + " deep\n";
    add(*functions[k].body);
  }
  return text;
}

}  // namespace vt::detail
