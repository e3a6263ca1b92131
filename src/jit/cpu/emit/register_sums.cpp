// Sums over rows (ScanParams::sums): as the carries of a loop, and as a kernel whose SIMD lanes are
// rows.
#include "register_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/sub_graph.hpp"

namespace vt::detail::cpu::register_emission {

// Terms that are products are added in one rounding, where the processor has that.
Vec<Val> RegisterEmitter::added_terms(const GraphBody& g, const Vec<Val>& inputs) {
  const Vec<int> makers = makers_of(g), reads = reads_of(g);
  Vec<bool> later(g.equations.size());
  const auto product_of = [&](const Equation& sum) -> const Equation* {
    const Var term = sum.inputs[1];
    if (makers[term] < 0 || reads[term] != 1 || !is_float(g.aval(term).dtype)) return nullptr;
    const Equation& e = g.equations[makers[term]];
    return e.op == Op::mul ? &e : nullptr;
  };
  for (const Var v : g.outputs) {
    later[makers[v]] = true;
    if (const Equation* product = product_of(g.equations[makers[v]]))
      later[makers[product->outputs[0]]] = true;
  }
  Env env(g.avals.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) env[g.inputs[i]] = inputs[i];
  for (std::size_t i = 0; i < later.size(); ++i)
    if (!later[i]) run_equations(g, env, i, i + 1);
  Vec<Val> sums;
  for (const Var v : g.outputs) {
    const Equation& sum = g.equations[makers[v]];
    const Equation* product = product_of(sum);
    if (!product) {
      run_equations(g, env, makers[v], makers[v] + 1);
      sums.push_back(loaded(env[v]));
      continue;
    }
    const Val &x = loaded(env[product->inputs[0]]), &y = loaded(env[product->inputs[1]]);
    Elements all = loaded(env[sum.inputs[0]]).elements();
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = multiply_add(x[x.elements().size() == 1 ? 0 : i],
                            y[y.elements().size() == 1 ? 0 : i], all[i]);
    sums.push_back(std::move(all));
  }
  return sums;
}

void RegisterEmitter::sum_rows() {
  const GraphBody& g = *equation_.as<RegionParams>().body;
  const std::size_t sums = equation_.outputs.size();
  Vec<Val> given(equation_.inputs.size());
  for (std::size_t i = sums; i < given.size(); ++i) {
    const Object o = object_for(i, graph_.aval(equation_.inputs[i]));
    if (o.row == 0) given[i] = elements_of(o);
  }
  // Integers count the rows.
  const auto counts = [&](std::size_t k) { return !is_float(g.aval(g.outputs[k]).dtype); };
  Elements start{b_.arg(2)};
  for (std::size_t k = 0; k < sums; ++k) {
    const Aval& a = g.aval(g.outputs[k]);
    given[k] = Elements(a.elements(), b_.integer(a.dtype, 0, width_));
    if (!counts(k)) start.append(given[k].elements().begin(), given[k].elements().end());
  }
  const Elements last = b_.while_loop(
      start, [&](const Elements& c) { return b_.compare(Compare::lt, c[0], b_.arg(3)); },
      [&](const Elements& c) {
        lane_ = c[0];
        mask_ = tail_ = b_.tail_mask(width_, b_.sub(b_.arg(3), lane_));
        const Value* so_far = c.begin() + 1;
        Vec<Val> inputs = given;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          if (i >= sums) {
            const Object o = object_for(i, graph_.aval(equation_.inputs[i]));
            if (o.row > 0) inputs[i] = elements_of(o);
          } else if (counts(i)) {
            inputs[i] = Elements{b_.convert(lane_numbers(), g.aval(g.outputs[i]).dtype)};
          } else {
            const std::size_t n = given[i].elements().size();
            inputs[i] = Elements(so_far, so_far + n);
            so_far += n;
          }
        }
        const Vec<Val> with = added_terms(g, inputs);
        Elements next{further(lane_, width_)};
        for (std::size_t k = 0; k < sums; ++k)
          for (std::size_t n = 0; n < with[k].elements().size() && !counts(k); ++n)
            next.push_back(b_.select(mask_, wide(with[k][n]), inputs[k][n]));
        return next;
      });
  const Value* sum = last.begin() + 1;
  for (std::size_t k = 0; k < sums; ++k) {
    const DType d = g.aval(g.outputs[k]).dtype;
    const Value to = pointers_[equation_.inputs.size() + k];
    for (std::int64_t n = 0; n < g.aval(g.outputs[k]).elements() && !counts(k); ++n)
      b_.store(b_.offset(to, d, index_number(n)), b_.reduce_simd_lanes(Op::add, *sum++));
  }
}

}  // namespace vt::detail::cpu::register_emission

#endif  // VT_HAS_LLVM_HEADERS
