# Makes a file part of a target: `name` becomes an array of its bytes, ended by a NUL, and `name`_bytes
# their number, the NUL included.
function(raffia_embed target name path)
  file(READ ${path} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <stddef.h>
extern const char @name@[];
extern const size_t @name@_bytes;
const char @name@[] = {@bytes@0};
const size_t @name@_bytes = sizeof @name@;
" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  target_sources(${target} PRIVATE ${source})
endfunction()
