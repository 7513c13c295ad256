/* Sets the wall clock of the program that it is preloaded into ahead by AHEAD seconds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    const char *ahead = getenv("AHEAD");
    if (!result && clock == CLOCK_REALTIME && ahead)
        time->tv_sec += atol(ahead);
    return result;
}
