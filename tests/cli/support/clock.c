/*
 * Moves the wall clock of the program that it is preloaded into by AHEAD seconds, or by the number in the file that
 * AHEAD_FILE names. The file is read again every 20 ms.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int (*real)(clockid_t, struct timespec *);

static long in_file(const char *path)
{
    static long ahead, read_at = -1000;
    struct timespec now;
    char text[32] = "";
    real(CLOCK_MONOTONIC, &now);
    long millis = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (millis - read_at >= 20) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            if (read(file, text, sizeof text - 1) > 0)
                ahead = atol(text);
            close(file);
        }
        read_at = millis;
    }
    return ahead;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    const char *ahead = getenv("AHEAD");
    const char *file = getenv("AHEAD_FILE");
    if (!result && clock == CLOCK_REALTIME && (ahead || file))
        time->tv_sec += ahead ? atol(ahead) : in_file(file);
    return result;
}
