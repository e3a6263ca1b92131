// Convolutions on the CPU: the kernel of one image, and how images and blocks of rows are shared
// among threads.
#include "conv.hpp"

#include "../llvm/llvm_library.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <cstring>
#include <memory>

#include "../../../trace/base/buffer.hpp"
#include "../../../trace/base/convert.hpp"
#include "../../services/threads.hpp"
#include "../llvm/code_cache.hpp"
#include "conv_kernel.hpp"
#include "matmul_pack.hpp"

namespace vt::detail::cpu {

namespace conv_run {

// Multiply-adds of one range of work: less stays on one thread.
constexpr std::int64_t least_work = 1 << 17;
// Edged images and packed filters made at once.
constexpr std::int64_t iterations_bytes = 4 << 20;
// Elements that one range of copies should have.
constexpr std::int64_t least_copied = 1 << 14;
// Rows that something else works on are handed over while they are in the second-level cache.
constexpr std::int64_t rows_bytes = 64 << 10;

// Of the vector that begins with the last channels of an image.
constexpr std::int64_t beyond = 64;

std::int64_t pieces(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

/// Where number i of several axes' joint numbers lies, by one of their distances.
std::int64_t place(const ConvAxes& axes, std::int64_t i, std::int64_t ConvAxis::* distance) {
  std::int64_t sum = 0;
  for (std::size_t k = axes.size(); k-- > 0; i /= axes[k].extent)
    sum += i % axes[k].extent * (axes[k].*distance);
  return sum;
}

class Convolution : public Matmul {
 public:
  explicit Convolution(const ConvSpec& s)
      : s_(s),
        loops_(best_loops(s, host_target())),
        kernel_(conv_kernel(s, loops_, host_target())) {
    kernel_.make_code(count_of(s.outer_contract) > 1);
    // b's elements in the order of the kernel's depth: what steps evenly is packed at once.
    const auto add = [&](std::int64_t extent, std::int64_t step) {
      if (extent == 1) return;
      if (!depth_.empty() && depth_.back().b == step * extent)
        depth_.back() = {depth_.back().extent * extent, 0, step, 0};
      else depth_.push_back({extent, 0, step, 0});
    };
    for (const ConvWindow& w : s.windows) add(w.size, w.b);
    for (const ConvAxis& a : s.inner_contract) add(a.extent, a.b);
    along_ = depth_.empty() ? ConvAxis{} : depth_.back();
    if (!depth_.empty()) depth_.pop_back();
    const int width = kernel_.tile.columns();
    pack_ =
        pack_code({.from = s.b_dtype,
                   .to = s.accumulate,
                   .lines = width,
                   .lines_adjacent = s.columns.b == 1,
                   .k_adjacent = along_.b == 1,
                   .whole_vectors = width % host_target().simd_lanes(size_of(s.accumulate)) == 0});
    panels_ = pieces(loops_.n, width);
    block_ = panels_ * loops_.depth_count() * width;
    images_ = count_of(s.outer_free);
    items_ = count_of(s.outer_batch) * images_;
    batches_ = count_of(s.outer_batch);
    by_panels_ = by_panels(s, loops_, kernel_);
    for (const ConvWindow& w : s.windows) windows_ *= w.extent;
    iterations_ = count_of(s.outer_contract);
    parts_ = count_of(s.inner_batch) * count_of(s.b_free);
    c_elements_ = s.results();
  }

  void run(const void* a, const void* b, void* c, const RowsDone& done,
           const PackedOperands&) const override {
    if (s_.result == s_.accumulate) return all(a, b, c, done);
    const BufferRef sums = room(c_elements_, "vt::conv: sums");
    const auto iteration = [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t first = begin * loops_.n, last = end * loops_.n;
      convert_elements(at_element(sums->data, first, s_.accumulate), s_.accumulate,
                       at_element(c, first, s_.result), s_.result, last - first);
      done(begin, end);
    };
    if (s_.rows_in_order) return all(a, b, sums->data, RowsDone(iteration, done.group()));
    all(a, b, sums->data, {});
    parallel_ranges(c_elements_ / loops_.n, pieces(least_work, loops_.n), iteration);
  }

  std::size_t scratch_bytes(const RowsDone& done, bool, bool) const override {
    const bool converts = s_.result != s_.accumulate;
    const bool alone = !converts && done.alone();
    const std::int64_t group = !converts || s_.rows_in_order ? done.group() : 1;
    return static_cast<std::size_t>((converts ? c_elements_ : 0) + elements_of_all(group, alone)) *
           size_of(s_.accumulate);
  }

  std::string describe() const override {
    std::string tile;
    for (int h : kernel_.heights)
      if (h > 0) tile += (tile.empty() ? "" : "·") + std::to_string(h);
    return "tiles of " + (tile.empty() ? "1" : tile) + "x" +
           std::to_string(kernel_.tile.columns()) + (by_panels_ ? ", panel by panel" : "") +
           (loops_.side_by_side ? ", images side by side"
            : loops_.padded     ? ", edged images"
                                : "");
  }

 private:
  BufferRef room(std::int64_t elements, const char* what) const {
    return allocate(elements * size(), what);
  }
  // Elements that a way of running needs; what each of its threads does is there as often as there
  // may be threads.
  std::int64_t elements_of_all(std::int64_t group, bool alone) const {
    const std::int64_t units = kernel_.units();
    if (by_panels_) {
      const std::int64_t images = !loops_.padded        ? 0
                                  : loops_.side_by_side ? items_ * loops_.rows[0].a
                                                        : edged(items_);
      return images + (alone ? c_elements_ : 0) +
             threads_for(batches_ * parts_ * panels_, 1) * (block_ / panels_);
    }
    if (loops_.side_by_side) {
      const std::int64_t height = kernel_.heights[0],
                         block = loops_.padded ? height * loops_.rows[0].a : 0;
      return filters(iterations_) +
             threads_for(batches_ * units, 1) * (block + rows_of_thread(alone, height));
    }
    if (each_image_alone()) {
      const bool shared = batches_ == 1;
      return (shared ? filters(iterations_) : 0) +
             threads_for(items_, grain_of_images()) *
                 ((loops_.padded ? edged(1) : 0) + rows_of_thread(alone) + (shared ? 0 : block_));
    }
    const std::int64_t iterations = iterations_at_once(alone);
    return filters(iterations) + (loops_.padded ? edged(items_ * iterations) : 0) +
           threads_for(items_ * parts_ * blocks_of_image(group), 1) * rows_of_thread(alone);
  }
  std::int64_t edged(std::int64_t images) const {
    return images * loops_.elements + pieces(beyond, size());
  }
  std::int64_t filters(std::int64_t iterations) const {
    return batches_ * iterations * parts_ * block_;
  }
  std::int64_t rows_of_thread(bool alone, std::int64_t images = 1) const {
    return alone ? (loops_.side_by_side ? images * (loops_.row_count() / images_)
                                        : loops_.row_count()) *
                       loops_.n
                 : 0;
  }
  bool each_image_alone() const { return items_ >= 4 * thread_count(); }
  std::int64_t grain_of_images() const {
    const std::int64_t work = std::max<std::int64_t>(s_.multiply_adds() / items_, 1);
    return std::max<std::int64_t>(least_work / work, 1);
  }
  std::int64_t iterations_at_once(bool alone) const {
    const std::int64_t of_iteration =
        (batches_ * parts_ * block_ + (loops_.padded ? items_ * loops_.elements : 0)) * size();
    return alone ? iterations_
                 : std::clamp<std::int64_t>(iterations_bytes / of_iteration, 1, iterations_);
  }
  std::int64_t blocks_of_image(std::int64_t rows) const {
    const std::int64_t wanted =
        s_.multiply_adds() < 2 * least_work ? 1 : pieces(4 * thread_count(), items_ * parts_);
    return std::clamp<std::int64_t>(wanted, 1, kernel_.units() / units_of_group(rows));
  }
  std::int64_t size() const { return static_cast<std::int64_t>(size_of(s_.accumulate)); }

  // Copies one image into zeros, of which its elements' places are the same each time;
  // begin … end − 1 of the outermost axis.
  void edge(const char* image, char* to, std::size_t level = 0, std::int64_t begin = 0,
            std::int64_t end = -1) const {
    if (level == s_.windows.size())
      return convert_elements(image, s_.a_dtype, to, s_.accumulate, s_.inner);
    const ConvWindow& w = s_.windows[level];
    const std::int64_t extent = end < 0 ? loops_.extents[level] : end;
    // Elements n with begin ≤ n · dilation + low < extent.
    const std::int64_t first =
        std::max<std::int64_t>(begin - w.low + w.lhs_dilation - 1, 0) / w.lhs_dilation;
    const std::int64_t last =
        extent <= w.low ? first : std::min(w.extent, pieces(extent - w.low, w.lhs_dilation));
    if (first >= last) return;
    const std::int64_t start = first * w.lhs_dilation + w.low;
    if (level + 1 == s_.windows.size() && w.lhs_dilation == 1 && w.a == s_.inner)
      return convert_elements(at_element(image, first * w.a, s_.a_dtype), s_.a_dtype,
                              to + start * s_.inner * size(), s_.accumulate,
                              (last - first) * s_.inner);
    for (std::int64_t n = first; n < last; ++n)
      edge(at_element(image, n * w.a, s_.a_dtype),
           to + (start + (n - first) * w.lhs_dilation) * loops_.distances[level] * size(),
           level + 1);
  }

  void pack_panels(const char* b, char* to, std::int64_t first, std::int64_t last) const {
    const std::int64_t width = kernel_.tile.columns(), depth = loops_.depth_count(),
                       runs = count_of(depth_);
    for (std::int64_t panel = first; panel < last; ++panel)
      for (std::int64_t r = 0; r < runs; ++r)
        pack_->function<PackFunction>()(
            at_element(b, place(depth_, r, &ConvAxis::b) + panel * width * s_.columns.b,
                       s_.b_dtype),
            to + ((panel - first) * depth + r * along_.extent) * width * size(), s_.columns.b,
            along_.b, width, std::min(width, loops_.n - panel * width), along_.extent);
  }

  // The filters of some iterations, whose panels threads share.
  BufferRef pack_all(const void* b, std::int64_t first_iteration,
                     std::int64_t last_iteration) const {
    const std::int64_t iterations = last_iteration - first_iteration, panel = block_ / panels_;
    const BufferRef packed = room(filters(iterations), "vt::conv: packed filters");
    parallel_ranges(
        batches_ * iterations * parts_ * panels_, std::max<std::int64_t>(least_copied / panel, 1),
        [&](std::int64_t from, std::int64_t to) {
          for (std::int64_t i = from; i < to;) {
            const std::int64_t f = i / panels_, first = i % panels_,
                               last = std::min(panels_, first + to - i);
            pack_panels(filter_of(b, f / (iterations * parts_),
                                  first_iteration + f / parts_ % iterations, f % parts_),
                        static_cast<char*>(packed->data) + (f * block_ + first * panel) * size(),
                        first, last);
            i += last - first;
          }
        });
    return packed;
  }
  const char* panels_of(const BufferRef& packed, std::int64_t batch, std::int64_t iteration,
                        std::int64_t part, std::int64_t iterations) const {
    return static_cast<const char*>(packed->data) +
           ((batch * iterations + iteration) * parts_ + part) * block_ * size();
  }

  // Item: one image of the result; iteration: one of those added up for it; part: of those in one
  // image of a.
  const char* image_of(const void* a, std::int64_t item, std::int64_t iteration) const {
    const std::int64_t free = count_of(s_.outer_free);
    return at_element(a,
                      place(s_.outer_batch, item / free, &ConvAxis::a) +
                          place(s_.outer_free, item % free, &ConvAxis::a) +
                          place(s_.outer_contract, iteration, &ConvAxis::a),
                      s_.a_dtype);
  }
  std::int64_t batch_of(std::int64_t item) const { return item / count_of(s_.outer_free); }
  const char* filter_of(const void* b, std::int64_t batch, std::int64_t iteration,
                        std::int64_t part) const {
    const std::int64_t free = count_of(s_.b_free);
    return at_element(b,
                      s_.b_start + place(s_.outer_batch, batch, &ConvAxis::b) +
                          place(s_.outer_contract, iteration, &ConvAxis::b) +
                          place(s_.inner_batch, part / free, &ConvAxis::b) +
                          place(s_.b_free, part % free, &ConvAxis::b),
                      s_.b_dtype);
  }
  char* result_of(void* c, std::int64_t item, std::int64_t part) const {
    const std::int64_t free = count_of(s_.outer_free), b_free = count_of(s_.b_free);
    return at_element(c,
                      s_.c_start + place(s_.outer_batch, item / free, &ConvAxis::c) +
                          place(s_.outer_free, item % free, &ConvAxis::c) +
                          place(s_.inner_batch, part / b_free, &ConvAxis::c) +
                          place(s_.b_free, part % b_free, &ConvAxis::c),
                      s_.accumulate);
  }
  /// Of one part in its image.
  std::int64_t part_start(std::int64_t part) const {
    return loops_.start + place(s_.inner_batch, part / count_of(s_.b_free), &ConvAxis::a);
  }

  BufferRef zeros(std::int64_t images) const {
    const BufferRef memory = room(edged(images), "vt::conv: edged images");
    std::memset(memory->data, 0, memory->bytes);
    return memory;
  }

  // Rows that nobody else reads are made in memory of the thread's own, again and again.
  BufferRef rows_of_one(const RowsDone& done, std::int64_t images = 1) const {
    if (!done.alone()) return {};
    return room(rows_of_thread(true, images), "vt::conv: rows");
  }
  void report(const RowsDone& done, std::int64_t first, std::int64_t begin, std::int64_t end,
              const BufferRef& sums) const {
    done(first + begin, first + end,
         sums ? static_cast<const char*>(sums->data) + begin * loops_.n * size() : nullptr);
  }
  // Units after which rows are whole groups.
  std::int64_t units_of_group(std::int64_t rows) const {
    const std::int64_t units = kernel_.units();
    for (std::int64_t u = 1; u < units; ++u)
      if (kernel_.rows_before(u) % rows == 0) return u;
    return units;
  }
  static std::int64_t cut(std::int64_t units, std::int64_t group, std::int64_t part,
                          std::int64_t parts) {
    return part == parts ? units : units / group * part / parts * group;
  }

  // What differs between images and what all share is made where it is used or before, by the
  // number of images; rows of one image are cut into blocks where there are few. Each element is
  // summed in one order, whatever the cuts.
  void all(const void* a, const void* b, void* c, const RowsDone& done) const {
    if (by_panels_) return panel_by_panel(a, b, c, done);
    if (loops_.side_by_side) return side_by_side(a, b, c, done);
    if (each_image_alone()) return each_image(a, b, c, done);
    return few_images(a, b, c, done);
  }

  // Of images side by side.
  std::int64_t first_of_tile(std::int64_t tile) const {
    return std::min(tile * kernel_.heights[0], images_ - kernel_.heights[0]);
  }

  void panel_by_panel(const void* a, const void* b, void* c, const RowsDone& done) const {
    const std::int64_t units = kernel_.units(), calls = loops_.side_by_side ? units : images_,
                       panel = block_ / panels_;
    BufferRef images, sums;
    if (loops_.padded) images = loops_.side_by_side ? copy_all(a) : edge_all(a, 0, 1);
    if (done.alone()) sums = room(c_elements_, "vt::conv: rows");
    parallel_ranges(batches_ * parts_ * panels_, 1, [&](std::int64_t from, std::int64_t to) {
      const BufferRef filter = room(panel, "vt::conv: packed filters");
      for (std::int64_t i = from; i < to; ++i) {
        const std::int64_t batch = i / (parts_ * panels_), part = i / panels_ % parts_,
                           p = i % panels_;
        pack_panels(filter_of(b, batch, 0, part), static_cast<char*>(filter->data), p, p + 1);
        for (std::int64_t call = 0; call < calls; ++call) {
          const std::int64_t first = loops_.side_by_side ? first_of_tile(call) : call,
                             item = batch * images_ + first;
          const std::int64_t distance = loops_.side_by_side ? loops_.rows[0].a : loops_.elements;
          const char* const image =
              images ? static_cast<const char*>(images->data) + item * distance * size()
                     : image_of(a, item, 0);
          const std::int64_t begin = loops_.side_by_side ? call * kernel_.heights[0] - first : 0;
          kernel_.run(image + part_start(part) * size(), filter->data,
                      result_of(sums ? sums->data : c, item, part), begin, units, false, p, p + 1);
        }
      }
    });
    if (!done) return;
    const std::int64_t group = done.group(),
                       grain = std::max<std::int64_t>(rows_bytes / (group * loops_.n * size()), 1);
    parallel_ranges(c_elements_ / loops_.n / group, grain, [&](std::int64_t from, std::int64_t to) {
      report(done, 0, from * group, to * group, sums);
    });
  }

  // Images side by side, as far apart as the kernel wants them.
  BufferRef copy_all(const void* a) const {
    const std::int64_t distance = loops_.rows[0].a, image = s_.inner * windows_;
    const BufferRef all = room(items_ * distance, "vt::conv: images side by side");
    parallel_ranges(items_, std::max<std::int64_t>(least_copied / image, 1),
                    [&](std::int64_t from, std::int64_t to) {
                      for (std::int64_t i = from; i < to; ++i)
                        convert_elements(image_of(a, i, 0), s_.a_dtype,
                                         static_cast<char*>(all->data) + i * distance * size(),
                                         s_.accumulate, image);
                    });
    return all;
  }

  // Many images, shared among threads.
  void each_image(const void* a, const void* b, void* c, const RowsDone& done) const {
    const std::int64_t units = kernel_.units(), group = units_of_group(done.group()),
                       rows = kernel_.rows_before(units);
    const BufferRef packed = batches_ == 1 ? pack_all(b, 0, iterations_) : BufferRef();
    // Units whose rows fill a part of the cache.
    const std::int64_t turns =
        done && iterations_ == 1
            ? std::clamp<std::int64_t>(pieces(rows * loops_.n * size(), rows_bytes), 1,
                                       units / group)
            : 1;
    parallel_ranges(items_, grain_of_images(), [&](std::int64_t from, std::int64_t to) {
      const BufferRef own = loops_.padded ? zeros(1) : BufferRef();
      const BufferRef sums = rows_of_one(done);
      const BufferRef filter = packed ? BufferRef() : room(block_, "vt::conv: packed filters");
      for (std::int64_t item = from; item < to; ++item) {
        for (std::int64_t iteration = 0; iteration < iterations_; ++iteration) {
          const char* image = image_of(a, item, iteration);
          if (own) {
            edge(image, static_cast<char*>(own->data));
            image = static_cast<const char*>(own->data);
          }
          for (std::int64_t part = 0; part < parts_; ++part) {
            if (filter)
              pack_panels(filter_of(b, batch_of(item), iteration, part),
                          static_cast<char*>(filter->data), 0, panels_);
            const char* const panels =
                filter ? static_cast<const char*>(filter->data)
                       : panels_of(packed, batch_of(item), iteration, part, iterations_);
            for (std::int64_t t = 0; t < turns; ++t) {
              const std::int64_t begin = cut(units, group, t, turns),
                                 end = cut(units, group, t + 1, turns);
              kernel_.run(image + part_start(part) * size(), panels,
                          sums ? static_cast<char*>(sums->data) : result_of(c, item, part), begin,
                          end, iteration > 0, 0, panels_);
              if (turns > 1)
                report(done, item * rows, kernel_.rows_before(begin), kernel_.rows_before(end),
                       sums);
            }
          }
        }
        if (turns == 1) report(done, item * rows, 0, rows, sums);
      }
    });
  }

  // Few images: their rows are cut into blocks for threads to share. Images that are added up come
  // in groups that stay in the last cache, as every block reads all of them.
  void few_images(const void* a, const void* b, void* c, const RowsDone& done) const {
    const std::int64_t units = kernel_.units(), rows = kernel_.rows_before(units);
    const std::int64_t at_once = iterations_at_once(done.alone());
    const std::int64_t group = units_of_group(done.group()), blocks = blocks_of_image(done.group());
    for (std::int64_t first = 0; first < iterations_; first += at_once) {
      const std::int64_t last = std::min(iterations_, first + at_once);
      const BufferRef packed = pack_all(b, first, last),
                      images = loops_.padded ? edge_all(a, first, last) : BufferRef();
      parallel_ranges(items_ * parts_ * blocks, 1, [&](std::int64_t from, std::int64_t to) {
        const BufferRef sums = rows_of_one(done);
        for (std::int64_t i = from; i < to; ++i) {
          const std::int64_t item = i / (parts_ * blocks), part = i / blocks % parts_,
                             block = i % blocks;
          const std::int64_t begin = cut(units, group, block, blocks),
                             end = cut(units, group, block + 1, blocks);
          for (std::int64_t iteration = first; iteration < last; ++iteration) {
            const char* const image =
                images ? static_cast<const char*>(images->data) +
                             (item * (last - first) + iteration - first) * loops_.elements * size()
                       : image_of(a, item, iteration);
            kernel_.run(image + part_start(part) * size(),
                        panels_of(packed, batch_of(item), iteration - first, part, last - first),
                        sums ? static_cast<char*>(sums->data) : result_of(c, item, part), begin,
                        end, iteration > 0, 0, panels_);
          }
          if (last == iterations_)
            report(done, item * rows, kernel_.rows_before(begin), kernel_.rows_before(end), sums);
        }
      });
    }
  }

  // The edged images of some iterations, whose outermost rows threads share.
  BufferRef edge_all(const void* a, std::int64_t first, std::int64_t last) const {
    const std::int64_t iterations = last - first, images = items_ * iterations;
    const BufferRef all = room(edged(images), "vt::conv: edged images");
    const std::int64_t slices = s_.windows.empty() ? 1 : loops_.extents[0],
                       slice = loops_.elements / slices;
    parallel_ranges(images * slices, std::max<std::int64_t>(least_copied / slice, 1),
                    [&](std::int64_t from, std::int64_t to) {
                      std::memset(static_cast<char*>(all->data) + from * slice * size(), 0,
                                  (to - from) * slice * size());
                      for (std::int64_t i = from; i < to;) {
                        const std::int64_t n = i / slices, begin = i % slices,
                                           end = std::min(slices, begin + to - i);
                        edge(image_of(a, n / iterations, first + n % iterations),
                             static_cast<char*>(all->data) + n * loops_.elements * size(), 0, begin,
                             end);
                        i += end - begin;
                      }
                    });
    return all;
  }

  // Blocks of images side by side are shared among threads; the filters are packed before.
  void side_by_side(const void* a, const void* b, void* c, const RowsDone& done) const {
    const std::int64_t units = kernel_.units(), height = kernel_.heights[0],
                       distance = loops_.rows[0].a, rows = kernel_.rows_before(units);
    const std::int64_t image = s_.inner * windows_;
    const BufferRef packed = pack_all(b, 0, iterations_);
    parallel_ranges(batches_ * units, 1, [&](std::int64_t from, std::int64_t to) {
      const BufferRef sums = rows_of_one(done, height);
      BufferRef own;
      if (loops_.padded) own = room(height * distance, "vt::conv: images side by side");
      for (std::int64_t i = from; i < to; ++i) {
        // A tile is always full: the last one begins among the images of the one before.
        const std::int64_t batch = i / units, first = first_of_tile(i % units),
                           skipped = i % units * height - first, item = batch * images_ + first;
        for (std::int64_t iteration = 0; iteration < iterations_; ++iteration) {
          const char* block = image_of(a, item, iteration);
          if (own) {
            for (std::int64_t k = 0; k < height; ++k)
              convert_elements(image_of(a, item + k, iteration), s_.a_dtype,
                               static_cast<char*>(own->data) + k * distance * size(), s_.accumulate,
                               image);
            block = static_cast<const char*>(own->data);
          }
          for (std::int64_t part = 0; part < parts_; ++part)
            kernel_.run(block + part_start(part) * size(),
                        panels_of(packed, batch, iteration, part, iterations_),
                        sums ? static_cast<char*>(sums->data) : result_of(c, item, part), skipped,
                        height, iteration > 0, 0, panels_);
        }
        const std::int64_t of_image = loops_.row_count() / images_;
        report(done, batch * rows + first * of_image, skipped * of_image, height * of_image, sums);
      }
    });
  }

  ConvSpec s_;
  ConvLoops loops_;
  ConvKernel kernel_;
  ConvAxes depth_;  ///< of b, without the last
  ConvAxis along_;  ///< the last
  std::int64_t panels_ = 1, block_ = 0, images_ = 1, windows_ = 1, items_ = 1, batches_ = 1,
               iterations_ = 1, parts_ = 1, c_elements_ = 0;
  bool by_panels_ = false;
  std::shared_ptr<const Code> pack_;
};

}  // namespace conv_run

std::shared_ptr<const Matmul> make_convolution(const ConvSpec& s) {
  if (!llvm_missing_reason().empty()) return nullptr;
  if (Vec<ConvSpec> phases = phases_of(s); !phases.empty()) return make_phases(s, phases);
  return std::make_shared<conv_run::Convolution>(s);
}

}  // namespace vt::detail::cpu

#else

namespace vt::detail::cpu {
std::shared_ptr<const Matmul> make_convolution(const ConvSpec&) { return nullptr; }
}  // namespace vt::detail::cpu

#endif
