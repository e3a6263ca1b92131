// special_source: the special functions that a kernel calls.
#include <vt/detail/small_vec.hpp>

#include "special_text.hpp"

namespace vt::detail::cuda {

namespace special_parts {

// What f64 needs to be a number of src/trace/numerics/special_math.hpp.
constexpr std::string_view number = R"cuda(namespace vt_special {
constexpr double pi = 3.141592653589793, inv_pi = 0.3183098861837907, sqrt2 = 1.4142135623730951;
VT_FN f64 select(bool mask, f64 a, f64 b) { return mask ? a : b; }
VT_FN bool equal(f64 a, f64 b) { return a == b; }
VT_FN f64 abs(f64 x) { return ::fabs(x); }
VT_FN f64 sqrt(f64 x) { return ::sqrt(x); }
VT_FN f64 trunc(f64 x) { return ::trunc(x); }
VT_FN f64 round_of(f64 x) { return ::rint(x); }
VT_FN f64 exp_of(f64 x) { return ::exp(x); }
VT_FN f64 log_of(f64 x) { return ::log(x); }
VT_FN f64 log1p_of(f64 x) { return ::log1p(x); }
VT_FN f64 erf_of(f64 x) { return ::erf(x); }
VT_FN f64 sin_of(f64 x) { return ::sin(x); }
VT_FN f64 cos_of(f64 x) { return ::cos(x); }
VT_FN f64 pow_of(f64 x, f64 y) { return ::pow(x, y); }
VT_FN f64 copysign(f64 magnitude, f64 sign) { return ::copysign(magnitude, sign); }
VT_FN f64 at_most(f64 x, f64 limit) { return limit < x ? limit : x; }
VT_FN f64 at_least(f64 x, f64 limit) { return limit > x ? limit : x; }
VT_FN f64 like(f64, f64 value) { return value; }
struct Product { f64 value, lost; };
VT_FN Product two_product(f64 a, f64 b) { return {a * b, ::fma(a, b, -(a * b))}; }
template <class Table> VT_FN f64 fitted(f64 x, const Table& table) {
  const f64 u = table[0] == 0 ? x * table[1] : (x - table[0]) * table[1];
  f64 r = table[sizeof(Table) / sizeof(f64) - 1];
#pragma unroll
  for (int k = (int)(sizeof(Table) / sizeof(f64)) - 2; k >= 2; --k) r = r * u + table[k];
  return r;
}
template <class Going, class Body>
VT_FN f64 iterate(f64 state, f64, const Going& going, const Body& body) {
  for (f64 k = 0; going(k); k += 1) state = body(state, k);
  return state;
}
)cuda";

/// Is the word at `at` the whole of `name`?
bool names(std::string_view list, std::string_view name) {
  const auto is_word = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  for (std::size_t at = 0; (at = list.find(name, at)) != std::string_view::npos; ++at) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_word(list[at - 1])) && (end == list.size() || !is_word(list[end])))
      return true;
  }
  return false;
}

}  // namespace special_parts

std::string special_source(std::string_view source) {
  if (source.find("vt_special::") == std::string_view::npos) return {};
  std::size_t count = 0;
  while (!special_texts[count].name.empty()) ++count;
  Vec<char> wanted(count, 0);
  // What others use stands before them: from the last to the first, each is known to be wanted when
  // it is met.
  for (std::size_t i = count; i-- > 0;) {
    const std::string_view name = special_texts[i].name;
    if (special_parts::names(source, std::string("vt_special::").append(name))) wanted[i] = 1;
    for (std::size_t user = i + 1; user < count && !wanted[i]; ++user)
      if (wanted[user] && special_parts::names(special_texts[user].needs, name)) wanted[i] = 1;
  }
  std::string text(special_parts::number);
  for (std::size_t i = 0; i < count; ++i)
    if (wanted[i]) text += special_texts[i].text;
  return text + "}\n";
}

}  // namespace vt::detail::cuda
