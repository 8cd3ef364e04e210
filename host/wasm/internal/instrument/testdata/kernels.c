// Kernels that measure the cost of metering and show that it changes no result. kernels.rs and kernels.go contain the
// first four, with the same results. The others exercise code that is metered in a special way.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(name)))

EXPORT("fib") uint32_t fib(uint32_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

EXPORT("sieve") uint32_t sieve(uint32_t n) {
  static uint8_t composite[1 << 20];
  uint32_t found = 0;
  memset(composite, 0, n);
  for (uint32_t i = 2; i < n; i++) {
    if (composite[i]) continue;
    found++;
    for (uint32_t k = 2 * i; k < n; k += i) composite[k] = 1;
  }
  return found;
}

EXPORT("xorshift") uint32_t xorshift(uint32_t n) {
  uint32_t x = 2463534242u;
  for (uint32_t i = 0; i < n; i++) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  return x;
}

EXPORT("matmul") uint32_t matmul(uint32_t n) {
  static double a[64][64], b[64][64], c[64][64];
  for (int i = 0; i < 64; i++)
    for (int k = 0; k < 64; k++) a[i][k] = i + k, b[i][k] = i - k;
  double sum = 0;
  for (uint32_t round = 0; round < n; round++) {
    for (int i = 0; i < 64; i++)
      for (int j = 0; j < 64; j++) {
        double s = 0;
        for (int k = 0; k < 64; k++) s += a[i][k] * b[k][j];
        c[i][j] = s;
      }
    sum += c[round & 63][7];
  }
  return (uint32_t)(int64_t)sum;
}

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t load(const uint8_t *b) { return (uint32_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3]; }

static void block(uint32_t h[8], const uint8_t *data) {
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++) w[i] = load(data + 4 * i);
  for (int i = 16; i < 64; i++) {
    uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  memcpy(v, h, sizeof v);
  for (int i = 0; i < 64; i++) {
    uint32_t t1 = v[7] + (rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[i] + w[i];
    uint32_t t2 = (rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++) h[i] += v[i];
}

// sha256 hashes n blocks of 64 bytes and returns the first four bytes of the digest.
EXPORT("sha256") uint32_t sha256(uint32_t n) {
  uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t data[64];
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t k = 0; k < 64; k++) data[k] = 7 * i + k;
    block(h, data);
  }
  uint8_t end[64] = {0x80};
  for (int i = 0; i < 8; i++) end[63 - i] = (uint64_t)n * 512 >> 8 * i;
  block(h, end);
  return h[0];
}

static int byValue(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

// sorted calls a function through the table for each comparison.
EXPORT("sorted") uint32_t sorted(uint32_t n) {
  uint32_t *v = malloc(n * sizeof *v), x = 1;
  for (uint32_t i = 0; i < n; i++) v[i] = x = x * 1664525 + 1013904223;
  qsort(v, n, sizeof *v, byValue);
  for (uint32_t i = 0; i < n; i++) x = x * 31 + v[i];
  free(v);
  return x;
}

// moved copies and fills overlapping ranges of all sizes in both directions.
EXPORT("moved") uint32_t moved(uint32_t n) {
  uint32_t size = 5 << 20, x = 7;
  uint8_t *v = malloc(size);
  for (uint32_t i = 0; i < size; i++) v[i] = i * 7;
  for (uint32_t i = 0; i < n; i++) {
    x = x * 1664525 + 1013904223;
    uint32_t at = x % size, len = (x >> 7) % (size - at), to = (x >> 3) % (size - len);
    memmove(v + to, v + at, len);
    memset(v + at / 2, x >> 24, len % 70000);
  }
  for (uint32_t i = 0; i < size; i++) x = x * 31 + v[i];
  free(v);
  return x;
}
