/* What exports for Windows call of their system, by Linux and the library of C here: with this beside it, their code runs
   in tests, in an object of ELF. Only what exports ask for is done. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((ms_abi))

/* Probes the stack for large frames; all registers stay. */
__asm__(".globl ___chkstk_ms\n___chkstk_ms: ret\n");

API void *_aligned_malloc(size_t size, size_t alignment) { return aligned_alloc(alignment, size); }
API void _aligned_free(void *memory) { free(memory); }
API int windows_memcmp(const void *a, const void *b, size_t size) { return memcmp(a, b, size); }
API void *windows_memcpy(void *a, const void *b, size_t size) { return memcpy(a, b, size); }
API void *windows_memmove(void *a, const void *b, size_t size) { return memmove(a, b, size); }
API void *windows_memset(void *a, int byte, size_t size) { return memset(a, byte, size); }

API uint32_t GetCurrentProcessId(void) { return (uint32_t)getpid(); }

API int SwitchToThread(void) { return !sched_yield(); }

API int QueryPerformanceFrequency(int64_t *frequency) {
    *frequency = 10000000;
    return 1;
}

API int QueryPerformanceCounter(int64_t *count) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *count = now.tv_sec * 10000000 + now.tv_nsec / 100;
    return 1;
}

/* A lock is 1 while it is held; a condition counts how often it was signalled. */
API void AcquireSRWLockExclusive(void **lock) {
    while (__atomic_exchange_n((int *)lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

API void ReleaseSRWLockExclusive(void **lock) { __atomic_store_n((int *)lock, 0, __ATOMIC_RELEASE); }

API int SleepConditionVariableSRW(void **condition, void **lock, uint32_t milliseconds, uint32_t flags) {
    int seen = __atomic_load_n((int *)condition, __ATOMIC_SEQ_CST);
    if (milliseconds != 0xffffffff || flags != 0) abort();
    ReleaseSRWLockExclusive(lock);
    syscall(SYS_futex, condition, FUTEX_WAIT_PRIVATE, seen, NULL);
    AcquireSRWLockExclusive(lock);
    return 1;
}

static void wake(void **condition, int count) {
    __atomic_add_fetch((int *)condition, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, condition, FUTEX_WAKE_PRIVATE, count);
}

API void WakeConditionVariable(void **condition) { wake(condition, 1); }
API void WakeAllConditionVariable(void **condition) { wake(condition, INT32_MAX); }

typedef API uint32_t (*start_routine)(void *);
struct work {
    start_routine start;
    void *argument;
};

static void *begin(void *given) {
    struct work work = *(struct work *)given;
    free(given);
    work.start(work.argument);
    return NULL;
}

API void *CreateThread(void *security, size_t stack, start_routine start, void *argument, uint32_t flags, uint32_t *id) {
    pthread_t thread;
    struct work *work = malloc(sizeof *work);
    if (security != NULL || stack != 8 << 20 || flags != 0x10000 || id != NULL) abort();
    *work = (struct work){start, argument};
    return pthread_create(&thread, NULL, begin, work) == 0 ? (void *)thread : NULL;
}

static int pinned;
API int GetModuleHandleExA(uint32_t flags, const void *address, void **module) {
    if (flags != 5 || address == NULL) abort();
    *module = &pinned;
    return 1;
}

/* Handles are threads, which have many bits here, and files and mappings, which are the number of a file, plus 1000. */
API int CloseHandle(void *handle) {
    if ((intptr_t)handle > 1 << 20) return pthread_detach((pthread_t)handle) == 0;
    return close((int)(intptr_t)handle - 1000) == 0;
}

API void *CreateFileA(
    const char *path, uint32_t access, uint32_t share, void *security, uint32_t how, uint32_t flags, void *like
) {
    int file = open(path, O_RDONLY);
    if (access != 0x80000000 || share != 1 || security || how != 3 || flags != 128 || like) abort();
    return (void *)(intptr_t)(file < 0 ? -1 : file + 1000);
}

API int GetFileSizeEx(void *handle, int64_t *size) {
    struct stat about;
    if (fstat((int)(intptr_t)handle - 1000, &about) != 0) return 0;
    *size = about.st_size;
    return 1;
}

API void *CreateFileMappingA(
    void *handle, void *security, uint32_t protection, uint32_t high, uint32_t low, const char *name
) {
    if (security != NULL || protection != 2 || high != 0 || low != 0 || name != NULL) abort();
    return (void *)(intptr_t)(dup((int)(intptr_t)handle - 1000) + 1000);
}

static size_t mapped;
API void *MapViewOfFile(void *handle, uint32_t access, uint32_t high, uint32_t low, size_t bytes) {
    int64_t size;
    void *view;
    if (access != 4 || high != 0 || low != 0 || bytes != 0 || !GetFileSizeEx(handle, &size)) abort();
    mapped = (size_t)size;
    view = mmap(NULL, mapped, PROT_READ, MAP_PRIVATE, (int)(intptr_t)handle - 1000, 0);
    return view == MAP_FAILED ? NULL : view;
}

API int UnmapViewOfFile(void *view) { return munmap(view, mapped) == 0; }
