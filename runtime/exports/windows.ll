; What exports call of POSIX and C11, for Windows, which lacks it: by kernel32 and the library of C there. export.py
; links this into exports for Windows. Each function does what the exports ask of it, and no more.
;
; A mutex is an SRWLOCK and a condition a CONDITION_VARIABLE: a pointer each, zero when new.

declare ptr @_aligned_malloc(i64, i64)
declare void @_aligned_free(ptr)

define ptr @aligned_alloc(i64 %alignment, i64 %bytes) {
  %memory = call ptr @_aligned_malloc(i64 %bytes, i64 %alignment)
  ret ptr %memory
}

; All that exports free is aligned.
define void @free(ptr %memory) {
  call void @_aligned_free(ptr %memory)
  ret void
}

; --- threads -------------------------------------------------------------------------------------------------------

declare i32 @GetCurrentProcessId()
declare i32 @SwitchToThread()
declare i32 @QueryPerformanceCounter(ptr)
declare i32 @QueryPerformanceFrequency(ptr)
declare void @AcquireSRWLockExclusive(ptr)
declare void @ReleaseSRWLockExclusive(ptr)
declare i32 @SleepConditionVariableSRW(ptr, ptr, i32, i32)
declare void @WakeConditionVariable(ptr)
declare void @WakeAllConditionVariable(ptr)
declare ptr @CreateThread(ptr, i64, ptr, ptr, i32, ptr)
declare i32 @GetModuleHandleExA(i32, ptr, ptr)
declare i32 @CloseHandle(ptr)

define i32 @getpid() {
  %id = call i32 @GetCurrentProcessId()
  ret i32 %id
}

define i32 @sched_yield() {
  %switched = call i32 @SwitchToThread()
  ret i32 0
}

define i32 @clock_gettime(i32 %clock, ptr %time) {
  %now.at = alloca i64
  %frequency.at = alloca i64
  %1 = call i32 @QueryPerformanceCounter(ptr %now.at)
  %2 = call i32 @QueryPerformanceFrequency(ptr %frequency.at)
  %now = load i64, ptr %now.at
  %frequency = load i64, ptr %frequency.at
  %seconds = udiv i64 %now, %frequency
  %rest = urem i64 %now, %frequency
  %scaled = mul i64 %rest, 1000000000
  %fraction = udiv i64 %scaled, %frequency
  store i64 %seconds, ptr %time
  %fraction.at = getelementptr i64, ptr %time, i64 1
  store i64 %fraction, ptr %fraction.at
  ret i32 0
}

define i32 @pthread_mutex_init(ptr %mutex, ptr %attributes) {
  store ptr null, ptr %mutex
  ret i32 0
}

define i32 @pthread_mutex_lock(ptr %mutex) {
  call void @AcquireSRWLockExclusive(ptr %mutex)
  ret i32 0
}

define i32 @pthread_mutex_unlock(ptr %mutex) {
  call void @ReleaseSRWLockExclusive(ptr %mutex)
  ret i32 0
}

define i32 @pthread_cond_init(ptr %condition, ptr %attributes) {
  store ptr null, ptr %condition
  ret i32 0
}

define i32 @pthread_cond_wait(ptr %condition, ptr %mutex) {
  %1 = call i32 @SleepConditionVariableSRW(ptr %condition, ptr %mutex, i32 -1, i32 0)     ; INFINITE
  ret i32 0
}

define i32 @pthread_cond_signal(ptr %condition) {
  call void @WakeConditionVariable(ptr %condition)
  ret i32 0
}

define i32 @pthread_cond_broadcast(ptr %condition) {
  call void @WakeAllConditionVariable(ptr %condition)
  ret i32 0
}

; A library whose threads sleep in it must not be unmapped: it is pinned. Stacks are 8 MiB at most, as on Linux.
define i32 @pthread_create(ptr %thread, ptr %attributes, ptr %start, ptr %argument) {
  %module = alloca ptr
  %1 = call i32 @GetModuleHandleExA(i32 5, ptr %start, ptr %module)                       ; …_PIN | …_FROM_ADDRESS
  %handle = call ptr @CreateThread(ptr null, i64 8388608, ptr %start, ptr %argument, i32 65536, ptr null)
  store ptr %handle, ptr %thread                                                          ; STACK_SIZE_…_RESERVATION
  %none = icmp eq ptr %handle, null
  %code = zext i1 %none to i32
  ret i32 %code
}

define i32 @pthread_detach(i64 %thread) {
  %handle = inttoptr i64 %thread to ptr
  %1 = call i32 @CloseHandle(ptr %handle)
  ret i32 0
}

; There are no signals that a worker could take.
define i32 @pthread_sigmask(i32 %how, ptr %set, ptr %before) {
  ret i32 0
}

define i32 @sigfillset(ptr %set) {
  ret i32 0
}

define i32 @sigdelset(ptr %set, i32 %signal) {
  ret i32 0
}

; --- files that are read, and mapped as a whole --------------------------------------------------------------------

declare ptr @CreateFileA(ptr, i32, i32, ptr, i32, i32, ptr)
declare i32 @GetFileSizeEx(ptr, ptr)
declare ptr @CreateFileMappingA(ptr, ptr, i32, i32, i32, ptr)
declare ptr @MapViewOfFile(ptr, i32, i32, i32, i64)
declare i32 @UnmapViewOfFile(ptr)

; A handle has 32 bits that count, in programs of 64 bits as well.
define internal ptr @handle(i32 %file) {
  %wide = sext i32 %file to i64
  %handle = inttoptr i64 %wide to ptr
  ret ptr %handle
}

define i32 @open(ptr %path, i32 %flags, ...) {
  ; GENERIC_READ, FILE_SHARE_READ, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL; where there is none, the handle is -1
  %handle = call ptr @CreateFileA(ptr %path, i32 -2147483648, i32 1, ptr null, i32 3, i32 128, ptr null)
  %file = ptrtoint ptr %handle to i32
  ret i32 %file
}

define i32 @close(i32 %file) {
  %handle = call ptr @handle(i32 %file)
  %1 = call i32 @CloseHandle(ptr %handle)
  ret i32 0
}

; Of a file's end alone.
define i64 @lseek(i32 %file, i64 %offset, i32 %whence) {
  %size.at = alloca i64
  store i64 -1, ptr %size.at
  %handle = call ptr @handle(i32 %file)
  %1 = call i32 @GetFileSizeEx(ptr %handle, ptr %size.at)
  %size = load i64, ptr %size.at
  ret i64 %size
}

define ptr @mmap(ptr %where, i64 %bytes, i32 %protection, i32 %flags, i32 %file, i64 %offset) {
  %handle = call ptr @handle(i32 %file)
  %mapping = call ptr @CreateFileMappingA(ptr %handle, ptr null, i32 2, i32 0, i32 0, ptr null)   ; PAGE_READONLY
  %none = icmp eq ptr %mapping, null
  br i1 %none, label %failed, label %map
map:
  %view = call ptr @MapViewOfFile(ptr %mapping, i32 4, i32 0, i32 0, i64 0)               ; FILE_MAP_READ
  %1 = call i32 @CloseHandle(ptr %mapping)
  %unmapped = icmp eq ptr %view, null
  br i1 %unmapped, label %failed, label %done
failed:
  br label %done
done:
  %image = phi ptr [ %view, %map ], [ inttoptr (i64 -1 to ptr), %failed ]                 ; MAP_FAILED
  ret ptr %image
}

define i32 @munmap(ptr %image, i64 %bytes) {
  %1 = call i32 @UnmapViewOfFile(ptr %image)
  ret i32 0
}
