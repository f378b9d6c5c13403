/* Turns at the machine's huge pages: who counts them has none beside him, in whichever run. */
#include "driver/hugetlb_turn.h"
#include "support/cmocka.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Another run of the tests: the program anew, without the word that it is in somebody's turn. It
 * says "in" when it has its turn, and stays in it until its standard input ends. */
struct other {
    pid_t process;
    int in, out;
};

static struct other start_other(void)
{
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        unsetenv("RAFFIA_TEST_HUGETLB_TURN");
        if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
            execl("/proc/self/exe", "/proc/self/exe", "other", (char *)NULL);
        _exit(9);
    }
    close(in[0]);
    close(out[1]);
    return (struct other){child, in[1], out[0]};
}

static int be_other(void)
{
    char none;
    if (write(STDOUT_FILENO, "in", 2) != 2)
        return 1;
    return (int)read(STDIN_FILENO, &none, 1);
}

static void end_other(struct other *other)
{
    int how;
    close(other->in);
    assert_int_equal(waitpid(other->process, &how, 0), other->process);
    assert_int_equal(how, 0);
    close(other->out);
}

static void wait_for(const struct other *other)
{
    char text[2];
    assert_int_equal(read(other->out, text, 2), 2);
}

static bool is_in(const struct other *other)
{
    char text[2];
    assert_int_equal(fcntl(other->out, F_SETFL, O_NONBLOCK), 0);
    const bool in = read(other->out, text, 2) == 2;
    assert_int_equal(fcntl(other->out, F_SETFL, 0), 0);
    return in;
}

static void those_who_take_pages_share(void **state)
{
    (void)state;
    hugetlb_turn_share();
    struct other other = start_other(), third = start_other();
    wait_for(&other);
    wait_for(&third);
    end_other(&other);
    end_other(&third);
}

static void nobody_is_beside_who_counts(void **state)
{
    (void)state;
    if (!hugetlb_turn_alone())
        skip();
    struct other other = start_other();
    usleep(100000); /* it would be in long since */
    assert_false(is_in(&other));
    hugetlb_turn_share();
    wait_for(&other);
    end_other(&other);
}

/* A child keeps the other one in its turn for a while, and says so before it lets go. */
static void who_counts_waits_for_those_who_take(void **state)
{
    (void)state;
    struct other other = start_other();
    int out[2], how;
    pid_t keeper;
    char none;
    wait_for(&other);
    assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
    keeper = fork();
    assert_true(keeper >= 0);
    if (keeper == 0) {
        usleep(100000);
        _exit(write(out[1], "x", 1) == 1 ? 0 : 1); /* and so closes the other's input */
    }
    close(other.in);
    const bool alone = hugetlb_turn_alone();
    if (alone)
        assert_int_equal(read(out[0], &none, 1), 1);
    hugetlb_turn_share();
    assert_int_equal(waitpid(keeper, &how, 0), keeper);
    assert_int_equal(how, 0);
    assert_int_equal(waitpid(other.process, &how, 0), other.process);
    assert_int_equal(how, 0);
    close(other.out);
    close(out[0]);
    close(out[1]);
    if (!alone)
        skip();
}

int main(int count, char **words)
{
    (void)words;
    if (count > 1)
        return be_other();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_who_take_pages_share),
        cmocka_unit_test(nobody_is_beside_who_counts),
        cmocka_unit_test(who_counts_waits_for_those_who_take),
    };
    return cmocka_run_group_tests_name("turns at huge pages", tests, NULL, NULL);
}
