// Links the object files that vt has LLVM make: a few sections, and relocations relative to the
// instruction pointer.
#include "object_loader.hpp"

#if defined(__x86_64__) && defined(__ELF__)
#include <elf.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <vt/detail/small_vec.hpp>

#include "../../services/code_label.hpp"
#include "visible_code.hpp"

namespace vt::detail::cpu {

#if defined(__x86_64__) && defined(__ELF__)

namespace object_files {

/// Bounds-checked view of the bytes.
struct Bytes {
  std::span<const char> all;
  template <class T>
  bool read(std::uint64_t at, T& out) const {
    if (at > all.size() || all.size() - at < sizeof(T)) return false;
    std::memcpy(&out, all.data() + at, sizeof(T));
    return true;
  }
  bool holds(std::uint64_t at, std::uint64_t size) const {
    return at <= all.size() && size <= all.size() - at;
  }
  /// The zero-terminated text at `at` of the table [start, start + size).
  bool text(std::uint64_t start, std::uint64_t size, std::uint64_t at,
            std::string_view& out) const {
    if (!holds(start, size) || at >= size) return false;
    const char* from = all.data() + start + at;
    const void* end = std::memchr(from, 0, size - at);
    if (!end) return false;
    out = std::string_view(from, static_cast<std::size_t>(static_cast<const char*>(end) - from));
    return true;
  }
};

/// Sections that lie together. Constants share their pages with code, which is as read-only; data
/// that is written, which LLVM makes little of, begins with a page.
struct Region {
  std::uint64_t align, size = 0, start = 0;
};
enum { code, constants, data, region_count };

int region_of(const Elf64_Shdr& s) {
  if (s.sh_flags & SHF_EXECINSTR) return code;
  return (s.sh_flags & SHF_WRITE) ? data : constants;
}

std::uint64_t aligned(std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; }

// jmp *[rip + 0]; the address follows: calls reach further than 2 GB through it
constexpr std::size_t stub_size = 16;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

}  // namespace object_files

bool can_load_objects() { return true; }

LoadedObject::~LoadedObject() = default;

std::string LoadedObject::load(std::span<const char> object, const Resolver& resolve) {
  using namespace object_files;
  exports_.clear();
  starved_ = false;
  const Bytes file{object};
  Elf64_Ehdr header{};
  if (!file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_type != ET_REL || header.e_machine != EM_X86_64 ||
      header.e_shentsize != sizeof(Elf64_Shdr))
    return "it is no x86-64 object file";
  Vec<Elf64_Shdr> sections(header.e_shnum);
  for (std::size_t i = 0; i < sections.size(); ++i)
    if (!file.read(header.e_shoff + i * sizeof(Elf64_Shdr), sections[i]))
      return "its section table is cut off";

  // Lay out the sections that are needed at run time, by protection.
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  Region regions[region_count] = {{page}, {64}, {page}};
  Vec<std::uint64_t> offset_in_region(sections.size(), 0);
  Vec<bool> placed(sections.size(), false);
  std::size_t symbol_table = 0;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const Elf64_Shdr& s = sections[i];
    if (s.sh_type == SHT_SYMTAB) symbol_table = i;
    if (!(s.sh_flags & SHF_ALLOC) || s.sh_size == 0) continue;
    if (s.sh_flags & SHF_TLS) return "it has thread-local data";
    const std::uint64_t align = s.sh_addralign ? s.sh_addralign : 1;
    if (s.sh_size > most_bytes || align > 4096 ||
        (s.sh_type != SHT_NOBITS && !file.holds(s.sh_offset, s.sh_size)))
      return "a section lies outside the file";
    Region& r = regions[region_of(s)];
    r.align = std::max(r.align, align);
    offset_in_region[i] = aligned(r.size, align);
    r.size = offset_in_region[i] + s.sh_size;
    if (r.size > most_bytes) return "it is too large";
    placed[i] = true;
  }
  if (symbol_table == 0) return "it has no symbols";
  const Elf64_Shdr& symtab = sections[symbol_table];
  if (symtab.sh_link >= sections.size() || !file.holds(symtab.sh_offset, symtab.sh_size))
    return "its symbols are cut off";
  const Elf64_Shdr& strings = sections[symtab.sh_link];
  const std::size_t symbol_count = symtab.sh_size / sizeof(Elf64_Sym);
  if (symbol_count > object.size() / sizeof(Elf64_Sym)) return "its symbols are cut off";

  // Every undefined symbol may need a stub behind the code and a slot for its address behind the
  // constants.
  Vec<Elf64_Sym> symbols(symbol_count);
  std::size_t undefined = 0;
  for (std::size_t i = 0; i < symbol_count; ++i) {
    if (!file.read(symtab.sh_offset + i * sizeof(Elf64_Sym), symbols[i]))
      return "its symbols are cut off";
    undefined += i > 0 && symbols[i].st_shndx == SHN_UNDEF;
  }
  const std::uint64_t stubs = aligned(regions[code].size, stub_size),
                      slots = aligned(regions[constants].size, 8);
  regions[code].size = stubs + undefined * stub_size;
  regions[constants].size = slots + symbol_count * 8;
  std::uint64_t total = 0;
  for (Region& r : regions) r.start = aligned(total, r.align), total = r.start + r.size;
  if (total > most_bytes) return "it is too large";
  const auto no_memory = [&] {
    starved_ = true;
    return "there is no memory for it, or the process has as many mappings as the system allows "
           "(vm.max_map_count)";
  };
  if (!memory_.take(total, regions[data].size > 0)) return no_memory();
  char* const memory = memory_.data();

  const auto address_of = [&](std::size_t section) {
    return memory + regions[region_of(sections[section])].start + offset_in_region[section];
  };
  for (std::size_t i = 0; i < sections.size(); ++i)
    if (placed[i] && sections[i].sh_type != SHT_NOBITS)
      std::memcpy(address_of(i), object.data() + sections[i].sh_offset, sections[i].sh_size);

  // a symbol's address, and where calls of it go
  Vec<std::uint64_t> target(symbol_count, 0), jump(symbol_count, 0);
  std::size_t next_stub = 0;
  for (std::size_t i = 1; i < symbol_count; ++i) {
    const Elf64_Sym& s = symbols[i];
    std::string_view name;
    if (s.st_name != 0 && !file.text(strings.sh_offset, strings.sh_size, s.st_name, name))
      return "a symbol's name is cut off";
    if (s.st_shndx == SHN_UNDEF) {
      void* found = resolve(name);
      if (!found) return "it needs the unknown function " + std::string(name);
      char* stub = memory + regions[code].start + stubs + stub_size * next_stub++;
      constexpr unsigned char jump_through[] = {0xff, 0x25, 0, 0, 0, 0};
      std::memcpy(stub, jump_through, sizeof(jump_through));
      std::memcpy(stub + sizeof(jump_through), &found, sizeof(found));
      target[i] = reinterpret_cast<std::uint64_t>(found);
      jump[i] = reinterpret_cast<std::uint64_t>(stub);
    } else if (s.st_shndx < sections.size() && placed[s.st_shndx]) {
      if (s.st_value > sections[s.st_shndx].sh_size) return "a symbol lies outside its section";
      target[i] = jump[i] = reinterpret_cast<std::uint64_t>(address_of(s.st_shndx)) + s.st_value;
      if (ELF64_ST_BIND(s.st_info) == STB_GLOBAL && ELF64_ST_TYPE(s.st_info) == STT_FUNC)
        exports_.push_back({std::string(name), reinterpret_cast<void*>(target[i])});
    }
  }

  for (const Elf64_Shdr& r : sections) {
    if (r.sh_type == SHT_REL) return "it has relocations of an unknown form";
    if (r.sh_type != SHT_RELA || r.sh_info >= sections.size() || !placed[r.sh_info]) continue;
    if (!file.holds(r.sh_offset, r.sh_size)) return "its relocations are cut off";
    char* base = address_of(r.sh_info);
    for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= r.sh_size; at += sizeof(Elf64_Rela)) {
      Elf64_Rela one{};
      if (!file.read(r.sh_offset + at, one)) return "its relocations are cut off";
      const std::uint64_t index = ELF64_R_SYM(one.r_info), type = ELF64_R_TYPE(one.r_info);
      const std::uint64_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
      const std::uint64_t room = sections[r.sh_info].sh_size;
      if (index >= symbol_count || room < width || one.r_offset > room - width)
        return "a relocation lies outside";
      char* place = base + one.r_offset;
      std::uint64_t value = target[index];
      if (type == R_X86_64_PLT32) value = jump[index];
      const bool through_slot =
          type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
      if (through_slot) {
        char* slot = memory + regions[constants].start + slots + index * 8;
        std::memcpy(slot, &value, 8);
        value = reinterpret_cast<std::uint64_t>(slot);
      } else if (type != R_X86_64_PLT32 && type != R_X86_64_PC32 && type != R_X86_64_PC64 &&
                 type != R_X86_64_64) {
        return "it has a relocation of the unknown type " + std::to_string(type);
      }
      if (value == 0) return "a relocation refers to nothing";
      value += static_cast<std::uint64_t>(one.r_addend);
      if (type != R_X86_64_64) value -= reinterpret_cast<std::uint64_t>(place);
      if (width == 4) {
        const auto distance = static_cast<std::int64_t>(value);
        if (distance != static_cast<std::int32_t>(distance)) return "a relocation reaches too far";
      }
      std::memcpy(place, &value, width);
    }
  }

  if (CodeLabelScope::innermost()) {
    Vec<std::uint64_t> addresses(sections.size(), 0);
    for (std::size_t i = 0; i < sections.size(); ++i)
      if (placed[i]) addresses[i] = reinterpret_cast<std::uint64_t>(address_of(i));
    shown_ = show_code(object, addresses);
  }
  if (!memory_.seal(regions[constants].start + regions[constants].size)) return no_memory();
  return {};
}

#else

bool can_load_objects() { return false; }
LoadedObject::~LoadedObject() = default;
std::string LoadedObject::load(std::span<const char>, const Resolver&) {
  return "objects are loaded by LLVM on this machine";
}

#endif

void* LoadedObject::find(std::string_view name) const {
  for (const Export& e : exports_)
    if (e.name == name) return e.address;
  return nullptr;
}

}  // namespace vt::detail::cpu
