// What tests ask of the emulator beside CUDA's own functions. Exported by libvt_cuda_emulator.so
// under these names; reset between tests.
#pragma once

extern "C" {

/// The next calls of `function` (a name of the driver's or NVRTC's; "kernel" for the running of
/// one) fail with `error`: the first that comes after `after_calls` others, or all where that is
/// negative. Several may be set.
void vt_emulator_fail(const char* function, int after_calls, int error);
/// Ends injected failures, errors that had ended all work, and all totals; what is alive stays so.
void vt_emulator_reset(void);
/// The order in which blocks, threads and streams go on: 0 forward, 1 backward, else shuffled by
/// this number.
void vt_emulator_set_seed(unsigned long seed);
/// 0: work waits until somebody synchronises; 1: a thread of the emulator does it meanwhile; 2: at
/// once.
void vt_emulator_set_streams(int mode);
/// Alive: "allocations", "bytes", "pinned", "streams", "events", "modules", "graphs",
/// "graph_execs", "programs". Totals since the last reset: "peak_bytes", "launches", "blocks",
/// "threads", "barriers", "compilations", "cached", "graph_launches", "copies", "synchronisations";
/// or how often a function was called, by its name. −1 for what is not known.
long long vt_emulator_count(const char* what);
/// What was wrong in the last launch that failed; "" without one.
const char* vt_emulator_report(void);
/// Whether two threads that touch the same element, one of them writing, without a barrier that
/// orders them, end the launch (1, as at the begin) or not.
void vt_emulator_set_races(int are_errors);
/// The sources that were compiled since the last reset.
int vt_emulator_sources(void);
const char* vt_emulator_source(int index);
}
