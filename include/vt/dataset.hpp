// Datasets: examples from memory or files, shuffled, mapped and batched when asked for.
#pragma once

#include <iterator>
#include <memory>
#include <string>

#include <vt/control.hpp>
#include <vt/jit.hpp>

namespace vt {

/// Options of load_csv.
struct CsvOptions {
  DType dtype = default_dtype();
  char separator = ',';
  bool header = false;              ///< the first row holds names, not numbers
  Param<std::int64_t> columns = 0;  ///< that every row must have; 0: as many as the first one
};
/// The numbers of a text file with one row a line; empty lines and spaces around numbers (tabs too,
/// unless they separate) are skipped. Integers are read exactly, 9007199254740993.0 and 2e3 among
/// them; floats are rounded to the nearest, which beyond the largest is an infinity and below the
/// smallest 0.
/// Shapes: [rows, columns]. Throws: Error(io) that names file and row: no such file, no rows, a row
/// of another length, no number.
[[nodiscard]] Tensor load_csv(const std::string& path, CsvOptions options = {},
                              CallSite where = CallSite::here());

/// Options of Dataset::batch.
struct BatchOptions {
  bool drop_remainder = false;  ///< leave out a last batch that is not full
};
/// Options of Dataset::progress.
struct ProgressOptions {
  std::string label = "vt";
  Param<double> interval = 0.2;  ///< seconds between two updates of the line on stderr
};

namespace detail {

using ElementLeaves = std::vector<Tensor>;

/// A running pass. `next` gives the leaves of the next element, or false at the end.
class LeafStream {
 public:
  virtual ~LeafStream() = default;
  virtual bool next(ElementLeaves& out) = 0;
};

/// A dataset without its type: how its elements come about.
struct DatasetPlan;
using PlanRef = std::shared_ptr<const DatasetPlan>;

PlanRef rows_plan(std::span<const Tensor> arrays, CallSite);
PlanRef shuffled_plan(const PlanRef&, const Tensor& key, CallSite);
PlanRef taken_plan(const PlanRef&, std::int64_t skip, std::int64_t take, CallSite);
PlanRef sharded_plan(const PlanRef&, std::int64_t count, std::int64_t index, CallSite);
PlanRef repeated_plan(const PlanRef&, std::int64_t times, CallSite);
PlanRef mapped_plan(const PlanRef&, FlatFunction f, CallSite);
PlanRef batched_plan(const PlanRef&, std::int64_t size, const BatchOptions&, CallSite);
PlanRef prefetched_plan(const PlanRef&, std::int64_t elements, CallSite);
PlanRef progress_plan(const PlanRef&, const ProgressOptions&);
std::unique_ptr<LeafStream> open_stream(const PlanRef&);
/// −1: without end.
std::int64_t length_of(const PlanRef&);
std::string text_of(const PlanRef&);
/// Tensors of the shapes that elements have, to record a function on.
ElementLeaves element_shapes(const PlanRef&);

}  // namespace detail

/// A sequence of trees: `for (const auto& [x, y] :
/// data.shuffle(key).map(augment).batch(64).prefetch(2))`. A dataset is a recipe and is never
/// changed; every pass over it gives the same elements. map is written for one example: where a
/// batch follows, examples are put in batches first and the function is vectorized and compiled for
/// a batch.
template <class T = Tensor>
class Dataset {
 public:
  /// Examples along axis 0 of every Tensor of the tree.
  /// Throws: Error if there is no Tensor, or one is a scalar or of another length.
  explicit Dataset(const T& arrays, CallSite where = CallSite::here()) : like_(arrays) {
    using Check = detail::TreesCheck<T>;
    VT_ASSERT_CALL("vt::Dataset", Check);
    if constexpr (Check::holds) {
      static_assert(detail::holds_tensor<T>(),
                    "vt::Dataset: the examples hold no vt::Tensor: write vt::tensor(values)");
      plan_ = detail::rows_plan(tree_leaves(arrays), where);
      like_ = detail::hollow(arrays);
    }
  }

  /// The number of elements; −1 if they never end.
  std::int64_t size() const { return detail::length_of(plan_); }
  /// How the elements are made, one step a line.
  std::string str() const { return detail::text_of(plan_); }

  /// In an order drawn with the key: another one in each repetition, the same in each pass.
  Dataset shuffle(const Tensor& key, CallSite where = CallSite::here()) const {
    return {detail::shuffled_plan(plan_, key, where), like_};
  }
  /// The first `count`; −1: all.
  Dataset take(Param<std::int64_t> count, CallSite where = CallSite::here()) const {
    return {detail::taken_plan(plan_, 0, count, where), like_};
  }
  /// All but the first `count`.
  Dataset skip(Param<std::int64_t> count, CallSite where = CallSite::here()) const {
    return {detail::taken_plan(plan_, count, -1, where), like_};
  }
  /// So many times over; −1: without end.
  Dataset repeat(Param<std::int64_t> times = -1, CallSite where = CallSite::here()) const {
    return {detail::repeated_plan(plan_, times, where), like_};
  }
  /// Of every `count` elements in a row the one number `index`: what one of `count` processes sees.
  /// All parts are of one length: a remainder of fewer than `count` elements is left out. Batches
  /// of B / count elements of all parts together hold what those of B elements hold without:
  /// `data.shuffle(key).shard(mesh.size("data"), mesh.index("data")).batch(B / mesh.size("data"))`.
  /// Throws: Error (value) unless 0 ≤ index < count.
  Dataset shard(Param<std::int64_t> count, Param<std::int64_t> index,
                CallSite where = CallSite::here()) const {
    return {detail::sharded_plan(plan_, count, index, where), like_};
  }
  /// f of each element. f is recorded (it sees one element, and may take the parts of a tuple or
  /// pair), and compiled.
  template <class F>
  auto map(F f, CallSite where = CallSite::here()) const {
    using Result = detail::GivenByCarry<F, T>;
    constexpr bool called = !std::is_same_v<Result, detail::NotCallable>;
    static_assert(detail::same_type<F, T, called>,
                  "vt::Dataset::map: the function cannot be called with an element, whole or in "
                  "parts: compare its parameters with the type of the elements, Dataset<T>");
    using Check = detail::ResultCheck<std::conditional_t<called, Result, Tensor>>;
    VT_ASSERT_CALL("vt::Dataset::map", Check);
    if constexpr (!called || !Check::holds) {
      return detail::Refused();
    } else {
      const auto on_tree = [function = detail::Callable(std::move(f))](const T& element) {
        return detail::call_on_carry(function, element);
      };
      const T example = detail::with_leaves(like_, detail::element_shapes(plan_));
      const Result like = detail::hollow(eval_shape(on_tree, example, where));
      const T own = like_;
      detail::FlatFunction flat = [on_tree, own](std::span<const Tensor> leaves) {
        return tree_leaves(on_tree(detail::with_leaves(own, leaves)));
      };
      return Dataset<Result>(detail::mapped_plan(plan_, std::move(flat), where), like);
    }
  }
  /// Elements in groups of `size`, along a new axis 0 of every Tensor.
  Dataset batch(Param<std::int64_t> size, BatchOptions options = {},
                CallSite where = CallSite::here()) const {
    return {detail::batched_plan(plan_, size, options, where), like_};
  }
  /// Makes up to so many elements ahead, on a thread of their own.
  Dataset prefetch(Param<std::int64_t> elements, CallSite where = CallSite::here()) const {
    return {detail::prefetched_plan(plan_, elements, where), like_};
  }
  /// Shows on stderr, in one line, how far a pass over this is. Nothing is ever printed without it.
  Dataset progress(ProgressOptions options = {}) const {
    return {detail::progress_plan(plan_, options), like_};
  }

  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;

    Iterator(std::unique_ptr<detail::LeafStream> stream, const T& like)
        : stream_(std::move(stream)), element_(like) {
      ++*this;
    }
    const T& operator*() const { return element_; }
    const T* operator->() const { return &element_; }
    Iterator& operator++() {
      detail::ElementLeaves leaves;
      if (stream_->next(leaves)) element_ = detail::with_leaves(std::move(element_), leaves);
      else stream_ = {};
      return *this;
    }
    friend bool operator==(const Iterator& i, std::default_sentinel_t) { return !i.stream_; }

   private:
    std::unique_ptr<detail::LeafStream> stream_;
    T element_;
  };
  Iterator begin() const { return Iterator(detail::open_stream(plan_), like_); }
  std::default_sentinel_t end() const { return {}; }

  /// All elements of one pass. Throws: Error if they never end.
  std::vector<T> to_vector(CallSite where = CallSite::here()) const {
    if (size() < 0)
      detail::fail(ErrorKind::value,
                   "vt::Dataset::to_vector: the elements never end; take some of them first",
                   where);
    std::vector<T> all;
    for (const T& element : *this) all.push_back(element);
    return all;
  }

 private:
  template <class>
  friend class Dataset;
  Dataset(detail::PlanRef plan, T like) : plan_(std::move(plan)), like_(std::move(like)) {}

  detail::PlanRef plan_;
  T like_;  ///< without its Tensors
};

}  // namespace vt
