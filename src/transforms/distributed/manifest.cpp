// Manifests as text.
#include "manifest.hpp"

#include <charconv>
#include <cstdio>
#include <optional>

#include <vt/detail/message.hpp>

#include "../../trace/io/crc32.hpp"
#include "../../trace/ir/aval.hpp"

namespace vt::detail {

namespace manifests {

constexpr std::string_view front = "vt checkpoint, version ";
constexpr std::size_t id_digits = 16;

/// In quotes, in one line and without other quotes.
std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) {
      char code[5];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string hex_of(std::uint32_t crc) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc);
  return text;
}

/// The words of a line. What is asked for and not there is a fault, and all that follows.
class Words {
 public:
  explicit Words(std::string_view line) : left_(line) {}
  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }
  std::string_view word() {
    const std::size_t end = std::min(left_.find(' '), left_.size());
    const std::string_view w = left_.substr(0, end);
    if (w.empty()) ok_ = false;
    advance(end);
    return w;
  }
  bool take(std::string_view wanted) {
    Words after = *this;
    if (after.word() != wanted) return false;
    *this = after;
    return true;
  }
  template <class N>
  N number(int base = 10) {
    const std::string_view w = word();
    N n = 0;
    const auto [end, wrong] = std::from_chars(w.data(), w.data() + w.size(), n, base);
    if (wrong != std::errc() || end != w.data() + w.size()) ok_ = false;
    return n;
  }
  std::string text() {
    std::string out;
    std::size_t i = 1;
    if (!left_.starts_with('"')) ok_ = false;
    for (; ok_ && i < left_.size() && left_[i] != '"'; ++i) {
      if (left_[i] != '\\') {
        out += left_[i];
        continue;
      }
      unsigned code = 0;
      const std::string_view digits = left_.substr(std::min(i + 2, left_.size()), 2);
      const auto [end, wrong] =
          std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
      if (wrong != std::errc() || digits.size() != 2 || end != digits.data() + 2) ok_ = false;
      out += static_cast<char>(code);
      i += 3;
    }
    if (i >= left_.size()) ok_ = false;
    advance(std::min(i + 1, left_.size()));
    return out;
  }

 private:
  void advance(std::size_t n) {
    left_.remove_prefix(n);
    if (left_.starts_with(' ')) left_.remove_prefix(1);
  }
  std::string_view left_;
  bool ok_ = true;
};

std::optional<DType> dtype_named(std::string_view name) {
  for (int i = 0; i < dtype_count; ++i)
    if (name == name_of(static_cast<DType>(i))) return static_cast<DType>(i);
  return std::nullopt;
}

Manifest::Leaf leaf_of(Words& words, bool& ok) {
  Manifest::Leaf leaf;
  leaf.name = words.text();
  const std::optional<DType> dtype = dtype_named(words.word());
  if (!dtype) ok = false;
  else leaf.dtype = *dtype;
  std::vector<Sharding::Cut> cuts;
  bool has_cuts = false;
  while (ok && words.ok() && !words.at_end()) {
    if (has_cuts) {
      std::string axis = words.text();
      cuts.push_back({std::move(axis), words.number<int>()});
    } else if (words.take("cuts")) {
      has_cuts = true;
    } else {
      leaf.shape.push_back(words.number<std::int64_t>());
    }
  }
  leaf.sharding = Sharding(std::move(cuts));
  if (!addressable(leaf.dtype, leaf.shape)) ok = false;
  return leaf;
}

/// One line; false: it is none of a manifest.
bool read_line(Manifest& m, std::string_view line) {
  Words words(line);
  bool ok = true;
  if (words.take("step")) {
    m.step = words.number<std::int64_t>();
  } else if (words.take("files")) {
    m.id = words.word();
    ok = id_of_name(part_name(m.id, 0)) == m.id;
  } else if (words.take("mesh")) {
    while (words.ok() && !words.at_end()) {
      std::string name = words.text();
      m.mesh.push_back({std::move(name), words.number<std::int64_t>()});
      const std::int64_t size = m.mesh.back().size;
      ok = ok && size > 0 && size < std::int64_t{1} << 31;
    }
  } else if (words.take("leaf")) {
    m.leaves.push_back(leaf_of(words, ok));
  } else if (words.take("part") && !m.leaves.empty()) {
    Manifest::Part part;
    part.process = words.number<std::int64_t>();
    part.offset = words.number<std::uint64_t>();
    part.bytes = words.number<std::uint64_t>();
    part.crc = words.number<std::uint32_t>(16);
    m.leaves.back().parts.push_back(part);
  } else {
    return false;
  }
  return ok && words.ok() && words.at_end();
}

}  // namespace manifests

std::string Manifest::text() const {
  using namespace manifests;
  std::string out = formatted("{}{}\nstep {}\nfiles {}\nmesh", front, version, step, id);
  for (const distributed::MeshAxis& a : mesh)
    out += formatted(" {} {}", quoted_text(a.name), a.size);
  out += '\n';
  for (const Leaf& leaf : leaves) {
    out += formatted("leaf {} {}", quoted_text(leaf.name), name_of(leaf.dtype));
    for (const std::int64_t extent : leaf.shape) out += formatted(" {}", extent);
    if (!leaf.sharding.cuts().empty()) out += " cuts";
    for (const Sharding::Cut& cut : leaf.sharding.cuts())
      out += formatted(" {} {}", quoted_text(cut.axis), cut.dim);
    out += '\n';
    for (const Part& part : leaf.parts)
      out +=
          formatted("part {} {} {} {}\n", part.process, part.offset, part.bytes, hex_of(part.crc));
  }
  const std::uint32_t crc = crc32(out.data(), out.size());
  return out + "end " + hex_of(crc) + "\n";
}

Manifest Manifest::read(std::string_view text, const FileUse& use) {
  using namespace manifests;
  if (!text.starts_with(front)) use.refuse("not the manifest of a checkpoint");
  const std::size_t end_of_first = std::min(text.find('\n'), text.size());
  Words first(text.substr(front.size(), end_of_first - front.size()));
  const int found = first.number<int>();
  if (first.ok() && found != version)
    use.refuse(
        formatted("format version {} is not known; this vt reads version {}", found, version));
  const auto damaged = [&] {
    use.refuse("the manifest is damaged: its checksum is not that of its text");
  };
  const std::size_t last = text.rfind("\nend ");
  if (!first.ok() || last == std::string_view::npos) damaged();
  Words end(text.substr(last + 1, text.size() - last - 2));
  static_cast<void>(end.word());
  const auto crc = end.number<std::uint32_t>(16);
  if (!end.ok() || !text.ends_with('\n') || crc != crc32(text.data(), last + 1)) damaged();
  Manifest m;
  for (std::size_t at = end_of_first + 1; at < last + 1;) {
    const std::size_t next = text.find('\n', at);
    const std::string_view line = text.substr(at, next - at);
    if (!read_line(m, line))
      use.refuse("a line of the manifest cannot be read: " + in_quotes(line));
    at = next + 1;
  }
  if (m.id.empty() || m.mesh.empty()) use.refuse("the manifest is not complete");
  return m;
}

std::string part_name(const std::string& id, std::int64_t process) {
  return "checkpoint-" + id + "-" + std::to_string(process) + ".part";
}
std::string new_manifest_name(const std::string& id) { return "checkpoint-" + id + ".new"; }

std::string id_of_name(const std::string& name) {
  constexpr std::string_view begin = "checkpoint-";
  if (!name.starts_with(begin) || name.size() < begin.size() + manifests::id_digits) return {};
  std::string id = name.substr(begin.size(), manifests::id_digits);
  if (id.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  if (name == new_manifest_name(id)) return id;
  const std::size_t process = begin.size() + id.size() + 1;
  const std::size_t digits = name.find_first_not_of("0123456789", std::min(process, name.size()));
  const bool is_part = name.size() > process && name[process - 1] == '-' && digits > process &&
                       digits != std::string::npos && name.substr(digits) == ".part";
  return is_part ? id : std::string();
}

}  // namespace vt::detail
