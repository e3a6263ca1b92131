// A driver of long ago: what tells its version, and little else.
extern "C" {
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
int cuGetErrorName(int, const char** text) {
  *text = nullptr;
  return 1;
}
int cuGetErrorString(int, const char** text) {
  *text = nullptr;
  return 1;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
}
