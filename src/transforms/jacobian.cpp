// Jacobians and Hessians: a linearized function pushed or pulled along every basis vector at once,
// by vmap.
#include <algorithm>
#include <string>

#include <vt/detail/entry_points.hpp>
#include <vt/detail/small_vec.hpp>

#include "../trace/record/memory_limit.hpp"
#include "distributed/outside.hpp"
#include "grad/build.hpp"
#include "grad/linearize.hpp"
#include "grad/sparsity.hpp"
#include "vmap/batch.hpp"

namespace vt::detail {

namespace jacobian_parts {

using namespace grad_build;

/// Rows `start` … of the identity on the elements of `a`, each in the shape of `a`: [count,
/// shape…]. Its zeros are −0, as keep_zeros has them.
inline Tensor basis_rows(const Aval& a, std::int64_t start, std::int64_t count) {
  const std::int64_t n = a.elements();
  const DType index = index_type(n);
  const Shape square{count, n};
  Tensor row = index_along(index, square, 0);
  if (start) row = binary(Op::add, row, scalar(index, static_cast<double>(start)));
  Shape shape{count};
  shape.append(a.shape.begin(), a.shape.end());
  const Tensor is_one = binary(Op::eq, row, index_along(index, square, 1));
  return with_shape(choose(is_one, scalar(a.dtype, 1), scalar(a.dtype, -0.0)), shape);
}

/// The lanes of a batched value at the front or the back; one copy for each lane where it has none.
inline Tensor lanes_at(const Batched& b, std::int64_t lanes, bool front) {
  if (!b.axis) {
    Shape shape = b.value.shape();
    const Axes axes = [&] {
      Axes own;
      for (int d = 0; d < b.value.rank(); ++d) own.push_back(front ? d + 1 : d);
      return own;
    }();
    shape.insert(front ? shape.begin() : shape.end(), lanes);
    return in_dim(b.value, shape, axes);
  }
  Axes order = other_axes(b.value.rank(), Axes(*b.axis));
  order.insert(front ? order.begin() : order.end(), *b.axis);
  return permuted(b.value, order);
}

inline Shape joined_shape(const Shape& a, const Shape& b) {
  Shape all = a;
  all.append(b.begin(), b.end());
  return all;
}

/// One linear function applied to every basis vector of `from`: its results, with the lanes at the
/// front or the back. `f` may leave results undefined (zero); these come back undefined.
template <class Linear>
std::vector<Tensor> along_basis(const Linear& f, const Aval& from, std::size_t results, bool front,
                                std::int64_t chunk, const GradCall& call,
                                std::uint64_t all_results) {
  const std::int64_t n = from.elements();
  Vec<JoinedBlocks> joined(results);
  Vec<bool> defined(results);
  Vec<int> axes(results, 0);
  const auto block = [&](std::int64_t start, std::int64_t lanes) {
    auto dense = [&](std::span<const Tensor> in) {
      std::vector<Tensor> all = f(in[0]), kept;
      for (std::size_t i = 0; i < results; ++i) {
        defined[i] = all[i].defined();
        if (defined[i]) kept.push_back(std::move(all[i]));
      }
      return kept;
    };
    std::vector<Tensor> values;
    if (n == 1) {  // one lane is none
      const Tensor one = filled(from, 1);
      for (const Tensor& t : with_zeros_kept(dense, {&one, 1}, call.transform))
        values.push_back(lanes_at({t, std::nullopt}, 1, front));
    } else {
      Vec<Batched> inputs{{basis_rows(from, start, lanes), 0}};
      Recorded lane = record_lane(dense, inputs, {}, call.transform);
      for (const Tensor& t : lane.captured) inputs.push_back({t, std::nullopt});
      if (std::optional<MaskedGraph> sparse =
              keep_zeros(lane.graph, {identity_pattern(start, lanes, n)}, lane.captured, lanes)) {
        lane.graph = std::move(sparse->graph);
        for (const SparsityMask& m : sparse->masks)
          inputs.push_back({m.value, m.by_direction ? MappedAxis(0) : std::nullopt});
      }
      for (const Batched& b : batch_graph(lane.graph, inputs, lanes))
        values.push_back(lanes_at(b, lanes, front));
    }
    return values;
  };
  chunk = lanes_at_once({.transform = call.transform,
                         .where = call.where,
                         .lanes = n,
                         .chunk = chunk,
                         .limit = call.memory_limit,
                         .held = call.arguments,
                         .other_results = all_results},
                        [&](std::int64_t count) { return block(0, count); });
  if (chunk <= 0 || chunk > n) chunk = n;
  for (std::int64_t start = 0; start < n; start += chunk) {
    const std::int64_t lanes = std::min(chunk, n - start);
    std::vector<Tensor> values = block(start, lanes);
    // A chunk is there to bound memory, so it must be done before the next one starts.
    const bool now = lanes < n && !values.empty() && current_level() == 0;
    if (now) evaluate(values, call.where);
    std::size_t next = 0;
    for (std::size_t i = 0; i < results; ++i) {
      if (!defined[i]) continue;
      axes[i] = front ? 0 : values[next].rank() - 1;
      joined[i].add(std::move(values[next++]), axes[i], n, now, call.where);
    }
  }
  std::vector<Tensor> whole(results);
  for (std::size_t i = 0; i < results; ++i)
    if (!joined[i].empty()) whole[i] = joined[i].whole(axes[i], {});
  return whole;
}

inline std::string result_name(const GradCall& call, std::size_t i) {
  return call.result_name ? call.result_name(i) : "result " + std::to_string(i);
}

inline void check_examples(const GradCall& call, const LinearPart& part,
                           std::span<const Aval> results) {
  std::int64_t examples = -1;
  const auto check = [&](const Aval& a, const std::string& name) {
    if (a.shape.empty())
      fail(ErrorKind::shape,
           std::string(call.transform) + ": " + name + " is a scalar " + a.str() +
               "; axis 0 must hold the examples",
           call.where);
    if (examples < 0) examples = a.shape[0];
    if (a.shape[0] != examples)
      fail(ErrorKind::shape,
           std::string(call.transform) + ": " + name + " is " + a.str() + ", but there are " +
               std::to_string(examples) +
               " examples; axis 0 of every argument and result must hold them",
           call.where);
  };
  std::size_t k = 0;
  for (std::size_t i = 0; i < call.wanted.size(); ++i)
    if (call.wanted[i])
      check(part.wanted[k++],
            call.argument_name ? call.argument_name(i) : "argument leaf " + std::to_string(i));
  for (std::size_t o = 0; o < results.size(); ++o) check(results[o], result_name(call, o));
}

/// A basis vector moves on all processes at once: where a process has a part of its own, columns or
/// rows of all of them would be added.
bool is_forward(const GradCall& call, JacobianMode mode, bool is_tall, const OutsideUse& use) {
  const std::string transform = call.transform;
  if (mode == JacobianMode::automatic && !use.has_own_inputs && !use.has_own_outputs)
    return is_tall;
  const bool forward =
      mode == JacobianMode::automatic ? !use.has_own_inputs : mode == JacobianMode::forward;
  if (forward && use.has_own_inputs)
    fail(ErrorKind::transform,
         transform + ": an argument is this process's part, which a collective" +
             in_passing(use.where) +
             " combines with those of others, and their columns would be added. Take vt::grad, "
             "which gives each process its part, or differentiate by the whole, of which "
             "vt::distributed::part takes the part",
         call.where);
  if (!forward && use.has_own_outputs)
    fail(ErrorKind::transform,
         transform +
             ": a result is this process's part, and rows of all processes would be added. "
             "Take vt::jacfwd, or give the whole: vt::all_gather inside of vt::shard_map, "
             "with out_specs vt::replicated",
         call.where);
  return forward;
}

}  // namespace jacobian_parts

JacobianFlat jacobian_flat(const FlatFunction& f, const GradCall& call, JacobianMode mode,
                           std::int64_t chunk, bool by_example) {
  using namespace jacobian_parts;
  if (chunk < 0)
    fail(ErrorKind::value,
         std::string(call.transform) + ": chunk " + std::to_string(chunk) + " must not be negative",
         call.where);
  LinearPart part = linearize_call(f, call);
  JacobianFlat result;
  result.outputs = std::move(part.outputs);
  WhereScope line(call.where);

  std::int64_t inputs = 0, outputs = 0;
  for (const Aval& a : part.wanted) inputs += a.elements();
  Vec<Aval> out;
  for (std::size_t o = 0; o < result.outputs.size(); ++o) {
    const Aval& a = aval_of(result.outputs[o]);
    if (!is_inexact(a.dtype))
      fail(ErrorKind::dtype,
           std::string(call.transform) + ": " + result_name(call, o) + " is " + a.str() +
               ", and only float and complex results have derivatives",
           call.where);
    if (call.holomorphic) need_holomorphic(call, part, a);
    out.emplace_back(a.dtype, a.shape);
    outputs += a.elements();
  }
  if (!call.holomorphic) {
    // One complex number per pair of elements has room for a real function's gradient or a path's
    // velocity, but not for both.
    const auto has_complex = [](const Vec<Aval>& all) {
      return any_of(all, [](const Aval& a) { return is_complex(a.dtype); });
    };
    const bool in = has_complex(part.wanted), from_results = has_complex(out);
    if ((in && from_results) || (in && mode == JacobianMode::forward) ||
        (from_results && mode == JacobianMode::reverse))
      fail(ErrorKind::dtype,
           std::string(call.transform) +
               (in && from_results ? ": arguments and results are both complex"
                : in               ? ": forward mode needs real arguments"
                                   : ": reverse mode needs real results") +
               "; say {.holomorphic = true} if the function has a complex derivative, or take "
               "vt::real and vt::imag apart",
           call.where);
    if (in) mode = JacobianMode::reverse;
    if (from_results) mode = JacobianMode::forward;
  }
  if (by_example) check_examples(call, part, out);
  const auto basis = [&](const Aval& a) {
    return by_example ? Aval(a.dtype, Shape(std::span(a.shape.begin() + 1, a.shape.end()))) : a;
  };
  // The same direction for every example.
  const auto whole = [&](const Tensor& one, const Aval& a) {
    return by_example ? in_dim(one, a.shape, other_axes(a.shape.rank(), Axes{0})) : one;
  };
  const bool forward = is_forward(call, mode, inputs < outputs, outside_use(f, call));

  // Blocks of the result that one call of along_basis does not make; those of examples are
  // transposed once more.
  const auto others = [&](std::size_t o, std::size_t k) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < out.size(); ++i)
      for (std::size_t j = 0; j < part.wanted.size(); ++j)
        if (by_example || (forward ? j != k : i != o))
          bytes += out[i].bytes() * static_cast<std::uint64_t>(basis(part.wanted[j]).elements());
    for (const Tensor& t : result.outputs) bytes += aval_of(t).bytes();
    return bytes;
  };
  result.blocks.assign(out.size(), std::vector<Tensor>(part.wanted.size()));
  if (forward) {
    for (std::size_t k = 0; k < part.wanted.size(); ++k) {
      auto push = [&](const Tensor& column) {
        std::vector<Tensor> tangents(part.wanted.size());
        tangents[k] = whole(column, part.wanted[k]);
        return push_linear(part, tangents);
      };
      const std::vector<Tensor> columns =
          along_basis(push, basis(part.wanted[k]), out.size(), false, chunk, call, others(0, k));
      for (std::size_t o = 0; o < out.size(); ++o) result.blocks[o][k] = columns[o];
    }
  } else {
    for (std::size_t o = 0; o < out.size(); ++o) {
      if (part.tangent_of[o] < 0) continue;
      auto pull = [&](const Tensor& row) {
        std::vector<Tensor> cotangents(out.size());
        cotangents[o] = whole(row, out[o]);
        return pull_linear(part, cotangents);
      };
      result.blocks[o] =
          along_basis(pull, basis(out[o]), part.wanted.size(), true, chunk, call, others(o, 0));
      for (Tensor& block : result.blocks[o])
        // examples in front of the rows
        if (by_example && block.defined()) block = lanes_at({block, 1}, 0, true);
    }
  }
  for (std::size_t o = 0; o < out.size(); ++o)
    for (std::size_t k = 0; k < part.wanted.size(); ++k) {
      Tensor& block = result.blocks[o][k];
      const Shape shape = joined_shape(out[o].shape, basis(part.wanted[k]).shape);
      // Of mixed precisions a block has the result's dtype in both modes.
      const DType dtype =
          is_complex(part.wanted[k].dtype) ? complex_dtype(out[o].dtype) : out[o].dtype;
      block =
          block.defined() ? convert_to(with_shape(block, shape), dtype) : zeros(Aval(dtype, shape));
    }
  return result;
}

Vec<Vec<std::vector<Tensor>>> hessian_flat(const FlatFunction& f, const GradCall& call,
                                           std::int64_t chunk) {
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < call.arguments.size(); ++i)
    wanted += i < call.wanted.size() && call.wanted[i];
  auto rows = [&](std::span<const Tensor> arguments) {
    GradCall inner = call;
    inner.arguments = arguments;
    inner.memory_limit = 0;
    std::vector<Tensor> flat;
    for (std::vector<Tensor>& blocks : jacobian_flat(f, inner, JacobianMode::reverse, 0).blocks)
      for (Tensor& t : blocks) flat.push_back(std::move(t));
    return flat;
  };
  const JacobianFlat columns = jacobian_flat(rows, call, JacobianMode::forward, chunk);
  Vec<Vec<std::vector<Tensor>>> result;
  for (std::size_t i = 0; i < columns.blocks.size(); ++i) {
    if (i % wanted == 0) result.emplace_back();
    result.back().push_back(columns.blocks[i]);
  }
  return result;
}

}  // namespace vt::detail
