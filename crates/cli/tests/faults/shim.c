/* Makes a call of the C library fail, or ends the process there. Loaded before it by LD_PRELOAD.
 *
 * XOFF_FAULT_ROOT   calls about this directory and what is below are counted, others are not
 * XOFF_FAULT_LOG    a file that gets a line for each of them: its kind and its paths, by tabs
 * XOFF_FAULT_AT     the number of the call that is disturbed, from 1; none without it
 * XOFF_FAULT_HOW    fail: it fails as on a full or broken disk; kill: the process dies there
 * XOFF_FAULT_MEMORY count allocations instead of calls about files
 * XOFF_FAULT_PLAIN  the system does not know how to exchange two directories
 * XOFF_FAULT_ALONE  the system refuses threads
 *
 * What is synced is not brought to the disk, as no test takes the power away.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char root[PATH_MAX];
static size_t root_length;
static int log_file = -1;
static long at;
static int kills, memory, plain, alone;
static atomic_long calls, allocations;

__attribute__((constructor)) static void begin(void) {
    const char *value;
    if ((value = getenv("XOFF_FAULT_ROOT"))) {
        snprintf(root, sizeof root, "%s", value);
        root_length = strlen(root);
    }
    if ((value = getenv("XOFF_FAULT_LOG")))
        log_file = syscall(SYS_openat, AT_FDCWD, value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if ((value = getenv("XOFF_FAULT_HOW"))) kills = !strcmp(value, "kill");
    memory = getenv("XOFF_FAULT_MEMORY") != NULL;
    plain = getenv("XOFF_FAULT_PLAIN") != NULL;
    alone = getenv("XOFF_FAULT_ALONE") != NULL;
    if ((value = getenv("XOFF_FAULT_AT"))) at = atol(value);
    atomic_store(&allocations, 0);
}

static void say(const char *kind, const char *a, const char *b) {
    char line[3 * PATH_MAX];
    int length = snprintf(line, sizeof line, "%s\t%s\t%s\n", kind, a, b);
    if (log_file >= 0) syscall(SYS_write, log_file, line, length);
}

__attribute__((destructor)) static void end(void) {
    char count[32];
    snprintf(count, sizeof count, "%ld", atomic_load(&allocations));
    say("allocations", count, "");
}

static void die(void) {
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
}

/* The path of a name in an open directory. */
static void whole(char *path, int dir, const char *name) {
    char link[64], above[PATH_MAX];
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return;
    }
    if (dir == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    ssize_t length = readlink(link, above, sizeof above - 1);
    above[length < 0 ? 0 : length] = 0;
    if (name[0]) snprintf(path, PATH_MAX, "%.2000s/%.2000s", above, name);
    else snprintf(path, PATH_MAX, "%s", above);
}

static int ours(const char *path) {
    if (!root_length || strncmp(path, root, root_length)) return 0;
    return !path[root_length] || path[root_length] == '/';
}

/* Counts a call; whether it is the one that is to be disturbed. */
static int disturbed(const char *kind, const char *a, const char *b) {
    if (!ours(a) && !ours(b)) return 0;
    long number = atomic_fetch_add(&calls, 1) + 1;
    say(kind, a, b);
    return !memory && number == at;
}

#define FAIL(error) do { if (kills) die(); errno = error; return -1; } while (0)

static int opened(int dir, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    whole(path, dir, name);
    if ((flags & O_CREAT) && disturbed("create", path, "")) FAIL(ENOSPC);
    return syscall(SYS_openat, dir, name, flags | O_LARGEFILE, mode);
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list list; \
        va_start(list, flags); \
        mode = va_arg(list, mode_t); \
        va_end(list); \
    }

int open(const char *name, int flags, ...) { MODE(flags); return opened(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE(flags); return opened(AT_FDCWD, name, flags, mode); }
int openat(int dir, const char *name, int flags, ...) { MODE(flags); return opened(dir, name, flags, mode); }
int openat64(int dir, const char *name, int flags, ...) { MODE(flags); return opened(dir, name, flags, mode); }

ssize_t write(int file, const void *bytes, size_t size) {
    char path[PATH_MAX];
    whole(path, file, "");
    if (disturbed("write", path, "")) {
        syscall(SYS_write, file, bytes, size / 2);
        FAIL(ENOSPC);
    }
    return syscall(SYS_write, file, bytes, size);
}

static int synced(int file) {
    char path[PATH_MAX];
    whole(path, file, "");
    if (disturbed("sync", path, "")) FAIL(EIO);
    return ours(path) ? 0 : syscall(SYS_fsync, file);
}

int fsync(int file) { return synced(file); }
int fdatasync(int file) { return synced(file); }

static int renamed(int from, const char *a, int to, const char *b, unsigned flags) {
    char old[PATH_MAX], new[PATH_MAX];
    whole(old, from, a);
    whole(new, to, b);
    if (disturbed(flags ? "exchange" : "rename", old, new)) FAIL(EIO);
    if (flags && plain) {
        errno = EINVAL;
        return -1;
    }
    return syscall(SYS_renameat2, from, a, to, b, flags);
}

int rename(const char *a, const char *b) { return renamed(AT_FDCWD, a, AT_FDCWD, b, 0); }
int renameat(int from, const char *a, int to, const char *b) { return renamed(from, a, to, b, 0); }
int renameat2(int from, const char *a, int to, const char *b, unsigned flags) {
    return renamed(from, a, to, b, flags);
}

int mkdir(const char *name, mode_t mode) {
    char path[PATH_MAX];
    whole(path, AT_FDCWD, name);
    if (disturbed("mkdir", path, "")) FAIL(ENOSPC);
    return syscall(SYS_mkdirat, AT_FDCWD, name, mode);
}

static int removed(int dir, const char *name, int flags) {
    char path[PATH_MAX];
    whole(path, dir, name);
    if (disturbed("remove", path, "")) FAIL(EIO);
    return syscall(SYS_unlinkat, dir, name, flags);
}

int unlink(const char *name) { return removed(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return removed(AT_FDCWD, name, AT_REMOVEDIR); }
int unlinkat(int dir, const char *name, int flags) { return removed(dir, name, flags); }

/* Allocations. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);

static int refused(void) {
    long number = atomic_fetch_add(&allocations, 1) + 1;
    if (!memory || number != at) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return refused() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return refused() ? NULL : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return refused() ? NULL : __libc_realloc(old, size); }
void *memalign(size_t align, size_t size) { return refused() ? NULL : __libc_memalign(align, size); }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }
int posix_memalign(void **to, size_t align, size_t size) {
    void *found = memalign(align, size);
    if (!found) return ENOMEM;
    *to = found;
    return 0;
}

/* Threads. */
int pthread_create(pthread_t *thread, const pthread_attr_t *with, void *(*begin)(void *), void *of) {
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (alone) {
        say("thread", "", "");
        return EAGAIN;
    }
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, with, begin, of);
}
