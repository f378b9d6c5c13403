/*
 * The symbol that all copies of the library share. C has no word for the kind, so that it is
 * defined in assembler; this file is compiled without link-time optimisation, which does not see
 * such definitions.
 */
#include "resource/current.h"

_Static_assert(sizeof(struct current_block) <= CURRENT_BLOCK_BYTES,
               "the block has outgrown its room");

#define TEXT_OF(value) #value
#define TEXT(value)    TEXT_OF(value)

__asm__(".pushsection .data.raffia_current_block,\"aw\"\n"
        ".globl raffia_current_block\n"
#if defined(__arm__)
        ".type raffia_current_block, %gnu_unique_object\n"
#else
        ".type raffia_current_block, @gnu_unique_object\n"
#endif
        ".size raffia_current_block, " TEXT(
            CURRENT_BLOCK_BYTES) "\n"
                                 ".balign 64\n"
                                 "raffia_current_block:\n"
                                 ".zero " TEXT(CURRENT_BLOCK_BYTES) "\n"
                                                                    ".popsection\n");
