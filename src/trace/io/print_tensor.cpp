// Text of a Tensor: rows and columns as NumPy prints them, dtype and shape behind; a tracer shows
// what it is instead of a value.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/convert.hpp"
#include "../interpret/interpreter.hpp"
#include "../ir/effects.hpp"
#include "../ir/printer.hpp"
#include "../record/thread_state.hpp"

namespace vt::detail {
namespace print_tensor {

/// Significant digits that are shown: what the 16-bit floats have, and eight of the others.
int digits_of(DType dtype) { return dtype == DType::bf16 ? 4 : dtype == DType::f16 ? 5 : 8; }

constexpr int digits_of_double = 17;

/// How all floats of one Tensor are written, so that their points stand below one another.
struct FloatStyle {
  bool scientific = false;
  int decimals = 0;
};

/// With so many digits behind the point; std::to_chars knows no locale.
std::string digits_text(double x, std::chars_format form, int decimals) {
  char text[400];
  return {text, std::to_chars(text, text + sizeof text, x, form, decimals).ptr};
}

std::string write_finite(double x, FloatStyle style) {
  if (style.scientific) return digits_text(x, std::chars_format::scientific, style.decimals);
  std::string text = digits_text(x, std::chars_format::fixed, style.decimals);
  if (style.decimals == 0) return text + '.';
  // Blanks in place of trailing zeros keep the points below one another.
  const std::size_t end = text.find_last_not_of('0') + 1;
  return text.replace(end, std::string::npos, text.size() - end, ' ');
}

std::string write(double x, FloatStyle style) {
  return __builtin_isnan(x)   ? "nan"
         : __builtin_isinf(x) ? (x < 0 ? "-inf" : "inf")
                              : write_finite(x, style);
}

/// The fewest decimals that keep the leading digits of every number, or as many as are allowed.
FloatStyle style_for(const Vec<double>& values, DType dtype, const PrintStyle& options) {
  double greatest = 0, least = std::numeric_limits<double>::infinity();
  for (double x : values) {
    if (!__builtin_isfinite(x) || x == 0) continue;
    greatest = std::max(greatest, std::fabs(x));
    least = std::min(least, std::fabs(x));
  }
  FloatStyle style;
  style.scientific =
      !options.suppress &&
      (greatest >= 1e8 || (greatest > 0 && (least < 1e-4 || greatest / least > 1e6)));
  const int most = options.precision ? int{*options.precision} : 8;
  const int digits = options.precision ? digits_of_double : digits_of(dtype);
  for (double x : values) {
    if (!__builtin_isfinite(x)) continue;
    // "d.dddde±xx" with the digits that count; its trailing zeros need not be shown.
    const std::string text = digits_text(x, std::chars_format::scientific, digits - 1);
    const std::size_t point = text.find('.'), e = text.find('e');
    const std::size_t last = text.find_last_not_of('0', e - 1);
    const int significant = static_cast<int>(last - point);  // behind the point of "d.ddd"
    const int exponent = x == 0 ? 0 : std::stoi(text.substr(e + 1));
    const int wanted = style.scientific ? significant : significant - exponent;
    style.decimals = std::clamp(std::max(style.decimals, wanted), 0, most);
  }
  return style;
}

/// Which indices of an axis are shown, `edge` at each end if it is summarised; −1 stands for the
/// dots.
Vec<std::int64_t> shown(std::int64_t extent, bool summarised, std::int64_t edge) {
  Vec<std::int64_t> indices;
  for (std::int64_t i = 0; i < extent; ++i) {
    if (summarised && extent > 2 * edge && i == edge) {
      indices.push_back(-1);
      i = extent - edge;
    }
    indices.push_back(i);
  }
  return indices;
}

class Printer {
 public:
  Printer(DType dtype, const Shape& shape, const void* data, std::string_view specification,
          const PrintStyle& options)
      : dtype_(dtype),
        shape_(shape),
        strides_(row_major_strides(shape)),
        data_(static_cast<const std::byte*>(data)),
        options_(options),
        summarised_(shape.elements() > options.threshold) {
    if (!specification.empty()) pattern_ = "{:" + std::string(specification) + "}";
    prepare();
  }

  std::string text() {
    if (shape_.elements() == 0) return "[]";
    write_axis(0, 0);
    return std::move(text_);
  }

 private:
  void collect(std::size_t axis, std::int64_t position, Vec<std::int64_t>& positions) const {
    if (axis == shape_.size()) return positions.push_back(position);
    for (std::int64_t i : shown(shape_[axis], summarised_, options_.edge_items))
      if (i >= 0) collect(axis + 1, position + i * strides_[axis], positions);
  }

  int parts() const { return is_complex(dtype_) ? 2 : 1; }
  /// Element p; of a complex one its real (0) or imaginary (1) part.
  double real_at(std::int64_t p, int part = 0) const {
    double x = 0;
    const DType own = real_dtype(dtype_);
    convert_elements(data_ + static_cast<std::size_t>(p * parts() + part) * size_of(own), own, &x,
                     DType::f64, 1);
    return x;
  }

  void prepare() {
    if (shape_.elements() == 0) return;
    Vec<std::int64_t> positions;
    collect(0, 0, positions);
    if (is_inexact(dtype_) && pattern_.empty()) {
      Vec<double> values;
      for (std::int64_t p : positions)
        for (int part = 0; part < parts(); ++part) values.push_back(real_at(p, part));
      style_ = style_for(values, real_dtype(dtype_), options_);
    }
    if (is_complex(dtype_) && pattern_.empty())
      for (std::int64_t p : positions)
        part_width_ = std::max({part_width_, write(real_at(p), style_).size(),
                                write(std::fabs(real_at(p, 1)), style_).size()});
    width_ = static_cast<std::size_t>(options_.width);
    for (std::int64_t p : positions) width_ = std::max(width_, element(p).size());
  }

  std::string element(std::int64_t p) const {
    if (is_float(dtype_))
      return pattern_.empty() ? write(real_at(p), style_) : formatted(pattern_, real_at(p));
    if (is_complex(dtype_) && !pattern_.empty())
      return formatted(pattern_, real_at(p)) + (__builtin_signbit(real_at(p, 1)) ? "-" : "+") +
             formatted(pattern_, std::fabs(real_at(p, 1))) + "i";
    if (is_complex(dtype_)) {
      const std::string re = write(real_at(p), style_);
      std::string im = write(std::fabs(real_at(p, 1)), style_);
      // The i stands at the number, the blanks that replace trailing zeros behind it.
      const std::size_t end = im.find_last_not_of(' ') + 1;
      im.insert(end, 1, 'i');
      return std::string(part_width_ - re.size(), ' ') + re +
             (__builtin_signbit(real_at(p, 1)) ? '-' : '+') + im;
    }
    const Scalar value = load_scalar(dtype_, data_ + static_cast<std::size_t>(p) * size_of(dtype_));
    if (!pattern_.empty() && !is_bool(dtype_))
      return is_unsigned(dtype_) ? formatted(pattern_, value.natural)
                                 : formatted(pattern_, value.integer);
    if (is_bool(dtype_)) {
      const std::string_view word = value.integer ? "true" : "false";
      return pattern_.empty() ? std::string(word) : formatted(pattern_, word);
    }
    return is_unsigned(dtype_) ? std::to_string(value.natural) : std::to_string(value.integer);
  }

  void write_axis(std::size_t axis, std::int64_t position) {
    if (axis == shape_.size()) {
      const std::string word = element(position);
      text_.append(width_ - word.size(), ' ');
      text_ += word;
      return;
    }
    const bool innermost = axis + 1 == shape_.size();
    std::size_t line_start = text_.size();
    text_ += '[';
    bool first = true;
    for (std::int64_t i : shown(shape_[axis], summarised_, options_.edge_items)) {
      if (!first) {
        if (!innermost || text_.size() - line_start + width_ + 1 >
                              static_cast<std::size_t>(options_.line_width)) {
          // A blank line between matrices, as NumPy does.
          text_.append(innermost ? 1 : shape_.size() - axis - 1, '\n');
          line_start = text_.size();
          text_.append(axis + 1, ' ');
        } else {
          text_ += ' ';
        }
      }
      first = false;
      if (i < 0) text_ += "...";
      else write_axis(axis + 1, position + i * strides_[axis]);
    }
    text_ += ']';
  }

  DType dtype_;
  const Shape& shape_;
  Shape strides_;
  const std::byte* data_;
  PrintStyle options_;
  bool summarised_;
  std::string pattern_;  // how the user wants each element; empty: as NumPy
  FloatStyle style_;
  std::size_t width_ = 0, part_width_ = 0;
  std::string text_;
};

/// The transform whose scope a tracer belongs to, if that is still open on this thread.
const char* transform_of(const Tensor& t) {
  for (const ScopeState& scope : thread_state().scopes)
    if (scope.id == node_of(t)->scope) return scope.transform;
  return "a transform that has ended";
}

}  // namespace print_tensor

std::string printer::value_text(const Aval& aval, const void* data,
                                std::string_view specification) {
  return print_tensor::Printer(aval.dtype, aval.shape, data, specification, thread_state().print)
      .text();
}
std::string printer::lane_text(std::span<const std::int64_t> lane) {
  if (lane.empty()) return "";
  std::string text;
  for (std::int64_t i : lane) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return lane.size() == 1 ? " in lane " + text : " in lane (" + text + ")";
}
std::string printer::lane_text(std::span<const std::int64_t> lane, std::span<const Aval> arguments,
                               FunctionRef<const void*(std::size_t)> data) {
  constexpr std::size_t most = 4;
  std::string text = lane_text(lane);
  for (std::size_t i = 0; i < std::min(arguments.size(), most); ++i) {
    const Aval& a = arguments[i];
    text += i > 0 ? ", " : lane.empty() ? ", beginning with " : ", which began with ";
    text += a.shape.rank() == 0 ? value_text(a, data(i)) : a.str();
  }
  return text + (arguments.size() > most ? ", …" : "");
}
std::string printer::lane_text(const Lanes& lanes, std::int64_t lane,
                               std::span<const Aval> arguments,
                               FunctionRef<const void*(std::size_t)> data) {
  Vec<std::int64_t> index;
  if (lanes.extents.empty()) index.push_back(lane);
  else append_index(index, {lanes.extents.data(), lanes.extents.size()}, lane);
  return lane_text({index.begin(), index.size()}, arguments, data);
}

std::string text_of(const Tensor& t, std::string_view specification) {
  if (!t.defined()) return "Tensor<empty>";
  const Aval& aval = aval_of(t);
  BufferRef value;
  try {
    value = value_of(t, CallSite{});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::tracer)
      return "Tracer<" + aval.str() + " under " + print_tensor::transform_of(t) + ">";
    return "Tensor<" + aval.str() + ": " + error.what() + ">";
  }
  return printer::value_text(aval, value->data, specification) + " " + aval.str();
}

std::string tree_text(std::span<const Tensor> leaves, std::span<const std::string> paths) {
  std::string text;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (i > 0) text += '\n';
    text += paths[i].empty() ? text_of(leaves[i]) : paths[i] + ": " + text_of(leaves[i]);
  }
  return text;
}

}  // namespace vt::detail

namespace vt {

std::string Tensor::str() const { return detail::text_of(*this); }
std::string Tensor::str(const PrintStyle& options) const {
  const PrintScope scope(options, CallSite{});  // it has no line of the call
  return str();
}
std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << t.str(); }
std::ostream& operator<<(std::ostream& out, DType d) { return out << name_of(d); }
std::ostream& operator<<(std::ostream& out, Device d) { return out << detail::text_of(d); }

PrintScope::PrintScope(const PrintStyle& options, CallSite where)
    : before_(detail::thread_state().print) {
  const auto refuse = [&](const char* name, std::int64_t value, const char* wanted) {
    detail::fail(ErrorKind::value,
                 detail::formatted("vt::PrintStyle: {} must be {}, not {}", name, wanted, value),
                 where);
  };
  if (const int digits = options.precision.value_or(0); digits < 0 || digits > 20)
    refuse("precision", digits, "between 0 and 20");
  if (options.threshold < 0) refuse("threshold", options.threshold, "at least 0");
  if (options.edge_items < 0) refuse("edge_items", options.edge_items, "at least 0");
  if (options.line_width < 0) refuse("line_width", options.line_width, "at least 0");
  if (options.width < 0) refuse("width", options.width, "at least 0");
  detail::thread_state().print = options;
}
PrintScope::~PrintScope() { detail::thread_state().print = before_; }

}  // namespace vt
