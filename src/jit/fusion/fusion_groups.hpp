// Groups of equations that become one kernel: how they are found and merged. Internal to fusion.
#pragma once

#include <vt/detail/small_vec.hpp>

#include "fuse.hpp"
#include "nest_builder.hpp"

namespace vt::detail {

/// Work of one kernel; compile time grows faster than its gain.
inline constexpr int most_fused_weight = 500;

/// A value that a kernel stores: into its own buffer, or as a part of a concatenation.
struct FusionRoot {
  Var value = -1;
  Var target = -1;
  int axis = -1;  ///< of the concatenation, which the value may lack as its last; −1: target is
                  ///< value itself
  std::int64_t offset = 0;  ///< along it
  bool of_many = false;     ///< parts, too many for code of their own each
};

/// A Var in memory that is read, and how its axes follow those of the reader's domain.
struct FusionRead {
  Var var = -1;
  bool regular = false;  ///< axis i of the Var runs along domain axis axes[i] (−1: it has extent 1)
  SmallVec<int, 6> axes;
};

struct FusionStage {
  Vec<FusionRoot> full;  ///< stored at every point of the domain
  Vec<int> reductions;   ///< equations
  /// computed from the reductions' results, at every point of the kept axes
  Vec<FusionRoot> after;
  Vec<FusionRead> full_reads, after_reads;
};

struct FusionGroup {
  bool alive = true;
  int equation = -1;   ///< ≥ 0: a step of its own, never merged
  bool joins = false;  ///< no step: `equation` is done when the groups that store its parts are
  Vec<int> parts;      ///< those groups
  Shape domain;
  Axes reduced;  ///< axes of the domain; empty for groups without reductions
  bool has_reductions = false;
  /// reduces windows: few elements each, which lie apart, so SIMD lanes go along other axes
  bool slides = false;
  /// the order in which the reduced axes are walked: 1 forwards, −1 backwards, 0 either
  int direction = 0;
  bool lone = false;  ///< has iterations that run one by one, where other work runs slowly
  Vec<FusionStage> stages;
  int weight = 0;
  Vec<Var> defines;             ///< all Vars it computes into memory
  Vec<Var> parts_of;            ///< concatenations that it stores parts of
  int before = -1, after = -1;  ///< with an effect: the groups of the effects before and after it
};

class FusionPlanner {
 public:
  FusionPlanner(const GraphBody& graph, const FuseOptions& options);
  void run();

  NestSource source;
  Vec<FusionGroup> groups;
  Vec<int> order;  ///< alive groups, producers first
  Vec<int> again;  ///< see Fusion
  Vec<char> kept;  ///< per Var: somebody outside its group (or the caller) reads it from memory

  Shape kept_shape(const FusionGroup&) const;

 private:
  struct PlaceInGroup {
    int group = -1, stage = -1;
    enum class Kind { full, reduction, after } kind = Kind::full;
  };
  /// Reductions are known after their loops, scans at every point of them.
  static PlaceInGroup::Kind place_kind(const Equation& e) {
    return family_of(e.op) == Family::cumulative ? PlaceInGroup::Kind::full
                                                 : PlaceInGroup::Kind::reduction;
  }
  bool has_code(const Equation&) const;
  void classify();
  void mark_stored();
  void mark(Var v);
  Var base_of(Var v) const;
  int cost(Var v);
  bool is_made_beside(Var v, Var written);
  bool is_reduced_along(Var v, const Shape& own, int depth) const;
  bool takes_parts(Var v) const;
  bool interleaved(const Equation& concatenate) const;
  bool joins_its_parts(const Equation& concatenate) const;
  Var without_last_axis(Var v) const;
  /// Are windows taken where v is computed on the spot?
  bool reads_windows(Var v);
  bool is_stored_for(const Equation&, bool is_reduction, std::size_t operand, int cost) const;
  bool is_stored_for_broadcast(const Equation&, int cost) const;
  void make_groups();
  int add_group(FusionGroup);
  void add_elementwise(FusionRoot);
  void add_step(int equation, int& last_effect);
  void add_reduction(int equation);
  void add_parts(int equation);
  void walk(Var v, bool regular, const SmallVec<int, 6>& axes, Vec<FusionRead>& reads, bool root);
  void merge_all();
  bool try_merge(int producer, int consumer);
  bool place_stage(const FusionGroup& a, int a_id, const FusionStage& stage, const FusionGroup& b,
                   int first_stage, int* at, bool* as_after) const;
  bool reaches(int from, int to, int skip_direct) const;
  void raise_latest(int group);
  Vec<int> inputs_of(int group) const;
  int find(int g) const;
  void sort_groups();
  void put_updates_last();
  void mark_kept();

  const GraphBody& graph_;
  FuseOptions options_;
  Vec<Vec<int>> uses_;  // per Var: equations that read it
  Vec<char> is_output_;
  Vec<int> cost_;
  Vec<signed char> reads_windows_;
  Vec<char> inlined_, reduction_;  // per equation
  Vec<char> pieces_;               // per equation: concatenations stored part by part
  Vec<PlaceInGroup> place_;        // per Var: where it is computed
  Vec<int> definer_;               // per Var: the group that writes it, −1: none
  mutable Vec<int> leader_;        // union-find over groups
  mutable Vec<unsigned> marks_;    // per group: the last search that has seen it
  mutable Vec<unsigned> listed_;   // per group: the last list of inputs that has it
  mutable unsigned last_mark_ = 0, last_list_ = 0;
  // per group: the first of those it was merged from, in the Graph's order
  Vec<int> first_;
  // per group: the last of those that it and all it depends on were merged from
  Vec<int> latest_;
  Vec<Vec<int>> readers_;  // per Var: the groups that read it
  Vec<std::pair<Var, SmallVec<int, 6>>> walked_;
};

/// Takes what one stage of a kernel only hands to its later stages, row by row, out of planned
/// memory.
void keep_rows_local(Fusion&);

/// The steps of a group, in order: one kernel, or two if its reduction is cut.
void build_steps(const FusionPlanner& planner, const FusionGroup& group, GraphBody& graph,
                 NestSource& source, const FuseOptions& options, Vec<FusedStep>& steps);

}  // namespace vt::detail
