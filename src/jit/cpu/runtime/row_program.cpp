// RowProgram: making the program of a block of rows, and running it on all of them.
#include "row_program.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "../../../trace/ir/collectives.hpp"
#include "../../../trace/record/batching.hpp"
#include "../../passes/any_rows.hpp"
#include "../../passes/lower_complex.hpp"
#include "../../passes/passes.hpp"
#include "../../services/executables.hpp"
#include "../../services/threads.hpp"

namespace vt::detail {

namespace row_blocks {

// A block's arrays stay in the nearest caches; a product goes through all of its right operand for
// each block.
constexpr std::size_t bytes_of_block = 1 << 20;

// Primes, so that an extent tells whether there are rows in it, and the most rows of such a block:
// a multiple of what tiles and vectors take.
struct Size {
  std::int64_t most, rows;
};
constexpr Size sizes[] = {{61, 48}, {127, 112}, {257, 240}, {521, 512}, {1031, 1024}, {2053, 2048}};

std::size_t bytes_of_row(const GraphBody& body) {
  std::size_t bytes = 0;
  for (const Equation& e : body.equations)
    for (Var v : e.outputs) bytes += body.aval(v).bytes();
  return std::max<std::size_t>(bytes, 1);
}

Size size_for(const GraphBody& body) {
  const std::size_t wanted = bytes_of_block / bytes_of_row(body);
  Size best = sizes[1];
  for (const Size& s : sizes)
    if (static_cast<std::size_t>(s.rows) <= wanted && s.rows > best.rows) best = s;
  return best;
}

bool divides_an_extent(std::int64_t n, const GraphBody& g) {
  return any_of(g.avals, [&](const Aval& a) {
    return any_of(a.shape, [&](std::int64_t extent) { return extent > 0 && extent % n == 0; });
  });
}

/// Does nothing of a row depend on how it is grouped with others, as the order of a sum may?
bool adds_nothing_up(const GraphBody& g) {
  return all_of(g.equations, [](const Equation& e) {
    switch (family_of(e.op)) {
      case Family::leaf:
      case Family::unary:
      case Family::binary:
      case Family::select:
      case Family::shape:
      case Family::index:
      case Family::structure:
        return !any_of(bodies_of(e.params),
                       [](const GraphRef& body) { return !adds_nothing_up(*body); });
      default: return false;
    }
  });
}

const void* at_row(const void* p, std::int64_t row, std::size_t bytes) {
  return static_cast<const char*>(p) + static_cast<std::size_t>(row) * bytes;
}

}  // namespace row_blocks

RowProgram::RowProgram(GraphRef body, Vec<bool> mapped, RowBody kind)
    : body_(std::move(body)),
      mapped_(std::move(mapped)),
      kind_(kind),
      row_by_row_(kind == RowBody::alone && !row_blocks::adds_nothing_up(*body_)) {
  using namespace row_blocks;
  for (Var v : body_->inputs) input_bytes_.push_back(body_->aval(v).bytes());
  for (Var v : body_->outputs) result_bytes_.push_back(body_->aval(v).bytes());
  const Size size = size_for(*body_);
  if (keeps_order(*body_) || divides_an_extent(size.most, *body_)) return;
  GraphBody all = for_rows(size.most);
  if (has_complex(all)) {
    std::optional<GraphBody> real = lower_complex(group_lanes(std::move(all)));
    if (!real) return;
    all = std::move(*real);
  }
  auto block = std::make_shared<Program>(all, OwnedInputs(), size.most);
  if (!block->by_rows()) return;
  block_ = std::move(block);
  block_rows_ = size.rows;
}

GraphBody RowProgram::for_rows(std::int64_t rows) const {
  GraphBody all =
      kind_ != RowBody::block
          ? lower_batched_calls(batch_body(lead_with_rows(*body_, mapped_), mapped_, rows))
          : *with_rows(*body_, mapped_, rows);
  return simplify(std::move(all), SimplifyFor::running);
}

Program::Packed RowProgram::pack(std::span<const void* const> inputs) const {
  return block_ ? block_->pack(inputs) : Program::Packed();
}

void RowProgram::run_block(Program::Frame& frame, std::int64_t first, std::int64_t rows,
                           std::span<const void* const> inputs,
                           std::span<void* const> results) const {
  SmallVec<const void*, 16> in;
  SmallVec<void*, 16> out;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    in.push_back(mapped_[i] ? row_blocks::at_row(inputs[i], first, input_bytes_[i]) : inputs[i]);
  for (std::size_t i = 0; i < results.size(); ++i)
    out.push_back(const_cast<void*>(row_blocks::at_row(results[i], first, result_bytes_[i])));
  const SmallVec<void*, 16> wanted = out;
  block_->run(frame, {in.data(), in.size()}, {out.data(), out.size()}, rows);
  // A result that is an input, or another result, lies there.
  for (std::size_t i = 0; i < results.size(); ++i)
    if (out[i] != wanted[i] && result_bytes_[i])
      std::memcpy(wanted[i], out[i], static_cast<std::size_t>(rows) * result_bytes_[i]);
}

void RowProgram::open(Program::Frame& frame, const Program::Packed& packed) const {
  block_->open(frame);
  if (!packed.empty()) frame.packed = &packed;
}

void RowProgram::run_in(Program::Frame& frame, std::int64_t rows,
                        std::span<const void* const> inputs, std::span<void* const> results,
                        const Program::Packed& packed) const {
  if (!block_ || rows > block_rows_) return run(rows, inputs, results, packed);
  if (frame.pointers.empty()) open(frame, packed);
  run_block(frame, 0, rows, inputs, results);
}
void RowProgram::close(const Program::Frame& frame) const {
  if (block_ && frame.runs) block_->count_runs(frame);
}

void RowProgram::run(std::int64_t rows, std::span<const void* const> inputs,
                     std::span<void* const> results, const Program::Packed& packed) const {
  if (rows == 0) return;
  if (!block_) return run_bucket(rows, inputs, results);
  const std::int64_t blocks = (rows + block_rows_ - 1) / block_rows_;
  const auto run_blocks = [&](std::int64_t begin, std::int64_t end) {
    Program::Frame frame;
    open(frame, packed);
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t first = k * block_rows_;
      run_block(frame, first, std::min(block_rows_, rows - first), inputs, results);
    }
    block_->count_runs(frame);
  };
  if (blocks > 1 && thread_count() > 1 && others_ready()) parallel_ranges(blocks, 1, run_blocks);
  else run_blocks(0, blocks);
}

std::shared_ptr<Executable> RowProgram::of_size(std::int64_t rows) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [size, program] : sizes_)
    if (size == rows) return program;
  sizes_.emplace_back(rows, host_executable(for_rows(rows)));
  return sizes_.back().second;
}

// Filled up with copies of the last row, but for functions with effects, which happen once a row.
void RowProgram::run_bucket(std::int64_t rows, std::span<const void* const> inputs,
                            std::span<void* const> results) const {
  if (row_by_row_ && rows > 1) {
    SmallVec<const void*, 16> in;
    SmallVec<void*, 16> out;
    for (std::int64_t r = 0; r < rows; ++r) {
      in.clear();
      out.clear();
      for (std::size_t i = 0; i < inputs.size(); ++i)
        in.push_back(mapped_[i] ? row_blocks::at_row(inputs[i], r, input_bytes_[i]) : inputs[i]);
      for (std::size_t i = 0; i < results.size(); ++i)
        out.push_back(const_cast<void*>(row_blocks::at_row(results[i], r, result_bytes_[i])));
      run_bucket(1, {in.data(), in.size()}, {out.data(), out.size()});
    }
    return;
  }
  const std::int64_t size =
      keeps_order(*body_)
          ? rows
          : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows)));
  const std::shared_ptr<Executable> program = of_size(size);
  Vec<BufferRef> in;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t bytes = input_bytes_[i];
    if (!mapped_[i]) {
      in.push_back(borrow_memory(inputs[i], bytes));
    } else if (size == rows) {
      in.push_back(borrow_memory(inputs[i], bytes * static_cast<std::size_t>(rows)));
    } else {
      BufferRef padded = allocate(bytes * static_cast<std::size_t>(size), "rows of a batched call");
      for (std::int64_t r = 0; r < size && bytes; ++r)
        std::memcpy(const_cast<void*>(row_blocks::at_row(padded->data, r, bytes)),
                    row_blocks::at_row(inputs[i], std::min(r, rows - 1), bytes), bytes);
      in.push_back(std::move(padded));
    }
  }
  const Vec<BufferRef> made = program->run(in);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (result_bytes_[i])
      std::memcpy(results[i], made[i]->data, static_cast<std::size_t>(rows) * result_bytes_[i]);
}

}  // namespace vt::detail
