// DLPack in and out. The structures are declared here, as the DLPack specification lays them out
// (version 0.8), so that the library needs no header of it.
// https://dmlc.github.io/dlpack/latest/c_api.html
#include <vt/dlpack.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

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

void free_managed(void* p) {
  auto* m = static_cast<Managed*>(p);
  if (m->deleter) m->deleter(m);
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

// What a view handed out keeps.
struct View {
  Managed managed{};
  BufferRef buffer;
  Shape shape;
};

}  // namespace vt::detail::dlpack

namespace vt {

Tensor from_dlpack(DLManagedTensor* managed, CallSite where) {
  using namespace detail;
  auto* const m = reinterpret_cast<dlpack::Managed*>(managed);
  const auto refuse = [&](const std::string& why) {
    fail(ErrorKind::value, "vt::from_dlpack: " + why, where);
  };
  if (!m) refuse("a null pointer");
  std::unique_ptr<void, void (*)(void*)> owner(m, dlpack::free_managed);
  const dlpack::Array& a = m->array;
  if (a.device.type != dlpack::host && a.device.type != dlpack::pinned_host)
    refuse("the memory lies on device type " + std::to_string(a.device.type) +
           "; only the host's (1, 3) can be used");
  const dlpack::Kind* kind = nullptr;
  for (const dlpack::Kind& k : dlpack::kinds)
    if (k.code == a.dtype.code && size_of(k.dtype) * 8 == a.dtype.bits && a.dtype.lanes == 1)
      kind = &k;
  if (!kind)
    refuse("element type code " + std::to_string(a.dtype.code) + " of " +
           std::to_string(a.dtype.bits) + " bits, " + std::to_string(a.dtype.lanes) +
           " lanes, is none of vt's");
  if (a.ndim < 0 || static_cast<std::size_t>(a.ndim) > most_axes)
    refuse("the array has " + std::to_string(a.ndim) + " axes; a Tensor has 0 to " +
           std::to_string(most_axes));
  if (a.ndim > 0 && !a.shape)
    refuse("the shape of " + std::to_string(a.ndim) + " axes is a null pointer");
  const Shape shape(std::span<const std::int64_t>(a.shape, static_cast<std::size_t>(a.ndim)));
  if (!addressable(kind->dtype, shape)) refuse(size_fault(kind->dtype, shape));
  const std::size_t size = size_of(kind->dtype),
                    bytes = static_cast<std::size_t>(shape.elements()) * size;
  if (bytes > 0 && !a.data)
    refuse("the data of " + Aval(kind->dtype, shape).str() + " are a null pointer");
  if (bytes > 0 && !dlpack::within_reach(a, size))
    refuse("strides or byte_offset lead out of the memory that can be addressed");
  const auto* data = static_cast<const std::byte*>(a.data) + (bytes > 0 ? a.byte_offset : 0);
  if (bytes > 0 &&
      reinterpret_cast<std::uintptr_t>(data) % (is_complex(kind->dtype) ? size / 2 : size) != 0)
    refuse("the data of " + Aval(kind->dtype, shape).str() + " are not aligned to their elements");
  Aval aval(kind->dtype, shape);
  const bool odd_bools =
      kind->dtype == DType::bool_ && dlpack::is_compact(a) &&
      std::any_of(data, data + bytes, [](std::byte b) { return b > std::byte{1}; });
  // Kernels read elements at their own alignment, and bools as 0 or 1.
  if (!odd_bools && dlpack::is_compact(a) &&
      reinterpret_cast<std::uintptr_t>(data) % size_of(real_dtype(kind->dtype)) == 0 && bytes > 0) {
    BufferRef buffer = borrow_memory(data, bytes);
    buffer->owner = owner.release();
    buffer->let_go = dlpack::free_managed;
    return from_buffer(std::move(buffer), std::move(aval));
  }
  BufferRef buffer = allocate(bytes, "from_dlpack");
  if (bytes > 0) {
    if (dlpack::is_compact(a)) std::memcpy(buffer->data, data, bytes);
    else dlpack::copy_strided(buffer->as<std::byte>(), data, a, 0, size);
    if (kind->dtype == DType::bool_)
      for (std::size_t i = 0; i < bytes; ++i)
        buffer->as<std::uint8_t>()[i] = buffer->as<std::uint8_t>()[i] != 0;
  }
  return from_buffer(std::move(buffer), std::move(aval));
}

DLManagedTensor* to_dlpack(const Tensor& t, CallSite where) {
  using namespace detail;
  auto view = std::make_unique<dlpack::View>();
  view->buffer = value_of(t, where, "vt::to_dlpack");
  view->shape = t.shape();
  for (const dlpack::Kind& k : dlpack::kinds)
    if (k.dtype == t.dtype())
      view->managed.array.dtype = {k.code, static_cast<std::uint8_t>(size_of(k.dtype) * 8), 1};
  dlpack::Array& a = view->managed.array;
  a.data = view->buffer->data;
  a.device = {dlpack::host, 0};
  a.ndim = t.rank();
  a.shape = view->shape.data();
  view->managed.context = view.get();
  view->managed.deleter = [](dlpack::Managed* m) { delete static_cast<dlpack::View*>(m->context); };
  return reinterpret_cast<DLManagedTensor*>(&view.release()->managed);
}

}  // namespace vt
