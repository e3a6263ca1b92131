// Exchanges: what each rank sends and receives in a collective.
#include "exchanges.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <vt/detail/small_vec.hpp>

#include "combine.hpp"

namespace vt::detail::exchanges {

namespace steps {

/// Until the transfer, one of `all` that go on, is done.
inline void wait(Channel& channel, Transfer& t, std::span<Transfer> all) {
  if (!t.active) return;
  Transport& transport = channel.transport;
  Patience& patience = channel.patience;
  for (unsigned polls = 1; !transport.is_done(t); ++polls) {
    if ((polls & patience.polls_between) == 0) patience.look(all);
#if defined(__x86_64__)
    else __builtin_ia32_pause();
#endif
  }
  ++patience.arrivals;
}

/// Transfers of one step; what is not done when an error ends it is dropped.
template <int N>
class Transfers {
 public:
  explicit Transfers(Channel& channel) : channel_(channel) {}
  ~Transfers() {
    for (Transfer& t : all_)
      if (t.active) channel_.transport.drop(t);
  }
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  void send(int slot, int to, const void* data, std::size_t bytes) {
    Transfer& t = all_[slot];
    t.peer = to;
    channel_.transport.begin_send(to, channel_.tag, data, bytes, t);
  }
  void receive(int slot, int from, void* data, std::size_t bytes) {
    Transfer& t = all_[slot];
    t.peer = from;
    channel_.transport.begin_receive(from, channel_.tag, data, bytes, t);
  }
  void wait(int slot) { steps::wait(channel_, all_[slot], all_); }
  void wait_all() {
    for (int i = 0; i < N; ++i) wait(i);
  }

 private:
  Channel& channel_;
  Transfer all_[N];
};

/// Counts round the group.
inline int around(const RankGroup& group, int member) {
  return (member % group.size + group.size) % group.size;
}

/// In pieces, of which several are on their way at once: `out` to one rank, and as much as
/// in_bytes from another, into `in`. Where that is null the pieces come into memory of the channel.
struct Stream {
  int to = 0;
  const void* out = nullptr;
  std::size_t out_bytes = 0;
  int from = 0;
  void* in = nullptr;
  std::size_t in_bytes = 0;
  std::size_t piece = 0;
};
constexpr int window = 4;

/// arrived(offset, data, bytes) for each piece, in order.
template <class Arrived>
void run(Channel& channel, const Stream& s, unsigned char* slots, Arrived&& arrived) {
  Transfers<2 * window> transfers(channel);
  const std::size_t pieces_in = (s.in_bytes + s.piece - 1) / s.piece;
  const std::size_t pieces_out = (s.out_bytes + s.piece - 1) / s.piece;
  const auto slot_of = [](std::size_t k) { return static_cast<int>(k % window); };
  const auto bytes_of = [&](std::size_t k, std::size_t all) {
    return std::min(s.piece, all - k * s.piece);
  };
  const auto place = [&](std::size_t k) {
    return s.in ? at(s.in, k * s.piece) : slots + static_cast<std::size_t>(slot_of(k)) * s.piece;
  };
  std::size_t begun_in = 0, begun_out = 0;
  for (std::size_t k = 0; k < std::max(pieces_in, pieces_out); ++k) {
    for (; begun_in < std::min(pieces_in, k + window); ++begun_in)
      transfers.receive(slot_of(begun_in), s.from, place(begun_in), bytes_of(begun_in, s.in_bytes));
    for (; begun_out < std::min(pieces_out, k + window); ++begun_out) {
      transfers.wait(window + slot_of(begun_out));
      transfers.send(window + slot_of(begun_out), s.to, at(s.out, begun_out * s.piece),
                     bytes_of(begun_out, s.out_bytes));
    }
    if (k < pieces_in) {
      transfers.wait(slot_of(k));
      arrived(k * s.piece, place(k), bytes_of(k, s.in_bytes));
    }
  }
  transfers.wait_all();
}
/// Into its place.
inline void run(Channel& channel, const Stream& s) {
  run(channel, s, nullptr, [](std::size_t, void*, std::size_t) {});
}

/// `data` to one rank, and as many bytes from another (or the same).
inline void swap(Channel& channel, int to, const void* data, int from, void* got,
                 std::size_t bytes) {
  if (bytes > channel.longest)
    return run(channel, {to, data, bytes, from, got, bytes, channel.longest});
  Transfers<2> transfers(channel);
  transfers.receive(0, from, got, bytes);
  transfers.send(1, to, data, bytes);
  transfers.wait(0);
  transfers.wait(1);
}
inline void send(Channel& channel, int to, const void* data, std::size_t bytes) {
  run(channel, {to, data, bytes, 0, nullptr, 0, channel.longest});
}
inline void receive(Channel& channel, int from, void* data, std::size_t bytes) {
  run(channel, {0, nullptr, 0, from, data, bytes, channel.longest});
}

/// The members of a group as a power of two of places. Where there are more, the first ones pair
/// up: the upper one of a pair gives what it has to the lower one, and gets the result of it.
struct Places {
  explicit Places(const RankGroup& all)
      : group(all),
        count(static_cast<int>(std::bit_floor(static_cast<unsigned>(all.size)))),
        pairs(all.size - count),
        is_paired(all.own < 2 * pairs),
        is_upper(is_paired && all.own % 2 == 1),
        own(is_paired ? all.own / 2 : all.own - pairs),
        other_of_pair(is_paired ? all.rank(all.own ^ 1) : -1) {}
  int rank(int place) const { return group.rank(place < pairs ? 2 * place : place + pairs); }

  const RankGroup& group;
  int count, pairs;
  bool is_paired, is_upper;
  int own, other_of_pair;
};

/// Recursive doubling: after step k a rank has what 2ᵏ neighbours give, the lower ones first.
/// Latency: log₂ n.
void doubling(Channel& channel, const RankGroup& group, CombineLoop combine, const void* given,
              void* got, std::size_t elements, std::size_t bytes) {
  constexpr std::size_t few = 1024;
  alignas(std::max_align_t) unsigned char near[few];
  void* const other = bytes <= few ? near : channel.scratch.take(bytes);
  const Places places(group);
  const void* mine = given;
  if (places.is_upper) {
    send(channel, places.other_of_pair, given, bytes);
    return receive(channel, places.other_of_pair, got, bytes);
  }
  if (places.is_paired) {
    receive(channel, places.other_of_pair, other, bytes);
    combine(got, mine, other, elements);
    mine = got;
  }
  for (int distance = 1; distance < places.count; distance *= 2) {
    const int partner = places.own ^ distance, peer = places.rank(partner);
    swap(channel, peer, mine, peer, other, bytes);
    if (partner < places.own) combine(got, other, mine, elements);
    else combine(got, mine, other, elements);
    mine = got;
  }
  if (places.is_paired) send(channel, places.other_of_pair, got, bytes);
}

/// The same sums of large arrays: in each step a rank keeps half of what it has, and gives the
/// other half to the neighbour that keeps that one. Then the halves go back. Latency: 2 log₂ n.
void halving(Channel& channel, const RankGroup& group, CombineLoop combine, const void* given,
             void* got, std::size_t elements, std::size_t width) {
  const std::size_t piece = std::max<std::size_t>(channel.piece / width, 1) * width,
                    bytes = elements * width;
  auto* const slots = static_cast<unsigned char*>(channel.scratch.take(window * piece));
  const Places places(group);
  const void* mine = given;
  struct Part {
    std::size_t begin, end;
    std::size_t size() const { return end - begin; }
  };
  // `out` goes to a rank, whose `in` is combined with the own one.
  const auto exchange = [&](int peer, Part out, Part in, bool is_lower) {
    const std::size_t first = in.begin * width;
    const Stream stream = {
        peer, at(mine, out.begin * width), out.size() * width, peer, nullptr, in.size() * width,
        piece};
    run(channel, stream, slots, [&](std::size_t offset, const void* data, std::size_t n) {
      const void* const own = at(mine, first + offset);
      combine(at(got, first + offset), is_lower ? own : data, is_lower ? data : own, n / width);
    });
    mine = got;
  };
  if (places.is_upper) {
    run(channel, {places.other_of_pair, given, bytes, 0, nullptr, 0, piece});
    return receive(channel, places.other_of_pair, got, bytes);
  }
  if (places.is_paired) exchange(places.other_of_pair, {0, 0}, {0, elements}, true);
  struct Step {
    int peer;
    Part kept, given;
  };
  SmallVec<Step, 16> steps;
  Part own = {0, elements};
  for (int distance = 1; distance < places.count; distance *= 2) {
    const int partner = places.own ^ distance;
    const bool is_lower = places.own < partner;
    const std::size_t middle = own.begin + (own.end - own.begin) / 2;
    const Part lower = {own.begin, middle}, upper = {middle, own.end};
    own = is_lower ? lower : upper;
    steps.push_back({places.rank(partner), own, is_lower ? upper : lower});
    exchange(steps.back().peer, steps.back().given, own, is_lower);
  }
  for (std::size_t k = steps.size(); k-- > 0;) {
    const Step& step = steps[k];
    run(channel, {step.peer, at(got, step.kept.begin * width), step.kept.size() * width, step.peer,
                  at(got, step.given.begin * width), step.given.size() * width, channel.longest});
  }
  if (places.is_paired) send(channel, places.other_of_pair, got, bytes);
}

/// Elements of a large array that one member combines.
struct Blocks {
  std::size_t elements, each;
  Blocks(std::size_t all, int members) : elements(all), each(elements_of_block(all, members)) {}
  std::size_t begin(int member) const {
    return std::min(elements, static_cast<std::size_t>(member) * each);
  }
  std::size_t count(int member) const { return begin(member + 1) - begin(member); }
};

/// Each block goes round the group, and each member adds its own part to it; it ends at the member
/// of its number. The parts that are summed on the way are in `got`.
void reduce_blocks(Channel& channel, const RankGroup& group, const Blocks& blocks,
                   CombineLoop combine, const void* given, void* got, std::size_t width) {
  const std::size_t piece = std::max<std::size_t>(channel.piece / width, 1) * width;
  auto* const slots = static_cast<unsigned char*>(channel.scratch.take(window * piece));
  for (int step = 0; step + 1 < group.size; ++step) {
    const int out = around(group, group.own - step - 1), in = around(group, group.own - step - 2);
    const std::size_t first = blocks.begin(in) * width;
    const Stream stream = {group.rank(around(group, group.own + 1)),
                           at(step == 0 ? given : got, blocks.begin(out) * width),
                           blocks.count(out) * width,
                           group.rank(around(group, group.own - 1)),
                           nullptr,
                           blocks.count(in) * width,
                           piece};
    run(channel, stream, slots, [&](std::size_t offset, const void* data, std::size_t bytes) {
      combine(at(got, first + offset), data, at(given, first + offset), bytes / width);
    });
  }
}
/// Then each block goes round to all others.
void gather_blocks(Channel& channel, const RankGroup& group, const Blocks& blocks, void* got,
                   std::size_t width) {
  for (int step = 0; step + 1 < group.size; ++step) {
    const int out = around(group, group.own - step), in = around(group, group.own - step - 1);
    run(channel, {group.rank(around(group, group.own + 1)), at(got, blocks.begin(out) * width),
                  blocks.count(out) * width, group.rank(around(group, group.own - 1)),
                  at(got, blocks.begin(in) * width), blocks.count(in) * width, channel.longest});
  }
}

/// Of 16-bit floats, whose sums are f32.
void all_reduce_halves(Channel& channel, const RankGroup& group, CombineLoop combine, DType dtype,
                       const void* given, void* got, std::size_t elements) {
  const std::size_t bytes = elements * sizeof(float);
  Vec<float> wide(elements);
  widen_halves(dtype, given, wide.begin(), elements);
  if (bytes <= most_whole(group.size)) {
    doubling(channel, group, combine, wide.begin(), wide.begin(), elements, bytes);
    return round_to_halves(dtype, wide.begin(), got, elements);
  }
  if (is_short_part(bytes, group.size)) {
    halving(channel, group, combine, wide.begin(), wide.begin(), elements, sizeof(float));
    return round_to_halves(dtype, wide.begin(), got, elements);
  }
  const Blocks blocks(elements, group.size);
  reduce_blocks(channel, group, blocks, combine, wide.begin(), wide.begin(), sizeof(float));
  const std::size_t first = blocks.begin(group.own);
  round_to_halves(dtype, wide.begin() + first, at(got, first * size_of(dtype)),
                  blocks.count(group.own));
  gather_blocks(channel, group, blocks, got, size_of(dtype));
}

/// Small arrays of many members: in log₂ n steps, of what each has so far (Bruck's algorithm).
void gather_doubling(Channel& channel, const RankGroup& group, const void* given, void* got,
                     std::size_t bytes) {
  const auto n = static_cast<std::size_t>(group.size), own = static_cast<std::size_t>(group.own);
  // part k is that of the member k behind this one
  void* const parts = channel.scratch.take(n * bytes);
  copy(parts, given, bytes);
  for (std::size_t held = 1; held < n; held *= 2) {
    const std::size_t count = std::min(held, n - held);
    const int distance = static_cast<int>(held);
    swap(channel, group.rank(around(group, group.own - distance)), parts,
         group.rank(around(group, group.own + distance)), at(parts, held * bytes), count * bytes);
  }
  copy(at(got, own * bytes), parts, (n - own) * bytes);
  copy(got, at(parts, (n - own) * bytes), own * bytes);
}

}  // namespace steps

void all_reduce(Channel& channel, const RankGroup& group, RankReduction how, DType dtype,
                const void* given, void* got, std::size_t elements) {
  using namespace steps;
  if (elements == 0) return;
  const CombineLoop combine = combine_loop(how, dtype);
  if (combined_dtype(dtype) != dtype)
    return all_reduce_halves(channel, group, combine, dtype, given, got, elements);
  const std::size_t width = size_of(dtype), bytes = elements * width;
  if (bytes <= most_whole(group.size))
    return doubling(channel, group, combine, given, got, elements, bytes);
  if (goes_by_halves(bytes, group.size))
    return halving(channel, group, combine, given, got, elements, width);
  const Blocks blocks(elements, group.size);
  reduce_blocks(channel, group, blocks, combine, given, got, width);
  gather_blocks(channel, group, blocks, got, width);
}

void all_gather(Channel& channel, const RankGroup& group, const void* given, void* got,
                std::size_t bytes) {
  using namespace steps;
  if (bytes == 0) return;
  if (gathers_by_doubling(bytes, group.size))
    return gather_doubling(channel, group, given, got, bytes);
  const auto part = [&](int member) {
    return at(got, static_cast<std::size_t>(around(group, member)) * bytes);
  };
  // A small part is sent from where it was, and copied last: other processes take twice as long to
  // read what this one has just written.
  const bool copied_last = bytes <= std::size_t{1} << 18;
  if (!copied_last) copy(part(group.own), given, bytes);
  for (int step = 0; step + 1 < group.size; ++step)
    swap(channel, group.rank(around(group, group.own + 1)),
         copied_last && step == 0 ? given : part(group.own - step),
         group.rank(around(group, group.own - 1)), part(group.own - step - 1), bytes);
  if (copied_last) copy(part(group.own), given, bytes);
}

void all_to_all(Channel& channel, const RankGroup& group, const void* given, void* got,
                std::size_t bytes) {
  using namespace steps;
  if (bytes == 0) return;
  const std::size_t all = bytes * static_cast<std::size_t>(group.size);
  if (given == got) {
    void* const kept = channel.scratch.take(all);
    copy(kept, given, all);
    given = kept;
  }
  const auto offset = [&](int member) { return static_cast<std::size_t>(member) * bytes; };
  copy(at(got, offset(group.own)), at(given, offset(group.own)), bytes);
  for (int step = 1; step < group.size; ++step) {
    const int to = around(group, group.own + step), from = around(group, group.own - step);
    swap(channel, group.rank(to), at(given, offset(to)), group.rank(from), at(got, offset(from)),
         bytes);
  }
}

void permute(Channel& channel, const RankGroup& group, std::span<const std::int64_t> sources,
             const void* given, void* got, std::size_t bytes) {
  using namespace steps;
  if (bytes == 0) return;
  if (bytes > channel.longest) {
    // Part after part: a rank that sends to several may be who waits for the first of them.
    for (std::size_t begin = 0; begin < bytes; begin += channel.longest)
      permute(channel, group, sources, at(given, begin), at(got, begin),
              std::min(channel.longest, bytes - begin));
    return;
  }
  const auto source = static_cast<int>(sources[static_cast<std::size_t>(group.own)]);
  const bool from_another = source >= 0 && source != group.own;
  const auto is_sent_to = [&](int member) {
    return member != group.own && sources[static_cast<std::size_t>(member)] == group.own;
  };
  bool sends = false;
  for (int member = 0; member < group.size; ++member) sends = sends || is_sent_to(member);
  if (given == got && from_another && sends) {
    void* const kept = channel.scratch.take(bytes);
    copy(kept, given, bytes);
    given = kept;
  }
  // The first one that is sent goes while the own one comes: so rings of any kind go on.
  bool received = !from_another;
  for (int member = 0; member < group.size; ++member) {
    if (!is_sent_to(member)) continue;
    if (received) send(channel, group.rank(member), given, bytes);
    else swap(channel, group.rank(member), given, group.rank(source), got, bytes);
    received = true;
  }
  if (!received) receive(channel, group.rank(source), got, bytes);
  if (source == group.own) copy(got, given, bytes);
  if (source < 0) std::memset(got, 0, bytes);
}

bool begin_permute(Channel& channel, const RankGroup& group, std::span<const std::int64_t> sources,
                   const void* given, void* got, std::size_t bytes,
                   std::span<Transfer, 2> transfers) {
  if (bytes == 0) return false;  // empty arrays may lie at one place
  const auto source = static_cast<int>(sources[static_cast<std::size_t>(group.own)]);
  int to = -1, targets = 0;
  for (int member = 0; member < group.size; ++member)
    if (member != group.own && sources[static_cast<std::size_t>(member)] == group.own)
      to = member, ++targets;
  if (bytes > channel.longest || targets > 1 || given == got) {
    permute(channel, group, sources, given, got, bytes);
    return false;
  }
  if (source == group.own) copy(got, given, bytes);
  if (source < 0) std::memset(got, 0, bytes);
  const bool receives = source >= 0 && source != group.own;
  if (receives) {
    transfers[0].peer = group.rank(source);
    channel.transport.begin_receive(transfers[0].peer, channel.tag, got, bytes, transfers[0]);
  }
  if (to >= 0) {
    transfers[1].peer = group.rank(to);
    try {
      channel.transport.begin_send(transfers[1].peer, channel.tag, given, bytes, transfers[1]);
    } catch (...) {
      if (receives) channel.transport.drop(transfers[0]);
      throw;
    }
  }
  return receives || to >= 0;
}

void finish(Channel& channel, std::span<Transfer, 2> transfers) {
  try {
    for (Transfer& t : transfers) steps::wait(channel, t, transfers);
  } catch (...) {
    for (Transfer& t : transfers)
      if (t.active) channel.transport.drop(t);
    throw;
  }
}

void broadcast(Channel& channel, const RankGroup& group, int root, void* data, std::size_t bytes) {
  using namespace steps;
  if (bytes == 0) return;
  // As a tree: in the first half of the members `root` sends to the others' first one, and so on.
  const int place = around(group, group.own - root);
  const auto rank_at = [&](int p) { return group.rank(around(group, p + root)); };
  for (int distance = static_cast<int>(std::bit_ceil(static_cast<unsigned>(group.size))) / 2;
       distance > 0; distance /= 2) {
    if (place % (2 * distance) == 0 && place + distance < group.size)
      send(channel, rank_at(place + distance), data, bytes);
    else if (place % (2 * distance) == distance)
      receive(channel, rank_at(place - distance), data, bytes);
  }
}

void barrier(Channel& channel, const RankGroup& group) {
  using namespace steps;
  for (int distance = 1; distance < group.size; distance *= 2) {
    Transfers<2> transfers(channel);
    transfers.receive(0, group.rank(around(group, group.own - distance)), nullptr, 0);
    transfers.send(1, group.rank(around(group, group.own + distance)), nullptr, 0);
    transfers.wait_all();
  }
}

}  // namespace vt::detail::exchanges
