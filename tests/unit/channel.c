#include "channel.h"

#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

/* The signal by which a polling sampler is woken. */
#ifdef SIGSTKFLT
enum { WAKE_SIGNAL = SIGSTKFLT };
#else
enum { WAKE_SIGNAL = SIGPWR };
#endif

/* How the sampler waits for the next command. */
enum waiting { POLLING, RESTING, SPINNING, IN_TURN };

/* A sampler with nothing to sample, whose only event is a pipe. It answers the nth command with
 * 8 * n + the command. */
struct sampler {
    struct channel channel;
    enum waiting waiting;
    int events[2];
    pthread_t thread;

    int answered;
    int event_bytes;
    int wakes_left_pending; /* signals still there when their command had been answered */
    int overslept;          /* times that a command waited until a rest was over */
};

enum { REST_NANOSECONDS = 999999999 };

static bool wake_signal_is_pending(void)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, WAKE_SIGNAL) == 1;
}

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void rest(struct sampler *sampler)
{
    double before = seconds_now();

    profil_channel_rest(&sampler->channel, REST_NANOSECONDS);
    /* A command that comes ends the rest: one that is there when the rest ran out was not heard. */
    if (seconds_now() - before > 0.999 && profil_channel_command(&sampler->channel) != COMMAND_NONE)
        sampler->overslept++;
}

static void poll_events(struct sampler *sampler)
{
    struct pollfd descriptors[2] = {{.fd = sampler->events[0], .events = POLLIN}};
    char byte;

    if (profil_channel_poll(&sampler->channel, descriptors, 2) > 0 &&
        descriptors[0].revents & POLLIN)
        sampler->event_bytes += (int)read(sampler->events[0], &byte, 1);
}

static void wait_for_command(struct sampler *sampler, int turn)
{
    enum waiting waiting =
        sampler->waiting == IN_TURN ? (enum waiting)(turn % 3) : sampler->waiting;

    if (waiting == POLLING)
        poll_events(sampler);
    else if (waiting == RESTING)
        rest(sampler);
}

static void answer(struct sampler *sampler, enum command command)
{
    if (command == COMMAND_START)
        profil_channel_answer(&sampler->channel, profil_channel_attach(&sampler->channel, true));
    else
        profil_channel_answer(&sampler->channel, 8 * sampler->answered++ + (int)command);
    sampler->wakes_left_pending += wake_signal_is_pending();
}

static void block_all_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void *obey_until_stop(void *argument)
{
    struct sampler *sampler = argument;
    enum command command = COMMAND_NONE;

    block_all_signals();
    for (int turn = 0; command != COMMAND_STOP; turn++) {
        command = profil_channel_command(&sampler->channel);
        if (command == COMMAND_NONE)
            wait_for_command(sampler, turn);
        else
            answer(sampler, command);
    }
    close(sampler->channel.signal_fd);
    return NULL;
}

static struct sampler sampler;

static void begin(void *(*run)(void *), enum waiting waiting)
{
    sampler = (struct sampler){.waiting = waiting};
    cr_assert_eq(pipe2(sampler.events, O_NONBLOCK), 0);
    profil_channel_init(&sampler.channel);
    cr_assert_eq(pthread_create(&sampler.thread, NULL, run, &sampler), 0);
    cr_assert_eq(profil_channel_await_start(&sampler.channel), 0);
}

static void end(void)
{
    pthread_join(sampler.thread, NULL);
    close(sampler.events[0]);
    close(sampler.events[1]);
}

/* Gives the nth command and checks that the answer is the answer to it. */
static void command(enum command command, int n)
{
    int result = profil_channel_call(&sampler.channel, command);

    if (result != 8 * n + (int)command)
        cr_assert_fail("command %d, the %dth, was answered by %d", command, n, result);
}

static void stop(int commands)
{
    command(COMMAND_STOP, commands);
    end();
    cr_assert_eq(sampler.answered, commands + 1);
    cr_assert_eq(sampler.overslept, 0);
}

/* So that commands meet the sampler at any point of its way into sleep. */
static void dawdle(struct generator *generator)
{
    for (volatile uint64_t left = generator_below(generator, 4000); left > 0; left--)
        ;
}

static void check_commands(enum waiting waiting, int commands)
{
    struct generator generator = {(uint64_t)waiting};

    begin(obey_until_stop, waiting);
    for (int n = 0; n < commands; n++) {
        command(COMMAND_CHANGE, n);
        dawdle(&generator);
    }
    stop(commands);
    cr_assert_eq(sampler.wakes_left_pending, 0);
}

/* A command that is lost is never answered: that is what the timeouts are for. */
TestSuite(channel, .timeout = 60);

Test(channel, each_command_to_a_polling_sampler_is_answered_once)
{
    check_commands(POLLING, 5000);
}

Test(channel, each_command_to_a_resting_sampler_is_answered_once)
{
    check_commands(RESTING, 5000);
}

Test(channel, each_command_to_a_busy_sampler_is_answered_once)
{
    check_commands(SPINNING, 5000);
}

Test(channel, each_command_to_a_sampler_that_polls_rests_and_works_in_turn_is_answered_once)
{
    check_commands(IN_TURN, 10000);
}

Test(channel, the_descriptors_of_the_caller_wake_the_sampler_too)
{
    enum { EVENTS = 1000 };
    const char byte = 1;

    begin(obey_until_stop, POLLING);
    for (int n = 0; n < EVENTS; n++) {
        cr_assert_eq(write(sampler.events[1], &byte, 1), 1);
        command(COMMAND_CHANGE, n);
    }
    /* Nothing else would read the rest of them. */
    for (int left = 1; left > 0;) {
        cr_assert_eq(ioctl(sampler.events[0], FIONREAD, &left), 0);
        sched_yield();
    }
    stop(EVENTS);
    cr_assert_eq(sampler.event_bytes, EVENTS);
    cr_assert_eq(sampler.wakes_left_pending, 0);
}

static void *give_one_command(void *result)
{
    *(int *)result = profil_channel_call(&sampler.channel, COMMAND_CHANGE);
    return NULL;
}

/* A caller that finds the sampler awake sends no signal: nothing would end the poll. */
Test(channel, a_command_that_came_just_before_the_poll_is_not_slept_over)
{
    struct pollfd descriptor;
    pthread_t caller;
    int result = 0;

    profil_channel_init(&sampler.channel);
    block_all_signals();
    answer(&sampler, COMMAND_START);
    cr_assert_eq(pthread_create(&caller, NULL, give_one_command, &result), 0);
    while (profil_channel_command(&sampler.channel) != COMMAND_CHANGE)
        sched_yield();
    /* The caller looks for a poll after it has given its command. */
    while (atomic_load(&sampler.channel.notice) == 0)
        sched_yield();
    cr_assert_eq(profil_channel_poll(&sampler.channel, &descriptor, 1), 0);
    profil_channel_answer(&sampler.channel, -EFAULT);
    pthread_join(caller, NULL);
    cr_assert_eq(result, -EFAULT);
}

Test(channel, a_failed_start_is_answered_too)
{
    struct channel channel;

    profil_channel_init(&channel);
    cr_assert_eq(profil_channel_command(&channel), COMMAND_START);
    profil_channel_answer(&channel, -EMFILE);
    cr_assert_eq(profil_channel_await_start(&channel), -EMFILE);
    cr_assert_eq(profil_channel_command(&channel), COMMAND_NONE);
}

Test(channel, the_signal_that_somebody_else_sent_to_the_process_is_not_taken)
{
    enum { COMMANDS = 3000 };
    sigset_t wake;
    const struct timespec at_once = {0};

    block_all_signals();
    begin(obey_until_stop, IN_TURN);
    command(COMMAND_CHANGE, 0);
    cr_assert_eq(kill(getpid(), WAKE_SIGNAL), 0);
    for (int n = 1; n < COMMANDS; n++)
        command(COMMAND_CHANGE, n);
    stop(COMMANDS);

    cr_assert(wake_signal_is_pending());
    sigemptyset(&wake);
    sigaddset(&wake, WAKE_SIGNAL);
    cr_assert_eq(sigtimedwait(&wake, NULL, &at_once), WAKE_SIGNAL);
}

Test(channel, the_signal_that_somebody_else_sent_to_the_sampler_disturbs_no_command)
{
    enum { COMMANDS = 3000 };

    begin(obey_until_stop, IN_TURN);
    for (int n = 0; n < COMMANDS; n++) {
        cr_assert_eq(syscall(SYS_tgkill, getpid(), sampler.channel.sampler, WAKE_SIGNAL), 0);
        command(COMMAND_CHANGE, n);
    }
    stop(COMMANDS);
}

static void ignore_alarm(int signal)
{
    (void)signal;
}

Test(channel, a_caller_that_is_interrupted_by_its_own_signals_waits_on)
{
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {0};
    const struct sigaction action = {.sa_handler = ignore_alarm};
    struct generator generator = {3};

    cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
    begin(obey_until_stop, IN_TURN);
    cr_assert_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int n = 0; n < 5000; n++) {
        command(COMMAND_CHANGE, n);
        dawdle(&generator);
    }
    cr_assert_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
    stop(5000);
}

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static int commands_given;

static void *give_commands(void *count)
{
    for (int i = 0; i < *(int *)count; i++) {
        pthread_mutex_lock(&turn_lock);
        command(COMMAND_CHANGE, commands_given++);
        pthread_mutex_unlock(&turn_lock);
    }
    return NULL;
}

Test(channel, callers_that_take_turns_each_get_their_own_answer)
{
    enum { CALLERS = 16 };
    pthread_t callers[CALLERS];
    int each = 400;

    begin(obey_until_stop, IN_TURN);
    for (int i = 0; i < CALLERS; i++)
        cr_assert_eq(pthread_create(&callers[i], NULL, give_commands, &each), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    stop(CALLERS * each);
    cr_assert_eq(sampler.wakes_left_pending, 0);
}

/* Ends by itself after some hundred turns; a command that came first is answered. */
static void *close_early(void *argument)
{
    struct sampler *self = argument;

    block_all_signals();
    for (int turn = 0; turn < 100; turn++) {
        enum command command = profil_channel_command(&self->channel);

        if (command != COMMAND_NONE)
            answer(self, command);
    }
    while (!profil_channel_close(&self->channel))
        answer(self, profil_channel_command(&self->channel));
    close(self->channel.signal_fd);
    return NULL;
}

Test(channel, a_sampler_that_closes_answers_what_came_before_and_nothing_after)
{
    for (int round = 0; round < 500; round++) {
        struct generator generator = {(uint64_t)round};
        int answered = 0, result;

        begin(close_early, SPINNING);
        while ((result = profil_channel_call(&sampler.channel, COMMAND_CHANGE)) ==
               8 * answered + (int)COMMAND_CHANGE) {
            answered++;
            dawdle(&generator);
        }
        cr_assert_eq(result, -ESRCH);
        cr_assert_eq(profil_channel_call(&sampler.channel, COMMAND_STOP), -ESRCH);
        cr_assert_eq(profil_channel_call(&sampler.channel, COMMAND_CHANGE), -ESRCH);
        end();
        cr_assert_eq(sampler.answered, answered);
    }
}

Test(channel, a_channel_with_a_command_in_it_does_not_close)
{
    struct channel channel;

    profil_channel_init(&channel);
    cr_assert_not(profil_channel_close(&channel));
    profil_channel_answer(&channel, 0);
    cr_assert(profil_channel_close(&channel));
    cr_assert_eq(profil_channel_command(&channel), COMMAND_CLOSED);
    cr_assert_eq(profil_channel_call(&channel, COMMAND_STOP), -ESRCH);
}
