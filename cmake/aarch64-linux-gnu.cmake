# Cross-building for 64-bit ARM, whose programs run under qemu: for `scripts/test aarch64`, which
# unpacks that machine's libraries into VT_SYSROOT.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)  # notes on pairs of numbers as results
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES VT_SYSROOT)
set(CMAKE_FIND_ROOT_PATH ${VT_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;${VT_SYSROOT})
