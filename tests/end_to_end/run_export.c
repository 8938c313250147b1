/* Runs an exported model: run_export <threads> [<weights>] < inputs > outputs, on two POSIX threads with a context each,
   whose outputs follow each other. MODEL_HEADER, sizes, and BESIDE or DIMS are
   given when it is compiled. */
#define _POSIX_C_SOURCE 200809L
#include MODEL_HEADER

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif

#if !defined DIMS && (NET_X_1_ELEMENTS != ROWS * COLUMNS || NET_OUTPUT0_ELEMENTS != ROWS * WIDTH)
#error the header gives other sizes
#endif

static float x[ROWS * COLUMNS];
static float y[2][ROWS * WIDTH];
static float z[2][ROWS * DEPTH];
static int codes[2];
static int threads;
static const char *path;

static int make(net_context **context, int count) {
#ifdef BESIDE
    return net_create(context, count, path);
#else
    return net_create(context, count);
#endif
}

static int run(net_context *context, const float *in, float *first, float *second) {
#ifdef DIMS
    return net_run(context, in, first, second, ROWS);
#else
    return net_run(context, in, first, second);
#endif
}

static void *work(void *number) {
    int k = *(int *)number;
    net_context *context;
    codes[k] = make(&context, threads);
    for (int round = 0; codes[k] == NET_OK && round < 50; ++round) {
        memset(y[k], 0xff, sizeof y[k]);
        codes[k] = run(context, x, y[k], z[k]);
    }
    net_destroy(context);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t workers[2];
    int numbers[2] = {0, 1};
    net_context *context = NULL;
#ifdef _WIN32
    _setmode(_fileno(stdin), _O_BINARY);
    _setmode(_fileno(stdout), _O_BINARY);
#endif
    if (argc < 2 || fread(x, sizeof x, 1, stdin) != 1) return 9;
    threads = atoi(argv[1]);
    path = argc > 2 ? argv[2] : NULL;
    if (make(NULL, 1) != NET_BAD_ARGUMENT || make(&context, 0) != NET_BAD_ARGUMENT || context != NULL) return 8;
    if (run(NULL, x, y[0], z[0]) != NET_BAD_ARGUMENT) return 7;
    net_destroy(NULL);
    for (int k = 0; k < 2; ++k) pthread_create(&workers[k], NULL, work, &numbers[k]);
    for (int k = 0; k < 2; ++k) pthread_join(workers[k], NULL);
    for (int k = 0; k < 2; ++k) {
        if (codes[k] != NET_OK) {
            fprintf(stderr, "%d %s\n", codes[k], net_message(codes[k]));
            return 1;
        }
        if (fwrite(y[k], sizeof y[k], 1, stdout) != 1 || fwrite(z[k], sizeof z[k], 1, stdout) != 1) return 6;
    }
    return 0;
}
