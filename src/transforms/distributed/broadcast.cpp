// vt::distributed::broadcast: the values of one process, copied to all.
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vt/detail/message.hpp>
#include <vt/distributed.hpp>

#include "../../trace/processes/world.hpp"
#include "../../trace/record/devices.hpp"
#include "../../trace/record/node.hpp"
#include "together.hpp"

namespace vt::detail {

namespace broadcasts {

/// An Aval as bytes: −1 for an empty Tensor; else the dtype, whether it is weak, the rank, the
/// shape.
void write(std::string& text, const Tensor& t) {
  const auto add = [&](std::int64_t n) {
    text.append(reinterpret_cast<const char*>(&n), sizeof n);
  };
  if (!t.defined()) return add(-1);
  const Aval& aval = aval_of(t);
  add(static_cast<std::int64_t>(aval.dtype));
  add(aval.weak);
  add(aval.shape.rank());
  for (int k = 0; k < aval.shape.rank(); ++k) add(aval.shape[k]);
}
std::optional<Aval> read(const std::string& text, std::size_t& at) {
  const auto next = [&] {
    std::int64_t n = 0;
    std::memcpy(&n, text.data() + at, sizeof n);
    at += sizeof n;
    return n;
  };
  const std::int64_t dtype = next();
  if (dtype < 0) return std::nullopt;
  const bool weak = next() != 0;
  Vec<std::int64_t> dims(static_cast<std::size_t>(next()));
  for (std::int64_t& d : dims) d = next();
  return Aval(static_cast<DType>(dtype), Shape(std::span<const std::int64_t>(dims)), weak);
}

}  // namespace broadcasts

std::vector<Tensor> broadcast_parts(std::span<const StoredPart> parts, int from, CallSite where) {
  const char* const function = "vt::distributed::broadcast";
  World& world = World::current();
  const Together all(function, where);
  std::string paths, avals;
  for (const StoredPart& part : parts) {
    paths += part.path + "\n";
    if (world.rank() == from) broadcasts::write(avals, part.value);
  }
  if (from < 0 || from >= world.size())
    fail(ErrorKind::value,
         formatted("{}: from is {}, and there are {} processes", function, from, world.size()),
         where);
  all.same(paths, ErrorKind::tree, "the trees");
  avals = all.text_of(from, avals);
  Vec<Aval> given;
  Vec<BufferRef> buffers;
  all.attempt([&] {
    std::size_t at = 0;
    for (const StoredPart& part : parts) {
      const std::optional<Aval> aval = broadcasts::read(avals, at);
      const auto refuse = [&](ErrorKind kind, const std::string& what) {
        const std::string name = part.path.empty() ? "the Tensor" : part.path;
        fail(kind, formatted("{}: {} is {}", function, name, what), where);
      };
      if (!aval) refuse(ErrorKind::value, formatted("empty on rank {}", from));
      if (const Tensor& own = part.value; own.defined())
        if (const Aval& is = aval_of(own); is.dtype != aval->dtype || is.shape != aval->shape)
          refuse(ErrorKind::shape, formatted("{} on rank {}, and {} on rank {}", aval->str(), from,
                                             is.str(), world.rank()));
      given.push_back(*aval);
      buffers.push_back(world.rank() == from ? on_host(buffer_of(part.value, where, function))
                                             : allocate(aval->bytes(), function));
    }
  });
  std::vector<Tensor> values;
  const auto name = [&] { return std::string(function); };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    world.broadcast({0, 1, world.size(), world.rank()}, from, buffers[i]->as<char>(),
                    given[i].bytes(), {name, where});
    values.push_back(world.rank() == from ? parts[i].value
                                          : from_buffer(std::move(buffers[i]), given[i]));
  }
  return values;
}

}  // namespace vt::detail
