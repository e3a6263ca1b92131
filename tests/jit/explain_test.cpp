// vt::explain_steps, vt::explain and vt::explain_html: the text names what ran, and asking changes
// nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/page.hpp"

namespace {

using vt::Tensor;

bool on_interpreter() {
  const char* backend = std::getenv("VT_BACKEND");
  vt::jit([](Tensor x) { return vt::sin(x) * 2.0; })(vt::ones({64})).eval();
  return (backend && std::string(backend) == "interpreter") || vt::stats().llvm_unavailable > 0;
}

TEST(Explain, names_kernels_and_what_they_fused) {
  const auto f =
      vt::jit([](Tensor x, Tensor w) { return vt::sum(vt::tanh(vt::matmul(x, w)) * 2.0, 0); });
  const std::string text = vt::explain_steps(f)(vt::ones({64, 32}), vt::ones({32, 16}));
  EXPECT_NE(text.find("tanh"), std::string::npos) << text;
  EXPECT_NE(text.find(on_interpreter() ? "interpreter" : "kernel"), std::string::npos) << text;
}

TEST(Explain, a_plain_function_is_compiled_for_it) {
  EXPECT_FALSE(vt::explain_steps([](Tensor x) { return x + 1.0; })(vt::ones({3})).empty());
}

int lines_of(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Explain, the_short_text_has_a_line_for_each_step) {
  const auto f =
      vt::jit([](Tensor x, Tensor w) { return vt::sum(vt::exp(vt::matmul(vt::tanh(x), w)), 0); });
  const int line = __LINE__ - 1;
  const Tensor x = vt::ones({64, 32}), w = vt::ones({32, 16});
  const std::string text = vt::explain(f)(x, w);
  EXPECT_EQ(text, f.explain(x, w));
  if (on_interpreter()) GTEST_SKIP() << text;
  EXPECT_EQ(lines_of(text), 4) << text;
  for (const char* part :
       {"program: ", "kernel: tanh ", "matrix product: dot_general", "KiB", "kop"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_NE(text.find("explain_test.cpp:" + std::to_string(line)), std::string::npos) << text;
  EXPECT_EQ(text.find("for d0"), std::string::npos) << text;
}

TEST(Explain, the_short_text_fits_on_a_screen) {
  const auto f = vt::jit([](Tensor x) {
    for (int k = 0; k < 40; ++k)
      x = vt::fori_loop(0, k + 2, [](Tensor, Tensor y) { return vt::matmul(y, y) / 60.0; }, x);
    return x;
  });
  const Tensor x = vt::ones({60, 60});
  const std::string text = vt::explain(f)(x);
  EXPECT_LE(lines_of(text), 24) << text;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    std::size_t width = 0;
    for (std::size_t i = at; i < end; ++i)
      width += (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    EXPECT_LE(width, 100u) << text.substr(at, end - at);
    at = end + 1;
  }
  if (on_interpreter()) return;
  EXPECT_NE(text.find(" smaller steps: vt::explain_steps shows them all\n"), std::string::npos)
      << text;
  EXPECT_GT(lines_of(vt::explain_steps(f)(x)), 80);
}

TEST(Explain, another_signature_is_not_known) {
  const auto f = vt::jit([](Tensor x, int n) { return x * static_cast<double>(n); });
  f(vt::ones({3}), 2);
  EXPECT_FALSE(f.explain(vt::ones({3}), 2).empty());
  EXPECT_FALSE(f.explain_steps(vt::ones({3}), 2).empty());
  EXPECT_TRUE(f.explain(vt::ones({3}), 3).empty());
  EXPECT_TRUE(f.explain_steps(vt::ones({3}), 3).empty());
  EXPECT_TRUE(f.explain(vt::ones({4}), 2).empty());
}

TEST(Explain, tells_lines_extents_and_whose_elements_a_nest_reads) {
  const auto f = [](Tensor x) { return vt::softmax(vt::tanh(x), 1); };
  const int line = __LINE__ - 1;
  const std::string text = vt::explain_steps(f)(vt::ones({40, 30}));
  if (on_interpreter()) GTEST_SKIP() << text;
  EXPECT_NE(text.find("  of explain_test.cpp:" + std::to_string(line) + "\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("with n0 = 40, b0 = a:f32[40,30], b1 = "), std::string::npos) << text;
  const auto loop = [](Tensor x) {
    return vt::fori_loop(0, 3, [](Tensor, Tensor y) { return vt::matmul(y, y) / 9.0; }, x);
  };
  EXPECT_NE(vt::explain_steps(loop)(vt::ones({50, 50})).find("\n  sub-graph 0, "),
            std::string::npos);
}

Tensor clipped(Tensor x, Tensor w) {
  return vt::sum(vt::tanh(vt::matmul(vt::where(x < 0.5f, x, 0.5f), w)));
}
const int line_of_clipped = __LINE__ - 2;

TEST(ExplainPage, has_what_a_person_asks_for_and_nothing_from_elsewhere) {
  const auto f = vt::jit(vt::grad<0, 1>(clipped));
  const std::string page = vt::explain_html(f)(vt::ones({64, 32}), vt::ones({32, 16}));
  EXPECT_EQ(vt_test::page_fault(page), "");
  for (const char* part : {"a call, the fastest of", "Graphs, from your function to the program",
                           "recorded by vt::grad", "recorded by vt::jit", "simplified"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  for (const char* part : {"http", "src=", "<script", "url(", "@import"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  if (on_interpreter()) return;
  for (const char* part :
       {"of the roofline", "The machine", "GB/s", "loop nest", "store b", "as it was compiled"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_NE(page.find("explain_test.cpp:" + std::to_string(line_of_clipped)), std::string::npos);
  // The user's text, where the sources are at hand.
  EXPECT_EQ(page.find("x < 0.5f"), std::string::npos);
  if (std::ifstream(__FILE__).good()) {
    EXPECT_NE(page.find("x &lt; 0.5f"), std::string::npos);
  }
}

TEST(ExplainPage, loops_are_measured_iteration_by_iteration) {
  const auto f = [](Tensor x) {
    return vt::fori_loop(0, 7, [](Tensor, Tensor y) { return vt::matmul(y, y) / 60.0; }, x);
  };
  const std::string page = vt::explain_html(f)(vt::ones({60, 60}));
  EXPECT_EQ(vt_test::page_fault(page), "");
  if (!on_interpreter()) {
    EXPECT_NE(page.find("7 iterations"), std::string::npos) << page;
  }
}

TEST(ExplainPage, what_prints_runs_no_more_than_asked_for) {
  int calls = 0;
  const auto f = vt::jit([&](Tensor x) {
    vt::callback([&](Tensor v) { return ++calls, v; }, x)(x);
    return x + 1.0;
  });
  const std::string page = vt::explain_html(f)(vt::ones({3}));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(vt_test::page_fault(page), "");
  EXPECT_NE(page.find("Not measured"), std::string::npos);
}

TEST(ExplainPage, states_stay_as_they_are) {
  vt::Variable total(vt::tensor(0.0), "total");
  const auto f = vt::jit([&](Tensor x) { return total.assign_add(vt::sum(x)), x * 2.0; });
  vt::explain_html(f)(vt::tensor({1.0, 2.0}));
  EXPECT_EQ(total.read().item<double>(), 3.0);
  EXPECT_TRUE(f.explain_html(vt::ones({5}, vt::f64)).empty());  // not called yet
}

}  // namespace
