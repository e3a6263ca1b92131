// RowFamilies: which calls differ in their number of rows alone.
#include "row_families.hpp"

#include <algorithm>
#include <utility>

#include "../trace/ir/collectives.hpp"
#include "cpu/runtime/row_program.hpp"
#include "passes/any_rows.hpp"
#include "passes/passes.hpp"
#include "services/executables.hpp"

namespace vt::detail {

namespace row_families {

// So many sizes have programs of their own.
constexpr int own_programs = 3;

/// The program of a family for one number of rows.
class OfSize : public Executable {
 public:
  OfSize(std::shared_ptr<const RowProgram> program, std::int64_t rows)
      : program_(std::move(program)), rows_(rows) {}

  Vec<BufferRef> run(std::span<const BufferRef> inputs) override {
    const GraphBody& body = program_->body();
    SmallVec<const void*, 16> in;
    SmallVec<void*, 16> out;
    for (const BufferRef& b : inputs) in.push_back(b->data);
    Vec<BufferRef> results;
    for (Var v : body.outputs) {
      results.push_back(allocate(body.aval(v).bytes() * rows_, "results"));
      out.push_back(results.back()->data);
    }
    program_->run(rows_, {in.data(), in.size()}, {out.data(), out.size()}, {});
    return results;
  }
  void report(Report& report, int depth) const override {
    ReportStep head;
    head.depth = depth;
    head.title = "rows: " + std::to_string(rows_) + ", by a program for any number of them";
    report.push_back(std::move(head));
    program_->program()->report(report, depth + 1);
  }
  Memory memory() const override { return program_->program()->memory(); }

 private:
  std::shared_ptr<const RowProgram> program_;
  std::int64_t rows_;
};

/// Which inputs have other leading extents than in the call before, all the same: `now` instead of
/// `before`.
bool find_rows(const Vec<Aval>& a, const Vec<Aval>& b, Vec<bool>& mapped, std::int64_t& now) {
  std::int64_t before = -1;
  now = -1;
  mapped.assign(b.size(), false);
  for (std::size_t i = 0; i < b.size(); ++i) {
    const Shape &x = a[i].shape, &y = b[i].shape;
    if (y.empty() || x[0] == y[0]) continue;
    if (before >= 0 && (x[0] != before || y[0] != now)) return false;
    before = x[0];
    now = y[0];
    mapped[i] = true;
  }
  return before > 0 && now > 0;
}

}  // namespace row_families

struct RowFamilies::Family {
  int sizes = 0;
  bool refused = false;  ///< rows meet, or the program cannot be cut by them
  Vec<Aval> last;        ///< arguments of the call before
  GraphBody graph;       ///< of that
  Vec<bool> mapped;
  GraphRef one;  ///< the Graph of one row
  std::shared_ptr<const RowProgram> program;
};

std::shared_ptr<Executable> RowFamilies::program(std::string key, const GraphBody& graph,
                                                 std::size_t arguments) {
  using namespace row_families;
  Vec<Aval> avals;
  for (std::size_t i = 0; i < arguments; ++i) {
    avals.push_back(graph.aval(graph.inputs[i]));
    const Shape& s = avals.back().shape;
    key += name_of(avals.back().dtype);
    key += avals.back().weak ? 'w' : '.';
    key += std::to_string(s.size()) + ":";
    for (std::size_t d = 1; d < s.size(); ++d) key += std::to_string(s[d]) + ",";
  }
  const std::lock_guard lock(mutex_);
  Vec<std::shared_ptr<Family>> gone;
  std::shared_ptr<Family>* known = families_.find(key);
  if (!known) known = families_.emplace(std::move(key), std::make_shared<Family>(), gone);
  Family& f = **known;
  ++f.sizes;
  if (f.refused || keeps_order(graph)) return nullptr;
  GraphBody flat = inline_calls(graph);
  if (f.sizes <= own_programs) {
    f.last = std::move(avals);
    f.graph = std::move(flat);
    return nullptr;
  }
  std::int64_t rows = 0;
  if (!f.program) {
    if (!find_rows(f.last, avals, f.mapped, rows)) return nullptr;
    f.mapped.resize(graph.inputs.size(), false);
    std::optional<GraphBody> one = with_rows(flat, f.mapped, 1),
                             other = with_rows(f.graph, f.mapped, 1);
    f.graph = {};
    f.refused = true;  // unless all goes well
    if (!one || !other || !equal(*one, *other)) return nullptr;
    f.one = std::make_shared<const GraphBody>(std::move(*one));
    std::shared_ptr<const RowProgram> made = row_program(f.one, f.mapped);
    if (!made || !made->by_rows()) return nullptr;
    f.program = std::move(made);
    f.refused = false;
  } else {
    for (std::size_t i = 0; i < avals.size(); ++i) {
      if (!f.mapped[i]) {
        if (!(avals[i] == f.last[i])) return nullptr;
        continue;
      }
      if (rows > 0 && avals[i].shape[0] != rows) return nullptr;
      rows = avals[i].shape[0];
    }
    if (rows == 0) return nullptr;
    const std::optional<GraphBody> one = with_rows(flat, f.mapped, 1);
    if (!one || !equal(*one, *f.one)) return nullptr;
  }
  return std::make_shared<OfSize>(f.program, rows);
}

}  // namespace vt::detail
