// Benchmarks on a CUDA device: prints one JSON object, in which each row has its time. Runs on the
// emulated driver too (--tiny), as a test.
//   bench_cuda [--tiny] [--filter REGEX] [--json FILE]
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>

#include "../data.hpp"
#include "cuda_rows.hpp"
#include "src/jit/cuda/driver/device.hpp"

namespace perf {

namespace {

namespace cuda = vt::detail::cuda;

const cuda::CudaDevice& device() { return cuda::CudaDevice::get(0, "bench_cuda"); }

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A pair of events on the device's stream.
class EventTimer {
 public:
  EventTimer() {
    device().enter();
    for (cuda::Event& e : events_)
      device().check(device().driver().cuEventCreate(&e, cuda::Constant::CU_EVENT_DEFAULT),
                     "cuEventCreate");
  }
  ~EventTimer() {
    for (cuda::Event e : events_) device().driver().cuEventDestroy_v2(e);
  }
  double seconds(const std::function<void()>& body, int calls) {
    record(0);
    for (int i = 0; i < calls; ++i) body();
    record(1);
    device().check(device().driver().cuEventSynchronize(events_[1]), "cuEventSynchronize");
    float ms = 0;
    device().check(device().driver().cuEventElapsedTime(&ms, events_[0], events_[1]),
                   "cuEventElapsedTime");
    return ms * 1e-3 / calls;
  }

 private:
  void record(int which) {
    device().check(device().driver().cuEventRecord(events_[which], device().stream()),
                   "cuEventRecord");
  }
  cuda::Event events_[2] = {};
};

}  // namespace

CudaBenchmark::CudaBenchmark(bool tiny, std::string filter)
    : tiny_(tiny), filter_(std::move(filter)) {}

bool CudaBenchmark::wanted(const std::string& name) const {
  return std::regex_search(name, std::regex(filter_));
}

void CudaBenchmark::add(CudaRow row) {
  std::fprintf(stderr, "%-36s %12.3f us  %s", row.name.c_str(), row.seconds * 1e6,
               row.unit.c_str());
  if (row.bytes > 0) std::fprintf(stderr, "  %8.1f GB/s", row.bytes / row.seconds * 1e-9);
  if (row.flops > 0) std::fprintf(stderr, "  %8.1f Gflop/s", row.flops / row.seconds * 1e-9);
  std::fprintf(stderr, "\n");
  rows_.push_back(std::move(row));
}

void CudaBenchmark::device(const std::string& name, const std::function<void()>& body, double bytes,
                           double flops) {
  if (!wanted(name)) return;
  for (int i = 0; i < (tiny_ ? 2 : 4); ++i) body();  // compiled, then made a graph
  perf::device().synchronise();
  EventTimer timer;
  const double once = timer.seconds(body, 1);
  const int calls = tiny_ ? 1 : std::clamp(static_cast<int>(0.02 / once), 1, 2000);
  std::vector<double> times;
  for (int i = 0; i < (tiny_ ? 1 : 9); ++i) times.push_back(timer.seconds(body, calls));
  add({name, std::max(median(times), 1e-9), bytes, flops, "device"});
}

void CudaBenchmark::host(const std::string& name, const std::function<void()>& body) {
  if (!wanted(name)) return;
  for (int i = 0; i < 4; ++i) body();
  perf::device().synchronise();
  const int calls = tiny_ ? 2 : 200;  // so few that the device's queue takes them all
  std::vector<double> times;
  for (int i = 0; i < (tiny_ ? 1 : 50); ++i) {
    const double start = now();
    for (int k = 0; k < calls; ++k) body();
    times.push_back((now() - start) / calls);
    perf::device().synchronise();
  }
  add({name, median(times), 0, 0, "host"});
}

vt::Tensor on_device(const vt::Tensor& x) { return x.to(vt::cuda(0)); }

namespace {

// Twenty operations that fuse into few kernels, with a number that makes their code new.
vt::Tensor twenty_ops(const vt::Tensor& x, double number) {
  vt::Tensor y = x * number;
  for (int i = 0; i < 4; ++i) y = vt::tanh(y) * x + vt::exp(-y) * static_cast<double>(i + 1);
  return vt::softmax(vt::reshape(y, {10, -1}), 1);
}

/// Milliseconds of a first call in a process whose device has run something before.
int time_first_call(const char* seed) {
  const vt::Tensor x = on_device(random_tensor<float>({100}));
  (x + 1.0).to_vector<float>();
  const double number = 1 + std::atof(seed) * 1e-6, start = now();
  vt::jit([=](const vt::Tensor& x) { return twenty_ops(x, number); })(x).to_vector<float>();
  std::printf("%.6f\n", (now() - start) * 1e3);
  return 0;
}

/// This program again, with a cache folder of its own.
double first_call_apart(int seed, const std::string& cache) {
  char self[4096] = "";
  if (::readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) return -1;
  const std::string command =
      "VT_CACHE_DIR='" + cache + "' '" + self + "' --first-call " + std::to_string(seed);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return -1;
  double ms = -1;
  if (std::fscanf(pipe, "%lf", &ms) != 1) ms = -1;
  return ::pclose(pipe) == 0 ? ms * 1e-3 : -1;
}

void first_call_rows(CudaBenchmark& b) {
  if (!b.wanted("first_call/20_ops/cold") && !b.wanted("first_call/20_ops/disk")) return;
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("vt-bench-" + std::to_string(::getpid()));
  std::vector<double> cold, disk;
  for (int i = 0; i < static_cast<int>(b.size(5, 1)); ++i) {
    const std::string cache = (root / std::to_string(i)).string();
    std::filesystem::create_directories(cache);
    std::filesystem::permissions(cache, std::filesystem::perms::owner_all);
    cold.push_back(first_call_apart(i, cache));
    disk.push_back(first_call_apart(i, cache));
  }
  std::error_code ignored;
  std::filesystem::remove_all(root, ignored);
  if (*std::min_element(cold.begin(), cold.end()) < 0 ||
      *std::min_element(disk.begin(), disk.end()) < 0) {
    std::fprintf(stderr, "first_call: the child failed\n");
    std::exit(1);
  }
  b.add({"first_call/20_ops/cold", median(cold), 0, 0, "process"});
  b.add({"first_call/20_ops/disk", median(disk), 0, 0, "process"});
}

// Sums along rows and columns in turn, so that no two steps fuse.
void launch_rows(CudaBenchmark& b) {
  const vt::Tensor x = on_device(random_tensor<float>({64, 64}));
  const auto f = vt::jit([](vt::Tensor x) {
    for (int i = 0; i < 5; ++i)
      x = x - vt::tanh(vt::sum(x, 0) * 0.1f) + vt::reshape(vt::sum(x, 1), {64, 1}) * 0.01f;
    return x;
  });
  if (!b.wanted("launch/10_kernels")) return;
  f(x).eval();
  vt::reset_stats();
  f(x).eval();
  const auto kernels = vt::stats().launches;
  b.host("launch/10_kernels", [=] { f(x).eval(); });
  std::fprintf(stderr, "  (%d kernels, %s)\n", static_cast<int>(kernels),
               vt::stats().graph_launches ? "one graph" : "no graph");
}

void write_json(const CudaBenchmark& b, std::FILE* out) {
  const cuda::DeviceFacts& facts = device().facts();
  int driver = 0, major = 0, minor = 0;
  device().driver().cuDriverGetVersion(&driver);
  if (const cuda::Nvrtc* n = cuda::nvrtc(nullptr)) n->nvrtcVersion(&major, &minor);
  std::fprintf(out,
               "{\n \"device\": \"%s\",\n \"compute_capability\": \"%d.%d\",\n \"driver\": "
               "\"%d.%d\",\n \"nvrtc\": \"%d.%d\",\n \"tiny\": %s,\n",
               facts.name.c_str(), facts.major, facts.minor, driver / 1000, driver % 1000 / 10,
               major, minor, b.tiny() ? "true" : "false");
  std::fprintf(out, " \"rows\": {");
  const char* separator = "\n";
  for (const CudaRow& row : b.rows()) {
    std::fprintf(
        out, "%s  \"%s\": {\"seconds\": %.9g, \"bytes\": %.9g, \"flops\": %.9g, \"of\": \"%s\"}",
        separator, row.name.c_str(), row.seconds, row.bytes, row.flops, row.unit.c_str());
    separator = ",\n";
  }
  std::fprintf(out, "\n }\n}\n");
}

}  // namespace

}  // namespace perf

int main(int argc, char** argv) {
  bool tiny = false;
  std::string filter = ".", json;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--first-call" && i + 1 < argc) return perf::time_first_call(argv[i + 1]);
    if (argument == "--tiny") tiny = true;
    else if (argument == "--filter" && i + 1 < argc) filter = argv[++i];
    else if (argument == "--json" && i + 1 < argc) json = argv[++i];
    else {
      std::fprintf(stderr, "usage: bench_cuda [--tiny] [--filter REGEX] [--json FILE]\n");
      return 2;
    }
  }
  std::string reason;
  if (!vt::detail::cuda::driver(&reason) || !vt::detail::cuda::nvrtc(&reason)) {
    std::fprintf(stderr, "bench_cuda: %s\n", reason.c_str());
    return 77;
  }
  perf::CudaBenchmark b(tiny, filter);
  perf::cuda_kernel_rows(b);
  perf::launch_rows(b);
  perf::cuda_model_rows(b);
  perf::first_call_rows(b);
  std::FILE* out = json.empty() ? stdout : std::fopen(json.c_str(), "w");
  if (!out) {
    std::perror(json.c_str());
    return 1;
  }
  perf::write_json(b, out);
  return out == stdout || std::fclose(out) == 0 ? 0 : 1;
}
