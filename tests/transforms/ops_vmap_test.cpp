// vmap of the composed public functions equals the loop over lanes, for every combination of mapped
// operands, with the lanes in front or at the end; and of no lanes at all the shapes are right.
#include <set>
#include <string>

#include <vt/detail/entry_points.hpp>
#include <vt/execution.hpp>

#include "src/trace/ir/graph.hpp"
#include "support/property.hpp"

namespace {

using namespace vt;
using vt::detail::MappedAxis;
using Tensors = std::vector<Tensor>;
using Given = std::span<const Tensor>;

struct In {
  Shape shape;
  DType dtype = f64;
  double low = -2, high = 2;
};
struct Row {
  const char* name;
  std::function<Tensor(Given)> f;
  std::vector<In> in;
};

In whole(const Shape& s, double low, double high) { return {s, i32, low, high}; }

/// Increasing points from positive steps.
Tensor increasing(const Tensor& steps) { return cumsum(steps); }

std::vector<Row> rows() {
  const In m{{3, 4}}, v{{4}}, s{{}}, k{{2, 3, 4}}, n = whole({3, 4}, -9, 9);
  return {
      // element-wise, with broadcasting between lanes and without
      {"floor_divide", [](Given a) { return floor_divide(a[0], a[1]); }, {n, whole({4}, -3, 3)}},
      {"mod", [](Given a) { return mod(a[0], a[1]); }, {m, v}},
      {"hypot", [](Given a) { return hypot(a[0], a[1]); }, {m, s}},
      {"copysign", [](Given a) { return copysign(a[0], a[1]); }, {m, v}},
      {"logaddexp", [](Given a) { return logaddexp(a[0], a[1]); }, {v, m}},
      {"xlogy", [](Given a) { return special::xlogy(a[0], a[1]); }, {m, {{3, 1}, f64, 0, 2}}},
      {"squared_difference", [](Given a) { return squared_difference(a[0], a[1]); }, {m, v}},
      {"pow", [](Given a) { return pow(a[0], a[1]); }, {{{3, 4}, f64, 0.2, 2}, v}},
      {"isclose", [](Given a) { return isclose(a[0], a[1], 0.3); }, {m, v}},
      {"where", [](Given a) { return where(a[0] > 0, a[1], a[2]); }, {v, m, s}},
      {"clip",
       [](Given a) { return clip(a[0], a[1], a[2]); },
       {m, {{}, f64, -1, 0}, {{4}, f64, 0, 1}}},
      {"mixed dtypes", [](Given a) { return a[0] * a[1] + 1; }, {n, {{4}, f32}}},
      // reductions and scans
      {"mean", [](Given a) { return mean(a[0], -1); }, {m}},
      {"var", [](Given a) { return var(a[0], 0, 1, true); }, {m}},
      {"std", [](Given a) { return vt::std(a[0]); }, {m}},
      {"logsumexp", [](Given a) { return logsumexp(a[0], 1); }, {m}},
      {"norm", [](Given a) { return norm(a[0], 3.0, 0); }, {m}},
      {"ptp", [](Given a) { return ptp(a[0]); }, {m}},
      {"argmax", [](Given a) { return argmax(a[0]); }, {m}},
      {"argmin", [](Given a) { return argmin(a[0], -1, true); }, {m}},
      {"count_nonzero", [](Given a) { return count_nonzero(a[0], 0); }, {n}},
      {"reduce",
       [](Given a) {
         return reduce(a[0], -99.0, [](Tensor p, Tensor q) { return maximum(p, q) + 0.0; }, 1);
       },
       {m}},
      {"reduce from a start",
       [](Given a) { return reduce(a[0], a[1], [](Tensor p, Tensor q) { return p + q; }, 0); },
       {m, s}},
      {"cumsum", [](Given a) { return cumsum(a[0], -1, {.reverse = true}); }, {n}},
      {"cumlogsumexp", [](Given a) { return cumlogsumexp(a[0]); }, {m}},
      {"cumsum of those before", [](Given a) { return cumsum(a[0], 0, {.exclusive = true}); }, {m}},
      {"cumprod of those behind",
       [](Given a) { return cumprod(a[0], 1, {.reverse = true, .exclusive = true}); },
       {m}},
      {"max from a start", [](Given a) { return vt::max(a[0], 1, {.initial = a[1]}); }, {m, s}},
      {"last argmax", [](Given a) { return argmax(a[0], 1, {.last = true}); }, {n}},
      {"smallest", [](Given a) { return top_k(a[0], 2, 0, {.smallest = true}).first; }, {m}},
      {"nanmean", [](Given a) { return nanmean(where(a[0] > 1, std::nan(""), a[0]), 1); }, {m}},
      {"nanstd", [](Given a) { return nanstd(where(a[0] > 1, std::nan(""), a[0]), 0); }, {m}},
      {"nanargmax", [](Given a) { return nanargmax(where(a[0] > 1, std::nan(""), a[0]), 0); }, {m}},
      {"roll by a Tensor", [](Given a) { return roll(a[0], a[1], 1); }, {m, whole({}, -9, 9)}},
      {"repeat by Tensors",
       [](Given a) { return repeat(a[0], a[1], 1, 6); },
       {m, whole({4}, 0, 4)}},
      {"linspace between Tensors", [](Given a) { return linspace(a[0], a[1], 3); }, {m, v}},
      {"unravel_index",
       [](Given a) { return unravel_index(a[0], {3, 4})[1]; },
       {whole({5}, 0, 12)}},
      {"ravel_multi_index",
       [](Given a) { return ravel_multi_index({a[0], a[1]}, {3, 4}); },
       {whole({5}, 0, 3), whole({5}, 0, 4)}},
      {"trapezoid", [](Given a) { return trapezoid(a[0], a[1]); }, {m, v}},
      {"convolve", [](Given a) { return convolve(a[0], a[1], ConvolveMode::same); }, {{{6}}, v}},
      {"polyfit",
       [](Given a) { return polyfit(a[0], a[1], 1); },
       {{{5}, f64, 0, 3}, {{5}, f64, -2, 2}}},
      {"select", [](Given a) { return select({a[0] > 0, a[1] > 0}, {a[1], a[0]}, -1); }, {m, v}},
      // shape
      {"reshape", [](Given a) { return reshape(a[0], {2, -1}); }, {m}},
      {"moveaxis", [](Given a) { return moveaxis(a[0], 0, -1); }, {k}},
      {"broadcast_to", [](Given a) { return broadcast_to(a[0], {2, 3, 4}); }, {v}},
      {"concatenate", [](Given a) { return concatenate({a[0], a[1]}, -1); }, {m, {{3, 2}}}},
      {"stack", [](Given a) { return stack({a[0], a[1], a[0]}, 1); }, {v, v}},
      {"split", [](Given a) { return split(a[0], 2, -1)[1]; }, {m}},
      {"pad", [](Given a) { return pad(a[0], {{1, -1}, {0, 2}}, a[1]); }, {m, s}},
      {"flip", [](Given a) { return flip(a[0]); }, {m}},
      {"roll", [](Given a) { return roll(a[0], 5); }, {m}},
      {"roll axis", [](Given a) { return roll(a[0], -1, -1); }, {m}},
      {"roll axes",
       [](Given a) { return roll(a[0], {2, -1}, {1, 0}) - roll(roll(a[0], 2, 1), -1, 0) + a[0]; },
       {m}},
      {"tile", [](Given a) { return tile(a[0], {2, 1, 3}); }, {m}},
      {"repeat", [](Given a) { return repeat(a[0], 2, 0); }, {m}},
      {"meshgrid",
       [](Given a) { return meshgrid({a[0], a[1]})[0] - meshgrid({a[0], a[1]})[1]; },
       {v, {{3}}}},
      {"space_to_depth", [](Given a) { return space_to_depth(a[0], 2); }, {{{1, 2, 4, 3}}}},
      {"pad mode",
       [](Given a) {
         return pad(a[0], {{2, 1}, {3, 5}}, PadMode::reflect) +
                pad(a[0], {{2, 1}, {3, 5}}, PadMode::wrap);
       },
       {m}},
      {"space_to_batch",
       [](Given a) { return space_to_batch(a[0], {2, 2}, {{1, 0}, {0, 0}}); },
       {{{2, 3, 4}}}},
      {"batch_to_space",
       [](Given a) { return batch_to_space(a[0], {3}, {{1, 0}}); },
       {{{6, 2, 2}}}},
      {"resize",
       [](Given a) {
         return resize(a[0], {5, 3}, Resize::cubic) + resize(a[0], {5, 3}, Resize::nearest);
       },
       {m}},
      {"crop_and_resize",
       [](Given a) {
         return crop_and_resize(a[0], a[1], tensor({1, 0, 1}), 3, 2, Resize::linear, -1.0);
       },
       {{{2, 4, 5, 2}}, {{3, 4}, f64, 0.05, 0.95}}},
      {"dropout", [](Given a) { return dropout(random::key(3), a[0], 0.3); }, {m}},
      {"depth_to_space", [](Given a) { return depth_to_space(a[0], 2); }, {{{1, 2, 1, 8}}}},
      {"zeros_like",
       [](Given a) { return a[0] + zeros_like(a[0]) + eye(4, a[0].dtype())[1]; },
       {m}},
      // index
      {"a[i]", [](Given a) { return a[0][1] + a[0][-1]; }, {m}},
      {"a[slice]", [](Given a) { return a[0][slice(std::nullopt, std::nullopt, -2)]; }, {m}},
      {"a[Tensor]", [](Given a) { return a[0][a[1]]; }, {m, whole({2, 2}, -5, 5)}},
      {"a[scalar]", [](Given a) { return a[0][a[1]]; }, {m, whole({}, -4, 4)}},
      {"take", [](Given a) { return take(a[0], a[1], -1); }, {m, whole({3}, -6, 6)}},
      {"take flat", [](Given a) { return take(a[0], a[1]); }, {m, whole({3}, -13, 13)}},
      {"take_along_axis",
       [](Given a) { return take_along_axis(a[0], a[1], 1); },
       {m, whole({3, 2}, -5, 5)}},
      {"take_along_axis stretched",
       [](Given a) { return take_along_axis(a[0], a[1], 0); },
       {{{3, 1}}, whole({2, 4}, -4, 3)}},
      {"index_update",
       [](Given a) { return index_update(a[0], a[1], a[2]); },
       {m, whole({}, -4, 4), v}},
      {"index_add", [](Given a) { return index_add(a[0], a[1], a[2]); }, {m, whole({5}, -4, 4), v}},
      {"index_mul", [](Given a) { return index_mul(a[0], a[1], a[2]); }, {m, whole({2}, -4, 4), s}},
      {"index_min", [](Given a) { return index_min(a[0], a[1], a[2]); }, {m, whole({2}, -4, 4), v}},
      {"index_max", [](Given a) { return index_max(a[0], a[1], a[2]); }, {m, whole({2}, -4, 4), v}},
      {"gather_nd", [](Given a) { return gather_nd(a[0], a[1]); }, {k, whole({5, 2}, -3, 3)}},
      {"scatter_nd",
       [](Given a) { return scatter_nd(a[0], a[1], {3, 4}); },
       {whole({5, 1}, -4, 4), {{5, 4}}}},
      {"dynamic_slice",
       [](Given a) { return dynamic_slice(a[0], {a[1], 1}, {2, 2}); },
       {m, whole({}, -2, 4)}},
      {"dynamic_update_slice",
       [](Given a) { return dynamic_update_slice(a[0], a[1], {a[2], a[2]}); },
       {m, {{2, 2}}, whole({}, -2, 4)}},
      {"one_hot", [](Given a) { return one_hot(a[0], 4, f64, 0); }, {whole({3}, -1, 5)}},
      {"segment_sum", [](Given a) { return segment_sum(a[0], a[1], 3); }, {m, whole({3}, -1, 3)}},
      {"segment_prod", [](Given a) { return segment_prod(a[0], a[1], 3); }, {m, whole({3}, -1, 3)}},
      {"segment_max", [](Given a) { return segment_max(a[0], a[1], 3); }, {m, whole({3}, -1, 3)}},
      {"segment_min", [](Given a) { return segment_min(a[0], a[1], 3); }, {n, whole({3}, -1, 3)}},
      {"segment_mean", [](Given a) { return segment_mean(a[0], a[1], 3); }, {m, whole({3}, -1, 3)}},
      {"bincount", [](Given a) { return bincount(a[0], 4); }, {whole({3, 4}, -1, 5)}},
      {"bincount of bools", [](Given a) { return bincount(a[0] > 2, 3); }, {whole({3, 4}, -1, 5)}},
      {"histogram", [](Given a) { return histogram(a[0], 3, -1.0, 1.0); }, {m}},
      {"bucketize",
       [](Given a) { return bucketize(a[0], increasing(a[1])); },
       {m, {{5}, f64, 0, 1}}},
      {"bucketize many",
       [](Given a) { return bucketize(a[0] * 30.0, increasing(a[1]), true); },
       {m, {{70}, f64, 0, 1}}},
      {"interp",
       [](Given a) { return interp(a[0] + 2.0, increasing(a[1]), a[2]); },
       {m, {{5}, f64, 0.1, 1}, {{5}}}},
      // scalars, whose lists of axes and strides are empty but given
      {"slice of a scalar", [](Given a) { return slice(a[0], {}, {}, {}); }, {s}},
      {"slice of a scalar without strides", [](Given a) { return slice(a[0], {}, {}); }, {s}},
      {"pad of a scalar", [](Given a) { return pad(a[0], a[1], {}, {}, {}); }, {s, s}},
      {"dynamic_slice of a scalar", [](Given a) { return dynamic_slice(a[0], {}, {}); }, {s}},
      {"transpose of a scalar", [](Given a) { return transpose(a[0], {}); }, {s}},
      {"flip of a scalar", [](Given a) { return flip(a[0], Axes{}) + flip(a[0]); }, {s}},
      {"squeeze of a scalar", [](Given a) { return squeeze(a[0], Axes{}) + squeeze(a[0]); }, {s}},
      {"reshape of a scalar", [](Given a) { return reshape(a[0], {}) + reshape(a[0], {-1}); }, {s}},
      {"broadcast_in_dim of a scalar",
       [](Given a) { return broadcast_in_dim(a[0], {2}, Axes{}); },
       {s}},
      {"sum over no axes", [](Given a) { return sum(a[0], Axes{}) + sum(a[0]); }, {s}},
      {"sum over no axes of a matrix", [](Given a) { return sum(a[0], Axes{}); }, {m}},
      {"tile of a scalar", [](Given a) { return tile(a[0], {}) + tile(a[0], {2}); }, {s}},
      {"gather_nd by no indices", [](Given a) { return gather_nd(a[0], zeros({2, 0}, i32)); }, {s}},
      // matrices and contractions
      {"diag", [](Given a) { return diag(a[0], -1); }, {v}},
      {"diagonal", [](Given a) { return diagonal(a[0], 1, 0, 2); }, {k}},
      {"trace", [](Given a) { return trace(a[0]); }, {m}},
      {"tril", [](Given a) { return tril(a[0]); }, {k}},
      {"triu", [](Given a) { return triu(a[0], 1); }, {m}},
      {"band_part", [](Given a) { return band_part(a[0], 1, 0); }, {m}},
      {"matrix_diag", [](Given a) { return matrix_diag(a[0]); }, {m}},
      {"matrix_set_diag", [](Given a) { return matrix_set_diag(a[0], a[1]); }, {m, {{3}}}},
      {"kron", [](Given a) { return kron(a[0], a[1]); }, {m, {{2}}}},
      {"cross", [](Given a) { return cross(a[0], a[1]); }, {{{2, 3}}, {{3}}}},
      {"polyval", [](Given a) { return polyval(a[0], a[1]); }, {v, m}},
      {"matrix_power", [](Given a) { return matrix_power(a[0], 3); }, {{{3, 3}}}},
      {"cov", [](Given a) { return cov(a[0]); }, {m}},
      {"corrcoef", [](Given a) { return corrcoef(a[0]); }, {m}},
      {"matmul", [](Given a) { return matmul(a[0], a[1]); }, {m, {{4, 2}}}},
      {"matmul vectors", [](Given a) { return matmul(a[0], a[1]); }, {v, v}},
      {"matmul matrix vector", [](Given a) { return matmul(a[0], a[1]); }, {m, v}},
      {"matmul batched", [](Given a) { return matmul(a[0], a[1]); }, {k, {{2, 4, 3}}}},
      {"matmul stretched", [](Given a) { return matmul(a[0], a[1]); }, {{{1, 3, 4}}, {{2, 4, 3}}}},
      {"dot", [](Given a) { return dot(a[0], a[1]); }, {k, {{4, 2}}}},
      {"vdot", [](Given a) { return vdot(a[0], a[1]); }, {m, m}},
      {"inner", [](Given a) { return inner(a[0], a[1]); }, {m, v}},
      {"outer", [](Given a) { return outer(a[0], a[1]); }, {v, m}},
      {"tensordot", [](Given a) { return tensordot(a[0], a[1], {0, 2}, {1, 0}); }, {k, {{4, 2}}}},
      {"einsum",
       [](Given a) { return einsum("bij,jk,b->kbi", {a[0], a[1], a[2]}); },
       {k, {{4, 2}}, {{2}}}},
      {"einsum ellipsis", [](Given a) { return einsum("...ij,...j->...i", {a[0], a[1]}); }, {k, v}},
      {"einsum diagonal",
       [](Given a) { return einsum("iij,j->i", {a[0], a[1]}); },
       {{{3, 3, 4}}, v}},
      {"sort", [](Given a) { return sort(a[0], 0, {.descending = true}); }, {m}},
      {"sort flat", [](Given a) { return sort(a[0], std::nullopt); }, {m}},
      {"argsort", [](Given a) { return argsort(a[0]); }, {whole({3, 4}, -1, 1)}},
      {"sort by keys",
       [](Given a) { return sort({a[0], a[1], a[2]}, -1, 2)[2]; },
       {whole({3, 4}, 0, 1), whole({3, 4}, 0, 1), m}},
      {"lexsort",
       [](Given a) { return lexsort({a[0], a[1]}, 0); },
       {whole({3, 4}, 0, 1), whole({3, 4}, 0, 1)}},
      {"top_k",
       [](Given a) { return top_k(a[0], 2, 0).first * top_k(a[0], 2, 0).second.astype(f64); },
       {m}},
      {"median", [](Given a) { return median(a[0], 1); }, {m}},
      {"quantile",
       [](Given a) { return quantile(a[0], a[1], -1, QuantileMethod::linear); },
       {m, {{3}, f64, 0, 1}}},
      {"quantile of all", [](Given a) { return quantile(a[0], a[1]); }, {m, {{}, f64, 0, 1}}},
      {"nanquantile",
       [](Given a) { return nanquantile(where(a[0] > 0.5, std::nan(""), a[0]), a[1], 0); },
       {m, {{}, f64, 0, 1}}},
      {"unique", [](Given a) { return unique(a[0], {.size = 5, .fill_value = -7}); }, {n}},
      {"unique_all",
       [](Given a) {
         const auto u = unique_all(a[0], {.size = 3});
         return concatenate({u.index, u.counts, ravel(u.inverse)});
       },
       {whole({3, 4}, -2, 2)}},
      {"searchsorted in a sort",
       [](Given a) { return searchsorted(sort(a[0]), a[1]); },
       {{{70}}, m}},
      {"nonzero", [](Given a) { return nonzero(a[0], 5, -1)[1]; }, {n}},
      {"searchsorted",
       [](Given a) { return searchsorted(increasing(a[0]), a[1]); },
       {{{5}, f64, 0, 1}, m}},
      {"average", [](Given a) { return average(a[0], a[1], 1); }, {m, {{4}, f64, 0.1, 1}}},
      {"images",
       [](Given a) {
         return adjust_contrast(adjust_hue(adjust_saturation(a[0], a[1]), a[2]), 1.5);
       },
       {{{2, 2, 3}, f64, 0, 1}, {{}, f64, 0, 2}, s}},
      // networks
      {"softmax", [](Given a) { return softmax(a[0], 0); }, {m}},
      {"log_softmax", [](Given a) { return log_softmax(a[0]); }, {m}},
      {"activations",
       [](Given a) {
         return relu(a[0]) + relu6(a[0]) + elu(a[0]) + selu(a[0]) + gelu(a[0]) + silu(a[0]) +
                softplus(a[0]) + leaky_relu(a[0]) + hard_tanh(a[0]) + softsign(a[0]);
       },
       {m}},
      {"layer_norm", [](Given a) { return layer_norm(a[0], a[1], a[2]); }, {m, v, s}},
      {"rms_norm", [](Given a) { return rms_norm(a[0], a[1], 0); }, {m, {{3}}}},
      {"group_norm", [](Given a) { return group_norm(a[0], 2, a[1], a[2]); }, {k, v, v}},
      {"batch_norm_training",
       [](Given a) { return batch_norm_training(a[0], a[1], a[2]).y; },
       {m, v, v}},
      {"batch_norm_inference",
       [](Given a) { return batch_norm_inference(a[0], 1.5, a[1], a[2], a[3]); },
       {m, v, v, {{4}, f64, 0.1, 1}}},
      {"cross_entropy",
       [](Given a) { return cross_entropy(a[0], a[1]); },
       {m, {{3, 4}, f64, 0, 1}}},
      {"sparse_cross_entropy",
       [](Given a) { return sparse_cross_entropy(a[0], a[1]); },
       {m, whole({3}, 0, 3)}},
  };
}

Tensors vmapped(const Row& row, const Tensors& arguments, const vt::Vec<MappedAxis>& in_axes,
                std::int64_t lanes) {
  detail::VmapCall call;
  call.arguments = arguments;
  call.in_axes = in_axes;
  call.out_axes = [](std::size_t n) { return vt::Vec<MappedAxis>(n, 0); };
  call.axis_size = lanes;
  return detail::vmap_flat([&](Given a) { return Tensors{row.f(a)}; }, call);
}

TEST(VmapOfFunctions, EqualsTheLoop) {
  constexpr std::int64_t lanes = 3;
  for (const Row& row : rows())
    for (unsigned mask = 1; mask < 1u << row.in.size(); ++mask)
      for (const bool at_end : {false, true}) {
        Tensors arguments;
        vt::Vec<MappedAxis> axes;
        for (std::size_t i = 0; i < row.in.size(); ++i) {
          const In& in = row.in[i];
          const bool mapped = mask >> i & 1u;
          Shape shape = in.shape;
          // Alternates, so that two operands carry their lanes in different places.
          const bool last = at_end != (i % 2 == 1);
          if (mapped) shape.insert(last ? shape.end() : shape.begin(), lanes);
          arguments.push_back(
              vt_test::random_tensor(in.dtype, shape, in.low, in.high, 10 * mask + i));
          axes.push_back(mapped ? MappedAxis(last ? -1 : 0) : std::nullopt);
        }
        std::string what = std::string(row.name) + " (";
        for (const MappedAxis& a : axes) what += a ? std::to_string(*a) + "," : "-,";
        try {
          const Tensors expected = vt_test::stack_loop(
              [&](const Tensors& a) { return Tensors{row.f(a)}; }, arguments, axes);
          vt_test::expect_close(vmapped(row, arguments, axes, lanes), expected,
                                {.relative = 1e-11, .absolute = 1e-11}, what + ")");
        } catch (const Error& error) {
          ADD_FAILURE() << what << "): " << error.what();
        }
      }
}

TEST(VmapOfFunctions, DefaultDTypeDoesNotReachF32Data) {
  for (const Row& row : rows()) {
    Tensors given;
    bool floats = false;
    for (const In& in : row.in) {
      const DType d = in.dtype == f64 ? f32 : in.dtype;
      floats = floats || d == f32;
      given.push_back(vt_test::random_tensor(d, in.shape, in.low, in.high, 5 + given.size()));
    }
    if (!floats) continue;  // integers become the default dtype
    const Tensor expected = row.f(given);
    const DefaultDType wide(f64);
    vt_test::expect_close(row.f(given), expected, {.relative = 1e-4, .absolute = 1e-4}, row.name);
  }
}

/// Adds the equations of vt's own lines to `found`.
void collect_own_lines(const detail::GraphBody& graph, std::set<std::string>& found) {
  for (const detail::Equation& e : graph.equations) {
    const std::string file = e.where.file ? e.where.file : "";
    if (file.find("src/") != std::string::npos || file.find("include/vt/") != std::string::npos)
      found.insert(std::string(detail::name_of(e.op)) + " " + file + ":" +
                   std::to_string(e.where.line));
    for (const detail::GraphRef& body : detail::bodies_of(e.params))
      if (body) collect_own_lines(*body, found);
  }
}

// What memory(…), explain(…) and errors in compiled code name is the user's line.
TEST(VmapOfFunctions, EquationsHaveTheCallersLine) {
  for (const Row& row : rows()) {
    Tensors given, floats;
    for (const In& in : row.in) {
      given.push_back(vt_test::random_tensor(in.dtype, in.shape, in.low, in.high, 5));
      if (is_float(in.dtype)) floats.push_back(given.back());
    }
    const auto f = [&](const Tensors& a) {
      Tensors all;
      std::size_t next = 0;
      for (const Tensor& t : given) all.push_back(is_float(t.dtype()) ? a[next++] : t);
      const Tensor y = row.f(all);
      return is_float(y.dtype()) ? sum(y) : zeros({}, f64);
    };
    const auto slope = [&](const Tensors& a) { return grad(f)(a); };
    const auto curvature = [&](const Tensors& a) {
      return grad([&](const Tensors& b) {
        Tensor all = zeros({}, f64);
        for (const Tensor& t : slope(b)) all = all + sum(t);
        return all;
      })(a);
    };
    std::set<std::string> found;
    const auto collect = [&](const auto& function, const Tensors& arguments) {
      collect_own_lines(make_graph(function)(arguments).body(), found);
    };
    try {
      collect([&](const Tensors& a) { return row.f(a); }, given);
      if (!floats.empty()) {
        collect(slope, floats);
        collect(curvature, floats);
      }
    } catch (const Error& error) {
      ADD_FAILURE() << row.name << ": " << error.what();
    }
    for (const std::string& line : found) ADD_FAILURE() << row.name << ": " << line;
  }
}

TEST(VmapOfFunctions, WithoutLanesHasTheShapes) {
  for (const Row& row : rows()) {
    Tensors one, none;
    vt::Vec<MappedAxis> axes;
    for (const In& in : row.in) {
      one.push_back(vt_test::random_tensor(in.dtype, in.shape, in.low, in.high, 5));
      Shape shape = in.shape;
      shape.insert(shape.begin(), 0);
      none.push_back(zeros(shape, in.dtype));
      axes.push_back(0);
    }
    try {
      const Tensor lane = row.f(one), result = vmapped(row, none, axes, 0)[0];
      Shape wanted = lane.shape();
      wanted.insert(wanted.begin(), 0);
      EXPECT_EQ(result.shape(), wanted) << row.name;
      EXPECT_EQ(result.dtype(), lane.dtype()) << row.name;
      EXPECT_EQ(result.to_vector<double>().size(), 0u) << row.name;
    } catch (const Error& error) {
      ADD_FAILURE() << row.name << ": " << error.what();
    }
  }
}

}  // namespace
