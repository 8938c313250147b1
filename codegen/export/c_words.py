"""Words that names of exports may not be: of the languages that headers are for, and of the libraries of all programs.

By standard and header, so that it can be told what is missing. Names that begin with an underscore, or have two in a
row, are left out: ``names.py`` makes none.
"""

from __future__ import annotations

KEYWORDS_OF_C = (
    "alignas alignof auto bool break case char const constexpr continue default do double else enum extern false float "
    "for goto if inline int long nullptr register restrict return short signed sizeof static static_assert struct "
    "switch thread_local true typedef typeof typeof_unqual union unsigned void volatile while asm fortran"
)
"""ISO C23, 6.4.1, and what annex J.5 says to be common."""

KEYWORDS_OF_CPP = (
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl "
    "concept const consteval constexpr constinit const_cast continue contract_assert co_await co_return co_yield "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if "
    "inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch "
    "template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile "
    "wchar_t while xor xor_eq atomic_cancel atomic_commit atomic_noexcept reflexpr synchronized import module"
)
"""ISO C++26, [lex.key], [lex.digraph], and those of technical specifications."""

MACROS_AND_TYPES = (
    "NULL EOF BUFSIZ FOPEN_MAX FILENAME_MAX L_tmpnam TMP_MAX SEEK_CUR SEEK_END SEEK_SET RAND_MAX EXIT_SUCCESS "
    "EXIT_FAILURE MB_CUR_MAX CLOCKS_PER_SEC TIME_UTC INFINITY NAN HUGE_VAL HUGE_VALF HUGE_VALL I "
    "complex imaginary errno stdin stdout stderr assert offsetof setjmp va_start va_end va_arg va_copy "
    "size_t ptrdiff_t max_align_t nullptr_t wint_t FILE fpos_t div_t ldiv_t lldiv_t time_t clock_t jmp_buf va_list "
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t uintmax_t "
    "off_t ssize_t mode_t pid_t uid_t gid_t dev_t ino_t linux unix i386 "
    "IN OUT OPTIONAL CONST VOID TRUE FALSE DELETE ERROR near far small interface min max"
)
"""What headers of C and POSIX, and those of Windows in the last line, put in place of a word."""

_LIMITS = " ".join(
    f"{kind}{limit}"
    for kind in ("CHAR_", "SCHAR_", "UCHAR_", "SHRT_", "USHRT_", "INT_", "UINT_", "LONG_", "ULONG_", "LLONG_",
                 "ULLONG_", "SIZE_", "PTRDIFF_", "INTPTR_", "UINTPTR_", "INTMAX_", "UINTMAX_", "FLT_", "DBL_", "LDBL_")
    for limit in ("MIN", "MAX", "BIT", "WIDTH", "DIG", "EPSILON", "RADIX")
)  # fmt: skip

_MATH = (
    "acos asin atan atan2 cos sin tan acospi asinpi atanpi atan2pi cospi sinpi tanpi acosh asinh atanh cosh sinh tanh "
    "exp exp10 exp10m1 exp2 exp2m1 expm1 frexp ilogb ldexp llogb log log10 log10p1 log1p log2 log2p1 logb logp1 modf "
    "scalbn scalbln cbrt compoundn fabs hypot pow pown powr rootn rsqrt sqrt erf erfc lgamma tgamma ceil floor "
    "nearbyint rint lrint llrint round lround llround roundeven trunc fromfp ufromfp fmod remainder remquo copysign "
    "nan nextafter nexttoward getpayload setpayload setpayloadsig totalorder totalordermag fmaxmag fminmag fromfpx "
    "ufromfpx scalb clog10 ffma dadd dsub dmul ddiv dfma dsqrt nextup nextdown canonicalize fdim fmax fmin fmaximum "
    "fminimum fma fadd fsub fmul fdiv fsqrt cacos casin catan ccos csin ctan cacosh casinh catanh ccosh csinh ctanh "
    "cexp clog cabs cpow csqrt carg cimag conj cproj creal j0 j1 jn y0 y1 yn gamma drem significand sincos pow10 "
    "finite"
)
"""math.h and complex.h, each as it is and for float and long double; and what libraries have had before."""

_STANDARD = (
    "main abort abs aligned_alloc at_quick_exit atexit atof atoi atol atoll bsearch calloc div exit free free_sized "
    "getenv labs ldiv llabs lldiv malloc mblen mbstowcs mbtowc memalignment qsort quick_exit rand realloc srand "
    "strtod strtof strtol strtold strtoll strtoul strtoull system wcstombs wctomb clearerr fclose feof ferror fflush "
    "fgetc fgetpos fgets fopen fprintf fputc fputs fread freopen fscanf fseek fsetpos ftell fwrite getc getchar gets "
    "perror printf putc putchar puts remove rename rewind scanf setbuf setvbuf snprintf sprintf sscanf tmpfile tmpnam "
    "ungetc vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf memccpy memchr memcmp memcpy memmove memset "
    "memset_explicit strcat strchr strcmp strcoll strcpy strcspn strdup strerror strlen strncat strncmp strncpy "
    "strndup strpbrk strrchr strspn strstr strtok strxfrm isalnum isalpha isblank iscntrl isdigit isgraph islower "
    "isprint ispunct isspace isupper isxdigit tolower toupper asctime clock ctime difftime gmtime gmtime_r localtime "
    "localtime_r mktime strftime time timegm timespec_get timespec_getres raise signal longjmp localeconv setlocale "
    "imaxabs imaxdiv strtoimax strtoumax matherr fedisableexcept feenableexcept fegetexcept fegetmode fesetmode "
    "fesetexcept fetestexceptflag feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feraiseexcept "
    "fesetenv fesetexceptflag fesetround fetestexcept feupdateenv call_once btowc fgetwc fgetws fputwc fputws fwide "
    "fwprintf fwscanf getwc getwchar mbrlen mbrtowc mbsinit mbsrtowcs putwc putwchar swprintf swscanf ungetwc wcscat "
    "wcschr wcscmp wcscpy wcslen wcsncmp wcsncpy wcsstr wcstod wcstol wcstoul wctob wmemchr wmemcmp wmemcpy wmemmove "
    "wmemset wprintf wscanf iswalpha iswdigit iswspace towlower towupper"
)
"""ISO C23, annex B: stdlib, stdio, string, ctype, time, signal, setjmp, locale, inttypes, fenv, wchar."""

_POSIX = (
    "accept access alarm bind brk bcmp bcopy bzero cfgetispeed chdir chmod chown chroot clock_getres clock_gettime "
    "clock_nanosleep clock_settime close closedir connect creat crypt daemon dlclose dlerror dlopen dlsym dprintf dup "
    "dup2 endpwent execl execle execlp execv execve execvp fchdir fchmod fchown fcntl fdatasync fdopen ffs fileno "
    "flock fmemopen fnmatch fork fpathconf fstat fsync ftok ftruncate ftw futimes getaddrinfo getcwd getdelim getegid "
    "geteuid getgid getgroups gethostname getitimer getline getlogin getopt getpagesize getpeername getpgid getpgrp "
    "getpid getppid getpriority getrlimit getrusage getsid getsockname getsockopt gettimeofday getuid glob hcreate "
    "hsearch htonl htons index inet_ntop inet_pton initgroups ioctl isatty kill killpg lchown link listen lockf "
    "lsearch lseek lstat madvise mkdir mkdtemp mkfifo mknod mkstemp mlock mmap mprotect mq_open msync munlock munmap "
    "nanosleep nice ntohl ntohs open openat opendir pathconf pause pclose pipe poll popen posix_memalign pread preadv "
    "pselect psignal putenv pwrite pwritev random read readdir readlink readv recv recvfrom recvmsg regcomp regexec "
    "rewinddir rindex rmdir sbrk sched_getcpu sched_yield seekdir select sem_init sem_post sem_wait semctl send "
    "sendmsg sendto setegid setenv seteuid setgid setitimer setpgid setpriority setrlimit setsid setsockopt setuid "
    "shmat shmctl shmdt shmget shutdown sigaction sigaddset sigdelset sigemptyset sigfillset sigismember sigpending "
    "sigprocmask sigsuspend sigwait sleep socket socketpair srandom stat statvfs stpcpy strcasecmp strerror_r strnlen "
    "strsep strsignal strtok_r swab symlink sync sysconf syslog tcgetattr tcsetattr telldir tempnam times toascii "
    "truncate ttyname tzset umask uname unlink unsetenv usleep utime utimes vfork wait waitpid write writev environ "
    "optarg optind timezone daylight signgam"
)
"""POSIX.1-2024, what common programs call, and ``sched_getcpu`` of Linux; ``pthread_`` is refused as a whole."""

_KERNEL32 = (
    "AcquireSRWLockExclusive CloseHandle CreateFileA CreateFileMappingA CreateThread GetCurrentProcessId GetFileSizeEx "
    "GetModuleHandleExA MapViewOfFile QueryPerformanceCounter QueryPerformanceFrequency ReleaseSRWLockExclusive "
    "SleepConditionVariableSRW SwitchToThread UnmapViewOfFile WakeAllConditionVariable WakeConditionVariable"
)
"""Windows, what exports call of it themselves."""

WORDS = frozenset(f"{KEYWORDS_OF_C} {KEYWORDS_OF_CPP} {MACROS_AND_TYPES} {_LIMITS}".split())
"""No identifier of a header may be one of these."""

FUNCTIONS = frozenset(
    [f"{name}{kind}" for name in _MATH.split() for kind in ("", "f", "l")] + f"{_STANDARD} {_POSIX} {_KERNEL32}".split()
)
"""Names that a function of an export would take from the program that it is linked to."""

FAMILIES = frozenset(["cnd", "mtx", "pthread", "sem", "thrd", "timer", "tss"])
"""What names of functions of C and POSIX begin with, as in ``sem_destroy``: those beside a function of an export would
be among them."""
