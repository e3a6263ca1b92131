// Functions of a register kernel that call themselves. Arguments and results are scalars in
// registers; arrays that are only read come as pointers. Some levels of calls are part of a
// function, which asks once for all of them whether depth or stack might end there; if so, another
// form of it, without such levels, asks at each call.
#include "register_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

namespace vt::detail::cpu::register_emission {

namespace recursion {

// Of code a function, all its levels together.
constexpr std::int64_t most_instructions = 1200;
constexpr int most_levels = 8;

int levels_of(const LaneForm& form) {
  std::int64_t sites = 0;
  for (const RecursiveBody& f : form.functions) sites = std::max(sites, count_recursions(*f.body));
  const std::int64_t cost = std::max<std::int64_t>(register_cost(form), 1);
  int levels = 0;
  for (std::int64_t copies = 1, all = 1; levels < most_levels; ++levels) {
    copies *= sites, all += copies;
    if (all * cost > most_instructions) break;
  }
  return levels;
}

}  // namespace recursion

void RegisterEmitter::declare_functions() {
  for (const RecursiveBody& f : form_.functions) {
    const GraphBody& g = *f.body;
    Vec<Value> args, results;
    const auto append = [&](Vec<Value>& to, const Aval& a) {
      for (std::int64_t i = 0; i < a.elements(); ++i) to.push_back({.dtype = a.dtype});
    };
    for (Var v : g.inputs)
      if (form_.in_registers(g.aval(v))) append(args, g.aval(v));
      else args.push_back({.pointer = true});
    args.push_back({.dtype = DType::i32});
    args.push_back({.pointer = true});
    for (Var v : g.outputs) append(results, g.aval(v));
    const std::string name = "recursion_" + std::to_string(functions_.size());
    functions_.push_back(
        {b_.declare_local(name, args, results), b_.declare_local(name + "_last", args, results)});
  }
}

void RegisterEmitter::define_functions() {
  const int levels = recursion::levels_of(form_);
  int least_depth = form_.functions[0].max_depth;
  for (const RecursiveBody& f : form_.functions) least_depth = std::min(least_depth, f.max_depth);
  for (std::size_t k = 0; k < functions_.size(); ++k) {
    const auto is_at = [&](Value depth, int most) {
      return b_.compare(Compare::ge, depth, b_.integer(DType::i32, most));
    };
    b_.define_local(functions_[k].usual, [&](const Vec<Value>& args) {
      const Value ends = b_.bit_or(is_at(args.end()[-2], least_depth - levels),
                                   b_.stack_beyond(b_.load_pointer(args.back(), 2)));
      return b_.if_else(
          ends, [&] { return b_.call_local(functions_[k].last, args); },
          [&] { return function_body(k, args, levels); });
    });
    b_.define_local(functions_[k].last, [&](const Vec<Value>& args) {
      const Value number = index_number(static_cast<std::int64_t>(k)), depth = args.end()[-2],
                  wide_depth = b_.convert(depth, DType::i64);
      b_.leave_if(is_at(depth, form_.functions[k].max_depth), "vt_leave_recursion",
                  {number, wide_depth, index_number(0)});
      b_.leave_if(b_.stack_beyond(b_.load_pointer(args.back(), 2)), "vt_leave_recursion",
                  {number, wide_depth, index_number(1)});
      return function_body(k, args, 0);
    });
  }
}

Elements RegisterEmitter::function_body(std::size_t number, const Vec<Value>& args, int levels) {
  const GraphBody& g = *form_.functions[number].body;
  objects_.clear();
  mask_ = {};
  level_ = 0;
  most_levels_ = levels;
  depth_ = b_.add(args.end()[-2], b_.integer(DType::i32, 1));
  calls_ = args.back();
  Vec<Val> inputs;
  const Value* next = args.begin();
  for (Var v : g.inputs) {
    const Aval& a = g.aval(v);
    if (form_.in_registers(a)) {
      inputs.push_back(Elements(next, next + a.elements()));
      next += a.elements();
      continue;
    }
    Object o;
    o.pointer = *next++;
    o.dtype = a.dtype;
    o.shape = a.shape;
    inputs.push_back(kept(o));
  }
  const Vec<Val> results = run(g, inputs);
  return flat(results, results.size());
}

Val RegisterEmitter::constant(const Equation& e) {
  const Aval& a = e.as<ConstantParams>().aval;
  Object o;
  o.pointer = b_.load_pointer(calls_, 3 + number_of(form_.constants, e));
  o.dtype = a.dtype;
  o.shape = a.shape;
  return form_.in_registers(a) ? elements_of(o) : kept(o);
}

Vec<Val> RegisterEmitter::call(const Equation& e, const Vec<Val>& operands) {
  const std::size_t number = number_of(form_.functions, e);
  const GraphBody& g = *form_.functions[number].body;
  if (level_ < most_levels_) {
    ++level_;
    Vec<Val> results = run(g, operands);
    --level_;
    return results;
  }
  Vec<Value> args;
  for (const Val& v : operands)
    if (!v.is_array()) args.append(v.elements().begin(), v.elements().end());
    else args.push_back(first_of(object(v)));
  args.push_back(b_.add(depth_, b_.integer(DType::i32, level_)));
  args.push_back(calls_);
  const Vec<Value> made = b_.call_local(functions_[number].usual, args);
  Vec<Val> results;
  const Value* next = made.begin();
  for (Var v : g.outputs) {
    const std::int64_t n = g.aval(v).elements();
    results.push_back(Elements(next, next + n));
    next += n;
  }
  return results;
}

}  // namespace vt::detail::cpu::register_emission

#endif  // VT_HAS_LLVM_HEADERS
