/*
 * What `raffia doctor` finds out.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "driver/driver.h"
#include "driver/host/facts.h"

enum doctor_level {
    DOCTOR_OK,
    DOCTOR_WARNING, /* something is less good than it could be */
    DOCTOR_PROBLEM, /* huge pages of this kind cannot be had */
};

/* A finding: whole sentences. `fix` is the command to give, or
 * what else to do; empty where nothing is to be done. */
struct doctor_finding {
    enum doctor_level level;
    const char *topic;
    char what[768];
    char why[512];
    char fix[768];
};

#define DOCTOR_FINDINGS_MAX 64

struct doctor_findings {
    size_t count;
    struct doctor_finding items[DOCTOR_FINDINGS_MAX];
};

/* What the kernel can do, tried out rather than told from its version. */
struct doctor_features {
    bool populate;       /* MADV_POPULATE_WRITE, Linux 5.14 */
    int cachestat_error; /* errno of cachestat, Linux 6.5; 0 = it works */
};

void doctor_features_probe(struct doctor_features *features);

/* Judges the facts. Pure: asks nobody anything. */
void doctor_judge(const struct host_facts *facts, const struct doctor_features *features,
                  struct doctor_findings *findings);

/* One page of one kind, really made. */
struct doctor_trial {
    raffia_page_kind kind;
    size_t page_size;
    raffia_status status;
    bool verified;
    char evidence[32];
    raffia_fallback_reason reason;
    char message[768]; /* why not */
};

/* Reserves, creates, maps, reads back and gives back one page. */
void doctor_try_page(struct driver_device device, raffia_page_offer offer,
                     struct doctor_trial *trial);

#endif
