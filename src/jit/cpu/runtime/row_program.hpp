// RowProgram: a function of one row, compiled once and run on any number of rows.
#pragma once

#include <memory>
#include <span>

#include "../../../trace/base/locks.hpp"
#include "program.hpp"

namespace vt::detail {

/// What a body of a RowProgram is.
enum class RowBody {
  one,    ///< of one row, as that of a batched call
  alone,  ///< likewise; one that cannot be cut by rows, and sums, runs row after row
  block   ///< of rows along axis 0, of which there is one; see with_rows
};

/// The program is made for a block of rows; more rows are several blocks, fewer a part of one. What
/// a row's results are does not depend on the rows beside it. A function that cannot be cut by rows
/// (loops, effects, convolutions) has a program for each power of two of rows instead.
class RowProgram {
 public:
  /// Inputs that are `mapped` have a value for each row, along axis 0, as all results have.
  /// Throws: Error(backend).
  RowProgram(GraphRef body, Vec<bool> mapped, RowBody kind = RowBody::one);

  /// What the inputs that rows share are packed in, for as long as they do not change; `inputs`:
  /// null where they may.
  Program::Packed pack(std::span<const void* const> inputs) const;
  /// `packed`: of these inputs; may be empty. `results`: memory for all rows.
  void run(std::int64_t rows, std::span<const void* const> inputs, std::span<void* const> results,
           const Program::Packed& packed) const;
  /// The same, for many runs of few rows on one thread: `frame`, new before the first of them, is
  /// kept from run to run. close() tells the counters of them.
  void run_in(Program::Frame& frame, std::int64_t rows, std::span<const void* const> inputs,
              std::span<void* const> results, const Program::Packed& packed) const;
  void close(const Program::Frame& frame) const;
  const GraphBody& body() const { return *body_; }
  /// Is it one program for all numbers of rows?
  bool by_rows() const { return block_ != nullptr; }
  /// Null if there is one for each power of two of rows.
  const Executable* program() const { return block_.get(); }

 private:
  void open(Program::Frame& frame, const Program::Packed& packed) const;
  void run_block(Program::Frame& frame, std::int64_t first, std::int64_t rows,
                 std::span<const void* const> inputs, std::span<void* const> results) const;
  void run_bucket(std::int64_t rows, std::span<const void* const> inputs,
                  std::span<void* const> results) const;
  std::shared_ptr<Executable> of_size(std::int64_t rows) const;
  GraphBody for_rows(std::int64_t rows) const;

  const GraphRef body_;
  const Vec<bool> mapped_;
  const RowBody kind_;
  const bool row_by_row_;
  std::int64_t block_rows_ = 0;
  Vec<std::size_t> input_bytes_, result_bytes_;  ///< of a row
  std::shared_ptr<const Program> block_;
  mutable LongMutex<> mutex_;
  mutable Vec<std::pair<std::int64_t, std::shared_ptr<Executable>>> sizes_;
};

}  // namespace vt::detail
