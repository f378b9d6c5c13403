# Compiler flags of everything in the project, gathered on one interface target.

add_library(raffia_flags INTERFACE)
target_compile_features(raffia_flags INTERFACE c_std_17 cxx_std_17)
target_compile_definitions(raffia_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(
  raffia_flags
  INTERFACE -Wall
            -Wextra
            -Wshadow
            -Wconversion
            -Wpointer-arith
            -Wcast-qual
            -Wundef
            -Wvla
            -Wformat=2
            $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
            $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
            $<$<BOOL:${RAFFIA_WERROR}>:-Werror>
            -fno-common)

if(RAFFIA_SANITIZE)
  target_compile_options(raffia_flags INTERFACE -fsanitize=${RAFFIA_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  target_link_options(raffia_flags INTERFACE -fsanitize=${RAFFIA_SANITIZE})
endif()
if(RAFFIA_FUZZ)
  # Coverage for libFuzzer to steer by, and asserts whatever the build type says.
  target_compile_options(raffia_flags INTERFACE -fsanitize=fuzzer-no-link -UNDEBUG)
  target_link_options(raffia_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(RAFFIA_COVERAGE)
  target_compile_options(raffia_flags INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(raffia_flags INTERFACE --coverage)
endif()
