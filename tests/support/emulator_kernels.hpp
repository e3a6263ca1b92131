// Kernels written by hand for the tests of the emulator: right ones of each kind, and wrong ones.
#pragma once

namespace vt_test {

// What every source of vt begins with: checked accesses where emulated, plain ones on a device.
inline const char* const accesses = R"(
#ifndef VT_EMULATED
#define VT_LOAD(pointer, index) ((pointer)[index])
#define VT_STORE(pointer, index, value) ((pointer)[index] = (value))
#define VT_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif
)";

struct Source {
  const char *name, *text;
};
inline const Source saxpy = {"saxpy", R"(
extern "C" __global__ void __launch_bounds__(256)
    saxpy(const float* __restrict__ x, float* __restrict__ y, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) VT_STORE(y, i, a * VT_LOAD(x, i) + VT_LOAD(y, i));
}
)"};
inline const Source block_sum = {"block_sum", R"(
extern "C" __global__ void block_sum(const float* x, float* y, int n) {
  __shared__ float part[256];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += VT_LOAD(x, i);
  VT_STORE(part, threadIdx.x, sum);
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      VT_STORE(part, threadIdx.x, VT_LOAD(part, threadIdx.x) + VT_LOAD(part, threadIdx.x + half));
    __syncthreads();
  }
  if (threadIdx.x == 0) VT_STORE(y, blockIdx.x, VT_LOAD(part, 0));
}
)"};
inline const Source warp_sum = {"warp_sum", R"(
extern "C" __global__ void warp_sum(const double* x, double* y, int rows, int columns) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  double sum = 0;
  for (int j = lane; j < columns; j += 32) sum += VT_LOAD(x, (long long)row * columns + j);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  const double first = __shfl_sync(0xffffffffu, sum, 0);
  if (lane == 31) VT_STORE(y, row, first);
}
)"};
inline const Source warp_scan = {"warp_scan", R"(
extern "C" __global__ void warp_scan(const int* x, int* sums, unsigned* votes, int* below) {
  const int i = threadIdx.x, lane = i % 32;
  int value = VT_LOAD(x, i);
  const unsigned odd = __ballot_sync(0xffffffffu, value & 1);
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, value, d);
    if (lane >= d) value += other;
  }
  VT_STORE(sums, i, value);
  VT_STORE(votes, i, odd);
  VT_STORE(below, i,
           __shfl_down_sync(0xffffffffu, value, 1, 8) + __popc(odd & ((1u << lane) - 1)) +
               (__any_sync(0xffffffffu, lane == 5) ? 1000 : 0) +
               (__all_sync(0xffffffffu, lane < 31) ? 5000 : 0));
}
)"};
inline const Source histogram = {"histogram", R"(
extern "C" __global__ void histogram(const unsigned char* x, int* bins, int n, float* total,
                                     unsigned long long* largest) {
  __shared__ int local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[VT_LOAD(x, i) % 16], 1);
    atomicAdd(total, 1.0f);
    atomicMax(largest, (unsigned long long)VT_LOAD(x, i) * 1000000007ull);
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(bins + threadIdx.x, local[threadIdx.x]);
}
)"};
inline const Source transpose = {"transpose", R"(
extern "C" __global__ void transpose(const float* x, float* y, int rows, int columns) {
  VT_DYNAMIC_SHARED(memory);
  float* tile = (float*)memory;
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (c < columns && r + k < rows)
      VT_STORE(tile, (threadIdx.y + k) * 33 + threadIdx.x, VT_LOAD(x, (r + k) * columns + c));
  __syncthreads();
  c = blockIdx.y * 32 + threadIdx.x;
  r = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (c < rows && r + k < columns)
      VT_STORE(y, (r + k) * rows + c, VT_LOAD(tile, threadIdx.x * 33 + threadIdx.y + k));
}
)"};
inline const Source divergent = {"divergent", R"(
struct Pair { int add; long long times; };
extern "C" __global__ void divergent(int* x, Pair p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  if (i >= n) return;
  int value = i;
  if (lane < 16) value += __shfl_xor_sync(0x0000ffffu, value, 8);
  else value -= __shfl_xor_sync(0xffff0000u, value, 4);
  __syncwarp();
  VT_STORE(x, i, (value + p.add) * (int)p.times);
}
)"};
inline const Source vectors = {"vectors", R"(
extern "C" __global__ void vectors(const float4* x, float4* y, const double2* u, double* v, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float4 a = VT_LOAD(x, i);
  VT_STORE(y, i, make_float4(a.w, a.z, a.y, a.x));
  const double2 b = VT_LOAD(u, i);
  VT_STORE(v, i, __fma_rn(b.x, b.y, 1.0));
}
)"};
inline const Source functions = {"functions", R"(
extern "C" __global__ void functions(const double* x, double* y, float* z, unsigned* w) {
  const int i = threadIdx.x;
  const double a = VT_LOAD(x, i);
  double s, c;
  sincospi(a, &s, &c);
  const double results[] = {
      erfinv(a), erfcinv(a + 0.5),         normcdf(a),       rcbrt(a + 2.0), s,
      c,         cyl_bessel_i0(a),         cyl_bessel_i1(a), rsqrt(a + 1.5), exp10(a),
      erfcx(a),  normcdfinv(a * 0.5 + 0.5)};
  const float b = (float)a;
  const float narrow[] = {erfinvf(b),       erfcinvf(b + 0.5f),    rsqrtf(b + 1.5f),
                          exp10f(b),        __fmaf_rn(b, b, 1.0f), fmaxf(b, 0.25f),
                          tgammaf(b + 2.0f)};
  for (int k = 0; k < 12; ++k) VT_STORE(y, i * 12 + k, results[k]);
  for (int k = 0; k < 7; ++k) VT_STORE(z, i * 7 + k, narrow[k]);
  VT_STORE(w, i * 8, __float_as_uint(b));
  VT_STORE(w, i * 8 + 1, (unsigned)__float2int_rz(b * 1e20f));
  VT_STORE(w, i * 8 + 2, (unsigned)(__double_as_longlong(a) >> 32));
  VT_STORE(w, i * 8 + 3, __umulhi(0x80000001u + i, 6u));
  VT_STORE(w, i * 8 + 4,
           (unsigned)(__clz(i + 1) * 100 + __ffs(i + 8) * 10000 + __popcll(0xffffffffffull + i)));
  VT_STORE(w, i * 8 + 5, (unsigned)__double2ll_rn(a * 1000.5));
  VT_STORE(w, i * 8 + 6, __brev(i + 1));
  VT_STORE(w, i * 8 + 7, (unsigned)min(i, 3) + max(i, 2));
}
)"};
inline const Source missing_barrier = {"missing_barrier", R"(
extern "C" __global__ void missing_barrier(int* x) {
  __shared__ int line[64];
  VT_STORE(line, threadIdx.x, (int)threadIdx.x);
  VT_STORE(x, threadIdx.x, VT_LOAD(line, 63 - threadIdx.x));
}
)"};
inline const Source out_of_bounds = {"out_of_bounds", R"(
extern "C" __global__ void out_of_bounds(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) VT_STORE(x, i, 1.0f);
}
)"};
inline const Source shared_out_of_bounds = {"shared_out_of_bounds", R"(
extern "C" __global__ void shared_out_of_bounds(float* x, int index) {
  __shared__ float one[8];
  __shared__ float two[8];
  VT_STORE(one, threadIdx.x % 8, 1.0f);
  VT_STORE(two, threadIdx.x % 8, 2.0f);
  __syncthreads();
  VT_STORE(x, threadIdx.x, VT_LOAD(one, index) + VT_LOAD(two, 0));
}
)"};
inline const Source dynamic_out_of_bounds = {"dynamic_out_of_bounds", R"(
extern "C" __global__ void dynamic_out_of_bounds(float* x, int index) {
  VT_DYNAMIC_SHARED(memory);
  VT_STORE((float*)memory, index, 3.0f);
  VT_STORE(x, 0, VT_LOAD((float*)memory, index));
}
)"};
inline const Source half_barrier = {"half_barrier", R"(
extern "C" __global__ void half_barrier(int* x) {
  if (threadIdx.x < 16) __syncthreads();
  VT_STORE(x, threadIdx.x, 1);
}
)"};
inline const Source mixed_wait = {"mixed_wait", R"(
extern "C" __global__ void mixed_wait(int* x) {
  int v = threadIdx.x;
  if (threadIdx.x < 16) __syncthreads();
  else v = __shfl_xor_sync(0xffffffffu, v, 1);
  VT_STORE(x, threadIdx.x, v);
}
)"};
inline const Source reads_plainly = {"reads_plainly", R"(
extern "C" __global__ void reads_plainly(int* x) { x[threadIdx.x] = 1; }
)"};
inline const Source bitonic = {"bitonic", R"(
extern "C" __global__ void __launch_bounds__(1024) bitonic(int* x) {
  VT_DYNAMIC_SHARED(memory);
  int* keys = (int*)memory;
  const int i = threadIdx.x;
  VT_STORE(keys, i, VT_LOAD(x, blockIdx.x * 1024 + i));
  for (int size = 2; size <= 1024; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      const int j = i ^ step;
      if (j > i) {
        const int a = VT_LOAD(keys, i), b = VT_LOAD(keys, j);
        if ((a > b) == ((i & size) == 0)) {
          VT_STORE(keys, i, b);
          VT_STORE(keys, j, a);
        }
      }
    }
  __syncthreads();
  VT_STORE(x, blockIdx.x * 1024 + i, VT_LOAD(keys, i));
}
)"};

inline const Source* const emulator_kernels[] = {&saxpy,
                                                 &block_sum,
                                                 &warp_sum,
                                                 &warp_scan,
                                                 &histogram,
                                                 &transpose,
                                                 &divergent,
                                                 &vectors,
                                                 &functions,
                                                 &missing_barrier,
                                                 &out_of_bounds,
                                                 &shared_out_of_bounds,
                                                 &dynamic_out_of_bounds,
                                                 &half_barrier,
                                                 &mixed_wait,
                                                 &reads_plainly,
                                                 &bitonic};

}  // namespace vt_test
