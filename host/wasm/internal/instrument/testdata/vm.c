// A bytecode interpreter of the usual form: a loop around a switch with many cases, of which a program uses a few.
#include <stdint.h>
#include <string.h>

static uint32_t r[16];

#define CASE(k) \
  case 8 + k: { \
    uint32_t a = r[k & 15], b = r[(k + 3) & 15]; \
    if (a > b) { \
      r[(k + 1) & 15] = a * b + k; \
      if (a & 1) r[(k + 2) & 15] ^= b >> 3; \
      else r[(k + 5) & 15] += a / (b | 1); \
    } else { \
      r[(k + 7) & 15] = (a << 2) - b + k * 3; \
      if (b & 2) r[(k + 9) & 15] -= a % (b | 1); \
      else r[(k + 4) & 15] |= a & b; \
    } \
    r[(k + 11) & 15] += strlen((char *)r + (k & 7)) + k; \
    pc++; \
    break; \
  }
#define CASES8(k) CASE(k) CASE(k + 1) CASE(k + 2) CASE(k + 3) CASE(k + 4) CASE(k + 5) CASE(k + 6) CASE(k + 7)
#define CASES64(k) \
  CASES8(k) CASES8(k + 8) CASES8(k + 16) CASES8(k + 24) CASES8(k + 32) CASES8(k + 40) CASES8(k + 48) CASES8(k + 56)

__attribute__((noinline)) static uint32_t run(const uint8_t *pc, uint32_t n) {
  uint32_t sum = 0;
  for (;;) {
    switch (*pc) {
    case 0: sum += n; pc++; break;
    case 1: sum ^= sum << 7; pc++; break;
    case 2: sum = sum * 31 + 1; pc++; break;
    case 3: if (--n > 0) pc -= pc[1]; else pc += 2; break;
    case 4: return sum;
    CASES64(0) CASES64(64) CASES64(128)
    }
  }
}

// vm runs n rounds of seven short instructions.
__attribute__((export_name("vm"))) uint32_t vm(uint32_t n) {
  static uint8_t code[] = {0, 1, 2, 0, 1, 2, 3, 6, 4};
  return run(code, n);
}

// mixed runs n rounds of an instruction of each kind.
__attribute__((export_name("mixed"))) uint32_t mixed(uint32_t n) {
  static uint8_t code[256];
  uint32_t at = 0;
  for (uint32_t k = 0; k < 192; k += 2) code[at++] = 8 + k, code[at++] = k % 3;
  code[at] = 3, code[at + 1] = at, code[at + 2] = 4;
  return run(code, n) + r[3];
}
