// The text of the kernels that sort rows.
#include "sort_source.hpp"

#include <string_view>

#include <vt/detail/message.hpp>

namespace vt::detail::cuda {

namespace sort_text {

// Behind the prelude. Shared memory is read and written by VT_LOAD and VT_STORE, too, so that an
// emulator can watch it.
constexpr std::string_view order_functions = R"cuda(
// An element's bits as a number that orders as the elements do: NaN behind all others and equal to
// itself, -0 as +0.
template <class U> VT_FN U vt_order_signed(U x) { return (U)(x ^ (U)1 << (8 * sizeof(U) - 1)); }
template <class U> VT_FN U vt_order_float(U x, U infinity) {
  const U sign = (U)((U)1 << (8 * sizeof(U) - 1));
  if ((U)(x & (U)~sign) > infinity) return (U)~(U)0;
  return x == sign ? sign : x & sign ? (U)~x : (U)(x | sign);
}
// The sums of what a block's threads give, each up to its own.
template <class T> VT_FN T vt_sums(T x) {
  __shared__ T ends[32];
  const int in_warp = threadIdx.x % 32;
#pragma unroll
  for (int by = 1; by < 32; by <<= 1) {
    const T y = vt_warp<sizeof(T)>::up(x, by);
    if (in_warp >= by) x += y;
  }
  __syncthreads();
  if (in_warp == 31) VT_STORE(ends, threadIdx.x / 32, x);
  __syncthreads();
  for (int w = 0; w < (int)threadIdx.x / 32; ++w) x += VT_LOAD(ends, w);
  return x;
}
// Where row `row` of a [outer, length, inner] array begins.
VT_FN i64 vt_row(i64 row, i64 length, i64 inner) {
  return inner == 1 ? row * length : row / inner * (length * inner) + row % inner;
}
)cuda";

const char* word_of(DType d) {
  constexpr const char* names[] = {"u8", "u16", "u32", "u64"};
  return names[size_of(d) == 1 ? 0 : size_of(d) == 2 ? 1 : size_of(d) == 4 ? 2 : 3];
}
int bits_of(DType d) { return static_cast<int>(8 * size_of(d)); }

std::string ordered(const SortSpec& s, int key, const std::string& element) {
  const DType d = s.dtypes[key];
  const char* word = word_of(d);
  std::string text = formatted("({}){}", word, element);
  if (is_float(d)) {
    const char* infinity = d == DType::f16    ? "0x7c00"
                           : d == DType::bf16 ? "0x7f80"
                           : d == DType::f32  ? "0x7f800000u"
                                              : "0x7ff0000000000000ull";
    text = formatted("vt_order_float<{}>({}, {})", word, text, infinity);
  } else if (is_signed_int(d)) {
    text = formatted("vt_order_signed<{}>({})", word, text);
  }
  return s.descending ? formatted("({})~{}", word, text) : text;
}
// The element of operand `k` at `place` of the row that begins at `from`.
std::string element(const SortSpec& s, int k, const std::string& from, const std::string& place) {
  if (s.is_place[k]) return formatted("({})", place);
  return formatted("VT_LOAD(i{}, {} + (i64)({}) * inner)", k, from, place);
}
// Keys [first, end) at a place as one number of `type`.
std::string joined(const SortSpec& s, int first, int end, const char* type, const std::string& from,
                   const std::string& place) {
  std::string text;
  for (int k = first; k < end; ++k) {
    const std::string key = formatted("({}){}", type, ordered(s, k, element(s, k, from, place)));
    text = text.empty() ? key : formatted("(({}) << {} | {})", text, bits_of(s.dtypes[k]), key);
  }
  return text;
}

class Kernel {
 public:
  Kernel(const std::string& name, int threads)
      : head_(formatted("extern \"C\" __global__ void __launch_bounds__({}) {}(", threads, name)) {}
  void pointer(const std::string& type, const std::string& name, bool written) {
    add(formatted("{}{}* __restrict__ {}", written ? "" : "const ", type, name));
  }
  void operand(const SortSpec& s, int k) {
    if (!s.is_place[k]) pointer(word_of(s.dtypes[k]), formatted("i{}", k), false);
  }
  void results(const SortSpec& s, const SmallVec<char, 4>& wanted) {
    for (std::size_t k = 0; k < wanted.size(); ++k)
      if (wanted[k]) pointer(word_of(s.dtypes[k]), formatted("o{}", k), true);
  }
  void numbers(std::initializer_list<const char*> names) {
    for (const char* n : names) add(std::string("long long ") + n);
  }
  std::string text(const std::string& functions, const std::string& body) const {
    return std::string(order_functions) + functions + head_ + parameters_ + ") {\n" + body + "}\n";
  }

 private:
  void add(const std::string& p) { parameters_ += (parameters_.empty() ? "" : ", ") + p; }
  std::string head_, parameters_;
};

std::string types(const Record& r) {
  return formatted("typedef {} key;\ntypedef {} place;\n", r.wide_key ? "u64" : "u32",
                   r.wide_place ? "u64" : "u32");
}

// Rows of words in shared memory in order, by a bitonic network. Threads whose steps reach no
// further than their warp's elements wait for it alone.
std::string network(int words, const char* word, int threads) {
  std::string text = "VT_FN void vt_order_rows(", load, swap, before;
  for (int w = 0; w < words; ++w) {
    text += formatted("{}* w{}, ", word, w);
    load +=
        formatted("        const {0} a{1} = VT_LOAD(w{1}, i), b{1} = VT_LOAD(w{1}, j);\n", word, w);
    swap += formatted(" VT_STORE(w{0}, i, b{0}); VT_STORE(w{0}, j, a{0});", w);
  }
  for (int w = words; w-- > 0;)
    before = before.empty() ? formatted("a{0} > b{0}", w)
                            : formatted("a{0} > b{0} || (a{0} == b{0} && ({1}))", w, before);
  text +=
      "int all, int padded) {\n  int last = 64;\n  for (int size = 2; size <= padded; size <<= "
      "1)\n";
  text += "    for (int stride = size / 2; stride; stride >>= 1) {\n";
  text +=
      "      if (stride > 32 || last > 32) __syncthreads();\n      else __syncwarp();\n      last "
      "= stride;\n";
  text += formatted("      for (int t = threadIdx.x; t < all / 2; t += {}) {{\n", threads);
  text += "        const int i = 2 * t - (t & (stride - 1)), j = i + stride;\n" + load;
  text += "        if ((" + before + ") == ((i & (padded - 1) & size) == 0)) {" + swap + " }\n";
  text += "      }\n    }\n  __syncthreads();\n}\n";
  return text;
}

// `count` results of row `row`, which begins at `from`, go to `to`: this one, place `j` of them,
// comes from `place`.
std::string store_results(const SortSpec& s, const SmallVec<char, 4>& wanted) {
  std::string text;
  for (std::size_t k = 0; k < wanted.size(); ++k)
    if (wanted[k])
      text += formatted("    VT_STORE(o{}, to + (i64)j * inner, ({}){});\n", k,
                        word_of(s.dtypes[k]), element(s, static_cast<int>(k), "from", "at"));
  return text;
}

}  // namespace sort_text

RowWords row_words(const SortSpec& s) {
  RowWords words;
  int place_bits = 1;
  while ((std::int64_t{1} << place_bits) < s.length) ++place_bits;
  words.padded = 1 << place_bits;
  int all = place_bits, in_word = 64;
  for (int k = 0; k < s.keys; ++k) {
    const int bits = sort_text::bits_of(s.dtypes[k]);
    all += bits;
    if (in_word + bits > 64) {
      words.first_keys.push_back(static_cast<char>(k));
      in_word = 0;
    }
    in_word += bits;
  }
  if (in_word + place_bits > 64) words.first_keys.push_back(static_cast<char>(s.keys));
  words.narrow = all <= 32;
  // Rows that lie side by side are read together; enough of them that all threads have a pair to
  // compare.
  const int wanted = s.inner > 1 ? 16 : 1;
  while (words.padded * words.rows < 512 || (words.rows < wanted && words.bytes() * 2 <= 16 << 10))
    words.rows *= 2;
  while (words.rows > 1 && words.rows / 2 >= s.outer * s.inner) words.rows /= 2;
  while (words.padded * words.rows < 64) words.rows *= 2;  // a warp has work
  return words;
}

std::string sort_rows_source(const SortSpec& s, const RowWords& words,
                             const SmallVec<char, 4>& wanted, const std::string& name) {
  using namespace sort_text;
  const int all = words.padded * words.rows, threads = std::min(sort_threads, all / 2),
            count = static_cast<int>(words.first_keys.size());
  const char* word = words.narrow ? "u32" : "u64";
  Kernel kernel(name, threads);
  for (std::size_t k = 0; k < s.dtypes.size(); ++k)
    if (static_cast<int>(k) < s.keys || wanted[k]) kernel.operand(s, static_cast<int>(k));
  kernel.results(s, wanted);
  kernel.numbers({"rows", "length", "inner", "start", "limit"});
  std::string body, arrays, filled, padding;
  for (int w = 0; w < count; ++w) {
    arrays += formatted("  __shared__ {} w{}[{}];\n", word, w, all);
    const int first = words.first_keys[w];
    std::string text =
        w + 1 < count
            ? joined(s, first, words.first_keys[static_cast<std::size_t>(w) + 1], word, "from", "i")
            : joined(s, first, s.keys, word, "from", "i");
    std::string pad = formatted("({})~0ull", word);
    if (w + 1 == count) {
      text = text.empty() ? formatted("({})i", word)
                          : formatted("(({}) * {} | ({})i)", text, words.padded, word);
      pad = formatted("(({})~0ull * {} | ({})i)", word, words.padded, word);
    }
    filled += formatted("    VT_STORE(w{}, t, inside ? {} : {});\n", w, text, pad);
  }
  const std::string address = "    const i64 row = row0 + r, from = vt_row(row, length, inner);\n";
  body = arrays + formatted(
                      "  const i64 row0 = (i64)blockIdx.x * {0};\n  const int here = rows - row0 < "
                      "{0} ? (int)(rows - row0) : {0};\n",
                      words.rows);
  body += formatted("  for (int u = threadIdx.x; u < {}; u += {}) {{\n", all, threads);
  body += "    // Rows that lie side by side are read together.\n";
  body += formatted(
      "    const int r = inner == 1 ? u / {0} : u % {1}, i = inner == 1 ? u % {0} : u / {1}, t = r "
      "* {0} + i;\n",
      words.padded, words.rows);
  body += address + "    const bool inside = r < here && i < length;\n" + filled +
          "  }\n  vt_order_rows(";
  for (int w = 0; w < count; ++w) body += formatted("w{}, ", w);
  body += formatted("{}, {});\n", all, words.padded);
  body += formatted(
      "  const int count = (int)(limit - start);\n  for (int u = threadIdx.x; u < here * count; u "
      "+= {}) {{\n",
      threads);
  body +=
      "    const int r = inner == 1 ? u / count : u % here, j = inner == 1 ? u % count : u / "
      "here;\n" +
      address;
  body += "    const i64 to = vt_row(row, count, inner);\n";
  body += formatted("    const int at = (int)(VT_LOAD(w{0}, r * {1} + (int)start + j) % {1});\n",
                    count - 1, words.padded);
  body += store_results(s, wanted) + "  }\n";
  return kernel.text(network(count, word, threads), body);
}

std::string sort_keys_source(const SortSpec& s, const Record& r, int first, int end,
                             const std::string& name) {
  using namespace sort_text;
  Kernel kernel(name, sort_threads);
  for (int k = first; k < end; ++k) kernel.operand(s, k);
  kernel.pointer("place", "places", false);
  kernel.pointer("key", "keys", true);
  kernel.numbers({"rows", "length", "inner", "begun"});
  std::string body = formatted(
      "  for (i64 t = (i64)blockIdx.x * {0} + threadIdx.x; t < rows * length; t += (i64)gridDim.x "
      "* {0}) {{\n",
      sort_threads);
  body += "    // In the operands' order at first, then in the records'.\n";
  body +=
      "    const i64 i = begun ? t % length : t / inner % length, row = begun ? t / length : t / "
      "(length * inner) * inner + t % inner;\n";
  body +=
      "    const i64 from = vt_row(row, length, inner), at = begun ? (i64)VT_LOAD(places, t) : "
      "i;\n";
  body += formatted("    VT_STORE(keys, row * length + i, {});\n  }}\n",
                    joined(s, first, end, "key", "from", "at"));
  return kernel.text(types(r), body);
}

std::string sort_count_source(const Record& r, const std::string& name) {
  sort_text::Kernel kernel(name, sort_threads);
  kernel.pointer("key", "keys", false);
  kernel.pointer("place", "counts", true);
  kernel.numbers({"length", "tiles", "shift"});
  return kernel.text(sort_text::types(r) + formatted("constexpr int tile = {};\n", r.tile()),
                     R"cuda(
  __shared__ u32 own[256];
  VT_STORE(own, threadIdx.x, 0u);
  __syncthreads();
  const i64 row = (i64)blockIdx.x / tiles, begin = (i64)blockIdx.x % tiles * tile;
  const int n = length - begin < tile ? (int)(length - begin) : tile;
  for (int i = threadIdx.x; i < n; i += 256)
    atomicAdd(&own[(int)(VT_LOAD(keys, row * length + begin + i) >> shift) & 255], 1u);
  __syncthreads();
  VT_STORE(counts, (row * 256 + threadIdx.x) * tiles + (i64)blockIdx.x % tiles,
           (place)VT_LOAD(own, threadIdx.x));
)cuda");
}

std::string sort_offsets_source(const Record& r, const std::string& name) {
  sort_text::Kernel kernel(name, sort_threads);
  kernel.pointer("place", "counts", true);
  kernel.pointer("place", "totals", true);
  kernel.numbers({"tiles"});
  return kernel.text(sort_text::types(r), R"cuda(
  const int in_warp = threadIdx.x % 32;
  const i64 digit = (i64)blockIdx.x * 8 + threadIdx.x / 32, first = digit * tiles;
  place before = 0;
  for (i64 c = 0; c < tiles; c += 32) {
    const bool inside = c + in_warp < tiles;
    const place own = inside ? VT_LOAD(counts, first + c + in_warp) : (place)0;
    place sum = own;
#pragma unroll
    for (int by = 1; by < 32; by <<= 1) {
      const place y = vt_warp<sizeof(place)>::up(sum, by);
      if (in_warp >= by) sum += y;
    }
    if (inside) VT_STORE(counts, first + c + in_warp, before + sum - own);
    before += vt_warp<sizeof(place)>::from(sum, 31);
  }
  if (in_warp == 0) VT_STORE(totals, digit, before);
)cuda");
}

std::string sort_move_source(const Record& r, const std::string& name) {
  sort_text::Kernel kernel(name, sort_threads);
  kernel.pointer("key", "keys", false);
  if (r.places) kernel.pointer("place", "places", false);
  kernel.pointer("place", "counts", false);
  kernel.pointer("place", "totals", false);
  kernel.pointer("key", "keys_there", true);
  if (r.places) kernel.pointer("place", "places_there", true);
  kernel.numbers({"length", "tiles", "shift", "begun"});
  const std::string constants =
      sort_text::types(r) +
      formatted("constexpr int each = {0}, tile = {0} * 256;\n", r.tile() / 256);
  // A warp ranks 32 elements at a time: after those of the same digit that it had before, and those
  // of the threads before it.
  std::string body = R"cuda(
  __shared__ u32 counters[8 * 256], first_here[256];
  __shared__ place first_there[256];
  __shared__ key ordered[tile];
)cuda";
  if (r.places) body += "  __shared__ place ordered_places[tile];\n";
  body += R"cuda(
  const int in_warp = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 row = (i64)blockIdx.x / tiles, begin = (i64)blockIdx.x % tiles * tile,
            base = row * length + begin;
  const int n = length - begin < tile ? (int)(length - begin) : tile;
  for (int i = 0; i < 8; ++i) VT_STORE(counters, i * 256 + threadIdx.x, 0u);
  __syncthreads();
  key own[each];
  u32 rank[each];
#pragma unroll
  for (int e = 0; e < each; ++e) {
    const int i = (warp * each + e) * 32 + in_warp;
    own[e] = i < n ? VT_LOAD(keys, base + i) : (key)0;
    const int digit = i < n ? (int)(own[e] >> shift) & 255 : 256;
    const u32 alike = __match_any_sync(0xffffffffu, digit),
              earlier = alike & ((1u << in_warp) - 1u);
    rank[e] = (i < n ? VT_LOAD(counters, warp * 256 + digit) : 0u) + (u32)__popc(earlier);
    __syncwarp();
    if (i < n && earlier == 0) VT_STORE(counters, warp * 256 + digit, rank[e] + (u32)__popc(alike));
    __syncwarp();
  }
  __syncthreads();
  u32 here = 0;
  for (int w = 0; w < 8; ++w) {
    const u32 count = VT_LOAD(counters, w * 256 + threadIdx.x);
    VT_STORE(counters, w * 256 + threadIdx.x, here);
    here += count;
  }
  VT_STORE(first_here, threadIdx.x, vt_sums<u32>(here) - here);
  const place all = VT_LOAD(totals, row * 256 + threadIdx.x);
  VT_STORE(first_there, threadIdx.x,
           vt_sums<place>(all) - all +
               VT_LOAD(counts, (row * 256 + threadIdx.x) * tiles + (i64)blockIdx.x % tiles));
  __syncthreads();
#pragma unroll
  for (int e = 0; e < each; ++e) {
    const int i = (warp * each + e) * 32 + in_warp;
    if (i < n) {
      const int digit = (int)(own[e] >> shift) & 255;
      const int at =
          (int)(VT_LOAD(first_here, digit) + VT_LOAD(counters, warp * 256 + digit) + rank[e]);
      VT_STORE(ordered, at, own[e]);
)cuda";
  if (r.places)
    body +=
        "      VT_STORE(ordered_places, at, begun ? VT_LOAD(places, base + i) : (place)(begin + "
        "i));\n";
  body += R"cuda(    }
  }
  __syncthreads();
  // Equal digits lie side by side now, here as there.
  for (int i = threadIdx.x; i < n; i += 256) {
    const key x = VT_LOAD(ordered, i);
    const int digit = (int)(x >> shift) & 255;
    const i64 to = row * length + (i64)(VT_LOAD(first_there, digit) + (place)i -
                                        (place)VT_LOAD(first_here, digit));
    VT_STORE(keys_there, to, x);
)cuda";
  if (r.places) body += "    VT_STORE(places_there, to, VT_LOAD(ordered_places, i));\n";
  body += "  }\n";
  return kernel.text(constants, body);
}

std::string sort_results_source(const SortSpec& s, const Record& r, const SmallVec<char, 4>& wanted,
                                bool from_key, const std::string& name) {
  using namespace sort_text;
  Kernel kernel(name, sort_threads);
  SmallVec<char, 4> gathered = wanted;
  if (from_key) gathered[0] = 0;
  for (std::size_t k = 0; k < s.dtypes.size(); ++k)
    if (gathered[k]) kernel.operand(s, static_cast<int>(k));
  kernel.pointer("key", "keys", false);
  if (r.places) kernel.pointer("place", "places", false);
  kernel.results(s, wanted);
  kernel.numbers({"rows", "length", "inner", "start", "limit"});
  std::string body = "  const i64 count = limit - start;\n";
  body += formatted(
      "  for (i64 t = (i64)blockIdx.x * {0} + threadIdx.x; t < rows * count; t += (i64)gridDim.x * "
      "{0}) {{\n",
      sort_threads);
  body +=
      "    const i64 j = t / inner % count, row = t / (count * inner) * inner + t % inner, record "
      "= row * length + start + j;\n";
  body += "    const i64 from = vt_row(row, length, inner), to = vt_row(row, count, inner);\n";
  if (r.places) body += "    const i64 at = (i64)VT_LOAD(places, record);\n";
  if (from_key && wanted[0]) {
    const DType d = s.dtypes[0];
    const char* word = word_of(d);
    std::string x = formatted("({}){}VT_LOAD(keys, record)", word, s.descending ? "~" : "");
    if (is_signed_int(d)) x = formatted("vt_order_signed<{}>({})", word, x);
    body += formatted("    VT_STORE(o0, to + j * inner, {});\n", x);
  }
  body += store_results(s, gathered) + "  }\n";
  return kernel.text(types(r), body);
}

std::string select_source(const SortSpec& s, const Record& r, int capacity, bool of_records,
                          bool last, const SmallVec<char, 4>& wanted, const std::string& name) {
  using namespace sort_text;
  Kernel kernel(name, sort_threads);
  for (std::size_t k = 0; k < s.dtypes.size(); ++k)
    if ((k == 0 && !of_records) || (last && wanted[k])) kernel.operand(s, static_cast<int>(k));
  if (of_records) {
    kernel.pointer("key", "keys", false);
    kernel.pointer("place", "places", false);
  }
  if (last) {
    kernel.results(s, wanted);
  } else {
    kernel.pointer("key", "keys_there", true);
    kernel.pointer("place", "places_there", true);
  }
  kernel.numbers({"rows", "length", "inner", "start", "limit", "parts", "records"});
  const bool one_word = !r.wide_key && !r.wide_place;
  std::string functions = types(r) + network(one_word ? 1 : 2, "u64", sort_threads);
  functions +=
      formatted("constexpr int key_bits = {}, capacity = {};\n", bits_of(s.dtypes[0]), capacity);
  std::string body = "  __shared__ u64 w0[capacity];\n";
  if (!one_word) body += "  __shared__ u64 w1[capacity];\n";
  body +=
      "  const i64 row = (i64)blockIdx.x / parts, part = (i64)blockIdx.x % parts, from = "
      "vt_row(row, length, inner);\n";
  body +=
      "  const i64 all = records ? records : length, begin = part * all / parts, end = (part + 1) "
      "* all / parts;\n";
  body += formatted("#define VT_KEY(i) {}\n",
                    of_records ? "VT_LOAD(keys, row * records + (i))"
                               : "(key)" + ordered(s, 0, element(s, 0, "from", "(i)")));
  body += formatted("#define VT_PLACE(i) {}\n",
                    of_records ? "VT_LOAD(places, row * records + (i))" : "(place)(i)");
  body += R"cuda(
  __shared__ u32 counts[256], chosen[3];
  // What is wanted begins with these digits, or is less; until so few elements do that they all can
  // be kept.
  key prefix = 0;
  i64 less = 0, alike = 0;
  int shift = key_bits;
  do {
    shift -= 8;
    VT_STORE(counts, threadIdx.x, 0u);
    __syncthreads();
    for (i64 i = begin + threadIdx.x; i < end; i += 256) {
      const key x = VT_KEY(i);
      if (shift + 8 == key_bits || (x >> (shift + 8)) == prefix)
        atomicAdd(&counts[(int)(x >> shift) & 255], 1u);
    }
    __syncthreads();
    const u32 own = VT_LOAD(counts, threadIdx.x), sum = vt_sums<u32>(own);
    if (less + (sum - own) < limit && less + sum >= limit) {
      VT_STORE(chosen, 0, (u32)threadIdx.x);
      VT_STORE(chosen, 1, sum - own);
      VT_STORE(chosen, 2, own);
    }
    __syncthreads();
    prefix = (key)(shift + 8 == key_bits ? 0 : prefix << 8) | (key)VT_LOAD(chosen, 0);
    less += VT_LOAD(chosen, 1);
    alike = VT_LOAD(chosen, 2);
    __syncthreads();
  } while (shift > 0 && less + alike > capacity);
  // Of those that are alike to the last digit the first ones.
  if (less + alike > capacity) alike = limit - less;
  u32 lesser = 0, equal = 0;
  for (i64 c = begin; c < end; c += 256) {
    const i64 i = c + threadIdx.x;
    const key x = i < end ? VT_KEY(i) : (key)0, head = x >> shift;
    const u32 flags = i < end ? (u32)(head < prefix) | (u32)(head == prefix) << 16 : 0u,
              before = vt_sums<u32>(flags);
    const i64 at = flags & 0xffffu ? (i64)(lesser + (before & 0xffffu)) - 1
                                   : less + equal + (before >> 16) - 1;
    if (flags && (flags == 1u || at < less + alike)) {
)cuda";
  body += one_word ? "      VT_STORE(w0, at, (u64)x << 32 | VT_PLACE(i));\n"
                   : "      VT_STORE(w0, at, (u64)x);\n      VT_STORE(w1, at, (u64)VT_PLACE(i));\n";
  body += R"cuda(    }
    if (threadIdx.x == 255) VT_STORE(chosen, 0, before);
    __syncthreads();
    const u32 found = VT_LOAD(chosen, 0);
    lesser += found & 0xffffu;
    equal += found >> 16;
  }
  const int kept = (int)(less + alike);
  int padded = 2;
  while (padded < kept) padded *= 2;
)cuda";
  body +=
      "  for (int i = kept + threadIdx.x; i < padded; i += 256) {\n    VT_STORE(w0, i, ~0ull);\n";
  if (!one_word) body += "    VT_STORE(w1, i, ~0ull);\n";
  body += formatted("  }}\n  vt_order_rows(w0, {}padded, padded);\n", one_word ? "" : "w1, ");
  const char* place = one_word ? "(place)VT_LOAD(w0, q)" : "(place)VT_LOAD(w1, q)";
  if (last) {
    body +=
        "  const i64 to = vt_row(row, limit - start, inner);\n  for (int q = (int)start + "
        "threadIdx.x; q < limit; q += 256) {\n";
    body += formatted("    const i64 j = q - start, at = (i64){};\n", place) +
            store_results(s, wanted) + "  }\n";
  } else {
    body +=
        "  for (int q = threadIdx.x; q < limit; q += 256) {\n    const i64 to = (i64)blockIdx.x * "
        "limit + q;\n";
    body += formatted(
        "    VT_STORE(keys_there, to, (key)(VT_LOAD(w0, q){}));\n    VT_STORE(places_there, to, "
        "{});\n  }}\n",
        one_word ? " >> 32" : "", place);
  }
  return kernel.text(functions, body);
}

}  // namespace vt::detail::cuda
