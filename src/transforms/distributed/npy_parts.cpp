// .npy files of which each process reads or writes its part.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include <unistd.h>

#include <vt/detail/message.hpp>
#include <vt/distributed.hpp>

#include "../../trace/io/npy_format.hpp"
#include "../../trace/processes/world.hpp"
#include "layout.hpp"
#include "part_file.hpp"
#include "together.hpp"

namespace vt {

namespace detail::npy_parts {

constexpr std::uint64_t window_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t small_gap = std::uint64_t{1} << 15;  // is read with what lies around it

/// Reads runs of bytes that lie behind each other in a file, many short ones at once.
class RunReader {
 public:
  RunReader(const InputFile& file, std::uint64_t begin, std::uint64_t end, const FileUse& use)
      : file_(file), use_(use), end_(end), last_(begin) {}
  void read(std::uint64_t offset, char* to, std::uint64_t bytes) {
    const std::uint64_t gap = offset - last_;
    last_ = offset + bytes;
    if (last_ > window_end_ && bytes < small_gap && gap < small_gap) fill(offset);
    if (offset >= window_begin_ && last_ <= window_end_)
      std::memcpy(to, window_.get() + (offset - window_begin_), bytes);
    else file_.read(offset, to, bytes, use_);
  }

 private:
  void fill(std::uint64_t offset) {
    if (!window_) window_ = std::make_unique<char[]>(window_bytes);
    window_begin_ = offset;
    window_end_ = std::min(offset + window_bytes, end_);
    file_.read(offset, window_.get(), window_end_ - window_begin_, use_);
  }

  const InputFile& file_;
  const FileUse& use_;
  std::uint64_t end_;   ///< of the data
  std::uint64_t last_;  ///< of the run before
  std::unique_ptr<char[]> window_;
  std::uint64_t window_begin_ = 0, window_end_ = 0;
};

Shape reversed(Shape shape) {
  std::reverse(shape.begin(), shape.end());
  return shape;
}

Tensor read_part(const FileUse& use, const distributed::Mesh& mesh, const Sharding& sharding) {
  const InputFile file(use);
  FileBytes bytes(file, 0, file.size(), use);
  const npy::ArrayHeader header = npy::read_header(bytes, use);
  npy::check_length(bytes, header, use);
  const std::uint64_t begin = file.size() - bytes.left();
  const Shape& whole = header.aval.shape;
  const MeshLayoutUse layout_use{use.function, "the array in " + use.path, use.where};
  const MeshLayout layout(mesh.axes(), sharding, whole.rank(), layout_use);
  layout.check(whole, layout_use);
  const MeshBlock block = layout.block(whole, World::current().rank());
  const Aval own(header.aval.dtype, block.extents);
  BufferRef buffer = allocate(own.bytes(), "part of a .npy file");
  // Fortran's order is C order with the axes reversed.
  const auto as_stored = [&](const Shape& s) { return header.columns_first ? reversed(s) : s; };
  const Shape stored = as_stored(whole), extents = as_stored(block.extents),
              at = as_stored(block.at), none = Shape::filled(whole.size(), 0);
  const auto size = static_cast<std::uint64_t>(size_of(own.dtype));
  RunReader reader(file, begin, begin + header.aval.bytes(), use);
  for_each_run({stored, at}, {extents, none}, extents,
               [&](std::int64_t from, std::int64_t to, std::int64_t elements) {
                 reader.read(begin + static_cast<std::uint64_t>(from) * size,
                             buffer->as<char>() + static_cast<std::uint64_t>(to) * size,
                             static_cast<std::uint64_t>(elements) * size);
               });
  return npy::from_data(std::move(buffer), own, header);
}

void write_part(const std::string& path, std::uint64_t begin, const BufferRef& buffer,
                const Aval& own, const Shape& whole, const MeshBlock& block, const FileUse& use) {
  PartFile file;
  int wrong = file.open(path);
  const auto size = static_cast<std::uint64_t>(size_of(own.dtype));
  const Shape none = Shape::filled(whole.size(), 0);
  for_each_run({own.shape, none}, {whole, block.at}, own.shape,
               [&](std::int64_t from, std::int64_t to, std::int64_t elements) {
                 if (wrong) return;
                 wrong = file.write(begin + static_cast<std::uint64_t>(to) * size,
                                    {buffer->as<char>() + static_cast<std::uint64_t>(from) * size,
                                     static_cast<std::uint64_t>(elements) * size});
               });
  if (!wrong) wrong = file.close();
  if (wrong) use.refuse(std::strerror(wrong));
}

}  // namespace detail::npy_parts

namespace distributed {

Tensor load_npy(const std::string& path, const Mesh& given, const Sharding& sharding,
                CallSite where) {
  using namespace detail::npy_parts;
  const detail::FileUse use{"vt::distributed::load_npy", path, where};
  const detail::Together all(use.function, where);
  Tensor own;
  all.attempt([&] {
    const Mesh mesh = detail::mesh_or_all(given, {use.function, "", where});
    own = read_part(use, mesh, sharding);
  });
  return own;
}

void save_npy(const std::string& path, const Tensor& own, const Mesh& given,
              const Sharding& sharding, CallSite where) {
  using namespace detail::npy_parts;
  const detail::FileUse use{"vt::distributed::save_npy", path, where};
  const detail::MeshLayoutUse layout_use{use.function, "the Tensor", where};
  const detail::Together all(use.function, where);
  const int rank = detail::World::current().rank();
  detail::BufferRef buffer;
  std::optional<detail::MeshLayout> layout;
  Shape whole;
  std::string header, mesh_text;
  all.attempt([&] {
    const Mesh mesh = detail::mesh_or_all(given, layout_use);
    mesh_text = mesh.str();
    if (!own.defined()) layout_use.refuse(ErrorKind::value, "the Tensor is empty");
    layout.emplace(mesh.axes(), sharding, own.rank(), layout_use);
    buffer = detail::value_of(own, where, use.function);
    whole = layout->whole(own.shape());
    if (!detail::addressable(own.dtype(), whole)) use.refuse(size_fault(own.dtype(), whole));
    header = detail::npy::header_of({own.dtype(), whole}, use);
  });
  const detail::Aval& aval = detail::aval_of(own);
  all.same(
      detail::Aval(aval.dtype, aval.shape).str() + ", " + sharding.str() + ", mesh " + mesh_text,
      ErrorKind::shape, "what they have of the file");
  std::string beside;
  const auto refuse_if = [&](int wrong) {
    if (wrong) use.refuse(std::strerror(wrong));
  };
  all.attempt_first([&] {
    int wrong = 0;
    const int mode = detail::mode_to_keep(path, wrong);
    refuse_if(wrong);
    std::string name = path.substr(0, path.rfind('/') + 1) + ".vt-" + detail::new_file_id();
    detail::PartFile file;
    refuse_if(file.create(name, mode));
    beside = std::move(name);
    wrong = file.resize(header.size() + detail::Aval(aval.dtype, whole).bytes());
    if (!wrong) wrong = file.write(0, header);
    if (!wrong) wrong = file.close();
    if (wrong) ::unlink(beside.c_str());
    refuse_if(wrong);
  });
  beside = all.text_of(0, beside);
  try {
    all.attempt([&] {
      if (layout->is_first(rank))
        write_part(beside, header.size(), buffer, aval, whole, layout->block(whole, rank), use);
    });
    all.attempt_first([&] { refuse_if(detail::replace_file(beside, path)); });
  } catch (...) {
    if (rank == 0) ::unlink(beside.c_str());
    throw;
  }
}

}  // namespace distributed
}  // namespace vt
