// perf reads /tmp/perf-PID.map ("perf map": a line of start, size and name for each function); gdb
// stops in __jit_debug_register_code and reads the list behind __jit_debug_descriptor (GDB manual,
// "JIT Compilation Interface").
#include "visible_code.hpp"

#if defined(__x86_64__) && defined(__ELF__)

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/locks.hpp"
#include "../../../trace/base/warnings.hpp"
#include "../../../trace/base/written_file.hpp"
#include "../../services/code_label.hpp"

namespace vt::detail::cpu {

extern "C" {
struct jit_code_entry {
  jit_code_entry *next_entry, *prev_entry;
  const char* symfile_addr;
  std::uint64_t symfile_size;
};
struct jit_descriptor {
  std::uint32_t version, action_flag;
  jit_code_entry *relevant_entry, *first_entry;
};
// Weak: LLVM has both as well, and one of each does.
[[gnu::weak, gnu::used]] jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
[[gnu::weak, gnu::used, gnu::noinline]] void __jit_debug_register_code() {
  __asm__ volatile("" ::: "memory");
}
}

namespace visible {

struct PerfMap {
  Mutex mutex;
  std::string lines;        // all, for children
  std::size_t written = 0;  // of them
  int file = -1;

  // With `mutex` held. A child writes the lines of its parent to a file of its own.
  void write() {
    if (file < 0) {
      char path[40];
      std::snprintf(path, sizeof path, "/tmp/perf-%d.map", static_cast<int>(::getpid()));
      file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
      if (file < 0) return warn_once("VT_PERF: " + std::string(path) + " cannot be written");
    }
    write_all(file, std::string_view(lines).substr(written));
    written = lines.size();
  }
};

PerfMap& perf_map() {
  // never destroyed: code may be made while the process ends
  static PerfMap* const map = new PerfMap;
  return *map;
}

void in_child() {
  PerfMap& m = perf_map();
  const std::lock_guard hold(m.mutex);
  if (m.file >= 0) ::close(m.file);
  m.file = -1;
  m.written = 0;
  m.write();
}

void add_to_map(std::span<const char> object, const Vec<std::uint64_t>& addresses,
                const Vec<Elf64_Shdr>& sections) {
  const CodeLabel* label = CodeLabelScope::innermost();
  PerfMap& map = perf_map();
  const std::lock_guard hold(map.mutex);
  static const int prepared = pthread_atfork(nullptr, nullptr, in_child);
  static_cast<void>(prepared);
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB) continue;
    const char* const names = object.data() + sections[table.sh_link].sh_offset;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym f;
      std::memcpy(&f, object.data() + table.sh_offset + at, sizeof f);
      if (ELF64_ST_TYPE(f.st_info) != STT_FUNC || f.st_shndx >= addresses.size() ||
          addresses[f.st_shndx] == 0)
        continue;
      const std::string name = names + f.st_name;
      char numbers[48];
      std::snprintf(numbers, sizeof numbers, "%llx %llx vt: ",
                    static_cast<unsigned long long>(addresses[f.st_shndx] + f.st_value),
                    static_cast<unsigned long long>(f.st_size));
      map.lines.append(numbers).append(label->text());
      // A kernel is its label; of other functions, and of those that it calls, both are told.
      if (name != "kernel" && name != label->symbol()) map.lines.append(" ").append(name);
      map.lines += '\n';
    }
  }
  map.write();
}

Mutex& debugger_lock() {
  static Mutex* const lock = new Mutex;
  return *lock;
}

// An object in gdb's list.
class Listed {
 public:
  explicit Listed(Vec<char> file)
      : file_(std::move(file)), entry_{nullptr, nullptr, file_.begin(), file_.size()} {
    const std::lock_guard hold(debugger_lock());
    entry_.next_entry = __jit_debug_descriptor.first_entry;
    if (entry_.next_entry) entry_.next_entry->prev_entry = &entry_;
    __jit_debug_descriptor.first_entry = &entry_;
    tell(1);
  }
  ~Listed() {
    const std::lock_guard hold(debugger_lock());
    (entry_.prev_entry ? entry_.prev_entry->next_entry : __jit_debug_descriptor.first_entry) =
        entry_.next_entry;
    if (entry_.next_entry) entry_.next_entry->prev_entry = entry_.prev_entry;
    tell(2);
  }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;

 private:
  void tell(std::uint32_t action) {
    __jit_debug_descriptor.action_flag = action;
    __jit_debug_descriptor.relevant_entry = &entry_;
    __jit_debug_register_code();
  }

  Vec<char> file_;
  jit_code_entry entry_;
};

}  // namespace visible

std::shared_ptr<void> show_code(std::span<const char> object, const Vec<std::uint64_t>& addresses) {
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  Vec<Elf64_Shdr> sections(addresses.size());
  std::memcpy(sections.begin(), object.data() + header.e_shoff,
              sections.size() * sizeof(Elf64_Shdr));
  if (perf_wanted()) visible::add_to_map(object, addresses, sections);
  if (!gdb_wanted()) return nullptr;
  for (std::size_t i = 0; i < sections.size(); ++i) sections[i].sh_addr = addresses[i];
  Vec<char> file(object.data(), object.data() + object.size());
  std::memcpy(file.begin() + header.e_shoff, sections.begin(),
              sections.size() * sizeof(Elf64_Shdr));
  return std::make_shared<visible::Listed>(std::move(file));
}

}  // namespace vt::detail::cpu

#endif
