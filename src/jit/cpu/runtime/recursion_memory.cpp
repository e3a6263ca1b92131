// RecursionMemory: calls by their operands.
#include "recursion_memory.hpp"

#include <cstring>
#include <string_view>

#include "../../services/control_memory.hpp"

namespace vt::detail {

namespace recursion_memory {

// Larger operands are the same if they are one buffer: comparing them would cost as much as a call.
constexpr std::size_t most_compared = std::size_t{1} << 16;

std::size_t hash_of(const RecursiveFunction& f, std::span<const BufferRef> operands) {
  std::size_t hash = key_hash(&f);
  for (const BufferRef& b : operands) {
    const std::size_t own = b->bytes > most_compared
                                ? key_hash(b->data)
                                : std::hash<std::string_view>()({b->as<const char>(), b->bytes});
    hash = (hash ^ own) * 0x9e3779b97f4a7c15u;
  }
  return hash;
}
bool same(const BufferRef& a, const BufferRef& b) {
  if (a->data == b->data && a->bytes == b->bytes && a->capacity) return true;
  return a->bytes == b->bytes && a->bytes <= most_compared &&
         (a->bytes == 0 || std::memcmp(a->data, b->data, a->bytes) == 0);
}

}  // namespace recursion_memory

RecursionMemory*& RecursionMemory::now() {
  static thread_local RecursionMemory* memory = nullptr;
  return memory;
}

const RecursionMemory::Call* RecursionMemory::find(std::size_t hash, const RecursiveFunction& f,
                                                   std::span<const BufferRef> operands) const {
  const auto known = by_hash_.find(hash);
  if (known == by_hash_.end()) return nullptr;
  for (std::size_t i : known->second) {
    const Call& c = calls_[i];
    bool equal = c.function == &f && c.operands.size() == operands.size();
    for (std::size_t k = 0; equal && k < operands.size(); ++k)
      equal = recursion_memory::same(c.operands[k], operands[k]);
    if (equal) return &c;
  }
  return nullptr;
}

RecursionMemory::Buffers RecursionMemory::results_of(const RecursiveFunction& f,
                                                     std::span<const BufferRef> operands,
                                                     FunctionRef<Buffers()> run) {
  RecursionMemory* const outer = now();
  if (f.remembers) {
    if (outer) return run();
    struct Scope {
      RecursionMemory memory;
      Scope() { now() = &memory; }
      ~Scope() { now() = nullptr; }
    } scope;
    return run();
  }
  if (!outer) return run();
  const std::size_t hash = recursion_memory::hash_of(f, operands);
  if (const Call* known = outer->find(hash, f, operands)) return known->results;
  // What lies in others' memory may change.
  const auto kept = [](std::span<const BufferRef> buffers) {
    Buffers own;
    for (const BufferRef& b : buffers) own.push_back(b->capacity ? b : control_memory::copied(b));
    return own;
  };
  Buffers own = kept(operands), results = run();
  outer->by_hash_[hash].push_back(outer->calls_.size());
  outer->calls_.push_back({&f, std::move(own), kept(results)});
  return results;
}

}  // namespace vt::detail
