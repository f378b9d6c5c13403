#include "safetensors_cases.h"

#include "support/cmocka.h"
#include "support/safetensors_writer.h"

#include <stdlib.h>
#include <string.h>

/* A header with one tensor 'x' of one byte whose description is all but right. */
#define FIELDS(dtype, shape, offsets)                                                              \
    "{'x':{'dtype':" dtype ",'shape':" shape ",'data_offsets':" offsets "}}"

#define BYTE(name, begin, end)                                                                     \
    "'" name "':{'dtype':'U8','shape':[1],'data_offsets':[" begin "," end "]}"

#define EMPTY(name, at) "'" name "':{'dtype':'U8','shape':[0],'data_offsets':[" at "," at "]}"

#define SAME(name) BYTE(name, "0", "1") ","

#define ONES_8  "1,1,1,1,1,1,1,1"
#define ONES_32 ONES_8 "," ONES_8 "," ONES_8 "," ONES_8

#define E18 "1000000000000000000"
#define TEN E18 "," E18 "," E18 "," E18 "," E18 "," E18 "," E18 "," E18 "," E18 "," E18

#define NAME_20 "abcdefghijklmnopqrst"

#define VALID(name_, header_, data_bytes_, tensors_)                                               \
    {                                                                                              \
        .name = (name_), .header = (header_), .data_bytes = (data_bytes_), .tensors = (tensors_)   \
    }

#define WRONG(name_, header_, data_bytes_, ...)                                                    \
    {                                                                                              \
        .name = (name_), .header = (header_), .data_bytes = (data_bytes_),                         \
        .status = RAFFIA_ERROR_FORMAT, .words = {                                                  \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

#define WRONG_WITH_NUL(name_, header_, data_bytes_, header_bytes_, ...)                            \
    {                                                                                              \
        .name = (name_), .header = (header_), .header_bytes = (header_bytes_),                     \
        .data_bytes = (data_bytes_), .status = RAFFIA_ERROR_FORMAT, .words = {                     \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

#define WRONG_FILE(name_, raw_, raw_bytes_, ...)                                                   \
    {                                                                                              \
        .name = (name_), .raw = (raw_), .raw_bytes = (raw_bytes_), .status = RAFFIA_ERROR_FORMAT,  \
        .words = {                                                                                 \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

const struct safetensors_case safetensors_cases[] = {
    /* Files that are right. */
    VALID("no_tensors", "{}", 0, 0),
    VALID("metadata_only", "{'__metadata__':{'format':'pt'}}", 0, 0),
    VALID("metadata_null", "{'__metadata__':null," BYTE("x", "0", "1") "}", 1, 1),
    VALID("metadata_empty", "{'__metadata__':{}," BYTE("x", "0", "1") "}", 1, 1),
    VALID("metadata_empty_key", "{'__metadata__':{'':''}," BYTE("x", "0", "1") "}", 1, 1),
    VALID("scalar", FIELDS("'F32'", "[]", "[0,4]"), 4, 1),
    VALID("zero_extent", FIELDS("'F32'", "[3,0,5]", "[0,0]"), 0, 1),
    VALID("zero_extent_first", FIELDS("'F32'", "[0,4611686018427387904]", "[0,0]"), 0, 1),
    VALID("zero_sizes_between",
          "{" EMPTY("a", "1") "," BYTE("b", "0", "1") "," EMPTY("c", "0") "," EMPTY(
              "d", "1") "," BYTE("e", "1", "2") "," EMPTY("f", "2") "}",
          2, 6),
    VALID("odd_header_length", "{" BYTE("xy", "0", "1") "}", 1, 1),
    VALID("padded_with_spaces", "{" BYTE("x", "0", "1") "}       ", 1, 1),
    VALID("white_space_around", " \t\r\n{ " BYTE("x", "0", "1") "\n}\r\n\t ", 1, 1),
    VALID("f4_pair", FIELDS("'F4'", "[2]", "[0,1]"), 1, 1),
    VALID("f6_four", FIELDS("'F6_E2M3'", "[2,2]", "[0,3]"), 3, 1),
    VALID("f6_other", FIELDS("'F6_E3M2'", "[4]", "[0,3]"), 3, 1),
    VALID("unicode_names",
          "{" BYTE("\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80", "0", "1") "," BYTE("\\u4e16", "1",
                                                                              "2") "}",
          2, 2),
    VALID("surrogate_pair", "{" BYTE("\\ud83d\\ude00", "0", "1") "}", 1, 1),
    VALID("empty_name", "{" BYTE("", "0", "1") "}", 1, 1),
    VALID("unknown_fields",
          "{'x':{'dtype':'U8','more':[1.5,{'a':-1}],'shape':[1],'data_offsets':[0,1],'y':null}}", 1,
          1),
    VALID("most_dimensions", FIELDS("'U8'", "[" ONES_32 "]", "[0,1]"), 1, 1),
    VALID("misaligned",
          "{'a':{'dtype':'U8','shape':[3],'data_offsets':[0,3]},"
          "'b':{'dtype':'F32','shape':[1],'data_offsets':[3,7]}}",
          7, 2),
    VALID("not_in_order",
          "{" BYTE("a", "2", "3") "," BYTE("b", "0", "1") "," BYTE("c", "1", "2") "}", 3, 3),
    VALID("every_dtype",
          "{'a':{'dtype':'BOOL','shape':[1],'data_offsets':[0,1]},"
          "'b':{'dtype':'U16','shape':[1],'data_offsets':[1,3]},"
          "'c':{'dtype':'I16','shape':[1],'data_offsets':[3,5]},"
          "'d':{'dtype':'F16','shape':[1],'data_offsets':[5,7]},"
          "'e':{'dtype':'BF16','shape':[1],'data_offsets':[7,9]},"
          "'f':{'dtype':'U32','shape':[1],'data_offsets':[9,13]},"
          "'g':{'dtype':'I32','shape':[1],'data_offsets':[13,17]},"
          "'h':{'dtype':'U64','shape':[1],'data_offsets':[17,25]},"
          "'i':{'dtype':'I64','shape':[1],'data_offsets':[25,33]},"
          "'j':{'dtype':'F64','shape':[1],'data_offsets':[33,41]},"
          "'k':{'dtype':'C64','shape':[1],'data_offsets':[41,49]},"
          "'l':{'dtype':'I8','shape':[1],'data_offsets':[49,50]},"
          "'m':{'dtype':'F8_E4M3','shape':[1],'data_offsets':[50,51]},"
          "'n':{'dtype':'F8_E5M2','shape':[1],'data_offsets':[51,52]},"
          "'o':{'dtype':'F8_E8M0','shape':[1],'data_offsets':[52,53]},"
          "'p':{'dtype':'F8_E4M3FNUZ','shape':[1],'data_offsets':[53,54]},"
          "'q':{'dtype':'F8_E5M2FNUZ','shape':[1],'data_offsets':[54,55]}}",
          55, 17),

    /* The length in front. */
    WRONG_FILE("empty_file", "", 0, "0 bytes", "length"),
    WRONG_FILE("seven_bytes", "\2\0\0\0\0\0\0", 7, "7 bytes"),
    WRONG_FILE("length_alone", "\0\0\0\0\0\0\0\0", 8, "offset 8", "no '{'"),
    WRONG_FILE("length_without_header", "\2\0\0\0\0\0\0\0", 8, "offset 0", "2 bytes", "0 after"),
    WRONG_FILE("length_all_ones", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "offset 0",
               "18446744073709551615"),
    WRONG_FILE("length_wraps", "\xf8\xff\xff\xff\xff\xff\xff\xff{}", 10, "offset 0",
               "18446744073709551608"),
    WRONG_FILE("length_one_too_many", "\3\0\0\0\0\0\0\0{}", 10, "3 bytes", "2 after"),

    /* The JSON text. */
    WRONG("one_bad_byte", "\xff", 0, "offset 8", "no '{'"),
    WRONG("one_brace", "{", 0, "invalid JSON", "offset 9"),
    WRONG("white_space_alone", "   ", 0, "offset 11", "no '{'"),
    WRONG("an_array", "[]", 0, "no '{'"),
    WRONG("a_string", "'x'", 0, "no '{'"),
    WRONG("byte_order_mark", "\xef\xbb\xbf{}", 0, "offset 8", "no '{'"),
    WRONG("text_after_object", "{} x", 0, "invalid JSON"),
    WRONG("two_objects", "{}{}", 0, "invalid JSON"),
    WRONG_WITH_NUL("nul_after_object", "{}\0", 0, 3, "invalid JSON"),
    WRONG_WITH_NUL("nul_in_text", "{\0}", 0, 3, "invalid JSON"),
    WRONG("trailing_comma", "{" BYTE("x", "0", "1") ",}", 1, "invalid JSON"),
    WRONG("comma_missing", "{" BYTE("x", "0", "1") BYTE("y", "1", "2") "}", 2, "',' or '}'"),
    WRONG("comma_first", "{," BYTE("x", "0", "1") "}", 1, "a name"),
    WRONG("comma_alone", "{,}", 0, "a name"),
    WRONG("colon_missing", "{'x'}", 0, "':' was expected"),
    WRONG("value_missing", "{'x':}", 0, "invalid JSON"),
    WRONG("name_without_quotes", "{x:{}}", 0, "a name in double quotes"),
    WRONG("name_is_a_number", "{1:{}}", 0, "a name in double quotes"),
    WRONG("text_ends_in_name", "{'x", 0, "invalid JSON"),
    WRONG("text_ends_after_comma", "{" BYTE("x", "0", "1") ",", 1, "the text ends"),
    WRONG("comment", "{/**/}", 0, "invalid JSON"),
    WRONG("not_a_number", FIELDS("'U8'", "[NaN]", "[0,1]"), 1, "invalid JSON"),
    WRONG("leading_zero", FIELDS("'U8'", "[01]", "[0,1]"), 1, "invalid JSON"),
    WRONG("plus_sign", FIELDS("'U8'", "[+1]", "[0,1]"), 1, "invalid JSON"),
    WRONG("hexadecimal", FIELDS("'U8'", "[0x1]", "[0,1]"), 1, "invalid JSON"),
    WRONG("bad_utf8_name", "{" BYTE("\xff", "0", "1") "}", 1, "invalid JSON", "offset 1"),
    WRONG("overlong_utf8_name", "{" BYTE("\xc0\xaf", "0", "1") "}", 1, "invalid JSON"),
    WRONG("raw_surrogate_name", "{" BYTE("\xed\xa0\x80", "0", "1") "}", 1, "invalid JSON"),
    WRONG("nul_in_name", "{" BYTE("a\\u0000b", "0", "1") "}", 1, "invalid JSON", "u0000"),
    WRONG("lone_surrogate_name", "{" BYTE("\\ud800", "0", "1") "}", 1, "invalid JSON"),
    WRONG("control_in_name", "{" BYTE("a\nb", "0", "1") "}", 1, "invalid JSON"),
    WRONG("same_name_twice", "{" BYTE("x", "0", "1") "," BYTE("x", "1", "2") "}", 2, "twice", "x"),
    WRONG("same_name_escaped", "{" BYTE("x", "0", "1") "," BYTE("\\u0078", "1", "2") "}", 2,
          "twice"),
    WRONG("same_field_twice", "{'x':{'dtype':'U8','dtype':'U8','shape':[1],'data_offsets':[0,1]}}",
          1, "duplicate", "dtype"),
    WRONG("metadata_twice", "{'__metadata__':{},'__metadata__':{}}", 0, "twice"),
    WRONG("metadata_key_twice", "{'__metadata__':{'a':'b','a':'c'}}", 0, "duplicate"),

    /* Metadata. */
    WRONG("metadata_array", "{'__metadata__':[]}", 0, "__metadata__", "an array"),
    WRONG("metadata_string", "{'__metadata__':'x'}", 0, "__metadata__", "a string"),
    WRONG("metadata_number_value", "{'__metadata__':{'k':1}}", 0, "__metadata__", "'k'",
          "a number"),
    WRONG("metadata_null_value", "{'__metadata__':{'k':null}}", 0, "__metadata__", "'k'", "null"),
    WRONG("metadata_object_value", "{'__metadata__':{'k':{}}}", 0, "'k'", "an object"),
    WRONG("metadata_is_a_tensor", "{" BYTE("__metadata__", "0", "1") "}", 1, "__metadata__"),

    /* One description. */
    WRONG("description_null", "{'x':null}", 0, "tensor 'x'", "null"),
    WRONG("description_array", "{'x':['U8',[1],[0,1]]}", 1, "tensor 'x'", "an array"),
    WRONG("description_empty", "{'x':{}}", 0, "tensor 'x'", "dtype is missing"),
    WRONG("dtype_null", FIELDS("null", "[1]", "[0,1]"), 1, "tensor 'x'", "dtype is null"),
    WRONG("dtype_number", FIELDS("8", "[1]", "[0,1]"), 1, "tensor 'x'", "dtype is a number"),
    WRONG("dtype_unknown", FIELDS("'F33'", "[1]", "[0,1]"), 1, "tensor 'x'", "'F33' is unknown"),
    WRONG("dtype_lower_case", FIELDS("'u8'", "[1]", "[0,1]"), 1, "'u8' is unknown"),
    WRONG("dtype_empty", FIELDS("''", "[1]", "[0,1]"), 1, "'' is unknown"),
    WRONG("dtype_unprintable", FIELDS("'\\u001b[2J'", "[1]", "[0,1]"), 1, "'\\x1b[2J' is unknown"),
    WRONG("shape_missing", "{'x':{'dtype':'U8','data_offsets':[0,1]}}", 1, "shape is missing"),
    WRONG("shape_null", FIELDS("'U8'", "null", "[0,1]"), 1, "shape is null"),
    WRONG("shape_number", FIELDS("'U8'", "1", "[0,1]"), 1, "shape is a number"),
    WRONG("shape_object", FIELDS("'U8'", "{}", "[0,1]"), 1, "shape is an object"),
    WRONG("extent_negative", FIELDS("'U8'", "[-1]", "[0,1]"), 1, "extent 0", "negative"),
    WRONG("extent_fraction", FIELDS("'U8'", "[1,1.0]", "[0,1]"), 1, "extent 1", "fraction"),
    WRONG("extent_exponent", FIELDS("'U8'", "[1e0]", "[0,1]"), 1, "extent 0", "exponent"),
    WRONG("extent_string", FIELDS("'U8'", "['1']", "[0,1]"), 1, "extent 0", "a string"),
    WRONG("extent_null", FIELDS("'U8'", "[null]", "[0,1]"), 1, "extent 0", "null"),
    WRONG("extent_truth", FIELDS("'U8'", "[true]", "[0,1]"), 1, "extent 0", "truth"),
    WRONG("extent_array", FIELDS("'U8'", "[[1]]", "[0,1]"), 1, "extent 0", "an array"),
    WRONG("extent_above_63_bits", FIELDS("'U8'", "[18446744073709551614]", "[0,1]"), 1,
          "too big integer"),
    WRONG("extent_above_64_bits", FIELDS("'U8'", "[99999999999999999999999]", "[0,1]"), 1,
          "too big integer"),
    WRONG("extent_largest", FIELDS("'F32'", "[9223372036854775807]", "[0,4]"), 4, "tensor 'x'",
          "9223372036854775807", "overflows"),
    WRONG("extents_overflow", FIELDS("'U8'", "[4294967296,4294967296]", "[0,0]"), 0, "tensor 'x'",
          "[4294967296, 4294967296]", "overflows"),
    WRONG("extents_wrap_to_right_size",
          FIELDS("'U8'", "[9223372036854775807,2,9223372036854775807]", "[0,2]"), 2, "overflows"),
    WRONG("bits_overflow", FIELDS("'U8'", "[2305843009213693952]", "[0,0]"), 0, "overflows"),
    {.name = "too_many_dimensions",
     .header = FIELDS("'U8'", "[" ONES_32 ",1]", "[0,1]"),
     .data_bytes = 1,
     .status = RAFFIA_ERROR_LIMIT,
     .words = {"tensor 'x'", "33 dimensions", "32"}},
    WRONG("shape_text_long", FIELDS("'U8'", "[" ONES_8 "," TEN "]", "[0,1]"), 1,
          "1000000000000000000, ...]", "overflows"),
    WRONG("f4_odd", FIELDS("'F4'", "[3]", "[0,2]"), 2, "tensor 'x'", "12 bits", "F4"),
    WRONG("f6_odd", FIELDS("'F6_E2M3'", "[3]", "[0,3]"), 3, "18 bits"),
    WRONG("offsets_missing", "{'x':{'dtype':'U8','shape':[1]}}", 1, "data_offsets is missing"),
    WRONG("offsets_null", FIELDS("'U8'", "[1]", "null"), 1, "data_offsets is null"),
    WRONG("offsets_empty", FIELDS("'U8'", "[1]", "[]"), 1, "data_offsets has 0 entries"),
    WRONG("offsets_one", FIELDS("'U8'", "[1]", "[0]"), 1, "data_offsets has 1 entries"),
    WRONG("offsets_three", FIELDS("'U8'", "[1]", "[0,1,1]"), 1, "data_offsets has 3 entries"),
    WRONG("offset_negative", FIELDS("'U8'", "[1]", "[-1,0]"), 1, "entry 0", "negative"),
    WRONG("offset_fraction", FIELDS("'U8'", "[1]", "[0,1.0]"), 1, "entry 1", "fraction"),
    WRONG("offset_exponent", FIELDS("'U8'", "[1000]", "[0,1e3]"), 1000, "entry 1", "exponent"),
    WRONG("offset_string", FIELDS("'U8'", "[1]", "['0',1]"), 1, "entry 0", "a string"),
    WRONG("offset_above_63_bits",
          FIELDS("'U8'", "[1]", "[18446744073709551614,18446744073709551615]"), 1,
          "too big integer"),
    WRONG("offsets_backward", FIELDS("'U8'", "[1]", "[1,0]"), 1, "[1, 0]", "end before"),
    WRONG("offsets_too_short", FIELDS("'F32'", "[2,2]", "[0,12]"), 12, "tensor 'x'", "span 12",
          "[2, 2] of F32 takes 16"),
    WRONG("offsets_too_long", FIELDS("'F32'", "[2,2]", "[0,20]"), 20, "span 20", "takes 16"),
    WRONG("scalar_of_none", FIELDS("'F32'", "[]", "[0,0]"), 0, "span 0", "[] of F32 takes 4"),
    WRONG("zero_extent_with_bytes", FIELDS("'U8'", "[0]", "[0,1]"), 1, "span 1", "takes 0"),
    WRONG("name_unprintable", "{'a\\nb\\u202e':{}}", 0, "tensor 'a\\x0ab\\xe2\\x80\\xae'"),
    WRONG("name_long", "{'" NAME_20 NAME_20 NAME_20 NAME_20 NAME_20 "':{}}", 0,
          "tensor '" NAME_20 NAME_20 NAME_20 NAME_20 "...'"),

    /* All together. */
    WRONG("hole_at_start", FIELDS("'U8'", "[1]", "[1,2]"), 2, "tensor 'x'",
          "hole of 1 bytes after the header", "offset 61 in the file"),
    WRONG("hole_between", "{" BYTE("x", "0", "1") "," BYTE("y", "3", "4") "}", 4, "tensor 'y'",
          "hole of 2 bytes after tensor 'x'", "[3, 4]"),
    WRONG("overlap_in_part",
          "{'x':{'dtype':'U8','shape':[2],'data_offsets':[0,2]},"
          "'y':{'dtype':'U8','shape':[2],'data_offsets':[1,3]}}",
          3, "tensor 'y'", "[1, 3] overlap tensor 'x'", "in the file"),
    WRONG("overlap_inside",
          "{'x':{'dtype':'U8','shape':[3],'data_offsets':[0,3]}," BYTE("y", "1", "2") "}", 3,
          "overlap"),
    WRONG("empty_tensor_inside",
          "{'x':{'dtype':'U8','shape':[3],'data_offsets':[0,3]}," EMPTY("y", "1") "}", 3,
          "overlap"),
    WRONG("ten_on_one_range",
          "{" SAME("a") SAME("b") SAME("c") SAME("d") SAME("e") SAME("f") SAME("g") SAME("h")
              SAME("i") BYTE("j", "0", "1") "}",
          1, "tensor 'b'", "overlap tensor 'a'"),
    WRONG("far_empty_tensor", FIELDS("'U8'", "[0]", "[9223372036854775807,9223372036854775807]"), 0,
          "hole of 9223372036854775807 bytes"),
    WRONG("shape_beyond_file", FIELDS("'U8'", "[1152921504606846976]", "[0,1152921504606846976]"),
          1, "missing", "tensor 'x'"),
    WRONG("two_bytes_missing",
          "{" BYTE("x", "0", "1") ",'y':{'dtype':'F32','shape':[2],'data_offsets':[1,9]}}", 7,
          "2 bytes are missing", "tensor 'y'", "the file has"),
    WRONG("no_data", FIELDS("'F32'", "[1]", "[0,4]"), 0, "4 bytes are missing"),
    WRONG("trailing_bytes", FIELDS("'U8'", "[1]", "[0,1]"), 4, "3 bytes follow the last tensor",
          "lenient"),
    WRONG("trailing_without_tensor", "{}", 1, "1 bytes follow the last tensor"),
    WRONG("trailing_zip", "{}PK\5\6", 0, "invalid JSON"),
};

const size_t safetensors_case_count = sizeof safetensors_cases / sizeof *safetensors_cases;

unsigned char *safetensors_case_image(const struct safetensors_case *item, size_t *bytes_p)
{
    if (item->raw) {
        unsigned char *copy = malloc(item->raw_bytes + 1);
        assert_non_null(copy);
        *bytes_p = item->raw_bytes;
        return memcpy(copy, item->raw, item->raw_bytes);
    }
    size_t header_bytes = item->header_bytes ? item->header_bytes : strlen(item->header);
    char *header = malloc(header_bytes + 1);
    assert_non_null(header);
    for (size_t i = 0; i < header_bytes; i++)
        header[i] = item->header[i] == '\'' ? '"' : item->header[i];
    unsigned char *image = test_safetensors_image(header, header_bytes, item->data_bytes, bytes_p);
    free(header);
    return image;
}
