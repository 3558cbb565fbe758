/* The tile loops, compiled once per instruction set (without contraction, so that sums and products are NumPy's to the bit). */
#include <string.h>

#include "hot.h"
#include "vectormath.h"
#include "fastmath.h"

#define EXP exp_fast
#define LOG log_fast
#define SIN sin_fast
#define COS cos_fast
#define EXP_PLAIN exp_plain
#define LOG_PLAIN log_plain

#include "hot_forward.h"
#include "hot_backward.h"
#include "hot_second.h"

const Hot ISA(hot) = {TEXT(SOBOLEV_ISA), values,       gradient,    second,      ISA(gram),
                      ISA(dot),          ISA(axpy),    ISA(scale),  ISA(absorb), ISA(join),
                      ISA(pack),         ISA(inner),   ISA(gains)};
