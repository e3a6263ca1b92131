// Pieces of the printer that the checker shows faults with:
// names of Vars and the text of one equation.
#pragma once

#include <string>
#include <string_view>

#include <vt/detail/small_vec.hpp>

#include "graph.hpp"

namespace vt::detail::printer {

/// Short names of a Graph's Vars, in order of definition: a, b, … z, aa, ab … A Var that nothing
/// defines is "?17". A number (a `full` without axes) has no name: it stands where it is read.
class Names {
 public:
  enum class Numbers { inlined, named };
  explicit Names(const GraphBody&, Numbers = Numbers::inlined);
  std::string operator()(Var) const;  ///< "a", "0.5:f32[]"
  std::string typed(Var) const;       ///< "a:f32[3]", "0.5:f32[]"
  /// The number that the Var is, or nothing.
  const Equation* number(Var) const;
  bool is_number(const Equation& e) const { return e.op == Op::full && number(e.outputs[0]) == &e; }
  /// What the equation reads: " a 0.5". A number shows its dtype where the operands do not.
  std::string operands(const Equation&) const;

 private:
  void add(Var);
  const GraphBody& graph_;
  Vec<int> index_;
  Vec<const Equation*> numbers_;
  int next_ = 0;
};

/// "c:f32[3] = mul a b"
std::string equation_text(const Equation&, const Names&);
/// "  # file.cpp:12", or nothing when the line is not known.
std::string line_text(CallSite);
/// Elements as NumPy prints them; with a specification of fmt's ("+.3f") each is written so.
std::string value_text(const Aval&, const void* data, std::string_view specification = {});
/// " in lane 3", or of lanes of lanes " in lane (2, 0)".
std::string lane_text(std::span<const std::int64_t> lane);
/// … ", which began with 70, f32[5]", without lanes ", beginning with 70, f32[5]": arguments of one
/// lane, `data(i)` of the i-th one.
std::string lane_text(std::span<const std::int64_t> lane, std::span<const Aval> arguments,
                      FunctionRef<const void*(std::size_t)> data);
std::string lane_text(const Lanes&, std::int64_t lane, std::span<const Aval> arguments,
                      FunctionRef<const void*(std::size_t)> data);

}  // namespace vt::detail::printer
