// NestWriter: writes the text of a nest's kernel: its values, accesses and stages.
#pragma once

#include <string>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "epilogue_function.hpp"
#include "nest_source.hpp"
#include "source_writer.hpp"

namespace vt::detail::cuda {

class NestWriter : SourceWriter {
  using Kind = NestValue::Kind;

 public:
  NestWriter(const Nest& nest, const Mapping& mapping);
  std::string kernel(const std::string& name);
  // See sorted_updates_source.
  std::string updates(const SortedUpdates& u, bool join, const std::string& name);

  // See product_epilogue.
  ProductEpilogue epilogue(int buffer, std::int64_t columns);

 private:
  struct Part {
    Vec<int> stores, needed;
  };
  struct StageParts {
    Vec<int> reductions;
    Part body, after;
    SmallVec<int, 6> kept, reduced;
    bool folds = false, running = false;
  };

  // The kernel's parameters: buffers, `pointers`, extents, arguments and `number`.
  void head(const std::string& name, const std::string& pointers, const std::string& number);
  // Of buffer b, as a parameter.
  std::string pointer(std::size_t b) const;
  bool writes_over_operands() const;
  void synchronise();
  void prepare_local_arrays();
  std::string extent(int l) const;
  // Loop variables from a number of all their iterations, the last loop the fastest.
  void decompose(const std::string& of, const SmallVec<int, 6>& loops);
  void leave(const SmallVec<int, 6>& loops);
  std::string name(int v) const;
  std::string index(IndexId e) const;
  std::string expression(int id) const;
  void write(int v);
  // What no loop changes that is still to be opened.
  void hoist(const Vec<int>& values);
  void write_all(const Vec<int>& values);
  void bind(int v, const std::string& text);
  void bind_result(int reduction, const std::string& text);
  void store(const NestStore& s);
  void store_all(const Vec<int>& stores);
  StageParts parts_of(int k) const;
  std::string iterations(const SmallVec<int, 6>& loops) const;
  void stage(int k);
  // Are there more results than elements for each of them?
  bool per_thread(const StageParts& p) const;
  // One result of each of the stage's reductions, by `thread group` threads of which this is number
  // `member`.
  void reduce(int k, const StageParts& p, int thread_group, const std::string& member);
  void accumulate(const StageParts& p, int thread_group, bool chunks);
  // One more iteration of a reduction that is no fold.
  void add_iteration(int r, int thread_group, bool chunks);
  // Element-wise, some neighbours at a time: all that lies densely is read first and written last,
  // by one access each where the arrays begin at multiples of 16 bytes and there are as many
  // neighbours left.
  void neighbours();
  // Element-wise, a block for each square of 32 × 32 iterations of two loops: arrays that lie along
  // the first of them are read along it, and transposed in shared memory.
  void tiles();

  const NestLoop& loop(int l) const { return nest_.loops[l]; }
  const NestValue& value(int v) const { return nest_.values[v]; }
  std::string access(int buffer, IndexId at) const {
    return formatted("b{}, {}", buffer, index(at));
  }

  const Nest& nest_;
  const Mapping& mapping_;
  Vec<std::uint64_t> dependences_;
  Vec<char> known_, in_iteration_;
  Vec<std::string> read_as_;  // of loads that were made before: where the element is
  Vec<int> ready_stage_;
  std::uint64_t open_ = 0;
  int stages_done_ = 0;
};

}  // namespace vt::detail::cuda
