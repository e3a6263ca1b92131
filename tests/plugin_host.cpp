// Opens a plugin with vt in it, has a thread work there, and closes it: what vt's own threads run,
// and what ends each thread, must not go with it.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <thread>

int main(int, char** arguments) {
  for (int iteration = 1; iteration <= 3; ++iteration) {
    void* const plugin = ::dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) return std::printf("%s\n", ::dlerror()), 1;
    const auto work = reinterpret_cast<double (*)(int)>(::dlsym(plugin, "plugin_work"));
    std::thread([&] {
      if (const double sum = work(iteration); sum < 114239 * iteration || sum > 114240 * iteration)
        std::printf("round %d: %g\n", iteration, sum);
    }).join();
    ::dlclose(plugin);
    // Time for the pool's threads to go wrong.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}
