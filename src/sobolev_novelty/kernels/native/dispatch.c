/* Which instruction set to use. */
#include "kernel.h"

const Hot *hot_select(int level) {
#ifdef SOBOLEV_X86
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if (avx512 && (level < 0 || level >= 2)) return &hot_avx512;
    if (avx2 && (level < 0 || level >= 1)) return &hot_avx2;
#else
    (void)level;
#endif
    return &hot_baseline;
}
