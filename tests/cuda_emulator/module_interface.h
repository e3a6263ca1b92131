// What a compiled CUDA source and the emulator know of each other. Included by both; plain
// declarations only, as it is compiled with every kernel.
#pragma once

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
};

extern "C" {

// Where the thread that is running is; the emulator writes it before it lets a thread go on.
struct vt_place {
  uint3 thread, block;
  dim3 block_dim, grid_dim;
  unsigned lane;
  unsigned char* dynamic_shared;
};

enum vt_warp_operation { vt_warp_shuffle, vt_warp_ballot, vt_warp_match, vt_warp_barrier };
enum vt_block_operation { vt_block_barrier, vt_block_count, vt_block_and, vt_block_or };

// What the emulator does for kernels.
struct vt_services {
  // The host address of base + offset, if all of its bytes may be accessed; does not return
  // otherwise.
  void* (*at)(unsigned long base, long offset, unsigned size, unsigned alignment, int writes);
  // Looks at an access of a host address that no `at` allowed: the thread's own variables,
  // constants, shared memory. Does not return otherwise.
  void (*plain)(const void* p, unsigned size, int writes);
  void (*sync_threads)(int line);
  int (*sync_threads_with)(int operation, int predicate, int line);
  // Waits for all lanes of `mask`. A shuffle gives the value of lane `source`, a ballot the lanes
  // whose value is not 0, a match those with the same value.
  unsigned long (*warp)(int operation, unsigned mask, unsigned long value, unsigned source,
                        int line);
  void (*stop)(int error, const char* text, int line);
  double (*special)(int function, double x);
  // The value behind the handle of a graph's conditional nodes.
  void (*set_condition)(unsigned long handle, unsigned value);
};

struct vt_kernel {
  const char* name;
  void (*call)(void** parameters);
  const unsigned* parameter_sizes;
  unsigned parameter_count;
  int max_threads;  // of a block
};

struct vt_module {
  const vt_kernel* kernels;
  unsigned kernel_count;
  vt_place* place;
  vt_services* services;
};
}
