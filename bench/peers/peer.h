/*
 * One allocator beside others: what each file of this directory gives to main.c.
 */
#ifndef PEERS_PEER_H
#define PEERS_PEER_H

#include "cli/replay.h"

extern const char peer_name[];

/* It may be called from several threads at once. */
extern const bool peer_is_shared;

/* Makes it anew, for a range of so many bytes where it has one; its memory stays untouched. Fills
 * in the calls. On failure nothing is left, and the sentence says why. */
raffia_status peer_open(size_t range, struct replay_way *way);

/* Everything was freed before. */
void peer_close(void);

#endif
