// Tensor: an immutable n-dimensional value, cheap to copy; how to make one and read its numbers.
#pragma once

#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vt/detail/loops.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/dtype.hpp>
#include <vt/error.hpp>
#include <vt/shape.hpp>

namespace vt {

class Tensor;
class TensorIterator;
class Graph;
struct Index;
struct Operand;
struct PrintStyle;
struct ReduceOptions;
struct VarOptions;
struct ArgOptions;

/// C++ numbers, which are weak scalars: bool, integers, float, double and std::complex of these
/// two. long double is none, as no Tensor holds it, nor are wchar_t and char8_t … char32_t.
template <class T>
concept Number = (std::integral<T> && !detail::Character<T>) || std::same_as<T, float> ||
                 std::same_as<T, double> || detail::ComplexElement<T>;
/// C++ types that are elements of Tensors: the Numbers, Float16 and BFloat16.
template <class T>
concept Element = Number<T> || std::same_as<T, Float16> || std::same_as<T, BFloat16>;

/// Where a Tensor lives. `cpu()` is the host.
struct Device {
  enum class Kind : std::uint8_t { cpu, cuda } kind = Kind::cpu;
  int index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};
[[nodiscard]] constexpr Device cpu() { return {Device::Kind::cpu, 0}; }
[[nodiscard]] constexpr Device cuda(Param<int> index = 0) { return {Device::Kind::cuda, index}; }
/// Where work goes that has no operand on a device yet: the host, or what VT_BACKEND=cuda or
/// `set_default_device` says. Operands on the host are copied to a default device as they are used.
[[nodiscard]] Device default_device();
/// Throws: Error(backend) if nothing can run there.
void set_default_device(Device device, CallSite where = CallSite::here());

/// A half-open range of indices of one axis, `start:stop:step`, with Python's rules for negative
/// and missing ends.
struct Slice {
  std::optional<std::int64_t> start, stop;
  std::int64_t step = 1;
};
/// vt::slice(stop), vt::slice(start, stop), vt::slice(start, stop, step); std::nullopt leaves an
/// end open. vt::slice() is the whole axis.
[[nodiscard]] inline Slice slice() { return {}; }
[[nodiscard]] inline Slice slice(std::optional<Param<std::int64_t>> stop) {
  return {std::nullopt, stop, 1};
}
[[nodiscard]] inline Slice slice(std::optional<Param<std::int64_t>> start,
                                 std::optional<Param<std::int64_t>> stop,
                                 Param<std::int64_t> step = 1) {
  return {start, stop, step};
}

namespace detail {

struct Node;
// What vt itself reads and makes of a Tensor; defined in src/trace/record/node.hpp.
Node* node_of(const Tensor&);
int output_of(const Tensor&);
Tensor adopted(Node* node, int output);
void forget(Tensor&);
/// The part of a Node that copying a Tensor touches.
struct NodeCount {
  std::atomic<std::uint32_t> references{1};
};
void destroy_node(NodeCount*) noexcept;
template <class T>
struct AfterComma;
inline void retain(NodeCount* n) noexcept { n->references.fetch_add(1, std::memory_order_relaxed); }
inline void release(NodeCount* n) noexcept {
  // The last holder needs no atomic update: nobody else can take a reference.
  if (n->references.load(std::memory_order_acquire) == 1 ||
      n->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    destroy_node(n);
}

/// A number with its element type: what `full` fills with, and what a weak scalar holds.
struct Scalar {
  DType dtype = DType::f64;
  union {
    double real;            // float and complex dtypes
    std::int64_t integer;   // signed, bool
    std::uint64_t natural;  // unsigned
  };
  double imaginary = 0;  // complex dtypes
  Scalar() : real(0) {}
  template <Element T>
  Scalar(T v) : dtype(dtype_of<T>()) {
    if constexpr (ComplexElement<T>) {
      real = v.real();
      imaginary = v.imag();
    } else if constexpr (std::is_floating_point_v<T> || !std::is_arithmetic_v<T>)
      real = static_cast<double>(
          static_cast<std::conditional_t<std::is_arithmetic_v<T>, T, float>>(v));
    else if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>) natural = v;
    else integer = v;
  }
  /// The nearest value of `to`, as `convert` would give (float → integer truncates and saturates,
  /// NaN → 0; of a complex number the real part).
  Scalar converted(DType to) const;
  double to_double() const {
    return is_inexact(dtype)    ? real
           : is_unsigned(dtype) ? static_cast<double>(natural)
                                : static_cast<double>(integer);
  }
  bool is_value(double v) const { return to_double() == v && imaginary == 0; }
  friend bool operator==(const Scalar& a, const Scalar& b) {
    return a.dtype == b.dtype && a.natural == b.natural &&
           std::bit_cast<std::uint64_t>(a.imaginary) == std::bit_cast<std::uint64_t>(b.imaginary);
  }
};

/// Dense matrices, arrays and expressions of Eigen, known by what they offer.
template <class T>
concept EigenObject = requires(const T& m) {
  typename T::PlainObject;
  typename T::Scalar;
  m.derived();
  m.colwise();
};
/// Those that hold their elements: matrices and arrays.
template <class T>
concept EigenPlain = EigenObject<T> && std::same_as<typename T::PlainObject, T>;
/// How Eigen's objects become Tensors and Tensors those; vt/eigen.hpp has it.
template <class M, bool = true>
struct EigenAccess {
  static constexpr bool is_included = false;
};

Tensor make_weak(Scalar);
Tensor from_host(const void* data, DType, const Shape&, bool copy, CallSite);
/// The line that made it.
CallSite line_of(const Tensor&);
const void* host_data(const Tensor&, DType wanted, CallSite, const char* function);
bool truth_of(const Tensor&);
}  // namespace detail

/// An immutable value of one dtype and shape: elements in row-major order. Copies are cheap and
/// share the elements. Operations on it are recorded, and run when a value is asked for.
class Tensor {
 public:
  /// An empty handle; every op on it is an error. `defined()` tells.
  Tensor() = default;
  /// A weak scalar: in an operation it takes the other operand's dtype.
  template <Number T>
  Tensor(T value) : Tensor(detail::make_weak(detail::Scalar(value))) {}

  Tensor(const Tensor& other) noexcept : node_(other.node_), output_(other.output_) {
    if (node_) detail::retain(node_);
  }
  Tensor(Tensor&& other) noexcept
      : node_(std::exchange(other.node_, nullptr)), output_(other.output_) {}
  Tensor& operator=(Tensor other) & noexcept {
    std::swap(node_, other.node_);
    std::swap(output_, other.output_);
    return *this;
  }
  template <class T>
  Tensor& operator=(const T&) && {
    static_assert(!sizeof(T),
                  "vt: assignment to an element or another temporary changes nothing: write x = "
                  "vt::at(x, index).set(value)");
    return *this;
  }
  ~Tensor() {
    if (node_) detail::release(node_);
  }

  /// false for the empty handle.
  bool defined() const { return node_ != nullptr; }

  /// Shape, dtype, number of axes, number of elements. Under vmap those of one lane. Throws: Error
  /// if the Tensor is empty.
  const Shape& shape(CallSite where = CallSite::here()) const&;
  Shape shape(CallSite where = CallSite::here()) const&& { return shape(where); }
  DType dtype(CallSite where = CallSite::here()) const;
  int rank(CallSite where = CallSite::here()) const { return shape(where).rank(); }
  std::int64_t size(CallSite where = CallSite::here()) const { return shape(where).elements(); }
  /// Extent of one axis; negative counts from the end.
  std::int64_t dim(Param<int> axis, CallSite where = CallSite::here()) const;

  /// The single element, converted to T. Forces evaluation. Throws: Error if there is not exactly
  /// one element, or if the value is not known yet (under jit or vmap).
  template <Element T>
  T item(CallSite where = CallSite::here()) const;
  /// All elements in row-major order, converted to T. Forces evaluation. Throws: Error(memory) if
  /// there is no room for them.
  template <Element T>
  std::vector<T> to_vector(CallSite where = CallSite::here()) const;
  /// Read-only view of the elements; T must be the dtype's own type. Forces evaluation; valid while
  /// this Tensor lives.
  template <Element T>
  std::span<const T> data(CallSite where = CallSite::here()) const&;
  template <Element T>
  std::span<const T> data(CallSite = CallSite::here()) const&& {
    static_assert(!sizeof(T),
                  "vt: data() of a temporary would point to memory that is gone: keep the Tensor "
                  "in a variable, or call to_vector");
    return {};
  }
  /// The single element as a truth value, as in `if (t)`. Throws as item does. A conversion does
  /// not know the caller's line, so that the message names the line where the Tensor was made; in
  /// `if (a > b)` that is the same.
  explicit operator bool() const { return detail::truth_of(*this); }
  /// The elements as a matrix or array of Eigen, converted to its scalar: `Eigen::Vector3d g =
  /// vt::grad(f)(x);`. Needs vt/eigen.hpp. Forces evaluation. Shapes: [rows,columns]; [n] is a
  /// column, or a row where the type is one; a scalar is 1×1. Throws: Error(shape) where that is
  /// not the type's, Error(dtype) for complex numbers as real ones, otherwise as item does.
  template <detail::EigenPlain M>
  operator M() const {
    using Access = detail::EigenAccess<M>;
    static_assert(Access::is_included, "vt: Tensors as Eigen matrices: #include <vt/eigen.hpp>");
    return Access::made(*this);
  }
  /// The elements as NumPy prints them, with dtype and shape: [1. 2.] f64[2]. Does not throw; what
  /// cannot be computed says so in its place. Options: t.str({.precision = 3}), see vt/print.hpp.
  std::string str() const;
  std::string str(const PrintStyle& style) const;
  /// Computes the value now and returns the Tensor. On a device: gives the work to
  /// it, and does not wait for it.
  const Tensor& eval(CallSite where = CallSite::here()) const&;
  Tensor eval(CallSite where = CallSite::here()) && {
    static_cast<const Tensor&>(*this).eval(where);
    return std::move(*this);
  }

  /// The elements converted. Floats become integers by truncation, clamped to the integer dtype's
  /// range, NaN becomes 0; integers wrap; numbers become bools by `!= 0`. Throws: Error (dtype) for
  /// complex numbers and a real dtype: take `real`, `imag` or `abs`.
  [[nodiscard]] Tensor astype(DType dtype, CallSite where = CallSite::here()) const;
  /// See vt::reshape.
  [[nodiscard]] Tensor reshape(const Shape& shape, CallSite where = CallSite::here()) const;
  template <std::integral D, class... More>
  Tensor reshape(D, const More&...) const {
    static_assert(!sizeof(D), "vt: the shape stands in braces: x.reshape({2, 3})");
    return *this;
  }
  /// The same value on that device; itself, if it is there. Evaluates. Throws: Error(backend),
  /// Error(memory), or Error(tracer) where values have no device of their own, inside a transformed
  /// function.
  [[nodiscard]] Tensor to(Device device, CallSite where = CallSite::here()) const;
  /// Where the value is, or will be once it is computed.
  Device device() const;

  // The functions of the same names, for those who chain them: x.abs().sum(0).
  [[nodiscard]] Tensor sum(const ReduceAxes& axes = {}, bool keepdims = false,
                           CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor sum(const ReduceAxes& axes, const ReduceOptions& options,
                           CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor prod(const ReduceAxes& axes = {}, bool keepdims = false,
                            CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor prod(const ReduceAxes& axes, const ReduceOptions& options,
                            CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor mean(const ReduceAxes& axes = {}, bool keepdims = false,
                            CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor var(const ReduceAxes& axes = {}, Param<int> ddof = 0, bool keepdims = false,
                           CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor var(const ReduceAxes& axes, const VarOptions& options,
                           CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor std(const ReduceAxes& axes = {}, Param<int> ddof = 0, bool keepdims = false,
                           CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor std(const ReduceAxes& axes, const VarOptions& options,
                           CallSite where = CallSite::here()) const;
#pragma push_macro("max")
#pragma push_macro("min")
#undef max
#undef min
  [[nodiscard]] Tensor max(const ReduceAxes& axes = {}, bool keepdims = false,
                           CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor max(const ReduceAxes& axes, const ReduceOptions& options,
                           CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor min(const ReduceAxes& axes = {}, bool keepdims = false,
                           CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor min(const ReduceAxes& axes, const ReduceOptions& options,
                           CallSite where = CallSite::here()) const;
#pragma pop_macro("max")
#pragma pop_macro("min")
  [[nodiscard]] Tensor argmax(std::optional<Param<int>> axis = std::nullopt, bool keepdims = false,
                              CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor argmax(std::optional<Param<int>> axis, const ArgOptions& options,
                              CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor argmin(std::optional<Param<int>> axis = std::nullopt, bool keepdims = false,
                              CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor argmin(std::optional<Param<int>> axis, const ArgOptions& options,
                              CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor all(const ReduceAxes& axes = {}, bool keepdims = false,
                           CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor any(const ReduceAxes& axes = {}, bool keepdims = false,
                           CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor abs(CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor real(CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor imag(CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor conj(CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor clip(std::optional<Operand> low, std::optional<Operand> high,
                            CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor dot(Operand other) const;
  [[nodiscard]] Tensor ravel(CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor squeeze(const ReduceAxes& axes = {},
                               CallSite where = CallSite::here()) const;
  [[nodiscard]] Tensor transpose(const Axes& permutation = {},
                                 CallSite where = CallSite::here()) const;
  /// The axes reversed, as NumPy's `x.T`.
  [[nodiscard]] Tensor T(CallSite where = CallSite::here()) const;

  /// The slices along axis 0, one after the other: `for (vt::Tensor row : x)`. Throws: Error(shape)
  /// of a scalar.
  TensorIterator begin(CallSite where = CallSite::here()) const;
  TensorIterator end(CallSite where = CallSite::here()) const;

  /// `a[i]`: element i of axis 0, which is dropped; negative counts from the end, out of range is
  /// an error. `a[idx]`: integer Tensor of any shape; out-of-range indices clamp, negative ones
  /// count from the end. `a[vt::slice(1, 5, 2)]`: a range of axis 0, with Python's rules (a
  /// negative step reverses).
  Tensor operator[](const Index& index) const;
  /// `a(i, j, …)`: one index for each axis in order, in any mixture: integers, slices, integer
  /// Tensors, vt::window, vt::newaxis, and at most one vt::ellipsis for the axes that are not named
  /// (without one those at the end, whole). Integer Tensors broadcast together. As in NumPy their
  /// axes stand where the first of them stands, and in front of all others if a slice, a new axis,
  /// the ellipsis or a window stands between two of them; integers count among them.
  /// Throws: Error (shape) if there are more indices than axes, or Tensors do not broadcast;
  /// (value) if an integer is out of range; (dtype) for a bool Tensor.
  /// Source: NumPy's indexing.
  template <std::convertible_to<Index>... More>
  [[nodiscard]] Tensor operator()(const Index& first, const More&... more) const;
#ifdef __cpp_multidimensional_subscript
  /// The same in C++23.
  template <class Second, std::convertible_to<Index>... More>
    requires std::convertible_to<Second, Index>
  [[nodiscard]] Tensor operator[](const Index& first, const Second& second,
                                  const More&... more) const {
    return (*this)(first, second, more...);
  }
#else
  template <class T>
  Tensor operator[](const detail::AfterComma<T>&) const {
    static_assert(!sizeof(T),
                  "vt: up to C++20 the comma in x[i, j] drops i: write x(i, j), or compile as "
                  "C++23");
    return *this;
  }
#endif

 private:
  friend detail::Node* detail::node_of(const Tensor&);
  friend int detail::output_of(const Tensor&);
  friend Tensor detail::adopted(detail::Node* node, int output);
  friend void detail::forget(Tensor&);
  /// Never made: a structured binding is refused before, see detail/structured_binding.hpp.
  template <std::size_t>
  friend Tensor get(const Tensor&);

  detail::NodeCount* node_ = nullptr;
  int output_ = 0;
};

namespace detail {
/// Several Tensors: a container of them.
template <class T>
concept SeveralTensors =
    std::convertible_to<const T&, std::span<const Tensor>> && !std::derived_from<T, Tensor>;
}  // namespace detail

/// A parameter for a Tensor or a number, which becomes a weak Tensor; it knows the line that wrote
/// it. These pages show it as Tensor.
struct Operand {
  Tensor tensor;
  CallSite where;
  Operand(const Tensor& t, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor(t), where{file, line} {}
  Operand(Tensor&& t, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor(std::move(t)), where{file, line} {}
  template <Number T>
  Operand(T value, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor(value), where{file, line} {}
  // What is refused with a message.
  template <detail::EigenObject T>
  Operand(const T&) {
    static_assert(!sizeof(T),
                  "vt: an object of Eigen is no Tensor: vt::tensor(m) copies it, see "
                  "vt/eigen.hpp; vt::as_eigen<double>(t) is the way back");
  }
  template <detail::SeveralTensors T>
  Operand(const T&) {
    static_assert(!sizeof(T),
                  "vt: several Tensors where one belongs: vt::stack(tensors) makes one of them, or "
                  "go over them in a loop");
  }
};

/// Goes over the slices of a Tensor along axis 0; each is made as it is looked at.
class TensorIterator {
 public:
  using value_type = Tensor;
  using reference = Tensor;
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;

  TensorIterator() = default;
  TensorIterator(Tensor of, std::int64_t at, CallSite where)
      : of_(std::move(of)), at_(at), where_(where) {}
  Tensor operator*() const;
  TensorIterator& operator++() {
    ++at_;
    return *this;
  }
  TensorIterator operator++(int) {
    TensorIterator before = *this;
    ++at_;
    return before;
  }
  friend bool operator==(const TensorIterator& a, const TensorIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  Tensor of_;
  std::int64_t at_ = 0;
  CallSite where_ = {};
};

/// The type of vt::newaxis.
struct NewAxis {};
/// Among the indices of `x(…)`: a new axis of extent 1.
inline constexpr NewAxis newaxis;
/// The type of vt::ellipsis.
struct Ellipsis {};
/// Among the indices of `x(…)`: the axes that the other indices leave, whole.
inline constexpr Ellipsis ellipsis;
/// What vt::window gives.
struct Window {
  Tensor start;
  std::int64_t length;
};
/// Among the indices of `x(…)`: `length` elements of an axis from `start` on, an integer or an
/// integer scalar Tensor. The axis stays, with that extent. A window that sticks out is moved
/// inside, and a negative start is moved to 0, as in vt::dynamic_slice.
/// Throws: Error (shape) where it is used, if the axis is shorter.
[[nodiscard]] inline Window window(Tensor start, Param<std::int64_t> length) {
  return {std::move(start), length};
}

/// An index of `x[…]` and `x(…)`, with the line that wrote it: an integer, an integer Tensor, a
/// Slice, vt::newaxis, vt::ellipsis or a vt::window.
struct Index {
  enum class Kind : std::uint8_t { number, tensor, slice, new_axis, rest, window } kind;
  std::int64_t number = 0;  ///< the integer, or a window's length
  Tensor tensor;            ///< the Tensor, or a window's start
  Slice range;
  CallSite where;
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  Index(I i, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : kind(Kind::number), number(static_cast<std::int64_t>(i)), where{file, line} {}
  template <std::same_as<bool> I>
  Index(I) {
    static_assert(!sizeof(I),
                  "vt: a bool is no index: x[i] takes an integer, an integer Tensor or a "
                  "vt::slice; vt::where chooses by a mask");
  }
  Index(const Tensor& t, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : kind(Kind::tensor), tensor(t), where{file, line} {}
  Index(const Slice& s, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : kind(Kind::slice), range(s), where{file, line} {}
  Index(NewAxis, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : kind(Kind::new_axis), where{file, line} {}
  Index(Ellipsis, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : kind(Kind::rest), where{file, line} {}
  Index(const Window& w, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : kind(Kind::window), number(w.length), tensor(w.start), where{file, line} {}
};

namespace detail {
/// x at such indices; `name` is that of the function in messages. src/trace/ops/selection.cpp
Tensor elements_at(const char* name, const Tensor& x, std::span<const Index> indices, CallSite);

#ifndef __cpp_multidimensional_subscript
/// What a comma behind or in front of an index of vt's gives up to C++20. Elsewhere it is b, so
/// that commas keep their meaning; Tensor's operator[] refuses it.
template <class T>
struct AfterComma {
  T value;
  operator T() const { return static_cast<T>(value); }
};
template <class T>
inline constexpr bool is_after_comma = false;
template <class T>
inline constexpr bool is_after_comma<AfterComma<T>> = true;
template <class T>
concept IndexOfVt = std::same_as<T, Tensor> || std::same_as<T, Slice> || std::same_as<T, NewAxis> ||
                    std::same_as<T, Ellipsis> || std::same_as<T, Window> || is_after_comma<T>;
/// Not a number in front of a Tensor: `return ++calls, x * x;` is a Tensor.
template <class A, class B>
concept AreCommaIndices = (IndexOfVt<A> && (IndexOfVt<B> || std::integral<B>)) ||
                          (std::integral<A> && IndexOfVt<B> && !std::same_as<B, Tensor>);
#endif
}  // namespace detail

#ifndef __cpp_multidimensional_subscript
// Internal:
template <class A, class B>
  requires detail::AreCommaIndices<std::remove_cvref_t<A>, std::remove_cvref_t<B>>
constexpr detail::AfterComma<B&&> operator,(A&&, B&& b) {
  return {static_cast<B&&>(b)};
}
#endif

template <std::convertible_to<Index>... More>
Tensor Tensor::operator()(const Index& first, const More&... more) const {
  const Index all[] = {first, more...};
  return detail::elements_at("Tensor::operator()", *this, all, first.where);
}

std::ostream& operator<<(std::ostream&, const Tensor&);  ///< its str()
std::ostream& operator<<(std::ostream&, DType);          ///< its name
std::ostream& operator<<(std::ostream&, Device);         ///< "cpu", "cuda(0)"

namespace detail {
/// `specification`: of fmt's, for each element.
std::string text_of(const Tensor&, std::string_view specification = {});
std::string text_of(Device);
std::string text_of(const Shape&);
std::string text_of(const Axes&);
std::string text_of(const Graph&);
inline std::string text_of(DType d) { return name_of(d); }

/// What stands in braces where no one type fits all: numbers of several types, Tensors beside
/// numbers.
struct BraceItem {
  Tensor tensor;
  Scalar number = {};
  bool is_number;
  template <Element T>
  BraceItem(T value) : number(value), is_number(true) {}
  BraceItem(const Tensor& t) : tensor(t), is_number(false) {}
};
/// The items, where one is a Tensor all of them as Tensors side by side.
Tensor from_items(std::span<const BraceItem> items, const Shape&, std::optional<DType>, CallSite);
[[noreturn]] void ragged_braces(CallSite);
/// Copies numbers of dtype `given`, as `dtype` if there is one. Throws: Error(dtype) if that one
/// cannot hold an integer among them.
Tensor from_numbers(const void* data, DType given, const Shape&, std::optional<DType> dtype,
                    CallSite);

/// The element of nested containers.
template <class T>
struct Innermost {
  using type = T;
};
template <class T>
  requires requires { typename T::value_type; } && (!Element<T>)
struct Innermost<T> : Innermost<typename T::value_type> {};
template <class T, std::size_t N>
struct Innermost<T[N]> : Innermost<T> {};
template <class T>
using InnermostOf = std::remove_cv_t<typename Innermost<T>::type>;
/// Containers of elements or Tensors, and containers of such. Texts of any character are none.
template <class R>
concept Nested =
    !Element<R> && !std::same_as<R, Tensor> && !EigenObject<R> &&
    !std::convertible_to<const R&, std::string_view> &&
    (Element<InnermostOf<R>> || std::same_as<InnermostOf<R>, Tensor>) && requires(const R& r) {
      std::begin(r);
      std::size(r);
    };
template <class R, class T>
concept ContiguousOf = std::convertible_to<const R&, std::span<const T>>;
/// Views of elements with several axes, as std::mdspan.
template <class V>
concept StridedView = Element<std::remove_cv_t<typename V::element_type>> && requires(const V& v) {
  v.data_handle();
  v.extent(0);
  v.stride(0);
  V::rank();
};
template <StridedView V>
Tensor from_view(const V& view, bool copy, CallSite where) {
  using T = std::remove_cv_t<typename V::element_type>;
  Vec<std::int64_t> dims, strides;
  for (std::size_t axis = 0; axis < V::rank(); ++axis) {
    dims.push_back(static_cast<std::int64_t>(view.extent(axis)));
    strides.push_back(static_cast<std::int64_t>(view.stride(axis)));
  }
  const Shape shape(dims);
  bool in_order = true;
  std::int64_t next = 1;
  for (std::size_t axis = dims.size(); axis-- > 0; next *= dims[axis])
    in_order = in_order && (strides[axis] == next || dims[axis] == 1);
  const auto* data = &view.data_handle()[0];
  if (in_order) return from_host(data, dtype_of<T>(), shape, copy, where);
  std::unique_ptr<T[]> all(new T[shape.elements()]);
  Vec<std::int64_t> at(dims.size());
  std::int64_t from = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.elements()); ++i) {
    all[i] = data[from];
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      from += strides[axis];
      if (++at[axis] < dims[axis]) break;
      from -= strides[axis] * dims[axis];
      at[axis] = 0;
    }
  }
  return from_host(all.get(), dtype_of<T>(), shape, true, where);
}

template <class T, class Nested>
void flatten_braces(const Nested& nested, Vec<T>& out, Vec<std::int64_t>& dims, std::size_t depth,
                    CallSite where) {
  const auto n = static_cast<std::int64_t>(std::size(nested));
  if (dims.size() <= depth) dims.push_back(n);
  else if (dims[depth] != n) ragged_braces(where);
  for (const auto& item : nested) {
    if constexpr (!std::is_convertible_v<decltype(item), T>)
      flatten_braces<T>(item, out, dims, depth + 1, where);
    else out.push_back(static_cast<T>(item));
  }
}
template <class T, class Nested>
Tensor from_braces(const Nested& nested, std::optional<DType> dtype, CallSite where) {
  Vec<T> flat;
  Vec<std::int64_t> dims;
  flatten_braces<T>(nested, flat, dims, 0, where);
  if constexpr (std::is_same_v<T, BraceItem>) {
    return from_items(flat, Shape(dims), dtype, where);
  } else if constexpr (std::is_same_v<T, bool>) {
    Vec<std::uint8_t> bytes(flat.begin(), flat.end());
    return from_numbers(bytes.data(), DType::bool_, Shape(dims), dtype, where);
  } else {
    return from_numbers(flat.data(), dtype_of<T>(), Shape(dims), dtype, where);
  }
}
}  // namespace detail

// Internal: what nested braces are, given to vt::tensor.
template <class T>
using Braces1 = std::initializer_list<T>;
// Internal:
template <class T>
using Braces2 = std::initializer_list<std::initializer_list<T>>;
// Internal:
template <class T>
using Braces3 = std::initializer_list<std::initializer_list<std::initializer_list<T>>>;
// Internal:
template <class T>
using Braces4 =
    std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>;

/// A Tensor from nested braces (rank 1 to 4); copies. The dtype is that of the numbers (of numbers
/// of several types, the one they meet in), unless one is given.
template <Element T>
[[nodiscard]] Tensor tensor(Braces1<T> values, std::optional<DType> dtype = std::nullopt,
                            CallSite where = CallSite::here()) {
  return detail::from_braces<T>(values, dtype, where);
}
template <Element T>
[[nodiscard]] Tensor tensor(Braces2<T> values, std::optional<DType> dtype = std::nullopt,
                            CallSite where = CallSite::here()) {
  return detail::from_braces<T>(values, dtype, where);
}
template <Element T>
[[nodiscard]] Tensor tensor(Braces3<T> values, std::optional<DType> dtype = std::nullopt,
                            CallSite where = CallSite::here()) {
  return detail::from_braces<T>(values, dtype, where);
}
template <Element T>
[[nodiscard]] Tensor tensor(Braces4<T> values, std::optional<DType> dtype = std::nullopt,
                            CallSite where = CallSite::here()) {
  return detail::from_braces<T>(values, dtype, where);
}
// Chosen where no one type fits all numbers, as in {1.0, 0}, and for Tensors: {x[0], 2 * y, 1.0}
// are stacked, {{a, b}, {c, d}} too.
[[nodiscard]] inline Tensor tensor(Braces1<detail::BraceItem> values,
                                   std::optional<DType> dtype = std::nullopt,
                                   CallSite where = CallSite::here()) {
  return detail::from_braces<detail::BraceItem>(values, dtype, where);
}
[[nodiscard]] inline Tensor tensor(Braces2<detail::BraceItem> values,
                                   std::optional<DType> dtype = std::nullopt,
                                   CallSite where = CallSite::here()) {
  return detail::from_braces<detail::BraceItem>(values, dtype, where);
}
[[nodiscard]] inline Tensor tensor(Braces3<detail::BraceItem> values,
                                   std::optional<DType> dtype = std::nullopt,
                                   CallSite where = CallSite::here()) {
  return detail::from_braces<detail::BraceItem>(values, dtype, where);
}
[[nodiscard]] inline Tensor tensor(Braces4<detail::BraceItem> values,
                                   std::optional<DType> dtype = std::nullopt,
                                   CallSite where = CallSite::here()) {
  return detail::from_braces<detail::BraceItem>(values, dtype, where);
}
/// A scalar of T's own dtype, which is not weak: tensor(2.0) is f64.
template <Element T>
[[nodiscard]] Tensor tensor(T value, CallSite where = CallSite::here()) {
  return detail::from_host(&value, dtype_of<T>(), Shape{}, true, where);
}
/// A scalar converted to `dtype`.
/// Throws: Error (dtype) if that one cannot hold an integer.
template <Element T>
[[nodiscard]] Tensor tensor(T value, DType dtype, CallSite where = CallSite::here()) {
  return detail::from_numbers(&value, dtype_of<T>(), Shape{}, dtype, where);
}
/// The elements of a container (std::vector, std::array, std::span, a C array), of nested ones with
/// an axis more for each around the innermost, and of containers of Tensors those side by side;
/// copies.
/// Throws: Error(shape) where lengths differ, Error(dtype) where an integer does not fit the dtype
/// that is asked for.
template <detail::Nested R>
[[nodiscard]] Tensor tensor(const R& values, std::optional<DType> dtype = std::nullopt,
                            CallSite where = CallSite::here()) {
  using T = detail::InnermostOf<R>;
  if constexpr (std::is_same_v<T, Tensor>) {
    return detail::from_braces<detail::BraceItem>(values, dtype, where);
  } else if constexpr (detail::ContiguousOf<R, T>) {
    const std::span<const T> all(values);
    return detail::from_numbers(all.data(), dtype_of<T>(), Shape{all.size()}, dtype, where);
  } else {
    return detail::from_braces<T>(values, dtype, where);
  }
}
/// The elements of a container (row-major) as a Tensor of `shape`, which braces may give.
/// Throws: Error (shape) if they do not fill it.
template <detail::Nested R>
[[nodiscard]] Tensor tensor(const R& values, const Shape& shape,
                            CallSite where = CallSite::here()) {
  using T = detail::InnermostOf<R>;
  if constexpr (detail::ContiguousOf<R, T>) {
    const std::span<const T> all(values);
    if (static_cast<std::int64_t>(all.size()) != shape.elements())
      detail::fail(
          ErrorKind::shape,
          "vt::tensor: " + std::to_string(all.size()) + " values do not fill shape " + shape.str(),
          where);
    return detail::from_host(all.data(), dtype_of<T>(), shape, true, where);
  } else if constexpr (std::is_same_v<T, bool>) {
    const Vec<std::uint8_t> bytes(values.begin(), values.end());
    return tensor(std::span<const bool>(reinterpret_cast<const bool*>(bytes.data()), bytes.size()),
                  shape, where);
  } else {
    return tensor(values, std::nullopt, where).reshape(shape, where);
  }
}
// Braces are a shape, {} that of a scalar.
template <detail::Nested R>
[[nodiscard]] Tensor tensor(const R& values, std::initializer_list<Dim> shape,
                            CallSite where = CallSite::here()) {
  return tensor(values, Shape(shape), where);
}

template <Element T>
[[nodiscard]] Tensor tensor(T value, std::initializer_list<Dim> shape,
                            CallSite where = CallSite::here()) {
  return tensor(std::span<const T>(&value, 1), Shape(shape), where);
}

/// The elements of a view with several axes, as std::mdspan; copies.
template <detail::StridedView V>
[[nodiscard]] Tensor tensor(const V& view, std::optional<DType> dtype = std::nullopt,
                            CallSite where = CallSite::here()) {
  const Tensor t = detail::from_view(view, true, where);
  return dtype ? t.astype(*dtype, where) : t;
}
/// The elements of a vector, matrix, array or expression of Eigen, of either storage order; copies.
/// Needs vt/eigen.hpp.
/// Shapes: [n] for a vector, be it a row or a column; [rows,columns].
template <detail::EigenObject M>
[[nodiscard]] Tensor tensor(const M& m, std::optional<DType> dtype = std::nullopt,
                            CallSite where = CallSite::here()) {
  using Access = detail::EigenAccess<M>;
  static_assert(Access::is_included, "vt: Eigen matrices as Tensors: #include <vt/eigen.hpp>");
  const Tensor t = Access::copied(m, where);
  return dtype ? t.astype(*dtype, where) : t;
}

/// A Tensor over the caller's memory, without a copy. The caller keeps it alive and unchanged while
/// the Tensor or what was made of it lives.
/// Throws: Error (shape) if the values do not fill the shape.
template <class T>
  requires Element<std::remove_const_t<T>>
[[nodiscard]] Tensor borrow(std::span<T> values, const Shape& shape,
                            CallSite where = CallSite::here()) {
  if (static_cast<std::int64_t>(values.size()) != shape.elements())
    detail::fail(
        ErrorKind::shape,
        "vt::borrow: " + std::to_string(values.size()) + " values do not fill shape " + shape.str(),
        where);
  return detail::from_host(values.data(), dtype_of<std::remove_const_t<T>>(), shape, false, where);
}

/// All zeros, all ones.
/// Throws: Error (shape) if the size is negative or cannot be addressed.
[[nodiscard]] Tensor zeros(const Shape&, DType = default_dtype(), CallSite = CallSite::here());
[[nodiscard]] Tensor ones(const Shape&, DType = default_dtype(), CallSite = CallSite::here());
// Shapes stand in braces.
template <std::integral D, class... More>
Tensor zeros(D, const More&...) {
  static_assert(!sizeof(D), "vt: the shape stands in braces: vt::zeros({2, 3})");
  return {};
}
template <std::integral D, class... More>
Tensor ones(D, const More&...) {
  static_assert(!sizeof(D), "vt: the shape stands in braces: vt::ones({2, 3})");
  return {};
}
/// All elements `value`, which broadcasts to the shape. Without a dtype: that of `value` (a plain
/// double gives f64).
/// Throws: Error (dtype) if the dtype cannot hold an integer.
[[nodiscard]] Tensor full(const Shape&, Operand value, std::optional<DType> dtype = std::nullopt);
template <std::integral D, class... More>
Tensor full(D, const More&...) {
  static_assert(!sizeof(D), "vt: the shape stands in braces: vt::full({3}, value)");
  return {};
}
/// Ones on diagonal number `diagonal` (0 is the main one, 1 the one above), zeros elsewhere; square
/// without `columns`.
[[nodiscard]] Tensor eye(Param<std::int64_t> rows,
                         std::optional<Param<std::int64_t>> columns = std::nullopt,
                         Param<int> diagonal = 0, DType = default_dtype(),
                         CallSite = CallSite::here());
// Templates, so that {} is no dtype.
template <std::same_as<DType> D>
[[nodiscard]] Tensor eye(Param<std::int64_t> rows, D dtype, CallSite where = CallSite::here()) {
  return eye(rows, std::nullopt, 0, dtype, where);
}
/// As zeros, ones and full, of x's shape and dtype.
[[nodiscard]] Tensor zeros_like(Operand);
[[nodiscard]] Tensor ones_like(Operand);
[[nodiscard]] Tensor full_like(Operand, Operand value);
/// 0, 1, …, stop − 1, as i32 unless a dtype is given.
[[nodiscard]] Tensor arange(Param<std::int64_t> stop, std::optional<DType> dtype = std::nullopt,
                            CallSite = CallSite::here());
namespace detail {
Tensor integer_range(std::int64_t start, std::int64_t stop, std::int64_t step,
                     std::optional<DType> dtype, CallSite);
Tensor real_range(double start, double stop, double step, std::optional<DType> dtype, CallSite);
}  // namespace detail
/// start, start + step, … below stop (above, for a negative step). Integers give i32, floats f32,
/// unless a dtype is given.
template <class A, class B, class Step = int>
  requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && std::is_arithmetic_v<Step>
[[nodiscard]] Tensor arange(A start, B stop, Step step = 1,
                            std::optional<DType> dtype = std::nullopt,
                            CallSite where = CallSite::here()) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && std::is_integral_v<Step>)
    return detail::integer_range(Param<std::int64_t>(start), Param<std::int64_t>(stop),
                                 Param<std::int64_t>(step), dtype, where);
  else
    return detail::real_range(Param<double>(start), Param<double>(stop), Param<double>(step), dtype,
                              where);
}
template <class A, class B>
  requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B>
[[nodiscard]] Tensor arange(A start, B stop, DType dtype, CallSite where = CallSite::here()) {
  return arange(start, stop, 1, dtype, where);
}
template <std::floating_point A>
[[nodiscard]] Tensor arange(A stop, std::optional<DType> dtype = std::nullopt,
                            CallSite where = CallSite::here()) {
  return arange(0, stop, 1, dtype, where);
}
/// `count` points from `start` to `stop`, both included unless `endpoint` is false. dtype f32
/// unless given. Computed in f64, also where the width is beyond it or the steps are below its
/// normal numbers, and rounded once.
[[nodiscard]] Tensor linspace(Param<double> start, Param<double> stop, Param<std::int64_t> count,
                              bool endpoint = true, DType = default_dtype(),
                              CallSite = CallSite::here());
template <std::same_as<DType> D>
[[nodiscard]] Tensor linspace(Param<double> start, Param<double> stop, Param<std::int64_t> count,
                              D dtype, CallSite where = CallSite::here()) {
  return linspace(start, stop, count, true, dtype, where);
}
namespace detail {
Tensor spaced_between(const Operand& start, const Operand& stop, std::int64_t count, bool endpoint);
}
/// The same between the elements of Tensors, which broadcast against each other; dtypes meet,
/// integers become f32.
/// Shapes: start, stop [s…] → [count, s…].
template <class A, class B>
  requires((std::same_as<A, Tensor> || std::same_as<B, Tensor>) &&
           std::convertible_to<const A&, Operand> && std::convertible_to<const B&, Operand>)
[[nodiscard]] Tensor linspace(const A& start, const B& stop, Param<std::int64_t> count,
                              bool endpoint = true, CallSite where = CallSite::here()) {
  return detail::spaced_between(Operand(start, where.file, where.line),
                                Operand(stop, where.file, where.line), count, endpoint);
}
/// Each element is its index along `axis`.
/// Source: JAX `lax.broadcasted_iota`.
[[nodiscard]] Tensor iota(DType, const Shape&, Param<int> axis, CallSite = CallSite::here());

// --- reading -------------------------------------------------------------------------------------

namespace detail {
/// Evaluates, converts to `dtype` on the host and copies all elements to `out` (bool_ as one byte).
/// `function` is who asks, for messages.
void copy_out(const Tensor&, DType dtype, void* out, CallSite, const char* function);
[[noreturn]] void not_one_element(const Tensor&, CallSite);
[[noreturn]] void no_room_for_elements(const Tensor&, CallSite);
/// As many elements as the Tensor has. Throws: Error(memory).
template <class Elements>
Elements room_for(const Tensor& t, CallSite where) {
  const auto count = static_cast<std::size_t>(t.size(where));
  try {
    return Elements(count);
  } catch (const std::exception&) {  // std::bad_alloc, std::length_error
    no_room_for_elements(t, where);
  }
}
}  // namespace detail

template <Element T>
T Tensor::item(CallSite where) const {
  if (size(where) != 1) detail::not_one_element(*this, where);
  T value{};
  detail::copy_out(*this, dtype_of<T>(), &value, where, "vt::Tensor::item");
  return value;
}

template <Element T>
std::vector<T> Tensor::to_vector(CallSite where) const {
  if constexpr (std::is_same_v<T, bool>) {
    auto bytes = detail::room_for<Vec<std::uint8_t>>(*this, where);
    detail::copy_out(*this, DType::bool_, bytes.data(), where, "vt::Tensor::to_vector");
    return std::vector<T>(bytes.begin(), bytes.end());
  } else {
    auto values = detail::room_for<std::vector<T>>(*this, where);
    detail::copy_out(*this, dtype_of<T>(), values.data(), where, "vt::Tensor::to_vector");
    return values;
  }
}

template <Element T>
std::span<const T> Tensor::data(CallSite where) const& {
  return {static_cast<const T*>(detail::host_data(*this, dtype_of<T>(), where, "vt::Tensor::data")),
          static_cast<std::size_t>(size())};
}

}  // namespace vt
