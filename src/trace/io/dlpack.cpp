// DLPack in and out. The structures are declared here, as the DLPack specification lays them out
// (that of versions 0.x, and that of 1.x), so that the library needs no header of it.
// https://dmlc.github.io/dlpack/latest/c_api.html
#include <vt/dlpack.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "../record/node.hpp"

namespace vt::detail::dlpack {

struct Device {
  std::int32_t type, id;
};
struct Type {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct Array {
  void* data;
  Device device;
  std::int32_t ndim;
  Type dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: compact, row-major
  std::uint64_t byte_offset;
};
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed*);
};
/// Of each major version the first three members are the same.
struct Versioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned*);
  std::uint64_t flags;
  Array array;
};
constexpr std::uint32_t known_major = 1;
constexpr std::uint64_t read_only = 1;  // a flag

constexpr std::int32_t host = 1, pinned_host = 3;
constexpr std::uint8_t code_int = 0, code_uint = 1, code_float = 2, code_bfloat = 4,
                       code_complex = 5, code_bool = 6;

struct Kind {
  std::uint8_t code;
  DType dtype;
};
constexpr Kind kinds[] = {
    {code_bool, DType::bool_},  {code_int, DType::i8},      {code_int, DType::i16},
    {code_int, DType::i32},     {code_int, DType::i64},     {code_uint, DType::u8},
    {code_uint, DType::u16},    {code_uint, DType::u32},    {code_uint, DType::u64},
    {code_float, DType::f16},   {code_float, DType::f32},   {code_float, DType::f64},
    {code_bfloat, DType::bf16}, {code_complex, DType::c64}, {code_complex, DType::c128}};

template <class M>
void let_go(void* p) {
  auto* m = static_cast<M*>(p);
  if (m->deleter) m->deleter(m);
}
using Owner = std::unique_ptr<void, void (*)(void*)>;

[[noreturn]] void refuse(const std::string& why, CallSite where) {
  fail(ErrorKind::value, "vt::from_dlpack: " + why, where);
}

// Copies a strided array, outer axes first.
std::byte* copy_strided(std::byte* to, const std::byte* from, const Array& a, int axis,
                        std::size_t size) {
  if (axis == a.ndim) {
    std::memcpy(to, from, size);
    return to + size;
  }
  for (std::int64_t i = 0; i < a.shape[axis]; ++i)
    to = copy_strided(to, from + i * a.strides[axis] * static_cast<std::int64_t>(size), a, axis + 1,
                      size);
  return to;
}

bool is_compact(const Array& a) {
  if (!a.strides) return true;
  std::int64_t step = 1;
  for (int axis = a.ndim; axis-- > 0;) {
    if (a.shape[axis] == 0) return true;
    if (a.shape[axis] != 1 && a.strides[axis] != step) return false;
    step *= a.shape[axis];
  }
  return true;
}

// Do the places of all elements follow from numbers that do not wrap? There is an element.
bool within_reach(const Array& a, std::size_t size) {
  const std::int64_t most =
      (std::int64_t{1} << 56) - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(a.data));
  if (most < 0 || a.byte_offset > static_cast<std::uint64_t>(most)) return false;
  std::int64_t reach = static_cast<std::int64_t>(a.byte_offset);
  for (int axis = 0; a.strides && axis < a.ndim; ++axis) {
    std::int64_t step = 0, far = 0;
    if (a.shape[axis] == 1) continue;  // whose stride may be anything
    if (a.strides[axis] == std::numeric_limits<std::int64_t>::min() ||
        __builtin_mul_overflow(std::abs(a.strides[axis]), static_cast<std::int64_t>(size), &step) ||
        __builtin_mul_overflow(step, a.shape[axis] - 1, &far) ||
        __builtin_add_overflow(reach, far, &reach) || reach > most)
      return false;
  }
  return true;
}

Tensor tensor_of(const Array& a, Owner owner, CallSite where) {
  if (a.device.type != host && a.device.type != pinned_host)
    refuse("the memory lies on device type " + std::to_string(a.device.type) +
               "; only the host's (1, 3) can be used",
           where);
  const Kind* kind = nullptr;
  for (const Kind& k : kinds)
    if (k.code == a.dtype.code && size_of(k.dtype) * 8 == a.dtype.bits && a.dtype.lanes == 1)
      kind = &k;
  if (!kind)
    refuse("element type code " + std::to_string(a.dtype.code) + " of " +
               std::to_string(a.dtype.bits) + " bits, " + std::to_string(a.dtype.lanes) +
               " lanes, is none of vt's",
           where);
  if (a.ndim < 0 || static_cast<std::size_t>(a.ndim) > most_axes)
    refuse("the array has " + std::to_string(a.ndim) + " axes; a Tensor has 0 to " +
               std::to_string(most_axes),
           where);
  if (a.ndim > 0 && !a.shape)
    refuse("the shape of " + std::to_string(a.ndim) + " axes is a null pointer", where);
  const Shape shape(std::span<const std::int64_t>(a.shape, static_cast<std::size_t>(a.ndim)));
  if (!addressable(kind->dtype, shape)) refuse(size_fault(kind->dtype, shape), where);
  const std::size_t size = size_of(kind->dtype),
                    bytes = static_cast<std::size_t>(shape.elements()) * size;
  if (bytes > 0 && !a.data)
    refuse("the data of " + Aval(kind->dtype, shape).str() + " are a null pointer", where);
  if (bytes > 0 && !within_reach(a, size))
    refuse("strides or byte_offset lead out of the memory that can be addressed", where);
  const auto* data = static_cast<const std::byte*>(a.data) + (bytes > 0 ? a.byte_offset : 0);
  if (bytes > 0 &&
      reinterpret_cast<std::uintptr_t>(data) % (is_complex(kind->dtype) ? size / 2 : size) != 0)
    refuse("the data of " + Aval(kind->dtype, shape).str() + " are not aligned to their elements",
           where);
  Aval aval(kind->dtype, shape);
  const bool odd_bools =
      kind->dtype == DType::bool_ && is_compact(a) &&
      std::any_of(data, data + bytes, [](std::byte b) { return b > std::byte{1}; });
  // Kernels read elements at their own alignment, and bools as 0 or 1.
  if (!odd_bools && is_compact(a) &&
      reinterpret_cast<std::uintptr_t>(data) % size_of(real_dtype(kind->dtype)) == 0 && bytes > 0) {
    BufferRef buffer = borrow_memory(data, bytes);
    buffer->let_go = owner.get_deleter();
    buffer->owner = owner.release();
    return from_buffer(std::move(buffer), std::move(aval));
  }
  BufferRef buffer = allocate(bytes, "from_dlpack");
  if (bytes > 0) {
    if (is_compact(a)) std::memcpy(buffer->data, data, bytes);
    else copy_strided(buffer->as<std::byte>(), data, a, 0, size);
    if (kind->dtype == DType::bool_)
      for (std::size_t i = 0; i < bytes; ++i)
        buffer->as<std::uint8_t>()[i] = buffer->as<std::uint8_t>()[i] != 0;
  }
  return from_buffer(std::move(buffer), std::move(aval));
}

// What a view handed out keeps.
template <class M>
struct View {
  M managed{};
  BufferRef buffer;
  Shape shape, strides;
};

template <class M>
std::unique_ptr<View<M>> view_of(const Tensor& t, const char* function, CallSite where) {
  auto view = std::make_unique<View<M>>();
  view->buffer = value_of(t, where, function);
  view->shape = t.shape();
  view->strides = Shape::filled(view->shape.size(), 1);
  for (std::size_t axis = view->shape.size(); axis-- > 1;)
    view->strides[axis - 1] = view->strides[axis] * view->shape[axis];
  Array& a = view->managed.array;
  for (const Kind& k : kinds)
    if (k.dtype == t.dtype())
      a.dtype = {k.code, static_cast<std::uint8_t>(size_of(k.dtype) * 8), 1};
  a.data = view->buffer->data;
  a.device = {host, 0};
  a.ndim = t.rank();
  a.shape = view->shape.data();
  a.strides = view->strides.data();
  view->managed.context = view.get();
  view->managed.deleter = [](M* m) { delete static_cast<View<M>*>(m->context); };
  return view;
}

}  // namespace vt::detail::dlpack

namespace vt {

Tensor from_dlpack(DLManagedTensor* managed, CallSite where) {
  using namespace detail::dlpack;
  auto* const m = reinterpret_cast<Managed*>(managed);
  if (!m) refuse("a null pointer", where);
  return tensor_of(m->array, Owner(m, let_go<Managed>), where);
}

Tensor from_dlpack(DLManagedTensorVersioned* managed, CallSite where) {
  using namespace detail::dlpack;
  auto* const m = reinterpret_cast<Versioned*>(managed);
  if (!m) refuse("a null pointer", where);
  Owner owner(m, let_go<Versioned>);
  if (m->major != known_major)
    refuse("the array is of DLPack " + std::to_string(m->major) + "." + std::to_string(m->minor) +
               "; only versions 1.x are known",
           where);
  return tensor_of(m->array, std::move(owner), where);
}

DLManagedTensor* to_dlpack(const Tensor& t, CallSite where) {
  using namespace detail::dlpack;
  return reinterpret_cast<DLManagedTensor*>(
      &view_of<Managed>(t, "vt::to_dlpack", where).release()->managed);
}

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& t, CallSite where) {
  using namespace detail::dlpack;
  auto view = view_of<Versioned>(t, "vt::to_dlpack_versioned", where);
  view->managed.major = known_major;
  view->managed.flags = read_only;
  return reinterpret_cast<DLManagedTensorVersioned*>(&view.release()->managed);
}

DLManagedTensorVersioned* to_dlpack_versioned(Tensor&& t, CallSite where) {
  using namespace detail::dlpack;
  auto* const managed = to_dlpack_versioned(std::as_const(t), where);
  t = Tensor();
  auto* const view = static_cast<View<Versioned>*>(reinterpret_cast<Versioned*>(managed)->context);
  const detail::Buffer& buffer = *view->buffer;
  const bool borrowed = buffer.capacity == 0 && buffer.bytes > 0;
  if (buffer.references.load(std::memory_order_acquire) == 1 && !borrowed) view->managed.flags = 0;
  return managed;
}

}  // namespace vt
