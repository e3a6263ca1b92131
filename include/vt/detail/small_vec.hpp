// SmallVec: a vector whose first N elements live inside the object, so that shapes and operand
// lists need no allocation. Vec: the same with none inside, which vt's sources use in place of
// std::vector: that costs a program that compiles the implementation some seventy functions for
// every type of element, this one about seven.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace vt {

namespace detail {

template <class T, std::size_t N>
struct InlineElements {
  static constexpr std::size_t bytes = N * sizeof(T);
  using Count = std::uint32_t;
  alignas(T) unsigned char inline_[N * sizeof(T)];
  [[gnu::always_inline]] T* within() { return reinterpret_cast<T*>(inline_); }
  [[gnu::always_inline]] const T* within() const { return reinterpret_cast<const T*>(inline_); }
};
template <class T>
struct InlineElements<T, 0> {
  static constexpr std::size_t bytes = 0;
  using Count = std::size_t;
  [[gnu::always_inline]] T* within() { return nullptr; }
  [[gnu::always_inline]] const T* within() const { return nullptr; }
};

/// How many elements to make room for, where there is room for `now` and `wanted` are wanted.
[[gnu::always_inline]] inline std::size_t grown_room(std::size_t now, std::size_t wanted) {
  return wanted > 2 * now ? wanted : 2 * now;
}

/// For elements that are bytes: room for `bytes` bytes that begins with the first `kept` of `from`;
/// frees `heap`. One function for all types.
[[gnu::noinline]] inline void* moved_bytes(const void* from, std::size_t kept, void* heap,
                                           std::size_t bytes) {
  void* fresh = ::operator new(bytes);
  if (kept) std::memcpy(fresh, from, kept);
  ::operator delete(heap);
  return fresh;
}

/// Where the elements that are not inside come from: the C++ heap.
struct HeapMemory {
  static void* take(std::size_t bytes) { return ::operator new(bytes); }
  static void give(void* memory, std::size_t) noexcept { ::operator delete(memory); }
};

template <class It>
concept ElementIterator = requires(It it) {
  *it;
  ++it;
} && !std::is_arithmetic_v<It>;

}  // namespace detail

// Internal: users meet it as the base of Shape and Axes, which have a std::vector's members from
// it.
template <class T, std::size_t N, class Memory = detail::HeapMemory>
class SmallVec : detail::InlineElements<T, N> {
  using Inside = detail::InlineElements<T, N>;

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;
  using size_type = std::size_t;
  using reference = T&;
  using const_reference = const T&;

  SmallVec() noexcept {}
  explicit SmallVec(std::size_t n) : SmallVec() { resize(n); }
  SmallVec(std::size_t n, const T& value) : SmallVec() { resize(n, value); }
  SmallVec(std::initializer_list<T> items) : SmallVec() { append(items.begin(), items.end()); }
  template <detail::ElementIterator It>
  SmallVec(It first, It last) : SmallVec() {
    append(first, last);
  }
  SmallVec(const SmallVec& other) : SmallVec() {
    if constexpr (copied_whole()) {
      if (!other.heap_) {
        copy_inline(other);
        return;
      }
    }
    append(other.begin(), other.end());
  }
  SmallVec(SmallVec&& other) noexcept { take(other); }
  ~SmallVec() { release(); }
  SmallVec& operator=(const SmallVec& other) {
    if (this != &other) {
      if constexpr (copied_whole()) {
        if (!heap_ && !other.heap_) {
          copy_inline(other);
          return *this;
        }
      }
      clear();
      append(other.begin(), other.end());
    }
    return *this;
  }
  SmallVec& operator=(SmallVec&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }

  [[gnu::always_inline]] T* data() {
    if constexpr (N == 0) return heap_;
    else return heap_ ? heap_ : Inside::within();
  }
  [[gnu::always_inline]] const T* data() const {
    if constexpr (N == 0) return heap_;
    else return heap_ ? heap_ : Inside::within();
  }
  [[gnu::always_inline]] std::size_t size() const { return size_; }
  [[gnu::always_inline]] std::size_t capacity() const { return capacity_; }
  [[gnu::always_inline]] bool empty() const { return size_ == 0; }
  [[gnu::always_inline]] T* begin() { return data(); }
  [[gnu::always_inline]] T* end() { return data() + size_; }
  [[gnu::always_inline]] const T* begin() const { return data(); }
  [[gnu::always_inline]] const T* end() const { return data() + size_; }
  auto rbegin() { return std::reverse_iterator(end()); }
  auto rend() { return std::reverse_iterator(begin()); }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }
  // `i` may be of any integer type, so that axes and variables, which are ints, need no cast.
  [[gnu::always_inline]] T& operator[](std::size_t i) { return data()[i]; }
  [[gnu::always_inline]] const T& operator[](std::size_t i) const { return data()[i]; }
  [[gnu::always_inline]] T& front() { return *data(); }
  [[gnu::always_inline]] const T& front() const { return *data(); }
  [[gnu::always_inline]] T& back() { return data()[size_ - 1]; }
  [[gnu::always_inline]] const T& back() const { return data()[size_ - 1]; }

  void reserve(std::size_t wanted) {
    if (wanted > capacity_) grow(wanted);
  }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) [[unlikely]] {
      T item(static_cast<Args&&>(args)...);  // the argument may live in the storage about to move
      grow(std::size_t{size_} + 1);
      return *::new (static_cast<void*>(data() + size_++)) T(static_cast<T&&>(item));
    }
    return *::new (static_cast<void*>(data() + size_++)) T(static_cast<Args&&>(args)...);
  }
  [[gnu::always_inline]] void push_back(const T& item) { emplace_back(item); }
  [[gnu::always_inline]] void push_back(T&& item) { emplace_back(static_cast<T&&>(item)); }
  void pop_back() { data()[--size_].~T(); }
  [[gnu::always_inline]] void clear() { shrink(0); }
  void resize(std::size_t n) {
    shrink(n);
    reserve(n);
    for (T* at = data(); size_ < n; ++size_) ::new (static_cast<void*>(at + size_)) T();
  }
  void resize(std::size_t n, const T& value) {
    shrink(n);
    if (n > capacity_) {
      const T kept(value);  // it may live in the storage about to move
      grow(n);
      fill(n, kept);
    } else {
      fill(n, value);
    }
  }
  void assign(std::size_t n, const T& value) {
    const T kept(value);
    clear();
    resize(n, kept);
  }
  template <detail::ElementIterator It>
  void assign(It first, It last) {
    clear();
    append(first, last);
  }
  /// Appends [first, last), which must lie outside this vector.
  template <detail::ElementIterator It>
  void append(It first, It last) {
    if constexpr (std::is_convertible_v<It, const T*> && std::is_trivially_copyable_v<T>) {
      const T* const from = first;
      const auto count = static_cast<std::size_t>(static_cast<const T*>(last) - from);
      if (count == 0) return;
      reserve(size_ + count);
      std::memcpy(static_cast<void*>(data() + size_), from, count * sizeof(T));
      size_ += static_cast<Count>(count);
    } else {
      if constexpr (requires { last - first; })
        reserve(size_ + static_cast<std::size_t>(last - first));
      for (; first != last; ++first) emplace_back(*first);
    }
  }
  T* insert(const T* at, T item) {
    const std::size_t i = static_cast<std::size_t>(at - data());
    emplace_back(static_cast<T&&>(item));
    T* const all = data();
    for (std::size_t k = size_ - 1; k > i; --k) std::swap(all[k], all[k - 1]);
    return all + i;
  }
  T* erase(const T* at) { return erase(at, at + 1); }
  T* erase(const T* first, const T* last) {
    T* const to = data() + (first - data());
    T *into = to, *const stop = end();
    for (T* from = data() + (last - data()); from != stop; ++from, ++into)
      *into = static_cast<T&&>(*from);
    shrink(static_cast<std::size_t>(into - data()));
    return to;
  }

  /// Inserts [first, last), which must lie outside this vector, before `at`.
  T* insert(const T* at, const T* first, const T* last) {
    const std::size_t i = static_cast<std::size_t>(at - data()),
                      count = static_cast<std::size_t>(last - first), behind = size_ - i;
    if (behind == 0) {
      append(first, last);
      return data() + i;
    }
    SmallVec all;
    all.reserve(size_ + count);
    for (std::size_t k = 0; k < i; ++k) all.emplace_back(static_cast<T&&>(data()[k]));
    all.append(first, last);
    for (std::size_t k = i; k < i + behind; ++k) all.emplace_back(static_cast<T&&>(data()[k]));
    *this = static_cast<SmallVec&&>(all);
    return data() + i;
  }
  template <class Predicate>
  friend std::size_t erase_if(SmallVec& all, const Predicate& out) {
    T* into = all.data();
    for (T& item : all)
      if (!out(item)) {
        if (into != &item) *into = static_cast<T&&>(item);
        ++into;
      }
    const auto gone = static_cast<std::size_t>(all.end() - into);
    all.shrink(all.size() - gone);
    return gone;
  }

  friend bool operator==(const SmallVec& a, const SmallVec& b) {
    if (a.size_ != b.size_) return false;
    const T *of_a = a.data(), *of_b = b.data();
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(of_a[i] == of_b[i])) return false;
    return true;
  }
  friend bool operator<(const SmallVec& a, const SmallVec& b) {
    for (std::size_t i = 0; i < a.size_ && i < b.size_; ++i) {
      if (a[i] < b[i]) return true;
      if (b[i] < a[i]) return false;
    }
    return a.size_ < b.size_;
  }

 private:
  using Count = typename Inside::Count;
  static constexpr bool over_aligned() { return alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__; }
  static constexpr bool on_heap() { return std::is_same_v<Memory, detail::HeapMemory>; }
  // So short that copying all of it beats a copy of unknown length.
  static constexpr bool copied_whole() {
    return N > 0 && std::is_trivially_copyable_v<T> && Inside::bytes <= 64;
  }

  void copy_inline(const SmallVec& other) {
    size_ = other.size_;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // bytes beyond size() are copied, never read
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
    if constexpr (N > 0) std::memcpy(this->inline_, other.inline_, sizeof this->inline_);
#pragma GCC diagnostic pop
  }
  void fill(std::size_t n, const T& value) {
    for (T* at = data(); size_ < n; ++size_) ::new (static_cast<void*>(at + size_)) T(value);
  }
  [[gnu::always_inline]] void shrink(std::size_t n) {
    if constexpr (std::is_trivially_destructible_v<T>) {
      if (n < size_) size_ = static_cast<Count>(n);
    } else {
      while (size_ > n) data()[--size_].~T();
    }
  }
  // Moves `count` elements to raw memory and ends their lives where they were.
  static void relocate(T* from, std::size_t count, T* to) noexcept {
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (count) std::memcpy(static_cast<void*>(to), from, count * sizeof(T));
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        ::new (static_cast<void*>(to + i)) T(static_cast<T&&>(from[i]));
        from[i].~T();
      }
    }
  }
  [[gnu::always_inline]] void grow(std::size_t wanted) {
    if constexpr (std::is_trivially_copyable_v<T> && !over_aligned() && on_heap()) {
      const std::size_t grown = detail::grown_room(capacity_, wanted);
      heap_ =
          static_cast<T*>(detail::moved_bytes(data(), size_ * sizeof(T), heap_, grown * sizeof(T)));
      capacity_ = static_cast<Count>(grown);
    } else {
      grow_each(wanted);
    }
  }
  [[gnu::noinline]] void grow_each(std::size_t wanted) {
    const std::size_t grown = detail::grown_room(capacity_, wanted);
    T* fresh;
    if constexpr (over_aligned())
      fresh = static_cast<T*>(::operator new(grown * sizeof(T), std::align_val_t(alignof(T))));
    else fresh = static_cast<T*>(Memory::take(grown * sizeof(T)));
    relocate(data(), size_, fresh);
    free_heap();
    heap_ = fresh;
    capacity_ = static_cast<Count>(grown);
  }
  [[gnu::always_inline]] void free_heap() {
    if constexpr (over_aligned()) ::operator delete(heap_, std::align_val_t(alignof(T)));
    else if (heap_) Memory::give(heap_, capacity_ * sizeof(T));
  }
  void release() {
    shrink(0);
    if (heap_) [[unlikely]] {
      free_heap();
      heap_ = nullptr;
      capacity_ = N;
    }
  }
  void take(SmallVec& other) noexcept {
    heap_ = other.heap_;
    size_ = other.size_;
    capacity_ = other.capacity_;
    if constexpr (N > 0) {
      if (!heap_) {
        if constexpr (copied_whole()) copy_inline(other);
        else relocate(other.data(), size_, data());
      }
    }
    other.heap_ = nullptr;
    other.size_ = 0;
    other.capacity_ = N;
  }

  T* heap_ = nullptr;
  Count size_ = 0, capacity_ = N;
};

// Internal: a vector with nothing inside the object.
template <class T>
using Vec = SmallVec<T, 0>;

}  // namespace vt
