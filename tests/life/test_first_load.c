/*
 * A fork while the first load of the process is drawing the seed that jansson hashes with. This is
 * a program of its own, as there is one first load only.
 */
#include "child.h"
#include "models.h"
#include "support/cmocka.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DRAWING_US = 50000 };

static struct test_directory directory;
static struct life_model model;
static sem_t drawing;

/* What jansson calls for the seed, under that name: drawing it takes a while. */
int slow_open(const char *path, int flags, ...) __asm__("open")
    __attribute__((visibility("default")));

int slow_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
    va_end(arguments);
    if (strcmp(path, "/dev/urandom") == 0) {
        sem_post(&drawing);
        usleep(DRAWING_US);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static int load(void *context)
{
    (void)context;
    return life_load_once(&model, &LOAD_OPTIONS(.threads = 1)) != RAFFIA_OK;
}

static void *load_first(void *argument)
{
    return (void *)(intptr_t)load(argument);
}

static void b8_a_child_forked_during_the_first_load_can_load(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    pthread_t thread;
    void *failed;
    sem_init(&drawing, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, load_first, NULL), 0);
    while (sem_wait(&drawing))
        ;
    assert_int_equal(child_run(load, NULL), 0);
    pthread_join(thread, &failed);
    assert_null(failed);
}

static int make_model(void **state)
{
    (void)state;
    test_directory_make(&directory);
    life_model_make(&model, &directory, "first", 256 * KIB, 1);
    return 0;
}

static int remove_model(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b8_a_child_forked_during_the_first_load_can_load),
    };
    return cmocka_run_group_tests_name("life first load", tests, make_model, remove_model);
}
