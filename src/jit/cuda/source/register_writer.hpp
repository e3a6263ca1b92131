// Writes the text of a register kernel: values, reads and writes, control flow.
#pragma once

#include <initializer_list>
#include <span>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/record/node.hpp"
#include "../../regions/register_kernel.hpp"
#include "element_source.hpp"
#include "source_writer.hpp"

namespace vt::detail::cuda::register_text {

/// A value: its elements, or a part of a buffer that begins at `start`. Elements are numbers or
/// variables of their own, so that those which only
/// move take no text: the compiler needs a quarter of the time that it takes for arrays.
struct Val {
  Vec<std::string> elements = {};
  /// that the elements are in, if they are: then places known at run time can be read
  std::string array = {};
  std::string start = {};
  DType dtype = DType::f32;
  std::int64_t count = 0;
  int buffer = -1;  ///< ≥ 0: in memory
};

class RegisterWriter : SourceWriter {
 public:
  explicit RegisterWriter(const LaneForm& form)
      : form_(form), graph_(form.lane), equation_(form.lane.equations[0]) {
    carries_ =
        equation_.op == Op::while_ ? static_cast<std::size_t>(equation_.as<WhileParams>().carries)
        : equation_.op == Op::scan ? static_cast<std::size_t>(equation_.as<ScanParams>().carries)
                                   : 0;
  }

  std::string kernel(const std::string& name);

 private:
  std::string fresh_name() { return formatted("x{}", ++names_); }
  /// A name for what a text computes.
  std::string named(DType d, const std::string& text);
  /// Variables to be written to.
  Val variables(DType d, std::int64_t count);
  /// The elements in an array of the thread's own.
  Val in_array(const Val& v);
  static Val empty(const Aval& a) { return {.dtype = a.dtype, .count = a.elements()}; }
  static const std::string& element(const Val& v, std::int64_t i) { return v.elements[i]; }

  // --- memory: where lanes are, and the elements of one lane in row-major order

  // Elements of a lane that lie together before those of the other lanes come; 0: the buffer is the
  // same for all.
  std::int64_t block_of(int buffer) const;
  std::string place(const Val& v, const std::string& at) const;
  std::string read(const Val& v, const std::string& at) const;
  void write(const Val& v, const std::string& at, const std::string& x);
  Val loaded(const Val& object);
  void store_all(const Val& object, const Val& v);
  // Does a warp bring these elements of its lanes through shared memory? Else each thread goes to
  // its own lane's, which lie apart.
  bool goes_in_tiles(const Val& object) const;
  std::int64_t tile_width(DType d) const { return size_of(d) > 4 ? 16 : 32; }
  std::string tile(const Val& object) const;

  // --- branches and loops

  void copy(const Val& to, const Val& from);
  // What is carried takes its next values all at once: a body may hand one carry on as another.
  void exchange(const Vec<Val>& carry, Vec<Val> next);
  Vec<Val> run(const GraphBody& g, const Vec<Val>& inputs);
  Vec<Val> control(const GraphBody& g, const Equation& e, const Vec<Val>& operands, bool outermost);
  Vec<Val> branch(const Equation& e, const Vec<Val>& operands);
  // Registers of the loop's own for what it carries.
  Vec<Val> carried(const Vec<Val>& operands, std::size_t carries);
  Vec<Val> loop_while(const Equation& e, const Vec<Val>& operands);
  Vec<Val> loop_scan(const GraphBody& g, const Equation& e, const Vec<Val>& operands,
                     bool outermost);

  // --- values

  std::string apply(Op op, DType dtype, const ParamsRef& params,
                    std::initializer_list<Operand> operands);
  Val value(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  Val leaf(const Equation& e, const Aval& out);
  Val reduced(const GraphBody& g, const Equation& e, const Val& x);
  Val position(const GraphBody& g, const Equation& e, const Val& x);
  Val running(const GraphBody& g, const Equation& e, const Val& x);
  Val product(const GraphBody& g, const Equation& e, const Vec<Val>& in);

  // --- places that are known at run time

  // The start along an axis as an i64, moved inside as the interpreter does.
  std::string clamped(const std::string& start, DType d, std::int64_t most);
  static std::int64_t stride_of(const Shape& shape, std::size_t axis);
  std::string start_of(const Shape& shape, const Shape& sizes, std::span<const Val> starts);
  // Distances of a window's elements from its first.
  static std::int64_t within(const Shape& shape, const Shape& sizes, std::int64_t k);
  Val dynamic_slice(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  // Where single elements can be read: in the memory that it is, or in an array of its own.
  Val at_places(const Val& x);
  // Where they can be overwritten: memory that a loop carries, or an array of its own.
  Val updated(const Val& x);
  Val dynamic_update_slice(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  // A place in the operand: what the window says, moved by the index vector; `inside`: a condition,
  // or nothing.
  struct Target {
    std::string place, inside;
  };
  Target target(const Shape& shape, const IndexedElement& at, IndexMode mode, const Val& indices);
  Val gathered(const GraphBody& g, const Equation& e, const Vec<Val>& in);
  Val scattered(const GraphBody& g, const Equation& e, const Vec<Val>& in);

  const LaneForm& form_;
  const GraphBody& graph_;  ///< as a lane sees it
  const Equation& equation_;
  std::size_t carries_ = 0;
  /// all threads of a warp with any lane go through the kernel, those beyond the last lane with
  /// that one
  bool tiles_ = false;
  int names_ = 0;
};

}  // namespace vt::detail::cuda::register_text
