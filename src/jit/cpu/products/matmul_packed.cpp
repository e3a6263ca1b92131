// The blocked matrix product: both operands are packed, tiles of the result are summed in
// registers, and threads share the tiles.
#include "matmul_kernels.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/buffer.hpp"
#include "../../services/threads.hpp"
#include "../llvm/code_cache.hpp"
#include "matmul_pack.hpp"
#include "matmul_tile.hpp"

namespace vt::detail::cpu {

namespace matmul_packed {

// A panel of b and a strip of a, of one pass over k. They stream from the second-level cache, which
// keeps up with the sums; longer passes read and write c less often.
constexpr std::int64_t pass_bytes = 176 << 10;
// Strips of a that are packed together stay in the second-level cache while the panels of b go by.
constexpr std::int64_t block_bytes = 384 << 10;
// Of b packed at once; more of it is packed in turns.
constexpr std::int64_t chunk_bytes = 16 << 20;
// What few rows read only a few times is packed and read in turns that stay in the caches.
constexpr std::int64_t rows_of_small_chunks = 512, small_chunk_bytes = 2 << 20;
// Of each worker: the fewer there are, the longer one waits for the other at the end.
constexpr std::int64_t blocks_each = 8;
// Panels that one thread packs at a time.
constexpr std::int64_t panels_together = 8;
// A piece of work should be a few microseconds long.
constexpr std::int64_t piece_work = 1 << 20;
// Bytes that multiply-adds take in (of f32: 4 Mi of them, 40 to 80 µs of one thread) from which on
// a sleeping thread is woken, which takes some 10 µs.
constexpr std::int64_t worth_waking = 16 << 20;

std::int64_t pieces(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }
// size of equal pieces ≤ most
std::int64_t even(std::int64_t n, std::int64_t most) { return pieces(n, pieces(n, most)); }

TileShape shape_of(const MatmulSpec& s) {
  TileShape shape = best_tile(host_target(), s.accumulate);
  shape.group = product_group(s, host_target());
  // room for the sums of what bytes are too large by
  if (shape.group == 4) shape.rows -= shape.rows / 6;
  shape.rows = static_cast<int>(even(s.m, shape.rows));  // no short strip is left over
  return shape;
}

// n things in `parts` parts whose sizes differ by one at most.
struct Cuts {
  std::int64_t n = 0, parts = 1;
  std::int64_t first(std::int64_t part) const { return n * part / parts; }
  std::int64_t most() const { return pieces(n, parts); }
};

// Numbers 0 … count − 1 dealt out to workers: each takes those of its own share first, so that it
// finds the rows it worked on last time in its cache, then what the others have left.
class Shares {
 public:
  explicit Shares(std::int64_t workers) : next_(static_cast<std::size_t>(workers)) {}
  void deal(std::int64_t count) {
    share_ = {count, static_cast<std::int64_t>(next_.size())};
    for (std::size_t w = 0; w < next_.size(); ++w)
      next_[w].number.store(first_of(w), std::memory_order_relaxed);
  }
  /// −1 when all are taken.
  std::int64_t take(std::size_t worker) {
    for (std::size_t i = 0; i < next_.size(); ++i) {
      const std::size_t w = (worker + i) % next_.size();
      const std::int64_t n = next_[w].number.fetch_add(1, std::memory_order_relaxed);
      if (n < first_of(w + 1)) return n;
    }
    return -1;
  }

 private:
  std::int64_t first_of(std::size_t w) const { return share_.first(static_cast<std::int64_t>(w)); }
  struct alignas(64) Next {
    std::atomic<std::int64_t> number{0};
  };
  Cuts share_;
  Vec<Next> next_;
};

}  // namespace matmul_packed

// Blocked product after Goto and van de Geijn (2008).
class PackedMatmul final : public Matmul, public RowBlocks {
 public:
  explicit PackedMatmul(const MatmulSpec& s) : s_(s), shape_(matmul_packed::shape_of(s)) {
    using namespace matmul_packed;
    // Where the CPU multiplies groups of small numbers, k counts groups.
    const int group = shape_.group;
    if (group > 1) s_.k /= group, s_.a_column *= group, s_.b_row *= group;
    strips_ = pieces(s.m, shape_.rows);
    panels_ = pieces(s.n, shape_.columns());
    size_ = static_cast<std::int64_t>(size_of(s.accumulate));
    const std::int64_t of_one_k = (shape_.padded_rows() + shape_.columns()) * size_;
    depth_ = even(s_.k, std::max<std::int64_t>(pass_bytes / of_one_k / 8 * 8, 8));
    const int rest = static_cast<int>(s.m % shape_.rows);
    tile_ = tile(shape_.rows);
    rest_tile_ = rest ? tile(rest) : tile_;
    const DType packed = group > 1 ? i32 : s.accumulate;
    pack_a_ = pack_code({.from = s.a_dtype,
                         .to = packed,
                         .lines = shape_.rows,
                         .lines_adjacent = s.a_row == 1,
                         .k_adjacent = s.a_column == 1,
                         .group = group,
                         .flipped = group == 4});
    pack_b_ = pack_code({.from = s.b_dtype,
                         .to = packed,
                         .lines = shape_.columns(),
                         .lines_adjacent = s.b_column == 1,
                         .k_adjacent = s.b_row == 1,
                         .group = group});
  }

  void run(const void* a, const void* b, void* c, const RowsDone& done,
           const PackedOperands& packed) const override {
    if (s_.batch > 1 && s_.batch >= thread_count()) {
      parallel_ranges(s_.batch, 1, [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; i < to; ++i) one(a, b, c, i, done, packed);
      });
      return;
    }
    for (std::int64_t i = 0; i < s_.batch; ++i) one(a, b, c, i, done, packed);
  }

  PackedOperands pack(const void* a, const void* b) const override {
    PackedOperands made;
    if (!keeps()) return made;
    Job job(0, 1);
    job.first = 0, job.last = s_.k;
    if (b) {
      made.b = allocate(b_bytes(s_.k), "vt::matmul: packed operand");
      job.b = static_cast<const char*>(b);
      job.packed_b = static_cast<char*>(made.b->data);
      for (std::int64_t p = 0; p < panels_; ++p) pack_panel(job, p);
    }
    if (a) {
      made.a = allocate(a_bytes(), "vt::matmul: packed operand");
      for (std::int64_t k = 0; k < s_.k; k += depth_)
        for (std::int64_t m = 0; m < s_.m; m += shape_.rows)
          pack_strip(static_cast<const char*>(a), m, s_.m, k, strip_of(made.a->data, m, k));
    }
    return made;
  }

  std::size_t packed_bytes(bool a, bool b) const override {
    return keeps() ? (a ? a_bytes() : 0) + (b ? b_bytes(s_.k) : 0) : 0;
  }
  std::size_t scratch_bytes(const RowsDone& done, bool a_packed, bool b_packed) const override {
    const std::int64_t threads = thread_count(), together = s_.batch > 1 && s_.batch >= threads
                                                                ? std::min(s_.batch, threads)
                                                                : 1;
    a_packed = a_packed && keeps(), b_packed = b_packed && keeps();
    const auto with = [&](std::int64_t count) {
      const Blocking b = blocking(count, static_cast<bool>(done), b_packed);
      return (b_packed ? 0 : b_bytes(b.chunk)) +
             static_cast<std::size_t>(b.workers) *
                 ((a_packed ? 0 : block_bytes(b)) + sums_bytes(b));
    };
    return static_cast<std::size_t>(together) *
           (small() ? std::max(with(1), with(threads)) : with(threads));
  }

  std::size_t packed_bytes() const override {
    return static_cast<std::size_t>(matrices_of_b()) * b_bytes(s_.k);
  }
  void pack_all(const void* b, void* packed) const override {
    parallel_ranges(matrices_of_b() * panels_, matmul_packed::panels_together,
                    [&](std::int64_t from, std::int64_t to) {
                      Job job(0, 1);
                      job.first = 0, job.last = s_.k;
                      for (std::int64_t p = from; p < to; ++p) {
                        job.b = at_element(b, p / panels_ * s_.b_batch, s_.b_dtype);
                        job.packed_b = static_cast<char*>(packed) +
                                       static_cast<std::size_t>(p / panels_) * b_bytes(s_.k);
                        pack_panel(job, p % panels_);
                      }
                    });
  }
  std::size_t work_bytes(std::int64_t blocks) const override {
    const Blocking b = in_blocks(blocks);
    return block_bytes(b) + sums_bytes(b);
  }
  void make(const void* a, const void* packed, void* c, std::int64_t i, std::int64_t block,
            std::int64_t blocks, void* work) const override {
    const Blocking b = in_blocks(blocks);
    Job job(0, 1);
    job.a = at_element(a, i * s_.a_batch, s_.a_dtype);
    job.c = at_element(c, i * s_.m * s_.n, s_.result);
    job.packed_b = static_cast<char*>(const_cast<void*>(packed)) +
                   (s_.b_batch ? static_cast<std::size_t>(i) * b_bytes(s_.k) : 0);
    job.first = 0, job.last = s_.k;
    job.blocks = b.blocks, job.groups = b.groups;
    job.packed_a.push_back(borrow_memory(work, block_bytes(b)));
    job.sums.push_back(borrow_memory(static_cast<char*>(work) + block_bytes(b), sums_bytes(b)));
    multiply(job, 0, block, 0);
  }

  std::string describe() const override {
    return "packed " + std::to_string(shape_.rows) + "x" + std::to_string(shape_.columns()) +
           (shape_.group > 1 ? ", " + std::to_string(shape_.group) + " of k at a time" : "");
  }

 private:
  // One product, or the part of it that belongs to k in [first, last).
  struct Job {
    const char *a, *b;
    char* c;
    std::int64_t first_row;  ///< of c among those of the whole batch
    std::int64_t first, last;
    char* packed_b;
    void* strips = nullptr;               ///< all of a, packed before
    Vec<BufferRef> packed_a, sums;        ///< one for each worker
    matmul_packed::Cuts blocks, groups;   ///< of strips, of panels
    Vec<std::atomic<std::int64_t>> left;  ///< per block: groups to do
    matmul_packed::Shares panels, pieces;
    std::atomic<std::int64_t> ready_panels{0};
    const RowsDone* done;
    Job(std::int64_t count, std::int64_t workers)
        : left(static_cast<std::size_t>(count)), panels(workers), pieces(workers) {}
  };

  std::shared_ptr<const Code> tile(int rows) const {
    const std::string name = "vt_tile";
    std::string key = "tile " + std::to_string(rows) + " of " +
                      std::to_string(shape_.padded_rows()) + " x " + std::to_string(shape_.vectors);
    if (shape_.group > 1) key += " groups " + std::to_string(shape_.group);
    for (DType d : {s_.accumulate, s_.result}) (key += ' ') += vt::name_of(d);
    const bool whole = s_.n % shape_.columns() == 0, one_pass = s_.k <= depth_;
    if (whole) key += " whole";
    if (one_pass) key += " one pass";
    return cached_code(key, {&name, 1}, [&](IrBuilder& b) {
      emit_packed_tile(b, name, s_.accumulate, s_.result, rows, shape_, whole, one_pass);
    });
  }

  // How much of k is packed at once.
  std::int64_t chunk() const {
    using namespace matmul_packed;
    const std::int64_t pass_of_b = panels_ * shape_.columns() * depth_ * size_;
    // Sums of 16-bit results are kept per block, which must then see all of k at once.
    const std::int64_t passes_at_once =
        separate_sums()
            ? pieces(s_.k, depth_)
            : std::max<std::int64_t>(
                  (s_.m <= rows_of_small_chunks ? small_chunk_bytes : chunk_bytes) / pass_of_b, 1);
    return std::min(s_.k, passes_at_once * depth_);
  }

  bool separate_sums() const { return s_.accumulate != s_.result && depth_ < s_.k; }

  // How one product is cut, and over how many workers.
  struct Blocking {
    std::int64_t chunk, workers;
    matmul_packed::Cuts blocks, groups;
  };
  bool small() const {
    return s_.m * s_.n * (s_.k + s_.work_after) * size_ < matmul_packed::worth_waking;
  }
  Blocking blocking(std::int64_t threads, bool done, bool b_packed) const {
    using namespace matmul_packed;
    const std::int64_t chunk = b_packed ? s_.k : this->chunk();
    const std::int64_t strip_work = shape_.rows * s_.n * depth_;
    std::int64_t per_block = std::max<std::int64_t>(matmul_packed::block_bytes / strip_bytes(), 1);
    per_block = std::min(per_block, std::max<std::int64_t>(pieces(strips_, threads * blocks_each),
                                                           pieces(piece_work, strip_work)));
    // What works on finished rows should find them in the second-level cache.
    if (done)
      per_block = std::min(
          per_block, std::max<std::int64_t>(
                         matmul_packed::block_bytes /
                             (shape_.rows * s_.n * static_cast<std::int64_t>(size_of(s_.result))),
                         4));
    const std::int64_t workers = std::min<std::int64_t>(
        threads,
        std::max<std::int64_t>(pieces(s_.m * s_.n * (chunk + s_.work_after), 2 * piece_work), 1));
    // As many blocks for each worker, unless there are few rows: then the columns are shared among
    // the threads as well.
    Cuts blocks{strips_, pieces(strips_, per_block)};
    if (blocks.parts >= 2 * workers)
      blocks.parts = std::min(pieces(blocks.parts, workers) * workers, strips_);
    const std::int64_t groups_wanted =
        threads > 1 ? std::min(pieces(threads * 3, blocks.parts),
                               pieces(blocks.most() * strip_work, piece_work))
                    : 1;
    return {chunk, workers, blocks, {panels_, std::clamp<std::int64_t>(groups_wanted, 1, panels_)}};
  }
  // All of k and all columns at a time.
  Blocking in_blocks(std::int64_t blocks) const {
    return {s_.k, 1, {strips_, blocks}, {panels_, 1}};
  }
  std::int64_t matrices_of_b() const { return s_.b_batch ? s_.batch : 1; }
  std::int64_t strip_bytes() const { return shape_.padded_rows() * depth_ * size_; }
  std::size_t b_bytes(std::int64_t k) const { return panels_ * shape_.columns() * k * size_; }
  std::size_t a_bytes() const { return strips_ * shape_.padded_rows() * s_.k * size_; }
  std::size_t block_bytes(const Blocking& b) const { return b.blocks.most() * strip_bytes(); }
  std::size_t sums_bytes(const Blocking& b) const {
    return separate_sums() ? static_cast<std::size_t>(b.blocks.most() * shape_.rows *
                                                      b.groups.most() * shape_.columns() * size_)
                           : 0;
  }
  // Of batches nothing is kept, nor of operands that would take much memory a second time.
  bool keeps() const {
    return s_.batch == 1 && static_cast<std::int64_t>(std::max(b_bytes(s_.k), a_bytes())) <=
                                4 * matmul_packed::chunk_bytes;
  }

  // Bits of c depend neither on how rows and columns are cut nor on the threads: each element is
  // summed over k in the same order.
  void one(const void* a, const void* b, void* c, std::int64_t i, const RowsDone& done,
           const PackedOperands& packed) const {
    using namespace matmul_packed;
    const int threads = small() && !others_ready() ? 1 : thread_count();
    const Blocking blocking =
        this->blocking(threads, static_cast<bool>(done), static_cast<bool>(packed.b));
    const auto& [chunk, workers, blocks, groups] = blocking;

    const BufferRef packed_b =
        packed.b ? packed.b : allocate(b_bytes(chunk), "vt::matmul: packed operand");
    Job job(blocks.parts, workers);
    job.a = at_element(a, i * s_.a_batch, s_.a_dtype);
    job.b = at_element(b, i * s_.b_batch, s_.b_dtype);
    job.c = at_element(c, i * s_.m * s_.n, s_.result);
    job.first_row = i * s_.m;
    job.packed_b = static_cast<char*>(packed_b->data);
    job.strips = packed.a ? packed.a->data : nullptr;
    job.blocks = blocks, job.groups = groups;
    job.done = &done;
    for (std::int64_t w = 0; w < workers; ++w) {
      if (!packed.a)
        job.packed_a.push_back(allocate(block_bytes(blocking), "vt::matmul: packed operand"));
      if (separate_sums()) job.sums.push_back(allocate(sums_bytes(blocking), "vt::matmul: sums"));
    }
    for (job.first = 0; job.first < s_.k; job.first = job.last) {
      job.last = std::min(s_.k, job.first + chunk);
      for (auto& n : job.left) n.store(groups.parts, std::memory_order_relaxed);
      job.panels.deal(packed.b ? 0 : panels_);
      job.pieces.deal(blocks.parts * groups.parts);
      job.ready_panels = packed.b ? panels_ : 0;
      parallel_ranges(workers, 1, [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t w = from; w < to; ++w) work(job, static_cast<std::size_t>(w));
      });
    }
  }

  // Packs panels while there are any, then takes pieces of c. A thread that comes late finds less
  // to do, or nothing.
  void work(Job& job, std::size_t worker) const {
    for (std::int64_t p; (p = job.panels.take(worker)) >= 0;) {
      pack_panel(job, p);
      job.ready_panels.fetch_add(1, std::memory_order_release);
    }
    for (int spins = 0; job.ready_panels.load(std::memory_order_acquire) < panels_;)
      if (++spins > 1000) std::this_thread::yield();
    for (std::int64_t piece; (piece = job.pieces.take(worker)) >= 0;) {
      const std::int64_t block = piece / job.groups.parts;
      multiply(job, worker, block, piece % job.groups.parts);
      if (job.left[block].fetch_sub(1, std::memory_order_acq_rel) > 1 || job.last < s_.k) continue;
      (*job.done)(job.first_row + first_row(job, block), job.first_row + first_row(job, block + 1));
    }
  }

  std::int64_t first_row(const Job& job, std::int64_t block) const {
    return std::min(s_.m, job.blocks.first(block) * shape_.rows);
  }

  // Passes follow each other inside a packed chunk, panels inside a pass.
  char* panel_of(const Job& job, std::int64_t k, std::int64_t depth, std::int64_t panel) const {
    const std::int64_t width = shape_.columns();
    return job.packed_b + ((k - job.first) * panels_ * width + panel * width * depth) * size_;
  }

  void pack_panel(const Job& job, std::int64_t panel) const {
    const std::int64_t width = shape_.columns(), n = panel * width;
    for (std::int64_t k = job.first; k < job.last; k += depth_) {
      const std::int64_t depth = std::min(depth_, job.last - k);
      pack_b_->function<PackFunction>()(
          at_element(job.b, n * s_.b_column + k * s_.b_row, s_.b_dtype),
          panel_of(job, k, depth, panel), s_.b_column, s_.b_row, width, std::min(width, s_.n - n),
          depth);
    }
  }

  // Of all strips packed at once: passes follow each other, strips inside a pass.
  char* strip_of(void* strips, std::int64_t m, std::int64_t k) const {
    const std::int64_t depth = std::min(depth_, s_.k - k), padded = shape_.padded_rows();
    return static_cast<char*>(strips) +
           (k * strips_ * padded + m / shape_.rows * padded * depth) * size_;
  }
  void pack_strip(const char* a, std::int64_t m, std::int64_t last_row, std::int64_t k,
                  char* to) const {
    pack_a_->function<PackFunction>()(at_element(a, m * s_.a_row + k * s_.a_column, s_.a_dtype), to,
                                      s_.a_row, s_.a_column, shape_.padded_rows(),
                                      std::min<std::int64_t>(shape_.rows, last_row - m),
                                      std::min(depth_, s_.k - k));
  }

  void multiply(const Job& job, std::size_t worker, std::int64_t block, std::int64_t group) const {
    using namespace matmul_packed;
    const std::int64_t rows = shape_.rows, padded = shape_.padded_rows(), width = shape_.columns();
    const std::int64_t m0 = first_row(job, block), m1 = first_row(job, block + 1);
    const std::int64_t p0 = job.groups.first(group), p1 = job.groups.first(group + 1);
    char* const packed_a = job.strips ? nullptr : static_cast<char*>(job.packed_a[worker]->data);
    for (std::int64_t k = job.first; k < job.last; k += depth_) {
      const std::int64_t depth = std::min(depth_, job.last - k);
      const auto strip = [&](std::int64_t m) {
        return job.strips ? strip_of(job.strips, m, k)
                          : packed_a + (m - m0) / rows * padded * depth * size_;
      };
      for (std::int64_t m = m0; m < m1 && !job.strips; m += rows)
        pack_strip(job.a, m, m1, k, strip(m));
      const std::int64_t passes =
          (k > 0 ? add_earlier_pass : 0) | (k + depth == s_.k ? last_pass : 0);
      // The next panel comes from far away: each strip fetches a part of it.
      const std::int64_t soon_step = pieces(width * size_, pieces(m1 - m0, rows));
      for (std::int64_t p = p0; p < p1; ++p)
        for (std::int64_t m = m0; m < m1; m += rows) {
          char* const c = at_element(job.c, m * s_.n + p * width, s_.result);
          void* sums = c;
          std::int64_t sums_row = s_.n;
          if (separate_sums()) {
            sums_row = job.groups.most() * width;
            sums = static_cast<char*>(job.sums[worker]->data) +
                   ((m - m0) * sums_row + (p - p0) * width) * size_;
          }
          const auto& code = m1 - m >= rows ? tile_ : rest_tile_;
          code->function<TileFunction>()(
              depth, strip(m), panel_of(job, k, depth, p), c, s_.n, s_.n - p * width, sums,
              sums_row, passes,
              panel_of(job, k, depth, p + 1) + (m - m0) / rows * soon_step * depth, soon_step);
        }
    }
  }

  MatmulSpec s_;
  TileShape shape_;
  std::int64_t strips_, panels_, depth_, size_;
  std::shared_ptr<const Code> tile_, rest_tile_, pack_a_, pack_b_;
};

int product_group(const MatmulSpec& s, const Target& target) {
  const bool bytes = target.dot_i8 && s.a_dtype == DType::i8 && s.b_dtype == DType::i8 &&
                     s.accumulate == DType::i32;
  const bool halves = target.dot_bf16 && s.a_dtype == DType::bf16 && s.b_dtype == DType::bf16 &&
                      s.accumulate == DType::f32;
  const int group = bytes ? 4 : halves ? 2 : 1;
  const bool adjacent = (s.a_row == 1 || s.a_column == 1) && (s.b_row == 1 || s.b_column == 1);
  return adjacent && s.k % group == 0 ? group : 1;
}

std::shared_ptr<const Matmul> make_packed_matmul(const MatmulSpec& s) {
  return std::make_shared<PackedMatmul>(s);
}
const RowBlocks& row_blocks(const Matmul& packed) {
  return static_cast<const PackedMatmul&>(packed);
}
std::int64_t packed_strip_rows(const MatmulSpec& s) { return matmul_packed::shape_of(s).rows; }

}  // namespace vt::detail::cpu

#endif
