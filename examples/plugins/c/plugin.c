// Greets each node of a TrainJob by an env var. The imports and exports are those of the contract (wit/), in the canonical ABI of components.
#include <stddef.h>
#include <stdint.h>

#define IMPORT(interface, name) \
  __attribute__((import_module("trainyard:policy/" interface "@1.0.0"), import_name(name))) extern
#define EXPORT(name) __attribute__((export_name(name)))

IMPORT("context", "[method]context.info") int32_t context_info(int32_t context);
IMPORT("context", "[method]context.because") void context_because(int32_t context, const char *text, size_t length);
IMPORT("pod-set-info", "[method]info.nodes") void info_nodes(int32_t info, void *list);
IMPORT("pod-set-info", "[method]pod-set.container")
void pod_set_container(int32_t pod_set, const char *name, size_t length, void *option);
IMPORT("pod-set-info", "[method]container.default-env")
void container_default_env(int32_t container, const char *name, size_t name_length, const char *value,
                           size_t value_length);

// The host writes lists and strings here. A call needs few, and each call gets a new instance.
static _Alignas(16) char heap[64 << 10];
static size_t used;

EXPORT("cabi_realloc") void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size) {
  size_t start = (used + align - 1) & ~(align - 1);
  if (size > sizeof heap || start > sizeof heap - size) __builtin_trap();
  used = start + size;
  for (size_t i = 0; i < old_size && i < size; i++) heap[start + i] = ((char *)old)[i];
  return heap + start;
}

// result<_, failure>: 0 is ok.
static int32_t result[8];

EXPORT("trainyard:policy/transform@1.0.0#transform") int32_t transform(int32_t context) {
  static const char reason[] = "each node is greeted";
  context_because(context, reason, sizeof reason - 1);
  struct { int32_t *handles; int32_t length; } pod_sets;
  info_nodes(context_info(context), &pod_sets);
  for (int32_t i = 0; i < pod_sets.length; i++) {
    struct { uint8_t is_some; int32_t handle; } node;
    pod_set_container(pod_sets.handles[i], "node", 4, &node);
    if (node.is_some) container_default_env(node.handle, "GREETING", 8, "hello", 5);
  }
  result[0] = 0;
  return (int32_t)(intptr_t)result;
}
