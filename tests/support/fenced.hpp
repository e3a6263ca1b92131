// Numbers that begin or end where the memory does, so that reading beyond them is a fault:
// sanitizers do not see into compiled code.
#pragma once

#include <new>
#include <span>
#include <type_traits>

#include <sys/mman.h>
#include <unistd.h>
#include <vt/vt.hpp>

namespace vt_test {

/// `count` numbers between two pages that must not be touched, next to the first or to the second.
template <class T>
class Fenced {
 public:
  Fenced(std::int64_t count, bool at_end)
      : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T),
                      inner = (bytes + page_ - 1) / page_ * page_;
    size_ = inner + 2 * page_;
    memory_ =
        static_cast<char*>(::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || ::mprotect(memory_ + page_, inner, PROT_READ | PROT_WRITE) != 0)
      throw std::bad_alloc();
    char* first = memory_ + page_ + (at_end ? inner - bytes : 0);
    values_ = {reinterpret_cast<T*>(first), static_cast<std::size_t>(count)};
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] =
          static_cast<T>((std::is_integral_v<T> ? 1 : 0.01) * static_cast<double>(i % 60) + 0.25);
  }
  ~Fenced() { ::munmap(memory_, size_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  vt::Tensor tensor(const vt::Shape& shape) const { return vt::borrow(values_, shape); }

 private:
  std::size_t page_, size_ = 0;
  char* memory_ = nullptr;
  std::span<T> values_;
};

}  // namespace vt_test
