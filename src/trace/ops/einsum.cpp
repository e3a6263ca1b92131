// einsum: reads NumPy's notation, takes diagonals, and contracts the operands pair by pair, the
// cheapest pair first.
#include <algorithm>
#include <cctype>
#include <limits>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/hash_map.hpp"
#include "support/contract.hpp"

namespace vt::detail::einsum_steps {

// + position from the right; letters are their own labels
constexpr int first_ellipsis_label = 256;

struct Problem {
  std::string text;
  std::vector<Tensor> operands;
  Vec<Labels> labels;
  Labels out;
  HashMap<int, std::int64_t> sizes;
  CallSite where;

  [[noreturn]] void refuse_einsum(ErrorKind kind, const std::string& what) const {
    refuse(kind, "einsum", formatted("\"{}\": {}", text, what), std::span<const Tensor>(operands),
           where);
  }
};

/// One side of a comma: letters and at most one "...". `ellipsis` is where the dots stand among the
/// letters, or −1.
struct Term {
  Vec<int> letters;
  int ellipsis = -1;
};

inline Term term_of(const Problem& p, std::string_view text) {
  Term term;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\t') continue;
    if (c == '.') {
      if (text.substr(i, 3) != "...")
        p.refuse_einsum(ErrorKind::value, "a '.' that is no part of an ellipsis '...'");
      if (term.ellipsis >= 0) p.refuse_einsum(ErrorKind::value, "more than one ellipsis in a term");
      term.ellipsis = static_cast<int>(term.letters.size());
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c))) {
      term.letters.push_back(c);
    } else {
      p.refuse_einsum(ErrorKind::value, formatted("'{}' is no label; labels are letters", c));
    }
  }
  return term;
}

/// Labels of a term whose ellipsis stands for `count` axes.
inline Labels expanded(const Term& term, int count) {
  Labels labels;
  for (int i = 0; i <= static_cast<int>(term.letters.size()); ++i) {
    if (i == term.ellipsis)
      for (int k = count; k-- > 0;) labels.push_back(first_ellipsis_label + k);
    if (i < static_cast<int>(term.letters.size())) labels.push_back(term.letters[i]);
  }
  return labels;
}

inline std::string label_text(int label) {
  return label < first_ellipsis_label
             ? formatted("label '{}'", static_cast<char>(label))
             : formatted("axis {} of the ellipsis", first_ellipsis_label - 1 - label);
}

/// Fills in labels and out from the text.
inline void parse(Problem& p) {
  const std::string_view text = p.text;
  const std::size_t arrow = text.find("->");
  const std::string_view left = text.substr(0, arrow);
  Vec<Term> terms;
  for (std::size_t start = 0;;) {
    const std::size_t comma = left.find(',', start);
    terms.push_back(
        term_of(p, left.substr(start, comma == std::string_view::npos ? comma : comma - start)));
    if (comma == std::string_view::npos) break;
    start = comma + 1;
  }
  if (terms.size() != p.operands.size())
    p.refuse_einsum(ErrorKind::value,
                    formatted("{} terms for {} operands", terms.size(), p.operands.size()));

  int most = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const int axes = p.operands[i].rank() - static_cast<int>(terms[i].letters.size());
    if (axes < 0 || (axes > 0 && terms[i].ellipsis < 0))
      p.refuse_einsum(ErrorKind::shape,
                      formatted("{} labels for operand {} of rank {}{}", terms[i].letters.size(), i,
                                p.operands[i].rank(),
                                axes > 0 ? "; '...' stands for axes without labels" : ""));
    most = std::max(most, axes);
    p.labels.push_back(expanded(terms[i], axes));
  }

  if (arrow != std::string_view::npos) {
    const Term out = term_of(p, text.substr(arrow + 2));
    if (most > 0 && out.ellipsis < 0)
      p.refuse_einsum(
          ErrorKind::value,
          formatted("the output lacks the ellipsis of the operands (did you mean "
                    "\"->...{}\"?)",
                    text.substr(std::min(text.find_first_not_of(" \t", arrow + 2), text.size()))));
    p.out = expanded(out, out.ellipsis < 0 ? 0 : most);
  } else {
    for (int k = most; k-- > 0;) p.out.push_back(first_ellipsis_label + k);
    Labels all;
    for (const Term& t : terms) all.append(t.letters.begin(), t.letters.end());
    detail::insertion_sort(all);
    for (std::size_t i = 0; i < all.size(); ++i)
      if ((i == 0 || all[i - 1] != all[i]) && (i + 1 == all.size() || all[i + 1] != all[i]))
        p.out.push_back(all[i]);
  }
  for (std::size_t i = 0; i < p.out.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (p.out[i] == p.out[j])
        p.refuse_einsum(ErrorKind::value,
                        formatted("output {} occurs twice", label_text(p.out[i])));
}

/// A label that an operand has twice takes the diagonal.
inline void take_diagonals(Problem& p) {
  for (std::size_t i = 0; i < p.operands.size(); ++i) {
    Labels& labels = p.labels[i];
    for (std::size_t a = 0; a < labels.size(); ++a)
      for (std::size_t b = a + 1; b < labels.size(); ++b) {
        if (labels[a] != labels[b]) continue;
        const int label = labels[a];
        const Shape& s = p.operands[i].shape();
        if (s[a] != s[b])
          p.refuse_einsum(ErrorKind::shape, formatted("{} of operand {} has sizes {} and {}",
                                                      label_text(label), i, s[a], s[b]));
        p.operands[i] =
            diagonal_of(p.operands[i], 0, static_cast<int>(a), static_cast<int>(b), p.where);
        labels.erase(labels.begin() + b);
        labels.erase(labels.begin() + a);
        labels.push_back(label);
        b = a;  // another label stands at a now
      }
  }
}

[[noreturn]] inline void refuse_output(const Problem& p, int label) {
  std::string letters;
  for (const auto& [known, size] : p.sizes)
    if (known < first_ellipsis_label) letters += static_cast<char>(known);
  Vec<std::string_view> known;
  for (const char& c : letters) known.push_back({&c, 1});
  const char given = static_cast<char>(label);
  p.refuse_einsum(
      ErrorKind::value,
      formatted("output {} is in no operand{}; they have {}", label_text(label),
                did_you_mean({&given, 1}, {known.begin(), known.size()}, '\''), letters));
}

/// One size per label; an operand of size 1 where others have more drops the axis, as if broadcast.
inline void agree_on_sizes(Problem& p) {
  HashMap<int, std::size_t> told_by;  // the operand whose size a label has
  for (std::size_t i = 0; i < p.operands.size(); ++i)
    for (std::size_t k = 0; k < p.labels[i].size(); ++k) {
      const std::int64_t n = p.operands[i].shape()[k];
      auto [at, fresh] = p.sizes.emplace(p.labels[i][k], n);
      if (!fresh && (at->second == n || n == 1)) continue;
      if (!fresh && at->second != 1)
        p.refuse_einsum(
            ErrorKind::shape,
            formatted("{} has size {} in operand {} and {} in operand {}",
                      label_text(p.labels[i][k]), at->second, told_by[p.labels[i][k]], n, i));
      at->second = n;
      told_by[p.labels[i][k]] = i;
    }
  for (std::size_t i = 0; i < p.operands.size(); ++i) {
    Labels left;
    Shape shape;
    for (std::size_t k = 0; k < p.labels[i].size(); ++k) {
      const std::int64_t n = p.operands[i].shape()[k];
      if (n == 1 && p.sizes[p.labels[i][k]] != 1) continue;
      left.push_back(p.labels[i][k]);
      shape.push_back(n);
    }
    p.operands[i] = reshaped(p.operands[i], shape, p.where);
    p.labels[i] = left;
  }
  for (int label : p.out)
    if (!p.sizes.contains(label) && label < first_ellipsis_label) refuse_output(p, label);
}

/// Multiplications of contracting two operands: one per combination of their indices.
inline double cost(const Problem& p, const Labels& a, const Labels& b) {
  double n = 1;
  for (int label : a) n *= static_cast<double>(p.sizes.at(label));
  for (int label : b)
    if (!has_label(a, label)) n *= static_cast<double>(p.sizes.at(label));
  return n;
}

/// The labels of the result of contracting operands i and j: those that are still wanted, in the
/// order of dot_general.
inline Labels wanted_after(const Problem& p, std::size_t i, std::size_t j) {
  auto wanted = [&](int label) {
    if (has_label(p.out, label)) return true;
    for (std::size_t k = 0; k < p.labels.size(); ++k)
      if (k != i && k != j && has_label(p.labels[k], label)) return true;
    return false;
  };
  Labels result;
  for (int label : p.labels[i])
    if (has_label(p.labels[j], label) && wanted(label)) result.push_back(label);
  for (int label : p.labels[i])
    if (!has_label(p.labels[j], label) && wanted(label)) result.push_back(label);
  for (int label : p.labels[j])
    if (!has_label(p.labels[i], label) && wanted(label)) result.push_back(label);
  return result;
}

inline void contract_cheapest(Problem& p) {
  std::size_t best_i = 0, best_j = 1;
  double best = std::numeric_limits<double>::infinity(), best_size = best;
  for (std::size_t i = 0; i < p.operands.size(); ++i)
    for (std::size_t j = i + 1; j < p.operands.size(); ++j) {
      const double work = cost(p, p.labels[i], p.labels[j]),
                   size = cost(p, wanted_after(p, i, j), {});
      if (work < best || (work == best && size < best_size)) {
        best = work;
        best_size = size;
        best_i = i;
        best_j = j;
      }
    }
  const Labels out = p.operands.size() == 2 ? p.out : wanted_after(p, best_i, best_j);
  p.operands[best_i] = contract(p.operands[best_i], p.labels[best_i], p.operands[best_j],
                                p.labels[best_j], out, p.where);
  p.labels[best_i] = out;
  p.operands.erase(p.operands.begin() + static_cast<std::ptrdiff_t>(best_j));
  p.labels.erase(p.labels.begin() + static_cast<std::ptrdiff_t>(best_j));
}

}  // namespace vt::detail::einsum_steps

namespace vt {

Tensor einsum(std::string_view expression, TensorSpan operands, CallSite where) {
  namespace steps = detail::einsum_steps;
  const detail::UserLine line(where);
  steps::Problem p;
  p.text = std::string(expression);
  p.operands.assign(operands.begin(), operands.end());
  p.where = where;
  if (operands.empty()) p.refuse_einsum(ErrorKind::value, "needs at least one operand");
  for (const Tensor& t : operands) detail::need("einsum", t, where);
  steps::parse(p);
  detail::Common c = detail::common_dtype(operands);
  if (is_bool(c.dtype)) c.dtype = i32;
  detail::check_literals("einsum", operands, c.dtype, detail::Literal::value, where);
  for (Tensor& t : p.operands) t = detail::cast(t, c.dtype, c.weak, where);
  steps::take_diagonals(p);
  steps::agree_on_sizes(p);
  Shape shape;
  for (int label : p.out)
    if (p.sizes.contains(label)) shape.push_back(p.sizes[label]);
  detail::need_size("einsum", c.dtype, shape, operands, where);
  while (p.operands.size() > 1) steps::contract_cheapest(p);
  detail::Labels labels = p.labels[0];
  const Tensor total = detail::summed_to(p.operands[0], labels, p.out, where);
  return detail::ordered(total, labels, p.out, where);
}

}  // namespace vt
