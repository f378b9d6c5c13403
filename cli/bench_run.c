#include "cli/bench_run.h"

#include "cli/command.h"
#include "cli/fail.h"
#include "cli/interrupt.h"

int bench_run(bench_measure measure, const void *plan, bool json)
{
    cli_interrupt_catch();
    struct bench_report *report = bench_report_new();
    raffia_status status = report ? measure(plan, report) : raffia_last_status();
    if (!status)
        status = bench_report_print(report, json);
    bench_report_free(report);
    return status ? cli_fail_last(json, NULL) : CLI_OK;
}
