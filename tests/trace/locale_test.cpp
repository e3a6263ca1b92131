// Nothing vt writes follows the locale: neither the C library's nor the one of C++ streams.
#include <gtest/gtest.h>

#include <cctype>
#include <clocale>
#include <cstdio>
#include <locale>
#include <sstream>
#include <string>

#include <vt/vt.hpp>

namespace {

struct German : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

// Both locales for the length of a test.
struct InGerman {
  std::locale before = std::locale::global(std::locale(std::locale::classic(), new German));
  std::string c_before = std::setlocale(LC_ALL, nullptr);
  bool of_c = false;
  InGerman() {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"})
      of_c = of_c || std::setlocale(LC_ALL, name);
    if (!of_c) std::puts("no locale with a decimal comma is installed: printf keeps its point");
  }
  ~InGerman() {
    std::locale::global(before);
    std::setlocale(LC_ALL, c_before.c_str());
  }
};

std::string all_texts() {
  const vt::Tensor x = vt::arange(20000.0, vt::f64) * 0.37;
  std::ostringstream out;
  out << x << x.shape() << vt::full({2}, 12345.5) << vt::full({2}, 1234567);
  out << vt::make_graph([](const vt::Tensor& a) { return vt::sum(vt::sin(a) * 2.75); })(x);
  try {
    vt::ones({10000}) + vt::ones({20000});
  } catch (const vt::Error& e) {
    out << e.what();
  }
  return out.str();
}

TEST(Locale, TextsDoNotFollowIt) {
  const std::string plain = all_texts();
  const InGerman german;
  EXPECT_EQ(all_texts(), plain);
}

// Times differ from run to run; a comma between two digits would be a decimal comma.
TEST(Locale, ReportsHaveDecimalPoints) {
  const InGerman german;
  const auto f = vt::jit([](const vt::Tensor& a) { return vt::sum(vt::sin(a) * 2.75); });
  const vt::Tensor x = vt::arange(100000.0, vt::f64);
  for (int k = 0; k < 3; ++k) f(x);
  const std::string text = f.explain_steps(x);
  for (std::size_t i = 1; i + 1 < text.size(); ++i)
    EXPECT_FALSE(text[i] == ',' && std::isdigit(static_cast<unsigned char>(text[i - 1])) &&
                 std::isdigit(static_cast<unsigned char>(text[i + 1])))
        << text.substr(i < 30 ? 0 : i - 30, 60);
}

}  // namespace
