/* Keeps what a disk has for certain: a file that is synced is copied to the folder KEPT as it is then,
 * and with its folder those of them go that are gone.
 *
 * Preloaded into a program, it shows what would be left of its files if the power failed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void keep_names(const char *folder, const char *kept)
{
    char path[2 * PATH_MAX];
    DIR *names = opendir(kept);
    for (struct dirent *name; names && (name = readdir(names));) {
        snprintf(path, sizeof path, "%s/%s", folder, name->d_name);
        if (access(path, F_OK)) {
            snprintf(path, sizeof path, "%s/%s", kept, name->d_name);
            unlink(path);
        }
    }
    if (names)
        closedir(names);
}

static void keep(int fd)
{
    char link[64], path[PATH_MAX], kept[2 * PATH_MAX], bytes[65536];
    struct stat stat;
    const char *folder = getenv("KEPT");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || fstat(fd, &stat) || !folder)
        return;
    path[length] = 0;
    if (S_ISDIR(stat.st_mode))
        return keep_names(path, folder);
    snprintf(kept, sizeof kept, "%s%s", folder, strrchr(path, '/'));
    int to = open(kept, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    /* Not opened anew: closing that would end the locks that the program has on it. */
    for (off_t at = 0; (length = pread(fd, bytes, sizeof bytes, at)) > 0; at += length)
        if (write(to, bytes, length) != length)
            abort();
    close(to);
}

int fsync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    keep(fd);
    return real(fd);
}

int fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    keep(fd);
    return real(fd);
}
