// SmallVec: a vector whose first N elements live inside the object, so that shapes and operand lists need no allocation.
#pragma once

#include <algorithm>
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

template <class T, std::size_t N>
class SmallVec {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;
  using size_type = std::size_t;

  SmallVec() = default;
  explicit SmallVec(std::size_t n, const T& value = T()) { resize(n, value); }
  SmallVec(std::initializer_list<T> items) { append(items.begin(), items.end()); }
  template <std::input_iterator It>
  SmallVec(It first, It last) {
    append(first, last);
  }
  SmallVec(const SmallVec& other) {
    if constexpr (copied_whole) {
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
      if constexpr (copied_whole) {
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

  T* data() { return heap_ ? heap_ : inline_data(); }
  const T* data() const { return heap_ ? heap_ : inline_data(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return *begin(); }
  const T& front() const { return *begin(); }
  T& back() { return end()[-1]; }
  const T& back() const { return end()[-1]; }

  void reserve(std::size_t wanted) {
    if (wanted > capacity_) grow(wanted);
  }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) [[unlikely]] {
      T item(std::forward<Args>(args)...);  // the argument may live in the storage about to move
      grow(std::size_t{size_} + 1);
      return *::new (static_cast<void*>(data() + size_++)) T(std::move(item));
    }
    return *::new (static_cast<void*>(data() + size_++)) T(std::forward<Args>(args)...);
  }
  void push_back(const T& item) { emplace_back(item); }
  void push_back(T&& item) { emplace_back(std::move(item)); }
  void pop_back() { std::destroy_at(data() + --size_); }
  void clear() {
    std::destroy_n(data(), size_);
    size_ = 0;
  }
  void resize(std::size_t n, const T& value = T()) {
    while (size_ > n) pop_back();
    reserve(n);
    while (size_ < n) emplace_back(value);
  }
  template <class It>
  void append(It first, It last) {
    if constexpr (std::contiguous_iterator<It> && std::is_trivially_copyable_v<T> && std::is_same_v<std::iter_value_t<It>, T>) {
      const auto count = static_cast<std::size_t>(last - first);
      reserve(size_ + count);
      std::copy_n(first, count, data() + size_);
      size_ += static_cast<std::uint32_t>(count);
    } else {
      if constexpr (std::forward_iterator<It>) reserve(size_ + static_cast<std::size_t>(std::distance(first, last)));
      for (; first != last; ++first) emplace_back(*first);
    }
  }
  T* insert(const T* at, const T& item) {
    const std::size_t i = static_cast<std::size_t>(at - begin());
    emplace_back(item);
    std::rotate(begin() + i, end() - 1, end());
    return begin() + i;
  }
  T* erase(const T* at) {
    const std::size_t i = static_cast<std::size_t>(at - begin());
    std::move(begin() + i + 1, end(), begin() + i);
    pop_back();
    return begin() + i;
  }

  friend bool operator==(const SmallVec& a, const SmallVec& b) { return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin()); }

 private:
  // So short that copying all of it beats a copy of unknown length.
  static constexpr bool copied_whole = std::is_trivially_copyable_v<T> && N * sizeof(T) <= 64;
  void copy_inline(const SmallVec& other) {
    size_ = other.size_;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // bytes beyond size() are copied, never read
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
    std::memcpy(inline_, other.inline_, sizeof inline_);
#pragma GCC diagnostic pop
  }
  [[gnu::noinline]] void grow(std::size_t wanted) {
    const std::size_t grown = std::max<std::size_t>(wanted, std::size_t{capacity_} * 2);
    T* fresh = static_cast<T*>(::operator new(grown * sizeof(T), std::align_val_t(alignof(T))));
    T* old = data();
    if constexpr (std::is_trivially_copyable_v<T>) std::copy_n(old, size_, fresh);
    else std::uninitialized_move_n(old, size_, fresh);
    const auto count = size_;
    release();
    heap_ = fresh;
    size_ = count;
    capacity_ = static_cast<std::uint32_t>(grown);
  }
  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  const T* inline_data() const { return reinterpret_cast<const T*>(inline_); }
  void release() {
    if constexpr (!std::is_trivially_destructible_v<T>) std::destroy_n(data(), size_);
    if (heap_) [[unlikely]] {
      ::operator delete(heap_, std::align_val_t(alignof(T)));
      heap_ = nullptr;
      capacity_ = N;
    }
    size_ = 0;
  }
  void take(SmallVec& other) noexcept {
    heap_ = other.heap_;
    size_ = other.size_;
    capacity_ = other.capacity_;
    if (!heap_) {
      if constexpr (copied_whole) copy_inline(other);
      else if constexpr (std::is_trivially_copyable_v<T>) std::copy_n(other.inline_data(), size_, inline_data());
      else {
        std::uninitialized_move_n(other.inline_data(), size_, inline_data());
        std::destroy_n(other.inline_data(), size_);
      }
    }
    other.heap_ = nullptr;
    other.size_ = 0;
    other.capacity_ = N;
  }

  T* heap_ = nullptr;
  std::uint32_t size_ = 0, capacity_ = N;
  alignas(T) unsigned char inline_[N * sizeof(T)];
};

}  // namespace vt
