/* PAPI_sprofil() on the task clock: a signal at each sample, and a count in PAPI's handler. Each
 * thread has to set up and start its own. */
#include "backend.h"
#include "ranges.h"

#include <dlfcn.h>
#include <errno.h>
#include <papi.h>
#include <perfmon/pfmlib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

const bool backend_sees_all_threads = false;

static enum scope wanted;
static int sample_period;
static const char *failure = "";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counts sum;

typedef pfm_err_t pmu_question(pfm_pmu_t pmu, pfm_pmu_info_t *info);

static bool is_processor(const pfm_pmu_info_t *info)
{
    return info->is_present && info->is_dfl && info->type == PFM_PMU_TYPE_CORE;
}

static bool has_processor(pmu_question *ask)
{
    for (int pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX; pmu++) {
        pfm_pmu_info_t info = {.size = sizeof(info)};

        if (ask((pfm_pmu_t)pmu, &info) == PFM_SUCCESS && is_processor(&info))
            return true;
    }
    return false;
}

/* Stands before libpfm4's. Without counters of the processor, as on most virtual machines, PAPI
 * uses no perf event at all, software events included; there it is told that the latter are those.
 */
pfm_err_t pfm_get_pmu_info(pfm_pmu_t pmu, pfm_pmu_info_t *info)
{
    pmu_question *ask = (pmu_question *)dlsym(RTLD_NEXT, "pfm_get_pmu_info");
    pfm_err_t result;

    if (!ask)
        return PFM_ERR_NOTSUPP;
    result = ask(pmu, info);
    if (result == PFM_SUCCESS && pmu == PFM_PMU_PERF_EVENT && !has_processor(ask)) {
        info->type = PFM_PMU_TYPE_CORE;
        info->is_dfl = 1;
        info->num_cntrs = 1; /* with none it does not profile */
    }
    return result;
}

/* Of the calling thread. PAPI counts without atomic operations: each thread has its own counters.
 */
static _Thread_local struct range_counters *ranges;
static _Thread_local PAPI_sprofil_t entries[HOT_FUNCTIONS]; /* read while it counts */
static _Thread_local int event_set = PAPI_NULL, event_code;

static int failed(const char *what)
{
    failure = what;
    return -EIO;
}

/* PAPI reads an address by the entry that begins next before it, so that one for everywhere else
 * cannot stand beside others. A scale of 65536 is a counter for each two bytes, of any width. */
static int profile_ranges(unsigned int flags, int threshold)
{
    if (wanted == SCOPE_TOTAL) {
        entries[0] = (PAPI_sprofil_t){.pr_base = &ranges->elsewhere,
                                      .pr_size = sizeof(ranges->elsewhere),
                                      .pr_scale = OVERFLOW_SCALE};
        return PAPI_sprofil(entries, 1, event_set, event_code, threshold, (int)flags);
    }
    for (size_t i = 0; i < HOT_FUNCTIONS; i++)
        entries[i] = (PAPI_sprofil_t){.pr_base = ranges->function[i],
                                      .pr_size = (unsigned int)range_bytes(i),
                                      .pr_off = (vptr_t)(uintptr_t)workload_hot[i].start,
                                      .pr_scale = RANGE_SCALE / 2};
    return PAPI_sprofil(entries, HOT_FUNCTIONS, event_set, event_code, threshold, (int)flags);
}

static int enter(void)
{
    ranges = calloc(1, sizeof(*ranges));
    if (!ranges)
        return -ENOMEM;
    if (PAPI_create_eventset(&event_set) != PAPI_OK)
        return failed("PAPI_create_eventset");
    if (PAPI_event_name_to_code("perf::TASK-CLOCK", &event_code) != PAPI_OK ||
        PAPI_add_event(event_set, event_code) != PAPI_OK)
        return failed("PAPI does not have perf::TASK-CLOCK");
    if (profile_ranges(PAPI_PROFIL_POSIX | PAPI_PROFIL_BUCKET_32, sample_period) != PAPI_OK)
        return failed("PAPI_sprofil");
    return PAPI_start(event_set) == PAPI_OK ? 0 : failed("PAPI_start");
}

int backend_start(uint64_t period, enum scope scope)
{
    const PAPI_component_info_t *component;

    wanted = scope;
    sample_period = (int)period;
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT)
        return failed("PAPI_library_init");
    if (PAPI_thread_init((unsigned long (*)(void))pthread_self) != PAPI_OK)
        return failed("PAPI_thread_init");
    component = PAPI_get_component_info(PAPI_get_component_index("perf_event"));
    if (!component || component->disabled != PAPI_OK) {
        failure = component ? component->disabled_reason : "no component perf_event";
        return -EOPNOTSUPP;
    }
    return enter();
}

static void leave(void)
{
    long long ignored;

    PAPI_stop(event_set, &ignored);
    profile_ranges(PAPI_PROFIL_POSIX | PAPI_PROFIL_BUCKET_32, 0);
    PAPI_cleanup_eventset(event_set);
    PAPI_destroy_eventset(&event_set);
    pthread_mutex_lock(&lock);
    ranges_add(ranges, &sum);
    pthread_mutex_unlock(&lock);
    free(ranges);
}

void backend_stop(void)
{
    leave();
}

void backend_read(struct counts *counts)
{
    *counts = sum;
}

const char *backend_reason(void)
{
    return failure;
}

void backend_enter(void)
{
    if (PAPI_register_thread() == PAPI_OK)
        enter();
}

void backend_leave(void)
{
    leave();
    PAPI_unregister_thread();
}
