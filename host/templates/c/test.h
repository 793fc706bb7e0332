// What a test needs besides the methods that the plugin calls: the functions of bindings/guest.c that do not call the host, and a text of
// what the plugin wrote.

#undef NDEBUG
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

// Handles are numbers. A test chooses those of its pod sets and containers.
#define BORROW(interface, resource)                                                                                \
  interface##_borrow_##resource##_t interface##_borrow_##resource(interface##_own_##resource##_t handle) {         \
    return (interface##_borrow_##resource##_t){handle.__handle};                                                   \
  }
BORROW(context, context)
BORROW(job, job)
BORROW(lookups, lookups)
BORROW(objects, key_pair)
BORROW(objects, object)
BORROW(objects, objects)
BORROW(objects, secret_text)
BORROW(pod_set_info, container)
BORROW(pod_set_info, info)
BORROW(pod_set_info, pod_set)
BORROW(types, document)

void guest_string_set(guest_string_t *string, const char *text) {
  *string = (guest_string_t){(uint8_t *)text, strlen(text)};
}

void guest_string_dup(guest_string_t *string, const char *text) {
  char *copy = malloc(strlen(text) + 1);
  assert(copy);
  guest_string_set(string, strcpy(copy, text));
}

// A string as the arguments of `%.*s`.
#define SHOW(string) (int)(string)->len, (const char *)(string)->ptr

static bool is(guest_string_t *string, const char *text) {
  return string->len == strlen(text) && memcmp(string->ptr, text, string->len) == 0;
}

// What the plugin wrote, with a line for each value.
static char written[4096];

static void write_line(const char *format, ...) {
  size_t length = strlen(written);
  va_list values;
  va_start(values, format);
  int more = vsnprintf(written + length, sizeof written - length, format, values);
  va_end(values);
  assert(more >= 0 && length + (size_t)more + 1 < sizeof written);
  strcat(written, "\n");
}

// Fails and shows both, if the plugin did not write this.
static void expect_written(const char *expected) {
  if (strcmp(written, expected) == 0) return;
  fprintf(stderr, "expected:\n%s\nwritten:\n%s", expected, written);
  exit(1);
}
