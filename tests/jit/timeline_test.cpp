// VT_TRACE: the file is JSON that Perfetto reads, tells what ran with the user's lines, and Spans
// of a thread lie inside each other.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <vt/vt.hpp>

namespace {

// Reads one JSON value; numbers and strings come back as text, the members of inner objects as
// "outer.inner".
class Json {
 public:
  explicit Json(std::string text) : text_(std::move(text)) {}
  std::vector<std::map<std::string, std::string>> array_of_objects() {
    std::vector<std::map<std::string, std::string>> all;
    expect('[');
    if (peek() != ']') do {
        all.emplace_back();
        object(all.back(), "");
      } while (take(','));
    expect(']');
    EXPECT_EQ(peek(), 0) << "text behind the end";
    return all;
  }

 private:
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : 0;
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c))
      throw std::runtime_error("not JSON at " + std::to_string(at_) + ": " + text_.substr(at_, 40));
  }
  std::string string() {
    std::string out;
    for (expect('"'); at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20)
        throw std::runtime_error("a control character in a string");
      if (text_[at_] == '\\') ++at_;
      out += text_[at_];
    }
    expect('"');
    return out;
  }
  void object(std::map<std::string, std::string>& into, const std::string& prefix) {
    expect('{');
    if (take('}')) return;
    do {
      peek();
      const std::string key = prefix + string();
      expect(':');
      if (peek() == '{') object(into, key + ".");
      else if (peek() == '"') into[key] = string();
      else
        for (peek(); at_ < text_.size() &&
                     std::string("+-.eE0123456789").find(text_[at_]) != std::string::npos;
             ++at_)
          into[key] += text_[at_];
    } while (take(','));
    expect('}');
  }

  std::string text_;
  std::size_t at_ = 0;
};

// What `f` leaves in the file, run in a process of its own: the variable is read once.
template <class F>
std::vector<std::map<std::string, std::string>> timeline_of(const F& f, const std::string& name) {
  const std::string path =
      testing::TempDir() + "vt_timeline_" + name + "_" + std::to_string(::getpid()) + ".json";
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("VT_TRACE", path.c_str(), 1);
    f();
    std::exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  std::remove(path.c_str());
  return Json(text.str()).array_of_objects();
}

TEST(Timeline, TellsWhatWasDone) {
  int line = 0;
  const auto events = timeline_of(
      [&] {
        vt::set_num_threads(2);
        const auto f =
            vt::jit(vt::vmap(vt::grad([](vt::Tensor x) { return vt::sum(vt::sin(x) * x); })));
        line = __LINE__ - 1;
        const vt::Tensor x = vt::ones({512, 4096});
        for (int i = 0; i < 3; ++i) f(x).eval();
        vt::linalg::cholesky(vt::eye(3)).eval();
      },
      "work");
  line = __LINE__ - 7;
  std::map<std::string, int> categories, names, threads;
  bool has_line = false;
  double end_of_last = 0;
  for (const auto& e : events) {
    ASSERT_TRUE(e.contains("name") && e.contains("ph") && e.contains("pid") && e.contains("tid"));
    if (e.at("ph") != "X") continue;
    ++categories[e.at("cat")];
    ++names[e.at("name")];
    ++threads[e.at("tid")];
    EXPECT_GE(std::stod(e.at("ts")), 0);
    EXPECT_GE(std::stod(e.at("dur")), 0);
    end_of_last = std::max(end_of_last, std::stod(e.at("ts")) + std::stod(e.at("dur")));
    const auto at = e.find("args.line");
    has_line = has_line ||
               (at != e.end() &&
                at->second.find("timeline_test.cpp:" + std::to_string(line)) != std::string::npos);
  }
  for (const char* category : {"record", "transform", "run"})
    EXPECT_GT(categories[category], 0) << category;
  for (const char* name : {"vt::jit", "vt::vmap", "linearize", "transpose", "batch", "simplify"})
    EXPECT_GT(names[name], 0) << name;
  EXPECT_TRUE(has_line) << "no event names line " << line;
  EXPECT_GT(end_of_last, 0);
}

TEST(Timeline, SpansOfAThreadLieInsideEachOther) {
  const auto events = timeline_of(
      [] {
        const vt::Tensor x = vt::ones({256, 256});
        for (int i = 0; i < 3; ++i)
          vt::jit([](vt::Tensor a) { return vt::matmul(a, vt::tanh(a)) + 1.0; })(x).eval();
      },
      "nesting");
  std::map<std::string, std::vector<std::pair<double, double>>> open;
  struct Stretch {
    double begin, end;
  };
  std::map<std::string, std::vector<Stretch>> all;
  for (const auto& e : events)
    if (e.at("ph") == "X")
      all[e.at("tid")].push_back(
          {std::stod(e.at("ts")), std::stod(e.at("ts")) + std::stod(e.at("dur"))});
  ASSERT_FALSE(all.empty());
  constexpr double rounding = 0.0021;  // times are written in nanoseconds
  for (const auto& [thread, pieces] : all)
    for (const Stretch& a : pieces)
      for (const Stretch& b : pieces) {
        const bool apart = a.end <= b.begin + rounding || b.end <= a.begin + rounding;
        const bool inside = (a.begin >= b.begin - rounding && a.end <= b.end + rounding) ||
                            (b.begin >= a.begin - rounding && b.end <= a.end + rounding);
        EXPECT_TRUE(apart || inside) << "thread " << thread << ": " << a.begin << "…" << a.end
                                     << ", " << b.begin << "…" << b.end;
      }
}

TEST(Timeline, AChildLeavesTheFileToItsParent) {
  const auto events = timeline_of(
      [] {
        (vt::ones({3}) + 1.0).eval();
        const pid_t child = ::fork();
        if (child == 0) {
          (vt::ones({5}) * 2.0).eval();
          std::exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) std::_Exit(1);
        (vt::ones({7}) - 2.0).eval();
      },
      "fork");
  EXPECT_GE(events.size(), 3u);
}

TEST(Timeline, AFileThatCannotBeWrittenIsAWarning) {
  for (const std::string path : {"/nowhere/at/all.json", "/dev/full", "/"}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("VT_TRACE", path.c_str(), 1);
      const double sum = vt::sum(vt::ones({3}) + 1.0).item<double>();
      const bool log =
          vt::warnings().find("VT_TRACE: " + path + " cannot be written") != std::string::npos;
      std::_Exit(sum == 6.0 && log ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << path;
  }
}

}  // namespace
