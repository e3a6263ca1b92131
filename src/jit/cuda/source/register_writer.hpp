// Writes the text of a register kernel: values, reads and writes, control flow.
#pragma once

#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/record/node.hpp"
#include "../../regions/register_kernel.hpp"
#include "../../regions/register_lowering.hpp"
#include "element_source.hpp"
#include "source_writer.hpp"

namespace vt::detail::cuda::register_text {

using Val = SmallArray<Operand>;

/// Where elements of a value lie, from `start` on: a buffer of the kernel, or an array of the
/// thread's own.
struct Object {
  DType dtype = DType::f32;
  std::int64_t count = 0;
  int buffer = -1;  ///< −1: the array
  std::string array = {}, start = "0";
};

/// Elements are numbers or variables of their own, so that those which only move take no text: the
/// compiler needs a quarter of the time that it takes for arrays.
class RegisterWriter : SourceWriter, SmallArrays<RegisterWriter, Operand> {
 public:
  explicit RegisterWriter(const LaneForm& form)
      : form_(form),
        graph_(form.lane),
        equation_(form.lane.equations[0]),
        carries_(carries_of(equation_)) {}

  std::string kernel(const std::string& name);

 private:
  friend class SmallArrays<RegisterWriter, Operand>;

  std::string fresh_name() { return formatted("x{}", ++names_); }
  /// A name for what a text computes.
  Operand named(DType d, const std::string& text);
  /// Variables to be written to.
  Val variables(DType d, std::size_t count);
  Val kept(Object o);
  const Object& object(const Val& v) const {
    return objects_[v.is_array() ? v.object() : v.memory()];
  }
  /// The elements in an array of the thread's own.
  Val in_array(const Elements& all);

  // --- memory: where lanes are, and the elements of one lane in row-major order

  const Aval& aval_of(int buffer) const;
  Object object_for(std::size_t buffer) const;
  // Elements of a lane that lie together before those of the other lanes come; 0: the buffer is the
  // same for all.
  std::int64_t block_of(int buffer) const;
  std::string place(const Object& o, const std::string& at) const;
  std::string read(const Object& o, const std::string& at) const;
  Val loaded(const Object& o);
  void store_all(const Object& o, const Val& v);
  // Does a warp bring these elements of its lanes through shared memory? Else each thread goes to
  // its own lane's, which lie apart.
  bool goes_in_tiles(const Object& o) const;
  std::int64_t tile_width(DType d) const { return size_of(d) > 4 ? 16 : 32; }
  std::string tile(const Object& o) const;

  // --- branches and loops

  void copy(const Val& to, const Val& from);
  // What is carried takes its next values all at once: a body may hand one carry on as another.
  void exchange(const Vec<Val>& carry, Vec<Val> next);
  Vec<Val> run(const GraphBody& g, const Vec<Val>& inputs);
  Vec<Val> control(const Equation& e, const Vec<Val>& operands, bool outermost);
  Vec<Val> branch(const Equation& e, const Vec<Val>& operands);
  // Registers of the loop's own for what it carries.
  Vec<Val> carried(const Vec<Val>& operands, std::size_t carries);
  Vec<Val> loop_while(const Equation& e, const Vec<Val>& operands);
  Vec<Val> loop_scan(const Equation& e, const Vec<Val>& operands, bool outermost);

  // --- numbers, for SmallArrays

  static Operand constant(const Scalar& x);
  static bool is_constant(const Operand& x) { return x.known == x.known; }
  static bool is_number(const Operand& x, double number);
  static bool is_same(const Operand& x, const Operand& y) { return x.text == y.text; }
  Operand apply(Op op, DType dtype, const ParamsRef& params, const Operands& operands,
                std::int64_t uses = 0) const;
  Operand multiply_add(const Operand& x, const Operand& y, const Operand& sum) const;
  Operand chosen(const Operand& mask, const Operand& x, const Operand& y) const;
  Operand keep(const Operand& x) { return x.may_repeat ? x : named(x.dtype, x.text); }
  static Operand further(const Operand& place, std::int64_t by);
  static Operand further(const Operand& place, const Operand& index, std::int64_t stride);
  Val readable(const Val& x);
  Operand element_at(const Val& x, const Operand& place, std::int64_t by) const {
    return {read(object(x), further(place, by).text), object(x).dtype};
  }
  // Memory that a loop carries, or an array of its own.
  Val updatable(const Val& x);
  void put(const Val& to, const Operand& place, std::int64_t by, const Operand& inside, Op op,
           const Operand& x);

  const LaneForm& form_;
  const GraphBody& graph_;  ///< as a lane sees it
  const Equation& equation_;
  const std::size_t carries_;
  Vec<Object> objects_;
  /// all threads of a warp with any lane go through the kernel, those beyond the last lane with
  /// that one
  bool tiles_ = false;
  int names_ = 0;
};

}  // namespace vt::detail::cuda::register_text
