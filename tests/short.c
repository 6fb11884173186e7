// Makes reads short: preloaded (LD_PRELOAD), it has every read ask for fewer bytes than it was to, as POSIX allows and network file systems
// and signals do. SHORT_SEED is what lengths are drawn by. How many reads came to be short is appended to the file SHORT_COUNT.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static uint64_t state = 1;
static uint64_t cut;

__attribute__((constructor)) static void begin(void) {
  const char *seed = getenv("SHORT_SEED");
  if (seed) state = strtoull(seed, NULL, 10) + 1;
}

__attribute__((destructor)) static void end(void) {
  const char *path = getenv("SHORT_COUNT");
  char text[32];
  int length = snprintf(text, sizeof text, "%llu\n", (unsigned long long)__atomic_load_n(&cut, __ATOMIC_RELAXED));
  int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
  if (file < 0) return;
  if (write(file, text, length) != length) abort();
  close(file);
}

// From 1 to what was asked for: often very few, sometimes all.
static size_t fewer(size_t asked) {
  if (asked < 2) return asked;
  uint64_t x = __atomic_fetch_add(&state, 0x9e3779b97f4a7c15, __ATOMIC_RELAXED);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  size_t most = x % 4 == 0 ? asked : x % 4 == 1 ? 16 : 4096;
  if (most > asked) most = asked;
  return 1 + (x >> 8) % most;
}

// What was cut was so only if more could have come.
static ssize_t counted(ssize_t got, size_t given, size_t asked) {
  if (given < asked && got == (ssize_t)given) __atomic_fetch_add(&cut, 1, __ATOMIC_RELAXED);
  return got;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t read(int file, void *to, size_t asked) {
  REAL(read);
  size_t given = fewer(asked);
  return counted(real(file, to, given), given, asked);
}

ssize_t pread(int file, void *to, size_t asked, off_t at) {
  REAL(pread);
  size_t given = fewer(asked);
  return counted(real(file, to, given, at), given, asked);
}

ssize_t pread64(int file, void *to, size_t asked, off64_t at) {
  REAL(pread64);
  size_t given = fewer(asked);
  return counted(real(file, to, given, at), given, asked);
}

ssize_t readv(int file, const struct iovec *to, int count) {
  size_t asked = 0;
  for (int i = 0; i < count; i++) asked += to[i].iov_len;
  for (int i = 0; i < count; i++) {
    if (to[i].iov_len == 0) continue;
    size_t given = fewer(to[i].iov_len);
    REAL(read);
    return counted(real(file, to[i].iov_base, given), given, asked);
  }
  return 0;
}

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t asked, unsigned flags) {
  REAL(copy_file_range);
  size_t given = fewer(asked);
  return counted(real(from, at, to, there, given, flags), given, asked);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t asked) {
  ssize_t sendfile64(int, int, off64_t *, size_t);
  REAL(sendfile64);
  size_t given = fewer(asked);
  return counted(real(to, from, at, given), given, asked);
}
