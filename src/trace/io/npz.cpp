// .npz files: archives of .npy files.
#include <vt/detail/npz.hpp>
#include <vt/npy.hpp>

#include <cstring>
#include <map>
#include <string_view>

#include "../base/written_file.hpp"
#include "crc32.hpp"
#include "npy_format.hpp"
#include "zip.hpp"

namespace vt::detail {

namespace npz {

constexpr std::string_view suffix = ".npy";

/// An array of the file, read up to its data.
struct Opened {
  FileUse use;
  zip::MemberBytes bytes;
  npy::ArrayHeader header;

  Opened(const InputFile& file, const zip::Member& member, const FileUse& of_file)
      : use(of_file.of("member", member.name)), bytes(file, member, use), header(read()) {}
  Opened(const Opened&) = delete;

 private:
  npy::ArrayHeader read() {
    npy::ArrayHeader found = npy::read_header(bytes, use);
    if (bytes.left() != found.aval.bytes())
      use.refuse(std::to_string(bytes.left()) + " bytes of data, " +
                 std::to_string(found.aval.bytes()) + " wanted for " + found.aval.str());
    return found;
  }
};

}  // namespace npz

struct NpzFile::Open {
  FileUse use;
  InputFile file;
  Vec<zip::Member> members;
  std::vector<std::string> names;
  std::map<std::string, const zip::Member*> by_name;

  explicit Open(const FileUse& of_file)
      : use(of_file), file(use), members(zip::read_directory(file, use)) {
    for (const zip::Member& member : members) {
      std::string_view name = member.name;
      if (name.ends_with(npz::suffix)) name.remove_suffix(npz::suffix.size());
      names.emplace_back(name);
      if (!by_name.emplace(name, &member).second)
        use.refuse("two arrays have the name " + in_quotes(name));
    }
  }
  const zip::Member& member(const std::string& name) const {
    const auto found = by_name.find(name);
    if (found == by_name.end()) use.refuse("it holds no array " + in_quotes(name));
    return *found->second;
  }
};

NpzFile::NpzFile(std::unique_ptr<const Open> open) : open_(std::move(open)) {}
NpzFile::NpzFile(NpzFile&&) noexcept = default;
NpzFile& NpzFile::operator=(NpzFile&&) noexcept = default;
NpzFile::~NpzFile() = default;

const std::vector<std::string>& NpzFile::names() const { return open_->names; }
bool NpzFile::has(const std::string& name) const { return open_->by_name.contains(name); }

NpzFile::Form NpzFile::form(const std::string& name) const {
  const npz::Opened array(open_->file, open_->member(name), open_->use);
  return {array.header.aval.dtype, array.header.aval.shape};
}

Tensor NpzFile::read(const std::string& name) const {
  npz::Opened array(open_->file, open_->member(name), open_->use);
  Tensor t = npy::read_data(array.bytes, array.header, array.use);
  array.bytes.finish();
  return t;
}

NpzFile read_npz(const std::string& path, const char* function, CallSite where) {
  return NpzFile(std::make_unique<const NpzFile::Open>(FileUse{function, path, where}));
}

namespace npz {

void check_name(const NpzEntry& entry, std::map<std::string_view, const NpzEntry*>& so_far,
                const FileUse& use) {
  if (entry.name.empty()) use.refuse("an array without a name");
  const FileUse its = use.of("array", entry.name);
  if (entry.name.find('\0') != std::string::npos) its.refuse("the name holds a NUL");
  if (!zip::is_utf8(entry.name)) its.refuse("the name is no UTF-8");
  if (entry.name.size() + suffix.size() > 65535)
    its.refuse("a name of " + std::to_string(entry.name.size()) +
               " bytes; at most 65531 are possible");
  if (!so_far.emplace(entry.name, &entry).second) its.refuse("two arrays have this name");
}

}  // namespace npz

void write_npz(const std::string& path, std::span<const NpzEntry> entries, const char* function,
               CallSite where) {
  const FileUse use{function, path, where};
  std::map<std::string_view, const NpzEntry*> names;
  std::vector<Tensor> values;
  std::vector<std::string> fronts;  // of the members: theirs and the array's
  for (const NpzEntry& entry : entries) {
    npz::check_name(entry, names, use);
    if (!entry.value.defined())
      fail(ErrorKind::value,
           std::string(function) + ": " + path + ": array " + in_quotes(entry.name) +
               " is an empty Tensor",
           where);
    fronts.push_back(
        npy::header_of({entry.value.dtype(), entry.value.shape()}, use.of("array", entry.name)));
    values.push_back(entry.value);
  }
  evaluate(values, where, function);

  zip::NewArchive archive;
  std::vector<BufferRef> buffers;
  std::vector<std::string_view> parts;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    buffers.push_back(value_of(values[i], where, function));
    const std::string_view data =
        npy::data_of(buffers.back(), {values[i].dtype(), values[i].shape()});
    std::string& front = fronts[i];
    const std::uint32_t crc = crc32(data.data(), data.size(), crc32(front.data(), front.size()));
    front.insert(0, archive.front_of(entries[i].name + std::string(npz::suffix),
                                     front.size() + data.size(), crc));
    parts.push_back(front);
    parts.push_back(data);
  }
  const std::string directory = archive.directory();
  parts.push_back(directory);
  if (const int wrong = write_file(path, std::span<const std::string_view>(parts)))
    use.refuse(std::strerror(wrong));
}

}  // namespace vt::detail

namespace vt {

std::map<std::string, Tensor> load_npz(const std::string& path, CallSite where) {
  const detail::NpzFile file = detail::read_npz(path, "vt::load_npz", where);
  std::map<std::string, Tensor> arrays;
  for (const std::string& name : file.names()) arrays.emplace(name, file.read(name));
  return arrays;
}

}  // namespace vt
