// Checkpoints: each process writes a file with its blocks of a tree, and rank 0 a manifest, whose
// rename is the moment from which on the new one counts.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <unistd.h>

#include <vt/detail/message.hpp>
#include <vt/distributed.hpp>

#include "../../trace/base/buffer.hpp"
#include "../../trace/io/crc32.hpp"
#include "../../trace/io/input_file.hpp"
#include "../../trace/io/stored_tree.hpp"
#include "../../trace/processes/world.hpp"
#include "../../trace/record/node.hpp"
#include "layout.hpp"
#include "manifest.hpp"
#include "part_file.hpp"
#include "replicas.hpp"
#include "together.hpp"

namespace vt {

namespace detail::checkpoint_files {

using Kind = StoredPart::Kind;
constexpr std::uint64_t chunk_bytes = std::uint64_t{1} << 22;  // are read at once

std::string in_folder(const std::string& folder, std::string_view name) {
  return folder + "/" + std::string(name);
}

/// The Sharding of each part: those that are no Tensors all have.
std::vector<Sharding> shardings_of(std::span<const StoredPart> parts, const Vec<Sharding>& specs) {
  std::vector<Sharding> all;
  std::size_t tensors = 0;
  for (const StoredPart& p : parts)
    all.push_back(p.kind == Kind::tensor ? specs[tensors++] : replicated);
  return all;
}

// --- the folder ----------------------------------------------------------------------------------

/// The manifest's text; nothing, if there is none.
std::optional<std::string> manifest_text(const std::string& folder, const FileUse& use) {
  const FileUse file_use{use.function, in_folder(folder, manifest_name), use.where};
  std::error_code wrong;
  if (!std::filesystem::exists(file_use.path, wrong)) return std::nullopt;
  const InputFile file(file_use);
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size(), file_use);
  return text;
}

/// Removes the files of checkpoints but for that one's.
void remove_others(const std::string& folder, const std::string& kept) {
  std::error_code wrong;
  std::vector<std::filesystem::path> others;
  for (std::filesystem::directory_iterator i(folder, wrong), end; !wrong && i != end;
       i.increment(wrong)) {
    const std::string id = id_of_name(i->path().filename().string());
    if (!id.empty() && id != kept) others.push_back(i->path());
  }
  for (const std::filesystem::path& path : others) std::filesystem::remove(path, wrong);
}

/// Makes the folder if it is not there, and removes what saves that were killed have left.
void prepare_folder(const std::string& folder, const FileUse& use) {
  std::error_code wrong;
  std::filesystem::create_directories(folder, wrong);
  if (wrong) use.refuse("the folder cannot be made: " + wrong.message());
  std::string kept;
  try {
    if (const auto text = manifest_text(folder, use)) kept = Manifest::read(*text, use).id;
  } catch (const Error&) {
    return;  // what it needs is not known
  }
  remove_others(folder, kept);
}

// --- save ----------------------------------------------------------------------------------------

/// A checkpoint that is being written.
class Saving {
 public:
  Saving(const std::string& folder, const FileUse& use, CallSite where)
      : folder_(folder), use_(use), where_(where), rank_(World::current().rank()) {}

  void prepare(std::span<const StoredPart> parts, const Vec<Sharding>& specs,
               const distributed::SaveOptions& options) {
    manifest_.step = options.step;
    if (manifest_.step < 0)
      fail(ErrorKind::value,
           formatted("{}: step {}; steps begin at 0", use_.function, manifest_.step), where_);
    mesh_ = mesh_or_all(options.mesh, {use_.function, "", where_});
    manifest_.mesh = mesh_.axes();
    const std::vector<Sharding> shardings = shardings_of(parts, specs);
    std::unordered_set<std::string> names;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string name = name_of_part(parts[i].path);
      const MeshLayoutUse layout_use{use_.function, name, where_};
      const Tensor& value = parts[i].value;
      if (!value.defined()) layout_use.refuse(ErrorKind::value, name + " is an empty Tensor");
      if (!names.insert(name).second)
        layout_use.refuse(ErrorKind::tree, "two parts of the tree have the name " + name);
      layouts_.emplace_back(manifest_.mesh, shardings[i], value.rank(), layout_use);
      const Shape whole = layouts_[i].whole(value.shape());
      if (!addressable(value.dtype(), whole)) use_.refuse(size_fault(value.dtype(), whole));
      manifest_.leaves.push_back({name, value.dtype(), whole, shardings[i], {}});
      values_.push_back(value);
    }
    evaluate(values_, where_, use_.function);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      buffers_.push_back(value_of(values_[i], where_, use_.function));
      if (parts[i].kind != Kind::tensor) describe_number(i, values_[i]);
    }
  }

  /// What all processes must have in common.
  void compare(const Together& all) const {
    all.same(std::to_string(manifest_.step), ErrorKind::value, "the steps");
    all.same(mesh_.str(), ErrorKind::value, "the meshes");
    std::string text;
    for (const Manifest::Leaf& leaf : manifest_.leaves)
      text +=
          leaf.name + " " + Aval(leaf.dtype, leaf.shape).str() + " " + leaf.sharding.str() + "\n";
    all.same(text, ErrorKind::tree, "the trees");
    all.same(numbers_, ErrorKind::value, "the numbers of the tree");
    compare_replicas();
  }

  void set_id(const std::string& id) { manifest_.id = id; }

  /// Writes this process's file.
  void write() {
    crcs_.assign(layouts_.size(), 0);
    PartFile file;
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      const std::uint64_t bytes = bytes_of_block(i);
      if (bytes == 0 || !layouts_[i].is_first(rank_)) continue;
      if (offset == 0) refuse_if(file.create(own_path()), own_path());
      const std::string_view data(buffers_[i]->as<char>(), bytes);
      refuse_if(file.write(offset, data), own_path());
      crcs_[i] = crc32(data.data(), data.size());
      offset += bytes;
    }
    if (offset > 0) refuse_if(file.close(), own_path());
  }
  void remove() const {
    ::unlink(own_path().c_str());
    if (rank_ == 0) ::unlink(in_folder(folder_, new_manifest_name(manifest_.id)).c_str());
  }

  void gather_checksums(const Together& all) {
    all_crcs_.resize(layouts_.size() * static_cast<std::size_t>(World::current().size()));
    all.gather(crcs_.begin(), all_crcs_.begin(), crcs_.size() * sizeof(std::uint32_t));
  }

  /// On rank 0: the manifest takes the place of the last one.
  void commit() {
    const std::int64_t processes = World::current().size();
    const auto leaves = static_cast<std::int64_t>(layouts_.size());
    for (std::int64_t r = 0; r < processes; ++r) {
      std::uint64_t offset = 0;
      for (std::int64_t i = 0; i < leaves; ++i) {
        if (!layouts_[i].is_first(r)) continue;
        const std::uint64_t bytes = bytes_of_block(i);
        manifest_.leaves[i].parts.push_back({r, offset, bytes, all_crcs_[r * leaves + i]});
        offset += bytes;
      }
      const std::string name = part_name(manifest_.id, r);
      if (offset > 0 && ::access(in_folder(folder_, name).c_str(), F_OK) != 0)
        use_.refuse(
            formatted("rank {} wrote {}, and rank 0 does not see it: the folder must lie "
                      "on a file system that all processes share",
                      r, name));
    }
    const std::string path = in_folder(folder_, new_manifest_name(manifest_.id));
    PartFile file;
    refuse_if(file.create(path), path);
    refuse_if(file.write(0, manifest_.text()), path);
    refuse_if(file.close(), path);
    force_folder(folder_);
    refuse_if(replace_file(path, in_folder(folder_, manifest_name)), path);
    try {
      remove_others(folder_, manifest_.id);
    } catch (...) {  // the checkpoint is there all the same; the next save removes them
    }
  }

 private:
  /// One of those that have the same block writes it.
  void compare_replicas() const {
    const Vec<AxisRef> axes = axes_of(mesh_);
    Vec<Differs> differs;
    for (const Manifest::Leaf& leaf : manifest_.leaves) {
      Differs of_leaf = 0;
      for (const Sharding::Cut& cut : leaf.sharding.cuts())
        for (std::size_t k = 0; k < axes.size(); ++k)
          if (axes[k]->name == cut.axis) of_leaf |= Differs{1} << k;
      differs.push_back(of_leaf);
    }
    const auto name = [&] { return std::string(use_.function); };
    const UnequalReplica found = unequal_replica(values_, differs, axes, {name, where_});
    if (found.index < 0) return;
    const Manifest::Leaf& leaf = manifest_.leaves[static_cast<std::size_t>(found.index)];
    fail(ErrorKind::value,
         formatted("{}: {} has other values on rank {} than on rank {}, and specs says {}: give "
                   "specs that cut it, as by vt::sharded, or all the same",
                   use_.function, leaf.name, found.other, found.rank, leaf.sharding.str()),
         where_);
  }
  std::uint64_t bytes_of_block(std::size_t i) const {
    const Manifest::Leaf& leaf = manifest_.leaves[i];
    return Aval(leaf.dtype, layouts_[i].block(leaf.shape, rank_).extents).bytes();
  }
  std::string own_path() const { return in_folder(folder_, part_name(manifest_.id, rank_)); }
  void refuse_if(int wrong, const std::string& path) const {
    if (wrong) FileUse{use_.function, path, where_}.refuse(std::strerror(wrong));
  }
  void describe_number(std::size_t i, const Tensor& value) {
    numbers_ += manifest_.leaves[i].name + " is " + value.str();
    const std::size_t bytes = aval_of(value).bytes();
    const std::uint32_t crc = crc32(buffers_[i]->data, bytes);
    numbers_ += formatted(" (checksum {})\n", crc);
  }

  const std::string& folder_;
  const FileUse& use_;
  CallSite where_;
  int rank_;
  Manifest manifest_;
  distributed::Mesh mesh_;
  std::vector<Tensor> values_;
  std::vector<MeshLayout> layouts_;
  Vec<BufferRef> buffers_;
  std::string numbers_;
  Vec<std::uint32_t> crcs_, all_crcs_;
};

// --- load ----------------------------------------------------------------------------------------

/// A checkpoint that is being read.
class Loading {
 public:
  Loading(const std::string& folder, Manifest manifest, const FileUse& use)
      : folder_(folder), manifest_(std::move(manifest)), use_(use), rank_(World::current().rank()) {
    for (std::size_t i = 0; i < manifest_.leaves.size(); ++i) add_stored(i);
  }
  bool misses_file() const { return misses_file_; }

  /// Throws: Error(io) that names all that differs.
  void check(std::span<const StoredPart> like, const std::vector<Sharding>& shardings,
             const distributed::Mesh& mesh) const {
    std::vector<WantedPart> wanted;
    for (std::size_t i = 0; i < like.size(); ++i) {
      WantedPart part{name_of_part(like[i].path), std::nullopt, like[i].kind == Kind::number};
      const Tensor& t = like[i].value;
      if (t.defined())
        part.form = NpzFile::Form{
            t.dtype(),
            MeshLayout(mesh.axes(), shardings[i], t.rank(), named(part.name)).whole(t.shape())};
      wanted.push_back(std::move(part));
    }
    std::vector<std::string> names;
    for (const Manifest::Leaf& leaf : manifest_.leaves) names.push_back(leaf.name);
    const std::string text = tree_difference(wanted, names, [&](const std::string& name) {
      const std::size_t i = index_of(name);
      if (i == names.size()) return std::optional<NpzFile::Form>();
      return std::optional(NpzFile::Form{manifest_.leaves[i].dtype, manifest_.leaves[i].shape});
    });
    if (!text.empty()) use_.refuse(text);
  }

  std::vector<Tensor> read(std::span<const StoredPart> like, const std::vector<Sharding>& shardings,
                           const distributed::Mesh& mesh) {
    Vec<Own> own(like.size());
    for (std::size_t i = 0; i < like.size(); ++i) {
      const std::string name = name_of_part(like[i].path);
      own[i].leaf = index_of(name);
      const Manifest::Leaf& leaf = manifest_.leaves[own[i].leaf];
      const MeshLayout layout(mesh.axes(), shardings[i], leaf.shape.rank(), named(name));
      layout.check(leaf.shape, named(name));
      own[i].block = layout.block(leaf.shape, rank_);
      own[i].aval = Aval(leaf.dtype, own[i].block.extents);
      own[i].buffer = allocate(own[i].aval.bytes(), "part of a checkpoint");
    }
    for (const auto& [process, stored] : stored_) read_file(process, stored, own);
    std::vector<Tensor> values;
    for (std::size_t i = 0; i < like.size(); ++i) {
      Tensor value = from_buffer(std::move(own[i].buffer), own[i].aval);
      const std::string& name = manifest_.leaves[own[i].leaf].name;
      if (like[i].kind == Kind::number)
        value =
            stored_number(value, like[i].value.dtype(), use_.function, use_.where,
                          [&](const std::string& wrong) { use_.refuse(name + " is " + wrong); });
      values.push_back(std::move(value));
    }
    return values;
  }

 private:
  /// What this process is to have of a leaf.
  struct Own {
    std::size_t leaf = 0;
    MeshBlock block;
    Aval aval;
    BufferRef buffer;
  };
  /// A block in a process's file.
  struct Stored {
    std::size_t leaf;
    Manifest::Part part;
    MeshBlock block;
  };

  static std::int64_t processes_of(std::span<const distributed::MeshAxis> mesh) {
    std::int64_t n = 1;
    for (const distributed::MeshAxis& a : mesh) n = times(n, a.size);
    return n;
  }
  MeshLayoutUse named(const std::string& name) const {
    return {use_.function, name + " of " + folder_, use_.where};
  }
  std::size_t index_of(const std::string& name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? manifest_.leaves.size() : found->second;
  }

  /// Notes where the blocks of a leaf lie; they must be all that there are, each once.
  void add_stored(std::size_t i) {
    const Manifest::Leaf& leaf = manifest_.leaves[i];
    const auto refuse = [&] { use_.refuse("the manifest is damaged: the parts of " + leaf.name); };
    const MeshLayout layout(manifest_.mesh, leaf.sharding, leaf.shape.rank(), named(leaf.name));
    layout.check(leaf.shape, named(leaf.name));
    const std::int64_t processes = processes_of(manifest_.mesh);
    std::int64_t before = -1;
    for (const Manifest::Part& part : leaf.parts) {
      const std::int64_t r = part.process;
      if (r <= before || r >= processes || !layout.is_first(r)) refuse();
      before = r;
      MeshBlock block = layout.block(leaf.shape, r);
      if (part.bytes != Aval(leaf.dtype, block.extents).bytes()) refuse();
      stored_[r].push_back({i, part, std::move(block)});
    }
    if (static_cast<std::int64_t>(leaf.parts.size()) != layout.blocks().elements()) refuse();
    if (!places_.emplace(leaf.name, i).second) refuse();
  }

  /// Reads what is wanted of the file of a process.
  void read_file(std::int64_t process, const Vec<Stored>& stored, Vec<Own>& own) {
    const FileUse use{use_.function, in_folder(folder_, part_name(manifest_.id, process)),
                      use_.where};
    std::optional<InputFile> file;
    std::unordered_map<std::size_t, const Stored*> blocks;
    for (const Stored& s : stored) blocks[s.leaf] = &s;
    for (Own& o : own) {
      const auto found = blocks.find(o.leaf);
      if (found == blocks.end()) continue;
      const Stored& s = *found->second;
      const MeshBlock both = common_block(s.block, o.block);
      if (both.extents.elements() == 0) continue;
      if (!file) open(file, use);
      if (file->size() < s.part.offset || file->size() - s.part.offset < s.part.bytes)
        use.refuse(formatted("damaged: it has {} bytes, and {} lies behind them", file->size(),
                             manifest_.leaves[s.leaf].name));
      if (read_block(*file, s, o, both, use) != s.part.crc)
        use.refuse(formatted("damaged: {} has not the checksum that was written",
                             manifest_.leaves[s.leaf].name));
    }
  }
  void open(std::optional<InputFile>& file, const FileUse& use) {
    try {
      file.emplace(use);
    } catch (const Error&) {
      std::error_code wrong;
      misses_file_ = !std::filesystem::exists(use.path, wrong);
      throw;
    }
  }

  /// Copies what both blocks hold; the checksum of the stored one.
  std::uint32_t read_block(const InputFile& file, const Stored& s, Own& own, const MeshBlock& both,
                           const FileUse& use) {
    char* const to_begin = own.buffer->as<char>();
    if (s.block == own.block) {
      file.read(s.part.offset, to_begin, s.part.bytes, use);
      return crc32(to_begin, s.part.bytes);
    }
    std::uint32_t crc = 0;
    std::uint64_t begin = 0, end = 0;  // of the chunk that was read last
    if (chunk_.empty()) chunk_.resize(chunk_bytes);
    const auto next_chunk = [&] {
      begin = end;
      end = std::min(begin + chunk_bytes, s.part.bytes);
      file.read(s.part.offset + begin, chunk_.data(), end - begin, use);
      crc = crc32(chunk_.data(), end - begin, crc);
    };
    const auto size = static_cast<std::uint64_t>(size_of(own.aval.dtype));
    Shape from_at = both.at, to_at = both.at;
    for (std::size_t i = 0; i < both.at.size(); ++i) {
      from_at[i] -= s.block.at[i];
      to_at[i] -= own.block.at[i];
    }
    for_each_run({s.block.extents, from_at}, {own.block.extents, to_at}, both.extents,
                 [&](std::int64_t from, std::int64_t to, std::int64_t elements) {
                   std::uint64_t at = static_cast<std::uint64_t>(from) * size;
                   std::uint64_t left = static_cast<std::uint64_t>(elements) * size;
                   char* out = to_begin + static_cast<std::uint64_t>(to) * size;
                   while (left > 0) {
                     while (at >= end) next_chunk();
                     const std::uint64_t n = std::min(left, end - at);
                     std::memcpy(out, chunk_.data() + (at - begin), n);
                     at += n;
                     out += n;
                     left -= n;
                   }
                 });
    while (end < s.part.bytes) next_chunk();
    return crc;
  }

  const std::string& folder_;
  Manifest manifest_;
  const FileUse& use_;
  int rank_;
  std::unordered_map<std::string, std::size_t> places_;  ///< of leaves, by name
  std::map<std::int64_t, Vec<Stored>> stored_;           ///< by process
  std::vector<char> chunk_;
  bool misses_file_ = false;
};

/// The manifest's text on all processes; nothing, if there is none.
std::optional<std::string> shared_manifest(const std::string& folder, const FileUse& use,
                                           const Together& all) {
  std::string text;  // behind a letter that says that there is one
  all.attempt_first([&] {
    if (const auto found = manifest_text(folder, use)) text = "+" + *found;
  });
  text = all.text_of(0, text);
  return text.empty() ? std::nullopt : std::optional(text.substr(1));
}

}  // namespace detail::checkpoint_files

namespace detail {

void save_checkpoint(const std::string& folder, std::span<const StoredPart> parts,
                     FunctionRef<Vec<Sharding>()> specs, const distributed::SaveOptions& options,
                     CallSite where) {
  using namespace checkpoint_files;
  const FileUse use{"vt::distributed::save", folder, where};
  const Together all(use.function, where);
  Saving saving(folder, use, where);
  all.attempt([&] { saving.prepare(parts, specs(), options); });
  saving.compare(all);
  std::string id;
  all.attempt_first([&] {
    prepare_folder(folder, use);
    id = new_file_id();
  });
  saving.set_id(all.text_of(0, id));
  // A verdict is the same on all processes, so that none removes what another one's manifest names.
  // Without one, as where a process was killed, the files stay for the next save.
  auto failure = all.verdict([&] { saving.write(); });
  if (!failure) {
    saving.gather_checksums(all);
    failure = all.verdict([&] {
      if (World::current().rank() == 0) saving.commit();
    });
  }
  if (!failure) return;
  saving.remove();
  throw Error(failure->kind, failure->message);
}

std::vector<Tensor> load_checkpoint(const std::string& folder, std::span<const StoredPart> like,
                                    FunctionRef<Vec<Sharding>()> specs,
                                    const distributed::LoadOptions& options, CallSite where) {
  using namespace checkpoint_files;
  const FileUse use{"vt::distributed::load", folder, where};
  const Together all(use.function, where);
  std::vector<Sharding> shardings;
  distributed::Mesh mesh;
  all.attempt([&] {
    shardings = shardings_of(like, specs());
    mesh = mesh_or_all(options.mesh, {use.function, "", where});
  });
  for (std::string before;;) {
    const std::optional<std::string> text = shared_manifest(folder, use, all);
    std::vector<Tensor> values;
    bool misses_file = false;
    const auto failure = all.verdict([&] {
      if (!text) use.refuse("there is no checkpoint: no checkpoint.txt in it");
      Loading loading(folder, Manifest::read(*text, use), use);
      loading.check(like, shardings, mesh);
      try {
        values = loading.read(like, shardings, mesh);
      } catch (...) {
        misses_file = loading.misses_file();
        throw;
      }
    });
    if (!failure) return values;
    // A program that saves may have removed the files of a manifest since it was read.
    if (!all.any(misses_file) || *text == before) throw Error(failure->kind, failure->message);
    before = *text;
  }
}

}  // namespace detail

namespace distributed {

std::int64_t latest_step(const std::string& folder, CallSite where) {
  using namespace detail::checkpoint_files;
  const detail::FileUse use{"vt::distributed::latest_step", folder, where};
  const detail::Together all(use.function, where);
  const std::optional<std::string> text = shared_manifest(folder, use, all);
  return text ? detail::Manifest::read(*text, use).step : -1;
}

}  // namespace distributed
}  // namespace vt
