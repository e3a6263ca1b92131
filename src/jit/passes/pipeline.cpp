// The pipeline: the list of passes of each target.
#include "pipeline.hpp"

#include <vt/detail/message.hpp>

#include "../../trace/ir/sub_graph.hpp"
#include "../fusion/chain_products.hpp"
#include "../fusion/element_epilogue.hpp"
#include "../fusion/epilogue.hpp"
#include "../fusion/fusion_groups.hpp"
#include "../fusion/pair_kernels.hpp"
#include "../fusion/result_stages.hpp"
#include "../lanes/lane_choice.hpp"
#include "../regions/fused_regions.hpp"
#include "../regions/single_regions.hpp"
#include "../regions/sum_scans.hpp"
#include "../report/dump.hpp"
#include "masked_lanes.hpp"
#include "overlap_exchanges.hpp"
#include "passes.hpp"
#include "scan_fission.hpp"

namespace vt::detail {

namespace pipeline {

/// A Graph on its way: passes before fuse rewrite `graph`, later ones `fusion`.
struct Work {
  const PipelineTarget& target;
  const OwnedInputs& owned;
  GraphBody graph;
  Fusion fusion;
  bool fused = false;
};
struct Pass {
  PassName name;
  void (*run)(Work&);
};

// --- the passes ----------------------------------------------------------------------------------

constexpr Pass groups{PassName::group_lanes, [](Work& w) {
                        w.graph = group_lanes(std::move(w.graph), [&](const Equation& e) {
                          if (!w.target.fuse.on_host) return lanes_part_on_device(e);
                          const auto as_it_runs = [&] {
                            return simplify(*e.as<BatchedCallParams>().body, SimplifyFor::running);
                          };
                          return lanes_part(
                                     e, [&] { return recursions_in_registers(e, w.target.frame); },
                                     as_it_runs) ||
                                 lanes_in_registers(e, w.target.frame);
                        });
                      }};
constexpr Pass calls{PassName::inline_calls,
                     [](Work& w) { w.graph = inline_calls(std::move(w.graph)); }};
constexpr Pass bundles{PassName::bundle_sums,
                       [](Work& w) { w.graph = bundle_sums(std::move(w.graph)); }};
constexpr Pass masks{PassName::mask_lanes,
                     [](Work& w) { w.graph = mask_lanes(w.graph, w.target.registers); }};
constexpr Pass row_sums{PassName::scan_sums, [](Work& w) {
                          w.graph = scan_sums_of_lanes(std::move(w.graph), w.target.frame,
                                                       w.target.registers);
                          w.graph = scan_sums_of_rows(std::move(w.graph), w.target.registers);
                        }};
constexpr Pass scans{PassName::split_scans,
                     [](Work& w) { w.graph = move_out_of_scans(w.graph, w.target.frame); }};
constexpr Pass regions{PassName::form_fused_regions, [](Work& w) {
                         w.graph = form_fused_regions(std::move(w.graph), w.target.registers);
                       }};
constexpr Pass convolutions{PassName::prepare_convolutions, [](Work& w) {
                              w.graph = prepare_convolutions(
                                  std::move(w.graph),
                                  w.target.fuse.on_host ? ConvTarget::host : ConvTarget::device);
                            }};
constexpr Pass sums{PassName::sum_before_products,
                    [](Work& w) { w.graph = sum_before_products(std::move(w.graph)); }};
constexpr Pass operands{PassName::order_product_operands,
                        [](Work& w) { w.graph = order_product_operands(w.graph); }};
constexpr Pass short_axes{PassName::split_short_axes,
                          [](Work& w) { w.graph = split_short_axes(std::move(w.graph)); }};
constexpr Pass sparse{PassName::form_sparse_regions, [](Work& w) {
                        w.graph = form_sparse_regions(std::move(w.graph), w.target.registers,
                                                      w.target.frame);
                      }};
constexpr Pass singles{
    PassName::form_single_regions, [](Work& w) {
      const auto steps = [&](const GraphBody& g) { return fuse(g, w.target.fuse).steps.size(); };
      w.graph = form_single_regions(std::move(w.graph), w.target.registers, w.target.frame, steps);
    }};
constexpr Pass fusion{PassName::fuse, [](Work& w) {
                        w.fusion = fuse(numbered_anew(w.graph), w.target.fuse);
                        w.fused = true;
                      }};
constexpr Pass rows{PassName::keep_rows_local, [](Work& w) { keep_rows_local(w.fusion); }};
constexpr Pass results{PassName::give_results_stages,
                       [](Work& w) { give_results_stages(w.fusion, w.target.fuse.vector_bytes); }};
constexpr Pass row_epilogues{PassName::attach_epilogues, [](Work& w) {
                               attach_epilogues(w.fusion, w.target.fuse.vector_bytes);
                             }};
constexpr Pass element_epilogues{PassName::attach_element_epilogues, [](Work& w) {
                                   attach_element_epilogues(w.fusion, [&](const FusedStep& s) {
                                     return w.target.takes_epilogue(s);
                                   });
                                 }};
constexpr Pass chains{PassName::chain_products, [](Work& w) {
                        chain_products(w.fusion, [&](const MatmulSpec& a, const MatmulSpec& b) {
                          return w.target.chains(a, b);
                        });
                      }};
constexpr Pass overlap{PassName::overlap_exchanges, [](Work& w) { overlap_exchanges(w.fusion); }};
constexpr Pass schedules{PassName::choose_schedules, [](Work& w) {
                           const int bytes = w.target.fuse.vector_bytes;
                           for (FusedStep& s : w.fusion.steps)
                             if (s.equation < 0)
                               s.schedule = choose_schedule(s.nest, bytes, w.target.costs);
                             else if (s.row_loop >= 0)
                               s.schedule = schedule_epilogue(s.nest, s.row_loop, bytes);
                         }};
constexpr Pass pairs{PassName::pair_kernels, [](Work& w) { pair_kernels(w.fusion); }};
constexpr Pass owned{PassName::prefer_owned, [](Work& w) { prefer_owned(w.fusion, w.owned); }};

// --- their order ---------------------------------------------------------------------------------

constexpr Pass of_host[] = {groups,  calls,     bundles,       row_sums, scans,    sparse,
                            regions, singles,   convolutions,  sums,     operands, short_axes,
                            fusion,  rows,      row_epilogues, chains,   results,  overlap,
                            owned,   schedules, pairs};
constexpr Pass of_device[] = {groups,       calls, bundles,  masks,  scans, regions,
                              convolutions, sums,  operands, fusion, rows,  element_epilogues,
                              owned};

std::size_t size_of(const Work& w) {
  return w.fused ? w.fusion.steps.size() : w.graph.equations.size();
}

std::string text_of(const Work& w) {
  if (!w.fused) return to_text(w.graph);
  std::string text = to_text(w.fusion.graph) + "\n";
  for (const FusedStep& s : w.fusion.steps) {
    text += "step";
    for (int e : s.equations()) {
      const Equation& equation = w.fusion.graph.equations[e];
      text += " " + describe(equation.op, equation.params);
    }
    text += "\n" + (s.nest.stages.empty() ? "" : s.nest.str());
  }
  return text;
}

}  // namespace pipeline

const char* name_of(PassName pass) {
  constexpr const char* names[] = {
#define VT_PASS(name) #name,
      VT_PASSES(VT_PASS)
#undef VT_PASS
  };
  return names[static_cast<std::size_t>(pass)];
}

PipelineResult run_pipeline(GraphBody graph, const PipelineTarget& target,
                            const OwnedInputs& owned) {
  using namespace pipeline;
  PipelineResult result;
  Work work{target, owned, std::move(graph), {}};
  const bool dumps = !dump_folder().empty();
  std::string before = dumps ? text_of(work) : "";
  const std::string name = dumps ? short_name(before) : "";
  int number = 0;
  const std::span<const Pass> passes =
      target.fuse.on_host ? std::span<const Pass>(of_host) : std::span<const Pass>(of_device);
  for (const Pass& pass : passes) {
    ++number;
    if (!target.wants(pass.name)) continue;
    const std::size_t size = pipeline::size_of(work);
    pass.run(work);
    const std::size_t now = pipeline::size_of(work);
    if (now != size || pass.name == PassName::fuse) result.notes.push_back({pass.name, size, now});
    if (!dumps) continue;
    std::string after = text_of(work);
    if (after != before)
      dump_text(
          formatted("{}.{}{}-{}.txt", name, number < 10 ? "0" : "", number, name_of(pass.name)),
          after);
    before = std::move(after);
  }
  result.fusion = std::move(work.fusion);
  return result;
}

std::string text_of(const Vec<PassNote>& notes) {
  const auto counted = [](std::size_t n, const char* thing) {
    return formatted("{} {}{}", n, thing, n == 1 ? "" : "s");
  };
  std::string text;
  bool steps = false;
  for (const PassNote& n : notes) {
    const bool fuses = n.pass == PassName::fuse;
    text += text.empty() ? "" : ", ";
    text += name_of(n.pass);
    text += " " + (fuses ? counted(n.before, "equation") : formatted("{}", n.before)) + " → ";
    steps = steps || fuses;
    text += counted(n.after, steps ? "step" : "equation");
  }
  return text;
}

}  // namespace vt::detail
