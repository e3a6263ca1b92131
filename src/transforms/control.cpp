// map and associative_scan, composed of scan and vmap.
#include <vt/control.hpp>
#include <vt/detail/small_vec.hpp>

#include <algorithm>

#include "../trace/ops/support/operands.hpp"
#include "../trace/record/scope.hpp"

namespace vt::detail {

namespace control_compositions {

[[noreturn]] void refuse(ErrorKind kind, const ControlCall& call, const std::string& what) {
  fail(kind, std::string(call.name) + ": " + what, user_line(call.where));
}

std::string sequence_name(const ControlCall& call, std::size_t i) {
  return call.sequence_name ? call.sequence_name(i) : "sequence " + std::to_string(i);
}

std::vector<Tensor> vectorized(const FlatFunction& f, std::span<const Tensor> arguments,
                               std::size_t sequences, const ControlCall& call) {
  const Vec<MappedAxis> axes(arguments.size(), 0);
  VmapCall v;
  v.arguments = arguments;
  v.in_axes = axes;
  v.transform = call.name;
  v.argument_name = [&](std::size_t i) {  // an operator's arguments are two elements
    return sequence_name(call, i % sequences);
  };
  v.where = user_line(call.where);
  return vmap_flat(f, v);
}

/// The extent of `axis`, which all must share. `axis` is counted from the front of each.
std::int64_t common_length(std::span<const Tensor> xs, int axis, const ControlCall& call) {
  if (xs.empty()) refuse(ErrorKind::tree, call, "there are no sequences");
  std::int64_t length = -1;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const std::string name = sequence_name(call, i);
    if (!xs[i].defined()) refuse(ErrorKind::value, call, name + " is an empty Tensor");
    const int rank = xs[i].rank();
    if (axis < -rank || axis >= rank)
      refuse(
          ErrorKind::shape, call,
          "there is no axis " + std::to_string(axis) + " in " + name + ", " + aval_of(xs[i]).str());
    const std::int64_t n = extent(xs[i].shape(), axis < 0 ? axis + rank : axis);
    if (length < 0) length = n;
    if (n != length)
      refuse(ErrorKind::shape, call,
             "the sequences must have one length along axis " + std::to_string(axis) + ", but " +
                 name + " is " + aval_of(xs[i]).str() + " where others have " +
                 std::to_string(length));
  }
  return length;
}

/// The prefixes of `xs`, combined along axis 0: neighbours are combined, their prefixes found, and
/// the elements between them follow with one combination each.
std::vector<Tensor> prefixes(const FlatFunction& op, const std::vector<Tensor>& xs,
                             const ControlCall& call) {
  const CallSite line = user_line(call.where);
  const std::int64_t n = xs[0].shape()[0];
  if (n < 2) return xs;
  const auto strided = [&](const std::vector<Tensor>& all, std::int64_t start, std::int64_t limit,
                           std::int64_t stride) {
    std::vector<Tensor> parts;
    for (const Tensor& t : all) parts.push_back(sliced(t, 0, start, limit, stride, line));
    return parts;
  };
  const auto element = [](const Tensor& all) {
    Aval a = aval_of(all);
    a.shape.erase(a.shape.begin());
    return a;
  };
  const auto combined = [&](std::vector<Tensor> a, const std::vector<Tensor>& b) {
    a.insert(a.end(), b.begin(), b.end());
    std::vector<Tensor> out = vectorized(op, a, b.size(), call);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Aval wanted = element(b[i]), given = element(out[i]);
      if (given.shape != wanted.shape || (given.dtype != wanted.dtype && !given.weak))
        refuse(given.shape != wanted.shape ? ErrorKind::shape : ErrorKind::dtype, call,
               "the function must give an element, but makes " + given.str() + " of two " +
                   wanted.str() + " of " + sequence_name(call, i));
      check_literals(call.name + 4, {&out[i], 1}, b[i].dtype(), Literal::value, line);
      out[i] = cast(out[i], b[i].dtype(), aval_of(b[i]).weak, line);
    }
    return out;
  };
  const std::vector<Tensor> pairs = combined(strided(xs, 0, n - 1, 2), strided(xs, 1, n, 2));
  const std::vector<Tensor> odd = prefixes(op, pairs, call);  // of elements 1, 3, …
  const std::int64_t between = (n - 1) / 2;                   // elements 2, 4, …
  std::vector<Tensor> even = strided(xs, 0, 1, 1);
  if (between > 0) {
    const std::vector<Tensor> rest = combined(strided(odd, 0, between, 1), strided(xs, 2, n, 2));
    for (std::size_t i = 0; i < xs.size(); ++i) even[i] = concatenate({even[i], rest[i]}, 0, line);
  }
  std::vector<Tensor> result;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    // even₀ odd₀ even₁ odd₁ …
    const std::int64_t m = n / 2;
    const Tensor both = stack({sliced(even[i], 0, 0, m, 1, line), odd[i]}, 1, line);
    Shape shape{2 * m};
    shape.append(xs[i].shape().begin() + 1, xs[i].shape().end());
    Tensor interleaved = reshaped(both, shape, line);
    if (n % 2)
      interleaved = concatenate({interleaved, sliced(even[i], 0, m, m + 1, 1, line)}, 0, line);
    result.push_back(std::move(interleaved));
  }
  return result;
}

}  // namespace control_compositions

std::vector<Tensor> map_flat(const FlatFunction& f, std::span<const Tensor> xs,
                             const MapOptions& options, const ControlCall& call) {
  using namespace control_compositions;
  const CallSite line = user_line(call.where);
  const std::int64_t n = common_length(xs, 0, call), block = options.batch_size;
  if (block < 0)
    refuse(ErrorKind::value, call,
           "batch_size is " + std::to_string(block) + "; it is a number of elements, or 0");
  if (block == 0) return scan_flat(f, {}, xs, {}, call);
  if (block >= n) return vectorized(f, xs, xs.size(), call);
  const std::int64_t whole = n / block * block;
  std::vector<Tensor> blocks, rest;
  for (const Tensor& x : xs) {
    Shape shape{whole / block, block};
    shape.append(x.shape().begin() + 1, x.shape().end());
    blocks.push_back(reshaped(sliced(x, 0, 0, whole, 1, line), shape, line));
    if (whole < n) rest.push_back(sliced(x, 0, whole, n, 1, line));
  }
  std::vector<Tensor> out =
      scan_flat([&](std::span<const Tensor> x) { return vectorized(f, x, xs.size(), call); }, {},
                blocks, {}, call);
  const std::vector<Tensor> last =
      whole < n ? vectorized(f, rest, xs.size(), call) : std::vector<Tensor>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    Shape shape{whole};
    shape.append(out[i].shape().begin() + 2, out[i].shape().end());
    out[i] = reshaped(out[i], shape, line);
    if (whole < n) out[i] = concatenate({out[i], last[i]}, 0, line);
  }
  return out;
}

std::vector<Tensor> associative_scan_flat(const FlatFunction& op, std::span<const Tensor> elements,
                                          const AssociativeScanOptions& options,
                                          const ControlCall& call) {
  using namespace control_compositions;
  const CallSite line = user_line(call.where);
  common_length(elements, options.axis, call);
  const auto moved = [&](const Tensor& t, int from, int to) {
    return moveaxis({t, line.file, line.line}, Axes{from}, Axes{to});
  };
  std::vector<Tensor> xs;
  for (const Tensor& t : elements) {
    Tensor x = moved(t, options.axis, 0);
    if (options.reverse) x = flip({x, line.file, line.line}, 0);
    xs.push_back(std::move(x));
  }
  std::vector<Tensor> out = prefixes(op, xs, call);
  for (Tensor& t : out) {
    if (options.reverse) t = flip({t, line.file, line.line}, 0);
    t = moved(t, 0, options.axis);
  }
  return out;
}

}  // namespace vt::detail
