// Streams of the emulated driver: queues of work that somebody runs later, in an order that only
// events and streams fix; events; capturing.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "emulator.hpp"

namespace emulator {

namespace {

struct Capture;

struct StreamObject {
  int device = 0;
  bool waits_for_default = true;  // blocking streams and the default stream wait for each other
  bool is_default = false;
  std::deque<Work> queue;
  bool busy = false;
  std::shared_ptr<Capture> capture;
  std::vector<int> capture_heads;  // the nodes that the next one follows
};

struct EventObject {
  bool timed = true;
  std::shared_ptr<Moment> moment = [] {
    auto never_recorded = std::make_shared<Moment>();
    never_recorded->done = true;
    return never_recorded;
  }();
  bool recorded = false;
  std::shared_ptr<Capture> capture;  // recorded into a graph: then the nodes in front
  std::vector<int> capture_heads;
};

struct Capture {
  GraphObject* graph = nullptr;
  StreamObject* origin = nullptr;
  std::set<StreamObject*> streams;
  std::thread::id thread;
  int mode = 0;
  bool broken = false;
};

}  // namespace

struct Work {
  std::uint64_t number = 0;
  std::function<Result()> run;
  std::shared_ptr<Moment> waits_for, reaches;
};

namespace {

struct Streams {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<StreamObject*> all;
  StreamObject* defaults[max_devices] = {};
  std::set<void*> events;
  std::vector<std::shared_ptr<Capture>> captures;
  std::uint64_t next_number = 1;
  bool executing = false, worker_started = false;
  Random random{1};
  std::uint64_t random_seed = 0;
};
Streams& streams() {
  static Streams* const all = new Streams;
  return *all;
}
using Lock = std::unique_lock<std::mutex>;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The object of a handle; hold the mutex. Null, 1 and 2 are the default stream of the current
// device.
StreamObject* find(vt::detail::cuda::Stream handle) {
  Streams& s = streams();
  if (reinterpret_cast<std::uint64_t>(handle) <= 2) {
    const int device = current_device();
    if (device < 0) return nullptr;
    StreamObject*& made = s.defaults[device];
    if (!made) {
      made = new StreamObject;
      made->device = device;
      made->is_default = true;
      s.all.push_back(made);
    }
    return made;
  }
  auto* object = reinterpret_cast<StreamObject*>(handle);
  return std::find(s.all.begin(), s.all.end(), object) == s.all.end() ? nullptr : object;
}

template <class T>
T* known(const std::set<void*>& all, const void* handle) {
  return all.count(const_cast<void*>(handle)) ? static_cast<T*>(const_cast<void*>(handle))
                                              : nullptr;
}

bool may_run(const StreamObject* stream) {
  if (stream->queue.empty() || stream->busy) return false;
  const Work& head = stream->queue.front();
  if (head.waits_for && !head.waits_for->done) return false;
  if (!stream->waits_for_default) return true;
  for (const StreamObject* other : streams().all) {
    if (other == stream || other->device != stream->device || !other->waits_for_default ||
        other->is_default == stream->is_default)
      continue;
    if (other->busy || (!other->queue.empty() && other->queue.front().number < head.number))
      return false;
  }
  return true;
}

// Runs one piece of work of any stream; false where none may run now. The lock is open meanwhile.
bool run_one(Lock& lock) {
  Streams& s = streams();
  if (s.executing) return false;
  std::vector<StreamObject*> ready;
  for (StreamObject* stream : s.all)
    if (may_run(stream)) ready.push_back(stream);
  if (ready.empty()) return false;
  const std::uint64_t seed = emulator::seed();
  if (seed != s.random_seed) {
    s.random = Random(seed);
    s.random_seed = seed;
  }
  StreamObject* stream = seed == 0   ? ready.front()
                         : seed == 1 ? ready.back()
                                     : ready[s.random.below(ready.size())];
  Work work = std::move(stream->queue.front());
  stream->queue.pop_front();
  if (work.run && !lost(stream->device)) {
    stream->busy = s.executing = true;
    const int device = stream->device;
    lock.unlock();
    const Result result = work.run();
    if (result) lose_device(device, result);
    work.run = nullptr;
    lock.lock();
    stream->busy = s.executing = false;
  }
  if (work.reaches) {
    work.reaches->done = true;
    work.reaches->seconds = now();
  }
  s.changed.notify_all();
  return true;
}

void work_for_ever() {
  Lock lock(streams().mutex);
  for (;;)
    if (stream_mode() != 1 || !run_one(lock)) streams().changed.wait(lock);
}

void wait_until(Lock& lock, const std::function<bool()>& reached) {
  Streams& s = streams();
  while (!reached())
    if ((stream_mode() == 1 && s.worker_started) || !run_one(lock))
      s.changed.wait_for(lock, std::chrono::milliseconds(50));
}

bool idle(const StreamObject* stream) { return stream->queue.empty() && !stream->busy; }

// What a default stream waits for, and the other way round, is already in the order of the queues.
void queue_work(Lock& lock, StreamObject* stream, Work work) {
  Streams& s = streams();
  work.number = s.next_number++;
  stream->queue.push_back(std::move(work));
  const int mode = stream_mode();
  if (mode == 1) {
    if (!s.worker_started) {
      s.worker_started = true;
      std::thread(work_for_ever).detach();
    }
    s.changed.notify_all();
  } else if (mode == 2 || stream->queue.size() > 1000) {
    wait_until(lock, [=] { return idle(stream); });
  }
}

int add_node(StreamObject* stream, GraphNode node) {
  GraphObject& graph = *stream->capture->graph;
  node.after = stream->capture_heads;
  graph.nodes.push_back(std::move(node));
  stream->capture_heads = {static_cast<int>(graph.nodes.size()) - 1};
  return stream->capture_heads[0];
}

bool breaks(const std::shared_ptr<Capture>& capture) {
  if (!capture) return false;
  capture->broken = true;
  return true;
}

}  // namespace

Result enqueue(vt::detail::cuda::Stream handle, const std::string& kind,
               std::function<Result()> run, bool may_be_captured) {
  Lock lock(streams().mutex);
  StreamObject* stream = find(handle);
  if (!stream) return Constant::CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) {
    if (stream->capture->broken) return Constant::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!may_be_captured) {
      stream->capture->broken = true;
      return Constant::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    GraphNode node;
    node.kind = kind;
    node.run = std::move(run);
    add_node(stream, std::move(node));
    return 0;
  }
  // The default stream waits for blocking streams: not while one of them is captured.
  if (stream->is_default)
    for (const StreamObject* other : streams().all)
      if (other->capture && other->waits_for_default && other->device == stream->device) {
        other->capture->broken = true;
        return Constant::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      }
  queue_work(lock, stream, {0, std::move(run), nullptr, nullptr});
  return lost(stream->device);
}

Result finish(vt::detail::cuda::Stream handle) {
  Lock lock(streams().mutex);
  StreamObject* stream = find(handle);
  if (!stream) return Constant::CUDA_ERROR_INVALID_HANDLE;
  if (breaks(stream->capture)) return Constant::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  wait_until(lock, [=] { return idle(stream); });
  return lost(stream->device);
}

Result finish_device(int device) {
  Lock lock(streams().mutex);
  for (const StreamObject* stream : streams().all)
    if (stream->device == device && breaks(stream->capture))
      return Constant::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  wait_until(lock, [=] {
    for (const StreamObject* stream : streams().all)
      if (stream->device == device && !idle(stream)) return false;
    return true;
  });
  return lost(device);
}

int device_of(vt::detail::cuda::Stream handle) {
  const Lock lock(streams().mutex);
  const StreamObject* stream = find(handle);
  return stream ? stream->device : -1;
}

bool breaks_capture() {
  const Lock lock(streams().mutex);
  bool broke = false;
  for (const auto& capture : streams().captures) {
    const bool concerns = capture->mode == Constant::CU_STREAM_CAPTURE_MODE_GLOBAL ||
                          (capture->mode == Constant::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
                           capture->thread == std::this_thread::get_id());
    if (concerns) broke = capture->broken = true;
  }
  return broke;
}

long long alive_modules();                        // modules.cpp
long long alive_programs();                       // compiler.cpp
long long alive_graphs(const std::string& what);  // graphs.cpp

long long alive_handles(const std::string& what) {
  if (what == "modules") return alive_modules();
  if (what == "programs") return alive_programs();
  const Lock lock(streams().mutex);
  const Streams& s = streams();
  if (what == "streams")
    return std::count_if(s.all.begin(), s.all.end(),
                         [](const StreamObject* stream) { return !stream->is_default; });
  if (what == "events") return static_cast<long long>(s.events.size());
  return alive_graphs(what);
}

}  // namespace emulator

using namespace emulator;
using namespace vt::detail::cuda;

extern "C" {

Result cuStreamCreate(Stream* stream, unsigned flags) {
  if (const Result error = enter("cuStreamCreate", needs_start | needs_context)) return error;
  if (flags > 1) return Constant::CUDA_ERROR_INVALID_VALUE;
  auto* made = new StreamObject;
  made->device = current_device();
  made->waits_for_default = flags != Constant::CU_STREAM_NON_BLOCKING;
  const Lock lock(streams().mutex);
  streams().all.push_back(made);
  *stream = reinterpret_cast<Stream>(made);
  return 0;
}
Result cuStreamDestroy_v2(Stream handle) {
  if (const Result error = enter("cuStreamDestroy_v2", needs_start | needs_context | even_if_lost))
    return error;
  Lock lock(streams().mutex);
  StreamObject* stream = find(handle);
  if (!stream || stream->is_default) return Constant::CUDA_ERROR_INVALID_HANDLE;
  breaks(stream->capture);
  wait_until(lock, [=] { return idle(stream); });
  auto& all = streams().all;
  all.erase(std::find(all.begin(), all.end(), stream));
  delete stream;
  return 0;
}
Result cuStreamSynchronize(Stream stream) {
  if (const Result error = enter("cuStreamSynchronize", needs_start | needs_context)) return error;
  count("synchronisations");
  return finish(stream);
}
Result cuStreamQuery(Stream handle) {
  if (const Result error = enter("cuStreamQuery", needs_start | needs_context)) return error;
  Lock lock(streams().mutex);
  const StreamObject* stream = find(handle);
  if (!stream) return Constant::CUDA_ERROR_INVALID_HANDLE;
  if (breaks(stream->capture)) return Constant::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (idle(stream)) return lost(stream->device);
  if (stream_mode() != 1) run_one(lock);  // who asks again and again comes to the end
  return Constant::CUDA_ERROR_NOT_READY;
}
Result cuStreamWaitEvent(Stream handle, Event event_handle, unsigned flags) {
  if (const Result error = enter("cuStreamWaitEvent", needs_start | needs_context)) return error;
  Lock lock(streams().mutex);
  StreamObject* stream = find(handle);
  auto* event = known<EventObject>(streams().events, event_handle);
  if (!stream || !event) return Constant::CUDA_ERROR_INVALID_HANDLE;
  if (flags != 0) return Constant::CUDA_ERROR_INVALID_VALUE;
  if (event->capture) {
    if (event->capture->broken) return Constant::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!stream->capture) {  // joins the capture
      stream->capture = event->capture;
      stream->capture_heads.clear();
      event->capture->streams.insert(stream);
    }
    if (stream->capture != event->capture) return Constant::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (int head : event->capture_heads)
      if (std::find(stream->capture_heads.begin(), stream->capture_heads.end(), head) ==
          stream->capture_heads.end())
        stream->capture_heads.push_back(head);
    return 0;
  }
  if (stream->capture) {
    if (!event->recorded) return 0;
    stream->capture->broken = true;  // an event from outside of the graph
    return 905;
  }
  queue_work(lock, stream, {0, nullptr, event->moment, nullptr});
  return 0;
}
Result cuEventCreate(Event* event, unsigned flags) {
  if (const Result error = enter("cuEventCreate", needs_start | needs_context)) return error;
  if (flags > 3) return Constant::CUDA_ERROR_INVALID_VALUE;
  auto* made = new EventObject;
  made->timed = !(flags & Constant::CU_EVENT_DISABLE_TIMING);
  const Lock lock(streams().mutex);
  streams().events.insert(made);
  *event = reinterpret_cast<Event>(made);
  return 0;
}
Result cuEventDestroy_v2(Event handle) {
  if (const Result error = enter("cuEventDestroy_v2", needs_start | needs_context | even_if_lost))
    return error;
  const Lock lock(streams().mutex);
  auto* event = known<EventObject>(streams().events, handle);
  if (!event) return Constant::CUDA_ERROR_INVALID_HANDLE;
  streams().events.erase(event);
  delete event;
  return 0;
}
Result cuEventRecord(Event event_handle, Stream handle) {
  if (const Result error = enter("cuEventRecord", needs_start | needs_context)) return error;
  Lock lock(streams().mutex);
  StreamObject* stream = find(handle);
  auto* event = known<EventObject>(streams().events, event_handle);
  if (!stream || !event) return Constant::CUDA_ERROR_INVALID_HANDLE;
  event->recorded = true;
  event->capture = stream->capture;
  if (stream->capture) {
    if (stream->capture->broken) return Constant::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture_heads = stream->capture_heads;
    return 0;
  }
  event->moment = std::make_shared<Moment>();
  queue_work(lock, stream, {0, nullptr, nullptr, event->moment});
  return lost(stream->device);
}
Result cuEventSynchronize(Event handle) {
  if (const Result error = enter("cuEventSynchronize", needs_start | needs_context)) return error;
  count("synchronisations");
  Lock lock(streams().mutex);
  auto* event = known<EventObject>(streams().events, handle);
  if (!event) return Constant::CUDA_ERROR_INVALID_HANDLE;
  if (breaks(event->capture)) return 907;
  const auto moment = event->moment;
  wait_until(lock, [&] { return moment->done; });
  return lost(current_device());
}
Result cuEventQuery(Event handle) {
  if (const Result error = enter("cuEventQuery", needs_start | needs_context)) return error;
  Lock lock(streams().mutex);
  auto* event = known<EventObject>(streams().events, handle);
  if (!event) return Constant::CUDA_ERROR_INVALID_HANDLE;
  if (breaks(event->capture)) return 907;
  if (event->moment->done) return lost(current_device());
  if (stream_mode() != 1) run_one(lock);
  return Constant::CUDA_ERROR_NOT_READY;
}
Result cuEventElapsedTime(float* milliseconds, Event from_handle, Event to_handle) {
  if (const Result error = enter("cuEventElapsedTime", needs_start | needs_context)) return error;
  const Lock lock(streams().mutex);
  auto *from = known<EventObject>(streams().events, from_handle),
       *to = known<EventObject>(streams().events, to_handle);
  if (!from || !to || !from->timed || !to->timed || !from->recorded || !to->recorded ||
      from->capture || to->capture)
    return Constant::CUDA_ERROR_INVALID_HANDLE;
  if (!from->moment->done || !to->moment->done) return Constant::CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>((to->moment->seconds - from->moment->seconds) * 1e3);
  return 0;
}
Result cuStreamBeginCapture_v2(Stream handle, int mode) {
  if (const Result error = enter("cuStreamBeginCapture_v2", needs_start | needs_context))
    return error;
  const Lock lock(streams().mutex);
  StreamObject* stream = find(handle);
  if (!stream) return Constant::CUDA_ERROR_INVALID_HANDLE;
  if (mode < 0 || mode > 2) return Constant::CUDA_ERROR_INVALID_VALUE;
  if (stream->is_default) return Constant::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture) return 401;
  auto capture = std::make_shared<Capture>();
  capture->graph = new GraphObject;
  capture->origin = stream;
  capture->streams.insert(stream);
  capture->thread = std::this_thread::get_id();
  capture->mode = mode;
  stream->capture = capture;
  stream->capture_heads.clear();
  streams().captures.push_back(std::move(capture));
  return 0;
}
Result cuStreamEndCapture(Stream handle, Graph* graph) {
  if (const Result error = enter("cuStreamEndCapture", needs_start | needs_context | even_if_lost))
    return error;
  const Lock lock(streams().mutex);
  *graph = nullptr;
  StreamObject* stream = find(handle);
  if (!stream) return Constant::CUDA_ERROR_INVALID_HANDLE;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return 401;
  if (capture->origin != stream) return Constant::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != Constant::CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id())
    return 908;
  // Every node must lie in front of what the first stream did last.
  std::vector<int> heads = stream->capture_heads;
  std::set<int> joined(heads.begin(), heads.end());
  while (!heads.empty()) {
    const int node = heads.back();
    heads.pop_back();
    for (int before : capture->graph->nodes[node].after)
      if (joined.insert(before).second) heads.push_back(before);
  }
  const bool unjoined = joined.size() != capture->graph->nodes.size();
  for (StreamObject* member : streams().all)
    if (member->capture == capture) member->capture = nullptr;
  auto& captures = streams().captures;
  captures.erase(std::find(captures.begin(), captures.end(), capture));
  for (void* event : streams().events)
    if (auto* e = static_cast<EventObject*>(event); e->capture == capture) e->capture = nullptr;
  if (capture->broken || unjoined) {
    delete capture->graph;
    return capture->broken ? Constant::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 904;
  }
  *graph = keep_graph(capture->graph);
  return 0;
}
}
