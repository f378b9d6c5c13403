/*
 * The benchmarks of `raffia bench`, each a command of its own.
 */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

/* argv[0] is "raffia bench <name>". */
int bench_load(int argc, char **argv);
int bench_alloc(int argc, char **argv);
int bench_copy(int argc, char **argv);
int bench_tlb(int argc, char **argv);
int bench_step(int argc, char **argv);
int bench_table(int argc, char **argv);
int bench_rotate(int argc, char **argv);
int bench_micro(int argc, char **argv);
int bench_trace(int argc, char **argv);

#endif
